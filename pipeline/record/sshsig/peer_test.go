package sshsig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// The reader of reader_test.go is the peer here: what verifies takes the keys and the
// signatures that it takes, and no others.

// A signedByPeer is a key in SSH's encoding, and what it signed of peerMessage.
type signedByPeer struct {
	name, kind     string
	key, signature []byte
}

var peerMessage = []byte("what is signed")

// signedByPeers has every type of key that verifies, and every algorithm.
func signedByPeers(t testing.TB) []signedByPeer {
	t.Helper()
	var all []signedByPeer
	for _, f := range fixtures(t) {
		signer := f.signer(t)
		algorithms := []string{signer.PublicKey().Type()}
		if algorithms[0] == ssh.KeyAlgoRSA {
			algorithms = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
		}
		for _, algorithm := range algorithms {
			made, err := signer.SignWithAlgorithm(nil, peerMessage, algorithm)
			fatal(t, err)
			all = append(all, signedByPeer{f.name + " " + algorithm, signer.PublicKey().Type(), signer.PublicKey().Marshal(), ssh.Marshal(made)})
		}
	}
	for _, flags := range []byte{0, userPresent, userPresent | flagVerified, 0xff} {
		all = append(all, signedByDevice(t, ssh.KeyAlgoSKED25519, "ssh:", flags), signedByDevice(t, ssh.KeyAlgoSKECDSA256, "ssh:", flags))
	}
	return append(all, signedByDevice(t, ssh.KeyAlgoSKED25519, "ssh:a", userPresent), signedByDevice(t, ssh.KeyAlgoSKECDSA256, "ssh:other", userPresent))
}

// signedByDevice signs as a security key does (OpenSSH's PROTOCOL.u2f).
func signedByDevice(t testing.TB, kind, application string, flags byte) signedByPeer {
	t.Helper()
	counter := []byte{flags, 0, 0, 1, 9}
	app, text := sha256.Sum256([]byte(application)), sha256.Sum256(peerMessage)
	data := slices.Concat(app[:], counter, text[:])
	out := signedByPeer{name: kind + " " + application, kind: kind}
	sig := ssh.Signature{Format: kind, Rest: counter}
	if kind == ssh.KeyAlgoSKED25519 {
		private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
		out.key = ssh.Marshal(struct{ Type, Key, Application string }{kind, string(private.Public().(ed25519.PublicKey)), application})
		sig.Blob = ed25519.Sign(private, data)
	} else {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		fatal(t, err)
		point, err := private.PublicKey.Bytes()
		fatal(t, err)
		out.key = ssh.Marshal(struct{ Type, Curve, Point, Application string }{kind, "nistp256", string(point), application})
		sum := sha256.Sum256(data)
		r, s, err := ecdsa.Sign(rand.Reader, private, sum[:])
		fatal(t, err)
		sig.Blob = ssh.Marshal(struct{ R, S *big.Int }{r, s})
	}
	out.signature = ssh.Marshal(sig)
	return out
}

// comparePeers fails where one takes what the other does not.
func comparePeers(t testing.TB, what, kind string, blob, signature []byte) {
	t.Helper()
	if formats[kind] == nil {
		return
	}
	key, err := parseKey(blob)
	ours, theirs := err == nil && key.Type() == kind, decodeKey(kind, blob)
	if theirs != nil && theirs.rsa != nil && theirs.rsa.N.BitLen() < MinRSABits {
		theirs = nil
	}
	if ours != (theirs != nil) {
		t.Fatalf("%s: the key is taken: %v; by the peer: %v\n%q", what, ours, theirs != nil, blob)
	}
	if !ours {
		return
	}
	if theirs.fingerprint() != ssh.FingerprintSHA256(key) {
		t.Fatalf("%s: fingerprint %s", what, theirs.fingerprint())
	}
	flags, _, err := verify(key, peerMessage, signature)
	sig, want := parseRawSignature(signature)
	if want == nil {
		want = theirs.verify(peerMessage, sig)
	}
	if (err == nil) != (want == nil) {
		t.Fatalf("%s: %v; the peer says %v\n%q", what, err, want, signature)
	}
	if err == nil && theirs.hardware() && flags != sig.counter[0] {
		t.Fatalf("%s: flags %x", what, flags)
	}
	if err != nil && kinds(err) != 1 {
		t.Fatalf("%s: %v is of %d kinds", what, err, kinds(err))
	}
}

// TestPeer: every bit of keys and signatures of all types.
func TestPeer(t *testing.T) {
	for i, s := range signedByPeers(t) {
		if curve := strings.HasPrefix(s.name, "ecdsa-"); (i%3 > 0 || curve) && !strings.HasPrefix(s.name, "ecdsa-256") && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			touched := !strings.HasPrefix(s.kind, "sk-") || s.signature[len(s.signature)-5]&userPresent != 0
			key, err := parseKey(s.key)
			fatal(t, err)
			sig, err := parseRawSignature(s.signature)
			fatal(t, err)
			want := error(nil)
			if sig.algorithm == typeRSA {
				want = ErrUnsupported
			} else if !touched {
				want = ErrBadSignature
			}
			_, _, err = verify(key, peerMessage, s.signature)
			wantErr(t, "as it is", err, want)
			if _, _, err := verify(key, []byte("another"), s.signature); err == nil {
				t.Error("it is verified for another message")
			}
			comparePeers(t, "as it is", s.kind, s.key, s.signature)
			alter(s.key, func(what string, changed []byte) { comparePeers(t, "key, "+what, s.kind, changed, s.signature) })
			alter(s.signature, func(what string, changed []byte) {
				comparePeers(t, "signature, "+what, s.kind, s.key, changed)
				if _, _, err := verify(key, peerMessage, changed); err == nil {
					t.Errorf("%s: verified", what)
				}
			})
			for kind := range formats {
				comparePeers(t, "as "+kind, kind, s.key, s.signature)
				comparePeers(t, "said to be "+kind, kind, bytes.Replace(s.key, []byte(s.kind), []byte(kind), 1), s.signature)
			}
		})
	}
}

// alter yields what is one bit, one byte or one end away. COUNTERSIGN_LONG=1 is for
// every bit of the first bytes, and not one of each.
func alter(data []byte, yield func(what string, changed []byte)) {
	all := os.Getenv("COUNTERSIGN_LONG") != ""
	for i := range data {
		for bit := range 8 {
			if (i < 64 && all) || bit == i%8 {
				changed := bytes.Clone(data)
				changed[i] ^= 1 << bit
				yield("a bit", changed)
			}
		}
		yield("cut", data[:i])
		yield("without a byte", slices.Concat(data[:i], data[i+1:]))
		yield("a zero more", slices.Concat(data[:i], []byte{0}, data[i:]))
	}
	yield("a zero after it", append(bytes.Clone(data), 0))
	yield("an empty string after it", append(bytes.Clone(data), 0, 0, 0, 0))
}

// TestPeerNumbers: numbers of RSA keys at the bounds, and of signatures of ECDSA.
func TestPeerNumbers(t *testing.T) {
	n := new(big.Int).Lsh(big.NewInt(1), 2047)
	n.SetBit(n, 0, 1)
	for _, e := range []int64{-3, 0, 1, 2, 3, 4, 5, 65537, 1<<24 - 1, 1 << 24, 1<<24 + 1, 1<<31 - 1, 1 << 40} {
		for _, bits := range []int{1, 2047, 2048, 16384, 16385} {
			modulus := new(big.Int).Lsh(n, uint(max(bits-2048, 0)))
			modulus.Rsh(modulus, uint(max(2048-bits, 0)))
			comparePeers(t, "RSA", typeRSA, ssh.Marshal(struct {
				Type string
				E, N *big.Int
			}{typeRSA, big.NewInt(e), modulus}), nil)
		}
	}
	key := load(t, "rsa-2048").signer(t).PublicKey().(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey)
	minus := ssh.Marshal(struct {
		Type string
		E, N *big.Int
	}{typeRSA, big.NewInt(65537), new(big.Int).Neg(key.N)})
	if decodeKey(typeRSA, minus) != nil {
		t.Error("a negative number is taken for an RSA key")
	}
	for _, s := range signedByPeers(t) {
		var sig ssh.Signature
		fatal(t, ssh.Unmarshal(s.signature, &sig))
		var number struct{ R, S *big.Int }
		if !strings.Contains(s.kind, "ecdsa") || ssh.Unmarshal(sig.Blob, &number) != nil {
			continue
		}
		order := curves[s.kind].curve.Params().N
		for _, r := range []*big.Int{number.R, new(big.Int), big.NewInt(1), order, new(big.Int).Neg(number.R), new(big.Int).Add(number.R, order)} {
			for _, second := range []*big.Int{number.S, new(big.Int), order, new(big.Int).Neg(number.S), new(big.Int).Sub(order, number.S)} {
				sig.Blob = ssh.Marshal(struct{ R, S *big.Int }{r, second})
				comparePeers(t, s.name, s.kind, s.key, ssh.Marshal(sig))
			}
		}
	}
	for _, curve := range curves {
		if !slices.Contains([]crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512}, curve.hash) {
			t.Errorf("%s: hash %v", curve.name, curve.hash)
		}
	}
}

// FuzzPeer: no bytes are a key, or its signature, for one alone.
func FuzzPeer(f *testing.F) {
	for _, s := range signedByPeers(f) {
		f.Add(s.kind, s.key, s.signature)
	}
	f.Fuzz(func(t *testing.T, kind string, key, signature []byte) {
		comparePeers(t, "fuzzed", kind, key, signature)
	})
}

// TestLists: a key is listed however a .pub file has it, and what is no key is not.
func TestLists(t *testing.T) {
	key := strings.TrimSpace(load(t, "ed25519").section(t, "key.pub"))
	kind, encoded, _ := strings.Cut(key, " ")
	list := allow(t, "a@b "+key)
	for _, c := range []struct {
		text string
		want bool
	}{
		{key, true}, {key + "\n", true}, {key + " a comment\r\n", true}, {"\t" + kind + "  " + encoded + "\tx", true},
		{"", false}, {kind, false}, {encoded, false}, {kind + " " + encoded[:40], false}, {"restrict " + key, false},
		{strings.TrimSpace(load(t, "rsa-2048").section(t, "key.pub")), false},
		{"ssh-rsa " + encoded, false}, {"# " + key, false},
	} {
		if list.Lists(c.text) != c.want {
			t.Errorf("%q: listed is not %v", c.text, c.want)
		}
	}
	blob, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || KeyType(blob) != kind || KeyType(blob[:3]) != "" || KeyType(nil) != "" {
		t.Error(errors.Join(err, errors.New("the type of a blob is another")))
	}
}
