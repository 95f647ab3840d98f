package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

func BenchmarkTmpOpen(b *testing.B) {
	dir := b.TempDir()
	out, err := exec.Command("sh", "-c", "cd "+dir+" && git init -q -b main && git config user.name a && git config user.email a@b && echo x > f && git add -A && git commit -qm x").CombinedOutput()
	if err != nil {
		b.Fatal(string(out))
	}
	repo, _ := gitstore.Open(dir)
	l, _ := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{})
	start := time.Now()
	n := 0
	tip := ""
	var id string
	for i := range 10 {
		kinds := make([]storetest.Life, 1000)
		for j := range kinds {
			kinds[j] = storetest.Asked
		}
		entries, err := storetest.LivesOf(byte(i+1), kinds...)
		if err != nil {
			b.Fatal(err)
		}
		if i > 0 { // drop readme
			for _, e := range entries {
				delete(e.Files, ledger.ReadmeFile)
				delete(e.Files, ledger.SchemaFile)
			}
		}
		n += len(entries)
		if tip, err = l.Append(context.Background(), tip, entries...); err != nil {
			b.Fatal(err)
		}
	}
	snap, err := l.Snapshot(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	ids, err := ledger.IDs(snap.Tree)
	if err != nil {
		b.Fatal(err)
	}
	id = ids[len(ids)/2]
	fmt.Println("made", len(ids), n, time.Since(start))
	a := App{Getenv: os.Getenv, Now: time.Now}
	a.flags.dir, a.flags.ledgerRef, a.flags.remote = dir, gitstore.LedgerRef, "origin"
	b.ResetTimer()
	for b.Loop() {
		c := a
		r, err := c.open()
		if err != nil {
			b.Fatal(err)
		}
		log, err := r.Log(context.Background(), id)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.redactJSON(log.Transaction()); err != nil {
			b.Fatal(err)
		}
	}
}
