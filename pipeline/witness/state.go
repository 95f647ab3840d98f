package witness

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A State is what a witness remembers: of each log, by its origin, the newest checkpoint that it
// signed, with its own signature and the log's. As a file it is one line of canonical JSON:
//
//	{"key":"w.example+…","logs":{"github.com/acme/app":"github.com/acme/app\n3\n…"},"schema":"countersign/witness/1"}
type State struct {
	Key  Key
	Logs map[string][]byte
}

const stateSchema = "countersign/witness/1"

type stateFile struct {
	Schema string            `json:"schema"`
	Key    string            `json:"key"`
	Logs   map[string]string `json:"logs"`
}

// Bytes is the state as a file.
func (s State) Bytes() []byte {
	file := stateFile{Schema: stateSchema, Key: s.Key.String(), Logs: map[string]string{}}
	for origin, raw := range s.Logs {
		file.Logs[origin] = string(raw)
	}
	line, err := canon.Line(file)
	if err != nil {
		panic("witness: encoding a state: " + err.Error())
	}
	return line
}

// ParseState reads what Bytes wrote. A checkpoint in it that the witness did not sign is an error, as
// who goes on from it would sign another history.
func ParseState(raw []byte) (State, error) {
	var file stateFile
	if err := canon.Unmarshal(raw, &file); err != nil {
		return State{}, fmt.Errorf("the state is damaged: %w", err)
	}
	k, err := ParseKey(file.Key)
	if err != nil || !k.cosigns || file.Schema != stateSchema {
		return State{}, errors.New("the state is damaged: it names no key of a witness, or has another schema")
	}
	s := State{Key: k, Logs: map[string][]byte{}}
	for _, origin := range slices.Sorted(maps.Keys(file.Logs)) {
		if _, err := s.checkpoint([]byte(file.Logs[origin]), origin); err != nil {
			return State{}, fmt.Errorf("the state is damaged: the checkpoint of %+q is not signed by this witness", origin)
		}
		s.Logs[origin] = []byte(file.Logs[origin])
	}
	if string(s.Bytes()) != string(raw) {
		return State{}, errors.New("the state is damaged: it is not as it was written")
	}
	return s, nil
}

// checkpoint reads a note that the witness signed.
func (s State) checkpoint(raw []byte, origin string) (Checkpoint, error) {
	opened, err := note.Open(raw, note.VerifierList(s.Key))
	if err != nil {
		return Checkpoint{}, err
	}
	c, err := ParseCheckpoint(opened.Text)
	if err == nil && c.Origin != origin {
		err = errOrigin
	}
	return c, err
}

// A RequestError is a request that a witness does not answer with a signature. Size is that of the newest
// checkpoint that it signed, where Status is 409.
type RequestError struct {
	Status int
	Size   int64
	Why    string
}

func (e *RequestError) Error() string { return e.Why }

// Add decides on a request. If the checkpoint only adds to what the witness signed before, it is
// signed at a time, in seconds since 1970, and Add returns the state that has it, which has to be on disk before the line
// leaves; a checkpoint that is signed once more changes no state. Otherwise the error is a *RequestError, or that of signing.
func (s State) Add(body []byte, logs []Key, sign Sign, at int64) (next State, line []byte, err error) {
	req, err := ParseRequest(body)
	if err != nil {
		return s, nil, refused(http.StatusBadRequest, "%v", err)
	}
	if len(req.Note) > MostNote {
		return s, nil, refused(http.StatusBadRequest, "the checkpoint is too long")
	}
	c, signed, err := openLog(req.Note, logs)
	if err != nil {
		return s, nil, err
	}
	var before Checkpoint
	if had, ok := s.Logs[c.Origin]; ok {
		if before, err = s.checkpoint(had, c.Origin); err != nil {
			return s, nil, err
		}
	}
	switch {
	case req.Old > c.Size:
		return s, nil, refused(http.StatusBadRequest, "the old size is larger than the checkpoint")
	case req.Old != before.Size:
		return s, nil, &RequestError{http.StatusConflict, before.Size, "another size was signed last"}
	case req.Old == 0 && len(req.Proof) > 0:
		return s, nil, refused(http.StatusUnprocessableEntity, "there is nothing to prove from nothing")
	case c.Size == 0:
		return s, nil, refused(http.StatusUnprocessableEntity, "a ledger without commits has no checkpoint")
	case req.Old > 0 && tlog.CheckTree(req.Proof, c.Size, c.Root, before.Size, before.Root) != nil:
		return s, nil, refused(http.StatusUnprocessableEntity, "the checkpoint does not only add to the one before")
	}
	if line, err = c.Cosign(s.Key, sign, at); err != nil {
		return s, nil, err
	}
	if c == before {
		return s, line, nil
	}
	next = State{s.Key, map[string][]byte{}}
	maps.Copy(next.Logs, s.Logs)
	next.Logs[c.Origin] = append(signed, line...)
	return next, line, nil
}

// openLog reads a checkpoint that one of the logs signed, and returns it with that signature alone.
func openLog(raw []byte, logs []Key) (Checkpoint, []byte, error) {
	origin, _, _ := strings.Cut(string(raw), "\n")
	var known []note.Verifier
	for _, k := range logs {
		if k.name == origin {
			known = append(known, k)
		}
	}
	if len(known) == 0 {
		return Checkpoint{}, nil, refused(http.StatusNotFound, "the log is not known here")
	}
	opened, err := note.Open(raw, note.VerifierList(known...))
	var invalid *note.InvalidSignatureError
	var unverified *note.UnverifiedNoteError
	if errors.As(err, &invalid) || errors.As(err, &unverified) {
		return Checkpoint{}, nil, refused(http.StatusForbidden, "no key of the log signed it")
	}
	if err != nil {
		return Checkpoint{}, nil, refused(http.StatusBadRequest, "it is no signed note")
	}
	c, err := ParseCheckpoint(opened.Text)
	if err != nil {
		return Checkpoint{}, nil, refused(http.StatusBadRequest, "%v", err)
	}
	text := c.Text() + "\n"
	for _, s := range opened.Sigs {
		text += fmt.Sprintf("— %s %s\n", s.Name, s.Base64)
	}
	return c, []byte(text), nil
}

func refused(status int, format string, args ...any) error {
	return &RequestError{Status: status, Why: fmt.Sprintf(format, args...)}
}
