package console

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/term"
)

// File is the file that a reader or writer is, nil for none.
func File(v any) *os.File {
	switch v := v.(type) {
	case Borrowed:
		return File(v.Writer)
	case *over:
		return File(v.w)
	case *os.File:
		return v
	}
	return nil
}

// normal turns off what a program may have left on in a terminal, and what would show the next text otherwise than it is:
// the alternate screen, mouse, focus, paste and keyboard reports, character sets, a scrolled region, lines that are cut, colours
// (DECSTR and xterm's control sequences). It moves no cursor and wipes nothing. DECSTR alone does not do: tmux, Linux's
// console and others do not know it.
const normal = "\x1b\\\x1b[?1047l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[=0u" +
	"\x1b>\x0f\x1b(B\x1b%G\x1b[!p\x1b[0m\x1b[?25h\x1b[4l\x1b[20l\x1b[?7h\x1b7\x1b[?69l\x1b[r\x1b8\x1b]R\x1b\\\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\"

// askSize asks where the cursor is in the lower right corner (CPR): the program can have told the kernel another size.
const askSize = "\x1b7\x1b[9999;9999H\x1b[6n\x1b8"

// answerTime is how long a terminal may take to answer, before what it was asked earlier is taken for answered as well.
const answerTime = 2 * time.Second

// Lend leaves the terminal to a program that nobody trusts, until the function that it returns is called: Ctrl-C and Ctrl-\ are
// the program's. That function takes the terminal back: it is in the foreground, set as before, has its size and shows text as it is, and what the program
// had the terminal answer, as if it were typed, has been read (T70).
func Lend(input, output *os.File) (takeBack func()) {
	keys := make(chan os.Signal, 1)
	signal.Notify(keys, os.Interrupt, syscall.SIGQUIT)
	if TerminalOf(input) == nil {
		return func() { signal.Stop(keys) }
	}
	was, _ := term.GetState(int(input.Fd()))
	columns, rows, _ := term.GetSize(int(input.Fd()))
	return func() {
		defer signal.Stop(keys)
		toForeground(input, output)
		if was != nil {
			defer func() { _ = term.Restore(int(input.Fd()), was) }()
		}
		if TerminalOf(output) == nil {
			return
		}
		raw, err := term.MakeRaw(int(input.Fd()))
		if err != nil {
			return
		}
		defer func() { _ = term.Restore(int(input.Fd()), raw) }()
		// A terminal answers in the order in which it was asked, and repeats the number of the mode that it is asked about
		// (DECRQM). The program did not know this one: behind the answer nothing older comes.
		number, err := rand.Int(rand.Reader, big.NewInt(1e8))
		if err != nil {
			return
		}
		mode := 1e8 + number.Int64()
		if _, err := fmt.Fprintf(output, "%s%s\x1b[?%d$p", normal, askSize, mode); err == nil {
			came := readAnswers(input, fmt.Sprintf("\x1b[?%d;", mode), answerTime)
			if all := corner.FindAllStringSubmatch(came, -1); all != nil { // the last one is ours
				rows, _ = strconv.Atoi(all[len(all)-1][1])
				columns, _ = strconv.Atoi(all[len(all)-1][2])
			}
			setSize(input, columns, rows)
		}
	}
}

// corner is the answer to askSize.
var corner = regexp.MustCompile(`\x1b\[([1-9][0-9]{0,3});([1-9][0-9]{0,3})R`)
