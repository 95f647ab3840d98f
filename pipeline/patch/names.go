package patch

import (
	"errors"
	"strings"
)

var errPrefix = errors.New(`names do not begin with "a/" and "b/"`)

// names returns the old and the new path, equal but for renames and copies. The
// up to five lines that name them must say the same.
func (h *header) names() (old, new string, err error) {
	switch {
	case h.from != "" && h.to != "":
		if old, err = unquote(h.from); err == nil {
			new, err = unquote(h.to)
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
	return old, new, h.checkMarks(old, new)
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
	name, err := unquote(quoted)
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

// checkMarks compares the "---" and "+++" lines, where there are any.
func (h *header) checkMarks(old, new string) error {
	if h.plus == "" {
		return nil
	}
	if !h.markIs(h.minus, "new file mode", "a/"+old) || !h.markIs(h.plus, "deleted file mode", "b/"+new) {
		return errNames
	}
	return nil
}

// markIs reports whether a "---" or "+++" line names the file, or /dev/null where
// the header has the word.
func (h *header) markIs(mark, word, name string) bool {
	if h.seen[rankExists] == word {
		return mark == devNull
	}
	got, err := unquote(markName(mark))
	return err == nil && got == name
}

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
