package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// An hour is what somebody types at a terminal, and how long the terminal stayed
// as it was meanwhile.
type hour struct {
	playground
	program string // "" for this test as the program
	server  *teststand.Server
	delay   time.Duration // of the server's answers; 0 is until the terminal says that a command waits
	typed   []typed
}

// typed is one command: what it is, how long it took, and the longest time in which
// the terminal showed nothing new.
type typed struct {
	command      string
	took, silent time.Duration
}

// TestScriptedHour: in an ordinary hour of commands, with a server that does not answer
// before, whatever waits for the server says on the terminal that it works.
// COUNTERSIGN_HOUR=1 types a hundred commands, beside a ledger of 2,000
// transactions, and prints how long each was silent; a path there is the program to try.
func TestScriptedHour(t *testing.T) {
	long(t, "COUNTERSIGN_HOUR")
	t.Parallel()
	rounds, program := 1, os.Getenv("COUNTERSIGN_HOUR")
	h := &hour{server: teststand.NewServer(t, teststand.Options{}), playground: newSandbox(t, map[string]string{"greet.txt": "hello\n", ".github/countersign.yml": "approvals: {required: 1}\n"})}
	if program != "" {
		rounds, h.delay = 5, 150*time.Millisecond
	}
	if filepath.IsAbs(program) {
		h.program = program
	}
	h.server.Bare("site.git")
	h.git("init", "-q", "-b", "main")
	h.git("config", "user.email", "tester")
	h.commit()
	h.git("remote", "add", "origin", h.server.URL("site.git"))
	h.git("push", "-q", "origin", "main")
	if program != "" {
		h.fills(2_000)
	}
	h.run(0, "sync") // so that the first of the hour is no first
	for i := range rounds {
		h.round(i)
	}
	if program == "" {
		return
	}
	slices.SortStableFunc(h.typed, func(a, b typed) int { return cmp.Compare(b.silent, a.silent) })
	over := 0
	for _, c := range h.typed {
		fmt.Printf("%8s silent, %8s in all: %s\n", c.silent.Round(time.Millisecond), c.took.Round(time.Millisecond), c.command)
		if c.silent > 100*time.Millisecond {
			over++
		}
	}
	fmt.Printf("hour: %d commands, %d of them silent for more than 100 ms, at most %s\n", len(h.typed), over, h.typed[0].silent.Round(time.Millisecond))
}

// fills the ledger with transactions.
func (h *hour) fills(n int) {
	h.t.Helper()
	repo, err := gitstore.Open(h.repo)
	check(h.t, err)
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	check(h.t, err)
	entries, err := storetest.LivesOf(1, slices.Repeat([]storetest.Life{storetest.Whole}, n)...)
	check(h.t, err)
	_, err = l.Append(h.t.Context(), "", entries...)
	check(h.t, err)
}

// round is the work on one patch, and on one that nobody wants.
func (h *hour) round(i int) {
	patch := func(text string) string {
		file := filepath.Join(h.dir, text+".patch")
		check(h.t, os.WriteFile(file, []byte(addition(fmt.Sprint(text, i, ".txt"), text+"\n")), 0o644))
		return file
	}
	wanted, unwanted := patch("wanted"), patch("unwanted")
	h.types(0, false, "policy check")
	h.types(0, false, "policy explain --patch "+wanted)
	h.types(0, false, "review --dry-run --patch "+wanted)
	waits := regexp.MustCompile(`[0-9A-Z]{7} waits for approval`)
	id, _, _ := strings.Cut(waits.FindString(h.types(0, true, "review --push --patch "+wanted)), " ")
	h.types(0, true, "sync")
	for _, look := range []string{"diff", "show", "list", "log"} {
		h.types(0, false, look)
	}
	h.types(console.ExitPending, false, "gate "+id)
	h.types(0, true, "approve --push "+id, question, "y\n")
	h.types(0, true, "sync")
	h.types(0, false, "apply "+id)
	h.types(0, false, "validate "+id)
	h.types(0, true, "sync")
	not, _, _ := strings.Cut(waits.FindString(h.types(0, false, "review --patch "+unwanted)), " ")
	h.types(0, false, "deny "+not+" --reason no", denyQuestion, "y\n")
	h.types(0, false, "audit")
	h.types(0, false, "export --out "+filepath.Join(h.dir, fmt.Sprint("out", i))+" "+id)
	h.types(0, true, "sync")
	h.types(0, false, "list --all")
	h.commit()
}

// types runs the program at a terminal, answers what it asks, and returns what the
// terminal showed. One that waits for the server must say meanwhile that it works.
func (h *hour) types(exit int, waits bool, line string, answers ...string) string {
	h.t.Helper()
	p := newTerminal(h.t)
	cmd := h.command(strings.Fields(line)...)
	cmd.Path = cmp.Or(h.program, cmd.Path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.inner, p.inner, p.inner
	cmd.Env = append(cmd.Env, "TERM=xterm", "PAGER=cat", "NO_COLOR=1", "CI=")
	verb, _, _ := strings.Cut(line, " ")
	says := func() bool { return strings.Contains(p.text(), "\r"+verb+": ") }
	h.server.SetFault(func(int, *http.Request) teststand.Fault {
		for end := time.Now().Add(time.Minute); h.delay == 0 && waits && !says() && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		return teststand.Fault{Kind: teststand.Slow, Delay: h.delay}
	})
	began := time.Now()
	check(h.t, cmd.Start())
	p.answers(answers...)
	err := cmd.Wait()
	ended := time.Now()
	_, _ = p.inner.WriteString("\x00") // after all that was printed
	p.awaits("\x00")
	if code := cmd.ProcessState.ExitCode(); code != exit {
		h.t.Fatalf("%s: exit code %d, not %d: %v\n%s", line, code, exit, err, p.text())
	}
	if waits && !says() {
		h.t.Errorf("%s waited for the server and said nothing of it\n%q", line, p.text())
	}
	silent, last := time.Duration(0), began
	for _, at := range append(p.times(), ended) {
		if at.After(ended) {
			at = ended
		}
		silent, last = max(silent, at.Sub(last)), at
	}
	h.typed = append(h.typed, typed{strings.ReplaceAll(line, h.dir, ""), ended.Sub(began), silent})
	return p.text()
}
