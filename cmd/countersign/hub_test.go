package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// A scriptHub is the GitHub that a script talks to: one repository, the pull
// request that was opened last, and what somebody said there last.
type scriptHub struct {
	*githubtest.Server
	t          testing.TB
	ts         *testscript.TestScript
	repository string
	pull       int
	said       int64
	ahead      time.Duration // of GitHub's clock
}

// hubKey is where a script's Env.Values has its *scriptHub.
type hubKey struct{}

// addHub lets a script use the command hub.
func addHub(e *testscript.Env) { e.Values[hubKey{}] = &scriptHub{t: e.T().(testing.TB)} }

// hubVerbs are the subcommands of hub, and how many arguments each takes at least.
//
//	hub repository NAME DIR        a GitHub with a repository of DIR's files; from here on the environment is that
//	                               of a workflow's job in it, which was started by hand; $HUB is where to clone it from
//	hub person LOGIN ROLE          an account, and its role in the repository
//	hub role LOGIN ROLE            an account's role is another now
//	hub bot LOGIN                  an app's account, as in helper[bot]
//	hub team SLUG LOGIN…           a team of the repository's owner
//	hub app PERMISSION…            the job's token is one of an app of its own, as in contents:write
//	hub push LOGIN BRANCH DIR      a commit that puts DIR's files onto a branch
//	hub tag NAME VAR               the repository's main is a release; VAR gets the commit
//	hub pull LOGIN BRANCH TITLE    a pull request to main; what follows is about it
//	hub clock TIME                 it is this time there and, for the program, here, until the next one
//	hub newest                     the pull request that the program opened last; what follows is about it
//	hub comment LOGIN BODY [HOW]   a comment, as it is made on the page; HOW is email, or the app that posts it
//	hub reply LOGIN BODY           a reply in the thread that was opened last
//	hub suggest LOGIN PATH LINES FILE  a review comment on lines of a file, as in 2, 1-2, LEFT2 or file, that says what FILE has;
//	                               SUGGESTION is its address, SUGGESTION_ID its number
//	hub outdate                    the lines of that comment have changed since
//	hub review LOGIN STATE BODY    a review, as in APPROVED ""
//	hub edit LOGIN BODY            somebody edits what was said last
//	hub delete                     what was said last is deleted
//	hub dismiss                    likewise, a review
//	hub close                      the pull request is closed
//	hub merge LOGIN HOW            it is merged: merge, squash or rebase
//	hub set SETTING…               all settings of the repository that are not as in a new one: pulls (workflows may open
//	                               pull requests), no-merge, no-squash, no-rebase, check=NAME (main needs that check)
//	hub event NAME [ACTION]        what started the next job; a comment's or review's is about what was said last
//	hub check NAME PATTERN         a check run whose name begins so has a title that matches, as it stands now
//	hub deploy COMMIT ENVIRONMENT STATE…  a deployment with these statuses
//	hub ruleset TYPE [TEAM]        rules of this type hold for main; TEAM, a number, can bypass them
//	hub copy VAR PATTERN           what the program says there, as far as it matches; - is no variable
var hubVerbs = map[string]struct {
	args int
	do   func(h *scriptHub, args []string)
}{
	"repository": {2, (*scriptHub).start},
	"person": {2, func(h *scriptHub, a []string) {
		h.User(a[0])
		h.Role(h.repository, a[0], a[1])
	}},
	"role": {2, func(h *scriptHub, a []string) { h.Role(h.repository, a[0], a[1]) }},
	"bot":  {1, func(h *scriptHub, a []string) { h.Bot(a[0]) }},
	"team": {2, func(h *scriptHub, a []string) { h.Team(h.owner(), a[0], a[1:]...) }},
	"app":  {1, (*scriptHub).app},
	"push": {3, (*scriptHub).push},
	"tag":  {2, (*scriptHub).tag},
	"pull": {3, (*scriptHub).open},
	"clock": {1, func(h *scriptHub, a []string) {
		now, err := time.Parse(time.RFC3339, a[0])
		h.ts.Check(err)
		h.SetNow(func() time.Time { return now })
		h.ts.Setenv("TEST_NOW", a[0])
	}},
	"newest": {0, func(h *scriptHub, _ []string) {
		h.pull = h.Newest(h.repository).Number
		h.ts.Setenv("PULL", strconv.Itoa(h.pull))
	}},
	"comment": {2, (*scriptHub).comment},
	"reply":   {2, (*scriptHub).reply},
	"suggest": {4, (*scriptHub).suggest},
	"outdate": {0, func(h *scriptHub, _ []string) { h.Outdate(h.said) }},
	"review": {3, func(h *scriptHub, a []string) {
		h.ahead += time.Second // people take longer than a script
		ahead := h.ahead
		h.SetNow(func() time.Time { return time.Now().Add(ahead) })
		h.said = h.Review(githubtest.NewComment{Repository: h.repository, Number: h.pull, By: a[0], State: a[1], Body: a[2]}).ID
	}},
	"edit":    {2, func(h *scriptHub, a []string) { h.Edit(h.said, a[0], a[1]) }},
	"delete":  {0, func(h *scriptHub, _ []string) { h.Delete(h.said) }},
	"dismiss": {0, func(h *scriptHub, _ []string) { h.Dismiss(h.said) }},
	"close":   {0, func(h *scriptHub, _ []string) { h.ClosePull(h.repository, h.pull) }},
	"merge": {2, func(h *scriptHub, a []string) {
		if len(a) > 2 { // one that the program opened
			h.pull, _ = strconv.Atoi(a[2])
		}
		h.Merge(h.repository, h.pull, a[0], a[1])
	}},
	"set":   {0, (*scriptHub).set},
	"event": {1, (*scriptHub).event},
	"ruleset": {1, func(h *scriptHub, a []string) {
		set := githubtest.Ruleset{Name: "main", Target: "branch", Branches: []string{"main"}, Rules: []map[string]any{{"type": a[0]}}}
		for _, team := range a[1:] {
			id, err := strconv.Atoi(team)
			h.ts.Check(err)
			set.Bypass = append(set.Bypass, map[string]any{"actor_id": id, "actor_type": "Team", "bypass_mode": "always"})
		}
		h.AddRuleset(h.repository, set)
	}},
	"deploy": {2, func(h *scriptHub, a []string) {
		h.Deploy(h.repository, githubtest.Deployment{Commit: a[0], Environment: a[1], States: a[2:]})
	}},
	"copy":  {2, (*scriptHub).copy},
	"check": {2, (*scriptHub).check},
}

// hubCommand is the command hub: githubtest, line by line. Misuse panics, as it
// does there.
func hubCommand(ts *testscript.TestScript, neg bool, args []string) {
	h := ts.Value(hubKey{}).(*scriptHub)
	if neg || len(args) == 0 || len(args)-1 < hubVerbs[args[0]].args || hubVerbs[args[0]].do == nil {
		ts.Fatalf("usage: see hubVerbs")
	}
	if h.ts = ts; h.Server == nil && args[0] != "repository" {
		ts.Fatalf("hub repository comes first")
	}
	hubVerbs[args[0]].do(h, args[1:])
}

// jobRights are what the settle workflow's token may.
var jobRights = []string{"contents:write", "pull_requests:write", "issues:write", "checks:write", "actions:read"}

func (h *scriptHub) start(args []string) {
	s := githubtest.New(h.t)
	h.Server, h.repository = s, args[0]
	s.Organization(h.owner())
	s.Repository(githubtest.NewRepository{Name: h.repository, Files: h.files(args[1])})
	for name, value := range map[string]string{
		"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/heads/main", "GITHUB_REPOSITORY": h.repository, "GITHUB_API_URL": s.API(), "GITHUB_GRAPHQL_URL": s.GraphQL(),
		"GITHUB_SERVER_URL": s.URL, "HUB": s.URL + "/" + h.repository, "INPUT_TOKEN": s.ActionsToken(h.repository, jobRights...), "COUNTERSIGN_ACTIONS_TOKEN": "true",
	} {
		h.ts.Setenv(name, value)
	}
	h.event([]string{"workflow_dispatch"})
}

func (h *scriptHub) set(settings []string) {
	has := func(name string) bool { return slices.Contains(settings, name) }
	to := githubtest.Settings{NoMerge: has("no-merge"), NoSquash: has("no-squash"), NoRebase: has("no-rebase"), ActionsOpenPulls: has("pulls")}
	for _, s := range settings {
		if name, needed := strings.CutPrefix(s, "check="); needed {
			to.Checks = map[string][]string{"main": {name}}
		}
	}
	h.Set(h.repository, to)
}

func (h *scriptHub) owner() string {
	owner, _, _ := strings.Cut(h.repository, "/")
	return owner
}

// files are those of a directory, by their names with slashes.
func (h *scriptHub) files(dir string) map[string]string {
	out := map[string]string{}
	root := os.DirFS(h.ts.MkAbs(dir))
	h.ts.Check(fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(root, name)
		out[name] = string(raw)
		return err
	}))
	return out
}

// event writes the file that says what started the job.
func (h *scriptHub) event(args []string) {
	e := githubtest.Event{Name: args[0], Repository: h.repository, Number: h.pull, ID: h.said}
	if len(args) > 1 {
		e.Action = args[1]
	}
	file := filepath.Join(h.ts.Getenv("WORK"), "event.json")
	h.ts.Check(os.WriteFile(file, h.Event(e), 0o666))
	h.ts.Setenv("GITHUB_EVENT_NAME", e.Name)
	h.ts.Setenv("GITHUB_EVENT_PATH", file)
}

func (h *scriptHub) app(permissions []string) {
	granted := map[string]string{}
	for _, p := range permissions {
		name, level, _ := strings.Cut(p, ":")
		granted[name] = level
	}
	bot := "countersign-app[bot]"
	h.Bot(bot)
	h.ts.Setenv("INPUT_TOKEN", h.AppToken(githubtest.AppToken{Bot: bot, Repositories: []string{h.repository}, Permissions: granted}))
	h.ts.Setenv("COUNTERSIGN_ACTIONS_TOKEN", "")
}

func (h *scriptHub) push(args []string) {
	h.Push(githubtest.NewCommit{Repository: h.repository, By: args[0], Branch: args[1], Files: h.files(args[2])})
}

func (h *scriptHub) tag(args []string) {
	h.Git(h.repository, "-c", "user.name=Ada", "-c", "user.email=ada@localhost", "tag", "-a", "-m", args[0], args[0], "refs/heads/main")
	h.ts.Setenv(args[1], strings.TrimSpace(h.Git(h.repository, "rev-parse", "refs/heads/main")))
}

func (h *scriptHub) open(args []string) {
	h.pull = h.PullRequest(githubtest.NewPullRequest{Repository: h.repository, By: args[0], Head: args[1], Title: args[2]}).Number
	h.ts.Setenv("PULL", strconv.Itoa(h.pull))
}

func (h *scriptHub) comment(args []string) {
	c := githubtest.NewComment{Repository: h.repository, Number: h.pull, By: args[0], Body: args[1]}
	if len(args) > 2 && args[2] == "email" {
		c.Email = true
	} else if len(args) > 2 {
		c.App = args[2]
	}
	h.said = h.Comment(c).ID
}

func (h *scriptHub) reply(args []string) {
	first := int64(0)
	for _, c := range h.ReviewComments(h.repository, h.pull) {
		if c.ReplyTo == 0 {
			first = c.ID
		}
	}
	if first == 0 {
		h.ts.Fatalf("there is no thread")
	}
	h.said = h.ReviewComment(githubtest.NewComment{Repository: h.repository, Number: h.pull, By: args[0], Body: args[1], ReplyTo: first}).ID
}

// copy is what a person does who copies a line out of a comment.
func (h *scriptHub) copy(args []string) {
	want := regexp.MustCompile("(?m)" + args[1])
	found := ""
	for _, c := range append(h.Comments(h.repository, h.pull), h.ReviewComments(h.repository, h.pull)...) {
		if text := want.FindString(c.Body); text != "" && strings.HasSuffix(c.Author, "[bot]") {
			found = text
		}
	}
	if found == "" {
		h.ts.Fatalf("nothing there matches %s", args[1])
	}
	if args[0] != "-" {
		h.ts.Setenv(args[0], found)
	}
}

// check is what a person does who looks at the check runs of a pull request.
func (h *scriptHub) check(args []string) {
	titles := []string{}
	for _, c := range h.CheckRuns(h.repository, "") {
		if strings.HasPrefix(c.Name, args[0]) {
			titles = append(titles, c.Title)
		}
	}
	if want := regexp.MustCompile(args[1]); !slices.ContainsFunc(titles, want.MatchString) {
		h.ts.Fatalf("no check run %s has a title like %s: %q", args[0], args[1], titles)
	}
}

func (h *scriptHub) suggest(a []string) {
	lines, left := strings.CutPrefix(a[2], "LEFT")
	start, end, ranged := strings.Cut(lines, "-")
	n := githubtest.NewComment{Repository: h.repository, Number: h.pull, By: a[0], Path: a[1], Left: left, Body: h.ts.ReadFile(a[3])}
	if ranged {
		n.Start, _ = strconv.Atoi(start)
	} else {
		end = start
	}
	n.Line, _ = strconv.Atoi(end)
	said := h.ReviewComment(n)
	h.said = said.ID
	h.ts.Setenv("SUGGESTION", said.URL)
	h.ts.Setenv("SUGGESTION_ID", strconv.FormatInt(said.ID, 10))
}
