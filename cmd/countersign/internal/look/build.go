package look

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/site"
)

// A build makes the pages of one ledger as it is at one tip.
type build struct {
	Program
	options
	Source
	masks func([]byte) bool

	tip     string
	result  audit.Result
	whole   []history.Finding            // of no single transaction
	of      map[string][]history.Finding // by transaction
	commits map[string]string            // by transaction
	ids     []string
	bundled bool        // the ledger itself was written
	masked  atomic.Bool // a diff was left out as it has what looks like a secret

	exceptions []explain.Exception
	untold     bool // what these are

	mu        sync.Mutex
	summaries map[string]html.Summary // of the transactions that were read
	tree      fs.FS                   // of the tip, or part of it; see files
	served    int
	reader    html.Reader
}

func (p Program) open(o options) (*build, error) {
	source, err := p.Open()
	return &build{Program: p, options: o, Source: source, masks: p.Masks()}, err
}

// audit audits a whole ledger, and finds out which transactions it has, and what lists need of each: as the audit hands it on, or
// where it does not, or more was found against one than its own directory tells, as it is read again.
func (b *build) audit(ctx context.Context, h *gitstore.History) (err error) {
	b.tip, b.summaries, b.of, b.commits = h.Tip(), map[string]html.Summary{}, map[string][]history.Finding{}, map[string]string{}
	b.result, err = b.Audit(ctx, b.Repo, h, verdict.Options{
		Each: func(id string, commit history.ID, r *approval.Record, found []canon.Violation) {
			if r != nil {
				b.take(b.reader.Of(id, r, found))
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.commits[id] = commit.String()
		},
	})
	if err != nil {
		return err
	}
	snap, err := b.Ledger.At(ctx, b.tip)
	if err != nil {
		return err
	}
	there, err := lookup.IDs(snap.Tree)
	if err != nil {
		b.whole = append(b.whole, history.Finding{RuleID: "L10", Message: "not every transaction can be listed: " + err.Error()})
	}
	b.ids = slices.Concat(slices.Collect(maps.Keys(b.commits)), there)
	slices.Sort(b.ids)
	b.ids = slices.Compact(b.ids)
	b.assign()
	if b.Exceptions != nil {
		if b.exceptions, err = b.Exceptions(ctx); err != nil {
			b.Say("what is to be reviewed cannot be told: %v", err)
			b.untold = true
		}
	}
	late := slices.DeleteFunc(slices.Clone(b.ids), func(id string) bool {
		_, known := b.summaries[id]
		return known && len(b.of[id])+len(b.whole) == 0
	})
	return parallel.Try(cores(), len(late), func(i int) error {
		t, err := b.read(late[i])
		if err == nil {
			b.take(t)
		}
		return err
	})
}

// take keeps what lists need of a transaction.
func (b *build) take(t html.Transaction) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.summaries[t.ID] = t.Summary
}

// maxWhole is how many findings stand on every page.
const maxWhole = 20

// assign gives each transaction what was found against it. What is of none that has a page is of all.
func (b *build) assign() {
	for _, f := range b.result.Findings {
		id, _, ok := ledger.Within(f.Path)
		if _, has := slices.BinarySearch(b.ids, id); ok && has {
			b.of[id] = append(b.of[id], f)
		} else {
			b.whole = append(b.whole, f)
		}
	}
	if n := len(b.result.Findings); b.result.Count > n && n > 0 {
		b.whole = append(b.whole, history.Finding{RuleID: b.result.Findings[0].RuleID, Message: fmt.Sprintf("there are %d findings, and the pages know %d of them", b.result.Count, n)})
	}
	if !b.result.OK && len(b.result.Findings) == 0 {
		b.whole = append(b.whole, history.Finding{RuleID: "HISTORY", Message: "the audit did not succeed"})
	}
	if n := len(b.whole); n > maxWhole {
		b.whole = append(slices.Clip(b.whole[:maxWhole]), history.Finding{RuleID: b.whole[maxWhole].RuleID, Message: fmt.Sprintf("and %d more: countersign audit lists them", n-maxWhole)})
	}
}

// ok reports whether nothing was found.
func (b *build) ok() bool { return b.result.OK && b.unsound() == 0 && len(b.whole) == 0 }

// unsound is how many records have a finding.
func (b *build) unsound() (n int) {
	for _, s := range b.summaries {
		if !s.Sound() {
			n++
		}
	}
	return n
}

// count is how many findings there are: the audit's, or at least one for each record that has one.
func (b *build) count() int { return max(b.result.Count, b.unsound(), min(1, len(b.whole))) }

// unverified is the error of what was found, nil for nothing.
func (b *build) unverified() error {
	newer := b.result.Undecidable()
	switch {
	case newer != nil:
		return fmt.Errorf("%s: %w", b.Ref, newer)
	case b.ok() && b.result.Pages.OK:
		return nil
	case b.ok():
		return console.PagesDiffer(b.Ref, ledger.Plural(b.result.Pages.Count, "finding", "findings"))
	}
	return &console.ExitError{Code: console.ExitFailed, Err: fmt.Errorf("%s does not verify: %s, which the pages and countersign audit tell", b.Ref, ledger.Plural(b.count(), "finding", "findings"))}
}

// perTree is how many transactions are read from one tree, which keeps the directories that it has
// read.
const perTree = 500

// files are the ledger's files.
func (b *build) files() (fs.FS, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.served++; b.tree == nil || b.served%perTree == 0 {
		snap, err := b.Ledger.At(context.Background(), b.tip)
		if err != nil {
			return nil, err
		}
		b.tree = snap.Tree
	}
	return b.tree, nil
}

// read reads a transaction, with all that was found against it.
func (b *build) read(id string) (html.Transaction, error) {
	tree, err := b.files()
	if err != nil {
		return html.Transaction{}, err
	}
	t, err := b.reader.Read(tree, id)
	if err != nil {
		return t, err
	}
	return t.With(b.whole...).With(b.of[id]...), nil
}

// page makes a transaction's page. has reports whether there is a page of a path, patch or commit.
func (b *build) page(id string, has func(address string) bool) ([]byte, error) {
	t, err := b.read(id)
	if err != nil {
		return nil, err
	}
	decide := ""
	if b.decides(t.Summary) {
		decide = site.DecideAddress + "#" + id
	}
	page, masked := html.WritePage(t, html.Options{
		Root: "../", Decide: decide, Nav: b.nav(), Redact: b.redact, LedgerRef: b.Ref, LedgerCommit: b.commits[t.ID], Elsewhere: b.Elsewhere, Links: b.Links,
		Person: site.Person, Path: site.Path, Has: has,
	}, b.masks, b.read)
	if masked {
		b.masked.Store(true)
	}
	return page, nil
}

func (b *build) nav() []html.Link { return site.Nav(b.name(), b.verifies()) }

// name is the repository's, as its forge has it, "" where that is not known.
func (b *build) name() string {
	at, err := url.Parse(b.Links.Web)
	if err != nil {
		return ""
	}
	return strings.Trim(at.Path, "/")
}

// site is everything but the transactions' own pages.
func (b *build) site() *site.Site {
	return site.New(slices.Collect(maps.Values(b.summaries)), site.Options{Now: b.Now(), Due: b.Due, Name: b.name(), Ref: b.Ref, Tip: b.tip, Links: b.Links, Nav: b.nav(), Found: b.whole, Differ: b.result.Pages.Count, Exceptions: b.exceptions, Untold: b.untold})
}

// writeAll audits the ledger and writes every page.
func (b *build) writeAll(ctx context.Context, dir *dir, h *gitstore.History) error {
	if err := b.audit(ctx, h); err != nil {
		return err
	}
	s := b.site()
	err := parallel.Try(cores(), len(b.ids), func(i int) error {
		text, err := b.page(b.ids[i], s.Has)
		if err != nil {
			return err
		}
		return dir.write(site.Transaction(b.ids[i]), text)
	})
	if err != nil {
		return err
	}
	b.tree = nil // all was read
	if err := errors.Join(b.writeVerifier(dir), b.writeDecide(dir)); err != nil {
		return err
	}
	addresses := slices.Sorted(slices.Values(s.Addresses()))
	return parallel.Try(cores(), len(addresses), func(i int) error {
		b.Progress("lists", i, len(addresses))
		text, _ := s.File(addresses[i])
		return dir.write(addresses[i], text)
	})
}
