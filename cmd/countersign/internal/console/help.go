package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Groups are the commands as help lists them, by what people want to do. The rare ones are
// listed by help --all alone.
var Groups = []struct{ Title, Common, Rare string }{
	{"Change", "run agent review propose apply", "close"},
	{"Decide", "approve deny wait", "gate sign advise"},
	{"Look", "status list show diff log", "browse digest export"},
	{"Prove", "validate audit evidence", "dispose deployed report attest verify site witness ledger"},
	{"Set up", "demo init doctor guard sync help", "policy passkey completion version"},
	{"For programs", "mcp", "serve checks settle fleet canon pack patch proposal result"},
}

// AddHelp puts the commands into their groups, and the flags that all of them take into a
// topic of their own.
func AddHelp(root *cobra.Command) {
	all, show := false, root.HelpFunc()
	root.SetCompletionCommandGroupID("Set up")
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Use, help.Long, help.Example = "help [COMMAND]", "", "  countersign help run\n  countersign help --all"
	help.Args = func(_ *cobra.Command, args []string) error {
		asked, rest, err := root.Find(args)
		if err == nil {
			err = NoCommand(asked, rest)
		}
		return err
	}
	help.Flags().BoolVar(&all, "all", false, "list the rare commands as well")
	var rare []string
	for _, g := range Groups {
		root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title + ":"})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g.Common+" "+g.Rare), c.Name()) {
				c.GroupID = g.Title
			}
		}
		rare = append(rare, strings.Fields(g.Rare)...)
	}
	root.AddCommand(&cobra.Command{
		Use: "flags", Hidden: true, Short: "The flags that every command takes", Args: NoArgs,
		Long: "Every command takes these flags:\n\n" + root.PersistentFlags().FlagUsages(),
	})
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if UnknownCommand(cmd) != nil {
			return // who executes it says so
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

// UnknownCommand is the error of a command line that names a command which there is not, and asks for
// its help: cobra shows that of the command above.
func UnknownCommand(cmd *cobra.Command) error {
	if !cmd.HasSubCommands() {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
