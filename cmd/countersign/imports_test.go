package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/countersign-dev/countersign/"

// mayImport is the map of rooms (docs/design.md): which packages of ours, and
// which libraries, each package may import outside its tests. Anything that is
// not here fails; so does a library with two doors. A room inside another is
// behind the same door.
var mayImport = map[string][]string{
	"pipeline/lazyregexp":     {},
	"pipeline/parallel":       {},
	"pipeline/visible":        {},
	"pipeline/markdown":       {"pipeline/lazyregexp", "pipeline/visible"},
	"pipeline/canon":          {},
	"pipeline/rule":           {"pipeline/canon"},
	"pipeline/format":         {"pipeline/canon"},
	"pipeline/patch/linediff": {},
	"pipeline/patch/casefold": {"golang.org/x/text"},
	"pipeline/patch/regular":  {},
	"pipeline/patch/threeway": {"pipeline/patch", "pipeline/patch/linediff"},
	"pipeline/patch": {
		"pipeline/parallel", "pipeline/canon", "pipeline/patch/casefold", "pipeline/patch/linediff", "pipeline/patch/regular", "github.com/bluekeyes/go-gitdiff", "golang.org/x/text",
	},
	"pipeline/pack":             {"pipeline/canon", "pipeline/rule", "pipeline/patch"},
	"pipeline/proposal":         {"pipeline/lazyregexp", "pipeline/canon", "pipeline/rule"},
	"pipeline/result":           {"pipeline/canon", "pipeline/rule"},
	"pipeline/packapply":        {"pipeline/canon", "pipeline/rule", "pipeline/pack", "pipeline/result"},
	"pipeline/ledger":           {"pipeline/patch", "pipeline/format", "pipeline/lazyregexp", "pipeline/visible", "pipeline/canon", "pipeline/rule", "pipeline/result", "github.com/oklog/ulid/v2"},
	"pipeline/page/v1":          {"pipeline/lazyregexp", "pipeline/canon", "pipeline/ledger", "pipeline/result"}, // the record and what reads it: no words, no escaping
	"pipeline/page":             {"pipeline/ledger", "pipeline/page/v1"},
	"pipeline/audit/history":    {},
	"pipeline/audit":            {"pipeline/format", "pipeline/page", "pipeline/parallel", "pipeline/approval", "pipeline/policy", "pipeline/signed", "pipeline/audit/history", "pipeline/canon", "pipeline/ledger"},
	"pipeline/witness":          {"pipeline/format", "pipeline/canon", "golang.org/x/mod"},
	"pipeline/evidence":         {"pipeline/state", "pipeline/approval", "pipeline/explain", "pipeline/audit/history", "pipeline/canon", "pipeline/forge", "pipeline/lazyregexp", "pipeline/ledger", "pipeline/policy", "pipeline/signed"},
	"report/workpaper":          {"pipeline/approval", "pipeline/evidence", "pipeline/ledger", "report/html"},
	"pipeline/simulate":         {"pipeline/approval", "pipeline/forge", "pipeline/ledger", "pipeline/parallel", "pipeline/policy"},
	"pipeline/recipe":           {"pipeline/ledger", "pipeline/patch", "pipeline/patch/linediff"},
	"pipeline/alike":            {"golang.org/x/text"},
	"pipeline/code":             {"pipeline/patch"},
	"pipeline/policy":           {"pipeline/format", "pipeline/lazyregexp", "pipeline/canon", "pipeline/patch/casefold", "pipeline/patch/regular", "github.com/goccy/go-yaml"},
	"pipeline/approval":         {"pipeline/format", "pipeline/canon", "pipeline/ledger", "pipeline/policy", "pipeline/rule", "pipeline/signed", "pipeline/sshsig"},
	"pipeline/forge":            {"pipeline/signed", "pipeline/approval", "pipeline/canon", "pipeline/ledger"},
	"pipeline/conversation":     {"pipeline/signed", "pipeline/approval", "pipeline/forge", "pipeline/ledger", "pipeline/patch", "pipeline/policy"},
	"pipeline/online":           {"pipeline/format", "pipeline/approval", "pipeline/canon", "pipeline/forge", "pipeline/ledger"},
	"pipeline/risk":             {"pipeline/alike", "pipeline/format", "pipeline/canon", "pipeline/ledger", "pipeline/patch", "pipeline/patch/casefold", "pipeline/policy", "pipeline/redact", "golang.org/x/text"},
	"pipeline/message":          {"pipeline/alike", "pipeline/lazyregexp", "pipeline/ledger"},
	"pipeline/signed":           {"pipeline/format", "pipeline/lazyregexp", "pipeline/canon", "pipeline/ledger", "pipeline/sshsig"},
	"pipeline/seal":             {"filippo.io/age"},
	"pipeline/redact":           {"pipeline/patch"},
	"pipeline/secret":           {"pipeline/lazyregexp", "pipeline/canon", "pipeline/patch", "pipeline/redact", "github.com/zricethezav/gitleaks/v8", "github.com/pelletier/go-toml/v2"},
	"pipeline/sandbox":          {"github.com/landlock-lsm/go-landlock", "kernel.org/pub/linux/libs/security/libcap/psx", "golang.org/x/sys"},
	"pipeline/checks":           {"pipeline/format", "pipeline/canon", "pipeline/code", "pipeline/ledger", "pipeline/patch", "pipeline/policy", "pipeline/proposal", "pipeline/rule", "pipeline/redact"},
	"pipeline/checks/workshop":  {"pipeline/checks", "pipeline/policy", "pipeline/sandbox"},
	"pipeline/workspace":        {"gitstore/attributes", "pipeline/effect", "pipeline/parallel", "pipeline/canon", "pipeline/patch", "pipeline/result", "github.com/rogpeppe/go-internal", "golang.org/x/sys"},
	"pipeline/effect":           {"pipeline/message", "pipeline/approval", "pipeline/code", "pipeline/ledger", "pipeline/patch", "pipeline/result", "pipeline/parallel"},
	"pipeline/reviewed":         {"pipeline/canon", "pipeline/checks", "pipeline/code", "pipeline/ledger", "pipeline/patch", "pipeline/rule", "pipeline/seal", "pipeline/redact"},
	"pipeline/input/applypatch": {"pipeline/lazyregexp", "pipeline/patch"},
	"pipeline/input/edits":      {"pipeline/lazyregexp", "pipeline/canon", "pipeline/patch"},
	"pipeline/input": {"pipeline/recipe",
		"pipeline/input/applypatch", "pipeline/input/edits", "pipeline/canon", "pipeline/lazyregexp", "pipeline/forge", "pipeline/ledger", "pipeline/message", "pipeline/pack", "pipeline/patch", "pipeline/patch/linediff", "pipeline/policy",
		"pipeline/proposal", "pipeline/result", "pipeline/rule",
	},
	"pipeline": {"pipeline/recipe",
		"pipeline/state",
		"pipeline/lazyregexp", "pipeline/canon", "pipeline/code", "pipeline/rule", "pipeline/patch", "pipeline/proposal", "pipeline/result",
		"pipeline/ledger", "pipeline/policy", "pipeline/approval", "pipeline/conversation", "pipeline/forge", "pipeline/seal", "pipeline/signed", "pipeline/sshsig", "pipeline/redact", "pipeline/checks", "pipeline/effect", "pipeline/reviewed",
	},
	"pipeline/review": {
		"pipeline", "pipeline/approval", "pipeline/canon", "pipeline/checks", "pipeline/code", "pipeline/forge", "pipeline/input", "pipeline/ledger",
		"pipeline/patch", "pipeline/policy", "pipeline/proposal", "pipeline/redact", "pipeline/reviewed", "pipeline/risk", "pipeline/seal",
	},
	"pipeline/batch": {
		"pipeline/signed", "pipeline", "pipeline/approval", "pipeline/checks", "pipeline/code", "pipeline/effect", "pipeline/forge", "pipeline/ledger", "pipeline/patch", "pipeline/policy",
		"pipeline/result", "pipeline/redact", "pipeline/workspace",
	},
	"pipeline/pull": {"pipeline/review",
		"pipeline/format", "report/view", "pipeline/signed", "pipeline", "pipeline/approval", "pipeline/canon", "pipeline/checks", "pipeline/code", "pipeline/conversation", "pipeline/effect", "pipeline/explain", "pipeline/forge", "pipeline/input", "pipeline/ledger", "pipeline/patch", "pipeline/policy", "pipeline/result", "pipeline/reviewed", "report",
	},
	"pipeline/state":         {},
	"pipeline/watch":         {"pipeline/explain", "pipeline/forge", "pipeline/ledger", "pipeline/markdown"},
	"pipeline/explain":       {"pipeline/approval", "pipeline/audit/history", "pipeline/ledger", "pipeline/patch", "pipeline/patch/linediff", "pipeline/patch/threeway", "pipeline/policy", "pipeline/signed", "pipeline/sshsig"},
	"pipeline/attest":        {"pipeline/state", "pipeline/format", "pipeline/approval", "pipeline/audit", "pipeline/canon", "pipeline/explain", "pipeline/ledger", "pipeline/policy", "pipeline/signed", "pipeline/sshsig"},
	"gitstore/object":        {"github.com/go-git/go-git/v5"},
	"gitstore/lineage":       {"gitstore/object", "pipeline/audit/history", "pipeline/sshsig", "github.com/go-git/go-git/v5"},
	"gitstore/bundle":        {"gitstore/object", "gitstore/packfile", "github.com/go-git/go-git/v5"},
	"gitstore/verdict/cheat": {"gitstore/lineage", "gitstore/object", "pipeline/ledger", "pipeline/sshsig", "github.com/go-git/go-git/v5"},
	"gitstore/verdict":       {"gitstore/bundle", "gitstore/lineage", "pipeline/audit", "pipeline/audit/history", "pipeline/sshsig", "github.com/go-git/go-git/v5"},
	"gitstore/packfile":      {"gitstore/object", "github.com/go-git/go-git/v5", "github.com/gofrs/flock"},
	"gitstore/git":           {},
	"gitstore/index":         {"github.com/go-git/go-git/v5"},
	"gitstore/ignore":        {},
	"gitstore/attributes":    {"gitstore/ignore"},
	"gitstore/filter":        {},
	"gitstore/status":        {"gitstore/index", "gitstore/ignore", "gitstore/attributes", "github.com/go-git/go-git/v5", "golang.org/x/sys"},
	"pipeline/sshsig":        {"golang.org/x/crypto"},
	"gitstore/wire":          {"pipeline/lazyregexp", "github.com/go-git/go-git/v5"},
	"gitstore": {
		"pipeline/lazyregexp", "gitstore/bundle", "gitstore/lineage", "gitstore/object", "gitstore/packfile", "gitstore/git", "gitstore/index", "gitstore/ignore", "gitstore/attributes", "gitstore/filter", "gitstore/status", "pipeline/sshsig", "gitstore/wire", "pipeline/audit/history", "pipeline/canon", "pipeline/code", "pipeline/ledger", "pipeline/patch",
		"github.com/go-git/go-git/v5", "github.com/go-git/go-billy/v5",
	},
	"report/view": {"pipeline/approval", "pipeline/ledger", "pipeline/policy", "pipeline/risk", "pipeline/state"},
	"report": {
		"pipeline/audit/history", "report/view", "pipeline/patch", "pipeline/risk", "pipeline/state",
		"pipeline/lazyregexp", "pipeline/markdown", "pipeline/patch/linediff", "pipeline/risk", "pipeline/approval", "pipeline/attest", "pipeline/audit", "pipeline/explain", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "pipeline/online", "pipeline/policy", "pipeline/result", "pipeline/rule", "pipeline/simulate",
	},
	"report/html": {
		"pipeline/format",
		"pipeline/markdown", "report/view", "pipeline/risk", "pipeline/state",
		"pipeline/patch", "pipeline/patch/linediff", "pipeline/risk", "pipeline/approval", "pipeline/audit/history", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "pipeline/policy", "pipeline/result",
	},
	"report/verifier":                        {"report/html"},
	"report/site":                            {"pipeline/markdown", "report/view", "pipeline/state", "pipeline/audit/history", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "report/html"},
	"cmd/countersign/internal/pages":         {"cmd/countersign/internal/cli", "cmd/countersign/internal/verifier", "gitstore", "gitstore/bundle", "pipeline/audit", "pipeline/audit/history", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "pipeline/parallel", "report", "report/html", "report/site", "report/verifier", "github.com/spf13/cobra"},
	"cmd/countersign/internal/rpc":           {"pipeline/canon"},
	"cmd/countersign/internal/sshkey":        {},
	"cmd/countersign/internal/sigstore":      {"pipeline/canon", "pipeline/ledger"},
	"cmd/countersign/internal/witnesses":     {"pipeline/witness", "golang.org/x/sys"},
	"cmd/countersign/internal/merged":        {"cmd/countersign/internal/rest", "pipeline/approval", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "pipeline/parallel"},
	"cmd/countersign/internal/terminal":      {"golang.org/x/term", "golang.org/x/sys"},
	"cmd/countersign/internal/gitcredential": {},
	"cmd/countersign/internal/ghtoken":       {"pipeline/lazyregexp"},
	"cmd/countersign/internal/completion":    {"gitstore", "pipeline/attest", "pipeline/ledger", "pipeline/state", "report", "github.com/spf13/cobra"},
	"cmd/countersign/internal/action":        {"pipeline/ledger", "report", "github.com/sethvargo/go-githubactions"},
	"cmd/countersign/internal/rest":          {"pipeline/lazyregexp", "pipeline/forge", "pipeline/ledger"},
	"cmd/countersign/internal/github": {
		"cmd/countersign/internal/rest", "pipeline/signed", "pipeline/lazyregexp", "pipeline/approval", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "pipeline/policy", "github.com/google/go-github/v60",
	},
	"cmd/countersign/internal/gitea":          {"cmd/countersign/internal/rest", "pipeline/signed", "pipeline/lazyregexp", "pipeline/approval", "pipeline/canon", "pipeline/forge", "pipeline/ledger"},
	"cmd/countersign/internal/cli":            {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"cmd/countersign/internal/documents":      {"cmd/countersign/internal/cli", "pipeline/canon", "pipeline/pack", "pipeline/packapply", "pipeline/proposal", "pipeline/result", "pipeline/rule", "github.com/spf13/cobra"},
	"cmd/countersign/internal/conformance":    {"gitstore", "gitstore/bundle", "gitstore/lineage", "gitstore/verdict", "pipeline/approval", "pipeline/audit", "pipeline/audit/history", "pipeline/canon", "pipeline/lazyregexp", "pipeline/ledger", "pipeline/patch", "pipeline/policy", "pipeline/rule", "pipeline/signed", "pipeline/sshsig", "pipeline/witness"},
	"cmd/countersign/internal/demo":           {"cmd/countersign/internal/cli", "gitstore", "pipeline/ledger", "pipeline/page", "pipeline/patch", "report"},
	"cmd/countersign/internal/scaffold":       {"pipeline/lazyregexp", "cmd/countersign/internal/gitea", "cmd/countersign/internal/github", "gitstore", "pipeline/canon", "pipeline/code", "pipeline/forge", "pipeline/online", "pipeline/patch", "pipeline/policy", "report"},
	"cmd/countersign/internal/verifier":       {"report/verifier"},
	"cmd/countersign/internal/verifier/build": {"cmd/countersign/internal/verifier", "report/verifier"},
	"cmd/countersign/internal/serve": {"pipeline/review",
		"cmd/countersign/internal/rpc", "pipeline", "pipeline/approval", "pipeline/checks", "pipeline/input", "pipeline/ledger", "pipeline/patch", "pipeline/policy", "pipeline/secret", "pipeline/signed", "report",
	},
	"cmd/countersign/internal/mcp": {"pipeline/review",
		"cmd/countersign/internal/rpc", "pipeline", "pipeline/approval", "pipeline/audit", "pipeline/canon", "pipeline/checks", "pipeline/effect", "pipeline/input", "pipeline/ledger", "pipeline/patch", "pipeline/policy", "pipeline/risk", "pipeline/rule", "pipeline/redact", "pipeline/secret", "report",
		"github.com/modelcontextprotocol/go-sdk",
	},
	"cmd/verify/internal/worker": {"gitstore/bundle", "gitstore/verdict", "gitstore/verdict/cheat", "pipeline/audit"},
	"cmd/verify":                 {"cmd/verify/internal/worker"},
	"cmd/countersign": {"pipeline/pack", "pipeline/review",
		"pipeline/format",
		"pipeline/risk", "pipeline/state",
		"gitstore/lineage", "gitstore/verdict", "gitstore/attributes", "gitstore/git", "cmd/countersign/internal/gitcredential", "cmd/countersign/internal/ghtoken", "pipeline/lazyregexp", "cmd/countersign/internal/action", "cmd/countersign/internal/cli", "cmd/countersign/internal/completion", "cmd/countersign/internal/conformance", "cmd/countersign/internal/documents", "cmd/countersign/internal/github", "cmd/countersign/internal/gitea", "cmd/countersign/internal/mcp", "cmd/countersign/internal/pages", "cmd/countersign/internal/scaffold", "cmd/countersign/internal/serve", "cmd/countersign/internal/sigstore", "cmd/countersign/internal/sshkey", "cmd/countersign/internal/terminal", "gitstore", "pipeline/signed", "pipeline/sshsig", "gitstore/wire", "report", "report/html",
		"pipeline", "pipeline/approval", "pipeline/attest", "pipeline/audit", "pipeline/batch", "pipeline/watch", "pipeline/explain", "pipeline/audit/history", "pipeline/canon", "pipeline/code", "pipeline/conversation", "pipeline/forge", "pipeline/input", "pipeline/ledger", "pipeline/page", "pipeline/pull",
		"pipeline/patch", "pipeline/result", "pipeline/rule", "pipeline/workspace", "pipeline/witness", "cmd/countersign/internal/witnesses", "pipeline/online", "cmd/countersign/internal/rest",
		"pipeline/policy", "pipeline/redact", "pipeline/secret", "pipeline/seal", "pipeline/sandbox", "pipeline/checks", "pipeline/checks/workshop", "pipeline/effect", "pipeline/reviewed",
		"cmd/countersign/internal/demo", "cmd/countersign/internal/merged", "pipeline/evidence", "pipeline/parallel", "pipeline/simulate", "report/workpaper",
		"github.com/spf13/cobra",
	},
}

// onlyForTests are packages that nothing but tests may import.
var onlyForTests = []string{"pipeline/exectest", "pipeline/storetest", "pipeline/signed/signedtest", "cmd/countersign/internal/github/githubtest", "cmd/countersign/internal/github/githubtest/trim", "pipeline/secret/secrettest", "gitstore/wire/wiretest", "report/browsertest", "report/hostile", "cmd/countersign/internal/forgetest", "cmd/countersign/internal/forgetest/gitea"}

func TestImportMap(t *testing.T) {
	doors := map[string][]string{}
	for _, pkg := range packages(t) {
		name := strings.TrimPrefix(pkg.ImportPath, module)
		if slices.Contains(onlyForTests, name) {
			continue
		}
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("package %s is not in the map", name)
			continue
		}
		for _, imported := range pkg.Imports {
			if imported == "text/template" || imported == "html/template" {
				t.Errorf("%s imports %s: the linker keeps every method of every library for it, 6 MB", name, imported)
			}
			if !strings.Contains(strings.Split(imported, "/")[0], ".") {
				continue // standard library
			}
			short := strings.TrimPrefix(imported, module)
			ours := short != imported
			i := slices.IndexFunc(allowed, func(a string) bool {
				return short == a || !ours && strings.HasPrefix(short, a+"/")
			})
			if strings.HasPrefix(short, "pipeline/page/") && name != "pipeline/page" {
				t.Errorf("%s imports %s: what made pages that there are is asked through pipeline/page alone", name, short)
			}
			if i < 0 {
				t.Errorf("%s imports %s", name, short)
			} else if door := door(name); !ours && !slices.Contains(doors[allowed[i]], door) {
				doors[allowed[i]] = append(doors[allowed[i]], door)
			}
		}
	}
	doors["golang.org/x/sys"] = nil  // the system's calls, as in package syscall
	doors["golang.org/x/text"] = nil // Unicode's tables, as in package unicode
	for library, rooms := range doors {
		if len(rooms) > 1 {
			t.Errorf("%s has %d doors: %v", library, len(rooms), rooms)
		}
	}
}

// TestDesignNamesPackages: docs/design.md has a line for each package, and none
// for another.
func TestDesignNamesPackages(t *testing.T) {
	raw, err := os.ReadFile("../../docs/design.md")
	check(t, err)
	var told, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\|").FindAllStringSubmatch(string(raw), -1) {
		told = append(told, row[1])
	}
	for _, pkg := range packages(t) {
		want = append(want, strings.TrimPrefix(pkg.ImportPath, module))
	}
	slices.Sort(told)
	slices.Sort(want)
	if !slices.Equal(told, want) {
		t.Errorf("docs/design.md has %q, go list %q", told, want)
	}
}

// door is the room that one comes through to reach a package.
func door(name string) string {
	for _, room := range []string{"gitstore", "cmd/countersign"} {
		if strings.HasPrefix(name, room+"/") {
			return room
		}
	}
	return name
}

// TestGitstoreDeps: what keeps the ledger in Git knows neither the stages nor
// what they need.
func TestGitstoreDeps(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./gitstore")
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	out, err := cmd.Output()
	check(t, err)
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"pipeline/ledger") {
		t.Fatal("the list lacks what gitstore imports")
	}
	for _, dep := range deps {
		for _, not := range []string{"yaml", "filippo.io/age", "go-landlock", "viper", "gitleaks", module + "pipeline/policy", module + "pipeline/approval"} {
			if strings.Contains(dep, not) || dep == module+"pipeline" {
				t.Errorf("gitstore needs %s", dep)
				break
			}
		}
	}
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	check(t, err)
	var all []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		check(t, err)
		all = append(all, p)
	}
}
