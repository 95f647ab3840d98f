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
	"strings"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/policy"
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
)

// Placeholder stands for the action in workflows until --uses names it.
const Placeholder = "OWNER/countersign@COMMIT"

// UsesForm is an action at a commit, or one in the repository itself; LedgerForm
// is a ref that the ledger can be kept on.
var (
	UsesForm    = lazyregexp.New(`^([A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+@[0-9a-f]{40}|\./[A-Za-z0-9_./-]*)$`)
	LedgerForm  = lazyregexp.New(`^refs/[A-Za-z0-9._/-]+$`)
	usesStep    = lazyregexp.New(`(?m)^ +(?:- )?uses: (\S+)$`)
	ledgerInput = lazyregexp.New(`(?m)^ +ledger-ref: (\S+)$`)
)

// Settings are what differs from one repository's workflows to another's.
type Settings struct {
	Uses      string   // the action, as a step names it
	Gate      bool     // whether pull requests themselves are guarded
	LedgerRef string   // "" for the usual one
	Answers   *Answers // for the Policy; nil where nobody was asked
}

// SettingsOf are what a workflow of init was written with, as far as it shows.
// The action is "" where it has none: the pinned actions of others have a comment
// behind them.
func SettingsOf(workflow []byte) Settings {
	s := Settings{Gate: bytes.Contains(workflow, []byte("\n  merge_group:\n"))}
	if m := usesStep().FindSubmatch(workflow); m != nil {
		s.Uses = string(m[1])
	}
	if m := ledgerInput().FindSubmatch(workflow); m != nil {
		s.LedgerRef = string(m[1])
	}
	return s
}

// A File is one that init writes, by its name in the repository with slashes.
// What is theirs is for the owner to change, and is never written over.
type File struct {
	Path   string
	source string
	theirs bool
	Asked  string // the flag that asks for the file, "" where it is always written
}

// Workflows begins the name of every workflow of init.
const Workflows = ".github/workflows/countersign-"

// The flags that ask for files which not everybody needs.
const (
	AskFleet        = "fleet"
	AskOrganization = "organization"
)

// List are the files of init; the first is the Policy.
var List = []File{
	{Path: policy.Path, source: "countersign.yml", theirs: true},
	{Path: Workflows + "propose.yml", source: "propose.yml", theirs: true},
	{Path: Workflows + "relay.yml", source: "relay.yml"},
	{Path: Workflows + "settle.yml", source: "settle.yml"},
	{Path: Workflows + "sweep.yml", source: "sweep.yml"},
	{Path: Workflows + "fleet.yml", source: "fleet.yml", Asked: AskFleet},
	{Path: Workflows + "organization.yml", source: "organization.yml", Asked: AskOrganization},
}

// Render is the file as init writes it.
func (f File) Render(s Settings) []byte { return []byte(s.fill(f.source, "")) }

// fill reads a template of files. [[uses]] stands for a value; a line behind
// [[if gate]] or [[unless local]] is there only where that is so; and in place of
// a line [[part checks settle]] stands the file parts/checks.yml, for the job
// settle. Package text/template, which calls methods by names that it reads,
// would have the linker keep every method of every library: 6 MB of the program.
func (s Settings) fill(source, job string) string {
	raw, err := templates.ReadFile("files/" + source)
	if err != nil {
		panic("init: " + err.Error())
	}
	is := map[string]bool{"gate": s.Gate, "local": strings.HasPrefix(s.Uses, "./")} // local: in the repository itself
	values := s.values(job)
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(string(raw), "\r\n", "\n")) {
		if !strings.HasPrefix(line, "[[") {
			b.WriteString(values.Replace(line))
			continue
		}
		words, rest, _ := strings.Cut(line[2:], "]]")
		verb, name, _ := strings.Cut(words, " ")
		holds, known := is[name]
		switch {
		case verb == "part":
			part, job, _ := strings.Cut(name, " ")
			b.WriteString(s.fill("parts/"+part+".yml", job))
		case !known || verb != "if" && verb != "unless":
			panic("init: " + source + ": " + line)
		case holds == (verb == "if"):
			b.WriteString(values.Replace(rest))
		}
	}
	return b.String()
}

// values puts in what the templates leave open. A job is one that hands over a
// clone, and that others wait for.
func (s Settings) values(job string) *strings.Replacer {
	const pull = "inputs.pr || needs.plan.outputs.pull-request" // the settle workflow's, as an expression
	needs, clone, or, ledger := job, "countersign-clone", "", ""
	if job == "settle" { // a run of countersign-fleet has a clone for each pull request
		needs, clone = "plan, settle", clone+"-${{ "+pull+" }}"
	}
	if s.Gate {
		or = "|| "
	}
	if s.LedgerRef != "" {
		ledger = "\n          ledger-ref: " + s.LedgerRef
	}
	return strings.NewReplacer(append(s.Answers.values(),
		"[[uses]]", s.Uses, "[[checkout]]", UseCheckout, "[[upload]]", UseUpload, "[[download]]", UseDownload, "[[app-token]]", UseAppToken,
		"[[runner]]", "${{ vars.COUNTERSIGN_RUNNER || 'ubuntu-latest' }}", // a repository's variable names another
		"[[job]]", job, "[[needs]]", "["+needs+"]", "[[clone]]", clone, "[[pull]]", pull, "[[or]]", or, "[[ledger]]", ledger,
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

// state compares a file with what init writes. It is old where some earlier init
// wrote it, and nobody changed it since.
func (f File) state(have []byte, found bool, s Settings) string {
	was := SettingsOf(have)
	if f.Path == policy.Path {
		was.Answers = answersIn(have)
	}
	switch {
	case !found:
		return Missing
	case bytes.Equal(have, f.Render(s)):
		return Same
	case bytes.Equal(have, f.Render(was)):
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
// that were not given are as the present workflows have them; asked are the flags that ask for files.
func Plan(tree fs.FS, s Settings, gateGiven bool, asked map[string]bool) ([]Planned, Settings, error) {
	var files []Planned
	for _, file := range List {
		have, err := readRegular(tree, file.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, s, fileError(file.Path, err)
		}
		if have == nil && file.Asked != "" && !asked[file.Asked] {
			continue
		}
		files = append(files, Planned{File: file, Have: have})
		if file.Path == policy.Path && have != nil && s.Answers == nil {
			s.Answers = answersIn(have)
		}
		if file.source == "settle.yml" && have != nil {
			was := SettingsOf(have)
			s.Uses, s.LedgerRef = cmp.Or(s.Uses, was.Uses), cmp.Or(s.LedgerRef, was.LedgerRef)
			if !gateGiven {
				s.Gate = was.Gate
			}
		}
	}
	s.Uses = cmp.Or(s.Uses, Placeholder)
	if s.LedgerRef == gitstore.LedgerRef {
		s.LedgerRef = ""
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
		if err := root.WriteFile(f.Path, f.Want, 0o666); err != nil {
			return fileError(f.Path, err)
		}
	}
	return nil
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
