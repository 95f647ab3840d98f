package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/report"
)

// propose reads the input that the flags name and records it.
func propose(ctx context.Context, s *session.Session, f reviewFlags) (review.Reviewed, error) {
	f, err := readSuggestion(ctx, s, f)
	if err != nil {
		return review.Reviewed{}, err
	}
	in, name, err := Proposed(ctx, s, f)
	if err != nil {
		return review.Reviewed{}, err
	}
	if f.pr != 0 && !f.prDiff {
		if in, err = pull.ChangeFor(ctx, s.Runner, in, f.pr); err != nil {
			return review.Reviewed{}, err
		}
		// Whose token it is proposes it: the forge knows nobody else by an id.
		if s.Runner.Actor, err = s.Client.Viewer(ctx); err != nil {
			return review.Reviewed{}, err
		}
	}
	in.Target = f.to
	done, err := review.Run(ctx, s.Runner, in, f.dryRun)
	s.Learn(done.Learnt)
	if err == nil && !f.dryRun && in.Kind == input.KindPatch && f.patch != "" && f.patch != "-" && f.from == "" && done.InputSHA256 == "" {
		noteFile(s, done.ID, f.patch, in.Raw)
	}
	var unfit *review.UnfitError
	switch {
	case errors.As(err, &unfit):
		return done, &unfitError{f, console.InFile(name, err), unfit}
	case err != nil || f.dryRun:
		return done, console.InFile(name, err)
	}
	return done, sayKnown(s, done, f)
}

// sayKnown says that a patch was proposed before, and once in a repository's life where Git shows the ledger.
func sayKnown(s *session.Session, done review.Reviewed, f reviewFlags) error {
	kept := ""
	if f.summary != "" {
		kept = ", and its summary stays as it is"
	}
	switch {
	case done.Again == review.AgainRecorded:
		s.Say("this patch is known already: that it was proposed once more was recorded%s", kept)
	case done.Again == review.AgainFull:
		s.Say("this patch is known already: nothing was recorded, as %d further proposals of it are", ledger.MaxAgain)
	case done.Known:
		s.Say("this patch is known already: nothing was recorded%s", kept)
	case !s.Flags.Push:
		latest, more, err := lookup.Latest(done.Ledger.Tree, 1, func(ledger.Transaction) bool { return true })
		if err == nil && len(latest) == 1 && !more {
			s.Say("git log --all shows the ledger as well, from now on; without it: git log --exclude=%s --all", s.Flags.LedgerRef)
		}
		return err
	}
	return nil
}

// An unfitError is a diff that does not fit, with the flags that proposed it.
type unfitError struct {
	given reviewFlags
	error
	why *review.UnfitError
}

func (e *unfitError) Unwrap() error { return e.error }

// words are a command about the same file, with what was said of it.
func (f reviewFlags) words(command, as string) []string {
	words := []string{"countersign", command, escape.ShellQuote(f.patch)}
	for _, f := range []struct{ name, value string }{{"--from", f.from}, {"--as", as}, {"--summary", f.summary}} {
		if f.value != "" {
			words = append(words, f.name, escape.ShellQuote(f.value))
		}
	}
	return words
}

// Hint is the command that takes the diff where it fits.
func (e *unfitError) Hint() string {
	words := e.given.words("run", e.given.as)
	switch {
	case e.why.Done && e.why.Since != "":
		return "git show " + e.why.Since[:min(12, len(e.why.Since))]
	case e.why.Done:
		return "git log -3 -- " + escape.ShellQuote(e.why.Patch.Path)
	case e.given.again != "":
		return "countersign run " + e.given.again + " --to branch"
	case e.why.Below != "":
		words = append(words, "--below", escape.ShellQuote(e.why.Below))
	case e.why.Fits != "" && e.given.pr == 0:
		words = append(words, "--base", e.why.Fits[:12], "--to", "branch")
	default:
		return e.why.Patch.Hint()
	}
	return strings.Join(words, " ")
}

// Lines are what stands below the error: both sides of what differs, and what the diff fits. clean takes the
// secrets out of a line.
func (e *unfitError) Lines(clean func(string) string) (title string, below []string) {
	title = e.Error()
	if m := e.why.Differs(); m != nil {
		title = fmt.Sprintf("%s: %s has changed since this patch was made: at line %d", console.InputName(cmp.Or(e.given.patch, e.given.again)), patch.Quote(e.why.Patch.Path), m.Line)
		for _, side := range []struct {
			who  string
			line []byte
		}{{"the patch expects  ", m.Wants}, {"the file has       ", m.Has}} {
			below = append(below, side.who+ledger.OneLine(clean(string(side.line)), 100))
		}
	}
	if e.why.Fits != "" {
		below = append(below, fmt.Sprintf("it fits %.7s, %s before", e.why.Fits, report.Counted(e.why.Back, "commit")))
	}
	return title, below
}

// writeBundle hands what is proposed to another job, and records nothing.
func writeBundle(ctx context.Context, s *session.Session, f reviewFlags) (out console.Outcome, err error) {
	if f, err = readSuggestion(ctx, s, f); err != nil {
		return out, err
	}
	in, name, err := Proposed(ctx, s, f)
	if err != nil {
		return out, err
	}
	s.Runner.Worktree = nil // a bot leaves its changes there, and nobody is shown them
	done, err := review.Run(ctx, s.Runner, in, true)
	out.Unchanged = errors.Is(err, patch.ErrUnchanged)
	s.Learn(done.Learnt)
	if err != nil {
		return out, console.InFile(name, err)
	}
	trace, err := input.WriteTrace(in.Trace)
	if err != nil {
		return out, err
	}
	line, err := canon.Line(pull.NewBundle(in, done.Patchset.Bytes(), trace))
	if err != nil {
		return out, err
	}
	if err := atomicfile.Write(s.Path(f.bundleOut), line); err != nil {
		return out, err
	}
	out.Bundle = f.bundleOut
	s.Say("%s holds the proposal; nothing was recorded", f.bundleOut)
	return out, showDryRun(s, done)
}

// Proposed is the one input that the flags name.
func Proposed(ctx context.Context, s *session.Session, f reviewFlags) (in input.Change, name string, err error) {
	switch given := f.given(); {
	case f.from != "" && f.patch == "":
		return in, "", &console.UsageError{Message: "--from says what a file is, and none is given", Hint: "name it behind the format, or - for stdin"}
	case len(given) == 0:
		return in, "", &console.UsageError{Message: "no patch given", Hint: "name one with --patch FILE, or --patch - for stdin"}
	case len(given) > 1:
		return in, "", &console.UsageError{Message: strings.Join(given, " and ") + " were given", Hint: "give one of them"}
	}
	asked, err := f.asked()
	if err != nil {
		return in, "", err
	}
	rules, err := s.Runner.Rules(ctx, "")
	if err != nil {
		return in, "", err
	}
	if in, name, err = readChange(ctx, s, f, rules.Policy); err == nil {
		in, err = placed(ctx, s, in, f)
	}
	in.RequestedBy = append(in.RequestedBy, asked...)
	if err == nil && f.trace != "" {
		name = f.trace
		in.Trace, in.TraceFormat, err = readTrace(s.Console, name, rules.Policy, s.Runner.Secrets.Text)
	}
	return in, name, console.InFile(name, err)
}

// placed is a change on the commit, and below the directory, that the flags name.
func placed(ctx context.Context, s *session.Session, in input.Change, f reviewFlags) (_ input.Change, err error) {
	if f.base != "" {
		if in.Kind == input.KindWorktree || f.pr > 0 || f.suggestion != "" || f.to != policy.ToBranch && f.to != policy.ToRef {
			return in, &console.UsageError{Message: "--base is for a change that goes to a branch or a ref: the working tree is at HEAD, and a pull request at its head", Hint: "--to branch"}
		}
		if in.Base, err = session.CodeCommit(ctx, s.Repo, f.base); err != nil {
			return in, err
		}
	}
	if f.below != "" {
		if dir := filepath.ToSlash(filepath.Clean(f.below)); !in.IsDiff() {
			err = &console.UsageError{Message: "--below is for the names in a diff", Hint: "leave them out"}
		} else if err = patch.CheckPath(dir); err == nil {
			in = in.Below(dir)
		}
	}
	return in, err
}

// maxSession is how many bytes of a session's log are read: it has much that no step has.
const maxSession = 64 << 20

// readTrace reads a trace that has as many bytes as the Policy allows, once it is steps,
// and says what it was read as. clean takes the secrets out of a text.
func readTrace(c *console.Console, name string, p policy.Policy, clean func(string) string) (steps []any, format string, err error) {
	raw, err := c.ReadLimited(name, max(maxSession, p.Limits.Bytes))
	if err != nil {
		return nil, "", err
	}
	steps, format, err = traceOf(raw, p, clean)
	if unread := input.Unread(steps); unread != "" {
		c.Say("%s: %s", console.InputName(name), report.Clean(unread))
	}
	if err == nil && format != "" {
		c.Say("%s: read as a trace of %s", console.InputName(name), format)
	}
	return steps, format, err
}

// traceOf is readTrace of what was read.
func traceOf(raw []byte, p policy.Policy, clean func(string) string) (steps []any, format string, err error) {
	steps, format, err = input.ReadTrace(raw, clean)
	if have := int64(len(raw)); have > p.Limits.Bytes && format == "" {
		return nil, "", &pipeline.LimitError{What: "bytes", Have: have, Max: p.Limits.Bytes}
	}
	if err != nil {
		return nil, "", err
	}
	written, err := input.WriteTrace(steps)
	if have := int64(len(written)); err == nil && have > p.Limits.Bytes {
		err = &pipeline.LimitError{What: "bytes", Have: have, Max: p.Limits.Bytes}
	}
	return steps, format, err
}

// readInside reads a file of a directory that somebody else filled: a link there may lead
// to any file, and a pipe never ends.
func readInside(c *console.Console, dir, name string, limit int64) ([]byte, error) {
	full := filepath.Join(dir, name)
	root, err := os.OpenRoot(c.Path(dir))
	if err != nil {
		return nil, console.FileError(full, err)
	}
	defer root.Close()
	there, err := root.Lstat(name)
	if err != nil {
		return nil, console.FileError(full, err)
	}
	if !there.Mode().IsRegular() {
		return nil, &console.ExitError{Code: console.ExitRefused, Err: fmt.Errorf("%s: not a regular file", full)}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have taken its place
	if err != nil {
		return nil, console.FileError(full, err)
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(there, opened) {
		return nil, console.FileError(full, cmp.Or(err, errors.New("it is another file than it was before")))
	}
	raw, err := console.ReadUpTo(f, full, limit)
	return console.Limited(raw, limit, err)
}

// noteFile keeps in this clone which file a patch was in that the ledger has only without its secrets, as sha256sum
// writes it. The hash tells no more of them than the patch_id does.
func noteFile(s *session.Session, id, name string, raw []byte) {
	file, err := filepath.Abs(s.Path(name))
	noted := filepath.Join(s.Repo.StateDir(), "files", lookup.ShortID(id))
	if err == nil && os.MkdirAll(filepath.Dir(noted), 0o777) == nil {
		_ = os.WriteFile(noted, []byte(canon.Hex(raw)+"  "+file+"\n"), 0o600) // without it people name the file themselves
	}
}

// readChange reads one of the forms of contract section 4. name is what an error
// about it is prefixed with.
func readChange(ctx context.Context, s *session.Session, f reviewFlags, p policy.Policy) (in input.Change, name string, err error) {
	switch {
	case f.made != nil:
		return *f.made, "", nil
	case f.prDiff:
		in, err = pull.OwnDiff(ctx, s.Runner, f.pr, f.summary)
		return in, "", err
	case f.suggestion != "":
		in, err = suggested(ctx, s, f)
		return in, f.comment.URL, err
	case f.worktree:
		in, err = review.Worktree(ctx, s.Runner, f.summary)
		return in, "working tree", err
	case f.recipe != "":
		if f.recipe != "remove-todo" {
			return in, "", &console.UsageError{Message: fmt.Sprintf("no recipe is called %+q", f.recipe), Hint: "the only recipe is: --recipe remove-todo --needle TEXT"}
		}
		in, err = input.Recipe(f.needle, f.files, f.summary)
		return in, "recipe", err
	case f.pack != "":
		name = filepath.Join(f.pack, "patch.json")
	default:
		name = cmp.Or(f.patch, f.proposal)
	}
	if f.from == input.FormatGHAW || f.from == input.FormatAuto && s.IsDir(name) {
		in, err = agentsOutput(ctx, s, f, name, p)
		if err == nil && f.from == input.FormatAuto {
			s.Say("%s: read as %s", console.InputName(name), in.Format)
		}
		return in, name, err
	}
	limit := p.Limits.Bytes
	if f.from == input.FormatClaudeAction { // of a session's messages the change is a small part
		limit = max(maxSession, limit)
	}
	var raw []byte
	if f.pack != "" {
		raw, err = readInside(s.Console, f.pack, "patch.json", limit)
	} else {
		raw, err = s.ReadLimited(name, limit)
	}
	if err != nil {
		return in, name, err
	}
	switch {
	case f.pack != "":
		in, err = input.Pack(raw, f.summary)
	case f.proposal != "":
		in, err = proposalInput(s.Console, p, raw, f)
	case f.from != "":
		in, err = input.From(f.from, raw, filepath.ToSlash(s.Repo.Worktree()), f.as == "one", f.summary)
		if err == nil && f.from == input.FormatAuto {
			s.Say("%s: read as %s", console.InputName(name), in.Format)
		}
	default:
		in, err = input.One(raw, f.as == "one", f.summary)
	}
	return in, name, err
}

// takeFile is the arguments without a file, a pipe, or "-" for the standard input, that is named where a transaction could be:
// that is the patch that is proposed. A transaction that is called so goes first.
func takeFile(ctx context.Context, s *session.Session, f *reviewFlags, args []string) []string {
	if len(args) != 1 || len(f.given()) > 0 {
		return args
	}
	if info, err := os.Stat(s.Path(args[0])); args[0] != "-" && (err != nil || info.IsDir()) {
		return args
	}
	switch _, id, err := s.Runner.Find(ctx, args[0], false); {
	case session.IsNone(err):
		f.patch = args[0]
		return nil
	case err == nil:
		s.Say("%s is taken for transaction %s, and there is a file of that name: --patch FILE proposes it", report.Clean(args[0]), id)
	}
	return args
}

// agentsOutput reads what an agent of gh-aw left in a directory, and says what else it asked for.
func agentsOutput(ctx context.Context, s *session.Session, f reviewFlags, dir string, p policy.Policy) (in input.Change, err error) {
	output, err := readInside(s.Console, dir, input.GHAWOutput, p.Limits.Bytes)
	if err != nil {
		return in, err
	}
	asked, err := input.ReadGHAW(output)
	if len(asked.Rest) > 0 {
		s.Say("not done here, though the agent asked for it: %s", report.Clean(strings.Join(slices.Compact(slices.Sorted(slices.Values(asked.Rest))), ", ")))
	}
	if err != nil {
		return in, err
	}
	entries, err := os.ReadDir(s.Path(dir))
	if err != nil {
		return in, console.FileError(dir, err)
	}
	var names []string
	for _, e := range entries {
		if input.IsGHAWFile(e.Name()) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	diffName, bundleName, err := asked.Files(names)
	if err != nil {
		return in, err
	}
	var diff []byte
	if diffName != "" {
		if diff, err = readInside(s.Console, dir, diffName, p.Limits.Bytes); err != nil {
			return in, err
		}
	}
	var commits *input.Commits
	if bundleName != "" {
		raw, err := readInside(s.Console, dir, bundleName, p.Limits.Bytes)
		if err != nil {
			return in, err
		}
		if commits, err = readCommits(ctx, s, f.pr, raw); err != nil {
			return in, err
		}
	}
	info := []byte("{}")
	if s.IsFile(filepath.Join(dir, input.GHAWInfo)) {
		if info, err = readInside(s.Console, dir, input.GHAWInfo, p.Limits.Bytes); err != nil {
			return in, err
		}
	}
	if in, err = asked.Change(diff, commits, f.summary); err == nil {
		in.RequestedBy, err = input.GHAWRequesters(info)
	}
	return in, err
}

// readCommits reads a bundle of new commits. One for a pull request is made on its head, which
// is fetched first.
func readCommits(ctx context.Context, s *session.Session, pr int, raw []byte) (*input.Commits, error) {
	if pr > 0 && s.Runner.Forge != nil {
		if _, err := s.Runner.Code.Head(ctx, pr); err != nil {
			return nil, err
		}
	}
	offered, err := s.Repo.ReadOffered(ctx, raw)
	if err != nil {
		return nil, err
	}
	return &input.Commits{Raw: raw, Base: offered.Base, Set: offered.Set, List: offered.Commits}, nil
}

func proposalInput(c *console.Console, p policy.Policy, raw []byte, f reviewFlags) (input.Change, error) {
	if f.bundle == "" {
		return input.Proposal(raw, nil, p, f.summary)
	}
	data, err := c.ReadInput(f.bundle, p.Limits.Bytes)
	if err != nil {
		return input.Change{}, err
	}
	bundle, err := canon.Parse(data)
	if err != nil {
		return input.Change{}, &patch.Error{Message: "bundle: " + err.Error()}
	}
	return input.Proposal(raw, bundle, p, f.summary)
}
