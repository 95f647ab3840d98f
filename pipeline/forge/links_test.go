package forge

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
)

func TestLinksFolder(t *testing.T) {
	t.Parallel()
	for web, want := range map[string]string{
		"":                                       "",
		"https://github.com/acme/app":            "https://github.com/acme/app/tree/abc/transactions/x",
		"https://git.example.org:8443/acme/app/": "https://git.example.org:8443/acme/app/tree/abc/transactions/x",
		"https://codeberg.org/acme/app":          "https://codeberg.org/acme/app/src/commit/abc/transactions/x",
		"https://gitlab.com/acme/app":            "https://gitlab.com/acme/app/-/tree/abc/transactions/x",
		"http://[":                               "",
	} {
		if got := (Links{Web: web}).Folder("abc", "transactions/x"); got != want {
			t.Errorf("%q: %q, want %q", web, got, want)
		}
	}
	if got, want := (Links{Web: "https://git.example.org/acme/app", Gitea: true}).Folder("abc", "x"), "https://git.example.org/acme/app/src/commit/abc/x"; got != want {
		t.Errorf("Gitea: %q, want %q", got, want)
	}
}

func TestLinksPage(t *testing.T) {
	t.Parallel()
	asked := Posted{Kind: approval.KindReviewComment, ID: "7"}
	for want, links := range map[string]Links{
		"https://github.com/acme/app/pull/3#discussion_r7":       {Web: "https://github.com/acme/app"},
		"https://codeberg.org/acme/app/pulls/3#issuecomment-7":   {Web: "https://codeberg.org/acme/app"},
		"http://git.example.org:3000/a/b/pulls/3#issuecomment-7": {Web: "http://git.example.org:3000/a/b", Gitea: true},
		"https://git.example.org/acme/app/pull/3#discussion_r7":  {Web: "https://git.example.org/acme/app/"},
		"https://gitlab.com/acme/app/-/merge_requests/3":         {Web: "https://gitlab.com/acme/app"},
	} {
		if got := links.Page(3, asked, ""); got != want {
			t.Errorf("%+v: %q, want %q", links, got, want)
		}
	}
}

// TestLinksPull: a page that stays has the address of a pull request's page only where it is known how the forge calls it.
func TestLinksPull(t *testing.T) {
	t.Parallel()
	for links, want := range map[Links]string{
		{}:                                     "",
		{Gitea: true}:                          "",
		{Web: "http://[", GitHub: true}:        "",
		{Web: "https://github.com/acme/app"}:   "https://github.com/acme/app/pull/3",
		{Web: "https://gitea.com/acme/app"}:    "https://gitea.com/acme/app/pulls/3",
		{Web: "https://gitlab.com/acme/app"}:   "https://gitlab.com/acme/app/-/merge_requests/3",
		{Web: "https://git.example.org/a/b"}:   "",
		{Web: "https://github.com.evil/a/b"}:   "",
		{Web: "https://a.b/c/d", GitHub: true}: "https://a.b/c/d/pull/3",
		{Web: "https://a.b/c/d", Gitea: true}:  "https://a.b/c/d/pulls/3",
	} {
		if got := links.Pull(3); got != want {
			t.Errorf("%+v: %q, want %q", links, got, want)
		}
	}
}
