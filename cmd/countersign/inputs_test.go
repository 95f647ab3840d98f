package main

import (
	"bytes"
	cryptorand "crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// run in process: the exit code, stdout and stderr of a command line.
func inProcess(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	app := console.Process{
		Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs,
		Getenv: func(string) string { return "" }, Now: time.Now, Entropy: cryptorand.Reader,
	}
	code = Main(app)
	return code, out.String(), errs.String()
}

// patchID proposes an input without recording it and returns its patch_id.
func patchID(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	code, out, errs := inProcess(stdin, append([]string{"--json", "review", "--dry-run"}, args...)...)
	var doc struct {
		PatchID string `json:"patch_id"`
	}
	if err := json.Unmarshal([]byte(out), &doc); code != 0 || err != nil {
		t.Fatalf("review %v: exit %d\n%s%s", args, code, out, errs)
	}
	return doc.PatchID
}

// One change has one patch_id, whether it comes as a Git diff, a patch.json, a
// Proposal or a dirty working tree.
func TestInputsGiveOnePatchID(t *testing.T) {
	t.Parallel()
	seeds := 4
	if everything() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			oneChangeAllInputs(t, rand.New(rand.NewPCG(7, uint64(seed))))
		})
	}
}

func oneChangeAllInputs(t *testing.T, rnd *rand.Rand) {
	before := map[string]string{}
	for i := range 8 {
		before[fmt.Sprintf("dir%d/f%d.txt", i%3, i)] = text(rnd)
	}
	s := newSandbox(t, before)
	s.git("init", "-q", "-b", "main")
	s.commit()
	after := maps.Clone(before)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch rnd.IntN(4) {
		case 0:
			after[name] = text(rnd)
		case 1:
			delete(after, name)
		case 2: // a rename
			after["moved/"+filepath.Base(name)] = after[name]
			delete(after, name)
		}
	}
	after["new/é \"x\".txt"] = text(rnd)
	s.replace(before, after)

	c := []string{"-C", s.repo}
	want := patchID(t, "", append(c, "--worktree")...)
	s.git("add", "-A")
	diffs := [][]string{
		{"-U0"}, {"-U1", "--patience"}, {"-U3", "-M"}, {"-U25", "--histogram"}, {"-M30%", "-C", "--find-copies-harder"}, {"--no-renames"},
	}
	var texts []string
	for _, args := range diffs {
		texts = append(texts, s.git(append([]string{"diff", "--cached", "--binary"}, args...)...))
	}
	s.git("reset", "-q", "--hard")
	for i, diff := range texts {
		if got := patchID(t, diff, append(c, "--patch=-")...); got != want {
			t.Errorf("git diff %v: patch_id %s, want %s", diffs[i], got, want)
		}
	}
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "patch.json"), packOf(t, before, after), 0o666))
	if got := patchID(t, "", append(c, "--pack", dir)...); got != want {
		t.Errorf("patch.json: patch_id %s, want %s", got, want)
	}
	doc := proposalOf(t, before, after)
	if got := patchID(t, string(doc), append(c, "--proposal=-")...); got != want {
		t.Errorf("Proposal: patch_id %s, want %s", got, want)
	}
}

func text(rnd *rand.Rand) string {
	var b strings.Builder
	for range rnd.IntN(30) {
		fmt.Fprintf(&b, "line %d\n", rnd.IntN(9))
	}
	if rnd.IntN(3) == 0 {
		b.WriteString("no newline")
	}
	return b.String()
}

// operations lists the whole-file operations between two sets of files.
func operations(before, after map[string]string) (ops []document.Operation) {
	for name, content := range after {
		was, there := before[name]
		switch {
		case !there:
			ops = append(ops, document.Operation{Op: "create", Path: name, Content: &content})
		case was != content:
			ops = append(ops, document.Operation{Op: "modify", Path: name, Content: &content})
		}
	}
	for name := range before {
		if _, stays := after[name]; !stays {
			ops = append(ops, document.Operation{Op: "delete", Path: name})
		}
	}
	return ops
}

func packOf(t *testing.T, before, after map[string]string) []byte {
	t.Helper()
	p := document.Pack{PatchSchemaVersion: "1.0.0", SourceProposalID: "prop_x", SourceProposalHash: "sha256:x", Operations: operations(before, after)}
	line, err := p.Line()
	check(t, err)
	return line
}

// proposalOf is a strict Proposal with these file actions.
func proposalOf(t *testing.T, before, after map[string]string) []byte {
	t.Helper()
	var actions []any
	for _, op := range operations(before, after) {
		a := map[string]any{"type": op.Op + "_file", "target": op.Path}
		if op.Content != nil {
			a["content"] = *op.Content
		}
		id, err := document.DeriveID("act", a)
		check(t, err)
		maps.Copy(a, map[string]any{"id": id, "required": true, "description": "d", "order": 0.0})
		if op.Content != nil {
			a["expected_hash"] = canon.Sum([]byte(*op.Content))
		}
		actions = append(actions, a)
	}
	slices.SortFunc(actions, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["id"].(string), b.(map[string]any)["id"].(string))
	})
	doc := map[string]any{
		"schema_version": "1.0.0", "source_bundle_id": "bun_0123456789abcdef", "source_bundle_hash": canon.Sum(nil),
		"actions": actions, "acceptance_tests": []any{}, "summary": "s", "requires_approval": false, "confidence": 80.0,
	}
	id, err := document.DeriveID("prop", doc)
	check(t, err)
	doc["id"] = id
	line, err := canon.Line(doc)
	check(t, err)
	return line
}
