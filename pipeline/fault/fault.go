// Package fault is the error of whoever only has to be told what is wrong and what to do. What
// another part of the program acts on has a type of its own.
package fault

// A Kind is how a command ends that meets an error. errors.Is asks an error for it, whatever
// that is wrapped in.
type Kind string

const (
	Barred  Kind = "barred"  // refused, whatever it kept from besides
	Refused Kind = "refused" // by the Policy, by the state of things, or for what was asked
	Failed  Kind = "failed"  // what was to hold does not
	Away    Kind = "away"    // what it takes is not here
)

func (k Kind) Error() string { return string(k) }

// An Error says what is wrong and what to type next, "" for nothing. Cause, which may be nil,
// is in Message already.
type Error struct {
	Kind         Kind
	Message, Try string
	Cause        error
}

func (e *Error) Error() string        { return e.Message }
func (e *Error) Hint() string         { return e.Try }
func (e *Error) Unwrap() error        { return e.Cause }
func (e *Error) Is(target error) bool { return target == error(e.Kind) }

// Bar is an Error of what is barred.
func Bar(message, try string) error { return &Error{Kind: Barred, Message: message, Try: try} }

// Refuse is an Error of what is refused.
func Refuse(message, try string) error { return &Error{Kind: Refused, Message: message, Try: try} }

// Fail is an Error of what does not hold.
func Fail(message, try string) error { return &Error{Kind: Failed, Message: message, Try: try} }
