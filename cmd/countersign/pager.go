package main

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/secret"
)

// page shows a text to the person through their pager, or as it is where there is
// none or it fails. The pager is the one that git would take: GIT_PAGER, core.pager,
// PAGER, less; but never one that the repository's own configuration names (T84).
func (a *App) page(person io.Writer, text secret.Redacted) error {
	pager := strings.TrimSpace(cmp.Or(a.Getenv("GIT_PAGER"), a.pager, a.Getenv("PAGER"), "less"))
	terminal := terminalOf(person)
	dumb := a.Getenv("TERM") == "" || a.Getenv("TERM") == "dumb"
	if terminal == nil || dumb || pager == "" || pager == "cat" {
		return emit(person, text)
	}
	cmd := exec.Command("sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text.String()), terminal, terminal
	cmd.Env = os.Environ()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} { // as git sets them
		if a.Getenv(name) == "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	// Ctrl-C is the pager's to take. It ends this program again once that is gone.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	defer signal.Stop(interrupted)
	if err := cmd.Run(); err != nil {
		a.say("the pager %q did not show it: %s", pager, oneLine(err))
		return emit(person, text)
	}
	return nil
}

// terminalOf is the terminal that a writer is, nil for none.
func terminalOf(w io.Writer) *os.File {
	if n, ok := w.(nopCloser); ok {
		w = n.Writer
	}
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		return f
	}
	return nil
}
