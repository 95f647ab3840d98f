//go:build browser

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// An onlooker looks at what the program wrote on a real Gitea, which shows the ledger's branch.
type onlooker struct {
	*teaHub
	b *pagetest.Browser
}

// teaLedger is the ledger's ref there.
const teaLedger = "refs/heads/countersign-ledger"

// What somebody writes who wants more than words of it. The last two are of a patch.
const (
	hostileTitle  = `<img src=x onerror=alert(1)> ![x](https://evil.example/x.png) [x](javascript:alert(1)) @bob #1 https://evil.example/t acme/site#1 <script>alert(1)</script>`
	hostileReason = `<b>never</b> [x](https://evil.example/r) @bob #1 <script>alert(1)</script>`
	hostileName   = "[x](evil) ![x](x.png) @bob #1 `code` &lt;b&gt;.md"
	hostileText   = "```\n</code></pre><script>alert(1)</script>\n\n# @bob #1 ![x](https://evil.example/x.png)\n[x](https://evil.example/c) <img src=x onerror=alert(1)>\n"
)

// TestGiteaBrowser: in a real browser, a person on a real Gitea reads what is asked, what was approved, the status, the ledger's pages
// and the site; every link of ours leads somewhere, and nothing of a hostile pull request is more than words.
func TestGiteaBrowser(t *testing.T) {
	o := &onlooker{b: pagetest.Start(t)}
	o.teaHub = newTeaHub(t, map[string]string{".github/countersign.yml": "version: 1\ngate: {bases: [main]}\n"})

	// A bot's change and the pull request itself are asked about, and approved.
	patch, bundle := filepath.Join(t.TempDir(), "fix.patch"), filepath.Join(t.TempDir(), "bundle.json")
	check(t, os.WriteFile(patch, []byte(greetFix), 0o600))
	if code, _, stderr := o.run("review", "--patch", patch, "--summary", "greet the world", "--bundle-out", bundle); code != 0 {
		t.Fatal(stderr)
	}
	change := o.settles(console.ExitPending, "--bundle", bundle).Transactions[0]
	line := "/approve " + change.Fingerprint
	p := o.pullRequest()
	o.shows(p, "Countersign: waits for approval: the change (0 of 1)", "robot hands in a change to 1 file, +1 −1: “greet the world”", line, "Some checks are pending", "countersign waiting: the change (0 of 1)")
	o.picture(p, "gitea-asked", "body")
	o.r.Comment(o.ada, o.pr, line)
	o.settles(console.ExitPending)
	o.r.Review(o.ada, o.pr, "APPROVED", "", o.r.Ref("refs/heads/topic"))
	whole := o.settles(0).Transactions[0]
	p = o.pullRequest()
	o.shows(p, "Countersign (the pull request itself): Approved by ada, not merged yet", "ada commented", line, "ada approved these changes", "All checks were successful", "countersign approved", "approved by ada")
	o.picture(p, "gitea-approved", ".commit-status-panel")

	// The record that the comment leads to, and that of the bot's change, on the ledger's branch.
	o.follows(p, "Full record and how to check it", whole.ID)
	o.shows(p, "pull request 1 of acme/site", "a review", whole.PatchID)
	p = o.record(change.ID)
	o.shows(p, "Applied. robot proposed to change 1 file", "ada approved it.", "-hello", "+hello, world", "read back and found as approved", change.PatchID)
	o.picture(p, "gitea-record", "#readme")

	// A hostile pull request.
	eve := o.s.User("eve")
	fork := o.r.Fork(eve)
	fork.Commit(eve, "idea", hostileTitle, map[string]string{hostileName: hostileText})
	o.pr = o.r.PullRequest(eve, "eve:idea", "main", hostileTitle)
	idea := o.settles(console.ExitPending).Transactions[0]
	o.shows(o.pullRequest(), hostileTitle, hostileName, "/approve "+idea.Fingerprint)
	o.r.Comment(o.ada, o.pr, "/deny "+idea.Fingerprint+" "+hostileReason)
	o.settles(console.ExitDenied)
	p = o.pullRequest()
	o.shows(p, "Countersign (the pull request itself): Denied by ada", hostileReason, hostileName)
	said := append(strings.Split(strings.TrimSpace(hostileText), "\n"), hostileTitle, hostileReason, hostileName, "Denied")
	o.follows(p, "Full record and how to check it", idea.ID)
	o.shows(p, said...)
	o.shows(o.record(idea.ID), said...)
	o.site(change.ID, idea.ID)
	if left, windows := o.b.Left(), o.b.Windows(); len(left)+len(windows) > 0 {
		t.Errorf("a page wanted to leave this machine: %q, or opened %q", left, windows)
	}
}

// settles settles the pull request from a fresh clone.
func (o *onlooker) settles(want int, args ...string) settled {
	o.Helper()
	o.clone()
	return o.settle(want, append(args, "--ledger-ref", teaLedger)...)
}

// comment is a selector of what the program says on the pull request.
func (o *onlooker) comment() string {
	o.Helper()
	var all []struct {
		ID   int64
		User forgetest.User
	}
	o.s.Must(o.ada, http.MethodGet, o.r.Path("issues", o.pr, "comments"), nil, &all)
	for _, c := range all {
		if c.User.ID == o.robot.ID {
			return fmt.Sprintf("#issuecomment-%d .markup", c.ID)
		}
	}
	o.Fatal("no comment")
	return ""
}

func (o *onlooker) pullRequest() *pagetest.Page {
	o.Helper()
	p := o.b.Open(o.T, fmt.Sprintf("%s/acme/site/pulls/%d", o.s.URL, o.pr), pagetest.Look{})
	o.words(p, o.comment())
	return p
}

// record opens a transaction's page on the ledger's branch, after the tables that lead to it.
func (o *onlooker) record(id string) (p *pagetest.Page) {
	o.Helper()
	dir := ledger.Dir(id)
	day := path.Dir(path.Dir(dir))
	for _, at := range []string{path.Dir(day), day, path.Dir(dir), dir} {
		p = o.b.Open(o.T, o.s.URL+"/acme/site/src/branch/"+strings.TrimPrefix(teaLedger, "refs/heads/")+"/"+at, pagetest.Look{})
		o.words(p, "#readme .markup")
	}
	return p
}

// follows clicks the link of the comment with a text, which leads to a transaction's page.
func (o *onlooker) follows(p *pagetest.Page, text, id string) {
	o.Helper()
	p.Eval(fmt.Sprintf("[...document.querySelectorAll(%q)].find(a => a.innerText == %q).click()", o.comment()+" a", text), nil)
	p.Wait(fmt.Sprintf("location.pathname.endsWith(%q) && document.querySelector('#readme .markup')", id), time.Minute)
	o.words(p, "#readme .markup")
}

// words holds that what a page has in a place is words: no element that loads, asks or runs anything, no mention, and no link
// but ours, which all lead somewhere. It also holds what the whole page did.
func (o *onlooker) words(p *pagetest.Page, place string) {
	o.Helper()
	var found struct {
		Places      int
		Links, More []string
	}
	p.Eval(fmt.Sprintf(`(() => {
		const places = [...document.querySelectorAll(%q)], all = places.flatMap(e => [...e.querySelectorAll("*")]);
		return {
			Places: places.length,
			Links: all.filter(e => e.matches("a")).map(e => e.href),
			More: all.filter(e => e.matches("script, style, link, meta, base, img, picture, video, audio, iframe, object, embed, form, input, textarea, a.mention, a.ref-issue, .emoji, .math")
				|| [...e.attributes].some(a => a.name.startsWith("on") || /^\s*javascript:/i.test(a.value))).map(e => e.outerHTML),
		};
	})()`, place), &found)
	if found.Places != 1 || len(found.More) > 0 {
		o.Errorf("%d of %s: %q", found.Places, place, found.More)
	}
	slices.Sort(found.Links)
	for _, link := range slices.Compact(found.Links) {
		o.leads(link)
	}
	seen := p.Seen()
	elsewhere := func(address string) bool {
		return !strings.HasPrefix(address, o.s.URL+"/") && !strings.HasPrefix(address, "data:")
	}
	asks := func(dialog string) bool { return !strings.HasPrefix(dialog, "alert: Failed to load asset files") } // Gitea's own, where its interface was not built
	if slices.ContainsFunc(seen.Requests, elsewhere) || slices.ContainsFunc(seen.Dialogs, asks) {
		o.Errorf("requests %q, dialogs %q", seen.Requests, seen.Dialogs)
	}
	if i := slices.IndexFunc(seen.Scripts, elsewhere); i >= 0 { // Gitea has scripts of its own
		o.Errorf("a script ran: %q", seen.Scripts[i])
	}
}

// leads fails the test unless an address is of the project and its page is there, with the place on it that the address names.
func (o *onlooker) leads(address string) {
	o.Helper()
	page, place, _ := strings.Cut(address, "#")
	if !strings.HasPrefix(page, o.s.URL+"/acme/site/") {
		o.Errorf("a link to %s", address)
		return
	}
	answer, err := http.Get(page)
	check(o.T, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check(o.T, err)
	if answer.StatusCode != http.StatusOK || strings.HasPrefix(place, "issuecomment-") && !strings.Contains(string(text), `id="`+place+`"`) {
		o.Errorf("%s leads nowhere: %s", address, answer.Status)
	}
}

// shows holds that a page's text has these, however it is broken into lines, also where it is folded.
func (o *onlooker) shows(p *pagetest.Page, texts ...string) {
	o.Helper()
	flat := func(text string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(text, "\u200b", "")), " ")
	}
	var text string
	p.Eval(`(() => {
		const folded = [...document.querySelectorAll("details:not([open])")], fold = open => folded.forEach(d => d.open = open);
		fold(true);
		const text = document.body.innerText;
		fold(false);
		return text;
	})()`, &text)
	for _, want := range texts {
		if !strings.Contains(flat(text), flat(want)) {
			o.Errorf("the page does not show %q:\n%s", want, text)
		}
	}
}

// picture keeps a picture of a page from an element on for the docs, where the interface was built: without its style it is no sight.
func (o *onlooker) picture(p *pagetest.Page, name, element string) {
	o.Helper()
	const width, height, most = 1280, 900, 150 << 10
	p.Eval(fmt.Sprintf("document.querySelector(%q).scrollIntoView()", element), nil)
	drawn := p.Picture()
	answer, err := http.Get(o.s.URL + "/assets/css/index.css")
	check(o.T, err)
	check(o.T, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		o.Logf("%s is not drawn: the interface was not built (see .ci/forge)", name)
		return
	}
	check(o.T, docsPicture(name, drawn, width, height, most))
}

// site looks at the ledger's site, and goes on to the pull request from the page of its bot's change.
func (o *onlooker) site(change, hostile string) {
	o.Helper()
	o.clone()
	dir := filepath.Join(o.TempDir(), "site")
	for _, args := range [][]string{{"sync"}, {"site", "--out", dir}} {
		if code, stdout, stderr := o.run(append(args, "--ledger-ref", teaLedger)...); code != 0 {
			o.Fatalf("%q: %d %s%s", args, code, stdout, stderr)
		}
	}
	site := pagetest.Serve(o.T, dir)
	quiet := func(p *pagetest.Page) {
		o.Helper()
		seen := p.Seen()
		elsewhere := func(address string) bool { return !strings.HasPrefix(address, site) }
		if len(seen.Scripts)+len(seen.Dialogs) > 0 || slices.ContainsFunc(seen.Requests, elsewhere) {
			o.Errorf("%+v", seen)
		}
	}
	p := o.b.Open(o.T, site+"index.html", pagetest.Look{})
	o.shows(p, "greet the world", hostileTitle[:60])
	quiet(p)
	p = o.b.Open(o.T, site+"tx/"+hostile+".html", pagetest.Look{})
	o.shows(p, append(strings.Split(strings.TrimSpace(hostileText), "\n"), hostileTitle, hostileReason, hostileName)...)
	quiet(p)
	p = o.b.Open(o.T, site+"tx/"+change+".html", pagetest.Look{})
	o.shows(p, "Who approved which bytes", "greet the world", "+hello, world")
	quiet(p)
	var links []string
	p.Eval(fmt.Sprintf("[...document.querySelectorAll('a')].map(a => a.href).filter(a => !a.startsWith(%q))", site), &links)
	slices.Sort(links)
	for _, link := range slices.Compact(links) {
		o.leads(link)
	}
	p.Click(fmt.Sprintf("dd a[href=%q]", o.s.URL+"/acme/site/pulls/1"))
	p.Wait("location.pathname == '/acme/site/pulls/1' && document.querySelector('.commit-status-panel')", time.Minute)
}
