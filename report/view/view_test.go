package view_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/view"
)

var (
	bot  = ledger.Actor{Kind: "bot", ID: "github:1", Login: "agent"}
	marc = ledger.Actor{Kind: "user", ID: "github:2", Login: "marc"}
	ada  = ledger.Actor{Kind: "user", ID: "gitea:3", Login: "ada"}
	ann  = ledger.Actor{Kind: "user", ID: "local:ann@example.org", Login: "Ann"}
)

const change = "patchset:1"

func said(by ledger.Actor, source string) approval.Judged {
	return approval.Judged{Decision: ledger.Approve, Fingerprint: change, Author: by, Source: source, Counted: true}
}

func verdict(at approval.State, ids []string, said ...approval.Judged) *approval.Verdict {
	return &approval.Verdict{
		State: at, Needs: []approval.Need{{Kind: policy.KindFileChange, Fingerprint: change, Required: 1, Approved: len(ids), By: ids}}, Decisions: said,
	}
}

// TestBanner: why a transaction stands as it does.
func TestBanner(t *testing.T) {
	approved := verdict(approval.Approved, []string{marc.ID}, said(marc, approval.KindIssueComment))
	own := verdict(approval.Approved, []string{ann.ID}, said(ann, "local"))
	no := said(marc, "local")
	no.Decision, no.Said = ledger.Deny, "NoArgs is used everywhere"
	secret := said(ada, "review")
	secret.Fingerprint = "secret:" + change
	broken := verdict(approval.Approved, []string{marc.ID}, said(marc, "local"), secret)
	broken.BreakGlass, broken.Needs[0].Kind = true, policy.KindBreakGlass
	broken.Needs = append(broken.Needs, approval.Need{Kind: policy.KindSecret, Fingerprint: secret.Fingerprint, Required: 1, Approved: 1, By: []string{ada.ID}})
	wanted := said(marc, approval.KindIssueComment)
	wanted.Asked = true
	asked := verdict(approval.Approved, []string{marc.ID}, wanted)
	withAnn := verdict(approval.Approved, []string{marc.ID, ann.ID}, wanted, said(ann, approval.KindReview))
	half := verdict(approval.Pending, []string{marc.ID}, said(marc, "review"))
	half.Needs[0].Required = 2
	for want, f := range map[string]view.Facts{
		"1 Approved by marc, and applied|":                                                                       {State: plain.Applied, Verdict: approved},
		"1 Approved by marc, and merged|":                                                                        {State: plain.Merged, Verdict: approved, GateOnly: true},
		"1 Approved by marc, and applied; asked for by the approver|":                                            {State: plain.Applied, Verdict: asked},
		"0 Approved by marc, not applied yet; asked for by the approver|":                                        {State: plain.Approved, Verdict: asked},
		"1 Approved by marc and Ann, and applied|":                                                               {State: plain.Applied, Verdict: withAnn},
		"3 Approved by marc; never applied: README.md changed meanwhile|":                                        {State: plain.Superseded, Verdict: approved, Ended: "the base changed: README.md"},
		"3 Approved by marc; closed without being applied: not needed|":                                          {State: plain.Closed, Verdict: approved, Ended: "not needed"},
		"3 Closed: not needed|":                                                                                  {State: plain.Closed, Verdict: verdict(approval.Pending, nil), Ended: "not needed"},
		"2 Denied by marc: “NoArgs is used everywhere”|These bytes cannot be applied any more.":                  {State: plain.Denied, Verdict: verdict(approval.Denied, nil, no)},
		"2 Denied: elsewhere|These bytes cannot be applied any more.":                                            {State: plain.Denied, Verdict: verdict(approval.Denied, nil), Ended: "elsewhere"},
		"0 Applied, but approved by its own proposer, in a shell|":                                               {State: plain.Applied, Verdict: own, Proposers: []ledger.Actor{bot, ann}},
		"1 Approved by Ann, and applied|":                                                                        {State: plain.Applied, Verdict: own, Proposers: []ledger.Actor{{Kind: "bot", ID: ann.ID}}},
		"2 Applied without the approvals that it needs: the glass was broken by marc|":                           {State: plain.Applied, Verdict: broken},
		"2 The glass was broken by marc, not applied yet|":                                                       {State: plain.Approved, Verdict: broken},
		"3 The glass was broken by marc; never applied: README.md changed meanwhile|":                            {State: plain.Superseded, Verdict: broken, Ended: "the base changed: README.md"},
		"3 Superseded: another one|":                                                                             {State: plain.Superseded, Verdict: half, Ended: "another one"},
		"0 Merged; who approved it cannot be told|":                                                              {State: plain.Merged, Verdict: half, GateOnly: true},
		"3 Approved by marc and applied; closed: not needed|":                                                    {State: plain.Closed, Verdict: approved, Written: true, Ended: "not needed"},
		"3 Applied; closed: not needed|":                                                                         {State: plain.Closed, Written: true, Ended: "not needed"},
		"0 Applied; who approved it cannot be told|":                                                             {State: plain.Applied},
		"0 Applied; since then denied by marc: “NoArgs is used everywhere”|":                                     {State: plain.Applied, Verdict: verdict(approval.Denied, nil, no)},
		"0 Approved, not applied|":                                                                               {State: plain.Approved, Verdict: verdict(approval.Approved, nil)},
		"0 Applied; not checked yet|Whether the files are as approved has not been recorded.":                    {State: plain.Unchecked, Verdict: approved},
		"2 Applied; the check failed|The files are not as they were approved, or a command did not pass.":        {State: plain.CheckFailed, Verdict: approved, Written: true},
		"2 Check failed|Nothing was applied.":                                                                    {State: plain.CheckFailed, Verdict: approved},
		"0 Not approved yet: 1 of 1 answer is missing|It waits for approval of the change. Nothing was applied.": {State: plain.Waits, Verdict: verdict(approval.Pending, nil)},
		"0 Not approved yet|Nothing was applied.":                                                                {State: plain.Waits},
		"0 Approved by marc, not applied yet|":                                                                   {State: plain.Approved, Verdict: approved},
		"2 This record does not verify|Nothing here counts as approved.":                                         {State: plain.Damaged, Verdict: approved},
		"2 Cannot be told|": {State: plain.Unknown},
	} {
		b := view.Of(f).Banner
		if got := string(rune('0'+int(b.Tone))) + " " + b.Title + "|" + b.Detail; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestRequirements: each answer stands at the requirement that it met, with how much it proves; one vote of two who may
// answer for different paths counts where it was counted.
func TestRequirements(t *testing.T) {
	signed, late := said(ada, approval.KindReview), said(marc, approval.KindIssueComment)
	signed.SignedBy = "SHA256:x"
	signed.Fingerprint = "protected:" + change
	late.Counted, late.Reason = false, "was edited"
	v := &approval.Verdict{State: approval.Pending, Decisions: []approval.Judged{said(ann, "local"), said(marc, approval.KindReview), signed, late}, Needs: []approval.Need{
		{Kind: policy.KindFileChange, Fingerprint: change, Required: 2, Approved: 2, By: []string{marc.ID, ann.ID}},
		{Kind: policy.KindProtected, Fingerprint: "protected:" + change, Required: 1, Approved: 1, By: []string{ada.ID}, Of: policy.Need{Paths: []string{"a"}}},
		{Kind: policy.KindProtected, Fingerprint: "protected:" + change, Required: 1, Approved: 0, By: []string{}, Of: policy.Need{Paths: []string{"b"}, Users: []string{"marc"}}, Signed: true},
	}}
	got := view.Of(view.Facts{State: plain.Waits, Verdict: v, Proposers: []ledger.Actor{ann}})
	var out []string
	for _, r := range got.Requirements {
		for _, a := range r.Answers {
			out = append(out, r.What+": "+a.By.Login+", "+a.Proof)
		}
	}
	want := `the change: Ann, the proposer themself, in a shell, unsigned: proves that somebody with this shell said so
the change: marc, GitHub account
protected paths: ada, signed by a key`
	if strings.Join(out, "\n") != want {
		t.Errorf("%s\nwant %s", strings.Join(out, "\n"), want)
	}
	if len(got.Others) != 1 || got.Others[0].Number != 3 || got.Others[0].Why != "it was edited" {
		t.Errorf("others: %+v", got.Others)
	}
	if open := got.Open(); len(open) != 1 || open[0].From == "" || strings.Join(open[0].Flags(), " ") != "--fingerprint protected --sign" || got.Needs() != "protected path (0 of 1)" {
		t.Errorf("open: %+v, %s", open, got.Needs())
	}
	if got.ByProposer() != nil {
		t.Error("two approved, one of them did not propose it")
	}
}

// TestAnswersOnce: of a verdict that was read as JSON an answer stands at one requirement, and an unsigned one at none that takes
// a signature, whatever else it counts for.
func TestAnswersOnce(t *testing.T) {
	signed := said(marc, "review")
	signed.SignedBy = "SHA256:x"
	need := approval.Need{Kind: policy.KindFileChange, Fingerprint: change, Required: 1, Approved: 1}
	two := need
	two.Signed, two.By, need.By = true, []string{marc.ID}, []string{marc.ID}
	for name, needs := range map[string][]approval.Need{"signed": {need, two}, "JSON": {{Fingerprint: change, Required: 1, Approved: 1}, {Fingerprint: change, Required: 1, Approved: 1}}} {
		v := &approval.Verdict{State: approval.Approved, Needs: needs, Decisions: []approval.Judged{said(marc, "review"), signed}}
		got := view.Of(view.Facts{State: plain.Approved, Verdict: v}).Requirements
		if last := got[1].Answers; name == "signed" && (len(last) != 1 || last[0].Key == "") || name == "JSON" && len(last) != 0 {
			t.Errorf("%s: %+v", name, last)
		}
	}
}

// TestFiles: a file has the lines of its part of the diff, what it was before, and what the risks say of it beside them.
func TestFiles(t *testing.T) {
	hash := "sha256:x"
	p := &ledger.Proposal{BaseSHA256: map[string]*string{"old": &hash}, AfterSHA256: map[string]*string{"new": &hash}}
	changes := []ledger.ItemChange{{Path: "new", From: "old", Kind: "rename"}, {Path: "logo.png", Kind: "update"}, {Path: "run.sh", Kind: "add"}}
	files := view.Files(changes, p, []gitpatch.Stat{{}, {Binary: true}, {Added: 3, Deleted: 1}}, []gitpatch.Renaming{{From: 1, To: 2, Alike: 60}, {From: 0, To: 9}})
	if f := files[0]; f.Before != &hash || f.After != &hash || !files[1].Binary || files[2].RenamedFrom != "logo.png" || files[2].Alike != 60 {
		t.Errorf("%+v", files)
	}
	risks := &risk.List{Risks: []risk.Risk{{Kind: risk.Executable, Path: "run.sh"}, {Kind: risk.Binary, Path: "new"}, {Kind: risk.Whitespace, Path: "other"}}}
	got := view.Of(view.Facts{State: plain.Waits, Files: files, Risks: risks})
	if added, deleted := got.Lines(); got.State != plain.Waits || added != 3 || deleted != 1 || !got.Files[0].Binary || strings.Join(got.Files[2].Notes, ", ") != "becomes executable" {
		t.Errorf("%+v", got)
	}
	if files[0].Binary || files[2].Notes != nil || len(view.Files(nil, p, nil, nil)) != 0 {
		t.Error("the facts were changed, or files made up")
	}
}
