// Package online asks a forge again about what a ledger says of it: whether the comments
// and reviews that decided are there as they were, whose accounts these are, which check
// runs there are, what became of pull requests, and what the default branch demands
// (docs/online.md). It goes from what is recorded and what a forge.Auditor answers to
// findings; it has no clock and keeps no file.
//
// What the forge does not tell is Unknown, never the Same: an error, half of an answer,
// a request that may not be sent. A run is bounded by its caller, and what it has heard
// goes to the next one.
package online

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Verdict says how what the forge tells now compares with the record.
type Verdict string

// The verdicts, the worst first.
const (
	Gone    Verdict = "gone"    // the forge surely does not have it
	Changed Verdict = "changed" // the forge tells something else
	Unknown Verdict = "unknown" // the forge does not tell
	Note    Verdict = "note"    // something is different now, and contradicts nothing
	Same    Verdict = "same"
)

// Verdicts are all of them, the worst first.
var Verdicts = []Verdict{Gone, Changed, Unknown, Note, Same}

// What a finding is about.
const (
	WhatComment    = "comment"
	WhatReview     = "review"
	WhatRequest    = "request" // the program's own comment that was answered
	WhatAccount    = "account"
	WhatPermission = "permission"
	WhatPull       = "pull request"
	WhatDenied     = "denied pull request" // whose own diff was denied
	WhatCheckRun   = "check run"
	WhatRequired   = "required check"
	WhatLedger     = "ledger"
)

// A Finding is one thing that was compared. TransactionID is "" of what is about the
// repository. Recorded and Now are in words, or names, numbers and hashes; Reason says
// more, and why something is unknown. AskedAt is of the answer (RFC 3339), "" of none.
type Finding struct {
	TransactionID string  `json:"transaction_id"`
	What          string  `json:"what"`
	About         string  `json:"about"`
	Recorded      string  `json:"recorded"`
	Now           string  `json:"now"`
	Verdict       Verdict `json:"verdict"`
	Reason        string  `json:"reason"`
	AskedAt       string  `json:"asked_at"`
}

// Options are what a Run is given.
type Options struct {
	Ledger fs.FS // of the tip, which verifies
	Tip    string
	Forge  forge.Auditor
	Now    time.Time
	// Kept is what a former run left, nil for nothing. An answer in it counts for MaxAge;
	// what is damaged, or of another repository, is as if it were not there.
	Kept   []byte
	MaxAge time.Duration
	// CheckName is the name of the check run of a patch, Gate that of the check that
	// guards pull requests.
	CheckName func(patchID string) string
	Gate      string
	// Found are findings that the caller made, such as those about the ledger's ref.
	Found []Finding
	// Progress, which may be nil, is told how many questions are answered.
	Progress func(done, total int)
}

// A Result is what came of a run. Findings are sorted, the worst first, at most
// MaxFindings; Counts counts all, by each verdict. Remaining is how many questions were not
// answered yet, in this run or a former one, and Stopped why the run ended before them.
type Result struct {
	Repository string          `json:"repository"` // OWNER/NAME as the forge has it now, "" if it could not be asked
	Questions  int             `json:"questions"`
	Asked      int             `json:"asked"`
	Reused     int             `json:"reused"` // answers of a former run
	Remaining  int             `json:"remaining"`
	Stopped    string          `json:"stopped"`
	Counts     map[Verdict]int `json:"counts"`
	Findings   []Finding       `json:"findings"`
}

// MaxFindings is how many findings a Result holds.
const MaxFindings = 10_000

// Bad is how many findings contradict the record.
func (r Result) Bad() int { return r.Counts[Gone] + r.Counts[Changed] }

// Open is how many findings and questions it is not known about.
func (r Result) Open() int { return r.Counts[Unknown] + r.Remaining }

// maxFailed is how many questions in a row may fail other than by a no before a run ends:
// each of them was tried for seconds.
const maxFailed = 10

// Run asks what there is to ask, and returns what to keep for the next run, nil if
// nothing was heard. The error is that of reading the ledger, or the context's; then
// there is something to keep as well.
func Run(ctx context.Context, o Options) (Result, []byte, error) {
	recorded, err := read(o.Ledger)
	if err != nil {
		return Result{}, nil, err
	}
	return recorded.run(ctx, o)
}

func (recorded *recorded) run(ctx context.Context, o Options) (Result, []byte, error) {
	r := Result{Counts: map[Verdict]int{}, Findings: slices.Clone(o.Found)}
	a := &asker{Auditor: o.Forge, ends: map[int]forge.End{}}
	var err error
	a.at, err = o.Forge.DefaultBranch(ctx)
	if err == nil && (a.at.Repository == nil || a.at.Repository.ID == "" || a.at.Branch == "") {
		err = errors.New("the forge does not tell the repository's number, or its default branch")
	}
	if ctx.Err() != nil {
		return r, nil, ctx.Err()
	}
	if err != nil { // a repository that cannot be read says nothing of what it has
		questions := recorded.questions(o, forge.Side{})
		r.Questions = len(questions)
		for _, q := range questions {
			r.add(unknown(q.findings, fmt.Errorf("the repository cannot be read: %w", err)))
		}
		r.finish()
		return r, nil, nil
	}
	r.Repository = a.at.Repository.Name
	questions := recorded.questions(o, a.at)
	r.Questions = len(questions)
	a.pullNumbers = recorded.pullNumbers(a.at.Repository.ID)
	answers, before := map[string]answer{}, readKept(o, a.at)
	for _, q := range questions {
		if known, ok := before[q.key]; ok && known.answers(q) {
			answers[q.key] = known
		}
	}
	err = a.askAll(ctx, o, questions, answers, &r)
	for _, q := range questions {
		if known := answers[q.key]; known.counts {
			r.add(known.Findings)
			continue
		}
		r.Remaining++
	}
	r.finish()
	kept, keptErr := writeKept(a.at, answers)
	return r, kept, errors.Join(err, keptErr)
}

// askAll asks the questions that have no answer, then those whose answer is too old, then
// those whose answer was not the Same, each the oldest first, and puts what it hears among
// the answers. It ends where no more can be asked.
func (a *asker) askAll(ctx context.Context, o Options, questions []*question, answers map[string]answer, r *Result) error {
	order := slices.Clone(questions)
	slices.SortStableFunc(order, func(x, y *question) int {
		return cmp.Compare(answers[x.key].AskedAt, answers[y.key].AskedAt) // "" of none
	})
	failed := 0
	for _, q := range order {
		known := answers[q.key]
		if known.counts && !slices.ContainsFunc(known.Findings, worse) {
			r.Reused++
			continue
		}
		if failed == maxFailed && r.Stopped == "" {
			r.Stopped = fmt.Sprintf("%d questions in a row failed", maxFailed)
		}
		if r.Stopped != "" {
			if known.counts {
				r.Reused++
			}
			continue
		}
		if o.Progress != nil {
			o.Progress(r.Asked+r.Reused, len(order))
		}
		findings, err := q.answer(ctx, a)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, forge.ErrSpent) && r.Asked > 0:
			r.Stopped = ledger.OneLine(err.Error(), 300)
			if known.counts {
				r.Reused++
			}
			continue
		case errors.Is(err, forge.ErrSpent): // it would be in the way of all others for ever
			r.Stopped = ledger.OneLine(err.Error(), 300)
		case answered(err):
			failed = 0
		default:
			failed++
		}
		at := o.Now.UTC().Format(time.RFC3339)
		for i := range findings {
			findings[i].AskedAt = at
		}
		answers[q.key] = answer{Key: q.key, AskedAt: at, Tip: o.Tip, Findings: findings, counts: true}
		r.Asked++
	}
	return nil
}

// answered reports whether the forge gave an answer, be it a no.
func answered(err error) bool {
	return err == nil || errors.Is(err, errUntold) || errors.Is(err, forge.ErrPermission) || errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrRefused)
}

// worse reports whether a finding is worth asking about again.
func worse(f Finding) bool { return f.Verdict != Same && f.Verdict != Note }

func (r *Result) add(findings []Finding) { r.Findings = append(r.Findings, findings...) }

// finish counts and sorts.
func (r *Result) finish() {
	for _, v := range Verdicts {
		r.Counts[v] = 0
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if !slices.Contains(Verdicts, f.Verdict) {
			f.Verdict, f.Reason = Unknown, "there is no verdict"
		}
		r.Counts[f.Verdict]++
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(Verdicts, a.Verdict), slices.Index(Verdicts, b.Verdict)),
			strings.Compare(a.TransactionID, b.TransactionID), strings.Compare(a.What, b.What), strings.Compare(a.About, b.About))
	})
	r.Findings = append([]Finding{}, r.Findings[:min(len(r.Findings), MaxFindings)]...)
}

// unknown is findings without an answer, for a reason.
func unknown(findings []Finding, why error) []Finding {
	out := slices.Clone(findings)
	for i := range out {
		if out[i].Verdict == "" {
			out[i].Verdict, out[i].Reason = Unknown, ledger.OneLine(why.Error(), 300)
		}
	}
	return out
}
