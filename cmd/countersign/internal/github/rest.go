package github

import (
	"context"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
)

// An Error is a request to GitHub that failed, of a Kind.
type (
	Error = rest.Error
	Kind  = rest.Kind
)

// The kinds.
const (
	KindAuth        = rest.KindAuth
	KindPermission  = rest.KindPermission
	KindNotFound    = rest.KindNotFound
	KindRateLimited = rest.KindRateLimited
	KindNetwork     = rest.KindNetwork
	KindRefused     = rest.KindRefused
	KindChanged     = rest.KindChanged
	KindMoved       = rest.KindMoved
	KindAnswer      = rest.KindAnswer
)

// forgeName is how errors name it.
const forgeName = "GitHub"

func failed(op string, err error) error                         { return rest.Failed(forgeName, op, err) }
func isKind(err error, kinds ...Kind) bool                      { return rest.IsKind(err, kinds...) }
func unusable(format string, args ...any) error                 { return rest.Unusable(format, args...) }
func changed(what string) error                                 { return rest.Changed(what) }
func withCall(ctx context.Context, c rest.Call) context.Context { return rest.WithCall(ctx, c) }
func checkCommit(id string) error                               { return rest.CheckCommit(id) }
func twice[T any](read func() (T, error)) (T, error)            { return rest.Twice(read) }
