package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// trees are commits; the id of a commit's tree is its own with a "t" before it.
type trees struct{ code.Repository }

func (trees) TreeID(_ context.Context, commit string) (string, error) { return "t" + commit, nil }

func (trees) Tree(context.Context, string) (fs.FS, error) { return fstest.MapFS{}, nil }

// counted runs nothing, and counts what was to be run.
type counted struct {
	ran  map[string]int
	less bool // than was wanted
	mode policy.Sandbox
}

func (c *counted) Run(_ context.Context, _ redact.Finder, mode policy.Sandbox, _ fs.FS, commands []policy.Check) ([]Execution, error) {
	var out []Execution
	for _, one := range commands {
		c.ran[strings.Join(one.Argv, " ")]++
		out = append(out, ran(one))
	}
	if c.less {
		out = out[1:]
	}
	c.mode = mode
	return out, nil
}

func policyOf(t *testing.T, text string) policy.Policy {
	t.Helper()
	p, err := policy.Parse("p.yml", []byte("version: 1\n"+text+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func at(commit string) Build { return func() (string, error) { return commit, nil } }

func unbuilt() (string, error) { return "", errors.New("it was built") }

// TestCheckerOnce: a commit is built only where something runs on it, and a command runs
// once on a tree, whoever asks for it and however often.
func TestCheckerOnce(t *testing.T) {
	commands := &counted{ran: map[string]int{}}
	c := Checker{Repo: trees{}, Commands: commands, Secrets: secret.Default()}
	done, err := c.Check(t.Context(), policyOf(t, "sandbox: workspace-write"), Asked{}, nil, unbuilt)
	if err != nil || done.Tree != "" || len(done.Runs) > 0 {
		t.Fatalf("%+v %v", done, err)
	}
	p := policyOf(t, "commands: {run: [go vet, go test], allow: [go vet]}")
	asked := Asked{Actions: []Action{{ID: "act_1", Type: "execute_command", Target: "go vet"}}}
	if _, err := c.Check(t.Context(), p, Asked{}, nil, unbuilt); err == nil {
		t.Error("commands ran on nothing")
	}
	for _, commit := range []string{"1", "1", "2"} {
		if done, err = c.Check(t.Context(), p, asked, nil, at(commit)); err != nil || done.Tree != "t"+commit || len(done.Runs) != 3 || len(done.Results) != 3 {
			t.Fatalf("%+v %v", done, err)
		}
		c.Ran = done.Ran
	}
	if got := fmt.Sprint(commands.ran); got != "map[go test:2 go vet:2]" || commands.mode != policy.WorkspaceWrite {
		t.Errorf("%s, %s", got, commands.mode)
	}
}

// TestCheckerRefuses: what cannot be run as the Policy says is an error, never a pass.
func TestCheckerRefuses(t *testing.T) {
	full := ran(check(true, "go", "vet"))
	full.Protection.Mode = string(policy.FullAccess)
	given := func(p policy.Policy, executions ...Execution) *Results {
		r := Results{Schema: Schema, Tree: strings.Repeat("ab", 20), PolicySHA256: p.Sum(), Executions: executions}
		return &r
	}
	const vet = "commands: {run: [go vet]}\n"
	p := policyOf(t, vet)
	for name, c := range map[string]struct {
		policy string
		edit   func(*Checker)
		want   error
	}{
		"nobody runs commands":     {vet, func(c *Checker) { c.Commands = nil }, fault.Refused},
		"a sandbox for reading":    {vet + "sandbox: read-only", func(*Checker) {}, ErrReadOnly},
		"which was asked for":      {vet, func(c *Checker) { c.Sandbox = policy.ReadOnly }, ErrReadOnly},
		"more than the Policy has": {vet, func(c *Checker) { c.Sandbox = policy.FullAccess }, fault.Refused},
		"an outcome is missing":    {vet, func(c *Checker) { c.Commands = &counted{ran: map[string]int{}, less: true} }, nil},
		"results of another tree":  {vet, func(c *Checker) { c.Results = given(p, ran(check(true, "go", "vet"))) }, fault.Refused},
		"results without a sandbox": {vet, func(c *Checker) {
			c.Results = given(p, full)
			c.Repo = oneTree{}
		}, fault.Refused},
	} {
		checker := Checker{Repo: trees{}, Commands: &counted{ran: map[string]int{}}, Secrets: secret.Default()}
		c.edit(&checker)
		done, err := checker.Check(t.Context(), policyOf(t, c.policy), Asked{}, nil, at("1"))
		if err == nil || c.want != nil && !errors.Is(err, c.want) || len(done.Results) > 0 {
			t.Errorf("%s: %+v %v", name, done, err)
		}
	}
	// What another job came to counts in the place of what ran here.
	checker := Checker{Repo: oneTree{}, Results: given(p, ran(check(true, "go", "vet"))), Secrets: secret.Default()}
	if done, err := checker.Check(t.Context(), p, Asked{}, nil, at("1")); err != nil || len(done.Results) != 1 || done.source != "results" {
		t.Errorf("%+v %v", done, err)
	}
}

// oneTree has one tree, whatever the commit.
type oneTree struct{ trees }

func (oneTree) TreeID(context.Context, string) (string, error) { return strings.Repeat("ab", 20), nil }
