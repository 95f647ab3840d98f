package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A board is a forge with issues, in memory. Before an issue is opened, meanwhile is called.
type board struct {
	me        ledger.Actor
	issues    []forge.Issue
	comments  []string
	writes    int
	fails     string // what does
	meanwhile func()
}

var (
	bot  = ledger.Actor{Kind: "bot", ID: "41", Login: "actions"}
	mary = ledger.Actor{Kind: "user", ID: "7", Login: "mary"}
)

var errDown = errors.New("the forge is down")

func (b *board) fail(what string) error {
	if b.fails == what {
		return errDown
	}
	return nil
}

func (b *board) Viewer(context.Context) (ledger.Actor, error) { return b.me, b.fail("viewer") }
func (b *board) DefaultBranch(context.Context) (forge.Side, error) {
	return forge.Side{Branch: "main"}, nil
}
func (b *board) list(open bool) (out []forge.Issue) {
	for _, i := range b.issues {
		if i.Open == open {
			out = append(out, i)
		}
	}
	return out
}
func (b *board) OpenIssues(context.Context) ([]forge.Issue, error) {
	return b.list(true), b.fail("open")
}
func (b *board) ClosedIssues(context.Context) ([]forge.Issue, error) {
	return b.list(false), b.fail("closed")
}
func (b *board) CreateIssue(_ context.Context, title, body string) (forge.Issue, error) {
	if b.meanwhile != nil {
		b.meanwhile()
	}
	if err := b.fail("create"); err != nil {
		return forge.Issue{}, err
	}
	return b.add(b.me, title, body), nil
}
func (b *board) add(by ledger.Actor, title, body string) forge.Issue {
	b.writes++
	one := forge.Issue{Number: len(b.issues) + 1, Author: by, Title: title, Body: body, Open: true}
	b.issues = append(b.issues, one)
	return one
}
func (b *board) UpdateIssue(_ context.Context, i forge.Issue) error {
	if err := b.fail("update"); err != nil {
		return err
	}
	b.writes++
	i.Author = b.issues[i.Number-1].Author
	b.issues[i.Number-1] = i
	return nil
}
func (b *board) UpsertComment(_ context.Context, number int, id, body string) (forge.Posted, error) {
	if err := b.fail("comment"); err != nil {
		return forge.Posted{}, err
	}
	b.writes++
	b.comments = append(b.comments, body)
	return forge.Posted{}, nil
}

func id(n int) string { return fmt.Sprintf("%040x", n) }

// audited is an audit of a branch that has the commits 1 to 9, of which these are unexplained.
func audited(unexplained ...int) Watch {
	list := &Branch{Name: "main", Commits: 9}
	for _, n := range unexplained {
		list.Unexplained = append(list.Unexplained, Unexplained{Commit: id(n), Subject: fmt.Sprintf("subject %d", n), Reason: "no transaction proposes this change", Paths: []string{"a"}})
	}
	return Watch{
		Branch: "main", Found: list, Command: "countersign audit --branch main",
		OnBranch: func(commit string) bool {
			return commit < id(10) || slices.ContainsFunc(list.Unexplained, func(u Unexplained) bool { return u.Commit == commit })
		},
		Page: func(string) string { return "" }, Clean: func(s string) string { return s },
	}
}

func broken() Watch {
	a := audited()
	a.Found, a.Failure = nil, "refs/agent/ledger does not verify: 3 findings"
	return a
}

// TestKeep: what becomes of the issue, audit after audit.
func TestKeep(t *testing.T) {
	type step struct {
		audit    Watch
		before   func(b *board)
		issues   int
		open     bool // the last issue
		comments int  // so far
		says     string
	}
	closes := func(b *board) { b.issues[len(b.issues)-1].Open = false }
	for name, steps := range map[string][]step{
		"all is explained":              {{audit: audited(), issues: 0}},
		"one commit, and again":         {{audited(3), nil, 1, true, 0, "subject 3"}, {audited(3), nil, 1, true, 0, ""}},
		"another one":                   {{audited(3), nil, 1, true, 0, ""}, {audited(4, 3), nil, 1, true, 1, "subject 4"}, {audited(4, 3), nil, 1, true, 1, "subject 3"}},
		"explained later":               {{audited(3), nil, 1, true, 0, ""}, {audited(), nil, 1, false, 1, "Something accounts for each"}, {audited(), nil, 1, false, 1, ""}},
		"explained, then another one":   {{audited(3), nil, 1, true, 0, ""}, {audited(), nil, 1, false, 1, ""}, {audited(4), nil, 2, true, 1, "subject 4"}},
		"one of two is explained":       {{audited(4, 3), nil, 1, true, 0, ""}, {audited(4), nil, 1, true, 0, "**1 commit**"}},
		"the audit fails":               {{broken(), nil, 1, true, 0, "could not be audited"}, {broken(), nil, 1, true, 0, "does not verify"}, {audited(), nil, 1, false, 1, ""}},
		"the audit fails, with others":  {{audited(3), nil, 1, true, 0, ""}, {broken(), nil, 1, true, 1, "nothing accounted for 1 commit"}, {audited(3), nil, 1, true, 1, "subject 3"}},
		"it fails and then all is well": {{audited(3), nil, 1, true, 0, ""}, {broken(), nil, 1, true, 1, ""}, {audited(), nil, 1, false, 2, ""}},
		"rewritten":                     {{audited(30), nil, 1, true, 0, ""}, {audited(), nil, 1, true, 1, "does not find any more"}, {audited(), nil, 1, true, 1, ""}, {audited(), closes, 1, false, 1, ""}, {audited(3), nil, 1, true, 2, "subject 3"}, {audited(), nil, 1, false, 3, "Something accounts"}},
		"rewritten, while it fails":     {{audited(30), nil, 1, true, 0, ""}, {broken(), nil, 1, true, 1, ""}, {audited(), nil, 1, true, 2, "does not find any more"}},
		"somebody closes it":            {{audited(3), nil, 1, true, 0, ""}, {audited(3), closes, 1, true, 1, "subject 3"}, {broken(), closes, 1, true, 2, "could not be audited"}},
		"somebody empties it":           {{audited(3), nil, 1, true, 0, ""}, {audited(3), func(b *board) { b.issues[0].Body = "nothing to see" }, 2, true, 0, "subject 3"}},
		"somebody adds to it":           {{audited(3), nil, 1, true, 0, ""}, {audited(3), func(b *board) { b.issues[0].Body += "all is well" }, 1, true, 0, "subject 3"}},
		"lines that end otherwise": {{audited(3), nil, 1, true, 0, ""}, {audited(3), func(b *board) {
			b.issues[0].Body = strings.ReplaceAll(b.issues[0].Body, "\n", "\r\n")
		}, 1, true, 0, ""}},
		"somebody else's":     {{audited(3), func(b *board) { b.add(mary, "x", mark{}.line("main")) }, 2, true, 0, "subject 3"}},
		"another branch's":    {{audited(3), func(b *board) { b.add(bot, "x", mark{}.line("next")) }, 2, true, 0, "subject 3"}},
		"a mark further down": {{audited(3), func(b *board) { b.add(bot, "x", "x\n"+mark{}.line("main")) }, 2, true, 0, "subject 3"}},
		"another run's, at once": {{audited(3), func(b *board) {
			b.meanwhile = func() { b.meanwhile = nil; first, _ := audited(3).next(nil); b.add(bot, first.Title, first.Body) }
		}, 2, false, 0, "Another run opened #1"}, {audited(3), nil, 2, false, 0, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &board{me: bot}
			for n, s := range steps {
				if s.before != nil {
					s.before(b)
				}
				if _, err := KeepIssue(t.Context(), b, s.audit); err != nil {
					t.Fatalf("%d: %v", n, err)
				}
				if len(b.issues) != s.issues || len(b.comments) != s.comments || s.issues > 0 && b.issues[s.issues-1].Open != s.open {
					t.Fatalf("%d: issues %+v, comments %q", n, b.issues, b.comments)
				}
				if s.issues > 0 && !strings.Contains(b.issues[s.issues-1].Body, s.says) {
					t.Errorf("%d: it does not say %q:\n%s", n, s.says, b.issues[s.issues-1].Body)
				}
				writes := b.writes
				if _, err := KeepIssue(t.Context(), b, s.audit); err != nil || b.writes != writes {
					t.Errorf("%d: the same audit again writes %d times, %v", n, b.writes-writes, err)
				}
			}
		})
	}
}

// TestKeepFails: a forge that does not answer in full is an error, and nothing is written
// on what it left out.
func TestKeepFails(t *testing.T) {
	for what, writes := range map[string]int{"viewer": 0, "open": 0, "closed": 0, "create": 0, "comment": 0, "update": 1} {
		b := &board{me: bot}
		if what == "comment" || what == "update" {
			if _, err := KeepIssue(t.Context(), b, audited(3)); err != nil {
				t.Fatal(err)
			}
			b.writes = 0
		}
		b.fails = what
		if _, err := KeepIssue(t.Context(), b, audited(4, 3)); !errors.Is(err, errDown) || b.writes != writes {
			t.Errorf("%s: %v, %d writes", what, err, b.writes)
		}
	}
	nobody := &board{issues: []forge.Issue{{Number: 1, Open: true, Body: mark{}.line("main")}}}
	if _, err := KeepIssue(t.Context(), nobody, audited()); err == nil || nobody.writes > 0 {
		t.Errorf("of an account without a number: %v", err)
	}
}

// TestT14Bounds: however much there is to tell, and whoever wrote it, the forge takes the
// text, and nothing of it stands for itself.
func TestT14Bounds(t *testing.T) {
	a := audited()
	a.Branch = "main`$(x) @ada"
	hostile := strings.Repeat("$@ada <!-- --> #1 ", 6)
	for n := range 3000 {
		a.Found.Unexplained = append(a.Found.Unexplained, Unexplained{
			Commit: fmt.Sprintf("%064x", n), Subject: hostile, Reason: strings.Repeat(hostile, 9), Paths: slices.Repeat([]string{strings.Repeat("`|@ada/", 40)}, 20), MorePaths: 99,
		})
	}
	a.Page = func(commit string) string {
		return "https://github.com/" + strings.Repeat("a", 100) + "/commit/" + commit
	}
	b := &board{me: bot}
	old := mark{}
	for n := range maxIDs {
		old.ids, old.gone = append(old.ids, fmt.Sprintf("%064x", n+10_000)), append(old.gone, fmt.Sprintf("%064x", n+20_000))
	}
	b.add(bot, "x", old.line(a.Branch))
	if _, err := KeepIssue(t.Context(), b, a); err != nil {
		t.Fatal(err)
	}
	failing := a
	failing.Found, failing.Failure = nil, hostile+strings.Repeat(hostile, 100)
	texts := append(b.comments, b.issues[0].Body)
	if _, err := KeepIssue(t.Context(), b, failing); err != nil {
		t.Fatal(err)
	}
	for _, text := range append(texts, append(b.comments, b.issues[0].Body)...) {
		if n := utf8.RuneCountInString(text); n > 65_536 || n < 300 {
			t.Errorf("%d characters", n)
		}
		_, rest, _ := strings.Cut(text, " -->\n")
		if strings.Contains(text, "@ada") || strings.Contains(rest, "<!--") {
			t.Errorf("foreign text does something: %.2000s", text)
		}
	}
	if len(b.issues) != 1 || !strings.Contains(b.issues[0].Body, "and ") {
		t.Errorf("%d issues", len(b.issues))
	}
}

// FuzzMark: any body is read or not, and what is read is written back to what is read again.
func FuzzMark(f *testing.F) {
	f.Add(mark{ids: []string{id(1)}, gone: []string{id(2)}}.line("main"), "main")
	f.Add(mark{done: true}.line("main"), "main")
	f.Add(markStart("x")+"open\r\n", "x")
	f.Add(markStart("x")+"open --"+id(1)+" - "+id(1)+"x -->\n", "x")
	f.Fuzz(func(t *testing.T, body, branch string) {
		m, is := readMark(body, branch)
		if !is && (len(m.ids) > 0 || len(m.gone) > 0) || len(m.ids) > maxIDs || len(m.gone) > maxIDs {
			t.Fatalf("%+v %v", m, is)
		}
		if !is {
			return
		}
		line := m.line(branch)
		again, is := readMark(line+body, branch)
		if !is || !slices.Equal(again.ids, m.ids) || !slices.Equal(again.gone, m.gone) || strings.Count(line, "-->") != 1 {
			t.Errorf("%q: %+v, again %+v", body, m, again)
		}
	})
}

// TestKeepReviews: exceptions that wait for a review keep the issue open, the overdue ones in red, though something accounts for
// each commit; once each is reviewed it is closed.
func TestKeepReviews(t *testing.T) {
	b, a := &board{me: bot}, audited()
	keep := func() {
		t.Helper()
		if _, err := KeepIssue(t.Context(), b, a); err != nil {
			t.Fatal(err)
		}
	}
	e := Exception{Commit: id(3), Subject: "`x` <!-- @all", Codes: []string{"break_glass"}, DueBy: "2026-01-10T12:00:00.000Z", State: Due}
	a.Found.Exceptions = []Exception{e}
	keep()
	body := b.issues[0].Body
	if b.issues[0].Title != "countersign: exceptions of main to review" || !strings.Contains(body, "`break_glass`, due by 2026-01-10\n") || strings.Contains(body, "[!CAUTION]") || strings.Contains(body, "<!-- @") {
		t.Fatalf("%+v", b.issues)
	}
	a.Found.Exceptions[0].State = Overdue
	keep()
	if body = b.issues[0].Body; !strings.Contains(body, "> [!CAUTION]\n> **1 exception is overdue for review.**\n") || !strings.Contains(body, ", **overdue**\n") {
		t.Fatalf("%+v", b.issues)
	}
	b.issues[0].Open = false // somebody closed it
	keep()
	if !b.issues[0].Open || len(b.issues) != 1 {
		t.Fatalf("%+v", b.issues)
	}
	a.Found.Exceptions[0].State = Reviewed
	keep()
	if b.issues[0].Open {
		t.Fatalf("%+v", b.issues)
	}
	a.Found.Exceptions = slices.Repeat([]Exception{{Commit: id(3), Subject: strings.Repeat("x", 200), Codes: []string{"break_glass"}, State: Overdue}}, 1000)
	if n := len(a.reviews()); n > maxReviews+100 {
		t.Errorf("%d bytes", n)
	}
}
