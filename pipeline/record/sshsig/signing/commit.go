package signing

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// Split takes a raw commit object apart: the payload, which is what was
// signed, and the text of its SSH signature, as [Signer.Sign] returns it. It
// takes only commits that [Insert] would make of the two. A commit without a
// signature is [sshsig.ErrNoSignature]; one that is signed in another way, or twice,
// is an error that says so ([sshsig.ErrUnsupported], [sshsig.ErrMalformed]).
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
			return nil, "", fmt.Errorf("%w: the commit has a gpgsig-sha256, of a repository with SHA-256 names", sshsig.ErrUnsupported)
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
		return nil, "", sshsig.ErrNoSignature
	case found > 1:
		return nil, "", malformed("the commit has %d gpgsig headers", found)
	}
	signature = sig.String()
	if err := foreign(signature); err != nil {
		return nil, "", err
	}
	if !strings.HasPrefix(signature, sshsig.Begin) || !strings.HasSuffix(signature, "\n"+sshsig.End) {
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

// foreign tells signatures of other kinds that git knows from malformed ones.
func foreign(signature string) error {
	for _, kind := range []struct{ begin, name string }{
		{"-----BEGIN PGP ", "PGP"},
		{"-----BEGIN SIGNED MESSAGE-----", "X.509"},
	} {
		if strings.HasPrefix(signature, kind.begin) {
			return fmt.Errorf("%w: it is a signature of %s, not of SSH", sshsig.ErrUnsupported, kind.name)
		}
	}
	return nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", sshsig.ErrMalformed, fmt.Sprintf(format, args...))
}
