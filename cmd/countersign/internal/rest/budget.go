package rest

import (
	"context"
	"sync/atomic"
)

// A Budget bounds how many requests are sent, each further attempt at one included.
// Several goroutines may use it.
type Budget struct {
	most int64
	sent atomic.Int64 // and those that were not, for want of it
}

type budgetKey struct{}

// WithBudget lets the requests of a context be sent while there are fewer than most. A
// request beyond that is an Error of KindSpent.
func WithBudget(ctx context.Context, most int) (context.Context, *Budget) {
	b := &Budget{most: int64(most)}
	return context.WithValue(ctx, budgetKey{}, b), b
}

func budgetOf(ctx context.Context) *Budget {
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}

func (b *Budget) spend() bool { return b.sent.Add(1) <= b.most }

// Sent is how many requests were sent.
func (b *Budget) Sent() int { return int(min(b.sent.Load(), b.most)) }
