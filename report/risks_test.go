package report

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/view"
)

func TestRisks(t *testing.T) {
	list := []risk.Risk{
		{Kind: risk.Unlisted, Detail: "why"},
		{Kind: risk.Executable, Path: "run.sh"},
		{Kind: risk.Executable, Path: "tools/x\x1b[2J", Detail: "a new file"},
		{Kind: risk.Secret, Path: "a.yml", Lines: []int{12}, Detail: "generic-api-key"},
		{Kind: risk.Rename, Path: "b", From: "a"},
		{Kind: risk.Hidden, Path: "c", Lines: []int{1, 2, 3, 4, 5}, More: 2, Detail: "U+202E"},
		{Kind: "unheard of", Path: "d"},
	}
	some := risk.List{Risks: list, More: map[risk.Kind]int{risk.Hidden: 3, risk.Long: 12}}
	want := `  not listed          every file (why)
  becomes executable  run.sh, tools/x\x1b[2J (a new file)
  secret              a.yml:12 (generic-api-key)
  renamed             a → b
  hidden characters   c:1,2,3,4,5 and 2 more lines (U+202E) and 3 more
  of unknown kind     d (unheard of)
  long lines          12 more
`
	if got := Risks(some, 80, 0, Style{}); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	if got := Risks(risk.List{}, 80, 24, Style{}); got != "" {
		t.Errorf("%q", got)
	}
}

// T75 What several risks have in common is shown once, with how many they are, and what
// has no room or is not in the list is counted: no number is less than the truth.
func TestT75Counts(t *testing.T) {
	var secrets []risk.Risk
	for n := range 260 {
		secrets = append(secrets, risk.Risk{Kind: risk.Secret, Path: "c.ini", Lines: []int{n + 1}, Detail: "generic-api-key"})
	}
	list := risk.NewList("p", secrets)
	if got, want := Risks(list, 80, 1, Style{}), "  secret              c.ini (200 times) and 60 more\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	list = risk.NewList("p", append(secrets[:3], risk.Risk{Kind: risk.Secret, Path: strings.Repeat("d", 50), Lines: []int{1}, Detail: "a"}))
	if got, want := Risks(list, 80, 1, Style{}), "  secret              c.ini (3 times) and 1 more\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	list.More[risk.Secret] = 60
	rep := Report{Risks: &list}
	if got, more := (Prompt{Report: rep}).reasons(policy.KindSecret); more != 60 || len(got) != 4 {
		t.Errorf("%q", got)
	}
	if got := rep.risks(maxRisks, Links{}); !strings.HasSuffix(got, "> - and more: 60 secret\n\n") || strings.Count(got, "generic-api-key") != 3 {
		t.Errorf("%q", got)
	}
}

// T75 Kinds that this program does not know take one line together, however many they are.
func TestT75UnknownKinds(t *testing.T) {
	var list []risk.Risk
	more := map[risk.Kind]int{}
	for n := range 100 {
		list = append(list, risk.Risk{Kind: risk.Kind(fmt.Sprintf("kind %d\x1b[2J", n)), Path: "d"})
		more[risk.Kind(fmt.Sprintf("other %d", n))] = 2
	}
	list = append(list, risk.Risk{Kind: risk.Trusted, Path: ".github/workflows/a.yml"})
	got := Risks(risk.List{Risks: list, More: more}, 80, 4, Style{})
	if strings.Count(got, "\n") > 4 || !strings.Contains(got, "workflows/a.yml") || strings.ContainsRune(got, 0x1b) || !strings.Contains(got, " and 200 more") {
		t.Errorf("%q", got)
	}
}

// T75 A path is not taken for the words of a list.
func TestT75Quoted(t *testing.T) {
	list := risk.List{Risks: []risk.Risk{
		{Kind: risk.Executable, Path: "a.md, b.md and 3 more"}, {Kind: risk.Trusted, Path: "every file"},
		{Kind: risk.Rename, Path: `b" → c`, From: "a (1 line)"}, {Kind: risk.Generated, Path: "a.md"},
	}}
	want := `  becomes executable  "a.md, b.md and 3 more"
  steers automation   "every file"
  renamed             "a (1 line)" → "b\" → c"
  generated           a.md
`
	if got := Risks(list, 80, 0, Style{}); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

// T75 Names of wide characters take the columns that they take on a screen.
func TestT75Wide(t *testing.T) {
	var list []risk.Risk
	for n := range 40 {
		list = append(list, risk.Risk{Kind: risk.Kinds()[n%3], Path: strings.Repeat("設定", n) + "🙂.yml", Detail: "理由"})
	}
	for _, height := range []int{0, 9} {
		for line := range strings.Lines(Risks(risk.List{Risks: risk.Sort(list)}, 80, height, Style{})) {
			if n := columns(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
	for _, width := range []int{3, 4, 5, 6, 7, 20} {
		got := cut("設定設定設定abc設定設定設定", width)
		if n := columns(got); n > width || n < width-2 {
			t.Errorf("%d columns of %d: %s", n, width, got)
		}
	}
	if got, want := cut("設定設定設定", 7), "設…定"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Every kind of risk of a patch of forty files is on the first screen, and every
// file where the names leave room.
func TestRisksFirstScreen(t *testing.T) {
	var list []risk.Risk
	for _, k := range risk.Kinds() {
		for n := range 40 {
			list = append(list, risk.Risk{Kind: k, Path: fmt.Sprintf("internal/some/package%d/file%02d.go", n%3, n), Lines: []int{n}, Detail: "why"})
		}
	}
	got := Risks(risk.List{Risks: list}, 80, 20, Style{})
	if n := strings.Count(got, "\n"); n > 20 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(line); n > 81 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, k := range risk.Kinds() {
		if !strings.Contains(got, view.RiskTitle(k)) {
			t.Errorf("%s is not there", k)
		}
	}
	if strings.Count(got, " more\n") != len(risk.Kinds()) {
		t.Errorf("what has no room is not counted:\n%s", got)
	}
	list = nil
	for n := range 40 {
		list = append(list, risk.Risk{Kind: risk.Kinds()[n%len(risk.Kinds())], Path: fmt.Sprintf("cmd/file%02d.go", n), Detail: strings.Repeat("a long reason ", 4)})
	}
	got = Risks(risk.List{Risks: risk.Sort(list)}, 80, 20, Style{})
	for n := range 40 {
		if !strings.Contains(got, fmt.Sprintf("file%02d.go", n)) {
			t.Errorf("file %d is not there:\n%s", n, got)
		}
	}
}

// The first screen of a report on forty files has every kind of risk, and every
// file where the names leave room: 80 × 24.
func TestTextFirstScreen(t *testing.T) {
	list := risk.List{}
	rep := Report{TransactionID: "tx_01KE5W5200041061050R3GG28A", Summary: "s", PullRequest: 1, LedgerRef: "refs/agent/ledger", Risks: &list}
	for n := range 40 {
		path := fmt.Sprintf("cmd/file%02d.go", n)
		rep.Files = append(rep.Files, File{Path: path, Kind: "update"})
		list.Risks = append(list.Risks, risk.Risk{Kind: risk.Kinds()[n%len(risk.Kinds())], Path: path, Lines: []int{n + 1}, Detail: strings.Repeat("why ", 9)})
	}
	risk.Sort(list.Risks)
	screen := strings.Join(strings.SplitAfter(rep.Text(func(args ...string) string { return "countersign " + strings.Join(args, " ") }, 80, false, Style{}), "\n")[:24], "")
	for _, k := range risk.Kinds() {
		if !strings.Contains(screen, view.RiskTitle(k)) {
			t.Errorf("%s is not there", k)
		}
	}
	above, _, _ := strings.Cut(screen, "\nfiles ")
	for _, f := range rep.Files {
		if !strings.Contains(above, f.Path) {
			t.Errorf("%s is not there:\n%s", f.Path, screen)
		}
	}
	for line := range strings.Lines(above) {
		if n := utf8.RuneCountInString(line); n > 81 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
