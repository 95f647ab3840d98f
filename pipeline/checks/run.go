package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/policy"
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
// A command that fails is an Execution, and so is one that cannot be started. A
// sandbox that is not available, or refuses all commands, is an error, as is a
// tree that cannot be copied and a command that is given twice; then there are
// no Executions. The copies are made in Scratch and removed again, whatever the
// command left there. No repository should be around Scratch: a program that
// looks for one upwards would find it.
func (w Workshop) Run(ctx context.Context, tree fs.FS, commands []policy.Check) ([]Execution, error) {
	_, err := sandbox.ParseMode(string(w.Box.Mode))
	if err == nil {
		err = distinct(commands)
	}
	if err != nil {
		return nil, fmt.Errorf("running the commands: %w", err)
	}
	if w.Box.Limits.Output <= 0 {
		w.Box.Limits.Output = keptOutput
	}
	out := make([]Execution, 0, len(commands))
	for _, c := range commands {
		e, err := w.runInCopy(ctx, tree, c)
		if err != nil {
			return nil, fmt.Errorf("running %s: %w", label(c.Argv), err)
		}
		out = append(out, e)
	}
	return out, nil
}

func (w Workshop) runInCopy(ctx context.Context, tree fs.FS, c policy.Check) (e Execution, err error) {
	dir, err := os.MkdirTemp(w.Scratch, "check-")
	if err != nil {
		return Execution{}, err
	}
	defer func() { err = errors.Join(err, sandbox.RemoveAll(dir)) }()
	if err := copyTree(ctx, tree, dir, copyLimits); err != nil {
		return Execution{}, err
	}
	res, err := w.Box.Run(ctx, dir, sandbox.Command{
		Argv: c.Argv, Shell: c.Shell, Timeout: time.Duration(c.Timeout), Network: c.Network, Env: c.Env,
	})
	if err != nil {
		return notRun(ctx, c, dir, err)
	}
	return w.execution(c, res), nil
}

// notRun tells a command that cannot be run from a sandbox that runs none.
func notRun(ctx context.Context, c policy.Check, dir string, err error) (Execution, error) {
	var unavailable *sandbox.UnavailableError
	if ctx.Err() != nil || errors.Is(err, sandbox.ErrReadOnly) || errors.As(err, &unavailable) {
		return Execution{}, err
	}
	return Execution{
		Argv: c.Argv, Shell: c.Shell, Required: c.Required, ExitCode: -1,
		Error: note(strings.ReplaceAll(err.Error(), dir, "the copy")), Protection: protection(sandbox.Protection{}),
	}, nil
}

func (w Workshop) execution(c policy.Check, r sandbox.Result) Execution {
	return Execution{
		Argv: c.Argv, Shell: c.Shell, Required: c.Required,
		ExitCode: r.ExitCode, Signal: note(r.Signal), TimedOut: r.TimedOut, DurationMS: r.Duration.Milliseconds(),
		Stdout: w.shown(r.Stdout, r.StdoutTotal), Stderr: w.shown(r.Stderr, r.StderrTotal),
		StdoutBytes: r.StdoutTotal, StderrBytes: r.StderrTotal, Protection: protection(r.Protection),
	}
}

// shown is the excerpt of what a command printed, without secrets.
func (w Workshop) shown(printed []byte, total int64) string {
	clean := []byte(w.Scrub(string(printed)))
	return excerpt(clean, total+int64(len(clean)-len(printed)))
}

// protection is p with a list of namespaces even where there are none.
func protection(p sandbox.Protection) sandbox.Protection {
	if p.Namespaces == nil {
		p.Namespaces = []string{}
	}
	return p
}

// note makes one line of at most maxNote bytes, all of which can be seen.
func note(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	s, _ = head([]byte(s), maxNote)
	return s
}
