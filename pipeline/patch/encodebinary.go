package patch

import (
	"bytes"
	"fmt"
	"hash/adler32"
)

// writeBinary writes Git's "literal" form: a zlib stream (RFC 1950) of stored
// blocks (RFC 1951 3.2.4), base 85, 52 bytes a line.
func writeBinary(b *bytes.Buffer, data []byte) {
	fmt.Fprintf(b, "GIT binary patch\nliteral %d\n", len(data))
	stream := storedZlib(data)
	for len(stream) > 0 {
		n := min(52, len(stream))
		writeBase85(b, stream[:n])
		stream = stream[n:]
	}
	b.WriteByte('\n')
}

func storedZlib(data []byte) []byte {
	const most = 65535
	out := append(make([]byte, 0, len(data)+len(data)/most*5+16), 0x78, 0x01)
	sum := adler32.Checksum(data)
	for {
		n := min(most, len(data))
		final := byte(0)
		if n == len(data) {
			final = 1
		}
		out = append(out, final, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		out = append(out, data[:n]...)
		if data = data[n:]; final == 1 {
			break
		}
	}
	return append(out, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

const base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// writeBase85 writes one line: the length as a letter, then five characters
// for each four bytes, the last group padded with zeros.
func writeBase85(b *bytes.Buffer, chunk []byte) {
	if n := len(chunk); n <= 26 {
		b.WriteByte(byte('A' + n - 1))
	} else {
		b.WriteByte(byte('a' + n - 27))
	}
	for len(chunk) > 0 {
		var word [4]byte
		chunk = chunk[copy(word[:], chunk):]
		v := uint32(word[0])<<24 | uint32(word[1])<<16 | uint32(word[2])<<8 | uint32(word[3])
		var group [5]byte
		for i := 4; i >= 0; i-- {
			group[i] = base85[v%85]
			v /= 85
		}
		b.Write(group[:])
	}
	b.WriteByte('\n')
}
