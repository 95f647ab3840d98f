package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// DefaultLimit is how many bytes a pack may have where a request says nothing.
const DefaultLimit = 512 << 20

// A FetchRequest is what a pack shall hold: everything that Wants reach and
// Haves do not.
type FetchRequest struct {
	Wants   []packfile.ID
	Haves   []packfile.ID
	Shallow []packfile.ID // commits that we have without their parents
	Depth   int           // commits from each want; 0 is all

	// Filter leaves out trees or blobs, such as "tree:4" (rev-list(1), --filter). With
	// a server that cannot, nothing is sent and the error is ErrNoFilter. Of
	// a tree that is wanted by its hash, depth 0 is the tree alone.
	Filter string

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
		at := s.client.open(uploadPack)
		defer at.close()
		if s.caps == nil {
			adv, err := s.listOf(ctx, at)
			if err != nil {
				return err
			}
			s.caps = adv.can
		}
		want, err := s.want(req)
		if err != nil {
			return err
		}
		answer, err := at.fetch(ctx, req.encode(want))
		if err != nil {
			return err
		}
		from, err := packOf(answer, req.Depth)
		if err != nil {
			return err
		}
		s.notes.packBegins()
		pack := io.Reader(from)
		if want.has("side-band-64k") {
			pack = &bands{from: pktline.NewScanner(from), said: io.Discard}
		}
		return copyPack(w, pack, packfile.FormatOf(req.Wants[0]), req.Limit)
	})
}

func (r FetchRequest) check() error {
	has := func(h packfile.ID) bool { return slices.Contains(r.Haves, h) }
	isZero := func(h packfile.ID) bool { return h.IsZero() }
	switch {
	case len(r.Wants) == 0:
		return errors.New("nothing is wanted")
	case slices.ContainsFunc(r.Wants, isZero) || slices.ContainsFunc(r.Haves, isZero) || slices.ContainsFunc(r.Shallow, isZero):
		return errors.New("the hash of zeros cannot be fetched")
	case len(r.Shallow) == 0 && !slices.ContainsFunc(r.Wants, func(h packfile.ID) bool { return !has(h) }):
		return errors.New("everything that was asked for is already here")
	case r.Depth < 0 || r.Limit < 0:
		return errors.New("a depth or a limit is negative")
	}
	return nil
}

// want is what a request uses of what the server can do.
func (s *Server) want(r FetchRequest) (capabilities, error) {
	ask := capabilities{"side-band-64k", "ofs-delta", "no-progress"}
	if r.Filter != "" {
		if !s.caps.has("filter") {
			return nil, ErrNoFilter
		}
		ask = append(ask, "filter")
	}
	if r.Depth > 0 || len(r.Shallow) > 0 {
		if !s.caps.has("shallow") {
			return nil, errors.New("the server has no shallow fetch")
		}
		ask = append(ask, "shallow")
	}
	ask = slices.DeleteFunc(ask, func(name string) bool { return !s.caps.has(name) })
	return append(ask, s.us(packfile.FormatOf(r.Wants[0]), s.caps)...), nil
}

// us names the program, and a format of objects that is not the usual one, to a server that asks for it: with nil, to any.
func (s *Server) us(format packfile.Format, can capabilities) (us capabilities) {
	if can == nil || can.has("agent") {
		us = append(us, "agent="+s.agent)
	}
	if format == packfile.SHA256 {
		us = append(us, objectFormat+format.String())
	}
	return us
}

var errDamaged = errors.New("the pack is cut or damaged")

// copyPack copies a pack whose first and last bytes are right: it begins as
// packs do and ends with the hash of what comes before.
func copyPack(w io.Writer, r io.Reader, f packfile.Format, limit int64) error {
	sum := f.New()
	buf := make([]byte, 64<<10)
	var total int64
	var kept []byte // the last bytes, which may be the trailer
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
		if cut := len(kept) - f.Size(); cut > 0 {
			sum.Write(kept[:cut])
			kept = append(kept[:0], kept[cut:]...)
		}
		switch {
		case err == nil:
		case !isEnd(err):
			return err
		case total < int64(12+f.Size()) || !bytes.Equal(kept, sum.Sum(nil)):
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
func (s *Server) Push(ctx context.Context, ref string, old, next packfile.ID, pack []byte) error {
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
		at := s.client.open(receivePack)
		defer at.close()
		var can capabilities // nil over http: every server knows these
		if s.remote.scheme == "file" || s.remote.scheme == "ssh" {
			adv, err := s.listOf(ctx, at)
			if err != nil {
				return err
			}
			if can = adv.can; !can.has("report-status") {
				return errors.New("the server does not report what it did")
			}
		}
		ask, sideband := capabilities{"report-status"}, can == nil || can.has("side-band-64k")
		if sideband {
			ask = append(ask, "side-band-64k")
		}
		format := packfile.FormatOf(next)
		ask = append(ask, s.us(format, can)...)
		var m message
		m.line("%s %s %s\x00%s", format.Hex(old), next, ref, strings.Join(ask, " "))
		m.flush()
		done, err := at.push(ctx, m.Bytes(), pack, sideband)
		if err != nil {
			return err
		}
		// The report must say ok to exactly our ref.
		if done.unpacked != "ok" {
			return &RejectedError{"unpacking: " + done.unpacked}
		}
		if len(done.refs) != 1 || done.refs[0].ref != ref {
			return errors.New("the server's report is not only about our ref")
		}
		if status := done.refs[0].status; status != "ok" {
			return &RejectedError{status}
		}
		return nil
	})
}
