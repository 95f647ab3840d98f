package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func module(sections ...[]byte) []byte {
	return append(slices.Clone(preamble), bytes.Join(sections, nil)...)
}

// data is a data section of a few segments, in any order.
func data(segments ...segment) []byte {
	content := encode(segments)
	return append(appendSize([]byte{dataSection}, len(content)), content...)
}

func appendSize(b []byte, n int) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// memory is what a module starts with, as an engine fills it.
func memory(t *testing.T, module []byte) []byte {
	t.Helper()
	memory := make([]byte, 1<<17)
	r := reader{rest: module[len(preamble):]}
	for len(r.rest) > 0 && r.err == nil {
		id, content := r.take(1), r.take(r.unsigned())
		if r.err == nil && id[0] == dataSection {
			segments, err := segmentsOf(content)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range segments {
				copy(memory[s.offset:], s.bytes)
			}
		}
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	return memory
}

func TestMergeSegments(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	other := []byte{0, 3, 'a', 'b', 'c'} // a custom section, which is left as it is
	for range 300 {
		var all []segment
		for at := int64(random.IntN(200)); at < 100_000; at += 1 + int64(random.IntN(1<<random.IntN(14))) {
			b := make([]byte, random.IntN(300))
			for i := range b {
				b[i] = byte(random.IntN(3))
			}
			all = append(all, segment{at, b})
			at += int64(len(b))
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		before := module(other, data(all...), other)
		after, err := mergeSegments(before)
		if err != nil || !bytes.Equal(memory(t, before), memory(t, after)) {
			t.Fatalf("another memory, %v", err)
		}
		if !bytes.HasPrefix(after, module(other)) || !bytes.HasSuffix(after, other) {
			t.Fatal("a section that is none of data was changed")
		}
	}
}

func TestMergeSegmentsRefuses(t *testing.T) {
	good := module(data(segment{8, []byte("abc")}, segment{100, []byte("d")}))
	if _, err := mergeSegments(good); err != nil {
		t.Fatal(err)
	}
	for n := range len(good) {
		if _, err := mergeSegments(good[:n]); err == nil && n != len(preamble) {
			t.Errorf("%d of %d bytes are a module", n, len(good))
		}
	}
	at := len(preamble) + 3 // the first segment: what it is, an instruction, an offset, the end
	for i, wrong := range map[int]byte{0: '\x7f', at: 1, at + 1: 0x23, at + 3: 0x6a, at + 2: 0x9c} {
		bad := slices.Clone(good)
		bad[i] = wrong
		if _, err := mergeSegments(bad); err == nil {
			t.Errorf("byte %d may be %#x", i, wrong)
		}
	}
	for name, segments := range map[string][]segment{
		"on one another": {{8, []byte("abc")}, {10, []byte("d")}},
		"negative":       {{-8, []byte("abc")}},
	} {
		if _, err := mergeSegments(module(data(segments...))); err == nil {
			t.Error(name, "is taken")
		}
	}
}

func TestMergeSegmentsNear(t *testing.T) {
	for gap, want := range map[int64]int{0: 1, 8: 1, fewZeros: 1, fewZeros + 1: 2} {
		if merged := merge([]segment{{1, []byte("a")}, {2 + gap, []byte("b")}}); len(merged) != want {
			t.Errorf("%d zeros between two: %v", gap, merged)
		}
	}
}

// TestSignedNumbers: the numbers are those of the specification's LEB128.
func TestSignedNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "00", 63: "3f", 64: "c000", 127: "ff00", 128: "8001", -1: "7f", -64: "40", -65: "bf7f", -128: "807f", 1<<31 - 1: "ffffffff07", -1 << 31: "8080808078"} {
		b := appendSigned(nil, n)
		if got := fmt.Sprintf("%x", b); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
		if r := (reader{rest: b}); r.signed() != n || r.err != nil || len(r.rest) > 0 {
			t.Errorf("%d is read as another number", n)
		}
	}
}
