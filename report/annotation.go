package report

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/rule"
)

// An Annotation is a note at lines of a file. GitHub takes 50 in one request;
// Title has at most 255 characters, Message 64 KiB.
type Annotation struct {
	Path      string
	StartLine int
	EndLine   int
	Level     string // "failure"
	Title     string
	Message   string
}

// maxAnnotations is how many a report has: a few requests' worth.
const maxAnnotations = 200

// annotations are at the files that failed, and a sentence about those that
// were left out. A path that is none of the change's is no file of it.
func (r Report) annotations() (notes []Annotation, cut string) {
	for _, o := range r.Operations() {
		if rank(o) == 0 {
			notes = r.annotate(notes, o.Path, "countersign: "+o.Op+" failed", o.Error)
		}
	}
	for _, v := range r.violations() {
		notes = r.annotate(notes, v.Path, "countersign: "+v.RuleID, v.Message)
	}
	if over := len(notes) - maxAnnotations; over > 0 {
		return notes[:maxAnnotations], fmt.Sprintf("**Cut:** %s not annotated in the files.\n", plural(over, "failure"))
	}
	return notes, ""
}

func (r Report) annotate(notes []Annotation, path, title, message string) []Annotation {
	if !slices.ContainsFunc(r.Files, func(f File) bool { return f.Path == path || f.From == path }) {
		return notes
	}
	return append(notes, Annotation{
		Path: path, StartLine: 1, EndLine: 1, Level: "failure", Title: Clean(title), Message: Clean(shorten(message)),
	})
}

// violations are those of the apply, then those of the validation.
func (r Report) violations() []rule.Violation {
	var out []rule.Violation
	if r.ApplyResult != nil {
		out = append(out, r.ApplyResult.Violations...)
	}
	if r.Validation != nil {
		out = append(out, r.Validation.Violations...)
	}
	return out
}
