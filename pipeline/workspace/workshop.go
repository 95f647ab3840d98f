package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// keptOutput is how much of a command's output is looked at to keep its end.
const keptOutput = 4 << 20

// A Workshop is where commands run. Box is the sandbox, Scratch a directory for
// the copies, and Scrub takes secrets out of what a command printed, before it is
// cut: half a secret is not found any more.
type Workshop struct {
	Box     sandbox.Sandbox
	Scratch string
	Scrub   func(string) string
}

// Run runs commands in the sandbox, one after the other and each in a copy of
// the tree of its own, so that none prepares the ground for the next. All of
// them are run, whatever came of those before.
//
// A command that fails is a checks.Execution, and so is one that cannot be started. A
// sandbox that is not available, or refuses all commands, is an error, as is a
// tree that cannot be copied and a command that is given twice; then there are
// no Executions. The copies are made in Scratch and removed again, whatever the
// command left there. No repository should be around Scratch: a program that
// looks for one upwards would find it.
func (w Workshop) Run(ctx context.Context, tree fs.FS, commands []policy.Check) ([]checks.Execution, error) {
	_, err := sandbox.ParseMode(string(w.Box.Mode))
	if err == nil {
		err = checks.Distinct(commands)
	}
	if err != nil {
		return nil, fmt.Errorf("running the commands: %w", err)
	}
	if w.Box.Limits.Output <= 0 {
		w.Box.Limits.Output = keptOutput
	}
	out := make([]checks.Execution, 0, len(commands))
	for _, c := range commands {
		e, err := w.runInCopy(ctx, tree, c)
		if err != nil {
			return nil, fmt.Errorf("running %s: %w", checks.Label(c.Argv), err)
		}
		out = append(out, e)
	}
	return out, nil
}

func (w Workshop) runInCopy(ctx context.Context, tree fs.FS, c policy.Check) (e checks.Execution, err error) {
	dir, err := os.MkdirTemp(w.Scratch, "check-")
	if err != nil {
		return checks.Execution{}, err
	}
	defer func() { err = errors.Join(err, sandbox.RemoveAll(dir)) }()
	if err := copyTree(ctx, tree, dir, copyLimits); err != nil {
		return checks.Execution{}, err
	}
	res, err := w.Box.Run(ctx, dir, sandbox.Command{
		Argv: c.Argv, Shell: c.Shell, Timeout: time.Duration(c.Timeout), Network: c.Network, Env: c.Env,
	})
	if err != nil {
		return notRun(ctx, c, dir, err)
	}
	return checks.Execution{
		Argv: c.Argv, Shell: c.Shell, Required: c.Required,
		ExitCode: res.ExitCode, Signal: note(res.Signal), TimedOut: res.TimedOut, DurationMS: res.Duration.Milliseconds(),
		Stdout: w.shown(res.Stdout, res.StdoutTotal), Stderr: w.shown(res.Stderr, res.StderrTotal),
		StdoutBytes: res.StdoutTotal, StderrBytes: res.StderrTotal, Protection: protection(res.Protection),
	}, nil
}

// notRun tells a command that cannot be run from a sandbox that runs none.
func notRun(ctx context.Context, c policy.Check, dir string, err error) (checks.Execution, error) {
	var unavailable *sandbox.UnavailableError
	if ctx.Err() != nil || errors.Is(err, sandbox.ErrReadOnly) || errors.As(err, &unavailable) {
		return checks.Execution{}, err
	}
	return checks.Execution{
		Argv: c.Argv, Shell: c.Shell, Required: c.Required, ExitCode: -1,
		Error: note(strings.ReplaceAll(err.Error(), dir, "the copy")), Protection: protection(sandbox.Protection{}),
	}, nil
}

// shown is the excerpt of what a command printed, without secrets.
func (w Workshop) shown(printed []byte, total int64) string {
	clean := []byte(w.Scrub(string(printed)))
	return excerpt(clean, total+int64(len(clean)-len(printed)))
}

// protection is p with a list of namespaces even where there are none.
func protection(p sandbox.Protection) checks.Protection {
	if p.Namespaces == nil {
		p.Namespaces = []string{}
	}
	return checks.Protection(p)
}

// note makes one line of at most checks.MaxNote bytes, all of which can be seen.
func note(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	s, _ = head([]byte(s), checks.MaxNote)
	return s
}

// excerpt is what a command printed, as text of at most checks.MaxOutput bytes: bytes
// that are not UTF-8 become U+FFFD, and where it is too long, the middle becomes
// a line that counts what is missing. printed holds the first bytes of total;
// where it does not hold all, the end is not known, and only the beginning stays.
func excerpt(printed []byte, total int64) string {
	complete := total <= int64(len(printed))
	if text, used := head(printed, checks.MaxOutput); complete && used == len(printed) {
		return text
	}
	const room = checks.MaxOutput - 64 // beside the line between
	var end string
	start, used := head(printed, room)
	if complete {
		start, used = head(printed, room/2)
		var last int
		end, last = tail(printed[used:], room/2)
		used += last
	}
	if !strings.HasSuffix(start, "\n") {
		start += "\n"
	}
	return fmt.Sprintf("%s… %d bytes cut …\n%s", start, total-int64(used), end)
}

// head is the beginning of b as text of at most room bytes, and how many bytes
// of b it stands for.
func head(b []byte, room int) (text string, used int) {
	var out strings.Builder
	for used < len(b) {
		r, size := utf8.DecodeRune(b[used:])
		if out.Len()+utf8.RuneLen(r) > room {
			break
		}
		out.WriteRune(r)
		used += size
	}
	return out.String(), used
}

// tail is head from the other end.
func tail(b []byte, room int) (text string, used int) {
	for used < len(b) {
		r, size := utf8.DecodeLastRune(b[:len(b)-used])
		if room -= utf8.RuneLen(r); room < 0 {
			break
		}
		used += size
	}
	text, _ = head(b[len(b)-used:], len(b)*utf8.UTFMax)
	return text, used
}
