package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestPagesLinkPullRequest: the pages of a ledger lead to a pull request where it is known how its forge calls that page,
// and name it everywhere.
func TestPagesLinkPullRequest(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	denied, fingerprint := h.propose(addition("more.txt", "more\n"))
	waiting, _ := h.propose(greetFix)
	h.says("ada", "/deny "+fingerprint+" not now")
	h.settle(console.ExitDenied, "--no-gate")
	h.clone()
	h.git(h.dir, "fetch", "-q", "origin", "refs/agent/ledger:refs/agent/ledger")
	for _, c := range []struct {
		name                  string
		flags                 []string
		github                bool
		list, denied, waiting string // what the pages have between the repository and the number, "" for no link
	}{
		{"a job", nil, true, "pull", "pull", "pull"},
		{"a clone of an unknown server", nil, false, "", "pull", ""}, // where somebody decided tells
		{"a clone of Gitea", []string{"--forge", "gitea"}, false, "pulls", "pulls", "pulls"},
		{"a clone of GitHub Enterprise Server", []string{"--forge", "github"}, false, "pull", "pull", "pull"},
	} {
		if !c.github {
			h.env = map[string]string{"HOME": h.TempDir(), "GIT_CONFIG_NOSYSTEM": "1"}
		}
		dir := filepath.Join(t.TempDir(), "site")
		h.does(append([]string{"site", "--out", dir}, c.flags...)...)
		for page, want := range map[string]string{fmt.Sprintf("pull/%d/index.html", h.pr): c.list, "tx/" + denied + ".html": c.denied, "tx/" + waiting + ".html": c.waiting} {
			raw, err := os.ReadFile(filepath.Join(dir, page))
			check(t, err)
			for _, pages := range []string{"pull", "pulls"} {
				link := fmt.Sprintf(`href="%s/%s/%s/%d"`, h.s.URL, site, pages, h.pr)
				if strings.Contains(string(raw), link) != (pages == want) {
					t.Errorf("%s: %s: want %q, the link %s: %t", c.name, page, want, link, pages != want)
				}
			}
			if !strings.Contains(string(raw), fmt.Sprintf("#%d", h.pr)) {
				t.Errorf("%s: %s does not name the pull request", c.name, page)
			}
		}
	}
}

// TestGiteaLinksLead: each link in the program's comment on a real server leads to a page there, also to a record on a ref that
// is no branch.
func TestGiteaLinksLead(t *testing.T) {
	h := newTeaHub(t, map[string]string{".github/countersign.yml": "version: 1\ngate: {bases: [main]}\n"})
	tx := h.settle(console.ExitPending).Transactions[0]
	var comments []struct{ Body string }
	h.s.Must(h.ada, http.MethodGet, h.r.Path("issues", h.pr, "comments"), nil, &comments)
	if len(comments) != 1 {
		t.Fatalf("%+v", comments)
	}
	links := regexp.MustCompile(`\]\((http[^)]*)\)`).FindAllStringSubmatch(comments[0].Body, -1)
	record := false
	for _, link := range links {
		record = record || strings.HasSuffix(link[1], "/"+ledger.Dir(tx.ID))
		answer, err := http.Get(link[1])
		check(t, err)
		check(t, answer.Body.Close())
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s leads nowhere: %s", link[1], answer.Status)
		}
	}
	if !record {
		t.Errorf("no link to the record: %s", comments[0].Body)
	}
}
