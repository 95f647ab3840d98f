package main

import (
	"context"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/completion"
	"github.com/countersign-dev/countersign/gitstore"
)

// addCompletions lets shells complete what is typed after the commands.
func (a *App) addCompletions(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		if takes, open := completion.Takes(cmd.Name()); takes {
			cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
				const only = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
				tree, err := a.unverified()
				if err != nil || len(args) > 0 {
					return nil, only
				}
				offered := completion.Transactions(tree, typed, open)
				for i, line := range offered {
					offered[i] = a.redact(line).String()
				}
				return offered, only
			}
		}
		for name, values := range completion.Values(cmd.Name()) {
			if cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
			}
		}
	}
}

// unverified is this clone's ledger as it is, for nothing but to be offered to a shell.
func (a *App) unverified() (fs.FS, error) {
	repo, err := gitstore.Open(a.flags.dir)
	if err != nil {
		return nil, err
	}
	a.repo = repo // Main closes it
	tip, err := repo.Ref(context.Background(), a.flags.ledgerRef)
	if err != nil {
		return nil, err
	}
	return repo.Tree(context.Background(), tip)
}
