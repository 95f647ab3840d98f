package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"golang.org/x/sys/unix"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// Questions, by what an approval is asked for.
const (
	secretQuestion    = "Approve that these secrets are added?"
	protectedQuestion = "Approve that these protected paths change?"
	denyQuestion      = "Deny these bytes ("
)

// proposes records a patch, as somebody else than who decides.
func (s playground) proposes(summary, patch string) (id string) {
	s.t.Helper()
	file := filepath.Join(s.dir, "proposed.patch")
	check(s.t, os.WriteFile(file, []byte(patch), 0o644))
	cmd := s.command("review", "--patch", file, "--summary", summary)
	cmd.Env = append(cmd.Env, "GIT_COMMITTER_EMAIL=agent@localhost", "GIT_COMMITTER_NAME=agent")
	s.runCmd(0, cmd)
	return s.newest()
}

// decisions are how many the record of a transaction has.
func (s playground) decisions(id string) int {
	s.t.Helper()
	out, _ := s.run(0, "log", id)
	return strings.Count(out, "approval/decision")
}

// answers types an answer after each question.
func (p *pseudoTerminal) answers(pairs ...string) {
	p.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		p.awaits(pairs[i])
		p.types(pairs[i+1])
	}
}

// In a terminal every kind is asked about by itself, with its reasons; what is
// answered with yes is recorded, and nothing else.
func TestAskByKind(t *testing.T) {
	long(t)
	t.Parallel()
	token := teststand.Samples()[1].Text()
	workflow := addition(".github/workflows/x.yml", "on: push\n") + addition("config.env", "A=1\n"+token+"\n")
	for _, c := range []struct {
		args    []string
		answers []string
		exit    int
		said    string // decisions, then the last of the output
	}{
		{[]string{"approve"}, []string{question, "y\n", secretQuestion, "y\n", protectedQuestion, "y\n"}, 0, "3 Approved"},
		{[]string{"approve", "TX"}, []string{question, "n\n", secretQuestion, "yes\n", protectedQuestion, "\n"}, 0, "1 still waits"},
		{[]string{"approve"}, []string{question, "\n", secretQuestion, "\n", protectedQuestion, "\n"}, console.ExitPending, "0 "},
		{[]string{"approve"}, []string{question, "y\n", secretQuestion, "y\n", protectedQuestion, "\x04"}, console.ExitPending, "0 "},
		{[]string{"approve"}, []string{question, "y\n", secretQuestion, "d\n", "Why? ", "no\n"}, 0, "1 Denied"},
		{[]string{"approve", "--all"}, []string{"Approve all of this (", "y\n"}, 0, "3 Approved"},
		{[]string{"approve", "--fingerprint", "protected"}, []string{protectedQuestion, "y\n"}, 0, "1 still waits"},
		{[]string{"deny", "--reason", "no"}, []string{denyQuestion, "y\n"}, 0, "1 for good as tester: no"},
		{[]string{"deny"}, []string{denyQuestion, "n\n"}, console.ExitPending, "0 "},
		{[]string{"run", "TX"}, []string{question, "y\n", secretQuestion, "n\n", protectedQuestion, "y\n"}, console.ExitPending, "2 still waits"},
	} {
		s, _ := asked(t)
		id := s.proposes("add them", workflow)
		for i := range c.args {
			c.args[i] = strings.Replace(c.args[i], "TX", id, 1)
		}
		p := newTerminal(t)
		ended := p.starts(s.repo, nil, c.args...)
		p.answers(c.answers...)
		code, out := ended()
		n, want, _ := strings.Cut(c.said, " ")
		if got := fmt.Sprint(s.decisions(id)); code != c.exit || got != n || !strings.Contains(out, want) {
			t.Errorf("%v %q: exit %d, want %d; %s decisions, want %s\n%s\n%s", c.args, c.answers, code, c.exit, got, c.said, out, p.text())
		}
		shown := p.text()
		for _, reason := range []string{"config.env:2", ".github/workflows/x.yml (built-in /.github/workflows)", "somebody with this shell did", "docs/decisions.md", ", masked in 1 place", `"add them"  by agent`} {
			if c.args[0] == "approve" && slices.Contains(c.answers, protectedQuestion) && c.args[len(c.args)-1] != "protected" && !strings.Contains(strings.ReplaceAll(shown, "\r\n… ", ""), reason) {
				t.Errorf("%v: %q is not shown\n%s", c.args, reason, shown)
			}
		}
		if first, diff := strings.Index(shown, "risks, the most dangerous first"), strings.Index(shown, "+on: push"); first < 0 || diff < first || strings.Contains(shown, token) {
			t.Errorf("%v: the risks do not come first, or the secret is shown\n%s", c.args, shown)
		}
	}
}

// Above the question it says where hunks were found, and that a file has changed since the review.
func TestFoundAndMovedAreTold(t *testing.T) {
	long(t)
	t.Parallel()
	s, file := asked(t)
	s.write("list.txt", "zero\n1\n2\n3\n4\n5\n6\n")
	s.commit()
	check(t, os.WriteFile(file, []byte("diff --git a/list.txt b/list.txt\n--- a/list.txt\n+++ b/list.txt\n@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n"), 0o644))
	told := func(said string, args ...string) {
		p := newTerminal(t)
		ended := p.starts(s.repo, nil, args...)
		p.answers("later:", "\n")
		if code, out := ended(); code != console.ExitPending || !strings.Contains(p.text(), said) {
			t.Errorf("%v: exit %d, and %q is not said\n%s\n%s", args, code, said, p.text(), out)
		}
	}
	told("found list.txt 1 line lower than the patch says", "run", "--patch", file)
	s.write("list.txt", "zero\n1\n2\n3\n4\n5\n6\n7\n")
	s.commit()
	told("list.txt changed meanwhile", "approve")
}

// Nobody is asked for what would not count: who proposed a secret cannot excuse it.
func TestNotAskedWhatDoesNotCount(t *testing.T) {
	t.Parallel()
	s, file := asked(t)
	check(t, os.WriteFile(file, []byte(addition("config.env", teststand.Samples()[1].Text()+"\n")), 0o644))
	s.run(0, "review", "--patch", file)
	id := s.newest()
	p := newTerminal(t)
	ended := p.starts(s.repo, nil, "approve")
	p.awaits(question)
	p.types("y\n")
	if code, out := ended(); code != 0 || s.decisions(id) != 1 || strings.Contains(p.text(), secretQuestion) || !strings.Contains(p.text(), "Not asked: your approval of what looks like a secret") {
		t.Errorf("exit %d\n%s\n%s", code, out, p.text())
	}
	for args, want := range map[string]int{"approve": console.ExitRefused, "run": console.ExitPending} {
		p = newTerminal(t)
		code, _ := p.starts(s.repo, nil, args)()
		p.awaits("does not count: its author is the proposer")
		if code != want || strings.Contains(p.text(), "[y]es") {
			t.Errorf("%s: exit %d\n%s", args, code, p.text())
		}
	}
	if s.decisions(id) != 1 {
		t.Error("a decision was recorded that does not count")
	}
}

// Where nothing is to be decided nobody is asked, no key signs, and nothing is recorded,
// whatever is to be decided a moment later.
func TestNothingToDecide(t *testing.T) {
	t.Parallel()
	s, _ := asked(t)
	id := s.proposes("a change", addition("new.txt", "x\n"))
	s.run(0, "approve", id)
	for _, args := range [][]string{{"approve", id}, {"approve", id, "--sign", "--key", filepath.Join(s.dir, "no-key")}} {
		p := newTerminal(t)
		code, out := p.starts(s.repo, nil, args...)()
		if code != 0 || s.decisions(id) != 1 {
			t.Fatalf("%v: exit %d\n%s\n%s", args, code, out, p.text())
		}
		p.awaits("nothing recorded: this was decided already")
		if strings.Contains(p.text(), "[y]es") {
			t.Errorf("%v: asked\n%s", args, p.text())
		}
	}
}

// T06 An answer is about what was shown: another transaction, another Policy or another
// one beside it by then, and nothing is recorded; it is shown again.
func TestT06AnswerIsAboutWhatWasShown(t *testing.T) {
	long(t)
	t.Parallel()
	first, second := addition("read.txt", "read\n"), addition("unread.txt", "unread\n")
	for _, args := range [][]string{{"approve"}, {"deny", "--reason", "no"}, {"run"}} {
		ask := question
		if args[0] == "deny" {
			ask = denyQuestion
		}
		s, _ := asked(t)
		a := s.proposes("A", first)
		p := newTerminal(t)
		ended := p.starts(s.repo, nil, args...)
		p.awaits(ask)
		s.run(0, "close", a)
		b := s.proposes("B", second)
		p.types("y\n")
		p.awaits("nothing was recorded; this is how it is now")
		p.awaits("+unread")
		p.awaits(lookup.ShortID(b))
		for strings.Count(p.text(), ask) < 2 {
			<-p.more
		}
		p.types("\x04")
		if code, _ := ended(); code != console.ExitPending || s.decisions(a)+s.decisions(b) != 0 {
			t.Errorf("%v: exit %d\n%s", args, code, p.text())
		}

		p = newTerminal(t) // of two it is neither
		ended = p.starts(s.repo, nil, args...)
		p.awaits(ask)
		c := s.proposes("C", first)
		p.types("y\n")
		if code, _ := ended(); code != console.ExitRefused || s.decisions(b)+s.decisions(c) != 0 {
			t.Errorf("%v with another beside it: exit %d\n%s", args, code, p.text())
		}

		p = newTerminal(t) // named, and closed meanwhile
		ended = p.starts(s.repo, nil, append([]string{args[0], b}, args[1:]...)...)
		p.awaits(ask)
		s.run(0, "close", b)
		p.types("y\n")
		if code, _ := ended(); code != console.ExitRefused || s.decisions(b) != 0 {
			t.Errorf("%v of one that was closed: exit %d\n%s", args, code, p.text())
		}

		p = newTerminal(t) // another Policy
		ended = p.starts(s.repo, nil, append([]string{args[0], c}, args[1:]...)...)
		p.awaits(ask)
		s.write(".github/countersign.yml", "version: 1\nprotected:\n  - paths: [read.txt]\n")
		s.commit()
		p.types("y\n")
		p.awaits("this is how it is now")
		if args[0] == "deny" {
			for strings.Count(p.text(), ask) < 2 {
				<-p.more
			}
		} else {
			for strings.Count(p.text(), ask) < 2 {
				<-p.more
			}
			p.types("n\n")
			p.awaits("read.txt (protected[0] read.txt)")
			p.awaits(protectedQuestion)
		}
		if s.decisions(c) != 0 {
			t.Errorf("%v: a decision on another Policy was recorded", args)
		}
		p.types("y\n")
		ended()
		if s.decisions(c) != 1 {
			t.Errorf("%v: what was shown again is not decided\n%s", args, p.text())
		}
	}
}

// T69 What a person read is closed and another patch is put in its place: approve shows
// that one and asks about it, and without a terminal it is refused.
func TestT69BaitAndSwitch(t *testing.T) {
	t.Parallel()
	s, _ := asked(t)
	a := s.proposes("A, which is read", addition("new.txt", "read\n"))
	if out, _ := s.run(0, "diff"); !strings.Contains(out, "+read\n") {
		t.Fatal(out)
	}
	s.run(0, "close", a)
	b := s.proposes("B, which nobody read", addition("new.txt", "unread\n"))
	if _, errs := s.run(console.ExitRefused, "approve", "--reason", "read it"); !strings.Contains(errs, `"B, which nobody read"`) {
		t.Errorf("a script is told\n%s", errs)
	}
	for _, args := range [][]string{{"approve", "--reason", "read it"}, {"approve", "--all"}, {"run"}} {
		p := newTerminal(t)
		ended := p.starts(s.repo, nil, args...)
		p.awaits(question)
		shown := p.text()
		at := 0
		for _, want := range []string{lookup.ShortID(b), `  "B, which nobody read"  by agent`, "+unread", question} {
			i := strings.Index(shown[at:], want)
			if i < 0 {
				t.Fatalf("%v: %q is not shown in its place\n%s", args, want, shown)
			}
			at += i
		}
		p.types("\n")
		if code, _ := ended(); code != console.ExitPending || s.decisions(a)+s.decisions(b) != 0 {
			t.Errorf("%v: exit %d\n%s", args, code, p.text())
		}
	}
}

// What the Policy runs before anything is written is listed before the question.
func TestCommandsAreShown(t *testing.T) {
	t.Parallel()
	s, file := asked(t)
	s.write(".github/countersign.yml", "version: 1\ncommands:\n  run: [\"make everything\"]\n")
	s.commit()
	s.run(0, "review", "--patch", file)
	p := newTerminal(t)
	ended := p.starts(s.repo, nil, "approve")
	p.awaits(question)
	p.types("\n")
	ended()
	before, _, _ := strings.Cut(p.text(), question)
	if !strings.Contains(before, "These commands run first, in a sandbox, before anything is written:\r\n  make everything\r\n") {
		t.Error(p.text())
	}
}

// The first screen of 80 × 24 shows every kind of risk of a patch of forty files.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	s, _ := asked(t)
	var patch strings.Builder
	for i := range 30 {
		patch.WriteString(addition(fmt.Sprintf("src/some/where/deep/in/it/and/deeper/file%02d.txt", i), "zero\u200bwidth\n"))
	}
	for i := range 4 {
		patch.WriteString(strings.Replace(addition(fmt.Sprintf("bin/tool%d.sh", i), "#!/bin/sh\n"), "100644", "100755", 1))
	}
	patch.WriteString(addition(".github/workflows/release.yml", "on: push\n") + addition("Makefile", "all:\n") + addition("long.txt", strings.Repeat("y", 600)+"\n"))
	patch.WriteString(addition("bidi.txt", "a\u202eb\n") + addition("same.go", "var р\u0430ssword = 1\n") + addition("gen.go", "// Code generated by x. DO NOT EDIT.\n"))
	s.proposes("forty files", patch.String())
	p := newTerminal(t)
	check(t, unix.IoctlSetWinsize(int(p.inner.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	ended := p.starts(s.repo, map[string]string{"NO_COLOR": "1"}, "approve")
	p.answers(question, "\n", protectedQuestion, "\n")
	ended()
	rows := screenRows(p.text(), 1000)
	screen := strings.Join(rows[:23], "\n")
	for _, want := range []string{"forty files", "becomes executable", "bin/tool3.sh", "steers automation", "hidden characters", "release.yml", "Makefile", "long.txt", "look-alike letters", "gen.go"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not on the first screen:\n%s", want, screen)
		}
	}
	for i, row := range rows {
		if n := len([]rune(row)); n > 80 && !strings.HasPrefix(row, "countersign: ") {
			t.Errorf("row %d has %d columns: %s", i, n, row)
		}
	}
}

// T71 A patch that imitates the prompt, however long its lines, begins no row of the
// screen with what it says.
func TestT71PromptImitated(t *testing.T) {
	s, _ := asked(t)
	fake := question + " [y]es"
	text := fake + "\n" + strings.Repeat(" ", 79) + fake + "\n" + strings.Repeat("\t", 10) + fake + "\n" + strings.Repeat("é漢", 20) + strings.Repeat(" ", 19) + fake + "\n\r" + fake + "\n\x1b[2J" + fake + "\n"
	s.proposes(fake+strings.Repeat(" ", 200)+fake, addition("a.txt", text))
	p := newTerminal(t)
	check(t, unix.IoctlSetWinsize(int(p.inner.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	ended := p.starts(s.repo, map[string]string{"NO_COLOR": "1"}, "approve")
	p.awaits("[d]eny")
	p.types("\n")
	ended()
	begins := 0
	for i, row := range screenRows(p.text(), 80) {
		if strings.HasPrefix(strings.TrimLeft(row, " "), question) && i > 0 {
			begins++
		}
	}
	if begins != 1 || strings.Contains(p.text(), "\x1b") {
		t.Errorf("%d rows begin with the question\n%s", begins, p.text())
	}
}

// screenRows are the rows of a terminal that was shown a text, as they are left: a line of
// progress, which a machine that is busy shows and a fast one does not, is wiped again.
func screenRows(text string, columns int) []string {
	var rows []string
	for line := range strings.SplitSeq(text, "\r\n") {
		var row []rune
		at := 0 // columns; a rune that is wide has one place in the row
		place := 0
		for _, r := range line {
			wide := 1
			if r > 0x1100 {
				wide = 2
			}
			if r == '\t' {
				r, wide = ' ', 8-at%8
			}
			if r == '\r' {
				at, place = 0, 0
				continue
			}
			if at+wide > columns {
				rows = append(rows, strings.TrimRight(string(row), " "))
				row, at, place = nil, 0, 0
			}
			if place < len(row) {
				row[place] = r
			} else {
				row = append(row, r)
			}
			at, place = at+wide, place+1
		}
		rows = append(rows, strings.TrimRight(string(row), " "))
	}
	return rows
}

// T84 The page goes through the person's pager, and is printed where that is missing or
// fails. A pager that the repository names is not run.
func TestT84Pager(t *testing.T) {
	t.Parallel()
	s, _ := asked(t)
	s.proposes("a change", addition("new.txt", "shown\n"))
	through := filepath.Join(s.dir, "paged")
	pager := filepath.Join(s.dir, "pager.sh")
	check(t, teststand.WriteFile(pager, []byte("#!/bin/sh\necho paged > "+through+"; cat\n")))
	home := filepath.Join(s.dir, "home")
	check(t, os.MkdirAll(home, 0o755))
	check(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\tpager = "+pager+"\n"), 0o644))
	for _, c := range []struct {
		name  string
		env   map[string]string
		paged bool
	}{
		{"GIT_PAGER", map[string]string{"GIT_PAGER": pager, "PAGER": "false"}, true},
		{"the user's core.pager", map[string]string{"HOME": home, "PAGER": "false"}, true},
		{"PAGER", map[string]string{"PAGER": pager}, true},
		{"missing", map[string]string{"PAGER": filepath.Join(s.dir, "no-such-pager")}, false},
		{"failing", map[string]string{"PAGER": "cat > /dev/null; exit 3"}, false},
		{"none", map[string]string{"PAGER": "cat"}, false},
		{"one that reads nothing", map[string]string{"PAGER": "echo shown; true"}, false},
		{"in a dumb terminal", map[string]string{"PAGER": pager, "TERM": "dumb"}, false},
		{"COUNTERSIGN_PAGER", map[string]string{"COUNTERSIGN_PAGER": pager, "GIT_PAGER": "false"}, true},
		{"the repository's core.pager", map[string]string{"PAGER": "cat"}, false},
	} {
		if strings.HasPrefix(c.name, "the repository") {
			s.git("config", "core.pager", pager)
			s.git("config", "countersign.pager", pager)
		}
		if c.env["TERM"] == "" {
			c.env["TERM"] = "xterm"
		}
		_ = os.Remove(through)
		p := newTerminal(t)
		ended := p.starts(s.repo, c.env, "approve")
		p.awaits(question)
		p.types("\n")
		if code, _ := ended(); code != console.ExitPending || !strings.Contains(p.text(), "shown") {
			t.Errorf("%s: exit %d\n%s", c.name, code, p.text())
		}
		if _, err := os.Stat(through); (err == nil) != c.paged {
			t.Errorf("%s: through the pager: %v", c.name, err)
		}
	}
}

// TestPagerLeft: who leaves the pager before its end is told how far it was read at most, and who has seen
// all is not.
func TestPagerLeft(t *testing.T) {
	long(t)
	t.Parallel()
	s, _ := asked(t)
	s.proposes("a change", addition("long.txt", strings.Repeat("a line\n", 200)))
	for _, c := range []struct{ pager, want string }{
		{"head -n 16", "At most 16 of 2"}, {"head -n 16 > /dev/null", "At most 16 of 2"}, {"true", "At most 0 of 2"}, {"cat", ""}, {"cat -", ""}, {"head -n 16; exit 3", ""},
	} {
		p := newTerminal(t)
		ended := p.starts(s.repo, map[string]string{"PAGER": c.pager, "TERM": "xterm"}, "approve")
		p.answers(question, "\n")
		if code, _ := ended(); code != console.ExitPending {
			t.Errorf("%s: exit %d", c.pager, code)
		}
		if told := strings.Contains(p.text(), "lines seen"); told != (c.want != "") || !strings.Contains(p.text(), c.want) {
			t.Errorf("%s: want %q\n%s", c.pager, c.want, p.text())
		}
	}
}

// TestPagerSmallReads: a pager that reads little at a time, as that of busybox does, shows long lines to their end.
func TestPagerSmallReads(t *testing.T) {
	long(t)
	t.Parallel()
	s, _ := asked(t)
	s.proposes("a change", addition("long.txt", strings.Repeat("long ", 1000)+"to its end\n"))
	for _, pager := range []string{"dd bs=1024 status=none", "dd bs=256 status=none"} {
		p := newTerminal(t)
		check(t, unix.IoctlSetWinsize(int(p.inner.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 9999}))
		ended := p.starts(s.repo, map[string]string{"PAGER": pager, "TERM": "xterm"}, "approve")
		p.answers(question, "\n")
		if code, _ := ended(); code != console.ExitPending || !strings.Contains(p.text(), "to its end") || strings.Count(p.text(), "long ") < 1000 || strings.Contains(p.text(), "lines seen") {
			t.Errorf("%s: exit %d\n%s", pager, code, p.text())
		}
	}
}

// T84 What is longer than the screen goes through the pager, unless --no-pager says
// otherwise; what fits does not.
func TestT84LongOutput(t *testing.T) {
	long(t)
	t.Parallel()
	s, _ := asked(t)
	short := s.proposes("a change", addition("new.txt", "shown\n"))
	long := s.proposes("another", addition("long.txt", strings.Repeat("a line\n", 100)))
	through := filepath.Join(s.dir, "paged")
	pager := filepath.Join(s.dir, "pager.sh")
	check(t, teststand.WriteFile(pager, []byte("#!/bin/sh\necho paged > "+through+"; cat\n")))
	home := filepath.Join(s.dir, "home")
	check(t, os.MkdirAll(home, 0o755))
	check(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[countersign]\n\tpager = "+pager+"\n[core]\n\tpager = false\n"), 0o644))
	s.git("config", "countersign.pager", "false")
	for _, c := range []struct {
		args  []string
		paged bool
		rows  uint16
		shows string
	}{
		{[]string{"diff", long}, true, 24, ""}, {[]string{"diff", short}, false, 24, ""}, {[]string{"diff", long, "--no-pager"}, false, 24, ""}, {[]string{"diff", long, "--json"}, false, 24, ""},
		{[]string{"log", long}, false, 24, ""}, {[]string{"list"}, false, 24, ""}, {[]string{"close", short}, false, 24, ""},
		{[]string{"list"}, false, 3, "1 older: countersign -C " + s.repo + " list --all\r\n"}, {[]string{"list", "--all"}, true, 3, lookup.ShortID(short) + "  closed "},
	} {
		_ = os.Remove(through)
		p := newTerminal(t)
		check(t, unix.IoctlSetWinsize(int(p.inner.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: c.rows, Col: 80}))
		app := console.Process{
			Args: append([]string{"-C", s.repo}, c.args...), Stdin: p.inner, Stdout: p.inner, Stderr: p.inner, Now: time.Now, Entropy: rand.Reader,
			Getenv: func(name string) string {
				return map[string]string{"HOME": home, "TERM": "xterm", "GIT_PAGER": "false"}[name]
			},
		}
		if code := Main(app); code != 0 {
			t.Errorf("%v: exit code %d\n%s", c.args, code, p.text())
		}
		if _, err := os.Stat(through); (err == nil) != c.paged {
			t.Errorf("%v: through the pager: %v", c.args, err)
		}
		p.awaits(c.shows)
	}
}

// With --json, or with stdin elsewhere, nobody is asked: a decision needs a name.
func TestNobodyIsAsked(t *testing.T) {
	t.Parallel()
	s, _ := asked(t)
	id := s.proposes("a change", addition("new.txt", "x\n"))
	for _, word := range []string{"approve", "deny"} {
		p := newTerminal(t)
		p.types("y\n")
		if code, _ := p.starts(s.repo, nil, word, "--json")(); code != console.ExitRefused || strings.Contains(p.text(), question) {
			t.Errorf("%s --json: exit %d\n%s", word, code, p.text())
		}
		p = newTerminal(t)
		cmd := s.command(word)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("y\n"), p.inner, p.inner
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != console.ExitRefused {
			t.Errorf("%s, stdin elsewhere: %v", word, err)
		}
		p = newTerminal(t)
		p.cannotEmpty = true
		if code, _ := p.starts(s.repo, nil, word)(); code != console.ExitRefused || strings.Contains(p.text(), question) {
			t.Errorf("%s where the input cannot be emptied: exit %d\n%s", word, code, p.text())
		}
	}
	if s.decisions(id) != 0 {
		t.Error("something was decided")
	}
	p := newTerminal(t)
	if code, _ := p.starts(s.repo, nil, "approve", id, "--json")(); code != 0 || s.decisions(id) != 1 {
		t.Errorf("named, with --json: exit %d\n%s", code, p.text())
	}
}

// What a queue names nobody named: where the person can be asked no more, none of it is decided.
func TestQueueIsNotAsked(t *testing.T) {
	t.Parallel()
	s, _ := asked(t)
	ids := []string{s.proposes("a change", addition("new.txt", "x\n")), s.proposes("another", addition("other.txt", "x\n"))}
	p := newTerminal(t)
	p.cannotEmpty = true
	if code, _ := p.starts(s.repo, nil, "approve")(); code != console.ExitRefused {
		t.Errorf("exit %d\n%s", code, p.text())
	}
	if n := s.decisions(ids[0]) + s.decisions(ids[1]); n != 0 {
		t.Errorf("%d were decided\n%s", n, p.text())
	}
}

// Several patches in a file are asked about in a terminal: as one change, or one transaction
// each. No answer is the refusal that names the option.
func TestAskSeveral(t *testing.T) {
	long(t)
	t.Parallel()
	s, _ := asked(t)
	mails := ""
	for i := range 2 {
		name := fmt.Sprintf("new%d.txt", i)
		mails += fmt.Sprintf("From %040d Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nSubject: [PATCH %d/2] add %s\n\n---\n%s", i, i+1, name, addition(name, "x\n"))
	}
	file := filepath.Join(s.dir, "mails.patch")
	check(t, os.WriteFile(file, []byte(mails), 0o644))
	for _, c := range []struct {
		command, answer string
		exit, open      int
	}{
		{"review", "\n", console.ExitRefused, 0}, {"review", "x\n", console.ExitRefused, 0}, {"run", "n\n", console.ExitRefused, 0}, {"run", "o\n", console.ExitRefused, 0},
		{"review", "e\n", 0, 2}, {"review", "one\n", 0, 3}, {"run", "y\n", console.ExitPending, 3},
	} {
		p := newTerminal(t)
		ended := p.starts(s.repo, map[string]string{"PAGER": "cat"}, c.command, "--patch", file)
		p.awaits("mails.patch holds 2 patches. ")
		p.types(c.answer)
		if c.exit == console.ExitPending {
			p.awaits(question)
			p.types("\n")
		}
		code, _ := ended()
		if ids, _ := s.run(0, "list", "--open", "-q"); code != c.exit || strings.Count(ids, "\n") != c.open {
			t.Errorf("%s, answered %q: exit %d, open are\n%s%s", c.command, c.answer, code, ids, p.text())
		}
		if c.exit == console.ExitRefused {
			p.awaits(" --as one  # or --as each")
		}
	}
}

// TestFirstSyncAsks: nothing of a ledger goes to a remote that has none before somebody at the terminal says so.
func TestFirstSyncAsks(t *testing.T) {
	t.Parallel()
	s, _ := asked(t)
	s.proposes("first", addition("new.txt", "x\n"))
	hub := filepath.Join(s.dir, "hub.git")
	s.git("init", "-q", "--bare", hub)
	s.git("remote", "add", "origin", hub)
	for _, c := range []struct {
		answer string
		exit   int
	}{{"n\n", console.ExitRefused}, {"\n", console.ExitRefused}, {"\x04", console.ExitRefused}, {"y\n", 0}} {
		p := newTerminal(t)
		ended := p.starts(s.repo, map[string]string{"NO_COLOR": "1"}, "sync")
		p.awaits("readable by all readers of the repository: 1 patch, 1 e-mail address. Go on? [y/N] ")
		p.types(c.answer)
		code, out := ended()
		if sent := s.git("ls-remote", hub) != ""; code != c.exit || sent != (c.exit == 0) {
			t.Errorf("%q: exit %d, sent %v\n%s\n%s", c.answer, code, sent, out, p.text())
		}
	}
}

// T10 Who takes a part of a change has it proposed in its place, by all who proposed it and themselves, is shown its exact bytes, and approves
// these. The rest is not applied, the record says what was taken of which, and who signs for others is asked once more.
func TestAskPart(t *testing.T) {
	long(t)
	t.Parallel()
	s, _ := asked(t)
	var before, after strings.Builder
	for i := range 40 {
		fmt.Fprintf(&before, "line %d\n", i)
		if i == 2 || i == 20 || i == 38 {
			fmt.Fprintf(&after, "LINE %d\n", i)
			continue
		}
		fmt.Fprintf(&after, "line %d\n", i)
	}
	s.write("list.txt", before.String())
	s.commit()
	s.write("list.txt", after.String())
	s.write("new.txt", "new\n")
	s.git("add", "-N", "new.txt")
	diff := s.git("diff")
	s.git("rm", "-q", "--cached", "new.txt")
	s.git("checkout", "-q", "list.txt")
	check(t, os.Remove(filepath.Join(s.repo, "new.txt")))
	id := s.proposes("three and one", diff)
	const take, confirm = "Take this (", "Propose these "
	p := newTerminal(t)
	ended := p.starts(s.repo, nil, "run", id)
	seen := 0
	answers := func(pairs ...string) { // each to what is shown behind the last
		t.Helper()
		for i := 0; i < len(pairs); i += 2 {
			at := strings.Index(p.text()[seen:], pairs[i])
			for ; at < 0; at = strings.Index(p.text()[seen:], pairs[i]) {
				select {
				case <-p.more:
				case <-time.After(time.Minute):
					t.Fatalf("%q was not shown in\n%s", pairs[i], p.text()[seen:])
				}
			}
			seen += at + len(pairs[i])
			p.types(pairs[i+1])
		}
	}
	answers(question, "p\n", take+"1 of 4", "q\n", question, "p\n") // to leave decides nothing
	answers(take+"1 of 4", "a\n", take+"4 of 4", "y\n", "That is all of it", "", question, "p\n")
	answers(take+"1 of 4", "y\n", take+"2 of 4", "?\n", take+"2 of 4", "n\n", take+"3 of 4", "d\n", take+"4 of 4", "n\n", confirm+"1 of 4", "n\n", question, "p\n")
	if n := s.decisions(id); s.newest() != id || n != 0 {
		t.Errorf("something was proposed, or %d decisions were recorded, without an answer", n)
	}
	answers(take+"1 of 4", "y\n", take+"2 of 4", "n\n", take+"3 of 4", "y\n", take+"4 of 4", "n\n", confirm+"2 of 4", "y\n")
	answers("takes the place of", "", question, "y\n")
	code, out := ended()
	part := s.newest()
	shown := p.text()[strings.LastIndex(p.text(), "takes the place of"):]
	has := func(text string) bool { return strings.Contains(shown, text) }
	if code != 0 || part == id || has("LINE 20") || has("new.txt") || !has("LINE 38") || !has("(part of "+id+")") {
		t.Errorf("exit code %d: %s\n%s", code, out, shown)
	}
	want := strings.NewReplacer("LINE 20", "line 20").Replace(after.String())
	if _, err := os.Stat(filepath.Join(s.repo, "new.txt")); err == nil || s.read("list.txt") != want {
		t.Errorf("list.txt is\n%s", s.read("list.txt"))
	}
	if log, _ := s.run(0, "log", id); !strings.Contains(log, "list.txt hunk 1+3 of 3") || s.decisions(id) != 0 {
		t.Errorf("the record of what was proposed first does not say what was taken:\n%s", log)
	}
	if show, _ := s.run(0, "show", part, "--json"); !strings.Contains(show, "agent@localhost") || !strings.Contains(show, `"proposer":{"id":"local:tester"`) {
		t.Errorf("not all who proposed it are its proposers:\n%s", show)
	}
	s.run(0, "audit")
}
