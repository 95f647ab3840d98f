package packfile

import (
	"encoding/binary"
	"math/bits"
)

// applyDelta puts a delta on its base (gitformat-pack(5), "Deltified
// representation"). Memory is taken only for what the delta really makes.
func applyDelta(base, delta []byte) ([]byte, error) { return applyDeltaIn(nil, base, delta) }

// applyDeltaIn writes what a delta makes over room, which is not base's, if there is enough of it.
func applyDeltaIn(room, base, delta []byte) ([]byte, error) {
	from, delta, ok1 := deltaSize(delta)
	to, ops, ok2 := deltaSize(delta)
	if !ok1 || !ok2 || from != uint64(len(base)) || to > maxObject {
		return nil, damaged("a delta that is not its base's")
	}
	if made, ok := deltaMakes(ops); !ok || made != to {
		return nil, damaged("a delta that does not make what it says")
	}
	out := room[:0]
	if uint64(cap(out)) < to || to < uint64(cap(out))/8 {
		out = make([]byte, 0, to)
	}
	for len(ops) > 0 {
		op := ops[0]
		if op&0x80 == 0 {
			out = append(out, ops[1:1+int(op)]...)
			ops = ops[1+int(op):]
			continue
		}
		var offset, size uint64
		offset, size, ops = deltaCopy(ops)
		if offset > from || size > from-offset {
			return nil, damaged("a delta copies what its base has not")
		}
		out = append(out, base[offset:offset+size]...)
	}
	return out, nil
}

// deltaSize reads a number of seven bits a byte, the lowest first.
func deltaSize(delta []byte) (n uint64, rest []byte, ok bool) {
	for i := 0; i < len(delta) && i < 9; i++ {
		n |= uint64(delta[i]&0x7f) << (7 * i)
		if delta[i]&0x80 == 0 {
			return n, delta[i+1:], true
		}
	}
	return 0, nil, false
}

// deltaTarget is how many bytes a delta says that it makes, 0 if it says nothing.
func deltaTarget(delta []byte) int64 {
	_, delta, _ = deltaSize(delta)
	to, _, _ := deltaSize(delta)
	return int64(to) // of 63 bits at most
}

// deltaMakes adds up what the operations append, and reports whether all of them
// are complete.
func deltaMakes(ops []byte) (n uint64, ok bool) {
	for len(ops) > 0 {
		op := ops[0]
		if op == 0 {
			return 0, false // reserved
		}
		if op&0x80 == 0 {
			if len(ops) < 1+int(op) {
				return 0, false
			}
			n, ops = n+uint64(op), ops[1+int(op):]
			continue
		}
		if len(ops) < deltaCopySize[op&0x7f] {
			return 0, false
		}
		var size uint64
		_, size, ops = deltaCopy(ops)
		n += size
	}
	return n, true
}

// deltaCopySize is how many bytes a copy takes, by its seven flags.
var deltaCopySize = func() (sizes [128]int) {
	for flags := range sizes {
		sizes[flags] = 1
		for bit := range 7 {
			sizes[flags] += flags >> bit & 1
		}
	}
	return sizes
}()

// deltaCopy reads a complete copy: four flags for bytes of the offset, three
// for bytes of the size, the lowest first.
func deltaCopy(ops []byte) (offset, size uint64, rest []byte) {
	op, rest := ops[0], ops[1:]
	for i := range 7 {
		if op>>i&1 == 0 {
			continue
		}
		if i < 4 {
			offset |= uint64(rest[0]) << (8 * i)
		} else {
			size |= uint64(rest[0]) << (8 * (i - 4))
		}
		rest = rest[1:]
	}
	if size == 0 {
		size = 0x10000
	}
	return offset, size, rest
}

// What one operation appends at most. A copy could say more than 64 KiB, but
// git writes no longer ones.
const (
	maxCopy   = 1 << 16
	maxInsert = 127
)

// makeDelta makes to of from by copying its beginning, inserting what is new
// and copying its end; where much is new in between, what from has of that is copied as well. It returns
// nil where that saves less than half.
func makeDelta(from, to []byte) []byte {
	if int64(len(from)) >= maxObject {
		return nil
	}
	head := samePrefix(from, to)
	tail := sameSuffix(from[head:], to[head:])
	middle := to[head : len(to)-tail]
	sparse := len(middle) >= len(to)/8 && len(middle) <= maxSearch && len(from) <= maxSearch
	if len(middle) >= len(to)/2 && !sparse {
		return nil
	}
	out := make([]byte, 0, 24+len(middle)+len(middle)/maxInsert)
	out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(len(from))), uint64(len(to)))
	out = appendCopy(out, 0, head)
	if sparse {
		out = appendFound(out, from, middle)
	} else {
		out = appendInsert(out, middle)
	}
	if out = appendCopy(out, len(from)-tail, tail); len(out) >= len(to)/2 {
		return nil
	}
	return out
}

// A search goes by blocks of this size, and over nothing longer than maxSearch.
const (
	searchBlock = 16
	maxSearch   = 32 << 10
)

// appendFound makes a text of copies from another one, and of insertions where that has nothing alike.
func appendFound(out, from, text []byte) []byte {
	blocks := make(map[[searchBlock]byte]int, len(from)/searchBlock)
	for at := len(from) / searchBlock * searchBlock; at >= searchBlock; at -= searchBlock { // the first of those alike stays
		blocks[[searchBlock]byte(from[at-searchBlock:])] = at - searchBlock
	}
	done := 0
	for i := 0; i+searchBlock <= len(text); {
		at, ok := blocks[[searchBlock]byte(text[i:])]
		if !ok {
			i++
			continue
		}
		back := sameSuffix(from[:at], text[done:i])
		n := samePrefix(from[at:], text[i:])
		out = appendCopy(appendInsert(out, text[done:i-back]), at-back, back+n)
		i += n
		done = i
	}
	return appendInsert(out, text[done:])
}

func appendInsert(out, text []byte) []byte {
	for len(text) > 0 {
		n := min(len(text), maxInsert)
		out, text = append(append(out, byte(n)), text[:n]...), text[n:]
	}
	return out
}

// appendCopy is what deltaCopy reads.
func appendCopy(out []byte, offset, size int) []byte {
	for size > 0 {
		n := min(size, maxCopy)
		op := len(out)
		out = append(out, 0x80)
		// Four bytes of the offset, two of the size: 64 KiB is size 0.
		for i, b := range [6]byte{byte(offset), byte(offset >> 8), byte(offset >> 16), byte(offset >> 24), byte(n), byte(n >> 8)} {
			if b != 0 {
				out = append(out, b)
				out[op] |= 1 << i
			}
		}
		offset, size = offset+n, size-n
	}
	return out
}

// samePrefix is how many bytes a and b begin with alike.
func samePrefix(a, b []byte) (n int) {
	for most := min(len(a), len(b)); n < most; n += 8 {
		if most-n < 8 {
			for n < most && a[n] == b[n] {
				n++
			}
			return n
		}
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	return n
}

// sameSuffix is how many bytes a and b end with alike.
func sameSuffix(a, b []byte) (n int) {
	for most := min(len(a), len(b)); n < most; n += 8 {
		if most-n < 8 {
			for n < most && a[len(a)-1-n] == b[len(b)-1-n] {
				n++
			}
			return n
		}
		if x := binary.LittleEndian.Uint64(a[len(a)-8-n:]) ^ binary.LittleEndian.Uint64(b[len(b)-8-n:]); x != 0 {
			return n + bits.LeadingZeros64(x)/8
		}
	}
	return n
}
