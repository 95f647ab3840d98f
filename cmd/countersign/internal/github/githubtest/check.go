package githubtest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

type checkRun struct {
	id                      int64
	app                     *account
	name, head              string
	status, conclusion      string
	title, summary, details string
	output                  bool
	external, detailsURL    string
	annotations             []any
	started                 time.Time
	completed               *time.Time
}

const (
	maxOutput      = 65535 // characters of a summary, and of a text
	maxAnnotations = 50    // a request
)

func (s *Server) createCheck(c *call) answer {
	head := c.text("head_sha")
	switch {
	case !wholeID.MatchString(head) || c.repo.resolve(head) == "":
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+head)
	case c.text("name") == "":
		return invalid("CheckRun", "name", "name is missing")
	}
	run := &checkRun{app: c.token.account, head: head, status: "queued", started: s.time()}
	if a := s.changeCheck(c, run); a != nil {
		return *a
	}
	run.id = s.nextID()
	c.repo.checks = append(c.repo.checks, run)
	return created(s.checkRun(c.repo, run))
}

// updateCheck changes a check run, of which only its own app may.
func (s *Server) updateCheck(c *call) answer {
	run := first(c.repo.checks, func(run *checkRun) bool { return run.id == c.id("check_run_id") })
	switch {
	case run == nil:
		return notFound
	case run.app != c.token.account:
		return refuse(http.StatusForbidden, fmt.Sprintf("Invalid app_id `%d` - check run can only be modified by the GitHub App that created it.", appID(c.token.account)))
	}
	changed := *run
	if a := s.changeCheck(c, &changed); a != nil {
		return *a
	}
	*run = changed
	return ok(s.checkRun(c.repo, run))
}

// changeCheck sets what a request gives; annotations are added to those there.
func (s *Server) changeCheck(c *call, run *checkRun) *answer {
	for field, at := range map[string]*string{
		"name": &run.name, "status": &run.status, "conclusion": &run.conclusion, "external_id": &run.external, "details_url": &run.detailsURL,
	} {
		if given := c.text(field); given != "" {
			*at = given
		}
	}
	if c.text("conclusion") != "" {
		run.status = "completed"
	}
	if run.status != "completed" {
		run.conclusion, run.completed = "", nil
	} else {
		now := s.time()
		run.completed = &now
	}
	if run.status == "completed" && run.conclusion == "" {
		return problem("conclusion", "conclusion is missing for a completed check run")
	}
	if output, ok := c.body["output"].(object); ok {
		return run.changeOutput(output)
	}
	return nil
}

func problem(field, message string) *answer {
	a := invalid("CheckRun", field, message)
	return &a
}

func (run *checkRun) changeOutput(output object) *answer {
	title, _ := output["title"].(string)
	summary, hasSummary := output["summary"].(string)
	details, _ := output["text"].(string)
	annotations, _ := output["annotations"].([]any)
	for field, text := range map[string]string{"summary": summary, "text": details} {
		if n := utf8.RuneCountInString(text); n > maxOutput {
			return problem(field, fmt.Sprintf("Only %d characters are allowed; %d were supplied.", maxOutput, n))
		}
	}
	switch {
	case len(annotations) > maxAnnotations:
		return problem("annotations", "Only 50 annotations are allowed per request.")
	case !hasSummary:
		return problem("output", "summary is missing")
	}
	run.output, run.title, run.summary, run.details = true, title, summary, details
	run.annotations = append(slices.Clone(run.annotations), annotations...)
	return nil
}

// listChecks lists the runs of a commit, the newest first; of one name only the
// newest of each app, unless all are asked for.
func (s *Server) listChecks(c *call) answer {
	id := c.repo.revision(c.PathValue("ref"))
	if id == "" {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.PathValue("ref"))
	}
	var found []*checkRun
	for _, run := range slices.Backward(c.repo.checks) {
		newer := slices.ContainsFunc(found, func(other *checkRun) bool { return other.name == run.name && other.app == run.app })
		if run.head == id && c.is("check_name", run.name) && c.is("status", run.status) && c.is("app_id", fmt.Sprint(appID(run.app))) &&
			(!newer || c.URL.Query().Get("filter") == "all") {
			found = append(found, run)
		}
	}
	return list(c, "check_runs", found, func(run *checkRun) object { return s.checkRun(c.repo, run) })
}

func (s *Server) checkRun(r *repository, run *checkRun) object {
	html := fmt.Sprintf("%s/%s/runs/%d", s.URL, r.fullName(), run.id)
	output := object{"annotations_count": len(run.annotations)}
	if run.output {
		maps.Copy(output, object{"title": orNull(run.title), "summary": run.summary, "text": orNull(run.details)})
	}
	return object{
		"id": run.id, "node_id": nodeID("CR", run.id), "head_sha": run.head, "external_id": run.external, "html_url": html,
		"details_url": cmp.Or(run.detailsURL, html), "name": run.name, "status": run.status, "conclusion": orNull(run.conclusion),
		"started_at": stamp(run.started), "completed_at": maybe(run.completed), "output": output, "check_suite": object{"id": run.app.id},
		"app": s.app(run.app), "pull_requests": s.pullsOf(r, run.head),
	}
}

// A CheckRun is one as it is now.
type CheckRun struct {
	ID                   int64
	Name, HeadSHA        string
	Status, Conclusion   string
	Title, Summary, Text string
	App                  string
	Annotations          int
}

// CheckRuns returns the check runs of a commit, oldest first; of all commits if
// it is "".
func (s *Server) CheckRuns(repository, commit string) []CheckRun {
	defer s.lock()()
	all := []CheckRun{}
	for _, c := range s.repo(repository).checks {
		if commit == "" || c.head == commit {
			all = append(all, CheckRun{c.id, c.name, c.head, c.status, c.conclusion, c.title, c.summary, c.details, c.app.login, len(c.annotations)})
		}
	}
	return all
}
