package review

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A Piece is what can be taken of a patch by itself: a hunk of a text that changes, or all that happens to another file.
type Piece struct {
	Hunk, Hunks int // which hunk of the file it is, from 1, of how many; 0 of what is whole
	edits       []patch.Edit
	change      int // of the patch: its index
	of          patch.Change
}

// Alone is the change with this piece and no other of its file. A file of thousands of hunks is not made thousands of times at once.
func (p Piece) Alone() patch.Change {
	c := p.of
	if p.Hunk > 0 {
		c.After = edited(c, p.edits)
	}
	return c
}

// piecesContext is how many lines stand between hunks at least, twice, as in the patch's canonical bytes.
const piecesContext = 3

// Pieces are those of a patch, in its order.
func Pieces(set patch.Patchset) (all []Piece) {
	for i, c := range set.Changes {
		whole := c.Kind != patch.Update || c.Before.Mode != c.After.Mode
		if whole || bytes.IndexByte(c.Before.Data, 0) >= 0 || bytes.IndexByte(c.After.Data, 0) >= 0 {
			all = append(all, Piece{change: i, of: c})
			continue
		}
		old, new := patch.Lines(c.Before.Data), patch.Lines(c.After.Data)
		hunks := patch.LineHunks(patch.DiffLines(old, new), len(old), len(new), piecesContext)
		for n, h := range hunks {
			all = append(all, Piece{Hunk: n + 1, Hunks: len(hunks), edits: h.Edits, change: i, of: c})
		}
	}
	return all
}

// Divided are the pieces of the patch of a transaction that can be taken by themselves: none where it is one piece, or where its parts
// cannot be proposed in its place, as of a pull request, of a Proposal, of what is in the working tree already, or of what is stored
// without its secrets.
func Divided(ctx context.Context, g pipeline.Judgement) (set patch.Patchset, all []Piece, err error) {
	tx := g.Transaction()
	p := tx.Pointers.Proposal
	if tx.Closed || tx.PullRequest() > 0 || p.Checks != "" || p.Kind == ledger.KindWorktree || p.PatchRedactedSHA256 != "" {
		return set, nil, nil
	}
	if set, err = g.Patchset(ctx); err != nil {
		return set, nil, err
	}
	if all = Pieces(set); len(all) < 2 {
		all = nil
	}
	return set, all, nil
}

// edited is the file before a change with some of its edits, which are in order.
func edited(c patch.Change, edits []patch.Edit) *patch.File {
	old, new := patch.Lines(c.Before.Data), patch.Lines(c.After.Data)
	var lines [][]byte
	at := 0
	for _, e := range edits {
		lines = append(append(lines, old[at:e.OldStart]...), new[e.NewStart:e.NewEnd]...)
		at = e.OldEnd
	}
	return &patch.File{Mode: c.Before.Mode, Data: bytes.Join(append(lines, old[at:]...), nil)}
}

// taken are the files after the pieces that are taken, nil for those that are then gone.
func taken(set patch.Patchset, all []Piece, take []bool) map[string]*patch.File {
	after, edits := map[string]*patch.File{}, map[int][]patch.Edit{}
	for i, p := range all {
		c := set.Changes[p.change]
		switch {
		case !take[i]:
		case p.Hunk > 0:
			edits[p.change] = append(edits[p.change], p.edits...)
		default:
			if c.Kind == patch.Rename {
				after[c.From] = nil
			}
			after[c.Path] = c.After
		}
	}
	for i, some := range edits {
		after[set.Changes[i].Path] = edited(set.Changes[i], some)
	}
	return after
}

// named says which pieces are taken.
func named(all []Piece, take []bool) string {
	var files []string
	for i := 0; i < len(all); {
		p, hunks := all[i], []string{}
		n := max(1, p.Hunks)
		for j := range n {
			if take[i+j] {
				hunks = append(hunks, fmt.Sprint(j+1))
			}
		}
		switch i += n; {
		case len(hunks) == 0:
		case len(hunks) == n:
			files = append(files, patch.Quote(p.of.Path))
		default:
			files = append(files, fmt.Sprintf("%s hunk %s of %d", patch.Quote(p.of.Path), strings.Join(hunks, "+"), n))
		}
	}
	return strings.Join(files, ", ")
}

// maxNamed is how long what is said of the pieces may be, in characters.
const maxNamed = 1000

// Part proposes some pieces of what a transaction proposes, in its place: with its words, on its commit, of all who proposed
// it and of who runs this (T10). No approval of the old one counts. The end of the old one in the record names the new one, and what
// was taken. take has an entry for each of the patch's Pieces; to take none or all of them is refused.
func Part(ctx context.Context, r *pipeline.Runner, id string, take []bool) (out Reviewed, err error) {
	const how = "in part"
	g, err := remade(ctx, r, id, how)
	if err != nil {
		return out, err
	}
	tx := g.Transaction()
	set, all, err := Divided(ctx, g)
	switch {
	case err != nil:
		return out, err
	case len(all) == 0:
		return out, remakeRefused(id, how, "it is closed, or no part of it can be proposed by itself", "countersign show "+id)
	case len(take) != len(all) || !slices.Contains(take, true) || !slices.Contains(take, false):
		return out, remakeRefused(id, how, "some of its pieces are to be taken, and not all", "countersign run "+id)
	}
	base, err := r.Repo.Tree(ctx, tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return out, err
	}
	part, err := patch.NewTree(base).Between(taken(set, all, take))
	if err != nil {
		return out, err
	}
	what := ledger.OneLine(named(all, take), maxNamed)
	in, again, err := remake(r, g, part.Bytes(), "part of it was proposed in its place: "+what)
	if err != nil {
		return out, err
	}
	in.Summary = strings.TrimSpace(in.Summary + " (part of " + id + ")")
	in.Base = tx.Pointers.Proposal.BaseCommit
	return Run(ctx, again, in, false)
}
