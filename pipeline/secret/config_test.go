package secret_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

func configured(t *testing.T, config string) *secret.Finder {
	t.Helper()
	f, err := secret.New([]byte(config))
	fatal(t, err)
	return f
}

// A repository's own file: rules, allowlists, disabled and changed rules.
func TestNew(t *testing.T) {
	token := teststand.Samples()[1].Value
	const own = "[[rules]]\nid = \"Acme Key\"\nregex = '''\\bacme-([a-z]{4})\\b'''\nkeywords = [\"acme\"]\n"
	for name, c := range map[string]struct{ config, text, want string }{
		"empty":            {"", token, "<REDACTED:github-pat>"},
		"own rule":         {own, "acme-wxyz and " + token, "acme-wxyz and <REDACTED:github-pat>"},
		"long enough":      {strings.Replace(own, "{4}", "{9}", 1), "x acme-abcdefghi, abcdefghi", "x acme-<REDACTED:acme-key>, <REDACTED:acme-key>"},
		"without default":  {"[extend]\nuseDefault = false\n" + own, token, "<REDACTED:github-pat>"},
		"disabled":         {"[extend]\nuseDefault = true\ndisabledRules = [\"github-pat\"]", token, token},
		"key disabled":     {"[extend]\ndisabledRules = [\"private-key\"]", pem(), pem()},
		"changed":          {"[[rules]]\nid = \"github-pat\"\nentropy = 7.9", token, token},
		"allowed":          {"[allowlist]\nregexes = ['''^ghp_''']", token, token},
		"allowed words":    {"[[allowlists]]\nstopwords = [\"GHP_\"]", token, token},
		"not all":          {"[[allowlists]]\ncondition = \"AND\"\nregexes = ['''^ghp_''']\nstopwords = [\"no such\"]", token, "<REDACTED:github-pat>"},
		"for one rule":     {"[[allowlists]]\ntargetRules = [\"gitlab-pat\"]\nregexes = ['''.''']", token, "<REDACTED:github-pat>"},
		"in the rule":      {"[[rules]]\nid = \"github-pat\"\n[[rules.allowlists]]\nregexTarget = \"line\"\nregexes = ['''ghp''']", "a " + token, "a " + token},
		"beside the match": {"[[rules]]\nid = \"github-pat\"\n[[rules.allowlists]]\nregexTarget = \"line\"\nregexes = ['''ok''']", "ok " + token, "ok <REDACTED:github-pat>"},
		"no keywords":      {"[[rules]]\nid = \"n\"\nregex = '''[0-9]{4}(x[0-9]{8})'''", "1234x12345678", "1234<REDACTED:n>"},
		"skip report":      {own + "skipReport = true", "acme-wxyz", "acme-wxyz"},
		"paths":            {"[allowlist]\npaths = ['''.*''']", token, "<REDACTED:github-pat>"},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			if name == "own rule" {
				want = strings.Replace(want, "wxyz", "<REDACTED:acme-key>", 1)
			}
			if got := redacted(t, configured(t, c.config), c.text); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Paths of a repository's allowlists hold where a path is known.
func TestNewPaths(t *testing.T) {
	token := teststand.Samples()[1].Value
	set := change(t, nil, map[string]string{"testdata/a": token + "\n", "src/a": token + "x\n"})
	f := configured(t, "[allowlist]\npaths = ['''^testdata/''']")
	if found := fmt.Sprint(f.Patch(set)); found != "[{src/a 1 github-pat}]" && found != "[{src/a 1 github-pat} {testdata/a 1 github-pat}]" {
		t.Error(found)
	}
	only := change(t, nil, map[string]string{"testdata/a": token + "\n"})
	if out := redactDiff(t, f, only.Bytes()); out != string(only.Bytes()) || f.Patch(only) != nil {
		t.Errorf("%s", out)
	}
}

// T46: what is wrong with a file is an error, and no file but it is read.
func TestT46NewErrors(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "other.toml")
	fatal(t, os.WriteFile(elsewhere, []byte("[allowlist]\nregexes = ['''.''']"), 0o600))
	for name, config := range map[string]string{
		"syntax": "[[rules", "type": "rules = 3", "path": fmt.Sprintf("[extend]\npath = %q", elsewhere), "url": "[extend]\nurl = \"https://example.com\"",
		"expression": "[[rules]]\nid = \"a\"\nregex = '''('''", "no id": "[[rules]]\nregex = '''a'''", "odd id": "[[rules]]\nid = \"é\"\nregex = '''a'''",
		"nothing to find": "[[rules]]\nid = \"a\"", "group": "[[rules]]\nid = \"a\"\nregex = '''a'''\nsecretGroup = 1",
		"allowlist expression": "[allowlist]\nregexes = ['''(''']", "allowlist path": "[allowlist]\npaths = ['''(''']",
		"condition": "[allowlist]\ncondition = \"XOR\"", "target": "[allowlist]\nregexTarget = \"file\"",
		"target rule": "[[allowlists]]\ntargetRules = [\"no such\"]\nregexes = ['''a''']",
		"path rule":   "[[rules]]\nid = \"a\"\npath = '''('''", "size": strings.Repeat("#", 1<<18+1),
		"rules": strings.Repeat("[[rules]]\nid = \"a\"\nregex = '''a'''\n", 1001),
	} {
		if _, err := secret.New([]byte(config)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
