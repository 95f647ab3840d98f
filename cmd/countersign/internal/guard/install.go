package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/report"
)

// The files of a repository's hooks. Gitea, Forgejo and GitLab run all that is in the directory, as our own first one does.
const (
	firstHook = "pre-receive"
	hooksDir  = "pre-receive.d"
	ourHook   = "countersign"
	formerOne = "before-countersign" // the hook that was there
)

// runnerMark is how every version of runner begins.
const runnerMark = "#!/bin/sh\n# countersign guard: every program in pre-receive.d "

// runner is the hook that runs the others; one that is not there, or may not be run, is passed over, but ours is not.
const runner = runnerMark + `gets the push, and each may refuse it.
dir=$(dirname "$0")/pre-receive.d
[ -x "$dir/countersign" ] || { echo "countersign: error: $dir/countersign is not there, or may not be run" >&2; exit 1; }
push=$(cat; echo .)
for hook in "$dir"/*; do
	[ -f "$hook" ] && [ -x "$hook" ] || continue
	printf '%s' "${push%.}" | "$hook" || exit 1
done
`

// ours is the hook that runs a program.
func ours(program string) string {
	return "#!/bin/sh\n# countersign guard: docs/guard.md\nexec '" + strings.ReplaceAll(filepath.ToSlash(program), "'", `'\''`) + "' guard pre-receive\n"
}

// A place is a repository whose hooks are meant, or with dir "" a directory of hooks.
type place struct{ dir, hooks string }

type placeFlags struct{ repo, all, hooks string }

func (f *placeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.repo, "repo", "", "the repository `DIR`, as with -C")
	cmd.Flags().StringVar(&f.all, "all", "", "every repository below `DIR`")
	cmd.Flags().StringVar(&f.hooks, "hooks", "", "a directory of hooks, `DIR`, such as GitLab's custom_hooks")
	cmd.MarkFlagsMutuallyExclusive("repo", "all", "hooks")
}

// places are those that the flags mean.
func (f *placeFlags) places(c *console.Console) (all []place, err error) {
	switch {
	case f.hooks != "":
		return []place{{"", c.Path(f.hooks)}}, nil
	case f.all != "":
		root := filepath.Clean(c.Path(f.all))
		err = filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if strings.Count(strings.TrimPrefix(dir, root), string(filepath.Separator)) > 5 {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil && isDir(filepath.Join(dir, "objects")) {
				all = append(all, place{dir: dir})
				return fs.SkipDir
			}
			return nil
		})
		if err == nil && len(all) == 0 {
			err = fault.Fail(fmt.Sprintf("%s has no repositories", f.all), "name the directory that they are in")
		}
	case f.repo != "":
		all = []place{{dir: c.Path(f.repo)}}
	default:
		all = []place{{dir: c.From(c.Flags.Dir)}}
	}
	return all, err
}

func isDir(name string) bool {
	at, err := os.Stat(name)
	return err == nil && at.IsDir()
}

// open opens the repository of a place, and finds its hooks.
func (p *place) open(c *console.Console) (*session.Session, error) {
	own := *c
	own.Flags.Dir, own.AtEnd = p.dir, nil
	s, err := session.OpenLocal(&own)
	if err != nil {
		return nil, err
	}
	c.AtEnd = append(c.AtEnd, s.Close)
	p.hooks = filepath.Join(s.Repo.Dir(), "hooks")
	if path := s.Repo.Config.HooksPath; path != "" {
		if below, home := strings.CutPrefix(path, "~/"); home {
			path = filepath.Join(c.Getenv("HOME"), below)
		} else if !filepath.IsAbs(path) {
			path = filepath.Join(cmp.Or(s.Repo.Worktree(), s.Repo.Dir()), path)
		}
		return s, fault.Fail(fmt.Sprintf("%s: core.hooksPath has git look for hooks in %s", report.Clean(p.dir), report.Clean(path)), place{hooks: path}.install())
	}
	return s, nil
}

// install is the command that has git ask the guard there.
func (p place) install() string {
	if p.dir == "" {
		return "countersign guard install --hooks " + escape.ShellQuote(p.hooks)
	}
	return "countersign guard install --repo " + escape.ShellQuote(p.dir)
}

func installCommand(c *console.Console) *cobra.Command {
	var f placeFlags
	var signers, elsewhere string
	cmd := &cobra.Command{
		Use: "install", Short: "Have Git ask the guard before it takes a push", Example: `  countersign guard install -C /srv/git/app.git
  countersign guard install --all /srv/git --allowed-signers /etc/countersign/writers
  countersign guard install --hooks /var/opt/gitlab/gitaly/custom_hooks`,
		Long: `install writes the hook pre-receive of a repository, beside those that are there (pre-receive.d). Running it
again changes nothing. The hook runs this very program where it is now; while that cannot be run, nothing gets in. A ledger
that is there already has to verify.`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			places, err := f.places(c)
			if err != nil {
				return err
			}
			for _, p := range places {
				if err := install(cmd.Context(), c, p, signers, elsewhere); err != nil {
					return err
				}
			}
			return status(c, places)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&elsewhere, "ledger", "", "the ledger is in another repository on this machine, `DIR`")
	cmd.Flags().StringVar(&signers, "allowed-signers", "", "take the ledger's word for what is not signed, as one of the keys in `FILE` signed each of its commits")
	return cmd
}

func install(ctx context.Context, c *console.Console, p place, signers, elsewhere string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if p.dir != "" {
		s, err := p.open(c)
		if err != nil {
			return err
		}
		if err := sound(ctx, c, s, cmp.Or(signers, s.Repo.Config.Habit(signersHabit))); err != nil {
			return err
		}
		for _, said := range []struct {
			key, name string
			check     func(name string) error
		}{
			{signersHabit, signers, func(string) error { return nil }}, // sound has read it
			{ledgerHabit, elsewhere, func(name string) error {
				of, err := gitstore.Open(name)
				if err != nil {
					return err
				}
				return of.Close()
			}},
		} {
			if said.name == "" {
				continue
			}
			name, err := filepath.Abs(c.Path(said.name))
			if err == nil {
				err = said.check(name)
			}
			if err == nil {
				err = s.Repo.SetHabit(said.key, name)
			}
			if err != nil {
				return err
			}
		}
	}
	return writeHooks(p.hooks, program)
}

// sound refuses a Policy that cannot be read, which would keep out what mends it, and a ledger that does not verify, or that
// others than the signers wrote, if there are any: what comes is held to what is there.
func sound(ctx context.Context, c *console.Console, s *session.Session, signers string) (err error) {
	var keys *sshsig.Allowed
	if signers != "" {
		if keys, err = session.AllowedSigners(c, signers); err != nil {
			return err
		}
	}
	head, err := s.Repo.HeadRef()
	if err != nil {
		return err
	}
	tip, err := s.Repo.Ref(ctx, head)
	if err != nil {
		return err
	}
	if _, err := policyOf(ctx, s.Repo, head, tip); err != nil {
		return err
	}
	h, err := s.Local.History(ctx, gitstore.HistoryOptions{Signers: keys})
	if errors.Is(err, gitstore.ErrNoLedger) {
		return nil
	}
	if err != nil {
		return err
	}
	found, err := session.AuditRules(ctx, s, h, verdict.Options{Signatures: keys != nil})
	if err == nil && !found.OK {
		err = fault.Fail("the ledger that is there does not verify", "countersign audit -C "+escape.ShellQuote(s.Repo.Dir()))
	}
	return err
}

// writeHooks puts ours beside what is there. What runs the others comes last: whatever happens before, what was there runs on.
func writeHooks(dir, program string) error {
	first, below := filepath.Join(dir, firstHook), filepath.Join(dir, hooksDir)
	if err := os.MkdirAll(below, 0o755); err != nil {
		return err
	}
	if err := writeHook(filepath.Join(below, ourHook), ours(program)); err != nil {
		return err
	}
	at, err := os.Lstat(first)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return writeHook(first, runner)
	case err != nil:
		return err
	}
	there, err := os.ReadFile(first)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(string(there), runnerMark):
		return writeHook(first, runner)
	case runsAll(there):
		return nil
	case !at.Mode().IsRegular():
		return fault.Fail(first+" is a link", "move it to "+filepath.Join(below, formerOne)+", and install again")
	}
	former := filepath.Join(below, formerOne)
	if was, err := os.Lstat(former); err == nil && os.SameFile(was, at) { // an install that was cut off
		return writeHook(first, runner)
	} else if err == nil {
		return fault.Fail(former+" is there, and "+first+" is another hook", "move one of them away, and install again")
	}
	if err := os.Link(first, former); err != nil {
		return err
	}
	return writeHook(first, runner)
}

// runsAll reports whether a hook that is not ours has a command with the directory of hooks in it.
func runsAll(hook []byte) bool {
	for line := range strings.Lines(string(hook)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && strings.Contains(line, hooksDir) {
			return true
		}
	}
	return false
}

func writeHook(name, text string) error {
	if there, err := os.ReadFile(name); err != nil || string(there) != text {
		if err := atomicfile.Write(name, []byte(text)); err != nil {
			return err
		}
	}
	return os.Chmod(name, 0o755)
}

func statusCommand(c *console.Console) *cobra.Command {
	var f placeFlags
	cmd := &cobra.Command{
		Use: "status", Short: "Say which branches the guard holds, and what it goes by", Args: console.NoArgs,
		Example: "  countersign guard status --all /srv/git --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			places, err := f.places(c)
			if err != nil {
				return err
			}
			return status(c, places)
		},
	}
	f.add(cmd)
	return cmd
}

// guarded is what is said of one place. Why says that it is not or, where it is, that nothing gets in.
type guarded struct {
	Directory string   `json:"directory"`
	Guarded   bool     `json:"guarded"`
	Why       string   `json:"why"`
	Branches  []string `json:"branches"`
	Signers   string   `json:"allowed_signers"`
	Notes     []string `json:"notes"`
}

// status tells of each place; one that is not guarded, or that nothing gets into, is an error.
func status(c *console.Console, places []place) error {
	var all []guarded
	text, failed := "", error(nil)
	for _, p := range places {
		g, try := look(c, &p)
		all = append(all, g)
		text += report.Clean(g.Directory)
		switch {
		case !g.Guarded:
			text += fmt.Sprintf(": not guarded: %s\n", report.Clean(g.Why))
			failed = fault.Fail(g.Directory+" is not guarded", cmp.Or(try, p.install()))
		case g.Why != "":
			text += fmt.Sprintf(": guarded, and refuses everything: %s\n", report.Clean(g.Why))
			failed = fault.Fail(g.Directory+" refuses every push", "docs/guard.md says how to mend it")
		default:
			text += fmt.Sprintf(": guarded: %s\n", report.Clean(strings.Join(g.Branches, ", ")))
		}
		for _, note := range g.Notes {
			text += "  " + report.Clean(note) + "\n"
		}
	}
	return cmp.Or(c.Result(map[string]any{"repositories": all}, text), failed)
}

// look also returns what mends a place that git's own settings keep from being guarded.
func look(c *console.Console, p *place) (g guarded, try string) {
	g = guarded{Directory: p.dir, Branches: []string{}, Notes: []string{}}
	if p.dir == "" {
		g.Directory = p.hooks
	} else {
		s, err := p.open(c)
		if err != nil {
			g.Why = err.Error()
			return g, console.HintOf(err)
		}
		if err := g.goesBy(c, s); err != nil {
			g.Why = console.OneLine(err)
		}
	}
	not := hooked(p.hooks)
	g.Guarded, g.Why = not == "", cmp.Or(not, g.Why)
	return g, ""
}

// goesBy notes what the guard of a repository goes by. An error is why it refuses every push.
func (g *guarded) goesBy(c *console.Console, s *session.Session) error {
	if g.Signers = s.Repo.Config.Habit(signersHabit); g.Signers != "" {
		if _, err := session.AllowedSigners(c, g.Signers); err != nil {
			return err
		}
	}
	dir, err := scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at, err := open(context.Background(), s, dir, "", nil, "", nil)
	if err != nil {
		return err
	}
	for _, branch := range at.branches {
		g.Branches = append(g.Branches, short(branch))
	}
	switch {
	case at.was[at.head] == "":
		g.Notes = append(g.Notes, short(at.head)+" is not there yet: who pushes it first says what the guard begins with")
	case at.policy.Approvals.Keys == "" && g.Signers == "":
		g.Notes = append(g.Notes, "the Policy names no keys (approvals.keys), and no --allowed-signers are known: nothing can be approved")
	}
	return nil
}

// hooked says why hooks do not ask the guard, "" where they do.
func hooked(dir string) string {
	program, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	name := filepath.Join(dir, hooksDir, ourHook)
	there, err := os.ReadFile(name)
	switch {
	case err != nil:
		return name + " is not there"
	case string(there) != ours(program):
		return name + " is of another program, or another place of this one"
	}
	first, err := os.ReadFile(filepath.Join(dir, firstHook))
	if err != nil || !runsAll(first) {
		return filepath.Join(dir, firstHook) + " does not run what is in " + hooksDir
	}
	for _, name := range []string{name, filepath.Join(dir, firstHook)} {
		if at, err := os.Stat(name); err != nil || at.Mode()&0o111 == 0 {
			return name + " may not be run"
		}
	}
	return ""
}
