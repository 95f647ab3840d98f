package approval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// TestRedo: the record alone reports whether an apply was begun on enough
// approvals by the Policy that it names.
func TestRedo(t *testing.T) {
	strict := policy.Default()
	strict.Approvals.Required = 2
	for _, c := range []struct {
		name   string
		policy policy.Policy // that is recorded
		said   string
		edit   func(doc *approval.PolicyDoc, start *ledger.ApplyStart)
		want   string // part of the finding, "" for none
	}{
		{name: "approved", policy: policy.Default(), said: "ada local"},
		{name: "nobody said anything", policy: policy.Default(), want: "pending (0 of 1 approvals)"},
		{name: "the Policy asks for two", policy: strict, said: "ada local", want: "pending (1 of 2 approvals)"},
		{
			name: "the Policy asks for two, apply/start for one", policy: strict, said: "ada local; bob local",
			edit: func(_ *approval.PolicyDoc, s *ledger.ApplyStart) { s.Approvals[0].Required = 1 }, want: "does not ask for what",
		},
		{
			name: "another Policy is named", policy: policy.Default(), said: "ada local",
			edit: func(_ *approval.PolicyDoc, s *ledger.ApplyStart) { s.Policy.SHA256 = canon.Sum(nil) }, want: "not recorded",
		},
		{
			name: "the Policy was exchanged", policy: strict, said: "ada local",
			edit: func(d *approval.PolicyDoc, _ *ledger.ApplyStart) { d.Policy = string(policy.Default().JSON()) }, want: "not the one that its hash names",
		},
		{
			name: "the Policy is of a newer schema", policy: policy.Default(), said: "ada local",
			edit: func(d *approval.PolicyDoc, _ *ledger.ApplyStart) { d.Schema = "countersign/policy/2" }, want: "a newer countersign",
		},
		{
			name: "the Policy is none", policy: policy.Default(), said: "ada local",
			edit: func(d *approval.PolicyDoc, _ *ledger.ApplyStart) { d.Policy = "{}\n" }, want: "not the one that its hash names",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := record(t, agent, spoken(t, c.said))
			doc := forge.PolicyDoc(c.policy, strings.Repeat("a", 40), true)
			start := &ledger.ApplyStart{
				TransactionID: log.Transaction().TransactionID, ApplyID: "apply_1", PatchIDs: []string{thePatch},
				Policy:    ledger.PolicyRef{Commit: doc.Commit, SHA256: doc.SHA256},
				Approvals: []ledger.Approved{{Kind: "fileChange", Fingerprint: "patchset:" + thePatch, Required: c.policy.Approvals.Required}},
			}
			if c.edit != nil {
				c.edit(&doc, start)
			}
			line, err := canon.Line(doc)
			fatal(t, err)
			file := ledger.ArtifactFile(canon.Hex(line))
			for _, p := range []ledger.Payload{&ledger.ArtifactStored{
				TransactionID: start.TransactionID, ArtifactID: canon.Hex(line), Kind: approval.KindPolicy, Path: file, StoredSHA256: canon.Sum(line),
			}, start} {
				fatal(t, log.Append(noon, p))
			}
			found := new(approval.Policies).Record(fstest.MapFS{file: {Data: line}}, log).Redo()
			switch {
			case c.want == "" && len(found) == 0:
			case len(found) != 1 || found[0].RuleID != ruleOf(c.want) || c.want == "" || !strings.Contains(found[0].Message, c.want):
				t.Errorf("%+v, want %q", found, c.want)
			}
		})
	}
}

// TestT12People: a line of keys that is recorded in an unknown schema joins two accounts as well.
func TestT12People(t *testing.T) {
	log := record(t, agent, nil)
	dir := fstest.MapFS{}
	for i, schema := range []string{"countersign/key/1", "", "x"} {
		line, err := canon.Line(approval.KeyDoc{Schema: schema, Line: fmt.Sprintf("ada%[1]d,bob%[1]d ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1tQmJ0xXJ5sX4m6cQdlqJ5H5rJqk2xQn0Zz3v7lM0b", i)})
		fatal(t, err)
		name := ledger.ArtifactFile(strings.Repeat(fmt.Sprint(i), 64))
		dir[name] = &fstest.MapFile{Data: line}
		fatal(t, log.Append(noon, &ledger.ArtifactStored{TransactionID: log.Transaction().TransactionID, Path: name, Kind: approval.KindKey}))
	}
	people := approval.People(dir, log, sshsig.Allowed{})
	for i := range 3 {
		if got := people(fmt.Sprintf("ada%d", i)); !slices.Contains(got, fmt.Sprintf("bob%d", i)) {
			t.Errorf("ada%d is one with %q", i, got)
		}
	}
}

// ruleOf is the rule of a finding with a message.
func ruleOf(message string) string {
	if strings.Contains(message, "a newer countersign") {
		return canon.Newer
	}
	return "L17"
}
