package look

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// A Source is what the pages are made of: the ledger of a clone, how its ref is called, whether the shared one is in
// another repository than the remote, where people see the repository on its forge, whose passkeys count, and when approvals are due.
type Source struct {
	Repo      *gitstore.Repo
	Ledger    *gitstore.Ledger
	Ref       string
	Elsewhere bool
	Links     forge.Links
	Passkeys  Passkeys
	Due       time.Duration // within which people are to decide, 0 for ever
	// Exceptions are those of the default branch that the Policy has people review.
	Exceptions func(ctx context.Context) ([]explain.Exception, error)
}

// A Program is what the commands use of the one that they are of.
type Program struct {
	Version string
	Now     func() time.Time
	// Open opens the repository and the ledger of this clone.
	Open func() (Source, error)
	// Audit audits a history; the error is that of reading it. Options have Each.
	Audit func(ctx context.Context, repo *gitstore.Repo, h *gitstore.History, o verdict.Options) (audit.Result, error)
	// Masks returns what reports whether something in a diff looks like a secret. Several
	// goroutines may call it.
	Masks func() func(diff []byte) bool
	// Path is where the command line means a file to be. Progress and Say tell the person, Result prints what a command came to.
	Path        func(name string) string
	OpenBrowser func(address string) error
	Progress    func(what string, done, total int)
	Say         func(format string, a ...any)
	Result      func(doc any, text string) error

	SetGCPercent func(percent int) int // nil where others share the process
}

// Commands are site and browse.
func (p Program) Commands() []*cobra.Command {
	return []*cobra.Command{p.siteCommand(), p.browseCommand()}
}

func (p Program) siteCommand() *cobra.Command {
	var out string
	var o options
	cmd := &cobra.Command{
		Use:   "site",
		Short: "Write the ledger as a site of static pages",
		Long: `site audits the ledger and writes HTML pages of it into a directory: an overview of what
waits, was applied, denied and superseded; a page for each transaction, patch, commit, pull
request, person and file; and a search. The pages need no server and run no script but those of
the search, the verifier and, where the Policy has approvals.passkeys, of decide/, on which a
passkey approves. The ledger itself is beside them, as verify/ledger.bundle.

A ledger that does not verify has its pages as well, with the findings on top, and nothing on
them counts as approved. The exit code is 1 then, and 7 where pages in a sound ledger differ from
the record, as that of audit is.

The directory is made, or is empty, or was written by site before. Pages that the ledger has no
more are removed.`,
		Example: "  countersign site --out public\n  countersign site --out public --redact",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return &console.UsageError{Message: "no directory given", Hint: "name the one to write with --out DIR"}
			}
			return p.site(cmd.Context(), out, o)
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "`DIR` to write the pages to")
	cmd.Flags().BoolVar(&o.redact, "redact", false, "leave out the diffs, what commands printed, and the bundle")
	cmd.Flags().BoolVar(&o.noBundle, "no-bundle", false, "leave out the ledger itself, which verify/ledger.bundle is")
	return cmd
}

// options say what is on the pages.
type options struct{ redact, noBundle bool }

// site writes all pages.
func (p Program) site(ctx context.Context, name string, o options) error {
	b, err := p.open(o)
	if err != nil {
		return err
	}
	dir, err := openDir(p.Path(name), report.Clean(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	// The history of a large ledger makes much garbage: half as much memory is worth a tenth of
	// the time.
	if p.SetGCPercent != nil {
		defer p.SetGCPercent(p.SetGCPercent(50))
	}
	h, err := b.Ledger.History(ctx, gitstore.HistoryOptions{})
	if err != nil {
		return err
	}
	if err := dir.place(markerFile, dir.whole([]byte(marker))); err != nil {
		return err
	}
	if err := b.writeAll(ctx, dir, h); err != nil {
		return err
	}
	if err := b.writeBundle(ctx, dir); err != nil {
		return err
	}
	removed, err := dir.removeOthers()
	if err != nil {
		return err
	}
	doc := console.Document{
		"out": name, "tip": b.tip, "transactions": len(b.summaries), "written": len(dir.written), "removed": removed, "redacted": o.redact, "bundle": b.bundled, "verifier": b.verifies(),
		"ok": b.ok(), "findings": b.count(), "pages_differ": b.result.Pages.Count,
	}
	text := fmt.Sprintf("%s: %s of %s\n", report.Clean(name), ledger.Plural(len(dir.written), "file", "files"), ledger.Plural(len(b.summaries), "transaction", "transactions"))
	if err := p.Result(doc, text); err != nil {
		return err
	}
	return b.unverified()
}
