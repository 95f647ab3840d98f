package gitpatch

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// header collects what the lines between "diff --git" and the content say. A
// field is empty where its line is missing.
type header struct {
	line             int
	title            string // after "diff --git "
	seen             [ranks]string
	minus, plus      string // after "--- " and "+++ ", as they stand
	from, to         string // rename or copy, as they stand
	oldMode, newMode patch.Mode
	modeWas          string // after "old mode "
	indexMode        patch.Mode
	oldID, newID     string
	score            int // of the similarity or dissimilarity line
	hasContent       bool
}

// The extended header lines (git-diff(1), "Generating patch text with -p") in
// the order in which git writes them. Lines of one rank exclude each other, and
// ranks only rise: so no line can be repeated, and none can follow "+++".
const (
	rankOldMode = iota
	rankNewMode
	rankExists
	rankScore
	rankFrom
	rankTo
	rankIndex
	rankMinus
	rankPlus
	ranks
)

var keywords = []struct {
	word string
	rank int
}{
	{"index", rankIndex}, {"---", rankMinus}, {"+++", rankPlus},
	{"old mode", rankOldMode}, {"new mode", rankNewMode},
	{"deleted file mode", rankExists}, {"new file mode", rankExists},
	{"similarity index", rankScore}, {"dissimilarity index", rankScore},
	{"rename from", rankFrom}, {"copy from", rankFrom},
	{"rename to", rankTo}, {"copy to", rankTo},
}

// header reads a section's header up to the content or the next file.
func (s *scanner) header(h *header) error {
	h.title = string(s.next()[len(sectionMark):])
	if err := s.checkLine(h.title); err != nil {
		return err
	}
	for last := -1; len(s.rest) > 0 && !s.atContent() && !s.at(sectionMark) && !s.at("\n") && !s.atSignature(); {
		rank, err := s.headerLine(h)
		if err != nil {
			return err
		}
		if rank <= last {
			return s.fail("header line is repeated or out of order")
		}
		last = rank
	}
	h.hasContent = s.at("@@ ")
	if h.minus != "" && h.plus == "" {
		return s.fail(`"---" line without a "+++" line`)
	}
	if (h.plus != "") != h.hasContent {
		return s.fail(`hunks and "---" lines must come together`)
	}
	return nil
}

func (s *scanner) atContent() bool {
	return s.at("@@ ") || s.at(binaryMark) || s.at("Binary files ") || s.at("Files ")
}

// checkLine refuses bytes that git never leaves bare in a header line.
func (s *scanner) checkLine(line string) error {
	switch {
	case strings.HasSuffix(line, "\r"):
		return s.fail("header line ends in a carriage return; the diff was changed on its way").With("make the diff anew: it was changed by hand, or on its way")
	case strings.IndexByte(line, 0) >= 0:
		return s.fail("NUL byte in a header line")
	}
	return nil
}

func (s *scanner) headerLine(h *header) (rank int, err error) {
	line := s.next()
	for _, k := range keywords {
		value, ok := bytes.CutPrefix(line, []byte(k.word+" "))
		if !ok {
			continue
		}
		if err := s.checkLine(string(value)); err != nil {
			return 0, err
		}
		if h.seen[k.rank] == "" { // else the order is wrong, which header says
			h.seen[k.rank] = k.word
			err = h.set(k.rank, string(value))
		}
		var e *patch.Error
		if errors.As(err, &e) {
			return 0, patch.At(e, s.line, "")
		} else if err != nil {
			return 0, s.fail("%v", err)
		}
		return k.rank, nil
	}
	return 0, s.notADiff(line)
}

// set takes over the value of one line.
func (h *header) set(rank int, value string) (err error) {
	if value == "" {
		return errors.New("header line without a value")
	}
	switch rank {
	case rankOldMode:
		h.modeWas = value
		h.oldMode, err = parseMode(value)
	case rankNewMode:
		if value == h.modeWas {
			return errors.New("the old mode and the new mode are the same")
		}
		h.newMode, err = parseMode(value)
	case rankExists:
		if h.seen[rank] == "new file mode" {
			h.newMode, err = parseMode(value)
		} else {
			h.oldMode, err = parseMode(value)
		}
	case rankScore:
		h.score, err = parseScore(value)
	case rankFrom:
		h.from = value
	case rankTo:
		h.to = value
	case rankIndex:
		err = h.index(value)
	case rankMinus:
		h.minus = value
	case rankPlus:
		h.plus = value
	}
	return err
}

// parseScore reads "87%".
func parseScore(value string) (int, error) {
	digits, ok := strings.CutSuffix(value, "%")
	n, err := strconv.ParseUint(digits, 10, 8)
	if !ok || err != nil || n > 100 || strconv.FormatUint(n, 10) != digits {
		return 0, errors.New("malformed similarity index")
	}
	return int(n), nil
}

// index reads "<old>..<new>[ <mode>]"; the mode stands for both sides.
func (h *header) index(value string) (err error) {
	ids, mode, hasMode := strings.Cut(value, " ")
	old, new, ok := strings.Cut(ids, "..")
	if !ok || !isID(old) || !isID(new) {
		return errors.New("malformed index line")
	}
	h.oldID, h.newID = old, new
	if hasMode {
		h.indexMode, err = parseMode(mode)
	}
	return err
}

// isID: git abbreviates to four digits at least; SHA-1 ids have 40, SHA-256 ids 64.
func isID(s string) bool {
	return (4 <= len(s) && len(s) <= 40 || len(s) == 64) && canon.IsHex(s, len(s))
}

// isWhole reports whether an id is not abbreviated.
func isWhole(id string) bool { return len(id) == 40 || len(id) == 64 }

func parseMode(s string) (patch.Mode, error) {
	switch s {
	case "100644":
		return patch.Regular, nil
	case "100755":
		return patch.Executable, nil
	case "120000":
		return 0, &patch.Error{Message: "symbolic links are refused", Try: "leave it out: only regular files can be proposed"}
	case "160000":
		return 0, &patch.Error{Message: "submodules are refused", Try: "git diff --ignore-submodules=all"}
	}
	return 0, errors.New("unknown file mode " + patch.Quote(clip(s)))
}

var errPrefix = errors.New(`names do not begin with "a/" and "b/"`)

// names returns the old and the new path, equal but for renames and copies. The
// up to five lines that name them must say the same.
func (h *header) names() (old, new string, err error) {
	switch {
	case h.from != "" && h.to != "":
		if old, err = Unquote(h.from); err == nil {
			new, err = Unquote(h.to)
		}
		if err == nil && old == new {
			err = errors.New("rename or copy of a file onto itself")
		}
	case h.from != "" || h.to != "":
		err = errors.New("rename or copy without both names")
	default:
		old, err = h.soleName()
		new = old
	}
	if err != nil {
		return "", "", err
	}
	if !isPair(h.title, "a/"+old, "b/"+new) {
		return "", "", errNames
	}
	// markIs reports whether a "---" or "+++" line names the file, or /dev/null
	// where the header has the word.
	markIs := func(mark, word, name string) bool {
		if h.seen[rankExists] == word {
			return mark == devNull
		}
		got, err := Unquote(markName(mark))
		return err == nil && got == name
	}
	if h.plus != "" && !(markIs(h.minus, "new file mode", "a/"+old) && markIs(h.plus, "deleted file mode", "b/"+new)) {
		return old, new, errNames
	}
	return old, new, nil
}

// soleName is the one name of a section that renames nothing: from the "+++"
// or "---" line, else from a title whose two halves are the same.
func (h *header) soleName() (string, error) {
	for _, side := range []struct{ mark, prefix string }{{h.plus, "b/"}, {h.minus, "a/"}} {
		if side.mark == "" || side.mark == devNull {
			continue
		}
		return cutPrefix(markName(side.mark), side.prefix)
	}
	if strings.HasPrefix(h.title, `"`) {
		return cutPrefix(h.title[:quotedLen(h.title)], "a/")
	}
	return cutPrefix(h.title[:len(h.title)/2], "a/")
}

// likelyName is the path for an error in the header itself, empty where the
// title does not tell.
func (h *header) likelyName() string {
	name, err := h.soleName()
	if err != nil || !isPair(h.title, "a/"+name, "b/"+name) {
		return ""
	}
	return name
}

func cutPrefix(quoted, prefix string) (string, error) {
	name, err := Unquote(quoted)
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return "", errPrefix
	}
	return name, nil
}

const devNull = "/dev/null"

// markName is the name in a "---" or "+++" line; git ends one with spaces by a
// tab.
func markName(mark string) string { return strings.TrimSuffix(mark, "\t") }

// checkQuotes refuses names that are quoted in another way than git does.
func (h *header) checkQuotes(old, new string) error {
	for _, n := range []struct{ got, name string }{
		{h.from, old}, {h.to, new}, {markName(h.minus), "a/" + old}, {markName(h.plus), "b/" + new},
	} {
		if n.got != "" && n.got != devNull && n.got != cQuote(n.name, true) && n.got != cQuote(n.name, false) {
			return errors.New("name is not quoted as git does")
		}
	}
	return nil
}

// isPair reports whether a title names a and b in one of git's two quotings, by
// its core.quotePath.
func isPair(title, a, b string) bool {
	return title == cQuote(a, true)+" "+cQuote(b, true) || title == cQuote(a, false)+" "+cQuote(b, false)
}

var (
	errNames = errors.New("headers disagree on the file's name")
	errDoes  = errors.New("headers disagree on what happens to the file")
	errModes = errors.New("headers disagree on the file's mode")
)
