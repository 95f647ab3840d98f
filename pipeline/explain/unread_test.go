package explain_test

import (
	"context"
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
)

// unread is a repository that has a commit which cannot be read.
type unread struct {
	*repo
	commit string
}

func (u unread) RawCommit(ctx context.Context, commit string) ([]byte, error) {
	if commit == u.commit {
		return nil, errUnread
	}
	return u.repo.RawCommit(ctx, commit)
}

func (u unread) Descends(ctx context.Context, commit, ancestor string) (bool, error) {
	if commit == u.commit || ancestor == u.commit {
		return false, errUnread
	}
	return u.repo.Descends(ctx, commit, ancestor)
}

// TestT79BaseThatCannotBeRead: a commit that something was reviewed on and that is here, but cannot
// be read, may have the change already. That is no answer, and not that it has not.
func TestT79BaseThatCannotBeRead(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	root := r.commit("root", start())
	tip := r.commit("one", start().with(path(0), after(0)), root)
	for id, name := range r.names {
		if name != "tx0" {
			continue
		}
		log, err := lookup.Read(r.ledger, id)
		r.check(err)
		o := r.options()
		o.Default, o.Code = []string{root, tip}, unread{r, log.Meta().BaseCommit}
		got, err := explain.Run(t.Context(), o, []code.BranchCommit{{ID: tip, Parents: []string{root}}})
		if !errors.Is(err, errUnread) {
			t.Errorf("%v, explained %+v", err, got.Explained)
		}
	}
}
