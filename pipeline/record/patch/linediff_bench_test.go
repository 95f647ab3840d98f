package patch_test

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// heavy are inputs that come near the bounds of time and memory. The worst known
// is the one of four kinds.
var heavy = []struct {
	name string
	make func() (a, b []byte)
}{
	{"alternating 10MB shifted", func() ([]byte, []byte) {
		ab := bytes.Repeat([]byte("a\nb\n"), 2_500_000)
		return ab, append([]byte("b\n"), ab[:len(ab)-2]...)
	}},
	{"alternating 10MB reversed", func() ([]byte, []byte) {
		return append(bytes.Repeat([]byte("a\nb\n"), 2_500_000), "x\n"...), append([]byte("y\n"), bytes.Repeat([]byte("b\na\n"), 2_500_000)...)
	}},
	{"periods 64 and 65", func() ([]byte, []byte) { return period(64, 1_000_000), period(65, 1_000_000) }},
	{"periods 2 and 3 short", func() ([]byte, []byte) { return period(2, 65_536), period(3, 65_536) }},
	{"periods 999 and 1000", func() ([]byte, []byte) { return period(999, 100_000), period(1000, 100_000) }},
	{"1M lines all different", func() ([]byte, []byte) { return numbered("a", 1_000_000), numbered("b", 1_000_000) }},
	{"5M lines identical", func() ([]byte, []byte) { return period(10, 5_000_000), period(10, 5_000_000) }},
	{"5M lines, ends differ", func() ([]byte, []byte) {
		return []byte("x\n" + string(period(10, 5_000_000)) + "x\n"), []byte("y\n" + string(period(10, 5_000_000)) + "y\n")
	}},
	{"16k lines all different", func() ([]byte, []byte) { return numbered("a", 16384), numbered("b", 16384) }},
	{"16k lines of two kinds", func() ([]byte, []byte) { return random(1, 2, 16384), random(2, 2, 16384) }},
	{"16k lines of four kinds", func() ([]byte, []byte) { return random(1, 4, 16384), random(2, 4, 16384) }},
	{"8k lines shuffled", func() ([]byte, []byte) { return random(1, 8192, 8192), random(2, 8192, 8192) }},
	{"64k lines of two kinds", func() ([]byte, []byte) { return random(1, 2, 65536), random(2, 2, 65536) }},
	{"1M lines of two kinds", func() ([]byte, []byte) { return random(1, 2, 1_000_000), random(2, 2, 1_000_000) }},
	{"128k, half kept", func() ([]byte, []byte) { return random(1, 2, 131072), sparse(131072, 64) }},
	{"ones, 4k inserted", func() ([]byte, []byte) { return sparse(131072, 0), sparse(131072, 32) }},
}

func period(p, n int) []byte {
	var b bytes.Buffer
	for i := range n {
		b.WriteString(strconv.Itoa(i % p))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func numbered(prefix string, n int) []byte {
	var b bytes.Buffer
	for i := range n {
		b.WriteString(prefix + strconv.Itoa(i) + "\n")
	}
	return b.Bytes()
}

// random has n lines of the given number of kinds.
func random(seed uint64, kinds, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	var b bytes.Buffer
	for range n {
		b.WriteString(strconv.Itoa(r.IntN(kinds)) + "\n")
	}
	return b.Bytes()
}

// sparse has n equal lines with another one after each every of them.
func sparse(n, every int) []byte {
	var b bytes.Buffer
	for i := range n {
		b.WriteString("0\n")
		if every > 0 && i%every == every-1 {
			b.WriteString("1\n")
		}
	}
	return b.Bytes()
}

func BenchmarkDiff(b *testing.B) {
	for _, h := range heavy {
		b.Run(h.name, func(b *testing.B) {
			old, new := h.make()
			b.ReportAllocs()
			var edits []patch.Edit
			for b.Loop() {
				edits = patch.DiffLines(patch.Lines(old), patch.Lines(new))
			}
			checkApplies(b, old, new, edits)
		})
	}
}
