package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/forge"
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
	me, err := on.Viewer(ctx)
	if err != nil {
		return "", err
	}
	if me.ID == "" {
		return "", fmt.Errorf("the forge does not tell the number of the account that it is")
	}
	mine := func(i forge.Issue) bool {
		_, is := readMark(i.Body, a.Branch)
		return is && i.Author.ID == me.ID
	}
	open, err := on.OpenIssues(ctx)
	if err != nil {
		return "", err
	}
	var issue *forge.Issue
	if at := slices.IndexFunc(open, mine); at >= 0 {
		issue = &open[at]
	} else if a.bad() { // somebody may have closed it
		closed, err := on.ClosedIssues(ctx)
		if err != nil {
			return "", err
		}
		if at := slices.IndexFunc(closed, mine); at >= 0 {
			issue = &closed[at]
		}
	}
	next, comment := a.next(issue)
	switch {
	case next == nil:
		return "", nil
	case issue == nil:
		return create(ctx, on, *next, mine)
	}
	if comment != "" { // first, as what the issue tells of is not told again
		if _, err := on.UpsertComment(ctx, next.Number, "", comment); err != nil {
			return "", err
		}
	}
	word := "is as it was"
	switch {
	case !next.Open:
		word = "was closed"
	case !issue.Open:
		word = "was opened again"
	case comment != "" || !same(*issue, *next):
		word = "was updated"
	}
	if !same(*issue, *next) {
		if err := on.UpdateIssue(ctx, *next); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("issue %d %s", next.Number, word), nil
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
func (a Watch) bad() bool { return a.Found == nil || len(a.Found.Unexplained) > 0 }

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
	case !issue.Open:
		comment = "This issue was closed, and what it tells of is unexplained all the same. " + a.leaveOut()
	}
	next.Body = now.line(a.Branch) + a.body(now)
	return next, comment
}
