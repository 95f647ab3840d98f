package patch

import "errors"

// maxVarint is the length of a size in a delta at most: 63 bits in sevens.
const maxVarint = 9

var errDelta = errors.New("malformed binary delta")

// applyDelta runs a Git delta (gitformat-pack(5), "Deltified representation")
// on before. It can read only inside before and makes exactly as many bytes as
// the delta announces, which the caller bounds.
func applyDelta(before, delta []byte) ([]byte, error) {
	from, to, delta, err := deltaSizes(delta)
	switch {
	case err != nil:
		return nil, err
	case from != int64(len(before)):
		return nil, errors.New("binary delta is for a file of another size")
	}
	out := make([]byte, 0, to)
	for len(delta) > 0 {
		var piece []byte
		if piece, delta, err = deltaPiece(before, delta); err != nil {
			return nil, err
		}
		if len(out)+len(piece) > int(to) {
			return nil, errSize
		}
		out = append(out, piece...)
	}
	if len(out) != int(to) {
		return nil, errSize
	}
	return out, nil
}

// deltaPiece is what one instruction adds: bytes of the delta itself, or of
// before.
func deltaPiece(before, delta []byte) (piece, rest []byte, err error) {
	op, delta := delta[0], delta[1:]
	switch {
	case op == 0:
		return nil, nil, errDelta
	case op < 0x80 && int(op) > len(delta):
		return nil, nil, errDelta
	case op < 0x80:
		return delta[:op], delta[op:], nil
	}
	var arg [7]int // four bytes of the offset, three of the size, little endian
	for i := range arg {
		if op&(1<<i) == 0 {
			continue
		}
		if len(delta) == 0 {
			return nil, nil, errDelta
		}
		arg[i], delta = int(delta[0]), delta[1:]
	}
	offset := arg[0] | arg[1]<<8 | arg[2]<<16 | arg[3]<<24
	size := arg[4] | arg[5]<<8 | arg[6]<<16
	if size == 0 {
		size = 0x10000
	}
	if offset > len(before) || size > len(before)-offset {
		return nil, nil, errors.New("binary delta reads outside the file")
	}
	return before[offset : offset+size], delta, nil
}

// deltaSizes reads the sizes of the old and the new file.
func deltaSizes(delta []byte) (from, to int64, rest []byte, err error) {
	if from, delta, err = varint(delta); err != nil {
		return 0, 0, nil, err
	}
	to, delta, err = varint(delta)
	return from, to, delta, err
}

// varint reads seven bits a byte, the lowest first.
func varint(b []byte) (n int64, rest []byte, err error) {
	for i, c := range b[:min(len(b), maxVarint)] {
		n |= int64(c&0x7F) << (7 * i)
		if c < 0x80 {
			return n, b[i+1:], nil
		}
	}
	return 0, nil, errDelta
}
