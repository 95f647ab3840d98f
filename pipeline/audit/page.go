package audit

import (
	"bytes"
	"fmt"
	"path"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/page"
)

// pages is what an audit comes to know of pages.
type pages struct {
	found findings

	mu     sync.Mutex
	newer  map[string]bool      // pages of versions that are not known
	taken  map[string]bool      // pages with a directory in their place
	tables map[string][]tableAt // each time that one was written
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
	tables page.Tables
}

func newPages() *pages {
	return &pages{newer: map[string]bool{}, taken: map[string]bool{}, tables: map[string][]tableAt{}}
}

func (p *pages) result() Pages {
	p.found.trim()
	return Pages{OK: p.found.count == 0, Count: p.found.count, Findings: append([]history.Finding{}, p.found.all...), NotChecked: len(p.newer)}
}

// differs is L23.
func (a *auditor) differs(commit history.ID, file, format string, args ...any) {
	a.pages.found.add(history.Finding{RuleID: "L23", Commit: commit.String(), Path: file, Message: fmt.Sprintf(format, args...)})
}

// notChecked counts a page of a version that is not known.
func (a *auditor) notChecked(file string) {
	a.pages.mu.Lock()
	defer a.pages.mu.Unlock()
	a.pages.newer[file] = true
}

// paged checks the pages of a commit by themselves, and leaves those that its transaction is to be compared with.
func (a *auditor) paged(c history.Commit, p *parts) {
	own := ""
	for id := range p.transactions {
		own = path.Join(ledger.Dir(id), ledger.ReadmeFile)
	}
	first := len(c.Parents) == 0
	all := p.pages
	p.pages = nil
	for _, ch := range all {
		file, _ := ledger.PageAt(ch.Path)
		_, isTransaction := ledger.TransactionOf(file)
		root := file == ledger.ReadmeFile
		switch {
		case ch.Path != file:
			a.inPlace(c, file, ch)
			continue
		case !isTransaction && !root:
			a.pages.mu.Lock()
			a.pages.tables[file] = append(a.pages.tables[file], tableAt{c.Age, ch.New})
			a.pages.mu.Unlock()
		}
		switch {
		case root && !first:
			a.differs(c.ID, file, "was changed: the first commit alone writes it")
		case ch.New == history.Entry{}:
			a.differs(c.ID, file, "was removed")
		case ch.New.Mode != history.ModeFile:
			a.inPlace(c, file, ch)
		case root:
			a.root(c, ch)
		case len(p.transactions) != 1:
			a.differs(c.ID, file, "was not written by a transaction")
		case isTransaction && file != own:
			a.differs(c.ID, file, "was written by a commit of another transaction")
		}
		if root || len(p.transactions) != 1 || isTransaction && file != own {
			a.read(c.ID, file, ch.New) // each object is read once
			first = first && !root
			continue
		}
		p.pages = append(p.pages, ch)
	}
	if first {
		a.differs(c.ID, ledger.ReadmeFile, "is missing in the first commit")
	}
}

// inPlace tells of what is in a page's place and no file.
func (a *auditor) inPlace(c history.Commit, file string, ch history.Change) {
	if ch.New == (history.Entry{}) {
		return
	}
	what := fmt.Sprintf("has mode %06o, not that of a file", ch.New.Mode)
	if ch.Path != file || ch.New.Mode == history.ModeDir {
		what = "is a directory, in the place of a page"
		a.pages.mu.Lock()
		a.pages.taken[file] = true
		a.pages.mu.Unlock()
	}
	a.differs(c.ID, ch.Path, "%s", what)
	a.read(c.ID, ch.Path, ch.New)
}

// root checks the page at the root.
func (a *auditor) root(c history.Commit, ch history.Change) {
	raw := a.read(c.ID, ch.Path, ch.New)
	switch n := page.Number(raw); {
	case raw == nil: // which was told
	case n > a.o.Pages.Newest():
		a.notChecked(ch.Path)
	case n == 0 || !bytes.Equal(raw, a.o.Pages.Root(n)):
		a.differs(c.ID, ch.Path, "is not the page that its version makes there")
	}
}

// view compares the pages of a version, which brought the events from one to before another, with what these make.
func (l *life) view(v *version, from, to int, tx ledger.Transaction) {
	denials := map[string][]byte{}
	for _, ch := range v.index {
		if ledger.IsDenial(ch.Path) {
			denials[ch.Path] = l.content[ch.New.ID]
		}
	}
	number := l.own(v, to, tx)
	l.tables(v, number, l.o.Pages.Tables(l.log.Payloads()[:to], tx, from == 0, denials))
}

// own compares the transaction's page as a version leaves it, and returns the version of pages that the version's program
// wrote, 0 where it is not known.
func (l *life) own(v *version, to int, tx ledger.Transaction) int {
	file, written := path.Join(l.dir, ledger.ReadmeFile), false
	for _, ch := range v.pages {
		if ch.Path == file {
			l.page, written = ch.New, true
		}
	}
	switch {
	case l.page == history.Entry{} && l.inTheWay(file):
		return l.o.Pages.Newest() // which was told
	case l.page == history.Entry{}:
		if !written {
			l.differs(v.commit, file, "is missing: each stage writes it")
		}
		return 0
	case l.page.Mode != history.ModeFile:
		return 0
	}
	raw := l.read(v.commit, file, l.page)
	n := page.Number(raw)
	switch {
	case raw == nil: // which was told
	case n > l.o.Pages.Newest():
		l.notChecked(file)
	case n == 0:
		l.differs(v.commit, file, "is no page: it names no version")
	case bytes.Equal(raw, l.o.Pages.Transaction(n, newDirFS(l.files, l.content), l.log.Payloads()[:to], tx)):
	case !written:
		l.differs(v.commit, file, "was not written again: the commit changes what it shows")
	default:
		l.differs(v.commit, file, "is not the page that the events so far make")
	}
	if !written {
		return 0
	}
	return n
}

// tables compares the tables that a version wrote with those before and what it adds. number is the version of its own page.
func (l *life) tables(v *version, number int, made page.Tables) {
	written := map[string]bool{}
	for _, ch := range v.pages {
		if _, isTransaction := ledger.TransactionOf(ch.Path); isTransaction {
			continue
		}
		written[ch.Path] = true
		if ch.New.Mode != history.ModeFile {
			continue // which was told
		}
		raw := l.read(v.commit, ch.Path, ch.New)
		var before []byte
		if ch.Old.Mode&0o170000 == 0o100000 { // else it is no table
			before = l.read(v.commit, ch.Path, ch.Old)
		}
		was, n := page.Number(before), page.Number(raw)
		switch {
		case raw == nil: // which was told
		case n == 0:
			l.differs(v.commit, ch.Path, "is no page: it names no version")
		case was != 0 && n != was:
			l.differs(v.commit, ch.Path, "is of version %d, and was begun with %d, which a table keeps", n, was)
		case n > l.o.Pages.Newest():
			l.notChecked(ch.Path)
		case !made.Adds(n, ch.Path):
			l.differs(v.commit, ch.Path, "was written, but its commit adds no row to it")
		case !bytes.Equal(raw, made.Add(n, ch.Path, before)):
			l.differs(v.commit, ch.Path, "is not the table before with the rows of this commit")
		}
	}
	for _, file := range made.Files() {
		if !written[file] && !l.inTheWay(file) {
			l.pages.mu.Lock()
			l.pages.left = append(l.pages.left, leftAlone{v.commit, v.age, file, number, made})
			l.pages.mu.Unlock()
		}
	}
}

// untouched tells of tables that lack the row of a commit. One of a version that the commit's program, by the page that it
// wrote, did not know is rightly left alone.
func (a *auditor) untouched() {
	for _, one := range a.pages.left {
		n := page.Number(a.tableBefore(one))
		switch {
		case n > a.o.Pages.Newest():
			a.notChecked(one.file)
			continue
		case n == 0 && one.page > a.o.Pages.Newest():
			continue // which may have no such table
		case n == 0 && one.page > 0:
			n = one.page // it would have begun the table
		case n == 0:
			n = a.o.Pages.Newest()
		case one.page > 0 && n > one.page:
			continue
		}
		if one.tables.Adds(n, one.file) {
			a.differs(one.commit, one.file, "lacks the row of what this commit records")
		}
	}
}

// tableBefore reads a table as a commit that did not write it found it, nil for none.
func (a *auditor) tableBefore(one leftAlone) []byte {
	var last *tableAt
	for i, t := range a.pages.tables[one.file] {
		if t.age > one.age && (last == nil || t.age < last.age) {
			last = &a.pages.tables[one.file][i]
		}
	}
	entry := history.Entry{}
	if last != nil {
		entry = last.entry
	} else if former, err := a.Former(one.file); err == nil {
		entry = former[one.file]
	}
	if entry.Mode != history.ModeFile {
		return nil
	}
	return a.read(one.commit, one.file, entry)
}

// inTheWay reports whether there is a directory where a page would be, of this history or from before.
func (a *auditor) inTheWay(file string) bool {
	if a.pages.taken[file] {
		return true
	}
	former, err := a.Former(file)
	_, isFile := former[file]
	return err == nil && len(former) > 0 && !isFile
}
