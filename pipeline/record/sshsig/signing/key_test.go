package signing

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/crypto/ssh"
)

// TestKeyFormats: a key is the same in every format that ssh-keygen writes.
func TestKeyFormats(t *testing.T) {
	archive, err := txtar.ParseFile("../testdata/formats.txtar")
	fatal(t, err)
	for _, section := range archive.Files {
		t.Run(section.Name, func(t *testing.T) {
			name, format, _ := strings.Cut(section.Name, "/")
			want := load(t, name).signer(t)
			var s Signer
			if strings.HasSuffix(format, "-encrypted") {
				_, err = ParseKey(section.Data)
				wantErr(t, "no passphrase", err, ErrEncrypted)
				_, err = ParseKey(section.Data, nil)
				wantErr(t, "empty passphrase", err, ErrEncrypted)
				tries := 1
				if format == "pem-encrypted" {
					tries = 2000 // one in 256 seems to decrypt
				}
				for i := range tries {
					_, err = ParseKey(section.Data, []byte(strconv.Itoa(i)))
					wantErr(t, "wrong passphrase", err, ErrPassphrase)
				}
			}
			// A passphrase that is not needed does no harm.
			if s, err = ParseKey(section.Data, []byte("correct horse")); err != nil {
				t.Fatal(err)
			}
			if sign(t, s, message) != sign(t, want, message) {
				t.Error("signs otherwise")
			}
		})
	}
}

func TestPKCS8(t *testing.T) {
	raw, err := ssh.ParseRawPrivateKey([]byte(load(t, "ed25519").section(t, "key")))
	fatal(t, err)
	other, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	fatal(t, err)
	s, err := ParseKey(pkcs8(t, *raw.(*ed25519.PrivateKey)))
	if err != nil || s.Fingerprint() != load(t, "ed25519").signer(t).Fingerprint() {
		t.Errorf("ed25519: %v, %v", s, err)
	}
	_, err = ParseKey(pkcs8(t, other))
	wantErr(t, "P-224", err, ErrKey)
}

func pkcs8(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	fatal(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestKeyRefused(t *testing.T) {
	archive, err := txtar.ParseFile("../testdata/refused.txtar")
	fatal(t, err)
	for i := 0; i+1 < len(archive.Files); i += 2 {
		want, key := archive.Files[i], archive.Files[i+1]
		checkRefused(t, key.Name, key.Data, strings.TrimSpace(string(want.Data)))
	}
	good := []byte(load(t, "ed25519").section(t, "key"))
	block, _ := pem.Decode(good)
	public := load(t, "ed25519").signer(t).public().Marshal()
	last := bytes.LastIndex(block.Bytes, public[len(public)-32:])
	for _, c := range []struct {
		name, want string
		change     func(der []byte) []byte
	}{
		{"security key", "security key", func(der []byte) []byte {
			return container("sk-ssh-ed25519@openssh.com")
		}},
		{"many keys", "damaged", func(der []byte) []byte {
			at := bytes.Index(der, []byte("\x00\x00\x00\x01\x00\x00\x00\x33"))
			der[at+3] = 2
			return der
		}},
		{"cut short", "damaged", func(der []byte) []byte { return der[:len(der)-9] }},
		{"outer public key", "belong together", func(der []byte) []byte {
			der[bytes.Index(der, public)+len(public)-1] ^= 1
			return der
		}},
		{"seed", "belong together", func(der []byte) []byte { der[last-32] ^= 1; return der }},
		{"public half of the private key", "belong together", func(der []byte) []byte { der[last] ^= 1; return der }},
	} {
		block.Bytes = c.change(bytes.Clone(block.Bytes))
		checkRefused(t, c.name, pem.EncodeToMemory(block), c.want)
		block, _ = pem.Decode(good)
	}
}

// checkRefused also looks for the key in the error.
func checkRefused(t *testing.T, name string, key []byte, want string) {
	t.Helper()
	_, err := ParseKey(key)
	wantErr(t, name, err, ErrKey)
	if err == nil {
		return
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %q does not say %q", name, err, want)
	}
	for line := range strings.Lines(string(key)) {
		if strings.Contains(err.Error(), strings.TrimSpace(line)) {
			t.Errorf("%s: %q quotes the key", name, err)
		}
	}
}

// container is a private key of OpenSSH whose public key is only a type.
func container(kind string) []byte {
	return append([]byte("openssh-key-v1\x00"), ssh.Marshal(struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Public, Private      []byte
	}{"none", "none", "", 1, ssh.Marshal(struct{ Type string }{kind}), []byte("private")})...)
}

// TestNotPrinted: no way of printing a Signer shows the private key.
func TestNotPrinted(t *testing.T) {
	s := load(t, "ed25519").signer(t)
	want := "signing.Signer{ssh-ed25519 " + s.Fingerprint() + "}"
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(verb, s); got != want {
			t.Errorf("%s: %s", verb, got)
		}
		if got := fmt.Sprintf(verb, struct{ S Signer }{s}); !strings.Contains(got, want) {
			t.Errorf("%s in a struct: %s", verb, got)
		}
	}
	if got := fmt.Sprint(Signer{}); got != "signing.Signer{}" {
		t.Errorf("zero: %s", got)
	}
}
