package witness

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// A Key is the public Ed25519 key of a log or of a witness, with its name.
type Key struct {
	name    string
	public  [ed25519.PublicKeySize]byte
	cosigns bool
}

// What a key signs: the byte that is part of its id (c2sp.org/signed-note).
const (
	signsNotes       = 0x01
	signsCosignature = 0x04
	signsPostQuantum = 0x06
)

// NewKey is the key of a log, or, if it cosigns, of a witness.
func NewKey(name string, public ed25519.PublicKey, cosigns bool) (Key, error) {
	if !IsName(name) {
		return Key{}, errors.New("a name is at most 200 bytes that show, without a space or a plus, such as github.com/acme/app")
	}
	if len(public) != ed25519.PublicKeySize {
		return Key{}, errors.New("it is no Ed25519 key")
	}
	return Key{name, [ed25519.PublicKeySize]byte(public), cosigns}, nil
}

// ParseKey reads a verifier key, "NAME+ID+BASE64".
func ParseKey(text string) (Key, error) {
	name, rest, _ := strings.Cut(text, "+")
	id, encoded, _ := strings.Cut(rest, "+")
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(raw) == 0 || !IsName(name) {
		return Key{}, errors.New("it is no verifier key, NAME+ID+BASE64")
	}
	switch raw[0] {
	case signsNotes, signsCosignature:
	case signsPostQuantum:
		return Key{}, errors.New("it is an ML-DSA-44 key, and only Ed25519 is supported")
	default:
		return Key{}, errors.New("it is of a kind that is not supported")
	}
	k, err := NewKey(name, raw[1:], raw[0] == signsCosignature)
	if err == nil && fmt.Sprintf("%08x", k.KeyHash()) != id {
		err = errors.New("its id does not belong to it")
	}
	return k, err
}

// String is the verifier key.
func (k Key) String() string {
	return fmt.Sprintf("%s+%08x+%s", k.name, k.KeyHash(), base64.StdEncoding.EncodeToString(k.encoded()))
}

func (k Key) encoded() []byte {
	kind := byte(signsNotes)
	if k.cosigns {
		kind = signsCosignature
	}
	return append([]byte{kind}, k.public[:]...)
}

// Name is the key's name; a log's is the origin of its checkpoints.
func (k Key) Name() string { return k.name }

// Cosigns reports whether it is the key of a witness.
func (k Key) Cosigns() bool { return k.cosigns }

// KeyHash is the id, with which a signature names the key beside the name.
func (k Key) KeyHash() uint32 {
	sum := sha256.Sum256(append([]byte(k.name+"\n"), k.encoded()...))
	return binary.BigEndian.Uint32(sum[:])
}

// Verify reports whether a signature is the key's, of a checkpoint.
func (k Key) Verify(text, signature []byte) bool {
	if _, err := ParseCheckpoint(string(text)); err != nil {
		return false
	}
	if !k.cosigns {
		return ed25519.Verify(k.public[:], text, signature)
	}
	at, ok := timeOf(signature)
	return ok && ed25519.Verify(k.public[:], cosigned(at, text), signature[8:])
}

var _ note.Verifier = Key{}

// cosigned is what a witness signs of a checkpoint (c2sp.org/tlog-cosignature).
func cosigned(at int64, text []byte) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", at), text...)
}

// lastTime is the end of the year 9999: RFC 3339, in which times are told, has no later one.
const lastTime = 253402300799

// timeOf is the time of a cosignature, in seconds since 1970. One without a time says
// nothing of what is newest, and is none.
func timeOf(signature []byte) (int64, bool) {
	if len(signature) != 8+ed25519.SignatureSize {
		return 0, false
	}
	at := binary.BigEndian.Uint64(signature)
	return int64(at & math.MaxInt64), at > 0 && at <= lastTime
}

// A Sign signs a message with a private Ed25519 key.
type Sign func(message []byte) (signature []byte, err error)

// A signer signs with a key, at a time if it cosigns.
type signer struct {
	Key
	sign Sign
	at   int64
}

func (s signer) Sign(text []byte) ([]byte, error) {
	if !s.cosigns {
		return s.sign(text)
	}
	signature, err := s.sign(cosigned(s.at, text))
	return append(binary.BigEndian.AppendUint64(nil, uint64(s.at)), signature...), err
}

// SignLog is a checkpoint signed with the key of its log.
func (c Checkpoint) SignLog(k Key, sign Sign) ([]byte, error) {
	if k.cosigns || k.name != c.Origin {
		return nil, errors.New("the key is not that of the checkpoint's log")
	}
	return c.signed(signer{Key: k, sign: sign})
}

// Cosign is the line with which a witness signs a checkpoint, at a time in seconds since 1970.
func (c Checkpoint) Cosign(k Key, sign Sign, at int64) ([]byte, error) {
	if !k.cosigns || at <= 0 {
		return nil, errors.New("the key is not a witness's, or there is no time")
	}
	raw, err := c.signed(signer{k, sign, at})
	if err != nil {
		return nil, err
	}
	return raw[len(c.Text())+1:], nil
}

// signed holds what was signed to the key: the private one may be another's.
func (c Checkpoint) signed(s signer) ([]byte, error) {
	raw, err := note.Sign(&note.Note{Text: c.Text()}, s)
	if err != nil {
		return nil, fmt.Errorf("signing a checkpoint: %w", err)
	}
	if _, err := note.Open(raw, note.VerifierList(s.Key)); err != nil {
		return nil, errors.New("signing a checkpoint: the private key is not that of " + s.name)
	}
	return raw, nil
}
