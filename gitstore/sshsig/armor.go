package sshsig

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	begin     = "-----BEGIN SSH SIGNATURE-----\n"
	end       = "-----END SSH SIGNATURE-----\n"
	columns   = 70
	version   = 1
	namespace = "git"
)

var magic = [6]byte{'S', 'S', 'H', 'S', 'I', 'G'}

// An envelope is what the armor holds, in the order and encoding of SSH.
type envelope struct {
	Magic     [6]byte
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// signed is what the key signs: the message's hash, with all of the envelope
// that gives it a meaning.
func (e envelope) signed(message []byte) []byte {
	var sum []byte
	switch e.Hash {
	case "sha256":
		h := sha256.Sum256(message)
		sum = h[:]
	case "sha512":
		h := sha512.Sum512(message)
		sum = h[:]
	default:
		panic("sshsig: no hash " + e.Hash)
	}
	return ssh.Marshal(struct {
		Magic                     [6]byte
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{e.Magic, e.Namespace, e.Reserved, e.Hash, sum})
}

func armor(blob []byte) string {
	text := base64.StdEncoding.EncodeToString(blob)
	var b strings.Builder
	b.WriteString(begin)
	for len(text) > columns {
		b.WriteString(text[:columns] + "\n")
		text = text[columns:]
	}
	b.WriteString(text + "\n" + end)
	return b.String()
}

// dearmor reads only what armor writes: one envelope has one text.
func dearmor(armored string) (envelope, error) {
	var e envelope
	if armored == "" {
		return e, ErrNoSignature
	}
	if err := foreign(armored); err != nil {
		return e, err
	}
	text, ok := strings.CutPrefix(armored, begin)
	if !ok {
		return e, malformed("it does not begin with the line %q", strings.TrimSuffix(begin, "\n"))
	}
	if text, ok = strings.CutSuffix(text, "\n"+end); !ok {
		return e, malformed("it does not end with the line %q", strings.TrimSuffix(end, "\n"))
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(strings.ReplaceAll(text, "\n", ""))
	if err != nil {
		return e, malformed("it is not base64")
	}
	if armor(blob) != armored {
		return e, malformed("its lines are not of %d characters", columns)
	}
	if err := ssh.Unmarshal(blob, &e); err != nil {
		return e, malformed("its fields are cut short, or something follows them")
	}
	return e, e.check()
}

func (e envelope) check() error {
	switch {
	case e.Magic != magic:
		return malformed("it does not hold an SSH signature")
	case e.Version != version:
		return malformed("it is of version %d, not %d", e.Version, version)
	case e.Reserved != "":
		return malformed("its reserved field is not empty")
	case strings.Contains(blobType(e.PublicKey), "-cert-"):
		return fmt.Errorf("%w: made with a certificate", ErrUnsupported)
	case e.Namespace != namespace:
		return fmt.Errorf("%w: it is made for the namespace %q", ErrNamespace, e.Namespace)
	case e.Hash != "sha256" && e.Hash != "sha512":
		return malformed("it is of the hash %q, neither sha256 nor sha512", e.Hash)
	}
	return nil
}

// foreign tells signatures of other kinds that git knows from malformed ones.
func foreign(signature string) error {
	for _, kind := range []struct{ begin, name string }{
		{"-----BEGIN PGP ", "PGP"},
		{"-----BEGIN SIGNED MESSAGE-----", "X.509"},
	} {
		if strings.HasPrefix(signature, kind.begin) {
			return fmt.Errorf("%w: it is a signature of %s, not of SSH", ErrUnsupported, kind.name)
		}
	}
	return nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
