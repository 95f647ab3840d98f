package sshsig

import (
	"bytes"
	"crypto/elliptic"
	"encoding/base64"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// TestOtherArmor: texts that hold the same signature, or nearly.
func TestOtherArmor(t *testing.T) {
	f := load(t, "ed25519")
	good := f.section(t, "signature")
	body := strings.TrimSuffix(strings.TrimPrefix(good, Begin), End)
	for _, c := range []struct {
		name, armored string
		want          error
	}{
		{"as it is", good, nil},
		{"nothing", "", ErrNoSignature},
		{"PGP", "-----BEGIN PGP SIGNATURE-----\n\nxx\n-----END PGP SIGNATURE-----\n", ErrMalformed},
		{"X.509", "-----BEGIN SIGNED MESSAGE-----\nxx\n-----END SIGNED MESSAGE-----\n", ErrMalformed},
		{"a blank line", "\n", ErrMalformed},
		{"before", " " + good, ErrMalformed},
		{"after", good + "\n", ErrMalformed},
		{"twice", good + good, ErrMalformed},
		{"no last newline", strings.TrimSuffix(good, "\n"), ErrMalformed},
		{"CRLF", strings.ReplaceAll(good, "\n", "\r\n"), ErrMalformed},
		{"69 columns", rewrap(good, 69), ErrMalformed},
		{"76 columns", rewrap(good, 76), ErrMalformed},
		{"one line", rewrap(good, 10000), ErrMalformed},
		{"a blank line inside", Begin + "\n" + body + End, ErrMalformed},
		{"a blank line at the End", Begin + body + "\n" + End, ErrMalformed},
		{"no padding", strings.Replace(good, "=\n-----END", "\n-----END", 1), ErrMalformed},
		{"empty", Begin + End, ErrMalformed},
		{"empty, with a line", Begin + "\n" + End, ErrMalformed},
		{"zeros", Begin + strings.Repeat("A", 70) + "\n" + End, ErrMalformed},
		{"lower case", strings.Replace(good, "BEGIN", "begin", 1), ErrMalformed},
	} {
		_, _, err := f.allowed(t).Verify(ForGit, []byte(message), c.armored, at)
		wantErr(t, c.name, err, c.want)
	}
}

// envelopeOf opens a fixture's signature of message.
func envelopeOf(t *testing.T, f fixture) (Envelope, ssh.Signature) {
	t.Helper()
	e, err := dearmor(f.section(t, "signature"), ForGit)
	fatal(t, err)
	var sig ssh.Signature
	fatal(t, ssh.Unmarshal(e.Signature, &sig))
	return e, sig
}

func (e Envelope) with(sig ssh.Signature) string {
	e.Signature = ssh.Marshal(sig)
	return e.Armor()
}

// TestOtherEnvelope: each field, and what follows them. Where the field is
// part of what is signed, it is signed anew: only the form is at fault.
func TestOtherEnvelope(t *testing.T) {
	f := load(t, "ed25519")
	good, _ := envelopeOf(t, f)
	key := f.signer(t)
	resign := func(e *Envelope, hash string) {
		h := e.Hash
		e.Hash = hash
		made, err := key.SignWithAlgorithm(nil, e.Signed([]byte(message)), key.PublicKey().Type())
		fatal(t, err)
		e.Hash, e.Signature = h, ssh.Marshal(made)
	}
	for _, c := range []struct {
		name   string
		want   error
		change func(*Envelope)
	}{
		{"as it is", nil, func(e *Envelope) {}},
		{"sha256", nil, func(e *Envelope) { e.Hash = "sha256"; resign(e, "sha256") }},
		{"magic", ErrMalformed, func(e *Envelope) { e.Magic[0] = 's'; resign(e, "sha512") }},
		{"version 0", ErrMalformed, func(e *Envelope) { e.Version = 0 }},
		{"version 2", ErrMalformed, func(e *Envelope) { e.Version = 2 }},
		{"reserved", ErrMalformed, func(e *Envelope) { e.Reserved = "x" }},
		{"reserved, signed", ErrMalformed, func(e *Envelope) { e.Reserved = "x"; resign(e, "sha512") }},
		{"hash of none", ErrMalformed, func(e *Envelope) { e.Hash = "" }},
		{"hash sha1", ErrMalformed, func(e *Envelope) { e.Hash = "sha1" }},
		{"hash in capitals", ErrMalformed, func(e *Envelope) { e.Hash = "SHA512" }},
		{"the other hash", ErrBadSignature, func(e *Envelope) { e.Hash = "sha256" }},
		{"namespace of none", ErrNamespace, func(e *Envelope) { e.Namespace = ""; resign(e, "sha512") }},
		{"namespace file", ErrNamespace, func(e *Envelope) { e.Namespace = "file"; resign(e, "sha512") }},
		{"namespace git, said only", ErrBadSignature, func(e *Envelope) { e.Namespace = "file"; resign(e, "sha512"); e.Namespace = "git" }},
		{"no key", ErrUnsupported, func(e *Envelope) { e.PublicKey = nil }},
		{"key with more", ErrUnsupported, func(e *Envelope) { e.PublicKey = append(bytes.Clone(e.PublicKey), 0) }},
		{"certificate", ErrUnsupported, func(e *Envelope) {
			e.PublicKey = ssh.Marshal(struct{ Type, Rest string }{ssh.CertAlgoED25519v01, "x"})
		}},
		{"no signature inside", ErrMalformed, func(e *Envelope) { e.Signature = nil }},
		{"more inside", ErrMalformed, func(e *Envelope) { e.Signature = append(bytes.Clone(e.Signature), 0) }},
		{"cut inside", ErrMalformed, func(e *Envelope) { e.Signature = e.Signature[:len(e.Signature)-1] }},
	} {
		e := good
		c.change(&e)
		_, _, err := f.allowed(t).Verify(ForGit, []byte(message), e.Armor(), at)
		wantErr(t, c.name, err, c.want)
	}
	for _, more := range []string{"\x00", "\x00\x00\x00\x00"} {
		_, _, err := f.allowed(t).Verify(ForGit, []byte(message), Armor(base64.StdEncoding.EncodeToString(append(ssh.Marshal(good), more...))), at)
		wantErr(t, "something after", err, ErrMalformed)
	}
}

// TestEd25519Twin: S plus the order of the group, which is in RFC 8032, 5.1.
func TestEd25519Twin(t *testing.T) {
	f := load(t, "ed25519")
	e, sig := envelopeOf(t, f)
	order, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	order.Add(order, new(big.Int).Lsh(big.NewInt(1), 252))
	s := slices.Clone(sig.Blob[32:])
	slices.Reverse(s)
	twin := new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(make([]byte, 32))
	slices.Reverse(twin)
	sig.Blob = append(bytes.Clone(sig.Blob[:32]), twin...)
	_, _, err := f.allowed(t).Verify(ForGit, []byte(message), e.with(sig), at)
	wantErr(t, "twin", err, ErrBadSignature)
}

// TestECDSATwin keeps what the package comment says of ECDSA true, and no
// more: the second number may be negated, and neither written otherwise.
func TestECDSATwin(t *testing.T) {
	f := load(t, "ecdsa-256")
	e, sig := envelopeOf(t, f)
	var number struct{ R, S *big.Int }
	fatal(t, ssh.Unmarshal(sig.Blob, &number))
	twin := number
	twin.S = new(big.Int).Sub(elliptic.P256().Params().N, number.S)
	over := number
	over.S = new(big.Int).Add(elliptic.P256().Params().N, number.S)
	r, s := mpint(number.R), mpint(number.S)
	long := ssh.Marshal(struct{ R, S []byte }{append([]byte{0}, r...), s})
	for _, c := range []struct {
		name string
		blob []byte
		want error
	}{
		{"the twin", ssh.Marshal(twin), nil},
		{"beyond the order", ssh.Marshal(over), ErrBadSignature},
		{"a zero before", long, ErrMalformed},
		{"a number more", append(ssh.Marshal(number), 0, 0, 0, 0), ErrMalformed},
		{"one number", sig.Blob[:len(sig.Blob)/2], ErrMalformed},
	} {
		sig.Blob = c.blob
		_, _, err := f.allowed(t).Verify(ForGit, []byte(message), e.with(sig), at)
		wantErr(t, c.name, err, c.want)
	}
}

// mpint is a positive number as SSH writes it, without its length.
func mpint(n *big.Int) []byte { return ssh.Marshal(struct{ N *big.Int }{n})[4:] }

// TestRSATwin: with SHA-1, and without the zero that one signature in 256
// begins with, which ssh-keygen would take.
func TestRSATwin(t *testing.T) {
	f := load(t, "rsa-2048")
	s, allowed := f.signer(t), f.allowed(t)
	e, sig := envelopeOf(t, f)
	old, err := s.SignWithAlgorithm(nil, e.Signed([]byte(message)), ssh.KeyAlgoRSA)
	fatal(t, err)
	_, _, err = allowed.Verify(ForGit, []byte(message), e.with(*old), at)
	wantErr(t, "SHA-1", err, ErrUnsupported)
	other, err := s.SignWithAlgorithm(nil, e.Signed([]byte(message)), ssh.KeyAlgoRSASHA256)
	fatal(t, err)
	_, _, err = allowed.Verify(ForGit, []byte(message), e.with(*other), at)
	wantErr(t, "SHA-256", err, nil)
	for format, want := range map[string]error{ssh.KeyAlgoRSASHA256: ErrBadSignature, ssh.KeyAlgoED25519: ErrUnsupported, "": ErrUnsupported} {
		changed := sig
		changed.Format = format
		_, _, err := allowed.Verify(ForGit, []byte(message), e.with(changed), at)
		wantErr(t, "said to be "+format, err, want)
	}
	for i := range 5000 {
		text := strconv.Itoa(i)
		made, err := s.SignWithAlgorithm(nil, e.Signed([]byte(text)), ssh.KeyAlgoRSASHA512)
		fatal(t, err)
		if made.Blob[0] != 0 {
			continue
		}
		_, _, err = allowed.Verify(ForGit, []byte(text), e.with(*made), at)
		wantErr(t, "with its zero", err, nil)
		made.Blob = made.Blob[1:]
		if err := s.PublicKey().Verify(e.Signed([]byte(text)), made); err != nil {
			t.Log("the SSH library does not take it either any more")
		}
		_, _, err = allowed.Verify(ForGit, []byte(text), e.with(*made), at)
		wantErr(t, "without its zero", err, ErrMalformed)
		return
	}
	t.Error("no signature begins with a zero")
}

// rewrap puts other lines into an armor.
func rewrap(signature string, columns int) string {
	text := strings.TrimSuffix(strings.TrimPrefix(signature, Begin), End)
	text = strings.ReplaceAll(text, "\n", "")
	out := Begin
	for len(text) > columns {
		out, text = out+text[:columns]+"\n", text[columns:]
	}
	return out + text + "\n" + End
}
