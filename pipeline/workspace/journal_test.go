package workspace

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

const sample = `{"directories":[".","x"],"made":["x"],"prefix":".countersign-0123456789abcdef0123456789abcdef-","schema":"countersign/journal/1"}` + "\n"

// TestJournal: what the sample names is cleared away, and nothing else.
func TestJournal(t *testing.T) {
	const prefix = ".countersign-0123456789abcdef0123456789abcdef-"
	kept := files{".countersign-1.tmp": "1\n", "a": "1\n", "y/" + prefix + "3.tmp": "1\n", prefix + "4": "1\n"}
	dir, state := t.TempDir(), t.TempDir()
	kept.plus(files{prefix + "0.tmp": "1\n", "x/" + prefix + "17.tmp": "1\n"}).put(t, dir)
	tree := openWith(t, dir, state)
	fatal(t, os.WriteFile(tree.journalFile(), []byte(sample), 0o666))
	if err := tree.recover(); err != nil {
		t.Error(err)
	}
	same(t, dir, kept)
	nothingNoted(t, state)
}

// TestJournalRefused: one that we did not write stops the apply, and says which
// file it is.
func TestJournalRefused(t *testing.T) {
	for name, line := range map[string]string{
		"empty":                "",
		"cut off":              sample[:40],
		"another version":      strings.Replace(sample, "journal/1", "journal/2", 1),
		"no prefix":            strings.Replace(sample, ".countersign-0123456789abcdef0123456789abcdef-", "", 1),
		"another prefix":       strings.Replace(sample, "0123456789abcdef0123456789abcdef", "*", 1),
		"outside":              strings.Replace(sample, `"x"`, `"../x"`, 1),
		"absolute":             strings.Replace(sample, `["x"]`, `["/x"]`, 1),
		"not in our own words": strings.Replace(sample, ",", ", ", 1),
	} {
		dir, state := t.TempDir(), t.TempDir()
		tree := openWith(t, dir, state)
		fatal(t, os.WriteFile(tree.journalFile(), []byte(line), 0o666))
		if unlock, err := tree.Lock(t.Context()); err == nil {
			unlock()
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), "clearing what an interrupted apply left: reading "+tree.journalFile()+": ") {
			t.Errorf("%s: %v", name, err)
		}
		cs := changes(files{}, files{"a": "1\n"})
		if ops := tree.Write(cs); outcome(ops) != ledger.OutcomeFailed {
			t.Errorf("%s: %+v", name, ops)
		}
		same(t, dir, files{})
	}
}
