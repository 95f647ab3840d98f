package sshsig

import (
	"bytes"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// TestEveryBit: no bit of git's signed commit can be another, no byte can be
// left out and none added.
func TestEveryBit(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			allowed, commit := f.allowed(t), f.section(t, "commit")
			if _, _, err := verifyCommit(allowed, commit); err != nil {
				t.Fatal(err)
			}
			if payload, signature, err := Split([]byte(commit)); err != nil || Check(payload, signature) != nil {
				t.Fatal(err, Check(payload, signature))
			}
			fast := f.name == "ed25519" || f.name == "rsa-2048"
			for i := range len(commit) {
				for bit := range 8 {
					if fast || bit == i%8 {
						changed := []byte(commit)
						changed[i] ^= 1 << bit
						refuse(t, allowed, "bit "+strconv.Itoa(bit), i, string(changed))
					}
				}
				refuse(t, allowed, "without the byte", i, commit[:i]+commit[i+1:])
				refuse(t, allowed, "without what follows", i, commit[:i])
				if fast {
					for _, more := range []string{" ", "\n", "\r", "\t", "\x00", "=", "A"} {
						refuse(t, allowed, strconv.Quote(more)+" before", i, commit[:i]+more+commit[i:])
					}
				}
			}
		})
	}
}

func refuse(t *testing.T, a Allowed, what string, i int, commit string) {
	t.Helper()
	if _, _, err := verifyCommit(a, commit); err == nil {
		t.Errorf("%s %d: verified\n%s", what, i, commit)
	}
	if what != "bit 0" { // one in eight is enough for what needs no list
		return
	}
	if payload, signature, err := Split([]byte(commit)); err == nil && Check(payload, signature) == nil {
		t.Errorf("%s %d: it is said to be its key's\n%s", what, i, commit)
	}
}

// TestOtherArmor: texts that hold the same signature, or nearly.
func TestOtherArmor(t *testing.T) {
	f := load(t, "ed25519")
	good := f.section(t, "signature")
	body := strings.TrimSuffix(strings.TrimPrefix(good, begin), end)
	for _, c := range []struct {
		name, armored string
		want          error
	}{
		{"as it is", good, nil},
		{"nothing", "", ErrNoSignature},
		{"PGP", "-----BEGIN PGP SIGNATURE-----\n\nxx\n-----END PGP SIGNATURE-----\n", ErrUnsupported},
		{"X.509", "-----BEGIN SIGNED MESSAGE-----\nxx\n-----END SIGNED MESSAGE-----\n", ErrUnsupported},
		{"a blank line", "\n", ErrMalformed},
		{"before", " " + good, ErrMalformed},
		{"after", good + "\n", ErrMalformed},
		{"twice", good + good, ErrMalformed},
		{"no last newline", strings.TrimSuffix(good, "\n"), ErrMalformed},
		{"CRLF", strings.ReplaceAll(good, "\n", "\r\n"), ErrMalformed},
		{"69 columns", rewrap(good, 69), ErrMalformed},
		{"76 columns", rewrap(good, 76), ErrMalformed},
		{"one line", rewrap(good, 10000), ErrMalformed},
		{"a blank line inside", begin + "\n" + body + end, ErrMalformed},
		{"a blank line at the end", begin + body + "\n" + end, ErrMalformed},
		{"no padding", strings.Replace(good, "=\n-----END", "\n-----END", 1), ErrMalformed},
		{"empty", begin + end, ErrMalformed},
		{"empty, with a line", begin + "\n" + end, ErrMalformed},
		{"zeros", begin + strings.Repeat("A", columns) + "\n" + end, ErrMalformed},
		{"lower case", strings.Replace(good, "BEGIN", "begin", 1), ErrMalformed},
	} {
		_, _, err := f.allowed(t).Verify([]byte(message), c.armored, at)
		wantErr(t, c.name, err, c.want)
	}
}

// envelopeOf opens a fixture's signature of message.
func envelopeOf(t *testing.T, f fixture) (envelope, ssh.Signature) {
	t.Helper()
	e, err := dearmor(f.section(t, "signature"), forGit)
	if err != nil {
		t.Fatal(err)
	}
	var sig ssh.Signature
	if err := ssh.Unmarshal(e.Signature, &sig); err != nil {
		t.Fatal(err)
	}
	return e, sig
}

func (e envelope) with(sig ssh.Signature) string {
	e.Signature = ssh.Marshal(sig)
	return armor(ssh.Marshal(e))
}

// TestOtherEnvelope: each field, and what follows them. Where the field is
// part of what is signed, it is signed anew: only the form is at fault.
func TestOtherEnvelope(t *testing.T) {
	f := load(t, "ed25519")
	good, _ := envelopeOf(t, f)
	key := f.signer(t).key
	resign := func(e *envelope, hash string) {
		h := e.Hash
		e.Hash = hash
		made, err := key.SignWithAlgorithm(nil, e.signed([]byte(message)), key.PublicKey().Type())
		if err != nil {
			t.Fatal(err)
		}
		e.Hash, e.Signature = h, ssh.Marshal(made)
	}
	for _, c := range []struct {
		name   string
		want   error
		change func(*envelope)
	}{
		{"as it is", nil, func(e *envelope) {}},
		{"sha256", nil, func(e *envelope) { e.Hash = "sha256"; resign(e, "sha256") }},
		{"magic", ErrMalformed, func(e *envelope) { e.Magic[0] = 's'; resign(e, "sha512") }},
		{"version 0", ErrMalformed, func(e *envelope) { e.Version = 0 }},
		{"version 2", ErrMalformed, func(e *envelope) { e.Version = 2 }},
		{"reserved", ErrMalformed, func(e *envelope) { e.Reserved = "x" }},
		{"reserved, signed", ErrMalformed, func(e *envelope) { e.Reserved = "x"; resign(e, "sha512") }},
		{"hash of none", ErrMalformed, func(e *envelope) { e.Hash = "" }},
		{"hash sha1", ErrMalformed, func(e *envelope) { e.Hash = "sha1" }},
		{"hash in capitals", ErrMalformed, func(e *envelope) { e.Hash = "SHA512" }},
		{"the other hash", ErrBadSignature, func(e *envelope) { e.Hash = "sha256" }},
		{"namespace of none", ErrNamespace, func(e *envelope) { e.Namespace = ""; resign(e, "sha512") }},
		{"namespace file", ErrNamespace, func(e *envelope) { e.Namespace = "file"; resign(e, "sha512") }},
		{"namespace git, said only", ErrBadSignature, func(e *envelope) { e.Namespace = "file"; resign(e, "sha512"); e.Namespace = "git" }},
		{"no key", ErrUnknownKey, func(e *envelope) { e.PublicKey = nil }},
		{"key with more", ErrUnknownKey, func(e *envelope) { e.PublicKey = append(bytes.Clone(e.PublicKey), 0) }},
		{"certificate", ErrUnsupported, func(e *envelope) {
			e.PublicKey = ssh.Marshal(struct{ Type, Rest string }{ssh.CertAlgoED25519v01, "x"})
		}},
		{"no signature inside", ErrMalformed, func(e *envelope) { e.Signature = nil }},
		{"more inside", ErrMalformed, func(e *envelope) { e.Signature = append(bytes.Clone(e.Signature), 0) }},
		{"cut inside", ErrMalformed, func(e *envelope) { e.Signature = e.Signature[:len(e.Signature)-1] }},
	} {
		e := good
		c.change(&e)
		_, _, err := f.allowed(t).Verify([]byte(message), armor(ssh.Marshal(e)), at)
		wantErr(t, c.name, err, c.want)
	}
	for _, more := range []string{"\x00", "\x00\x00\x00\x00"} {
		_, _, err := f.allowed(t).Verify([]byte(message), armor(append(ssh.Marshal(good), more...)), at)
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
	_, _, err := f.allowed(t).Verify([]byte(message), e.with(sig), at)
	wantErr(t, "twin", err, ErrBadSignature)
}

// TestECDSATwin keeps what the package comment says of ECDSA true, and no
// more: the second number may be negated, and neither written otherwise.
func TestECDSATwin(t *testing.T) {
	f := load(t, "ecdsa-256")
	e, sig := envelopeOf(t, f)
	var number struct{ R, S *big.Int }
	if err := ssh.Unmarshal(sig.Blob, &number); err != nil {
		t.Fatal(err)
	}
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
		_, _, err := f.allowed(t).Verify([]byte(message), e.with(sig), at)
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
	old, err := s.key.SignWithAlgorithm(nil, e.signed([]byte(message)), ssh.KeyAlgoRSA)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = allowed.Verify([]byte(message), e.with(*old), at)
	wantErr(t, "SHA-1", err, ErrUnsupported)
	other, err := s.key.SignWithAlgorithm(nil, e.signed([]byte(message)), ssh.KeyAlgoRSASHA256)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = allowed.Verify([]byte(message), e.with(*other), at)
	wantErr(t, "SHA-256", err, nil)
	for format, want := range map[string]error{ssh.KeyAlgoRSASHA256: ErrBadSignature, ssh.KeyAlgoED25519: ErrMalformed, "": ErrMalformed} {
		changed := sig
		changed.Format = format
		_, _, err := allowed.Verify([]byte(message), e.with(changed), at)
		wantErr(t, "said to be "+format, err, want)
	}
	for i := range 5000 {
		text := strconv.Itoa(i)
		made, err := s.key.SignWithAlgorithm(nil, e.signed([]byte(text)), ssh.KeyAlgoRSASHA512)
		if err != nil {
			t.Fatal(err)
		}
		if made.Blob[0] != 0 {
			continue
		}
		_, _, err = allowed.Verify([]byte(text), e.with(*made), at)
		wantErr(t, "with its zero", err, nil)
		made.Blob = made.Blob[1:]
		if err := s.public().Verify(e.signed([]byte(text)), made); err != nil {
			t.Log("the SSH library does not take it either any more")
		}
		_, _, err = allowed.Verify([]byte(text), e.with(*made), at)
		wantErr(t, "without its zero", err, ErrMalformed)
		return
	}
	t.Error("no signature begins with a zero")
}

// TestSecurityKey: a signature as a security key makes it is verified, here
// and by ssh-keygen, and only if the key was touched.
func TestSecurityKey(t *testing.T) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	public := ssh.Marshal(struct{ Type, Key, Application string }{ssh.KeyAlgoSKED25519, string(private.Public().(ed25519.PublicKey)), "ssh:"})
	line := "a@example.org " + ssh.KeyAlgoSKED25519 + " " + base64.StdEncoding.EncodeToString(public) + "\n"
	touch := func(flags byte, more string) string {
		e := envelope{Magic: magic, Version: version, PublicKey: public, Namespace: forGit, Hash: "sha512"}
		app, text := sha256.Sum256([]byte("ssh:")), sha256.Sum256(e.signed([]byte(message)))
		counter := []byte{flags, 0, 0, 0, 9}
		blob := ed25519.Sign(private, slices.Concat(app[:], counter, text[:]))
		return e.with(ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: blob, Rest: append(counter, more...)})
	}
	allowed := allow(t, line)
	_, _, err := allowed.Verify([]byte(message), touch(1, ""), at)
	wantErr(t, "touched", err, nil)
	_, _, err = allowed.Verify([]byte(message), touch(0, ""), at)
	wantErr(t, "not touched", err, ErrBadSignature)
	_, _, err = allowed.Verify([]byte(message), touch(1, "x"), at)
	wantErr(t, "more", err, ErrMalformed)
	k := newKeygen(t, load(t, "ed25519"))
	k.write("allowed", line)
	if err := k.verify(message, touch(1, "")); err != nil {
		t.Errorf("ssh-keygen: %v", err)
	}
}

// TestSplitRefused: commits that are not signed as git signs.
func TestSplitRefused(t *testing.T) {
	good := load(t, "ed25519").section(t, "commit")
	payload, signature, err := Split([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(payload), "\n\n")
	whole := func(headers string) string { return head + "\n" + headers + "\n" + body }
	if whole(header(signature)) != good {
		t.Fatal("the test's own commit is another")
	}
	pgp := "gpgsig -----BEGIN PGP SIGNATURE-----\n \n xx\n -----END PGP SIGNATURE-----\n \n"
	for _, c := range []struct {
		name, commit, text string
		want               error
	}{
		{"nothing", "", "not on a commit", ErrMalformed},
		{"a tag", "object 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nx", "not on a commit", ErrMalformed},
		{"no blank line", "tree x\n", "no end", ErrMalformed},
		{"NUL in the header", strings.Replace(good, "author A", "author\x00A", 1), "NUL", ErrMalformed},
		{"unsigned", string(payload), "no signature", ErrNoSignature},
		{"signed in the message", string(payload) + "\n" + header(signature), "no signature", ErrNoSignature},
		{"PGP", whole(pgp), "PGP", ErrUnsupported},
		{"X.509", whole("gpgsig -----BEGIN SIGNED MESSAGE-----\n xx\n"), "X.509", ErrUnsupported},
		{"gpgsig-sha256", whole("gpgsig-sha256" + strings.TrimPrefix(header(signature), "gpgsig")), "gpgsig-sha256", ErrUnsupported},
		{"both", whole(header(signature) + "gpgsig-sha256" + strings.TrimPrefix(header(signature), "gpgsig")), "gpgsig-sha256", ErrUnsupported},
		{"two", whole(header(signature) + header(signature)), "2 gpgsig", ErrMalformed},
		{"two, one PGP", whole(pgp + header(signature)), "2 gpgsig", ErrMalformed},
		{"two, apart", whole(header(signature) + "x y\n" + header(signature)), "2 gpgsig", ErrMalformed},
		{"another beginning with gpgsig", whole("gpgsigs x\n" + header(signature)), "only begins", ErrMalformed},
		{"gpgsig without a space", whole("gpgsig\n" + header(signature)), "only begins", ErrMalformed},
		{"a header after it", whole(header(signature) + "encoding UTF-8\n"), "last header", ErrMalformed},
		{"a header of two lines after it", whole(header(signature) + "x y\n z\n"), "last header", ErrMalformed},
		{"before the author", strings.Replace(string(payload), "author", header(signature)+"author", 1), "last header", ErrMalformed},
		{"empty", whole("gpgsig \n"), "from its first line", ErrMalformed},
		{"another text", whole("gpgsig hello\n"), "from its first line", ErrMalformed},
		{"no end", whole(strings.TrimSuffix(header(signature), " "+end)), "from its first line", ErrMalformed},
		{"a blank line after", whole(header(signature) + " \n"), "from its first line", ErrMalformed},
	} {
		_, _, err := Split([]byte(c.commit))
		wantErr(t, c.name, err, c.want)
		if err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %q does not say %q", c.name, err, c.text)
		}
	}
}

func TestInsert(t *testing.T) {
	for _, c := range []struct{ payload, signature, want string }{
		{"tree x\n\nm", "a\nb\n", "tree x\ngpgsig a\n b\n\nm"},
		{"tree x\n\nm", "a\nb", "tree x\ngpgsig a\n b\n\nm"},
		{"tree x\nencoding y\n\nm\n\n", "a\n", "tree x\nencoding y\ngpgsig a\n\nm\n\n"},
		{"tree x\n\n", "a\n\n", "tree x\ngpgsig a\n \n\n"},
		{"tree x\n", "a\n", "tree x\ngpgsig a\n"},
		{"tree x\n\n", "", "tree x\n\n"},
	} {
		if got := Insert([]byte(c.payload), c.signature); string(got) != c.want {
			t.Errorf("Insert(%q, %q) = %q", c.payload, c.signature, got)
		}
	}
}
