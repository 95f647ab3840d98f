package pipeline

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// commandDoc is the artifact with all that is known of a command that ran.
type commandDoc struct {
	Schema    string           `json:"schema"`
	Asked     string           `json:"asked"` // by whom: the Policy's key, or the Proposal's id
	Tree      string           `json:"tree"`
	Source    string           `json:"source"` // "here", or "results": somebody's word
	Execution checks.Execution `json:"execution"`
}

// record adds the commands that ran: what the ledger has already, as it ran
// before the apply, is not told again after it.
func (r *Runner) recordChecks(s *ledger.Stage, c checked, when string) {
	item, _ := s.Log.FileChange()
	for _, run := range c.runs {
		e := run.execution
		file := s.Artifact("command", commandDoc{"countersign/command/1", run.id, c.tree, r.ranAt(), e})
		if told(s.Log, file) {
			continue
		}
		status := "completed"
		if !e.OK() {
			status = "failed"
		}
		s.Event(&ledger.CommandItem{TransactionID: item.TransactionID, TurnID: item.TurnID, Item: ledger.Command{
			ID: nextItem(s.Log), Type: ledger.CommandExecution, Op: "final", Status: status,
			Command: strings.Join(e.Argv, " "), CWD: ".", AggregatedOutput: ledger.Beginning(r.Secrets.Text(e.Stdout + e.Stderr)),
			ExitCode: e.ExitCode, DurationMS: int(e.DurationMS),
			Metadata: ledger.CommandMetadata{
				Artifact: ledger.ArtifactRef{ArtifactID: strings.TrimSuffix(path.Base(file), ".json"), Path: file},
				Required: run.required, Tree: c.tree, When: when,
			},
		}})
	}
}

// ranAt says where the commands of this command of ours ran.
func (r *Runner) ranAt() string {
	if r.Results != nil {
		return "results"
	}
	return "here"
}

// told reports whether an item names an artifact as its evidence.
func told(log *ledger.Log, file string) bool {
	return slices.ContainsFunc(ledger.Of[*ledger.CommandItem](log), func(c *ledger.CommandItem) bool {
		return c.Item.Metadata.Artifact.Path == file
	})
}

// nextItem is the id of the next item of a log, having counted those there are.
func nextItem(log *ledger.Log) string {
	ids := map[string]bool{}
	for _, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.TurnItem:
			ids[p.Item.ID] = true
		case *ledger.CommandItem:
			ids[p.Item.ID] = true
		case *ledger.TraceItem:
			ids[p.Item.ID] = true
		}
	}
	return fmt.Sprintf("item_%d", len(ids)+1)
}

// recordFailed records an apply that its checks refused before it began.
func (r *Runner) recordFailed(ctx context.Context, failed *ChecksError, done checked) error {
	_, _, err := update(ctx, r, transaction(failed.ID), func(snap ledger.Snapshot) (try[none], error) {
		g, err := r.judge(ctx, snap, failed.ID, nil)
		if err != nil {
			return nothing(none{}, err)
		}
		if _, applying := g.log.OpenApply(); applying || g.Transaction().Status != ledger.Proposed {
			return nothing(none{}, nil)
		}
		s := r.stage(g.log)
		r.recordChecks(s, done, "before")
		s.Status(ledger.Failed, r.oneLine(failed.Violations[0].Message, 300))
		return recording(none{}, s, ledger.Title{Stage: "apply", Outcome: string(ledger.Failed), Subject: "not begun: " + failed.Violations[0].Message})
	})
	if err != nil {
		return err
	}
	return failed
}
