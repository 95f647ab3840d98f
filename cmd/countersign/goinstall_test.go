package main

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	modulefile "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
)

// TestGoInstall: "go install MODULE/cmd/countersign@VERSION" works, from a module proxy that is a folder with this source at a made-up
// version. What it imports comes from the module cache, and nothing from the network.
func TestGoInstall(t *testing.T) {
	long(t) // it compiles the program once more
	t.Parallel()
	dir := t.TempDir()
	of := modulefile.Version{Path: strings.TrimSuffix(module, "/"), Version: "v0.99.0-test"}
	served := filepath.Join(dir, "proxy", of.Path, "@v")
	check(t, os.MkdirAll(served, 0o755))
	file, err := os.Create(filepath.Join(served, of.Version+".zip"))
	check(t, err)
	check(t, zip.CreateFromDir(file, of, "../.."))
	check(t, file.Close())
	for name, text := range map[string]string{of.Version + ".mod": repositoryFile(t, "go.mod"), of.Version + ".info": `{"Version":"` + of.Version + `"}`, "list": of.Version} {
		check(t, os.WriteFile(filepath.Join(served, name), []byte(text+"\n"), 0o644))
	}

	cached, err := exec.Command("go", "env", "GOMODCACHE").Output()
	check(t, err)
	cmd := exec.Command("go", "install", of.Path+"/cmd/countersign@"+of.Version)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOBIN="+filepath.Join(dir, "bin"), "GOMODCACHE="+filepath.Join(dir, "modules"), "GOSUMDB=off", "GOWORK=off",
		"CGO_ENABLED=0", "GOFLAGS=-modcacherw -trimpath", // as others build it: what it imports is compiled once
		"GOPROXY=file://"+filepath.Join(dir, "proxy")+",file://"+strings.TrimSpace(string(cached))+"/cache/download")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program := filepath.Join(dir, "bin", "countersign")
	built, err := buildinfo.ReadFile(program)
	check(t, err)
	if built.Main.Path != of.Path || built.Main.Version != of.Version || built.Main.Sum == "" {
		t.Errorf("it was built from %+v", built.Main)
	}
	if out, err := exec.Command(program, "version").CombinedOutput(); err != nil || !strings.Contains(string(out), console.Release) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestModulePath: whatever names this module, or an account that publishes it, has the path of go.mod, or says OWNER.
func TestModulePath(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`github\.com/([A-Za-z0-9-]+)/countersign\b`)
	seen := 0
	eachFile(t, func(name string) {
		top, _, _ := strings.Cut(name, "/")
		if !slices.Contains([]string{".ci", ".github", "docs"}, top) && top != name || slices.Contains([]string{".svg", ".png"}, path.Ext(name)) {
			return
		}
		for _, m := range named.FindAllStringSubmatch(repositoryFile(t, name), -1) {
			if seen++; m[1] != "OWNER" && m[0]+"/" != module {
				t.Errorf("%s names %s", name, m[0])
			}
		}
	})
	if seen < 20 {
		t.Errorf("the module was named only %d times", seen)
	}
}
