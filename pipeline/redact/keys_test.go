package redact

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// secret is an identity that is the same in every run, and stands nowhere: it
// is made from the SHA-256 of a name.
func secret(name string) string {
	sum := sha256.Sum256([]byte("countersign, a key for tests only: " + name))
	return strings.ToUpper(bech32("age-secret-key-", sum[:]))
}

func recipient(t testing.TB, name string) string {
	id, err := age.ParseX25519Identity(secret(name))
	fatal(t, err)
	return id.Recipient().String()
}

// bech32 is the encoding of BIP 173.
func bech32(prefix string, data []byte) string {
	const letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	values := fiveBits(data)
	var all []byte
	for _, c := range prefix {
		all = append(all, byte(c>>5))
	}
	all = append(all, 0)
	for _, c := range prefix {
		all = append(all, byte(c&31))
	}
	all = append(append(all, values...), 0, 0, 0, 0, 0, 0)
	sum := polymod(all) ^ 1
	for shift := 25; shift >= 0; shift -= 5 {
		values = append(values, byte(sum>>shift)&31)
	}
	out := prefix + "1"
	for _, v := range values {
		out += letters[v : v+1]
	}
	return out
}

func fiveBits(data []byte) (out []byte) {
	var acc, bits uint
	for _, b := range data {
		acc, bits = acc<<8|uint(b), bits+8
		for ; bits >= 5; bits -= 5 {
			out = append(out, byte(acc>>(bits-5))&31)
		}
	}
	if bits > 0 {
		out = append(out, byte(acc<<(5-bits))&31)
	}
	return out
}

func polymod(values []byte) uint32 {
	sum := uint32(1)
	for _, v := range values {
		top := sum >> 25
		sum = sum&0x1ffffff<<5 ^ uint32(v)
		for i, g := range []uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				sum ^= g
			}
		}
	}
	return sum
}

func TestCheckRecipient(t *testing.T) {
	good := recipient(t, "one")
	hybrid, err := age.GenerateHybridIdentity()
	fatal(t, err)
	for _, c := range []struct{ name, in, want string }{
		{"as age-keygen prints it", good, ""},
		{"empty", "", "not an age key"},
		{"a letter changed", good[:20] + "b" + good[21:], "not an age key"},
		{"cut short", good[:len(good)-1], "not an age key"},
		{"upper case", strings.ToUpper(good), "not an age key"},
		{"space after it", good + " ", "not an age key"},
		{"line after it", good + "\n", "not an age key"},
		{"two", good + "\n" + good, "plugin"},
		{"a comment", "# " + good, "not an age key"},
		{"31 bytes", bech32("age", make([]byte, 31)), "not an age key"},
		{"another prefix", bech32("agd", make([]byte, 32)), "not an age key"},
		{"the point of order one", bech32("age", make([]byte, 32)), "protects nothing"},
		{"a plugin", bech32("age1yubikey", make([]byte, 33)), "plugin"},
		{"post-quantum", hybrid.Recipient().String(), "post-quantum"},
		{"an SSH key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA", "SSH key"},
		{"an RSA key", "ssh-rsa AAAA", "SSH key"},
		{"an identity", secret("one"), "secret key"},
		{"an identity in lower case", strings.ToLower(secret("one")), "secret key"},
		{"a passphrase", "correct horse", "not an age key"},
		{"not UTF-8", "age1\xff", "not an age key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckRecipient(c.in)
			checkError(t, err, c.want)
			if _, sealed := Seal([]byte("x"), []string{good, c.in}); (sealed == nil) != (err == nil) {
				t.Errorf("CheckRecipient says %v, Seal %v", err, sealed)
			}
			if err != nil && c.in != "" && strings.Contains(err.Error(), strings.TrimSpace(c.in)) {
				t.Errorf("the error repeats what was given: %v", err)
			}
		})
	}
}

// checkError wants an error with these words, or none for "".
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		fatal(t, err)
		return
	}
	var e *fault.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, want) {
		t.Fatalf("error is %v, want %q", err, want)
	}
	for line := range strings.Lines(err.Error()) {
		if strings.HasSuffix(line, "\n") {
			t.Errorf("error has more than one line: %q", err)
		}
	}
}
