package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// checked is what is found of a directory that is not in a ledger.
func checked(t *testing.T, dir fstest.MapFS) []canon.Violation {
	t.Helper()
	bothWays(t, dir)
	if found, isForeign := pipeline.CheckForeign(dir); isForeign {
		return found.Violations
	}
	return checkOwn(dir, "")
}

// bothWays holds ReadOwn to the walk over the events that asks nothing of ReadLog: what breaks an invariant there is never sound.
func bothWays(t *testing.T, dir fstest.MapFS) (found []canon.Violation, proven bool) {
	t.Helper()
	loose := slices.DeleteFunc(pipeline.Invariants(dir), func(v canon.Violation) bool { return v.RuleID == "I8" && strings.HasPrefix(v.Message, "apply/start") })
	for _, id := range []string{"", txID, otherID} {
		log, own := ledger.ReadOwn(dir, id)
		if id == "" {
			log, own = ledger.ReadExported(dir)
		}
		if proven = log != nil; len(own) == 0 && (!proven || len(loose) > 0) {
			t.Errorf("ReadOwn finds nothing, and the walk %v", loose)
		}
		if id == "" {
			found = own
		}
	}
	return found, proven
}

// TestProvenMutants damages good directories in ways that ReadLog sees, and,
// numbering, chaining and folding again, in ways that it may not.
func TestProvenMutants(t *testing.T) {
	const each = 150
	proven, rules := 0, map[string]bool{}
	for name, good := range map[string]directory{"record": newDirectory(t), "reviewed": lived(t, false), "finished": lived(t, true)} {
		r := rand.New(rand.NewPCG(1, uint64(len(name))))
		for i := range each {
			d := directory{t, maps.Clone(good.files)}
			what := ""
			for range 1 + r.IntN(2) {
				what += mutations[r.IntN(len(mutations))](r, d) + "; "
			}
			found, ok := bothWays(t, d.files)
			if ok {
				proven++
				for _, v := range found {
					rules[v.RuleID] = true
				}
			}
			if t.Failed() {
				t.Fatalf("%s, mutant %d: %s", name, i, what)
			}
		}
	}
	got := strings.Join(slices.Sorted(maps.Keys(rules)), " ")
	if proven < each/2 || got != "I10 I11 I2 L10 L3 L4 L5 L6 L7 L9 PARSE" {
		t.Errorf("of %d mutants ReadLog took %d, and found in them was %s", 3*each, proven, got)
	}
}

var mutations = []func(*rand.Rand, directory) string{
	func(r *rand.Rand, d directory) string { // a byte of any file
		name := d.any(r)
		data := []byte(d.text(name))
		if len(data) == 0 {
			return "nothing"
		}
		at := r.IntN(len(data))
		data[at] ^= 1 << r.IntN(8)
		d.put(name, string(data))
		return fmt.Sprintf("bit of %s:%d", name, at)
	},
	func(r *rand.Rand, d directory) string { // a file gone
		name := d.any(r)
		delete(d.files, name)
		return "no " + name
	},
	func(r *rand.Rand, d directory) string { // a file in another's place
		name, other := d.any(r), d.any(r)
		d.put(name, d.text(other))
		return name + " is " + other
	},
	func(r *rand.Rand, d directory) string { // another transaction.json
		if d.files[ledger.TransactionFile] == nil {
			return "nothing"
		}
		d.put(ledger.TransactionFile, strings.Replace(d.text(ledger.TransactionFile), `"status"`, `"stat"`, r.IntN(2)))
		d.put(ledger.TransactionFile, strings.ReplaceAll(d.text(ledger.TransactionFile), txID, otherID))
		return "transaction.json"
	},
	func(r *rand.Rand, d directory) string { // lines, as they are
		lines := d.lines()
		what := shuffle(r, &lines)
		d.put(ledger.EventsFile, strings.Join(lines, ""))
		return what
	},
	rechained, rechained, rechained, reworded, reworded, reworded, reworded,
}

func (d directory) any(r *rand.Rand) string {
	names := slices.Sorted(maps.Keys(d.files))
	return names[r.IntN(len(names))]
}

// lines are those of events.jsonl, which may be gone.
func (d directory) lines() []string {
	f := d.files[ledger.EventsFile]
	if f == nil {
		return nil
	}
	return slices.DeleteFunc(strings.SplitAfter(string(f.Data), "\n"), func(s string) bool { return s == "" })
}

// shuffle drops, repeats, moves or exchanges lines.
func shuffle(r *rand.Rand, lines *[]string) string {
	l := *lines
	if len(l) == 0 {
		return "nothing"
	}
	i, j := r.IntN(len(l)), r.IntN(len(l))
	switch r.IntN(4) {
	case 0:
		*lines = slices.Delete(l, i, i+1)
		return fmt.Sprintf("line %d dropped", i+1)
	case 1:
		*lines = slices.Insert(l, j, l[i])
		return fmt.Sprintf("line %d again at %d", i+1, j+1)
	case 2:
		*lines = l[:i]
		return fmt.Sprintf("cut at line %d", i+1)
	}
	l[i], l[j] = l[j], l[i]
	return fmt.Sprintf("lines %d and %d exchanged", i+1, j+1)
}

// rechained changes which events there are, so that the chain still holds.
func rechained(r *rand.Rand, d directory) string {
	lines := d.lines()
	what := shuffle(r, &lines)
	d.rechain(lines)
	return what + ", chained"
}

// reworded changes a word in one event, so that the chain still holds.
func reworded(r *rand.Rand, d directory) string {
	lines := d.lines()
	if len(lines) == 0 {
		return "nothing"
	}
	words := []string{
		`"turn_1"`, `"turn_2"`, `"req_1"`, `"req_2"`, `"apply_1"`, `"apply_2"`, `""`, `"approve"`, `"deny"`, `"fileChange"`, `"commandExecution"`,
		`"item_1"`, `"proposed"`, `"awaiting_approval"`, `"in_progress"`, `"applied"`, `"failed"`, `"completed"`, `"interrupted"`, `"SUCCESS"`, `"PARTIAL"`,
		`"` + patchID + `"`, `"` + canon.Hex(nil) + `"`, `"patchset:` + patchID + `"`, `"patchset:x"`, `"` + txID + `"`, `"` + otherID + `"`, `"a@example.org"`,
		`"artifacts/x.json"`, `true`, `false`, `null`, `"application/json"`, `"text/plain"`, `[]`, `{}`, `1`, `2`,
		`"tx/close"`, `"tx/status"`, `"apply/start"`, `"turn/start"`, `"item":`, `"metadata":`, `"patch_id":`, `"type":`, `"turn_id":`,
	}
	i := r.IntN(len(lines))
	line, old := lines[i], ""
	for range 100 {
		if old = words[r.IntN(len(words))]; strings.Contains(line, old) {
			break
		}
	}
	lines[i] = strings.Replace(line, old, words[r.IntN(len(words))], 1)
	d.rechain(lines)
	return fmt.Sprintf("line %d: %s", i+1, lines[i])
}

// rechain numbers and chains lines, and folds them if that can be done.
func (d directory) rechain(lines []string) {
	var out strings.Builder
	prev := "null"
	for i, line := range lines {
		head, rest, ok := strings.Cut(line, `,"prev":`)
		_, tail, ok2 := strings.Cut(rest, `,"timestamp":`)
		if ok && ok2 {
			line = fmt.Sprintf(`%s,"prev":%s,"seq":%d,"timestamp":%s`, head, prev, i+1, tail)
		}
		out.WriteString(line)
		prev = `"` + canon.Sum([]byte(line)) + `"`
	}
	d.put(ledger.EventsFile, out.String())
	if log, err := ledger.ReadLog([]byte(out.String())); err == nil {
		d.put(ledger.TransactionFile, line(d.t, log.Transaction()))
	}
}

// admits is what the index of a log stands for, found by a walk over all events
// before.
func admits(log *ledger.Log, p ledger.Payload) bool {
	switch p := p.(type) {
	case *ledger.TurnStart:
		return p.TurnID != "" && !hasTurn(log, p.TurnID)
	case *ledger.TurnItem:
		return hasTurn(log, p.TurnID) && p.Item.Follows()
	case *ledger.ApprovalRequest:
		return p.ApprovalRequestID != "" && log.Request(p.ApprovalRequestID) == nil
	case *ledger.ApprovalDecision:
		answered := slices.ContainsFunc(ledger.Of[*ledger.ApprovalDecision](log), func(d *ledger.ApprovalDecision) bool {
			return d.ApprovalRequestID == p.ApprovalRequestID
		})
		q := log.Request(p.ApprovalRequestID)
		return q != nil && q.Fingerprint == p.Fingerprint && !answered
	case *ledger.ApplyStart:
		return p.ApplyID != "" && len(ledger.Of[*ledger.ApplyStart](log)) == len(ledger.Of[*ledger.ApplyComplete](log))
	case *ledger.ApplyComplete:
		open := len(ledger.Of[*ledger.ApplyStart](log)) > len(ledger.Of[*ledger.ApplyComplete](log))
		return open && ledger.Last[*ledger.ApplyStart](log).ApplyID == p.ApplyID
	}
	return true
}

func hasTurn(log *ledger.Log, id string) bool {
	return slices.ContainsFunc(ledger.Of[*ledger.TurnStart](log), func(s *ledger.TurnStart) bool { return s.TurnID == id })
}

// TestAdmitsIndex: a Log takes what the walk takes, of any event at any time.
func TestAdmitsIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	yes, no := 0, 0
	for range 200 {
		log := &ledger.Log{}
		fatal(t, log.Append(moment, meta()))
		for range 20 {
			turn, req, apply := pick("", "t1", "t2"), pick("", "r1", "r2", "r3"), pick("", "a1", "a2")
			p := []ledger.Payload{
				&ledger.TurnStart{TransactionID: txID, TurnID: turn},
				&ledger.TurnItem{TransactionID: txID, TurnID: turn, Item: ledger.Item{ID: pick("", "i"), Type: pick("", "plan")}},
				&ledger.ApprovalRequest{TransactionID: txID, ApprovalRequestID: req, Fingerprint: pick("", "x")},
				&ledger.ApprovalDecision{TransactionID: txID, ApprovalRequestID: req, Fingerprint: pick("", "x")},
				&ledger.ApplyStart{TransactionID: txID, ApplyID: apply},
				&ledger.ApplyComplete{TransactionID: txID, ApplyID: apply},
				&ledger.ValidateStart{TransactionID: txID},
			}[r.IntN(7)]
			admit := admits(log, p)
			_, open := log.OpenApply()
			if started, ended := ledger.Of[*ledger.ApplyStart](log), ledger.Of[*ledger.ApplyComplete](log); open != (len(started) > len(ended)) {
				t.Fatalf("after %s an apply is open: %v", log.Bytes(), open)
			}
			if err := log.Append(moment, p); admit != (err == nil) {
				t.Fatalf("%#v after %s: admit %v, Append %v", p, log.Bytes(), admit, err)
			}
			if admit {
				yes++
			} else {
				no++
			}
		}
	}
	if yes < 500 || no < 500 {
		t.Errorf("%d admitted, %d not", yes, no)
	}
}

// TestVersions: every prefix is what reading it alone gives.
func TestVersions(t *testing.T) {
	raw := lived(t, true).files[ledger.EventsFile].Data
	log, err := ledger.ReadLog(raw)
	fatal(t, err)
	var ends []int64
	for line := range bytes.Lines(raw) {
		end := int64(len(line))
		if len(ends) > 0 {
			end += ends[len(ends)-1]
		}
		ends = append(ends, end, end) // twice, as a version may be
	}
	calls := 0
	err = log.Versions(ends, func(i int, tx ledger.Transaction) error {
		prefix, err := ledger.ReadLog(raw[:ends[i]])
		if err != nil || i != calls || line(t, tx) != line(t, prefix.Transaction()) {
			t.Errorf("version %d: %v, %+v", i, err, tx)
		}
		calls++
		return nil
	})
	if err != nil || calls != len(ends) {
		t.Errorf("%d calls, %v", calls, err)
	}
	last := ends[len(ends)-1]
	for _, c := range []struct {
		name  string
		ends  []int64
		calls int
	}{
		{"none", nil, 0},
		{"no event", []int64{0}, 0},
		{"negative", []int64{-1}, 0},
		{"inside a line", []int64{ends[0], ends[2] - 1}, 1},
		{"before an LF", []int64{ends[0] - 1}, 0},
		{"past the end", []int64{last, last + 1}, 1},
		{"descending", []int64{ends[2], ends[0]}, 1},
		{"zero afterwards", []int64{ends[2], 0}, 1},
	} {
		calls := 0
		err := log.Versions(c.ends, func(int, ledger.Transaction) error { calls++; return nil })
		if calls != c.calls || (err == nil) != (c.name == "none") {
			t.Errorf("%s: %d calls, %v", c.name, calls, err)
		}
	}
	stop := errors.New("stop")
	if err := log.Versions(ends, func(int, ledger.Transaction) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error of the caller: %v", err)
	}
	if err := (&ledger.Log{}).Versions([]int64{0}, nil); err == nil {
		t.Error("an empty log has no versions")
	}
}

// A halfway is a directory whose events cannot be read to the end.
type halfway struct{ fstest.MapFS }

func (h halfway) ReadFile(name string) ([]byte, error) {
	data, err := h.MapFS.ReadFile(name)
	if name == ledger.EventsFile {
		err = errors.New("cannot go on")
	}
	return data, err
}

// TestHalfRead: what was read before an error proves nothing, be it a whole log.
func TestHalfRead(t *testing.T) {
	d := newDirectory(t)
	delete(d.files, proposalArtifact(t))
	if log, found := ledger.ReadOwn(halfway{d.files}, txID); log != nil || rules(found) != "EMPTY L9" {
		t.Errorf("%v, %v", log, found)
	}
}

// TestFirstTimestamp: a time is not taken for checked before one was.
func TestFirstTimestamp(t *testing.T) {
	d := newDirectory(t)
	d.rechain([]string{strings.Replace(d.lines()[0], `"timestamp":"`+ledger.FormatTime(moment)+`"`, `"timestamp":""`, 1)})
	if _, err := ledger.ReadLog([]byte(d.text(ledger.EventsFile))); err == nil || !strings.Contains(err.Error(), "event 1: timestamp") {
		t.Errorf("%v", err)
	}
}
