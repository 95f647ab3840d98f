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

// A Repository is one as it is now.
type Repository struct {
	ID       int64
	Name     string
	CloneURL string
}

type repository struct {
	bare
	id        int64
	owner     *account
	name      string
	private   bool
	parent    *repository // that it is a fork of
	deleted   bool
	created   time.Time
	roles     map[int64]string
	custom    map[string]string
	protected map[string]bool
	pulls     []*pull // in the order of their numbers, which start at 1
	checks    []*checkRun
	runs      []*workflowRun
	started   []string // workflows that were started by hand
	rulesets  []*ruleset
}

// Repository makes a repository with one commit on the branch main.
func (s *Server) Repository(n NewRepository) Repository {
	defer s.lock()()
	r := s.addRepository(n.Name, n.Private)
	files := n.Files
	if files == nil {
		files = map[string]string{"README.md": "# " + r.name + "\n"}
	}
	r.commit("refs/heads/main", "first", r.owner, s.time(), change{files: files})
	s.synchronize(r)
	return s.publicRepository(r)
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

func (s *Server) publicRepository(r *repository) Repository {
	return Repository{r.id, r.fullName(), s.URL + "/" + r.fullName() + ".git"}
}

// findRepository returns the repository "owner/name", in any case, or nil.
func (s *Server) findRepository(name string) *repository {
	for _, r := range s.repos {
		if !r.deleted && strings.EqualFold(r.fullName(), name) {
			return r
		}
	}
	return nil
}

func (s *Server) repo(name string) *repository {
	r := s.findRepository(name)
	if r == nil {
		misuse("no repository %s", name)
	}
	return r
}

// Fork makes a fork with the branches of a repository.
func (s *Server) Fork(from, to string) Repository {
	defer s.lock()()
	source := s.repo(from)
	r := s.addRepository(to, source.private)
	r.parent, r.custom = source, source.custom
	r.git("fetch", "--quiet", source.dir, "refs/heads/*:refs/heads/*")
	s.synchronize(r)
	return s.publicRepository(r)
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
		parent = r.resolve(cmp.Or(n.From, "main"))
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
	self := s.at("/repos/%s/branches/%s", c.repo.fullName(), name)
	protected := c.repo.protected[name]
	return ok(object{
		"name": name, "commit": s.commit(c.repo, commit), "protected": protected,
		"protection":     object{"enabled": protected, "required_status_checks": object{"enforcement_level": "off", "contexts": []any{}, "checks": []any{}}},
		"protection_url": self + "/protection", "_links": object{"self": self, "html": s.URL + "/" + c.repo.fullName() + "/tree/" + name},
	})
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

// compareCommits tells where two histories parted, and a page of the commits that
// the second has more. It leaves out the files.
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
	ahead, behind := c.repo.log(parted+".."+to), c.repo.log(parted+".."+from)
	status := "diverged"
	switch {
	case len(ahead) == 0 && len(behind) == 0:
		status = "identical"
	case len(behind) == 0:
		status = "ahead"
	case len(ahead) == 0:
		status = "behind"
	}
	a := list(c, "", ahead, func(one commitInfo) object { return s.commit(c.repo, one) })
	base, _ := c.repo.info(from)
	mergeBase, _ := c.repo.info(parted)
	html := s.URL + "/" + c.repo.fullName() + "/compare/" + from + "..." + to
	a.body = object{
		"url": s.at("/repos/%s/compare/%s...%s", c.repo.fullName(), from, to), "html_url": html, "permalink_url": html,
		"diff_url": html + ".diff", "patch_url": html + ".patch", "status": status,
		"base_commit": s.commit(c.repo, base), "merge_base_commit": s.commit(c.repo, mergeBase),
		"ahead_by": len(ahead), "behind_by": len(behind), "total_commits": len(ahead), "commits": a.body,
	}
	return a
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
	api := s.at("/repos/%s/git/%s", c.repo.fullName(), name)
	target := object{"type": "commit", "sha": id, "url": s.at("/repos/%s/git/commits/%s", c.repo.fullName(), id)}
	return created(object{"ref": name, "node_id": "REF_" + name, "url": api, "object": target})
}

// NewRuleset is a ruleset of a repository. Target is branch, tag or push;
// Enforcement is active if it is "". The Rules are parameters by type, nil for
// a type without. Branches are those, by name, that it holds for; the server
// tells of the rules and does not enforce them.
type NewRuleset struct {
	Repository  string
	Name        string
	Target      string
	Enforcement string
	Branches    []string
	Rules       map[string]map[string]any
}

type ruleset struct {
	NewRuleset
	id int64
}

// Ruleset adds a ruleset and returns its id.
func (s *Server) Ruleset(n NewRuleset) int64 {
	defer s.lock()()
	n.Enforcement = cmp.Or(n.Enforcement, "active")
	r := s.repo(n.Repository)
	r.rulesets = append(r.rulesets, &ruleset{n, s.nextID()})
	return r.rulesets[len(r.rulesets)-1].id
}

func (s *Server) listRulesets(c *call) answer {
	return list(c, "", c.repo.rulesets, func(one *ruleset) object { return s.ruleset(c.repo, one) })
}

func (s *Server) getRuleset(c *call) answer {
	for _, one := range c.repo.rulesets {
		if one.id == c.id("ruleset_id") {
			o := s.ruleset(c.repo, one)
			o["rules"] = one.rules(nil)
			return ok(o)
		}
	}
	return notFound
}

// listRules lists the active rules of a branch.
func (s *Server) listRules(c *call) answer {
	var found []object
	for _, one := range c.repo.rulesets {
		if one.Target == "branch" && one.Enforcement == "active" && slices.Contains(one.Branches, c.PathValue("branch")) {
			found = append(found, one.rules(object{"ruleset_id": one.id, "ruleset_source": c.repo.fullName(), "ruleset_source_type": "Repository"})...)
		}
	}
	return list(c, "", found, func(o object) object { return o })
}

func (s *Server) ruleset(r *repository, one *ruleset) object {
	self := s.at("/repos/%s/rulesets/%d", r.fullName(), one.id)
	return object{
		"id": one.id, "node_id": nodeID("RRS", one.id), "name": one.Name, "target": one.Target, "enforcement": one.Enforcement, "source": r.fullName(),
		"source_type": "Repository", "created_at": stamp(r.created), "updated_at": stamp(r.created), "_links": object{"self": object{"href": self}},
	}
}

// rules are the rules of a set, each with more.
func (one *ruleset) rules(more object) []object {
	all := []object{}
	for _, kind := range slices.Sorted(maps.Keys(one.Rules)) {
		rule := object{"type": kind}
		if parameters := one.Rules[kind]; parameters != nil {
			rule["parameters"] = parameters
		}
		maps.Copy(rule, more)
		all = append(all, rule)
	}
	return all
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
