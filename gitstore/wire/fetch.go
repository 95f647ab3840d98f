package wire

import (
	"bytes"
	"context"
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
	if err := s.FetchTo(ctx, req, &pack); err != nil {
		return nil, err
	}
	return pack.Bytes(), nil
}

// FetchTo is Fetch for a large pack: it writes it to w as it comes. After an
// error, what w got is worthless.
func (s *Server) FetchTo(ctx context.Context, req FetchRequest, w io.Writer) error {
	if req.Limit == 0 {
		req.Limit = DefaultLimit
	}
	return s.call(ctx, req.doing(), func(ctx context.Context) error { return s.fetch(ctx, req, w) })
}

func (r FetchRequest) doing() string {
	switch len(r.Wants) {
	case 0:
		return "fetching"
	case 1:
		return "fetching " + r.Wants[0].String()
	}
	return fmt.Sprintf("fetching %s and %d more", r.Wants[0], len(r.Wants)-1)
}

func (s *Server) fetch(ctx context.Context, req FetchRequest, w io.Writer) error {
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
}

func (r FetchRequest) check() error {
	has := func(h plumbing.Hash) bool { return slices.Contains(r.Haves, h) }
	isZero := func(h plumbing.Hash) bool { return h.IsZero() }
	switch {
	case len(r.Wants) == 0:
		return errors.New("nothing is wanted")
	case slices.ContainsFunc(r.Wants, isZero) || slices.ContainsFunc(r.Haves, isZero) || slices.ContainsFunc(r.Shallow, isZero):
		return errors.New("the zero hash cannot be fetched")
	case len(r.Shallow) == 0 && !slices.ContainsFunc(r.Wants, func(h plumbing.Hash) bool { return !has(h) }):
		return errors.New("all that is wanted is there already")
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
		if !s.CanFilter() {
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
