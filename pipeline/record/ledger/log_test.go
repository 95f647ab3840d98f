package ledger_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

func wholeLog(t testing.TB) []byte {
	t.Helper()
	s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	record(s)
	if _, err := s.Entry(writing.Title{}, false); err != nil {
		t.Fatal(err)
	}
	return s.Log.Bytes()
}

func TestLogRoundTrip(t *testing.T) {
	raw := wholeLog(t)
	log, err := ledger.ReadLog(raw)
	fatal(t, err)
	if string(log.Bytes()) != string(raw) {
		t.Error("reading changed the bytes")
	}
	again := appendAll(t, log)
	if string(again.Bytes()) != string(raw) || !reflect.DeepEqual(again.Transaction(), log.Transaction()) {
		t.Error("appending the same payloads made another log")
	}
	if n := strings.Count(string(raw), "\n"); len(log.Events()) != n || len(log.Payloads()) != n {
		t.Errorf("%d events, %d payloads, %d lines", len(log.Events()), len(log.Payloads()), n)
	}
}

// TestFirst: the first events of a log are the log that was read when there were no others.
func TestFirst(t *testing.T) {
	raw := wholeLog(t)
	log, err := ledger.ReadLog(raw)
	fatal(t, err)
	end := 0
	for n := range log.Events() {
		end += bytes.IndexByte(raw[end:], '\n') + 1
		want, err := ledger.ReadLog(raw[:end])
		if err != nil || !reflect.DeepEqual(log.First(n+1), want) {
			t.Errorf("the first %d events: %v", n+1, err)
		}
	}
	if end != len(raw) || end == 0 {
		t.Errorf("%d bytes of %d", end, len(raw))
	}
}

// TestIsWrittenAs: it is exactly what canon.Line writes.
func TestIsWrittenAs(t *testing.T) {
	log, err := ledger.ReadLog(wholeLog(t))
	fatal(t, err)
	tx := log.Transaction()
	line, err := canon.Line(tx)
	fatal(t, err)
	other, none := tx, tx
	other.Notes += "x"
	none.Labels, none.WorkspaceRoots = nil, nil
	foreign := none
	foreign.Notes = "\xff" // is written as U+FFFD
	for _, tx := range []ledger.Transaction{tx, other, none, foreign, {}} {
		want, err := canon.Line(tx)
		fatal(t, err)
		for _, raw := range [][]byte{line, want, line[:len(line)-1], append(slices.Clone(line), '\n'), append([]byte(" "), line...), []byte("{}\n"), []byte("\n"), nil, bytes.Replace(line, []byte("[]"), []byte("null"), 1)} {
			if got := tx.IsWrittenAs(raw); got != bytes.Equal(raw, want) {
				t.Errorf("%+v is written as %q: %v", tx, raw, got)
			}
		}
	}
}

// appendAll appends what a log holds to an empty one.
func appendAll(t *testing.T, log *ledger.Log) *ledger.Log {
	t.Helper()
	again := &ledger.Log{}
	for i, e := range log.Events() {
		at, err := time.Parse(ledger.TimeFormat, e.Timestamp)
		fatal(t, err)
		fatal(t, again.Append(at, log.Payloads()[i]))
	}
	return again
}

func TestFold(t *testing.T) {
	log, err := ledger.ReadLog(wholeLog(t))
	fatal(t, err)
	tx := log.Transaction()
	if tx.Status != ledger.Completed || !tx.Closed || tx.PatchID() != patchID || tx.CurrentTurnID != "turn_1" ||
		tx.Pointers.LatestDiff != ledger.PatchFile(patchID) || tx.Pointers.Proposal.ProposalItemID != "item_1" {
		t.Errorf("%+v", tx)
	}
	if len(writing.OpenRequests(log)) != 0 {
		t.Errorf("open requests %v", writing.OpenRequests(log))
	}
	if _, open := log.OpenApply(); open {
		t.Error("the apply is open")
	}
	if it, ok := writing.FileChange(log); !ok || it.Item.ID != "item_1" {
		t.Errorf("file change %v %v", it, ok)
	}
	if log.Meta().Summary != "greet" {
		t.Errorf("meta %v", log.Meta())
	}
}

// TestT55ReadLog refuses every line that Append would not have written.
func TestT55ReadLog(t *testing.T) {
	whole := string(wholeLog(t))
	lines := strings.SplitAfter(whole, "\n")
	swap := func(old, new string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("the log has no %s", old)
		}
		return strings.Replace(whole, old, new, 1)
	}
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", "no events"},
		{"blank line first", "\n" + whole, "event 1"},
		{"blank line last", whole + "\n", "event 19"},
		{"no LF at the end", strings.TrimSuffix(whole, "\n"), "without its LF"},
		{"CRLF", strings.ReplaceAll(whole, "\n", "\r\n"), "event 1"},
		{"order of keys", swap(`"seq":1,"timestamp":"2026-01-05T00:00:00.000Z"`, `"timestamp":"2026-01-05T00:00:00.000Z","seq":1`), "not canonical"},
		{"white space", swap(`"seq":1`, `"seq": 1`), "not canonical"},
		{"key twice", swap(`"seq":1`, `"seq":1,"seq":1`), "event 1"},
		{"number as 1.0", swap(`"seq":1,`, `"seq":1.0,`), "not canonical"},
		{"unknown key", swap(`"seq":1,`, `"seq":1,"t":2,`), "event 1"},
		{"missing key", swap(`"seq":1,`, ``), "event 1"},
		{"key in another case", strings.Replace(whole, `{"payload":`, `{"Payload":`, 1), "event 1"},
		{"seq", swap(`"seq":2,`, `"seq":3,`), "event 2: seq is 3"},
		{"seq from zero", swap(`"seq":1,`, `"seq":0,`), "event 1: seq is 0"},
		{"first has a prev", swap(`"prev":null`, `"prev":"sha256:`+strings.Repeat("0", 64)+`"`), "event 1: prev"},
		{"prev", swap(`"prev":"sha256:`, `"prev":"sha256:0`), "event 2: prev"},
		{"line left out", strings.Join(append(lines[:1:1], lines[2:]...), ""), "event 2"},
		{"not UTF-8", swap("greet", "gre\xfft"), "event 1"},
		{"timestamp in another form", swap(`"2026-01-05T00:00:00.000Z"`, `"2026-01-05T00:00:00Z"`), "event 1: timestamp"},
		{"timestamp with a comma", swap(`"2026-01-05T00:00:00.000Z"`, `"2026-01-05T00:00:00,000Z"`), "event 1: timestamp"},
		{"timestamp that is none", swap(`"2026-01-05T00:00:00.000Z"`, `"2026-02-30T00:00:00.000Z"`), "event 1: timestamp"},
		{"unknown type", swap(`"type":"tx/meta"`, `"type":"tx/mega"`), "unknown event type"},
		{"payload is null", `{"payload":null,"prev":null,"seq":1,"timestamp":"2026-01-05T00:00:00.000Z","type":"tx/meta"}` + "\n", "event 1"},
		{"payload is an array", `{"payload":[],"prev":null,"seq":1,"timestamp":"2026-01-05T00:00:00.000Z","type":"tx/meta"}` + "\n", "event 1"},
		{"unknown payload key", swap(`"summary":"greet"`, `"summary":"greet","t":1`), "tx/meta payload"},
		{"missing payload key", swap(`,"summary":"greet"`, ``), "tx/meta payload"},
		{"payload key in another case", swap(`{"approval_policy":`, `{"Approval_policy":`), "tx/meta payload"},
		{"payload key missing within", swap(`"login":"Ada"`, `"login":null`), "tx/meta payload"},
		{"id that is none", strings.ReplaceAll(whole, txID, "../../x"), "not a transaction id"},
		{"no id", strings.ReplaceAll(whole, txID, ""), "not a transaction id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.in == whole {
				t.Fatal("the row changes nothing")
			}
			if _, err := ledger.ReadLog([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestT54Append refuses what may not happen now, and leaves the log as it was.
func TestT54Append(t *testing.T) {
	begun := []ledger.Payload{meta(), status(ledger.Created, ledger.InProgress)}
	closed := append(begun[:2:2], status(ledger.InProgress, ledger.Interrupted), &ledger.Close{TransactionID: txID, Status: ledger.Interrupted})
	for _, c := range []struct {
		name, want string
		given      []ledger.Payload
		p          ledger.Payload
	}{
		{"tx/meta is not first", "must be the first", nil, status(ledger.Created, ledger.InProgress)},
		{"tx/meta twice", "must be the first", begun, meta()},
		{"tx/meta without an id", "not a transaction id", nil, &ledger.Meta{}},
		{"status from another", "the status is in_progress", begun, status(ledger.Proposed, ledger.Applied)},
		{"status not in the table", "may not go from in_progress to completed", begun, status(ledger.InProgress, ledger.Completed)},
		{"status to itself", "may not go", begun, status(ledger.InProgress, ledger.InProgress)},
		{"unknown status", "may not go", begun, status(ledger.InProgress, "done")},
		{"close in another status", "the status is in_progress", begun, &ledger.Close{TransactionID: txID, Status: ledger.Completed}},
		{"status after close", "after tx/close", closed, status(ledger.Interrupted, ledger.Proposed)},
		{"item after close", "after tx/close", closed, item(change())},
		{"close after close", "after tx/close", closed, &ledger.Close{TransactionID: txID, Status: ledger.InProgress}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &ledger.Log{}
			for _, p := range c.given {
				fatal(t, log.Append(moment, p))
			}
			raw, tx := string(log.Bytes()), line(t, log.Transaction())
			if err := log.Append(moment.Add(time.Hour), c.p); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if string(log.Bytes()) != raw || line(t, log.Transaction()) != tx {
				t.Error("a refused event changed the log")
			}
		})
	}
}

// TestT54NothingHappened: a status, and an end, says only what the events before it say: of what nobody applied none says
// that it is applied, nor of what nobody validated that it is as approved. Each row is refused at its last event alone.
func TestT54NothingHappened(t *testing.T) {
	const proposed, applied = ledger.Proposed, ledger.Applied
	proposes := func(kind string) []ledger.Payload {
		it := change()
		it.Metadata.Kind = kind
		return []ledger.Payload{
			meta(), status(ledger.Created, ledger.InProgress), &ledger.TurnStart{TransactionID: txID, TurnID: "turn_1"}, item(it),
			status(ledger.InProgress, proposed),
		}
	}
	ends := func(success bool) *ledger.ApplyComplete {
		return &ledger.ApplyComplete{TransactionID: txID, ApplyID: "apply_1", Success: success}
	}
	closes := func(s ledger.Status) *ledger.Close { return &ledger.Close{TransactionID: txID, Status: s} }
	begins := &ledger.ValidateStart{TransactionID: txID, ValidateID: "validate_1"}
	validated := &ledger.ValidateComplete{TransactionID: txID, ValidateID: "validate_1", Success: true}
	type events = []ledger.Payload
	for name, c := range map[string]struct {
		kind string
		then events
	}{
		"applied, and no apply":                           {"", events{status(proposed, applied)}},
		"applied, and the apply goes on":                  {"", events{start(1), status(proposed, applied)}},
		"applied, and the apply failed":                   {"", events{start(1), ends(false), status(proposed, applied)}},
		"applied, and the last apply failed":              {"", events{start(1), ends(true), start(1), ends(false), status(proposed, applied)}},
		"applied, a pull request's own diff":              {ledger.KindPullRequest, events{status(proposed, applied)}},
		"applying a pull request's own diff":              {ledger.KindPullRequest, events{start(1)}},
		"applied, and failed again":                       {"", events{start(1), ends(true), status(proposed, applied), status(applied, ledger.Failed)}},
		"completed, and not validated":                    {"", events{start(1), ends(true), status(proposed, applied), status(applied, ledger.Completed)}},
		"completed, and a validate goes on":               {"", events{start(1), ends(true), status(proposed, applied), begins, validated, begins, status(applied, ledger.Completed)}},
		"validated before it is applied":                  {"", events{start(1), ends(true), begins, validated}},
		"merged, and not validated":                       {ledger.KindPullRequest, events{status(proposed, ledger.Completed)}},
		"merged, and validated before it was asked again": {ledger.KindPullRequest, events{begins, validated, status(proposed, ledger.Awaiting), status(ledger.Awaiting, proposed), status(proposed, ledger.Completed)}},
		"closed while proposed":                           {"", events{closes(proposed)}},
		"closed after a failure":                          {"", events{status(proposed, ledger.Failed), closes(ledger.Failed)}},
		"closed while applied":                            {"", events{start(1), ends(true), status(proposed, applied), closes(applied)}},
		"closed during an apply":                          {"", events{start(1), status(proposed, ledger.Interrupted), closes(ledger.Interrupted)}},
	} {
		log := &ledger.Log{}
		all := append(proposes(c.kind), c.then...)
		for i, p := range all {
			if err := log.Append(moment, p); (err != nil) != (i == len(all)-1) {
				t.Errorf("%s: event %d: %v", name, i+1, err)
			}
		}
	}
}

// TestT56Clock: order comes from the chain; a clock that runs backwards is
// recorded as it was read.
func TestT56Clock(t *testing.T) {
	log := &ledger.Log{}
	for i, p := range []ledger.Payload{meta(), status(ledger.Created, ledger.InProgress)} {
		fatal(t, log.Append(moment.Add(-time.Duration(i)*time.Hour), p))
	}
	again, err := ledger.ReadLog(log.Bytes())
	if err != nil || again.Transaction().UpdatedAt != "2026-01-04T23:00:00.000Z" {
		t.Errorf("%v %v", again, err)
	}
}

// TestAppendDecodes: writer and reader see the same, whatever text came in.
func TestAppendDecodes(t *testing.T) {
	log := &ledger.Log{}
	m := meta()
	m.Summary = "bad \xff <&> \u2028"
	fatal(t, log.Append(moment.In(time.FixedZone("", 3600)), m))
	again, err := ledger.ReadLog(log.Bytes())
	if err != nil || again.Meta().Summary != "bad \ufffd <&> \u2028" || log.Meta().Summary != again.Meta().Summary {
		t.Errorf("%v %v", err, log.Meta())
	}
	if got := log.Events()[0].Timestamp; got != "2026-01-05T00:00:00.000Z" {
		t.Errorf("timestamp %s", got)
	}
	if sum := canon.Sum(log.Bytes()); log.Append(moment, status(ledger.Created, ledger.InProgress)) != nil || *log.Events()[1].Prev != sum {
		t.Error("prev is not the hash of the line before with its LF")
	}
}

// FuzzReadLog: what is read can be written, to the same bytes.
func FuzzReadLog(f *testing.F) {
	whole := wholeLog(f)
	f.Add(whole)
	f.Add(whole[:bytes.IndexByte(whole, '\n')+1])
	f.Fuzz(func(t *testing.T, raw []byte) {
		log, err := ledger.ReadLog(raw)
		if err != nil {
			return
		}
		if again := appendAll(t, log); string(again.Bytes()) != string(raw) {
			t.Errorf("read %q, wrote %q", raw, again.Bytes())
		}
	})
}

// T15 An event that names another transaction is not taken, written or read.
func TestT15EventOfAnotherTransaction(t *testing.T) {
	s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	s.Event(meta())
	err := s.Log.Append(moment, &ledger.StatusChange{TransactionID: otherID, From: ledger.Created, To: ledger.InProgress})
	if err == nil || !strings.Contains(err.Error(), otherID) {
		t.Errorf("Append: %v", err)
	}
}

// T06 A decision that answers no open request on its own fingerprint is never
// written, nor read: it cannot become an approval.
func TestT06DecisionWithoutRequest(t *testing.T) {
	for name, d := range map[string]*ledger.ApprovalDecision{
		"unknown request": decision("nope", ledger.Approve),
		"another patch": func() *ledger.ApprovalDecision {
			d := decision("req_1", ledger.Approve)
			d.Fingerprint = "patchset:x"
			return d
		}(),
	} {
		s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
		s.Event(meta())
		s.Event(request("req_1"))
		if err := s.Log.Append(moment, d); err == nil {
			t.Errorf("%s: taken", name)
		}
		if err := s.Log.Append(moment, decision("req_1", ledger.Approve)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Log.Append(moment, decision("req_1", ledger.Approve)); err == nil {
			t.Errorf("%s: taken twice", name)
		}
	}
}

// TestAuthorIsHeld: no record has an author of what is no diff, or one that a commit
// cannot have; reading it is refused as writing is.
func TestAuthorIsHeld(t *testing.T) {
	good := ledger.Author{Name: "Grace", Email: "grace@example.org", Date: "2026-01-05T10:00:00+05:30"}
	for _, c := range []struct {
		name string
		with func(*ledger.Proposal)
		ok   bool
	}{
		{"an author", func(p *ledger.Proposal) {}, true},
		{"of what is no diff", func(p *ledger.Proposal) { p.Kind = "worktree" }, false},
		{"of two lines", func(p *ledger.Proposal) { p.Author.Name = "A\ncommitter B" }, false},
		{"with brackets", func(p *ledger.Proposal) { p.Author.Email = "a@b> 0 +0000" }, false},
		{"at no time", func(p *ledger.Proposal) { p.Author.Date = "2026-01-05" }, false},
	} {
		author := good
		p := &ledger.Proposal{Kind: ledger.KindPatch, PatchID: strings.Repeat("ab", 32), Author: &author}
		c.with(p)
		if (ledger.Item{ID: "item_1", Type: ledger.FileChange, Metadata: p}).Follows() != c.ok {
			t.Errorf("%s: admitted is %v", c.name, !c.ok)
		}
	}
	now := time.Date(2026, 1, 4, 0, 0, 0, 0, time.UTC)
	same := func(s string) string { return s }
	if writing.AuthorIf(&good, now, same) != nil || writing.AuthorIf(&good, now.Add(24*time.Hour), same) == nil || writing.AuthorIf(&good, now.Add(24*time.Hour), strings.ToUpper) != nil || writing.AuthorIf(nil, now, same) != nil {
		t.Error("an author from tomorrow, or with a secret, is kept")
	}
}

// TestStates: each status has a state, and nothing else has.
func TestStates(t *testing.T) {
	for _, s := range ledger.Statuses {
		if at := plain.StateOf(s, "", false, false); at == plain.Unknown || !slices.Contains(plain.States, at) {
			t.Errorf("%s is %q", s, at)
		}
	}
	if at := plain.StateOf(ledger.Status("done"), "", false, false); at != plain.Unknown {
		t.Errorf("%q", at)
	}
}
