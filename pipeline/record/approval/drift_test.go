package approval_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// moved tells the drift since "head", on which approvals are made, "old", before
// which nothing is known, and "new", which is the base now.
func moved(from string) approval.Drift {
	switch from {
	case "head":
		return forge.DriftBetween(from, "new", 12, []string{"a/x", "b/x"}, []string{"a/y"})
	case "far":
		return forge.DriftBetween(from, "new", 11, []string{"b/x"}, []string{"a/y"})
	case "new":
		return forge.DriftBetween(from, "new", 0, nil, nil)
	}
	return approval.UnknownDrift(from, "new", "it is not here")
}

// TestDrift: what has moved since is told, and bounded where the Policy says so.
func TestDrift(t *testing.T) {
	const (
		most12 = "approvals: {drift: {commits: 12}}"
		most11 = "approvals: {drift: {commits: 11}}"
		ask    = "approvals: {drift: {same_directory: ask}}"
	)
	for _, c := range []struct {
		name, policy, said string
		drift              func(string) approval.Drift
		state              approval.State
		reason             string // of the first decision
		shown              string // since which commit, "" for none
	}{
		{"no bound", "version: 1", "ada", moved, approval.Approved, "approved", "head"},
		{"no bound, unknown", "version: 1", "ada on=old", moved, approval.Approved, "approved", "old"},
		{"no bound, nobody looked", "version: 1", "ada", nil, approval.Approved, "approved", ""},
		{"nobody approved", most11, "", moved, approval.Pending, "", ""},
		{"as many as allowed", most12, "ada", moved, approval.Approved, "approved", "head"},
		{"one more", most11, "ada", moved, approval.Pending, "12 commits since it was made, and the Policy allows 11; look at it as it is now and approve again", "head"},
		{"beside", ask, "ada", moved, approval.Pending, "1 other file in the same directory changed since it was made (a/x), and the Policy asks again then; look", "head"},
		{"elsewhere", ask, "ada on=far", moved, approval.Approved, "approved", "far"},
		{"unknown", most12, "ada on=old", moved, approval.Pending, "cannot be told, and the Policy bounds that: it is not here; look", "old"},
		{"unknown beside", ask, "ada on=old", moved, approval.Pending, "cannot be told", "old"},
		{"nobody looked", most12, "ada on=new", nil, approval.Pending, "cannot be told", ""},
		{"without a commit", most12, "ada on=", moved, approval.Pending, "cannot be told", ""},
		{"nothing moved", "approvals: {drift: {commits: 0, same_directory: ask}}", "ada on=new", moved, approval.Approved, "approved", "new"},
		{"approved again", most11, "ada; ada on=new", moved, approval.Approved, "12 commits", "new"},
		{"another is in time", most11, "ada; bob on=new", moved, approval.Approved, "12 commits", "new"},
		{"the oldest that counts", most12, "ada on=old; bob; eve on=new", moved, approval.Approved, "cannot be told", "head"},
		{"each by its own", "approvals: {required: 2, drift: {commits: 11}}", "ada; bob on=new", moved, approval.Pending, "12 commits", "new"},
		{"a denial", most11, "bob deny", moved, approval.Denied, "denied", ""},
		{"a denial on an old commit", most11, "ada on=new; bob deny on=old", moved, approval.Denied, "approved", "new"},
		{"a bot's is not looked at", most11, "app", moved, approval.Pending, "not a human", ""},
		{"breaking the glass", "approvals: {required: 2, break_glass: [ada], drift: {commits: 11}}", "ada fingerprint=patchset:" + thePatch + " glass=down", moved, approval.Pending, "12 commits", "head"},
		{"a review", most11, "ada", moved, approval.Pending, "12 commits", "head"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := policy.Parse("x.yml", []byte(c.policy))
			fatal(t, err)
			the := newCase(t, p, "", c.said)
			looked := 0
			if c.drift != nil {
				the.Drift = func(from string) approval.Drift {
					looked++
					if from == "" {
						return approval.Drift{To: "new"}
					}
					return c.drift(from)
				}
			}
			v := the.Decide()
			v.Drift = plain.ShownDrift(the, v)
			if looked > 0 && strings.HasSuffix(c.name, "is not looked at") {
				t.Error("somebody looked")
			}
			reason, shown := "", ""
			if len(v.Decisions) > 0 {
				reason = v.Decisions[0].Reason
			}
			if v.Drift != nil {
				shown = v.Drift.From
			}
			if v.State != c.state || !strings.Contains(reason, c.reason) || (c.reason == "") != (reason == "") || shown != c.shown {
				t.Errorf("%s, %q, drift since %q; want %s, %q, %q", v.State, reason, shown, c.state, c.reason, c.shown)
			}
		})
	}
}

// TestDriftRedone: the record alone tells whether an apply was begun before the base
// had moved too far.
func TestDriftRedone(t *testing.T) {
	few := 12
	bound := policy.Default()
	bound.Approvals.Drift = &policy.Drift{Commits: &few, SameDirectory: policy.Ask}
	from, to, reviewed := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)
	near := approval.DriftDoc{Schema: "countersign/drift/1", To: to, Since: []approval.Drift{forge.DriftBetween(from, to, 12, []string{"x/y"}, []string{"a/b"})}}
	for _, c := range []struct {
		name   string
		policy policy.Policy
		said   string
		edit   func(doc *approval.DriftDoc, start *ledger.ApplyStart)
		again  bool   // it failed, and is begun once more
		want   string // part of the finding, "" for none
	}{
		{name: "near enough", policy: bound},
		{name: "of the apply before", policy: bound, again: true, want: "is not recorded"},
		{name: "without a bound", policy: policy.Default(), edit: func(d *approval.DriftDoc, _ *ledger.ApplyStart) { d.Schema = "" }},
		{name: "not recorded", policy: bound, edit: func(d *approval.DriftDoc, _ *ledger.ApplyStart) { d.Schema = "" }, want: "is not recorded"},
		{name: "another schema", policy: bound, edit: func(d *approval.DriftDoc, _ *ledger.ApplyStart) { d.Schema = "countersign/drift/2" }, want: "written by a newer countersign, needs at least 2.0"},
		{name: "too many commits", policy: bound, edit: func(d *approval.DriftDoc, _ *ledger.ApplyStart) { d.Since[0].Commits++ }, want: "the verdict was pending"},
		{name: "a file beside", policy: bound, edit: func(d *approval.DriftDoc, _ *ledger.ApplyStart) { d.Since[0].Beside = 1 }, want: "the verdict was pending"},
		{name: "unknown", policy: bound, edit: func(d *approval.DriftDoc, _ *ledger.ApplyStart) { d.Since[0].Unknown = "why" }, want: "the verdict was pending"},
		{name: "not since this approval", policy: bound, said: "ada local on=" + to, want: "the verdict was pending"},
		{name: "up to another commit", policy: bound, edit: func(_ *approval.DriftDoc, s *ledger.ApplyStart) { s.BaseCommit = from }, want: "went onto 111111111111"},
		{name: "counted up to another commit", policy: bound, edit: func(d *approval.DriftDoc, _ *ledger.ApplyStart) { d.Since[0].To = from }, want: "the verdict was pending"},
		{name: "onto the commit that was reviewed", policy: bound, edit: func(_ *approval.DriftDoc, s *ledger.ApplyStart) { s.BaseCommit = reviewed }},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := c.said
			if said == "" {
				said = "ada local on=" + from
			}
			log := &ledger.Log{}
			for i, p := range record(t, agent, spoken(t, said)).Payloads() {
				if meta, ok := p.(*ledger.Meta); ok && i == 0 {
					meta.BaseCommit = reviewed
				}
				fatal(t, log.Append(noon, p))
			}
			by := forge.PolicyDoc(c.policy, strings.Repeat("a", 40), true)
			start := &ledger.ApplyStart{
				TransactionID: log.Transaction().TransactionID, ApplyID: "apply_1", PatchIDs: []string{thePatch}, BaseCommit: to,
				Policy:    ledger.PolicyRef{Commit: by.Commit, SHA256: by.SHA256},
				Approvals: []ledger.Approved{{Kind: "fileChange", Fingerprint: "patchset:" + thePatch, Required: 1}},
			}
			doc := near
			doc.Since = append([]approval.Drift{}, near.Since...)
			if c.edit != nil {
				c.edit(&doc, start)
			}
			dir := fstest.MapFS{}
			store := func(kind string, value any) {
				line, err := canon.Line(value)
				fatal(t, err)
				file := ledger.ArtifactFile(canon.Hex(line))
				dir[file] = &fstest.MapFile{Data: line}
				fatal(t, log.Append(noon, &ledger.ArtifactStored{TransactionID: start.TransactionID, ArtifactID: canon.Hex(line), Kind: kind, Path: file, StoredSHA256: canon.Sum(line)}))
			}
			store(approval.KindPolicy, by)
			if doc.Schema != "" {
				store(approval.KindDrift, doc)
			}
			events := []ledger.Payload{start}
			if c.again {
				second := *start
				second.ApplyID = "apply_2"
				events = append(events, &ledger.ApplyComplete{TransactionID: start.TransactionID, ApplyID: "apply_1", Outcome: "FAILED"}, &second)
			}
			for _, p := range events {
				fatal(t, log.Append(noon, p))
			}
			found := new(approval.Policies).Record(dir, log).Redo()
			switch {
			case c.want == "" && len(found) == 0:
			case len(found) != 1 || found[0].RuleID != ruleOf(c.want) || c.want == "" || !strings.Contains(found[0].Message, c.want):
				t.Errorf("%+v, want %q", found, c.want)
			}
		})
	}
}
