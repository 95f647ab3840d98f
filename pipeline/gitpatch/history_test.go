package gitpatch_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestHistory reads real histories: each commit as a diff on its first parent,
// parsed and resolved, must have git's own tree. It takes the last commits of
// this project; COUNTERSIGN_CORPUS=DIR adds each DIR/*/repo or DIR/* that is a Git
// directory, COUNTERSIGN_COMMITS says how many commits of each (300).
func TestHistory(t *testing.T) {
	if out, err := exec.Command("git", "rev-parse", "--absolute-git-dir").Output(); err == nil {
		t.Run("self", func(t *testing.T) { checkHistory(t, strings.TrimSpace(string(out)), 10) })
	}
	corpus := os.Getenv("COUNTERSIGN_CORPUS")
	if corpus == "" {
		return
	}
	most, err := strconv.Atoi(os.Getenv("COUNTERSIGN_COMMITS"))
	if err != nil {
		most = 300
	}
	heads, _ := filepath.Glob(filepath.Join(corpus, "*", "HEAD"))
	deeper, _ := filepath.Glob(filepath.Join(corpus, "*", "repo", "HEAD"))
	for _, head := range append(heads, deeper...) {
		dir := filepath.Dir(head)
		name, _ := filepath.Rel(corpus, dir)
		t.Run(filepath.ToSlash(name), func(t *testing.T) { checkHistory(t, dir, most) })
	}
}

// A tally counts what became of a history's diffs.
type tally struct {
	diffs, bytes, files, mismatches, absent int
	refused                                 map[string]int
	example                                 map[string]string
}

func checkHistory(t *testing.T, dir string, most int) {
	repo, err := gitstore.Open(dir)
	fatal(t, err)
	sum := tally{refused: map[string]int{}, example: map[string]string{}}
	log, _ := gitOutput(dir, "log", "--first-parent", "--min-parents=1", "--format=%H", "-n", fmt.Sprint(most), "HEAD")
	pairs := strings.Fields(string(log))
	for _, commit := range pairs {
		sum.commit(t, dir, repo, commit)
	}
	t.Logf("%d diffs of %d commits, %d files, %d MB; %d mismatches, %d not in the repository",
		sum.diffs, len(pairs), sum.files, sum.bytes>>20, sum.mismatches, sum.absent)
	for _, why := range slices.Sorted(maps.Keys(sum.refused)) {
		t.Logf("refused %4d  %s  (%s)", sum.refused[why], why, sum.example[why])
	}
}

// gitOutput is nil, false where git fails, as it does on a clone that lacks
// objects.
func gitOutput(dir string, args ...string) ([]byte, bool) {
	out, err := teststand.TryGit(dir, "", args...)
	return []byte(out), err == nil
}

func (s *tally) commit(t *testing.T, dir string, repo *gitstore.Repo, commit string) {
	raw, ok := gitOutput(dir, "diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", commit+"^", commit)
	if !ok {
		s.absent++
		return
	}
	want := rawDiff(raw)
	parent, _ := gitOutput(dir, "rev-parse", commit+"^")
	base, err := repo.Tree(t.Context(), strings.TrimSpace(string(parent)))
	fatal(t, err)
	for _, renames := range []string{"--no-renames", "-M", "-B -M -C"} {
		args := append([]string{"diff", "--binary"}, strings.Fields(renames)...)
		raw, ok := gitOutput(dir, append(args, commit+"^", commit)...)
		if !ok {
			s.absent++
			continue
		}
		s.one(t, commit+" "+renames, raw, base, want)
	}
}

func (s *tally) one(t *testing.T, what string, raw []byte, base fs.FS, want map[string]string) {
	if len(raw) == 0 {
		return
	}
	s.diffs++
	s.bytes += len(raw)
	got, err := outcome(raw, base)
	if err != nil {
		why := reason(err)
		s.refused[why]++
		s.example[why] = what + ": " + err.Error()
		return
	}
	s.files += len(got)
	if !maps.Equal(got, want) {
		s.mismatches++
		t.Errorf("%s: have %v\nwant %v", what, got, want)
	}
}

// outcome is each path's mode and blob id afterwards, as rawDiff has it.
func outcome(raw []byte, base fs.FS) (map[string]string, error) {
	d, err := gitpatch.Parse(raw)
	if err != nil {
		return nil, err
	}
	p, err := d.Resolve(base)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, c := range p.Files() {
		out[c.Path] = "000000 " + strings.Repeat("0", 40)
		if c.After != nil {
			out[c.Path] = c.After.Mode.String() + " " + c.After.BlobID()
		}
	}
	return out, nil
}

// rawDiff reads git diff-tree -z: ":MODE MODE ID ID STATUS" NUL path NUL.
func rawDiff(raw []byte) map[string]string {
	out := map[string]string{}
	parts := bytes.Split(raw, []byte{0})
	for i := 0; i+1 < len(parts); i += 2 {
		f := strings.Fields(string(parts[i]))
		out[string(parts[i+1])] = strings.Replace(f[1], "100664", "100644", 1) + " " + f[3]
	}
	return out
}

var particulars = regexp.MustCompile(`"(\\.|[^"])*"|\d+`)

// reason is an error's message without line, path and numbers.
func reason(err error) string {
	e, ok := err.(*patch.Error)
	if !ok {
		return err.Error()
	}
	return particulars.ReplaceAllString(e.Message, "…")
}
