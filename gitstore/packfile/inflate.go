package packfile

import (
	"encoding/binary"
	"hash/adler32"
)

// inflater decompresses a zlib stream (RFC 1950, 1951) that is in memory and
// whose size is known. To set up compress/zlib for a few hundred bytes takes
// longer than all else that is done with an object. What this one does not make
// sense of, sound or not, is left to compress/zlib, whose verdict counts.
type inflater struct {
	literals, distances, lengths huffman

	in   []byte
	pos  int
	bits uint64 // those that were read, the next one lowest
	n    int    // how many
	out  []byte
	at   int
}

// zlib decompresses the stream that in begins with to all of out, and returns
// how long it was.
func (f *inflater) zlib(in, out []byte) (n int, ok bool) {
	if len(in) < 2 || binary.BigEndian.Uint16(in)%31 != 0 || in[0]&15 != 8 || in[0]>>4 > 7 || in[1]&0x20 != 0 {
		return 0, false
	}
	f.in, f.pos, f.bits, f.n, f.out, f.at = in, 2, 0, 0, out, 0
	for last := false; !last; {
		f.fill()
		last = f.take(1) == 1
		kind := f.take(2)
		if f.n < 0 || !f.block(kind) {
			return 0, false
		}
	}
	f.align()
	if f.at < len(out) || len(in)-f.pos < 4 || binary.BigEndian.Uint32(in[f.pos:]) != adler32.Checksum(out) {
		return 0, false
	}
	return f.pos + 4, true
}

func (f *inflater) block(kind uint64) bool {
	switch kind {
	case 0:
		return f.stored()
	case 1:
		f.literals, f.distances = *fixedLiterals, *fixedDistances
		return f.compressed()
	case 2:
		return f.dynamic() && f.compressed()
	}
	return false
}

// fill reads until there are 48 bits, which is more than a length and its
// distance take. After the end of the stream there are none: then n becomes
// negative when they are taken.
func (f *inflater) fill() {
	if len(f.in)-f.pos >= 8 {
		f.bits |= binary.LittleEndian.Uint64(f.in[f.pos:]) << f.n
		f.pos += (63 - f.n) / 8
		f.n |= 56
		return
	}
	for f.n <= 56 && f.pos < len(f.in) {
		f.bits |= uint64(f.in[f.pos]) << f.n
		f.pos, f.n = f.pos+1, f.n+8
	}
}

func (f *inflater) take(n uint8) uint64 {
	v := f.bits & (1<<n - 1)
	f.bits >>= n
	f.n -= int(n)
	return v
}

// align goes on at the next whole byte.
func (f *inflater) align() {
	f.pos -= f.n / 8
	f.bits, f.n = 0, 0
}

func (f *inflater) stored() bool {
	f.align()
	if len(f.in)-f.pos < 4 {
		return false
	}
	size := binary.LittleEndian.Uint16(f.in[f.pos:])
	data := f.in[f.pos+4:]
	if ^size != binary.LittleEndian.Uint16(f.in[f.pos+2:]) || len(data) < int(size) || len(f.out)-f.at < int(size) {
		return false
	}
	f.at += copy(f.out[f.at:], data[:size])
	f.pos += 4 + int(size)
	return true
}

// codeOrder is how the lengths of the codes for lengths are sorted.
var codeOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block.
func (f *inflater) dynamic() bool {
	literals, distances, codes := int(f.take(5))+257, int(f.take(5))+1, int(f.take(4))+4
	if f.n < 0 || literals > 286 || distances > 30 {
		return false
	}
	var lengths [286 + 30]uint8
	var order [19]uint8
	for i := range codes {
		f.fill()
		order[codeOrder[i]] = uint8(f.take(3))
	}
	if f.n < 0 || !f.lengths.build(order[:]) {
		return false
	}
	for i := 0; i < literals+distances; {
		f.fill()
		symbol, ok := f.symbol(&f.lengths)
		if !ok {
			return false
		}
		var value uint8
		again := 1
		switch {
		case symbol < 16:
			value = uint8(symbol)
		case symbol == 16:
			if i == 0 {
				return false
			}
			value, again = lengths[i-1], 3+int(f.take(2))
		case symbol == 17:
			again = 3 + int(f.take(3))
		default:
			again = 11 + int(f.take(7))
		}
		if f.n < 0 || again > literals+distances-i {
			return false
		}
		for ; again > 0; again-- {
			lengths[i] = value
			i++
		}
	}
	return f.literals.build(lengths[:literals]) && f.distances.build(lengths[literals:literals+distances])
}

// What symbols stand for (RFC 1951, 3.2.5): a least value, and how many bits
// are added to it.
var (
	lengthBase    = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthExtra   = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distanceBase  = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distanceExtra = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
)

// compressed reads a block whose codes are known.
func (f *inflater) compressed() bool {
	for {
		f.fill()
		symbol, ok := f.symbol(&f.literals)
		switch {
		case !ok || f.n < 0:
			return false
		case symbol < 256:
			if f.at == len(f.out) {
				return false
			}
			f.out[f.at] = byte(symbol)
			f.at++
		case symbol == 256:
			return true
		case symbol-257 >= len(lengthBase):
			return false
		default:
			length := int(lengthBase[symbol-257]) + int(f.take(lengthExtra[symbol-257]))
			symbol, ok := f.symbol(&f.distances)
			if !ok || symbol >= len(distanceBase) {
				return false
			}
			distance := int(distanceBase[symbol]) + int(f.take(distanceExtra[symbol]))
			if f.n < 0 || !f.again(distance, length) {
				return false
			}
		}
	}
}

// again repeats what was made before. What it repeats may be of its own making.
func (f *inflater) again(distance, length int) bool {
	if distance > f.at || length > len(f.out)-f.at {
		return false
	}
	for length > 0 {
		n := copy(f.out[f.at:f.at+length], f.out[f.at-distance:f.at])
		f.at, length, distance = f.at+n, length-n, distance+n
	}
	return true
}
