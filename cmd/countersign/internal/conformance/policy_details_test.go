package conformance

import (
	"fmt"
	"strings"
)

// policyDetails are cases of which each breaks one clause alone, or is just within it.
func policyDetails(g *generator) {
	yamlDetails(g)
	valueDetails(g)
	documentDetails(g)
	tightenedDetails(g)
	globDetails(g)
}

// fileCases enters files: those that are good with what differs in their canonical form, and bad ones.
func (g *generator) fileCases(cases []fileCase) {
	g.t.Helper()
	for _, c := range cases {
		in := m{"file": Bytes(c.text)}
		if c.canonical == nil {
			g.bad("file", c.requires, "file: "+c.note, plainPolicy, in)
			continue
		}
		want := canonicalPolicy(c.canonical...)
		g.good("file", c.requires, "file: "+c.note, in, m{"policy": want, "sha256": sumOf(want)})
	}
}

// A fileCase is bad without a canonical form: what replaces what in that of the defaults.
type fileCase struct {
	requires, note, text string
	canonical            []string
}

var (
	plain1     = []string{}
	botsAB     = []string{`"commands"`, `"bots":["a","b"],"commands"`}
	twoAreDue  = []string{`"required":1`, `"required":2`}
	oneProtect = []string{`"sandbox"`, `"protected":[{"paths":["a"],"required":2}],"sandbox"`}
)

// bots is the canonical form with bots, as JSON.
func bots(list string) []string { return []string{`"commands"`, `"bots":[` + list + `],"commands"`} }

func yamlDetails(g *generator) {
	g.in("file")
	g.fileCases([]fileCase{
		{"Y-2", "markers before and after", "---\nversion: 1\n...\n", plain1},
		{"Y-2", "comments around a marker", "# a\n--- # b\nversion: 1\n... # c\n# d\n", plain1},
		{"Y-2", "a marker alone", "---\n", nil},
		{"Y-2", "a second marker", "version: 1\n---\n", nil},
		{"Y-2", "a marker of the end before", "...\nversion: 1\n", nil},
		{"Y-2", "something behind the end", "version: 1\n...\nbots: [a]\n", nil},
		{"Y-2", "two documents", "---\nversion: 1\n---\nversion: 1\n", nil},
		{"Y-1 Y-2", "without its last LF", "version: 1", plain1},
		{"Y-1", "both line ends", "version: 1\r\nbots:\n- a\r\n- b\n", botsAB},
		{"Y-1", "a CR at the end of the file", "version: 1\r", nil},
		{"Y-1", "a next line character", "version: 1 # \u0085\n", nil},
		{"Y-1", "a line separator", "version: 1 # \u2028\n", nil},
		{"Y-2", "a sequence as far in as its key", "bots:\n- a\n- b\nversion: 1\n", botsAB},
		{"Y-2", "a sequence farther in than its key", "bots:\n  - a\n  - b\n", botsAB},
		{"Y-2", "elements that are not below each other", "bots:\n- a\n - b\n", nil},
		{"Y-2", "an element that is less far in", "bots:\n  - a\n - b\n", nil},
		{"Y-2", "a key that is less far in", "approvals:\n    required: 2\n  same_head: true\n", nil},
		{"Y-2", "a key that is farther in", "approvals:\n  required: 2\n    same_head: true\n", nil},
		{"Y-2", "a key beside the mapping that it is in", "approvals:\nrequired: 2\n", nil},
		{"Y-2", "a sequence behind its key", "bots: - a\n", nil},
		{"Y-2", "a mapping behind its key", "approvals: required: 2\n", nil},
		{"Y-2", "an element on the next line", "protected:\n-\n  paths: [a]\n  required: 2\n", oneProtect},
		{"Y-2", "a mapping in an element", "protected:\n- paths: [a]\n  required: 2\n", oneProtect},
		{"Y-2", "a key left of its element's first", "protected:\n- paths: [a]\n required: 2\n", nil},
		{"Y-3", "an element that is nothing", "bots:\n- a\n-\n", nil},
		{"Y-2", "a line that is indented by 63 columns", "approvals:\n" + strings.Repeat(" ", 63) + "required: 2\n", twoAreDue},
		{"Y-2", "a comment that is indented by 64 columns", "version: 1\n" + strings.Repeat(" ", 64) + "# a\n", plain1},
		{"Y-2", "a blank line of 70 columns", "version: 1\n" + strings.Repeat(" ", 70) + "\nbots: [a, b]\n", botsAB},
		{"Y-2", "flow style, 64 columns in", "bots: [a,\n" + strings.Repeat(" ", 64) + "b]\n", nil},
		{"Y-2", "flow style over lines", "bots: [ # all\n  a\n  , b\n  ]\n", botsAB},
		{"Y-2", "flow style that ends as far in as its key", "bots: [a,\n  b\n]\n", botsAB},
		{"Y-2", "flow style that goes on as far in as its key", "bots: [a,\nb]\n", botsAB},
		{"Y-2", "a comma before the end", "{bots: [a, b,],}\n", botsAB},
		{"Y-2", "a comma too many", "bots: [a,,b]\n", nil},
		{"Y-2", "a comma at the beginning", "bots: [,a]\n", nil},
		{"Y-2", "no comma in a sequence", "bots: [\"a\" \"b\"]\n", nil},
		{"Y-2", "no comma in a mapping", "{\"version\": 1 \"bots\": [a]}\n", nil},
		{"Y-2", "a sequence that ends as a mapping", "bots: [a}\n", nil},
		{"Y-2", "something behind flow style", "bots: [a] b\n", nil},
		{"Y-2", "a comment that touches flow style", "bots: [a, b]# c\n", nil},
		{"Y-3", "a key without a value, in flow style", "{version}\n", nil},
		{"Y-3", "a key with nothing, in flow style", "{version: }\n", nil},
		{"Y-2", "no space behind the colon, in flow style", "{version:1}\n", nil},
		{"Y-2", "no space behind the colon of a quoted key", "{\"version\":1}\n", plain1},
		{"Y-2", "no space behind the colon of a quoted key, in a block", "\"version\":1\n", nil},
		{"Y-2", "a space before the colon", "version : 1\n", plain1},
		{"Y-2", "quoted keys", "\"version\": 1\n'bots': [a, b]\n", botsAB},
		{"Y-2", "a key twice in flow style", "{version: 1, version: 1}\n", nil},
		{"Y-2", "a colon in a word", "bots: [a:b, 'c:d']\n", bots(`"a:b","c:d"`)},
		{"Y-2", "a number sign in a word", "bots: [a#b]\n", bots(`"a#b"`)},
		{"Y-2", "a mapping in a sequence of texts", "bots: [a: b]\n", nil},
		{"Y-2", "a quote twice in single quotes", "bots: ['it''s']\n", bots(`"it's"`)},
		{"Y-2", "an escape in single quotes", `bots: ['a\x41']` + "\n", bots(`"a\\x41"`)},
		{"Y-2", "an unknown escape", `bots: ["a\qb"]` + "\n", nil},
		{"Y-2", "an escape that is short", `bots: ["\x4"]` + "\n", nil},
		{"Y-2", "escapes of a slash, a quote and eight digits", `bots: ["\/\"\\\U0001F600"]` + "\n", bots(`"/\"\\😀"`)},
		{"Y-3", "two escapes of surrogates", `bots: ["\ud83d\ude00"]` + "\n", bots(`"😀"`)},
		{"Y-3", "an escape of one surrogate", `bots: ["\ud83d"]` + "\n", nil},
		{"Y-3", "an escape of one low surrogate", `bots: ["\ude00"]` + "\n", nil},
		{"Y-2", "an element that is as far in as its dash", "bots:\n-\na\n", nil},
		{"Y-3", "escapes of surrogates, the low one first", `bots: ["\ude00\ud83d"]` + "\n", nil},
		{"Y-2", "flow style that begins as far in as its key", "bots:\n[a, b]\n", nil},
		{"Y-2", "a value that is as far in as its key", "approvals:\n  required:\n  2\n", nil},
		{"Y-2", "a value that is farther in than its key", "approvals:\n  required:\n    2\n", twoAreDue},
		{"Y-2", "a colon in a word, in braces", "{bots: [a:b]}\n", nil},
		{"Y-2", "a colon in a quoted word, in braces", "{bots: ['it''s:b', \"\\u00e9\"], version: 1} # a\n", bots(`"it's:b","é"`)},
		{"Y-2", "a word that ends in a colon", "bots: [a:]\n", nil},
		{"Y-2", "a word with a brace, in brackets", "bots: [a}]\n", nil},
		{"Y-2", "a brace for a word", "bots: [}]\n", nil},
		{"Y-2", "a question mark for a word", "bots: [?]\n", nil},
		{"Y-2", "a colon for a word", "bots: [:]\n", nil},
		{"Y-3", "an escape of a control character", `bots: ["a\tb"]` + "\n", nil},
		{"Y-2", "something behind a quoted text", "bots: [\"a\"b]\n", nil},
		{"Y-2", "a quote that is not closed", "bots: [\"a]\n", nil},
		{"Y-2", "a reserved sign", "bots: [`a]\n", nil},
		{"Y-2", "an at sign", "bots: [@a]\n", nil},
		{"Y-2", "a per cent sign", "bots: [%a]\n", nil},
		{"Y-2", "a comment that touches a value", "version: 1# a\n", nil},
		{"Y-2", "a line that goes on", "bots: [a\n  b]\n", nil},
		{"Y-2", "an alias in a sequence", "bots: [*a]\n", nil},
		{"Y-2", "an anchor in a sequence", "bots: [&a b]\n", nil},
		{"Y-2", "a tag in a sequence", "bots: [!a b]\n", nil},
	})
	for _, word := range strings.Fields("~ null Null NULL True TRUE False FALSE true false .inf -.inf +.INF .Inf .nan .NaN .NAN 1.0 1. .5 -1.5 1.0e3 +7 0x10 0X10 0xfF 0o7 0b1 1_000 007 01 -0 +0") {
		if word == "0X10" { // no number of the core schema
			continue
		}
		g.fileCases([]fileCase{{"Y-3", "an account that is " + word, "bots: [" + word + "]\n", nil}})
	}
	var words, list []string
	for _, word := range strings.Fields("08 1e3 1E3 1.2.3 1:30 0x 0o 0xg 12a nullx trueish yes No on Off y n Yes none NaN inf Inf .x -a -.x 2026-01-05 1-2 tRUE nULL") {
		words, list = append(words, word), append(list, `"`+word+`"`)
	}
	g.fileCases([]fileCase{{"Y-3", "words that are text", "bots: [" + strings.Join(words, ", ") + "]\n", bots(strings.Join(list, ","))}})
	var quoted []string
	for _, word := range strings.Fields("~ null True 1.0 0x10 +7 007") {
		quoted = append(quoted, `"`+word+`"`)
	}
	text := strings.Join(quoted, ",")
	g.fileCases([]fileCase{{"Y-3", "quoted words are text", "bots: [" + text + "]\n", bots(text)}})
}

func valueDetails(g *generator) {
	long := func(n int) string { return strings.Repeat("a", n) }
	hex := func(n int) string { return strings.Repeat("ab", 40)[:n] }
	keys := func(file string) []string { return []string{`"permission"`, `"keys":"` + file + `","permission"`} }
	tip := func(hex string) []string { return []string{`"limits"`, `"ledger":{"tip":"` + hex + `"},"limits"`} }
	repository := func(name string) []string {
		return []string{`"limits"`, `"ledger":{"repository":"` + name + `"},"limits"`}
	}
	bytes := func(n string) []string { return []string{`5242880`, n} }
	age := func(seconds string) []string {
		return []string{`"permission"`, `"max_age":"` + seconds + `s","permission"`}
	}
	run := func(argv, more string) []string {
		return []string{`"commands":{}`, `"commands":{"run":[{"argv":[` + argv + `],"network":false,"required":true,` + more + `}]}`}
	}
	const minutes = `"timeout":"600s"`
	cases := []fileCase{
		{"Y-3 Y-6", "true for a number", "version: true\n", nil},
		{"Y-3 Y-6", "true for how many", "approvals: {required: true}\n", nil},
		{"Y-3 Y-6", "true for bytes", "limits: {bytes: true}\n", nil},
		{"Y-5", "an account of 100 characters", "bots: [" + long(100) + "]\n", bots(`"` + long(100) + `"`)},
		{"Y-5", "an account that is a large number", "bots: [12345678901234567890123]\n", bots(`"12345678901234567890123"`)},
		{"Y-5", "an account twice, as a number and as text", "bots: [7, \"7\"]\n", nil},
		{"Y-5", "an account with an at sign inside", "bots: [a@b]\n", bots(`"a@b"`)},
		{"Y-5", "a team of two slashes", "protected: [{paths: [a], teams: [a/b/c]}]\n", nil},
		{"Y-5", "a team with an at sign", "protected: [{paths: [a], teams: [\"@a/b\"]}]\n", nil},
		{"Y-5", "a team of 101 characters", "protected: [{paths: [a], teams: [a/" + long(99) + "]}]\n", nil},
		{"Y-5", "a file with dots inside", "approvals: {keys: .a/b..c/d.e}\n", keys(".a/b..c/d.e")},
		{"Y-5", "a file of 200 characters", "approvals: {keys: " + long(200) + "}\n", keys(long(200))},
		{"Y-5", "a file of 201 characters", "approvals: {keys: " + long(201) + "}\n", nil},
		{"Y-5", "a file that begins with two dots", "approvals: {keys: ..a}\n", nil},
		{"Y-5", "a file below a directory that begins with two dots", "approvals: {keys: a/..b/c}\n", nil},
		{"Y-5", "a file of three dots", "approvals: {keys: a/...}\n", nil},
		{"Y-5", "a file with an empty component", "approvals: {keys: a//b}\n", nil},
		{"Y-5", "a file that ends in a slash", "approvals: {keys: a/}\n", nil},
		{"Y-5", "a file with a space", "approvals: {keys: a b}\n", nil},
		{"Y-5", "an empty file", "approvals: {keys: \"\"}\n", nil},
		{"Y-5", "a name that begins with a digit", "apply: {sign: 1A}\n", nil},
		{"Y-5", "a name of 101 characters", "apply: {sign: " + long(101) + "}\n", nil},
		{"Y-5 Y-6", "the longest time span, in seconds", "approvals: {max_age: 315360000s}\n", age("315360000")},
		{"Y-5 Y-6", "a second more than the longest time span", "approvals: {max_age: 315360001s}\n", nil},
		{"Y-5", "a time span of ten digits", "approvals: {max_age: 1000000000s}\n", nil},
		{"Y-5", "a time span in an upper case unit", "approvals: {max_age: 1D}\n", nil},
		{"Y-5", "a time span in minutes", "approvals: {max_age: 90m}\n", age("5400")},
		{"Y-6", "a file, the largest number of bytes in B", "limits: {bytes: 1073741824 B}\n", bytes("1073741824")},
		{"Y-6", "bytes in a unit without a space", "limits: {bytes: 1024MiB}\n", bytes("1073741824")},
		{"Y-6", "a byte too many", "limits: {bytes: 1073741825}\n", nil},
		{"Y-6", "a MiB too many", "limits: {bytes: 1025 MiB}\n", nil},
		{"Y-6", "no bytes", "limits: {bytes: 0}\n", nil},
		{"Y-6", "bytes with a zero before", "limits: {bytes: 01 MiB}\n", nil},
		{"Y-6", "bytes with two spaces", "limits: {bytes: 1  MiB}\n", nil},
		{"Y-6", "bytes without a unit, as text", "limits: {bytes: \"1024\"}\n", nil},
		{"Y-6", "bytes with a fraction", "limits: {bytes: 1.5 MiB}\n", nil},
		{"Y-6", "bytes of eleven digits", "limits: {bytes: 10000000000 B}\n", nil},
		{"Y-6", "100,001 files", "limits: {files: 100001}\n", nil},
		{"Y-6", "a negative number", "witnesses: {file: w, required: -1}\n", nil},
		{"Y-6", "independent of nobody", "approvals: {independent: []}\n", nil},
		{"Y-6", "independent of one twice", "approvals: {independent: [proposer, proposer]}\n", nil},
		{"Y-6", "independent of another", "approvals: {independent: [author]}\n", nil},
		{"Y-6", "a rule for no teams", "protected: [{paths: [a], teams: []}]\n", nil},
		{"Y-6", "a rule with a path twice", "protected: [{paths: [a, a]}]\n", nil},
		{"Y-6", "a rule twice", "protected: [{paths: [a], required: 2}, {paths: [a], required: 2}]\n", []string{`"sandbox"`, `"protected":[{"paths":["a"],"required":2},{"paths":["a"],"required":2}],"sandbox"`}},
		{"Y-6", "a bot without paths", "explained: {bots: [{keys: k}]}\n", nil},
		{"Y-6", "a bot with no paths", "explained: {bots: [{keys: k, paths: []}]}\n", nil},
		{"Y-6", "merges with another word", "explained: {merges: all}\n", nil},
		{"Y-6", "a tip of 64 digits", "ledger: {tip: " + hex(64) + "}\n", tip(hex(64))},
		{"Y-6", "a tip of 41 digits", "ledger: {tip: " + hex(41) + "}\n", nil},
		{"Y-6", "a tip of 63 digits", "ledger: {tip: " + hex(63) + "}\n", nil},
		{"Y-6", "a tip of 65 digits", "ledger: {tip: " + hex(65) + "}\n", nil},
		{"Y-6", "a tip in upper case", "ledger: {tip: " + strings.ToUpper(hex(40)) + "}\n", nil},
		{"Y-6 Y-3", "a tip that is a number", "ledger: {tip: " + strings.Repeat("1", 40) + "}\n", nil},
		{"Y-6", "a time in another century", "ledger: {since: 1999-01-05T12:00:00Z}\n", nil},
		{"Y-6", "a time with fractions", "ledger: {since: 2026-01-05T12:00:00.0Z}\n", nil},
		{"Y-6", "a base that begins with a minus", "gate: {bases: [-a]}\n", nil},
		{"Y-6", "a base that begins with a slash", "gate: {bases: [/a]}\n", nil},
		{"Y-3", "allow_force as a word", "gate: {allow_force: yes}\n", nil},
		{"Y-6", "allow_tags as a number", "gate: {allow_tags: 1}\n", nil},
		{"Y-6", "a ticket with a group", "tickets: [\"(a+)+\"]\n", nil}, {"Y-6", "a ticket of a range that goes down", "tickets: [\"[z-a]\"]\n", nil},
		{"Y-6", "a ticket that is repeated twice", "tickets: [a**]\n", nil}, {"Y-6", "a ticket that is repeated 100 times", "tickets: [\"a{100}\"]\n", nil},
		{"Y-6", "a ticket of any character", "tickets: [.]\n", nil}, {"Y-5", "a ticket twice", "tickets: [a, a]\n", nil},
		{"Y-6", "a ticket of 101 characters", "tickets: [" + long(101) + "]\n", nil},
		{"Y-6", "21 tickets", "tickets: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u]\n", nil},
		{"Y-6", "no change that may be open", "limits: {open: 0}\n", nil}, {"Y-6", "more changes than may ever be open", "limits: {open: 100001}\n", nil}, {"Y-6", "due within no time span", "approvals: {due: 2}\n", nil},
		{"Y-6", "a review of no time span", "exceptions: {review: 5}\n", nil}, {"Y-6", "exceptions with an unknown key", "exceptions: {until: 5d}\n", nil},
		{"Y-6", "a base twice", "gate: {bases: [a, a]}\n", nil},
		{"Y-6", "a base of 201 characters", "gate: {bases: [" + long(201) + "]}\n", nil},
		{"Y-7", "a command with two spaces", "commands: {run: [go  vet]}\n", run(`"go","vet"`, minutes)},
		{"Y-7", "an argument that sets a variable", "commands: {run: [a b=c]}\n", run(`"a","b=c"`, minutes)},
		{"Y-7", "an argument that is empty", "commands: {run: [{argv: [a, \"\"]}]}\n", run(`"a",""`, minutes)},
		{"Y-7", "an argument twice", "commands: {run: [{argv: [a, a]}]}\n", run(`"a","a"`, minutes)},
		{"Y-7", "a command that ends in a space", "commands: {run: [\"a \"]}\n", nil},
		{"Y-7", "an argv of nothing", "commands: {run: [{argv: []}]}\n", nil},
		{"Y-7", "a timeout of a day", "commands: {run: [{argv: [a], timeout: 86400s}]}\n", run(`"a"`, `"timeout":"86400s"`)},
		{"Y-7", "a timeout of a day and a second", "commands: {run: [{argv: [a], timeout: 86401s}]}\n", nil},
		{"Y-7", "one argv with a shell and without", "commands: {allow: [{argv: [a]}, {argv: [a], shell: true}]}\n", nil},
		{"Y-7", "a name twice", "commands: {run: [{argv: [a], env: [A, A]}]}\n", nil},
	}
	for _, name := range []string{"a.b/c.d", "a_b/c-d", "A/x.gitx"} {
		cases = append(cases, fileCase{"Y-6", "the repository " + name, "ledger: {repository: " + name + "}\n", repository(name)})
	}
	for _, name := range []string{"-a/b", "a/-b", "a/b..c", "a/.b", "a/b.", "a", "a/b.git", "/a/b"} {
		cases = append(cases, fileCase{"Y-6", "the repository " + name, "ledger: {repository: " + name + "}\n", nil})
	}
	g.fileCases(cases)
	// So many globs are asked for what they need, which is short.
	g.in("needs")
	change := []m{{"kind": "fileChange", "prefix": "", "required": 1}}
	rules := func(n int) m {
		return m{"file": m{"join": []any{"protected:\n", m{"repeat": "- paths: [a]\n", "times": n}}}, "paths": []string{"b"}, "secrets": false}
	}
	g.good("needs", "Y-6", "needs: of 1,000 globs", rules(1000), m{"needs": change})
	g.bad("needs", "Y-6", "needs: of 1,001 globs", "needs: of 1,000 globs", rules(1001))
	paths := func(n int) m {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("%x", i+0xa000))
		}
		return m{"file": "explained: {bots: [{keys: k, paths: [" + strings.Join(list, ",") + "]}]}\n", "paths": []string{"b"}, "secrets": false}
	}
	g.good("needs", "Y-6", "needs: with a bot of 1,000 globs", paths(1000), m{"needs": change})
	g.bad("needs", "Y-6", "needs: with a bot of 1,001 globs", "needs: with a bot of 1,000 globs", paths(1001))
}

func documentDetails(g *generator) {
	g.in("document")
	const twin = "the canonical form of the defaults"
	for _, c := range [][2]string{
		{"with true for a number", canonicalPolicy(`"required":1`, `"required":true`)},
		{"with independent of nobody", canonicalPolicy(`"permission"`, `"independent":[],"permission"`)},
		{"with a number for text", canonicalPolicy(`"write"`, `1`)},
		{"with bots that are empty", canonicalPolicy(`"commands"`, `"bots":[],"commands"`)},
		{"with an account as a number", canonicalPolicy(`"commands"`, `"bots":[7],"commands"`)},
		{"with what is not visible", canonicalPolicy(`"commands"`, `"bots":["a\u0007"],"commands"`)},
		{"with a command as text", canonicalPolicy(`"commands":{}`, `"commands":{"run":["a"]}`)},
		{"with secrets as a word", canonicalPolicy(`{"mode":"require-approval"}`, `"require-approval"`)},
		{"with null", canonicalPolicy(`"gate":{}`, `"gate":null`)},
	} {
		g.bad("document", "Y-21", "a recorded form "+c[0], twin, m{"document": Bytes(c[1])})
	}
	before, after, _ := strings.Cut(canonicalPolicy(`"sandbox"`, `"protected":[^],"sandbox"`), "^")
	rule := func(path any) []any { return []any{`{"paths":["`, path, `"],"required":1}`} }
	rules := func(n, more int, last int) m {
		parts := []any{before}
		for range more {
			parts = append(parts, m{"repeat": `{"paths":["` + strings.Repeat("a", 256) + `"],"required":1},`, "times": n})
		}
		return m{"document": m{"join": append(append(parts, rule(m{"repeat": "a", "times": last})...), after)}}
	}
	g.good("document", "Y-21", "a recorded form of 1,001 globs", m{"document": m{"join": []any{before, m{"repeat": `{"paths":["a"],"required":1},`, "times": 1000}, `{"paths":["a"],"required":1}`, after}}}, nil)
	// One that is as long as it may be.
	each, rest := len(`{"paths":[""],"required":1},`)+256, len(before)+len(after)+len(`{"paths":[""],"required":1}`)
	n := (4<<20 - rest - 1) / each
	last := 4<<20 - rest - n*each
	g.good("document", "Y-21", "a recorded form of 4 MiB", rules(n, 1, last), nil)
	g.bad("document", "Y-21", "a recorded form of 4 MiB and a byte", "a recorded form of 4 MiB", rules(n, 1, last+1))
}

func tightenedDetails(g *generator) {
	g.in("tighten")
	tighten := func(note, p, b string, replace ...string) {
		g.t.Helper()
		want := canonicalPolicy(replace...)
		g.good("tighten", "Y-25", "tightened: "+note, m{"default": p, "base": b}, m{"policy": want, "sha256": sumOf(want)})
	}
	tighten("allow_author of the branch alone", "{}", "approvals: {allow_author: true}")
	tighten("signed that the first comes to by forge_keys", "approvals: {forge_keys: true}", "approvals: {signed: accept}", `"permission"`, `"forge_keys":true,"permission"`)
	tighten("signed of the branch, where the first says off", "approvals: {signed: \"off\"}", "approvals: {signed: accept}", `"same_head":false`, `"same_head":false,"signed":"accept"`)
	tighten("forge_keys of the branch do not matter", "{}", "approvals: {forge_keys: true}")
	tighten("a merge that is automatic in both", "apply: {merge: auto}", "apply: {merge: auto}", `"apply":{}`, `"apply":{"merge":"auto"}`)
	tighten("empty that the first refuses", "explained: {empty: false}", "{}", `"gate"`, `"explained":{"empty":false},"gate"`)
	tighten("a check that the branch does not have", "commands: {run: [a]}", "{}", `"commands":{}`, `"commands":{"run":[{"argv":["a"],"network":false,"required":true,"timeout":"600s"}]}`)
	tighten("a command with another shell is another one", "commands: {allow: [{argv: [a]}]}", "commands: {allow: [{argv: [a], shell: true}]}")
	tighten("decisions of the first alone", "explained: {decisions: [signed]}", "{}", `"gate"`, `"explained":{"decisions":["signed"]},"gate"`)
	tighten("decisions that nobody shares", "explained: {decisions: [signed]}", "explained: {decisions: [local]}", `"gate"`, `"explained":{"decisions":[]},"gate"`)
	tighten("same_directory of one", "approvals: {drift: {commits: 5}}", "approvals: {drift: {same_directory: ask}}", `"permission"`, `"drift":{"commits":5,"same_directory":"ask"},"permission"`)
	tighten("bots of explained are the first's", "{}", "explained: {bots: [{keys: k, paths: [a]}], merges: covered}")
}

func globDetails(g *generator) {
	g.in("glob")
	for _, c := range []struct {
		requires, glob, path string
		matches              bool
	}{
		{"Y-34", "[A]", "a", true}, {"Y-34", "[A-C]", "b", true}, {"Y-34", "[!A]", "a", false}, {"Y-34", "[h-k]", "\u212a", true}, {"Y-34", "[k-m]", "\u212a", true}, {"Y-34", "[s]", "\u017f", true},
		{"Y-32", "[\\a-\\c]", "b", true}, {"Y-32", "[\\a-\\c]", "-", false}, {"Y-32", "[a\\-c]", "b", false}, {"Y-32", "[-a]", "-", true}, {"Y-32", "[a-c-e]", "d", false}, {"Y-32", "[a-c-e]", "-", true},
		{"Y-32", "x[!a]y", "x/y", false}, {"Y-32", "[[:punct:]]", "-", true}, {"Y-32", "[[:xdigit:]]", "g", false}, {"Y-32", "[![:digit:]]", "5", false}, {"Y-32", "[[:digit:]x]", "x", true}, {"Y-32", "[[:cntrl:]]", "\x7f", true},
		{"Y-33", "a/**/", "a/b", false}, {"Y-33", "a/**/", "a/b/c", true}, {"Y-32", "a/*/b", "a/b", false}, {"Y-32", "**/a/**", "x/a/y", true}, {"Y-32", "/**", "a/b", true}, {"Y-31", "**/", "a", false}, {"Y-31", "**/", "a/b", true},
	} {
		g.good("glob", c.requires+" Y-30", fmt.Sprintf("glob: %s of %q", c.glob, c.path), m{"glob": c.glob, "path": c.path}, m{"matches": c.matches})
	}
	g.in("owners")
	owners := func(requires, note string, file any, path string, owners ...string) {
		g.t.Helper()
		g.good("owners", requires, "owners: "+note, m{"codeowners": file, "path": path}, m{"owners": append([]string{}, owners...)})
	}
	owners("Y-52", "a pattern that is no glob matches nothing", "* @a\na//b @b\n", "a/b", "@a")
	owners("Y-51", "white space of Unicode around a line", "\u2003* @a\u00a0\n", "x", "@a")
	owners("Y-51", "an address with a plus", "* a+b@example.org\n", "x", "a+b@example.org")
	owners("Y-51", "an owner behind a number sign alone", "* @a\nx #@b\n", "x")
	owners("Y-50", "a line of 60,000 bytes", m{"join": []any{"* @a #", m{"repeat": "x", "times": 59994}}}, "x", "@a")
	g.bad("owners", "Y-50", "owners: a line of 60,001 bytes", "owners: a line of 60,000 bytes", m{"codeowners": m{"join": []any{"* @a #", m{"repeat": "x", "times": 59995}}}, "path": "x"})
	size := func(n int) m {
		comment := strings.Repeat("#", 999) + "\n"
		return m{"join": []any{m{"repeat": comment, "times": 2999}, m{"repeat": "#", "times": n - 2_999_000 - 5}, "\n* @a"}}
	}
	owners("Y-50", "3,000,000 bytes", size(3_000_000), "x", "@a")
	g.bad("owners", "Y-50", "owners: 3,000,001 bytes", "owners: 3,000,000 bytes", m{"codeowners": size(3_000_001), "path": "x"})
	g.bad("owners", "Y-50", "owners: a byte that is not UTF-8", "owners: an empty file", m{"codeowners": Bytes("* @a\n# \xff\n"), "path": "x"})
}
