package approval_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A pull is a transaction of pull request 12, being recorded.
type pull struct {
	t   *testing.T
	log *ledger.Log
	dir fstest.MapFS
	now time.Time
	ref ledger.PolicyRef
}

const pullTx = "tx_01KE5W5200041061050R3GG28A"

func newPull(t *testing.T, file string, proposed ledger.Proposal) *pull {
	t.Helper()
	p, err := policy.Parse("countersign.yml", []byte(file))
	fatal(t, err)
	proposed.PatchID, proposed.PullRequest = thePatch, cmp.Or(proposed.PullRequest, 12)
	x := &pull{t: t, log: &ledger.Log{}, dir: fstest.MapFS{}, now: noon}
	doc := forge.PolicyDoc(p, strings.Repeat("a", 40), true)
	x.ref = ledger.PolicyRef{Commit: doc.Commit, SHA256: doc.SHA256}
	x.event(&ledger.Meta{TransactionID: pullTx, Proposer: agent})
	x.event(&ledger.TurnStart{TransactionID: pullTx, TurnID: "turn_1"})
	x.event(&ledger.TurnItem{TransactionID: pullTx, TurnID: "turn_1", Item: ledger.Item{ID: "item_1", Type: "fileChange", Metadata: &proposed}})
	x.artifact(approval.KindPolicy, doc)
	return x
}

func (x *pull) event(p ledger.Payload) {
	x.t.Helper()
	fatal(x.t, x.log.Append(x.now, p))
}

func (x *pull) artifact(kind string, doc any) string {
	x.t.Helper()
	line, err := canon.Line(doc)
	fatal(x.t, err)
	file := ledger.ArtifactFile(canon.Hex(line))
	x.dir[file] = &fstest.MapFile{Data: line}
	x.event(&ledger.ArtifactStored{TransactionID: pullTx, ArtifactID: canon.Hex(line), Kind: kind, Path: file, StoredSHA256: canon.Sum(line)})
	return file
}

// hear records what was said, with the permission of each, but what is void.
func (x *pull) hear(c forge.Transcript, permission string) {
	for _, s := range c.Said() {
		decision, _ := s.Command.Decision()
		if s.Void != "" {
			continue
		}
		a := approval.Access{Permission: permission, Role: permission}
		evidence := x.artifact(approval.KindStatement, s.Doc(a))
		x.decide(s.Command.RequestKind(), ledger.ApprovalDecision{
			Decision: decision, Fingerprint: s.Command.Fingerprint, Reason: s.Command.Reason, Source: s.Source(a, "head", evidence),
		})
	}
}

func (x *pull) decide(kind string, d ledger.ApprovalDecision) {
	d.TransactionID, d.ApprovalRequestID = pullTx, fmt.Sprintf("req_%d", len(ledger.Of[*ledger.ApprovalRequest](x.log))+1)
	x.event(&ledger.ApprovalRequest{TransactionID: pullTx, ApprovalRequestID: d.ApprovalRequestID, Kind: kind, Fingerprint: d.Fingerprint})
	x.event(&d)
}

// stand is what is found when the forge is asked again: the talk of now, and
// the same permission for all.
func (x *pull) stand(now forge.Transcript, permission string) approval.Standing {
	s := forge.StandingAt(x.now, 12, "head")
	for _, d := range ledger.Of[*ledger.ApprovalDecision](x.log) {
		if d.Decision == ledger.Approve {
			s.Decisions = append(s.Decisions, forge.Stood(*d, now.Stands(*d), approval.Access{Permission: permission, Role: permission}))
		}
	}
	return s
}

// begin records apply/start, on the approval of the change by one if none is
// named.
func (x *pull) begin(approvals ...ledger.Approved) {
	if approvals == nil {
		approvals = []ledger.Approved{{Kind: "fileChange", Fingerprint: own, Required: 1}}
	}
	x.event(&ledger.ApplyStart{
		TransactionID: pullTx, ApplyID: fmt.Sprintf("apply_%d", len(x.log.Events())), PatchIDs: []string{thePatch}, Approvals: approvals, Policy: x.ref,
	})
}

func (x *pull) fail() {
	start, _ := x.log.OpenApply()
	x.event(&ledger.ApplyComplete{TransactionID: pullTx, ApplyID: start.ApplyID, Outcome: "FAILED"})
}

// found is what Redo finds, one a line.
func (x *pull) found() string {
	var out []string
	for _, v := range new(approval.Policies).Record(x.dir, x.log).Redo() {
		out = append(out, v.RuleID+" "+v.Message)
	}
	return strings.Join(out, "\n")
}

// want holds Redo to part of its one finding, "" for none.
func (x *pull) want(want string) {
	x.t.Helper()
	if got := x.found(); (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, "\n") {
		x.t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestT09Standing: both answers of the forge are recorded, and the verdict at
// apply can be found again from them alone.
func TestT09Standing(t *testing.T) {
	line := "/approve " + own
	said := talk(comment(line))
	for _, c := range []struct {
		name, policy, permission string
		now                      forge.Transcript
		edit                     func(*approval.Standing)
		want                     string
	}{
		{name: "as it was", permission: "write", now: said},
		{name: "less, but enough", policy: "approvals: {permission: triage}", permission: "triage", now: said},
		{name: "lost access", permission: "none", now: said, want: "L17 by the recorded Policy the verdict was pending"},
		{name: "lost some access", permission: "triage", now: said, want: "L17"},
		{name: "gone", permission: "write", now: talk(), want: "L17"},
		{name: "edited", permission: "write", now: talk(comment(line, edited("x"))), want: "L17"},
		{name: "not asked", permission: "write", now: said, edit: func(s *approval.Standing) { s.Decisions = s.Decisions[:0] }, want: "L17"},
		{name: "of another request", permission: "write", now: said, edit: func(s *approval.Standing) { s.Decisions[0].ApprovalRequestID = "req_9" }, want: "L17"},
		{name: "of another pull request", permission: "write", now: said, edit: func(s *approval.Standing) { s.PullRequest = 13 }, want: "for pull request 13, not 12"},
		{name: "of an unknown schema", permission: "write", now: said, edit: func(s *approval.Standing) { s.Schema = "x" }, want: "unknown schema"},
		{name: "another head", permission: "write", now: said, edit: func(s *approval.Standing) { s.HeadCommit = "new" }},
		{name: "another head, which counts", policy: "approvals: {same_head: true}", permission: "write", now: said,
			edit: func(s *approval.Standing) { s.HeadCommit = "new" }, want: "L17"},
		{name: "the same head, which counts", policy: "approvals: {same_head: true}", permission: "write", now: said},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newPull(t, cmp.Or(c.policy, "version: 1"), ledger.Proposal{})
			x.hear(said, "write")
			s := x.stand(c.now, c.permission)
			if c.edit != nil {
				c.edit(&s)
			}
			x.artifact(approval.KindStanding, s)
			x.begin()
			x.want(c.want)
		})
	}
}

// TestStandingPeople: teams, owners, authors, the command line.
func TestStandingPeople(t *testing.T) {
	protected := ledger.Approved{Kind: "protected_path", Fingerprint: "protected:" + own, Required: 1}
	plain := ledger.Approved{Kind: "fileChange", Fingerprint: own, Required: 1}
	both := talk(comment("/approve "+own), comment("/approve protected:"+own, id("21", hour)))
	for _, c := range []struct {
		name, policy string
		proposed     ledger.Proposal
		edit         func(*approval.Standing)
		want         string
	}{
		{name: "a member", policy: "protected: [{paths: [x], teams: [acme/sec]}]", edit: func(s *approval.Standing) { forge.AddID(s.Teams, "acme/sec", "1") }},
		{name: "of another team", policy: "protected: [{paths: [x], teams: [acme/sec]}]", edit: func(s *approval.Standing) { forge.AddID(s.Teams, "acme/all", "1") }, want: "L17"},
		{name: "another member", policy: "protected: [{paths: [x], teams: [acme/sec]}]", edit: func(s *approval.Standing) { forge.AddID(s.Teams, "acme/sec", "2") }, want: "L17"},
		{name: "an owner", policy: "protected: [{paths: [x], owners: true}]", edit: func(s *approval.Standing) { forge.AddID(s.Owners, "x", "1") }},
		{name: "of another path", policy: "protected: [{paths: [x], owners: true}]", edit: func(s *approval.Standing) { forge.AddID(s.Owners, "y", "1") }, want: "L17"},
		{name: "nobody is listed", policy: "protected: [{paths: [x], owners: true}]", want: "L17"},
		{name: "a committer", policy: "protected: [{paths: [x]}]", proposed: ledger.Proposal{Authors: []ledger.Actor{people["ada"]}}, want: "L17"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.proposed.TargetFiles = []string{"x"}
			x := newPull(t, c.policy, c.proposed)
			x.hear(both, "write")
			s := x.stand(both, "write")
			if c.edit != nil {
				c.edit(&s)
			}
			x.artifact(approval.KindStanding, s)
			x.begin(plain, protected)
			x.want(c.want)
		})
	}
}

func TestStandingLocal(t *testing.T) {
	for file, want := range map[string]string{"approvals: {local: true}": "", "approvals: {required: 1}": "L17"} {
		x := newPull(t, file, ledger.Proposal{})
		d := spoken(t, "ada local")[0]
		x.decide("fileChange", d)
		x.artifact(approval.KindStanding, forge.StandingAt(x.now, 12, "head"))
		x.begin()
		x.want(want)
	}
}

// TestStandingOfNoPull: a number that no pull request has is none of a change without one.
func TestStandingOfNoPull(t *testing.T) {
	x := newPull(t, "version: 1", ledger.Proposal{PullRequest: -1})
	x.decide("fileChange", spoken(t, "ada local")[0])
	x.begin()
	x.want("L17")
}

// TestStandingOfEachApply: none, and one of an apply before.
func TestStandingOfEachApply(t *testing.T) {
	said := talk(comment("/approve " + own))
	x := newPull(t, "version: 1", ledger.Proposal{})
	x.hear(said, "write")
	x.begin()
	x.want("L17 which approvals still stood when the change was applied is not recorded")

	x = newPull(t, "version: 1", ledger.Proposal{})
	x.hear(said, "write")
	x.now = noon.Add(time.Minute)
	x.artifact(approval.KindStanding, x.stand(said, "write"))
	x.now = noon.Add(2 * time.Minute)
	x.begin()
	x.fail()
	x.now = noon.Add(3 * time.Minute)
	x.begin()
	x.want("L17 which approvals still stood was not asked again for this apply")

	x.fail()
	x.artifact(approval.KindStanding, x.stand(talk(), "write"))
	x.begin()
	if got := x.found(); strings.Count(got, "L17") != 2 || !strings.Contains(got, "pending") {
		t.Error(got)
	}
}

// TestBreakGlassRedone: from the comment to the auditor.
func TestBreakGlassRedone(t *testing.T) {
	glass := ledger.Approved{Kind: "break_glass", Fingerprint: own, Required: 1}
	said := talk(comment("/approve --break-glass " + own + " the site is down"))
	for file, want := range map[string]string{
		"approvals: {required: 3, break_glass: [ada]}": "",
		"approvals: {required: 3, break_glass: [bob]}": "L17 by the recorded Policy the verdict was pending (0 of 3 approvals)",
	} {
		x := newPull(t, file, ledger.Proposal{TargetFiles: []string{"CLAUDE.md"}})
		if strings.Contains(want, "0 of 3") {
			want = strings.TrimSuffix(want, ")")
		}
		x.hear(said, "write")
		x.artifact(approval.KindStanding, x.stand(said, "write"))
		x.begin(glass)
		x.want(want)
	}
	x := newPull(t, "approvals: {break_glass: [ada]}", ledger.Proposal{})
	x.hear(said, "write")
	x.artifact(approval.KindStanding, x.stand(said, "write"))
	x.begin()
	x.want("L17 apply/start does not ask for what")
}
