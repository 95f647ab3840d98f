package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/terminal"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/state"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// say prints a remark for a person on stderr, in one line.
func (a *App) say(format string, args ...any) {
	if !a.flags.quiet {
		_ = emit(a.Stderr, a.redact("countersign: "+report.ShortIDs(report.Clean(fmt.Sprintf(format, args...)))+"\n"))
	}
}

// emit is the one place where the program writes to a person, or a log.
func emit(w io.Writer, text secret.Redacted) error {
	_, err := io.WriteString(w, text.String())
	return err
}

// redact takes secrets out of a text: those that the rules know by their form,
// and the tokens that this process was given.
func (a *App) redact(text string) secret.Redacted { return a.finder().Redact(text) }

func (a *App) finder() *secret.Finder {
	if a.secrets == nil {
		a.secrets = secret.Default().Knowing(a.tokens()...)
	}
	return a.secrets
}

// ours is what a stage knows of secrets: there is one kind of Finder here.
func ours(f redact.Finder) *secret.Finder { return f.(*secret.Finder) }

// learn takes over what a stage has learnt about secrets, before anything of it
// is printed.
func (a *App) learn(k pipeline.Known) {
	if k.Secrets != nil {
		a.secrets = ours(k.Secrets).Also(a.finder())
	}
}

// printJSON prints a document as canonical JSON. On a terminal, what does not
// show is written with JSON's own escapes (T71): the same document, in which
// nothing moves the cursor.
func (a *App) printJSON(doc any) error {
	if a.flags.fields != nil {
		var err error
		if doc, err = pick(doc, a.flags.fields); err != nil {
			return err
		}
	}
	line, err := a.redactJSON(doc)
	if err != nil {
		return err
	}
	if terminal.Is(a.Stdout) {
		line = line.Show(report.EscapeJSON)
	}
	return emit(a.Stdout, line)
}

// pick is a document with those of its members alone that are named or, where not all of them are
// its own and it has one list, that list with its elements so. What can be there and is not is left out.
func pick(doc any, names []string) (any, error) {
	raw, err := canon.Marshal(doc)
	if err != nil {
		return nil, err
	}
	parsed, err := canon.Parse(raw)
	whole, _ := parsed.(document)
	known, inner, elements := document{}, document{}, []any{}
	maps.Copy(known, whole)
	if t := reflect.TypeOf(doc); t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if f.Tag.Get("json") == "-" {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			known[name] = nil
		}
	}
	lists := slices.DeleteFunc(slices.Sorted(maps.Keys(whole)), func(name string) bool { _, is := whole[name].([]any); return !is })
	if len(lists) == 1 {
		elements = whole[lists[0]].([]any)
	}
	for _, e := range elements {
		e, _ := e.(document)
		maps.Copy(inner, e)
	}
	lacks := func(known document) bool {
		return slices.ContainsFunc(names, func(name string) bool { _, is := known[name]; return !is })
	}
	only := func(of any) document {
		kept, _ := of.(document)
		maps.DeleteFunc(kept, func(name string, _ any) bool { return !slices.Contains(names, name) })
		return kept
	}
	switch {
	case err != nil:
		return nil, err
	case !lacks(known):
		return only(whole), nil
	case len(lists) == 1 && (len(elements) == 0 || !lacks(inner)): // of an empty list nobody knows
		for i, e := range elements {
			elements[i] = only(e)
		}
		return document{lists[0]: elements}, nil
	}
	has := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	if len(inner) > 0 {
		has += "; each of its " + lists[0] + ": " + strings.Join(slices.Sorted(maps.Keys(inner)), ", ")
	}
	return nil, &cli.UsageError{Message: fmt.Sprintf("--json=%s: not all of these are members of the document", strings.Join(names, ",")), Hint: "the document has " + has}
}

// redactJSON is a document's canonical JSON and one LF. Its strings are looked
// at one by one, so that it stays a document, and its hashes stay hashes.
func (a *App) redactJSON(doc any) (secret.Redacted, error) {
	raw, err := canon.Marshal(doc)
	if err != nil {
		return secret.Redacted{}, err
	}
	clean, err := a.finder().RedactJSON(raw, func(key, value string) bool {
		return key == report.DiffKey || key == report.DiffBytesKey || writing.IsTyped(key, value)
	})
	return clean.Show(func(doc string) string { return doc + "\n" }), err
}

func (a *App) print(text string) error { return emit(a.Stdout, a.redact(text)) }

// giveBack prints what was given as it is, so that it still hashes to what it did.
func (a *App) giveBack(text string) error {
	_, err := io.WriteString(a.Stdout, text)
	return err
}

// A document is JSON to be.
type document = map[string]any

// result prints what a command came to: the document with --json, else the text.
func (a *App) result(doc any, text string) error {
	if a.flags.json {
		return a.printJSON(doc)
	}
	return a.print(text)
}

// style colours stdout when it is a terminal and NO_COLOR is not set
// (no-color.org), or as --color says.
func (a *App) style() report.Style {
	return report.Style{Colour: a.colours(a.Stdout), Zone: a.Now().Location(), Top: a.top()}
}

// top is the working tree's top directory as it is typed where the command was, "" for that directory itself.
func (a *App) top() string {
	if a.repo == nil {
		return ""
	}
	tree, _ := a.repo.Worktree() // "" of a bare one
	if tree == "" || filepath.IsAbs(cmp.Or(a.beside, a.flags.dir)) {
		return tree
	}
	here, err := filepath.Abs(a.from("."))
	for _, dir := range []*string{&here, &tree} {
		if real, realErr := filepath.EvalSymlinks(*dir); realErr == nil {
			*dir = real
		}
	}
	rel, relErr := filepath.Rel(here, tree)
	switch {
	case err != nil || relErr != nil:
		return tree
	case rel == ".":
		return ""
	}
	return rel
}

func (a *App) colours(w io.Writer) bool {
	if a.flags.color == "always" || a.flags.color == "never" {
		return a.flags.color == "always"
	}
	return terminal.Is(w) && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
}

// person returns where to ask a person a question: stderr, or the terminal
// itself when stderr goes elsewhere. nil means that nobody is there. The caller
// closes it.
func (a *App) person() io.WriteCloser {
	if a.flags.json || !terminal.Is(a.Stdin) {
		return nil
	}
	if terminal.Is(a.Stderr) {
		return terminal.Borrowed{Writer: a.Stderr}
	}
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return tty
}

// firstTime reports whether this clone is told something for the first time, which it then was.
func (a *App) firstTime(what string) bool {
	f, err := os.OpenFile(filepath.Join(a.repo.StateDir(), "told-"+what), os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		_ = f.Close()
	}
	return !errors.Is(err, os.ErrExist)
}

// somebody reports whether there is a person to ask.
func (a *App) somebody() bool {
	person := a.person()
	if person == nil {
		return false
	}
	return person.Close() == nil
}

// page shows a text to the person through their pager, or as it is where there is
// none or it fails. The pager is COUNTERSIGN_PAGER, countersign.pager, or the one that
// git would take: GIT_PAGER, core.pager, PAGER, less; but never one that the
// repository's own configuration names (T84). It returns how many lines were seen at most.
func (a *App) page(person io.Writer, text secret.Redacted) (seen int, err error) {
	pager := strings.TrimSpace(cmp.Or(a.Getenv("COUNTERSIGN_PAGER"), a.ownPager, a.Getenv("GIT_PAGER"), a.pager, a.Getenv("PAGER"), "less"))
	dumb := a.Getenv("TERM") == "" || a.Getenv("TERM") == "dumb"
	if a.flags.noPager || !terminal.Is(person) || dumb || pager == "" || pager == "cat" {
		return strings.Count(text.String(), "\n"), emit(person, text)
	}
	if seen, err = terminal.Page(text.String(), pager, person, a.Getenv); err != nil {
		a.say("the pager %q failed: %s", pager, oneLine(err))
		return strings.Count(text.String(), "\n"), emit(person, text)
	}
	return seen, nil
}

// long prints what is longer than the screen of a terminal through the pager.
func (a *App) long(text secret.Redacted) error {
	if _, rows := terminal.Size(a.Stdout); terminal.Is(a.Stdout) && strings.Count(text.String(), "\n") >= rows {
		_, err := a.page(a.Stdout, text)
		return err
	}
	return emit(a.Stdout, text)
}

// report describes a transaction as a stage left it.
func (a *App) report(ctx context.Context, g pipeline.Gated) (report.Report, error) {
	diff, err := g.Diff()
	if err != nil {
		return report.Report{}, err
	}
	risks, err := review.Risks(ctx, g)
	if err != nil {
		return report.Report{}, err
	}
	rep := report.New(g.Log(), diff)
	rep.Risks, rep.Offsets = &risks, g.Offsets()
	rep.Moved, _ = g.Moved(ctx) // of what is not here, as in a partial clone, nothing is told before it is applied
	came, err := g.Provenances()
	if err != nil {
		return report.Report{}, err
	}
	rep.Proposals = report.Proposals(came)
	rep.Verdict, rep.LedgerRef, rep.LedgerCommit = &g.Verdict, a.flags.ledgerRef, g.Ledger.Tip
	at, elsewhere := a.keptAt(g.Ledger.Tip)
	if elsewhere {
		rep.LedgerWeb = cmp.Or(a.linksOf(at).Web, at)
	}
	rep.State = state.Logged(g.Log(), g.Verdict.State)
	rep.Record = a.linksOf(at).Folder(g.Ledger.Tip, ledger.Dir(rep.TransactionID))
	return rep, nil
}

// keptAt is the address of the repository that is known to have a commit of the remote's ledger, "" for none, and
// whether that is another than the remote.
func (a *App) keptAt(tip string) (address string, elsewhere bool) {
	if a.pushedTo == nil {
		return "", false
	}
	remote := a.repo.Config.RemoteURL(a.flags.remote)
	address = a.pushedTo(remote, tip)
	return address, address != "" && address != remote
}

// reportRun is report with what a run came to.
func (a *App) reportRun(ctx context.Context, o pipeline.Outcome) (report.Report, error) {
	rep, err := a.report(ctx, o.Gated)
	if done := o.Applied; done != nil && done.Result.Outcome != "" {
		rep.ApplyResult, rep.AppliedCommit, rep.AppliedBranch = &done.Result, done.Commit, done.Branch
	}
	if o.Validated != nil {
		rep.Validation = &o.Validated.Report
	}
	return rep, err
}

// tell prints what a command came to: the report with --json, else a line and what to type next, or with
// --quiet the id. by is whose decision was recorded just now, "" for none.
func (a *App) tell(rep report.Report, by string) error {
	a.shown = &rep
	switch {
	case a.flags.json:
		return a.printJSON(rep)
	case a.flags.quiet:
		return a.print(rep.TransactionID + "\n")
	case rep.AppliedOutcome() == "" && rep.ApplyResult != nil && !rep.Waits(): // refused: the error says why
		return nil
	}
	line, clean, err := a.cleanly(rep)
	if err != nil {
		return err
	}
	return emit(a.Stdout, line.Show(func(string) string { return clean.Result(by, a.again, a.columns(), a.style()) }))
}

// columns are those of the terminal; what is no terminal has room for any line.
func (a *App) columns() int {
	if !terminal.Is(a.Stdout) {
		return math.MaxInt16
	}
	columns, _ := terminal.Size(a.Stdout)
	return columns
}

// cleanReport is a report without secrets, for a forge.
func (a *App) cleanReport(rep report.Report) (report.Report, error) {
	_, clean, err := a.cleanly(rep)
	return clean, err
}

func (a *App) cleanly(rep report.Report) (line secret.Redacted, clean report.Report, err error) {
	if line, err = a.redactJSON(rep); err == nil {
		err = json.Unmarshal([]byte(line.String()), &clean)
	}
	return line, clean, err
}

// watch shows on a terminal that a command is at work while it prints nothing. Commands that
// talk with a program, and those that another command runs, have no line of their own.
func (a *App) watch(cmd *cobra.Command) {
	silent := a.flags.json || a.flags.quiet || cmd.Hidden || cmd.Name() == "serve" || cmd.Name() == "mcp" || a.Getenv("TERM") == "dumb"
	if silent || !terminal.Is(a.Stderr) || terminal.Watched(a.Stderr) {
		return
	}
	a.line = terminal.Begin(cmd.Name(), a.Stderr, a.Now)
	a.Stdout, a.Stderr = a.line.Over(a.Stdout), a.line.Over(a.Stderr)
}
