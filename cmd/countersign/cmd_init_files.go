package main

import (
	"bytes"
	"embed"
	"strings"
	"sync"
	"text/template"

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
	Job       string // that the part of a template is about
}

func (s scaffold) For(job string) scaffold { s.Job = job; return s }

// Needs are the jobs that one of the settle workflow waits for.
func (s scaffold) Needs() string {
	if s.Job == "settle" {
		return "[plan, settle]"
	}
	return "[" + s.Job + "]"
}

// Clone is the artifact that a clone is handed over as. A run of countersign-fleet
// has one for each pull request.
func (s scaffold) Clone() string {
	if s.Job == "settle" {
		return "countersign-clone-${{ " + s.Pull() + " }}"
	}
	return "countersign-clone"
}

// Pull is the number of the settle workflow's pull request, as an expression.
func (s scaffold) Pull() string { return "inputs.pr || needs.plan.outputs.pull-request" }

// Local reports whether the action is in the repository itself.
func (s scaffold) Local() bool { return strings.HasPrefix(s.Uses, "./") }

// Ledger is the step's input that names the ledger, where it needs one.
func (s scaffold) Ledger() string {
	if s.LedgerRef == "" {
		return ""
	}
	return "\n          ledger-ref: " + s.LedgerRef
}

// Runner is what jobs run on; a repository's variable names another.
func (s scaffold) Runner() string   { return "${{ vars.COUNTERSIGN_RUNNER || 'ubuntu-latest' }}" }
func (s scaffold) Checkout() string { return useCheckout }
func (s scaffold) Upload() string   { return useUpload }
func (s scaffold) Download() string { return useDownload }
func (s scaffold) AppToken() string { return useAppToken }

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

var initTemplates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Delims("[[", "]]").ParseFS(initFiles, "initfiles/*"))
})

// render is the file as init writes it.
func (f initFile) render(s scaffold) []byte {
	var b bytes.Buffer
	if err := initTemplates().ExecuteTemplate(&b, f.source, s); err != nil {
		panic("init: " + f.source + ": " + err.Error())
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("\r\n"), []byte("\n"))
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
