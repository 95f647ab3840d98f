// Package scaffold has what init writes into a repository, and judges what is
// there: the Policy and the workflows from templates, what of them somebody
// changed, what will not work with a repository's settings, and the requests that
// protect it further. Only Plan and Write touch files.
package scaffold

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

//go:embed files
var templates embed.FS

// The actions of others that the workflows use, by commit: a tag can be moved
// (T25).
const (
	UseCheckout = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
	UseUpload   = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0"
	UseDownload = "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1"
	UseAppToken = "actions/create-github-app-token@1b10c78c7865c340bc4f6099eb2f838309f1e8c3 # v3.1.1"

	UseUploadPages = "actions/upload-pages-artifact@fc324d3547104276b827a68afc52ff2a11cc49c9 # v5.0.0"
	UseDeployPages = "actions/deploy-pages@cd2ce8fcbc39b97be8ca5fce6e763baed58fa128 # v5.0.0"
)

// LedgerBranch is where --ledger-branch keeps the ledger.
const LedgerBranch = "refs/heads/countersign-ledger"

// Placeholder stands for the action in workflows until --uses names it.
const Placeholder = "OWNER/countersign@COMMIT"

// UsesForm is an action at a commit, or one in the repository itself; LedgerForm
// is a ref that the ledger can be kept on.
var (
	UsesForm    = canon.Regexp(`^([A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+@[0-9a-f]{40}|\./[A-Za-z0-9_./-]*)$`)
	LedgerForm  = canon.Regexp(`^refs/[A-Za-z0-9._/-]+$`)
	usesLine    = canon.Regexp(`(?m)^ +(?:- )?uses: (\S+)$`)
	ledgerInput = canon.Regexp(`(?m)^ +(?:ledger-ref|INPUT_LEDGER-REF): (\S+)$`)
	redactInput = canon.Regexp(`(?m)^ +redact: (true|false)$`)
	// A path as it is, without quotes.
	signersInput = canon.Regexp(`(?m)^ +allowed-signers: ([A-Za-z0-9._/-]+)$`)
	sinceInput   = canon.Regexp(`(?m)^ +since: ([0-9a-f]{40,64})$`)
)

// The folder of the action as the workflows use it, and the workflow that has the
// jobs of all of them, in the repository of the action.
const (
	actionFolder   = ".github/action"
	calledWorkflow = ".github/workflows/settle.yml"
)

// Settings are what differs from one repository's workflows to another's.
type Settings struct {
	Uses      string   // the repository of the action and its commit, or ./ in that repository itself
	Gate      bool     // whether pull requests themselves are guarded
	LedgerRef string   // "" for the usual one
	Usual     string   // where the clone keeps the ledger, for workflows that are new; "" for the usual one
	Inline    bool     // whether the jobs are written into the workflow, rather than called
	Redact    string   // whether the site leaves out diffs, "true" or "false"; "" for where not everybody may read the repository
	Since     string   // what the watch leaves out, as the owner wrote it into its workflow
	Signers   string   // the file of keys that the watch demands signatures of, likewise
	Answers   *Answers // for the Policy; nil where nobody was asked
	Guarded   string   // on Gitea and Forgejo, the branch whose pull requests are guarded; "" on GitHub
}

// SettingsOf are what a workflow of init was written with, as far as it shows.
// The action is "" where it has none: the pinned actions of others have a comment
// behind them.
func SettingsOf(workflow []byte) Settings {
	s := Settings{
		Gate:   bytes.Contains(workflow, []byte("\n  merge_group:\n")),
		Inline: bytes.Contains(workflow, []byte("\n  workflow_call:")) || bytes.Contains(workflow, []byte(" uses: ./"+Caller)),
	}
	if m := usesLine().FindSubmatch(workflow); m != nil {
		name, commit, _ := strings.Cut(string(m[1]), "@")
		for _, part := range []string{actionFolder, calledWorkflow} {
			if whole, is := strings.CutSuffix(name, "/"+part); is {
				name = whole
			}
		}
		switch {
		case commit != "":
			name += "@" + commit
		case name == ".":
			name = "./"
		}
		s.Uses = name
	}
	for to, line := range map[*string]func() *regexp.Regexp{&s.LedgerRef: ledgerInput, &s.Redact: redactInput, &s.Since: sinceInput, &s.Signers: signersInput} {
		if m := line().FindSubmatch(workflow); m != nil {
			*to = string(m[1])
		}
	}
	return s
}

// local reports whether the action is in the repository itself.
func (s Settings) local() bool { return strings.HasPrefix(s.Uses, "./") }

// inline reports whether the jobs are written into the workflow: by choice, or
// because the action is in a folder, where no workflow can be called.
func (s Settings) inline() bool {
	name, _, _ := strings.Cut(s.Uses, "@")
	return s.Inline || s.Uses != "./" && strings.Count(name, "/") != 1
}

// within is something in the repository of the action, as a workflow names it.
func (s Settings) within(path string) string {
	name, commit, pinned := strings.Cut(s.Uses, "@")
	name = strings.TrimSuffix(name, "/") + "/" + path
	if pinned {
		name += "@" + commit
	}
	return name
}

// A File is one that init writes, by its name in the repository with slashes.
// What is theirs is for the owner to change, and is never written over.
type File struct {
	Path   string
	source string
	theirs bool
	hub    string // the source of what init for GitHub writes there, where this is for another forge
	Asked  string // the flag that asks for the file, "" where it is always written
}

// Workflows begins the names of the workflows of init, but for Caller, the one
// with rights.
const (
	Workflows     = ".github/workflows/countersign-"
	Caller        = ".github/workflows/countersign.yml"
	PagesWorkflow = ".github/workflows/" + github.PagesWorkflow
	watchWorkflow = Workflows + "watch.yml"

	attestWorkflow = Workflows + "attest.yml"
)

// The flags that ask for files which not everybody needs. The called workflow is
// in the action's own repository alone.
const (
	AskFleet        = "fleet"
	AskOrganization = "organization"
	AskPages        = "pages"
	AskWatch        = "watch"
	AskAttest       = "attest"
	AskDigest       = "digest"
	askCalled       = "uses ./"
)

// List are the files of init; the first is the Policy.
var List = []File{
	{Path: policy.Path, source: "policy.yml", theirs: true},
	{Path: Caller, source: "caller.yml"},
	{Path: Workflows + "events.yml", source: "events.yml", theirs: true},
	{Path: Workflows + "fleet.yml", source: "fleet.yml", Asked: AskFleet},
	{Path: Workflows + "organization.yml", source: "organization.yml", Asked: AskOrganization},
	{Path: Workflows + "evidence.yml", source: "evidence.yml", Asked: AskOrganization},
	{Path: PagesWorkflow, source: "pages.yml", Asked: AskPages},
	{Path: watchWorkflow, source: "watch.yml", Asked: AskWatch},
	{Path: attestWorkflow, source: "attest.yml", Asked: AskAttest},
	{Path: Workflows + "digest.yml", source: "digest.yml", Asked: AskDigest},
	{Path: calledWorkflow, source: "settle.yml", Asked: askCalled},
}

// Render is the file as init writes it.
func (f File) Render(s Settings) []byte {
	called := f.Path == calledWorkflow
	is := map[string]bool{"gate": s.Gate, "inline": s.inline(), "local": s.local() && !called, "gitea": s.Guarded != ""}
	return []byte(fill(f.source, is, s.values(called)))
}

// fill reads a template of files. [[action]] stands for a value; a line behind
// [[if gate]] or [[unless local]] is there only where that is so; and in place of
// a line [[part jobs]] stands the file parts/jobs.yml. Package text/template,
// which calls methods by names that it reads, would have the linker keep every
// method of every library: 6 MB of the program.
func fill(source string, is map[string]bool, values *strings.Replacer) string {
	raw, err := templates.ReadFile("files/" + source)
	if err != nil {
		panic("init: " + err.Error())
	}
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(string(raw), "\r\n", "\n")) {
		there := true
		for strings.HasPrefix(line, "[[") {
			words, rest, _ := strings.Cut(line[2:], "]]")
			verb, name, _ := strings.Cut(words, " ")
			holds, known := is[name]
			switch {
			case verb == "part" && there:
				rest = fill("parts/"+name+".yml", is, values)
			case verb == "part":
			case !known || verb != "if" && verb != "unless":
				panic("init: " + source + ": " + line)
			case holds != (verb == "if"):
				there = false
			}
			line = rest
		}
		if there {
			b.WriteString(values.Replace(line))
		}
	}
	return b.String()
}

// values puts in what the templates leave open. The called workflow uses the
// action of its own commit, wherever it is called: "$/" is the repository of the
// workflow's file (GitHub's changelog of 2026-07-30), and takes no folder of the
// caller's as "./" would.
func (s Settings) values(called bool) *strings.Replacer {
	input := func(name, value string) string { // a line of a step, "" without a value
		if value == "" {
			return ""
		}
		return "\n          " + name + ": " + value
	}
	action, settle, ledgerRef, callLedger := s.within(actionFolder), s.within(calledWorkflow), s.LedgerRef, ""
	ledger := input("ledger-ref", ledgerRef)
	if called {
		action, ledgerRef, ledger = "$/"+actionFolder, "", input("ledger-ref", "${{ inputs.ledger-ref }}")
	}
	if s.inline() {
		settle = "./" + Caller
	} else if ledgerRef != "" {
		callLedger = "\n      ledger-ref: " + ledgerRef
	}
	return strings.NewReplacer(append(s.Answers.values(),
		"[[action]]", action, "[[settle]]", settle, "[[checkout]]", UseCheckout, "[[upload]]", UseUpload, "[[download]]", UseDownload, "[[app-token]]", UseAppToken,
		"[[upload-pages]]", UseUploadPages, "[[deploy-pages]]", UseDeployPages, "[[redact]]", input("redact", s.Redact), "[[since]]", input("since", s.Since), "[[signers]]", input("allowed-signers", s.Signers),
		"[[runner]]", "${{ vars.COUNTERSIGN_RUNNER || 'ubuntu-latest' }}", // a repository's variable names another
		"[[pull]]", "inputs.pr || needs.plan.outputs.pull-request", "[[ledger]]", ledger, "[[call-ledger]]", callLedger, "[[ledger-env]]", input("INPUT_LEDGER-REF", ledgerRef), "[[ledger-ref]]", cmp.Or(s.LedgerRef, gitstore.LedgerRef), "[[branch]]", s.Guarded,
	)...)
}

// The states of a file before init writes.
const (
	Missing = "missing"
	Same    = "same"
	Old     = "old"     // as an init wrote it with other flags
	Theirs  = "theirs"  // changed by the owner, whose it is
	Differs = "differs" // changed, and init's
)

// isHubs reports whether a file is what init wrote for GitHub before it was told which forge this is.
func (f File) isHubs(have []byte, was Settings) bool {
	was.Guarded = ""
	return f.hub != "" && bytes.Equal(have, File{Path: f.Path, source: f.hub}.Render(was))
}

// state compares a file with what init writes. It is old where some earlier init
// wrote it, and nobody changed it since.
func (f File) state(have []byte, found bool, s Settings) string {
	was := SettingsOf(have)
	was.Guarded = s.Guarded
	if f.Path == policy.Path {
		was.Answers = answersIn(have)
	}
	switch {
	case !found:
		return Missing
	case bytes.Equal(have, f.Render(s)):
		return Same
	case bytes.Equal(have, f.Render(was)), f.isHubs(have, was):
		return Old
	case f.theirs:
		return Theirs
	}
	return Differs
}

// A Planned file is one and what becomes of it. Have is nil where there is none.
type Planned struct {
	File
	State      string
	Have, Want []byte
}

// Plan looks at what is there, in a working tree (os.Root.FS) or in a commit's. Settings
// whose flags were not given are as the present workflows have them; asked are the flags
// that ask for files.
func Plan(tree fs.FS, s Settings, given func(flag string) bool, asked map[string]bool) ([]Planned, Settings, error) {
	there := map[string][]byte{}
	var called error // of the called workflow, which is init's in one repository alone
	for _, file := range List {
		have, err := ReadThere(tree, file.Path)
		if there[file.Path] = have; err != nil && file.Path == calledWorkflow {
			called = err
		} else if err != nil {
			return nil, s, err
		}
	}
	s = s.after(there, given)
	if called != nil && s.Uses == "./" {
		return nil, s, called
	}
	var files []Planned
	for _, file := range List {
		have := there[file.Path]
		switch {
		case file.Path == calledWorkflow && s.Uses != "./": // somebody else's, should there be one
			continue
		case have == nil && file.Asked != "" && file.Asked != askCalled && !asked[file.Asked]:
			continue
		}
		files = append(files, Planned{File: file, Have: have})
	}
	Replan(files, s)
	return files, s, nil
}

// Replan is Plan for other settings.
func Replan(files []Planned, s Settings) {
	for i, f := range files {
		files[i].Want, files[i].State = f.Render(s), f.state(f.Have, f.Have != nil, s)
	}
}

// after are the settings, with what no flag gives as the workflows that are there
// have it.
func (s Settings) after(there map[string][]byte, given func(flag string) bool) Settings {
	was := SettingsOf(there[Caller])
	s = s.afterLedger(there, Caller)
	s.Uses, s.Redact = cmp.Or(s.Uses, was.Uses, Placeholder), cmp.Or(s.Redact, SettingsOf(there[PagesWorkflow]).Redact)
	watch := SettingsOf(there[watchWorkflow])
	s.Since, s.Signers = watch.Since, watch.Signers
	if !given("gate") {
		s.Gate = was.Gate
	}
	if !given("inline") {
		s.Inline = s.Inline || was.Inline
	}
	return s
}

// afterLedger are the settings with the place of the ledger, and the answers, as the files that are there have them; caller
// is the workflow with rights.
func (s Settings) afterLedger(there map[string][]byte, caller string) Settings {
	s.LedgerRef = cmp.Or(s.LedgerRef, SettingsOf(there[caller]).LedgerRef)
	if there[caller] == nil {
		s.LedgerRef = cmp.Or(s.LedgerRef, s.Usual)
	}
	if s.LedgerRef == gitstore.LedgerRef {
		s.LedgerRef = ""
	}
	if raw := there[policy.Path]; raw != nil && s.Answers == nil {
		s.Answers = answersIn(raw)
	}
	return s
}

// ReadThere reads a file that is no link, nil for none.
func ReadThere(tree fs.FS, name string) ([]byte, error) {
	have, err := readRegular(tree, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fileError(name, err)
	}
	return have, nil
}

// readRegular reads a file that is no link; it is never nil where there is one.
func readRegular(tree fs.FS, name string) ([]byte, error) {
	info, err := fs.Lstat(tree, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	raw, err := fs.ReadFile(tree, name)
	return append([]byte{}, raw...), err
}

// Write writes what is not there as it is wanted, but nothing of the owner's.
func Write(root *os.Root, files []Planned) error {
	for _, f := range files {
		if f.State == Same || f.State == Theirs {
			continue
		}
		if err := root.MkdirAll(path.Dir(f.Path), 0o777); err != nil {
			return fileError(f.Path, err)
		}
		if err := f.replace(root); err != nil {
			return err
		}
	}
	return nil
}

// replace puts the file in place whole, or not at all: what is there stays until a file beside it has all of the new
// one, on disk, and its mode. A link that has come into its place meanwhile is not followed.
func (f Planned) replace(root *os.Root) error {
	temp := f.Path + ".countersign-new"
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a run that was killed
		return fileError(temp, err)
	}
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fileError(temp, err)
	}
	err = atomicfile.Place(root, file, temp, f.Path, func(file *os.File) error {
		if info, gone := root.Lstat(f.Path); gone == nil {
			err = file.Chmod(info.Mode().Perm())
		}
		if err == nil {
			_, err = file.Write(f.Want)
		}
		if err == nil {
			err = file.Sync()
		}
		if err != nil {
			return err
		}
		now, err := readRegular(root.FS(), f.Path) // somebody may have worked on it while the change was shown
		if absent := errors.Is(err, fs.ErrNotExist); absent != (f.Have == nil) || !absent && (err != nil || !bytes.Equal(now, f.Have)) {
			return fault.Refuse(f.Path+": it was changed meanwhile, and is left as it is", "look at it, and run init again")
		}
		return nil
	})
	if err == nil || errors.Is(err, fault.Refused) {
		return err
	}
	return fileError(f.Path, err)
}

// fileError names the file once: a system's error has its name and the operation.
func fileError(name string, err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Changed counts the lines that one text has and the other lacks.
func Changed(from, to []byte) (removed, added int) {
	lines := map[string]int{}
	for line := range bytes.Lines(from) {
		lines[string(line)]++
	}
	for line := range bytes.Lines(to) {
		if lines[string(line)]--; lines[string(line)] < 0 {
			added++
		}
	}
	for _, n := range lines {
		removed += max(n, 0)
	}
	return removed, added
}
