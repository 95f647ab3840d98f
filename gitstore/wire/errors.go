package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/fault"
)

// What an [Error] may wrap, besides the types below.
var (
	ErrNotFound  = error(&fault.Error{Message: "there is no such repository, or we are not allowed to see it", Try: "use a token that may read it, in COUNTERSIGN_TOKEN, and see that git remote -v has its name"})
	ErrNoFilter  = errors.New("the server does not filter what it sends")
	ErrTooLarge  = errors.New("the answer is larger than allowed")
	ErrElsewhere = error(&fault.Error{Message: "the server says that it is elsewhere now, which is not followed", Try: "give it its new name: in ledger.repository of the Policy, or with git remote set-url"})
)

// An Error is what every method of a [Server] returns: where, while doing what,
// and why. It has no user and no password in it.
type Error struct {
	Role  string // as Options have it
	URL   string // redacted
	Doing string
	Err   error

	// Message is what the server said to the person who pushes, such as its
	// hooks' words: plain text of at most 8 KiB, to be shown and never decided
	// by. It may say anything; indent it where a line has a meaning.
	Message string
}

// Error is one line.
func (e *Error) Error() string {
	role := ""
	if e.Role != "" {
		role = e.Role + ", "
	}
	return role + e.URL + ": " + e.Doing + ": " + oneLine(e.Err.Error())
}

func (e *Error) Hint() string {
	var auth *AuthError
	if e.Role != "" && (errors.As(e.Err, &auth) || errors.Is(e.Err, ErrNotFound)) { // a ledger in a repository of its own
		return "set COUNTERSIGN_LEDGER_TOKEN to a token that may write to that repository"
	}
	return ""
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// An AuthError is a server that does not let us: we are not known to it, or may
// not do this.
type AuthError struct {
	Status int // of HTTP; 0 for ssh
	Err    error
}

func (e *AuthError) Error() string {
	if e.Status == 0 {
		return "authentication failed: " + e.Err.Error()
	}
	return fmt.Sprintf("the server refused access: status %d: %v", e.Status, e.Err)
}

func (e *AuthError) Hint() string {
	switch e.Status {
	case 0:
		return "check that ssh -T lets you in; COUNTERSIGN_SSH_KEY names the key"
	case http.StatusForbidden:
		return "use a token that may write to it, and see that it is neither archived nor a mirror"
	}
	return "set COUNTERSIGN_TOKEN to a token that may write to the repository, or use an ssh address"
}

// Unwrap returns the cause.
func (e *AuthError) Unwrap() error { return e.Err }

// OtherFormat is the error of a repository whose objects are named otherwise than those here.
func OtherFormat(format string) error {
	return fault.Refuse("its objects are named by "+strings.ToUpper(plain(format))+", and those here are not",
		"use repositories of one object format: git rev-parse --show-object-format")
}

// A StatusError is an HTTP answer that is none of the others: overload, a
// server's own fault.
type StatusError struct {
	Status int
	after  time.Duration // as the server says, when to try again
}

func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered with status %d %s", e.Status, http.StatusText(e.Status)))
}

func (*StatusError) Hint() string {
	return "run it again once the server answers; with --no-push review, approve, run and list work without it"
}

// A RejectedError is a push that the server's report does not confirm.
type RejectedError struct {
	Status string // the server's reason, for a person
}

func (e *RejectedError) Error() string { return "the server did not update the ref: " + e.Status }
func (*RejectedError) Hint() string {
	return "the error says why the remote refuses the ledger; fix that, then run the same command again"
}

// A NetworkError is a connection that was not made, was cut, or took too long;
// with the latter it wraps context.DeadlineExceeded.
type NetworkError struct{ Err error }

func (e *NetworkError) Error() string { return e.Err.Error() }
func (*NetworkError) Hint() string {
	return "run it again once the server answers; with --no-push review, approve, run and list work without it"
}

// Unwrap returns the cause.
func (e *NetworkError) Unwrap() error { return e.Err }

// Timeout reports whether time ran out.
func (e *NetworkError) Timeout() bool {
	var ne net.Error
	return errors.Is(e.Err, context.DeadlineExceeded) || errors.As(e.Err, &ne) && ne.Timeout()
}

// strip takes away wrappers that hide the cause from errors.As, or that
// repeat the URL.
func strip(err error) error {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		return strip(inURL.Err)
	}
	return err
}

// isNetwork reports whether err comes from a connection and not from what was
// said on it.
func isNetwork(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// maxMessage is how many bytes of a server's words are kept.
const maxMessage = 8 << 10

// notes are what one call hears besides its answer. They are safe for
// concurrent use: a process that was given up may still speak.
type notes struct {
	mu    sync.Mutex
	text  []byte
	cause error
	head  int // bytes before the pack; -1 when it has begun
}

// count fails when what comes before a pack is longer than it can honestly be.
func (n *notes) count(bytes int) error {
	n.mu.Lock()
	if n.head >= 0 {
		n.head += bytes
	}
	long := n.head > maxHead
	n.mu.Unlock()
	if long {
		return n.failed(ErrTooLarge)
	}
	return nil
}

func (n *notes) packBegins() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.head = -1
}

// Write keeps the beginning of what a server says.
func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = append(n.text, p[:min(len(p), maxMessage-len(n.text))]...)
	return len(p), nil
}

// failed keeps the first cause.
func (n *notes) failed(err error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cause == nil && err != nil {
		n.cause = err
	}
	return err
}

func (n *notes) message() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return plain(string(n.text))
}

func (n *notes) why() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cause
}

// plain makes a server's words harmless to a terminal: lines of printable
// characters.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "")
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
	return strings.TrimSpace(s)
}

// oneLine is plain in one line, and not long.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(plain(s)), " ")
	const most = 1000
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
