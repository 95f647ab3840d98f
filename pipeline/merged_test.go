package pipeline_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

var errBroken = errors.New("no forge")

// TestT06End: how the transaction of a pull request's own diff ends. An approval stood when it
// was merged if it was recorded as approved before, and nobody took it back before the merge; what
// people may do, and what the Policy asks for, may be another thing by the time it is recorded.
// What cannot be read ends nothing.
func TestT06End(t *testing.T) {
	protect := func(p *policy.Policy) {
		p.Protected = []policy.Rule{{Paths: []string{"*.txt"}, Required: 1, Teams: []string{"acme/core"}}}
	}
	later := func(h *hub, who ledger.Actor, state string) {
		h.w.clock += 60
		h.greens(who).State = state
	}
	for name, c := range map[string]struct {
		policy   func(*policy.Policy)
		approved func(h *hub) // before the merge, after it was recorded as approved
		merged   func(h *hub) // after the merge
		fails    string       // what the error says
		status   ledger.Status
		why      string // "" is that of one that is approved still
	}{
		"approved":                     {},
		"its approver has lost access": {merged: func(h *hub) { h.access["ada"] = "read" }, why: "(ada: has read permission, write needed)"},
		"its approver has left the team": {
			policy: protect, merged: func(h *hub) { delete(h.teams, "acme/core") }, why: "(ada: its author is not one of team acme/core)",
		},
		"the Policy asks for more by now": {merged: func(h *hub) { h.w.policy.Approvals.Required = 2 }, why: "1 of 2 approvals"},
		"the Policy asked for more before": {
			approved: func(h *hub) { h.w.policy.Approvals.Required = 2; h.gate(h.tx) }, status: ledger.Interrupted, why: "without every approval",
		},
		"dismissed, nobody knows when": {
			merged: func(h *hub) { h.said[0].State = approval.ReviewDismissed }, status: ledger.Interrupted,
			why: "it was approved before the merge, and an approval no longer stood when that was recorded: 0 of 1 approvals (ada: was dismissed)",
		},
		"taken back before": {
			approved: func(h *hub) { later(h, adaThere, approval.ReviewChangesRequested) }, status: ledger.Interrupted, why: "taken back by a later review",
		},
		"taken back after": {merged: func(h *hub) { later(h, adaThere, approval.ReviewChangesRequested) }, why: "(ada: taken back by a later review)"},
		"approved after": {
			approved: func(h *hub) { h.said = nil; h.gate(h.tx) }, merged: func(h *hub) { later(h, adaThere, approval.ReviewApproved) },
		},
		"nobody ever approved": {approved: func(h *hub) { h.said = nil; h.gate(h.tx) }, status: ledger.Interrupted, why: "without every approval"},
		"pushed since, and its approver has lost access": {
			approved: func(h *hub) { h.push(func() { h.w.repo.commit(fixed) }) }, merged: func(h *hub) { h.access["ada"] = "read" },
			status: ledger.Interrupted, why: "without every approval",
		},
		"approved on a later head, merged with a merge commit": {
			approved: func(h *hub) {
				h.push(func() { h.w.repo.commit(fixed) })
				h.bases[h.pull.Head.Commit] = id(1)
				h.gate(h.tx)
				later(h, adaThere, approval.ReviewApproved)
				h.said[0].State = approval.ReviewDismissed
				h.want(h.tx, approval.Approved, "")
			},
			merged: func(h *hub) { h.bases[h.pull.Head.Commit] = h.pull.Head.Commit }, why: "(ada: was dismissed)",
		},
		"the approver committed it": {
			merged: func(h *hub) { h.pull.Committers = append(h.pull.Committers, adaThere) }, status: ledger.Interrupted, why: "its author is the proposer",
		},
		"as something more": {
			merged: func(h *hub) {
				more := maps.Clone(fixed)
				more["greet.txt"] += "more\n"
				h.w.repo.commit(more)
				h.merged(id(len(h.w.repo.trees)))
			},
			status: ledger.Interrupted, why: "it was approved, and what was merged is not exactly that",
		},
		"closed":                               {merged: func(h *hub) { h.pull.State = forge.PullRequestClosed }, status: ledger.Interrupted, why: "the pull request was closed"},
		"the commit is not told yet":           {merged: func(h *hub) { h.pull.MergeCommit = "" }, fails: "does not tell yet as which commit"},
		"the time is not told":                 {merged: func(h *hub) { h.pull.MergedAt = "" }, fails: "the time of its merge cannot be read"},
		"what it was reviewed on is not there": {merged: func(h *hub) { h.w.repo.unread = id(1) }, fails: "no commit"},
		"its commits are not there":            {merged: func(h *hub) { h.unread = "Fetch" }, fails: "no connection"},
		"its parents are not there":            {merged: func(h *hub) { h.unread = "Parents" }, fails: "no connection"},
		"its files are not there":              {merged: func(h *hub) { h.unread = "Diff" }, fails: "no connection"},
		"the forge fails":                      {merged: func(h *hub) { h.broken = errBroken }, fails: errBroken.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.policy != nil {
				c.policy(&w.policy)
			}
			h := newHub(w)
			h.teams["acme/core"] = []string{adaThere.ID}
			done := h.ownDiff()
			h.tx = done.ID
			h.want(h.tx, approval.Pending, "")
			w.clock += 60
			h.greens(adaThere)
			h.says(adaThere, "/approve protected:patchset:"+done.PatchID)
			h.want(h.tx, approval.Approved, "")
			w.clock += 60
			if c.approved != nil {
				c.approved(h)
			}
			h.merged(h.pull.Head.Commit)
			w.clock += 60
			if c.merged != nil {
				c.merged(h)
			}
			tip := w.tip()
			g, err := pull.End(t.Context(), h.runner(), h.tx)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || w.tip() != tip {
					t.Fatalf("%s, %v", g.Transaction().Status, err)
				}
				h.unread, h.broken, w.repo.unread = "", nil, ""
				h.merged(h.pull.Head.Commit)
				g, err = pull.End(t.Context(), h.runner(), h.tx)
			}
			if c.status == "" {
				c.status = ledger.Completed
			}
			fatal(t, err)
			w.sound(h.tx, c.status)
			log := g.Log()
			if why := ledger.Last[*ledger.StatusChange](log).Reason; !strings.Contains(why, c.why) || c.why == "" && why != "what was merged is the approved patch" {
				t.Errorf("it ended as %q", why)
			}
			dir := w.directory(h.tx)
			merge, err := approval.ReadMerge(dir, log)
			if (merge != nil) != (h.pull.State == forge.PullRequestMerged) || err != nil || merge != nil &&
				(merge.MergedAt != h.pull.MergedAt || merge.MergeCommit != h.pull.MergeCommit || merge.HeadCommit != h.pull.Head.Commit || merge.Base != "main" || merge.PullRequest != 7 || merge.Repository != h.pull.Repository) {
				t.Errorf("recorded %+v, %v", merge, err)
			}
		})
	}
}
