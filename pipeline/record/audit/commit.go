package audit

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// commit takes one commit in: what can be said of it alone is checked, the rest
// goes to the transaction that it is about. It is called on several goroutines.
func (a *auditor) commit(c history.Commit) {
	for _, p := range c.Problems {
		a.found.add(p)
	}
	if c.Base {
		return
	}
	a.progress("commits", int(a.commits.Add(1)), 0)
	if len(c.Parents) > 1 {
		a.add("L8", c.ID, "", "is a merge of %d histories", len(c.Parents))
	}
	if c.Signature != history.Unsigned {
		a.signed.Add(1)
	}
	switch {
	case c.Signature == history.Bad:
		a.add("L13", c.ID, "", "%v", c.SignatureError)
	case a.o.Signatures && c.Signature != history.Good:
		a.add("L13", c.ID, "", "is not signed")
	}
	if !c.Ours {
		a.add("L15", c.ID, "", "is not a commit as countersign writes it: its author, committer or headers differ")
	}
	a.sort(c)
}

// sorted changes of one commit, by what they are part of.
type parts struct {
	transactions map[string][]history.Change // by id, paths inside the directory
	index        []history.Change            // in denied/ and proposed/
	pages        []history.Change            // and what is below their places
	schema       history.ID
	events       *history.Change // the ledger's own
	foreign      bool            // something else was found, and told
}

func (a *auditor) sort(c history.Commit) {
	p := parts{transactions: map[string][]history.Change{}}
	for _, ch := range c.Changes {
		if ledger.IsPage(ch.Path) {
			p.pages = append(p.pages, ch)
			continue
		}
		a.entry(c, ch)
		a.part(&p, c, ch)
	}
	// ledger.json comes with the first commit.
	switch first := len(c.Parents) == 0; {
	case first && p.schema.IsZero():
		a.add("L16", c.ID, ledger.SchemaFile, "is missing in the first commit")
	case !first && !p.schema.IsZero():
		a.add("L16", c.ID, ledger.SchemaFile, "was not added in the first commit")
	}
	if !p.schema.IsZero() {
		a.schema(c, p)
	}
	// A commit adds to one transaction, or to the ledger's own events.
	switch n := len(p.transactions); {
	case n > 1:
		a.add("L8", c.ID, "", "adds to %d transactions, not to one", n)
	case n == 1 && p.events != nil:
		a.add("L8", c.ID, "", "adds both to a transaction and to the ledger's own events")
	case n == 0 && p.events == nil && !p.foreign && len(c.Problems) == 0:
		a.add("L8", c.ID, "", "adds to no transaction")
	}
	if len(p.transactions) != 1 {
		for _, ch := range p.index {
			a.add(indexRule(ch.Path), c.ID, ch.Path, "was not added by a transaction")
			a.Read(c.ID, ch.Path, ch.New)
		}
		p.index = nil
	}
	if a.view != nil {
		p.pages = a.view.Commit(c, p.pages, slices.Collect(maps.Keys(p.transactions)))
	}
	if _, fit := parseMessage(c.Message); !fit && p.events == nil {
		a.add("L15", c.ID, "", "its message does not have the form of a stage's")
	}
	a.keep(c, p)
}

// keep remembers what the second pass looks at.
func (a *auditor) keep(c history.Commit, p parts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ages = append(a.ages, aged{c.ID, c.Age})
	for id, changes := range p.transactions {
		v := version{source: source{c.ID, p.schema, c.Age, c.When}, changes: changes, index: p.index, pages: p.pages}
		tx := a.transactions[id]
		if tx == nil {
			tx = &transaction{id: strings.Clone(id)} // and not its path
			a.transactions[tx.id] = tx
		}
		tx.kept = append(tx.kept, v.keep(c.Message))
	}
	for _, ch := range p.index {
		if dir := path.Dir(ch.Path); ledger.IsDenial(ch.Path) {
			a.denied[dir] = max(a.denied[dir], c.Age+1) // 0 is for none
		}
	}
	if p.events != nil {
		a.own = append(a.own, ownVersion{c.ID, c.Parents, c.Age, c.When, c.Message, *p.events})
	}
}

// entry checks a change by itself: files are added, and are regular ones.
func (a *auditor) entry(c history.Commit, ch history.Change) {
	switch {
	case ch.New == history.Entry{}:
		a.add("L8", c.ID, ch.Path, "was removed")
	case ch.Old != history.Entry{} && !mayChange(ch.Path):
		a.add("L8", c.ID, ch.Path, "was changed")
	}
	switch {
	case ch.New == history.Entry{} || ch.New.Mode == history.ModeFile:
	case ch.New.Mode == history.ModeDir:
		a.add("L10", c.ID, ch.Path, "is an empty directory")
	default:
		a.add("L10", c.ID, ch.Path, "has mode %06o, not that of a file", ch.New.Mode)
	}
}

// mayChange reports whether a path may be written again. How it is, is checked
// later.
func mayChange(name string) bool {
	_, inside, ok := ledger.Within(name)
	return ok && (inside == ledger.TransactionFile || inside == ledger.EventsFile) || name == ledger.LedgerEventsFile
}

func (a *auditor) part(p *parts, c history.Commit, ch history.Change) {
	if id, inside, ok := ledger.Within(ch.Path); ok {
		ch.Path = inside
		p.transactions[id] = append(p.transactions[id], ch)
		return
	}
	first, _, below := strings.Cut(ch.Path, "/")
	switch {
	case below && (first == "denied" || first == "proposed"):
		p.index = append(p.index, ch)
	case ch.Path == ledger.SchemaFile:
		p.schema = ch.New.ID
	case ch.Path == ledger.LedgerEventsFile:
		p.events = &ch
	default:
		p.foreign = true
		a.add("L10", c.ID, ch.Path, "does not belong in a ledger")
		a.Read(c.ID, ch.Path, ch.New)
	}
}

// Read returns the content of a file; nil if it cannot be read, which is told.
func (a *auditor) Read(commit history.ID, name string, e history.Entry) []byte {
	if !isFile(e) {
		return nil
	}
	raw, err := a.Blob(e.ID)
	if err != nil {
		a.add("OBJECT", commit, name, "%v", err)
		return nil
	}
	if raw == nil {
		raw = []byte{}
	}
	return raw
}

// isFile reports whether an entry has content: not nothing, a directory or a
// submodule.
func isFile(e history.Entry) bool {
	return !e.ID.IsZero() && e.Mode != history.ModeDir && e.Mode != 0o160000
}

func indexRule(name string) string {
	if ledger.IsDenial(name) {
		return "L11"
	}
	return "L12"
}

// words are what the message of a stage's commit says, but for its subject.
type words struct{ stage, id, patch, outcome string }

// parseMessage takes only what a stage writes.
func parseMessage(message string) (w words, fit bool) {
	lines := strings.Split(message, "\n")
	if len(lines) != 7 || lines[1] != "" || lines[6] != "" {
		return w, false
	}
	fit = true
	for i, field := range []*string{&w.id, &w.stage, &w.patch, &w.outcome} {
		key := [...]string{"Transaction", "Stage", "Patch", "Outcome"}[i]
		value, ok := strings.CutPrefix(lines[2+i], "Countersign-"+key+": ")
		fit = fit && ok
		*field = value
	}
	subject, ok := strings.CutPrefix(lines[0], w.stage+": ")
	return w, fit && ok && ledger.OneLine(subject, 120) == subject
}
