package packfile

// applyDelta puts a delta on its base (gitformat-pack(5), "Deltified
// representation"). Memory is taken only for what the delta really makes.
func applyDelta(base, delta []byte) ([]byte, error) {
	from, delta, ok1 := deltaSize(delta)
	to, ops, ok2 := deltaSize(delta)
	if !ok1 || !ok2 || from != uint64(len(base)) || to > maxObject {
		return nil, damaged("a delta that is not its base's")
	}
	if made, ok := deltaMakes(ops); !ok || made != to {
		return nil, damaged("a delta that does not make what it says")
	}
	out := make([]byte, 0, to)
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

// deltaMakes adds up what the operations append, and tells whether all of them
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
