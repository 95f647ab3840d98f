package setup

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/conformance"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

func versionCommand(c *console.Console) *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  countersign version --json\n  countersign version --check", Args: console.NoArgs,
		Long: `Print the version.

With --check it reads which commit of the program the workflows here name, and asks that
commit's server for the tags of releases: the only time that it asks anybody. The exit code
is 1 where the workflows name another than the newest release.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return checkVersion(cmd.Context(), c)
			}
			return c.Result(console.Document{
				"version": console.Release, "commit": console.Commit(), "go": runtime.Version(),
				"schemas": console.Document{"ledger": canon.Version(), "transaction": "0", "apply_result": effect.ResultVersion},
			}, "countersign "+console.Version()+" ("+runtime.Version()+")\n")
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "say whether the workflows here use the newest release")
	return cmd
}

func checkVersion(ctx context.Context, c *console.Console) error {
	s, err := session.OpenRepo(c)
	if err != nil {
		return err
	}
	if s.Repo.Worktree() == "" {
		return &console.UsageError{Message: "the repository has no working tree with workflows", Hint: "run it in a clone of it"}
	}
	findings, err := scaffold.Newest(s.Repo.Worktree(), func(repository string) (map[string]string, error) {
		return tagsOf(ctx, s, repository)
	})
	if err == nil && len(findings) == 0 {
		err = &console.UsageError{Message: "no workflow here uses countersign from another repository", Hint: "countersign init --uses OWNER/countersign@COMMIT"}
	}
	if err != nil {
		return err
	}
	return showFindings(c, findings, console.Document{}, "is not the newest release")
}

// tagsOf asks the server for the tags of a repository of the program, tag → commit.
func tagsOf(ctx context.Context, s *session.Session, repository string) (map[string]string, error) {
	server, err := s.Server(cmp.Or(s.Getenv("GITHUB_SERVER_URL"), "https://github.com")+"/"+repository, "")
	if err != nil {
		return nil, err
	}
	defer server.Close()
	tags, err := server.Tags(ctx)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Away, Message: err.Error(), Try: "name the commit yourself: --uses OWNER/countersign@COMMIT, with its 40 digits", Cause: err}
	}
	return tags, nil
}

func demoCommand(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Walk a patch through every stage in a throw-away repository",
		Long: `demo makes a small repository in a temporary folder, takes a patch through
review, gate, apply and validate, denies another one for good, lets an agent fail to approve
its own patch where signatures are demanded, and forges a ledger to show that validate notices. It explains each step, and leaves the folder for you.`,
		Example: "  countersign demo",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), c) },
	}
}

// conformanceCommand asks the vectors of the specification of any verifier, and is one itself.
func conformanceCommand(c *console.Console) *cobra.Command {
	var verifier string
	var answer bool
	cmd := &cobra.Command{
		Use: "conformance DIR [-- COMMAND ARG…]", Hidden: true,
		Short: "Run the specification's vectors against a verifier",
		Long: `conformance asks a verifier each vector of DIR (docs/spec/vectors), and prints what was
answered otherwise, and a line for each class. The verifier is a command that reads
questions on stdin and answers on stdout (docs/spec/vectors/README.md); it runs without a
shell. Without one, this program answers.

With --answer the program is such a verifier.

Exit codes: 0 all answers agree, 1 not, 3 the vectors cannot be read.`,
		Example: `  countersign conformance docs/spec/vectors --verifier "python3 docs/spec/verifier/verify.py"
  countersign conformance docs/spec/vectors -- ./verify --strict
  countersign conformance --answer`,
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n > 1 || n < 0 && len(args) > 1 {
				return &console.UsageError{Message: "give one directory of vectors", Hint: "countersign conformance docs/spec/vectors"}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			argv := strings.Fields(verifier)
			if answer {
				if len(args)+len(argv) > 0 {
					return &console.UsageError{Message: "--answer goes with nothing else", Hint: "countersign conformance --answer"}
				}
				return conformance.Serve(c.Stdin, conformance.Own{}, c.GiveBack)
			}
			if len(args) == 0 || len(argv) > 0 && len(args) > 1 {
				return &console.UsageError{Message: "give one directory of vectors, and one verifier", Hint: "countersign conformance docs/spec/vectors"}
			}
			if len(argv) == 0 {
				argv = args[1:]
			}
			return runConformance(c, args[0], argv)
		},
	}
	cmd.Flags().StringVar(&verifier, "verifier", "", "ask `COMMAND`, whose words are split at spaces")
	cmd.Flags().BoolVar(&answer, "answer", false, "answer questions from stdin on stdout")
	return cmd
}

func runConformance(c *console.Console, dir string, argv []string) error {
	var of conformance.Verifier = conformance.Own{}
	var other *conformance.Command
	if len(argv) > 0 {
		other = &conformance.Command{Argv: argv, Say: func(line string) { c.Say("%s", line) }}
		of = other
	}
	r, err := conformance.Run(os.DirFS(c.Path(dir)), of)
	if err != nil {
		return &console.ExitError{Code: console.ExitIO, Err: fmt.Errorf("vectors of %s: %w", dir, err)}
	}
	if other != nil {
		if err := other.Close(); err != nil {
			c.Say("%v", err)
		}
	}
	if err := c.Result(r, r.Text()); err != nil || r.OK {
		return err
	}
	return &console.ExitError{Code: console.ExitFailed}
}
