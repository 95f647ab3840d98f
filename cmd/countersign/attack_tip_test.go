package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/report"
)

const ledgerRef = "refs/agent/ledger"

// newDenied is an attack by somebody who may push and delete comments, on a
// proposal that was denied: they want the same bytes approved after all.
func newDenied(t *testing.T) (a *attack, before, denied string) {
	t.Helper()
	a = newAttack(t, "")
	before = a.s.Ref(site, ledgerRef)
	a.says("ada", "/deny "+a.fingerprint+" no")
	a.isDenied()
	for _, c := range a.s.Comments(site, a.pr) {
		a.s.Delete(c.ID)
	}
	return a, before, a.s.Ref(site, ledgerRef)
}

// refuses settles on a fresh runner with the same bytes proposed again, and wants
// the ledger to be refused.
func (a *attack) refuses(what, says string) {
	a.Helper()
	a.clone()
	ledger := a.s.Ref(site, ledgerRef)
	one := []string{"--pr", fmt.Sprint(a.pr)}
	for _, args := range [][]string{append(one, "--bundle", a.bundle(greetFix)), one, {"--all"}} {
		code, _, stderr := a.run(append([]string{"settle", "--no-gate"}, args...)...)
		if code != console.ExitFailed || !strings.Contains(stderr, says) || !strings.Contains(stderr, "docs/ledger.md") {
			a.Errorf("%s: exit code %d: %s", what, code, stderr)
		}
	}
	a.untouched()
	if now := a.s.Ref(site, ledgerRef); now != ledger {
		a.Errorf("%s: the ledger moved from %s to %s", what, ledger, now)
	}
}

// A denial is not forgotten with the ledger: a fresh runner knows from check runs
// that there was one, on the same pull request and on any other.
func TestT81DeletedLedger(t *testing.T) {
	long(t)
	t.Parallel()
	a, before, denied := newDenied(t)
	a.s.Git(site, "update-ref", "-d", ledgerRef)
	a.refuses("deleted", "is gone: it was at "+denied)
	a.s.Push(githubtest.NewCommit{Repository: site, Branch: "another", By: "bob", Files: map[string]string{"another.txt": "x\n"}})
	first := a.pr
	a.pr = a.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "another", Base: "main", Title: "Another"}).Number
	a.refuses("on another pull request", "is gone: it was at "+denied)
	a.s.Git(site, "update-ref", ledgerRef, before)
	a.refuses("set back", "does not descend from "+denied)
	a.pr = first
	a.refuses("set back, on the same pull request", "does not descend from "+denied)

	a.s.Git(site, "update-ref", ledgerRef, denied) // put back as it was
	a.clone()
	a.settle(console.ExitDenied, "--no-gate", "--bundle", a.write("bundle.json", bundleOf(greetFix, "")))
	a.untouched()
	a.audits()
}

// A commit on top of the last tip descends from it, whatever its tree has lost: what
// came after the tip that is known has to verify (L14).
func TestT81DenialTakenOut(t *testing.T) {
	long(t)
	t.Parallel()
	a, before, denied := newDenied(t)
	made := a.s.Git(site, "-c", "user.name=bob", "-c", "user.email=bob@example.com", "commit-tree", "-m", "ledger", "-p", denied, before+"^{tree}")
	a.s.Git(site, "update-ref", ledgerRef, made)
	for _, whole := range []bool{false, true} { // where the clone has the ledger as well
		a.clone()
		if whole {
			a.git("", "-C", a.dir, "fetch", "-q", "origin", ledgerRef+":"+ledgerRef)
		}
		for _, args := range [][]string{{"--all"}, {"--pr", fmt.Sprint(a.pr), "--bundle", a.write("bundle.json", bundleOf(greetFix, ""))}, {"--pr", fmt.Sprint(a.pr)}} {
			code, _, stderr := a.run(append([]string{"settle", "--no-gate"}, args...)...)
			if code != console.ExitFailed || !strings.Contains(stderr, made+", and its commits") || !strings.Contains(stderr, "docs/ledger.md") {
				t.Errorf("whole %v %s: exit code %d: %s", whole, args, code, stderr)
			}
		}
	}
	a.untouched()
	if now := a.s.Ref(site, ledgerRef); now != made {
		t.Errorf("the ledger moved to %s", now)
	}
}

// What is forged makes a ledger be refused, and never be taken; another app's word
// is nobody's.
func TestT81ForgedTip(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "")
	root := a.s.Git(site, "rev-list", "--max-parents=0", "refs/heads/main")
	forged := report.LedgerCheck(ledgerRef, strings.Repeat("ab", 20))
	a.s.Bot("other-app[bot]")
	a.publishes(a.s.AppToken(githubtest.AppToken{Bot: "other-app[bot]", Repositories: []string{site}, Permissions: map[string]string{"checks": "write"}}), root, forged)
	a.approves("ada")

	a.publishes(a.token, root, forged)
	a.clone()
	code, _, stderr := a.run("settle", "--no-gate", "--pr", fmt.Sprint(a.pr))
	if code != console.ExitFailed || !strings.Contains(stderr, strings.Repeat("ab", 20)) || !strings.Contains(stderr, "the check run ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	// An owner says on the default branch that this is over.
	later := time.Now().Add(time.Minute).UTC().Truncate(time.Second)
	a.policy("ledger: {since: " + later.Format(time.RFC3339) + "}\n")
	a.clone()
	if code, _, stderr = a.run("settle", "--no-gate", "--pr", fmt.Sprint(a.pr)); code != console.ExitRefused || !strings.Contains(stderr, "it is in the future") {
		t.Errorf("a time to come: exit code %d: %s", code, stderr)
	}
	a.stop(later.Add(time.Second))
	a.settle(0, "--no-gate")
	if text := a.check(report.LedgerCheckName(ledgerRef), root).Summary; !strings.Contains(text, a.s.Ref(site, ledgerRef)) {
		t.Errorf("the ledger's check run says %s", text)
	}
}

// Whatever is forged, an owner gets on: a time to come, a check run that is never
// completed, and one that names no tip are passed over as well (T81).
func TestT81ForgedForEver(t *testing.T) {
	long(t)
	t.Parallel()
	mark := report.LedgerCheck(ledgerRef, strings.Repeat("ab", 20))
	unfinished, broken, others := mark, mark, mark
	unfinished.Status, unfinished.Conclusion = report.CheckInProgress, ""
	broken.Summary = "<!-- countersign:ledger nothing -->"
	others.Name = "a report of tests, with whatever they print"
	for name, c := range map[string]struct {
		run    forge.Check
		onHead bool
		at     time.Duration
		locks  bool
	}{
		"a time to come":    {mark, false, 70 * 365 * 24 * time.Hour, true},
		"in progress":       {unfinished, false, 0, true},
		"names no tip":      {broken, false, 0, true},
		"not of our names":  {others, true, 0, false},
		"on the head alone": {forge.Check{Name: "countersign/0123456789ab", Status: mark.Status, Conclusion: mark.Conclusion, Summary: mark.Summary}, true, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttack(t, "")
			commit := a.s.Git(site, "rev-list", "--max-parents=0", "refs/heads/main")
			if c.onHead {
				commit = a.s.Pull(site, a.pr).Head
			}
			client, err := github.New(github.Options{APIURL: a.s.API(), Repository: site, Token: a.token})
			if err == nil {
				a.s.SetNow(func() time.Time { return time.Now().Add(c.at) })
				_, err = client.PublishCheckOver(t.Context(), commit, c.run, nil)
				a.s.SetNow(time.Now)
			}
			check(t, err)
			a.clone()
			if code, _, stderr := a.run("settle", "--no-gate", "--pr", fmt.Sprint(a.pr)); c.locks == (code == console.ExitPending) {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			later := time.Now().Add(time.Minute).UTC().Truncate(time.Second)
			a.policy("ledger: {since: " + later.Format(time.RFC3339) + "}\n")
			a.stop(later.Add(time.Second))
			if code, _, stderr := a.run("settle", "--no-gate", "--pr", fmt.Sprint(a.pr)); code != console.ExitPending {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			// What was said since is asked for again.
			a.s.Git(site, "update-ref", "-d", ledgerRef)
			a.clone()
			if code, _, stderr := a.run("settle", "--no-gate", "--pr", fmt.Sprint(a.pr)); code != console.ExitFailed || !strings.Contains(stderr, "is gone") {
				t.Errorf("deleted: exit code %d: %s", code, stderr)
			}
		})
	}
}

// publishes writes a check run with somebody's token.
func (h *hub) publishes(token, commit string, run forge.Check) {
	h.Helper()
	client, err := github.New(github.Options{APIURL: h.s.API(), Repository: site, Token: token})
	if err == nil {
		_, err = forge.Publish(h.Context(), client, commit, run)
	}
	check(h, err)
}

// The tip that the Policy names is demanded.
func TestT81TipOfThePolicy(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	for _, c := range []struct {
		tip  string
		want int
	}{{a.s.Ref(site, ledgerRef), console.ExitPending}, {strings.Repeat("0", 39) + "1", console.ExitFailed}} {
		a.policy("ledger: {tip: '" + c.tip + "'}\n")
		a.clone()
		if code, _, stderr := a.run("settle", "--no-gate", "--pr", fmt.Sprint(a.pr)); code != c.want {
			t.Errorf("%s: exit code %d: %s", c.tip, code, stderr)
		}
	}
}

// What cannot be read is not as if nothing were there.
func TestT81SourceUnread(t *testing.T) {
	long(t)
	t.Parallel()
	a, _, _ := newDenied(t)
	a.s.Git(site, "update-ref", "-d", ledgerRef)
	for name, f := range map[string]githubtest.Fault{
		"500":     {Status: 500, Path: "/api/v3/repos/acme/site/commits", Times: -1},
		"404":     {Status: 404, Path: "/api/v3/repos/acme/site/commits", Times: -1},
		"nothing": {Kind: githubtest.Body, Text: "{}", Path: "/api/v3/repos/acme/site/commits", Times: -1},
		"no runs": {Kind: githubtest.EmptyPage, Path: "/api/v3/repos/acme/site/commits", Times: -1},
	} {
		a.clone()
		bundle := a.bundle(greetFix)
		a.s.Fail(f)
		code, _, stderr := a.run("settle", "--no-gate", "--pr", fmt.Sprint(a.pr), "--bundle", bundle)
		a.s.Heal()
		if code != console.ExitIO || a.s.Ref(site, ledgerRef) != "" {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
	}
	a.untouched()
	a.pushes("ada", "main", "later.txt", "x\n") // so that there is something to leave out
	shallow := a.dir + "-shallow"
	a.git("", "clone", "-q", "--depth", "1", "--no-single-branch", a.s.URL+"/"+site+".git", shallow)
	a.dir = shallow
	if code, _, stderr := a.run("settle", "--no-gate", "--pr", fmt.Sprint(a.pr)); code != console.ExitIO {
		t.Errorf("shallow: exit code %d: %s", code, stderr)
	}
}

// A shallow clone reviews a pull request's own diff as a whole one does, without
// the history: GitHub says where that parted from its base's.
func TestShallowMergeBase(t *testing.T) {
	long(t)
	t.Parallel()
	a := newHub(t)
	for i := range 3 {
		a.pushes("ada", "main", fmt.Sprintf("later%d.txt", i), "x\n")
	}
	review := func() (stdout, stderr string, compared bool) {
		a.s.ResetRequests()
		_, stdout, stderr = a.run("review", "--dry-run", "--pr-diff", "--pr", fmt.Sprint(a.pr), "--json")
		fmt.Printf("numbers: review of a pull request: %+v\n", a.s.Count())
		return stdout, stderr, slices.ContainsFunc(a.s.Requests(), func(r githubtest.Request) bool {
			return strings.Contains(r.Path, "/compare/")
		})
	}
	fingerprint := func(stdout, stderr string) string {
		t.Helper()
		var got report.Report
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Fingerprint == "" {
			t.Fatalf("%v: %s%s", err, stdout, stderr)
		}
		return got.Fingerprint + " on " + got.BaseCommit
	}
	stdout, stderr, compared := review()
	want := fingerprint(stdout, stderr)
	if compared || !strings.HasSuffix(want, a.git(a.dir, "merge-base", "origin/main", "origin/topic")) {
		t.Errorf("a whole clone: compared %v, %s", compared, want)
	}
	shallow := a.dir + "-shallow"
	a.git(a.dir, "pull", "-q", "origin", "main")
	a.git("", "clone", "-q", "--depth", "1", "file://"+a.dir, shallow)
	a.git(shallow, "remote", "set-url", "origin", a.s.URL+"/"+site+".git")
	a.dir = shallow

	a.s.Fail(githubtest.Fault{Kind: githubtest.Body, Text: "{}", Path: "/api/v3/repos/acme/site/compare", Times: 1})
	if stdout, stderr, _ := review(); !strings.Contains(stderr, "merge base") {
		t.Errorf("an answer without a merge base: %s%s", stdout, stderr)
	}
	stdout, stderr, compared = review()
	if got := fingerprint(stdout, stderr); got != want || !compared {
		t.Errorf("a shallow clone: compared %v, %s, want %s", compared, got, want)
	}
}
