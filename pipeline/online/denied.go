package online

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A denied is a pull request whose own diff somebody denied. Heads are the commits that its
// own diffs were proposed at, each with whether what it does is denied.
type denied struct {
	place
	By    string
	Heads map[string]bool
}

// deniedPulls are the pull requests whose own diff is denied, each once, those of the newest
// denials first, and how many there are beyond most. What was merged before somebody
// denied the same patch elsewhere is not among them.
func deniedPulls(tree fs.FS, most int) (out []denied, more int, err error) {
	denials, err := AllDenials(tree)
	if err != nil {
		return nil, 0, err
	}
	seen := map[place]bool{}
	for _, d := range denials {
		listed, err := lookup.Proposals(tree, ledger.FingerprintPatch(d.Fingerprint))
		if err != nil {
			return nil, 0, err
		}
		for _, l := range slices.Backward(listed) {
			tx, err := lookup.ListedState(tree, l.TransactionID)
			if err != nil {
				return nil, 0, err
			}
			p := tx.Pointers.Proposal
			if !tx.GateOnly() || p.Repository == nil || tx.Status == ledger.Completed {
				continue
			}
			one := denied{place: place{Repository: p.Repository.ID, Number: p.PullRequest}, By: d.Author.Login}
			if seen[one.place] {
				continue
			}
			if seen[one.place] = true; len(seen) > most {
				more++
				continue
			}
			one.Transaction, one.Name = tx.TransactionID, p.Repository.Name
			if one.Heads, err = proposedHeads(tree, *p); err != nil {
				return nil, 0, err
			}
			out = append(out, one)
		}
	}
	return out, more, nil
}

// proposedHeads are the heads at which the own diffs of a proposal's pull request were
// proposed or, once merged, approved. Of a head with two of them the newer counts.
func proposedHeads(tree fs.FS, p ledger.Proposal) (map[string]bool, error) {
	all, err := lookup.StatesOnPull(tree, *p.Repository, p.PullRequest)
	if err != nil {
		return nil, err
	}
	heads := map[string]bool{}
	for _, tx := range all {
		switch {
		case !tx.GateOnly():
		case tx.Status == ledger.Completed:
			log, err := lookup.Read(tree, tx.TransactionID)
			if err != nil {
				return nil, err
			}
			standing, err := forge.ReadStanding(tree, log)
			if err != nil {
				return nil, err
			}
			heads[standing.HeadCommit] = false
		default:
			denials, err := ledger.Denials(tree, tx.PatchID())
			if err != nil {
				return nil, err
			}
			heads[tx.Pointers.Proposal.HeadCommit] = len(denials) > 0
		}
	}
	return heads, nil
}

func (d denied) question() *question {
	return &question{
		findings: []Finding{{TransactionID: d.Transaction, What: WhatDenied, About: d.words(), Recorded: "denied by " + d.By}},
		ask:      func(ctx context.Context, a *asker, to []Finding) error { return a.end(ctx, d.place, d.compare, &to[0]) },
	}
}

// compare looks whether what was denied was merged. A diff that is another than the
// denied one may be: whether it was approved, its own transaction says.
func (d denied) compare(now forge.End, to *Finding) {
	is, known := d.Heads[now.Head]
	another := slices.Contains(slices.Collect(maps.Values(d.Heads)), false)
	switch {
	case now.State != forge.PullRequestMerged, known && !is:
		to.Verdict = Same
	case known:
		to.Verdict, to.Reason = Changed, "it was merged as it was denied"
	case another:
		to.Verdict, to.Reason = Unknown, "another diff was proposed there too, and which of them this head has is not recorded: countersign audit --branch tells what the branch has"
	default:
		to.Verdict, to.Reason = Changed, "it was merged at another head, and nothing but what was denied was ever proposed there"
	}
}

// AskDenied asks whether pull requests whose own diff is denied were merged all the same:
// those of the newest denials, at most so many; more is how many there are beside. Where
// nothing was denied no request is sent. The error is that of reading the ledger.
func AskDenied(ctx context.Context, f forge.Auditor, tree fs.FS, most int) (found []Finding, more int, err error) {
	all, more, err := deniedPulls(tree, most)
	if err != nil || len(all) == 0 {
		return nil, more, err
	}
	a := &asker{Auditor: f, ends: map[int]forge.End{}}
	a.at, err = f.DefaultBranch(ctx)
	if err == nil && a.at.Repository == nil {
		err = fmt.Errorf("the forge does not tell the repository's number")
	}
	if err != nil {
		for _, d := range all {
			found = append(found, unknown(d.question().findings, err)...)
		}
		return found, more, nil
	}
	r := recorded{denied: all}
	a.pullNumbers = r.pullNumbers(a.at.Repository.ID)
	for _, d := range all {
		findings, _ := d.question().of(d.place, a.at.Repository).answer(ctx, a)
		found = append(found, findings...)
	}
	return found, more, nil
}

// AllDenials reads what the ledger holds against any patch, the newest first.
func AllDenials(tree fs.FS) ([]ledger.Denial, error) {
	var out []ledger.Denial
	err := fs.WalkDir(tree, ledger.DeniedRoot, func(name string, e fs.DirEntry, err error) error {
		switch {
		case name == ledger.DeniedRoot && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() && ledger.IsPage(name):
			return fs.SkipDir
		case e.IsDir() || ledger.IsPage(name):
			return nil
		}
		raw, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		var one ledger.Denial
		if err := canon.Unmarshal(raw, &one); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, one)
		return nil
	})
	slices.SortStableFunc(out, func(a, b ledger.Denial) int { return strings.Compare(b.DeniedAt, a.DeniedAt) })
	return out, err
}
