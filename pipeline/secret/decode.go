package secret

import "unicode/utf8"

const (
	maxDepth = 3  // encodings within encodings
	minText  = 8  // bytes of text that decoding must yield to be looked at
	minRun   = 11 // base64 digits that stand for minText bytes
)

// digits gives every base64 digit's value, in the standard alphabet and in
// that for URLs at once; 64 for other bytes.
var digits = func() (t [256]byte) {
	for i := range t {
		t[i] = 64
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	t['-'], t['_'] = 62, 63
	return t
}()

// nibbles gives every hexadecimal digit's value; 16 for other bytes.
var nibbles = func() (t [256]byte) {
	for i := range t {
		t[i] = 16
	}
	for i := range byte(10) {
		t['0'+i] = i
	}
	for i := range byte(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()

// decoded reads v with its runs of base64 and hexadecimal digits decoded, at
// every alignment, as a run may begin with digits that do not belong to it.
// Each piece stands for its whole run. Runs that do not cross a joint are left
// out of a joined view: they are in the view that was joined.
func (w *work) decoded(v *view) *view {
	out := &view{parent: v, depth: v.depth + 1}
	var buffer []byte
	for at := 0; at < len(v.text); {
		if digits[v.text[at]] == 64 {
			at++
			continue
		}
		end, hex := run(v.text, at)
		if end-at >= minRun && v.crosses(at, end) {
			if !w.spend(&w.bytes, 4*(end-at)) {
				w.unscanned(v, at, end)
			} else {
				buffer = out.run(v.text[at:end], at, padded(v.text, end), hex, buffer)
			}
		}
		at = end
	}
	return out
}

// crosses reports whether a joined view brought text[lo:hi] together.
func (v *view) crosses(lo, hi int) bool {
	if v.joints == nil {
		return true
	}
	any, _ := v.spans(lo, hi)
	return any
}

// run returns the end of the digits that begin at start, and whether a
// sufficient part of them is hexadecimal.
func run(text []byte, start int) (end int, hex bool) {
	longest, begin := 0, start
	for end = start; end < len(text) && digits[text[end]] < 64; end++ {
		if nibbles[text[end]] == 16 {
			begin = end + 1
		}
		longest = max(longest, end+1-begin)
	}
	return end, longest >= 2*minText
}

// padded returns the end of a run with its padding.
func padded(text []byte, end int) int {
	for n := 0; n < 2 && end < len(text) && text[end] == '='; n++ {
		end++
	}
	return end
}

// run adds what the digits decode to, which stands for [from, to).
func (v *view) run(digits []byte, from, to int, hex bool, buffer []byte) []byte {
	for align := range 4 {
		if len(digits)-align < minRun {
			break
		}
		buffer = base64(buffer[:0], digits[align:])
		v.texts(buffer, from, to)
	}
	for at := 0; hex && at < len(digits); at++ {
		end := at
		for end < len(digits) && nibbles[digits[end]] < 16 {
			end++
		}
		for align := range 2 {
			if end-at >= 2*minText {
				buffer = hexadecimal(buffer[:0], digits[at+align:end])
				v.texts(buffer, from+at, from+end)
			}
		}
		at = end
	}
	return buffer
}

func base64(out, text []byte) []byte {
	for len(text) >= 4 {
		n := uint32(digits[text[0]])<<18 | uint32(digits[text[1]])<<12 | uint32(digits[text[2]])<<6 | uint32(digits[text[3]])
		out, text = append(out, byte(n>>16), byte(n>>8), byte(n)), text[4:]
	}
	if len(text) >= 2 {
		out = append(out, digits[text[0]]<<2|digits[text[1]]>>4)
	}
	if len(text) == 3 {
		out = append(out, digits[text[1]]<<4|digits[text[2]]>>2)
	}
	return out
}

func hexadecimal(out, text []byte) []byte {
	for ; len(text) >= 2; text = text[2:] {
		out = append(out, nibbles[text[0]]<<4|nibbles[text[1]])
	}
	return out
}

// texts adds those parts of decoded bytes that can be text: a wrong alignment
// yields none.
func (v *view) texts(data []byte, from, to int) {
	for at := 0; at < len(data); {
		n := textual(data[at:])
		if n >= minText {
			v.stands(data[at:at+n], from, to)
			v.gap()
		}
		at += n + 1
	}
}

// textual is the length of data's beginning that is text in UTF-8 or UTF-16.
func textual(data []byte) int {
	at := 0
	for at < len(data) {
		if inText[data[at]] {
			at++
			continue
		}
		r, n := utf8.DecodeRune(data[at:])
		if n < 2 || r == utf8.RuneError {
			break
		}
		at += n
	}
	return at
}

// inText are the bytes that by themselves are part of a text: printable, white
// space, and NUL for UTF-16.
var inText = func() (t [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		t[c] = true
	}
	t['\n'], t['\r'], t['\t'], t[0] = true, true, true, true
	return t
}()
