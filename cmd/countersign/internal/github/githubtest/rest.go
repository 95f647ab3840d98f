package githubtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

type object = map[string]any

// An operation is one of the REST API. The path is GitHub's template for it;
// need is the permission that it takes in the repository, "" for none.
type operation struct {
	method, path string
	need         string
	do           func(*Server, *call) answer
}

// operations are those that the program uses, and no others.
var operations = []operation{
	{"GET", "/repos/{owner}/{repo}", "", (*Server).getRepository},
	{"GET", "/repos/{owner}/{repo}/branches/{branch}", "contents:read", (*Server).getBranch},
	{"GET", "/repos/{owner}/{repo}/compare/{basehead}", "contents:read", (*Server).compareCommits},
	{"POST", "/repos/{owner}/{repo}/git/refs", "contents:write", (*Server).createRef},
	{"GET", "/repos/{owner}/{repo}/rulesets", "metadata:read", (*Server).listRulesets},
	{"GET", "/repos/{owner}/{repo}/rulesets/{ruleset_id}", "metadata:read", (*Server).getRuleset},
	{"GET", "/repos/{owner}/{repo}/rules/branches/{branch}", "metadata:read", (*Server).listRules},
	{"GET", "/repos/{owner}/{repo}/collaborators/{username}/permission", "", (*Server).getPermission},
	{"GET", "/orgs/{org}/teams/{team_slug}", "", (*Server).getTeam},
	{"GET", "/orgs/{org}/teams/{team_slug}/memberships/{username}", "", (*Server).getMembership},
	{"GET", "/users/{username}/ssh_signing_keys", "", (*Server).listSigningKeys},
	{"GET", "/user/{account_id}", "", (*Server).getAccount},
	{"GET", "/installation/repositories", "", (*Server).listInstallation},
	{"POST", "/repos/{owner}/{repo}/pulls", "pull_requests:write", (*Server).createPull},
	{"GET", "/repos/{owner}/{repo}/pulls/{pull_number}", "pull_requests:read", (*Server).getPull},
	{"PUT", "/repos/{owner}/{repo}/pulls/{pull_number}/merge", "contents:write", (*Server).mergePull},
	{"POST", "/repos/{owner}/{repo}/pulls/{pull_number}/comments", "", (*Server).createReviewComment},
	{"GET", "/repos/{owner}/{repo}/pulls/comments/{comment_id}", "pull_requests:read", (*Server).getReviewComment},
	{"GET", "/repos/{owner}/{repo}/issues", "issues:read", (*Server).listIssues},
	{"POST", "/repos/{owner}/{repo}/issues", "", (*Server).createIssue},
	{"PATCH", "/repos/{owner}/{repo}/issues/{issue_number}", "", (*Server).updateIssue},
	{"GET", "/repos/{owner}/{repo}/issues/{issue_number}/comments", "issues:read", (*Server).listComments},
	{"POST", "/repos/{owner}/{repo}/issues/{issue_number}/comments", "", (*Server).createComment},
	{"PATCH", "/repos/{owner}/{repo}/issues/comments/{comment_id}", "", (*Server).updateComment},
	{"POST", "/repos/{owner}/{repo}/check-runs", "checks:write", (*Server).createCheck},
	{"PATCH", "/repos/{owner}/{repo}/check-runs/{check_run_id}", "checks:write", (*Server).updateCheck},
	{"GET", "/repos/{owner}/{repo}/commits/{ref}/check-runs", "checks:read", (*Server).listChecks},
	{"GET", "/repos/{owner}/{repo}/deployments", "deployments:read", (*Server).listDeployments},
	{"GET", "/repos/{owner}/{repo}/deployments/{deployment_id}/statuses", "deployments:read", (*Server).listDeploymentStatuses},
	{"POST", "/repos/{owner}/{repo}/attestations", "attestations:write", (*Server).createAttestation},
	{"GET", "/repos/{owner}/{repo}/actions/runs", "actions:read", (*Server).listRuns},
	{"GET", "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts", "actions:read", (*Server).listArtifacts},
	{"GET", "/repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}", "", (*Server).getArtifact},
	{"GET", "/repos/{owner}/{repo}/actions/permissions/workflow", "", (*Server).getWorkflowPermissions},
	{"GET", "/repos/{owner}/{repo}/pages", "pages:read", (*Server).getPages},
	{"GET", "/repos/{owner}/{repo}/actions/workflows/{workflow_id}", "actions:read", (*Server).getWorkflow},
	{"POST", "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches", "actions:write", (*Server).startWorkflow},
}

// findOperation returns the operation of a request, and sets the values of its
// path. Of several it is the one with the most parts that are no parameters:
// "comments" before "{number}". http.ServeMux takes some of GitHub's templates
// for ambiguous.
func findOperation(r *http.Request) (best operation, found bool) {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	most := -1
	var values map[string]string
	for _, o := range operations {
		template := strings.Split(o.path, "/")
		if o.method != r.Method || len(template) != len(parts) {
			continue
		}
		same, given := 0, map[string]string{}
		for i, part := range template {
			if strings.HasPrefix(part, "{") && parts[i] != "" {
				given[strings.Trim(part, "{}")], _ = url.PathUnescape(parts[i])
			} else if part == parts[i] {
				same++
			}
		}
		if same+len(given) == len(parts) && same > most {
			best, most, values = o, same, given
		}
	}
	for name, value := range values {
		r.SetPathValue(name, value)
	}
	return best, most >= 0
}

// A call is one request to the REST API, with what its path names: nil where it
// names none.
type call struct {
	*http.Request
	operation operation
	token     *token
	repo      *repository
	pull      *pull
	run       *workflowRun
	body      object // nil if there was none
}

// An answer is what a call is answered with; a nil body is none.
type answer struct {
	status int
	body   any
	header http.Header
}

// serveREST routes a request, and records its answer so that it can be held
// against the description and go wrong on demand.
func (s *Server) serveREST(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	seen, fault := s.note("rest", r, body, r.Method != http.MethodGet)
	s.around(w, seen, fault, func(w *httptest.ResponseRecorder) {
		inner := r.Clone(r.Context())
		inner.Body = io.NopCloser(bytes.NewReader(body))
		inner.URL.Path = strings.TrimPrefix(r.URL.Path, "/api/v3")
		inner.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, "/api/v3")
		o, known := findOperation(inner)
		if !known {
			s.violation("%s %s is no operation of the stand-in", r.Method, r.URL.Path)
			notFound.write(w)
			return
		}
		s.perform(o, w, inner, body)
	})
}

// perform does what all operations have in common: who asks, may they, is the
// request as described, and is the answer.
func (s *Server) perform(o operation, w *httptest.ResponseRecorder, r *http.Request, body []byte) {
	check := s.rest.request(o, r, body)
	for _, v := range check.violations {
		s.violation("request %s %s: %s", r.Method, r.URL.Path, v)
	}
	a := s.answer(o, &call{Request: r, operation: o}, body)
	check.complete(a).write(w)
	if err := check.response(w); err != nil {
		s.violation("answer %d to %s %s: %v", a.status, r.Method, r.URL.Path, err)
	}
}

func (s *Server) answer(o operation, c *call, body []byte) answer {
	defer s.lock()()
	c.token = s.authenticate(c.Request)
	if c.token == nil {
		return refuse(http.StatusUnauthorized, "Bad credentials")
	}
	if len(body) > 0 && json.Unmarshal(body, &c.body) != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	if name := c.PathValue("repo"); name != "" {
		c.repo = s.findRepository(c.PathValue("owner") + "/" + name)
		if c.repo == nil || !s.sees(c.token, c.repo) {
			return notFound
		}
	}
	if permission, level, ok := strings.Cut(o.need, ":"); ok && !s.may(c.token, c.repo, permission, level) {
		return c.forbidden()
	}
	for name, find := range map[string]func(id int64) bool{
		"pull_number": func(n int64) bool { c.pull = c.repo.findPull(int(n)); return c.pull != nil },
		"issue_number": func(n int64) bool {
			c.pull = cmp.Or(c.repo.findPull(int(n)), c.repo.findIssue(int(n)))
			return c.pull != nil
		},
		"run_id": func(id int64) bool { c.run = c.repo.findRun(id); return c.run != nil },
	} {
		if c.PathValue(name) != "" && !find(c.id(name)) {
			return notFound
		}
	}
	return o.do(s, c)
}

// forbidden is the answer to who may see a thing and not do that with it.
func (c *call) forbidden() answer {
	switch {
	case c.token.app:
		return refuse(http.StatusForbidden, "Resource not accessible by integration")
	case c.token.account == nil:
		return refuse(http.StatusUnauthorized, "Requires authentication")
	case c.operation.need == "checks:write":
		return refuse(http.StatusForbidden, "You must authenticate via a GitHub App.")
	}
	return refuse(http.StatusForbidden, "Must have push access to the repository.")
}

var (
	notFound  = refuse(http.StatusNotFound, "Not Found")
	noContent = answer{status: http.StatusNoContent}
)

func refuse(status int, message string) answer {
	return answer{status: status, body: object{"message": message, "documentation_url": "https://docs.github.com/rest", "status": http.StatusText(status)}}
}

// invalid is what GitHub answers to a field that cannot be as it is.
func invalid(resource, field, message string) answer {
	problem := object{"resource": resource, "field": field, "code": "custom", "message": message}
	return answer{status: http.StatusUnprocessableEntity, body: object{
		"message": "Validation Failed", "documentation_url": "https://docs.github.com/rest", "errors": []any{problem},
	}}
}

func ok(body any) answer      { return answer{status: http.StatusOK, body: body} }
func created(body any) answer { return answer{status: http.StatusCreated, body: body} }

func (a answer) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("X-Ratelimit-Limit", "5000")
	w.Header().Set("X-Ratelimit-Remaining", "4999")
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body)
}

// list answers with the page of a list that a call asks for, and with the header
// that leads to the other pages. A list under a name stands beside the whole
// number.
func list[T any](c *call, name string, all []T, render func(T) object) answer {
	size, number := min(c.number("per_page", 30), 100), c.number("page", 1)
	from := min((number-1)*size, len(all))
	items := []object{}
	for _, one := range all[from:min(from+size, len(all))] {
		items = append(items, render(one))
	}
	link := func(page int, rel string) string {
		query := c.URL.Query()
		query.Set("page", strconv.Itoa(page))
		return fmt.Sprintf(`<http://%s/api/v3%s?%s>; rel="%s"`, c.Host, c.URL.EscapedPath(), query.Encode(), rel)
	}
	last := max((len(all)+size-1)/size, 1)
	var links []string
	if number < last {
		links = append(links, link(number+1, "next"), link(last, "last"))
	}
	if number > 1 {
		links = append(links, link(number-1, "prev"), link(1, "first"))
	}
	a := ok(items)
	if name != "" {
		a.body = object{"total_count": len(all), name: items}
	}
	if links != nil {
		a.header = http.Header{"Link": {strings.Join(links, ", ")}}
	}
	return a
}

func (c *call) number(name string, otherwise int) int {
	n, err := strconv.Atoi(c.URL.Query().Get(name))
	if err != nil || n < 1 {
		return otherwise
	}
	return n
}

// id is a number of the path, 0 if it is none.
func (c *call) id(name string) int64 {
	n, err := strconv.ParseInt(c.PathValue(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// text is a string of the request's body, "" if it is not there.
func (c *call) text(name string) string {
	value, _ := c.body[name].(string)
	return value
}

// is reports whether a call's filter of that name lets one of the values pass.
func (c *call) is(name string, values ...string) bool {
	query := c.URL.Query()
	return !query.Has(name) || slices.Contains(values, query.Get(name))
}
