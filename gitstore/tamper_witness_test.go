package gitstore

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

// witnessedLedger is the sound ledger with two of three witnesses, and a reader who has their keys and has never seen
// the ledger.
type witnessedLedger struct {
	file     witness.File
	log      witness.Key
	sign     witness.Sign
	kept     [][]byte
	state    []witness.State // of each witness
	cosigner []witness.Sign
}

// witnessKey is a key for tests.
func witnessKey(t testing.TB, name string, cosigns bool) (witness.Key, witness.Sign) {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	private := ed25519.NewKeyFromSeed(seed[:])
	k, err := witness.NewKey(name, private.Public().(ed25519.PublicKey), cosigns)
	fatal(t, err)
	return k, func(message []byte) ([]byte, error) { return ed25519.Sign(private, message), nil }
}

// treeOver is the tree over the commits that a tip leads to.
func treeOver(s source, tip packfile.ID) (*witness.Tree, error) {
	all, err := leaves(s, tip, func(raw []byte) [32]byte { return witness.Leaf(raw) })
	if err != nil {
		return nil, err
	}
	var hashes []witness.Hash
	for _, l := range all {
		hashes = append(hashes, l.Hash)
	}
	return witness.NewTree(hashes)
}

// checkpoint is the note of a ledger that ends with a tip, signed with the ledger's key.
func (w *witnessedLedger) checkpoint(t testing.TB, tree *witness.Tree, n int64) []byte {
	t.Helper()
	root, err := tree.Root(n)
	fatal(t, err)
	raw, err := witness.Checkpoint{Origin: w.log.Name(), Size: n, Root: root}.SignLog(w.log, w.sign)
	fatal(t, err)
	return raw
}

// newWitnessed shows two checkpoints of a ledger to two of three witnesses, the second of its tip.
func newWitnessed(t testing.TB, s *soundLedger) *witnessedLedger {
	t.Helper()
	w := &witnessedLedger{}
	w.log, w.sign = witnessKey(t, "ledger.example", false)
	text := "log " + w.log.String() + "\n"
	for i := range 3 {
		k, sign := witnessKey(t, fmt.Sprintf("w%d.example", i), true)
		w.state, w.cosigner = append(w.state, witness.State{Key: k}), append(w.cosigner, sign)
		text += fmt.Sprintf("witness w%d %s\n", i, k)
	}
	var err error
	if w.file, err = witness.ParseFile([]byte(text)); err != nil {
		t.Fatal(err)
	}
	tree, err := treeOver(s.objects, s.commits[len(s.commits)-1])
	fatal(t, err)
	old := int64(0)
	for _, n := range []int64{tree.Size() / 3, tree.Size()} {
		note := w.checkpoint(t, tree, n)
		proof, err := tree.Consistency(old, n)
		fatal(t, err)
		request := witness.Request{Old: old, Proof: proof, Note: note}.Body()
		for i := range 2 {
			next, line, err := w.state[i].Add(request, []witness.Key{w.log}, w.cosigner[i], n)
			fatal(t, err)
			w.state[i], note = next, append(note, line...)
		}
		w.kept, old = append(w.kept, note), n
	}
	return w
}

// catches reports whether that reader, who demands two of three, is told that something is wrong.
func (w *witnessedLedger) catches(s source, tip packfile.ID) (bool, error) {
	tree, err := treeOver(s, tip)
	if err != nil {
		return true, nil // it cannot be held to anything, which is a finding
	}
	r, err := w.file.Check(w.kept, tree, 2)
	return len(r.Found) > 0, err
}

// TestT51T79ForgersAndWitnesses: the forgers who make every hash good, and who have the ledger's key and the checkpoints as well. No
// two of three witnesses sign what they made, whatever they send, and no reader who demands two takes it.
func TestT51T79ForgersAndWitnesses(t *testing.T) {
	t.Parallel()
	s := newSoundLedgerOf(t, 27)
	w := newWitnessed(t, s)
	sound, err := treeOver(s.objects, s.commits[len(s.commits)-1])
	fatal(t, err)
	for _, k := range forgers {
		if strings.HasPrefix(k.name, "an approval added at the tip") {
			continue // it only adds: that is for signatures to tell
		}
		f, what, err := s.tamper(k, 0)
		fatal(t, err)
		tree, err := treeOver(f, f.tip)
		fatal(t, err)
		if f.tip == s.commits[len(s.commits)-1] {
			continue // it changed nothing
		}
		if caught, err := w.catches(f, f.tip); err != nil || !caught {
			t.Errorf("%s (%s): the reader takes it: %v", k.name, what, err)
		}
		// Without the checkpoints, with a new one, and with the old one of before the change.
		note := w.checkpoint(t, tree, tree.Size())
		for name, kept := range map[string][][]byte{"none": nil, "a new one": {note}, "an old one": {w.kept[0]}} {
			r, err := w.file.Check(kept, tree, 2)
			fatal(t, err)
			fits := name == "an old one" && sameStart(sound, tree, sound.Size()/3)
			if (len(r.Found) == 0) != fits || r.Covered > sound.Size()/3 {
				t.Errorf("%s (%s), %s: %+v", k.name, what, name, r)
			}
		}
		// The two who have seen the ledger refuse; the third, which has not, is not enough.
		for i, state := range w.state {
			for _, old := range []int64{0, 1, sound.Size() / 3, sound.Size()} {
				proof, err := tree.Consistency(min(old, tree.Size()), tree.Size())
				fatal(t, err)
				_, line, err := state.Add(witness.Request{Old: old, Proof: proof, Note: note}.Body(), []witness.Key{w.log}, w.cosigner[i], 99)
				if err == nil && i < 2 {
					t.Errorf("%s (%s): witness %d signs it", k.name, what, i)
				}
				if err == nil {
					note = append(note, line...)
				}
			}
		}
		if r, err := w.file.Check([][]byte{note}, tree, 2); err != nil || r.Covered != 0 {
			t.Errorf("%s (%s): %v %+v", k.name, what, err, r)
		}
		// Set back with its checkpoints, it agrees with itself: who asks is told.
		if r, err := w.file.Check(w.kept[:1], tree, 2); err == nil && r.Covered > 0 {
			newest, _ := r.NewestNote()
			answers := []witness.Answer{{Name: "w0", Size: sound.Size()}, {Name: "w1", Size: sound.Size()}, {Name: "w2", At: 99}}
			if found := w.file.Fresh(newest, answers, 2); len(found) != 3 {
				t.Errorf("%s (%s): %q", k.name, what, found)
			}
		}
	}
	if caught, err := w.catches(s.objects, s.commits[len(s.commits)-1]); err != nil || caught {
		t.Errorf("the sound ledger: %v", err)
	}
	if !slices.ContainsFunc(forgers, func(k kind) bool { return strings.HasPrefix(k.name, "the tip set back") }) {
		t.Error("nobody sets the tip back")
	}
}

// sameStart reports whether two trees have the same first n leaves.
func sameStart(a, b *witness.Tree, n int64) bool {
	x, err1 := a.Root(n)
	y, err2 := b.Root(n)
	return err1 == nil && err2 == nil && x == y
}
