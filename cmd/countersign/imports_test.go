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
	"pipeline/patch":          {"pipeline/canon", "pipeline/patch/casefold", "pipeline/patch/linediff", "pipeline/patch/regular", "golang.org/x/text"},
	"pipeline/pack":           {"pipeline/canon", "pipeline/document", "pipeline/patch", "pipeline/rule"},
	"pipeline/proposal":       {"pipeline/canon", "pipeline/document", "pipeline/lazyregexp", "pipeline/rule"},
	"pipeline/result":         {"pipeline/canon", "pipeline/rule"},
	"pipeline/packapply":      {"pipeline/applyresult", "pipeline/canon", "pipeline/pack", "pipeline/result", "pipeline/rule"},
	"pipeline/ledger": {
		"pipeline/canon", "pipeline/format", "pipeline/lazyregexp", "pipeline/patch", "pipeline/result", "pipeline/rule", "pipeline/visible",
	},
	"pipeline/page/v1":       {"pipeline/canon", "pipeline/lazyregexp", "pipeline/ledger", "pipeline/result"},
	"pipeline/page":          {"pipeline/ledger", "pipeline/page/v1", "pipeline/writing"},
	"pipeline/audit/history": {},
	"pipeline/audit": {
		"pipeline/approval", "pipeline/audit/history", "pipeline/canon", "pipeline/format", "pipeline/ledger", "pipeline/policy",
		"pipeline/signed",
	},
	"pipeline/witness": {"pipeline/canon", "pipeline/format", "golang.org/x/mod"},
	"pipeline/evidence": {
		"pipeline/approval", "pipeline/audit/history", "pipeline/canon", "pipeline/explain", "pipeline/forge", "pipeline/lazyregexp",
		"pipeline/ledger", "pipeline/lookup", "pipeline/policy", "pipeline/replay", "pipeline/signed", "pipeline/state",
	},
	"report/workpaper": {"pipeline/evidence", "pipeline/ledger", "pipeline/replay", "report/html"},
	"pipeline/simulate": {
		"pipeline/approval", "pipeline/conversation", "pipeline/forge", "pipeline/ledger", "pipeline/lookup", "pipeline/parallel",
		"pipeline/plain", "pipeline/policy", "pipeline/replay", "pipeline/writing",
	},
	"pipeline/recipe": {"pipeline/ledger", "pipeline/patch", "pipeline/patch/linediff"},
	"pipeline/alike":  {"golang.org/x/text"},
	"pipeline/code":   {"pipeline/patch"},
	"pipeline/policy": {
		"pipeline/canon", "pipeline/format", "pipeline/lazyregexp", "pipeline/patch/casefold", "pipeline/patch/regular",
		"github.com/goccy/go-yaml",
	},
	"pipeline/approval": {
		"pipeline/canon", "pipeline/format", "pipeline/ledger", "pipeline/policy", "pipeline/rule", "pipeline/signed", "pipeline/sshsig",
	},
	"pipeline/forge": {"pipeline/approval", "pipeline/canon", "pipeline/ledger", "pipeline/signed"},
	"pipeline/conversation": {
		"pipeline/approval", "pipeline/artifact", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "pipeline/owners", "pipeline/patch",
		"pipeline/policy", "pipeline/signed", "pipeline/writing",
	},
	"pipeline/online": {
		"pipeline/approval", "pipeline/artifact", "pipeline/canon", "pipeline/forge", "pipeline/format", "pipeline/ledger", "pipeline/lookup",
	},
	"pipeline/risk": {
		"pipeline/alike", "pipeline/canon", "pipeline/difflook", "pipeline/format", "pipeline/ledger", "pipeline/patch", "pipeline/patch/casefold",
		"pipeline/plain", "pipeline/policy", "pipeline/redact", "golang.org/x/text",
	},
	"pipeline/message": {"pipeline/alike", "pipeline/lazyregexp", "pipeline/ledger"},
	"pipeline/signed":  {"pipeline/canon", "pipeline/format", "pipeline/lazyregexp", "pipeline/ledger", "pipeline/sshsig"},
	"pipeline/seal":    {"filippo.io/age"},
	"pipeline/redact":  {"pipeline/patch"},
	"pipeline/secret": {
		"pipeline/canon", "pipeline/gitpatch", "pipeline/lazyregexp", "pipeline/patch", "pipeline/redact", "github.com/pelletier/go-toml/v2",
		"github.com/zricethezav/gitleaks/v8",
	},
	"pipeline/sandbox": {"github.com/landlock-lsm/go-landlock", "golang.org/x/sys", "kernel.org/pub/linux/libs/security/libcap/psx"},
	"pipeline/checks": {
		"pipeline/canon", "pipeline/code", "pipeline/format", "pipeline/ledger", "pipeline/patch", "pipeline/policy", "pipeline/redact",
		"pipeline/rule", "pipeline/writing",
	},
	"pipeline/checks/workshop": {"pipeline/checks", "pipeline/policy", "pipeline/sandbox"},
	"pipeline/workspace": {
		"gitstore/attributes", "pipeline/canon", "pipeline/effect", "pipeline/gitpatch", "pipeline/parallel", "pipeline/patch", "pipeline/result",
		"github.com/rogpeppe/go-internal", "golang.org/x/sys",
	},
	"pipeline/effect": {
		"pipeline/approval", "pipeline/code", "pipeline/ledger", "pipeline/lookup", "pipeline/message", "pipeline/parallel", "pipeline/patch",
		"pipeline/plain", "pipeline/result", "pipeline/writing",
	},
	"pipeline/reviewed": {
		"pipeline/canon", "pipeline/checks", "pipeline/code", "pipeline/ledger", "pipeline/patch", "pipeline/redact", "pipeline/rule",
		"pipeline/seal",
	},
	"pipeline/input/applypatch": {"pipeline/lazyregexp", "pipeline/patch"},
	"pipeline/input/edits":      {"pipeline/canon", "pipeline/lazyregexp", "pipeline/patch"},
	"pipeline/input": {
		"pipeline/canon", "pipeline/document", "pipeline/forge", "pipeline/gitpatch", "pipeline/input/applypatch", "pipeline/input/edits",
		"pipeline/lazyregexp", "pipeline/ledger", "pipeline/message", "pipeline/pack", "pipeline/patch", "pipeline/patch/linediff",
		"pipeline/policy", "pipeline/proposal", "pipeline/recipe", "pipeline/result", "pipeline/rule", "pipeline/writing",
	},
	"pipeline": {
		"pipeline/applyresult", "pipeline/approval", "pipeline/artifact", "pipeline/canon", "pipeline/checks", "pipeline/code",
		"pipeline/conversation", "pipeline/effect", "pipeline/forge", "pipeline/ledger", "pipeline/lookup", "pipeline/owners", "pipeline/patch",
		"pipeline/plain", "pipeline/policy", "pipeline/recipe", "pipeline/redact", "pipeline/result", "pipeline/reviewed", "pipeline/rule",
		"pipeline/seal", "pipeline/signed", "pipeline/sshsig", "pipeline/state", "pipeline/writing",
	},
	"pipeline/review": {
		"pipeline", "pipeline/approval", "pipeline/canon", "pipeline/checks", "pipeline/code", "pipeline/difflook", "pipeline/forge",
		"pipeline/gitpatch", "pipeline/input", "pipeline/ledger", "pipeline/lookup", "pipeline/patch", "pipeline/plain", "pipeline/policy",
		"pipeline/proposal", "pipeline/redact", "pipeline/reviewed", "pipeline/risk", "pipeline/seal", "pipeline/writing",
	},
	"pipeline/batch": {
		"pipeline", "pipeline/approval", "pipeline/checks", "pipeline/effect", "pipeline/forge", "pipeline/ledger", "pipeline/patch",
		"pipeline/policy", "pipeline/redact", "pipeline/result", "pipeline/signed", "pipeline/writing",
	},
	"pipeline/pull": {
		"pipeline", "pipeline/approval", "pipeline/artifact", "pipeline/canon", "pipeline/checks", "pipeline/code", "pipeline/conversation",
		"pipeline/effect", "pipeline/explain", "pipeline/forge", "pipeline/format", "pipeline/input", "pipeline/ledger", "pipeline/lookup",
		"pipeline/patch", "pipeline/plain", "pipeline/policy", "pipeline/result", "pipeline/review", "pipeline/reviewed", "pipeline/signed",
		"pipeline/writing", "report", "report/view",
	},
	"pipeline/state": {},
	"pipeline/watch": {"pipeline/explain", "pipeline/forge", "pipeline/ledger", "pipeline/markdown"},
	"pipeline/explain": {
		"pipeline/approval", "pipeline/audit/history", "pipeline/lazyregexp", "pipeline/ledger", "pipeline/lookup", "pipeline/owners",
		"pipeline/patch", "pipeline/patch/linediff", "pipeline/patch/regular", "pipeline/patch/threeway", "pipeline/policy", "pipeline/replay",
		"pipeline/signed", "pipeline/sshsig", "pipeline/sshsig/signing",
	},
	"pipeline/attest": {
		"pipeline/approval", "pipeline/artifact", "pipeline/canon", "pipeline/explain", "pipeline/format", "pipeline/ledger", "pipeline/lookup",
		"pipeline/policy", "pipeline/replay", "pipeline/signed", "pipeline/sshsig", "pipeline/state",
	},
	"gitstore/object":        {"github.com/go-git/go-git/v5"},
	"gitstore/lineage":       {"gitstore/object", "pipeline/audit/history", "pipeline/sshsig", "pipeline/sshsig/signing", "github.com/go-git/go-git/v5"},
	"gitstore/bundle":        {"gitstore/object", "gitstore/packfile", "github.com/go-git/go-git/v5"},
	"gitstore/verdict/cheat": {"gitstore/lineage", "gitstore/object", "pipeline/ledger", "pipeline/sshsig/signing", "github.com/go-git/go-git/v5"},
	"gitstore/verdict": {
		"gitstore/bundle", "gitstore/lineage", "pipeline/audit", "pipeline/audit/history", "pipeline/pageaudit", "pipeline/sshsig",
		"github.com/go-git/go-git/v5",
	},
	"gitstore/packfile":   {"gitstore/object", "github.com/go-git/go-git/v5", "github.com/gofrs/flock"},
	"gitstore/git":        {},
	"gitstore/index":      {"github.com/go-git/go-git/v5"},
	"gitstore/ignore":     {},
	"gitstore/attributes": {"gitstore/ignore"},
	"gitstore/filter":     {},
	"gitstore/status":     {"gitstore/attributes", "gitstore/ignore", "gitstore/index", "github.com/go-git/go-git/v5", "golang.org/x/sys"},
	"pipeline/sshsig":     {"pipeline/lazyregexp", "golang.org/x/crypto"},
	"gitstore/wire":       {"pipeline/lazyregexp", "github.com/go-git/go-git/v5"},
	"gitstore": {
		"gitstore/attributes", "gitstore/bundle", "gitstore/filter", "gitstore/git", "gitstore/ignore", "gitstore/index", "gitstore/lineage",
		"gitstore/object", "gitstore/packfile", "gitstore/status", "gitstore/wire", "pipeline/audit/history", "pipeline/canon", "pipeline/code",
		"pipeline/lazyregexp", "pipeline/ledger", "pipeline/lookup", "pipeline/patch", "pipeline/sshsig", "pipeline/sshsig/signing",
		"pipeline/writing", "github.com/go-git/go-billy/v5", "github.com/go-git/go-git/v5",
	},
	"report/view": {"pipeline/approval", "pipeline/ledger", "pipeline/plain", "pipeline/policy", "pipeline/risk", "pipeline/state"},
	"report": {
		"pipeline/approval", "pipeline/attest", "pipeline/audit", "pipeline/audit/history", "pipeline/canon", "pipeline/difflook",
		"pipeline/explain", "pipeline/forge", "pipeline/lazyregexp", "pipeline/ledger", "pipeline/lookup", "pipeline/markdown", "pipeline/online",
		"pipeline/patch", "pipeline/patch/linediff", "pipeline/plain", "pipeline/policy", "pipeline/replay", "pipeline/result", "pipeline/risk",
		"pipeline/rule", "pipeline/simulate", "pipeline/state", "pipeline/writing", "report/view",
	},
	"report/html": {
		"pipeline/approval", "pipeline/artifact", "pipeline/audit/history", "pipeline/canon", "pipeline/difflook", "pipeline/forge",
		"pipeline/format", "pipeline/ledger", "pipeline/lookup", "pipeline/markdown", "pipeline/patch/linediff", "pipeline/plain",
		"pipeline/policy", "pipeline/replay", "pipeline/result", "pipeline/risk", "pipeline/state", "pipeline/writing", "report/view",
	},
	"report/verifier": {"report/html"},
	"report/site": {
		"pipeline/audit/history", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "pipeline/markdown", "pipeline/state", "report/html",
		"report/view",
	},
	"cmd/countersign/internal/pages": {
		"cmd/countersign/internal/cli", "cmd/countersign/internal/verifier", "gitstore", "gitstore/bundle", "pipeline/audit",
		"pipeline/audit/history", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "pipeline/lookup", "pipeline/pageaudit",
		"pipeline/parallel", "report", "report/html", "report/site", "report/verifier", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/rpc":       {"pipeline/canon"},
	"cmd/countersign/internal/sshkey":    {},
	"cmd/countersign/internal/sigstore":  {"pipeline/canon", "pipeline/ledger"},
	"cmd/countersign/internal/witnesses": {"pipeline/witness", "golang.org/x/sys"},
	"cmd/countersign/internal/merged": {
		"cmd/countersign/internal/rest", "pipeline/approval", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "pipeline/parallel",
	},
	"cmd/countersign/internal/terminal":      {"golang.org/x/sys", "golang.org/x/term"},
	"cmd/countersign/internal/gitcredential": {},
	"cmd/countersign/internal/ghtoken":       {"pipeline/lazyregexp"},
	"cmd/countersign/internal/completion": {
		"gitstore", "pipeline/attest", "pipeline/ledger", "pipeline/lookup", "pipeline/state", "report", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/action": {"pipeline/ledger", "report", "github.com/sethvargo/go-githubactions"},
	"cmd/countersign/internal/rest":   {"pipeline/forge", "pipeline/lazyregexp", "pipeline/ledger"},
	"cmd/countersign/internal/github": {
		"cmd/countersign/internal/rest", "pipeline/approval", "pipeline/canon", "pipeline/forge", "pipeline/ledger", "pipeline/signed",
		"github.com/google/go-github/v60",
	},
	"cmd/countersign/internal/gitea": {
		"cmd/countersign/internal/rest", "pipeline/approval", "pipeline/canon", "pipeline/forge", "pipeline/lazyregexp", "pipeline/ledger",
		"pipeline/signed",
	},
	"cmd/countersign/internal/cli": {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"cmd/countersign/internal/documents": {
		"cmd/countersign/internal/cli", "pipeline/applyresult", "pipeline/applyverify", "pipeline/canon", "pipeline/pack", "pipeline/packapply",
		"pipeline/proposal", "pipeline/result", "pipeline/rule", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/conformance": {
		"gitstore", "gitstore/bundle", "gitstore/lineage", "gitstore/verdict", "pipeline/approval", "pipeline/audit/history", "pipeline/canon",
		"pipeline/lazyregexp", "pipeline/ledger", "pipeline/owners", "pipeline/patch", "pipeline/policy", "pipeline/rule", "pipeline/signed",
		"pipeline/sshsig", "pipeline/witness",
	},
	"cmd/countersign/internal/demo": {
		"cmd/countersign/internal/cli", "gitstore", "pipeline/ledger", "pipeline/page", "pipeline/patch", "pipeline/writing", "report",
	},
	"cmd/countersign/internal/scaffold": {
		"cmd/countersign/internal/gitea", "cmd/countersign/internal/github", "gitstore", "pipeline/canon", "pipeline/code", "pipeline/forge",
		"pipeline/lazyregexp", "pipeline/online", "pipeline/patch", "pipeline/plain", "pipeline/policy", "report",
	},
	"cmd/countersign/internal/verifier":       {"report/verifier"},
	"cmd/countersign/internal/verifier/build": {"cmd/countersign/internal/verifier"},
	"cmd/countersign/internal/serve": {
		"cmd/countersign/internal/rpc", "pipeline", "pipeline/approval", "pipeline/checks", "pipeline/input", "pipeline/ledger", "pipeline/lookup",
		"pipeline/patch", "pipeline/policy", "pipeline/review", "pipeline/secret", "pipeline/signed", "pipeline/writing", "report",
	},
	"cmd/countersign/internal/mcp": {
		"cmd/countersign/internal/rpc", "pipeline", "pipeline/approval", "pipeline/audit", "pipeline/canon", "pipeline/checks", "pipeline/effect",
		"pipeline/input", "pipeline/ledger", "pipeline/lookup", "pipeline/patch", "pipeline/plain", "pipeline/plain/warn", "pipeline/policy",
		"pipeline/redact", "pipeline/review", "pipeline/risk", "pipeline/rule", "pipeline/secret", "pipeline/writing", "report",
		"github.com/modelcontextprotocol/go-sdk",
	},
	"cmd/verify/internal/worker": {"gitstore/bundle", "gitstore/verdict", "gitstore/verdict/cheat", "pipeline/audit"},
	"cmd/verify":                 {},
	"cmd/countersign": {
		"cmd/countersign/internal/action", "cmd/countersign/internal/cli", "cmd/countersign/internal/completion",
		"cmd/countersign/internal/conformance", "cmd/countersign/internal/demo", "cmd/countersign/internal/documents",
		"cmd/countersign/internal/ghtoken", "cmd/countersign/internal/gitcredential", "cmd/countersign/internal/gitea",
		"cmd/countersign/internal/github", "cmd/countersign/internal/mcp", "cmd/countersign/internal/merged", "cmd/countersign/internal/pages",
		"cmd/countersign/internal/rest", "cmd/countersign/internal/scaffold", "cmd/countersign/internal/serve",
		"cmd/countersign/internal/sigstore", "cmd/countersign/internal/sshkey", "cmd/countersign/internal/terminal",
		"cmd/countersign/internal/witnesses", "gitstore", "gitstore/attributes", "gitstore/verdict", "gitstore/wire", "pipeline",
		"pipeline/applyresult", "pipeline/approval", "pipeline/artifact", "pipeline/attest", "pipeline/audit", "pipeline/audit/history",
		"pipeline/batch", "pipeline/canon", "pipeline/checks", "pipeline/checks/workshop", "pipeline/code", "pipeline/conversation",
		"pipeline/effect", "pipeline/evidence", "pipeline/explain", "pipeline/foreign", "pipeline/forge", "pipeline/format", "pipeline/gitpatch",
		"pipeline/input", "pipeline/lazyregexp", "pipeline/ledger", "pipeline/lookup", "pipeline/online", "pipeline/pack", "pipeline/page",
		"pipeline/pageaudit", "pipeline/parallel", "pipeline/patch", "pipeline/plain", "pipeline/plain/warn", "pipeline/policy", "pipeline/pull",
		"pipeline/redact", "pipeline/replay", "pipeline/result", "pipeline/review", "pipeline/reviewed", "pipeline/risk", "pipeline/rule",
		"pipeline/sandbox", "pipeline/seal", "pipeline/secret", "pipeline/signed", "pipeline/simulate", "pipeline/sshsig",
		"pipeline/sshsig/signing", "pipeline/state", "pipeline/watch", "pipeline/witness", "pipeline/workspace", "pipeline/writing", "report",
		"report/html", "report/workpaper", "github.com/spf13/cobra",
	},
	"pipeline/applyresult": {"pipeline/canon", "pipeline/result", "pipeline/rule"},
	"pipeline/artifact":    {"pipeline/approval", "pipeline/forge", "pipeline/format", "pipeline/ledger", "pipeline/policy", "pipeline/signed"},
	"pipeline/difflook":    {"pipeline/gitpatch", "pipeline/lazyregexp", "pipeline/patch"},
	"pipeline/foreign":     {"pipeline/approval", "pipeline/canon", "pipeline/ledger", "pipeline/rule"},
	"pipeline/gitpatch":    {"pipeline/canon", "pipeline/parallel", "pipeline/patch", "pipeline/patch/linediff", "github.com/bluekeyes/go-gitdiff"},
	"pipeline/lookup":      {"pipeline/canon", "pipeline/ledger"},
	"pipeline/owners":      {"pipeline/lazyregexp", "pipeline/policy"},
	"pipeline/pageaudit": {
		"pipeline/approval", "pipeline/audit", "pipeline/audit/history", "pipeline/ledger", "pipeline/page", "pipeline/parallel",
		"pipeline/policy", "pipeline/signed",
	},
	"pipeline/plain":          {"pipeline/approval", "pipeline/ledger", "pipeline/patch", "pipeline/policy", "github.com/goccy/go-yaml"},
	"pipeline/replay":         {"pipeline/approval", "pipeline/canon", "pipeline/conversation", "pipeline/ledger", "pipeline/policy", "pipeline/signed"},
	"pipeline/sshsig/signing": {"pipeline/sshsig", "golang.org/x/crypto"},
	"pipeline/writing":        {"pipeline/canon", "pipeline/format", "pipeline/lazyregexp", "pipeline/ledger", "pipeline/result", "github.com/oklog/ulid/v2"},
	"pipeline/applyverify":    {"pipeline/canon", "pipeline/document", "pipeline/result", "pipeline/rule"},
	"pipeline/document":       {"pipeline/canon", "pipeline/rule"},
	"pipeline/record": {
		"gitstore/bundle", "gitstore/verdict", "pipeline/approval", "pipeline/canon", "pipeline/ledger", "pipeline/patch", "pipeline/policy",
	},
	"pipeline/plain/warn": {"pipeline/plain", "pipeline/policy"},
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
	const yaml = "github.com/goccy/go-yaml"
	doors[yaml] = slices.DeleteFunc(doors[yaml], func(room string) bool { return room == "pipeline/plain" }) // shows a Policy that policy has read
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
	for _, row := range regexp.MustCompile("(?m)^\\|`([a-z0-9/]+)`\\|").FindAllStringSubmatch(string(raw), -1) {
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
	for _, room := range []string{"gitstore", "cmd/countersign", "pipeline/sshsig"} {
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
