package packfile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contents are the objects of a batch as Get returns them.
func (b *Batch) contents() map[ID]Object {
	out := map[ID]Object{}
	for _, id := range b.IDs() {
		out[id], _ = b.Get(id)
	}
	return out
}

// TestWritePack: git reads a ledger whose trees are deltas, and makes the same
// commits itself.
func TestWritePack(t *testing.T) {
	for _, commits := range []int{1, 49, 120} {
		t.Run(fmt.Sprint(commits), func(t *testing.T) {
			const ref = "refs/agent/ledger"
			r := newRepo(t)
			book := newBook(t)
			for range commits {
				book.commit()
			}
			held := r.write(book.batch)
			r.git("", "update-ref", ref, book.tip.String())
			r.sound()
			want := r.all()
			if len(want) != 12*commits || book.batch.Len() != len(want) {
				t.Errorf("git has %d objects, the batch %d", len(want), book.batch.Len())
			}
			for id, o := range book.batch.contents() {
				if !bytes.Equal(o.Data, want[id].Data) || o.Type != want[id].Type {
					t.Errorf("%s is not what git has", id)
				}
			}
			git := newRepo(t)
			git.git(fastImport(ref, commits), "fast-import", "--quiet")
			if tip := git.git("", "rev-parse", ref); tip != book.tip.String() {
				t.Errorf("%s, git makes %s", book.tip, tip)
			}
			chains := r.git("", "verify-pack", "-s", string(held))
			if deep := strings.Contains(chains, "chain length = 50:"); deep != (commits > 100) || strings.Contains(chains, "chain length = 51:") {
				t.Errorf("git finds\n%s", chains)
			}
		})
	}
}

// versions are texts, each of which differs from the one before it.
func versions(n int) []Object {
	random := rand.New(rand.NewPCG(8, uint64(n)))
	var out []Object
	text := bytes.Repeat([]byte("0123456789abcde\n"), 5<<10) // more than one copy can say
	for i := range n {
		at, size := random.IntN(len(text)+1), random.IntN(300)
		switch i % 3 {
		case 0: // the same length
			text = bytes.Clone(text)
			copy(text[min(at, len(text)-8):], fmt.Sprintf("%08x", i))
		case 1: // longer
			text = append(append(bytes.Clone(text[:at]), fmt.Sprintf("%*d", size, i)...), text[at:]...)
		case 2: // shorter
			text = append(bytes.Clone(text[:at]), text[min(len(text), at+size):]...)
		}
		out = append(out, Object{plumbing.BlobObject, text})
	}
	return out
}

// TestJoin: hints and deltas of other batches are kept, whichever of them has
// the base, and however long the chains become.
func TestJoin(t *testing.T) {
	for _, c := range []struct {
		each  int  // versions in one batch
		again bool // it has an old one too
	}{{1, false}, {70, false}, {30, true}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			r := newRepo(t)
			var all Batch
			objects := versions(200)
			base := None
			want := map[ID]Object{}
			for len(objects) > 0 {
				var some Batch
				if c.again && all.Len() > 2 {
					old := all.object(1)
					if _, err := some.AddOn(old, ParseID(strings.Repeat("1", 40))); err != nil {
						t.Fatal(err)
					}
				}
				for range min(c.each, len(objects)) {
					id, err := some.AddOn(objects[0], base)
					fatal(t, err)
					want[id], base, objects = objects[0], id, objects[1:]
				}
				all.Join(&some)
			}
			for id, o := range all.contents() {
				if !bytes.Equal(o.Data, want[id].Data) {
					t.Errorf("%s has other content", id)
				}
			}
			held := r.write(&all)
			r.sound()
			r.agrees(want)
			chains := r.git("", "verify-pack", "-s", string(held))
			if !strings.Contains(chains, "chain length = 50:") || strings.Contains(chains, "chain length = 51:") {
				t.Errorf("git finds\n%s", chains)
			}
		})
	}
}

// TestHintsOnly: a base that is nowhere, another type, another content, or the
// object itself changes no object.
func TestHintsOnly(t *testing.T) {
	r := newRepo(t)
	var b Batch
	want := map[ID]Object{}
	add := func(o Object, base ID) ID {
		id, err := b.AddOn(o, base)
		fatal(t, err)
		want[id] = o
		return id
	}
	text := bytes.Repeat([]byte("all the same "), 100)
	blob := add(Object{plumbing.BlobObject, text}, ParseID(strings.Repeat("1", 40)))
	add(Object{plumbing.TagObject, text}, blob)
	add(Object{plumbing.BlobObject, text}, blob)
	add(Object{plumbing.BlobObject, nil}, blob)
	self := Object{plumbing.BlobObject, append(bytes.Clone(text), "!"...)}
	id, _ := self.ID(SHA1)
	add(self, id)
	for _, o := range blobs(200) {
		blob = add(o, blob)
	}
	r.write(&b)
	got := r.all()
	if len(got) != len(want) {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
	for id, o := range want {
		if !bytes.Equal(got[id].Data, o.Data) || got[id].Type != o.Type {
			t.Errorf("%s has other content", id)
		}
	}
}

// TestEncode: what is sent is what is written, and made once.
func TestEncode(t *testing.T) {
	r := newRepo(t)
	book := newBook(t)
	for range 40 {
		book.commit()
	}
	before := r.write(book.batch)
	data, err := book.batch.Encode()
	fatal(t, err)
	file := string(before)
	onDisk, err := os.ReadFile(file + ".pack")
	if err != nil || !bytes.Equal(data, onDisk) {
		t.Fatalf("%d bytes, on the disk %d: %v", len(data), len(onDisk), err)
	}
	for _, ext := range []string{".pack", ".idx"} {
		fatal(t, os.Remove(file+ext))
	}
	if again, err := os.ReadFile(string(r.write(book.batch)) + ".pack"); err != nil || !bytes.Equal(again, data) {
		t.Errorf("written again it is other bytes: %v", err)
	}
	r.sound()
	if again, err := book.batch.Encode(); &again[0] != &data[0] || err != nil {
		t.Errorf("made again: %v", err)
	}
	book.commit()
	if again, err := book.batch.Encode(); bytes.Equal(again, data) || err != nil {
		t.Errorf("without the last commit: %v", err)
	}
}
