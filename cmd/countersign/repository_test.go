package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// repositoryFile is a file of this repository, by its path from the root.
func repositoryFile(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../..", name))
	check(t, err)
	return string(raw)
}

// repositoryYAML is the value of a YAML file of this repository.
func repositoryYAML(t *testing.T, name string) (out map[string]any) {
	t.Helper()
	check(t, yaml.Unmarshal([]byte(repositoryFile(t, name)), &out))
	return out
}

// eachFile walks the files of this repository, without Git's own and what is built.
func eachFile(t *testing.T, look func(name string)) {
	t.Helper()
	check(t, fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains([]string{".git", "build", "dist", "cmd/countersign/internal/verifier/program"}, name) && d.IsDir():
			return fs.SkipDir
		case d.Type().IsRegular() && !slices.Contains([]string{"countersign", "countersign.exe", "cmd/countersign/countersign"}, name):
			look(name)
		}
		return nil
	}))
}

// want wants a file of this repository to match each expression.
func want(t *testing.T, name string, forms ...string) {
	t.Helper()
	text := repositoryFile(t, name)
	for _, form := range forms {
		if !regexp.MustCompile(form).MatchString(text) {
			t.Errorf("%s has no %s", name, form)
		}
	}
}

// scorecard are the checks of OpenSSF Scorecard (docs/checks.md of ossf/scorecard, version 5), with what each looks for in files. A check
// without a function is one that no file passes: docs/releasing.md says who sees to it.
var scorecard = map[string]func(t *testing.T){
	"Binary-Artifacts":   noBinaries,
	"Branch-Protection":  nil,
	"CI-Tests":           nil,
	"CII-Best-Practices": nil,
	"Code-Review":        nil,
	"Contributors":       nil,
	"Dangerous-Workflow": func(t *testing.T) { // these hold every workflow to it
		want(t, "cmd/countersign/actionfile_test.go", `func TestT19NoPullRequestIsCheckedOut\(`, `func TestT21NoExpressionsInScripts\(`)
	},
	"Dependency-Update-Tool": everythingIsUpdated,
	"Fuzzing":                isFuzzed,
	"License":                func(t *testing.T) { want(t, "LICENSE", `Apache License\s+Version 2\.0`) },
	"Maintained":             nil,
	"Packaging": func(t *testing.T) {
		want(t, ".github/workflows/release.yml", `docker.*push`, `arch: amd64`, `arch: arm64`)
	},
	"Pinned-Dependencies": everythingIsPinned,
	"SAST":                func(t *testing.T) { want(t, ".github/workflows/codeql.yml", `uses: github/codeql-action/analyze@`) },
	"SBOM": func(t *testing.T) {
		want(t, ".goreleaser.yaml", `documents: \[".+\.cdx\.json"\]`)
		want(t, ".github/workflows/release.yml", `--attest "type=sbom,generator=`)
	},
	"Security-Policy":   hasSecurityPolicy,
	"Signed-Releases":   releasesAreSigned,
	"Token-Permissions": tokensReadOnly,
	"Vulnerabilities":   nil,
	"Webhooks":          nil,
}

// TestScorecard: as far as files tell, the repository passes each check.
func TestScorecard(t *testing.T) {
	t.Parallel()
	byHand := repositoryFile(t, "docs/releasing.md")
	for name, passes := range scorecard {
		t.Run(name, func(t *testing.T) {
			if passes != nil {
				passes(t)
			} else if !regexp.MustCompile(`\([^()]*\b` + name + `\b[^()]*\)`).MatchString(byHand) {
				t.Error("docs/releasing.md does not say who sees to it")
			}
		})
	}
}

// noBinaries: no file has the name of a program, whatever is in it.
func noBinaries(t *testing.T) {
	programs := strings.Fields(`.crx .deb .dex .dey .elf .o .a .so .macho .iso .class .jar .bundle .dylib .lib .msi .dll .drv .efi .exe .ocx .pyc .pyo
		.par .rpm .wasm .whl`)
	eachFile(t, func(name string) {
		if slices.Contains(programs, path.Ext(name)) {
			t.Errorf("%s has the name of a program", name)
		}
	})
}

// everythingIsUpdated: Dependabot looks at each module, the workflows and the image, with one pull request for all of a kind.
func everythingIsUpdated(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
			Groups      map[string]any
		}
	}
	check(t, yaml.Unmarshal([]byte(repositoryFile(t, ".github/dependabot.yml")), &config))
	looksAt := map[string]bool{"": true}
	for _, u := range config.Updates {
		if len(u.Groups) == 0 {
			t.Errorf("%s has no groups", u.Ecosystem)
		}
		for _, dir := range append(u.Directories, u.Directory) {
			looksAt[u.Ecosystem+" "+dir] = dir != ""
		}
	}
	wanted := []string{"github-actions /"}
	eachFile(t, func(name string) {
		switch dir := path.Join("/", path.Dir(name)); path.Base(name) {
		case "go.mod":
			wanted = append(wanted, "gomod "+dir)
		case "Dockerfile":
			wanted = append(wanted, "docker "+dir)
		}
	})
	for _, w := range wanted {
		if !looksAt[w] {
			t.Errorf("nothing updates %s", w)
		}
	}
	if len(wanted) < 4 {
		t.Errorf("only these were seen: %q", wanted)
	}
}

func isFuzzed(t *testing.T) {
	targets := 0
	eachFile(t, func(name string) {
		if strings.HasSuffix(name, "_test.go") {
			targets += len(regexp.MustCompile(`func\s+Fuzz\w+\s*\(\w+\s+\*testing.F\)`).FindAllString(repositoryFile(t, name), -1))
		}
	})
	if targets < 20 {
		t.Errorf("there are only %d targets", targets)
	}
}

// everythingIsPinned: images by digest, and what scripts get by version. TestT25PinnedByCommit has the actions. (Scorecard also wants what npm
// gets by hash: .ci/run gets the inspector of MCP by version, for one test.)
func everythingIsPinned(t *testing.T) {
	stages, images := map[string]bool{}, 0
	dockerfile := repositoryFile(t, "Dockerfile")
	for _, m := range regexp.MustCompile(`(?m)^ARG (\w+)=(.*)$`).FindAllStringSubmatch(dockerfile, -1) {
		dockerfile = strings.ReplaceAll(dockerfile, "${"+m[1]+"}", m[2])
	}
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)(?: AS (\S+))?$`).FindAllStringSubmatch(dockerfile, -1) {
		images++
		if !stages[m[1]] && !regexp.MustCompile(`@sha256:[0-9a-f]{64}$`).MatchString(m[1]) {
			t.Errorf("the Dockerfile takes %s", m[1])
		}
		stages[m[2]] = true
	}
	if images != 4 || images != strings.Count(dockerfile, "\nFROM ") {
		t.Errorf("only %d stages were seen", images)
	}
	scripts := 0
	loose := regexp.MustCompile(`\b(pip3? install|choco install|npm (i|install) [^@]*$|go (install|get) [^.]\S*(@latest|@main)|(curl|wget) [^|]*\| *(sudo )?(ba|da|z)?sh\b)`)
	eachFile(t, func(name string) {
		if strings.HasPrefix(name, ".ci/") || strings.HasPrefix(name, ".github/workflows/") || strings.HasSuffix(name, ".sh") {
			scripts++
			for line := range strings.Lines(strings.ReplaceAll(repositoryFile(t, name), "\\\n", "")) {
				if loose.MatchString(strings.TrimSpace(line)) {
					t.Errorf("%s: %s", name, line)
				}
			}
		}
	})
	if scripts < 14 {
		t.Errorf("only %d scripts were seen", scripts)
	}
}

// hasSecurityPolicy: SECURITY.md has an address, and says within how many days what happens until a vulnerability is disclosed.
func hasSecurityPolicy(t *testing.T) {
	want(t, ".github/SECURITY.md", `https://[a-zA-Z0-9./?=_%:-]+`, `(?i)disclos`, `(?i)vuln`, `\b\d+ days\b`)
}

// releasesAreSigned: the job that publishes attaches the provenance, which a step before it makes of all that is published.
func releasesAreSigned(t *testing.T) {
	made, attached := "", false
	for _, step := range readWorkflow(t, "../../.github/workflows/release.yml").Jobs["publish"].Steps {
		if strings.HasPrefix(step.Uses, "actions/attest-build-provenance@") && step.With["subject-checksums"] == "dist/checksums.txt" {
			made = "${{ steps." + step.ID + ".outputs.bundle-path }}"
		}
		attached = attached || made != "" && step.Env["BUNDLE"] == made &&
			regexp.MustCompile(`(?s)"\$BUNDLE" > "dist/\S+\.sigstore\.json".*"\$BUNDLE" > "dist/\S+\.intoto\.jsonl".*gh release create "\$TAG" dist/\*`).MatchString(step.Run)
	}
	if !attached {
		t.Error("no release has its provenance with it")
	}
}

// tokensReadOnly: what a whole workflow may is to read, so that a job that writes says so.
func tokensReadOnly(t *testing.T) {
	for name, w := range everyWorkflow(t) {
		may, is := w.Permissions.(map[string]any)
		for right, level := range may {
			if level != "read" {
				t.Errorf("%s: every job may %s: %v", name, right, level)
			}
		}
		if !is {
			t.Errorf("%s: every job may %v", name, w.Permissions)
		}
	}
}

// TestRepositoryFiles: what strangers look for is where GitHub looks for it, and in the form that it reads.
func TestRepositoryFiles(t *testing.T) {
	t.Parallel()
	want(t, ".github/CODEOWNERS", `(?m)^\* @\S+$`)
	want(t, ".github/CODE_OF_CONDUCT.md", `https://www\.contributor-covenant\.org/version/2/1/`)
	want(t, ".github/GOVERNANCE.md", `## Decisions`, `## Maintainers`)
	want(t, ".github/PULL_REQUEST_TEMPLATE.md", `- \[ \] `)
	config := repositoryYAML(t, ".github/ISSUE_TEMPLATE/config.yml")
	if config["blank_issues_enabled"] != false {
		t.Error("an issue can be opened without a form")
	}
	want(t, ".github/ISSUE_TEMPLATE/config.yml", `url: https://\S+/security/policy`)
	for _, name := range []string{"bug", "feature", "question"} {
		form := repositoryYAML(t, ".github/ISSUE_TEMPLATE/"+name+".yml")
		fields, _ := form["body"].([]any)
		if form["name"] == nil || form["description"] == nil || len(fields) == 0 {
			t.Errorf("the form %s is not whole", name)
		}
	}
}

// TestSecurityInsights: security-insights.yml has what schema 2.0.0 requires, and every page that it names is here.
func TestSecurityInsights(t *testing.T) {
	t.Parallel()
	const name = ".github/security-insights.yml"
	all := repositoryYAML(t, name)
	for _, at := range []string{
		"header/last-reviewed", "header/last-updated", "header/schema-version", "header/url", "project/name", "project/administrators/0/name",
		"project/administrators/0/primary", "project/repositories/0/name", "project/repositories/0/comment", "project/repositories/0/url",
		"project/vulnerability-reporting/reports-accepted", "project/vulnerability-reporting/bug-bounty-available", "repository/status", "repository/url",
		"repository/accepts-change-request", "repository/accepts-automated-change-request", "repository/core-team/0/name", "repository/license/url",
		"repository/license/expression", "repository/security/assessments/self/comment",
	} {
		var value any = all
		for key := range strings.SplitSeq(at, "/") {
			switch v := value.(type) {
			case map[string]any:
				value = v[key]
			case []any:
				value = v[0]
			}
		}
		if value == nil {
			t.Errorf("%s has no %s", name, at)
		}
	}
	pages := regexp.MustCompile(`/blob/main/(\S+)`).FindAllStringSubmatch(repositoryFile(t, name), -1)
	for _, page := range pages {
		repositoryFile(t, page[1])
	}
	if len(pages) < 10 {
		t.Errorf("%s names only %d pages", name, len(pages))
	}
}
