package attest

import (
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// SummaryType is the predicate type of a Summary (SLSA 1.2, "Verification Summary Attestation").
const SummaryType = "https://slsa.dev/verification_summary/v1"

// SourceLevel is the level of SLSA's Source track that a record shows: what the forge prevents at all times, which the
// levels from 2 on ask for, is not in it (docs/slsa.md).
const SourceLevel = "SLSA_SOURCE_LEVEL_1"

// verifierID names this program: who signs is whom a consumer trusts to have run it.
const verifierID = "pkg:golang/github.com/countersign-dev/countersign"

// A Summary says what SLSA level a commit was verified at, in the form of SLSA's Source track 1.2. The one of InputAttestations is the
// statement of the approval, by the hash of its bytes, which is the source provenance; its URI is the record in the ledger at a
// commit of it.
type Summary struct {
	Verifier           Verifier `json:"verifier"`
	TimeVerified       string   `json:"timeVerified"`
	ResourceURI        string   `json:"resourceUri"`
	Policy             Input    `json:"policy"`
	InputAttestations  []Input  `json:"inputAttestations"`
	VerificationResult string   `json:"verificationResult"`
	VerifiedLevels     []string `json:"verifiedLevels"`
	SLSAVersion        string   `json:"slsaVersion"`
}

// A Verifier is who verified.
type Verifier struct {
	ID string `json:"id"`
}

// An Input is something that was looked at, by its address and its hash.
type Input struct {
	URI    string `json:"uri"`
	Digest Digest `json:"digest"`
}

// Annotations are what the Source track adds to a subject: the refs that it was on.
type Annotations struct {
	SourceRefs []string `json:"sourceRefs"`
}

func (s settled) summary() (Statement, error) {
	of := s.of
	if of.Resource == "" {
		return Statement{}, &UnsettledError{s.ID, "a VSA names the repository, and where people see this one is not known (--forge, or a remote on a forge)"}
	}
	accounts := 0
	for _, c := range of.Change.Transactions {
		if c.Explains {
			accounts++
		}
	}
	if accounts != 1 {
		return Statement{}, &UnsettledError{s.ID, "the commit has the patches of several transactions, and this VSA is about one"}
	}
	provenance, err := s.approval()
	if err != nil {
		return Statement{}, err
	}
	raw, err := provenance.Bytes()
	if err != nil {
		return Statement{}, err
	}
	repository := "git+" + of.Resource
	a := provenance.Predicate.(*Approval)
	subject := Subject{URI: of.Page, Digest: Digest{GitCommit: of.Commit, GitTree: of.Tree}}
	if of.Ref != "" {
		subject.Annotations = &Annotations{[]string{of.Ref}}
	}
	return Statement{Subject: []Subject{subject}, PredicateType: SummaryType, Predicate: &Summary{
		Verifier: Verifier{verifierID}, TimeVerified: of.At, ResourceURI: repository,
		Policy:             Input{repository + "@" + a.Policy.Commit + "#" + policy.Path, a.Policy.Digest},
		InputAttestations:  []Input{{repository + "@" + s.Record.Commit + "#" + ledger.Dir(s.ID), Digest{SHA256: canon.Hex(raw)}}},
		VerificationResult: "PASSED", VerifiedLevels: []string{SourceLevel}, SLSAVersion: "1.2",
	}}, nil
}

// Record is the commit of the ledger, and the transaction, that a Summary names; "" where it names none.
func (s Summary) Record() (commit, id string) {
	if len(s.InputAttestations) != 1 {
		return "", ""
	}
	at, dir, _ := strings.Cut(strings.TrimPrefix(s.InputAttestations[0].URI, s.ResourceURI+"@"), "#")
	id = dir[strings.LastIndexByte(dir, '/')+1:]
	if !canon.IsGitID(at) || ledger.CheckID(id) != nil || ledger.Dir(id) != dir {
		return "", ""
	}
	return at, id
}

// at gives a Summary that was made again the time of the one that it is compared with, which only its signer knows.
func (s *Summary) at(stated string) {
	if t, err := time.Parse(time.RFC3339, stated); err == nil && ledger.FormatTime(t) == stated {
		s.TimeVerified = stated
	}
}
