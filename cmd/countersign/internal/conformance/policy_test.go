package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

func init() { generators["policy"] = policyVectors }

// canonicalPolicy is the canonical form of a file that says nothing, with some texts replaced.
func canonicalPolicy(replace ...string) string {
	text := `{"apply":{},"approvals":{"allow_author":false,"permission":"write","required":1,"same_head":false},"commands":{},"gate":{},"limits":{"bytes":5242880,"files":500},"sandbox":"workspace-write","secrets":{"mode":"require-approval"},"version":1}` + "\n"
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			panic(replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return text
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func policyVectors(g *generator) {
	policyFiles(g)
	policyDocuments(g)
	policyTightened(g)
	policyGlobs(g)
	policyOwnerCases(g)
	policyNeedCases(g)
	policyDetails(g)
	passkeyPolicies(g)
}

const plainPolicy = "a file that says its version alone"

func policyFiles(g *generator) {
	g.in("file")
	file := func(text string) m { return m{"file": Bytes(text)} }
	good := func(requires, note, text, canonical string) {
		g.t.Helper()
		g.good("file", requires, note, file(text), m{"policy": canonical, "sha256": sumOf(canonical)})
	}
	bad := func(requires, note, text string) {
		g.t.Helper()
		g.bad("file", requires, "file: "+note, plainPolicy, file(text))
	}
	good("Y-1 Y-2 Y-6 Y-20", plainPolicy, "version: 1\n", canonicalPolicy())
	good("Y-1", "lines end with CR LF", "version: 1\r\napprovals:\r\n  required: 2\r\n", canonicalPolicy(`"required":1`, `"required":2`))
	good("Y-2", "an empty flow mapping", "{}\n", canonicalPolicy())
	good("Y-2", "comments, flow style, quotes", "# who decides\napprovals: {required: 3, permission: \"admin\"} # three\nbots: ['renovate', \"dependabot\"]\n",
		canonicalPolicy(`"permission":"write","required":1`, `"permission":"admin","required":3`, `"commands"`, `"bots":["renovate","dependabot"],"commands"`))
	good("Y-2 Y-3", "JSON is YAML", `{"version": 1, "approvals": {"required": 2}}`, canonicalPolicy(`"required":1`, `"required":2`))
	good("Y-2", "flow style within flow style", "{protected: [{paths: [a], users: [b]}]}", canonicalPolicy(`"sandbox"`, `"protected":[{"paths":["a"],"required":1,"users":["b"]}],"sandbox"`))
	good("Y-3", "a quoted number is text", "bots: [\"12345\", 678]\n", canonicalPolicy(`"commands"`, `"bots":["12345","678"],"commands"`))
	good("Y-3", "yes and on are text", "bots: [yes, on, y]\n", canonicalPolicy(`"commands"`, `"bots":["yes","on","y"],"commands"`))
	good("Y-3", "escapes in double quotes", `bots: ["\x61\u0062"]`+"\n", canonicalPolicy(`"commands"`, `"bots":["ab"],"commands"`))
	good("Y-5 Y-6 Y-20", "all of approvals", "approvals:\n  required: 100\n  permission: read\n  allow_author: true\n  same_head: true\n  max_age: 2w\n  drift: {commits: 0, same_directory: ask}\n  local: false\n  break_glass: [ada, 7]\n  keys: .github/allowed_signers\n  forge_keys: true\n  hardware: true\n  pin: true\n  signed: require\n",
		canonicalPolicy(`{"allow_author":false,"permission":"write","required":1,"same_head":false}`, `{"allow_author":true,"break_glass":["ada","7"],"drift":{"commits":0,"same_directory":"ask"},"forge_keys":true,"hardware":true,"keys":".github/allowed_signers","local":false,"max_age":"1209600s","permission":"read","pin":true,"required":100,"same_head":true,"signed":"require"}`))
	good("Y-5 Y-20", "lists that are empty", "approvals: {break_glass: []}\nbots: []\nprotected: []\ngate: {bases: []}\ncommands: {run: [], allow: []}\nsecrets: {seal_to: []}\nexplained: {bots: []}\n", canonicalPolicy())
	good("Y-6 Y-20", "independent, in its order", "approvals: {independent: [requester, proposer]}\n", canonicalPolicy(`"permission"`, `"independent":["proposer","requester"],"permission"`))
	good("Y-6 Y-20", "local that is true", "approvals: {local: true}\n", canonicalPolicy(`"permission"`, `"local":true,"permission"`))
	good("Y-6 Y-20", "drift with the directory alone", "approvals: {drift: {same_directory: ask}}\n", canonicalPolicy(`"permission"`, `"drift":{"same_directory":"ask"},"permission"`))
	good("Y-6 Y-20", "a rule for what a tool says", "protected: [{advice: {level: error, tool: Code (QL) 2@x/y+z_}, teams: [acme/ops]}]\n",
		canonicalPolicy(`"sandbox"`, `"protected":[{"advice":{"level":"error","tool":"Code (QL) 2@x/y+z_"},"required":1,"teams":["acme/ops"]}],"sandbox"`))
	good("Y-6 Y-20", "a rule with owners", "protected:\n- paths: [\"*.tf\", /deploy/]\n  required: 2\n  owners: true\n  teams: [acme/ops]\n  signed: require\n",
		canonicalPolicy(`"sandbox"`, `"protected":[{"owners":true,"paths":["*.tf","/deploy/"],"required":2,"signed":"require","teams":["acme/ops"]}],"sandbox"`))
	good("Y-6", "secrets that are refused", "secrets: refuse\n", canonicalPolicy(`"require-approval"`, `"refuse"`))
	good("Y-6 Y-20", "secrets as a mapping", "secrets:\n  mode: require-approval\n  seal_to: [age1"+strings.Repeat("q", 58)+"]\n  signed: require\n",
		canonicalPolicy(`"secrets":{"mode":"require-approval"}`, `"secrets":{"mode":"require-approval","seal_to":["age1`+strings.Repeat("q", 58)+`"],"signed":"require"}`))
	good("Y-6", "limits in units", "limits: {files: 1, bytes: 1 GiB}\n", canonicalPolicy(`{"bytes":5242880,"files":500}`, `{"bytes":1073741824,"files":1}`))
	good("Y-6", "limits as a number", "limits: {bytes: 1073741824}\n", canonicalPolicy(`"bytes":5242880`, `"bytes":1073741824`))
	good("Y-7 Y-20", "commands", "commands:\n  run: [\"go vet ./...\"]\n  allow:\n  - {argv: [go, test], timeout: 1h, network: true, env: [GOCACHE]}\n  - {argv: [make x], shell: true}\n",
		canonicalPolicy(`"commands":{}`, `"commands":{"allow":[{"argv":["go","test"],"env":["GOCACHE"],"network":true,"timeout":"3600s"},{"argv":["make x"],"network":false,"shell":true,"timeout":"600s"}],"run":[{"argv":["go","vet","./..."],"network":false,"required":true,"timeout":"600s"}]}`))
	good("Y-7 Y-20", "a command that is not required", "commands: {run: [{argv: [lint], required: false}]}\n",
		canonicalPolicy(`"commands":{}`, `"commands":{"run":[{"argv":["lint"],"network":false,"required":false,"timeout":"600s"}]}`))
	good("Y-6 Y-20", "tickets", `tickets: ["[A-Z0-9_a-z]+-[0-9]{2,}", "#\\d+", "GH/a:b@c d?\\.{99}"]`+"\n", canonicalPolicy(`"version":1`, `"tickets":["[A-Z0-9_a-z]+-[0-9]{2,}","#\\d+","GH/a:b@c d?\\.{99}"],"version":1`))
	good("Y-6 Y-20", "until when approvals are due, and how many changes may be open", "approvals: {due: 2d}\nlimits: {open: 20}\n",
		canonicalPolicy(`"permission"`, `"due":"172800s","permission"`, `"files":500`, `"files":500,"open":20`))
	good("Y-6 Y-20", "exceptions are reviewed", "exceptions: {review: 5d}\n", canonicalPolicy(`"gate":{}`, `"exceptions":{"review":"432000s"},"gate":{}`))
	good("Y-6 Y-20", "what a guard lets through", "gate: {allow_force: true, allow_delete: true, allow_tags: true}\n", canonicalPolicy(`"gate":{}`, `"gate":{"allow_delete":true,"allow_force":true,"allow_tags":true}`))
	good("Y-5 Y-20", "nothing that a guard lets through", "gate: {allow_force: false, allow_delete: false, allow_tags: false}\n", canonicalPolicy())
	good("Y-6 Y-20", "apply, gate and ledger", "apply: {to: pull_request, merge: auto, sign: KEY}\ngate: {bases: [main, release/1]}\nledger: {repository: acme/ledgers, tip: "+strings.Repeat("a", 40)+", since: 2026-01-05T12:00:00Z}\n",
		canonicalPolicy(`"apply":{}`, `"apply":{"merge":"auto","sign":"KEY","to":"pull_request"}`, `"gate":{}`, `"gate":{"bases":["main","release/1"]},"ledger":{"repository":"acme/ledgers","since":"2026-01-05T12:00:00Z","tip":"`+strings.Repeat("a", 40)+`"}`))
	good("Y-6 Y-20", "explained: decisions are put in order", "explained:\n  decisions: [local, signed]\n  merges: covered\n  empty: false\n  bots: [{keys: keys, paths: [go.mod], modes: true}]\n",
		canonicalPolicy(`"gate"`, `"explained":{"bots":[{"keys":"keys","modes":true,"paths":["go.mod"]}],"decisions":["signed","local"],"empty":false,"merges":"covered"},"gate"`))
	good("Y-20", "explained that says what holds anyway", "explained: {empty: true}\n", canonicalPolicy())
	good("Y-6 Y-20", "witnesses", "witnesses: {file: .github/witnesses, required: 2}\n", canonicalPolicy(`"version":1}`, `"version":1,"witnesses":{"file":".github/witnesses","required":2}}`))
	good("Y-20", "witnesses of which none is required", "witnesses: {file: w, required: 0}\n", canonicalPolicy(`"version":1}`, `"version":1,"witnesses":{"file":"w"}}`))
	good("Y-5", "spans in all units", "approvals: {max_age: 87600h}\n", canonicalPolicy(`"permission"`, `"max_age":"315360000s","permission"`))
	for _, c := range []struct{ requires, note, text string }{
		{"Y-1", "a tab", "version:\t1\n"}, {"Y-1", "a byte that is not UTF-8", "bots: [\"\xff\"]\n"}, {"Y-1 U-3", "a zero width space in a comment", "version: 1 # \u200b\n"}, {"Y-1 U-3", "a braille pattern without dots", "version: 1 # \u2800\n"}, {"Y-1 U-2", "a variation selector", "version: 1 # a\ufe0f\n"}, {"Y-1", "a byte order mark", "\ufeffversion: 1\n"},
		{"Y-1", "CR alone ends a line", "version: 1\rbots: [a]\n"}, {"Y-1", "a no-break space", "version:\u00a01\n"},
		{"Y-2", "nothing", ""}, {"Y-2", "a comment alone", "# nothing\n"}, {"Y-2", "a second document", "version: 1\n---\nversion: 1\n"}, {"Y-2", "an anchor", "bots: &b [a]\n"}, {"Y-2", "an alias", "bots: *b\n"}, {"Y-2", "a merge key", "approvals: {<<: {required: 1}}\n"},
		{"Y-2", "a tag", "version: !!int 1\n"}, {"Y-2", "a directive", "%YAML 1.2\n---\nversion: 1\n"}, {"Y-2", "a block scalar", "sandbox: |\n  read-only\n"}, {"Y-2", "a folded scalar", "sandbox: >\n  read-only\n"}, {"Y-2", "a scalar over two lines", "sandbox: read\n  only\n"},
		{"Y-2", "a quoted scalar over two lines", "sandbox: \"read-only\n  \"\n"}, {"Y-2", "a complex key", "? version\n: 1\n"}, {"Y-2", "a key twice", "version: 1\nversion: 1\n"}, {"Y-2", "a key twice, once in quotes", "version: 1\n\"version\": 1\n"}, {"Y-2", "nine flow brackets", "bots: " + strings.Repeat("[", 9) + strings.Repeat("]", 9) + "\n"},
		{"Y-2", "a line that is indented by 64 columns", "approvals:\n" + strings.Repeat(" ", 64) + "required: 1\n"}, {"Y-2", "a sequence at the top", "- version\n"}, {"Y-2", "a scalar at the top", "version\n"}, {"Y-2", "a mapping that is not closed", "{version: 1\n"},
		{"Y-3", "null", "approvals: null\n"}, {"Y-3", "a tilde", "approvals: ~\n"}, {"Y-3", "nothing where a value is", "approvals:\n"}, {"Y-3", "a float", "approvals: {required: 1.0}\n"}, {"Y-3", "True", "approvals: {same_head: True}\n"}, {"Y-3", "yes for true", "approvals: {same_head: yes}\n"}, {"Y-3", "a quoted true", "approvals: {same_head: \"true\"}\n"},
		{"Y-3", "a quoted number for a number", "approvals: {required: \"1\"}\n"}, {"Y-3", "hexadecimal", "approvals: {required: 0x1}\n"}, {"Y-3", "an underscore", "approvals: {required: 1_0}\n"}, {"Y-3", "a zero before", "approvals: {required: 01}\n"}, {"Y-3", "plus", "approvals: {required: +1}\n"}, {"Y-3", "octal", "approvals: {required: 0o1}\n"},
		{"Y-3", "an escape of what is hidden", "bots: [\"a\\u200b\"]\n"}, {"Y-3", "infinity", "approvals: {required: .inf}\n"},
		{"Y-4", "an unknown key", "versions: 1\n"}, {"Y-4", "a key in another case", "Version: 1\n"}, {"Y-4", "an unknown key of approvals", "approvals: {requires: 1}\n"}, {"Y-4", "a list where a mapping is", "approvals: []\n"}, {"Y-4", "a mapping where a list is", "bots: {a: b}\n"}, {"Y-4", "a text where a list is", "bots: a\n"}, {"Y-4", "an empty key", "\"\": 1\n"},
		{"Y-5", "an account that begins with @", "bots: [\"@ada\"]\n"}, {"Y-5", "an account with a space", "bots: [\"a b\"]\n"}, {"Y-5", "an account twice", "bots: [a, a]\n"}, {"Y-5", "an account that is zero", "bots: [0]\n"}, {"Y-5", "a negative account", "bots: [-1]\n"}, {"Y-5", "an account of 101 characters", "bots: [" + strings.Repeat("a", 101) + "]\n"},
		{"Y-5", "an empty account", "bots: [\"\"]\n"}, {"Y-5", "a team without an organisation", "protected: [{paths: [a], teams: [ops]}]\n"}, {"Y-5", "a file with a backslash", "approvals: {keys: 'a\\b'}\n"}, {"Y-5", "a file with two dots", "approvals: {keys: ../keys}\n"}, {"Y-5", "a file at the root", "approvals: {keys: /keys}\n"}, {"Y-5", "a file of dots", "approvals: {keys: a/.}\n"},
		{"Y-5", "a time span without a unit", "approvals: {max_age: 14}\n"}, {"Y-5", "a time span in months", "approvals: {max_age: 1y}\n"}, {"Y-5", "a time span of zero", "approvals: {max_age: 0s}\n"}, {"Y-5", "a time span with a zero before", "approvals: {max_age: 01d}\n"}, {"Y-5", "a time span in two units", "approvals: {max_age: 1d12h}\n"},
		{"Y-6", "version 0", "version: 0\n"}, {"Y-6", "version 2", "version: 2\n"}, {"Y-6", "nobody required", "approvals: {required: 0}\n"}, {"Y-6", "a hundred and one required", "approvals: {required: 101}\n"}, {"Y-6", "an unknown permission", "approvals: {permission: owner}\n"}, {"Y-6", "a span that is too long", "approvals: {max_age: 87601h}\n"},
		{"Y-6", "a drift that says nothing", "approvals: {drift: {}}\n"}, {"Y-6", "a drift of more than 100,000", "approvals: {drift: {commits: 100001}}\n"}, {"Y-6", "a drift with another word", "approvals: {drift: {same_directory: deny}}\n"}, {"Y-6", "signed with another word", "approvals: {signed: always}\n"}, {"Y-6", "a rule without paths", "protected: [{required: 1}]\n"}, {"Y-6", "a rule with paths and advice", "protected: [{paths: [a], advice: {tool: a, level: note}}]\n"}, {"Y-6", "advice without a level", "protected: [{advice: {tool: a}}]\n"}, {"Y-6", "advice without a tool", "protected: [{advice: {level: note}}]\n"}, {"Y-6", "advice of an unknown level", "protected: [{advice: {tool: a, level: none}}]\n"}, {"Y-6", "advice of a tool with two spaces", "protected: [{advice: {tool: \"a  b\", level: note}}]\n"},
		{"Y-6", "a rule with no paths", "protected: [{paths: []}]\n"}, {"Y-6", "a rule with no users", "protected: [{paths: [a], users: []}]\n"}, {"Y-6", "a rule that asks for off", "protected: [{paths: [a], signed: \"off\"}]\n"}, {"Y-6 Y-30", "a rule with a bad glob", "protected: [{paths: [\"!a\"]}]\n"}, {"Y-6", "an unknown sandbox", "sandbox: none\n"}, {"Y-6", "an unknown mode of secrets", "secrets: allow\n"},
		{"Y-6", "a recipient that is none", "secrets: {seal_to: [age1x]}\n"}, {"Y-6", "no files", "limits: {files: 0}\n"}, {"Y-6", "too many bytes", "limits: {bytes: 2 GiB}\n"}, {"Y-6", "bytes in another unit", "limits: {bytes: 5 MB}\n"}, {"Y-6", "an unknown target", "apply: {to: main}\n"}, {"Y-6", "an unknown merge", "apply: {merge: true}\n"}, {"Y-6", "a key with a dollar", "apply: {sign: $KEY}\n"},
		{"Y-6", "a base with a space", "gate: {bases: [\"a b\"]}\n"}, {"Y-6", "no decisions", "explained: {decisions: []}\n"}, {"Y-6", "unknown decisions", "explained: {decisions: [all]}\n"}, {"Y-6", "a bot without keys", "explained: {bots: [{paths: [a]}]}\n"}, {"Y-6", "a repository that ends in .git", "ledger: {repository: acme/x.GIT}\n"}, {"Y-6", "a repository of three parts", "ledger: {repository: a/b/c}\n"},
		{"Y-6", "a tip that is short", "ledger: {tip: \"" + strings.Repeat("a", 39) + "\"}\n"}, {"Y-6", "a time with an offset", "ledger: {since: 2026-01-05T12:00:00+00:00}\n"}, {"Y-6", "witnesses without a file", "witnesses: {required: 1}\n"}, {"Y-6", "a hundred and one witnesses", "witnesses: {file: w, required: 101}\n"},
		{"Y-7", "a command with a shell's sign", "commands: {run: [\"a | b\"]}\n"}, {"Y-7", "a command that sets a variable", "commands: {run: [\"A=b c\"]}\n"}, {"Y-7", "a command without argv", "commands: {run: [{timeout: 1m}]}\n"}, {"Y-7", "an empty program", "commands: {run: [{argv: [\"\"]}]}\n"}, {"Y-7", "a timeout of more than a day", "commands: {run: [{argv: [a], timeout: 25h}]}\n"},
		{"Y-7", "a shell with two words", "commands: {run: [{argv: [a, b], shell: true}]}\n"}, {"Y-7", "required of what is allowed", "commands: {allow: [{argv: [a], required: true}]}\n"}, {"Y-7", "two commands with the same argv", "commands: {run: [\"a b\", {argv: [a, b], network: true}]}\n"}, {"Y-7", "a name with a minus", "commands: {run: [{argv: [a], env: [A-B]}]}\n"},
	} {
		bad(c.requires, c.note, c.text)
	}
	g.good("file", "Y-1", "65,536 bytes", m{"file": m{"join": []any{"version: 1 # ", m{"repeat": "x", "times": 65523}}}}, nil)
	g.bad("file", "Y-1", "65,537 bytes", "65,536 bytes", m{"file": m{"join": []any{"version: 1 # ", m{"repeat": "x", "times": 65524}}}})
	g.in("document")
}

func policyDocuments(g *generator) {
	doc := func(text string) m { return m{"document": Bytes(text)} }
	g.good("document", "Y-20 Y-21", "the canonical form of the defaults", doc(canonicalPolicy()), m{"sha256": sumOf(canonicalPolicy())})
	g.good("document", "Y-21", "explained.decisions that is empty", doc(canonicalPolicy(`"gate"`, `"explained":{"decisions":[]},"gate"`)), nil)
	for _, c := range [][2]string{
		{"without its LF", strings.TrimSuffix(canonicalPolicy(), "\n")}, {"with a space", canonicalPolicy(`{"apply"`, `{ "apply"`)}, {"with a member in another order", canonicalPolicy(`{"apply":{},`, `{`, `"version":1}`, `"version":1,"apply":{}}`)},
		{"with an unknown member", canonicalPolicy(`"version":1`, `"version":1,"x":1`)}, {"without a member that is always there", canonicalPolicy(`,"required":1`, ``)}, {"with a member that is left out", canonicalPolicy(`"commands":{}`, `"commands":{"run":[]}`)},
		{"with a default that is left out", canonicalPolicy(`"permission"`, `"pin":false,"permission"`)}, {"of version 2", canonicalPolicy(`"version":1`, `"version":2`)}, {"of nobody required", canonicalPolicy(`"required":1`, `"required":0`)}, {"with a time span in days", canonicalPolicy(`"permission"`, `"max_age":"14d","permission"`)},
		{"with decisions out of order", canonicalPolicy(`"gate"`, `"explained":{"decisions":["forge","signed"]},"gate"`)}, {"with parts out of order", canonicalPolicy(`"permission"`, `"independent":["requester","proposer"],"permission"`)}, {"as YAML", "version: 1\n"}, {"with limits as text", canonicalPolicy(`5242880`, `"5 MiB"`)},
	} {
		g.bad("document", "Y-21", "a recorded form "+c[0], "the canonical form of the defaults", doc(c[1]))
	}
}

func policyTightened(g *generator) {
	g.in("tighten")
	tighten := func(note, p, b string, replace ...string) {
		g.t.Helper()
		want := canonicalPolicy(replace...)
		g.good("tighten", "Y-25", "tightened: "+note, m{"default": p, "base": b}, m{"policy": want, "sha256": sumOf(want)})
	}
	tighten("nothing", "{}", "{}")
	tighten("not what tickets are", "tickets: [A]", "tickets: [B]", `"version":1`, `"tickets":["A"],"version":1`)
	tighten("the smaller number of open changes", "limits: {open: 9}", "limits: {open: 7}", `"files":500`, `"files":500,"open":7`)
	tighten("the number of open changes of the one that has one", "{}", "limits: {open: 7}", `"files":500`, `"files":500,"open":7`)
	tighten("not until when approvals are due", "approvals: {due: 2d}", "approvals: {due: 1d}", `"permission"`, `"due":"172800s","permission"`)
	tighten("not how long exceptions may wait", "exceptions: {review: 5d}", "exceptions: {review: 5m}", `"gate":{}`, `"exceptions":{"review":"432000s"},"gate":{}`)
	tighten("the greater number and permission", "approvals: {required: 2, permission: write}", "approvals: {required: 1, permission: admin}", `"permission":"write","required":1`, `"permission":"admin","required":2`)
	tighten("allow_author needs both", "approvals: {allow_author: true}", "{}")
	tighten("allow_author that both have", "approvals: {allow_author: true}", "approvals: {allow_author: true}", `"allow_author":false`, `"allow_author":true`)
	tighten("same_head, hardware and pin need one", "approvals: {same_head: true}", "approvals: {hardware: true, pin: true}", `"permission":"write","required":1,"same_head":false`, `"hardware":true,"permission":"write","pin":true,"required":1,"same_head":true`)
	tighten("independent of both", "approvals: {independent: [requester]}", "approvals: {independent: [proposer]}", `"permission"`, `"independent":["proposer","requester"],"permission"`)
	tighten("independent of the branch alone", "{}", "approvals: {independent: [proposer]}", `"permission"`, `"independent":["proposer"],"permission"`)
	tighten("independent of the first alone", "approvals: {independent: [requester]}", "{}", `"permission"`, `"independent":["requester"],"permission"`)
	tighten("the smaller max_age", "approvals: {max_age: 2d}", "approvals: {max_age: 1d}", `"permission"`, `"max_age":"86400s","permission"`)
	tighten("the max_age of the one that has one", "{}", "approvals: {max_age: 1d}", `"permission"`, `"max_age":"86400s","permission"`)
	tighten("drift of both", "approvals: {drift: {commits: 5}}", "approvals: {drift: {commits: 9, same_directory: ask}}", `"permission"`, `"drift":{"commits":5,"same_directory":"ask"},"permission"`)
	tighten("drift of one", "{}", "approvals: {drift: {commits: 9}}", `"permission"`, `"drift":{"commits":9},"permission"`)
	tighten("local: alone is stricter than true", "approvals: {local: true}", "{}")
	tighten("local: false is stricter than alone", "{}", "approvals: {local: false}", `"permission"`, `"local":false,"permission"`)
	tighten("signed of the branch, where it is stricter", "{}", "approvals: {signed: require}", `"same_head":false`, `"same_head":false,"signed":"require"`)
	tighten("signed of the branch, where it is not", "approvals: {keys: k, signed: require}", "approvals: {signed: \"off\"}", `"permission":"write","required":1,"same_head":false`, `"keys":"k","permission":"write","required":1,"same_head":false,"signed":"require"`)
	tighten("keys of the branch do not matter", "{}", "approvals: {keys: k}")
	tighten("the stricter sandbox and secrets", "sandbox: danger-full-access\nsecrets: refuse", "sandbox: read-only", `workspace-write`, `read-only`, `require-approval`, `refuse`)
	tighten("the smaller limits", "limits: {files: 5}", "limits: {files: 9, bytes: 1 KiB}", `{"bytes":5242880,"files":500}`, `{"bytes":1024,"files":5}`)
	tighten("break_glass that both have, in the first's order", "approvals: {break_glass: [c, b, a]}", "approvals: {break_glass: [a, c, d]}", `"permission"`, `"break_glass":["c","a"],"permission"`)
	tighten("break_glass of nobody", "approvals: {break_glass: [a]}", "{}")
	tighten("rules for what tools say are added", "protected: [{advice: {tool: a, level: note}}]", "protected: [{advice: {tool: a, level: error}}, {advice: {tool: a, level: note}}]",
		`"sandbox"`, `"protected":[{"advice":{"level":"note","tool":"a"},"required":1},{"advice":{"level":"error","tool":"a"},"required":1}],"sandbox"`)
	tighten("bots and rules are added", "bots: [a]\nprotected: [{paths: [x]}]", "bots: [b, a]\nprotected: [{paths: [x]}, {paths: [y]}]", `"commands"`, `"bots":["a","b"],"commands"`, `"sandbox"`, `"protected":[{"paths":["x"],"required":1},{"paths":["y"],"required":1}],"sandbox"`)
	tighten("commands", "commands: {run: [{argv: [a], network: true, timeout: 5m, required: false}], allow: [{argv: [b]}, {argv: [c]}]}", "commands: {run: [{argv: [d], network: true, env: [X]}, {argv: [a], timeout: 9m}], allow: [{argv: [c], timeout: 1m}, {argv: [e]}]}",
		`"commands":{}`, `"commands":{"allow":[{"argv":["c"],"network":false,"timeout":"60s"}],"run":[{"argv":["a"],"network":false,"required":true,"timeout":"300s"},{"argv":["d"],"network":false,"required":true,"timeout":"600s"}]}`)
	tighten("a merge that is automatic in the first alone", "apply: {merge: auto, to: branch}", "{}", `"apply":{}`, `"apply":{"merge":"human","to":"branch"}`)
	tighten("apply of the branch does not matter", "{}", "apply: {to: ref, merge: auto}")
	tighten("bases are added", "gate: {bases: [main]}", "gate: {bases: [dev, main]}", `"gate":{}`, `"gate":{"bases":["main","dev"]}`)
	tighten("what a guard lets through needs both", "gate: {allow_force: true, allow_delete: true}", "gate: {allow_force: true, allow_tags: true}", `"gate":{}`, `"gate":{"allow_force":true}`)
	tighten("what a guard lets through is not the branch's alone", "{}", "gate: {allow_force: true, allow_delete: true, allow_tags: true}")
	tighten("no bases are all bases", "{}", "gate: {bases: [dev]}")
	tighten("decisions of both", "explained: {decisions: [signed, local]}", "explained: {decisions: [signed, forge]}", `"gate"`, `"explained":{"decisions":["signed"]},"gate"`)
	tighten("decisions of the branch alone", "{}", "explained: {decisions: [signed, local]}", `"gate"`, `"explained":{"decisions":["signed"]},"gate"`)
	tighten("decisions of the branch that are all", "{}", "explained: {decisions: [signed, forge, local]}")
	tighten("empty that one refuses", "explained: {empty: true}", "explained: {empty: false}", `"gate"`, `"explained":{"empty":false},"gate"`)
	tighten("the ledger and witnesses are the first's", "witnesses: {file: w}", "ledger: {repository: a/b}\nwitnesses: {file: x, required: 2}", `"version":1}`, `"version":1,"witnesses":{"file":"w"}}`)
	tighten("secrets.signed and seal_to", "secrets: {seal_to: [age1"+strings.Repeat("q", 58)+"]}", "secrets: {signed: require}", `"mode":"require-approval"`, `"mode":"require-approval","signed":"require"`)
	g.bad("tighten", "Y-25 Y-4", "tightened: a branch's file that is wrong", "tightened: nothing", m{"default": "{}", "base": "x: 1\n"})
}

func policyGlobs(g *generator) {
	g.in("glob")
	for i, c := range []struct {
		requires, glob, path string
		matches              bool
	}{
		{"Y-31 Y-33", "a", "a", true}, {"Y-31", "a", "x/a", true}, {"Y-33", "a", "a/b", true}, {"Y-33", "a", "x/a/b/c", true}, {"Y-31", "a", "ab", false}, {"Y-31", "/a", "a", true}, {"Y-31", "/a", "x/a", false}, {"Y-31", "a/b", "a/b", true}, {"Y-31", "a/b", "x/a/b", false},
		{"Y-31 Y-33", "a/", "a", false}, {"Y-33", "a/", "a/b", true}, {"Y-33", "a/", "x/a/b", true}, {"Y-31 Y-33", "/a/", "a/b/c", true}, {"Y-31", "/a/", "x/a/b", false}, {"Y-32", "*.tf", "main.tf", true}, {"Y-32", "*.tf", "x/.tf", true}, {"Y-32", "*.tf", "main.tfx", false}, {"Y-32", "a*b", "a/b", false}, {"Y-32", "?", "é", true}, {"Y-32", "?", "ab", false}, {"Y-32", "?", "", false},
		{"Y-32", "[a-c]x", "bx", true}, {"Y-32", "[!a-c]x", "bx", false}, {"Y-32", "[^a-c]x", "dx", true}, {"Y-32", "[]]", "]", true}, {"Y-32", "[!]]", "]", false}, {"Y-32", "[[:digit:]]", "7", true}, {"Y-32", "[[:digit:]]", "x", false}, {"Y-32 Y-34", "[[:lower:]]", "A", true}, {"Y-32 Y-34", "[[:upper:]]", "a", true}, {"Y-32", "[[:alpha:]]", "é", false}, {"Y-32", "[[:space:]]", "a", false},
		{"Y-32", "[a-]", "-", true}, {"Y-32", "[\\]]", "]", true}, {"Y-32", "\\*", "*", true}, {"Y-32", "\\*", "a", false}, {"Y-32", "**/a", "a", true}, {"Y-32", "**/a", "x/y/a", true}, {"Y-32", "a/**", "a/b", true}, {"Y-32 Y-33", "a/**", "a", false}, {"Y-32", "a/**/b", "a/b", true}, {"Y-32", "a/**/b", "a/x/y/b", true}, {"Y-32", "a/**/b", "ab", false}, {"Y-32", "a**b", "axxb", true}, {"Y-32", "a**b", "a/b", false}, {"Y-32", "**", "a", true},
		{"Y-34", "README", "readme", true}, {"Y-34 U-5", "straße", "STRASSE", true}, {"Y-34 U-5", "é", "e\u0301", true}, {"Y-34", "[a]", "A", true}, {"Y-34", "[k]", "\u212a", true}, {"Y-34", "*.TF", "x.tf", true}, {"Y-34 U-5", "ß", "ss", true}, {"Y-34", "?", "ß", false}, {"Y-31", "a/*", "a/b", true}, {"Y-33", "a/*", "a/b/c", true},
	} {
		g.good("glob", c.requires+" Y-30", fmt.Sprintf("glob %d: %s of %s", i+1, c.glob, c.path), m{"glob": c.glob, "path": c.path}, m{"matches": c.matches})
	}
	for _, c := range [][2]string{{"empty", ""}, {"that negates", "!a"}, {"that is a comment", "#a"}, {"that ends in a space", "a "}, {"with an empty component", "a//b"}, {"with a dot", "a/./b"}, {"with two dots", "../a"}, {"with a class that is not closed", "[a"}, {"with a class over a slash", "[a/b]"}, {"with an unknown class", "[[:word:]]"},
		{"with a range that goes down", "[z-a]"}, {"with a backslash at the end", "a\\"}, {"with a backslash before a slash", "a\\/b"}, {"of a slash", "/"}} {
		g.bad("glob", "Y-30", "a glob "+c[0], "glob 1: a of a", m{"glob": c[1], "path": "a"})
	}
	g.good("glob", "Y-30", "a glob of 256 characters", m{"glob": m{"repeat": "é", "times": 256}, "path": "a"}, m{"matches": false})
	g.bad("glob", "Y-30", "a glob of 257 characters", "a glob of 256 characters", m{"glob": m{"repeat": "é", "times": 257}, "path": "a"})
}

func policyOwnerCases(g *generator) {
	g.in("owners")
	for _, c := range []struct {
		requires, note, file, path string
		owners                     []string
	}{
		{"Y-50 Y-52", "the last line that matches", "* @a\n*.go @b @acme/c d@example.org\n", "x/y.go", []string{"@b", "@acme/c", "d@example.org"}},
		{"Y-52", "a last line that names nobody", "* @a\n/x\n", "x", []string{}}, {"Y-52", "no line matches", "/x @a\n", "y", []string{}}, {"Y-51", "a comment behind owners", "* @a # @b\n", "x", []string{"@a"}}, {"Y-51", "white space around a line", " \t* \t@a \r\n", "x", []string{"@a"}},
		{"Y-51", "an escaped space", "a\\ b @a\n", "a b", []string{"@a"}}, {"Y-51", "a line that negates", "* @a\n!x @b\n", "x", []string{"@a"}}, {"Y-51", "a line with an owner of another form", "* @a\nx @b ada\n", "x", []string{"@a"}}, {"Y-51", "a line with three stars", "* @a\n***x @b\n", "x", []string{"@a"}},
		{"Y-51", "a line with a bracket", "* @a\n[x] @b\n", "x", []string{"@a"}}, {"Y-51", "a comment", "* @a\n# x @b\n", "x", []string{"@a"}}, {"Y-51", "an escaped number sign", "* @a\n\\#x @b\n", "#x", []string{"@a"}}, {"Y-50", "a byte order mark", "\ufeff* @a\n", "x", []string{"@a"}}, {"Y-52", "case counts", "README @a\n", "readme", []string{}},
		{"Y-52", "one level of a directory", "docs/* @a\n", "docs/x", []string{"@a"}}, {"Y-52", "not what is deeper", "docs/* @a\n", "docs/x/y", []string{}}, {"Y-52", "a directory", "docs/ @a\n", "x/docs/y/z", []string{"@a"}}, {"Y-52", "a pattern with a number sign names nobody", "* @a\nx#y @b\n", "x", []string{}}, {"Y-52", "a pattern with a number sign stands for itself too", "* @a\nx#y @b\n", "x#y", []string{}}, {"Y-52", "an escaped bracket names nobody", "* @a\n\\[x\\] @b\n", "[x]", []string{}},
	} {
		g.good("owners", c.requires, "owners: "+c.note, m{"codeowners": c.file, "path": c.path}, m{"owners": c.owners})
	}
	g.good("owners", "Y-51", "owners: an empty file", m{"codeowners": "", "path": "x"}, m{"owners": []string{}})
}

func policyNeedCases(g *generator) {
	g.in("needs")
	need := func(requires, note, file string, paths []string, secrets bool, needs ...m) {
		g.t.Helper()
		g.good("needs", requires, "needs: "+note, m{"file": file, "paths": paths, "secrets": secrets}, m{"needs": needs})
	}
	change := func(required int) m { return m{"kind": "fileChange", "prefix": "", "required": required} }
	builtIn := func(paths ...string) m {
		return m{"kind": "protected_path", "prefix": "protected:", "required": 1, "paths": paths, "rules": []string{"built-in"}}
	}
	need("Y-45 Y-48", "the change alone", "{}", []string{"a"}, false, change(1))
	need("Y-45", "of no path", "{}", []string{}, false, change(1))
	need("Y-45 Y-48", "a secret", "approvals: {required: 2}", []string{"a"}, true, change(2), m{"kind": "secrets_override", "prefix": "secret:", "required": 1})
	need("Y-40", "the Policy itself", "{}", []string{"a", ".github/countersign.yml"}, false, change(1), builtIn(".github/countersign.yml"))
	need("Y-40 Y-8", "the Policy in another spelling", "{}", []string{".GitHub/Countersign.YAML"}, false, change(1), builtIn(".GitHub/Countersign.YAML"))
	for _, path := range []string{"CODEOWNERS", "docs/CODEOWNERS", ".github/workflows/x.yml", ".gitea/workflows/a/b", "x/.gitattributes", ".gitmodules", "a/.gitleaks.toml", "x/AGENTS.md", "x/y/CLAUDE.local.md", "skills/SKILL.md", ".github/prompts/x.md", "sub/.cursor/rules", ".clinerules-code/x", "a/.mcp.json", "opencode.json", "x/.vscode/tasks.json", ".claude", "gemini.MD", ".github/agents/a"} {
		need("Y-40", "protected everywhere: "+path, "{}", []string{path}, false, change(1), builtIn(path))
	}
	for _, path := range []string{"x/CODEOWNERS", "x/.github/workflows/y", ".vscode/launch.json", "AGENTS.mdx", "x/copilot-instructions.md", "claude", "countersign.yml"} {
		need("Y-40", "not protected: "+path, "{}", []string{path}, false, change(1))
	}
	rule := func(required int, paths []string, rules []string, more m) m {
		return merge(m{"kind": "protected_path", "prefix": "protected:", "required": required, "paths": anyOf(paths), "rules": anyOf(rules)}, more).(m)
	}
	need("Y-41 Y-46", "the files that the Policy names", "approvals: {keys: k, signed: accept}\nwitnesses: {file: w}\nexplained: {bots: [{keys: b, paths: [x]}]}", []string{"w", "k", "b", "x"}, false, change(1),
		rule(1, []string{"b", "k", "w"}, []string{"approvals.keys", "explained.bots[0].keys", "witnesses.file"}, m{}))
	need("Y-46", "rules of one set of people are one need", "protected:\n- {paths: [a], required: 2, users: [x, y]}\n- {paths: [b], users: [z]}\n- {paths: [c], required: 3, users: [y, x]}\n", []string{"c", "b", "a", "d"}, false, change(1),
		rule(3, []string{"a", "c"}, []string{"protected[0]", "protected[2]"}, m{"users": []any{"x", "y"}}), rule(1, []string{"b"}, []string{"protected[1]"}, m{"users": []any{"z"}}))
	need("Y-46", "a rule that names nobody joins what is built in", "protected: [{paths: [a], required: 2}]", []string{"a", "AGENTS.md"}, false, change(1), rule(2, []string{"AGENTS.md", "a"}, []string{"built-in", "protected[0]"}, m{}))
	need("Y-46 Y-48", "teams and owners", "protected: [{paths: [a], teams: [z/t, a/t], owners: true}]", []string{"a"}, false, change(1), rule(1, []string{"a"}, []string{"protected[0]"}, m{"teams": []any{"a/t", "z/t"}, "owners": true}))
	need("Y-46", "owners are another set of people", "protected: [{paths: [a]}, {paths: [a], owners: true}]", []string{"a"}, false, change(1), rule(1, []string{"a"}, []string{"protected[0]"}, m{}), rule(1, []string{"a"}, []string{"protected[1]"}, m{"owners": true}))
	need("Y-49", "nothing is asked for what nobody said", "protected: [{advice: {tool: a, level: note}, required: 3}]", []string{"a"}, false, change(1))
	need("Y-46", "a path is named once", "protected: [{paths: [a, \"*\"]}, {paths: [/a]}]", []string{"a"}, false, change(1), rule(1, []string{"a"}, []string{"protected[0]", "protected[1]"}, m{}))
	need("Y-47", "signatures for all", "approvals: {keys: k, signed: require}\nprotected: [{paths: [a]}]", []string{"a"}, true, merge(change(1), m{"signed": true}).(m), m{"kind": "secrets_override", "prefix": "secret:", "required": 1, "signed": true}, rule(1, []string{"a"}, []string{"protected[0]"}, m{"signed": true}))
	need("Y-47", "a signature for the secret", "secrets: {signed: require}", []string{"a"}, true, change(1), m{"kind": "secrets_override", "prefix": "secret:", "required": 1, "signed": true})
	need("Y-47", "a signature for one rule", "protected: [{paths: [a], signed: require}, {paths: [b], users: [x]}]", []string{"a", "b"}, false, change(1), rule(1, []string{"a"}, []string{"protected[0]"}, m{"signed": true}), rule(1, []string{"b"}, []string{"protected[1]"}, m{"users": []any{"x"}}))
	g.bad("needs", "Y-4", "needs: of a file that is wrong", "needs: the change alone", m{"file": "x: 1\n", "paths": []string{"a"}, "secrets": false})
}

func anyOf(texts []string) []any {
	var out []any
	for _, t := range texts {
		out = append(out, t)
	}
	return out
}
