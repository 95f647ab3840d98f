package forge

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// Links are where people see a repository on its forge: Web is an address such as
// https://github.com/acme/app, "" for nowhere. Gitea says that the server is Gitea or
// Forgejo, GitHub that it is GitHub, which the address alone does not tell of every server.
type Links struct {
	Web           string
	Gitea, GitHub bool
}

// A form is how a kind of forge names its pages.
type form struct {
	folder  string // what stands before a commit's id in the address of a folder
	pull    string
	anchors map[string]string // of comments on the page of a pull request, by their kind
}

var (
	gitHub = form{"tree", "pull", map[string]string{approval.KindIssueComment: "issuecomment-", approval.KindReviewComment: "discussion_r"}}
	gitea  = form{"src/commit", "pulls", map[string]string{approval.KindIssueComment: "issuecomment-", approval.KindReviewComment: "issuecomment-"}}
	gitLab = form{"-/tree", "-/merge_requests", nil}
)

// hosts are those that are known.
var hosts = map[string]form{"github.com": gitHub, "codeberg.org": gitea, "gitea.com": gitea, "gitlab.com": gitLab}

// form is that of the links, GitHub's where it is not known; and whether there are pages.
func (l Links) form() (f form, known, there bool) {
	at, err := url.Parse(l.Web)
	if l.Web == "" || err != nil {
		return form{}, false, false
	}
	f, known = hosts[at.Hostname()]
	switch {
	case known:
		return f, true, true
	case l.Gitea:
		return gitea, true, true
	}
	return gitHub, l.GitHub, true
}

// Folder is the page of a folder as a commit has it, which forges show for any commit that
// they have, also one that is on no branch. Both are plain: an id in hex, a path whose
// characters mean nothing in an address. It is "" where there is no page.
func (l Links) Folder(commit, path string) string {
	f, _, there := l.form()
	if !there {
		return ""
	}
	return l.below(f.folder, commit, path)
}

// Page is the address of a page that people look at: of a pull request, at a comment there
// if one is given, or without a number of a commit. Nothing of it is anybody's text: what
// the repository's settings say, a number, or a commit's id. It is "" where there is none.
func (l Links) Page(pull int, comment Posted, commit string) string {
	f, _, there := l.form()
	switch {
	case !there:
		return ""
	case pull > 0:
		page := l.below(f.pull, strconv.Itoa(pull))
		if id, err := strconv.ParseUint(comment.ID, 10, 63); err == nil && f.anchors[comment.Kind] != "" {
			page += "#" + f.anchors[comment.Kind] + strconv.FormatUint(id, 10)
		}
		return page
	case canon.IsGitID(commit):
		return l.below("commit", commit)
	}
	return ""
}

// Pull is the address of a pull request's page, "" where it is not known what kind of forge
// that is: the kinds call these pages differently, and a page that stays leads nowhere wrong.
func (l Links) Pull(number int) string {
	f, known, _ := l.form()
	if !known {
		return ""
	}
	return l.below(f.pull, strconv.Itoa(number))
}

func (l Links) below(parts ...string) string {
	return strings.TrimSuffix(l.Web, "/") + "/" + strings.Join(parts, "/")
}
