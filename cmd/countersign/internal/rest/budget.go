package rest

import (
	"context"
	"sync/atomic"
)

// A budget is how many requests may still be sent, negative once some were not.
type budget struct{ left atomic.Int64 }

type budgetKey struct{}

// WithBudget bounds how many requests of a context are sent, each further attempt at one
// included. A request beyond that is an Error of KindSpent. Several goroutines may share it.
func WithBudget(ctx context.Context, most int) context.Context {
	b := &budget{}
	b.left.Store(int64(most))
	return context.WithValue(ctx, budgetKey{}, b)
}

// maySend reports whether one more request may be sent, and counts it.
func maySend(ctx context.Context) bool {
	b, bounded := ctx.Value(budgetKey{}).(*budget)
	return !bounded || b.left.Add(-1) >= 0
}
