package gitstore

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// A Leaf is a commit of the ledger, and what a hash made of its content.
type Leaf struct {
	ID   string
	Hash [32]byte
}

// Leaves returns the commits of the ledger that ends with a tip, the first one first.
func (l *Ledger) Leaves(_ context.Context, tip string, hash func(commit []byte) [32]byte) ([]Leaf, error) {
	return leaves(l.repo.objects, l.repo.id(tip), hash)
}

// Leaves is the same. In a partial copy it takes all commits, without their trees and files where the
// server can leave these out.
func (s *Shared) Leaves(ctx context.Context, tip string, hash func(commit []byte) [32]byte) ([]Leaf, error) {
	if s.partial == nil {
		return s.local.Leaves(ctx, tip, hash)
	}
	s.partial.ctx = ctx
	at := packfile.ParseID(tip)
	all, err := leaves(s.partial.own, at, hash)
	if !errors.Is(err, packfile.ErrMissing) {
		return all, err
	}
	if err := s.partial.fetchHistory(at); err != nil {
		return nil, err
	}
	return leaves(s.partial.own, at, hash)
}

// leaves follows first parents: no ledger has others, and the audit says so.
func leaves(s source, tip packfile.ID, hash func([]byte) [32]byte) (all []Leaf, err error) {
	for c, err := range ancestors(s, tip) {
		if err != nil {
			return nil, err
		}
		all = append(all, Leaf{c.id.String(), hash(c.raw)})
	}
	slices.Reverse(all)
	return all, nil
}
