package console

import (
	"context"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// The bounds of the work for one press of a key. Completion reads the ledger as it is, verifies nothing, asks nobody, and says
// nothing where something is wrong, as the command itself then will.
const (
	maxOffered = 100
	maxRead    = 1000
	maxSummary = 60 // characters
)

// Transactions are the ids that begin with what was typed, newest first, each with a tab
// and a line that describes it, as shells take it. Open leaves out those that are closed.
func Transactions(tree fs.FS, typed string, open bool) []string {
	var out []string
	read := 0
	for id, err := range lookup.Backward(tree) {
		if err != nil || len(out) == maxOffered || read == maxRead {
			break
		}
		if ledger.CheckID(id) != nil || !strings.HasPrefix(id, typed) {
			continue
		}
		read++
		tx, err := lookup.State(tree, id)
		if err != nil || open && tx.Closed {
			continue
		}
		out = append(out, id+"\t"+describe(tx))
	}
	return out
}

// Takes reports whether a command takes a transaction, and whether that has to be open.
func Takes(command string) (takes, open bool) {
	switch command {
	case "approve", "deny", "sign", "gate", "wait", "apply", "run", "close", "settle", "checks":
		return true, true
	case "show", "log", "diff", "export", "report", "validate", "attest":
		return true, false
	}
	return false, false
}

// Values are what a command's flags can be, by the flag's name, where they are few. None are
// offered for words, numbers and times, and no file either.
func Values(command string) map[string][]string {
	all := map[string][]string{
		"as": {"one\tall of them are one change"}, "sandbox": {"read-only", "workspace-write", "danger-full-access"},
		"fingerprint": {"secret\twhat looks like a secret", "protected\tprotected paths"},
		"recipe":      {"remove-todo"}, "to": {"worktree", "branch", "ref"}, "color": {"auto", "always", "never"}, "forge": {"github", "gitea", "forgejo"},
		"status": {string(ledger.Interrupted)},
	}
	for _, name := range []string{
		"app", "concurrency", "env", "every", "id", "known-tip", "limit", "max", "needle", "part", "pr", "reason", "repo", "since", "summary", "timeout", "tree",
	} {
		all[name] = nil
	}
	if command == "review" || command == "propose" || command == "run" {
		all["from"] = []string{"auto", "git", "unified", "codex", "blocks", "edits", "gh-aw", "codex-action", "claude-code-action"}
	}
	if command == "review" {
		all["as"] = append(all["as"], "each\teach is a transaction")
	}
	if command == "list" {
		all["status"] = nil
		for _, status := range ledger.Statuses {
			all["status"] = append(all["status"], string(status))
		}
	}
	return all
}

// directories are the flags that take a directory.
var directories = []string{"directory", "dir", "pack", "packet", "packets", "read", "target"}

// refs are the flags that take a ref, with the prefix that they leave out.
var refs = map[string]string{"ledger-ref": "", "policy-ref": "", "from": "", "commit": "", "ref": "", "branch": "refs/heads/"}

// names are those, without a prefix that all have, that begin with what was typed. What a
// shell might expand is not offered.
func names(all []string, prefix, typed string) []string {
	var out []string
	for _, name := range all {
		short, has := strings.CutPrefix(name, prefix)
		if has && len(out) < maxOffered && strings.HasPrefix(short, typed) && short == strings.Map(inert, escape.Clean(short)) {
			out = append(out, short)
		}
	}
	return out
}

// describe is a transaction's summary, behind how it ended if it did, in one line that is inert whatever a
// shell does with it.
func describe(tx ledger.Transaction) string {
	text := []rune(escape.Clean(tx.Notes))
	if len(text) > maxSummary {
		text = append(text[:maxSummary-1], '…')
	}
	if tx.Closed {
		text = append([]rune(plain.StateOf(tx.Status, "", tx.GateOnly(), false)+": "), text...)
	}
	return strings.Map(inert, string(text))
}

// inert replaces what a shell might expand, or take for the end of a word.
func inert(r rune) rune {
	if strings.ContainsRune("$`\\!'\"<>&|;*?~{}", r) {
		return '_'
	}
	return r
}

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
			only := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
			if cmd.Name() == "run" { // which takes a patch's file as well
				only = cobra.ShellCompDirectiveKeepOrder
			}
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
	return "did you mean --" + strings.Join(near, " or --") + "?"
}
