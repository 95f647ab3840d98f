package explain

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
)

// A mark is what the first line of an issue says: the commits that it tells of, and those
// of them that the branch does not have any more. One that is done is of a closed issue.
type mark struct {
	done      bool
	ids, gone []string
}

// maxIDs is how many of each a mark has.
const maxIDs = 200

const markEnd = " -->\n"

func markStart(branch string) string {
	sum := sha256.Sum256([]byte(branch))
	return "<!-- countersign-watch v1 " + hex.EncodeToString(sum[:]) + " "
}

// line is the mark as it begins a body.
func (m mark) line(branch string) string {
	words := []string{"open"}
	if m.done {
		words[0] = "done"
	}
	words = append(words, m.ids...)
	for _, id := range m.gone {
		words = append(words, "-"+id)
	}
	return markStart(branch) + strings.Join(words, " ") + markEnd
}

// readMark reads the mark at the beginning of a body. is says that the issue is one about
// the branch which is not done; what in its mark is no commit's id is left out.
func readMark(body, branch string) (m mark, is bool) {
	first, _, whole := strings.Cut(strings.ReplaceAll(body, "\r\n", "\n"), "\n")
	words, ours := strings.CutPrefix(first, markStart(branch))
	list, ends := strings.CutSuffix(words, strings.TrimSuffix(markEnd, "\n"))
	if fields := strings.Fields(list); whole && ours && ends && len(fields) > 0 && fields[0] == "open" {
		for _, word := range fields[1:] {
			id, gone := strings.CutPrefix(word, "-")
			switch {
			case !isID(id):
			case gone && len(m.gone) < maxIDs:
				m.gone = append(m.gone, id)
			case !gone && len(m.ids) < maxIDs:
				m.ids = append(m.ids, id)
			}
		}
		return m, true
	}
	return mark{}, false
}

// isID reports whether a word is a commit's id, of SHA-1 or SHA-256.
func isID(word string) bool {
	return (len(word) == 40 || len(word) == 64) && strings.Trim(word, "0123456789abcdef") == ""
}

// mark is what the issue tells of after an audit, that told of other commits before. What
// could not be audited is told as before.
func (a Watch) mark(told mark) (now mark) {
	if a.Found == nil {
		return told
	}
	for _, u := range a.Found.Unexplained[:min(len(a.Found.Unexplained), maxIDs)] {
		now.ids = append(now.ids, u.Commit)
	}
	for _, id := range slices.Concat(told.ids, told.gone) {
		if !a.OnBranch(id) && len(now.gone) < maxIDs && !slices.Contains(now.gone, id) {
			now.gone = append(now.gone, id)
		}
	}
	return now
}

// beside are those that another mark does not have.
func (m mark) beside(other mark) mark {
	not := func(ids, in []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(in, id) })
	}
	return mark{ids: not(m.ids, other.ids), gone: not(m.gone, other.gone)}
}

// same reports whether two are alike but for how lines end, which a forge may change.
func same(a, b forge.Issue) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return a.Open == b.Open && a.Title == b.Title && plain(a.Body) == plain(b.Body)
}
