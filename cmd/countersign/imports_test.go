package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
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
	"cmd/countersign": {
		"cmd/countersign/internal/change", "cmd/countersign/internal/console", "cmd/countersign/internal/decide", "cmd/countersign/internal/guard",
		"cmd/countersign/internal/look", "cmd/countersign/internal/proofs", "cmd/countersign/internal/pulls", "cmd/countersign/internal/serve",
		"cmd/countersign/internal/session", "cmd/countersign/internal/setup", "cmd/countersign/internal/statements", "pipeline/sandbox", "report",
		"github.com/spf13/cobra",
	},
	"cmd/countersign/internal/agent": {
		"gitstore", "pipeline/atomicfile", "pipeline/effect", "pipeline/fault", "pipeline/input", "pipeline/record/canon", "pipeline/record/ledger",
		"pipeline/record/patch", "pipeline/sandbox", "pipeline/workspace",
	},
	"cmd/countersign/internal/change": {
		"cmd/countersign/internal/agent", "cmd/countersign/internal/console", "cmd/countersign/internal/session", "pipeline", "pipeline/atomicfile",
		"pipeline/checks", "pipeline/escape", "pipeline/fault", "pipeline/forge", "pipeline/input", "pipeline/lookup", "pipeline/plain",
		"pipeline/pull", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch", "pipeline/record/policy", "pipeline/redact",
		"pipeline/review", "pipeline/sandbox", "report", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/conformance": {
		"gitstore", "gitstore/lineage", "gitstore/packfile", "gitstore/verdict", "pipeline/code", "pipeline/document", "pipeline/forge",
		"pipeline/observation", "pipeline/record/approval", "pipeline/record/audit/history", "pipeline/record/canon", "pipeline/record/ledger",
		"pipeline/record/patch", "pipeline/record/policy", "pipeline/record/sshsig", "pipeline/witness",
	},
	"cmd/countersign/internal/console": {
		"cmd/countersign/internal/rest", "gitstore", "gitstore/git", "pipeline", "pipeline/code", "pipeline/effect", "pipeline/escape",
		"pipeline/fault", "pipeline/forge", "pipeline/input", "pipeline/lookup", "pipeline/plain", "pipeline/record/approval", "pipeline/record/canon",
		"pipeline/record/ledger", "pipeline/record/patch", "pipeline/record/policy", "pipeline/record/sshsig/signing", "pipeline/redact",
		"pipeline/sandbox", "pipeline/secret", "pipeline/writing", "report/view", "github.com/sethvargo/go-githubactions", "github.com/spf13/cobra",
		"github.com/spf13/pflag", "golang.org/x/sys", "golang.org/x/term",
	},
	"cmd/countersign/internal/decide": {
		"cmd/countersign/internal/console", "cmd/countersign/internal/github", "cmd/countersign/internal/rest", "cmd/countersign/internal/session",
		"gitstore", "gitstore/wire", "pipeline", "pipeline/escape", "pipeline/forge", "pipeline/lookup", "pipeline/observation",
		"pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/policy", "pipeline/review", "pipeline/risk",
		"report", "report/view", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/forgetest": {"pipeline/teststand"},
	"cmd/countersign/internal/gitea": {
		"cmd/countersign/internal/rest", "pipeline/forge", "pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger",
	},
	"cmd/countersign/internal/github": {
		"cmd/countersign/internal/rest", "pipeline/forge", "pipeline/record/approval", "pipeline/record/ledger", "github.com/google/go-github/v60",
	},
	"cmd/countersign/internal/github/githubtest": {
		"pipeline/teststand", "github.com/getkin/kin-openapi/openapi3", "github.com/getkin/kin-openapi/openapi3filter",
		"github.com/getkin/kin-openapi/routers", "github.com/vektah/gqlparser/v2", "github.com/vektah/gqlparser/v2/ast",
		"github.com/vektah/gqlparser/v2/parser", "github.com/vektah/gqlparser/v2/validator", "github.com/vektah/gqlparser/v2/validator/rules",
	},
	"cmd/countersign/internal/guard": {
		"cmd/countersign/internal/console", "cmd/countersign/internal/session", "gitstore", "gitstore/verdict", "pipeline/atomicfile",
		"pipeline/escape", "pipeline/explain", "pipeline/fault", "pipeline/record/patch", "pipeline/record/policy", "pipeline/record/sshsig",
		"pipeline/record/sshsig/signing", "report", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/look": {
		"cmd/countersign/internal/console", "cmd/countersign/internal/rest", "cmd/countersign/internal/session", "cmd/countersign/internal/verifier",
		"gitstore", "gitstore/verdict", "pipeline", "pipeline/atomicfile", "pipeline/document", "pipeline/explain", "pipeline/forge",
		"pipeline/lookup", "pipeline/parallel", "pipeline/plain", "pipeline/record/approval", "pipeline/record/audit", "pipeline/record/audit/history",
		"pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/policy", "pipeline/record/sshsig", "pipeline/secret", "pipeline/writing",
		"report", "report/html", "report/site", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/mcp": {
		"cmd/countersign/internal/console", "pipeline", "pipeline/checks", "pipeline/effect", "pipeline/fault", "pipeline/input", "pipeline/lookup",
		"pipeline/observation", "pipeline/record/approval", "pipeline/record/audit", "pipeline/record/canon", "pipeline/record/ledger",
		"pipeline/record/patch", "pipeline/record/policy", "pipeline/redact", "pipeline/review", "pipeline/risk", "pipeline/secret",
		"pipeline/writing", "report", "report/view", "github.com/modelcontextprotocol/go-sdk",
	},
	"cmd/countersign/internal/proofs": {
		"cmd/countersign/internal/console", "cmd/countersign/internal/github", "cmd/countersign/internal/rest", "cmd/countersign/internal/session",
		"gitstore", "gitstore/verdict", "pipeline/atomicfile", "pipeline/escape", "pipeline/evidence", "pipeline/explain", "pipeline/fault",
		"pipeline/forge", "pipeline/lookup", "pipeline/observation", "pipeline/online", "pipeline/pull", "pipeline/record/audit",
		"pipeline/record/audit/history", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch", "pipeline/record/policy",
		"pipeline/record/sshsig", "pipeline/witness", "pipeline/writing", "report", "report/html", "report/view", "report/workpaper",
		"github.com/spf13/cobra", "golang.org/x/sys",
	},
	"cmd/countersign/internal/pulls": {
		"cmd/countersign/internal/console", "cmd/countersign/internal/github", "cmd/countersign/internal/rest", "cmd/countersign/internal/session",
		"gitstore", "gitstore/wire", "pipeline", "pipeline/atomicfile", "pipeline/escape", "pipeline/explain", "pipeline/fault", "pipeline/forge",
		"pipeline/lookup", "pipeline/pull", "pipeline/record/policy", "pipeline/secret", "pipeline/writing", "report", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/rest": {"pipeline/forge", "pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger"},
	"cmd/countersign/internal/scaffold": {
		"cmd/countersign/internal/agent", "cmd/countersign/internal/gitea", "cmd/countersign/internal/github", "gitstore", "pipeline/atomicfile",
		"pipeline/code", "pipeline/escape", "pipeline/fault", "pipeline/forge", "pipeline/online", "pipeline/record/canon", "pipeline/record/patch",
		"pipeline/record/policy", "pipeline/risk", "report", "report/view",
	},
	"cmd/countersign/internal/serve": {
		"cmd/countersign/internal/agent", "cmd/countersign/internal/console", "cmd/countersign/internal/mcp", "cmd/countersign/internal/session",
		"gitstore", "gitstore/verdict", "pipeline", "pipeline/checks", "pipeline/fault", "pipeline/forge", "pipeline/input", "pipeline/lookup",
		"pipeline/pull", "pipeline/record/approval", "pipeline/record/audit", "pipeline/record/canon", "pipeline/record/ledger",
		"pipeline/record/patch", "pipeline/record/policy", "pipeline/review", "pipeline/risk", "pipeline/secret", "pipeline/writing", "report",
		"github.com/spf13/cobra",
	},
	"cmd/countersign/internal/session": {
		"cmd/countersign/internal/console", "cmd/countersign/internal/gitea", "cmd/countersign/internal/github", "cmd/countersign/internal/rest",
		"gitstore", "gitstore/verdict", "gitstore/wire", "pipeline", "pipeline/atomicfile", "pipeline/checks", "pipeline/code", "pipeline/escape",
		"pipeline/evidence", "pipeline/explain", "pipeline/fault", "pipeline/forge", "pipeline/gitpatch", "pipeline/input", "pipeline/lookup",
		"pipeline/observation", "pipeline/online", "pipeline/page", "pipeline/parallel", "pipeline/plain", "pipeline/record/approval",
		"pipeline/record/audit", "pipeline/record/audit/history", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch",
		"pipeline/record/policy", "pipeline/record/sshsig", "pipeline/redact", "pipeline/review", "pipeline/sandbox", "pipeline/secret",
		"pipeline/workspace", "pipeline/writing", "report", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/setup": {
		"cmd/countersign/internal/conformance", "cmd/countersign/internal/console", "cmd/countersign/internal/gitea",
		"cmd/countersign/internal/github", "cmd/countersign/internal/rest", "cmd/countersign/internal/scaffold", "cmd/countersign/internal/session",
		"gitstore", "gitstore/wire", "pipeline", "pipeline/atomicfile", "pipeline/code", "pipeline/effect", "pipeline/escape", "pipeline/explain",
		"pipeline/fault", "pipeline/forge", "pipeline/lookup", "pipeline/online", "pipeline/page", "pipeline/parallel", "pipeline/record/approval",
		"pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch", "pipeline/record/policy", "pipeline/record/sshsig",
		"pipeline/redact", "pipeline/risk", "pipeline/writing", "report", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/statements": {
		"cmd/countersign/internal/console", "cmd/countersign/internal/github", "cmd/countersign/internal/session", "gitstore", "pipeline/atomicfile",
		"pipeline/attest", "pipeline/document", "pipeline/effect", "pipeline/evidence", "pipeline/explain", "pipeline/fault", "pipeline/forge",
		"pipeline/lookup", "pipeline/page", "pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch",
		"pipeline/record/sshsig", "pipeline/record/sshsig/signing", "pipeline/writing", "report", "github.com/spf13/cobra",
	},
	"cmd/countersign/internal/verifier":       {"report/html"},
	"cmd/countersign/internal/verifier/build": {"cmd/countersign/internal/verifier"},
	"cmd/verify": {"gitstore/packfile", "gitstore/verdict", "pipeline/record/audit"},
	"gitstore": {
		"gitstore/git", "gitstore/lineage", "gitstore/packfile", "gitstore/wire", "pipeline/code", "pipeline/fault", "pipeline/lookup",
		"pipeline/parallel", "pipeline/record/audit/history", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch",
		"pipeline/record/sshsig", "pipeline/record/sshsig/signing", "pipeline/writing", "github.com/go-git/go-git/v5", "github.com/gofrs/flock",
	},
	"gitstore/git": {
		"gitstore/packfile", "pipeline/fault", "pipeline/parallel", "pipeline/record/canon", "pipeline/record/patch", "github.com/go-git/go-git/v5",
	},
	"gitstore/lineage": {
		"gitstore/packfile", "pipeline/fault", "pipeline/record/audit/history", "pipeline/record/sshsig", "pipeline/record/sshsig/signing",
		"github.com/go-git/go-git/v5",
	},
	"gitstore/packfile": {"pipeline/parallel", "pipeline/record/audit/history", "github.com/go-git/go-git/v5"},
	"gitstore/verdict": {
		"gitstore/lineage", "gitstore/packfile", "pipeline/page", "pipeline/record/audit", "pipeline/record/audit/history", "pipeline/record/ledger",
		"pipeline/record/sshsig", "pipeline/record/sshsig/signing", "github.com/go-git/go-git/v5",
	},
	"gitstore/wire": {"gitstore/packfile", "pipeline/fault", "pipeline/record/canon", "github.com/go-git/go-git/v5"},
	"pipeline": {
		"pipeline/checks", "pipeline/code", "pipeline/effect", "pipeline/escape", "pipeline/fault", "pipeline/forge", "pipeline/lookup",
		"pipeline/observation", "pipeline/plain", "pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger",
		"pipeline/record/patch", "pipeline/record/policy", "pipeline/record/sshsig", "pipeline/redact", "pipeline/writing",
	},
	"pipeline/atomicfile": {},
	"pipeline/attest": {
		"pipeline/explain", "pipeline/fault", "pipeline/forge", "pipeline/lookup", "pipeline/plain", "pipeline/record/approval",
		"pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/policy", "pipeline/record/sshsig",
	},
	"pipeline/checks": {
		"pipeline/code", "pipeline/fault", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch", "pipeline/record/policy",
		"pipeline/redact", "pipeline/writing",
	},
	"pipeline/code":     {"pipeline/record/ledger", "pipeline/record/patch"},
	"pipeline/document": {"pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch"},
	"pipeline/effect": {
		"pipeline/code", "pipeline/escape", "pipeline/fault", "pipeline/lookup", "pipeline/parallel", "pipeline/record/approval",
		"pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch", "pipeline/writing",
	},
	"pipeline/escape": {"pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch", "golang.org/x/text"},
	"pipeline/evidence": {
		"pipeline/code", "pipeline/explain", "pipeline/forge", "pipeline/lookup", "pipeline/observation", "pipeline/parallel", "pipeline/plain",
		"pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/policy", "pipeline/record/sshsig",
	},
	"pipeline/explain": {
		"pipeline/code", "pipeline/escape", "pipeline/forge", "pipeline/lookup", "pipeline/observation", "pipeline/parallel", "pipeline/plain",
		"pipeline/record/approval", "pipeline/record/audit/history", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch",
		"pipeline/record/policy", "pipeline/record/sshsig", "pipeline/record/sshsig/signing", "pipeline/writing",
	},
	"pipeline/fault": {},
	"pipeline/forge": {
		"pipeline/escape", "pipeline/fault", "pipeline/lookup", "pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger",
		"pipeline/record/patch", "pipeline/record/policy", "pipeline/writing",
	},
	"pipeline/gitpatch": {"pipeline/parallel", "pipeline/record/canon", "pipeline/record/patch", "github.com/bluekeyes/go-gitdiff"},
	"pipeline/input": {
		"pipeline/code", "pipeline/document", "pipeline/escape", "pipeline/fault", "pipeline/forge", "pipeline/gitpatch", "pipeline/record/canon",
		"pipeline/record/ledger", "pipeline/record/patch", "pipeline/record/policy", "pipeline/writing",
	},
	"pipeline/lookup": {"pipeline/fault", "pipeline/record/canon", "pipeline/record/ledger"},
	"pipeline/observation": {
		"pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/policy", "pipeline/record/sshsig",
	},
	"pipeline/online": {
		"pipeline/fault", "pipeline/forge", "pipeline/lookup", "pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger",
	},
	"pipeline/page": {
		"pipeline/observation", "pipeline/page/v1", "pipeline/parallel", "pipeline/record/approval", "pipeline/record/audit",
		"pipeline/record/audit/history", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/policy", "pipeline/writing",
	},
	"pipeline/page/v1":  {"pipeline/record/canon", "pipeline/record/ledger"},
	"pipeline/parallel": {},
	"pipeline/plain":    {"pipeline/record/approval", "pipeline/record/ledger", "pipeline/record/policy", "github.com/goccy/go-yaml"},
	"pipeline/pull": {
		"pipeline", "pipeline/checks", "pipeline/code", "pipeline/effect", "pipeline/escape", "pipeline/explain", "pipeline/fault", "pipeline/forge",
		"pipeline/input", "pipeline/lookup", "pipeline/plain", "pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger",
		"pipeline/record/patch", "pipeline/record/policy", "pipeline/review", "pipeline/risk", "pipeline/writing", "report", "report/view",
	},
	"pipeline/record": {
		"gitstore/packfile", "gitstore/verdict", "pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger",
		"pipeline/record/patch", "pipeline/record/policy", "pipeline/writing",
	},
	"pipeline/record/approval": {"pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/policy", "pipeline/record/sshsig"},
	"pipeline/record/audit": {
		"pipeline/record/approval", "pipeline/record/audit/history", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/policy",
	},
	"pipeline/record/audit/history":  {},
	"pipeline/record/canon":          {},
	"pipeline/record/ledger":         {"pipeline/record/canon", "pipeline/record/patch"},
	"pipeline/record/patch":          {"golang.org/x/text"},
	"pipeline/record/policy":         {"pipeline/record/canon", "pipeline/record/patch", "github.com/goccy/go-yaml"},
	"pipeline/record/sshsig":         {"pipeline/record/canon", "golang.org/x/crypto"},
	"pipeline/record/sshsig/signing": {"pipeline/record/sshsig", "golang.org/x/crypto"},
	"pipeline/redact":                {"pipeline/fault", "pipeline/record/patch", "filippo.io/age"},
	"pipeline/review": {
		"pipeline", "pipeline/checks", "pipeline/code", "pipeline/document", "pipeline/fault", "pipeline/forge", "pipeline/gitpatch", "pipeline/input",
		"pipeline/lookup", "pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch",
		"pipeline/record/policy", "pipeline/redact", "pipeline/risk", "pipeline/writing",
	},
	"pipeline/risk": {
		"pipeline/escape", "pipeline/gitpatch", "pipeline/record/approval", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch",
		"pipeline/record/policy", "pipeline/redact", "golang.org/x/text",
	},
	"pipeline/sandbox": {"github.com/landlock-lsm/go-landlock", "golang.org/x/sys", "kernel.org/pub/linux/libs/security/libcap/psx"},
	"pipeline/secret": {
		"pipeline/gitpatch", "pipeline/parallel", "pipeline/record/canon", "pipeline/record/patch", "pipeline/redact",
		"github.com/pelletier/go-toml/v2",
	},
	"pipeline/storetest": {
		"pipeline", "pipeline/code", "pipeline/forge", "pipeline/gitpatch", "pipeline/input", "pipeline/lookup", "pipeline/page",
		"pipeline/record/approval", "pipeline/record/audit/history", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch",
		"pipeline/record/policy", "pipeline/review", "pipeline/secret", "pipeline/teststand", "pipeline/writing",
	},
	"pipeline/teststand": {"gitstore/packfile", "pipeline/record/approval", "golang.org/x/crypto"},
	"pipeline/witness":   {"pipeline/fault", "pipeline/record/canon", "golang.org/x/mod"},
	"pipeline/workspace": {
		"gitstore/git", "pipeline/atomicfile", "pipeline/checks", "pipeline/effect", "pipeline/gitpatch", "pipeline/parallel", "pipeline/record/canon",
		"pipeline/record/ledger", "pipeline/record/patch", "pipeline/record/policy", "pipeline/sandbox", "github.com/rogpeppe/go-internal",
		"golang.org/x/sys",
	},
	"pipeline/writing": {"pipeline/fault", "pipeline/record/canon", "pipeline/record/ledger", "github.com/oklog/ulid/v2"},
	"report": {
		"pipeline/escape", "pipeline/explain", "pipeline/forge", "pipeline/gitpatch", "pipeline/lookup", "pipeline/online", "pipeline/plain",
		"pipeline/record/approval", "pipeline/record/audit", "pipeline/record/canon", "pipeline/record/ledger", "pipeline/record/patch",
		"pipeline/record/policy", "pipeline/risk", "pipeline/witness", "pipeline/writing", "report/template", "report/view",
	},
	"report/html": {
		"pipeline/checks", "pipeline/escape", "pipeline/explain", "pipeline/forge", "pipeline/gitpatch", "pipeline/lookup", "pipeline/observation",
		"pipeline/plain", "pipeline/record/approval", "pipeline/record/audit/history", "pipeline/record/canon", "pipeline/record/ledger",
		"pipeline/record/patch", "pipeline/record/policy", "pipeline/risk", "pipeline/writing", "report/template", "report/view",
	},
	"report/pagetest": {"report/template"},
	"report/site": {
		"pipeline/escape", "pipeline/explain", "pipeline/forge", "pipeline/lookup", "pipeline/plain", "pipeline/record/audit/history",
		"pipeline/record/canon", "pipeline/record/ledger", "report/html", "report/template", "report/view",
	},
	"report/template": {},
	"report/view": {
		"pipeline/gitpatch", "pipeline/plain", "pipeline/record/approval", "pipeline/record/ledger", "pipeline/record/policy", "pipeline/risk",
	},
	"report/workpaper": {
		"pipeline/escape", "pipeline/evidence", "pipeline/explain", "pipeline/record/canon", "pipeline/record/ledger", "report/html",
		"report/template", "report/view",
	},
}

// onlyForTests are packages that nothing but tests may import.
var onlyForTests = []string{"pipeline/teststand", "pipeline/storetest", "cmd/countersign/internal/github/githubtest", "report/pagetest", "cmd/countersign/internal/forgetest"}

func TestImportMap(t *testing.T) {
	t.Parallel()
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

// TestPackagesAreExplained: each package says what it holds, as docs/design.md
// promises.
func TestPackagesAreExplained(t *testing.T) {
	t.Parallel()
	for _, pkg := range packages(t) {
		if pkg.Doc == "" {
			t.Errorf("%s has no comment", pkg.ImportPath)
		}
	}
}

// door is the room that one comes through to reach a package.
func door(name string) string {
	for _, room := range []string{"gitstore", "cmd/countersign", "pipeline/record/sshsig"} {
		if strings.HasPrefix(name, room+"/") {
			return room
		}
	}
	return name
}

// TestGitstoreDeps: what keeps the ledger in Git knows neither the stages nor
// what they need.
func TestGitstoreDeps(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "./gitstore")
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	out, err := cmd.Output()
	check(t, err)
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"pipeline/record/ledger") {
		t.Fatal("the list lacks what gitstore imports")
	}
	for _, dep := range deps {
		for _, not := range []string{"yaml", "filippo.io/age", "go-landlock", "go-toml", module + "pipeline/record/policy", module + "pipeline/record/approval"} {
			if strings.Contains(dep, not) || dep == module+"pipeline" {
				t.Errorf("gitstore needs %s", dep)
				break
			}
		}
	}
}

type goPackage struct {
	ImportPath, Doc string
	Imports         []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", "./...")
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

// TestFloors: the longest chain of imports is short, no command imports another one, and no folder of commands is long.
func TestFloors(t *testing.T) {
	all := packages(t)
	imports := map[string][]string{}
	for _, p := range all {
		imports[p.ImportPath] = p.Imports
	}
	depths := map[string]int{}
	var depth func(name string) int
	depth = func(name string) int {
		n, known := depths[name]
		for _, below := range imports[name] {
			if !known && imports[below] != nil {
				n = max(n, 1+depth(below))
			}
		}
		depths[name] = n
		return n
	}
	if n := depth(strings.TrimSuffix(module+"cmd/countersign", "/")); n > 8 || n < 5 {
		t.Errorf("the longest chain of imports has %d edges", n)
	}
	if len(all) > 80 {
		t.Errorf("%d packages", len(all))
	}
	const inner = module + "cmd/countersign/internal/"
	for _, command := range []string{"change", "decide", "guard", "look", "proofs", "pulls", "serve", "setup", "statements"} {
		for name, of := range imports {
			if slices.Contains(of, inner+command) && name != module+"cmd/countersign" {
				t.Errorf("%s imports the commands of %s", name, command)
			}
		}
	}
	for name := range imports {
		if strings.HasPrefix(name, inner) && !strings.HasSuffix(name, "test") {
			if n := codeLines(t, name); n > 2500 {
				t.Errorf("%s has %d lines of code", name, n)
			}
		}
	}
}
