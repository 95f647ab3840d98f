package gitstore_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestT93ScratchBytes: the files of a scratch are the commit's own bytes, whatever it says of attributes, and no filter of the person's is run.
func TestT93ScratchBytes(t *testing.T) {
	want := map[string]string{
		".gitattributes": "* filter=evil text eol=crlf ident\nu working-tree-encoding=UTF-16LE-BOM -text\n",
		"a.txt":          "one\n$Id$\n", "d/.gitattributes": "b filter=evil -text\n", "d/b": "two\r\n", "u": "\xff\xfeh\x00i\x00",
	}
	w := newWork(t, want)
	want["u"] = "hi"
	ran := filepath.Join(t.TempDir(), "ran")
	settings := filepath.Join(t.TempDir(), "settings")
	err := os.WriteFile(settings, []byte("[filter \"evil\"]\n\tsmudge = touch "+ran+"\n\trequired = true\n[core]\n\tautocrlf = true\n"), 0o600)
	fatal(t, err)
	t.Setenv("GIT_CONFIG_GLOBAL", settings)
	repo := w.open()
	base, err := repo.Head(t.Context())
	fatal(t, err)
	git, dir := filepath.Join(t.TempDir(), "git"), t.TempDir()
	_, err = repo.MakeScratch(t.Context(), base, git, dir)
	fatal(t, err)
	for name, content := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a filter ran")
	}
}
