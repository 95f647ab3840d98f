// Package checks runs commands on a copy of a tree and carries what came of
// them to where it counts. That may be another machine: commands run where
// there is nothing to steal, in a job without rights, and its Results are
// untrusted data for the job that has them.
//
// # The format countersign/results/1
//
// One canonical JSON object (RFC 8785) and an LF, at most 8 MiB in all. No key
// may be missing but signal, and none be added:
//
//	schema         "countersign/results/1"
//	tree           the Git tree that the commands ran on, 40 hex digits
//	policy_sha256  the Policy that names them: "sha256:" and 64 hex digits
//	executions     at most 1000 objects, of which no two have the same argv and shell:
//	  argv           1 to 1000 words, 64 KiB in all
//	  shell          whether sh was given argv's first word as a script
//	  required       whether its failure stops the change
//	  exit_code      0 to 255; -1 where the command could not be run
//	  signal         what ended it, such as "killed"; left out where nothing did
//	  timed_out      whether that was for its time
//	  duration_ms    milliseconds
//	  stdout, stderr         at most 64 KiB of text each; of more, the beginning and the end
//	                         are kept, and a line "… 123 bytes cut …" stands between
//	  stdout_bytes, stderr_bytes  bytes printed in all
//	  error          why it could not be run, else ""
//	  protection     what the sandbox had in force: mode, landlock (the ABI's version, 0 for
//	                 none), namespaces, seccomp, network_filter
//
// Such as, in one line:
//
//	{"executions":[{"argv":["go","vet","./..."],"duration_ms":812,"error":"","exit_code":0,
//	"protection":{"landlock":5,"mode":"workspace-write","namespaces":["user","mnt","pid","net"],
//	"network_filter":false,"seccomp":true},"required":true,"shell":false,
//	"stderr":"","stderr_bytes":0,"stdout":"","stdout_bytes":0,"timed_out":false}],
//	"policy_sha256":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
//	"schema":"countersign/results/1","tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}
package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// Allowed returns the Policy's entry for what a Proposal asks to run, which is
// one line of text. The line is never taken apart: it must be an entry's words
// with single spaces between them, or a shell entry's script, to the byte. An
// entry with an empty word, or one that holds a space or a quote, has no such
// line, since another entry could have the same.
func Allowed(p policy.Policy, line string) (policy.Command, bool) {
	needsQuotes := func(word string) bool {
		return word == "" || strings.ContainsAny(word, `"'`+"`\\") || strings.ContainsFunc(word, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r)
		})
	}
	for _, c := range p.Commands.Allow {
		if !c.Shell && len(c.Argv) > 0 && !slices.ContainsFunc(c.Argv, needsQuotes) && strings.Join(c.Argv, " ") == line {
			return c, true
		}
	}
	for _, c := range p.Commands.Allow {
		if c.Shell && len(c.Argv) == 1 && line != "" && c.Argv[0] == line {
			return c, true
		}
	}
	return policy.Command{}, false
}

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
	return Execution{
		Argv: c.Argv, Shell: c.Shell, Required: c.Required,
		ExitCode: res.ExitCode, Signal: note(res.Signal), TimedOut: res.TimedOut, DurationMS: res.Duration.Milliseconds(),
		Stdout: w.shown(res.Stdout, res.StdoutTotal), Stderr: w.shown(res.Stderr, res.StderrTotal),
		StdoutBytes: res.StdoutTotal, StderrBytes: res.StderrTotal, Protection: protection(res.Protection),
	}, nil
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

// excerpt is what a command printed, as text of at most maxOutput bytes: bytes
// that are not UTF-8 become U+FFFD, and where it is too long, the middle becomes
// a line that counts what is missing. printed holds the first bytes of total;
// where it does not hold all, the end is not known, and only the beginning stays.
func excerpt(printed []byte, total int64) string {
	complete := total <= int64(len(printed))
	if text, used := head(printed, maxOutput); complete && used == len(printed) {
		return text
	}
	const room = maxOutput - 64 // beside the line between
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
