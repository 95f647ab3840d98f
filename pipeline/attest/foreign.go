package attest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// CoverageType is the predicate type of a Coverage, as it is proposed to in-toto
// (in-toto/attestation, pull request 581, version 0.1).
const CoverageType = "https://drvelvetfog.github.io/source-review-coverage/v0.1"

// A Coverage says which tree each approval covered, which tree shipped, and how one
// became the other. Members that the proposal leaves optional, and of which the record
// says nothing that was checked, are left out.
type Coverage struct {
	ReviewCoverage ReviewCoverage `json:"reviewCoverage"`
	Approvals      []OverTree     `json:"approvals"`
	MergeTransform MergeTransform `json:"mergeTransform"`
	ObjectFormat   string         `json:"objectFormat"`
}

// A ReviewCoverage has the result: "identity", the tree that was approved is the one that
// shipped, or "replay", it is the approved change on another tree.
type ReviewCoverage struct {
	Result string `json:"result"`
}

// An OverTree is an approval that counted.
type OverTree struct {
	OverTree   Resource `json:"overTree"`
	Approver   string   `json:"approver"`
	ApprovedAt string   `json:"approvedAt"`
}

// A MergeTransform is how the approved tree became the one that shipped. Kind is
// "identity", "squash" or "mergeCommit"; Parents are of the last alone.
type MergeTransform struct {
	Kind         string     `json:"kind"`
	ReviewedHead Resource   `json:"reviewedHead"`
	BaseAtMerge  Resource   `json:"baseAtMerge"`
	Parents      []Resource `json:"parents,omitempty"`
	ExpectedTree Resource   `json:"expectedTree"`
	ReplayClean  bool       `json:"replayClean"`
}

// AuthorizationType is the predicate type of an Authorization, as gittuf v0.15.0 verifies it.
const AuthorizationType = "https://gittuf.dev/reference-authorization/v0.2"

// An Authorization lets a ref move from one commit to any with one tree. Who signs it is
// whom gittuf takes for the one who approves.
type Authorization struct {
	TargetRef string `json:"targetRef"`
	FromID    string `json:"fromID"`
	TargetID  string `json:"targetID"`
}

// PullRequestApprovalType is the predicate type of a PullRequestApproval, as gittuf v0.15.0
// verifies it.
const PullRequestApprovalType = "https://gittuf.dev/github-pull-request-approval/v0.1"

// A PullRequestApproval says which accounts approved a change on a pull request, and which
// do so no more. gittuf takes the word of whoever signs it if its root of trust has that
// key as an app's. An account is "<login>+<number>".
type PullRequestApproval struct {
	Approvers          []string `json:"approvers"`
	DismissedApprovers []string `json:"dismissedApprovers"`
	TargetRef          string   `json:"targetRef"`
	FromRevisionID     string   `json:"fromRevisionID"`
	TargetTreeID       string   `json:"targetTreeID"`
}

func commit(id string) Resource { return Resource{Digest{GitCommit: id}} }
func tree(id string) Resource   { return Resource{Digest{GitTree: id}} }

func (s settled) coverage() (Statement, error) {
	of := s.of
	if of.Reviewed.Commit == "" {
		return Statement{}, &UnsettledError{s.ID, "there is no commit here whose files are those that were approved, and review-coverage names one"}
	}
	c := &Coverage{
		ReviewCoverage: ReviewCoverage{"replay"}, Approvals: []OverTree{}, ObjectFormat: "sha1",
		MergeTransform: MergeTransform{
			Kind: "squash", ReviewedHead: commit(of.Reviewed.Commit), BaseAtMerge: commit(of.Parents[0]), ExpectedTree: tree(of.Tree), ReplayClean: true,
		},
	}
	if of.Reviewed.Tree == of.Tree {
		c.ReviewCoverage.Result = "identity"
	}
	switch {
	case of.Reviewed.Commit == of.Commit:
		c.MergeTransform.Kind = "identity"
	case len(of.Parents) > 1:
		c.MergeTransform.Kind = "mergeCommit"
		for _, p := range of.Parents {
			c.MergeTransform.Parents = append(c.MergeTransform.Parents, commit(p))
		}
	}
	decisions, err := s.decisions()
	if err != nil {
		return Statement{}, err
	}
	for _, d := range decisions {
		if d.Counted && d.Decision == ledger.Approve && d.Kind == policy.KindFileChange {
			c.Approvals = append(c.Approvals, OverTree{tree(of.Reviewed.Tree), approver(d), d.DecidedAt})
		}
	}
	if len(of.Change.Transactions) > 1 && c.ReviewCoverage.Result == "replay" {
		return Statement{}, &UnsettledError{s.ID, "the commit has the patches of several transactions, and review-coverage knows one"}
	}
	return s.about("", CoverageType, c), nil
}

func (s settled) authorization() (Statement, error) {
	if err := s.named(); err != nil {
		return Statement{}, err
	}
	return s.about(s.of.Tree, AuthorizationType, &Authorization{s.of.Ref, s.of.Parents[0], s.of.Tree}), nil
}

func (s settled) pullRequestApproval() (Statement, error) {
	if err := s.named(); err != nil {
		return Statement{}, err
	}
	p := &PullRequestApproval{[]string{}, []string{}, s.of.Ref, s.of.Parents[0], s.of.Tree}
	decisions, err := s.decisions()
	if err != nil {
		return Statement{}, err
	}
	for _, d := range decisions {
		if d.Decision != ledger.Approve || d.Kind != policy.KindFileChange || !slices.Contains(d.VerifiedBy, "forge") {
			continue
		}
		switch {
		case d.Counted && d.Standing == "stood":
			p.Approvers = append(p.Approvers, approver(d))
		case d.Standing == "fell":
			p.DismissedApprovers = append(p.DismissedApprovers, approver(d))
		}
	}
	if len(p.Approvers) == 0 {
		return Statement{}, &UnsettledError{s.ID, "no account of a forge approved it on a pull request, which is all that this statement is about"}
	}
	slices.Sort(p.Approvers)
	slices.Sort(p.DismissedApprovers)
	p.Approvers = slices.Compact(p.Approvers)
	p.DismissedApprovers = slices.DeleteFunc(slices.Compact(p.DismissedApprovers), func(who string) bool { return slices.Contains(p.Approvers, who) })
	return s.about(s.of.Tree, PullRequestApprovalType, p), nil
}

// named refuses what names no ref.
func (s settled) named() error {
	if s.of.Ref == "" {
		return &UnsettledError{s.ID, "gittuf's statements are about a ref: name it with --ref"}
	}
	return nil
}

// about is a statement of the tree alone, as gittuf wants it, or of the commit with it.
func (s settled) about(treeAlone, predicateType string, predicate any) Statement {
	subject := Subject{Name: s.of.Ref, Digest: Digest{GitCommit: s.of.Commit, GitTree: s.of.Tree}}
	if treeAlone != "" {
		subject = Subject{Digest: Digest{GitTree: treeAlone}}
	}
	return Statement{Subject: []Subject{subject}, PredicateType: predicateType, Predicate: predicate}
}

// approver names who decided: an account as gittuf's app does, with its number, or the
// identity of a clone.
func approver(d Decision) string {
	if approval.IsForge(ledger.Source{Kind: d.Source}) {
		return d.Author.Login + "+" + d.Author.ID
	}
	return d.Author.ID
}

// LinkStep is the step of an in-toto layout that a link is of.
const LinkStep = "countersign"

// The products and the material of a link.
const (
	linkPatch  = "change.diff" // the canonical bytes of the patch, as "countersign diff" writes them
	linkCommit = "commit"
	linkParent = "parent"
)

// A link is the metadata of a step that an in-toto layout demands (in-toto's specification 0.9,
// section 4.3).
type link struct {
	Type        string            `json:"_type"`
	Name        string            `json:"name"`
	Command     []string          `json:"command"`
	Materials   map[string]Digest `json:"materials"`
	Products    map[string]Digest `json:"products"`
	Byproducts  map[string]string `json:"byproducts"`
	Environment struct{}          `json:"environment"`
}

// Link makes of the statement of an approval the signed link of in-toto's step LinkStep, and the
// name that in-toto looks for the file by. It is a DSSE envelope in canonical JSON and one LF.
// Whoever made the statement has verified the record; the link says of it what a layout can ask
// for, its hashes.
func Link(s Statement, sign PlainSignFunc) (name string, raw []byte, err error) {
	p, is := s.Predicate.(*Approval)
	if !is {
		return "", nil, errors.New("a link is made of an approval")
	}
	payload, err := canon.Marshal(link{
		Type: "link", Name: LinkStep, Command: []string{},
		Materials:  map[string]Digest{linkParent: {GitCommit: p.Change.Parent}},
		Products:   map[string]Digest{linkCommit: {GitCommit: s.Commit(), GitTree: s.Tree()}, linkPatch: {SHA256: p.Change.Approved}},
		Byproducts: map[string]string{"result": string(p.Change.Result), "transaction": p.Transaction},
	})
	if err != nil {
		return "", nil, err
	}
	signature, public, err := sign(PAE(PayloadType, payload))
	if err != nil {
		return "", nil, err
	}
	id, err := linkKeyID(public)
	if err != nil {
		return "", nil, err
	}
	raw, err = canon.Line(Envelope{
		Payload: base64.StdEncoding.EncodeToString(payload), PayloadType: PayloadType,
		Signatures: []Signature{{id, base64.StdEncoding.EncodeToString(signature)}},
	})
	return LinkStep + "." + id[:8] + ".link", raw, err
}

// linkKeyID is the id that in-toto gives a public key: the SHA-256 of the key as its layouts
// have it (securesystemslib, metadata of keys).
func linkKeyID(public []byte) (string, error) {
	key, err := x509.ParsePKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	kind, scheme, text := "ecdsa", "ecdsa-sha2-nistp256", ""
	switch key := key.(type) {
	case ed25519.PublicKey:
		kind, scheme, text = "ed25519", "ed25519", hex.EncodeToString(key)
	case *ecdsa.PublicKey:
		text = string(bytes.TrimSpace(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
	default:
		return "", errors.New("in-toto knows no key of this kind")
	}
	// in-toto's canonical JSON escapes nothing but quotes and backslashes, of which a key has none:
	// the lines of a PEM block stand as they are.
	return canon.Hex([]byte(`{"keyid_hash_algorithms":["sha256","sha512"],"keytype":"` + kind + `","keyval":{"public":"` + text + `"},"scheme":"` + scheme + `"}`)), nil
}
