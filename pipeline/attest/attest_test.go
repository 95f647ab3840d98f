package attest_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

var (
	now    = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	signer = teststand.Ed25519(7)
	commit = strings.Repeat("c", 40)
	tree   = strings.Repeat("7", 40)
	parent = strings.Repeat("b", 40)
)

// sign is an attest.SignFunc of a key for tests.
func sign(by teststand.Signer) attest.SignFunc {
	return func(namespace string, message []byte) (string, error) { return by.Sign(namespace, message), nil }
}

func allowed(t testing.TB, lines string) sshsig.Allowed {
	t.Helper()
	list, err := sshsig.ParseAllowedSigners([]byte(lines))
	fatal(t, err)
	return list
}

// record is a transaction of a ledger, with the list of keys of its Policy at hand.
func record(files fstest.MapFS, id string) attest.Record {
	return attest.Record{Tree: files, ID: id, Ref: "refs/agent/ledger", Commit: strings.Repeat("1", 40), Keys: func(string, policy.Policy) (approval.Keys, bool) {
		list, err := sshsig.ParseAllowedSigners([]byte(storetest.KeyLine() + "\n"))
		return approval.Keys{Allowed: list, Listed: list, Err: err}, true
	}}
}

// landed is a commit that is exactly what a transaction proposes.
func landed(t testing.TB, files fstest.MapFS, id string) attest.CommitChange {
	t.Helper()
	tx, err := lookup.State(files, id)
	fatal(t, err)
	of := attest.CommitChange{Commit: commit, Tree: tree, Parents: []string{parent}, From: parent, Shipped: tx.PatchID(), Ref: "refs/heads/main", Resource: "https://github.com/acme/app"}
	of.Change = explain.Explanation{
		From: parent, Commit: commit, Tree: tree, PatchID: tx.PatchID(), Explained: true, Result: explain.Exact, Strength: explain.Shell, Once: explain.First,
		Transactions: []explain.Claim{{TransactionID: id, Explains: true}},
	}
	return of
}

func approvalOf(t testing.TB, life storetest.Life) (attest.Statement, *attest.Approval) {
	t.Helper()
	files, ids := storetest.Recorded(t, life)
	s, err := attest.New(attest.ApprovalType, record(files, ids[0]), landed(t, files, ids[0]))
	fatal(t, err)
	return s, s.Predicate.(*attest.Approval)
}

// T79 What a statement says of a decision is what its record proves, and no more.
func TestT79Approval(t *testing.T) {
	s, a := approvalOf(t, storetest.Whole)
	d := a.Decisions[0]
	if !slices.Equal(d.VerifiedBy, []string{"local"}) || d.Standing != "local" || d.Key != nil || !d.Counted || len(d.Evidence) > 0 {
		t.Errorf("a local decision: %+v", d)
	}
	if s.Commit() != commit || s.Tree() != tree || s.Subject[1].Digest.SHA256 != a.Change.Approved || a.Change.Applied || a.Change.Result != explain.Exact {
		t.Errorf("subject %+v, change %+v", s.Subject, a.Change)
	}
	if len(a.Needs) != 1 || a.Needs[0].Approved < a.Needs[0].Required || !canon.IsHex64(a.Policy.Digest.SHA256) {
		t.Errorf("needs %+v, policy %+v", a.Needs, a.Policy)
	}

	_, a = approvalOf(t, storetest.Signed)
	d = a.Decisions[0]
	if !slices.Equal(d.VerifiedBy, []string{"local", "signature"}) || d.Key == nil || d.Key.Listed != "listed" || d.Key.Principal != "ada@example.org" || len(d.Evidence) != 3 {
		t.Errorf("a signed decision: %+v, %+v", d, d.Key)
	}
}

// T79 A key whose list is not at hand is vouched for by nobody; one that the list does not
// have, or a list that cannot be read, is an error.
func TestT79KeyUnknown(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Signed)
	of := landed(t, files, ids[0])
	for name, keys := range map[string]func(string, policy.Policy) (approval.Keys, bool){
		"nobody reads":         nil,
		"commit not here":      func(string, policy.Policy) (approval.Keys, bool) { return approval.Keys{}, false },
		"not here, and failed": func(string, policy.Policy) (approval.Keys, bool) { return approval.Keys{Err: errors.New("no")}, false },
	} {
		r := record(files, ids[0])
		r.Keys = keys
		s, err := attest.New(attest.ApprovalType, r, of)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := s.Predicate.(*attest.Approval).Decisions[0].Key.Listed; got != attest.Unknown {
			t.Errorf("%s: the key is %q", name, got)
		}
	}
	for name, keys := range map[string]approval.Keys{"empty": {}, "unreadable": {Err: errors.New("no such file")}, "another": {Allowed: allowed(t, "eve "+signer.Public+"\n")}} {
		r := record(files, ids[0])
		r.Keys = func(string, policy.Policy) (approval.Keys, bool) { return keys, true }
		if _, err := attest.New(attest.ApprovalType, r, of); err == nil {
			t.Errorf("list %s: attested", name)
		}
	}
}

// T79 Nothing is said of what is not settled, not explained, or does not verify.
func TestT79Refused(t *testing.T) {
	for _, life := range []storetest.Life{storetest.Reviewed, storetest.Asked, storetest.Refused, storetest.Given, storetest.CutOff, storetest.Retried, storetest.Stopped, storetest.Gone} {
		files, ids := storetest.Recorded(t, life)
		var unsettled *attest.UnsettledError
		if _, err := attest.New(attest.ApprovalType, record(files, ids[0]), landed(t, files, ids[0])); !errors.As(err, &unsettled) {
			t.Errorf("life %d: %v", life, err)
		}
	}
	files, ids := storetest.Recorded(t, storetest.Whole, storetest.Whole)
	good := landed(t, files, ids[0])
	for what, change := range map[string]func(*attest.CommitChange){
		"another's change":  func(of *attest.CommitChange) { of.Change.Transactions = landed(t, files, ids[1]).Change.Transactions },
		"no transaction":    func(of *attest.CommitChange) { of.Change.Transactions = nil },
		"does not explain":  func(of *attest.CommitChange) { of.Change.Transactions[0].Explains = false },
		"another parent":    func(of *attest.CommitChange) { of.Parents = []string{strings.Repeat("a", 40)} },
		"no parent":         func(of *attest.CommitChange) { of.Parents = nil },
		"another commit":    func(of *attest.CommitChange) { of.Commit = strings.Repeat("a", 40) },
		"another's tree":    func(of *attest.CommitChange) { of.Tree = strings.Repeat("a", 40) },
		"tree of no change": func(of *attest.CommitChange) { of.Change.Tree = "" },
	} {
		of := good
		of.Change.Transactions = slices.Clone(good.Change.Transactions)
		change(&of)
		for _, name := range attest.Names {
			if _, err := attest.New(attest.TypeOf(name), record(files, ids[0]), of); err == nil {
				t.Errorf("%s: %s attested", what, name)
			}
		}
	}
	for name := range files {
		if !strings.HasPrefix(name, ledger.Dir(ids[0])+"/") {
			continue
		}
		for what, file := range map[string]*fstest.MapFile{"gone": nil, "longer": {Data: slices.Concat(files[name].Data, []byte("\n")), Mode: 0o644}} {
			bad := maps.Clone(files)
			if bad[name] = file; file == nil {
				delete(bad, name)
			}
			if _, err := attest.New(attest.ApprovalType, record(bad, ids[0]), good); (err == nil) != ledger.IsPage(name) { // nothing depends on a page
				t.Errorf("%s is %s: %v", name, what, err)
			}
		}
	}
	if _, err := attest.New(attest.ApprovalType, record(files, "tx_../../x"), good); err == nil {
		t.Error("an id that is none: attested")
	}
	if _, err := attest.New("https://slsa.dev/provenance/v1", record(files, ids[0]), good); err == nil {
		t.Error("a predicate type that is none: attested")
	}
}

// TestReplay: a commit of several approved patches names all of them.
func TestReplay(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Whole, storetest.Whole)
	of := landed(t, files, ids[0])
	of.Change.Result, of.Shipped = explain.Replay, strings.Repeat("5", 64)
	of.Change.Transactions = append(of.Change.Transactions, landed(t, files, ids[1]).Change.Transactions...)
	s, err := attest.New(attest.ApprovalType, record(files, ids[1]), of)
	fatal(t, err)
	change := s.Predicate.(*attest.Approval).Change
	if change.Result != explain.Replay || !slices.Equal(change.Transactions, ids) || change.Shipped == change.Approved {
		t.Errorf("%+v", change)
	}
	of.Reviewed.Commit, of.Reviewed.Tree = parent, strings.Repeat("8", 40)
	if _, err := attest.New(attest.CoverageType, record(files, ids[1]), of); err == nil {
		t.Error("review-coverage of two transactions' patches")
	}
}

// TestForeign: what the statements for other programs say.
func TestForeign(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Whole)
	of := landed(t, files, ids[0])
	make := func(name string) (string, error) {
		s, err := attest.New(attest.TypeOf(name), record(files, ids[0]), of)
		if err != nil {
			return "", err
		}
		raw, err := s.Bytes()
		return string(raw), err
	}
	if text, err := make("review-coverage"); err == nil {
		t.Errorf("no commit has the files that were approved: %s", text)
	}
	of.Reviewed.Commit, of.Reviewed.Tree = of.Commit, of.Tree
	text, err := make("review-coverage")
	if want := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","predicate":{"approvals":[{"approvedAt":"2026-01-05T00:00:02.002Z","approver":"local:ada@example.org","overTree":{"digest":{"gitTree":%q}}}],"mergeTransform":{"baseAtMerge":{"digest":{"gitCommit":%q}},"expectedTree":{"digest":{"gitTree":%[1]q}},"kind":"identity","replayClean":true,"reviewedHead":{"digest":{"gitCommit":%[3]q}}},"objectFormat":"sha1","reviewCoverage":{"result":"identity"}},"predicateType":"https://drvelvetfog.github.io/source-review-coverage/v0.1","subject":[{"digest":{"gitCommit":%[3]q,"gitTree":%[1]q},"name":"refs/heads/main"}]}`, tree, parent, commit); err != nil || text != want {
		t.Errorf("review-coverage: %v\n%s\n%s", err, text, want)
	}
	of.Reviewed.Commit, of.Reviewed.Tree = strings.Repeat("d", 40), strings.Repeat("8", 40)
	of.Parents = []string{parent, strings.Repeat("e", 40)}
	if text, err = make("review-coverage"); err != nil || !strings.Contains(text, `"kind":"mergeCommit","parents":[{"digest":{"gitCommit":"bbbb`) || !strings.Contains(text, `"reviewCoverage":{"result":"replay"}`) {
		t.Errorf("of a merge: %v %s", err, text)
	}
	text, err = make("gittuf-authorization")
	if want := fmt.Sprintf(`{"predicate":{"fromID":%q,"targetID":%q,"targetRef":"refs/heads/main"},"predicate_type":"https://gittuf.dev/reference-authorization/v0.2","subject":[{"digest":{"gitTree":%[2]q}}],"type":"https://in-toto.io/Statement/v1"}`, parent, tree); err != nil || text != want {
		t.Errorf("gittuf-authorization: %v\n%s\n%s", err, text, want)
	}
	// T79 A decision of the command line is no approval of an account.
	if text, err := make("gittuf-pull-request-approval"); err == nil {
		t.Errorf("no account approved: %s", text)
	}
	of.Ref = ""
	if text, err := make("gittuf-authorization"); err == nil {
		t.Errorf("no ref: %s", text)
	}
}

// TestAgree: a statement of less than is so agrees, one of more does not.
func TestAgree(t *testing.T) {
	for _, c := range []struct {
		said, found    string
		agree, unknown bool
	}{
		{"listed", "listed", true, false}, {"unknown", "unknown", true, false}, {"unknown", "listed", true, false},
		{"listed", "unknown", true, true}, {"registered", "unknown", true, true}, {"registered", "listed", false, false},
		{"listed", "registered", false, false}, {"fine", "unknown", false, false}, {"", "unknown", false, false},
	} {
		stated, a := approvalOf(t, storetest.Signed)
		again, b := approvalOf(t, storetest.Signed)
		a.Decisions[0].Key.Listed, b.Decisions[0].Key.Listed = c.said, c.found
		agree, unknown, err := attest.Agree(stated, again)
		if err != nil || agree != c.agree || unknown != c.unknown {
			t.Errorf("said %s, found %s: %v, %v, %v", c.said, c.found, agree, unknown, err)
		}
	}
}
