package main

import (
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

func TestZZMeasure(t *testing.T) {
	h := newHub(t)
	count := func(what string) {
		kinds := map[string]int{}
		post := 0
		for _, r := range h.s.Requests() {
			kinds[r.Kind]++
			if r.Kind == "rest" && r.Method == "POST" {
				post++
			}
			if strings.HasSuffix(r.Path, "/git-receive-pack") {
				kinds["push"]++
			}
		}
		t.Logf("MEASURE %s: %v POSTs %d", what, kinds, post)
		h.s.ResetRequests()
	}
	h.s.ResetRequests()
	_, fp := h.propose(greetFix)
	count("propose+ask")
	h.clone()
	h.s.ResetRequests()
	h.settle(exitPending, "--no-gate")
	count("pending")
	h.says("ada", "/approve "+fp)
	h.clone()
	h.s.ResetRequests()
	h.run("settle", "--pr", "1", "--no-gate")
	count("approved")
	for _, n := range []int{1000, 3000} {
		h := newHub(t)
		repo, err := gitstore.Open(h.dir)
		check(t, err)
		l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{})
		check(t, err)
		entries, err := storetest.Lives(storetest.Mixed(n)...)
		check(t, err)
		_, err = l.Append(t.Context(), "", entries...)
		check(t, err)
		h.git(h.dir, "push", "-q", strings.Replace(h.s.URL, "://", "://x:"+h.token+"@", 1)+"/"+site+".git", "refs/agent/ledger:refs/agent/ledger")
		h.clone()
		h.s.ResetRequests()
		start := time.Now()
		code, out, errs := h.run("list", "--matrix")
		t.Logf("MEASURE list --matrix on %d: %s code %d, %d bytes out, git %d; objects:\n%s%.200s", n, time.Since(start), code, len(out), h.s.Count().Git, h.git(h.dir, "count-objects", "-v"), errs)
		if strings.Count(out, "name") == 0 { t.Log("none open") }
	}
}
