package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/conformance"
)

// conformanceCommand asks the vectors of the specification of any verifier, and is one itself.
func (a *App) conformanceCommand() *cobra.Command {
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
				return &cli.UsageError{Message: "give one directory of vectors", Hint: "countersign conformance docs/spec/vectors"}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			argv := strings.Fields(verifier)
			if answer {
				if len(args)+len(argv) > 0 {
					return &cli.UsageError{Message: "--answer goes with nothing else", Hint: "countersign conformance --answer"}
				}
				return conformance.Serve(a.Stdin, conformance.Own{}, a.giveBack)
			}
			if len(args) == 0 || len(argv) > 0 && len(args) > 1 {
				return &cli.UsageError{Message: "give one directory of vectors, and one verifier", Hint: "countersign conformance docs/spec/vectors"}
			}
			if len(argv) == 0 {
				argv = args[1:]
			}
			return a.conformance(args[0], argv)
		},
	}
	cmd.Flags().StringVar(&verifier, "verifier", "", "ask `COMMAND`, whose words are split at spaces")
	cmd.Flags().BoolVar(&answer, "answer", false, "answer questions from stdin on stdout")
	return cmd
}

func (a *App) conformance(dir string, argv []string) error {
	var of conformance.Verifier = conformance.Own{}
	var other *conformance.Command
	if len(argv) > 0 {
		other = &conformance.Command{Argv: argv, Say: func(line string) { a.say("%s", line) }}
		of = other
	}
	r, err := conformance.Run(os.DirFS(a.path(dir)), of)
	if err != nil {
		return &cli.ExitError{Code: cli.ExitIO, Err: fmt.Errorf("vectors of %s: %w", dir, err)}
	}
	if other != nil {
		if err := other.Close(); err != nil {
			a.say("%v", err)
		}
	}
	if err := a.result(r, r.Text()); err != nil || r.OK {
		return err
	}
	return &cli.ExitError{Code: cli.ExitFailed}
}
