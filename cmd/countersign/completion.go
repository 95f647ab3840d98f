package main

import (
	"context"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/completion"
	"github.com/countersign-dev/countersign/gitstore"
)

// addCompletions lets shells complete what is typed after a command and those below it. Nobody
// is asked beyond this clone.
func (a *App) addCompletions(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		a.addCompletions(below)
	}
	if takes, open := completion.Takes(cmd.Name()); takes && (!cmd.HasParent() || !cmd.Parent().HasParent()) {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			const only = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
			tree, err := a.unverified(cmd)
			if err != nil || len(args) > 0 {
				return nil, only
			}
			return a.inert(completion.Transactions(tree, typed, open)), only
		}
	}
	for name, values := range completion.Values(cmd.Name()) {
		a.completes(cmd, name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	for name, prefix := range completion.Refs {
		a.completes(cmd, name, a.offer(func(gitstore.Settings) ([]string, error) { return a.repo.RefNames() }, prefix))
	}
	a.completes(cmd, "remote", a.offer(func(s gitstore.Settings) ([]string, error) { return s.Remotes(), nil }, ""))
	for _, name := range completion.Directories {
		a.completes(cmd, name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		})
	}
}

// completes says what a flag of a command is completed with, if it has that flag and the flag
// takes a value.
func (a *App) completes(cmd *cobra.Command, name string, with cobra.CompletionFunc) {
	flag := cmd.Flags().Lookup(name)
	if !cmd.HasParent() {
		flag = cmd.PersistentFlags().Lookup(name)
	}
	if flag != nil && flag.Value.Type() != "bool" {
		_ = cmd.RegisterFlagCompletionFunc(name, with)
	}
}

// offer completes with names of this clone; nothing is said where they cannot be read.
func (a *App) offer(read func(gitstore.Settings) ([]string, error), prefix string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if settings, err := a.openLocal(cmd); err == nil {
			names, _ = read(settings)
		}
		return a.inert(completion.Names(names, prefix, typed)), cobra.ShellCompDirectiveNoFileComp
	}
}

// openLocal opens this clone for a completion, which has not read the flags of its command.
func (a *App) openLocal(cmd *cobra.Command) (gitstore.Settings, error) {
	if err := a.habits(cmd); err != nil {
		return gitstore.Settings{}, err
	}
	repo, settings, err := a.openRepo()
	a.repo = repo // Main closes it
	return settings, err
}

// inert takes secrets out of what is offered.
func (a *App) inert(offered []string) []string {
	for i, line := range offered {
		offered[i] = a.redact(line).String()
	}
	return offered
}

// unverified is this clone's ledger as it is, for nothing but to be offered to a shell.
func (a *App) unverified(cmd *cobra.Command) (fs.FS, error) {
	if _, err := a.openLocal(cmd); err != nil {
		return nil, err
	}
	tip, err := a.repo.Ref(context.Background(), a.flags.ledgerRef)
	if err != nil {
		return nil, err
	}
	return a.repo.Tree(context.Background(), tip)
}
