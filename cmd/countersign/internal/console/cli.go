package console

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes; they are an interface (docs/cli.md). What is not there is 3 where
// it was to be read: a file, a directory, the Policy's ref, an object, a server.
// It is 2 where the ledger does not have it: a transaction, or any at all.
const (
	ExitFailed  = 1 // partly or not applied; something does not validate
	ExitRefused = 2 // refused, or a usage error
	ExitIO      = 3 // a file, a directory, Git or the network could not be read or written
	ExitPending = 4 // it waits for approval
	ExitDenied  = 5 // denied
	ExitNewer   = 6 // written by a newer countersign: this one cannot tell
	ExitPages   = 7 // the ledger is sound, a page in it differs
)

// A UsageError is a command line that cannot be obeyed.
type UsageError struct{ Message, Hint string }

func (e *UsageError) Error() string { return e.Message }

// RefuseIf is the error of flags or arguments that cannot be obeyed, nil where that is not so.
func RefuseIf(bad bool, message, hint string) error {
	if !bad {
		return nil
	}
	return &UsageError{message, hint}
}

// An ExitError ends the program with a code; Err nil says that everything there
// is to say was printed.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// PagesDiffer is the error of a sound ledger in which pages do not say what the record does.
func PagesDiffer(ref string, findings string) error {
	return &ExitError{ExitPages, fmt.Errorf("%s is sound, but pages in it differ from the record: %s", ref, findings)}
}

// SeeHelp is the hint that names a command's help.
func SeeHelp(cmd *cobra.Command) string { return cmd.CommandPath() + " --help" }

// NoEmptyFlag refuses a flag that was given an empty value, as by a script whose variable is
// not set: an audit with an empty --allowed-signers would demand no signature. Texts may be empty.
func NoEmptyFlag(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		empty := f.Value.Type() == "string" && f.Value.String() == "" || f.Value.Type() == "stringSlice" && f.Value.String() == "[]"
		if empty && f.Name != "summary" && f.Name != "reason" && err == nil {
			err = &UsageError{"--" + f.Name + " is given, and empty", "give it a value, or leave it out: a variable that is not set is empty"}
		}
	})
	return err
}

// NoCommand refuses the name of a command that there is not.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := SeeHelp(cmd)
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = cmd.CommandPath() + " " + near[0]
	}
	return &UsageError{fmt.Sprintf("unknown command %+q for %q", args[0], cmd.CommandPath()), hint}
}

// NoArgs refuses arguments. Like UpToOne and ExactlyOne, it is cobra's check with our
// exit code and a hint.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &UsageError{fmt.Sprintf("unexpected argument %+q", args[0]), SeeHelp(cmd)}
	}
	return nil
}

// UpToOne refuses a second argument.
func UpToOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return NoArgs(cmd, args[1:])
	}
	return nil
}

// ExactlyOne demands one argument, and says what is missing.
func ExactlyOne(message, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return &UsageError{message, hint}
		}
		return NoArgs(cmd, args[1:])
	}
}

// Exactly demands a number of arguments.
func Exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return &UsageError{fmt.Sprintf("%d arguments given, not %d", len(args), n), SeeHelp(cmd)}
		}
		return NoArgs(cmd, args[n:])
	}
}

// Group is a command that is there for those below it.
func Group(noun, short, example string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: noun, Short: short, Example: example, Args: NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(below...)
	return cmd
}
