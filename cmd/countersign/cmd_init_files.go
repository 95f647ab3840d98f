package main

import (
	"bytes"
	"embed"
	"strings"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

//go:embed initfiles
var initFiles embed.FS

// The actions of others that the workflows use, by commit: a tag can be moved
// (T25).
const (
	useCheckout = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
	useUpload   = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0"
	useDownload = "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1"
	useAppToken = "actions/create-github-app-token@1b10c78c7865c340bc4f6099eb2f838309f1e8c3 # v3.1.1"
)

// placeholder stands for the action in workflows until --uses names it.
const placeholder = "OWNER/countersign@COMMIT"

// A scaffold is what differs from one repository's workflows to another's.
type scaffold struct {
	Uses      string // the action, as a step names it
	Gate      bool   // whether pull requests themselves are guarded
	LedgerRef string // "" for the usual one
}

// An initFile is one that init writes, by its name in the repository with
// slashes. What is theirs is for the owner to change, and is never written over.
type initFile struct {
	path, source string
	theirs       bool
	asked        string // the flag that asks for the file, "" where it is always written
}

const workflows = ".github/workflows/countersign-"

// The flags that ask for files which not everybody needs.
const (
	askedFleet        = "fleet"
	askedOrganization = "organization"
)

var initList = []initFile{
	{path: policy.Path, source: "countersign.yml", theirs: true},
	{path: workflows + "propose.yml", source: "propose.yml", theirs: true},
	{path: workflows + "relay.yml", source: "relay.yml"},
	{path: workflows + "settle.yml", source: "settle.yml"},
	{path: workflows + "sweep.yml", source: "sweep.yml"},
	{path: workflows + "fleet.yml", source: "fleet.yml", asked: askedFleet},
	{path: workflows + "organization.yml", source: "organization.yml", asked: askedOrganization},
}

// render is the file as init writes it.
func (f initFile) render(s scaffold) []byte { return []byte(s.fill(f.source, "")) }

// fill reads a template of initfiles. [[uses]] stands for a value; a line behind
// [[if gate]] or [[unless local]] is there only where that is so; and in place of
// a line [[part checks settle]] stands the file parts/checks.yml, for the job
// settle. Package text/template, which calls methods by names that it reads,
// would have the linker keep every method of every library: 6 MB of the program.
func (s scaffold) fill(source, job string) string {
	raw, err := initFiles.ReadFile("initfiles/" + source)
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
func (s scaffold) values(job string) *strings.Replacer {
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
	return strings.NewReplacer(
		"[[uses]]", s.Uses, "[[checkout]]", useCheckout, "[[upload]]", useUpload, "[[download]]", useDownload, "[[app-token]]", useAppToken,
		"[[runner]]", "${{ vars.COUNTERSIGN_RUNNER || 'ubuntu-latest' }}", // a repository's variable names another
		"[[job]]", job, "[[needs]]", "["+needs+"]", "[[clone]]", clone, "[[pull]]", pull, "[[or]]", or, "[[ledger]]", ledger,
	)
}

// untouched reports whether some earlier init wrote a file, and nobody changed it
// since.
func (f initFile) untouched(have []byte) bool {
	return bytes.Equal(have, f.render(scaffoldOf(have)))
}

// scaffoldOf is what a workflow of init was written with, as far as it shows.
func scaffoldOf(workflow []byte) scaffold {
	s := scaffold{Uses: usesIn(workflow), Gate: bytes.Contains(workflow, []byte("\n  merge_group:\n"))}
	if m := ledgerInput().FindSubmatch(workflow); m != nil {
		s.LedgerRef = string(m[1])
	}
	return s
}

var (
	ledgerInput = lazyregexp.New(`(?m)^ +ledger-ref: (\S+)$`)
	ledgerForm  = lazyregexp.New(`^refs/[A-Za-z0-9._/-]+$`)
)

var usesStep = lazyregexp.New(`(?m)^ +(?:- )?uses: (\S+)$`)

// usesIn finds what a workflow of init calls the action, "" where it has none:
// the pinned actions of others have a comment behind them.
func usesIn(workflow []byte) string {
	if m := usesStep().FindSubmatch(workflow); m != nil {
		return string(m[1])
	}
	return ""
}

// usesForm is an action at a commit, or one in the repository itself.
var usesForm = lazyregexp.New(`^([A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+@[0-9a-f]{40}|\./[A-Za-z0-9_./-]*)$`)

// The states of a file before init writes.
const (
	fileMissing = "missing"
	fileSame    = "same"
	fileOld     = "old"     // as an init wrote it with other flags
	fileTheirs  = "theirs"  // changed by the owner, whose it is
	fileDiffers = "differs" // changed, and init's
)

func (f initFile) state(have []byte, found bool, s scaffold) string {
	switch {
	case !found:
		return fileMissing
	case bytes.Equal(have, f.render(s)):
		return fileSame
	case f.untouched(have):
		return fileOld
	case f.theirs:
		return fileTheirs
	}
	return fileDiffers
}

// changed counts the lines that one text has and the other lacks.
func changed(from, to []byte) (removed, added int) {
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
