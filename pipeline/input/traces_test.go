package input_test

import (
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

var update = flag.Bool("update", false, "write what the readers make of testdata/traces, or what COUNTERSIGN_CODEX does")

func plain(s string) string { return s }

// recorded are the items that a trace becomes, as canonical JSON, without their ids and
// what is the same in all.
func recorded(t *testing.T, steps []any, clean func(string) string) []string {
	t.Helper()
	const id = "tx_01HZZZZZZZZZZZZZZZZZZZZZZZ"
	s := writing.NewStage(&ledger.Log{}, time.Unix(1_800_000_000, 0).UTC(), storetest.Plain{})
	s.Event(&ledger.Meta{TransactionID: id, Proposer: ledger.Actor{Kind: "bot", ID: "1", Login: "bot"}})
	s.Event(&ledger.TurnStart{TransactionID: id, TurnID: "turn_1", Mode: "review"})
	input.Change{Trace: steps}.RecordTrace(s, clean)
	if _, err := s.Entry(writing.Title{Stage: "test"}, false); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range ledger.Of[*ledger.TraceItem](s.Log) {
		line, err := canon.Marshal(p.Item)
		fatal(t, err)
		doc, err := canon.Parse(line)
		fatal(t, err)
		item := doc.(map[string]any)
		about := item["metadata"].(map[string]any)
		for _, name := range []string{"artifact", "step", "steps"} {
			delete(about, name)
		}
		delete(item, "id")
		delete(item, "op")
		if line, err = canon.Marshal(item); err != nil {
			t.Fatal(err)
		}
		out = append(out, string(line))
	}
	return out
}

// TestTraces: what each producer leaves becomes the items of the turn item schema, with
// their statuses; what is no trace is refused with its line. Each file of testdata/traces
// has a file .want of the same name: what it was read as, the items, and the steps that the
// artifact has. What people typed is in none.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/traces/*")
	fatal(t, err)
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		n++
		raw, err := os.ReadFile(file)
		fatal(t, err)
		steps, format, err := input.ReadTrace(raw, plain)
		got := "format: " + format + "\n"
		if err != nil {
			got += "error: " + err.Error() + "\n"
		}
		for _, item := range recorded(t, steps, plain) {
			got += item + "\n"
		}
		written, err := input.WriteTrace(steps)
		fatal(t, err)
		got += "steps:\n" + string(written)
		if strings.Contains(got, "what a person") {
			t.Errorf("%s: what a person typed is told\n%s", file, got)
		}
		if *update {
			fatal(t, os.WriteFile(file+".want", []byte(got), 0o600))
		}
		want, err := os.ReadFile(file + ".want")
		if err != nil || got != string(want) {
			t.Errorf("%s: %v\ngot\n%s\nwant\n%s", file, err, got, want)
		}
		same(t, steps)
	}
	if n < 25 {
		t.Errorf("%d files", n)
	}
}

// same wants steps to be written and read again as they are.
func same(t *testing.T, steps []any) {
	t.Helper()
	written, err := input.WriteTrace(steps)
	fatal(t, err)
	again, format, err := input.ReadTrace(written, plain)
	if err != nil || format != "" || len(again) != len(steps) {
		t.Fatalf("%d steps, then %d as %q: %v\n%s", len(steps), len(again), format, err, written)
	}
	if twice, err := input.WriteTrace(again); err != nil || string(twice) != string(written) {
		t.Errorf("%v\n%s\nthen\n%s", err, written, twice)
	}
}

// FuzzTrace: whatever a file holds, what is made of it is steps, which are written and read
// again as they are and become items of the schema; and the objects of a log come to the
// same as lines, as one list and one after the other in several lines each.
func FuzzTrace(f *testing.F) {
	files, err := filepath.Glob("testdata/traces/*")
	fatal(f, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		fatal(f, err)
		if !strings.HasSuffix(file, ".want") {
			f.Add(string(raw))
		}
	}
	f.Add("\x8b\n  0 0\n---\n{\"schema_version\":\"authorship/\"}")
	f.Fuzz(func(t *testing.T, log string) {
		steps, format, err := input.ReadTrace([]byte(log), plain)
		if err != nil {
			return
		}
		same(t, steps)
		recorded(t, steps, plain)
		var lines, objects []string
		for line := range strings.Lines(log) {
			doc, err := canon.Parse([]byte(line))
			if _, object := doc.(map[string]any); err != nil || !object {
				if strings.HasPrefix(strings.TrimSpace(line), "{") {
					return // it may be what the format is told by, and is not in the other forms
				}
				continue
			}
			lines = append(lines, strings.TrimSpace(line))
			objects = append(objects, "\n{\n"+strings.TrimSpace(line)[1:])
		}
		if input.Unread(steps) != "" || format == "" || format == input.TraceGitAI || len(lines) == 0 || !strings.HasPrefix(strings.TrimLeft(log, " \t\r\n"), lines[0]) {
			return // no log of lines
		}
		want, err := input.WriteTrace(steps)
		fatal(t, err)
		for _, other := range []string{"[" + strings.Join(lines, ",\n") + "]", strings.Join(objects, "")} {
			again, format2, err := input.ReadTrace([]byte(other), plain)
			if err != nil || format2 != format {
				t.Fatalf("%v, %s\n%s\nthen %s\n%s", err, format, log, format2, other)
			}
			if got, err := input.WriteTrace(again); err != nil || string(got) != string(want) {
				t.Fatalf("%v\n%s\nwant\n%s", err, got, want)
			}
		}
	})
}

// FuzzTraceMutants: logs of testdata/traces with lines in another order, left out and told
// twice, and with values put where others were. None of them is steps that are not read
// again as they are, or items that are none of the schema.
func FuzzTraceMutants(f *testing.F) {
	var logs [][]any
	files, err := filepath.Glob("testdata/traces/*.jsonl")
	fatal(f, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		fatal(f, err)
		var log []any
		for line := range strings.Lines(string(raw)) {
			if doc, err := canon.Parse([]byte(line)); err == nil {
				log = append(log, doc)
			}
		}
		logs = append(logs, log)
	}
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		log := logs[rng.IntN(len(logs))]
		var raw []byte
		for range 1 + rng.IntN(12) {
			line, err := canon.Line(mutant(rng, log[rng.IntN(len(log))], log[rng.IntN(len(log))]))
			fatal(t, err)
			raw = append(raw, line...)
		}
		steps, _, err := input.ReadTrace(raw, plain)
		if err != nil {
			return
		}
		same(t, steps)
		recorded(t, steps, plain)
	})
}

// mutant is a document with some of its values replaced: by parts of another, or by values
// that nobody expects.
func mutant(rng *rand.Rand, doc, other any) any {
	if rng.IntN(40) == 0 {
		odd := []any{nil, true, "", "x\x00\u202e", -1.0, 1e300, 0.5, []any{}, map[string]any{}, strings.Repeat("é", 300), strings.Repeat("long ", 2000), other}
		return odd[rng.IntN(len(odd))]
	}
	switch doc := doc.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(doc)) {
			if rng.IntN(40) > 0 {
				out[key] = mutant(rng, doc[key], other)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(doc))
		for _, one := range doc {
			out = append(out, mutant(rng, one, other))
		}
		return out
	}
	return doc
}
