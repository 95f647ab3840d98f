package forge

import (
	"net/url"
	"strings"
)

// Links are where people see a repository on its forge: Web is an address such as
// https://github.com/acme/app, "" for nowhere.
type Links struct{ Web string }

// folders are what stands before a commit's id in the address of a folder, by the host of
// a forge; elsewhere it is as on GitHub.
var folders = map[string]string{"codeberg.org": "src/commit", "gitea.com": "src/commit", "gitlab.com": "-/tree"}

// Folder is the page of a folder as a commit has it, which forges show for any commit that
// they have, also one that is on no branch. Both are plain: an id in hex, a path whose
// characters mean nothing in an address. It is "" where there is no page.
func (l Links) Folder(commit, path string) string {
	at, err := url.Parse(l.Web)
	if l.Web == "" || err != nil {
		return ""
	}
	form, known := folders[at.Hostname()]
	if !known {
		form = "tree"
	}
	return strings.TrimSuffix(l.Web, "/") + "/" + form + "/" + commit + "/" + path
}
