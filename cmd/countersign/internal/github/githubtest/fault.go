package githubtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// A FaultKind is a way in which a request goes wrong.
type FaultKind string

// With the last six the server does what it was asked for; with the others it
// does not, unless the Fault says After.
const (
	Status         FaultKind = "status"          // Fault.Status
	SecondaryLimit FaultKind = "secondary limit" // 403, or Fault.Status, with Retry-After
	PrimaryLimit   FaultKind = "primary limit"   // 403, or Fault.Status, none remaining, with x-ratelimit-reset
	Cut            FaultKind = "cut"             // the connection is closed without an answer
	Body           FaultKind = "body"            // 200 with Fault.Text
	GraphQLError   FaultKind = "graphql error"   // 200 with errors and no data; Fault.Text is the message
	Truncate       FaultKind = "truncate"        // half of the answer, then the connection is closed
	Half           FaultKind = "half"            // half of the answer, properly ended
	LastPage       FaultKind = "last page"       // no Link; hasNextPage is false
	EmptyPage      FaultKind = "empty page"      // a list without its items; nodes are empty
	GraphQLPartial FaultKind = "graphql partial" // 200; null at Fault.Text, such as repository.pullRequest.reviews, and an error
	LimitSpent     FaultKind = "limit spent"     // as it is, with 0 remaining
)

// A Fault lets requests go wrong. It is for those of Method ("" is any) whose
// path, with /api/v3, begins with Path, and whose body has Contains in it; the
// first Skip of them go well, then Times (0 is once, -1 is for ever) do not.
type Fault struct {
	Method, Path, Contains string
	Skip, Times            int
	Kind                   FaultKind
	Status                 int
	Seconds                int // of Retry-After, or until the reset
	Text                   string
	After                  bool // the server does what it was asked for first

	now func() time.Time // the server's clock
}

// Fail lets requests go wrong from now on.
func (s *Server) Fail(f Fault) {
	defer s.lock()()
	if f.Kind == "" {
		f.Kind = Status
	}
	if f.Times == 0 {
		f.Times = 1
	}
	f.now = s.now
	s.faults = append(s.faults, &f)
}

// Heal ends all faults.
func (s *Server) Heal() {
	defer s.lock()()
	s.faults = nil
}

// due is the fault of a request, nil for none.
func (s *Server) due(r *Request) *Fault {
	for _, f := range s.faults {
		if !f.matches(r) || f.Times == 0 {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		now := *f
		return &now
	}
	return nil
}

func (f *Fault) matches(r *Request) bool {
	return (f.Method == "" || f.Method == r.Method) && strings.HasPrefix(r.Path, f.Path) && strings.Contains(r.Body, f.Contains)
}

// around answers a request by do, or as the fault has it.
func (s *Server) around(w http.ResponseWriter, seen *Request, f *Fault, do func(*httptest.ResponseRecorder)) {
	recorded := httptest.NewRecorder()
	if f == nil || f.serves() {
		do(recorded)
	}
	if f != nil {
		recorded = f.spoil(w, recorded)
	}
	s.mu.Lock()
	seen.Status = recorded.Code
	s.mu.Unlock()
	copyAnswer(w, recorded)
}

func (f *Fault) serves() bool {
	switch f.Kind {
	case Truncate, Half, LastPage, EmptyPage, GraphQLPartial, LimitSpent:
		return true
	}
	return f.After
}

// spoil is what comes in an answer's stead.
func (f *Fault) spoil(w http.ResponseWriter, good *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	bad := httptest.NewRecorder()
	switch f.Kind {
	case Status:
		refuse(f.Status, "fault").write(bad)
	case SecondaryLimit:
		bad.Header().Set("Retry-After", strconv.Itoa(f.Seconds))
		refuse(f.status(), "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.").write(bad)
	case PrimaryLimit:
		refuse(f.status(), "API rate limit exceeded for installation.").write(bad)
		f.spend(bad.Header())
	case Cut:
		panic(http.ErrAbortHandler)
	case Body:
		_, _ = bad.WriteString(f.Text)
	case GraphQLError:
		answer{status: http.StatusOK, body: object{"data": nil, "errors": []any{object{"message": f.Text}}}}.write(bad)
	default:
		return f.alter(w, good)
	}
	return bad
}

func (f *Fault) status() int {
	if f.Status == 0 {
		return http.StatusForbidden
	}
	return f.Status
}

func (f *Fault) spend(h http.Header) {
	h.Set("X-Ratelimit-Remaining", "0")
	h.Set("X-Ratelimit-Reset", fmt.Sprint(f.now().Unix()+int64(f.Seconds)))
}
