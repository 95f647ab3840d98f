package audit_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// TestT53Stages: what no stage does is told of a commit that says it, in a whole history and in the part of one.
func TestT53Stages(t *testing.T) {
	for name, c := range map[string]struct {
		then    func(s *writing.Stage, id string)
		message [2]string // what to write in place of what
		want    string
	}{
		"two stages, as one": {func(s *writing.Stage, id string) {
			s.Event(&ledger.ApplyStart{TransactionID: id, ApplyID: "apply_1"})
			s.Event(&ledger.ApplyComplete{TransactionID: id, ApplyID: "apply_1", Outcome: "FAILED"})
		}, [2]string{"gate", "apply and apply begins"}, "L15 its trailer names the stage apply and apply begins, but its events are those of apply and apply begins"},
		"denied by nobody": {func(s *writing.Stage, _ string) { s.Status(ledger.Denied, "x") }, [2]string{"FAILED", "denied"}, "L11 says that it is denied, and no denial of its patch is in denied/"},
	} {
		id, err := writing.NewID(at(0), bytes.NewReader(make([]byte, 10)))
		fatal(t, err)
		review := proposed(at(0), id, took{file: "a", by: "1", kind: "patch"}, "")
		entries := []writing.Entry{entry(t, review, "review", true)}
		s := writing.NewStage(review.Log, at(1), secret.Default())
		c.then(s, id)
		e, err := s.Entry(writing.Title{Stage: "gate", Outcome: "FAILED", Subject: "x"}, false)
		fatal(t, err)
		e.Message = strings.ReplaceAll(e.Message, c.message[0], c.message[1])
		entries = append(entries, *e)
		tree := fstest.MapFS{}
		for _, e := range entries {
			for name, data := range e.Files {
				tree[name] = &fstest.MapFile{Data: data}
			}
		}
		_, found, err := approval.CheckRecord(tree, id)
		told := slices.ContainsFunc(found, func(v canon.Violation) bool { return v.RuleID == "L11" })
		if err != nil || told != strings.HasPrefix(c.want, "L11") {
			t.Errorf("%s: the record alone: %v, %v", name, found, err)
		}
		for from := range 2 {
			r, err := audit.Run(newWritten(slices.Clone(entries), from), audit.Options{})
			fatal(t, err)
			var told []string
			for _, f := range r.Findings {
				told = append(told, f.RuleID+" "+f.Message)
			}
			if !slices.Contains(told, c.want) {
				t.Errorf("%s, from commit %d: %q", name, from, told)
			}
		}
	}
}
