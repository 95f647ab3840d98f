package sshsig

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Split takes a raw commit object apart: the payload, which is what was
// signed, and the text of its SSH signature, as [Signer.Sign] returns it. It
// takes only commits that [Insert] would make of the two. A commit without a
// signature is [ErrNoSignature]; one that is signed in another way, or twice,
// is an error that says so ([ErrUnsupported], [ErrMalformed]).
func Split(commit []byte) (payload []byte, signature string, err error) {
	if !bytes.HasPrefix(commit, []byte("tree ")) {
		return nil, "", malformed("it is not on a commit")
	}
	at, ok := headerEnd(commit)
	if !ok || bytes.IndexByte(commit[:at], 0) >= 0 {
		return nil, "", malformed("the commit's header has no end, or a NUL in it")
	}
	var sig strings.Builder
	found, inside := 0, false
	// Git leaves every line that begins with gpgsig out of what it verifies, so
	// no other may be there.
	for line := range bytes.Lines(commit[:at]) {
		text, ours := bytes.CutPrefix(line, []byte("gpgsig "))
		switch {
		case ours:
			found++
			inside = true
			sig.Write(text)
		case bytes.HasPrefix(line, []byte("gpgsig-sha256")):
			return nil, "", fmt.Errorf("%w: the commit has a gpgsig-sha256, of a repository with SHA-256 names", ErrUnsupported)
		case bytes.HasPrefix(line, []byte("gpgsig")):
			return nil, "", malformed("the commit has a header that only begins with gpgsig")
		case inside && line[0] == ' ':
			sig.Write(line[1:])
		default:
			inside = false
			payload = append(payload, line...)
		}
	}
	switch {
	case found == 0:
		return nil, "", ErrNoSignature
	case found > 1:
		return nil, "", malformed("the commit has %d gpgsig headers", found)
	}
	signature = sig.String()
	if err := foreign(signature); err != nil {
		return nil, "", err
	}
	if !strings.HasPrefix(signature, begin) || !strings.HasSuffix(signature, "\n"+end) {
		return nil, "", malformed("the commit's gpgsig is not an SSH signature from its first line to its last")
	}
	payload = append(payload, commit[at:]...)
	if !bytes.Equal(Insert(payload, signature), commit) {
		return nil, "", malformed("the commit's gpgsig is not its last header, where git writes it")
	}
	return payload, signature, nil
}

// Insert puts a signature into the raw commit that it signs, as git does: as
// the last header, gpgsig, with a space before every further line. It checks
// neither; [Split] returns both again if the payload is a commit without a
// signature and the signature is one of SSH.
func Insert(payload []byte, signature string) []byte {
	if signature == "" {
		return bytes.Clone(payload)
	}
	at, _ := headerEnd(payload)
	lines := strings.ReplaceAll(strings.TrimSuffix(signature, "\n"), "\n", "\n ")
	return slices.Concat(payload[:at], []byte("gpgsig "+lines+"\n"), payload[at:])
}

// headerEnd is where the blank line after a commit's header is, or the whole
// length.
func headerEnd(commit []byte) (int, bool) {
	i := bytes.Index(commit, []byte("\n\n"))
	if i < 0 {
		return len(commit), false
	}
	return i + 1, true
}

const (
	begin   = "-----BEGIN SSH SIGNATURE-----\n"
	end     = "-----END SSH SIGNATURE-----\n"
	columns = 70
	version = 1
	forGit  = "git" // the namespace of commits
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
	out := appendString(e.Magic[:], e.Namespace)
	out = appendString(out, e.Reserved)
	out = appendString(out, e.Hash)
	return appendString(out, sum)
}

// marshal writes the envelope, and unmarshal reads what marshal writes.
func (e envelope) marshal() []byte {
	out := binary.BigEndian.AppendUint32(e.Magic[:], e.Version)
	out = appendString(out, e.PublicKey)
	out = appendString(out, e.Namespace)
	out = appendString(out, e.Reserved)
	out = appendString(out, e.Hash)
	return appendString(out, e.Signature)
}

func (e *envelope) unmarshal(blob []byte) (ok bool) {
	r := reader{left: blob}
	copy(e.Magic[:], r.take(uint32(len(e.Magic))))
	e.Version = r.uint32()
	e.PublicKey = r.bytes()
	e.Namespace = string(r.bytes())
	e.Reserved = string(r.bytes())
	e.Hash = string(r.bytes())
	e.Signature = r.bytes()
	return r.done()
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

// dearmor reads only what armor writes, for one namespace: one envelope has one text.
func dearmor(armored, namespace string) (envelope, error) {
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
	if !e.unmarshal(blob) {
		return e, malformed("its fields are cut short, or something follows them")
	}
	switch {
	case e.Magic != magic:
		return e, malformed("it does not hold an SSH signature")
	case e.Version != version:
		return e, malformed("it is of version %d, not %d", e.Version, version)
	case e.Reserved != "":
		return e, malformed("its reserved field is not empty")
	case strings.Contains(blobType(e.PublicKey), "-cert-"):
		return e, fmt.Errorf("%w: made with a certificate", ErrUnsupported)
	case e.Namespace != namespace:
		return e, fmt.Errorf("%w: it is made for the namespace %q", ErrNamespace, e.Namespace)
	case e.Hash != "sha256" && e.Hash != "sha512":
		return e, malformed("it is of the hash %q, neither sha256 nor sha512", e.Hash)
	}
	return e, nil
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
