package attest_test

import (
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// TestT79Subjects: programs match a statement by any of its subjects, and so each of them is
// one that was checked: none more, none less, no other hash.
func TestT79Subjects(t *testing.T) {
	t.Parallel()
	files, ids := ledgerOf(t, storetest.Whole)
	for _, name := range attest.Names {
		of := landed(t, files, ids[0])
		of.Reviewed.Commit, of.Reviewed.Tree = commit, tree
		s, err := attest.New(attest.TypeOf(name), record(files, ids[0]), of)
		if err != nil && name == "gittuf-pull-request-approval" { // a local approval is none
			s, err = attest.New(attest.AuthorizationType, record(files, ids[0]), of)
			s.PredicateType, s.Predicate = attest.PullRequestApprovalType, &attest.PullRequestApproval{TargetRef: of.Ref, TargetTreeID: tree}
		}
		if err != nil {
			t.Fatal(err)
		}
		taken := func(subjects []attest.Subject) bool {
			t.Helper()
			forged := s
			forged.Subject = subjects
			raw, err := attest.Sign(forged, sign(signer))
			if err != nil {
				t.Fatal(err)
			}
			_, err = attest.Open(raw)
			return err == nil
		}
		with := func(change func(d *attest.Digest)) []attest.Subject {
			all := slices.Clone(s.Subject)
			change(&all[0].Digest)
			return all
		}
		if !taken(s.Subject) {
			t.Errorf("%s: its own subjects are refused", name)
		}
		for what, subjects := range map[string][]attest.Subject{
			"none": {}, "one less": s.Subject[1:], "the first twice": append([]attest.Subject{s.Subject[0]}, s.Subject...),
			"another commit too": append(slices.Clone(s.Subject), attest.Subject{Digest: attest.Digest{GitCommit: parent}}),
			"a file's hash too":  with(func(d *attest.Digest) { d.SHA256 = "00" }),
			"no tree":            with(func(d *attest.Digest) { d.GitTree = "" }),
			"no hash":            with(func(d *attest.Digest) { *d = attest.Digest{} }),
		} {
			if taken(subjects) {
				t.Errorf("%s: %s: taken", name, what)
			}
		}
	}
}
