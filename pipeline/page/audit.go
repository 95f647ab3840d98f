package page

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// Audit is audit.Run on all cores, with what is beside the record: the keys that commits of the code list, the pages, which are a
// view and are told of apart, and observations (package observation). Versions are those that are made again; nil is
// all that there are. It reports two rules:
//
//	L26      an observation has its form, and its signature is good
//	L23      the page of a transaction, the tables and the page at the root are what
//	         their version makes of the record; pages of newer versions are counted
func Audit(h history.Reader, o audit.Options, versions Versions) (audit.Result, error) {
	o.View = func(r audit.ViewReader) audit.View {
		return &pages{ViewReader: r, versions: versions, newer: map[string]bool{}, taken: map[string]bool{}, tables: map[string][]tableAt{}, own: map[string]history.Entry{}}
	}
	o.Spread = func(n int, do func(int)) { // most wait for objects
		_ = parallel.Try(4*runtime.GOMAXPROCS(0), n, func(i int) error { do(i); return nil })
	}
	var observed observations
	o.Each = observed.each(o.Each)
	r, err := audit.Run(h, o)
	if err == nil && len(observed.found) > 0 {
		observed.addTo(&r)
	}
	return r, err
}

// pages is what an audit comes to know of pages.
type pages struct {
	audit.ViewReader
	versions Versions

	mu     sync.Mutex
	newer  map[string]bool          // pages of versions that are not known
	taken  map[string]bool          // pages with a directory in their place
	tables map[string][]tableAt     // each time that one was written
	own    map[string]history.Entry // of transactions, as their last version so far leaves them
	left   []leftAlone
}

// A tableAt is a table as the commit of an age left it.
type tableAt struct {
	age   int
	entry history.Entry
}

// A leftAlone is a table that a commit did not write, although it records what a version adds to tables. page is the
// version of the commit's own page, 0 for none.
type leftAlone struct {
	commit history.ID
	age    int
	file   string
	page   int
	tables Tables
}

// notChecked counts a page of a version that is not known.
func (p *pages) notChecked(file string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newer[file] = true
}

// Commit checks the pages of a commit by themselves, and returns those that its transaction is to be compared with.
func (p *pages) Commit(c history.Commit, changes []history.Change, transactions []string) (kept []history.Change) {
	own := ""
	for _, id := range transactions {
		own = path.Join(ledger.Dir(id), ledger.ReadmeFile)
	}
	first := len(c.Parents) == 0
	for _, ch := range changes {
		file, _ := ledger.PageAt(ch.Path)
		_, _, isTransaction := ledger.Within(file)
		root := file == ledger.ReadmeFile
		switch {
		case ch.Path != file:
			p.inPlace(c, file, ch)
			continue
		case !isTransaction && !root:
			p.mu.Lock()
			p.tables[file] = append(p.tables[file], tableAt{c.Age, ch.New})
			p.mu.Unlock()
		}
		switch {
		case root && !first:
			p.Differs(c.ID, file, "was changed: the first commit alone writes it")
		case ch.New == history.Entry{}:
			p.Differs(c.ID, file, "was removed")
		case ch.New.Mode != history.ModeFile:
			p.inPlace(c, file, ch)
		case root:
			p.root(c, ch)
		case len(transactions) != 1:
			p.Differs(c.ID, file, "was not written by a transaction")
		case isTransaction && file != own:
			p.Differs(c.ID, file, "was written by a commit of another transaction")
		}
		if root || len(transactions) != 1 || isTransaction && file != own {
			p.Read(c.ID, file, ch.New) // each object is read once
			first = first && !root
			continue
		}
		kept = append(kept, ch)
	}
	if first {
		p.Differs(c.ID, ledger.ReadmeFile, "is missing in the first commit")
	}
	return kept
}

// inPlace tells of what is in a page's place and no file.
func (p *pages) inPlace(c history.Commit, file string, ch history.Change) {
	if ch.New == (history.Entry{}) {
		return
	}
	what := fmt.Sprintf("has mode %06o, not that of a file", ch.New.Mode)
	if ch.Path != file || ch.New.Mode == history.ModeDir {
		what = "is a directory, in the place of a page"
		p.mu.Lock()
		p.taken[file] = true
		p.mu.Unlock()
	}
	p.Differs(c.ID, ch.Path, "%s", what)
	p.Read(c.ID, ch.Path, ch.New)
}

// root checks the page at the root.
func (p *pages) root(c history.Commit, ch history.Change) {
	raw := p.Read(c.ID, ch.Path, ch.New)
	switch n := Number(raw); {
	case raw == nil: // which was told
	case n > p.versions.Newest():
		p.notChecked(ch.Path)
	case n == 0 || !bytes.Equal(raw, p.versions.Root(n)):
		p.Differs(c.ID, ch.Path, "is not the page that its version makes there")
	}
}

// Version compares the pages of a version with what its events make.
func (p *pages) Version(v audit.Version) {
	number := p.transaction(v)
	p.compare(v, number, p.versions.Tables(v.Payloads, v.Transaction, v.First, v.Denials))
}

// transaction compares the transaction's page as a version leaves it, and returns the version of pages that the version's program
// wrote, 0 where it is not known.
func (p *pages) transaction(v audit.Version) int {
	file, written := path.Join(ledger.Dir(v.ID), ledger.ReadmeFile), false
	p.mu.Lock()
	entry, known := p.own[file]
	p.mu.Unlock()
	if !known {
		former, _ := p.Former(file) // what cannot be read was told
		entry = former[file]
	}
	for _, ch := range v.Pages {
		if ch.Path == file {
			entry, written = ch.New, true
		}
	}
	p.mu.Lock()
	p.own[file] = entry
	p.mu.Unlock()
	switch {
	case entry == history.Entry{} && p.inTheWay(file):
		return p.versions.Newest() // which was told
	case entry == history.Entry{}:
		if !written {
			p.Differs(v.Commit, file, "is missing: each stage writes it")
		}
		return 0
	case entry.Mode != history.ModeFile:
		return 0
	}
	raw := p.Read(v.Commit, file, entry)
	n := Number(raw)
	switch {
	case raw == nil: // which was told
	case n > p.versions.Newest():
		p.notChecked(file)
	case n == 0:
		p.Differs(v.Commit, file, "is no page: it names no version")
	case bytes.Equal(raw, p.versions.Transaction(n, v.Dir, v.Payloads, v.Transaction)):
	case !written:
		p.Differs(v.Commit, file, "was not written again: the commit changes what it shows")
	default:
		p.Differs(v.Commit, file, "is not the page that the events so far make")
	}
	if !written {
		return 0
	}
	return n
}

// compare compares the tables that a version wrote with those before and what it adds. number is the version of its own page.
func (p *pages) compare(v audit.Version, number int, made Tables) {
	written := map[string]bool{}
	for _, ch := range v.Pages {
		if _, _, isTransaction := ledger.Within(ch.Path); isTransaction {
			continue
		}
		written[ch.Path] = true
		if ch.New.Mode != history.ModeFile {
			continue // which was told
		}
		raw := p.Read(v.Commit, ch.Path, ch.New)
		var before []byte
		if ch.Old.Mode&0o170000 == 0o100000 { // else it is no table
			before = p.Read(v.Commit, ch.Path, ch.Old)
		}
		was, n := Number(before), Number(raw)
		switch {
		case raw == nil: // which was told
		case n == 0:
			p.Differs(v.Commit, ch.Path, "is no page: it names no version")
		case was != 0 && n != was:
			p.Differs(v.Commit, ch.Path, "is of version %d, and was begun with %d, which a table keeps", n, was)
		case n > p.versions.Newest():
			p.notChecked(ch.Path)
		case !made.Adds(n, ch.Path):
			p.Differs(v.Commit, ch.Path, "was written, but its commit adds no row to it")
		case !bytes.Equal(raw, made.Add(n, ch.Path, before)):
			p.Differs(v.Commit, ch.Path, "is not the table before with the rows of this commit")
		}
	}
	for _, file := range made.Files() {
		if !written[file] && !p.inTheWay(file) {
			p.mu.Lock()
			p.left = append(p.left, leftAlone{v.Commit, v.Age, file, number, made})
			p.mu.Unlock()
		}
	}
}

// End tells of tables that lack the row of a commit, and returns how many pages were not checked. A table of a version that the
// commit's program, by the page that it wrote, did not know is rightly left alone.
func (p *pages) End() (notChecked int) {
	for _, one := range p.left {
		n := Number(p.tableBefore(one))
		switch {
		case n > p.versions.Newest():
			p.notChecked(one.file)
			continue
		case n == 0 && one.page > p.versions.Newest():
			continue // which may have no such table
		case n == 0 && one.page > 0:
			n = one.page // it would have begun the table
		case n == 0:
			n = p.versions.Newest()
		case one.page > 0 && n > one.page:
			continue
		}
		if one.tables.Adds(n, one.file) {
			p.Differs(one.commit, one.file, "lacks the row of what this commit records")
		}
	}
	return len(p.newer)
}

// tableBefore reads a table as a commit that did not write it found it, nil for none.
func (p *pages) tableBefore(one leftAlone) []byte {
	var last *tableAt
	for i, t := range p.tables[one.file] {
		if t.age > one.age && (last == nil || t.age < last.age) {
			last = &p.tables[one.file][i]
		}
	}
	entry := history.Entry{}
	if last != nil {
		entry = last.entry
	} else if former, err := p.Former(one.file); err == nil {
		entry = former[one.file]
	}
	if entry.Mode != history.ModeFile {
		return nil
	}
	return p.Read(one.commit, one.file, entry)
}

// inTheWay reports whether there is a directory where a page would be, of this history or from before.
func (p *pages) inTheWay(file string) bool {
	if p.taken[file] {
		return true
	}
	former, err := p.Former(file)
	_, isFile := former[file]
	return err == nil && len(former) > 0 && !isFile
}

// CodeKeys reads keys out of the trees of commits, an error being one that is not here. The
// browser has none of them, and so is not linked with what reads a Policy's file.
func CodeKeys(code func(commit string) (fs.FS, error)) audit.KeyReader {
	return func(commit string, p policy.Policy) (approval.Keys, bool) {
		tree, err := code(commit)
		if err != nil {
			return approval.Keys{}, false
		}
		keys := approval.ReadKeys(tree, p)
		switch there, _, err := policy.Read(tree); {
		case err != nil:
			keys.Err = err
		case there.Approvals.Keys != p.Approvals.Keys || there.Approvals.ForgeKeys != p.Approvals.ForgeKeys || there.Approvals.Passkeys != p.Approvals.Passkeys:
			keys.Err = errors.New("the Policy there names other keys than the recorded one")
		}
		return keys, true
	}
}

// observations holds observations to their form (L26), as an audit hands on the transactions.
type observations struct {
	mu    sync.Mutex
	found []history.Finding
}

// each checks a transaction, and hands it on to next, which may be nil.
func (d *observations) each(next audit.Each) audit.Each {
	return func(id string, commit history.ID, record *approval.Record, found []canon.Violation) {
		if record != nil && record.Log != nil { // of one that cannot be read the audit tells
			for _, v := range observation.Check(record.Dir, record.Log) {
				d.mu.Lock()
				d.found = append(d.found, history.Finding{RuleID: v.RuleID, Commit: commit.String(), Path: path.Join(ledger.Dir(id), v.Path), Message: v.Message})
				d.mu.Unlock()
				found = append(slices.Clip(found), v)
			}
		}
		if next != nil {
			next(id, commit, record, found)
		}
	}
}

// addTo adds what was found to the result of the audit. Of a ledger that only a newer program can judge these are notes (V15).
func (d *observations) addTo(r *audit.Result) {
	for _, f := range d.found {
		if r.Newer != "" {
			r.Notes = append(r.Notes, audit.Note{Commit: f.Commit, Path: f.Path, Message: f.RuleID + " of this version does not hold: " + f.Message})
			continue
		}
		r.Findings, r.OK = append(r.Findings, f), false
		r.Count++
	}
	slices.SortFunc(r.Findings, func(a, b history.Finding) int {
		return cmp.Or(strings.Compare(a.RuleID, b.RuleID), strings.Compare(a.Path, b.Path), strings.Compare(a.Commit, b.Commit), strings.Compare(a.Message, b.Message))
	})
	r.Findings = r.Findings[:min(len(r.Findings), audit.MaxFindings)]
}
