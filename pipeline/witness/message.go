package witness

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// AddPath is the path of the request, below a witness's address.
const AddPath = "add-checkpoint"

// The bounds of a request and of what answers it, in bytes.
const (
	MostRequest = MostNote + 64*64
	MostAnswer  = 16 << 10
)

// mostProof is how many hashes a proof of consistency has at most.
const mostProof = 63

// Request is the body of a request: Note is a checkpoint that only adds to the tree of Old leaves, as Proof shows.
type Request struct {
	Old   int64
	Proof []Hash
	Note  []byte
}

// Body is the request as it is sent.
func (r Request) Body() []byte {
	b := fmt.Appendf(nil, "old %d\n", r.Old)
	for _, h := range r.Proof {
		b = append(base64.StdEncoding.AppendEncode(b, h[:]), '\n')
	}
	return append(append(b, '\n'), r.Note...)
}

// ParseRequest reads what Body writes. The note is not looked at.
func ParseRequest(body []byte) (Request, error) {
	if len(body) > MostRequest {
		return Request{}, errors.New("the request is too long")
	}
	head, raw, found := bytes.Cut(body, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	size, isOld := strings.CutPrefix(lines[0], "old ")
	old, err := parseSize(size)
	if !found || !isOld || err != nil || len(lines)-1 > mostProof {
		return Request{}, errors.New(`the request has to begin with "old SIZE", the lines of the proof, and an empty line`)
	}
	r := Request{Old: old, Note: raw}
	for _, line := range lines[1:] {
		h, err := parseHash(line)
		if err != nil {
			return Request{}, errors.New("the proof has a line that is no hash")
		}
		r.Proof = append(r.Proof, h)
	}
	return r, nil
}

// ParseConflict reads the size that a witness answers with where Old is another than it has seen.
func ParseConflict(body []byte) (int64, error) {
	text, ok := strings.CutSuffix(string(body), "\n")
	if !ok {
		return 0, errors.New("it is no size")
	}
	return parseSize(text)
}

// ParseAnswer reads the lines that a witness answers with, of which one has to be its good
// cosignature of the checkpoint, and returns that line and its time in seconds since 1970. Those of other keys are left out.
func (c Checkpoint) ParseAnswer(k Key, body []byte) (line []byte, at int64, err error) {
	if len(body) > MostAnswer {
		return nil, 0, errors.New("the answer is too long")
	}
	opened, err := note.Open(append([]byte(c.Text()+"\n"), body...), note.VerifierList(k))
	if err != nil {
		return nil, 0, opening(err)
	}
	if opened.Text != c.Text() || !k.cosigns {
		return nil, 0, errors.New("it is no cosignature of the checkpoint")
	}
	s := opened.Sigs[0]
	raw, err := base64.StdEncoding.DecodeString(s.Base64) // the last letter may have bits that mean nothing
	if err != nil {
		return nil, 0, err
	}
	return fmt.Appendf(nil, "— %s %s\n", s.Name, base64.StdEncoding.EncodeToString(raw)), signatureTime(s), nil
}
