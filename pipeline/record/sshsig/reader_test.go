package sshsig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
)

// A second reader of keys and signatures, which has nothing of the SSH library: what verifies
// here must take what it takes, and nothing else.

// The types of keys (RFC 4253, 6.6; RFC 5656, 3.1; RFC 8709, 4; OpenSSH's PROTOCOL.u2f),
// and what RSA signs with (RFC 8332, 3).
const (
	typeEd25519   = "ssh-ed25519"
	typeECDSA256  = "ecdsa-sha2-nistp256"
	typeECDSA384  = "ecdsa-sha2-nistp384"
	typeECDSA521  = "ecdsa-sha2-nistp521"
	typeRSA       = "ssh-rsa"
	typeSKEd25519 = "sk-ssh-ed25519@openssh.com"
	typeSKECDSA   = "sk-ecdsa-sha2-nistp256@openssh.com"

	rsaSHA256 = "rsa-sha2-256"
	rsaSHA512 = "rsa-sha2-512"
)

// Which RSA keys are believed here. OpenSSH makes none that are longer; without a bound,
// whoever writes a key decides how long it takes to check it.
const (
	maxRSABits      = 16384
	maxExponentBits = 24
)

// A publicKey is one that can verify here, of a type of keyTypes. One of
// its three keys is set.
type publicKey struct {
	kind        string
	blob        []byte // SSH's encoding, its only one
	ed25519     ed25519.PublicKey
	ecdsa       *ecdsa.PublicKey
	rsa         *rsa.PublicKey
	application string // of a security key, "ssh:" for SSH
}

func (k *publicKey) hardware() bool      { return strings.HasPrefix(k.kind, "sk-") }
func (k *publicKey) fingerprint() string { return fingerprint(k.blob) }

// decodeKey reads SSH's encoding of a key of a type, nil for what is not that.
func decodeKey(kind string, blob []byte) *publicKey {
	key := &publicKey{kind: kind, blob: bytes.Clone(blob)}
	r := &reader{left: key.blob}
	if string(r.bytes()) != kind {
		return nil
	}
	switch kind {
	case typeEd25519, typeSKEd25519:
		key.ed25519 = r.bytes()
		r.bad = r.bad || len(key.ed25519) != ed25519.PublicKeySize
	case typeECDSA256, typeECDSA384, typeECDSA521, typeSKECDSA:
		curve, name := curves[kind], r.bytes()
		point, err := ecdsa.ParseUncompressedPublicKey(curve.curve, r.bytes())
		key.ecdsa, r.bad = point, r.bad || err != nil || string(name) != curve.name
	case typeRSA:
		e, n := r.number(), r.number()
		r.bad = r.bad || n.BitLen() > maxRSABits || e.BitLen() > maxExponentBits || e.Cmp(big.NewInt(3)) < 0 || e.Bit(0) == 0
		key.rsa = &rsa.PublicKey{N: n, E: int(e.Int64())}
	}
	if key.hardware() {
		key.application = string(r.bytes())
	}
	if !r.done() {
		return nil
	}
	return key
}

// curves have the curve and the hash of ECDSA's types of keys (RFC 5656, 6.2.1, 10.1).
var curves = map[string]struct {
	name  string
	curve elliptic.Curve
	hash  crypto.Hash
}{
	typeECDSA256: {"nistp256", elliptic.P256(), crypto.SHA256},
	typeECDSA384: {"nistp384", elliptic.P384(), crypto.SHA384},
	typeECDSA521: {"nistp521", elliptic.P521(), crypto.SHA512},
	typeSKECDSA:  {"nistp256", elliptic.P256(), crypto.SHA256},
}

// A rawSignature is the innermost part of a signature: its algorithm, its bytes, and of a
// security key its flags and counter, which the key signs as well.
type rawSignature struct {
	algorithm string
	bytes     []byte
	counter   []byte // 5 bytes, or none
}

func parseRawSignature(data []byte) (rawSignature, error) {
	r := reader{left: data}
	sig := rawSignature{algorithm: string(r.bytes()), bytes: r.bytes()}
	if r.bad {
		return sig, malformed("its innermost part is cut short")
	}
	sig.counter = r.left
	return sig, nil
}

const userPresent = 1 << 0

// verify checks that the key signed the data, and before that the form of the signature:
// with a second form of one, anybody could make a second signed commit of one.
func (k *publicKey) verify(data []byte, sig rawSignature) error {
	counter, want := 0, k.kind
	if k.hardware() {
		counter = 5
	}
	if k.rsa != nil {
		switch want = rsaSHA512; sig.algorithm {
		case typeRSA:
			return fmt.Errorf("%w: RSA with SHA-1", ErrUnsupported)
		case rsaSHA256:
			want = rsaSHA256
		}
		if len(sig.bytes) != k.rsa.Size() {
			return malformed("its number is not as long as the RSA key")
		}
	}
	if sig.algorithm != want {
		return malformed("it is a signature of %q by a key of %q", sig.algorithm, k.kind)
	}
	if len(sig.counter) != counter {
		return malformed("something follows its innermost part")
	}
	n := reader{left: sig.bytes}
	var first, second *big.Int
	if k.ecdsa != nil {
		if first, second = n.number(), n.number(); !n.done() {
			return malformed("its numbers are not in their shortest form")
		}
	}
	if k.hardware() && !strings.HasPrefix(k.application, "ssh:") {
		return fmt.Errorf("%w: a website's", ErrUnsupported)
	}
	if k.hardware() {
		application, message := sha256.Sum256([]byte(k.application)), sha256.Sum256(data)
		data = bytes.Join([][]byte{application[:], sig.counter, message[:]}, nil)
	}
	var ok bool
	switch {
	case k.hardware() && sig.counter[0]&userPresent == 0: // nobody touched it
	case k.ed25519 != nil:
		ok = ed25519.Verify(k.ed25519, data, sig.bytes)
	case k.ecdsa != nil:
		ok = ecdsa.Verify(k.ecdsa, digest(curves[k.kind].hash, data), first, second)
	case k.rsa != nil:
		hash := crypto.SHA512
		if want == rsaSHA256 {
			hash = crypto.SHA256
		}
		ok = rsa.VerifyPKCS1v15(k.rsa, hash, digest(hash, data), sig.bytes) == nil
	}
	if !ok {
		return fmt.Errorf("%w: %s did not sign this", ErrBadSignature, k.fingerprint())
	}
	return nil
}

func digest(hash crypto.Hash, data []byte) []byte {
	h := hash.New()
	h.Write(data)
	return h.Sum(nil)
}

func fingerprint(public []byte) string {
	sum := sha256.Sum256(public)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// A reader reads SSH's data types (RFC 4251, 5) from the front of what is left. After
// what is cut short, or not in its one form, it is bad, and reads nothing more.
type reader struct {
	left []byte
	bad  bool
}

// take reads n bytes.
func (r *reader) take(n uint32) []byte {
	if r.bad || uint64(n) > uint64(len(r.left)) {
		r.bad = true
		return nil
	}
	out := r.left[:n:n]
	r.left = r.left[n:]
	return out
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// bytes reads a string.
func (r *reader) bytes() []byte { return r.take(r.uint32()) }

// number reads an mpint that is not negative, and without needless bytes before it.
func (r *reader) number() *big.Int {
	b := r.bytes()
	if len(b) > 0 && (b[0] >= 0x80 || b[0] == 0 && (len(b) == 1 || b[1] < 0x80)) {
		r.bad = true
	}
	if r.bad {
		return new(big.Int)
	}
	return new(big.Int).SetBytes(b)
}

// done reports whether everything was read, and all of it was good.
func (r *reader) done() bool { return !r.bad && len(r.left) == 0 }
