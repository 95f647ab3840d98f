package pipeline

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// CheckForeign verifies the directory of a transaction that is in no ledger: one that was exported, or another program's, which is
// held to the invariants I1–I12 of docs/formats.md alone. Every broken one is told. It reports whether it was judged as another program's. A directory of this program's making (its id
// has our form, or its events carry seq and prev) is held to the rules of a ledger; dropping the chain from a record does not make
// it a foreign one.
//
// CheckForeign never fails on what the directory holds: whatever cannot be read is a
// violation.
func CheckForeign(dir fs.FS) (found canon.Report, foreign bool) {
	c := &checker{dir: dir}
	c.read()
	if ledger.CheckID(c.txID) == nil || c.chained() {
		log, own := ledger.ReadExported(dir)
		if log != nil {
			own = append(own, new(approval.Policies).Record(dir, log).Redo()...)
			own = append(own, observation.Check(dir, log)...)
		}
		return canon.NewReport(own), false
	}
	return canon.NewReport(Invariants(dir)), true
}

// Invariants holds any directory to I1–I12.
func Invariants(dir fs.FS) []canon.Violation {
	c := &checker{dir: dir}
	c.read()
	c.invariants()
	return c.Sorted()
}

type checker struct {
	dir fs.FS
	canon.Finder
	txID   string
	events []event
}

// An event is one whose fields may be missing or of the wrong type.
type event struct {
	line    int
	typ     string
	fields  map[string]any
	payload map[string]any
}

// atLine is the path of a finding about one event: the file and its line.
func atLine(n int) string { return fmt.Sprintf("%s:%d", ledger.EventsFile, n) }

func (c *checker) read() {
	if raw, err := c.file(ledger.TransactionFile); err != nil {
		c.Add("PARSE", ledger.TransactionFile, "cannot be read")
	} else if doc, err := canon.Parse(raw); err != nil || object(map[string]any{"": doc}, "") == nil {
		c.Add("PARSE", ledger.TransactionFile, "is not a JSON object")
	} else {
		c.txID = text(doc.(map[string]any), "transaction_id")
	}
	raw, err := c.file(ledger.EventsFile)
	if err != nil {
		c.Add("EMPTY", ledger.EventsFile, "cannot be read")
		return
	}
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		doc, err := canon.Parse(line)
		fields, ok := doc.(map[string]any)
		if err != nil || !ok {
			c.Add("PARSE", atLine(n), "is not a JSON object")
			continue
		}
		c.events = append(c.events, event{n, text(fields, "type"), fields, object(fields, "payload")})
	}
	if len(c.events) == 0 {
		c.Add("EMPTY", ledger.EventsFile, "no events")
	}
}

// chained reports whether an event has a field of the chain.
func (c *checker) chained() bool {
	return slices.ContainsFunc(c.events, func(e event) bool {
		_, seq := e.fields["seq"]
		_, prev := e.fields["prev"]
		return seq || prev
	})
}

// file reads a regular file. Links are not followed, pipes not opened.
func (c *checker) file(name string) ([]byte, error) {
	if !c.exists(name) {
		return nil, fs.ErrNotExist
	}
	return fs.ReadFile(c.dir, name)
}

// exists reports whether a path inside the directory is a regular file.
func (c *checker) exists(path string) bool {
	if !fs.ValidPath(path) || strings.Contains(path, `\`) {
		return false
	}
	info, err := fs.Lstat(c.dir, path)
	return err == nil && info.Mode().IsRegular()
}

// text returns a string field, "" where it is missing or something else.
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func object(m map[string]any, key string) map[string]any {
	o, _ := m[key].(map[string]any)
	return o
}

// show makes a foreign value safe to print.
func show(s string) string {
	if s == "" {
		return "missing"
	}
	if len(s) > 80 {
		s = s[:80]
	}
	return fmt.Sprintf("%+q", s)
}

// walk is what the invariants remember from event to event.
type walk struct {
	*checker
	status    string
	turns     map[string]bool
	requests  map[string]bool
	decided   map[string]bool
	applyID   string
	applyLine int
	applying  bool
	closed    bool
}

// invariants checks I1–I12 in one walk over the events.
func (c *checker) invariants() {
	w := walk{
		checker: c, status: string(ledger.Created), turns: map[string]bool{},
		requests: map[string]bool{}, decided: map[string]bool{},
	}
	for i, e := range c.events {
		switch id := text(e.payload, "transaction_id"); {
		case i > 0:
		case e.typ != string(ledger.TypeMeta):
			c.Add("I1", atLine(e.line), "first event is %s, not tx/meta", show(e.typ))
		case id != c.txID:
			c.Add("I2", atLine(e.line), "tx/meta names %s, transaction.json %s", show(id), show(c.txID))
		}
		if w.closed {
			c.Add("I9", atLine(e.line), "event after tx/close")
		}
		w.event(e)
	}
	if w.applying {
		c.Add("I8", atLine(w.applyLine), "apply/start %s without its apply/complete", show(w.applyID))
	}
}

func (w *walk) event(e event) {
	at := atLine(e.line)
	switch ledger.Type(e.typ) {
	case ledger.TypeStatus:
		if from := text(e.payload, "from"); from != w.status {
			w.Add("I3", at, "status goes from %s, the last status is %s", show(from), show(w.status))
		}
		w.status = text(e.payload, "to")
	case ledger.TypeTurnStart:
		id := text(e.payload, "turn_id")
		if id == "" {
			w.Add("I4", at, "turn/start without turn_id")
		} else if w.turns[id] {
			w.Add("I4", at, "turn %s starts twice", show(id))
		}
		w.turns[id] = true
	case ledger.TypeTurnItem:
		w.item(at, e.payload)
	case ledger.TypeArtifact:
		if path := text(e.payload, "path"); !w.exists(path) {
			w.Add("I10", at, "artifact %s does not exist", show(path))
		}
	case ledger.TypeRequest:
		id := text(e.payload, "approval_request_id")
		if id == "" {
			w.Add("I6", at, "approval/request without approval_request_id")
		} else if w.requests[id] {
			w.Add("I6", at, "approval request %s is made twice", show(id))
		}
		w.requests[id] = true
	case ledger.TypeDecision:
		id := text(e.payload, "approval_request_id")
		if id == "" || !w.requests[id] {
			w.Add("I6", at, "decision on unknown request %s", show(id))
		} else if w.decided[id] {
			w.Add("I6", at, "request %s is decided twice", show(id))
		}
		w.decided[id] = true
	case ledger.TypeApplyStart:
		id := text(e.payload, "apply_id")
		if id == "" {
			w.Add("I7", at, "apply/start without apply_id")
		}
		if w.applying {
			w.Add("I7", at, "apply/start inside apply %s", show(w.applyID))
		}
		w.applying, w.applyID, w.applyLine = true, id, e.line
	case ledger.TypeApplyComplete:
		if id := text(e.payload, "apply_id"); !w.applying || id != w.applyID {
			w.Add("I8", at, "apply/complete %s without its apply/start", show(id))
		}
		w.applying = false
	case ledger.TypeClose:
		w.closed = true
	}
}

// item: it is of a turn, and the patch or, of a command that ended, the evidence
// that it names is there.
func (w *walk) item(at string, payload map[string]any) {
	if turn := text(payload, "turn_id"); turn == "" || !w.turns[turn] {
		w.Add("I5", at, "item of turn %s, which has not started", show(turn))
	}
	item := object(payload, "item")
	if text(item, "id") == "" || text(item, "type") == "" {
		w.Add("I5", at, "item without id or type")
	}
	metadata := object(item, "metadata")
	switch text(item, "type") {
	case ledger.FileChange:
		id := text(metadata, "patch_id")
		if _, ok := metadata["patch_id"]; ok && !w.exists(ledger.PatchFile(id)) {
			w.Add("I11", at, "patch %s is not in patches/", show(id))
		}
	case ledger.CommandExecution:
		ended := !slices.Contains([]string{"", "in_progress", "inProgress", "pending"}, text(item, "status"))
		id := text(object(metadata, "artifact"), "artifact_id")
		if _, ok := metadata["artifact"]; ok && ended && !w.exists(ledger.ArtifactFile(id)) {
			w.Add("I12", at, "artifact %s of a finished command does not exist", show(id))
		}
	}
}
