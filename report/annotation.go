package report

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// maxAnnotations is how many a report has: a few requests' worth.
const maxAnnotations = 200

// annotations are at the files that failed, and a sentence about those that
// were left out. A path that is none of the change's is no file of it.
func (r Report) annotations() (notes []forge.Annotation, cut string) {
	paths := map[string]bool{}
	for _, f := range r.Files {
		paths[f.Path], paths[f.From] = true, true
	}
	delete(paths, "")
	over := 0
	add := func(path, title, message string) {
		if paths[path] && len(notes) < maxAnnotations {
			notes = append(notes, forge.Annotation{
				Path: path, StartLine: 1, EndLine: 1, Level: "failure",
				Title: "countersign: " + Clean(shorten(title)), Message: Clean(shorten(message)),
			})
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
