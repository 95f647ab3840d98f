//go:build browser

package site_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/pagetest"
	"github.com/countersign-dev/countersign/report/site"
)

// written is a site of these in a directory.
func written(t *testing.T, all []html.Summary) (dir string) {
	dir = t.TempDir()
	for address, text := range files(t, site.New(all, options())) {
		path := filepath.Join(dir, filepath.FromSlash(address))
		check(t, os.MkdirAll(filepath.Dir(path), 0o777))
		check(t, os.WriteFile(path, []byte(text), 0o666))
	}
	return dir
}

// both are lives and what was made up, the lives first; one is approved by its own proposer.
func both(t *testing.T) []html.Summary {
	all := append(lives(t, 9), made(t, 700, 1)...)
	last := &all[len(all)-3]
	last.Own, last.Approvers, last.Deniers, last.State, last.Status, last.Waits = true, []ledger.Actor{last.Proposer}, nil, plain.Applied, "completed", false
	return all
}

// TestBrowserSite: axe-core finds nothing on the pages, and nothing is off the screen, on a phone, on a tablet and on a
// desk, light and dark.
func TestBrowserSite(t *testing.T) {
	b := pagetest.Start(t)
	all := both(t)
	dir := written(t, all)
	for _, address := range []string{
		"index.html", "month/index.html", "month/2025-03/index.html", "person/index.html", "path/index.html", "search/index.html?q=is:denied",
		"state/waiting/index.html", "state/own/index.html", "patch/" + all[len(all)-5].PatchID + "/index.html", "pull/3/index.html",
		site.Person(all[0].Proposer), site.Path(all[len(all)-1].Paths[0]),
	} {
		file, query, _ := strings.Cut(address, "?")
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
		to := pagetest.File(t, filepath.Join(dir, file))
		if query != "" {
			to += "?" + query
		}
		p := b.Open(t, to, pagetest.Look{})
		if query != "" {
			p.Wait(`document.querySelectorAll("#results tr").length > 10`, time.Minute)
		}
		for _, width := range []int{390, 768, 1440} {
			for _, dark := range []bool{false, true} {
				if dark && width > 390 || width == 768 {
					continue // colours do not depend on the width
				}
				p.Look(pagetest.Look{Width: width, Height: 900, Dark: dark})
				for _, broken := range p.Violations() {
					t.Errorf("%s, %d, dark %v: %s", address, width, dark, broken)
				}
			}
			p.Look(pagetest.Look{Width: width, Height: 900})
			var off []string
			p.Eval(`[...document.body.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 150))`, &off)
			if len(off) > 0 {
				t.Errorf("%s, %d: off the screen: %q", address, width, off[:min(len(off), 3)])
			}
		}
		p.Close()
	}
	if left := b.Left(); len(left)+len(b.Windows()) > 0 {
		t.Errorf("left: %q, windows: %q", left, b.Windows())
	}
}

// TestBrowserFirstScreen: on a phone, the first screen of the overview says what the repository is called, how much
// waits, for how long, and what waits for what.
func TestBrowserFirstScreen(t *testing.T) {
	b := pagetest.Start(t)
	p := b.Open(t, pagetest.File(t, filepath.Join(written(t, lives(t, 9)), "index.html")), pagetest.Look{Width: 390, Height: 844})
	var seen string
	p.Eval(`(() => {
		const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), out = [];
		for (let n; n = walk.nextNode();) {
			const range = document.createRange();
			range.selectNodeContents(n);
			const box = range.getBoundingClientRect();
			if (n.data.trim() && box.height > 0 && box.bottom <= innerHeight && box.left >= 0) out.push(n.data.trim());
		}
		return out.join("\n");
	})()`, &seen)
	for _, want := range []string{
		"acme/app", "and it verifies", "4\nwaiting, the oldest for 322 days", "applied or merged", "denied", "approved by their own proposer",
		"What waits\n", "greet the world\nwaits for approval\nthe change (0 of 1)\nbot",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("the first screen does not say %q:\n%s", want, seen)
		}
	}
}

// TestBrowserSearch: a search finds by words, by how things stand, by pull request, by who decided and by date, and says
// who decided.
func TestBrowserSearch(t *testing.T) {
	b := pagetest.Start(t)
	all := both(t)
	dir := written(t, all)
	count := func(is func(html.Summary) bool) (n int) {
		for _, s := range all {
			if is(s) {
				n++
			}
		}
		return n
	}
	for query, want := range map[string]int{
		"is:waiting":         count(func(s html.Summary) bool { return s.Waits || s.State == plain.Approved || s.State == plain.ApplyFailed }),
		"state:denied":       count(func(s html.Summary) bool { return s.State == plain.Denied }),
		"is:own":             count(func(s html.Summary) bool { return s.Own }),
		"#3":                 count(func(s html.Summary) bool { return s.PullRequest == 3 }),
		"2025-03":            count(func(s html.Summary) bool { return strings.HasPrefix(s.Proposed, "2025-03") }),
		"2025-03-07":         count(func(s html.Summary) bool { return strings.HasPrefix(s.Proposed, "2025-03-07") }),
		"ada":                count(func(s html.Summary) bool { return strings.Contains(strings.ToLower(namesOf(s)), "ada") }),
		"state:denied #3":    count(func(s html.Summary) bool { return s.State == plain.Denied && s.PullRequest == 3 }),
		"greet the world":    count(func(s html.Summary) bool { return s.Summary == "greet the world" }),
		"nothing-like-this!": 0,
	} {
		p := b.Open(t, pagetest.File(t, filepath.Join(dir, "search", "index.html"))+"?q="+strings.NewReplacer("#", "%23", " ", "+").Replace(query), pagetest.Look{})
		p.Wait(`document.querySelector("#found").textContent != ""`, time.Minute)
		var rows []string
		p.Eval(`[...document.querySelectorAll("#results tr")].map(r => r.innerText)`, &rows)
		var said string
		p.Eval(`document.querySelector("#found").textContent`, &said)
		if len(rows) != min(want, 200) || want > 0 && !strings.Contains(said, "transaction") || want == 0 && query != "nothing-like-this!" {
			t.Errorf("%s: %d rows, want %d; %s", query, len(rows), want, said)
		}
		if query == "ada" && !strings.Contains(strings.ToLower(rows[0]), "ada") {
			t.Errorf("%s: a row does not say who approved: %s", query, rows[0])
		}
		p.Close()
	}
}

func namesOf(s html.Summary) string {
	out := s.Proposer.Login + " " + s.Proposer.ID
	for _, a := range append(s.Approvers, s.Deniers...) {
		out += " " + a.Login + " " + a.ID
	}
	return out
}
