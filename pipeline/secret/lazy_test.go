package secret

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestOutline: read one by one, the rules are those of the whole file, and a
// rule that sleeps is woken by every text that it can find something in.
func TestOutline(t *testing.T) {
	want, err := readConfig([]byte(gitleaksRules))
	if err != nil {
		t.Fatal(err)
	}
	head, entries := defaults()
	first, err := readConfig([]byte(head)) // ours before theirs, which is in the older form
	if err != nil || !reflect.DeepEqual(first.Allowlists[max(0, len(first.Allowlists)-len(want.Allowlists)):], want.Allowlists) {
		t.Errorf("%+v %v", first.Allowlists, err)
	}
	if len(entries) < len(want.Rules) {
		t.Fatal(len(entries), len(want.Rules))
	}
	unused := maps.Clone(wakes)
	for i, e := range entries {
		got, err := e.read()
		if err != nil {
			t.Fatal(e.id, err)
		}
		if i < len(want.Rules) {
			want.Rules[i].Allowlists = strictly(want.Rules[i].Allowlists)
			if !reflect.DeepEqual(got, want.Rules[i]) || e.id != got.ID {
				t.Errorf("%s: %+v, want %+v", e.id, got, want.Rules[i])
			}
		}
		delete(unused, e.id)
		if e.id == privateKey || e.id == kubernetesSecret || len(e.wakes) == 0 {
			continue
		}
		r, err := newRule(got)
		if err != nil {
			t.Fatal(err)
		}
		literals := r.leads
		if literals == nil {
			literals = r.keywords
		}
		for _, l := range literals {
			if !slices.ContainsFunc(e.wakes, func(word string) bool { return word != "" && strings.Contains(l, word) }) {
				t.Errorf("%s is tried at %q, and sleeps until one of %q", e.id, l, e.wakes)
			}
		}
	}
	if len(unused) > 0 {
		t.Error("no such rules:", unused)
	}
}

// T42: what is found does not depend on what this process has looked at before.
func TestT42SameWhenAwake(t *testing.T) {
	fresh := func() *Finder {
		set, err := newRuleset(configFile{})
		if err != nil {
			t.Fatal(err)
		}
		return &Finder{rules: func() *ruleset { return set }}
	}
	awake := fresh()
	_, entries := defaults()
	for _, e := range entries {
		awake.Text(strings.Join(e.wakes, " "))
	}
	r := rand.New(rand.NewPCG(51, 52))
	for range 15 {
		var b strings.Builder
		for range 20 {
			e := entries[r.IntN(len(entries))]
			if len(e.wakes) > 0 {
				b.WriteString(e.wakes[r.IntN(len(e.wakes))] + []string{"", "_key = \"", ": "}[r.IntN(3)])
			}
			for range []int{8, 20, 32, 40, 64}[r.IntN(5)] {
				b.WriteByte("abcdef0123456789ABCDEFGHIJ"[r.IntN(26)])
			}
			b.WriteString([]string{"\n", "\"\n", " and "}[r.IntN(3)])
		}
		f, text := fresh(), b.String()
		if got, want := f.Text(text), awake.Text(text); got != want || f.Measure(text) != awake.Measure(text) {
			t.Errorf("%+v, later %+v", f.Measure(text), awake.Measure(text))
		}
	}
}
