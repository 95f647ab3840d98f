package ledger_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

const (
	txID    = "tx_01KE5W5200041061050R3GG28A"
	otherID = "tx_01KE5W5200041061050R3GG28B"
)

var (
	moment  = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	actor   = ledger.Actor{Kind: "user", ID: "a@example.org", Login: "Ada"}
	diff    = []byte("diff --git a/a b/a\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..c1b0730e0133447badcfd47fd144e254807b06e1\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n")
	patchID = canon.Hex(diff)
)

func meta() *ledger.Meta { return &ledger.Meta{TransactionID: txID, Proposer: actor, Summary: "greet"} }

func status(from, to ledger.Status) *ledger.StatusChange {
	return &ledger.StatusChange{TransactionID: txID, From: from, To: to}
}

func change() ledger.Item {
	after := canon.Sum([]byte("x"))
	return ledger.Item{ID: "item_1", Type: "fileChange", PatchID: patchID, Changes: []ledger.ItemChange{{Path: "a", Kind: "add"}}, Metadata: &ledger.Proposal{
		PatchID: patchID, PatchFingerprint: "patchset:" + patchID, TargetFiles: []string{"a"},
		BaseSHA256: map[string]*string{"a": nil}, AfterSHA256: map[string]*string{"a": &after},
	}}
}

func item(it ledger.Item) *ledger.TurnItem {
	return &ledger.TurnItem{TransactionID: txID, TurnID: "turn_1", Item: it}
}

func request(id string) *ledger.ApprovalRequest {
	return &ledger.ApprovalRequest{
		TransactionID: txID, TurnID: "turn_1", ApprovalRequestID: id, ItemID: "item_1",
		Kind: "fileChange", Fingerprint: "patchset:" + patchID,
	}
}

func decision(id string, d ledger.Decision) *ledger.ApprovalDecision {
	return &ledger.ApprovalDecision{
		TransactionID: txID, ApprovalRequestID: id, Decision: d, Fingerprint: "patchset:" + patchID,
		Source: ledger.Source{Kind: "local", Author: actor},
	}
}

// start is an apply for which so many people had to approve the patch.
func start(required int, more ...ledger.Approved) *ledger.ApplyStart {
	return &ledger.ApplyStart{
		TransactionID: txID, ApplyID: "apply_1", PatchIDs: []string{patchID}, Files: []string{"a"},
		Approvals: append([]ledger.Approved{{Kind: "fileChange", Fingerprint: "patchset:" + patchID, Required: required}}, more...),
	}
}

func applied() ledger.ApplyResult {
	hash := canon.Sum([]byte("x"))
	return effect.NewResult(".", ledger.Proposal{PatchID: patchID}.Source(), false, []ledger.Operation{
		{Op: "create", Path: "a", Status: ledger.StatusSuccess, AfterHash: &hash, BytesWritten: 1},
	})
}

// record is a whole life, from tx/meta to tx/close.
func record(s *writing.Stage) {
	s.Event(meta())
	s.Status(ledger.InProgress, "")
	s.Event(&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1", Mode: "review"})
	s.Patch(patchID, diff)
	s.Artifact("proposal", map[string]any{"n": 1})
	s.Event(item(change()))
	s.Status(ledger.Proposed, "")
	s.Event(request("req_1"))
	s.Status(ledger.Awaiting, "")
	s.Event(decision("req_1", ledger.Approve))
	s.Status(ledger.Proposed, "")
	s.Event(start(1))
	artifact := s.Artifact("apply", map[string]any{"apply_result": applied()})
	s.Event(&ledger.ApplyComplete{TransactionID: txID, ApplyID: "apply_1", Success: true, Outcome: "SUCCESS", ApplyArtifact: artifact})
	s.Result(applied())
	s.Status(ledger.Applied, "")
	s.Event(&ledger.ValidateStart{TransactionID: txID, ValidateID: "validate_1"})
	s.Event(&ledger.ValidateComplete{TransactionID: txID, ValidateID: "validate_1", Success: true})
	s.Status(ledger.Completed, "")
	s.Close()
}

// failed is a validate that found something; the artifact has only a name.
func failed() []ledger.Payload {
	return []ledger.Payload{
		&ledger.ValidateStart{TransactionID: txID, ValidateID: "validate_0"},
		&ledger.ValidateComplete{TransactionID: txID, ValidateID: "validate_0", Findings: ledger.ArtifactFile(canon.Hex([]byte("{}\n")))},
	}
}

// A directory is a transaction directory that a test damages.
type directory struct {
	t     *testing.T
	files fstest.MapFS
}

func newDirectory(t *testing.T) directory {
	t.Helper()
	s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	record(s)
	entry, err := s.Entry(writing.Title{Stage: "test"}, false)
	fatal(t, err)
	d := directory{t, fstest.MapFS{}}
	for name, data := range entry.Files {
		d.put(strings.TrimPrefix(name, ledger.Dir(txID)+"/"), string(data))
	}
	return d
}

func (d directory) put(name, data string) { d.files[name] = &fstest.MapFile{Data: []byte(data)} }

func (d directory) text(name string) string { return string(d.files[name].Data) }

// replace changes every occurrence in a file, of which there must be one.
func (d directory) replace(name, old, new string) {
	d.t.Helper()
	if !strings.Contains(d.text(name), old) {
		d.t.Fatalf("%s has no %s", name, old)
	}
	d.put(name, strings.ReplaceAll(d.text(name), old, new))
}

// events changes the events, and numbers, chains and folds them again.
func (d directory) events(edit func([]ledger.Event) []ledger.Event) {
	d.t.Helper()
	d.numbered(edit)
	log, err := ledger.ReadLog(d.files[ledger.EventsFile].Data)
	fatal(d.t, err)
	d.put(ledger.TransactionFile, line(d.t, log.Transaction()))
}

// numbered changes the events, and numbers and chains them again; transaction.json stays.
func (d directory) numbered(edit func([]ledger.Event) []ledger.Event) {
	d.t.Helper()
	d.links(func(events []ledger.Event) []ledger.Event {
		events = edit(events)
		for i := range events {
			events[i].Seq = i + 1
		}
		return events
	}, true)
}

// links changes the events and, if asked to, chains them again; their numbers
// stay, and so does transaction.json.
func (d directory) links(edit func([]ledger.Event) []ledger.Event, chain bool) {
	d.t.Helper()
	var events []ledger.Event
	for raw := range bytes.Lines(d.files[ledger.EventsFile].Data) {
		var e ledger.Event
		fatal(d.t, canon.Unmarshal(raw, &e))
		events = append(events, e)
	}
	var out strings.Builder
	var prev *string
	for _, e := range edit(events) {
		if chain {
			e.Prev = prev
		}
		text := line(d.t, e)
		out.WriteString(text)
		sum := canon.Sum([]byte(text))
		prev = &sum
	}
	d.put(ledger.EventsFile, out.String())
}

// foreign drops the chain, as another program would write the directory.
func (d directory) foreign(edit func([]map[string]any) []map[string]any) {
	d.t.Helper()
	var events []map[string]any
	for raw := range bytes.Lines(d.files[ledger.EventsFile].Data) {
		var e map[string]any
		fatal(d.t, json.Unmarshal(raw, &e))
		delete(e, "seq")
		delete(e, "prev")
		events = append(events, e)
	}
	if edit != nil {
		events = edit(events)
	}
	var out strings.Builder
	for _, e := range events {
		out.WriteString(line(d.t, e))
	}
	d.put(ledger.EventsFile, strings.ReplaceAll(out.String(), txID, "T"))
	d.put(ledger.TransactionFile, strings.ReplaceAll(d.text(ledger.TransactionFile), txID, "T"))
}

func line(t *testing.T, v any) string {
	t.Helper()
	b, err := canon.Line(v)
	fatal(t, err)
	return string(b)
}

// event is one to be inserted by a test; number and chain come later.
func event(t *testing.T, p ledger.Payload) ledger.Event {
	t.Helper()
	raw, err := canon.Marshal(p)
	fatal(t, err)
	return ledger.Event{Timestamp: ledger.FormatTime(moment), Type: p.Type(), Payload: raw}
}

// rules are the ids reported, each once, in order.
func rules(found []canon.Violation) string {
	ids := map[string]bool{}
	for _, v := range found {
		ids[v.RuleID] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(ids)), " ")
}
