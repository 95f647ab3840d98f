package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Push moves ref from old to next, whose objects are in the pack or with the
// server; old is zero to create it. It returns nil only if the server's report
// says that ref, and nothing else, is updated. After an error ref may be
// either: read it again. The server does not check that next descends from old.
func (s *Server) Push(ctx context.Context, ref string, old, next plumbing.Hash, pack []byte) error {
	return s.call(ctx, fmt.Sprintf("pushing %q", ref), func(ctx context.Context) error {
		if err := checkPush(ref, next, pack); err != nil {
			return err
		}
		return s.push(ctx, ref, old, next, pack)
	})
}

func checkPush(ref string, next plumbing.Hash, pack []byte) error {
	switch {
	case next.IsZero():
		return errors.New("a ref is not deleted")
	case !bytes.HasPrefix(pack, []byte("PACK")):
		return errors.New("there is no pack to send")
	}
	return checkRef(ref)
}

func (s *Server) push(ctx context.Context, ref string, old, next plumbing.Hash, pack []byte) error {
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
	if report != nil {
		if no := confirm(report, ref); no != nil {
			return no
		}
	}
	if err == nil && report == nil {
		err = errors.New("the server reports nothing")
	}
	return err
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

// confirm fails unless the report says ok to exactly our ref.
func confirm(report *packp.ReportStatus, ref string) error {
	if report.UnpackStatus != "ok" {
		return &RejectedError{"unpacking: " + report.UnpackStatus}
	}
	if len(report.CommandStatuses) != 1 || report.CommandStatuses[0].ReferenceName.String() != ref {
		return errors.New("the server's report is not about our ref alone")
	}
	if status := report.CommandStatuses[0].Status; status != "ok" {
		return &RejectedError{status}
	}
	return nil
}
