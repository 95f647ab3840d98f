package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

func policySchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	raw, err := os.Open("../../../docs/schema/policy.json")
	fatal(t, err)
	defer raw.Close()
	doc, err := jsonschema.UnmarshalJSON(raw)
	fatal(t, err)
	c := jsonschema.NewCompiler()
	fatal(t, c.AddResource("policy.json", doc))
	return c.MustCompile("policy.json")
}

// Rows of TestSchema: files that both take, files that both refuse, and those
// that only the program refuses, as no schema can say why.
const (
	goodFiles = `
version: 1
{}
approvals: {required: 100, permission: triage, allow_author: true, same_head: false, max_age: 72h, drift: {commits: 0, same_directory: ask}, local: true, break_glass: [ada, 7]}
approvals: {keys: .github/allowed_signers, signed: require, hardware: true, pin: true}
approvals: {keys: k, passkeys: "https://ada.example.org:8443"}
approvals: {passkeys: "http://localhost:8080"}
approvals: {keys: KEYS, signed: off}
approvals: {forge_keys: true}
approvals: {signed: accept}
secrets: {signed: require}
protected: [{paths: [a], signed: require}]
protected: [{advice: {tool: Semgrep OSS, level: error}, required: 2, teams: [acme/sec]}]
bots: ["dependabot[bot]", 49699333, "local:ada@example.org"]
protected: [{paths: ["*.tf", "/a/", "a/**/b", "\\!x"], required: 2, users: [1, ada], teams: [acme/sec, acme/ops], owners: true}]
sandbox: danger-full-access
secrets: refuse
secrets: {mode: require-approval}
secrets: {seal_to: [age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq]}
limits: {files: 1, bytes: 1}
approvals: {due: 2d}
limits: {open: 20}
limits: {bytes: 5 MiB}
limits: {bytes: 5KiB}
commands: {run: [go test ./..., {argv: ["a | b"], shell: true, required: false, network: true, timeout: 1h, env: [A_B]}], allow: [{argv: [x, "", "y z"]}]}
apply: {to: worktree, sign: KEY}
apply: {to: pull_request, merge: auto}
gate: {bases: [main, release/1.x]}
explained: {merges: covered}
explained: {bots: [{keys: .github/bot_keys, paths: [/go.mod], modes: true}, {keys: k, paths: ["*.lock"]}]}
explained: {decisions: [local, forge, signed], empty: false}
explained: {decisions: [forge], empty: true}
tickets: ["[A-Z0-9_a-z]+-[0-9]{2,}", "#\\d+", "GH/a:b@c d?\\.{99}"]
ledger: {repository: acme/ledgers}
ledger: {repository: _a.b-c/1.2_3-, since: "2026-01-05T12:00:00Z"}`
	badFiles = `
version: 2
version: "1"
[]
text
approval: {}
approvals: []
approvals: {required: 0}
approvals: {required: 101}
approvals: {required: 1.5}
approvals: {required: "1"}
approvals: {permission: owner}
approvals: {allow_author: "true"}
approvals: {max_age: 72}
tickets: "#1"
tickets: [""]
tickets: ["(a+)+"]
tickets: ["[z-a]"]
tickets: ["a**"]
tickets: ["a{0}"]
tickets: ["a{5,2}"]
tickets: ["."]
tickets: ["^a"]
tickets: ["\\w"]
tickets: ["a|b"]
tickets: [a, a]
approvals: {max_age: 1h30m}
approvals: {max_age: 0h}
approvals: {drift: {}}
approvals: {drift: 20}
approvals: {drift: null}
approvals: {drift: {commits: -1}}
approvals: {drift: {commits: 100001}}
approvals: {drift: {commits: "20"}}
approvals: {drift: {same_directory: true}}
approvals: {drift: {same_directory: deny}}
approvals: {drift: {files: 3}}
approvals: {local: alone}
approvals: {break_glass: ada}
approvals: {break_glass: ["@ada"]}
approvals: {keys: /etc/keys}
approvals: {forge_keys: yes}
approvals: {forge_keys: ada}
approvals: {keys: ../keys}
approvals: {keys: a/../keys}
approvals: {keys: a//keys}
approvals: {keys: a/}
approvals: {keys: "a\\b"}
approvals: {keys: ""}
approvals: {keys: [a]}
approvals: {signed: true}
approvals: {signed: required}
approvals: {hardware: "yes"}
approvals: {pin: 1}
approvals: {passkeys: true}
approvals: {passkeys: ""}
approvals: {passkeys: acme.github.io}
approvals: {passkeys: "http://acme.github.io"}
approvals: {passkeys: "https://acme.github.io/"}
approvals: {passkeys: "https://acme"}
approvals: {passkeys: "https://ACME.github.io"}
approvals: {passkeys: "https://10.0.0.1"}
approvals: {passkeys: "https://acme.github.io:0"}
approvals: {passkeys: ["https://acme.github.io"]}
secrets: {signed: accept}
protected: [{paths: [a], signed: off}]
bots: [0]
bots: ["a b"]
bots: ["a\tb"]
bots: [a, a]
bots: null
protected: {}
protected: [{required: 1}]
protected: [{paths: []}]
protected: [{paths: [a], advice: {tool: semgrep, level: error}}]
protected: [{advice: {tool: semgrep}}]
protected: [{advice: {level: error}}]
protected: [{advice: {tool: semgrep, level: none}}]
protected: [{advice: {tool: " semgrep", level: note}}]
protected: [{advice: {tool: "a  b", level: note}}]
protected: [{advice: error}]
protected: [{paths: "a"}]
protected: [{paths: ["!a"]}]
protected: [{paths: ["#a"]}]
protected: [{paths: ["a "]}]
protected: [{paths: ["/"]}]
protected: [{paths: ["a//b"]}]
protected: [{paths: [a], required: 0}]
protected: [{paths: [a], teams: [a/b/c]}]
protected: [{paths: [a], teams: ["@acme/x"]}]
protected: [{paths: [a], owner: true}]
sandbox: full
sandbox: null
secrets: allow
secrets: [refuse]
secrets: {mode: off}
secrets: {seal: []}
secrets: {seal_to: [ssh-rsa]}
limits: {files: 0}
limits: {open: 0}
approvals: {due: 2}
limits: {files: 100001}
limits: {bytes: 1073741825}
limits: {bytes: 5 MB}
limits: {bytes: -1}
commands: [a]
commands: {run: ["a | b"]}
commands: {run: ["A=1 b"]}
commands: {run: ['a "b"']}
commands: {run: [{argv: []}]}
ledger: {repository: ledgers}
ledger: {repository: ""}
ledger: {repository: null}
ledger: {repository: [acme/ledgers]}
ledger: {repository: acme/ledgers/more}
ledger: {repository: acme/}
ledger: {repository: /ledgers}
ledger: {repository: acme//ledgers}
ledger: {repository: ../ledgers}
ledger: {repository: acme/..}
ledger: {repository: acme/.}
ledger: {repository: acme/a..b}
ledger: {repository: acme/.ledgers}
ledger: {repository: acme/ledgers.}
ledger: {repository: -acme/ledgers}
ledger: {repository: acme/-ledgers}
ledger: {repository: "acme/led gers"}
ledger: {repository: "acme/ledgers?x"}
ledger: {repository: "acme/%2e%2e"}
ledger: {repository: "acme/ledgers\n"}
ledger: {repository: "acme\\ledgers"}
ledger: {repository: "https://example.org/acme/ledgers"}
ledger: {repository: "git@example.org:acme/ledgers"}
commands: {run: [{argv: [""]}]}
commands: {run: [{argv: a}]}
commands: {run: [{argv: [1]}]}
commands: {run: [{argv: [a, 1]}]}
commands: {run: [{argv: [a, b], shell: true}]}
commands: {run: [{timeout: 1m}]}
commands: {run: [{argv: [a], cwd: x}]}
commands: {allow: [{argv: [a], required: true}]}
commands: {allow: [{argv: [a], env: ["A=B"]}]}
commands: {allow: [{argv: [a], env: [A, A]}]}
commands: {allow: [7]}
apply: {to: main}
apply: {to: pull-request}
apply: {merge: robot}
apply: {sign: "$KEY"}
gate: {bases: [-x]}
gate: {allow_force: 1}
gate: {bases: [main, main]}
gate: {base: main}
explained: [merges]
explained: {merges: true}
explained: {merges: all}
explained: {merges: null}
explained: {bot: []}
explained: {decisions: signed}
explained: {decisions: [shell]}
explained: {decisions: [signed, signed]}
explained: {decisions: [true]}
explained: {decisions: null}
explained: {empty: "false"}
explained: {empty: null}
explained: {bots: [{keys: k, paths: [a], modes: "true"}]}
explained: {bots: {keys: k, paths: [a]}}
explained: {bots: [{keys: k}]}
explained: {bots: [{paths: [a]}]}
explained: {bots: [{keys: k, paths: []}]}
explained: {bots: [{keys: ../k, paths: [a]}]}
explained: {bots: [{keys: "", paths: [a]}]}
explained: {bots: [{keys: k, paths: [a], users: [7]}]}`
	beyondSchema = `
explained: {decisions: []}
explained: {bots: [{keys: k, paths: ["[a"]}]}
protected: [{paths: ["[a"]}]
protected: [{paths: ["a\\/b"]}]
protected: [{paths: ["../a"]}]
limits: {bytes: 2 GiB}
approvals: {max_age: 999999999w}
commands: {run: [{argv: [a], timeout: 25h}]}
commands: {run: [a, {argv: [a]}]}
bots: ["1", 1]
sandbox: &a read-only
version: !!int 1
approvals: {required: 0x1}
ledger: {repository: acme/ledgers.git}
ledger: {repository: acme/ledgers.Git}`
)

// TestSchema: docs/schema/policy.json and Parse agree.
func TestSchema(t *testing.T) {
	schema := policySchema(t)
	for _, rows := range []struct {
		files          string
		schema, parser bool
	}{{goodFiles, true, true}, {badFiles, false, false}, {beyondSchema, true, false}} {
		for file := range strings.SplitSeq(strings.TrimSpace(rows.files), "\n") {
			if _, err := policy.Parse("x.yml", []byte(file)); (err == nil) != rows.parser {
				t.Errorf("%s: Parse says %v", file, err)
			}
			if err := validate(t, schema, []byte(file)); (err == nil) != rows.schema {
				t.Errorf("%s: the schema says %v", file, err)
			}
		}
	}
	if err := validate(t, schema, []byte(sample(t))); err != nil {
		t.Errorf("the sample: %v", err)
	}
	if err := validate(t, schema, policy.Default().JSON()); err != nil {
		t.Errorf("the default: %v", err)
	}
}

// validate reads a file as an editor would.
func validate(t *testing.T, schema *jsonschema.Schema, file []byte) error {
	t.Helper()
	raw, err := yaml.YAMLToJSON(file)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return schema.Validate(doc)
}
