package completion

import (
	"context"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/gitstore"
)

// A Clone is what there is to read from.
type Clone struct {
	Repo      *gitstore.Repo
	Remotes   []string
	LedgerRef string
}

// A shell completes commands.
type shell struct {
	open   func(*cobra.Command) (Clone, error)
	redact func(line string) string
}

// Add lets shells complete what is typed after a command and those below it. Open opens the
// clone that the command's flags name, and redact takes secrets out of a line. Nobody is asked
// beyond this clone.
func Add(cmd *cobra.Command, open func(*cobra.Command) (Clone, error), redact func(line string) string) {
	shell{open, redact}.add(cmd)
}

func (s shell) add(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		s.add(below)
	}
	if takes, open := Takes(cmd.Name()); takes && !(cmd.HasParent() && cmd.Parent().HasParent()) {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			const only = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
			tree, err := s.unverified(cmd)
			if err != nil || len(args) > 0 {
				return nil, only
			}
			return s.shown(Transactions(tree, typed, open)), only
		}
	}
	for name, values := range Values(cmd.Name()) {
		completes(cmd, name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	for name, prefix := range refs {
		completes(cmd, name, s.offer(func(c Clone) []string {
			names, _ := c.Repo.RefNames()
			return names
		}, prefix))
	}
	completes(cmd, "remote", s.offer(func(c Clone) []string { return c.Remotes }, ""))
	for _, name := range directories {
		completes(cmd, name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		})
	}
}

// completes says what a flag of a command is completed with, if it has that flag and the flag
// takes a value.
func completes(cmd *cobra.Command, name string, with cobra.CompletionFunc) {
	flag := cmd.Flags().Lookup(name)
	if !cmd.HasParent() {
		flag = cmd.PersistentFlags().Lookup(name)
	}
	if flag != nil && flag.Value.Type() != "bool" {
		_ = cmd.RegisterFlagCompletionFunc(name, with)
	}
}

// offer completes with names of the clone; nothing is said where they cannot be read.
func (s shell) offer(read func(Clone) []string, prefix string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) (out []string, _ cobra.ShellCompDirective) {
		if clone, err := s.open(cmd); err == nil {
			out = s.shown(names(read(clone), prefix, typed))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func (s shell) shown(offered []string) []string {
	for i, line := range offered {
		offered[i] = s.redact(line)
	}
	return offered
}

// unverified is the clone's ledger as it is, for nothing but to be offered to a shell.
func (s shell) unverified(cmd *cobra.Command) (fs.FS, error) {
	clone, err := s.open(cmd)
	if err != nil {
		return nil, err
	}
	tip, err := clone.Repo.Ref(context.Background(), clone.LedgerRef)
	if err != nil {
		return nil, err
	}
	return clone.Repo.Tree(context.Background(), tip)
}

// NearFlag asks whether a flag of the command was meant, where the error is about one that
// there is not; else it is "".
func NearFlag(cmd *cobra.Command, message string) string {
	typed, unknown := strings.CutPrefix(message, "unknown flag: --")
	if _, after, short := strings.Cut(message, "unknown shorthand flag: "); short { // 'j' in -json
		_, typed, unknown = strings.Cut(after, " in -")
	}
	if !unknown || len(typed) < 2 {
		return ""
	}
	flags := &cobra.Command{SuggestionsMinimumDistance: min(2, len(typed)/2)}
	for line := range strings.Lines(cmd.Flags().FlagUsages()) {
		if _, after, has := strings.Cut(line, "--"); has {
			flags.AddCommand(&cobra.Command{Use: strings.TrimSpace(after), Run: func(*cobra.Command, []string) {}})
		}
	}
	near := flags.SuggestionsFor(typed)
	if len(near) == 0 || len(near) > 3 {
		return ""
	}
	return "did you mean --" + strings.Join(near, " or --") + "? "
}
