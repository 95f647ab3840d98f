package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
)

var recordLink = regexp.MustCompile(`\]\(http://[0-9.:]+/acme/site/tree/([0-9a-f]{40})/(transactions/[0-9/a-f]+/tx_[0-9A-Z]+)\)`)

// records wants texts to lead to the record of a transaction, each as a commit has it that
// the server has on its ledger.
func (h *hub) records(tx, where string, texts ...string) {
	h.Helper()
	found := 0
	for _, text := range texts {
		for _, m := range recordLink.FindAllStringSubmatch(text, -1) {
			if !strings.HasSuffix(m[2], tx) {
				continue
			}
			found++
			h.s.Git(site, "merge-base", "--is-ancestor", m[1], gitstore.LedgerRef) // fails the test itself
			h.s.Git(site, "cat-file", "-e", m[1]+":"+m[2]+"/transaction.json")
		}
	}
	if found == 0 {
		h.Errorf("%s: no link to the record of %s in %q", where, tx, texts)
	}
}

// TestRecordLinks: request, comment, check run and job summary lead to the transaction's page
// in the ledger while it waits and once it is applied or denied, and to none that the server
// does not have.
func TestRecordLinks(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	head := h.s.Ref(site, "refs/heads/topic")
	told := func(tx, when, head string) {
		t.Helper()
		var checks []string
		for _, c := range h.s.CheckRuns(site, head) {
			if strings.HasPrefix(c.Name, "countersign/") && strings.Contains(c.Summary, tx) {
				checks = append(checks, c.Summary)
			}
		}
		h.records(tx, when+", check run", checks...)
		h.records(tx, when+", comment", h.comment())
	}
	first, fingerprint := h.propose(greetFix)
	told(first, "asked", head)
	h.records(first, "the request", h.s.ReviewComments(site, h.pr)[0].Body)
	h.says("ada", "/approve "+fingerprint)
	if code, _, printed := h.action("settle", "pr=1"); code != 0 {
		t.Fatalf("%d %s", code, printed)
	}
	raw, err := os.ReadFile(h.env["GITHUB_STEP_SUMMARY"])
	check(t, err)
	told(first, "applied", h.s.Ref(site, "refs/heads/topic"))
	h.records(first, "job summary", string(raw))
	second, fingerprint := h.propose(addition("more.txt", "more\n"))
	h.says("ada", "/deny "+fingerprint+" no")
	h.clone()
	h.settle(5, "--no-gate")
	told(second, "denied", h.s.Ref(site, "refs/heads/topic"))
}

// TestRecordIsPushed: what is in this clone alone is no page of the server's.
func TestRecordIsPushed(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.env["CI"], h.env["GITHUB_ACTIONS"] = "", ""
	shown := func(args ...string) (string, bool) {
		t.Helper()
		code, stdout, stderr := h.run(append([]string{"show", "--json"}, args...)...)
		if code != 0 {
			t.Fatalf("%d %s %s", code, stdout, stderr)
		}
		m := regexp.MustCompile(`"record":"http://[0-9.:]+/acme/site/tree/([0-9a-f]{40})/transactions/`).FindStringSubmatch(stdout)
		if m == nil {
			return "", strings.Contains(stdout, `"record"`)
		}
		return m[1], true
	}
	done := func(args ...string) {
		t.Helper()
		h.does(args...)
	}
	done("review", "--patch", h.write("a.patch", greetFix))
	if _, linked := shown(); linked {
		t.Error("a ledger that was never pushed is linked to")
	}
	done("sync")
	tip := h.s.Ref(site, gitstore.LedgerRef)
	if at, _ := shown(); at != tip {
		t.Errorf("after sync: %q, the server has %s", at, tip)
	}
	done("review", "--patch", h.write("b.patch", addition("b.txt", "b\n")))
	out, err := exec.Command("git", "-C", h.dir, "rev-parse", gitstore.LedgerRef).Output()
	check(t, err)
	if strings.TrimSpace(string(out)) == tip {
		t.Fatal("the ledger has not moved here")
	}
	ids := regexp.MustCompile(`tx_[0-9A-Z]{26}`).FindAllString(h.git(h.dir, "ls-tree", "-r", "-d", "--name-only", gitstore.LedgerRef, "transactions"), -1)
	for _, id := range slices.Compact(ids) {
		if _, linked := shown(id); linked {
			t.Errorf("%s is linked to at a commit that is here alone", id)
		}
	}
}
