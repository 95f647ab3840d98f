package main

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

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/report"
)

// propose reads the input that the flags name and records it.
func (a *App) propose(ctx context.Context, r *pipeline.Runner, f reviewFlags) (review.Reviewed, error) {
	f, err := a.readSuggestion(ctx, f)
	if err != nil {
		return review.Reviewed{}, err
	}
	in, name, err := a.proposed(ctx, r, f)
	if err != nil {
		return review.Reviewed{}, err
	}
	if f.pr != 0 && !f.prDiff {
		if in, err = pull.ChangeFor(ctx, r, in, f.pr); err != nil {
			return review.Reviewed{}, err
		}
		// Whose token it is proposes it: the forge knows nobody else by an id.
		if r.Actor, err = a.client.Viewer(ctx); err != nil {
			return review.Reviewed{}, err
		}
	}
	in.Target = f.to
	done, err := review.Run(ctx, r, in, f.dryRun)
	a.learn(done.Learnt)
	a.transaction = done.ID
	if err == nil && !f.dryRun && in.Kind == input.KindPatch && f.patch != "-" && f.from == "" && done.InputSHA256 == "" {
		a.noteFile(done.ID, f.patch, in.Raw)
	}
	var unfit *review.UnfitError
	switch {
	case errors.As(err, &unfit):
		return done, &unfitError{f, inFile(name, err), unfit}
	case err != nil || f.dryRun:
		return done, inFile(name, err)
	}
	return done, a.sayKnown(done, f)
}

// sayKnown says that a patch was proposed before, and once in a repository's life where Git shows the ledger.
func (a *App) sayKnown(done review.Reviewed, f reviewFlags) error {
	kept := ""
	if f.summary != "" {
		kept = ", and its summary stays as it is"
	}
	switch {
	case done.Again == review.AgainRecorded:
		a.say("this patch is known already: that it was proposed once more was recorded%s", kept)
	case done.Again == review.AgainFull:
		a.say("this patch is known already: nothing was recorded, as %d further proposals of it are", ledger.MaxAgain)
	case done.Known:
		a.say("this patch is known already: nothing was recorded%s", kept)
	case !a.flags.push:
		latest, more, err := lookup.Latest(done.Ledger.Tree, 1, func(ledger.Transaction) bool { return true })
		if err == nil && len(latest) == 1 && !more {
			a.say("git log --all shows the ledger as well, from now on; without it: git log --exclude=%s --all", a.flags.ledgerRef)
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
	words := []string{"countersign", command, report.ShellQuote(f.patch)}
	for _, f := range []struct{ name, value string }{{"--from", f.from}, {"--as", as}, {"--summary", f.summary}} {
		if f.value != "" {
			words = append(words, f.name, report.ShellQuote(f.value))
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
		return "git log -3 -- " + report.ShellQuote(e.why.Patch.Path)
	case e.given.again != "":
		return "countersign run " + e.given.again + " --to branch"
	case e.why.Below != "":
		words = append(words, "--below", report.ShellQuote(e.why.Below))
	case e.why.Fits != "" && e.given.pr == 0:
		words = append(words, "--base", e.why.Fits[:12], "--to", "branch")
	default:
		return e.why.Patch.Hint()
	}
	return strings.Join(words, " ")
}

// lines are what stands below the error: both sides of what differs, and what the diff fits. clean takes the
// secrets out of a line.
func (e *unfitError) lines(clean func(string) string) (title string, below []string) {
	title = e.Error()
	if m := e.why.Differs(); m != nil {
		title = fmt.Sprintf("%s: %s has changed since this patch was made: at line %d", inputName(cmp.Or(e.given.patch, e.given.again)), patch.Quote(e.why.Patch.Path), m.Line)
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
func (a *App) writeBundle(ctx context.Context, r *pipeline.Runner, f reviewFlags) error {
	f, err := a.readSuggestion(ctx, f)
	if err != nil {
		return err
	}
	in, name, err := a.proposed(ctx, r, f)
	if err != nil {
		return err
	}
	r.Worktree = nil // a bot leaves its changes there, and nobody is shown them
	done, err := review.Run(ctx, r, in, true)
	a.unchanged = errors.Is(err, patch.ErrUnchanged)
	a.learn(done.Learnt)
	if err != nil {
		return inFile(name, err)
	}
	trace, err := input.WriteTrace(in.Trace)
	if err != nil {
		return err
	}
	line, err := canon.Line(pull.NewBundle(in, done.Patchset.Bytes(), trace))
	if err != nil {
		return err
	}
	if err := writeFile(a.path(f.bundleOut), line); err != nil {
		return err
	}
	a.bundled = f.bundleOut
	a.say("%s holds the proposal; nothing was recorded", f.bundleOut)
	return a.showDryRun(done)
}

// proposed is the one input that the flags name.
func (a *App) proposed(ctx context.Context, r *pipeline.Runner, f reviewFlags) (in input.Change, name string, err error) {
	switch given := f.given(); {
	case f.from != "" && f.patch == "":
		return in, "", &cli.UsageError{Message: "--from says what a file is, and none is given", Hint: "name it behind the format, or - for stdin"}
	case len(given) == 0:
		return in, "", &cli.UsageError{Message: "no patch given", Hint: "name one with --patch FILE, or --patch - for stdin"}
	case len(given) > 1:
		return in, "", &cli.UsageError{Message: strings.Join(given, " and ") + " were given", Hint: "give one of them"}
	}
	asked, err := f.asked()
	if err != nil {
		return in, "", err
	}
	rules, err := r.Rules(ctx, "")
	if err != nil {
		return in, "", err
	}
	if in, name, err = a.input(ctx, r, f, rules.Policy); err == nil {
		in, err = a.placed(ctx, in, f)
	}
	in.RequestedBy = append(in.RequestedBy, asked...)
	if err == nil && f.trace != "" {
		name = f.trace
		in.Trace, in.TraceFormat, err = a.readTrace(name, rules.Policy, r.Secrets.Text)
	}
	return in, name, inFile(name, err)
}

// placed is a change on the commit, and below the directory, that the flags name.
func (a *App) placed(ctx context.Context, in input.Change, f reviewFlags) (_ input.Change, err error) {
	if f.base != "" {
		if in.Kind == input.KindWorktree || f.pr > 0 || f.suggestion != "" || f.to != policy.ToBranch && f.to != policy.ToRef {
			return in, &cli.UsageError{Message: "--base is for a change that goes to a branch or a ref: the working tree is at HEAD, and a pull request at its head", Hint: "--to branch"}
		}
		if in.Base, err = codeCommit(ctx, a.repo, f.base); err != nil {
			return in, err
		}
	}
	if f.below != "" {
		if dir := filepath.ToSlash(filepath.Clean(f.below)); !in.IsDiff() {
			err = &cli.UsageError{Message: "--below is for the names in a diff", Hint: "leave them out"}
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
func (a *App) readTrace(name string, p policy.Policy, clean func(string) string) (steps []any, format string, err error) {
	raw, err := a.readLimited(name, max(maxSession, p.Limits.Bytes))
	if err != nil {
		return nil, "", err
	}
	steps, format, err = input.ReadTrace(raw, clean)
	if unread := input.Unread(steps); unread != "" {
		a.say("%s: %s", inputName(name), report.Clean(unread))
	}
	if have := int64(len(raw)); have > p.Limits.Bytes && format == "" {
		return nil, "", &pipeline.LimitError{What: "bytes", Have: have, Max: p.Limits.Bytes}
	}
	if err != nil {
		return nil, "", err
	}
	if format != "" {
		a.say("%s: read as a trace of %s", inputName(name), format)
	}
	written, err := input.WriteTrace(steps)
	if have := int64(len(written)); err == nil && have > p.Limits.Bytes {
		err = &pipeline.LimitError{What: "bytes", Have: have, Max: p.Limits.Bytes}
	}
	return steps, format, err
}

// readLimited reads a file that may have so many bytes. What is longer is cut off, and
// what a parser would say of it is beside the point.
func (a *App) readLimited(name string, limit int64) ([]byte, error) {
	raw, err := a.readInput(name, limit)
	return limited(raw, limit, err)
}

func limited(raw []byte, limit int64, err error) ([]byte, error) {
	if have := int64(len(raw)); err == nil && have > limit {
		return nil, &pipeline.LimitError{What: "bytes", Have: have, Max: limit}
	}
	return raw, err
}

// readInside reads a file of a directory that somebody else filled: a link there may lead
// to any file, and a pipe never ends.
func (a *App) readInside(dir, name string, limit int64) ([]byte, error) {
	full := filepath.Join(dir, name)
	root, err := os.OpenRoot(a.path(dir))
	if err != nil {
		return nil, fileError(full, err)
	}
	defer root.Close()
	there, err := root.Lstat(name)
	if err != nil {
		return nil, fileError(full, err)
	}
	if !there.Mode().IsRegular() {
		return nil, &cli.ExitError{Code: cli.ExitRefused, Err: fmt.Errorf("%s: not a regular file", full)}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have taken its place
	if err != nil {
		return nil, fileError(full, err)
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(there, opened) {
		return nil, fileError(full, cmp.Or(err, errors.New("it is another file than it was before")))
	}
	raw, err := readUpTo(f, full, limit)
	return limited(raw, limit, err)
}

// give returns a Runner that has a patch which the ledger has only without its
// secrets.
func (a *App) give(ctx context.Context, r *pipeline.Runner, args []string, file string) (*pipeline.Runner, error) {
	if file == "" {
		return r, nil
	}
	snap, id, err := a.find(ctx, r, args, false)
	if err != nil {
		return r, err
	}
	rules, err := r.Rules(ctx, "")
	if err != nil {
		return r, err
	}
	raw, err := a.readLimited(file, rules.Policy.Limits.Bytes)
	if err != nil {
		return r, inFile(file, err)
	}
	if pieces, err := input.Pieces(raw); err == nil && len(pieces) == 1 {
		raw = pieces[0].Diff
	}
	r, err = r.Give(ctx, snap, id, raw)
	return r, inFile(file, err)
}

// noteFile keeps in this clone which file a patch was in that the ledger has only without its secrets, as sha256sum
// writes it. The hash tells no more of them than the patch_id does.
func (a *App) noteFile(id, name string, raw []byte) {
	file, err := filepath.Abs(a.path(name))
	noted := filepath.Join(a.repo.StateDir(), "files", report.ShortID(id))
	if err == nil && os.MkdirAll(filepath.Dir(noted), 0o777) == nil {
		_ = os.WriteFile(noted, []byte(canon.Hex(raw)+"  "+file+"\n"), 0o600) // without it people name the file themselves
	}
}

var fileToGive = lazyregexp.New(`([0-9A-Z]{7}) --patch FILE\b`)

// withFile is a command line with the file that noteFile noted, as long as that is as it was.
func (a *App) withFile(line string) string {
	return fileToGive().ReplaceAllStringFunc(line, func(found string) string {
		id, _, _ := strings.Cut(found, " ")
		noted, err := os.ReadFile(filepath.Join(a.repo.StateDir(), "files", id))
		sum, file, _ := strings.Cut(strings.TrimSuffix(string(noted), "\n"), "  ")
		if err != nil || !a.isFile(file) {
			return found
		}
		if raw, err := os.ReadFile(file); err != nil || canon.Hex(raw) != sum {
			return found
		}
		return id + " --patch " + report.ShellQuote(file)
	})
}

// givePatch adds the flag for give.
func givePatch(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "patch", "p", "", "the patch itself, where the ledger has it without its secrets: the Git diff that was proposed, `FILE` or -")
}

// input reads one of the forms of contract section 4. name is what an error
// about it is prefixed with.
func (a *App) input(ctx context.Context, r *pipeline.Runner, f reviewFlags, p policy.Policy) (in input.Change, name string, err error) {
	switch {
	case f.prDiff:
		in, err = pull.OwnDiff(ctx, r, f.pr, f.summary)
		return in, "", err
	case f.suggestion != "":
		in, err = a.suggested(ctx, r, f)
		return in, f.comment.URL, err
	case f.worktree:
		in, err = review.Worktree(ctx, r, f.summary)
		return in, "working tree", err
	case f.recipe != "":
		if f.recipe != "remove-todo" {
			return in, "", &cli.UsageError{Message: fmt.Sprintf("no recipe is called %+q", f.recipe), Hint: "the only recipe is: --recipe remove-todo --needle TEXT"}
		}
		in, err = input.Recipe(f.needle, f.files, f.summary)
		return in, "recipe", err
	case f.pack != "":
		name = filepath.Join(f.pack, "patch.json")
	default:
		name = cmp.Or(f.patch, f.proposal)
	}
	if f.from == input.FormatGHAW || f.from == input.FormatAuto && a.isDir(name) {
		in, err = a.agentsOutput(ctx, r, f, name, p)
		if err == nil && f.from == input.FormatAuto {
			a.say("%s: read as %s", inputName(name), in.Format)
		}
		return in, name, err
	}
	limit := p.Limits.Bytes
	if f.from == input.FormatClaudeAction { // of a session's messages the change is a small part
		limit = max(maxSession, limit)
	}
	var raw []byte
	if f.pack != "" {
		raw, err = a.readInside(f.pack, "patch.json", limit)
	} else {
		raw, err = a.readLimited(name, limit)
	}
	if err != nil {
		return in, name, err
	}
	switch {
	case f.pack != "":
		in, err = input.Pack(raw, f.summary)
	case f.proposal != "":
		in, err = a.proposalInput(p, raw, f)
	case f.from != "":
		root, rootErr := a.repo.Worktree()
		if rootErr != nil {
			return in, name, rootErr
		}
		in, err = input.From(f.from, raw, filepath.ToSlash(root), f.as == "one", f.summary)
		if err == nil && f.from == input.FormatAuto {
			a.say("%s: read as %s", inputName(name), in.Format)
		}
	default:
		in, err = input.One(raw, f.as == "one", f.summary)
	}
	return in, name, err
}

// isFile reports whether a word of the command line names a file.
func (a *App) isFile(name string) bool {
	info, err := os.Stat(a.path(name))
	return err == nil && info.Mode().IsRegular()
}

// takeFile is the arguments without a file that is named where a transaction could be: that is the
// patch that is proposed. A transaction that is called so goes first.
func (a *App) takeFile(ctx context.Context, f *reviewFlags, args []string) ([]string, error) {
	if len(args) != 1 || len(f.given()) > 0 || !a.isFile(args[0]) {
		return args, nil
	}
	r, err := a.open()
	if err != nil {
		return args, err
	}
	switch _, id, err := r.Find(ctx, args[0], false); {
	case isNone(err):
		f.patch = args[0]
		return nil, nil
	case err == nil:
		a.say("%s is taken for transaction %s, and there is a file of that name: --patch FILE proposes it", report.Clean(args[0]), id)
	}
	return args, nil
}

// isNone reports whether an error says that no transaction has a name.
func isNone(err error) bool {
	return errors.Is(err, lookup.ErrNotFound) || errors.Is(err, lookup.ErrNoTransactions)
}

// fileNamed is the error of a file that is named where a command or a transaction is.
func (a *App) fileNamed(name string) error {
	return &cli.UsageError{Message: report.Clean(name) + " is a file", Hint: a.again("run", report.ShellQuote(name))}
}

// isDir reports whether a file is a directory.
func (a *App) isDir(name string) bool {
	info, err := os.Stat(a.path(name))
	return err == nil && info.IsDir()
}

// agentsOutput reads what an agent of gh-aw left in a directory, and says what else it asked for.
func (a *App) agentsOutput(ctx context.Context, r *pipeline.Runner, f reviewFlags, dir string, p policy.Policy) (in input.Change, err error) {
	output, err := a.readInside(dir, input.GHAWOutput, p.Limits.Bytes)
	if err != nil {
		return in, err
	}
	asked, err := input.ReadGHAW(output)
	if len(asked.Rest) > 0 {
		a.say("not done here, though the agent asked for it: %s", report.Clean(strings.Join(slices.Compact(slices.Sorted(slices.Values(asked.Rest))), ", ")))
	}
	if err != nil {
		return in, err
	}
	entries, err := os.ReadDir(a.path(dir))
	if err != nil {
		return in, fileError(dir, err)
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
		if diff, err = a.readInside(dir, diffName, p.Limits.Bytes); err != nil {
			return in, err
		}
	}
	var commits *input.Commits
	if bundleName != "" {
		raw, err := a.readInside(dir, bundleName, p.Limits.Bytes)
		if err != nil {
			return in, err
		}
		if commits, err = a.commits(ctx, r, f.pr, raw); err != nil {
			return in, err
		}
	}
	info := []byte("{}")
	if a.isFile(filepath.Join(dir, input.GHAWInfo)) {
		if info, err = a.readInside(dir, input.GHAWInfo, p.Limits.Bytes); err != nil {
			return in, err
		}
	}
	if in, err = asked.Change(diff, commits, f.summary); err == nil {
		in.RequestedBy, err = input.GHAWRequesters(info)
	}
	return in, err
}

// commits reads a bundle of new commits. One for a pull request is made on its head, which
// is fetched first.
func (a *App) commits(ctx context.Context, r *pipeline.Runner, pr int, raw []byte) (*input.Commits, error) {
	if pr > 0 && r.Forge != nil {
		if _, err := r.Code.Head(ctx, pr); err != nil {
			return nil, err
		}
	}
	offered, err := a.repo.ReadOffered(ctx, raw)
	if err != nil {
		return nil, err
	}
	return &input.Commits{Raw: raw, Base: offered.Base, Set: offered.Set, List: offered.Commits}, nil
}

func (a *App) proposalInput(p policy.Policy, raw []byte, f reviewFlags) (input.Change, error) {
	if f.bundle == "" {
		return input.Proposal(raw, nil, p, f.summary)
	}
	data, err := a.readInput(f.bundle, p.Limits.Bytes)
	if err != nil {
		return input.Change{}, err
	}
	bundle, err := canon.Parse(data)
	if err != nil {
		return input.Change{}, &patch.Error{Message: "bundle: " + err.Error()}
	}
	return input.Proposal(raw, bundle, p, f.summary)
}

// inFile puts an input's name before an error that is about the input itself.
func inFile(name string, err error) error {
	var limit *pipeline.LimitError
	var invalid *input.InvalidError
	var unfit *patch.Error
	var several *input.SeveralError
	if errors.As(err, &several) {
		several.File = name
	}
	if name == "" || several == nil && !as[*gitstore.BundleError](err) && !errors.As(err, &limit) && !errors.As(err, &invalid) && !errors.As(err, &unfit) {
		return err
	}
	return fmt.Errorf("%s: %w", inputName(name), err)
}

// inputName is how a file named on the command line is called in a message.
func inputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return report.Clean(name)
}
