package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// An Event is what this program reads of the event that started a workflow
// (GitHub's documentation, "Webhook events and payloads"). Its words are whoever
// caused it: only numbers, ids and the default branch's name are acted on, and
// the texts of comments are read as what they are. The zero Event is that of a
// person who runs the program.
type Event struct {
	Name string `json:"-"`
	Ref  string `json:"-"` // that the workflow runs on

	Action     string `json:"action"`
	Repository struct {
		ID            int64  `json:"id"`
		FullName      string `json:"full_name"`
		DefaultBranch string `json:"default_branch"`
		Private       *bool  `json:"private"`
	} `json:"repository"`
	PullRequest *struct {
		Number int `json:"number"`
	} `json:"pull_request"`
	Issue *struct {
		Number      int              `json:"number"`
		PullRequest *json.RawMessage `json:"pull_request"`
		User        *eventUser       `json:"user"`
	} `json:"issue"`
	Comment *struct {
		ID        int64      `json:"id"`
		HTMLURL   string     `json:"html_url"`
		Body      string     `json:"body"`
		CreatedAt string     `json:"created_at"`
		User      *eventUser `json:"user"`
	} `json:"comment"`
	Changes struct {
		Body *struct {
			From string `json:"from"`
		} `json:"body"`
	} `json:"changes"`
	Sender      *eventUser `json:"sender"`
	WorkflowRun *eventRun  `json:"workflow_run"`
	MergeGroup  *struct {
		HeadSHA string `json:"head_sha"`
		HeadRef string `json:"head_ref"`
		BaseSHA string `json:"base_sha"`
	} `json:"merge_group"`
	Inputs map[string]any `json:"inputs"`
}

type eventUser struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

func (u *eventUser) actor() ledger.Actor {
	a := ledger.Actor{Kind: "bot", ID: strconv.FormatInt(u.ID, 10), Login: u.Login}
	if u.ID > 0 && (u.Type == "User" || u.Type == "") { // Gitea and Forgejo tell no type
		a.Kind = "user"
	}
	return a
}

// known is who it is, nobody where the event does not say.
func (u *eventUser) known() ledger.Actor {
	if u == nil || u.ID <= 0 {
		return ledger.Actor{}
	}
	return u.actor()
}

type eventRun struct {
	ID             int64      `json:"id"`
	Path           string     `json:"path"`
	Event          string     `json:"event"` // that the run was started by
	Conclusion     string     `json:"conclusion"`
	HeadBranch     string     `json:"head_branch"`
	HeadSHA        string     `json:"head_sha"`
	Actor          *eventUser `json:"actor"`            // whose comment or review it was started by
	Triggering     *eventUser `json:"triggering_actor"` // who started it, or ran it again
	HeadRepository *struct {
		ID    int64 `json:"id"`
		Owner struct {
			Login string `json:"login"`
		} `json:"owner"`
	} `json:"head_repository"`
	PullRequests []struct {
		Number int `json:"number"`
		Head   struct {
			SHA string `json:"sha"`
		} `json:"head"`
		Base struct {
			Repo struct {
				ID int64 `json:"id"`
			} `json:"repo"`
		} `json:"base"`
	} `json:"pull_requests"`
}

// EventsWorkflow is the file whose runs tell of what happened, and hand over bundles.
const (
	eventsFile     = "countersign-events.yml"
	EventsWorkflow = ".github/workflows/" + eventsFile
)

// maxEvent bounds an event, in bytes; GitHub caps payloads at 25 MB.
const maxEvent = 32 << 20

// ReadEvent reads the event of that name which a workflow on a ref was started by.
func ReadEvent(name, ref string, r io.Reader) (Event, error) {
	e := Event{Name: name, Ref: ref}
	if err := json.NewDecoder(io.LimitReader(r, maxEvent)).Decode(&e); err != nil {
		return e, fmt.Errorf("reading the workflow's event: %w", err)
	}
	return e, nil
}

// Trusted refuses the events whose workflow file a pull request, or a branch of
// anybody's, can bring along: what such a workflow says about approvals is its
// author's word (T18; GitHub's documentation, "Events that trigger workflows").
func (e Event) Trusted() error {
	switch e.Name {
	case "issue_comment", "workflow_run", "pull_request_target", "merge_group", "schedule", "repository_dispatch":
		return nil // the default branch's file, or one that has passed the check
	case "workflow_dispatch":
		if e.Ref == "refs/heads/"+e.Repository.DefaultBranch {
			return nil
		}
		return fault.Bar(
			"this workflow was started on "+escape.Clean(e.Ref)+", whose file anybody who can push may have changed",
			"start the workflow on the default branch",
		)
	}
	return fault.Bar(
		fmt.Sprintf("the event %+q runs a workflow file that the pull request can change", ledger.OneLine(e.Name, 60)),
		"settle on one of these: issue_comment, workflow_run, pull_request_target",
	)
}

// A distrusted forge answers nothing, for the reason that it has.
type distrusted struct{ why error }

// Distrusted is where approvals are read in a workflow that may be anybody's:
// nowhere (T18).
func Distrusted(why error) Reader { return distrusted{why} }

func (f distrusted) PullRequest(context.Context, int) (PullRequest, error) {
	return PullRequest{}, f.why
}

func (f distrusted) Statements(context.Context, int) ([]approval.Statement, error) {
	return nil, f.why
}

func (f distrusted) Access(context.Context, ledger.Actor) (approval.Access, error) {
	return approval.Access{}, f.why
}

func (f distrusted) Member(context.Context, string, ledger.Actor) (bool, error) {
	return false, f.why
}

func (f distrusted) SigningKeys(context.Context, ledger.Actor) ([]approval.Registered, error) {
	return nil, f.why
}

// PolicyBranch is the default branch, which has the Policy. HEAD is never asked in
// a workflow, whatever its ref says: a job can check out what a pull request
// brings under any event (T20).
func (e Event) PolicyBranch() (string, error) {
	branch := e.Repository.DefaultBranch
	if name, ok := strings.CutPrefix(e.Ref, "refs/heads/"); ok && branch == "" && e.Name == "schedule" {
		branch = name // a schedule runs on the default branch, and its event may name no repository
	}
	if branch == "" {
		return "", errors.New("the workflow's event does not name the default branch, which has the Policy")
	}
	return branch, nil
}

// IsOf refuses an event of another repository than the one that is worked on,
// whose name may be another's by now: a number is nobody else's. The event of a
// schedule may name none.
func (e Event) IsOf(here ledger.Repository) error {
	id := strconv.FormatInt(e.Repository.ID, 10)
	switch {
	case e.Name == "" || id == here.ID: // by hand there is no event
		return nil
	case e.Name == "schedule" && e.Repository.ID == 0:
		return nil
	}
	return fault.Bar(fmt.Sprintf("the workflow's event is of the repository with the number %s, and %s has the number %s", id, escape.Clean(here.Name), escape.Clean(here.ID)), "")
}

// FindPull returns the number of the pull request that an event is about, 0 for
// none. It is the event's word, and for a run GitHub's, never a bundle's (T68). A
// run is found by its head, as GitHub names no pull request for one of a fork.
func (e Event) FindPull(ctx context.Context, f Finder) (int, error) {
	switch run := e.WorkflowRun; {
	case e.PullRequest != nil:
		return e.PullRequest.Number, nil
	case e.Issue != nil && e.Issue.PullRequest == nil:
		return 0, nil // a comment on an issue
	case e.Issue != nil:
		return e.Issue.Number, nil
	case run != nil && (run.Event == "schedule" || e.ProposesAnew() != 0):
		return 0, nil // should there be a pull request from the default branch, it is not what the run is about
	case run != nil && len(run.PullRequests) == 1 && run.PullRequests[0].Base.Repo.ID == e.Repository.ID:
		return run.PullRequests[0].Number, nil
	case run != nil && run.HeadRepository == nil:
		return 0, nil
	case run != nil && f == nil:
		return 0, errors.New("no token to look for the pull request with")
	case run != nil:
		head := Head{
			Owner: run.HeadRepository.Owner.Login, Repository: strconv.FormatInt(run.HeadRepository.ID, 10),
			Branch: run.HeadBranch, Commit: run.HeadSHA,
		}
		number, err := f.PullRequestOf(ctx, head)
		if err == nil && number == 0 && run.Event == "pull_request" && IsBranch(run.HeadBranch) { // closed by now
			return f.ClosedOf(ctx, head)
		}
		return number, err
	case e.MergeGroup != nil: // gh-readonly-queue/<base>/pr-<n>-<sha>
		ref := e.MergeGroup.HeadRef
		last, isPull := strings.CutPrefix(ref[strings.LastIndexByte(ref, '/')+1:], "pr-")
		number, _, _ := strings.Cut(last, "-")
		n, err := strconv.Atoi(number)
		if err != nil || n <= 0 || !isPull {
			return 0, fmt.Errorf("%+q is not the ref of a merge group", ledger.OneLine(ref, 100))
		}
		return n, nil
	}
	return ReadNumber(e.Inputs["pr"])
}

// ReadNumber reads the number of a pull request that somebody typed, 0 for none: a
// string in an event, whatever the workflow says of its type.
func ReadNumber(v any) (int, error) {
	text := ""
	switch v := v.(type) {
	case string:
		text = v
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0, fault.Bar(fmt.Sprintf("%+q is not the number of a pull request", ledger.OneLine(text, 40)), "")
	}
	return n, nil
}

// Witnessed is what only the event still tells: the text that a comment had
// before it was edited, or deleted, and the number of the pull request that it was
// made on. It counts for denials alone (T03).
func (e Event) Witnessed() ([]approval.Statement, int) {
	if e.Comment == nil || e.Issue == nil || e.Comment.User == nil || e.Name != "issue_comment" {
		return nil, 0
	}
	c := e.Comment
	s := approval.Statement{
		Kind: approval.KindIssueComment, ID: strconv.FormatInt(c.ID, 10), URL: c.HTMLURL, Body: c.Body, CreatedAt: c.CreatedAt, Edited: true,
		Author: c.User.actor(),
	}
	switch {
	case e.Action == "edited" && e.Changes.Body != nil:
		s.Earlier = []string{e.Changes.Body.From}
	case e.Action != "deleted":
		return nil, 0
	}
	return []approval.Statement{s}, e.Issue.Number
}

// Commented is the comment that somebody has made on an issue, which is no pull request: by the numbers of both. The id is "" for any
// other event.
func (e Event) Commented() (issue int, id string) {
	if e.Name != "issue_comment" || e.Action != "created" || e.Issue == nil || e.Issue.PullRequest != nil || e.Comment == nil || e.Comment.ID <= 0 {
		return 0, ""
	}
	return e.Issue.Number, strconv.FormatInt(e.Comment.ID, 10)
}

// Acts reports whether there is anything to do for a pull request: an ordinary
// comment costs no more than this look.
func (e Event) Acts() bool {
	if e.Comment == nil || e.Name != "issue_comment" {
		return true
	}
	before := ""
	if e.Changes.Body != nil {
		before = e.Changes.Body.From
	}
	return strings.HasPrefix(e.Comment.Body, "/") || strings.HasPrefix(before, "/")
}

// Speaker is whose comment an event is about, or who reviewed, commented or changed that where a
// run was started by it, in a repository that everybody may read; false for any other event. Author
// has the pull request, and is the zero Actor where the event does not say who that is.
func (e Event) Speaker() (who, author ledger.Actor, said bool) {
	run := e.WorkflowRun
	switch {
	case e.Repository.Private == nil || *e.Repository.Private:
	case e.Name == "issue_comment" && e.Comment != nil && e.Comment.User != nil && e.Issue != nil && e.Issue.User != nil:
		return e.Comment.User.actor(), e.Issue.User.actor(), true
	case e.Name == "workflow_run" && run != nil && run.Actor != nil && slices.ContainsFunc(spoken, func(name string) bool { return strings.HasPrefix(run.Event, name) }):
		who = run.Actor.actor()
		return who, author, who.Kind == "user" // a bot may have taken back what somebody said
	}
	return who, author, false
}

// HandedOverFor are those who started the run that an event is about.
func (e Event) HandedOverFor() []ledger.Requester {
	run := e.WorkflowRun
	if run == nil {
		return nil
	}
	return StartedBy(run.Event, run.Actor.known(), run.Triggering.known())
}

// StartedBy are those who had a workflow run in which something is proposed: the sender of its event, who
// started the run that this is about, and, by their login and perhaps the number of their account, who started this run
// or ran it again.
func (e Event) StartedBy(triggering, id string) []ledger.Requester {
	out := e.HandedOverFor()
	if who := e.Sender.known(); who.ID != "" && e.Name != "schedule" {
		out = append(out, ledger.Requester{Actor: who, Source: ledger.AskedBySender})
	}
	known := func(r ledger.Requester) bool { return strings.EqualFold(r.Actor.Login, triggering) }
	if triggering != "" && !slices.ContainsFunc(out, known) {
		who := ledger.Actor{Kind: "user", ID: id, Login: ledger.OneLine(triggering, 100)}
		if strings.HasSuffix(triggering, "[bot]") {
			who.Kind = "bot"
		}
		out = append(out, ledger.Requester{Actor: who, Source: ledger.AskedByTrigger})
	}
	return out
}

// spoken begin the events that are somebody's words, as runs are started by them; the second is
// Gitea's for a comment on a pull request.
var spoken = []string{"issue_comment", "pull_request_comment", "pull_request_review"}

// ended reports whether an event is the end of a run that succeeded. GitHub may
// add the ref to the path of its workflow's file.
func (e Event) ended() (run *eventRun, path string, succeeded bool) {
	if run = e.WorkflowRun; run == nil || e.Action != "completed" || run.Conclusion != "success" {
		return nil, "", false
	}
	path, _, _ = strings.Cut(run.Path, "@")
	return run, path, true
}

// HandsOver is the run that an event is about, which may have a bundle for the pull request of
// that number, 0 for none. Gitea and Forgejo name no folder of the run's file, and have the pull
// request in its ref: one of another is none.
func (e Event) HandsOver(number int) int64 {
	run, path, ended := e.ended()
	switch {
	case !ended || run.Event == "schedule" || e.ProposesAnew() != 0:
		return 0
	case path == EventsWorkflow, run.Path == fmt.Sprintf("%s@refs/pull/%d/head", eventsFile, number):
		return run.ID
	}
	return 0
}

// Sweeps reports whether an event asks for everything that is open: a schedule, the
// end of what a schedule ran on the default branch, which no pull request can bring
// about, or a start by hand that names no pull request.
func (e Event) Sweeps() bool {
	switch e.Name {
	case "schedule":
		return true
	case "workflow_dispatch":
		return e.Inputs["pr"] == nil || e.Inputs["pr"] == ""
	case "workflow_run":
		run, path, ended := e.ended()
		return ended && path == EventsWorkflow && run.Event == "schedule" && run.HeadBranch != "" && run.HeadBranch == e.Repository.DefaultBranch &&
			run.HeadRepository != nil && run.HeadRepository.ID == e.Repository.ID
	}
	return false
}

// OfNoPull start runs that are for no pull request.
var OfNoPull = []string{"schedule", "workflow_dispatch", "push"}

// ProposesAnew is the run that an event is about, if it ran for the default branch of
// this repository and for no pull request, and may have a bundle; else 0.
func (e Event) ProposesAnew() int64 {
	run, path, ended := e.ended()
	switch {
	case !ended, path != EventsWorkflow, !slices.Contains(OfNoPull, run.Event):
		return 0
	case run.HeadBranch == "", run.HeadBranch != e.Repository.DefaultBranch, run.HeadRepository == nil, run.HeadRepository.ID != e.Repository.ID:
		return 0
	}
	return run.ID
}
