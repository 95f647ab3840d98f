package checks

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// excerpt is what a command printed, as text of at most maxOutput bytes: bytes
// that are not UTF-8 become U+FFFD, and where it is too long, the middle becomes
// a line that counts what is missing. printed holds the first bytes of total;
// where it does not hold all, the end is not known, and only the beginning stays.
func excerpt(printed []byte, total int64) string {
	complete := total <= int64(len(printed))
	if text, used := head(printed, maxOutput); complete && used == len(printed) {
		return text
	}
	const room = maxOutput - 64 // beside the line between
	var end string
	start, used := head(printed, room)
	if complete {
		start, used = head(printed, room/2)
		var last int
		end, last = tail(printed[used:], room/2)
		used += last
	}
	if !strings.HasSuffix(start, "\n") {
		start += "\n"
	}
	return fmt.Sprintf("%s… %d bytes cut …\n%s", start, total-int64(used), end)
}

// head is the beginning of b as text of at most room bytes, and how many bytes
// of b it stands for.
func head(b []byte, room int) (text string, used int) {
	var out strings.Builder
	for used < len(b) {
		r, size := utf8.DecodeRune(b[used:])
		if out.Len()+utf8.RuneLen(r) > room {
			break
		}
		out.WriteRune(r)
		used += size
	}
	return out.String(), used
}

// tail is head from the other end.
func tail(b []byte, room int) (text string, used int) {
	for used < len(b) {
		r, size := utf8.DecodeLastRune(b[:len(b)-used])
		if room -= utf8.RuneLen(r); room < 0 {
			break
		}
		used += size
	}
	text, _ = head(b[len(b)-used:], len(b)*utf8.UTFMax)
	return text, used
}
