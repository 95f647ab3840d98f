package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

const mergedSchema = "countersign/merged/1"

// maxMerged is how many bytes of a file are read.
const maxMerged = 256 << 20

// MergedPulls are the merged pull requests of a repository, of which Repository is the address that people see, as a
// forge told them: each was read once, and is kept in a file, so that asking goes on where it stopped. What a file
// says is as good as the file: it is not signed, and nothing is approved by it.
type MergedPulls struct {
	Schema     string       `json:"schema"`
	Repository string       `json:"repository"`
	Pulls      []MergedPull `json:"pulls"` // by number, ascending
}

// A MergedPull is a merged pull request as it was read at a time. Access has, by the id of
// the account, what those who approved it were allowed to do at that time.
type MergedPull struct {
	MergedAt    string                     `json:"merged_at"` // RFC 3339
	ReadAt      string                     `json:"read_at"`
	PullRequest forge.PullRequest          `json:"pull_request"`
	Statements  []approval.Statement       `json:"statements"`
	Access      map[string]approval.Access `json:"access"`
}

// loadMerged reads a file, which may not be there yet.
func loadMerged(name, repository string) (*MergedPulls, error) {
	f := &MergedPulls{Schema: mergedSchema, Repository: repository}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil && info.Size() > maxMerged {
		err = fmt.Errorf("%s: it has more than %d bytes", name, maxMerged)
	}
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if err := decodeMerged(raw, f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if f.Repository != repository {
		return nil, &console.UsageError{
			Message: fmt.Sprintf("%s: it is about %s, and this clone is of %s", name, ledger.OneLine(f.Repository, 200), ledger.OneLine(repository, 200)), Hint: otherCache,
		}
	}
	return f, nil
}

// decodeMerged reads the bytes of a file strictly.
func decodeMerged(raw []byte, f *MergedPulls) error {
	*f = MergedPulls{}
	if err := canon.Unmarshal(raw, f); err != nil {
		return err
	}
	last := 0
	for _, p := range f.Pulls {
		_, err := time.Parse(time.RFC3339, p.MergedAt)
		_, unread := time.Parse(time.RFC3339, p.ReadAt)
		if p.PullRequest.Number <= last || err != nil || unread != nil {
			return fmt.Errorf("pull request %d is not in its place, or has no time at which it was merged or read", p.PullRequest.Number)
		}
		last = p.PullRequest.Number
	}
	if f.Schema != mergedSchema {
		return errors.New("it is of an unknown mergedSchema")
	}
	return nil
}

// otherCache is what to do where the file and the remote do not go together.
const otherCache = "--cache FILE names another file, --remote another remote"

// Save writes a file in the place of the one before, readable by its owner alone: it has
// what people wrote.
func (f *MergedPulls) Save(name string) error {
	line, err := canon.Line(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(name, line)
}

// A mergedClient is what is asked of a forge.
type mergedClient interface {
	forge.Reader
	Merged(ctx context.Context, since time.Time) ([]forge.Merged, error)
}

// leftUnread is what could not be read of pull requests, by number. The error is why no more
// were asked about; nil where all were.
type leftUnread struct {
	Pulls map[int]unreadPull
	Err   error
}

// An unreadPull pull request was merged at a time, and could not be read.
type unreadPull struct {
	At  time.Time
	Err error
}

// batch is how many pull requests are read between two saves.
const batch = 40

// atOnce is how many are read side by side. GitHub asks for few requests at a time (REST
// API, "Best practices").
const atOnce = 4

// Fetch reads the pull requests that were merged since a time and are not in the file, the
// newest first, and saves after some of them. An error of the list is returned; one of a
// pull request is left with it, and what concerns all others as well ends the asking.
func (f *MergedPulls) Fetch(ctx context.Context, c mergedClient, since, now time.Time, save func() error, progress func(done, total int)) (leftUnread, error) {
	left := leftUnread{Pulls: map[int]unreadPull{}}
	all, err := c.Merged(ctx, since)
	if err != nil {
		return left, err
	}
	known := map[int]bool{}
	for _, p := range f.Pulls {
		known[p.PullRequest.Number] = true
	}
	all = slices.DeleteFunc(all, func(m forge.Merged) bool { return known[m.Number] })
	slices.SortFunc(all, func(a, b forge.Merged) int { return b.At.Compare(a.At) })
	var access rest.Memory[ledger.Actor, approval.Access] // each account is asked about once
	for done := 0; done < len(all); {
		some := all[done:min(done+batch, len(all))]
		got, errs := make([]MergedPull, len(some)), make([]error, len(some))
		_ = parallel.Try(atOnce, len(some), func(i int) error {
			got[i], errs[i] = readMerged(ctx, c, &access, some[i], now)
			if errs[i] == nil || !concernsAll(ctx, errs[i]) {
				return nil
			}
			return errs[i]
		})
		for i, m := range some {
			switch {
			case errs[i] != nil:
				left.Pulls[m.Number] = unreadPull{m.At, errs[i]}
				if concernsAll(ctx, errs[i]) && left.Err == nil {
					left.Err = errs[i]
				}
			case got[i].PullRequest.Number == 0: // not asked about any more
				left.Pulls[m.Number] = unreadPull{m.At, errNotAsked}
			default:
				f.Pulls = append(f.Pulls, got[i])
			}
		}
		slices.SortFunc(f.Pulls, func(a, b MergedPull) int { return a.PullRequest.Number - b.PullRequest.Number })
		if err := save(); err != nil {
			return left, err
		}
		done += len(some)
		progress(done, len(all))
		if left.Err != nil {
			for _, m := range all[done:] {
				left.Pulls[m.Number] = unreadPull{m.At, errNotAsked}
			}
			return left, nil
		}
	}
	return left, nil
}

var errNotAsked = errors.New("it was not asked about any more")

// concernsAll reports whether an error would be the same for every pull request.
func concernsAll(ctx context.Context, err error) bool {
	return ctx.Err() != nil || rest.IsKind(err, rest.KindRateLimited, rest.KindAuth, rest.KindPermission, rest.KindNetwork)
}

// readMerged reads one.
func readMerged(ctx context.Context, c mergedClient, known *rest.Memory[ledger.Actor, approval.Access], m forge.Merged, now time.Time) (MergedPull, error) {
	pull, err := c.PullRequest(ctx, m.Number)
	if err == nil && pull.State != forge.PullRequestMerged {
		err = fmt.Errorf("pull request %d is %s, and was listed as merged", m.Number, pull.State)
	}
	if err != nil {
		return MergedPull{}, err
	}
	said, err := c.Statements(ctx, m.Number)
	if err != nil {
		return MergedPull{}, err
	}
	pull.Paths = []string{} // Git tells them
	p := MergedPull{
		MergedAt: m.At.UTC().Format(time.RFC3339), ReadAt: now.UTC().Format(time.RFC3339), PullRequest: pull,
		Statements: []approval.Statement{}, Access: map[string]approval.Access{},
	}
	for _, s := range said {
		if s.Kind != approval.KindReview && !approval.LooksLike(s.Body) && !slices.ContainsFunc(s.Earlier, approval.LooksLike) {
			continue // it decides nothing
		}
		if !approval.LooksLike(s.Body) && !approval.HasMark(s.Body) {
			s.Body = "" // a review says it by its state, and what people wrote is not ours to keep
		}
		s.Earlier = slices.DeleteFunc(s.Earlier, func(text string) bool { return !approval.LooksLike(text) })
		p.Statements = append(p.Statements, s)
		if s.Author.Kind == "user" && s.Author.ID != "" {
			if access, err := known.Get(s.Author, func() (approval.Access, error) { return c.Access(ctx, s.Author) }); err == nil {
				p.Access[s.Author.ID] = access
			} else if concernsAll(ctx, err) && !rest.IsKind(err, rest.KindPermission) { // few tokens may ask that
				return MergedPull{}, err
			}
		}
	}
	return p, nil
}

// Since are the pull requests that were merged at a time or later.
func (f *MergedPulls) Since(at time.Time) []MergedPull {
	return slices.DeleteFunc(slices.Clone(f.Pulls), func(p MergedPull) bool {
		merged, err := time.Parse(time.RFC3339, p.MergedAt)
		return err == nil && merged.Before(at)
	})
}
