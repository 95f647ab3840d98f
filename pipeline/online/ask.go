package online

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

const (
	kindReview = approval.KindReview
	success    = "success"
)

// An asker asks a forge about the repository at. What it found out about the token is kept
// for the run.
type asker struct {
	forge.Auditor
	at              forge.Side
	pulls, accounts *seen
	pullNumbers     []int // the pull requests that may be asked about
	ends            map[int]forge.End
}

// A seen is why something of a kind cannot be seen with the token, nil if it can.
type seen struct{ err error }

// errUntold is the cause of an answer that leaves something open. Nothing failed.
var errUntold = errors.New("the forge does not tell")

func untold(format string, args ...any) error {
	return &fault.Error{Kind: fault.Away, Message: fmt.Sprintf(format, args...), Cause: errUntold}
}

// isGone reports whether what was not found is surely not there: other things of its kind
// can be seen with the token. Else it returns why that is unknown.
func isGone(ctx context.Context, err error, kind **seen, see func(context.Context) error) (bool, error) {
	if !errors.Is(err, forge.ErrNotFound) {
		return false, err
	}
	if *kind == nil {
		why := see(ctx)
		if errors.Is(why, forge.ErrSpent) || ctx.Err() != nil {
			return false, why
		}
		*kind = &seen{why}
	}
	if (*kind).err != nil {
		return false, err
	}
	return true, nil
}

const noPull = "the repository has no such pull request any more"

// seePulls fails unless the token may see the pull requests of the repository that is
// meant.
func (a *asker) seePulls(ctx context.Context) error {
	again, err := a.DefaultBranch(ctx)
	if err == nil && (again.Repository == nil || again.Repository.ID != a.at.Repository.ID) {
		err = untold("the repository is another one now")
	}
	if err == nil {
		_, err = a.Open(ctx)
	}
	return err
}

// seeAccounts fails unless the token's own account is found by its number.
func (a *asker) seeAccounts(ctx context.Context) error {
	who, err := a.Viewer(ctx)
	if err == nil {
		_, err = a.Account(ctx, who.ID)
	}
	return err
}

// account compares the login of an account, and what it may do.
func (a *asker) account(ctx context.Context, recorded account, to []Finding) error {
	if recorded.Who.Redacted() {
		return untold("the number of the account was not recorded, as it looked like a secret")
	}
	login, permission := &to[0], &to[1]
	now, err := a.Account(ctx, recorded.Who.ID)
	gone, err := isGone(ctx, err, &a.accounts, a.seeAccounts)
	switch {
	case gone:
		login.Verdict, login.Reason = Gone, "no account that the token can see has this number any more"
		return untold("the account is gone, and what it may do cannot be asked")
	case err != nil:
		return err
	case now.ID != recorded.Who.ID:
		return untold("the forge told of another account")
	case strings.EqualFold(now.Login, recorded.Who.Login):
		login.Verdict, login.Now = Same, now.Login
	default:
		login.Verdict, login.Now = Note, now.Login
		login.Reason = "the account has another login now; whoever has the recorded one is somebody else"
	}
	may, err := a.Access(ctx, ledger.Actor{Kind: "user", ID: now.ID, Login: now.Login})
	switch {
	case err != nil:
		return err
	case may.Permission == "":
		return untold("the forge does not tell what the account may do")
	case recorded.Permission == "":
		permission.Now = may.Permission
		return untold("what it could do then is not recorded, and cannot be asked")
	case may.Permission == recorded.Permission:
		permission.Verdict, permission.Now = Same, may.Permission
	default:
		permission.Verdict, permission.Now = Note, may.Permission
		permission.Reason = "what it may do now is something else; what it could do then is on record, and cannot be asked"
	}
	return nil
}

// end compares what became of a pull request with the record of it.
func (a *asker) end(ctx context.Context, of place, compare func(forge.End, *Finding), to *Finding) error {
	err := a.readEnds(ctx, of.Number)
	gone, err := isGone(ctx, err, &a.pulls, a.seePulls)
	if gone {
		to.Verdict, to.Reason = Gone, noPull
	}
	if gone || err != nil {
		return err
	}
	now := a.ends[of.Number]
	to.Now = now.State + " at " + now.Head
	switch {
	case now.Repository != of.Repository:
		return untold("the forge told of a pull request of another repository")
	case now.State == "" || now.Head == "":
		return untold("the forge does not tell the pull request's state, or its head")
	}
	compare(now, to)
	return nil
}

// compare looks whether the head was merged that was approved.
func (m merged) compare(now forge.End, to *Finding) {
	switch {
	case now.State != forge.PullRequestMerged:
		to.Verdict, to.Reason = Changed, "it is not merged"
	case now.Head != m.Head:
		to.Verdict, to.Reason = Changed, "another head was merged, or the forge shows a branch that went on after it"
	default:
		to.Verdict = Same
	}
}

// readEnds asks what became of a pull request, and of those that are asked about next.
func (a *asker) readEnds(ctx context.Context, number int) error {
	if _, known := a.ends[number]; known {
		return nil
	}
	next := []int{number}
	if i := slices.Index(a.pullNumbers, number); i >= 0 {
		next = a.pullNumbers[i:]
	}
	ends, err := a.Ends(ctx, next)
	if err == nil {
		maps.Copy(a.ends, ends)
	}
	return err
}

// check compares the check run of a change with the record.
func (a *asker) check(ctx context.Context, recorded checked, name string, to *Finding) error {
	runs, err := a.CheckRuns(ctx, recorded.Head, name)
	if err != nil {
		return err // of a commit that is not found, too: a forge may drop what no branch has
	}
	app := ""
	if recorded.By.Kind == "bot" {
		app = recorded.By.Login
	}
	others := 0
	var found []forge.CheckRun
	for _, run := range runs {
		switch {
		case run.Name != name || run.ExternalID != "" && run.ExternalID != recorded.Transaction:
			// of another transaction of these bytes
		case app != "" && run.App != app:
			others++
		default:
			found = append(found, run)
		}
	}
	switch {
	case len(found) == 0 && others > 0:
		to.Verdict, to.Now = Changed, fmt.Sprintf("none of %s, and %d of others", app, others)
		return nil
	case len(found) == 0:
		return untold("it is not there, and whether one was written is not recorded: a token that may not write check runs writes none, and forges drop old ones")
	}
	newest := found[0]
	to.Now = cmp.Or(newest.Conclusion, newest.Status, "without a conclusion")
	switch {
	case newest.Conclusion != success:
		to.Verdict = Changed
	case newest.ExternalID == "":
		to.Verdict, to.Reason = Note, "the forge does not tell of which transaction it is"
	case others > 0:
		to.Verdict, to.Reason = Note, fmt.Sprintf("there are %d more of that name, of other apps", others)
	default:
		to.Verdict = Same
	}
	if app == "" {
		to.Reason = strings.TrimPrefix(to.Reason+"; of "+newest.App+", whether it was that app is not recorded", "; ")
	}
	return nil
}

// required compares what the default branch demands with what guards pull requests.
func (a *asker) required(ctx context.Context, recorded *recorded, branch, gate string, to *Finding) error {
	demanded, err := a.Required(ctx, branch)
	if err != nil {
		return err
	}
	var of []int64
	for _, check := range demanded.Checks {
		if check.Name == gate {
			of = append(of, check.AppID)
		}
	}
	switch {
	case len(of) == 0 && demanded.Unread != "":
		return untold("not all that %s demands could be read: %s", branch, demanded.Unread)
	case len(of) == 0 && recorded.guarded == "":
		to.Verdict, to.Now = Note, "not demanded"
		return nil
	case len(of) == 0:
		to.Verdict, to.Now, to.Reason = Changed, "not demanded", branch+" takes a pull request that nobody approved"
		return nil
	}
	to.Now = "demanded by " + branch
	of = slices.DeleteFunc(of, func(id int64) bool { return id == 0 })
	if len(of) == 0 {
		to.Verdict, to.Reason = Note, "of anybody: any workflow of the repository can write a check of that name"
		return nil
	}
	return a.rightApp(ctx, recorded, gate, of, to)
}

// rightApp compares the app whose check a branch takes with the one that wrote it on the
// newest pull request that was merged.
func (a *asker) rightApp(ctx context.Context, recorded *recorded, gate string, of []int64, to *Finding) error {
	to.Now += fmt.Sprintf(", of app %d alone", of[0])
	if recorded.gate.Head == "" || recorded.gate.Repository != a.at.Repository.ID {
		const why = "no merged pull request is recorded whose check would say which app writes it"
		if recorded.guarded != "" {
			return untold(why)
		}
		to.Verdict, to.Reason = Note, why // and none that it could have let through
		return nil
	}
	runs, err := a.CheckRuns(ctx, recorded.gate.Head, gate)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if slices.Contains(of, run.AppID) && run.Conclusion == success {
			to.Verdict = Same
			return nil
		}
	}
	if len(runs) == 0 {
		return untold("the check on %.12s is not there any more, so that it is not known which app writes it", recorded.gate.Head)
	}
	to.Verdict, to.Reason = Changed, fmt.Sprintf("on %.12s, which was merged, the check is of app %d (%s)", recorded.gate.Head, runs[0].AppID, runs[0].App)
	return nil
}
