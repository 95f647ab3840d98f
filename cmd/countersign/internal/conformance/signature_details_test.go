package conformance

import (
	"strings"
)

// keyFileDetails are files of keys, in a question that is like one of a signed ledger.
func keyFileDetails(g *generator, twin, key string) {
	ask := func(requires, note string, file any, rules ...string) {
		g.t.Helper()
		v := Vector{Op: "audit", Requires: strings.Fields(requires), Note: "keys: " + note, Input: m{"allowed_signers": file}, Expect: Expectation{Verdict: Accept}}
		if len(rules) > 0 {
			v.Expect, v.Twin = Expectation{Verdict: Refuse, Rules: rules}, g.noted(twin)
		}
		g.like(twin, v)
	}
	line := strings.TrimSuffix(key, "\n")
	old := strings.Replace(line, " ", ` valid-before="20260101Z" `, 1)
	authority := strings.Replace(line, " ", ` cert-authority `, 1)
	ask("S-40", "a comment, a blank line, and CR LF", "# keys\r\n\r\n \t"+line+"\r\n")
	ask("S-40", "without its last LF", line)
	ask("S-40", "a comment alone", "# "+line+"\n", "L13")
	ask("S-40", "nothing", "", "L13")
	ask("S-40", "a certificate authority", authority+"\n", "L13")
	ask("S-40 S-47", "a certificate authority, beside the key", authority+"\n"+key)
	ask("S-47", "an unreadable line, beside the key", "x\n"+key)
	ask("S-47", "an unreadable line alone", "x "+line+"\n", "L13")
	ask("S-47", "a line that is too old, and one that is not", old+"\n"+key)
	ask("S-47", "lines that are too old", old+"\n"+old+"\n", "L13")
	ask("S-40", "a line that is not UTF-8, beside the key", Bytes("\xff\n"+key))
	ask("S-40 S-41", "the key behind what is not visible", "\u200b"+key, "L13")
	fill := 1<<20 - len(key) - len("# \n")
	ask("S-47", "a file of 1 MiB", m{"join": []any{key + "# ", m{"repeat": "x", "times": fill}, "\n"}})
	ask("S-47", "a file of 1 MiB and a byte", m{"join": []any{key + "# ", m{"repeat": "x", "times": fill + 1}, "\n"}}, "L13")
}
