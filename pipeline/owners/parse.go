package owners

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hmarr/codeowners"
)

const (
	maxBytes = 3_000_000 // GitHub loads no file of more than 3 MB
	maxLine  = 60_000    // bytes; the library stops at a line of 64 KiB without a word
)

// Parse reads a CODEOWNERS file. Lines that GitHub skips are skipped; a file that
// is too long, or not UTF-8, or has a line that is too long, is an error.
func Parse(raw []byte) (*Rules, error) {
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("a CODEOWNERS file of %d bytes, more than %d", len(raw), maxBytes)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("a CODEOWNERS file that is not UTF-8")
	}
	out := &Rules{}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(raw), "\ufeff")) {
		n++
		rules, err := parseLine(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("CODEOWNERS line %d: %w", n, err)
		}
		out.rules = append(out.rules, rules...)
	}
	return out, nil
}

// parseLine returns the rule of a line: none of one that GitHub skips, and of one
// that can be read in two ways both, owned by nobody.
func parseLine(line string) ([]rule, error) {
	pattern, rest := cutPattern(line)
	if len(line) > maxLine {
		return nil, fmt.Errorf("%d bytes long, more than %d", len(line), maxLine)
	}
	if skipped(pattern) {
		return nil, nil
	}
	before, _, doubtful := strings.Cut(pattern, "#")
	if !doubtful && !strings.ContainsAny(pattern, "[]") {
		return read(pattern, rest)
	}
	var out []rule
	for _, reading := range []string{before, pattern} {
		rules, err := read(reading, "")
		if err != nil {
			return nil, err
		}
		out = append(out, rules...)
	}
	return out, nil
}

// cutPattern cuts a line at the first space or tab without a backslash before it.
func cutPattern(line string) (pattern, rest string) {
	escaped := false
	for i, c := range line {
		if !escaped && (c == ' ' || c == '\t') {
			return line[:i], line[i:]
		}
		escaped = c == '\\' && !escaped
	}
	return line, ""
}

// skipped tells whether GitHub documents that it takes no notice of a line with
// this pattern.
func skipped(pattern string) bool {
	if pattern == "" || strings.ContainsRune("#!", rune(pattern[0])) || strings.HasPrefix(pattern, `\#`) {
		return true
	}
	bare := strings.NewReplacer(`\\`, "", `\[`, "", `\]`, "").Replace(pattern)
	return strings.ContainsAny(bare, "[]")
}

// read has the library read a pattern and what follows it.
func read(pattern, rest string) ([]rule, error) {
	plain, swap, err := spell(settle(pattern))
	if err != nil {
		return nil, err
	}
	rules, err := codeowners.ParseFile(strings.NewReader(plain+rest), codeowners.WithOwnerMatchers(ownerKinds))
	if err != nil {
		return nil, nil // neither does GitHub take it: three asterisks, or an owner that is none
	}
	var out []rule
	for _, r := range rules {
		out = append(out, rule{r, swap})
	}
	return out, nil
}

// ownerKinds are the library's, but that an address may end in a longer word
// than six letters.
var ownerKinds = []codeowners.OwnerMatcher{
	codeowners.OwnerMatchFunc(matchEmail),
	codeowners.OwnerMatchFunc(codeowners.MatchTeamOwner),
	codeowners.OwnerMatchFunc(codeowners.MatchUsernameOwner),
}

func matchEmail(s string) (codeowners.Owner, error) {
	name, domain, ok := strings.Cut(s, "@")
	if !ok || name == "" || domain == "" || strings.ContainsAny(domain, "@/") {
		return codeowners.Owner{}, codeowners.ErrNoMatch
	}
	return codeowners.Owner{Type: codeowners.EmailOwner, Value: s}, nil
}
