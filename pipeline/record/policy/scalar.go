package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A read takes a node for the value of a key. It returns the value as the canonical JSON of a
// Policy has it; nil is a problem, which it tells, or what says no more than its absence.
type read func(r *reader, n node, key string) any

// A field is a key of a mapping and what reads its value. Required ones may not be left out; of
// others that are, otherwise is the value, if it is not what the type has.
type field struct {
	name      string
	read      read
	required  bool
	otherwise any
}

// section reads a mapping whose keys are those of fields.
func section(fields ...field) read {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return func(r *reader, n node, key string) any {
		if !r.is(n, key, isMapping) {
			return nil
		}
		out, seen := map[string]any{}, map[string]mark{}
		for i, k := range n.keys {
			name := strings.TrimPrefix(key+"."+k.text, ".")
			f := slices.Index(names, k.text)
			first, twice := seen[k.text]
			switch {
			case k.kind != isText || f < 0:
				r.problem(k.mark, key, fmt.Sprintf("unknown key %q", shorten(k.text)), names...)
			case twice:
				r.problem(k.mark, name, fmt.Sprintf("appears twice; first on line %d", first.line))
			default:
				seen[k.text] = k.mark
				if v := fields[f].read(r, n.values[i], name); v != nil {
					out[k.text] = v
				}
			}
		}
		for _, f := range fields {
			if _, has := seen[f.name]; !has && f.required {
				r.problem(n.mark, key, "has no "+f.name)
			} else if !has && f.otherwise != nil {
				out[f.name] = f.otherwise
			}
		}
		return out
	}
}

// is refuses a node of another kind.
func (r *reader) is(n node, key string, want ...kind) bool {
	if slices.Contains(want, n.kind) {
		return true
	}
	message := fmt.Sprintf("is %s, not %s", n.kind, strings.Join(texts(want), " or "))
	if slices.Contains(want, isText) && (n.kind == isInteger || n.kind == isBool) {
		message += "; as text it needs quotes"
	}
	r.problem(n.mark, key, message)
	return false
}

func texts[T ~string](words []T) (out []string) {
	for _, w := range words {
		out = append(out, string(w))
	}
	return out
}

func boolean(r *reader, n node, key string) any {
	if is := r.is(n, key, isBool); is && (n.text == "true" || n.text == "false") {
		return n.text == "true"
	} else if is {
		r.problem(n.mark, key, fmt.Sprintf("is %q", shorten(n.text)), "true", "false")
	}
	return nil
}

var decimal = canon.Regexp(`^(0|-?[1-9][0-9]*)$`)

// number reads a decimal integer from least to most. YAML's other forms (0x10,
// 010, 1_000) mean different things to different readers.
func number(least, most int64) read {
	return func(r *reader, n node, key string) any {
		if !r.is(n, key, isInteger) {
			return nil
		}
		v, err := strconv.ParseInt(n.text, 10, 64)
		switch {
		case !decimal().MatchString(n.text):
			r.problem(n.mark, key, fmt.Sprintf("%s is not a plain decimal number", shorten(n.text)))
		case least == most && v != least:
			r.problem(n.mark, key, fmt.Sprintf("is %s; this program reads %d", shorten(n.text), least))
		case err != nil || v < least || v > most:
			r.problem(n.mark, key, fmt.Sprintf("is %s, not from %d to %d", shorten(n.text), least, most))
		default:
			return v
		}
		return nil
	}
}

// word reads one of a few words.
func word[T ~string](allowed ...T) read {
	return func(r *reader, n node, key string) any {
		if !r.is(n, key, isText) {
			return nil
		}
		if slices.Contains(allowed, T(n.text)) {
			return n.text
		}
		r.problem(n.mark, key, fmt.Sprintf("is %q", shorten(n.text)), texts(allowed)...)
		return nil
	}
}

// A form is what text must look like; the message says it in words.
type form struct {
	pattern func() *regexp.Regexp // nil: anything
	most    int                   // characters
	message string
}

// anyText is text of up to most characters.
func anyText(most int) form { return form{nil, most, "text"} }

func text(f form) read {
	return func(r *reader, n node, key string) any {
		if !r.is(n, key, isText) {
			return nil
		}
		s := n.text
		_, wrong := unshown(s, false) // an escape can make any
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
			return nil
		}
		return s
	}
}

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= 60 {
		return s
	}
	return string([]rune(s)[:60]) + "…"
}

// list reads each value of a sequence. An empty one says no more than its absence, unless why
// tells what is wrong with it.
func list(each read, why string) read {
	return func(r *reader, n node, key string) any {
		if !r.is(n, key, isSequence) {
			return nil
		}
		if len(n.values) == 0 && why != "" {
			r.problem(n.mark, key, "is an empty list, "+why)
		}
		var out []any
		for i, v := range n.values {
			if one := each(r, v, fmt.Sprintf("%s[%d]", key, i)); one != nil {
				out = append(out, one)
			}
		}
		if out == nil {
			return nil
		}
		return out
	}
}

// set reads a list of texts, none of which may stand there twice.
func set(each read, why string) read {
	return func(r *reader, n node, key string) any {
		seen := map[any]bool{}
		return list(func(r *reader, n node, key string) any {
			v := each(r, n, key)
			if v != nil && seen[v] {
				r.problem(n.mark, key, fmt.Sprintf("%q appears twice in this list", shorten(n.text)))
			}
			seen[v] = true
			return v
		}, why)(r, n, key)
	}
}

// choice reads a list of some words, in any order, and has them in theirs.
func choice[T ~string](words []T, why string) read {
	return func(r *reader, n node, key string) any {
		empty := why
		if r.joined { // Tighten makes one
			empty = ""
		}
		said, _ := set(word(words...), empty)(r, n, key).([]any)
		out := []T{}
		for _, w := range words {
			if slices.Contains(said, any(string(w))) {
				out = append(out, w)
			}
		}
		return out
	}
}

var (
	durationForm = form{canon.Regexp(`^[1-9][0-9]{0,8}[smhdw]$`), 10, "a duration such as 90s, 10m, 72h, 14d or 2w"}
	sizeForm     = form{canon.Regexp(`^[1-9][0-9]{0,9} ?(B|KiB|MiB|GiB)$`), 20, "a size such as 5 MiB"}
	units        = map[string]int64{
		"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600,
		"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	}
)

// quantity is a text of a form that has a unit, in the least unit.
func (r *reader) quantity(n node, key string, f form, most int64, told string) (count int64, ok bool) {
	s, ok := text(f)(r, n, key).(string)
	if !ok {
		return 0, false
	}
	digits := strings.TrimRight(s, " BKMGismhdw")
	count, err := strconv.ParseInt(digits, 10, 64)
	unit := units[strings.TrimSpace(s[len(digits):])]
	if err != nil || count > most/unit {
		r.problem(n.mark, key, "is "+s+told)
		return 0, false
	}
	return count * unit, true
}

// duration reads a number and its unit, at least a second and not over most.
func duration(most time.Duration) read {
	return func(r *reader, n node, key string) any {
		told := fmt.Sprintf(", longer than %dh", most/time.Hour)
		if seconds, ok := r.quantity(n, key, durationForm, int64(most/time.Second), told); ok {
			return Duration(seconds) * Duration(time.Second)
		}
		return nil
	}
}

// size reads bytes: a number, or one with a unit.
func size(r *reader, n node, key string) any {
	if n.kind == isInteger {
		return number(1, mostSize)(r, n, key)
	}
	if !r.is(n, key, isInteger, isText) {
		return nil
	}
	if bytes, ok := r.quantity(n, key, sizeForm, mostSize, ", more than 1 GiB"); ok {
		return bytes
	}
	return nil
}
