package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// An ownVersion is a commit that adds to the ledger's own events.
type ownVersion struct {
	commit  history.ID
	parents []history.ID
	age     int
	when    int64
	message string
	change  history.Change
}

// A raised is a version that the ledger has from a commit of an age on.
type raised struct {
	age     int
	version string
}

// aged is a commit with its age.
type aged struct {
	id  history.ID
	age int
}

// schema looks at the ledger.json that a commit brings: which version the ledger has.
func (a *auditor) schema(c history.Commit, p parts) {
	raw := a.Read(c.ID, ledger.SchemaFile, history.Entry{Mode: history.ModeFile, ID: p.schema})
	if len(p.transactions) == 0 {
		a.add("L16", c.ID, ledger.SchemaFile, "was not added by a review")
	}
	if len(c.Parents) > 0 || raw == nil {
		return // which was told
	}
	_, version, err := ledger.SchemaOf(raw)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.first = version
	a.raise(c.ID, c.Age, ledger.SchemaFile, version, err)
}

// raise notes that the ledger has a version from a commit on. The error says that this program does not know it.
func (a *auditor) raise(commit history.ID, age int, path, version string, err error) {
	var newer *canon.NewerError
	if errors.As(err, &newer) {
		version, a.unknown = newer.Needs, max(a.unknown, age+1)
		a.add(canon.Newer, commit, path, "%v", newer)
		a.atLeast(newer.Needs)
	}
	a.raises = append(a.raises, raised{age, version})
}

// atLeast keeps the least version that can judge all of it.
func (a *auditor) atLeast(needs string) {
	if order, ok := canon.CompareVersions(needs, cmp.Or(a.least, canon.FirstVersion)); ok && order > 0 {
		a.least = needs
	}
}

// versionAt is the version of the ledger at the commit of an age.
func (a *auditor) versionAt(age int) string {
	version := canon.FirstVersion
	for _, r := range a.raises { // the oldest first
		if r.age >= age {
			version = r.version
		}
	}
	return version
}

// before reads a file at the root as it was before what is audited begins; nil is none.
func (a *auditor) before(name string) (raw []byte) {
	former, err := a.Former(name)
	if err != nil {
		a.found.add(history.Finding{RuleID: "OBJECT", Path: name, Message: "what was there before cannot be read: " + err.Error()})
	}
	for _, e := range former {
		raw = a.Read(history.ID{}, name, e)
	}
	return raw
}

// ownEvents checks the ledger's own events.jsonl, each commit of which is the one that ledger.OwnCommit makes, and
// finds out which version the ledger has from which commit on.
func (a *auditor) ownEvents() {
	sort.Slice(a.own, func(i, j int) bool { return a.own[i].age > a.own[j].age })
	events := a.before(ledger.LedgerEventsFile)
	if raw := a.before(ledger.SchemaFile); raw != nil { // what is wrong with either was told when it came
		_, version, err := ledger.SchemaOf(raw)
		a.first = version
		if err == nil {
			var own []ledger.Own
			own, err = ledger.ReadLedgerEvents(events, version)
			for _, p := range own {
				if r, ok := p.(*ledger.Raise); ok {
					version = r.Version
				}
			}
		}
		a.raise(history.ID{}, math.MaxInt-1, ledger.LedgerEventsFile, version, err)
	}
	for _, v := range a.own {
		raw := a.Read(v.commit, ledger.LedgerEventsFile, v.change.New)
		if raw == nil {
			return // removed, or not readable, which was told
		}
		p, err := a.ownCommit(v, events, raw)
		raise, is := p.(*ledger.Raise)
		switch {
		case is || errors.As(err, new(*canon.NewerError)):
			version := ""
			if is {
				version = raise.Version
			}
			a.raise(v.commit, v.age, ledger.LedgerEventsFile, version, err)
		case err != nil:
			a.add("L16", v.commit, ledger.LedgerEventsFile, "%v", err)
		}
		events = raw
	}
}

// ownCommit checks one commit that adds to the ledger's own events, and notes what it says.
func (a *auditor) ownCommit(v ownVersion, before, raw []byte) (ledger.Own, error) {
	if !bytes.HasPrefix(raw, before) || len(raw) == len(before) {
		return nil, fmt.Errorf("did not grow at its end")
	}
	events, err := ledger.ReadLedgerEvents(raw, a.first)
	if err != nil {
		return nil, err
	}
	line := raw[bytes.LastIndexByte(raw[:len(raw)-1], '\n')+1:]
	e, err := ledger.ReadEvent(line[:len(line)-1])
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(ledger.TimeFormat, e.Timestamp)
	if err != nil {
		return nil, err
	}
	p := events[len(events)-1]
	message, grown, err := ledger.OwnCommit(a.first, before, at, p)
	if err != nil {
		return nil, err
	}
	said := p.Said()
	if tip, ok := p.(*ledger.AcceptTip); ok {
		if len(v.parents) != 1 || v.parents[0].String() != tip.AcceptedTip {
			return nil, fmt.Errorf("accepts %s, which is not the commit before it", tip.AcceptedTip)
		}
	}
	a.found.note(Note{v.commit.String(), ledger.LedgerEventsFile, said})
	switch {
	case !bytes.Equal(grown, raw):
		return nil, fmt.Errorf("grew by more than one event")
	case message != v.message || at.Unix() != v.when:
		return nil, fmt.Errorf("the message or the time of its commit is not the event's")
	}
	return p, nil
}

// mark is about a log that may be one that only a newer program can judge: it finds the commit that brought that, and holds
// the log to its growth, which no version changes.
func (l *life) mark(eventsFiles []history.Entry) {
	var before []byte
	for i, e := range eventsFiles {
		raw := l.content[e.ID]
		if v := &l.versions[max(i-1, 0)]; i > 0 && (len(raw) <= len(before) || !bytes.HasPrefix(raw, before) || raw[len(raw)-1] != '\n') {
			l.fail("L8", v, ledger.EventsFile, "is not the version before, grown at its end")
		}
		before = raw
	}
	for i, e := range eventsFiles {
		var newer *canon.NewerError
		if _, err := ledger.ReadLog(l.content[e.ID]); !errors.As(err, &newer) {
			continue
		}
		l.needs(&l.versions[max(i-1, 0)], newer.Needs)
		return
	}
}

// needs: an event that needs a version is in a ledger that has it: whoever records what is newer raises the ledger first.
func (l *life) needs(v *version, needs string) {
	have := l.versionAt(v.age)
	if order, ok := canon.CompareVersions(needs, have); needs != "" && (!ok || order > 0) {
		l.fail("L16", v, ledger.EventsFile, "an event needs %s, and the ledger is of %s", needs, have)
	}
}

// growth checks what events of a version need, and notes what they have that this program does not know.
func (l *life) growth(v *version, events []ledger.Event) {
	var unknown []string
	for _, e := range events {
		l.needs(v, e.Needs)
		for _, name := range canon.ExtraNames(e.Extra) {
			if name = ledger.OneLine(name, 40); len(unknown) < 10 && !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
		}
	}
	if len(unknown) > 0 {
		l.found.note(Note{v.commit.String(), path.Join(l.dir, ledger.EventsFile), "has what is not known to this version: " + strings.Join(unknown, ", ")})
	}
}

// sure are the rules that hold in every version of one MAJOR.
var sure = []string{"OBJECT", "HISTORY", "L1", "L2", "L4", "L7", "L8", "L13", "L14", "L16", "WITNESS", canon.Newer}

// undecided takes what was found in commits of a version that this program does not know from the findings to the
// notes, but for rules that hold in every version.
func (a *auditor) undecided() {
	if a.unknown == 0 {
		return
	}
	of := map[string]bool{}
	for _, c := range a.ages {
		of[c.id.String()] = c.age < a.unknown
	}
	a.found.all = slices.DeleteFunc(a.found.all, func(f history.Finding) bool {
		if !of[f.Commit] || slices.Contains(sure, f.RuleID) {
			return false
		}
		a.found.note(Note{f.Commit, f.Path, f.RuleID + " of this version does not hold: " + f.Message})
		return true
	})
	for commit, n := range a.found.unsure { // also those that are not kept
		if of[commit] {
			a.found.count -= n
		}
	}
}

// Undecidable is the *canon.NewerError of an audit that found nothing but what only a newer program can judge; nil for
// any other.
func (r Result) Undecidable() error {
	if r.Newer == "" || r.faults > 0 {
		return nil
	}
	return &canon.NewerError{What: "the ledger", Needs: r.Newer}
}
