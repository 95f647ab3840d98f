// Package terminal is the terminal of the person who runs the program: whether one is
// there, its size, its input and clipboard, and the pager.
package terminal

import (
	"encoding/base64"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"golang.org/x/term"
)

// A Borrowed terminal is not closed by whoever has it.
type Borrowed struct{ io.Writer }

// Close leaves the terminal open.
func (Borrowed) Close() error { return nil }

// Is reports whether a reader or writer is a terminal.
func Is(v any) bool { return Of(v) != nil }

// Of is the terminal that a reader or writer is, nil for none.
func Of(v any) *os.File {
	if b, ok := v.(Borrowed); ok {
		v = b.Writer
	}
	if f, ok := v.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Size is how many columns and rows a writer's terminal has, or those of the oldest
// ones, 80 and 24, where nobody knows.
func Size(w io.Writer) (columns, rows int) {
	if f := Of(w); f != nil {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}

// Page shows a text on a terminal through a pager, a command line, with the variables
// that git sets for one.
func Page(text, pager string, on *os.File, getenv func(string) string) error {
	cmd := exec.Command("sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), on, on
	cmd.Env = os.Environ()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} {
		if getenv(name) == "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	// Ctrl-C is the pager's to take. It ends this program again once that is gone.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	defer signal.Stop(interrupted)
	return cmd.Run()
}

// Copying is the code that offers a text to a terminal's clipboard (xterm's OSC 52),
// which works through ssh as well. A terminal that does not know it shows nothing.
func Copying(text string) string {
	return "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"
}
