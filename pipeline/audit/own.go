package audit

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
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

// ownEvents checks the ledger's own events.jsonl: each commit of it is the one
// that ledger.AcceptEntry makes.
func (a *auditor) ownEvents() {
	if len(a.own) == 0 {
		return
	}
	slices.SortFunc(a.own, func(x, y ownVersion) int { return y.age - x.age })
	var before []byte
	former, err := a.Former(ledger.LedgerEventsFile)
	if err != nil {
		a.add("OBJECT", a.own[0].commit, ledger.LedgerEventsFile, "what was there before cannot be read: %v", err)
		return
	}
	for _, e := range former {
		before = a.read(a.own[0].commit, ledger.LedgerEventsFile, e)
	}
	for _, v := range a.own {
		raw := a.read(v.commit, ledger.LedgerEventsFile, v.change.New)
		if raw == nil {
			return // removed, or not readable, which was told
		}
		if err := a.acceptance(v, before, raw); err != nil {
			a.add("L16", v.commit, ledger.LedgerEventsFile, "%v", err)
		}
		before = raw
	}
}

// acceptance checks one commit that records a ledger/accept_tip, and notes it.
func (a *auditor) acceptance(v ownVersion, before, raw []byte) error {
	if !bytes.HasPrefix(raw, before) || len(raw) == len(before) {
		return fmt.Errorf("did not grow at its end")
	}
	events, err := ledger.ReadLedgerEvents(raw)
	if err != nil {
		return err
	}
	p := events[len(events)-1]
	a.found.note(Note{v.commit.String(), ledger.LedgerEventsFile, fmt.Sprintf("%s accepted %.12s in place of %.12s: %s", p.Author.Login, p.AcceptedTip, p.RememberedTip, p.Reason)})
	var e ledger.Event
	line := raw[bytes.LastIndexByte(raw[:len(raw)-1], '\n')+1:]
	if err := canon.Unmarshal(line, &e); err != nil {
		return err
	}
	at, err := time.Parse(ledger.TimeFormat, e.Timestamp)
	if err != nil {
		return err
	}
	want, err := ledger.AcceptEntry(oneFile{ledger.LedgerEventsFile, before}, at, p)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(want.Files[ledger.LedgerEventsFile], raw):
		return fmt.Errorf("grew by more than one event")
	case len(v.parents) != 1 || v.parents[0].String() != p.AcceptedTip:
		return fmt.Errorf("accepts %s, which is not the commit before it", p.AcceptedTip)
	case want.Message != v.message || at.Unix() != v.when:
		return fmt.Errorf("the message or the time of its commit is not the event's")
	}
	return nil
}

// oneFile is a directory with one file, or none where it has no content.
type oneFile struct {
	name string
	data []byte
}

// ReadFile returns the file.
func (f oneFile) ReadFile(name string) ([]byte, error) {
	if name != f.name || len(f.data) == 0 {
		return nil, fs.ErrNotExist
	}
	return f.data, nil
}

// Open is never called.
func (f oneFile) Open(string) (fs.File, error) { return nil, fs.ErrNotExist }
