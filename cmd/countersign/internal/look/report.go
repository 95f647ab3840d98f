package look

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/html"
)

func reportCommand(c *console.Console) *cobra.Command {
	var asHTML, redact bool
	var out string
	cmd := &cobra.Command{
		Use:   "report [TX]",
		Short: "Report a transaction as Markdown, or as one HTML file to attach to a ticket",
		Example: "  countersign report tx_01J\n" +
			"  countersign report tx_01J --html --out change.html",
		Args: console.UpToOne,
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			switch {
			case asHTML:
				return reportHTML(cmd.Context(), c, args, out, redact)
			case out != "" || redact:
				return console.Outcome{}, &console.UsageError{Message: "--out and --redact are of an HTML file", Hint: "add --html"}
			}
			return reportMarkdown(cmd.Context(), c, args)
		}),
	}
	cmd.Flags().BoolVar(&asHTML, "html", false, "write an HTML file that needs nothing else: no script, no other file")
	cmd.Flags().StringVarP(&out, "out", "o", "", "`FILE` to write with --html, else the id with .html")
	cmd.Flags().BoolVar(&redact, "redact", false, "with --html, leave out the diff and what commands printed")
	return cmd
}

func reportMarkdown(ctx context.Context, c *console.Console, args []string) (console.Outcome, error) {
	s, snap, id, err := session.OpenOne(ctx, c, args, true)
	if err != nil {
		return console.Outcome{}, err
	}
	g, err := s.Runner.History(ctx, snap, id)
	if err != nil {
		return console.About(id), err
	}
	rep, err := s.ReportResult(ctx, g)
	switch {
	case err != nil:
		return console.About(id), err
	case c.Flags.JSON:
		return console.About(id), c.PrintJSON(rep)
	}
	return console.About(id), c.Print(rep.Markdown())
}

// reportHTML writes the page of a transaction. One whose record does not verify has a page as
// well, with the findings on top; the error is the first of them.
func reportHTML(ctx context.Context, c *console.Console, args []string, out string, redact bool) (console.Outcome, error) {
	s, snap, id, err := session.OpenOne(ctx, c, args, true)
	if err != nil {
		return console.Outcome{}, err
	}
	return console.About(id), writeHTML(s, snap, id, out, redact)
}

func writeHTML(s *session.Session, snap writing.Snapshot, id, out string, redact bool) error {
	if out == "" {
		out = id + ".html"
	}
	o := html.Options{Redact: redact, LedgerRef: s.Flags.LedgerRef, LedgerCommit: snap.Tip, Links: s.Links()}
	_, o.Elsewhere = s.KeptAt(snap.Tip)
	page, t, masked, err := html.Alone(snap.Tree, id, o, s.Masks())
	if err != nil {
		return err
	}
	if masked && !redact {
		s.Say("the diff is left out: it has what looks like a secret")
	}
	if err := os.WriteFile(s.Path(out), page, 0o666); err != nil {
		return console.FileError(report.Clean(out), err)
	}
	if err := s.Result(console.Document{"transaction_id": id, "out": out}, report.Clean(out)+"\n"); err != nil || t.Sound() {
		return err
	}
	f := t.Findings[0]
	return &ledger.CorruptError{ID: id, Err: fmt.Errorf("%s %s: %s", f.RuleID, f.Path, f.Message)}
}
