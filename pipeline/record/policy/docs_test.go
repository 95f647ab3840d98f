package policy_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// TestDocs: docs/policy.md has the sample without its comments, the list of BuiltIns, every key of
// the format, and globs that are none of them wrong.
func TestDocs(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/policy.md")
	fatal(t, err)
	page := string(raw)
	plain := regexp.MustCompile(`(?m)[ \t]+#.*$`).ReplaceAllString(sample(t), "")
	if !strings.Contains(page, "```yaml\n"+plain+"```\n") {
		t.Error("the sample is not that of the package comment")
	}
	_, list, _ := strings.Cut(page, "### Always protected")
	list, _, _ = strings.Cut(list, "## What a base branch")
	listed := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([^|`]+) \\| (`.*`) \\|$").FindAllStringSubmatch(list, -1) {
		for glob := range strings.SplitSeq(row[2], ", ") {
			listed[row[1]] = append(listed[row[1]], strings.Trim(glob, "`"))
		}
	}
	known := map[string][]string{}
	for _, b := range policy.BuiltIns() {
		for _, glob := range b.Globs {
			if _, err := policy.ParseGlob(glob); err != nil {
				t.Error(err)
			}
		}
		known[b.Reason] = b.Globs
	}
	for reason, globs := range known {
		if !slices.Equal(listed[reason], globs) {
			t.Errorf("%s:\nthe page has %q\nBuiltIns    %q", reason, listed[reason], globs)
		}
	}
	if len(listed) != len(known) {
		t.Errorf("the page lists %d reasons, BuiltIns %d", len(listed), len(known))
	}
	checkKeys(t, page)
}

// checkKeys: whatever the program says is allowed, the page names.
func checkKeys(t *testing.T, page string) {
	t.Helper()
	const file = "x: 1\napprovals: {x: 1, permission: x}\nprotected: [{x: 1}, {advice: {x: 1, level: x}}]\nsandbox: x\nsecrets: {x: 1, mode: x}\nlimits: {x: 1}\n" +
		"commands: {run: [{x: 1}], allow: [{x: 1}]}\napply: {x: 1, to: x}\ngate: {x: 1}\nexplained: {x: 1, merges: x, decisions: [x], bots: [{x: 1}]}\nledger: {x: 1}"
	_, err := policy.Parse("x.yml", []byte(file))
	words := 0
	for _, p := range err.(policy.Problems) {
		for _, word := range p.Allowed {
			words++
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(page) {
				t.Errorf("the page says nothing of %s", word)
			}
		}
	}
	if words < 50 {
		t.Errorf("only %d words", words)
	}
}
