package secret

import (
	"bytes"
	"unicode/utf8"
)

// wide reads v where it holds text in UTF-16, of either byte order, in Latin
// letters; nil where it holds no NUL.
func (w *work) wide(v *view) *view {
	if bytes.IndexByte(v.text, 0) < 0 || !w.spend(&w.bytes, len(v.text)) {
		return nil
	}
	out := &view{parent: v, depth: v.depth + 1}
	for at := 0; at+1 < len(v.text); {
		end := at
		for end < len(v.text) && v.text[end] != 0 && (end+1 == len(v.text) || v.text[end+1] == 0) {
			end += 2 // the last letter may lack its second byte: of another order, that is its first
		}
		end = min(end, len(v.text))
		if end-at >= 2*minText {
			out.narrow(v.text[at:end], at)
		}
		at = max(end, at+1)
	}
	return out
}

// narrow adds UTF-16 of Latin letters in UTF-8.
func (v *view) narrow(text []byte, from int) {
	for at := 0; at < len(text); {
		end := at
		for end < len(text) && text[end] < utf8.RuneSelf {
			end += 2
		}
		if at < end {
			v.spaced(text[at:min(end, len(text))], from+at)
		}
		if end < len(text) {
			v.stands(utf8.AppendRune(nil, rune(text[end])), from+end, min(from+end+2, from+len(text)))
			end += 2
		}
		at = end
	}
	v.gap()
}

// spaced adds every second byte.
func (v *view) spaced(text []byte, from int) {
	v.pieces = append(v.pieces, piece{int32(len(v.text)), int32((len(text) + 1) / 2), int32(from), int32(len(text)), 2})
	for i := 0; i < len(text); i += 2 {
		v.text = append(v.text, text[i])
	}
}
