package witness

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"golang.org/x/mod/sumdb/note"
)

// A Note is a checkpoint that the ledger's key signed.
type Note struct {
	Checkpoint
	// Raw is the note as it is, also with signatures of keys that are not known.
	Raw []byte
	// Seen is when each witness of the file signed it, in seconds since 1970, by name.
	Seen map[string]int64

	signers []string // all keys that it names, known or not
	known   []string // those that the file has

	unknown, unknownSize int // signatures that add took over of keys that the file does not have, and their bytes
}

// The bounds of what is kept: notes, and the bytes of one.
const (
	MostNotes = 32
	MostNote  = 32 << 10
)

var (
	errOrigin   = errors.New("it is of another log")
	errUnsigned = errors.New("the ledger's key did not sign it")
)

// Open reads a note. It has to be a checkpoint of the file's log, and signed with one of its
// keys; a signature of a key that is known and does not verify spoils it.
func (f File) Open(raw []byte) (Note, error) {
	if len(raw) > MostNote {
		return Note{}, fmt.Errorf("it has more than %d KiB", MostNote>>10)
	}
	origin, err := f.Origin()
	if err != nil {
		return Note{}, err
	}
	known := make([]note.Verifier, 0, len(f.Logs)+len(f.Witnesses))
	for _, k := range f.Logs {
		known = append(known, k)
	}
	names := map[string]string{}
	for _, w := range f.Witnesses {
		known = append(known, w.Key)
		names[keyName(w.Key.name, w.Key.KeyHash())] = w.Name
	}
	opened, err := note.Open(raw, note.VerifierList(known...))
	if err != nil {
		return Note{}, opening(err)
	}
	n := Note{Raw: bytes.Clone(raw), Seen: map[string]int64{}}
	if n.Checkpoint, err = ParseCheckpoint(opened.Text); err != nil {
		return Note{}, err
	}
	if n.Origin != origin {
		return Note{}, errOrigin
	}
	byLog := false
	for _, s := range opened.Sigs {
		key := keyName(s.Name, s.Hash)
		n.signers, n.known = append(n.signers, key), append(n.known, key)
		if name, ok := names[key]; ok {
			n.Seen[name] = signatureTime(s)
		} else {
			byLog = true
		}
	}
	if !byLog {
		return Note{}, errUnsigned
	}
	for _, s := range opened.UnverifiedSigs {
		n.signers = append(n.signers, keyName(s.Name, s.Hash))
	}
	return n, nil
}

// opening says what is wrong with a note without repeating what it holds.
func opening(err error) error {
	var invalid *note.InvalidSignatureError
	var unverified *note.UnverifiedNoteError
	switch {
	case errors.As(err, &invalid):
		return fmt.Errorf("the signature with the key %08x is not good", invalid.Hash)
	case errors.As(err, &unverified):
		return errors.New("no key that is known signed it")
	}
	return errors.New("it is no signed note")
}

func keyName(name string, id uint32) string { return fmt.Sprintf("%s+%08x", name, id) }

func signatureTime(s note.Signature) int64 {
	raw, err := base64.StdEncoding.DecodeString(s.Base64)
	if err != nil || len(raw) < 4 {
		return 0
	}
	at, _ := timeOf(raw[4:])
	return at
}

// ErrHistory is a checkpoint, signed with the ledger's key, of another history than the ledger has, and ErrBeyond one of more
// commits than it has.
var (
	ErrHistory = errors.New("the ledger was made anew")
	ErrBeyond  = fmt.Errorf("%w, or set back", ErrHistory)
)

// history is that error of a checkpoint of so many commits, where the ledger has others.
func history(size, has int64) error {
	e := &fault.Error{
		Kind: fault.Failed, Cause: ErrHistory, Try: "find out who moved the ledger's ref, and put it back",
		Message: fmt.Sprintf("the ledger was made anew: its key signed a checkpoint of %d commits with another history than its first %d have", size, size),
	}
	if size > has {
		e.Cause, e.Message = ErrBeyond, fmt.Sprintf("the ledger was set back or made anew: its key signed a checkpoint of %d commits, and it has %d", size, has)
	}
	return e
}

// In holds a note to the commits that the ledger has. What does not fit is [ErrHistory].
func (n Note) In(t *Tree) error {
	root, err := t.Root(min(n.Size, t.Size()))
	if err != nil {
		return err
	}
	if n.Size > t.Size() || root != n.Root {
		return history(n.Size, t.Size())
	}
	return nil
}

// Keep picks what is kept of notes, which are this ledger's: the newest, and for each key the
// newest that it signed, the newest first. Notes of one checkpoint become one; of what was joined, only Raw has all
// signatures.
func Keep(notes []Note) []Note {
	var all []Note
	for _, n := range notes {
		i := slices.IndexFunc(all, func(o Note) bool { return o.Checkpoint == n.Checkpoint })
		if i < 0 {
			n.Raw, n.signers = bytes.Clone(n.Raw), slices.Clone(n.signers)
			all = append(all, n)
			continue
		}
		all[i].add(n)
	}
	slices.SortFunc(all, func(a, b Note) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), bytes.Compare(a.Root[:], b.Root[:]))
	})
	had := map[string]bool{}
	var out []Note
	for i, n := range all {
		wanted := i == 0
		for _, s := range n.signers {
			wanted = wanted || !had[s]
			had[s] = true
		}
		if wanted && len(out) < MostNotes {
			out = append(out, n)
		}
	}
	return out
}

// add takes over the signatures of keys that the note has not, as far as there is room. Those of keys that the file does
// not have, which anybody can make up, take no more than half of it, so that a witness can still sign.
func (n *Note) add(o Note) {
	text := len(n.Text()) + 1
	for line := range bytes.Lines(o.Raw[text:]) {
		s, ok := signatureLine(line)
		if !ok || slices.Contains(n.signers, s) || len(n.Raw)+len(line) > MostNote || len(n.signers) >= mostSignatures {
			continue
		}
		if !slices.Contains(o.known, s) {
			if n.unknown >= mostSignatures/2 || n.unknownSize+len(line) > MostNote/2 {
				continue
			}
			n.unknown, n.unknownSize = n.unknown+1, n.unknownSize+len(line)
		}
		n.Raw, n.signers = append(n.Raw, line...), append(n.signers, s)
	}
}

// mostSignatures is how many a note has at most; package note reads 100.
const mostSignatures = 64

// signatureLine names the key of a line of signature.
func signatureLine(line []byte) (key string, ok bool) {
	fields := bytes.Split(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	if len(fields) != 3 {
		return "", false
	}
	raw, err := base64.StdEncoding.DecodeString(string(fields[2]))
	if err != nil || len(raw) < 4 {
		return "", false
	}
	return fmt.Sprintf("%s+%x", fields[1], raw[:4]), true
}
