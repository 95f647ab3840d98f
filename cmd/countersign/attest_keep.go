package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// keptName is where a signed statement is kept beside the ledger: in a directory named as its
// transaction's, under its predicate, its commit and the hash of its content.
func keptName(s madeStatement, raw []byte) string {
	return fmt.Sprintf("%s/%s.%s.%s.json", ledger.Dir(s.id), attest.Name(s.PredicateType), s.landed.Commit, canon.Hex(raw))
}

// maxKeeps bounds how often statements are kept again against other writers.
const maxKeeps = 10

// keepAttestations adds files to those that are kept beside the ledger.
func (a *App) keepAttestations(ctx context.Context, files map[string][]byte) error {
	store, err := a.store(a.repo, a.repo.Config)
	if err != nil {
		return err
	}
	beside := store.(besideStore)
	for attempt := 1; ; attempt++ {
		before, err := beside.Kept(ctx, gitstore.Attestations, func(string) bool { return false })
		if err == nil {
			err = beside.Keep(ctx, gitstore.Attestations, before, files, a.Now())
		}
		if attempt == maxKeeps || !errors.Is(err, ledger.ErrMoved) {
			return err
		}
		pause(ctx, attempt)
	}
}
