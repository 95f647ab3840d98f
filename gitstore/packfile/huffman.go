package packfile

import "math/bits"

const (
	longestCode = 15
	shortCode   = 9
)

// huffman is a code: its symbols, sorted by their codes, and how many codes of
// each length there are. Of short codes there is a table.
type huffman struct {
	short   [1 << shortCode]uint16 // symbol<<4 | length; 0: no such code
	mask    uint64                 // of the bits that short is for
	count   [longestCode + 1]uint16
	symbols [288]uint16
}

// build makes the code of the lengths of all symbols' codes (0: none). It must
// use up every sequence of bits, but for a code of one symbol or none.
func (h *huffman) build(lengths []uint8) bool {
	h.count = [longestCode + 1]uint16{}
	for _, n := range lengths {
		h.count[n]++
	}
	used := len(lengths) - int(h.count[0])
	h.count[0] = 0
	left, longest := 1, 1
	var next, code [longestCode + 1]uint16 // by length: the place of the next symbol, and its code
	for n := 1; n <= longestCode; n++ {
		if left = left<<1 - int(h.count[n]); left < 0 {
			return false
		}
		if h.count[n] > 0 {
			longest = n
		}
		next[n] = next[n-1] + h.count[n-1]
		code[n] = (code[n-1] + h.count[n-1]) << 1
	}
	if left > 0 && used > 0 && (used > 1 || h.count[1] == 0) {
		return false
	}
	h.mask = 1<<min(longest, shortCode) - 1
	short := h.short[:h.mask+1]
	if left > 0 {
		clear(short)
	}
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		h.symbols[next[n]] = uint16(symbol)
		next[n]++
		reversed := int(bits.Reverse16(code[n]) >> (16 - n))
		code[n]++
		if n > shortCode {
			short[reversed&(len(short)-1)] = 0
			continue
		}
		e := uint16(symbol)<<4 | uint16(n)
		for i := reversed; i < len(short); i += 1 << n {
			short[i] = e
		}
	}
	return true
}

// The codes of blocks that bring none (RFC 1951, 3.2.6).
var fixedLiterals, fixedDistances = func() (literals, distances *huffman) {
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	var all [32]uint8
	for i := range all {
		all[i] = 5
	}
	literals, distances = &huffman{}, &huffman{}
	if !literals.build(lengths[:]) || !distances.build(all[:]) {
		panic("packfile: the fixed codes")
	}
	return literals, distances
}()

// symbol reads a code. There are bits enough unless the stream ends.
func (f *inflater) symbol(h *huffman) (int, bool) {
	if e := h.short[f.bits&h.mask]; e != 0 {
		f.bits >>= e & 15
		f.n -= int(e & 15)
		return int(e >> 4), true
	}
	code, first, index := 0, 0, 0
	for n := 1; n <= longestCode; n++ {
		code |= int(f.bits >> (n - 1) & 1)
		count := int(h.count[n])
		if code-count < first {
			f.take(uint8(n))
			return int(h.symbols[index+code-first]), true
		}
		index, first = index+count, (first+count)<<1
		code <<= 1
	}
	return 0, false
}
