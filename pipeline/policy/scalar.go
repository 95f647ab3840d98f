package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
)

func boolean(dst *bool) read {
	return func(r *reader, n node, key string) {
		switch {
		case !r.is(n, key, isBool):
		case n.text == "true", n.text == "false":
			*dst = n.text == "true"
		default:
			r.problem(n.mark, key, fmt.Sprintf("is %q", shorten(n.text)), "true", "false")
		}
	}
}

var decimal = lazyregexp.New(`^(0|-?[1-9][0-9]*)$`)

// number reads a decimal integer from least to most. YAML's other forms (0x10,
// 010, 1_000) mean different things to different readers.
func number[T int | int64](dst *T, least, most T) read {
	return func(r *reader, n node, key string) {
		if !r.is(n, key, isInteger) {
			return
		}
		v, err := strconv.ParseInt(n.text, 10, 64)
		switch {
		case !decimal().MatchString(n.text):
			r.problem(n.mark, key, fmt.Sprintf("%s is not a plain decimal number", shorten(n.text)))
		case least == most && v != int64(least):
			r.problem(n.mark, key, fmt.Sprintf("is %s; this program reads %d", shorten(n.text), least))
		case err != nil || v < int64(least) || v > int64(most):
			r.problem(n.mark, key, fmt.Sprintf("is %s, not from %d to %d", shorten(n.text), least, most))
		default:
			*dst = T(v)
		}
	}
}

// word reads one of a few words.
func word[T ~string](dst *T, allowed []T) read {
	return func(r *reader, n node, key string) {
		if !r.is(n, key, isText) {
			return
		}
		if slices.Contains(allowed, T(n.text)) {
			*dst = T(n.text)
			return
		}
		words := make([]string, len(allowed))
		for i, w := range allowed {
			words[i] = string(w)
		}
		r.problem(n.mark, key, fmt.Sprintf("is %q", shorten(n.text)), words...)
	}
}

// A form is what text must look like; the message says it in words.
type form struct {
	pattern func() *regexp.Regexp // nil: anything
	most    int                   // characters
	message string
}

func text(dst *string, f form) read {
	return func(r *reader, n node, key string) {
		if !r.is(n, key, isText) {
			return
		}
		s, wrong := n.text, ""
		for i, c := range s { // an escape can make any
			if why := unshown([]byte(s[i:]), c, utf8.RuneLen(c)); why != "" || c < ' ' {
				wrong = fmt.Sprintf("the character U+%04X does not show", c)
				break
			}
		}
		switch {
		case !utf8.ValidString(s):
			wrong = "is not UTF-8"
		case wrong != "":
		case utf8.RuneCountInString(s) > f.most:
			wrong = fmt.Sprintf("is longer than %d characters", f.most)
		case f.pattern != nil && !f.pattern().MatchString(s):
			wrong = fmt.Sprintf("%q is not %s", shorten(s), f.message)
		}
		if wrong != "" {
			r.problem(n.mark, key, wrong)
			return
		}
		*dst = s
	}
}

// texts reads a list of texts, none of which may stand there twice.
func texts(dst *[]string, f form) read {
	return list(func(r *reader, n node, key string) {
		var s string
		before := len(r.problems)
		text(&s, f)(r, n, key)
		appendOnce(r, dst, s, n.mark, key, before)
	})
}

// appendOnce adds s unless reading it was a problem or it is there already.
func appendOnce[T ~string](r *reader, dst *[]T, s T, m mark, key string, before int) {
	switch {
	case len(r.problems) > before:
	case slices.Contains(*dst, s):
		r.problem(m, key, fmt.Sprintf("%q appears twice in this list", shorten(string(s))))
	default:
		*dst = append(*dst, s)
	}
}

var (
	durationForm = form{lazyregexp.New(`^[1-9][0-9]{0,8}[smhdw]$`), 10, "a duration such as 90s, 10m, 72h, 14d or 2w"}
	units        = map[byte]time.Duration{
		's': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour,
	}
)

// duration reads a number and its unit, at least a second and not over most.
func duration(dst *Duration, most time.Duration) read {
	return func(r *reader, n node, key string) {
		var s string
		text(&s, durationForm)(r, n, key)
		if s == "" {
			return
		}
		count, _ := strconv.ParseInt(s[:len(s)-1], 10, 64)
		unit := units[s[len(s)-1]]
		if count > int64(most/unit) {
			r.problem(n.mark, key, fmt.Sprintf("is %s, longer than %dh", s, most/time.Hour))
			return
		}
		*dst = Duration(time.Duration(count) * unit)
	}
}

// A read takes a node for the value of a key.
type read func(r *reader, n node, key string)

// A field is a key of a mapping and what reads its value.
type field struct {
	name string
	read read
}

// is refuses a node of another kind.
func (r *reader) is(n node, key string, want ...kind) bool {
	if slices.Contains(want, n.kind) {
		return true
	}
	words := make([]string, len(want))
	for i, k := range want {
		words[i] = string(k)
	}
	message := "is " + string(n.kind) + ", not " + strings.Join(words, " or ")
	if slices.Contains(want, isText) && (n.kind == isInteger || n.kind == isBool) {
		message += "; as text it needs quotes"
	}
	r.problem(n.mark, key, message)
	return false
}

// mapping reads the values of a mapping whose keys are those of fields.
func (r *reader) mapping(n node, key string, fields ...field) bool {
	if !r.is(n, key, isMapping) {
		return false
	}
	seen := map[string]mark{}
	for i, k := range n.keys {
		name := join(key, k.text)
		f := slices.IndexFunc(fields, func(f field) bool { return f.name == k.text })
		first, twice := seen[k.text]
		switch {
		case k.kind != isText || f < 0:
			r.problem(k.mark, key, fmt.Sprintf("unknown key %q", shorten(k.text)), names(fields)...)
		case twice:
			r.problem(k.mark, name, fmt.Sprintf("appears twice; first on line %d", first.line))
		default:
			seen[k.text] = k.mark
			fields[f].read(r, n.values[i], name)
		}
	}
	return true
}

func names(fields []field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return out
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// shorten keeps an error readable that tells what somebody wrote.
func shorten(s string) string {
	if utf8.RuneCountInString(s) <= 60 {
		return s
	}
	return string([]rune(s)[:60]) + "…"
}

// list reads each value of a sequence.
func list(each read) read {
	return func(r *reader, n node, key string) {
		if !r.is(n, key, isSequence) {
			return
		}
		for i, v := range n.values {
			each(r, v, fmt.Sprintf("%s[%d]", key, i))
		}
	}
}
