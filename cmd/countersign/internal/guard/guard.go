// Package guard refuses a push that would bring unapproved bytes onto a guarded branch, on a Git server or beside it (docs/guard.md).
package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/report"
)

// maxTime is how long a push may take to judge.
const maxTime = time.Minute

// signersHabit is the key of Git's configuration, below countersign., that names the file of those who write the ledger.
const signersHabit = "guardSigners"

// ledgerHabit is the key that names the repository with the ledger, if that is another.
const ledgerHabit = "guardLedger"

// Command is countersign guard.
func Command(c *console.Console) *cobra.Command {
	hook := func(use, short string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: args, Hidden: true, RunE: run}
	}
	return console.Group("guard", "Refuse pushes of what nobody approved, on any Git server", `  countersign guard install -C /srv/git/app.git
  countersign guard install --all /srv/git
  countersign guard status -C /srv/git/app.git
  countersign guard check origin/main..HEAD`,
		installCommand(c), statusCommand(c), checkCommand(c),
		hook("pre-receive", "What Git runs before it takes a push", console.NoArgs, func(cmd *cobra.Command, _ []string) error {
			updates, err := readUpdates(c.Stdin)
			if err != nil {
				return err
			}
			return hold(cmd.Context(), c, "", updates, c.Getenv("GIT_QUARANTINE_PATH"), "")
		}),
		hook("update REF OLD NEW", "What Git runs before it moves a ref", console.Exactly(3), func(cmd *cobra.Command, args []string) error {
			return hold(cmd.Context(), c, "", []update{newUpdate(args[0], args[1], args[2])}, "", "")
		}),
		hook("pre-push [REMOTE ADDRESS]", "What Git runs before it pushes: tells, and refuses nothing", upToTwo, func(cmd *cobra.Command, _ []string) error {
			return warn(cmd.Context(), c)
		}),
	)
}

// upToTwo refuses a third argument.
func upToTwo(cmd *cobra.Command, args []string) error {
	return console.NoArgs(cmd, args[min(2, len(args)):])
}

func checkCommand(c *console.Console) *cobra.Command {
	var branch, signers string
	cmd := &cobra.Command{
		Use: "check OLD..NEW", Short: "Say whether the guard would let a branch get commits", Example: `  countersign guard check origin/main..HEAD
  countersign guard check main..topic --allowed-signers .github/ledger-signers --json`,
		Long: `check asks what a guarded server would say if a branch that is at OLD were pushed to NEW, by this
clone's ledger ("countersign sync" brings the remote's here) and the Policy of OLD. Exit code 1 means that
something is refused; nothing is written.`,
		Args: console.ExactlyOne("no commits were given", "countersign guard check origin/main..HEAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			old, next, is := strings.Cut(args[0], "..")
			if !is {
				return &console.UsageError{Message: fmt.Sprintf("%+q is not OLD..NEW", args[0]), Hint: "countersign guard check origin/main..HEAD"}
			}
			s, err := session.OpenRepo(c)
			if err != nil {
				return err
			}
			u := update{Ref: "refs/heads/" + branch}
			for _, one := range []struct {
				name string
				into *string
			}{{old, &u.Old}, {cmp.Or(next, "HEAD"), &u.New}} {
				if *one.into, err = session.CodeCommit(cmd.Context(), s.Repo, one.name); err != nil {
					return err
				}
			}
			return hold(cmd.Context(), c, u.Ref, []update{u}, "", signers)
		},
	}
	cmd.Flags().StringVar(&branch, "branch", "main", "the `BRANCH` that would get them")
	cmd.Flags().StringVar(&signers, "allowed-signers", "", "who writes the ledger: the keys in `FILE` (ssh-keygen's ALLOWED SIGNERS)")
	return cmd
}

// held is what guard check --json prints.
type held struct {
	OK      bool      `json:"ok"`
	Refused []refusal `json:"refused"`
}

// hold judges a push and tells what of it is refused, which is an error. head is the branch that is taken for the default one,
// at what the first update begins with; "" is HEAD's.
func hold(ctx context.Context, c *console.Console, head string, updates []update, beside, signers string) error {
	refused, err := judge(ctx, c, head, updates, beside, signers)
	if err != nil {
		return err
	}
	if c.Flags.JSON {
		if err := c.PrintJSON(held{len(refused) == 0, append([]refusal{}, refused...)}); err != nil {
			return err
		}
	}
	if len(refused) == 0 {
		if head != "" && !c.Flags.JSON {
			return c.Print("all of it is accounted for\n")
		}
		return nil
	}
	tell(c, refused)
	return fault.Fail("the push is refused", refused[0].Hint)
}

// maxTold is how many commits of a ref are named.
const maxTold = 10

func tell(c *console.Console, refused []refusal) {
	for _, r := range refused {
		c.Say("%s: %s", r.Ref, r.Why)
		for _, one := range r.Commits[:min(maxTold, len(r.Commits))] {
			c.Say("  %.12s %s: %s (%s)", one.Commit, one.Subject, one.Reason, strings.Join(one.Paths[:min(3, len(one.Paths))], ", "))
		}
		if more := len(r.Commits) - maxTold; more > 0 {
			c.Say("  and %s more", report.Counted(more, "commit"))
		}
	}
}

// judge returns what of a push is refused, and gives up after maxTime.
func judge(ctx context.Context, c *console.Console, head string, updates []update, beside, signers string) ([]refusal, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	dir, err := scratch()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	type answer struct {
		refused []refusal
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		refused, err := judgeAll(ctx, c, dir, head, updates, beside, signers)
		done <- answer{refused, err}
	}()
	select {
	case a := <-done:
		return a.refused, a.err
	case <-ctx.Done():
		return nil, fault.Fail(fmt.Sprintf("the push takes more than %s to judge, and is refused", maxTime), "push less at once")
	}
}

// scratch is a directory for a view.
func scratch() (string, error) { return os.MkdirTemp("", "countersign-guard-") }

func judgeAll(ctx context.Context, c *console.Console, dir, head string, updates []update, beside, signers string) ([]refusal, error) {
	s, err := session.OpenRepo(c)
	if err != nil {
		return nil, err
	}
	var keys *sshsig.Allowed
	if signers = cmp.Or(signers, s.Repo.Config.Habit(signersHabit)); signers != "" {
		if keys, err = session.AllowedSigners(c, signers); err != nil {
			return nil, err
		}
	}
	p, err := open(ctx, s, dir, head, updates, beside, keys)
	if err != nil {
		return nil, err
	}
	refused, err := p.hold(ctx)
	for _, one := range p.broken {
		c.Say("%s", one)
	}
	return refused, err
}

// warn tells what a guarded server would say of what is pushed to branches. It refuses nothing.
func warn(ctx context.Context, c *console.Console) error {
	for _, u := range readPushed(c.Stdin) {
		if u.Old == "" || u.New == "" || !strings.HasPrefix(u.Ref, "refs/heads/") {
			continue
		}
		refused, err := judge(ctx, c, u.Ref, []update{u}, "", "")
		switch {
		case err != nil && !errors.Is(err, context.Canceled):
			c.Say("what %s would get was not judged: %v", u.Ref, err)
		case len(refused) > 0:
			c.Say("a guarded server would refuse this:")
			tell(c, refused)
			c.Say("hint: %s", refused[0].Hint)
		}
	}
	return nil
}
