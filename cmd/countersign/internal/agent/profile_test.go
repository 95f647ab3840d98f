package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// What an agent may write holds nothing else that a profile speaks of, and no variable of ours or of the person's keys is passed.
func TestProfiles(t *testing.T) {
	for _, p := range Profiles() {
		files := slices.Concat(p.Copy, p.Read, p.Write)
		for _, name := range files {
			if !filepath.IsLocal(name) || filepath.Clean(name) != name {
				t.Errorf("%s: %q is not below the home", p.Name, name)
			}
			for _, other := range files {
				if name != other && within(other, name) {
					t.Errorf("%s: %s holds %s", p.Name, name, other)
				}
			}
		}
		for _, name := range p.Write {
			for _, starts := range []string{"settings", "config", "hooks", "plugins", "bin", "commands", "node_modules"} {
				if strings.Contains(name[strings.LastIndex(name, "/")+1:], starts) {
					t.Errorf("%s: %s may start a program later", p.Name, name)
				}
			}
		}
		if p.Log != "" && !slices.ContainsFunc(p.Write, func(dir string) bool { return within(p.Log, dir) && p.Log != dir }) {
			t.Errorf("%s: %s is nothing that it writes", p.Name, p.Log)
		}
		if slices.ContainsFunc(p.Env, Withheld) {
			t.Errorf("%s: %q", p.Name, p.Env)
		}
	}
	for command, want := range map[string]string{"claude": "claude", "/usr/bin/codex": "codex", "./aider": "aider", "sh": "none", "": "none"} {
		if p, known := ProfileOf("", command); !known || p.Name != want {
			t.Errorf("%q: %q", command, p.Name)
		}
	}
	if _, known := ProfileOf("other", "claude"); known {
		t.Error("a profile that is not there is known")
	}
}

// A scratch tree is trusted in the copy of a person's settings, by a line that any directory's name leaves whole, but where the file cannot take one.
func TestTrust(t *testing.T) {
	trust := &Trust{File: ".codex/config.toml", Table: "projects", Lines: "[projects.DIR]\n"}
	for have, want := range map[string]string{
		"":                         "\n[projects.\"/a\\\"\\nb]\"]\n",
		"model = 1":                "model = 1\n[projects.\"/a\\\"\\nb]\"]\n",
		"[projects.x]\nprojects=1": "[projects.x]\nprojects=1",
		" projects = {}\n":         " projects = {}\n",
	} {
		home := t.TempDir()
		file := filepath.Join(home, trust.File)
		teststand.Fatal(t, errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(have), 0o600), trust.add(home, "/a\"\nb]")))
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%q: %q %v", have, got, err)
		}
	}
}
