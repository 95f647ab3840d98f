package mcp

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
)

// A PanicError is a call that a bug of this program ended. What it had begun is as after a crash: doing it again is
// harmless.
type PanicError struct {
	Method string // of the protocol
	Value  any    // of the panic
	At     string // the function of ours that it came from, with its line; "" if it is none of ours
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("a bug in countersign ended this call, and no other: %v (%s%s)", e.Value, e.Method, e.At)
}

// ExitCode is that of what failed.
func (*PanicError) ExitCode() int { return cli.ExitFailed }

func (*PanicError) Hint() string { return "do the same with the command line, and report what it says" }

// recovered answers a call that panics with an error. The call has given back what it took, and the session goes on.
func (s *service) recovered(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() {
			value := recover()
			if value == nil {
				return
			}
			p, bug := s.program.Fresh(), &PanicError{method, value, cameFrom()}
			p.Warn(bug)
			if method == "tools/call" {
				result, err = failed(p, bug)
				return
			}
			result, err = nil, protocolError(p, bug)
		}()
		return next(ctx, method, req)
	}
}

// cameFrom is where the panic that is being recovered from came from: the innermost function of this module's.
func cameFrom() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for panicking := false; ; {
		frame, more := frames.Next()
		name, ours := strings.CutPrefix(frame.Function, "github.com/countersign-dev/countersign/")
		if panicking && ours {
			return fmt.Sprintf(" at %s:%d", name, frame.Line)
		}
		panicking = panicking || frame.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
