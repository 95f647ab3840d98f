package pages

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

func TestGen(t *testing.T) {
	dir := os.Getenv("GEN_DIR")
	if dir == "" {
		t.Skip()
	}
	var n int
	fmt.Sscan(os.Getenv("GEN_N"), &n)
	exec.Command("git", "init", "-q", "-b", "main", dir).Run()
	repo, err := gitstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := storetest.LivesOf(1, storetest.Mixed(n)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = l.Append(t.Context(), "", entries...); err != nil {
		t.Fatal(err)
	}
}
