package githubtest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// NewRepository is what a repository starts with: the Files are the first
// commit of the branch main. Name is "owner/name", and the owner is there.
type NewRepository struct {
	Name    string
	Private bool
	Files   map[string]string
}

type repository struct {
	bare
	id          int64
	owner       *account
	name        string
	private     bool
	parent      *repository // that it is a fork of
	deleted     bool
	created     time.Time
	roles       map[int64]string
	custom      map[string]string
	protected   map[string]bool
	settings    Settings
	pulls       []*pull // in the order of their numbers, which start at 1
	issues      []*pull // the same, from firstIssue
	checks      []*checkRun
	runs        []*workflowRun
	started     []string // workflows that were started by hand
	rulesets    []Ruleset
	deployments []Deployment
	attested    []Attestation
}

// Repository makes a repository with one commit on the branch main, and returns its id.
func (s *Server) Repository(n NewRepository) int64 {
	defer s.lock()()
	r := s.addRepository(n.Name, n.Private)
	files := n.Files
	if files == nil {
		files = map[string]string{"README.md": "# " + r.name + "\n"}
	}
	r.commit("refs/heads/main", "first", r.owner, s.time(), change{files: files})
	s.synchronize(r)
	return r.id
}

func (s *Server) addRepository(name string, private bool) *repository {
	if s.findRepository(name) != nil {
		misuse("there is a repository %s", name)
	}
	owner, short, ok := strings.Cut(name, "/")
	if !ok {
		misuse("%s is not a repository: owner/name is", name)
	}
	id := s.nextID()
	r := &repository{
		bare: newBare(filepath.Join(s.dir, fmt.Sprint(id)+".git")), id: id, owner: s.account(owner), name: short,
		private: private, created: s.time(), roles: map[int64]string{}, custom: map[string]string{},
		protected: map[string]bool{},
	}
	s.repos = append(s.repos, r)
	return r
}

func (r *repository) fullName() string { return r.owner.login + "/" + r.name }

// findRepository returns the repository "owner/name", in any case, or nil.
func (s *Server) findRepository(name string) *repository {
	return first(s.repos, func(r *repository) bool { return !r.deleted && strings.EqualFold(r.fullName(), name) })
}

func (s *Server) repo(name string) *repository {
	r := s.findRepository(name)
	if r == nil {
		misuse("no repository %s", name)
	}
	return r
}

// Fork makes a fork with the branches of a repository, and returns its id.
func (s *Server) Fork(from, to string) int64 {
	defer s.lock()()
	source := s.repo(from)
	r := s.addRepository(to, source.private)
	r.parent, r.custom = source, source.custom
	r.git("fetch", "--quiet", source.dir, "refs/heads/*:refs/heads/*")
	s.synchronize(r)
	return r.id
}

// DeleteRepository removes a repository; pull requests from it stay, without
// the repository of their head.
func (s *Server) DeleteRepository(name string) {
	defer s.lock()()
	s.repo(name).deleted = true
}

// Protect lets nobody push to a branch, or everybody again.
func (s *Server) Protect(repository, branch string, on bool) {
	defer s.lock()()
	s.repo(repository).protected[branch] = on
}

// NewCommit is a commit to make on a branch, which is started at From (main, if
// that is "") when it is not there.
type NewCommit struct {
	Repository, Branch string
	By                 string // a login
	Message            string
	Files              map[string]string
	Delete             []string
	From               string
}

// Push makes a commit on a branch as if an account had pushed it, and returns
// its id.
func (s *Server) Push(n NewCommit) string {
	defer s.lock()()
	r := s.repo(n.Repository)
	parent := r.ref("refs/heads/" + n.Branch)
	if parent == "" {
		from := cmp.Or(n.From, "main")
		if parent = r.ref("refs/heads/" + from); parent == "" {
			parent = r.resolve(from)
		}
	}
	id := r.commit("refs/heads/"+n.Branch, cmp.Or(n.Message, "change"), s.account(n.By), s.time(), change{files: n.Files, deleted: n.Delete}, parent)
	s.synchronize(r)
	return id
}

// Git runs the real git in a repository, for instance to rewrite a branch, and
// returns what it prints, trimmed.
func (s *Server) Git(repository string, args ...string) string {
	defer s.lock()()
	r := s.repo(repository)
	out := r.git(args...)
	s.synchronize(r)
	return out
}

// Ref returns what a ref such as refs/heads/main is at, "" if it is not there.
func (s *Server) Ref(repository, ref string) string {
	defer s.lock()()
	return s.repo(repository).ref(ref)
}

// File returns a file of a commit or branch, "" if it is not there.
func (s *Server) File(repository, revision, path string) string {
	defer s.lock()()
	out, err := s.repo(repository).run("", "cat-file", "blob", revision+":"+path)
	if err != nil {
		return ""
	}
	return out
}

func (s *Server) getRepository(c *call) answer { return ok(s.fullRepository(c.repo, c.token)) }

func (s *Server) getBranch(c *call) answer {
	name := c.PathValue("branch")
	tip := c.repo.ref("refs/heads/" + name)
	if tip == "" {
		return refuse(http.StatusNotFound, "Branch not found")
	}
	commit, _ := c.repo.info(tip)
	checks := c.repo.settings.Checks[name]
	protected := c.repo.protected[name] || checks != nil
	protection := object{"enabled": protected, "required_status_checks": object{"enforcement_level": "off", "contexts": []string{}, "checks": []object{}}}
	if checks != nil {
		protection["required_status_checks"] = object{"enforcement_level": "non_admins", "contexts": checks, "checks": []object{}}
	}
	return ok(object{"name": name, "commit": s.commit(c.repo, commit), "protected": protected, "protection": protection})
}

var wholeID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// revision is the commit that a ref of a path names: an id, a branch, or a ref
// without "refs/".
func (r *repository) revision(ref string) string {
	if wholeID.MatchString(ref) {
		return r.resolve(ref)
	}
	for _, name := range []string{"refs/heads/" + ref, "refs/tags/" + ref, "refs/" + ref} {
		if id := r.ref(name); id != "" {
			return r.resolve(id)
		}
	}
	return ""
}

// compareCommits tells where two histories parted, and leaves out the commits and files between.
func (s *Server) compareCommits(c *call) answer {
	from, to, _ := strings.Cut(c.PathValue("basehead"), "...")
	from, to = c.repo.revision(from), c.repo.revision(to)
	if from == "" || to == "" {
		return notFound
	}
	parted := c.repo.mergeBase(from, to)
	if parted == "" {
		return refuse(http.StatusNotFound, "No common ancestor between "+from+" and "+to+".")
	}
	base, _ := c.repo.info(from)
	mergeBase, _ := c.repo.info(parted)
	return ok(object{"base_commit": s.commit(c.repo, base), "merge_base_commit": s.commit(c.repo, mergeBase)})
}

// createRef makes a ref at a commit that is there.
func (s *Server) createRef(c *call) answer {
	name, id := c.text("ref"), c.text("sha")
	switch {
	case !strings.HasPrefix(name, "refs/") || strings.Count(name, "/") < 2:
		return refuse(http.StatusUnprocessableEntity, "Reference name must start with 'refs/'")
	case !wholeID.MatchString(id) || c.repo.resolve(id) == "":
		return refuse(http.StatusUnprocessableEntity, "Object does not exist")
	case c.repo.ref(name) != "":
		return refuse(http.StatusUnprocessableEntity, "Reference already exists")
	}
	if _, err := c.repo.run("", "update-ref", "--", name, id); err != nil {
		return refuse(http.StatusUnprocessableEntity, "Reference name is invalid")
	}
	s.synchronize(c.repo)
	return created(object{"ref": name, "node_id": "REF_" + name, "object": object{"type": "commit", "sha": id}})
}

// A Ruleset is one of a repository that is active. Target is branch, tag or push;
// Rules are as GitHub tells them. Branches are those, by name, that it holds for; the
// server tells of the rules and does not enforce them.
type Ruleset struct {
	Name, Target string
	Branches     []string
	Rules        []map[string]any
	Bypass       []any // who can bypass it, nil where that is not told

	id int64
}

// AddRuleset adds a ruleset and returns its id.
func (s *Server) AddRuleset(repository string, n Ruleset) int64 {
	defer s.lock()()
	n.id = s.nextID()
	r := s.repo(repository)
	r.rulesets = append(r.rulesets, n)
	return n.id
}

func (s *Server) listRulesets(c *call) answer {
	return list(c, "", c.repo.rulesets, func(one Ruleset) object { return one.object(c.repo) })
}

func (s *Server) getRuleset(c *call) answer {
	for _, one := range c.repo.rulesets {
		if one.id == c.id("ruleset_id") {
			o := one.object(c.repo)
			if o["rules"] = one.Rules; one.Bypass != nil {
				o["bypass_actors"] = one.Bypass
			}
			return ok(o)
		}
	}
	return notFound
}

// listRules lists the rules of a branch.
func (s *Server) listRules(c *call) answer {
	var found []object
	for _, one := range c.repo.rulesets {
		if one.Target == "branch" && slices.Contains(one.Branches, c.PathValue("branch")) {
			for _, rule := range one.Rules {
				rule = maps.Clone(rule)
				rule["ruleset_id"], rule["ruleset_source"], rule["ruleset_source_type"] = one.id, c.repo.fullName(), "Repository"
				found = append(found, rule)
			}
		}
	}
	return list(c, "", found, func(o object) object { return o })
}

func (one Ruleset) object(r *repository) object {
	return object{"id": one.id, "name": one.Name, "target": one.Target, "enforcement": "active", "source": r.fullName(), "source_type": "Repository"}
}

// Started are the workflows that were started by hand in a repository, as in
// "fleet.yml on main".
func (s *Server) Started(repository string) []string {
	defer s.lock()()
	return slices.Clone(s.repo(repository).started)
}

func (s *Server) listInstallation(c *call) answer {
	if !c.token.app {
		return refuse(http.StatusForbidden, "You must authenticate with an installation access token in order to list repositories for an installation.")
	}
	var found []*repository
	for _, r := range s.repos {
		if !r.deleted && slices.Contains(c.token.repos, r.id) {
			found = append(found, r)
		}
	}
	return list(c, "repositories", found, s.repository)
}

// startWorkflow takes a workflow by the name of its file, and does not look
// whether that may be started by hand.
func (s *Server) startWorkflow(c *call) answer {
	file, branch := c.PathValue("workflow_id"), c.text("ref")
	tip := c.repo.ref("refs/heads/" + branch)
	if tip == "" {
		return refuse(http.StatusUnprocessableEntity, "No ref found for: "+branch)
	}
	if _, err := c.repo.run("", "cat-file", "-e", tip+":.github/workflows/"+file); err != nil {
		return notFound
	}
	c.repo.started = append(c.repo.started, file+" on "+branch)
	return noContent
}

// getWorkflow tells of a workflow by the name of its file.
func (s *Server) getWorkflow(c *call) answer {
	file := c.PathValue("workflow_id")
	path := ".github/workflows/" + file
	if _, err := c.repo.run("", "cat-file", "-e", "refs/heads/main:"+path); err != nil {
		return notFound
	}
	return ok(object{"id": 1, "name": path, "path": path, "state": cmp.Or(c.repo.settings.Workflows[file], "active"), "created_at": stamp(c.repo.created), "updated_at": stamp(c.repo.created)})
}

// getPages tells how the repository's site is published, where it is.
func (s *Server) getPages(c *call) answer {
	pages := c.repo.settings.Pages
	if pages == "" {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return ok(object{"build_type": pages, "public": !c.repo.settings.PagesPrivate, "status": nil, "cname": nil, "custom_404": false})
}

// getWorkflowPermissions tells it to those who administer the repository.
func (s *Server) getWorkflowPermissions(c *call) answer {
	if c.token.app && !c.token.has("administration", "read") || !c.token.app && (c.token.account == nil || c.repo.permission(c.token.account) != "admin") {
		return c.forbidden()
	}
	return ok(object{"default_workflow_permissions": "read", "can_approve_pull_request_reviews": c.repo.settings.ActionsOpenPulls})
}
