package patch

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// header collects what the lines between "diff --git" and the content say. A
// field is empty where its line is missing.
type header struct {
	line                 int
	title                string // after "diff --git "
	minus, plus          string // after "--- " and "+++ "
	from, to             string // rename or copy
	oldMode, newMode     Mode
	made, gone           bool // new file, deleted file
	renames, copies      bool
	hasMinus, hasContent bool
}

// header reads the extended header lines (git-diff(1), "Generating patch text
// with -p") up to the content or the next file.
func (s *scanner) header(h *header) error {
	for len(s.rest) > 0 {
		if s.at(sectionMark) || s.at("@@ ") || s.at("GIT binary patch\n") || s.at("Binary files ") || s.at("-- \n") || s.at("\n") {
			h.hasContent = s.at("@@ ")
			break
		}
		if err := s.headerLine(h); err != nil {
			return err
		}
	}
	if h.hasMinus && h.plus == "" {
		return s.fail(`"---" line without a "+++" line`)
	}
	if h.hasMinus != h.hasContent {
		return s.fail(`hunks and "---" lines must come together`)
	}
	return nil
}

func (s *scanner) headerLine(h *header) error {
	line := s.next()
	word, value, ok := cutKeyword(line)
	if !ok {
		return s.notADiff(line)
	}
	var err error
	switch word {
	case "old mode", "deleted file mode":
		h.gone = h.gone || word != "old mode"
		h.oldMode, err = parseMode(value)
	case "new mode", "new file mode":
		h.made = h.made || word != "new mode"
		h.newMode, err = parseMode(value)
	case "rename from", "copy from":
		h.from, err = unquote(value)
	case "rename to", "copy to":
		h.renames, h.copies = word == "rename to", word == "copy to"
		h.to, err = unquote(value)
	case "index":
		err = h.index(value)
	case "---":
		h.hasMinus = true
		h.minus, err = unquote(value)
	case "+++":
		h.plus, err = unquote(value)
	}
	if err != nil {
		return s.fail("%v", err)
	}
	return nil
}

var keywords = []string{
	"old mode", "new mode", "deleted file mode", "new file mode", "rename from", "rename to",
	"copy from", "copy to", "similarity index", "dissimilarity index", "index", "---", "+++",
}

func cutKeyword(line string) (word, value string, ok bool) {
	for _, k := range keywords {
		if v, found := strings.CutPrefix(line, k+" "); found {
			return k, v, true
		}
	}
	return "", "", false
}

// index reads "<old>..<new>[ <mode>]"; the mode stands for both sides.
func (h *header) index(value string) error {
	ids, mode, hasMode := strings.Cut(value, " ")
	old, new, ok := strings.Cut(ids, "..")
	if !ok || !isHex(old) || !isHex(new) || old == "" || new == "" {
		return errors.New("malformed index line")
	}
	if !hasMode {
		return nil
	}
	m, err := parseMode(mode)
	h.oldMode, h.newMode = m, m
	return err
}

func parseMode(s string) (Mode, error) {
	switch s {
	case "100644", "100664":
		return Regular, nil
	case "100755":
		return Executable, nil
	case "120000":
		return 0, errors.New("symbolic links are refused")
	case "160000":
		return 0, errors.New("submodules are refused")
	}
	return 0, errors.New("unknown file mode " + Quote(clip(s)))
}

// section checks that all lines that name the file agree, and hands the text
// to go-gitdiff.
func (h *header) section(text []byte) (section, error) {
	fail := func(msg string) (section, error) { return section{}, &Error{Line: h.line, Message: msg} }
	old, new, err := h.names()
	if err != nil {
		return fail(err.Error())
	}
	files, preamble, err := gitdiff.Parse(bytes.NewReader(text))
	if err != nil {
		return fail("malformed file section: " + err.Error())
	}
	if len(files) != 1 || preamble != "" {
		return fail("malformed file section")
	}
	f := files[0]
	if f.OldName != "" && f.OldName != old || f.NewName != "" && f.NewName != new {
		return fail("headers disagree on the file's name")
	}
	if f.IsNew != h.made || f.IsDelete != h.gone || f.IsRename != h.renames || f.IsCopy != h.copies {
		return fail("headers disagree on what happens to the file")
	}
	return section{line: h.line, old: old, new: new, oldMode: h.oldMode, newMode: h.newMode, file: f}, nil
}

// names returns the old and the new path, equal but for renames and copies.
func (h *header) names() (old, new string, err error) {
	switch {
	case (h.renames || h.copies) && h.from != "" && h.to != "":
		old, new = h.from, h.to
	case h.from != "" || h.to != "":
		return "", "", errors.New("rename or copy without both names")
	default:
		if old, err = h.soleName(); err != nil {
			return "", "", err
		}
		new = old
	}
	if h.title != quotedPair("a/"+old, "b/"+new, h.title) {
		return "", "", errors.New("headers disagree on the file's name")
	}
	return old, new, h.checkMarks(old, new)
}

// soleName is the one name of a section that renames nothing: from the "+++"
// or "---" line, else from a title whose two halves are the same.
func (h *header) soleName() (string, error) {
	for _, side := range []struct{ name, prefix string }{{h.plus, "b/"}, {h.minus, "a/"}} {
		if side.name == "" || side.name == "/dev/null" {
			continue
		}
		name, ok := strings.CutPrefix(side.name, side.prefix)
		if !ok {
			return "", errPrefix
		}
		return name, nil
	}
	if strings.HasPrefix(h.title, `"`) {
		name, err := unquote(h.title[:quotedLen(h.title)])
		return strings.TrimPrefix(name, "a/"), err
	}
	half := len(h.title) / 2
	name, ok := strings.CutPrefix(h.title[:half], "a/")
	if !ok {
		return "", errPrefix
	}
	return name, nil
}

var errPrefix = errors.New(`names do not begin with "a/" and "b/"`)

// checkMarks compares the "---" and "+++" lines, where there are any.
func (h *header) checkMarks(old, new string) error {
	if !h.hasMinus {
		return nil
	}
	wantMinus, wantPlus := "a/"+old, "b/"+new
	if h.made {
		wantMinus = "/dev/null"
	}
	if h.gone {
		wantPlus = "/dev/null"
	}
	if h.minus != wantMinus || h.plus != wantPlus {
		return errors.New("headers disagree on the file's name")
	}
	return nil
}

// quotedPair writes the title for two names in the quoting that got uses: git
// quotes non-ASCII names or leaves them, by its core.quotePath.
func quotedPair(a, b, got string) string {
	if qa, qb := cQuote(a, true), cQuote(b, true); qa+" "+qb == got {
		return got
	}
	return cQuote(a, false) + " " + cQuote(b, false)
}

// cQuote is Git's quote_c_style for the characters that a safe path can hold.
func cQuote(name string, nonASCII bool) string {
	var b strings.Builder
	quoted := false
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
			quoted = true
		case c < 0x20 || c == 0x7F || c >= 0x80 && nonASCII:
			b.WriteString(`\` + strconv.FormatInt(int64(c)+0o1000, 8)[1:])
			quoted = true
		default:
			b.WriteByte(c)
		}
	}
	if !quoted {
		return name
	}
	return `"` + b.String() + `"`
}

// quotedLen is the length of the C-quoted name that s begins with, up to its
// closing quote; all of s where that is missing.
func quotedLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// unquote reads a name as it stands in a header: C-quoted, or plain; a tab ends
// either, which git writes after a name with spaces.
func unquote(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		name, _, _ := strings.Cut(s, "\t")
		return name, nil
	}
	quoted, rest := s[:quotedLen(s)], s[quotedLen(s):]
	if len(quoted) < 2 || quoted[len(quoted)-1] != '"' || rest != "" && rest[0] != '\t' {
		return "", errors.New("malformed quoted name")
	}
	body := quoted[1 : len(quoted)-1]
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			if body[i] == '"' {
				return "", errors.New("malformed quoted name")
			}
			b.WriteByte(body[i])
			continue
		}
		c, size, err := unescape(body[i+1:])
		if err != nil {
			return "", err
		}
		b.WriteByte(c)
		i += size
	}
	return b.String(), nil
}

func unescape(s string) (c byte, size int, err error) {
	const from, to = `abtnvfr"\`, "\a\b\t\n\v\f\r\"\\"
	if s != "" {
		if i := strings.IndexByte(from, s[0]); i >= 0 {
			return to[i], 1, nil
		}
	}
	if len(s) >= 3 {
		if n, err := strconv.ParseUint(s[:3], 8, 8); err == nil {
			return byte(n), 3, nil
		}
	}
	return 0, 0, errors.New("malformed quoted name")
}
