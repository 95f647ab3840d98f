package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
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

// check says what is wrong with a text, "" if nothing.
func (f form) check(s string) string {
	if !utf8.ValidString(s) {
		return "is not UTF-8"
	}
	for i, c := range s { // an escape can make any
		if why := unshown([]byte(s[i:]), c, utf8.RuneLen(c)); why != "" || c < ' ' {
			return fmt.Sprintf("the character U+%04X does not show", c)
		}
	}
	switch {
	case utf8.RuneCountInString(s) > f.most:
		return fmt.Sprintf("is longer than %d characters", f.most)
	case f.pattern != nil && !f.pattern().MatchString(s):
		return fmt.Sprintf("%q is not %s", shorten(s), f.message)
	}
	return ""
}

func text(dst *string, f form) read {
	return func(r *reader, n node, key string) {
		if !r.is(n, key, isText) {
			return
		}
		if why := f.check(n.text); why != "" {
			r.problem(n.mark, key, why)
			return
		}
		*dst = n.text
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
func appendOnce(r *reader, dst *[]string, s string, m mark, key string, before int) {
	switch {
	case len(r.problems) > before:
	case slices.Contains(*dst, s):
		r.problem(m, key, fmt.Sprintf("%q stands twice in this list", shorten(s)))
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
