package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A tool is what all cycles share: the program act, a copy of this repository,
// and a "go" that builds it once.
//
// What act does not do, and these tests therefore do not show: it asks for no
// approval of a run or environment, holds no concurrency group (so two runs at
// once are really at once), gives every job the same token whatever its
// permissions say, and starts no workflow by another. The test plays the last
// part: it makes the workflow run, with what was uploaded, and the event.
// Actions of others cannot be had offline: testdata/act has the little that ours
// need of them.
type tool struct {
	t               *testing.T
	program, folder string
}

func newTool(t *testing.T) tool {
	t.Helper()
	name := os.Getenv("COUNTERSIGN_ACT")
	if name == "" {
		t.Skip("COUNTERSIGN_ACT does not name the program act (github.com/nektos/act)")
	}
	program, err := exec.LookPath(name)
	check(t, err)
	program, err = filepath.Abs(program)
	check(t, err)
	tool := tool{t, program, t.TempDir()}
	check(t, copyTree(filepath.Join("..", ".."), filepath.Join(tool.folder, "action")))
	tool.knowsNoSelf(filepath.Join(tool.folder, "action", calledFile))
	check(t, os.Mkdir(filepath.Join(tool.folder, "bin"), 0o755))
	check(t, teststand.WriteFile(filepath.Join(tool.folder, "bin", "go"), []byte(buildOnce)))
	return tool
}

// knowsNoSelf puts the action's own address into a workflow where GitHub takes "$/",
// which act does not know.
func (o tool) knowsNoSelf(file string) {
	raw, err := os.ReadFile(file)
	check(o.t, err)
	folder, commit, _ := strings.Cut(actUses, "@")
	raw = bytes.ReplaceAll(raw, []byte("uses: $/.github/action"), []byte("uses: "+folder+"/.github/action@"+commit))
	check(o.t, os.WriteFile(file, raw, 0o755))
}

// buildOnce stands before the real go: every job of every run would build the
// same program again.
const buildOnce = `#!/bin/sh
set -e
for word in "$@"; do
	if [ "$before" = -o ]; then out=$word; fi
	before=$word
done
if [ ! -f "$BUILT" ]; then
	"$REAL_GO" "$@"
	cp "$out" "$BUILT.$$" && mv "$BUILT.$$" "$BUILT"
fi
cp "$BUILT" "$out"
`

// copyTree copies a repository as it is now, so that nobody's edit while the test
// runs gets into it.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, rest), 0o755)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rest), raw, 0o755)
	})
}

// actions are the folders that stand for what workflows name.
func (o tool) actions() map[string]string {
	out := map[string]string{actUses: filepath.Join(o.folder, "action")}
	for _, uses := range []string{scaffold.UseCheckout, scaffold.UseUpload, scaffold.UseDownload, scaffold.UseAppToken} {
		name, _, _ := strings.Cut(uses, " ")
		short, _, _ := strings.Cut(strings.TrimPrefix(name, "actions/"), "@")
		folder, err := filepath.Abs(filepath.Join("testdata", "act", short))
		check(o.t, err)
		if short == "checkout" { // the same on every server
			folder, err = filepath.Abs(filepath.Join("internal", "forgetest", "actions", short))
			check(o.t, err)
		}
		out[name] = folder
	}
	return out
}

// env is what steps have in their environment beside what act sets, so that
// nothing is downloaded.
func (o tool) env() map[string]string {
	return map[string]string{
		"PATH": filepath.Join(o.folder, "bin") + ":" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM": "1",
		"REAL_GO": o.realGo(), "BUILT": filepath.Join(o.folder, "built"),
		"GOMODCACHE": o.goEnv("GOMODCACHE"), "GOCACHE": o.goEnv("GOCACHE"), "GOPROXY": "off", "GOTOOLCHAIN": "local",
	}
}

func (o tool) realGo() string {
	path, err := exec.LookPath("go")
	check(o.t, err)
	return path
}

func (o tool) goEnv(name string) string {
	out, err := exec.Command("go", "env", name).Output()
	check(o.t, err)
	return strings.TrimSpace(string(out))
}
