package attest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// PayloadType says what a DSSE envelope holds (in-toto's envelope layer).
const PayloadType = "application/vnd.in-toto+json"

// An Envelope is a DSSE envelope. Payload and Sig are base64.
type Envelope struct {
	Payload     string      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []Signature `json:"signatures"`
}

// A Signature is one of a DSSE envelope.
type Signature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
}

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 16 << 20

// PAE are the bytes that DSSE signs of a payload and its type (protocol.md of DSSE 1.0.2).
func PAE(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

// A SignFunc returns the armored SSH signature of a message in a namespace.
type SignFunc func(namespace string, message []byte) (armored string, err error)

// Sign puts a statement into a signed envelope, which is canonical JSON and one LF.
func Sign(s Statement, sign SignFunc) ([]byte, error) {
	payload, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	namespace, message := kinds[s.PredicateType].namespace, PAE(PayloadType, payload)
	armored, err := sign(namespace, message)
	if err != nil {
		return nil, err
	}
	fingerprint, err := sshsig.MadeWith(namespace, message, armored)
	if err != nil {
		return nil, fmt.Errorf("what was signed: %w", err)
	}
	return canon.Line(Envelope{
		Payload: base64.StdEncoding.EncodeToString(payload), PayloadType: PayloadType,
		Signatures: []Signature{{fingerprint, base64.StdEncoding.EncodeToString([]byte(armored))}},
	})
}

// An Opened envelope is one that could be read. Nothing says yet whose it is.
type Opened struct {
	Statement   Statement
	Payload     []byte // the statement's bytes
	Fingerprint string // of the key that the envelope names
	armored     string
}

// Open reads what Sign writes, and nothing else.
func Open(raw []byte) (Opened, error) {
	var e Envelope
	line, ended := bytes.CutSuffix(raw, []byte("\n"))
	if !ended {
		return Opened{}, errors.New("it does not end with a newline")
	}
	if err := canon.Unmarshal(line, &e); err != nil {
		return Opened{}, fmt.Errorf("it is not a DSSE envelope: %w", err)
	}
	if again, err := canon.Line(e); err != nil || !bytes.Equal(again, raw) {
		return Opened{}, errors.New("it is not written as this program writes an envelope")
	}
	if e.PayloadType != PayloadType {
		return Opened{}, fmt.Errorf("its payload is %.100q, not %s", e.PayloadType, PayloadType)
	}
	if len(e.Signatures) != 1 {
		return Opened{}, fmt.Errorf("it has %d signatures, not one", len(e.Signatures))
	}
	payload, err := decode(e.Payload)
	if err != nil {
		return Opened{}, fmt.Errorf("its payload: %w", err)
	}
	armored, err := decode(e.Signatures[0].Sig)
	if err != nil {
		return Opened{}, fmt.Errorf("its signature: %w", err)
	}
	s, err := ParseStatement(payload)
	if err != nil {
		return Opened{}, err
	}
	return Opened{s, payload, e.Signatures[0].KeyID, string(armored)}, nil
}

// decode reads base64 in its one form: with padding, and no other bits in it.
func decode(text string) ([]byte, error) {
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(data) != text { // line breaks are passed over
		return nil, errors.New("it is not base64 in its one form")
	}
	return data, nil
}

// Verify says who signed the statement: by a key that is listed, for this namespace, and
// valid at a time. The principal is the first name on the key's line, and may be a pattern.
func (o Opened) Verify(allowed sshsig.Allowed, at time.Time) (principal string, err error) {
	principal, fingerprint, err := allowed.Verify(kinds[o.Statement.PredicateType].namespace, PAE(PayloadType, o.Payload), o.armored, at)
	if err != nil {
		return "", err
	}
	if fingerprint != o.Fingerprint {
		return "", fmt.Errorf("it names the key %.100q, and was signed with %s", o.Fingerprint, fingerprint)
	}
	return principal, nil
}

// Agree compares a statement with the one that was made again from the record. Where it
// could not be told here what vouches for a key, the statement's word for it is left as it
// is, and unknown is true.
func Agree(stated, again Statement) (agree, unknown bool, err error) {
	if a, ok := stated.Predicate.(*Approval); ok {
		if b, ok := again.Predicate.(*Approval); ok && len(a.Decisions) == len(b.Decisions) {
			b.Extra = a.Extra // what a later version says besides is left as it is
			for i := range a.Decisions {
				said, found := a.Decisions[i].Key, b.Decisions[i].Key
				if said == nil || found == nil || said.Listed == found.Listed {
					continue
				}
				switch {
				case said.Listed == Unknown: // it claims less than is so
				case found.Listed == Unknown && (said.Listed == listed || said.Listed == registered):
					unknown = true
				default:
					return false, false, nil
				}
				found.Listed = said.Listed
			}
		}
	}
	if a, ok := stated.Predicate.(*Summary); ok {
		if b, ok := again.Predicate.(*Summary); ok {
			b.at(a.TimeVerified)
		}
	}
	one, err := stated.Bytes()
	if err != nil {
		return false, false, err
	}
	other, err := again.Bytes()
	return bytes.Equal(one, other), unknown, err
}
