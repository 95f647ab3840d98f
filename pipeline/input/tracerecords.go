package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
)

// A record is one object of a log, and the number of its line. The object is nil where the
// text is none; cut says that the text then is the last one and has no end.
type record struct {
	line   int
	object map[string]any
	cut    bool
}

// records are the objects of a log: one a line, between which other programs may have
// written (lines that do not begin with a brace are passed over), or the elements of one
// array, or objects of several lines one after the other.
func records(raw []byte) iter.Seq[record] {
	if isLines(raw) {
		return lines(raw)
	}
	return values(raw)
}

// isLines reports whether the file has an object on a line of its own, or no JSON at its
// beginning at all.
func isLines(raw []byte) bool {
	text := bytes.TrimLeft(raw, " \t\r\n")
	if bytes.HasPrefix(text, []byte("{")) {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		for r := range values(line) {
			if r.object != nil {
				return true
			}
			break
		}
	}
	for r := range values(text) {
		return r.object == nil
	}
	return true
}

func lines(raw []byte) iter.Seq[record] {
	return func(yield func(record) bool) {
		n := 0
		for line := range bytes.Lines(raw) {
			n++
			if !bytes.HasPrefix(bytes.TrimLeft(line, " \t\r"), []byte("{")) {
				continue
			}
			for r := range values(line) { // two writers may have shared one line
				if !yield(record{n, r.object, !bytes.HasSuffix(line, []byte("\n"))}) {
					return
				}
			}
		}
	}
}

func values(raw []byte) iter.Seq[record] {
	return func(yield func(record) bool) {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		list := bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("["))
		if list {
			_, _ = decoder.Token() // it is there
		}
		counted, line := 0, 1
		next := func() (record, error) {
			var value json.RawMessage
			err := decoder.Decode(&value)
			begins := int(decoder.InputOffset()) - len(value)
			line += bytes.Count(raw[counted:begins], []byte("\n"))
			counted = begins
			return record{line: line, object: parsed(string(value))}, err
		}
		for !list || decoder.More() {
			r, err := next()
			if errors.Is(err, io.EOF) && !list {
				return
			}
			if !yield(r) || err != nil {
				return
			}
		}
		if end, err := decoder.Token(); err == nil && end == json.Delim(']') {
			if _, err := next(); errors.Is(err, io.EOF) {
				return
			}
		}
		yield(record{line: line})
	}
}
