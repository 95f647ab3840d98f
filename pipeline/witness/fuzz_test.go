package witness_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/witness"
)

// FuzzCheckpoint: what is read is written back to the same bytes.
func FuzzCheckpoint(f *testing.F) {
	f.Add(at(history("a", 3), 3).Text())
	f.Add(origin + "\n0\n" + strings.Repeat("A", 43) + "=\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := witness.ParseCheckpoint(text)
		if err == nil && c.Text() != text {
			t.Errorf("%q was read as %q", text, c.Text())
		}
	})
}

// FuzzFile: whatever the file says, a key counts once, and a quorum is met by nobody's silence.
func FuzzFile(f *testing.F) {
	f.Add(threeText())
	f.Add(strings.Replace(threeText(), "https://", "httpS://", 1))
	f.Add(threeText() + "group two 2 north south own\nquorum two\n")
	f.Add(threeText() + "group g any north south\ngroup h all g own\nquorum h\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := witness.ParseFile([]byte(text))
		if err != nil {
			return
		}
		keys := map[string]bool{}
		for _, w := range file.Witnesses {
			k, err := witness.ParseKey(w.Key.String())
			if err != nil || k != w.Key || keys[w.Key.String()] {
				t.Errorf("%s: %v", w.Key, err)
			}
			keys[w.Key.String()] = true
			if w.URL != "" && !strings.HasPrefix(w.URL, "https://") && !strings.HasPrefix(w.URL, "http://") {
				t.Error(w.URL)
			}
		}
		if _, err := file.Origin(); err != nil {
			return
		}
		tree := history("a", 3)
		for _, notes := range [][][]byte{nil, {signedBy(at(tree, 3), 1)}} {
			r, err := file.Check(notes, tree, 0)
			if err != nil || r.Covered != 0 || len(r.Found) == 0 {
				t.Errorf("%v %+v", err, r)
			}
		}
	})
}

// FuzzNote: a note that opens covers what its witnesses signed and no more, and is kept as one that opens.
func FuzzNote(f *testing.F) {
	tree := history("a", 9)
	file := three(f, "")
	f.Add(signedBy(at(tree, 9), 90, north, south))
	f.Add(signedBy(at(tree, 5), 50))
	f.Add(append(signedBy(at(tree, 5), 50, own), "— x AAAAAAAA\n"...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, err := file.Open(raw)
		if err != nil {
			return
		}
		if n.Origin != origin || !bytes.HasPrefix(raw, []byte(n.Text())) || !bytes.Equal(n.Raw, raw) {
			t.Errorf("%+v", n)
		}
		for _, kept := range witness.Keep([]witness.Note{n, n}) {
			if again, err := file.Open(kept.Raw); err != nil || len(again.Seen) != len(n.Seen) {
				t.Errorf("%v %+v", err, again)
			}
		}
	})
}

// FuzzRequest: what is read is written back to the same bytes, and a witness that takes it goes on from what it had.
func FuzzRequest(f *testing.F) {
	tree := history("a", 20)
	s := witness.State{Key: north.Key}
	first := witness.Request{Note: signedBy(at(tree, 9), 0)}.Body()
	s, _, err := s.Add(first, []witness.Key{log.Key}, north.sign, 1)
	fatal(f, err)
	f.Add(first)
	f.Add(witness.Request{Old: 9, Proof: proofOf(f, tree, 9, 12), Note: signedBy(at(tree, 12), 0)}.Body())
	f.Add(witness.Request{Old: 9, Note: signedBy(at(tree, 9), 1, south)}.Body())
	f.Fuzz(func(t *testing.T, body []byte) {
		if req, err := witness.ParseRequest(body); err == nil && !bytes.Equal(req.Body(), body) {
			t.Errorf("%q was read as %q", body, req.Body())
		}
		next, line, err := s.Add(body, []witness.Key{log.Key}, north.sign, 2)
		if err != nil {
			var refused *witness.RequestError
			if !errors.As(err, &refused) || line != nil {
				t.Error(err)
			}
			return
		}
		for _, n := range []int64{9, 12} { // the log signed no others
			if bytes.HasPrefix(next.Logs[origin], []byte(at(tree, n).Text())) {
				return
			}
		}
		t.Errorf("%q was signed", next.Logs[origin])
	})
}

// FuzzAnswer: whatever a witness answers, what is taken over is its good signature of the checkpoint.
func FuzzAnswer(f *testing.F) {
	c := at(history("a", 9), 9)
	good := line(signedBy(c, 90, north), 1)
	f.Add(good)
	f.Add(append(line(signedBy(c, 90, south), 1), good...))
	f.Add(bytes.Replace(good, []byte("Ag==\n"), []byte("Aq==\n"), 1)) // the same signature, written otherwise
	f.Add([]byte("9\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if n, err := witness.ParseConflict(body); err == nil && n < 0 {
			t.Error(n)
		}
		line, at, err := c.ParseAnswer(north.Key, body)
		if err == nil && (!bytes.Equal(line, good) || at != 90) {
			t.Errorf("%q", line)
		}
	})
}

// FuzzState: what is read is written back to the same bytes.
func FuzzState(f *testing.F) {
	s, _, err := witness.State{Key: north.Key}.Add(witness.Request{Note: signedBy(at(history("a", 9), 9), 0)}.Body(), []witness.Key{log.Key}, north.sign, 1)
	fatal(f, err)
	f.Add(s.Bytes())
	f.Add(witness.State{Key: north.Key}.Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := witness.ParseState(raw)
		if err == nil && !bytes.Equal(s.Bytes(), raw) {
			t.Errorf("%q was read as %q", raw, s.Bytes())
		}
	})
}
