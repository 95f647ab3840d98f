package approval_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

var hex64 = strings.Repeat("ab", 32)

// bobAsked says that bob started the run that proposed.
var bobAsked = ledger.Requester{Actor: ledger.Actor{Kind: "user", ID: "200", Login: "bob"}, Source: ledger.AskedBySender}

func statement() approval.SignedDecision {
	return approval.SignedDecision{
		Schema: approval.DecisionSchema, Repository: &ledger.Repository{ID: "1296269", Name: "acme/shop"}, PullRequest: 12,
		TransactionID: "tx_01M8222YH05GYQ3VTTQ7FD5C6Z", BaseCommit: strings.Repeat("c", 40), Decision: ledger.Approve,
		Fingerprints: []string{"patchset:" + hex64, "secret:patchset:" + hex64}, Reason: "read <it> & é", DecidedAt: "2026-01-05T12:00:00Z", Shown: "sha256:" + hex64,
		Proposers:   []ledger.Actor{{Kind: "bot", ID: "41898282", Login: "github-actions[bot]"}, {Kind: "user", ID: "300", Login: "carol"}},
		RequestedBy: []ledger.Requester{bobAsked},
		Policy:      ledger.PolicyRef{Commit: strings.Repeat("e", 40), SHA256: "sha256:" + strings.Repeat("ef", 32)},
	}
}

func TestStatementForm(t *testing.T) {
	for name, change := range map[string]func(*approval.SignedDecision){
		"":             func(*approval.SignedDecision) {},
		"alone":        func(s *approval.SignedDecision) { s.Repository, s.PullRequest, s.Reason = nil, 0, "" },
		"nobody asked": func(s *approval.SignedDecision) { s.RequestedBy = []ledger.Requester{} },
		"schema":       func(s *approval.SignedDecision) { s.Schema = "countersign/decision/1" },
		"no schema":    func(s *approval.SignedDecision) { s.Schema = "" },
		"no repo":      func(s *approval.SignedDecision) { s.Repository = nil },
		"empty repo":   func(s *approval.SignedDecision) { s.Repository = &ledger.Repository{Name: "a/b"} },
		"negative":     func(s *approval.SignedDecision) { s.PullRequest = -1 },
		"no tx":        func(s *approval.SignedDecision) { s.TransactionID = "" },
		"no base":      func(s *approval.SignedDecision) { s.BaseCommit = "" },
		"decision":     func(s *approval.SignedDecision) { s.Decision = "withdraw" },
		"no decision":  func(s *approval.SignedDecision) { s.Decision = "" },
		"nothing":      func(s *approval.SignedDecision) { s.Fingerprints = nil },
		"order": func(s *approval.SignedDecision) {
			s.Fingerprints[0], s.Fingerprints[1] = s.Fingerprints[1], s.Fingerprints[0]
		},
		"twice":        func(s *approval.SignedDecision) { s.Fingerprints[1] = s.Fingerprints[0] },
		"fingerprint":  func(s *approval.SignedDecision) { s.Fingerprints = []string{"patchset:" + hex64[1:]} },
		"upper":        func(s *approval.SignedDecision) { s.Fingerprints = []string{"patchset:" + strings.ToUpper(hex64)} },
		"reason":       func(s *approval.SignedDecision) { s.Reason = "two\nlines" },
		"long":         func(s *approval.SignedDecision) { s.Reason = strings.Repeat("x", 501) },
		"zone":         func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T12:00:00+00:00" },
		"fraction":     func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T12:00:00.5Z" },
		"no time":      func(s *approval.SignedDecision) { s.DecidedAt = "" },
		"no proposer":  func(s *approval.SignedDecision) { s.Proposers = nil },
		"by nobody":    func(s *approval.SignedDecision) { s.Proposers = []ledger.Actor{} },
		"by no id":     func(s *approval.SignedDecision) { s.Proposers[0].ID = "" },
		"by no kind":   func(s *approval.SignedDecision) { s.Proposers[0].Kind = "" },
		"by one twice": func(s *approval.SignedDecision) { s.Proposers[1] = s.Proposers[0] },
		"by, order":    func(s *approval.SignedDecision) { s.Proposers[0], s.Proposers[1] = s.Proposers[1], s.Proposers[0] },
		"not asked":    func(s *approval.SignedDecision) { s.RequestedBy = nil },
		"asked twice":  func(s *approval.SignedDecision) { s.RequestedBy = append(s.RequestedBy, bobAsked) },
		"asked, order": func(s *approval.SignedDecision) {
			s.RequestedBy = append(s.RequestedBy, ledger.Requester{Actor: bobAsked.Actor, Source: "actions.a"})
		},
		"asked, from nowhere": func(s *approval.SignedDecision) { s.RequestedBy[0].Source = "" },
		"asked by nobody":     func(s *approval.SignedDecision) { s.RequestedBy[0].Actor = ledger.Actor{Kind: "user"} },
		"no Policy":           func(s *approval.SignedDecision) { s.Policy = ledger.PolicyRef{} },
		"no Policy's hash":    func(s *approval.SignedDecision) { s.Policy.SHA256 = "" },
		"no Policy's commit":  func(s *approval.SignedDecision) { s.Policy.Commit = "" },
		"not shown":           func(s *approval.SignedDecision) { s.Shown = "" },
		"shown as md5":        func(s *approval.SignedDecision) { s.Shown = "md5:" + hex64 },
	} {
		s := statement()
		change(&s)
		good := name == "" || name == "alone" || name == "nobody asked"
		got, err := approval.ParseDecision(s.Bytes())
		if good != (err == nil) || good && !bytes.Equal(got.Bytes(), s.Bytes()) {
			t.Errorf("%s: %v", name, err)
		}
		sig := approval.Signature{Statement: s, Armored: "-----BEGIN SSH SIGNATURE-----\nQUJD\n-----END SSH SIGNATURE-----\n"}
		back, err := approval.ParseSignature(sig.String())
		if good != (err == nil) || good && back.Armored != sig.Armored {
			t.Errorf("%s, on a line: %v", name, err)
		}
	}
}

// A statement has one text: no member is absent, none is added, none written otherwise.
func TestStatementOneText(t *testing.T) {
	raw := statement().Bytes()
	var doc map[string]any
	fatal(t, json.Unmarshal(raw, &doc))
	for name := range doc {
		for _, value := range []any{nil, "absent", "", "x", 0.5, -1, true, []any{}, map[string]any{}} {
			was := doc[name]
			if doc[name] = value; value == "absent" {
				delete(doc, name)
			}
			other, err := json.Marshal(doc)
			if doc[name] = was; err != nil {
				t.Fatal(err)
			}
			empty, list := value.([]any)
			if _, err := approval.ParseDecision(append(other, '\n')); err == nil && name == "requested_by" && list && len(empty) == 0 {
				continue // nobody is known to have asked
			} else if err == nil && name != "reason" {
				t.Errorf("%s: %v is taken", name, value)
			} else if err == nil && value != "" && value != "x" {
				t.Errorf("reason: %v is taken", value)
			}
		}
	}
	for _, other := range []string{
		string(raw[:len(raw)-1]), string(raw) + "\n", " " + string(raw), strings.Replace(string(raw), "{", `{"a":1,`, 1), strings.Replace(string(raw), `":`, `": `, 1),
		strings.Replace(string(raw), `{`, `{"schema":"countersign/decision/2",`, 1), strings.Replace(string(raw), "é", `\u00e9`, 1),
	} {
		if _, err := approval.ParseDecision([]byte(other)); err == nil {
			t.Errorf("taken: %s", other)
		}
	}
	line := approval.Signature{Statement: statement(), Armored: "-----BEGIN SSH SIGNATURE-----\nQUJD\n-----END SSH SIGNATURE-----\n"}.String()
	doc1, _ := base64.RawURLEncoding.DecodeString(line)
	for _, other := range []string{line + "=", line + "A", line[:len(line)-1], " " + line, base64.StdEncoding.EncodeToString(doc1),
		base64.RawURLEncoding.EncodeToString(append(doc1, '\n')),
		base64.RawURLEncoding.EncodeToString(bytes.Replace(doc1, []byte(`{"signature"`), []byte(`{"a":1,"signature"`), 1)),
		base64.RawURLEncoding.EncodeToString(bytes.Replace(doc1, []byte(`QUJD`), []byte(`QUJD\n`), 1)),
	} {
		if got, err := approval.ParseSignature(other); err == nil {
			t.Errorf("taken: %s as %v", other, got)
		}
	}
}

func FuzzParseSignature(f *testing.F) {
	f.Add(approval.Signature{Statement: statement(), Armored: "-----BEGIN SSH SIGNATURE-----\nQUJD\n-----END SSH SIGNATURE-----\n"}.String())
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := approval.ParseSignature(text); err == nil && s.String() != text {
			t.Errorf("%q is written as %q", text, s.String())
		}
	})
}

// TestNewerStatement: what a later version adds is signed and kept; a statement that needs one, or has a later schema, is neither
// read nor called broken.
func TestNewerStatement(t *testing.T) {
	text := string(statement().Bytes())
	for name, c := range map[string]struct{ from, to, want string }{
		"extra":         {`"fingerprints"`, `"extra":{"weather":["rain"]},"fingerprints"`, "read"},
		"an empty one":  {`"fingerprints"`, `"extra":{},"fingerprints"`, "refused"},
		"needs":         {`"policy"`, `"needs_version":"1.1","policy"`, "newer"},
		"needs nothing": {`"policy"`, `"needs_version":"1.0","policy"`, "refused"},
		"schema":        {`countersign/decision/2`, `countersign/decision/3`, "newer"},
		"another":       {`countersign/decision/2`, `countersign/decision/x`, "refused"},
		"a member":      {`"fingerprints"`, `"friend":"x","fingerprints"`, "refused"},
	} {
		raw := []byte(strings.Replace(text, c.from, c.to, 1))
		line := base64.RawURLEncoding.EncodeToString([]byte(`{"signature":"QUJD","statement":` + strings.TrimSuffix(string(raw), "\n") + "}"))
		block := "```countersign-decision\n-----BEGIN SSH SIGNATURE-----\nQUJD\n-----END SSH SIGNATURE-----\n" + string(raw) + "```"
		for form, read := range map[string]func() (approval.SignedDecision, error){
			"a file": func() (approval.SignedDecision, error) { return approval.ParseDecision(raw) },
			"a line": func() (approval.SignedDecision, error) {
				s, err := approval.ParseSignature(line)
				return s.Statement, err
			},
			"a block": func() (approval.SignedDecision, error) { s, err := approval.ParseBlock(block); return s.Statement, err },
		} {
			s, err := read()
			got := "refused"
			if err == nil {
				got = "read"
			} else if errors.As(err, new(*canon.NewerError)) {
				got = "newer"
			}
			if got != c.want || got == "read" && !bytes.Equal(s.Bytes(), raw) {
				t.Errorf("%s, in %s: %s, %v", name, form, got, err)
			}
		}
	}
}
