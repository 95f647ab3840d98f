package console_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// helped is a HOME whose configuration names a helper that has one password, and writes
// down what it is told.
func helped(t *testing.T) (told string) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	home := t.TempDir()
	told = filepath.Join(home, "told")
	helper := "!f() { echo $1 >>" + told + "; cat >>" + told + "; test $1 = get && echo username=ada && echo password=s3cret; }; f"
	for name, text := range map[string]string{".gitconfig": "[credential]\n\thelper = \"" + helper + "\"\n\tuseHttpPath = true\n"} {
		teststand.Fatal(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_ASKPASS", "")
	t.Setenv("SSH_ASKPASS", "")
	return told
}

func read(t *testing.T, file string) string {
	raw, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(raw)
}

func TestFill(t *testing.T) {
	told := helped(t)
	c, err := console.FillCredential(t.Context(), &url.URL{Scheme: "https", Host: "example.org:8443", Path: "/a/b.git"}, false)
	if err != nil || c.User != "ada" || c.Password != "s3cret" {
		t.Fatalf("%+v, %v", c, err)
	}
	if text := read(t, told); !strings.HasPrefix(text, "get\n") || !strings.Contains(text, "host=example.org:8443\n") || !strings.Contains(text, "path=a/b.git\n") {
		t.Errorf("the helper was told\n%s", text)
	}
	for took, word := range map[bool]string{true: "store", false: "erase"} {
		_ = os.Remove(told)
		c.Settle(t.Context(), took)
		if text := read(t, told); !strings.HasPrefix(text, word+"\n") || !strings.Contains(text, "password=s3cret\n") {
			t.Errorf("%v: the helper was told\n%s", took, text)
		}
	}
}

// T84 A repository names no helper, whatever directory the program runs in and whatever
// variables say where the repository is; and an address says nothing but itself.
func TestT84Helper(t *testing.T) {
	home := t.TempDir()
	helped(t)
	t.Setenv("HOME", home)
	repo := t.TempDir()
	ran := filepath.Join(repo, "ran")
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "config", "credential.helper", "!f() { touch " + ran + "; echo username=eve; echo password=eve; }; f"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Chdir(repo)
	t.Setenv("GIT_DIR", filepath.Join(repo, ".git"))
	t.Setenv("TMPDIR", repo)
	t.Setenv("GIT_CONFIG_PARAMETERS", "'credential.helper'='!f() { touch "+ran+"; }; f'")
	if c, err := console.FillCredential(t.Context(), &url.URL{Scheme: "https", Host: "example.org", Path: "/a"}, false); err == nil {
		t.Errorf("%+v", c)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a helper that the repository names was run")
	}
	helped(t)
	for _, u := range []*url.URL{
		{Scheme: "https", Host: "example.org\nhost=github.com", Path: "/a"}, {Scheme: "https", Host: "example.org", Path: "/a\nhost=github.com"},
		{Scheme: "https", Host: "example.org\r", Path: "/a"}, {Scheme: "https", Host: "example.org", Path: "/a\x00b"},
	} {
		if c, err := console.FillCredential(t.Context(), u, false); err == nil {
			t.Errorf("%q: %+v", u, c)
		}
	}
}
