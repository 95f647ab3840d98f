package gitstore_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestPast: the runs are those of "git log --first-parent", each with what git says is there.
func TestPast(t *testing.T) {
	w := newWork(t, map[string]string{"a.txt": "1\n", "d/b.txt": "1\n"})
	commit := func(message string) { w.git("add", "--all"); w.git("commit", "-q", "--allow-empty", "-m", message) }
	w.write("a.txt", "2\n")
	commit("a")
	commit("nothing")
	w.git("checkout", "-q", "-b", "side")
	w.write("d/b.txt", "2\n")
	commit("b, beside")
	w.git("checkout", "-q", "-")
	w.write("c.txt", "c\n")
	commit("c")
	w.git("merge", "-q", "--no-edit", "side")
	w.git("rm", "-q", "a.txt")
	commit("gone")
	w.write("a.txt/x", "a directory\n")
	commit("a directory")
	paths := []string{"a.txt", "d/b.txt"}
	line := strings.Fields(w.git("rev-list", "--first-parent", "HEAD"))
	runs, err := w.open().Past(t.Context(), line[0], paths)
	if err != nil || len(runs) != 4 {
		t.Fatalf("%+v, %v", runs, err)
	}
	next := 0
	for _, run := range runs {
		if run.Newest != line[next] || run.Back != next {
			t.Errorf("%+v does not begin with %s", run, line[next])
		}
		for ; next < len(line); next++ {
			for i, path := range paths {
				want := ""
				if got := strings.Fields(w.git("ls-tree", line[next], path)); len(got) > 2 && got[1] == "blob" {
					want = got[2]
				}
				if run.Blobs[i] != want {
					t.Errorf("%+v: %s of %s is %q", run, path, line[next], want)
				}
			}
			if line[next] == run.Oldest {
				next++
				break
			}
		}
	}
	if next != len(line) {
		t.Errorf("%d of %d commits", next, len(line))
	}

	// A history that is cut off does not tell where the last run begins.
	shallow := filepath.Join(t.TempDir(), "clone")
	w.git("clone", "-q", "--depth", "2", "file://"+w.dir, shallow)
	cut := work{t: w.t, dir: shallow}
	runs, err = cut.open().Past(t.Context(), line[0], paths)
	if err != nil || len(runs) != 1 || runs[0].Oldest != "" {
		t.Errorf("a shallow clone: %+v, %v", runs, err)
	}

	// Nor does one of more commits than are looked at.
	w.stdin(strings.Repeat("commit refs/heads/long\ncommitter a <a@example.org> 1 +0000\ndata 0\n", 2001), "fast-import", "--quiet")
	for name, told := range map[string]bool{"long~1": true, "long": false} {
		runs, err := w.open().Past(t.Context(), w.git("rev-parse", name), paths)
		if err != nil || len(runs) != 1 || (runs[0].Oldest != "") != told {
			t.Errorf("%s: %+v, %v", name, runs, err)
		}
	}
	if _, err := w.open().Past(t.Context(), strings.Repeat("1", 40), paths); err == nil {
		t.Error("a commit that is not there has a past")
	}
}
