package pipeline_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// TestT09JudgedAMomentAgo: what an apply judged right before the checks, and does not judge again until it begins, is
// judged as it is when it begins, however short the while was.
func TestT09JudgedAMomentAgo(t *testing.T) {
	for _, c := range []struct {
		what   string
		checks bool // only while the checks run is the pull request read again
		then   func(h *hub, fingerprint string, other *pipeline.Runner, tx string)
	}{
		{"the approval is taken back", true, func(h *hub, _ string, _ *pipeline.Runner, _ string) { h.said = nil }},
		{"the approval is edited", true, func(h *hub, _ string, _ *pipeline.Runner, _ string) { h.said[0].Edited = true }},
		{"its author lost access", true, func(h *hub, _ string, _ *pipeline.Runner, _ string) { h.access["ada"] = "read" }},
		{"somebody denies", true, func(h *hub, fingerprint string, _ *pipeline.Runner, _ string) { h.says(bobThere, "/deny "+fingerprint) }},
		{"another job has recorded a denial", false, func(h *hub, fingerprint string, other *pipeline.Runner, tx string) {
			h.says(bobThere, "/deny "+fingerprint)
			if _, err := other.Gate(h.w.Context(), tx); err != nil {
				h.w.Error(err)
			}
		}},
		{"the Policy asks for more", false, func(h *hub, _ string, _ *pipeline.Runner, _ string) { h.w.policy.Approvals.Required = 2 }},
		{"the approval expires", false, func(h *hub, _ string, _ *pipeline.Runner, _ string) { h.w.clock += 3 }},
	} {
		for _, checks := range []bool{true, false} {
			if c.checks && !checks {
				continue
			}
			t.Run(c.what, func(t *testing.T) {
				w, shop := commanded(t, "has world greet.txt")
				if !checks {
					w.policy.Commands.Run = nil
				}
				w.still = true
				w.policy.Approvals.MaxAge = policy.Duration(122 * time.Second)
				h := newHub(w)
				tx, fingerprint := h.propose()
				h.says(adaThere, "/approve "+fingerprint)
				g, other := h.want(tx, approval.Approved, ""), h.runner()
				w.clock -= 60
				r, before := h.runner(), h.refs.tips["refs/heads/topic"]
				do := func() { c.then(h, fingerprint, other, tx) }
				var o pipeline.ApplyOptions
				if checks {
					r.Repo, r.Refs, r.Commands = shop, h.refs, changing{shop, do}
				} else {
					o.Place = func(context.Context, string) (func(), error) { do(); return func() {}, nil }
				}
				out, err := r.Apply(t.Context(), g, o)
				if err == nil || out.Result.Outcome != ledger.OutcomeRefused || h.refs.tips["refs/heads/topic"] != before {
					t.Errorf("checks %t: %+v %v", checks, out, err)
				}
			})
		}
	}
}
