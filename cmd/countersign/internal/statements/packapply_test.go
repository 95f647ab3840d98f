package statements_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/statements"
	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// files says what is where: "d/" is a directory, "→x" as content a link to x.
type files map[string]string

func (f files) make(t testing.TB, dir string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		full := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(full), 0o777))
		to, link := strings.CutPrefix(f[name], "→")
		switch {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(full, 0o777))
		case link:
			must(t, os.Symlink(to, full))
		default:
			must(t, os.WriteFile(full, []byte(f[name]), 0o666))
		}
	}
}

// read is the reverse of make; a directory is listed if nothing is in it.
func read(t testing.TB, dir string) files {
	t.Helper()
	got := files{}
	must(t, filepath.WalkDir(dir, func(full string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, full)
		switch {
		case err != nil || full == dir:
			return err
		case d.IsDir():
			if below, err := os.ReadDir(full); err != nil || len(below) > 0 {
				return err
			}
			got[name+"/"] = ""
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(full)
			got[name] = "→" + to
			return err
		default:
			data, err := os.ReadFile(full)
			got[name] = string(data)
			return err
		}
		return nil
	}))
	return got
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patchOf is a patch.json whose lines are "op path content".
func patchOf(t testing.TB, lines ...string) string {
	t.Helper()
	p := document.Pack{PatchSchemaVersion: document.PackVersion, SourceProposalID: "p", SourceProposalHash: "h"}
	for _, line := range lines {
		words := strings.SplitN(line, " ", 3)
		o := document.Operation{Op: words[0], Path: words[1]}
		if len(words) > 2 {
			o.Content = &words[2]
		}
		p.Operations = append(p.Operations, o)
	}
	raw, err := p.Line()
	must(t, err)
	return string(raw)
}

// apply makes a dry run and a real one, and checks what holds of every pair.
func apply(t *testing.T, packDir, target string) ledger.ApplyResult {
	t.Helper()
	before := read(t, ".")
	dry, err := statements.Apply(packDir, target, true)
	must(t, err)
	if after := read(t, "."); !maps.Equal(before, after) {
		t.Errorf("AS8: the dry run changed %v into %v", before, after)
	}
	r, err := statements.Apply(packDir, target, false)
	must(t, err)
	if !dry.DryRun || r.DryRun {
		t.Error("dry_run is wrong")
	}
	dry.DryRun = false
	if want, got := line(t, r), line(t, dry); got != want {
		t.Errorf("6.2: dry run\n%sreal run\n%s", got, want)
	}
	verify(t, r, packDir)
	for name := range read(t, ".") {
		if strings.Contains(name, ".tmp") && before[name] == "" && !strings.Contains(told(r), filepath.Base(name)) {
			t.Errorf("left behind: %s", name)
		}
	}
	return r
}

func line(t *testing.T, r ledger.ApplyResult) string {
	t.Helper()
	b, err := effect.ResultLine(r)
	must(t, err)
	return string(b)
}

// verify holds a result against the rules about results: AS1, AS2, AS6, AS7,
// AS9, AS10, AS12.
func verify(t *testing.T, r ledger.ApplyResult, packDir string) {
	t.Helper()
	doc, err := canon.Parse([]byte(line(t, r)))
	must(t, err)
	raw, err := os.ReadFile(filepath.Join(packDir, "patch.json"))
	if err != nil {
		raw = []byte("{}")
	}
	patch, err := canon.Parse(raw)
	if err != nil {
		patch = map[string]any{}
	}
	for _, v := range document.VerifyResult(doc, patch) {
		t.Errorf("%s %s: %s", v.RuleID, v.Path, v.Message)
	}
}

// told is a result in few words.
func told(r ledger.ApplyResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Outcome, r.Error)
	for _, o := range r.Operations {
		fmt.Fprintf(&b, "\n%s %s %s→%s %d %s", o.Op, o.Path, short(o.BeforeHash), short(o.AfterHash), o.BytesWritten, o.Error)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "\n%s %s: %s", v.RuleID, v.Path, v.Message)
	}
	return b.String()
}

// short is the hash of one of the contents that the tests use, by name.
func short(hash *string) string {
	if hash == nil {
		return "-"
	}
	for _, content := range []string{"", "x", "y", "z"} {
		if canon.Sum([]byte(content)) == *hash {
			return content + "#"
		}
	}
	return *hash
}
