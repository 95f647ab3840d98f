package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// maxPolicy is how many bytes of a Policy file are read: one more is refused.
const maxPolicy = 64 << 10

func policyCommand(c *console.Console, explain *cobra.Command) *cobra.Command {
	check := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a Policy file, or the one in force",
		Long: `check reads a Policy strictly and says what is wrong with it, with line and column.
Without FILE it reads the one in force: ` + policy.Path + ` at HEAD, not in the working tree.`,
		Example: "  countersign policy check " + policy.Path,
		Args:    console.UpToOne,
		RunE:    func(cmd *cobra.Command, args []string) error { return policyCheck(cmd.Context(), c, args) },
	}
	return console.Group("policy", "Check the Policy, explain what it asks of a patch, or try another one",
		"  countersign policy check\n  countersign policy explain --patch fix.patch", check, explain, policySimulateCommand(c))
}

func policyCheck(ctx context.Context, c *console.Console, args []string) error {
	if len(args) == 0 {
		return policyNow(ctx, c)
	}
	p, err := readPolicy(c, args[0])
	if err != nil {
		return err
	}
	return showPolicy(c, p, console.InputName(args[0]), "")
}

// readPolicy reads a Policy from a file, as strictly as the one in force.
func readPolicy(c *console.Console, name string) (policy.Policy, error) {
	raw, err := c.ReadInput(name, maxPolicy)
	if err != nil {
		return policy.Policy{}, err
	}
	p, err := policy.Parse(console.InputName(name), raw)
	if err != nil {
		return p, err
	}
	for _, recipient := range p.Secrets.SealTo {
		if err := redact.CheckRecipient(recipient); err != nil {
			return p, &console.ExitError{Code: console.ExitRefused, Err: fmt.Errorf("%s: secrets.seal_to: %w", console.InputName(name), err)}
		}
	}
	if found := c.Finder().Find(string(p.JSON())); len(found) > 0 {
		return p, &console.ExitError{Code: console.ExitRefused, Err: fmt.Errorf("%s: it holds what looks like a secret (%s), and is recorded with every transaction", console.InputName(name), found[0].Kind)}
	}
	return p, nil
}

// rulesNow are the rules in force.
func rulesNow(ctx context.Context, c *console.Console) (*session.Session, pipeline.Rules, error) {
	s, err := session.OpenRepo(c)
	if err != nil {
		return nil, pipeline.Rules{}, err
	}
	commit, err := session.PolicyCommit(ctx, c, s.Repo)
	if err != nil {
		return nil, pipeline.Rules{}, err
	}
	rules, err := pipeline.ReadRules(ctx, s.Repo, commit, "")
	return s, rules, err
}

func policyNow(ctx context.Context, c *console.Console) error {
	_, rules, err := rulesNow(ctx, c)
	if err != nil {
		return err
	}
	err = rules.Keys.Err
	if unread := rules.Keys.Listed.Unread(); err == nil && unread != nil {
		err = fmt.Errorf("approvals.keys: %s: %w", rules.Policy.Approvals.Keys, unread)
	}
	if rules.Policy.Approvals.Keys != "" && err != nil {
		return &console.ExitError{Code: console.ExitRefused, Err: fmt.Errorf("in commit %.12s: %w", rules.Commit, err)}
	}
	file := policy.Path
	if !rules.Found {
		file = ""
	}
	return showPolicy(c, rules.Policy, file, rules.Commit)
}

func showPolicy(c *console.Console, p policy.Policy, file, commit string) error {
	text := fmt.Sprintf("%s: valid, %s\n", file, p.Sum())
	if file == "" {
		text = fmt.Sprintf("no %s in commit %.12s: the defaults hold\n", policy.Path, commit)
	}
	for _, w := range risk.Warnings(p) {
		text += "warning: " + w + "\n"
	}
	raw := json.RawMessage(bytes.TrimSuffix(p.JSON(), []byte("\n")))
	return c.Result(console.Document{"file": file, "commit": commit, "sha256": p.Sum(), "policy": raw, "warnings": risk.Warnings(p)}, text)
}
