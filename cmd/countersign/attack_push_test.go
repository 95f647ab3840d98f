package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
)

func TestT04PushAfterTheApproval(t *testing.T) {
	t.Parallel()
	t.Run("of another file", func(t *testing.T) {
		long(t)
		t.Parallel()
		a := newAttack(t, "")
		a.says("ada", "/approve "+a.fingerprint)
		a.pushes("bob", "topic", "other.txt", "pushed\n")
		a.settle(0, "--no-gate")
		if a.s.File(site, "topic", "other.txt") != "pushed\n" || a.s.File(site, "topic", "greet.txt") != "one\nhello, world\nthree\n" {
			t.Error("one of the two changes is not there")
		}
		a.audits()
	})
	t.Run("of the same file", func(t *testing.T) {
		t.Parallel()
		a := newAttack(t, "")
		a.says("ada", "/approve "+a.fingerprint)
		a.pushes("bob", "topic", "greet.txt", "one\nhello\nthree\nbackdoor\n")
		a.tip = a.s.Ref(site, "refs/heads/topic")
		a.settle(console.ExitRefused, "--no-gate")
		a.untouched()
		if got := a.status(a.tx); got != "superseded" || !strings.Contains(a.comment(), "greet.txt") {
			t.Errorf("%s is %s:\n%s", a.tx, got, a.comment())
		}
		a.settle(0, "--no-gate")
		a.untouched()
		a.audits()
	})
	t.Run("under same_head", func(t *testing.T) {
		long(t)
		t.Parallel()
		a := newAttack(t, "approvals: {same_head: true, required: 2}\n")
		a.says("ada", "/approve "+a.fingerprint)
		a.reviews("ada", "COMMENTED", "/approve "+a.fingerprint)
		a.waits()
		a.pushes("bob", "topic", "other.txt", "pushed\n")
		a.tip = a.s.Ref(site, "refs/heads/topic")
		a.says("bob", "/approve "+a.fingerprint)
		a.waits("was made on another commit")
		a.approves("ada")
	})
}

// Somebody deletes the branch right before any of the requests of the settle that
// applies: nobody makes it anew.
func TestT05BranchDeletedMeanwhile(t *testing.T) {
	long(t)
	t.Parallel()
	refused := 0
	for _, n := range []int{5, 7, 9} {
		a := newAttack(t, "")
		a.says("ada", "/approve "+a.fingerprint)
		requests := a.at(n, func() { a.s.Git(site, "update-ref", "-d", "refs/heads/topic") })
		_, stdout, stderr := a.run("settle", "--json", "--pr", fmt.Sprint(a.pr), "--no-gate")
		if requests() < n {
			t.Fatalf("a settle makes %d requests", requests())
		}
		if tip := a.s.Ref(site, "refs/heads/topic"); tip != "" {
			t.Errorf("deleted before request %d, the branch was made anew at %s\n%s%s", n, tip, stdout, stderr)
		}
		if strings.Contains(stderr, `the head branch \"topic\" of pull request 1 is gone`) {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no settle found the branch gone")
	}
}

// Somebody pushes right before any of the requests of the settle that applies.
func TestT05PushMeanwhile(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "")
	a.closes()
	for _, n := range []int{3, 9, 14} {
		for _, file := range []string{"greet.txt", "other.txt"} {
			if file == "other.txt" && !everything() {
				continue
			}
			a.proposes(fmt.Sprintf("hello, %d %s", n, file))
			a.says("ada", "/approve "+a.fingerprint)
			text, pushed := fmt.Sprintf("one\npushed %d\nthree\n", n), ""
			requests := a.at(n, func() { pushed = a.pushes("bob", "topic", file, text) })
			a.run("settle", a.tx, "--no-gate")
			if requests() < n {
				t.Fatalf("a settle makes %d requests", requests())
			}
			a.settleOpen()
			if got := a.s.File(site, "topic", file); got != text {
				t.Errorf("request %d: the pushed %s is %q now", n, file, got)
			}
			if a.s.Git(site, "merge-base", pushed, "refs/heads/topic") != pushed {
				t.Errorf("request %d: the pushed commit is gone", n)
			}
			greets := a.s.File(site, "topic", "greet.txt") == fmt.Sprintf("one\nhello, %d other.txt\nthree\n", n)
			if got := a.status(a.tx); file == "other.txt" && (got != "completed" || !greets) || file == "greet.txt" && got != "completed" && got != "superseded" {
				t.Errorf("request %d: %s, after a push of %s", n, got, file)
			}
		}
	}
	a.audits()
}

// settleOpen settles once more, without anybody in between.
func (a *attack) settleOpen() {
	a.Helper()
	a.env["GITHUB_API_URL"], a.env["GITHUB_GRAPHQL_URL"] = a.s.API(), a.s.GraphQL()
	a.run("settle", "--pr", fmt.Sprint(a.pr), "--no-gate")
}

// The access is lost, or a denial is said, right before any of the requests of
// the settle that applies: as long as it is asked for once more, nothing is.
func TestT09LostMeanwhile(t *testing.T) {
	long(t)
	t.Parallel()
	for name, lose := range map[string]struct {
		asked string // by which request it is noticed
		code  int
		do    func(a *attack)
	}{
		"access": {"collaborators/ada/permission", console.ExitPending, func(a *attack) { a.s.Role(site, "ada", "read") }},
		"denial": {"issues/1/comments", console.ExitDenied, func(a *attack) { a.says("bob", "/deny "+a.fingerprint) }},
	} {
		if name == "denial" && !everything() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttack(t, "")
			a.closes()
			late, moved := 0, 0
			for _, n := range []int{11, 12, 13, 18} {
				a.proposes(fmt.Sprintf("hello, %d", n))
				a.says("ada", "/approve "+a.fingerprint)
				a.s.ResetRequests()
				before, again := false, false
				asked := func() bool { return a.asked("/api/v3/repos/" + site + "/" + lose.asked) }
				requests := a.at(n, func() {
					before = asked()
					lose.do(a)
					a.s.ResetRequests()
				})
				code, _, _ := a.run("settle", a.tx, "--no-gate")
				if requests() < n {
					t.Fatalf("a settle makes %d requests", requests())
				}
				again = asked()
				applied := a.s.Ref(site, "refs/heads/topic") != a.tip
				if applied && (again || code != 0) || !applied && code != lose.code {
					t.Errorf("request %d: applied %v, exit code %d, asked again %v", n, applied, code, again)
				}
				late, moved = late+count(before && again), moved+count(applied)
				a.s.Role(site, "ada", "write")
				a.closes()
			}
			if late == 0 || moved == 0 {
				t.Errorf("asked once more %d times, applied %d times", late, moved)
			}
			a.audits()
		})
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
