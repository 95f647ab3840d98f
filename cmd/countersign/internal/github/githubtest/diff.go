package githubtest

import (
	"fmt"
	"strconv"
	"strings"
)

// A file is one of a diff, as the API tells it.
type file struct {
	path, from     string
	status         string // added, modified, removed, renamed
	added, deleted int
	blob           string
}

var statusWords = map[byte]string{'A': "added", 'M': "modified", 'D': "removed", 'R': "renamed", 'T': "changed", 'C': "copied"}

// mergeBase is the commit that a pull request's diff starts at, "" for none.
func (p *pull) mergeBase() string {
	out, err := p.repo.run(nil, "", "merge-base", p.base.sha, p.head.sha)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// files are the files of the pull request's diff, kept for as long as its ends
// stay where they are.
func (p *pull) files() []file {
	ends := p.base.sha + p.head.sha
	if p.diffOf != ends {
		p.diff, p.diffOf = p.readFiles(), ends
	}
	return p.diff
}

func (p *pull) readFiles() []file {
	base := p.mergeBase()
	if base == "" {
		return nil
	}
	counts := p.repo.counts(base, p.head.sha)
	fields := strings.Split(p.repo.git("diff", "--raw", "-z", "-M", "--no-abbrev", base, p.head.sha), "\x00")
	var all []file
	for i := 0; i+1 < len(fields); i += 2 {
		meta := strings.Fields(fields[i])
		f := file{path: fields[i+1], status: statusWords[meta[4][0]], blob: meta[3]}
		if f.status == "renamed" || f.status == "copied" {
			f.from, f.path = f.path, fields[i+2]
			i++
		}
		f.added, f.deleted = counts[f.path][0], counts[f.path][1]
		all = append(all, f)
	}
	return all
}

// counts are the lines that a diff adds and deletes, by the new path.
func (b bare) counts(from, to string) map[string][2]int {
	counts := map[string][2]int{}
	fields := strings.Split(b.git("diff", "--numstat", "-z", "-M", from, to), "\x00")
	for i := 0; i < len(fields); i++ {
		parts := strings.SplitN(fields[i], "\t", 3)
		if len(parts) != 3 {
			continue
		}
		added, _ := strconv.Atoi(parts[0])
		deleted, _ := strconv.Atoi(parts[1])
		path := parts[2]
		if path == "" { // a rename: both paths follow
			path, i = fields[i+2], i+2
		}
		counts[path] = [2]int{added, deleted}
	}
	return counts
}

func (s *Server) diffEntry(p *pull, f file) object {
	at := fmt.Sprintf("%s/%s/blob/%s/%s", s.URL, p.repo.fullName(), p.head.sha, f.path)
	o := object{
		"sha": f.blob, "filename": f.path, "status": f.status, "additions": f.added, "deletions": f.deleted, "changes": f.added + f.deleted,
		"blob_url": at, "raw_url": at, "contents_url": s.at("/repos/%s/contents/%s", p.repo.fullName(), "file"),
	}
	if f.from != "" {
		o["previous_filename"] = f.from
	}
	return o
}

// A commitInfo is a commit as git tells it.
type commitInfo struct {
	sha, tree         string
	parents           []string
	author, committer signature
	message           string
}

const commitFormat = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B%x00%x01"

// log returns commits, oldest first.
func (b bare) log(args ...string) []commitInfo {
	out := b.git(append([]string{"log", "--reverse", "--format=" + commitFormat}, args...)...)
	var all []commitInfo
	for one := range strings.SplitSeq(out, "\x01") {
		f := strings.Split(strings.TrimLeft(one, "\n"), "\x00")
		if len(f) < 10 {
			continue
		}
		all = append(all, commitInfo{
			f[0], f[1], strings.Fields(f[2]), signature{f[3], f[4], f[5]}, signature{f[6], f[7], f[8]}, strings.TrimSpace(f[9]),
		})
	}
	return all
}

// info is a commit, which never changes, so that it is read only once; ok is
// false if git does not have it.
func (r *repository) info(id string) (commitInfo, bool) {
	if c, ok := r.known[id]; ok {
		return c, true
	}
	if r.resolve(id) != id {
		return commitInfo{}, false
	}
	r.known[id] = r.log("-1", id)[0]
	return r.known[id], true
}

// commits are the commits of a pull request, oldest first.
func (p *pull) commits() []commitInfo {
	base := p.mergeBase()
	if base == "" {
		return nil
	}
	return p.repo.log(base + ".." + p.head.sha)
}

func (s *Server) commit(r *repository, c commitInfo) object {
	api := s.at("/repos/%s/commits/%s", r.fullName(), c.sha)
	who := func(g signature) object { return object{"name": g.name, "email": g.email, "date": g.date} }
	parents := []object{}
	for _, p := range c.parents {
		parents = append(parents, object{"sha": p, "url": s.at("/repos/%s/commits/%s", r.fullName(), p)})
	}
	return object{
		"sha": c.sha, "node_id": "C_" + c.sha, "url": api, "html_url": fmt.Sprintf("%s/%s/commit/%s", s.URL, r.fullName(), c.sha), "comments_url": api + "/comments",
		"author": s.accountOf(c.author), "committer": s.accountOf(c.committer), "parents": parents,
		"commit": object{
			"url": api, "message": c.message, "comment_count": 0, "author": who(c.author), "committer": who(c.committer),
			"tree": object{"sha": c.tree, "url": s.at("/repos/%s/git/trees/%s", r.fullName(), c.tree)},
		},
	}
}

// accountOf is the account of a commit's address, or null.
func (s *Server) accountOf(g signature) any {
	if a := s.byEmail(g.email); a != nil {
		return s.user(a)
	}
	return nil
}
