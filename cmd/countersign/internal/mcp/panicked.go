package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/fault"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// errBug is a call that a bug of this program ended. What it had begun is as after a crash: doing it again is
// safe.
var errBug = errors.New("a bug in countersign ended this call, and no other")

// panicked is that error of a method of the protocol, with the value of the panic.
func panicked(method string, value any) error {
	return &fault.Error{
		Kind: fault.Failed, Message: fmt.Sprintf("%v: %v (%s%s)", errBug, value, method, cameFrom()),
		Try: "do the same with the command line, and report what it says", Cause: errBug,
	}
}

// recovered answers a call that panics with an error. The call has given back what it took, and the session goes on.
func (s *service) recovered(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() {
			value := recover()
			if value == nil {
				return
			}
			p, bug := s.program.Fresh(), panicked(method, value)
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
