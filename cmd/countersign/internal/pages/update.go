package pages

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/pageaudit"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/site"
)

// stateFile keeps what the pages in a directory were made of: a line with a head, and the records, compressed.
// It is there only while all pages are, and only of a ledger that verified.
const stateFile = ".countersign-site.state"

// A record is a transaction as lists have it, and the newest commit of the ledger that changed it.
type record struct {
	html.Summary
	Commit string
}

// A head says which pages a state is of. Sum is of the records' line.
type head struct {
	Made string `json:"made"` // by which program, of which ledger, with which flags
	Tip  string `json:"tip"`
	Sum  string `json:"sum"`
	// Objects is the hash of objectsFile, "" where there is no bundle.
	Objects string `json:"objects"`
}

// made says what a page depends on beside the ledger's commits.
func (b *build) made() string {
	script, _ := site.New(nil, site.Options{}).File("search/search.js")
	return fmt.Sprintf("format 2, %s, %q, elsewhere %v, %#v, redact %v, bundle %v, %s", b.Version, b.Ref, b.Elsewhere, b.Links, b.redact, b.bundles(), canon.Sum(slices.Concat(html.Style(), script, b.verifierParts())))
}

func (b *build) save(dir *dir) error {
	var all []record
	for _, id := range slices.Sorted(maps.Keys(b.summaries)) {
		all = append(all, record{b.summaries[id], b.commits[id]})
	}
	records, err := json.Marshal(all)
	if err != nil {
		return err
	}
	first, err := json.Marshal(head{b.made(), b.tip, canon.Sum(records), b.objects})
	if err != nil {
		return err
	}
	var state bytes.Buffer
	state.Write(append(first, '\n'))
	z, _ := gzip.NewWriterLevel(&state, gzip.BestSpeed)
	_, _ = z.Write(records)
	_ = z.Close() // a buffer takes everything
	return dir.place(stateFile, dir.whole(state.Bytes()))
}

// load returns the tip and the records of the pages in a directory, "" where there is no state that
// fits: of another program, ledger or flags, or changed since.
func (b *build) load(dir *dir) (tip string, records []record) {
	raw, err := fs.ReadFile(dir.FS(), stateFile)
	if err != nil {
		return "", nil
	}
	first, rest, _ := bytes.Cut(raw, []byte("\n"))
	var h head
	z, err := gzip.NewReader(bytes.NewReader(rest))
	if err != nil || json.Unmarshal(first, &h) != nil || h.Made != b.made() {
		return "", nil
	}
	if rest, err = io.ReadAll(z); err != nil || h.Sum != canon.Sum(rest) || json.Unmarshal(rest, &records) != nil {
		return "", nil
	}
	b.objects = h.Objects
	return h.Tip, records
}

// update writes the pages that new commits changed, and reports whether that was all: the ledger must
// descend from the tip of the pages that are there, and what is new must verify.
func (b *build) update(ctx context.Context, dir *dir) (bool, error) {
	from, before := b.load(dir)
	if from == "" {
		return false, nil
	}
	changed, err := b.auditSince(ctx, from)
	if err != nil || changed == nil {
		return false, err
	}
	earlier := &build{Program: b.Program, summaries: map[string]html.Summary{}}
	for _, r := range before {
		earlier.summaries[r.ID] = r.Summary
	}
	if err := b.readAll(changed); err != nil || b.unsound() > 0 {
		return false, err
	}
	b.merge(before)
	if err := dir.begin(); err != nil {
		return false, err
	}
	now := b.site()
	addresses, relinked := now.Changed(earlier.site(), changed)
	if err := b.writeTransactions(dir, append(b.withSuccessors(changed), relinked...), now.Has); err != nil {
		return false, err
	}
	if err := b.write(dir, now.For(addresses), addresses); err != nil {
		return false, err
	}
	if err := b.growBundle(ctx, dir, from); err != nil {
		return false, err
	}
	return true, b.save(dir)
}

// auditSince audits what came after a commit, and returns the transactions that it changed, nil
// where all is to be made anew.
func (b *build) auditSince(ctx context.Context, from string) ([]string, error) {
	h, err := b.Ledger.History(ctx, gitstore.HistoryOptions{From: from})
	if err != nil || h.Rollback != nil {
		return nil, err
	}
	b.begin(h.Tip())
	b.result, err = pageaudit.Run(&noted{Reader: h, newest: map[string]change{}, commits: b.commits}, audit.Options{
		Tip: h.Tip(), Progress: b.Progress, Keys: pageaudit.CodeKeys(func(commit string) (fs.FS, error) { return b.Repo.Tree(ctx, commit) }),
	}, nil)
	if errors.As(err, new(*gitstore.NotInHistoryError)) {
		return nil, nil
	}
	if err != nil || !b.result.OK || !b.paged() {
		return nil, err
	}
	return append([]string{}, slices.Sorted(maps.Keys(b.commits))...), nil
}

// merge takes what was known before of the transactions that were not read now.
func (b *build) merge(before []record) {
	for _, r := range before {
		if _, read := b.summaries[r.ID]; !read {
			b.summaries[r.ID], b.commits[r.ID] = r.Summary, r.Commit
		}
	}
	b.ids = slices.Sorted(maps.Keys(b.summaries))
}

// withSuccessors adds the transactions whose pages compare them with one of these.
func (b *build) withSuccessors(ids []string) []string {
	out := slices.Clone(ids)
	for _, r := range b.summaries {
		if _, is := slices.BinarySearch(ids, earlierOf(r)); is {
			out = append(out, r.ID)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return slices.Compact(out)
}

// writeTransactions writes the pages of some transactions.
func (b *build) writeTransactions(dir *dir, ids []string, has func(address string) bool) error {
	return parallel.Try(cores(), len(ids), func(i int) error {
		t, err := b.read(ids[i])
		if err != nil {
			return err
		}
		return b.writeTransaction(dir, t, has)
	})
}

func (b *build) writeTransaction(dir *dir, t html.Transaction, has func(address string) bool) error {
	text, err := b.page(t, has)
	if err != nil {
		return err
	}
	return dir.write(site.Transaction(t.ID), text)
}
