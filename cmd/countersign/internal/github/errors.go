package github

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
)

// A Kind says what went wrong, so that a caller can tell people what to do.
type Kind string

// The kinds.
const (
	KindAuth        Kind = "auth"        // the token is not valid
	KindPermission  Kind = "permission"  // the token may not do it
	KindNotFound    Kind = "notfound"    // it is not there, or the token cannot see it
	KindRateLimited Kind = "ratelimited" // too many requests, and the wait is too long
	KindNetwork     Kind = "network"     // no answer, a cut one, or one of status 5xx
	KindRefused     Kind = "refused"     // GitHub did not take the request
	KindChanged     Kind = "changed"     // what was read changed meanwhile, twice
	KindAnswer      Kind = "answer"      // an answer that cannot be used
)

// An Error is a request to GitHub that failed. It holds neither the token nor
// an address, and no text over one line.
type Error struct {
	Op      string // what was being done
	Kind    Kind
	Status  int       // of the answer; 0 without one
	Message string    // what GitHub said, or what is wrong with what it said
	Until   time.Time // KindRateLimited: when to try again; zero if not known
	Err     error     // the cause; may be nil
}

// Error is one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	b.WriteString("GitHub: ")
	if e.Status != 0 {
		fmt.Fprintf(&b, "status %d: ", e.Status)
	}
	b.WriteString(e.Message)
	if !e.Until.IsZero() {
		b.WriteString("; not before " + e.Until.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches the errors that package forge tells apart.
func (e *Error) Is(target error) bool {
	return target == forge.ErrPermission && e.Kind == KindPermission || target == forge.ErrNotFound && e.Kind == KindNotFound
}

// failed says what was being done when an error came. What net/http adds around
// errors is left out: it has addresses, and that of an artifact is a secret.
func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		told := *e
		told.Op = op
		return &told
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", op, err)
	}
	return &Error{Op: op, Kind: KindAnswer, Message: "the answer cannot be read", Err: err}
}

// isKind reports whether an error is of one of the kinds.
func isKind(err error, kinds ...Kind) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, k := range kinds {
		if e.Kind == k {
			return true
		}
	}
	return false
}

// unusable is an answer that cannot be right.
func unusable(format string, args ...any) error {
	return &Error{Kind: KindAnswer, Message: fmt.Sprintf(format, args...)}
}

func changed(what string) error {
	return &Error{Kind: KindChanged, Message: what + " changed while they were read"}
}
