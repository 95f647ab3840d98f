package ignore

import "bytes"

// match reports whether a pattern matches a whole text, as gitignore(5) has it:
// "*" and "?" match no slash, "**" between slashes any number of directories,
// and a bracket one byte, a slash never.
func match(pattern, text []byte, fold bool) bool {
	return wild(pattern, text, fold) == yes
}

// What wild returns: a match, none, or none whatever an earlier "*" takes.
type outcome int

const (
	no outcome = iota
	yes
	abort         // the text ended first
	abortToDeeper // likewise, unless an earlier "**" takes more
)

// wild is the usual backtracking match, which gives up as soon as no other
// length of an earlier star can help, so that many stars stay cheap.
func wild(p, t []byte, fold bool) outcome {
	start := true // at the beginning of the pattern or after a slash of it
	for ; len(p) > 0; p = p[1:] {
		if len(t) == 0 && p[0] != '*' {
			return abort
		}
		switch p[0] {
		case '?':
			if t[0] == '/' {
				return no
			}
		case '*':
			return star(p, t, start, fold)
		case '[':
			n, ok := bracket(p, lower(t[0], fold), fold)
			if n == 0 {
				return abort
			}
			if !ok || t[0] == '/' {
				return no
			}
			p = p[n-1:]
		case '\\':
			if p = p[1:]; len(p) == 0 {
				return abort
			}
			fallthrough
		default:
			if lower(p[0], fold) != lower(t[0], fold) {
				return no
			}
		}
		start = p[0] == '/'
		t = t[1:]
	}
	if len(t) > 0 {
		return no
	}
	return yes
}

func star(p, t []byte, start, fold bool) outcome {
	rest := bytes.TrimLeft(p, "*")
	deep := false
	if len(p)-len(rest) > 1 && start && (len(rest) == 0 || rest[0] == '/' || rest[0] == '\\' && len(rest) > 1 && rest[1] == '/') {
		if len(rest) > 0 && rest[0] == '/' && wild(rest[1:], t, fold) == yes {
			return yes // "**/" may stand for nothing
		}
		deep = true
	}
	if len(rest) == 0 {
		if !deep && bytes.IndexByte(t, '/') >= 0 {
			return abortToDeeper
		}
		return yes
	}
	if !deep && rest[0] == '/' {
		slash := bytes.IndexByte(t, '/')
		if slash < 0 {
			return abort
		}
		return wild(rest, t[slash:], fold)
	}
	for ; len(t) > 0; t = t[1:] {
		switch o := wild(rest, t, fold); {
		case o == no, deep && o == abortToDeeper:
		default:
			return o
		}
		if !deep && t[0] == '/' {
			return abortToDeeper
		}
	}
	return abort
}

// bracket matches one byte with a bracket expression, and says how long that
// is; 0 where it does not end.
func bracket(p []byte, c byte, fold bool) (size int, ok bool) {
	i := 1
	negated := len(p) > 1 && (p[1] == '!' || p[1] == '^')
	if negated {
		i++
	}
	last := -1 // the byte that a range may begin with
	for first := true; ; first = false {
		if i >= len(p) {
			return 0, false
		}
		switch b := p[i]; {
		case b == ']' && !first:
			return i + 1, ok != negated
		case b == '[' && i+1 < len(p) && p[i+1] == ':':
			end := bytes.IndexByte(p[i+2:], ']')
			if end < 0 {
				return 0, false
			}
			class := p[i+2 : i+2+end]
			if !bytes.HasSuffix(class, []byte(":")) { // "[:" that is no class is two characters
				ok = ok || same(c, '[', fold)
				last = '['
				break
			}
			in, known := inClass(string(class[:len(class)-1]), c, fold)
			if !known {
				return 0, false
			}
			ok, last = ok || in, -1
			i += 2 + end
		case b == '-' && last >= 0 && i+1 < len(p) && p[i+1] != ']':
			if i++; p[i] == '\\' {
				if i++; i >= len(p) {
					return 0, false
				}
			}
			low, high := byte(last), p[i]
			ok = ok || low <= c && c <= high
			if up := upper(c); fold && up != c {
				ok = ok || low <= up && up <= high
			}
			last = -1
		default:
			if b == '\\' {
				if i++; i >= len(p) {
					return 0, false
				}
				b = p[i]
			}
			ok, last = ok || same(c, b, fold), int(b)
		}
		i++
	}
}

func inClass(name string, c byte, fold bool) (in, known bool) {
	low, up := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z'
	digit := '0' <= c && c <= '9'
	graph := c > ' ' && c < 0x7f
	switch name {
	case "alnum":
		return low || up || digit, true
	case "alpha":
		return low || up, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return low || fold && up, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !low && !up && !digit, true
	case "space":
		return c == ' ' || '\t' <= c && c <= '\r', true
	case "upper":
		return up || fold && low, true
	case "xdigit":
		return digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F', true
	}
	return false, false
}

func same(a, b byte, fold bool) bool { return lower(a, fold) == lower(b, fold) }

func lower(c byte, fold bool) byte {
	if fold && 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}
