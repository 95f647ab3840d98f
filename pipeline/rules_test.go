package pipeline_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// TestT20BaseBranchTightens: the Policy is the default branch's; that of a pull
// request's base can make it stricter, and nothing else.
func TestT20BaseBranchTightens(t *testing.T) {
	repo := &commits{}
	for _, file := range []string{
		"approvals: {required: 2}\n", "approvals: {required: 3}\n", "approvals: {required: 1}\nsandbox: danger-full-access\n", "approvals: 3\n", "",
	} {
		files := maps.Clone(base)
		if file != "" {
			files[policy.Path] = file
		}
		repo.commit(files)
	}
	const strict, stricter, lax, wrong, none = 1, 2, 3, 4, 5
	for _, c := range []struct{ commit, base, required int }{
		{strict, 0, 2}, {strict, strict, 2}, {strict, stricter, 3}, {strict, lax, 2}, {stricter, strict, 3}, {strict, none, 2},
		{none, 0, 1}, {none, strict, 2},
	} {
		other := ""
		if c.base > 0 {
			other = id(c.base)
		}
		r, err := pipeline.ReadRules(t.Context(), repo, id(c.commit), other)
		if err != nil || r.Policy.Approvals.Required != c.required || r.Policy.Sandbox != policy.WorkspaceWrite || r.Commit != id(c.commit) {
			t.Errorf("%d with %d: %+v %v", c.commit, c.base, r, err)
		}
	}
	var problems policy.Problems
	for _, c := range [][2]string{{id(wrong), ""}, {id(strict), id(wrong)}} {
		if _, err := pipeline.ReadRules(t.Context(), repo, c[0], c[1]); !errors.As(err, &problems) {
			t.Errorf("%v: %v", c, err)
		}
	}
	for _, c := range [][2]string{{id(9), ""}, {id(strict), id(9)}} {
		if _, err := pipeline.ReadRules(t.Context(), repo, c[0], c[1]); err == nil {
			t.Errorf("%v: a commit that is not there was taken", c)
		}
	}
}
