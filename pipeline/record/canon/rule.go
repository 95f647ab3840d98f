package canon

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Newer is the rule of what only a newer program can judge: where no other rule was found to be
// broken, a record is undecidable, and neither sound nor damaged.
const Newer = "NEWER"

// A Violation is one broken rule, of a report as APPLY_SPEC 3.6 and 7.1 and
// PROPOSAL_INTERNAL_SPEC 6.5 and 7.1 ask for it. Path is what the verifier's format says it
// is (a JSON path, a file's path, an action's id) and is left out when empty.
type Violation struct {
	RuleID  string `json:"rule_id"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Needs   string `json:"-"` // of Newer: the least version that can judge it
}

// A Report is a verifier's whole answer, as it is printed.
type Report struct {
	OK         bool        `json:"ok"`
	Violations []Violation `json:"violations,omitempty"`
}

// NewReport sorts the violations and says whether there are none.
func NewReport(vs []Violation) Report {
	SortViolations(vs)
	return Report{OK: len(vs) == 0, Violations: vs}
}

// ErrorOf is the first violation that is not Newer, and a *NewerError where all are.
func ErrorOf(found []Violation) error {
	if i := slices.IndexFunc(found, func(v Violation) bool { return v.RuleID != Newer }); i >= 0 {
		return fmt.Errorf("%s %s: %s", found[i].RuleID, found[i].Path, found[i].Message)
	}
	return &NewerError{What: found[0].Path, Needs: found[0].Needs}
}

// SortViolations orders them by rule id, then path, each by UTF-16 code unit; those
// that tie keep the order in which they were found.
func SortViolations(vs []Violation) {
	slices.SortStableFunc(vs, func(a, b Violation) int {
		return cmp.Or(Compare(a.RuleID, b.RuleID), Compare(a.Path, b.Path))
	})
}

// A Finder gathers violations while a verifier walks its document.
type Finder struct{ Found []Violation }

// Add notes one violation; the message is made as fmt.Sprintf does. Where an error among its arguments says that something is
// newer, no other rule is broken.
func (f *Finder) Add(id, path, message string, args ...any) {
	v := Violation{RuleID: id, Path: path, Message: fmt.Sprintf(message, args...)}
	for _, arg := range args {
		var newer *NewerError
		if err, is := arg.(error); is && errors.As(err, &newer) {
			v.RuleID, v.Message, v.Needs = Newer, newer.Error(), newer.Needs
		}
	}
	f.Found = append(f.Found, v)
}

// Sorted returns what was found, in the order of SortViolations.
func (f *Finder) Sorted() []Violation {
	SortViolations(f.Found)
	return f.Found
}

// IsAbsolute reports whether the verifiers take a path for an absolute one: it
// begins with a slash or a drive letter.
func IsAbsolute(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 1 && p[1] == ':' && 'a' <= p[0]|0x20 && p[0]|0x20 <= 'z'
}
