package report

import (
	"fmt"

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
	paths := map[string]bool{}
	for _, f := range r.Files {
		paths[f.Path], paths[f.From] = true, true
	}
	delete(paths, "")
	over := 0
	add := func(path, title, message string) {
		if paths[path] && len(notes) < maxAnnotations {
			notes = append(notes, Annotation{path, 1, 1, "failure", "countersign: " + Clean(shorten(title)), Clean(shorten(message))})
		} else if paths[path] {
			over++
		}
	}
	bad, _ := r.operations()
	for _, o := range bad {
		add(o.Path, o.Op+" failed", o.Error)
	}
	for _, v := range r.violations() {
		add(v.Path, v.RuleID, v.Message)
	}
	if over > 0 {
		cut = fmt.Sprintf("**Cut:** %s not annotated in the files.\n", plural(over, "failure"))
	}
	return notes, cut
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
