package storetest

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Recorded is the ledger of lives, with its pages, and the ids of their transactions.
func Recorded(t testing.TB, all ...Life) (fstest.MapFS, []string) {
	t.Helper()
	entries, err := Lives(all...)
	teststand.Fatal(t, err)
	tree := LaidOut(entries...)
	ids, err := lookup.IDs(tree)
	teststand.Fatal(t, err)
	return tree, ids
}

// LaidOut are the files of a ledger after some entries, with their pages.
func LaidOut(entries ...writing.Entry) fstest.MapFS {
	tree := fstest.MapFS{}
	for _, e := range entries {
		pages := page.Versions(nil).Of(tree, e)
		for _, written := range []map[string][]byte{pages, e.Files} {
			for name, data := range written {
				tree[name] = &fstest.MapFile{Data: data, Mode: 0o644}
			}
		}
	}
	return tree
}

// NextPages are the versions of pages that a program of tomorrow knows: all that there are, and one with other words, another
// escaping and another layout.
func NextPages() page.Versions {
	return page.Versions(nil).And(page.Version{
		Root: func() []byte { return []byte("# What happened here\n") },
		Transaction: func(_ fs.FS, payloads []ledger.Payload, tx ledger.Transaction) []byte {
			return fmt.Appendf(nil, "# %s\n\nIt is %s after %d events.\n", escaped(tx.Notes), tx.Status, len(payloads))
		},
		Rows: func(_ []ledger.Payload, tx ledger.Transaction, first bool, denials map[string][]byte) (rows []page.Row) {
			dir := path.Dir(ledger.Dir(tx.TransactionID))
			for _, file := range []string{dir, path.Dir(dir), ledger.TransactionsDir} {
				if first || tx.Closed {
					rows = append(rows, page.Row{File: file + "/" + ledger.ReadmeFile, Add: line("* " + tx.TransactionID + " is " + string(tx.Status))})
				}
			}
			for range denials {
				rows = append(rows, page.Row{File: "denied/" + ledger.ReadmeFile, Add: line("* " + tx.TransactionID + " denies")})
			}
			return rows
		},
	})
}

func line(text string) func([]byte) []byte {
	return func(before []byte) []byte { return fmt.Appendf(nil, "%s%s\n", before, text) }
}

// escaped is foreign text as that version has it: every sign as an entity.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, "&#%d;", r)
	}
	return b.String()
}
