package sandbox

import (
	"errors"
	"strings"
)

// ErrReadOnly is what Run gives in read-only mode.
var ErrReadOnly = errors.New("commands are refused in read-only mode")

// An UnavailableError says that a protection is missing and the command was not run.
type UnavailableError struct {
	Missing []string // the protections, such as "user namespaces"
	Hint    string   // what to enable
	Err     error    // what the system said, or nil
}

func (e *UnavailableError) Error() string {
	s := "the sandbox is not available: missing " + strings.Join(e.Missing, ", ")
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *UnavailableError) Unwrap() error { return e.Err }
