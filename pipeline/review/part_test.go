package review

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A part of a patch has nothing that the patch has not: its files are among the patch's, with their modes and names, and each has, in order,
// lines that it had before or has after the patch. All pieces are the patch.
func TestPartOf(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 37))
		base, after := fstest.MapFS{}, map[string]*patch.File{}
		for i := range 1 + random.IntN(4) {
			randomChange(random, base, after, fmt.Sprintf("f%d", i))
		}
		whole, err := patch.NewTree(base).Between(after)
		if err != nil {
			continue // which changes nothing
		}
		all := Pieces(whole)
		every, take := slices.Repeat([]bool{true}, len(all)), make([]bool, len(all))
		for i := range take {
			take[i] = random.IntN(2) == 0
		}
		if again, err := patch.NewTree(base).Between(taken(whole, all, every)); err != nil || again.ID() != whole.ID() {
			t.Fatalf("%d: all pieces are another patch: %v\n%s\n%s", seed, err, whole.Bytes(), again.Bytes())
		}
		files := taken(whole, all, take)
		part, err := patch.NewTree(base).Between(files)
		if err != nil {
			if slices.Contains(take, true) {
				t.Fatalf("%d: %v", seed, err)
			}
			continue
		}
		for _, c := range part.Changes {
			if !slices.Contains(changed(all, take), c.Path) {
				t.Fatalf("%d: the part has %s, of which nothing was taken", seed, c.Path)
			}
		}
		for _, c := range part.Files() {
			at := slices.IndexFunc(whole.Files(), func(w patch.Change) bool { return w.Path == c.Path })
			if at < 0 {
				t.Fatalf("%d: the part has another file, %s", seed, c.Path)
			}
			w := whole.Files()[at]
			switch {
			case (c.After == nil) != (w.After == nil) || !equalFiles(c.Before, w.Before):
				t.Fatalf("%d: %s is another change", seed, c.Path)
			case c.After != nil && (c.After.Mode != w.After.Mode || !woven(c.After.Data, w)):
				t.Fatalf("%d: %s has what the patch has not:\n%s\nof\n%s", seed, c.Path, c.After.Data, w.Bytes())
			}
		}
		// What the person sees of each piece is a part as well, and its words name no other.
		for i, p := range all {
			if after := p.Alone().After; after != nil && !woven(after.Data, whole.Changes[p.change]) {
				t.Fatalf("%d: piece %d is none of the patch", seed, i)
			}
		}
		if words := named(all, take); len(strings.Split(words, ", ")) != len(changed(all, take)) {
			t.Fatalf("%d: %q names %v", seed, words, changed(all, take))
		}
		// The part, proposed as it is, is read as the same bytes.
		in, err := input.One(part.Bytes(), false, "")
		if err == nil {
			var read patch.Patchset
			if read, err = in.Resolve(base); err == nil && read.ID() != part.ID() {
				err = fmt.Errorf("it is read as\n%s", read.Bytes())
			}
		}
		if err != nil {
			t.Fatalf("%d: %v\n%s", seed, err, part.Bytes())
		}
	}
}

// A small patch of a large file, which has thousands of hunks, is divided without that file once for each. It runs beside no other test.
func TestPiecesOfLargeFile(t *testing.T) {
	var before, after bytes.Buffer
	for i := range 20_000 {
		line := fmt.Sprintf("%050d\n", i)
		before.WriteString(line)
		if i%10 == 0 {
			line = "x\n"
		}
		after.WriteString(line)
	}
	base := fstest.MapFS{"f": &fstest.MapFile{Data: before.Bytes()}}
	whole, err := patch.NewTree(base).Between(map[string]*patch.File{"f": {Mode: patch.Regular, Data: after.Bytes()}})
	if err != nil {
		t.Fatal(err)
	}
	var began, ended runtime.MemStats
	runtime.ReadMemStats(&began)
	all := Pieces(whole)
	files := taken(whole, all, slices.Repeat([]bool{true}, len(all)))
	runtime.ReadMemStats(&ended)
	if len(all) != 2000 || !bytes.Equal(files["f"].Data, after.Bytes()) {
		t.Errorf("%d pieces", len(all))
	}
	if took := ended.TotalAlloc - began.TotalAlloc; took > 100<<20 {
		t.Errorf("a file of %d bytes took %d", before.Len(), took)
	}
}

func changed(all []Piece, take []bool) (paths []string) {
	for i, p := range all {
		if take[i] && !slices.Contains(paths, p.of.Path) {
			paths = append(paths, p.of.Path)
		}
	}
	return paths
}

func equalFiles(a, b *patch.File) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Mode == b.Mode && bytes.Equal(a.Data, b.Data))
}

// woven reports whether lines are those before a change, with some runs of them put in the place that the change gives them: every line is one
// of the file before or after, in the order of both.
func woven(data []byte, c patch.Change) bool {
	var old, new [][]byte
	if c.Before != nil {
		old = bytes.SplitAfter(c.Before.Data, []byte("\n"))
	}
	if c.After != nil {
		new = bytes.SplitAfter(c.After.Data, []byte("\n"))
	}
	// reach[j] is whether the lines so far can be made of parts of the first i old and the first j new lines, each used at most once.
	type state struct{ i, j int }
	states := map[state]bool{{0, 0}: true}
	for line := range bytes.SplitAfterSeq(data, []byte("\n")) {
		next := map[state]bool{}
		for s := range states {
			for i := s.i; i < len(old); i++ {
				if bytes.Equal(old[i], line) {
					next[state{i + 1, s.j}] = true
					break
				}
			}
			for j := s.j; j < len(new); j++ {
				if bytes.Equal(new[j], line) {
					next[state{s.i, j + 1}] = true
					break
				}
			}
		}
		if states = next; len(states) == 0 {
			return false
		}
	}
	return true
}

// randomChange puts a file into base, and what is to be of it into after.
func randomChange(random *rand.Rand, base fstest.MapFS, after map[string]*patch.File, name string) {
	text := func(n int) []byte {
		var b bytes.Buffer
		for range n {
			fmt.Fprintf(&b, "%c\n", 'a'+random.IntN(6))
		}
		if n > 0 && random.IntN(4) == 0 {
			b.Truncate(b.Len() - 1)
		}
		return b.Bytes()
	}
	before := text(random.IntN(60))
	lines := bytes.SplitAfter(before, []byte("\n"))
	for range random.IntN(5) {
		at := random.IntN(len(lines))
		lines = slices.Replace(lines, at, min(len(lines), at+random.IntN(3)), append(text(random.IntN(3)), '\n'))
	}
	file := &patch.File{Mode: patch.Regular, Data: bytes.Join(lines, nil)}
	switch random.IntN(8) {
	case 0:
		after[name] = file
		return
	case 1:
		after[name] = nil
	case 2:
		after[name], after[name+"-moved"] = nil, &patch.File{Mode: patch.Regular, Data: before}
	case 3:
		after[name] = &patch.File{Mode: patch.Executable, Data: file.Data}
	case 4:
		after[name] = &patch.File{Mode: patch.Regular, Data: append(file.Data, 0)}
	default:
		after[name] = file
	}
	base[name] = &fstest.MapFile{Data: before}
}
