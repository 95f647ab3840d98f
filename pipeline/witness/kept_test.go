package witness_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/witness"
)

// TestT79NotesThatDoNotCount: what is damaged, of another log, unsigned or a replay covers nothing, and says why.
func TestT79NotesThatDoNotCount(t *testing.T) {
	t.Parallel()
	tree := history("a", 9)
	f := three(t, "")
	good := signedBy(at(tree, 9), 90, north, south)
	other := at(tree, 9)
	other.Origin = "github.com/acme/other"
	stranger := newParty(origin, false, 7)
	unsigned := bytes.Replace(good, line(good, 0), nil, 1)
	byStranger, err := at(tree, 9).SignLog(stranger.Key, stranger.sign)
	fatal(t, err)
	elsewhere := line(signedBy(at(tree, 8), 90, north), 1) // of another checkpoint
	impostor := newParty("w.north.example", true, 8)
	forged, err := at(tree, 9).Cosign(impostor.Key, impostor.sign, 90)
	fatal(t, err)
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":                  {nil, "no signed note"},
		"cut off":                {good[:len(good)-1], "no signed note"},
		"a changed size":         {bytes.Replace(good, []byte("\n9\n"), []byte("\n8\n"), 1), "is not good"},
		"another log":            {signedBy(other, 90, north, south), "another log"},
		"the ledger's key alone": {byStranger, "no key that is known"},
		"no ledger's key":        {unsigned, "the ledger's key did not sign"},
		"a replayed line":        {append(slices.Clone(signedBy(at(tree, 9), 90)), elsewhere...), "is not good"},
		"too long":               {append(slices.Clone(good), make([]byte, witness.MostNote)...), "more than 32 KiB"},
		"another text":           {[]byte("hello\n\n" + string(line(good, 0))), "is not good"},
	} {
		r, err := f.Check([][]byte{c.raw}, tree, 1)
		if err != nil || r.Covered != 0 || len(r.Found) != 1 || len(r.Ignored) != 1 || !strings.Contains(r.Ignored[0], c.want) {
			t.Errorf("%s: %v %+v", name, err, r)
		}
	}
	// A key of the same name is another key: its line is passed over.
	r, err := f.Check([][]byte{append(slices.Clone(signedBy(at(tree, 9), 90)), forged...)}, tree, 1)
	if err != nil || r.Covered != 0 || newest(r) != 9 {
		t.Errorf("%v %+v", err, r)
	}
	// One witness twice is one.
	twice := append(slices.Clone(signedBy(at(tree, 9), 90, north)), line(signedBy(at(tree, 9), 95, north), 1)...)
	if r, err := f.Check([][]byte{twice, signedBy(at(tree, 5), 50, north)}, tree, 2); err != nil || r.Covered != 0 {
		t.Errorf("%v %+v", err, r)
	}
	if r, err := f.Check([][]byte{good}, tree, 2); err != nil || r.Covered != 9 || len(r.Found)+len(r.Ignored) != 0 {
		t.Errorf("%v %+v", err, r)
	}
}

// line is a line of signature of a note.
func line(raw []byte, n int) []byte {
	_, lines, _ := bytes.Cut(raw, []byte("\n\n"))
	return append(bytes.Split(lines, []byte("\n"))[n:][0], '\n')
}

// TestT51OtherHistory: a ledger that was made anew, or set back, does not fit what its key signed before.
func TestT51OtherHistory(t *testing.T) {
	t.Parallel()
	f := three(t, "")
	tree := history("a", 9)
	kept := [][]byte{signedBy(at(tree, 9), 90, north, south), signedBy(at(tree, 5), 50, own)}
	for name, c := range map[string]struct {
		tree    *witness.Tree
		want    string
		covered int64
	}{
		"made anew":          {history("b", 9), "was made anew", 0},
		"made anew, longer":  {history("b", 20), "was made anew", 0},
		"set back":           {history("a", 8), "was set back", 0},
		"set back to a note": {history("a", 5), "was set back", 0},
	} {
		r, err := f.Check(kept, c.tree, 2)
		if err != nil || r.Covered != c.covered || len(r.Found) == 0 || !strings.Contains(strings.Join(r.Found, "\n"), c.want) {
			t.Errorf("%s: %v %+v", name, err, r)
		}
	}
	// Also where a quorum covers what is left.
	kept[1] = signedBy(at(tree, 5), 50, own, north, south)
	if r, err := f.Check(kept, history("a", 5), 2); err != nil || r.Covered != 5 || len(r.Found) != 1 {
		t.Errorf("%v %+v", err, r)
	}
	// What was added since is not covered, and no finding.
	if r, err := f.Check(kept, history("a", 12), 2); err != nil || r.Covered != 9 || len(r.Found) != 0 {
		t.Errorf("%v %+v", err, r)
	}
}

// TestT51Fresh: who sets back the ledger and its checkpoints is told by who is asked now.
func TestT51Fresh(t *testing.T) {
	t.Parallel()
	f := three(t, "")
	tree := history("a", 5)
	r, err := f.Check([][]byte{signedBy(at(tree, 5), 50, north, south)}, tree, 2)
	newest, ok := r.NewestNote()
	if err != nil || !ok {
		t.Fatal(err, ok)
	}
	signed := func(name string) witness.Answer { return witness.Answer{Name: name, At: 99} }
	down := func(name string) witness.Answer { return witness.Answer{Name: name, Err: fmt.Errorf("down")} }
	for _, c := range []struct {
		answers []witness.Answer
		want    int
	}{
		{[]witness.Answer{signed("north"), signed("south"), signed("own")}, 0},
		{[]witness.Answer{signed("north"), signed("south"), down("own")}, 0},
		{[]witness.Answer{signed("north"), down("south"), down("own")}, 1},
		{[]witness.Answer{signed("north"), signed("south"), {Name: "own", Size: 9}}, 1},
		{[]witness.Answer{{Name: "north", Size: 9}, {Name: "south", Size: 9}, {Name: "own", Size: 9}}, 4},
		{[]witness.Answer{signed("north"), signed("north"), down("own")}, 1},
		{nil, 1},
	} {
		if found := f.Fresh(newest, c.answers, 2); len(found) != c.want {
			t.Errorf("%+v: %q", c.answers, found)
		}
	}
}

// TestKeep: the newest, and the newest of each that signed; one note for one checkpoint.
func TestKeep(t *testing.T) {
	t.Parallel()
	f := three(t, "")
	tree := history("a", 99)
	stranger := newParty("stranger.example", true, 9)
	var notes []witness.Note
	for _, raw := range [][]byte{
		signedBy(at(tree, 2), 20, north), signedBy(at(tree, 3), 30, own, north), signedBy(at(tree, 5), 50, stranger), signedBy(at(tree, 7), 70, south),
		signedBy(at(tree, 9), 90), signedBy(at(tree, 7), 71, north, stranger), signedBy(at(tree, 9), 91, south),
	} {
		n, err := f.Open(raw)
		fatal(t, err)
		notes = append(notes, n)
	}
	var got []string
	for _, n := range witness.Keep(notes) {
		again, err := f.Open(n.Raw)
		fatal(t, err)
		got = append(got, fmt.Sprint(n.Size, len(again.Seen)))
	}
	if want := []string{"9 1", "7 2", "3 2"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	notes = nil
	for i := range int64(60) {
		n, err := f.Open(signedBy(at(tree, i+1), 1, newParty(fmt.Sprintf("w%d.example", i), true, 9)))
		fatal(t, err)
		notes = append(notes, n)
	}
	if n := len(witness.Keep(notes)); n != witness.MostNotes {
		t.Errorf("%d are kept", n)
	}
}

// newest is how many commits the newest checkpoint has that is the ledger's.
func newest(r witness.Report) int64 {
	n, _ := r.NewestNote()
	return n.Size
}
