package audit

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A transaction is what the commits say about one, until it is checked.
type transaction struct {
	id   string
	kept []kept
}

// A version is one commit's part in a transaction. Paths of changes are inside
// the transaction's directory, those of index and pages from the root.
type version struct {
	source
	words                 words
	fit                   bool // the message has the form that words need
	changes, index, pages []history.Change
}

// A source is the commit of a version, and the ledger.json that it brings, if any.
type source struct {
	commit, schema history.ID
	age            int
	when           int64
}

// A kept is a version as it is kept until its transaction is checked. All of a ledger's are in memory at one time, so each
// has only two pieces, in which the garbage collector has nothing to look at.
type kept struct {
	source
	text         string // the commit's message, and paths
	message      int    // where it ends
	changes      []keptChange
	index, pages int // the changes where these begin
}

// A keptChange is a change whose path ends there in the text.
type keptChange struct {
	old, new history.Entry
	end      int
}

func (v *version) keep(message string) kept {
	all := slices.Concat(v.changes, v.index, v.pages)
	k := kept{
		source: v.source, message: len(message), changes: make([]keptChange, len(all)),
		index: len(v.changes), pages: len(v.changes) + len(v.index),
	}
	text := []byte(message)
	for i, ch := range all {
		text = append(text, ch.Path...)
		k.changes[i] = keptChange{ch.Old, ch.New, len(text)}
	}
	k.text = string(text)
	return k
}

func (k *kept) version() version {
	v, at := version{source: k.source}, k.message
	v.words, v.fit = parseMessage(k.text[:at])
	all := make([]history.Change, len(k.changes))
	for i, ch := range k.changes {
		all[i], at = history.Change{Path: k.text[at:ch.end], Old: ch.old, New: ch.new}, ch.end
	}
	v.changes, v.index, v.pages = all[:k.index], all[k.index:k.pages], all[k.pages:]
	return v
}

// sorted returns the transactions by id, each with its oldest version first.
func (a *auditor) sorted() []*transaction {
	all := make([]*transaction, 0, len(a.transactions))
	for _, tx := range a.transactions {
		sort.Slice(tx.kept, func(i, j int) bool { return tx.kept[i].age > tx.kept[j].age })
		all = append(all, tx)
	}
	slices.SortFunc(all, func(x, y *transaction) int { return strings.Compare(x.id, y.id) })
	return all
}

// life is the check of one transaction from its first version to its last.
type life struct {
	*auditor
	id       string
	versions []version
	dir      string
	files    map[string]history.Entry // as the last version so far leaves them
	content  map[history.ID][]byte
	unread   bool

	undecidable bool // an artifact is for a newer program: what pages should say, nobody can tell

	log   *ledger.Log
	ends  []int64 // where events.jsonl ends in versions
	which []int   // index of that version; -1: what was there before
	named map[string]bool
}

// transaction checks all versions of one transaction.
func (a *auditor) transaction(tx *transaction) {
	l := &life{
		auditor: a, id: tx.id, dir: ledger.Dir(tx.id), files: map[string]history.Entry{}, content: map[history.ID][]byte{}, named: map[string]bool{},
	}
	for i := range tx.kept {
		l.versions = append(l.versions, tx.kept[i].version())
	}
	tx.kept = nil
	if !l.begin() {
		l.each(nil, nil)
		return
	}
	// Versions of a newer ledger are of those after a raise; what was before it is judged as if it were all.
	known := slices.IndexFunc(l.versions, func(v version) bool { return v.age < l.unknown })
	eventsFiles, states, former := l.histories(known)
	if l.unread {
		l.each(nil, nil)
		return // there is no telling what else holds
	}
	l.log = l.check(l.files, l.last())
	if l.log == nil && known <= 0 { // where an artifact alone is newer, the history is held to the events all the same (V10)
		l.log, _ = ledger.ReadLog(l.content[l.files[ledger.EventsFile].ID])
		l.undecidable = l.log != nil
	}
	if l.log == nil {
		l.mark(eventsFiles)
	}
	if known > 0 {
		judged := l.check(former, l.versions[known-1].commit)
		if l.log == nil {
			l.log, l.files = judged, former
			l.versions = l.versions[:known]
			eventsFiles, states = eventsFiles[:known+1], states[:known]
		}
	}
	if l.log != nil {
		l.grown(eventsFiles)
		l.past(states)
		l.succession()
	}
}

func (l *life) last() history.ID { return l.versions[len(l.versions)-1].commit }

func (l *life) each(record *approval.Record, found []canon.Violation) {
	if l.o.Each != nil {
		l.o.Each(l.id, l.last(), record, found)
	}
}

func (l *life) fail(rule string, v *version, name, format string, args ...any) {
	l.add(rule, v.commit, path.Join(l.dir, name), format, args...)
}

// begin takes what was there before the audit begins.
func (l *life) begin() bool {
	former, err := l.Former(l.dir)
	if err != nil {
		l.add("OBJECT", l.versions[0].commit, l.dir, "what was there before cannot be read: %v", err)
		return false
	}
	for name, e := range former {
		if ledger.IsPage(name) {
			continue
		}
		name = strings.TrimPrefix(strings.TrimPrefix(name, l.dir), "/")
		l.files[name] = e
		l.named[name] = true
		l.load(&l.versions[0], name, e)
	}
	return true
}

func (l *life) load(v *version, name string, e history.Entry) {
	if _, known := l.content[e.ID]; known || !isFile(e) {
		return
	}
	raw, err := l.Blob(e.ID)
	if err != nil {
		l.fail("OBJECT", v, name, "%v", err)
		l.unread = true
		return
	}
	l.content[e.ID] = raw
}

// histories reads every file that a version brought. It returns the versions of
// events.jsonl, none where a version did not bring one, transaction.json as
// each version leaves it, and the files as the first so many versions leave them.
func (l *life) histories(first int) (_ []history.Entry, states []history.ID, former map[string]history.Entry) {
	eventsFiles := make([]history.Entry, len(l.versions)+1)
	eventsFiles[0] = l.files[ledger.EventsFile]
	for i := range l.versions {
		if i == first {
			former = maps.Clone(l.files)
		}
		v := &l.versions[i]
		for _, ch := range v.changes {
			l.load(v, ch.Path, ch.New)
			if ch.New == (history.Entry{}) {
				delete(l.files, ch.Path)
			} else {
				l.files[ch.Path] = ch.New
			}
			if ch.Path == ledger.EventsFile {
				eventsFiles[i+1] = ch.New
			}
		}
		for _, ch := range v.index {
			if _, known := l.content[ch.New.ID]; known {
				continue
			}
			if raw := l.Read(v.commit, ch.Path, ch.New); raw != nil {
				l.content[ch.New.ID] = raw
			}
		}
		states = append(states, l.files[ledger.TransactionFile].ID)
	}
	return eventsFiles, states, former
}

// check checks the directory as a commit leaves it. The log is nil where it cannot be told.
func (l *life) check(files map[string]history.Entry, at history.ID) *ledger.Log {
	dir := directory{files, l.content}
	log, found := ledger.ReadOwn(dir, l.id)
	record := l.policies.Record(dir, log)
	if log != nil {
		found = append(found, record.Redo()...)
	}
	if at == l.last() {
		l.each(record, found)
	}
	for _, f := range found {
		l.add(f.RuleID, at, path.Join(l.dir, f.Path), "%s", f.Message)
		l.mu.Lock()
		l.atLeast(f.Needs)
		l.mu.Unlock()
	}
	if log == nil {
		return nil
	}
	if open, ok := log.OpenApply(); ok && !log.Transaction().Closed {
		l.found.note(Note{at.String(), l.dir, fmt.Sprintf("%s is in progress, or was cut off", open.ApplyID)})
	}
	return log
}

// grown checks that events.jsonl only grew at its end, by whole lines, and notes
// which versions are beginnings of the last one.
func (l *life) grown(eventsFiles []history.Entry) {
	final := l.log.Bytes()
	for i, e := range eventsFiles {
		raw := l.content[e.ID]
		switch end := int64(len(raw)); {
		case e == history.Entry{}:
			if i > 0 {
				l.fail("L8", &l.versions[i-1], ledger.EventsFile, "did not grow")
			}
		case !bytes.HasPrefix(final, raw) || end == 0 || raw[end-1] != '\n':
			v := &l.versions[max(i-1, 0)]
			l.fail("L8", v, ledger.EventsFile, "is not the beginning of the later version")
		case len(l.ends) > 0 && end <= l.ends[len(l.ends)-1]:
			l.fail("L8", &l.versions[max(i-1, 0)], ledger.EventsFile, "did not grow")
		default:
			l.ends, l.which = append(l.ends, end), append(l.which, i-1)
		}
	}
}

// past checks each version against the events that it brought.
func (l *life) past(states []history.ID) {
	before := 0
	at := func(i int, tx ledger.Transaction) error {
		from := int64(0)
		if i > 0 {
			from = l.ends[i-1]
		}
		after := before + bytes.Count(l.log.Bytes()[from:l.ends[i]], []byte{'\n'})
		l.proposers(l.which[i], before, after)
		l.decided(&l.versions[max(l.which[i], 0)], l.log.Payloads()[before:after])
		if n := l.which[i]; n >= 0 {
			v := &l.versions[n]
			if n < len(l.versions)-1 { // the last one was checked
				if !tx.IsWrittenAs(l.content[states[n]]) {
					l.fail("L9", v, ledger.TransactionFile, "is not what the events of this commit fold to")
				}
			}
			l.stage(v, before, after, tx)
			l.growth(v, l.log.Events()[before:after])
		}
		before = after
		return nil
	}
	if err := l.log.Versions(l.ends, at); err != nil {
		l.add("L9", l.last(), path.Join(l.dir, ledger.EventsFile), "%v", err)
	}
}

// A heir is a transaction that says whose place it took.
type heir struct {
	commit history.ID // the first one that is audited
	age    int
	tx     ledger.Transaction
}

// An ended is a transaction whose place was taken: when, and what it says of
// that.
type ended struct {
	age    int
	tx     ledger.Transaction
	reason string
}

// succession keeps what a transaction says of whose place it took, and of who
// took its own.
func (l *life) succession() {
	tx := l.log.Transaction()
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := tx.Pointers.Proposal; p != nil && len(p.Supersedes) > 0 {
		l.heirs = append(l.heirs, heir{l.versions[0].commit, l.versions[0].age, tx})
	}
	if tx.Status == ledger.Superseded && tx.Closed {
		l.superseded[tx.TransactionID] = ended{l.versions[len(l.versions)-1].age, tx, ledger.Last[*ledger.StatusChange](l.log).Reason}
	}
}

// successions is L19: who says whose place it took is entered after that one
// ended, which says the same, and both are proposals of one proposer, of some of
// the same files, for one pull request.
func (a *auditor) successions() {
	for _, h := range a.heirs {
		for _, id := range h.tx.Pointers.Proposal.Supersedes {
			if why := a.usurped(h, id); why != "" {
				name := path.Join(ledger.Dir(h.tx.TransactionID), ledger.EventsFile)
				a.add("L19", h.commit, name, "supersedes %s, which %s", ledger.OneLine(id, 60), why)
			}
		}
	}
}

// usurped says what is wrong with a succession, "" for nothing.
func (a *auditor) usurped(h heir, id string) string {
	if ledger.CheckID(id) != nil {
		return "is no transaction's id"
	}
	old, here := a.superseded[id]
	if !here {
		var ok bool
		if old, ok = a.endedBefore(id, h); !ok {
			return "did not end as superseded"
		}
	}
	p, q := h.tx.Pointers.Proposal, old.tx.Pointers.Proposal
	switch {
	case q == nil || h.tx.GateOnly() || old.tx.GateOnly() || p.PullRequest == 0 || p.PullRequest != q.PullRequest || p.Repository == nil || q.Repository == nil || p.Repository.ID != q.Repository.ID:
		return "is no proposal for the same pull request"
	case h.tx.Proposer.Kind != old.tx.Proposer.Kind || h.tx.Proposer.ID != old.tx.Proposer.ID:
		return "has another proposer"
	case !slices.ContainsFunc(p.TargetFiles, func(file string) bool { return slices.Contains(q.TargetFiles, file) }):
		return "changes none of its files"
	case old.age <= h.age:
		return "ended only after it"
	case !strings.Contains(old.reason, h.tx.TransactionID):
		return "says that another one took its place"
	}
	return ""
}

// endedBefore finds one that ended before what is audited begins. What it says
// was looked at then.
func (a *auditor) endedBefore(id string, h heir) (ended, bool) {
	name := path.Join(ledger.Dir(id), ledger.TransactionFile)
	former, err := a.Former(name)
	if err != nil || len(former) != 1 {
		return ended{}, false
	}
	var tx ledger.Transaction
	for _, e := range former {
		if err := canon.Unmarshal(a.Read(h.commit, name, e), &tx); err != nil {
			return ended{}, false
		}
	}
	return ended{h.age + 1, tx, h.tx.TransactionID}, tx.TransactionID == id && tx.Status == ledger.Superseded && tx.Closed
}
