package secret

import (
	"bytes"
	"compress/zlib"
	"io"
)

// git85 gives the values of Git's base 85; 85 for other bytes.
var git85 = func() (t [256]byte) {
	for i := range t {
		t[i] = 85
	}
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	return t
}()

// unpack decodes the payload of a literal section to at most limit bytes;
// false where it is not as Git writes it, or larger.
func unpack(payload []byte, size, limit int) ([]byte, bool) {
	if size > limit {
		return nil, false
	}
	packed := make([]byte, 0, len(payload))
	for line := range bytes.SplitSeq(payload, []byte("\n")) {
		var ok bool
		if packed, ok = unpackLine(packed, line); !ok {
			return nil, false
		}
	}
	rest := bytes.NewReader(packed)
	z, err := zlib.NewReader(rest)
	if err != nil {
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(z, int64(size)+1))
	if err != nil || len(data) != size || rest.Len() > 0 {
		return nil, false
	}
	return data, true
}

// unpackLine decodes one line: a letter for its length, and five characters
// for four bytes.
func unpackLine(out, line []byte) ([]byte, bool) {
	if len(line) == 0 || len(line)%5 != 1 {
		return out, false
	}
	length := 0
	switch c := line[0]; {
	case 'A' <= c && c <= 'Z':
		length = int(c-'A') + 1
	case 'a' <= c && c <= 'z':
		length = int(c-'a') + 27
	}
	groups := line[1:]
	if length == 0 || (length+3)/4*5 != len(groups) {
		return out, false
	}
	until := len(out) + length
	for ; len(groups) > 0; groups = groups[5:] {
		n := uint64(0)
		for _, c := range groups[:5] {
			if git85[c] == 85 {
				return out, false
			}
			n = n*85 + uint64(git85[c])
		}
		if n > 0xffffffff {
			return out, false
		}
		out = append(out, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return out[:until], true
}
