// Package attest makes statements of settled transactions for programs that know
// nothing of the ledger, and reads them again. It is pure: the record, the commits, the
// keys and the time come from the caller.
//
// A file holds a DSSE envelope (DSSE 1.0.2) around an in-toto Statement v1, both as
// canonical JSON, the envelope with one LF behind it:
//
//	{"payload":"eyJfdHlwZSI6…","payloadType":"application/vnd.in-toto+json","signatures":[{"keyid":"SHA256:…","sig":"LS0tLS1CRUdJTiBTU0gg…"}]}
//
// keyid is the fingerprint of an SSH key. sig is in base64 what "ssh-keygen -Y sign"
// writes, armor and all, of the bytes that DSSE says are signed (PAE). What is read must
// be what would be written, to the byte: one signed statement has one file.
//
// docs/attestations.md has the members of each statement and what they prove.
package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// StatementType is the _type of an in-toto Statement v1.
const StatementType = "https://in-toto.io/Statement/v1"

// A Digest names what a statement is about by its hashes, as in-toto's DigestSet.
type Digest struct {
	GitCommit string `json:"gitCommit,omitempty"`
	GitTree   string `json:"gitTree,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
}

// has are the names of the hashes, in this order.
func (d Digest) has() string {
	var all []string
	for i, hash := range []string{d.GitCommit, d.GitTree, d.SHA256} {
		if hash != "" {
			all = append(all, [...]string{"gitCommit", "gitTree", "sha256"}[i])
		}
	}
	return strings.Join(all, " ")
}

// A Subject is one thing that a statement is about.
type Subject struct {
	Name        string       `json:"name,omitempty"`
	URI         string       `json:"uri,omitempty"` // of a page for people, where the predicate is a Summary
	Digest      Digest       `json:"digest"`
	Annotations *Annotations `json:"annotations,omitempty"` // the same
}

// A Resource names something by its hashes alone, as in-toto's ResourceDescriptor.
type Resource struct {
	Digest Digest `json:"digest"`
}

// A Statement is an in-toto Statement v1 of one of the predicate types here.
type Statement struct {
	Subject       []Subject
	PredicateType string
	Predicate     any // *Approval, *Coverage, *Authorization, *PullRequestApproval or *Summary
}

// header is the JSON of a Statement.
type header struct {
	Type          string          `json:"_type"`
	Subject       []Subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// gittufHeader is the JSON of an Authorization: gittuf reads the names that the members
// have in in-toto's protobuf definition, and no others.
type gittufHeader struct {
	Type          string          `json:"type"`
	Subject       []Subject       `json:"subject"`
	PredicateType string          `json:"predicate_type"`
	Predicate     json.RawMessage `json:"predicate"`
}

// A kind is what is particular to the statements of one predicate type.
type kind struct {
	name      string // on the command line, and of files
	namespace string // of the SSH signature
	gittuf    bool   // it is written with a gittufHeader
	predicate func() any
	subjects  []string // the hashes of each, as Digest.has tells them
}

// Namespace is what signatures of statements are for. One that was made for a commit, a
// file or a decision is none of a statement.
const Namespace = "countersign-attestation@v1"

// gittufNamespace is the only one that gittuf verifies (v0.15.0). No commit can begin as
// the bytes that are signed here do, so that a signature of either is none of the other.
const gittufNamespace = "git"

var kinds = map[string]kind{
	ApprovalType:            {"approval", Namespace, false, func() any { return new(Approval) }, []string{"gitCommit gitTree", "sha256"}},
	CoverageType:            {"review-coverage", Namespace, false, func() any { return new(Coverage) }, []string{"gitCommit gitTree"}},
	AuthorizationType:       {"gittuf-authorization", gittufNamespace, true, func() any { return new(Authorization) }, []string{"gitTree"}},
	SummaryType:             {"vsa", Namespace, false, func() any { return new(Summary) }, []string{"gitCommit gitTree"}},
	PullRequestApprovalType: {"gittuf-pull-request-approval", gittufNamespace, false, func() any { return new(PullRequestApproval) }, []string{"gitTree"}},
}

// Names are the short names of the predicate types, with which the command line asks for
// them, in the order in which they are told to people.
var Names = []string{"approval", "review-coverage", "gittuf-authorization", "gittuf-pull-request-approval", "vsa"}

// TypeOf is the predicate type with a short name, "" for a name that none has.
func TypeOf(name string) string {
	for uri, k := range kinds {
		if k.name == name {
			return uri
		}
	}
	return ""
}

// Name is the short name of a predicate type.
func Name(predicateType string) string { return kinds[predicateType].name }

// Bytes are the statement as it is signed: canonical JSON. A statement that has no such
// form is an error, which says so.
func (s Statement) Bytes() ([]byte, error) {
	k, known := kinds[s.PredicateType]
	if !known {
		return nil, fmt.Errorf("the predicate type %.200q is not one of this program's", s.PredicateType)
	}
	predicate, err := canon.Marshal(s.Predicate)
	if err != nil {
		return nil, err
	}
	if k.gittuf {
		return canon.Marshal(gittufHeader{StatementType, s.Subject, s.PredicateType, predicate})
	}
	return canon.Marshal(header{StatementType, s.Subject, s.PredicateType, predicate})
}

// ParseStatement reads what Bytes writes, and nothing else: no other member, none less,
// no other order.
func ParseStatement(raw []byte) (Statement, error) {
	if !canon.IsCanonical(raw) {
		return Statement{}, errors.New("the statement is not canonical JSON")
	}
	var h header
	var g gittufHeader
	if err := canon.Unmarshal(raw, &h); err != nil {
		if canon.Unmarshal(raw, &g) != nil {
			return Statement{}, fmt.Errorf("the statement is not an in-toto statement: %w", err)
		}
		h = header(g)
	}
	k, known := kinds[h.PredicateType]
	if number, is := strings.CutPrefix(h.PredicateType, strings.TrimSuffix(ApprovalType, "1")); is && !known {
		if err := canon.CheckVersion("the statement", number+".0"); err != nil {
			return Statement{}, err
		}
	}
	switch {
	case h.Type != StatementType:
		return Statement{}, fmt.Errorf("the statement's type is %.200q, not %s", h.Type, StatementType)
	case !known:
		return Statement{}, fmt.Errorf("the predicate type %.200q is not one of this program's", h.PredicateType)
	case !slices.EqualFunc(h.Subject, k.subjects, func(one Subject, want string) bool {
		return one.Digest.has() == want && (h.PredicateType == SummaryType || one.URI == "" && one.Annotations == nil)
	}):
		return Statement{}, fmt.Errorf("the statement is about something else than one of %s is", k.name)
	}
	s := Statement{Subject: h.Subject, PredicateType: h.PredicateType, Predicate: k.predicate()}
	err := canon.UnmarshalDocument("the statement", h.Predicate, s.Predicate)
	if a, is := s.Predicate.(*Approval); is && err == nil {
		err = canon.CheckGrowth("the statement", a.Extra, "")
	}
	if err != nil {
		return Statement{}, fmt.Errorf("the predicate is not one of %s: %w", h.PredicateType, err)
	}
	if again, err := s.Bytes(); err != nil || !bytes.Equal(again, raw) {
		return Statement{}, errors.New("the statement is not written as this program writes it")
	}
	return s, nil
}

// Digest is the first subject's hash that programs look an artifact up by, with its algorithm,
// as in "sha256:…": the patch's where there is one, else the commit's or the tree's.
func (s Statement) Digest() string {
	if sum := s.first(func(d Digest) string { return d.SHA256 }); sum != "" {
		return "sha256:" + sum
	}
	if commit := s.Commit(); commit != "" {
		return "gitCommit:" + commit
	}
	return "gitTree:" + s.Tree()
}

// Commit is the commit that the statement is about, "" where it names none.
func (s Statement) Commit() string { return s.first(func(d Digest) string { return d.GitCommit }) }

// Tree is the Git tree that the statement is about, "" where it names none.
func (s Statement) Tree() string { return s.first(func(d Digest) string { return d.GitTree }) }

// first is the first hash of a kind that a subject has.
func (s Statement) first(hash func(Digest) string) string {
	for _, one := range s.Subject {
		if found := hash(one.Digest); found != "" {
			return found
		}
	}
	return ""
}
