package ledger_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// proposed is a log that begins with a proposal, and goes on.
func proposed(t *testing.T, more ...func(*writing.Stage)) *ledger.Log {
	s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	s.Event(meta())
	s.Status(ledger.InProgress, "")
	s.Event(&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1", Mode: "review"})
	s.Event(item(change()))
	s.Status(ledger.Proposed, "")
	for _, add := range more {
		add(s)
	}
	if _, err := s.Entry(writing.Title{}, false); err != nil {
		t.Fatal(err)
	}
	return s.Log
}

// TestT10JoinAgain: where two logs are joined, no further proposal is left out whose proposer has approved after it, or may.
func TestT10JoinAgain(t *testing.T) {
	again := func(n int) func(*writing.Stage) {
		return func(s *writing.Stage) {
			for i := range n {
				s.Artifact(ledger.KindAgain, map[string]any{"n": i})
			}
		}
	}
	proposeAndApprove := func(s *writing.Stage) {
		s.Artifact(ledger.KindAgain, map[string]any{"by": "ada"})
		s.Event(request("req_1"))
		s.Status(ledger.Awaiting, "")
		s.Event(decision("req_1", ledger.Approve))
	}
	proposeAlone := func(s *writing.Stage) { s.Artifact(ledger.KindAgain, map[string]any{"by": "ada"}) }
	for name, c := range map[string]struct {
		theirs, ours func(*writing.Stage)
		want         string
		recorded     int
	}{
		"room":                        {again(3), proposeAndApprove, "", 4},
		"full":                        {again(ledger.MaxAgain), proposeAlone, "further proposals are recorded already", 0},
		"being applied":               {func(s *writing.Stage) { s.Event(start(0)) }, proposeAlone, "", 0},
		"being applied, and approved": {func(s *writing.Stage) { s.Event(start(0)) }, proposeAndApprove, "not recorded here", 0},
	} {
		t.Run(name, func(t *testing.T) {
			common, theirs := len(proposed(t).Events()), proposed(t, c.theirs)
			ours := proposed(t, c.ours)
			j := writing.NewJoin(theirs, common)
			_, err := j.Add(ours, common, len(ours.Events()))
			if told := fmt.Sprint(err); (err != nil) != (c.want != "") || !strings.Contains(told, c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if n := len(j.Log().Artifacts(ledger.KindAgain)); err == nil && n != c.recorded {
				t.Errorf("%d are recorded, want %d", n, c.recorded)
			}
		})
	}
}

// TestJoinClosed: an approval of what the other side has closed since contradicts that.
func TestJoinClosed(t *testing.T) {
	common := len(proposed(t).Events())
	closed := proposed(t, func(s *writing.Stage) {
		s.Status(ledger.Superseded, "")
		s.Event(&ledger.Close{TransactionID: txID, Status: ledger.Superseded})
	})
	ours := proposed(t, func(s *writing.Stage) {
		s.Event(request("req_1"))
		s.Event(decision("req_1", ledger.Approve))
	})
	if _, err := writing.NewJoin(closed, common).Add(ours, common, len(ours.Events())); err == nil {
		t.Error("an approval was added to what is closed")
	}
}

// TestRepeats: only a clean apply of what the other side has applied too repeats it. A denial, a further proposer or
// anything that failed is never left out so (T03, T10).
func TestRepeats(t *testing.T) {
	decide := func(d ledger.Decision) func(*writing.Stage) {
		return func(s *writing.Stage) { s.Event(request("req_1")); s.Event(decision("req_1", d)) }
	}
	again := func(s *writing.Stage) { s.Artifact(ledger.KindAgain, map[string]any{"by": "ada"}) }
	begun := func(s *writing.Stage) { s.Event(start(0)) }
	ended := func(success bool) func(*writing.Stage) {
		return func(s *writing.Stage) {
			s.Event(&ledger.ApplyComplete{TransactionID: txID, ApplyID: "apply_1", Success: success})
		}
	}
	applied := func(s *writing.Stage) { s.Status(ledger.Applied, "") }
	twice := func(s *writing.Stage) {
		second := start(0)
		second.ApplyID = "apply_2"
		s.Event(second)
		s.Event(&ledger.ApplyComplete{TransactionID: txID, ApplyID: "apply_2", Success: true})
	}
	validated := func(success bool) func(*writing.Stage) {
		return func(s *writing.Stage) {
			s.Event(&ledger.ValidateStart{TransactionID: txID, ValidateID: "validate_1"})
			done := &ledger.ValidateComplete{TransactionID: txID, ValidateID: "validate_1", Success: success}
			if !success {
				done.Findings = s.Artifact(ledger.KindFindings, map[string]any{"n": 1})
			}
			s.Event(done)
		}
	}
	yes := decide(ledger.Approve)
	theirs := proposed(t, func(s *writing.Stage) { s.Artifact("note", "theirs") }, yes, begun, ended(true), applied)
	before := func(more ...func(*writing.Stage)) *ledger.Log { // applied in one clone, and what each did since
		log, err := ledger.ReadLog(theirs.Bytes())
		fatal(t, err)
		s := writing.NewStage(log, moment, storetest.Plain{})
		for _, add := range more {
			add(s)
		}
		if _, err := s.Entry(writing.Title{}, false); err != nil {
			t.Fatal(err)
		}
		return s.Log
	}
	completed := func(s *writing.Stage) { s.Status(ledger.Completed, ""); s.Close() }
	for name, c := range map[string]struct {
		ours, theirs *ledger.Log
		want         bool
	}{
		"applied":              {proposed(t, yes, begun, ended(true), applied), theirs, true},
		"checked":              {proposed(t, yes, begun, ended(true), applied, validated(true)), theirs, true},
		"a check failed":       {proposed(t, yes, begun, ended(true), applied, validated(false)), theirs, false},
		"a try before failed":  {proposed(t, yes, begun, ended(false), twice, applied), theirs, false},
		"a further proposer":   {proposed(t, again, yes, begun, ended(true), applied), theirs, false},
		"being applied":        {proposed(t, yes, begun), theirs, false},
		"denied":               {proposed(t, decide(ledger.Deny)), theirs, false},
		"they only approved":   {proposed(t, yes, begun, ended(true), applied), proposed(t, yes), false},
		"they are applying it": {proposed(t, yes, begun, ended(true), applied), proposed(t, yes, begun), false},
		"they have it denied":  {proposed(t, yes, begun, ended(true), applied), proposed(t, decide(ledger.Deny)), false},
		"applied before":       {before(validated(true), completed), before(validated(false)), false},
		"both only checked it": {before(validated(true), completed), before(validated(true), func(s *writing.Stage) { s.Artifact("note", 1) }, completed), false},
	} {
		if got := writing.Repeats(c.ours, c.theirs); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestJoinValidates: a validate that failed in one clone keeps no other from ending, or from failing, as well; of what
// has ended nothing is added.
func TestJoinValidates(t *testing.T) {
	fails := func(s *writing.Stage) {
		start := writing.NextValidate(s.Log)
		file := s.Artifact(ledger.KindFindings, map[string]any{"n": 1})
		s.Event(start)
		s.Event(&ledger.ValidateComplete{TransactionID: txID, ValidateID: start.ValidateID, Findings: file})
	}
	passes := func(s *writing.Stage) {
		start := writing.NextValidate(s.Log)
		s.Event(start)
		s.Event(&ledger.ValidateComplete{TransactionID: txID, ValidateID: start.ValidateID, Success: true})
		s.Status(ledger.Completed, "")
		s.Close()
	}
	for name, c := range map[string]struct {
		theirs, ours func(*writing.Stage)
		want         ledger.Status
		validates    int
		fails        bool
	}{
		"both fail":                 {fails, fails, ledger.Applied, 2, false},
		"theirs fails, ours passes": {fails, passes, ledger.Completed, 2, false},
		"theirs passes, ours fails": {passes, fails, ledger.Completed, 1, false},
		"both pass":                 {passes, passes, "", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			begin := func(more func(*writing.Stage)) (*ledger.Log, int) {
				s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
				record(s)
				log, err := ledger.ReadLog(s.Log.Bytes()[:bytes.Index(s.Log.Bytes(), []byte(`{"payload":{"transaction_id":"`+txID+`","validate_id"`))])
				fatal(t, err)
				s = writing.NewStage(log, moment, storetest.Plain{})
				common := len(log.Events())
				more(s)
				if _, err := s.Entry(writing.Title{}, false); err != nil {
					t.Fatal(err)
				}
				return s.Log, common
			}
			theirs, common := begin(c.theirs)
			ours, _ := begin(c.ours)
			j := writing.NewJoin(theirs, common)
			if _, err := j.Add(ours, common, len(ours.Events())); (err != nil) != c.fails {
				t.Fatal(err)
			} else if c.fails {
				return
			}
			again, err := ledger.ReadLog(j.Log().Bytes())
			if err != nil || again.Transaction().Status != c.want || len(ledger.Of[*ledger.ValidateComplete](again)) != c.validates {
				t.Errorf("%v: %s", err, j.Log().Bytes())
			}
		})
	}
}

// TestT98JoinAdvice: what one side applied without waiting for what a tool said to the other contradicts that; everything else,
// a denial above all, goes together with it.
func TestT98JoinAdvice(t *testing.T) {
	advise := func(s *writing.Stage) { s.Artifact(ledger.KindAdvice, map[string]any{"tool": "a"}) }
	approve := func(s *writing.Stage) {
		s.Event(request("req_1"))
		s.Status(ledger.Awaiting, "")
		s.Event(decision("req_1", ledger.Approve))
	}
	begin := func(s *writing.Stage) { s.Event(start(0)) }
	deny := func(s *writing.Stage) {
		s.Event(request("req_1"))
		s.Status(ledger.Awaiting, "")
		s.Event(decision("req_1", ledger.Deny))
		s.Status(ledger.Denied, "")
	}
	for name, c := range map[string]struct {
		theirs, ours func(*writing.Stage)
		want         string
		recorded     int
	}{
		"applied here":   {advise, begin, "did not wait for", 0},
		"applied there":  {begin, advise, "", 1},
		"approved here":  {advise, approve, "", 1},
		"approved there": {approve, advise, "", 1},
		"denied here":    {advise, deny, "", 1},
		"both":           {advise, advise, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			common, theirs, ours := len(proposed(t).Events()), proposed(t, c.theirs), proposed(t, c.ours)
			j := writing.NewJoin(theirs, common)
			_, err := j.Add(ours, common, len(ours.Events()))
			if told := fmt.Sprint(err); (err != nil) != (c.want != "") || !strings.Contains(told, c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if n := len(j.Log().Artifacts(ledger.KindAdvice)); err == nil && n != c.recorded {
				t.Errorf("%d are recorded, want %d", n, c.recorded)
			}
		})
	}
}
