package explain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A Watch is what one audit of a branch came to.
type Watch struct {
	Branch string
	// Found is what accounts for each commit, nil where the audit could not be done or the
	// ledger does not verify. Failure says why, and is "" exactly where Found is not nil.
	Found   *Branch
	Failure string
	// OnBranch reports whether the branch has a commit, of those that were judged.
	OnBranch func(commit string) bool
	// Command is the command line that says all of it.
	Command string
	// Page is the address of a commit's page, "" for none.
	Page func(commit string) string
	// Clean takes secrets out of what others wrote.
	Clean func(string) string
}

// KeepIssue keeps one issue on a forge about the commits of a branch that nothing accounts for: it
// opens the issue, adds what comes later, and closes it once all is explained ([docs/explain.md]). It
// says what became of the issue, in words for a log; "" where there is none and none is needed. An
// audit that could not be done is never taken for one that found nothing.
//
// The issue is known by its author, the account that the program runs as, and by its first
// line, which nobody sees:
//
//	<!-- countersign-watch v1 <SHA-256 of the branch's name> open <id> -<id> … -->
//
// The ids are the commits that the issue tells of, the newest first; a minus stands
// before one that the branch does not have any more. There are 200 of each at most. In an issue that this program
// closed, the word is "done", and it is not looked at again.
func KeepIssue(ctx context.Context, on forge.Issues, a Watch) (done string, err error) {
	ours := func(body string) bool {
		_, is := readMark(body, a.Branch)
		return is
	}
	return Keep(ctx, on, ours, a.bad(), a.next)
}

// IsKept reports whether an open issue is the one that KeepIssue keeps about a branch.
func IsKept(ctx context.Context, on forge.Issues, branch string, number int) (bool, error) {
	me, err := on.Viewer(ctx)
	if err != nil {
		return false, err
	}
	open, err := on.OpenIssues(ctx)
	return me.ID != "" && slices.ContainsFunc(open, func(i forge.Issue) bool {
		_, is := readMark(i.Body, branch)
		return is && i.Number == number && i.Author.ID == me.ID
	}), err
}

// Keep keeps one issue of the account that the program runs as, whose body is ours. next is given the issue, nil for none, and says
// what it should be, nil for none, and what is to be said in a comment. One that was closed is looked for if there is something to tell.
// It says what became of the issue.
func Keep(ctx context.Context, on forge.Issues, ours func(body string) bool, tells bool, next func(*forge.Issue) (*forge.Issue, string)) (done string, err error) {
	me, err := on.Viewer(ctx)
	if err != nil {
		return "", err
	}
	if me.ID == "" {
		return "", fmt.Errorf("the forge does not tell the number of the account that it is")
	}
	mine := func(i forge.Issue) bool { return i.Author.ID == me.ID && ours(i.Body) }
	open, err := on.OpenIssues(ctx)
	if err != nil {
		return "", err
	}
	var issue *forge.Issue
	if at := slices.IndexFunc(open, mine); at >= 0 {
		issue = &open[at]
	} else if tells { // somebody may have closed it
		closed, err := on.ClosedIssues(ctx)
		if err != nil {
			return "", err
		}
		if at := slices.IndexFunc(closed, mine); at >= 0 {
			issue = &closed[at]
		}
	}
	want, comment := next(issue)
	switch {
	case want == nil:
		return "", nil
	case issue == nil:
		return create(ctx, on, *want, mine)
	}
	if comment != "" { // first, as what the issue tells of is not told again
		if _, err := on.UpsertComment(ctx, want.Number, "", comment); err != nil {
			return "", err
		}
	}
	word := "is as it was"
	switch {
	case !want.Open:
		word = "was closed"
	case !issue.Open:
		word = "was opened again"
	case comment != "" || !same(*issue, *want):
		word = "was updated"
	}
	if !same(*issue, *want) {
		if err := on.UpdateIssue(ctx, *want); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("issue %d %s", want.Number, word), nil
}

// create opens the issue. Where another run did the same meanwhile, the older one stays.
func create(ctx context.Context, on forge.Issues, next forge.Issue, mine func(forge.Issue) bool) (done string, err error) {
	made, err := on.CreateIssue(ctx, next.Title, next.Body)
	if err != nil {
		return "", err
	}
	open, err := on.OpenIssues(ctx)
	if err != nil {
		return "", err
	}
	if at := slices.IndexFunc(open, mine); at >= 0 && open[at].Number < made.Number {
		made.Title, made.Open = next.Title, false
		made.Body = fmt.Sprintf("Another run opened #%d for the same.\n", open[at].Number)
		if err := on.UpdateIssue(ctx, made); err != nil {
			return "", err
		}
		return fmt.Sprintf("issue %d was opened by another run", open[at].Number), nil
	}
	return fmt.Sprintf("issue %d was opened", made.Number), nil
}

// bad reports whether there is anything to tell.
func (a Watch) bad() bool {
	if a.Found == nil {
		return true
	}
	open, _ := Unreviewed(a.Found.Exceptions)
	return len(a.Found.Unexplained)+len(open) > 0
}

// next is what the issue should be, and what is to be said in a comment. It is nil where
// there is no issue, and none is needed.
func (a Watch) next(issue *forge.Issue) (next *forge.Issue, comment string) {
	var told mark
	if issue != nil {
		if told, _ = readMark(issue.Body, a.Branch); !issue.Open {
			told.gone = nil // whoever closed it has looked at these
		}
	}
	now := a.mark(told)
	next = &forge.Issue{Title: a.title(), Open: true}
	if issue != nil {
		next.Number = issue.Number
	}
	fresh := now.beside(told)
	switch {
	case !a.bad() && len(now.gone) == 0:
		if issue == nil {
			return nil, ""
		}
		next.Title, next.Open = issue.Title, false
		next.Body = mark{done: true}.line(a.Branch) + a.explained()
		return next, a.explained()
	case issue == nil:
	case a.Found == nil && (issue.Title != next.Title || !issue.Open):
		comment = a.failed()
	case len(fresh.ids)+len(fresh.gone) > 0:
		comment = a.more(fresh)
	case !issue.Open && len(now.ids) == 0:
		comment = "This issue was closed, and exceptions wait for a review all the same."
	case !issue.Open:
		comment = "This issue was closed, and what it tells of is unexplained all the same. " + a.leaveOut()
	}
	next.Body = now.line(a.Branch) + a.body(now)
	return next, comment
}

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
			case !canon.IsGitID(id):
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
