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

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

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
