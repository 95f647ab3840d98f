package attest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// TestT79Subjects: programs match a statement by any of its subjects, and so each of them is
// one that was checked: none more, none less, no other hash.
func TestT79Subjects(t *testing.T) {
	t.Parallel()
	files, ids := storetest.Recorded(t, storetest.Whole)
	for _, name := range attest.Names {
		of := landed(t, files, ids[0])
		of.Reviewed.Commit, of.Reviewed.Tree = commit, tree
		s, err := attest.New(attest.TypeOf(name), record(files, ids[0]), of)
		if err != nil && name == "gittuf-pull-request-approval" { // a local approval is none
			s, err = attest.New(attest.AuthorizationType, record(files, ids[0]), of)
			s.PredicateType, s.Predicate = attest.PullRequestApprovalType, &attest.PullRequestApproval{TargetRef: of.Ref, TargetTreeID: tree}
		}
		fatal(t, err)
		taken := func(subjects []attest.Subject) bool {
			t.Helper()
			forged := s
			forged.Subject = subjects
			raw, err := attest.Sign(forged, sign(signer))
			fatal(t, err)
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
		paged := slices.Clone(s.Subject)
		paged[0].URI = "https://example.org/"
		if taken(paged) != (name == "vsa") {
			t.Errorf("%s: a subject with a page", name)
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

// TestNewerStatement: what a later version adds to a predicate of ours is signed, kept and no contradiction to the record; a
// later predicate type, or one that needs a later version, is neither verified nor called broken.
func TestNewerStatement(t *testing.T) {
	s, _ := approvalOf(t, storetest.Whole)
	raw, err := s.Bytes()
	fatal(t, err)
	for name, c := range map[string]struct{ from, to, want string }{
		"extra":     {`"input":`, `"extra":{"weather":"rain"},"input":`, "read"},
		"empty":     {`"input":`, `"extra":{},"input":`, "refused"},
		"needs":     {`"policy":{"commit"`, `"needs_version":"1.1","policy":{"commit"`, "newer"},
		"type":      {`approval/v1"`, `approval/v2"`, "newer"},
		"no type":   {`approval/v1"`, `approval/v1x"`, "refused"},
		"an older":  {`approval/v1"`, `approval/v0"`, "refused"},
		"of others": {`approval/v1"`, `approved/v2"`, "refused"},
		"a member":  {`"input":`, `"friend":"x","input":`, "refused"},
	} {
		stated, err := attest.ParseStatement([]byte(strings.Replace(string(raw), c.from, c.to, 1)))
		got := "refused"
		if err == nil {
			got = "read"
		} else if errors.As(err, new(*canon.NewerError)) {
			got = "newer"
		}
		if got != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if got == "read" {
			again, _ := approvalOf(t, storetest.Whole)
			if agree, _, err := attest.Agree(stated, again); err != nil || !agree {
				t.Errorf("%s: the record does not agree, %v", name, err)
			}
		}
	}
}
