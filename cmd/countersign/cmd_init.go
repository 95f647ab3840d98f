package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/gitstore"
)

type initFlags struct {
	check, harden, force, dryRun bool
	fleet, organization          bool
	gate, gateSet                bool
	uses, branch, ledgerRef      string
	app                          int64
}

func (a *App) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write the Policy and the GitHub workflows into the repository",
		Long: `init writes .github/countersign.yml, which says who must approve, and four workflows:
countersign-propose (an example of a bot, with no rights but to read), countersign-relay,
countersign-settle and countersign-sweep. The first two files are yours to change and are
never written over; of the others, one that was changed is written over with --force alone.
What bots propose is settled; with --gate the diffs of pull requests themselves are put up for
approval too. --fleet adds countersign-fleet, which settles many pull requests at once; --organization adds
countersign-organization, which starts that workflow in all repositories of an organisation
(docs/scaling.md). Once they are there they are kept up to date like the others.

With --check it writes nothing and says what will not work: the token's rights, rules for
pushes, the files on the default branch. With --harden it prints what protects the
repository further, as requests to GitHub's API.`,
		Example: "  countersign init --uses OWNER/countersign@0123456789abcdef0123456789abcdef01234567\n  countersign init --check\n" +
			"  countersign init --harden --ledger-ref refs/heads/countersign-ledger --app 12345",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.gateSet = cmd.Flags().Changed("gate")
			if cmd.Flags().Changed("ledger-ref") {
				f.ledgerRef = a.flags.ledgerRef
			}
			switch {
			case f.ledgerRef != "" && !ledgerForm().MatchString(f.ledgerRef):
				return &usageError{fmt.Sprintf("--ledger-ref %+q cannot be the ledger's", f.ledgerRef), "a ledger ref looks like " + gitstore.LedgerRef}
			case f.check && f.harden:
				return &usageError{"--check and --harden were both given", "give one of them"}
			case f.uses != "" && !usesForm().MatchString(f.uses):
				return &usageError{fmt.Sprintf("--uses %+q is not an action at a commit", f.uses), "a tag can be moved: OWNER/REPOSITORY@ and the 40 digits of the commit"}
			case f.check:
				return a.initCheck(cmd.Context(), f)
			case f.harden:
				f.branch = firstOf(f.branch, "main")
				return a.initHarden(f)
			}
			return a.init(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.uses, "uses", "", "the `ACTION` that the workflows use: OWNER/countersign@COMMIT, or ./ in its own repository")
	flags.BoolVar(&f.gate, "gate", false, "guard pull requests themselves too: the check \"countersign\" passes once their own diff is approved")
	flags.BoolVar(&f.fleet, askedFleet, false, "also write a workflow that settles many pull requests at once")
	flags.BoolVar(&f.organization, askedOrganization, false, "also write a workflow that starts the former in every repository of an organisation")
	flags.BoolVar(&f.force, "force", false, "write over workflows that were changed")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be written, and write nothing")
	flags.BoolVar(&f.check, "check", false, "write nothing; ask GitHub, and say what will not work")
	flags.BoolVar(&f.harden, "harden", false, "write nothing; print the requests that protect the ledger's branch and the signing key")
	flags.StringVar(&f.branch, "branch", "", "the default branch's `NAME`: with --check, where GitHub is not asked; with --harden (main)")
	flags.Int64Var(&f.app, "app", 0, "with --harden, the `NUMBER` of the app that alone may write the ledger's branch")
	return cmd
}

// planned is one file and what becomes of it.
type planned struct {
	initFile
	State string
	have  []byte
	want  []byte
}

func (a *App) init(_ context.Context, f initFlags) error {
	root, err := a.initRoot()
	if err != nil {
		return err
	}
	defer root.Close()
	files, s, err := initPlan(root, f)
	if err != nil {
		return &exitError{exitIO, err}
	}
	if err := refuseChanged(files, f.force); err != nil {
		return err
	}
	if !f.dryRun {
		if err := writeInit(root, files); err != nil {
			return &exitError{exitIO, err}
		}
	}
	return a.showInit(files, s, f)
}

func (a *App) initRoot() (*os.Root, error) {
	repo, err := gitstore.Open(a.flags.dir)
	if err != nil {
		return nil, a.inDir(err)
	}
	dir, err := repo.Worktree()
	if err == nil && dir == "" {
		err = &usageError{"the repository has no working tree to write into", "run it in a clone of it"}
	}
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// initPlan looks at what is there. Flags that were not given are as the present
// workflows have them.
func initPlan(root *os.Root, f initFlags) ([]planned, scaffold, error) {
	var files []planned
	s := scaffold{Uses: f.uses, Gate: f.gate, LedgerRef: f.ledgerRef}
	for _, file := range initList {
		have, err := readRegular(root, file.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, s, fmt.Errorf("%s: %w", file.path, plain(err))
		}
		if have == nil && !f.wants(file) {
			continue
		}
		files = append(files, planned{initFile: file, have: have})
		if file.source == "settle.yml" && have != nil {
			was := scaffoldOf(have)
			s.Uses, s.LedgerRef = firstOf(s.Uses, was.Uses), firstOf(s.LedgerRef, was.LedgerRef)
			if !f.gateSet {
				s.Gate = was.Gate
			}
		}
	}
	s.Uses = firstOf(s.Uses, placeholder)
	if s.LedgerRef == gitstore.LedgerRef {
		s.LedgerRef = ""
	}
	for i := range files {
		files[i].want = files[i].render(s)
		files[i].State = files[i].state(files[i].have, files[i].have != nil, s)
	}
	return files, s, nil
}

// wants reports whether a file is written where there is none.
func (f initFlags) wants(file initFile) bool {
	return file.asked == "" || file.asked == askedFleet && f.fleet || file.asked == askedOrganization && f.organization
}

// readRegular reads a file that is no link; it is never nil where there is one.
func readRegular(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	raw, err := root.ReadFile(name)
	return append([]byte{}, raw...), err
}

func refuseChanged(files []planned, force bool) error {
	var names []string
	for _, f := range files {
		if f.State == fileDiffers && !force {
			removed, added := changed(f.have, f.want)
			names = append(names, fmt.Sprintf("%s (%d lines would go, %d come)", f.path, removed, added))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &usageError{"nothing was written: changed since init wrote them are " + strings.Join(names, ", "), "init --force writes over them; the change is then only in Git's history"}
}

func writeInit(root *os.Root, files []planned) error {
	for _, f := range files {
		if f.State == fileSame || f.State == fileTheirs {
			continue
		}
		err := root.MkdirAll(path.Dir(f.path), 0o777)
		if err == nil {
			err = root.WriteFile(f.path, f.want, 0o666)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, plain(err))
		}
	}
	return nil
}

// initWords say what was done with a file in a state, and what would be.
var initWords = map[string][2]string{
	fileMissing: {"written", "would be written"},
	fileSame:    {"as it was", "stays as it is"},
	fileOld:     {"brought up to date", "would be brought up to date"},
	fileTheirs:  {"yours, left alone", "yours, stays as it is"},
	fileDiffers: {"written over", "would be written over"},
}

func (a *App) showInit(files []planned, s scaffold, f initFlags) error {
	list := make([]any, len(files))
	text := ""
	for i, file := range files {
		word := initWords[file.State][0]
		if f.dryRun {
			word = initWords[file.State][1]
		}
		removed, added := changed(file.have, file.want)
		if file.have != nil && (file.State == fileOld || file.State == fileDiffers) {
			word += fmt.Sprintf(" (-%d +%d lines)", removed, added)
		}
		text += fmt.Sprintf("%-43s %s\n", file.path, word)
		list[i] = map[string]any{"path": file.path, "state": file.State}
	}
	if s.Uses == placeholder {
		a.say("hint: the workflows name %s; run it again with --uses and the commit of a release", placeholder)
	} else {
		a.say("hint: commit these files to the default branch, then: %s", a.again("init", "--check"))
	}
	if a.flags.json {
		return a.printJSON(map[string]any{"files": list, "uses": s.Uses, "gate": s.Gate, "dry_run": f.dryRun})
	}
	return a.print(text)
}
