package gitstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
)

// What is kept in a clone is of one ledger and one kind, and in one that cannot be
// written nothing is.
func TestKept(t *testing.T) {
	work := initWork(t)
	check := func(err error) {
		t.Helper()
		fatal(t, err)
	}
	repo, err := gitstore.Open(work.dir)
	check(err)
	open := func(ref string) *gitstore.Ledger {
		l, err := repo.Ledger(ref, gitstore.LedgerOptions{Pages: page.Versions{}})
		check(err)
		return l
	}
	one, other := open(gitstore.LedgerRef), open("refs/agent/other")
	for _, text := range []string{"", "first\n", "second\n"} {
		if text != "" {
			check(one.WriteKept("online", []byte(text)))
		}
		if got, err := one.ReadKept("online"); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	for _, l := range []*gitstore.Ledger{other, open("refs/agent/ledge")} {
		if got, err := l.ReadKept("online"); err != nil || got != nil {
			t.Errorf("of another ledger %q, %v", got, err)
		}
	}
	if got, err := one.ReadKept("offline"); err != nil || got != nil {
		t.Errorf("of another kind %q, %v", got, err)
	}
	if os.Getuid() == 0 {
		return // nothing keeps root from writing
	}
	check(os.Chmod(filepath.Join(work.dir, ".git", "countersign", "online"), 0o500))
	check(one.WriteKept("online", []byte("third\n")))
	if got, err := one.ReadKept("online"); err != nil || string(got) != "second\n" {
		t.Errorf("%q, %v", got, err)
	}
}
