package look

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

func exportCommand(c *console.Console) *cobra.Command {
	var out string
	var asPack bool
	cmd := &cobra.Command{
		Use:   "export [TX] --out DIR",
		Short: "Write a transaction to a plain directory, to send or to check elsewhere",
		Example: "  countersign export tx_01J --out evidence && countersign validate --dir evidence\n" +
			"  countersign export tx_01J --pack --out pack && countersign pack apply --pack pack --target elsewhere",
		Args: console.UpToOne,
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			return export(cmd.Context(), c, args, out, asPack)
		}),
	}
	cmd.Flags().BoolVar(&asPack, "pack", false, "write the change alone, as a patch.json for APPLY_SPEC's tools")
	cmd.Flags().StringVarP(&out, "out", "o", "", "`DIR` to make; it must not exist or be empty")
	return cmd
}

func export(ctx context.Context, c *console.Console, args []string, out string, asPack bool) (console.Outcome, error) {
	if out == "" {
		return console.Outcome{}, &console.UsageError{Message: "no directory given", Hint: "name a new one with --out DIR"}
	}
	s, snap, id, err := session.OpenOne(ctx, c, args, true)
	if err != nil {
		return console.Outcome{}, err
	}
	var dir map[string][]byte
	if asPack {
		dir = map[string][]byte{}
		dir["patch.json"], err = packFor(ctx, s.Runner, snap, id)
	} else {
		dir, err = lookup.Files(snap.Tree, id)
	}
	if err == nil {
		err = c.EmptyDir("--out", out)
	}
	if err == nil {
		err = c.WriteFiles(out, dir)
	}
	if err != nil {
		return console.About(id), err
	}
	return console.About(id), c.Result(console.Document{"transaction_id": id, "out": out}, report.Clean(out)+"\n")
}

// packFor writes a transaction's change as a patch.json that another
// implementation of APPLY_SPEC can verify and apply to the base commit's files.
// A change that the format cannot express (content that is not UTF-8, an
// executable bit) is a *patch.Error.
func packFor(ctx context.Context, r *pipeline.Runner, snap writing.Snapshot, id string) ([]byte, error) {
	log, err := lookup.Read(snap.Tree, id)
	if err != nil {
		return nil, err
	}
	tx := log.Transaction()
	set, err := r.Source().On(ctx, snap.Tree, tx, tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return nil, err
	}
	src := tx.Pointers.Proposal.Source()
	p, err := document.PackOf(set, src.ProposalID, src.ProposalHash)
	if err != nil {
		return nil, err
	}
	return p.Line()
}
