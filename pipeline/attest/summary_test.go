package attest_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// summaryOf is a VSA, and the statement of the approval that it is made of.
func summaryOf(t testing.TB, change func(*attest.CommitChange)) (vsa, approval attest.Statement, err error) {
	t.Helper()
	files, ids := storetest.Recorded(t, storetest.Whole)
	of := landed(t, files, ids[0])
	of.Page, of.At = "https://github.com/acme/app/commit/"+commit, "2026-02-01T00:00:00.000Z"
	if change != nil {
		change(&of)
	}
	if approval, err = attest.New(attest.ApprovalType, record(files, ids[0]), of); err != nil {
		t.Fatal(err)
	}
	vsa, err = attest.New(attest.SummaryType, record(files, ids[0]), of)
	return vsa, approval, err
}

// TestSummary: a VSA has the members of SLSA's Source track 1.2 and no others, and claims no level that no record shows.
func TestSummary(t *testing.T) {
	s, provenance, err := summaryOf(t, nil)
	fatal(t, err)
	raw, err := s.Bytes()
	fatal(t, err)
	var published struct {
		Required, Optional, Subject, Annotations, Results, Levels []string
		Resource                                                  string
	}
	facts, err := os.ReadFile("testdata/source-vsa.json")
	if err == nil {
		err = json.Unmarshal(facts, &published)
	}
	var got struct {
		Type      string                       `json:"_type"`
		Subject   []map[string]json.RawMessage `json:"subject"`
		Predicate map[string]json.RawMessage   `json:"predicate"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &got)
	}
	fatal(t, err)
	for name := range got.Predicate {
		if !slices.Contains(append(published.Required, published.Optional...), name) {
			t.Errorf("%s is no member of a VSA", name)
		}
	}
	for _, name := range published.Required {
		if got.Predicate[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	if members := slices.Sorted(maps.Keys(got.Subject[0])); !slices.Equal(members, slices.Sorted(slices.Values(published.Subject))) || string(got.Subject[0]["annotations"]) != `{"sourceRefs":["refs/heads/main"]}` {
		t.Errorf("subject: %s", got.Subject)
	}
	v := s.Predicate.(*attest.Summary)
	approved, err := provenance.Bytes()
	if err != nil || v.InputAttestations[0].Digest.SHA256 != canon.Hex(approved) {
		t.Errorf("%v: %+v", err, v.InputAttestations)
	}
	if !slices.Equal(v.VerifiedLevels, []string{"SLSA_SOURCE_LEVEL_1"}) || !slices.Contains(published.Levels, v.VerifiedLevels[0]) || !slices.Contains(published.Results, v.VerificationResult) ||
		v.ResourceURI != "git+https://github.com/acme/app" || !strings.HasPrefix(published.Resource, "git+https://") {
		t.Errorf("%+v", v)
	}
	if at, id := v.Record(); at != strings.Repeat("1", 40) || id != provenance.Predicate.(*attest.Approval).Transaction {
		t.Errorf("its record is %q %q", at, id)
	}
	back, err := attest.ParseStatement(raw)
	if err != nil || back.Commit() != commit || attest.Name(back.PredicateType) != "vsa" {
		t.Errorf("%+v, %v", back, err)
	}
}

// TestSummaryAgrees: but for its time, a VSA has to say what is made again; another level, repository or time that is none is
// told, and what nobody knows is not attested.
func TestSummaryAgrees(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*attest.Summary)
		agrees bool
	}{
		"the same":           {func(*attest.Summary) {}, true},
		"another time":       {func(v *attest.Summary) { v.TimeVerified = "2027-01-01T00:00:00.000Z" }, true},
		"no time":            {func(v *attest.Summary) { v.TimeVerified = "tomorrow" }, false},
		"a higher level":     {func(v *attest.Summary) { v.VerifiedLevels = []string{"SLSA_SOURCE_LEVEL_3"} }, false},
		"another repository": {func(v *attest.Summary) { v.ResourceURI = "git+https://github.com/eve/app" }, false},
		"another record":     {func(v *attest.Summary) { v.InputAttestations[0].Digest.SHA256 = strings.Repeat("0", 64) }, false},
		"another Policy":     {func(v *attest.Summary) { v.Policy.Digest.SHA256 = strings.Repeat("0", 64) }, false},
	} {
		stated, _, err := summaryOf(t, nil)
		again, _, err2 := summaryOf(t, nil)
		fatal(t, errors.Join(err, err2))
		c.change(stated.Predicate.(*attest.Summary))
		if agrees, _, err := attest.Agree(stated, again); agrees != c.agrees || err != nil {
			t.Errorf("%s: %v, %v", name, agrees, err)
		}
	}
	for name, change := range map[string]func(*attest.CommitChange){
		"a repository that is not known": func(of *attest.CommitChange) { of.Resource = "" },
		"several transactions": func(of *attest.CommitChange) {
			of.Change.Transactions = append(of.Change.Transactions, explain.Claim{TransactionID: "tx_01KE5W5200041061050R3GG28A", Explains: true})
		},
	} {
		if _, _, err := summaryOf(t, change); !errors.As(err, new(*attest.UnsettledError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, uri := range []string{"", "x", "git+https://github.com/acme/app@main#transactions", "git+https://github.com/acme/app@" + commit + "#../" + commit} {
		v := attest.Summary{ResourceURI: "git+https://github.com/acme/app", InputAttestations: []attest.Input{{URI: uri}}}
		if at, _ := v.Record(); at != "" {
			t.Errorf("%q is the record of a ledger at %s", uri, at)
		}
	}
}
