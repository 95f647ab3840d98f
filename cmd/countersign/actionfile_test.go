package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
)

// workflowFile is what these tests read of a workflow, and of action.yml.
type workflowFile struct {
	raw string

	On          map[string]any `yaml:"on"`
	Permissions any            `yaml:"permissions"`
	Jobs        map[string]workflowJob
	Runs        workflowJob
	Inputs      map[string]any
	Outputs     map[string]any
}

type workflowJob struct {
	Permissions any            `yaml:"permissions"`
	Timeout     int            `yaml:"timeout-minutes"`
	Uses        string         // another workflow, instead of steps
	With        map[string]any // what it is given
	Secrets     any
	Outputs     map[string]any `yaml:"outputs"`
	Steps       []workflowStep
}

type workflowStep struct {
	ID, Uses, Run string
	With, Env     map[string]any
}

func parseWorkflow(t *testing.T, raw []byte) workflowFile {
	t.Helper()
	w := workflowFile{raw: string(raw)}
	check(t, yaml.Unmarshal(raw, &w))
	return w
}

func readWorkflow(t *testing.T, name string) workflowFile {
	t.Helper()
	raw, err := os.ReadFile(name)
	check(t, err)
	return parseWorkflow(t, raw)
}

// everyWorkflow are the repository's own and those that init writes, by a name
// to call them by in messages.
func everyWorkflow(t *testing.T) map[string]workflowFile {
	t.Helper()
	out := map[string]workflowFile{}
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	check(t, err)
	for _, file := range files {
		out[filepath.Base(file)] = readWorkflow(t, file)
	}
	for name, s := range map[string]scaffold.Settings{
		"init": {Uses: scaffold.Placeholder, LedgerRef: "refs/heads/ledger"}, "init --gate": {Uses: scaffold.Placeholder, Gate: true},
		"init --uses ./": {Uses: "./"}, "init --inline --gate": {Uses: pinnedAction, Gate: true, Inline: true}, "init --uses ./tools/countersign": {Uses: "./tools/countersign"},
		"init --pages --redact=false": {Uses: pinnedAction, Redact: "false", LedgerRef: "refs/heads/ledger"},
	} {
		for _, file := range scaffold.List[1:] {
			text := file.Render(s)
			if bytes.Contains(text, []byte("[[")) {
				t.Errorf("%s: %s leaves something open", name, file.Path)
			}
			out[name+" "+path.Base(file.Path)] = parseWorkflow(t, text)
		}
	}
	if len(out) < 30 {
		t.Fatalf("only %d workflows were seen", len(out))
	}
	return out
}

func (w workflowFile) events() []string { return slices.Collect(maps.Keys(w.On)) }

// may are the permissions of a job; nil where nobody says, which is whatever the
// repository's settings say.
func (w workflowFile) may(job workflowJob) map[string]any {
	given := w.Permissions
	if job.Permissions != nil {
		given = job.Permissions
	}
	may, _ := given.(map[string]any)
	return may
}

// trusted reports whether a job can write anything, or is given a secret.
func (w workflowFile) trusted(job workflowJob) bool {
	if job.Secrets != nil {
		return true
	}
	for _, step := range job.Steps {
		for _, v := range append(slices.Collect(maps.Values(step.With)), slices.Collect(maps.Values(step.Env))...) {
			if s, _ := v.(string); strings.Contains(s, "secrets.") {
				return true
			}
		}
	}
	may := w.may(job)
	return may == nil || slices.Contains(slices.Collect(maps.Values(may)), any("write"))
}

// TestT21NoExpressionsInScripts: what a workflow's event brings reaches our steps
// through the environment; an expression inside a script would be part of it.
func TestT21NoExpressionsInScripts(t *testing.T) {
	t.Parallel()
	all := everyWorkflow(t)
	all["action.yml"] = readWorkflow(t, "../../action.yml")
	runs := 0
	for name, w := range all {
		for _, job := range append(slices.Collect(maps.Values(w.Jobs)), w.Runs) {
			for _, step := range job.Steps {
				if step.Run != "" {
					runs++
				}
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: %s", name, step.Run)
				}
			}
		}
	}
	if runs < 10 {
		t.Errorf("only %d scripts were seen", runs)
	}
}

// TestT18RightsOnlyOnTheDefaultBranch: a job with rights starts on events whose
// workflow file a pull request does not bring. (That of a merge group is of
// commits which the required check let in; who calls a workflow runs it with the
// caller's rights, on the caller's event, and settle refuses those as well.)
func TestT18RightsOnlyOnTheDefaultBranch(t *testing.T) {
	t.Parallel()
	safe := []string{"issue_comment", "workflow_run", "pull_request_target", "merge_group", "workflow_dispatch", "workflow_call", "schedule", "push"}
	seen := 0
	for name, w := range everyWorkflow(t) {
		if len(w.events()) == 0 || w.Permissions == nil {
			t.Errorf("%s: no events, or no permissions for all of its jobs", name)
		}
		for id, job := range w.Jobs {
			if job.Uses != "" && job.Uses != "./"+scaffold.Caller && job.Uses != "./"+calledFile && !strings.HasPrefix(job.Uses, strings.Replace(scaffold.Placeholder, "@", "/"+calledFile+"@", 1)) && job.Uses != strings.Replace(pinnedAction, "@", "/"+calledFile+"@", 1) {
				t.Errorf("%s: %s calls %s", name, id, job.Uses)
			}
			if job.Timeout == 0 && job.Uses == "" { // the called workflow's jobs have their own
				t.Errorf("%s: %s may take for ever", name, id)
			}
			if !w.trusted(job) {
				continue
			}
			seen++
			for _, event := range w.events() {
				if !slices.Contains(safe, event) {
					t.Errorf("%s: %s has rights on %s", name, id, event)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d jobs with rights were seen", seen)
	}
}

// TestT19NoPullRequestIsCheckedOut: a job with rights checks out the default
// branch, or the tag that was pushed, and says so.
func TestT19NoPullRequestIsCheckedOut(t *testing.T) {
	t.Parallel()
	const branch = "${{ github.event.repository.default_branch || github.ref_name }}"
	seen := 0
	for name, w := range everyWorkflow(t) {
		onlyPush := slices.Equal(w.events(), []string{"push"})
		for id, job := range w.Jobs {
			for _, step := range job.Steps {
				if !strings.HasPrefix(step.Uses, "actions/checkout@") {
					continue
				}
				seen++
				if step.With["persist-credentials"] != false {
					t.Errorf("%s: %s leaves the token in Git's configuration (T24)", name, id)
				}
				if w.trusted(job) && !onlyPush && step.With["ref"] != branch {
					t.Errorf("%s: %s checks out %v", name, id, step.With["ref"])
				}
			}
		}
		if slices.ContainsFunc(slices.Collect(maps.Values(w.Jobs)), w.trusted) && regexp.MustCompile(`head\.(sha|ref)|head_ref|head_sha|head_branch`).MatchString(w.raw) {
			t.Errorf("%s names the head of a pull request", name)
		}
	}
	if seen < 10 {
		t.Errorf("only %d checkouts were seen", seen)
	}
}

// TestT25PinnedByCommit: what others publish is named by commit, in workflows
// and in what the documentation shows.
func TestT25PinnedByCommit(t *testing.T) {
	t.Parallel()
	for name, w := range everyWorkflow(t) {
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				called := strings.HasSuffix(name, path.Base(calledFile))
				switch of := strings.Replace(step.Uses, "/.github/action@", "@", 1); {
				case of == "", of == scaffold.Placeholder, scaffold.UsesForm().MatchString(of) && !(called && strings.HasPrefix(of, "./")):
				case called && of == "$/.github/action": // of the commit that the workflow itself is called at
				default:
					t.Errorf("%s uses %s", name, step.Uses)
				}
			}
		}
	}
	shown := regexp.MustCompile(`(?m)uses: (\S+@\S*)`)
	for _, page := range []string{"docs/action.md", "docs/setup.md", "README.md"} {
		raw, err := os.ReadFile("../../" + page)
		check(t, err)
		for _, m := range shown.FindAllSubmatch(raw, -1) {
			if uses := strings.Replace(string(m[1]), "/.github/action@", "@", 1); uses != scaffold.Placeholder && uses != "OWNER/countersign@<commit" && !scaffold.UsesForm().MatchString(uses) {
				t.Errorf("%s shows %s", page, uses)
			}
		}
	}
}

// TestT26NoSharedCache: what other jobs can put into a cache is not taken by one
// with rights, nor by any of ours.
func TestT26NoSharedCache(t *testing.T) {
	t.Parallel()
	for name, w := range everyWorkflow(t) {
		for id, job := range w.Jobs {
			for _, step := range job.Steps {
				setup := strings.HasPrefix(step.Uses, "actions/setup-")
				if strings.Contains(step.Uses, "cache") || setup && (w.trusted(job) || step.With["cache"] != false) {
					t.Errorf("%s: %s uses %s", name, id, step.Uses)
				}
			}
		}
	}
}

// TestT66ProposeCanOnlyRead: the job beside the agent, the relay, and the job
// that runs commands have no right and no token that the others have.
func TestT66ProposeCanOnlyRead(t *testing.T) {
	t.Parallel()
	seen := 0
	for name, w := range everyWorkflow(t) {
		for id, job := range w.Jobs {
			want := map[string]int{"propose": 1, "relay": 0, "checks": 0}
			most, ours := want[id]
			if !ours {
				continue
			}
			seen++
			may := w.may(job)
			if may == nil || len(may) != most || most == 1 && may["contents"] != "read" {
				t.Errorf("%s: %s may %v", name, id, may)
			}
			for _, step := range job.Steps {
				for key, v := range step.With {
					if s, _ := v.(string); strings.Contains(key, "token") || strings.Contains(s, "token") {
						t.Errorf("%s: %s is given %s: %v", name, id, key, v)
					}
				}
			}
			if id != "checks" && strings.Contains(w.raw, "secrets") {
				t.Errorf("%s names secrets", name)
			}
		}
	}
	if seen < 12 {
		t.Errorf("only %d such jobs were seen", seen)
	}
}

// TestActionFile: every input reaches the program, the workflows use those and no
// others, and docs/action.md names them all. The action of the workflows is the
// same as the one at the top, as far as it goes.
func TestActionFile(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/action.md")
	check(t, err)
	top, own := readWorkflow(t, "../../action.yml"), readWorkflow(t, "../../.github/action/action.yml")
	for _, action := range []workflowFile{top, own} {
		run := action.Runs.Steps[1]
		for name := range action.Inputs {
			got := run.Env["INPUT_"+strings.ToUpper(name)]
			if name == "token" && got == "${{ inputs.token || inputs.stage == 'propose' && github.token || '' }}" {
				continue // what proposes reads a private repository with its job's own token
			}
			if got != "${{ inputs."+name+" }}" {
				t.Errorf("the input %s is handed over as %v", name, got)
			}
		}
		for name := range action.Outputs {
			if !strings.Contains(action.raw, "${{ steps."+run.ID+".outputs."+name+" }}") {
				t.Errorf("the output %s comes from nowhere", name)
			}
		}
		for _, name := range append(slices.Collect(maps.Keys(action.Inputs)), slices.Collect(maps.Keys(action.Outputs))...) {
			if !bytes.Contains(page, []byte("`"+name+"`")) {
				t.Errorf("docs/action.md says nothing of %s", name)
			}
		}
		get := action.Runs.Steps[0] // the program that signs, for one stage alone, and no other than the one that was checked
		if get.Env["STAGE"] != "${{ inputs.stage }}" || run.Env["COUNTERSIGN_SIGSTORE"] != "${{ steps."+get.ID+".outputs.signer }}" {
			t.Errorf("the signer is %v for the stage %v", run.Env["COUNTERSIGN_SIGSTORE"], get.Env["STAGE"])
		}
		if run.Run != top.Runs.Steps[1].Run {
			t.Errorf("it runs %s", run.Run)
		}
	}
	for name := range own.Inputs {
		if _, there := top.Inputs[name]; !there {
			t.Errorf("the action at the top has no input %s", name)
		}
	}
	for name, w := range everyWorkflow(t) {
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				for input := range step.With {
					if _, known := own.Inputs[input]; strings.Contains(step.Uses, "/.github/action") && !known {
						t.Errorf("%s gives the action %s", name, input)
					}
				}
			}
		}
	}
}

// TestActionTables: docs/action.md has each input and output as action.yml does; UPDATE_SCRIPTS=1 writes them anew.
func TestActionTables(t *testing.T) {
	t.Parallel()
	var action struct{ Inputs, Outputs yaml.MapSlice }
	check(t, yaml.Unmarshal([]byte(repositoryFile(t, "action.yml")), &action))
	page := repositoryFile(t, "docs/action.md")
	inputs := "| input | default | |\n|---|---|---|\n"
	for _, in := range action.Inputs {
		its := in.Value.(map[string]any)
		preset := ""
		if its["default"] != "" {
			preset = fmt.Sprintf("`%v`", its["default"])
		}
		inputs += fmt.Sprintf("| `%s` | %s | %s |\n", in.Key, preset, its["description"])
	}
	outputs := "| output | |\n|---|---|\n"
	for _, out := range action.Outputs {
		outputs += fmt.Sprintf("| `%s` | %s |\n", out.Key, out.Value.(map[string]any)["description"])
	}
	made := page
	for _, table := range []string{inputs, outputs} {
		head, _, _ := strings.Cut(table, "\n")
		made = regexp.MustCompile(regexp.QuoteMeta(head)+`\n(\|.*\n)*`).ReplaceAllLiteralString(made, table)
	}
	if os.Getenv("UPDATE_SCRIPTS") != "" {
		check(t, os.WriteFile("../../docs/action.md", []byte(made), 0o644))
	} else if made != page || !strings.Contains(page, inputs) || !strings.Contains(page, outputs) {
		t.Error("docs/action.md has other tables than action.yml: UPDATE_SCRIPTS=1 writes them anew")
	}
}

// TestMarketplace: what a file can tell of GitHub's rules for an action that is listed: one file at the root, with a name, a description and a
// picture of those that there are.
func TestMarketplace(t *testing.T) {
	t.Parallel()
	action := repositoryYAML(t, "action.yml")
	for _, key := range []string{"name", "description", "author"} {
		if text, _ := action[key].(string); text == "" || len(text) > 125 {
			t.Errorf("its %s is %q", key, text)
		}
	}
	look, _ := action["branding"].(map[string]any)
	colours := []any{"white", "black", "yellow", "blue", "green", "orange", "red", "purple", "gray-dark"}
	if !slices.Contains(colours, look["color"]) || look["icon"] != "check-square" { // one of Feather's icons
		t.Errorf("its picture is %v", look)
	}
	if other, err := filepath.Glob("../../action.y*ml"); err != nil || len(other) != 1 {
		t.Errorf("at the root are %q, %v", other, err)
	}
	want(t, "docs/releasing.md", `(?m)^\| Marketplace \|`, `The Action's `+"`name`"+` must be`)
}

// The workflow that has the jobs, and a release of the action to call it at.
const (
	calledFile   = ".github/workflows/settle.yml"
	pinnedAction = "acme/countersign@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// rightsOfJobs is the table of all jobs: what each may do, in the files of init where
// a workflow is called, and in those where it is not.
var rightsOfJobs = map[string]map[string]any{
	"propose": {"contents": "read"},
	"relay":   {},
	"plan":    {"pull-requests": "read"},
	"settle":  {"contents": "write", "pull-requests": "write", "checks": "write", "actions": "read"},
	"checks":  {},
	"finish":  {"contents": "write", "pull-requests": "write", "checks": "write", "actions": "read"},
}

// rightsOfOthers are those of workflows that settle nothing. In the one that publishes
// the site, what reads the ledger publishes nothing, and what publishes reads nothing.
var rightsOfOthers = map[string]map[string]map[string]any{
	"countersign-pages.yml":    {"build": {"contents": "read"}, "publish": {"pages": "write", "id-token": "write"}},
	"countersign-watch.yml":    {"watch": {"contents": "read", "issues": "write"}, "dispose": {"contents": "write", "issues": "write"}, "settings": {"contents": "write"}},
	"countersign-digest.yml":   {"digest": {"contents": "read", "issues": "write"}},
	"countersign-attest.yml":   {"attest": {"contents": "write", "id-token": "write", "attestations": "write"}},
	"countersign-evidence.yml": {"evidence": {}},
}

// TestT85Rights: a called workflow's jobs have the rights of the table, which are
// within what the caller's file shows; jobs that are written into the caller have
// the same. A person who sets this up reads two files, of at most 40 lines each.
func TestT85Rights(t *testing.T) {
	t.Parallel()
	most := scaffold.Settings{Uses: pinnedAction, Gate: true, LedgerRef: "refs/heads/ledger"}
	inline := most
	inline.Inline = true
	called := readWorkflow(t, "../../"+calledFile)
	files := map[string]workflowFile{}
	for _, file := range scaffold.List[1:4] {
		raw := file.Render(most)
		files[path.Base(file.Path)] = parseWorkflow(t, raw)
		n := bytes.Count(raw, []byte("\n"))
		t.Logf("%s: %d lines", file.Path, n)
		if n > 40 && file.Asked == "" {
			t.Errorf("%s has %d lines", file.Path, n)
		}
	}
	for name, jobs := range rightsOfOthers {
		at := slices.IndexFunc(scaffold.List, func(f scaffold.File) bool { return path.Base(f.Path) == name })
		if at < 0 {
			t.Fatalf("init writes no %s", name)
		}
		other := parseWorkflow(t, scaffold.List[at].Render(most))
		for id, want := range jobs {
			if may := other.may(other.Jobs[id]); !maps.Equal(may, want) || len(other.Jobs) != len(jobs) {
				t.Errorf("%s: the job %s may %v, want %v", name, id, may, want)
			}
		}
	}
	caller, events := files["countersign.yml"], files["countersign-events.yml"]
	wantRights(t, "called", called, events)
	wantRights(t, "inline", parseWorkflow(t, scaffold.List[1].Render(inline)), parseWorkflow(t, scaffold.List[2].Render(inline)))
	for name, job := range map[string]workflowJob{"countersign.yml": caller.Jobs["settle"], "countersign-fleet.yml": files["countersign-fleet.yml"].Jobs["settle"]} {
		if job.Uses != strings.Replace(pinnedAction, "@", "/"+calledFile+"@", 1) || len(caller.Jobs) != 1 {
			t.Errorf("%s calls %s", name, job.Uses)
		}
		grants, _ := job.Permissions.(map[string]any)
		union := map[string]any{}
		for id, its := range called.Jobs {
			for right, level := range called.may(its) {
				if union[right] != "write" {
					union[right] = level
				}
				if grants[right] != level && grants[right] != "write" {
					t.Errorf("%s: %s has %s: %v, and its caller grants %v", name, id, right, level, grants[right])
				}
			}
		}
		if !maps.Equal(grants, union) {
			t.Errorf("%s grants %v, and the jobs need %v", name, grants, union)
		}
		wantGiven(t, name, job, called)
	}
}

// wantRights wants the jobs of files to be those of the table, once each or with
// the same rights each time.
func wantRights(t *testing.T, form string, files ...workflowFile) {
	t.Helper()
	seen := map[string]bool{}
	for _, w := range files {
		if w.Permissions == nil {
			t.Errorf("%s: a file says nothing of its rights", form)
		}
		for id, job := range w.Jobs {
			want, known := rightsOfJobs[id]
			if may := w.may(job); !known || may == nil || !maps.Equal(may, want) {
				t.Errorf("%s: the job %s may %v, want %v", form, id, may, want)
			}
			seen[id] = true
		}
	}
	if len(seen) != len(rightsOfJobs) {
		t.Errorf("%s has the jobs %v", form, seen)
	}
}

// wantGiven wants a call to give what the called workflow takes: its inputs, and
// the two secrets by their names alone.
func wantGiven(t *testing.T, name string, job workflowJob, called workflowFile) {
	t.Helper()
	takes, _ := called.On["workflow_call"].(map[string]any)
	inputs, _ := takes["inputs"].(map[string]any)
	secrets, _ := takes["secrets"].(map[string]any)
	given, _ := job.Secrets.(map[string]any)
	if len(job.With) == 0 || len(given) != 3 || len(called.On) != 1 {
		t.Errorf("%s gives %v and %v", name, job.With, job.Secrets)
	}
	for input := range job.With {
		if inputs[input] == nil {
			t.Errorf("%s gives the input %s", name, input)
		}
	}
	for secret, v := range given {
		if secrets[secret] == nil || v != "${{ secrets."+secret+" }}" {
			t.Errorf("%s gives the secret %s: %v", name, secret, v)
		}
	}
}

// TestOwnWorkflows: this repository's workflows are those that init writes.
func TestOwnWorkflows(t *testing.T) {
	t.Parallel()
	for _, file := range scaffold.List {
		have, err := os.ReadFile("../../" + file.Path)
		if file.Asked != "" && file.Path != calledFile && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		check(t, err)
		if !bytes.Equal(have, file.Render(scaffold.Settings{Uses: "./"})) {
			t.Errorf("%s: countersign init --uses ./ --force writes another", file.Path)
		}
	}
}

// TestSameBuild: the released program, the image's and the one that is built on
// a runner are built in the same way; a release alone says whose it is.
func TestSameBuild(t *testing.T) {
	t.Parallel()
	shell := []string{"go build -trimpath -buildvcs=false -ldflags=-s -w -o", "CGO_ENABLED=0", "GOWORK=off"}
	published := reflect.TypeFor[scaffold.Settings]().PkgPath() + ".Published" // what init takes where nothing is said
	for name, wants := range map[string][]string{
		".github/action/install.sh": shell, "Dockerfile": shell,
		".goreleaser.yaml": {"flags: [-trimpath -buildvcs=false]", "ldflags: [-s -w{{ if not .IsSnapshot }} -X " + published + "={{ .Env.RELEASE_OWNER }}/countersign@{{ .Tag }}{{ end }}]", "env: [CGO_ENABLED=0 GOFLAGS= GOWORK=off"},
	} {
		raw, err := os.ReadFile("../../" + name)
		check(t, err)
		text := strings.NewReplacer(`"`, "", ",", "", "'", "").Replace(string(raw))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not have %s", name, want)
			}
		}
	}
}
