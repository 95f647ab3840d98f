package conformance

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

var update = flag.Bool("update", false, "write docs/spec/vectors anew: from the tables of cases, where ids stay with notes, and what lines written by hand leave out")

// vectorDir is where the vectors are.
const vectorDir = "../../../../docs/spec/vectors"

type m = map[string]any

// A generator makes the vectors of one class from tables of cases. What a case expects is
// written by hand; of values, what is too long for that is what this program answers.
type generator struct {
	t     testing.TB
	class string
	ids   map[string]string // by op and note, of those that are there
	last  int
	files map[string][]Vector // by name
	names []string
	named map[string]string // ids by note
	whole map[string]m      // inputs by id
}

// in names the file that the next vectors are written to.
func (g *generator) in(name string) { g.names = append(g.names, name) }

func (g *generator) id(op, note string) string {
	key := op + " " + note
	id, ok := g.ids[key]
	if !ok {
		g.last++
		id = fmt.Sprintf("%s-%04d", g.class, g.last)
		g.ids[key] = id
	}
	if g.named[note] != "" {
		g.t.Fatalf("%s: two cases are noted %q", g.class, note)
	}
	g.named[note] = id
	return id
}

// add enters a case, and says where this program answers otherwise.
func (g *generator) add(v Vector) {
	g.t.Helper()
	v.Class, v.ID = g.class, g.id(v.Op, v.Note)
	var plain m
	raw, err := json.Marshal(v.Input)
	if err == nil {
		err = json.Unmarshal(raw, &plain)
	}
	if err != nil {
		g.t.Fatal(v.Note, err)
	}
	v.Input = plain
	if v.Like != "" {
		plain = merge(g.whole[v.Like], plain).(m)
	}
	g.whole[v.ID] = plain
	resolved, err := resolve(plain)
	if err != nil {
		g.t.Fatal(v.Note, err)
	}
	input, _ := json.Marshal(resolved)
	got, rules, err := answer(Question{v.Class, v.ID, input, v.Op})
	if err != nil || got.Verdict == Unsupported {
		g.t.Errorf("%s %q cannot be asked: %v", v.ID, v.Note, err)
	}
	switch {
	case v.Expect.Verdict == Accept:
		v.Expect.Values = g.filled(v, got)
	case slices.Contains(wrong, v.Note):
		slices.Sort(v.Expect.Rules)
	case g.class == "transaction" || g.class == "history":
		if got.Verdict == Refuse && !slices.ContainsFunc(rules, func(r string) bool { return slices.Contains(v.Expect.Rules, r) }) {
			g.t.Errorf("%s %q: %v, this program says %v", v.ID, v.Note, v.Expect.Rules, rules)
		}
		v.Expect.Rules = append(slices.Clone(v.Expect.Rules), rules...)
		slices.Sort(v.Expect.Rules)
		v.Expect.Rules = slices.Compact(v.Expect.Rules)
	default:
		v.Expect.Rules = nil
	}
	if v.Expect.Verdict != got.Verdict && !slices.Contains(wrong, v.Note) {
		g.t.Errorf("%s %q: expected %s, this program says %s %v", v.ID, v.Note, v.Expect, got.Verdict, rules)
	}
	name := g.names[len(g.names)-1]
	g.files[name] = append(g.files[name], v)
}

// filled are the values that are expected: those by hand, and what this program adds.
func (g *generator) filled(v Vector, got Answer) m {
	g.t.Helper()
	values := m{}
	if slices.Contains(wrong, v.Note) {
		got.Values = nil // these are by hand alone
	}
	for _, from := range []m{got.Values, v.Expect.Values} {
		var plain m
		raw, err := json.Marshal(from)
		if err == nil {
			err = json.Unmarshal(raw, &plain)
		}
		teststand.Fatal(g.t, err)
		for name, value := range plain {
			if had, ok := values[name]; ok && !reflect.DeepEqual(had, value) {
				if !slices.Contains(wrong, v.Note) {
					g.t.Errorf("%s %q: %s is %v, this program says %v", v.ID, v.Note, name, value, had)
				}
			}
		}
		maps.Copy(values, plain)
	}
	for _, name := range []string{"canonical", "patch"} { // its hash is there as well
		if text, ok := values[name].(string); ok && len(text) > mostText {
			delete(values, name)
		}
	}
	return values
}

// mostText is how long a text may be that is expected, where its hash is.
const mostText = 8 << 10

// good is a case that is accepted, with values that are known by hand.
func (g *generator) good(op, requires, note string, input, values m) {
	g.t.Helper()
	g.add(Vector{Op: op, Requires: strings.Fields(requires), Note: note, Input: input, Expect: Expectation{Verdict: Accept, Values: values}})
}

// bad is a case that is refused. The twin is named by its note.
func (g *generator) bad(op, requires, note, twin string, input m, rules ...string) {
	g.t.Helper()
	g.add(Vector{Op: op, Requires: strings.Fields(requires), Note: note, Input: input, Twin: g.noted(twin), Expect: Expectation{Verdict: Refuse, Rules: rules}})
}

// like is a case with the input of another one, changed.
func (g *generator) like(base string, v Vector) {
	g.t.Helper()
	v.Like = g.noted(base)
	g.add(v)
}

func (g *generator) noted(note string) string {
	if note == "" {
		return ""
	}
	id, ok := g.named[note]
	if !ok {
		g.t.Fatalf("%s: no case is noted %q", g.class, note)
	}
	return id
}

// byHand reads the files whose lines are written by hand, and adds the values that this program answers and a
// line leaves out; {} is enough for one that is accepted. What it has is left as it is.
func (g *generator) byHand(had []Vector) {
	g.t.Helper()
	whole := map[string]Vector{}
	for _, v := range had {
		whole[v.ID] = v
	}
	files, _ := filepath.Glob(filepath.Join(vectorDir, g.class, "*.jsonl"))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		if slices.Contains(g.names, name) {
			continue
		}
		raw, err := os.ReadFile(file)
		teststand.Fatal(g.t, err)
		for line := range bytes.Lines(raw) {
			v, err := parse(bytes.TrimSpace(line), g.class)
			teststand.Fatal(g.t, err)
			got, _, err := answer(whole[v.ID].Question())
			if err != nil || got.Verdict != v.Expect.Verdict {
				g.t.Errorf("%s %q: expected %s, this program says %s, %v", v.ID, v.Note, v.Expect.Verdict, got.Verdict, err)
			}
			if v.Expect.Verdict == Accept {
				v.Expect.Values = g.filled(v, got)
			}
			g.files[name] = append(g.files[name], v)
		}
	}
}

// generators make vectors that hold hashes, chains and signatures, by their class. Other files are written by
// hand, a line for each case.
var generators = map[string]func(*generator){}

// TestUpdate makes the vectors anew with -update.
func TestUpdate(t *testing.T) {
	if !*update {
		t.Skip("without -update")
	}
	had, err := Read(os.DirFS(vectorDir))
	teststand.Fatal(t, err)
	classes := map[string]bool{}
	for _, v := range had {
		classes[v.Class] = true
	}
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		g := &generator{t: t, class: class, ids: map[string]string{}, files: map[string][]Vector{}, named: map[string]string{}, whole: map[string]m{}}
		for _, v := range had {
			if v.Class == class {
				g.ids[v.Op+" "+v.Note] = v.ID
				var n int
				_, _ = fmt.Sscanf(v.ID, class+"-%d", &n)
				g.last = max(g.last, n)
			}
		}
		if make, ok := generators[class]; ok {
			make(g)
		}
		g.byHand(had)
		dir := filepath.Join(vectorDir, class)
		for name, vectors := range g.files {
			var out bytes.Buffer
			for _, v := range vectors {
				line, err := json.Marshal(v)
				if err == nil {
					var doc any
					if doc, err = canon.Parse(line); err == nil {
						line, err = canon.Line(doc)
					}
				}
				if err != nil {
					t.Fatal(v.Note, err)
				}
				out.Write(line)
			}
			teststand.Fatal(t, os.WriteFile(filepath.Join(dir, name+".jsonl"), out.Bytes(), 0o666))
		}
	}
}
