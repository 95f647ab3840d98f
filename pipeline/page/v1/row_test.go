package v1

import (
	"regexp"
	"strings"
	"testing"
)

// What a row is, as expressions that are too slow for tens of thousands of tables.
var (
	rowStart = regexp.MustCompile("^\\| \\[`[0-9A-Za-z_]{1,64}`\\]\\([0-9A-Za-z_./]{1,200}\\) ")
	rowEnd   = regexp.MustCompile(` \(\[the transaction\]\((?:\.\./){1,2}transactions/[0-9A-Za-z_./]{1,200}\)\) \|$`)
	rowInert = regexp.MustCompile("\\\\[!-/:-@\\[-`{-~]|`[^`]*`|<code>[^<]*</code>|<span>\\$</span>")
	countRow = regexp.MustCompile(`^\| \[([0-9]{2})\]\([0-9]{2}/README\.md\) \| ([0-9]{1,9})(?: \| .* \| .*)? \|$`)
	allLine  = regexp.MustCompile(`^([0-9]{1,9}) in all, in the folders here.*\.$`)
)

func rowByExpressions(line string) bool {
	start := rowStart.FindString(line)
	if start == "" || !strings.HasSuffix(line, " |") {
		return false
	}
	rest := rowEnd.ReplaceAllString(rowInert.ReplaceAllString(line[len(start):], ""), "")
	return !strings.ContainsAny(rest, "<`") && !strings.Contains(rest, "](") && !strings.Contains(rest, "://")
}

// FuzzRow: lines are told apart as the expressions tell them.
func FuzzRow(f *testing.F) {
	const start = "| [`tx_01`](05/tx_01/README.md) | "
	const end = " ([the transaction](../../transactions/2026/01/05/00/tx_01/README.md)) |"
	for _, line := range []string{
		"", "|", start, start + "|", start + "10:00 | `a` | words |", start + end, start + "x " + end + " |", start + end[:len(end)-1],
		start + `\<b\> \_ \a |`, start + "`<a` |", start + "`a |", start + "<code>a</code> |", start + "<code>a<b</code> |", start + "<span>$</span> |",
		start + "<span>$ |", start + "https://x |", start + "[a](b) |", start + `\[a](b) |`, start + "\xff` ` |",
		strings.Replace(start+end, "../../", "../../../", 1), strings.Replace(start+end, "../../", "", 1), start + end + " " + end,
		"| [05](05/README.md) | 12 |", "| [05](05/README.md) | 1234567890 |", "| [5x](5x/README.md) | 1 |", "| [05](05/README.md) |  |", "| [05](06/README.md) | 1 |",
		"31 in all, in the folders here.", "31 in all, in the folders here, 7 open.", "| [05](05/README.md) | 12 | 3 open | `a` |", "| [05](05/README.md) | 12 | 3 open |", "| [05](05/README.md) | 12 |  | |", "in all, in the folders here.", " in all, in the folders here.", "1234567890 in all, in the folders here.",
		strings.Repeat("a", 300), "| [`" + strings.Repeat("a", 65) + "`](b) | |", "| [`a`](" + strings.Repeat("b", 201) + ") | |",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, line := range []string{line, start + line, start + line + end, start + words(line) + " |"} {
			if strings.Contains(line, "\n") {
				continue
			}
			if got := isRow(line); got != rowByExpressions(line) {
				t.Errorf("%q: a row: %v", line, got)
			}
			m := countRow.FindStringSubmatch(line)
			folder, c, ok := folderCount(line, false)
			if same := m != nil && strings.Count(line, m[1]+"](") == 1 && strings.Contains(line, "("+m[1]+"/"); ok != same || ok && (folder != m[1] || c.all != count(m[2])) {
				t.Errorf("%q: %q %v %v, not %q", line, folder, c, ok, m)
			}
			m = allLine.FindStringSubmatch(line)
			if n, _, ok := countOfAll(line); ok != (m != nil) || ok && n != count(m[1]) {
				t.Errorf("%q: %d %v, not %q", line, n, ok, m)
			}
		}
	})
}

func count(digits string) (n int) {
	for _, d := range digits {
		n = 10*n + int(d-'0')
	}
	return n
}

// TestPageSuccessor: the page of a superseded transaction leads to the one in its place, and to nothing else.
func TestPageSuccessor(t *testing.T) {
	const id = "tx_01KE5W5200041061050R3GG28A"
	for reason, want := range map[string]string{
		"superseded by " + id + ": the base has moved": id,
		"superseded by " + id:                          id,
		"superseded by ../../x: y":                     "",
		"superseded by " + id + "/..: y":               "",
		id:                                             "",
		"":                                             "",
	} {
		if got := successor(reason); got != want {
			t.Errorf("%q: %q, want %q", reason, got, want)
		}
	}
}
