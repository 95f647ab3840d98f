package index_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/index"
)

// FuzzParse: what is accepted names paths below the working tree alone, each
// once, in order.
func FuzzParse(f *testing.F) {
	for _, options := range [][]string{{"2"}, {"4"}} {
		dir := f.TempDir()
		git := func(args ...string) {
			cmd := exec.Command("git", args...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				f.Skipf("git %v: %v: %s", args, err, out)
			}
		}
		git("init", "-q")
		for _, name := range []string{"a", "b.c", "dir/c", "dir/d"} {
			file := filepath.Join(dir, name)
			if os.MkdirAll(filepath.Dir(file), 0o777) != nil || os.WriteFile(file, []byte("1\n"), 0o666) != nil {
				f.Fatal(name)
			}
		}
		git("add", "-A")
		git("update-index", "--index-version", options[0])
		git("write-tree")
		data, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := index.Parse(data)
		if err != nil {
			return
		}
		for i := range x.Len() {
			e := x.Entry(i)
			name := string(bytes.TrimSuffix(e.Name, []byte("/")))
			if !filepath.IsLocal(name) || filepath.ToSlash(filepath.Clean(name)) != name || bytes.IndexByte(e.Name, 0) >= 0 {
				t.Errorf("%q", e.Name)
			}
			if i > 0 {
				last := x.Entry(i - 1)
				if c := bytes.Compare(last.Name, e.Name); c > 0 || c == 0 && last.Stage >= e.Stage {
					t.Errorf("%q after %q", e.Name, last.Name)
				}
			}
			if found, ok := x.Find(string(e.Name)); !ok || !bytes.Equal(found.Name, e.Name) {
				t.Errorf("%q is not found", e.Name)
			}
		}
	})
}
