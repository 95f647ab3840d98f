package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// DefaultLimit is how many bytes a pack may have where a request says nothing.
const DefaultLimit = 512 << 20

// A FetchRequest is what a pack shall hold: everything that Wants reach and
// Haves do not.
type FetchRequest struct {
	Wants   []plumbing.Hash
	Haves   []plumbing.Hash
	Shallow []plumbing.Hash // commits that we have without their parents
	Depth   int             // commits from each want; 0 is all

	// Filter leaves out trees or blobs, as packp.FilterTreeDepth(4) does. With
	// a server that cannot, nothing is sent and the error is ErrNoFilter. Of
	// a tree that is wanted by its hash, depth 0 is the tree alone.
	Filter packp.Filter

	Limit int64 // bytes of the pack; 0 is DefaultLimit
}

// Fetch returns a pack, complete as its trailer says, and never thin. What its
// objects are must be told by hashing them.
func (s *Server) Fetch(ctx context.Context, req FetchRequest) ([]byte, error) {
	var pack bytes.Buffer
	if err := s.fetch(ctx, req, &pack, func() bool { pack.Reset(); return true }); err != nil {
		return nil, err
	}
	return pack.Bytes(), nil
}

// FetchTo is Fetch for a large pack: it writes it to w as it comes. After an
// error, what w got is worthless; once it got some, nothing is asked again.
func (s *Server) FetchTo(ctx context.Context, req FetchRequest, w io.Writer) error {
	to := &begun{Writer: w}
	return s.fetch(ctx, req, to, func() bool { return !to.any })
}

// begun notes whether anything was written.
type begun struct {
	io.Writer
	any bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.any = b.any || len(p) > 0
	return b.Writer.Write(p)
}

func (s *Server) fetch(ctx context.Context, req FetchRequest, w io.Writer, again func() bool) error {
	req.Limit = cmp.Or(req.Limit, DefaultLimit)
	doing := "fetching"
	if n := len(req.Wants); n > 0 {
		doing += " " + req.Wants[0].String()
		if n > 1 {
			doing += fmt.Sprintf(" and %d more", n-1)
		}
	}
	return s.call(ctx, doing, again, func(ctx context.Context) error {
		if err := req.check(); err != nil {
			return err
		}
		session, err := s.client.NewUploadPackSession(s.at, nil)
		if err != nil {
			return err
		}
		defer session.Close()
		if s.caps == nil {
			adv, err := session.AdvertisedReferencesContext(ctx)
			if err != nil {
				return err
			}
			s.caps = adv.Capabilities
		}
		ask, err := s.request(req)
		if err != nil {
			return err
		}
		resp, err := session.UploadPack(ctx, ask)
		if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
			return errCut
		}
		if err != nil {
			return err
		}
		defer resp.Close()
		s.notes.packBegins()
		var from io.Reader = resp
		if ask.Capabilities.Supports(capability.Sideband64k) {
			from = sideband.NewDemuxer(sideband.Sideband64k, resp)
		}
		return copyPack(w, from, req.Limit)
	})
}

func (r FetchRequest) check() error {
	has := func(h plumbing.Hash) bool { return slices.Contains(r.Haves, h) }
	isZero := func(h plumbing.Hash) bool { return h.IsZero() }
	switch {
	case len(r.Wants) == 0:
		return errors.New("nothing is wanted")
	case slices.ContainsFunc(r.Wants, isZero) || slices.ContainsFunc(r.Haves, isZero) || slices.ContainsFunc(r.Shallow, isZero):
		return errors.New("the hash of zeros cannot be fetched")
	case len(r.Shallow) == 0 && !slices.ContainsFunc(r.Wants, func(h plumbing.Hash) bool { return !has(h) }):
		return errors.New("everything that was asked for is already here")
	case r.Depth < 0 || r.Limit < 0:
		return errors.New("a depth or a limit is negative")
	}
	return nil
}

// request asks with what the server can do.
func (s *Server) request(r FetchRequest) (*packp.UploadPackRequest, error) {
	ask := packp.NewUploadPackRequest()
	ask.Wants, ask.Haves, ask.Shallows = slices.Clone(r.Wants), slices.Clone(r.Haves), slices.Clone(r.Shallow)
	ask.Depth, ask.Filter = packp.DepthCommits(r.Depth), r.Filter
	want := []capability.Capability{capability.Sideband64k, capability.OFSDelta, capability.NoProgress}
	if r.Filter != "" {
		if !s.has(capability.Filter) {
			return nil, ErrNoFilter
		}
		want = append(want, capability.Filter)
	}
	if r.Depth > 0 || len(r.Shallow) > 0 {
		if !s.has(capability.Shallow) {
			return nil, errors.New("the server has no shallow fetch")
		}
		want = append(want, capability.Shallow)
	}
	for _, c := range want {
		if s.has(c) {
			if err := ask.Capabilities.Set(c); err != nil {
				return nil, fmt.Errorf("asking for %s: %w", c, err)
			}
		}
	}
	return ask, s.nameUs(ask.Capabilities, s.caps)
}

// nameUs names the program to a server that asks for it.
func (s *Server) nameUs(to, has *capability.List) error {
	if has != nil && !has.Supports(capability.Agent) {
		return nil
	}
	return to.Set(capability.Agent, s.agent)
}

var errDamaged = errors.New("the pack is cut or damaged")

// copyPack copies a pack whose first and last bytes are right: it begins as
// packs do and ends with the SHA-1 of what comes before.
func copyPack(w io.Writer, r io.Reader, limit int64) error {
	sum := sha1.New()
	buf := make([]byte, 64<<10)
	var total int64
	var kept []byte // the last 20 bytes, or fewer, which may be the trailer
	for {
		n, err := io.ReadFull(r, buf)
		if total == 0 && !bytes.HasPrefix(buf[:n], []byte("PACK\x00\x00\x00\x02")) && (err == nil || isEnd(err)) {
			return errors.New("the answer is not a pack")
		}
		if total += int64(n); total > limit {
			return ErrTooLarge
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		kept = append(kept, buf[:n]...)
		if cut := len(kept) - sha1.Size; cut > 0 {
			sum.Write(kept[:cut])
			kept = append(kept[:0], kept[cut:]...)
		}
		switch {
		case err == nil:
		case !isEnd(err):
			return err
		case total < 12+sha1.Size || !bytes.Equal(kept, sum.Sum(nil)):
			return errDamaged
		default:
			return nil
		}
	}
}

func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Push moves ref from old to next, whose objects are in the pack or with the
// server; old is zero to create it. It returns nil only if the server's report
// says that ref, and nothing else, is updated. After an error ref may be
// either: read it again. The server does not check that next descends from old.
func (s *Server) Push(ctx context.Context, ref string, old, next plumbing.Hash, pack []byte) error {
	return s.call(ctx, fmt.Sprintf("pushing %q", ref), nil, func(ctx context.Context) error {
		switch {
		case next.IsZero():
			return errors.New("a push must not delete a ref")
		case !bytes.HasPrefix(pack, []byte("PACK")):
			return errors.New("there is no pack to send")
		}
		if err := checkRef(ref); err != nil {
			return err
		}
		session, err := s.client.NewReceivePackSession(s.at, nil)
		if err != nil {
			return err
		}
		defer session.Close()
		var has *capability.List // nil over http: every server knows these three
		if s.remote.scheme == "file" || s.remote.scheme == "ssh" {
			adv, err := session.AdvertisedReferencesContext(ctx)
			if err != nil {
				return err
			}
			has = adv.Capabilities
		}
		req, err := s.update(has)
		if err != nil {
			return err
		}
		req.Commands = []*packp.Command{{Name: plumbing.ReferenceName(ref), Old: old, New: next}}
		req.Packfile = io.NopCloser(bytes.NewReader(pack))
		report, err := session.ReceivePack(ctx, req)
		if report == nil {
			return cmp.Or(err, errors.New("the server reports nothing"))
		}
		// The report must say ok to exactly our ref.
		if report.UnpackStatus != "ok" {
			return &RejectedError{"unpacking: " + report.UnpackStatus}
		}
		if len(report.CommandStatuses) != 1 || report.CommandStatuses[0].ReferenceName.String() != ref {
			return errors.New("the server's report is not only about our ref")
		}
		if status := report.CommandStatuses[0].Status; status != "ok" {
			return &RejectedError{status}
		}
		return err
	})
}

func (s *Server) update(has *capability.List) (*packp.ReferenceUpdateRequest, error) {
	req := packp.NewReferenceUpdateRequest()
	if has != nil && !has.Supports(capability.ReportStatus) {
		return nil, errors.New("the server does not report what it did")
	}
	if err := req.Capabilities.Set(capability.ReportStatus); err != nil {
		return nil, err
	}
	if has == nil || has.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return nil, err
		}
	}
	return req, s.nameUs(req.Capabilities, has)
}
