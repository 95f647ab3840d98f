package ledger_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

func TestEntry(t *testing.T) {
	s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	record(s)
	s.Denied(ledger.Denial{Fingerprint: "patchset:" + patchID, Kind: "fileChange"})
	e, err := s.Entry(writing.Title{Stage: "review", Outcome: "proposed", Subject: "one file"}, true)
	fatal(t, err)
	want := "review: one file\n\nCountersign-Transaction: " + txID + "\nCountersign-Stage: review\n" +
		"Countersign-Patch: " + patchID + "\nCountersign-Outcome: proposed\n"
	if e.Message != want || !e.When.Equal(moment) {
		t.Errorf("%q", e.Message)
	}
	names := slices.Sorted(maps.Keys(e.Files))
	for _, name := range []string{
		"ledger.json", "denied/" + patchID[:2] + "/" + patchID + "/fileChange.json",
		ledger.Dir(txID) + "/transaction.json", ledger.Dir(txID) + "/events.jsonl",
		ledger.Dir(txID) + "/patches/" + patchID + ".diff", ledger.Dir(txID) + "/apply_result.json",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("no %s in %v", name, names)
		}
	}
	doc, err := canon.Parse(e.Files["ledger.json"])
	if err != nil || line(t, doc) != string(e.Files["ledger.json"]) {
		t.Errorf("ledger.json %q is not canonical: %v", e.Files["ledger.json"], err)
	}
}

// TestEntryError: one event that may not happen spoils the stage.
func TestEntryError(t *testing.T) {
	s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	s.Event(meta())
	s.Status(ledger.Completed, "")
	s.Event(&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1"})
	if e, err := s.Entry(writing.Title{Stage: "review"}, false); err == nil || !strings.Contains(err.Error(), "recording review: event 2") {
		t.Errorf("%v %v", e, err)
	}
	s = writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	s.Event(meta())
	s.Artifact("proposal", math.Inf(1))
	if e, err := s.Entry(writing.Title{Stage: "review"}, false); err == nil || !strings.Contains(err.Error(), "artifact proposal") {
		t.Errorf("%v %v", e, err)
	}
}

// TestT14OneLine: foreign text cannot add a trailer, turn the line around or
// hide in it.
func TestT14OneLine(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "fix the greeting", "fix the greeting"},
		{"other scripts", "größer 更大 ✔", "größer 更大 ✔"},
		{"trailer", "x\n\nCountersign-Outcome: applied\n", "x Countersign-Outcome: applied"},
		{"every line break", "a\rb\vc\fd\u0085e\u2028f\u2029g", "a b c d e f g"},
		{"terminal", "a\x1b[2Jb\x07\x00c\x7f", "a [2Jb c"},
		{"C1", "a\u009b2Jb", "a 2Jb"},
		{"bidi", "a\u202eb\u2066c\u2069\u200fd\u061ce", "a b c d e"},
		{"zero width", "a\u200bb\u200dc\ufeffd\u2060e\u00adf", "a b c d e f"},
		{"tags", "a\U000e0041\U000e0042b", "a b"},
		{"blank letters", "a\u3164b\u115fc\uffa0d\u2800e\u034ff", "a b c d e f"},
		{"blank signs", "a\U00016fe4b\U00013441c\U00013442d\U0001d159e\ufffcf", "a b c d e f"},
		{"variation selectors", "a\ufe0fb\U000e0100c", "a b c"},
		{"private and unassigned", "a\ue000b\U0010ffffc", "a b c"},
		{"not UTF-8", "a\xffb\xc0\x80c", "a b c"},
		{"spaces", "  a \t\u00a0 \u3000b  ", "a b"},
		{"nothing", " \n\u200b", ""},
		{"long", strings.Repeat("ä", 41), strings.Repeat("ä", 39) + "…"},
		{"just short enough", strings.Repeat("ä", 40), strings.Repeat("ä", 40)},
	} {
		if got := ledger.OneLine(c.in, 40); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	title := writing.Title{Stage: "deny", Outcome: "denied", Subject: "no\n\nCountersign-Outcome: approved\nCountersign-Stage: gate"}
	s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
	s.Event(meta())
	e, err := s.Entry(title, false)
	if err != nil || strings.Count(e.Message, "\nCountersign-Outcome:") != 1 || strings.Count(e.Message, "\nCountersign-Stage:") != 1 {
		t.Errorf("%+v %v", e, err)
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\u202eb\n\nX: y")
	f.Fuzz(func(t *testing.T, in string) {
		out := ledger.OneLine(in, 80)
		if !utf8.ValidString(out) || utf8.RuneCountInString(out) > 80 || strings.ContainsFunc(out, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("%q from %q", out, in)
		}
		if again := ledger.OneLine(out, 80); again != out {
			t.Errorf("%q, then %q", out, again)
		}
	})
}
