// Package wire talks to one repository on a Git server: it asks where a ref
// is, fetches packs, and pushes one pack with a lease, over https, http, ssh,
// and to a repository on this machine by its path. It keeps no files, reads no
// clock but for timeouts, and never decides by a server's words.
//
// # What it promises
//
//   - [Server.Push] returns nil only if the server said that exactly our ref is
//     updated. After anything else the ref may be either; read it again.
//   - [Server.Tip] returns zero only if a complete list of refs lacks the ref.
//   - [Server.Fetch] returns only a pack whose trailer is right. What the
//     objects are is for their reader to check.
//   - What reads is asked again, as [Options] allow, where the network or the
//     server fails, and never where access is refused. A push is sent once.
//   - A call ends when its context or the timeout does, whatever the server does,
//     and takes no more memory than the limits say.
//   - Credentials go to the host of the URL only, over TLS or to this machine,
//     and no error names them.
//
// # The protocol (gitprotocol-http(5), gitprotocol-pack(5)), version 0
//
//	GET  URL/info/refs?service=git-upload-pack    refs and capabilities
//	POST URL/git-upload-pack                      wants, haves, depth, filter; a pack
//	POST URL/git-receive-pack                     one command and a pack; a report
//
// A push over http is the last line alone. Over ssh, and to a path, the server
// sends its refs first, each time. Lists of refs and reports are read here and
// strictly, because a doubt about either is a doubt about
// the ref. A repository by its path is served by git itself, so
// that its hooks run; one on an ssh server by way of the user's ssh ([SSH]).
package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// DefaultTimeout is how long a call may take where Options say nothing.
const DefaultTimeout = 2 * time.Minute

// DefaultUserAgent is what a server sees where Options say nothing.
const DefaultUserAgent = "git/countersign"

// Options are what a URL does not say. The zero value is none.
type Options struct {
	Dir       string        // absolute; what a relative path in the URL is relative to
	Timeout   time.Duration // of one call as a whole, with its pauses; 0 is DefaultTimeout
	UserAgent string        // "" is DefaultUserAgent

	// Authorization is the whole value of that header; see [Basic]
	// and [ExtraHeader]. Empty takes user and password of the URL, if any. It
	// is sent over https, and over http to this machine only.
	Authorization string
	// Credentials is asked once for that value where a server wants one and there is
	// none; "" is none. It is told whether the server took it. Nil is nobody to ask.
	Credentials func(ctx context.Context, address *url.URL) (authorization string, took func(bool))

	// Role is what the repository is, to be said first in errors; "" says nothing.
	Role string
	// Exact refuses every redirect, as where a repository has another name now. A server
	// over ssh may follow one by itself.
	Exact bool

	// Wait waits before something is read again, and fails where ctx ends. Nil reads once.
	Wait func(ctx context.Context, d time.Duration) error

	Format packfile.Format // of the objects here: a server's are the same; 0 is either

	TLS *tls.Config // nil is the system's
	SSH SSH
}

// A Server is one repository on a server. Several goroutines may use it: calls
// wait for each other.
type Server struct {
	mu      sync.Mutex // held by the call that runs
	remote  Remote
	role    string
	agent   string
	timeout time.Duration
	wait    func(context.Context, time.Duration) error
	client  client
	format  packfile.Format // of the objects here; 0 is either
	caps    capabilities    // of the last list of refs; nil before
	notes   *notes          // of the call that runs
}

// Open reads the URL and the options. It does not connect.
func Open(url string, o Options) (*Server, error) {
	r, err := ParseRemote(url, o.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the remote: %w", err)
	}
	o.Timeout, o.UserAgent = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.UserAgent, DefaultUserAgent)
	if strings.ContainsFunc(o.UserAgent, func(r rune) bool { return r <= ' ' || r > '~' }) {
		err = errors.New("the user agent is not one word of ASCII")
	} else {
		err = checkHeader(o.Authorization)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the remote %s: %w", r, err)
	}
	s := &Server{remote: r, role: o.Role, agent: o.UserAgent, timeout: o.Timeout, wait: o.Wait, format: o.Format}
	switch r.scheme {
	case "file":
		s.client = newFileClient(r.path)
	case "ssh":
		s.client = newSSHClient(r, o.SSH)
	default:
		s.client = newHTTPClient(r, o)
	}
	return s, nil
}

// String is the URL without user and password.
func (s *Server) String() string { return s.remote.Redacted() }

// Remote is where the repository is.
func (s *Server) Remote() Remote { return s.remote }

// Format is that of the objects here, as Options have it.
func (s *Server) Format() packfile.Format { return s.format }

// Close ends connections that are kept for the next call.
func (s *Server) Close() error { return s.client.Close() }

// CanFilter reports whether the server said, in the last list of refs that Tip
// or Fetch read, that it sends packs without some trees or blobs.
func (s *Server) CanFilter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caps.has("filter")
}

// Tip returns what ref, or HEAD, is at, and the zero hash if a complete list of the
// server's refs lacks it. Every call asks the server.
func (s *Server) Tip(ctx context.Context, ref string) (tip packfile.ID, err error) {
	err = s.call(ctx, fmt.Sprintf("asking for %q", ref), always, func(ctx context.Context) (err error) {
		if ref != "HEAD" {
			err = checkRef(ref)
		}
		if err != nil {
			return err
		}
		adv, err := s.list(ctx)
		switch {
		case err != nil:
		case ref == "HEAD":
			tip = adv.head
		default:
			tip = adv.refs[ref]
		}
		return err
	})
	return tip, err
}

// refs is the server's list of refs. Every call asks the server.
func (s *Server) refs(ctx context.Context, what string) (adv *refList, err error) {
	err = s.call(ctx, "asking for the "+what, always, func(ctx context.Context) (err error) {
		adv, err = s.list(ctx)
		return err
	})
	return adv, err
}

// Branches returns the full names of the server's branches, in order.
func (s *Server) Branches(ctx context.Context) (branches []string, err error) {
	adv, err := s.refs(ctx, "branches")
	if err != nil {
		return nil, err
	}
	for ref := range adv.refs {
		if strings.HasPrefix(ref, "refs/heads/") {
			branches = append(branches, ref)
		}
	}
	slices.Sort(branches)
	return branches, nil
}

// Tags returns the commit, or other object, that each tag of the server names: that
// which a signed or annotated tag is about.
func (s *Server) Tags(ctx context.Context) (map[string]string, error) {
	adv, err := s.refs(ctx, "tags")
	if err != nil {
		return nil, err
	}
	tags := map[string]string{}
	for _, refs := range []map[string]packfile.ID{adv.refs, adv.peeled} {
		for ref, at := range refs {
			if name, is := strings.CutPrefix(ref, "refs/tags/"); is {
				tags[name] = at.String()
			}
		}
	}
	return tags, nil
}

// list reads the server's list of refs.
func (s *Server) list(ctx context.Context) (*refList, error) {
	at := s.client.open(uploadPack)
	defer at.close()
	adv, err := s.listOf(ctx, at)
	if err == nil {
		s.caps = adv.can
	}
	return adv, err
}

// listOf reads the list of refs of a session, whose objects must be named as those here.
func (s *Server) listOf(ctx context.Context, at session) (*refList, error) {
	adv, err := at.list(ctx)
	if err != nil {
		return nil, err
	}
	if s.format != 0 && adv.format != s.format && len(adv.can) > 0 {
		return nil, OtherFormat(adv.format.String())
	}
	return adv, nil
}

// What is read is tried so often, after pauses of so long in all: with a second, then two, four and
// eight a server may be down for a quarter of a minute.
const (
	maxTries = 5
	maxWait  = time.Minute
)

// always lets a call that reads be made again.
func always() bool { return true }

// call does one thing within the timeout, and makes its error an [Error]. It is done again
// after a failure that may pass, as long as again allows that; nil never does.
func (s *Server) call(ctx context.Context, doing string, again func() bool, do func(context.Context) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err, left := limited.Err(), maxWait
	for try := 1; ; try++ {
		s.notes = new(notes)
		s.client.begin(s.notes)
		if err == nil {
			err = do(limited)
		}
		if err == nil {
			return nil
		}
		err = cmp.Or(s.notes.why(), strip(err))
		pause, passes := passing(err, time.Second<<(try-1))
		if !passes || pause > left || try == maxTries || limited.Err() != nil || s.wait == nil || again == nil || !again() || s.wait(limited, pause) != nil {
			break
		}
		err, left = nil, left-pause
	}
	switch {
	case ctx.Err() != nil:
		err = &NetworkError{ctx.Err()}
	case limited.Err() != nil:
		err = &NetworkError{fmt.Errorf("no end after %v: %w", s.timeout, limited.Err())}
	}
	return &Error{Role: s.role, URL: s.remote.Redacted(), Doing: doing, Err: err, Message: s.notes.message()}
}

// Unanswered reports whether an error is of a server that failed or could not be reached, so that the
// same call may go well later. It was made again already, where it reads.
func Unanswered(err error) bool {
	_, passes := passing(err, 0)
	return passes
}

// passing reports whether a failure is one that may pass, and after how long to try again: the
// pause, or as long as the server says.
func passing(err error, pause time.Duration) (time.Duration, bool) {
	var status *StatusError
	switch {
	case errors.As(err, &status):
		return max(pause, status.after), status.Status >= 500 || status.Status == http.StatusRequestTimeout || status.Status == http.StatusTooManyRequests
	case errors.Is(err, errCut), errors.Is(err, errDamaged):
		return pause, true
	}
	return pause, errors.As(err, new(*NetworkError))
}

// maxRef is how long the full name of a ref may be: git's own files take far less.
const maxRef = 4096

// checkRef keeps everything off the wire that could be more than a name.
func checkRef(ref string) error {
	if !strings.HasPrefix(ref, "refs/") || len(ref) > maxRef || strings.ContainsFunc(ref, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%q is not a ref's full name", ref)
	}
	if err := plumbing.ReferenceName(ref).Validate(); err != nil {
		return fmt.Errorf("%q is not a ref's full name", ref)
	}
	return nil
}
