package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
)

// groups are the commands as help lists them, by what people want to do. The rare ones are
// listed by help --all alone.
var groups = []struct{ title, common, rare string }{
	{"Change", "run review propose apply", "close"},
	{"Decide", "approve deny wait", "gate sign"},
	{"Look", "list show diff log", "browse export"},
	{"Prove", "validate audit evidence", "report attest verify site witness ledger"},
	{"Set up", "demo init doctor sync help", "policy completion version"},
	{"For programs", "mcp serve", "checks settle fleet canon pack patch proposal result"},
}

// addHelp puts the commands into their groups, and the flags that all of them take into a
// topic of their own.
func addHelp(root *cobra.Command) {
	all, show := false, root.HelpFunc()
	root.SetCompletionCommandGroupID("Set up")
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Use, help.Long, help.Example = "help [COMMAND]", "", "  countersign help run\n  countersign help --all"
	help.Args = func(_ *cobra.Command, args []string) error {
		asked, rest, err := root.Find(args)
		if err == nil {
			err = cli.NoCommand(asked, rest)
		}
		return err
	}
	help.Flags().BoolVar(&all, "all", false, "list the rare commands as well")
	var rare []string
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g.common+" "+g.rare), c.Name()) {
				c.GroupID = g.title
			}
		}
		rare = append(rare, strings.Fields(g.rare)...)
	}
	root.AddCommand(&cobra.Command{
		Use: "flags", Hidden: true, Short: "The flags that every command takes", Args: cli.NoArgs,
		Long: "Every command takes these flags:\n\n" + root.PersistentFlags().FlagUsages(),
	})
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if unknownCommand(cmd) != nil {
			return // Main says so
		}
		hide := func(f *pflag.Flag) { f.Hidden = true }
		root.PersistentFlags().VisitAll(hide)
		more := "Flags that every command takes: countersign help flags"
		if cmd == root {
			root.Flags().VisitAll(hide)
			for _, c := range root.Commands() {
				c.Hidden = c.Hidden || !all && slices.Contains(rare, c.Name())
			}
			if !all {
				more += "\nCommands that are rarely needed: countersign help --all"
			}
		}
		show(cmd, args)
		if cmd.Runnable() {
			fmt.Fprintln(cmd.OutOrStdout(), more)
		}
	})
}

// unknownCommand is the error of a command line that names a command which there is not, and asks for
// its help: cobra shows that of the command above.
func unknownCommand(cmd *cobra.Command) error {
	if !cmd.HasSubCommands() {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
