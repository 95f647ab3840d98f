package decide

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// adviseCommand records what tools say of a change.
func adviseCommand(c *console.Console) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "advise TX --from FILE",
		Short: "Record what a scanner or a model says of a change, as its claim",
		Long: `advise records the findings of a tool with a change. They are shown among its risks as claims of that tool,
which nobody has checked. They approve nothing and take nothing away; a rule of the Policy can ask for more
people because of them (protected: advice). A workflow runs it after the tool, and before settle.

FILE is SARIF 2.1.0, or docs/schema/advice.json. What looks like a secret is not recorded.`,
		Example: `  countersign advise tx_01K5Z8M2QV --from semgrep.sarif
  my-model review.diff | countersign advise tx_01K5Z8M2QV --from -`,
		Args: console.ExactlyOne("no transaction was named", "countersign list --open has them"),
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			return advise(cmd.Context(), c, args, from)
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "what the tool found: `FILE` or - (required)")
	return cmd
}

func advise(ctx context.Context, c *console.Console, args []string, from string) (done console.Outcome, err error) {
	if from == "" {
		return done, &console.UsageError{Message: "what the tool found is not given", Hint: "--from FILE, or --from - for stdin"}
	}
	raw, err := c.ReadLimited(from, observation.MaxAdvice)
	if err != nil {
		return done, console.InFile(from, err)
	}
	said, err := observation.ReadAdvice(raw)
	if err != nil {
		return done, &console.ExitError{Code: console.ExitRefused, Err: fmt.Errorf("%s: %w", console.InputName(from), err)}
	}
	s, err := session.Open(c)
	if err != nil {
		return done, err
	}
	_, id, err := s.Find(ctx, args, false)
	if err != nil {
		return done, err
	}
	g, err := s.Runner.Advise(ctx, id, said)
	if err != nil {
		return console.About(id), err
	}
	doc, text := toldAdvice(id, said, g.Recorded)
	doc["author"] = s.Runner.Actor
	return console.About(id), c.Result(doc, text)
}

// toldAdvice says what was recorded of each tool.
func toldAdvice(id string, said []approval.Advice, recorded bool) (console.Document, string) {
	var text strings.Builder
	tools := []any{}
	for _, a := range said {
		levels := map[string]int{"note": 0, "warning": 0, "error": 0}
		for _, f := range a.Findings {
			levels[string(f.Level)]++
		}
		tools = append(tools, map[string]any{"tool": a.Tool, "findings": levels, "more": a.More})
		fmt.Fprintf(&text, "%s  %s claims %s", id, a.Tool, ledger.Plural(len(a.Findings)+a.More, "finding", "findings"))
		if n := levels["error"]; n > 0 {
			fmt.Fprintf(&text, ", %s", ledger.Plural(n, "error", "errors"))
		}
		text.WriteString("\n")
	}
	if !recorded {
		text.WriteString("nothing recorded: this was recorded already\n")
	}
	return console.Document{"transaction_id": id, "tools": tools, "recorded": recorded}, text.String()
}
