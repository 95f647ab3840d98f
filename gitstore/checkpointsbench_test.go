package gitstore_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

// treeOf is the tree over a ledger's commits.
func treeOf(tb testing.TB, store interface {
	Leaves(context.Context, string, func([]byte) [32]byte) ([]gitstore.Leaf, error)
}, tip string) *witness.Tree {
	tb.Helper()
	leaves, err := store.Leaves(tb.Context(), tip, func(commit []byte) [32]byte { return witness.Leaf(commit) })
	fatal(tb, err)
	hashes := make([]witness.Hash, len(leaves))
	for i, l := range leaves {
		hashes[i] = l.Hash
	}
	tree, err := witness.NewTree(hashes)
	fatal(tb, err)
	return tree
}

// BenchmarkCheckpoint is what a checkpoint adds to a settle on a fresh machine, without the witnesses' own time: a ledger
// of 10,000 transactions over http, of which the tip is here.
func BenchmarkCheckpoint(b *testing.B) {
	p := newPushBench(b, 10)
	for _, delay := range []time.Duration{0, 50 * time.Millisecond} {
		b.Run(fmt.Sprintf("delay=%v", delay), func(b *testing.B) {
			p.b = b
			p.server.SetFault(func(int, *http.Request) teststand.Fault {
				if delay == 0 {
					return teststand.Fault{}
				}
				return teststand.Fault{Kind: teststand.Slow, Delay: delay}
			})
			var took []time.Duration
			for range max(b.N, 5) {
				l := ledgerAt(b, p.fresh())
				server, err := wire.Open(p.url, wire.Options{})
				fatal(b, err)
				s, err := l.Share(gitstore.Place{Server: server, Ref: gitstore.LedgerRef, Of: server.Remote()}, func(context.Context, int) {})
				fatal(b, err)
				if _, err := s.Snapshot(b.Context()); err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				snap, err := s.Snapshot(b.Context())
				fatal(b, err)
				if tree := treeOf(b, s, snap.Tip); tree.Size() < 10_000 {
					b.Fatal(tree.Size())
				}
				before, err := s.Kept(b.Context(), gitstore.Checkpoints, nil)
				fatal(b, err)
				fatal(b, s.Keep(b.Context(), gitstore.Checkpoints, before, kept(fmt.Sprint(start)), start))
				took = append(took, time.Since(start))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(took), "ms")
		})
	}
}
