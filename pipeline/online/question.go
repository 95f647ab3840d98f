package online

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A question is asked as a whole or not at all. Its findings have everything but what
// the forge tells; ask fills that in. The key is a hash of all that is recorded about it:
// once something else is recorded, another question is asked.
type question struct {
	key      string
	findings []Finding
	ask      func(ctx context.Context, a *asker, to []Finding) error
}

// answer asks. A finding that ask left without a verdict is unknown, for the reason that
// ask failed.
func (q *question) answer(ctx context.Context, a *asker) ([]Finding, error) {
	to := append([]Finding{}, q.findings...)
	err := q.ask(ctx, a, to)
	why := err
	if why == nil {
		why = untold("the forge did not tell")
	}
	return unknown(to, why), err
}

// of leaves a question unasked that is about another repository than the one that is asked.
func (q *question) of(in place, here *ledger.Repository) *question {
	if here == nil || in.Repository != here.ID {
		q.ask = func(context.Context, *asker, []Finding) error {
			return untold("it is recorded of repository %q (%s), and another one was asked", in.Repository, in.Name)
		}
	}
	return q
}

// questions are all there are, the newest first; those about the repository come before.
// Of a forge that cannot be asked at is the zero Side.
func (r *recorded) questions(o Options, at forge.Side) []*question {
	out := []*question{r.required(o, at.Branch)}
	add := func(in place, q *question, of any) {
		q.key = keyOf(q.findings, of)
		out = append(out, q.of(in, at.Repository))
	}
	for _, t := range r.talks() {
		q := &question{ask: func(ctx context.Context, a *asker, to []Finding) error { return a.statements(ctx, t, to) }}
		for _, s := range t.Said {
			q.findings = append(q.findings, s.finding())
		}
		for _, one := range t.Threads {
			q.findings = append(q.findings, Finding{
				TransactionID: one.Transaction, What: WhatRequest, About: fmt.Sprintf("comment %s on %s", one.Posted.ID, one.words()), Recorded: one.Posted.BodySHA256,
			})
		}
		add(t.Said[0].place, q, t)
	}
	for _, who := range r.accounts() {
		name := fmt.Sprintf("%s, account %s", who.Who.Login, who.Who.ID)
		add(place{Repository: who.Repository, Name: who.Name}, &question{
			findings: []Finding{
				{TransactionID: who.Transaction, What: WhatAccount, About: name, Recorded: who.Who.Login},
				{TransactionID: who.Transaction, What: WhatPermission, About: name, Recorded: who.Permission},
			},
			ask: func(ctx context.Context, a *asker, to []Finding) error { return a.account(ctx, who, to) },
		}, who)
	}
	for _, m := range r.merged {
		add(m.place, &question{
			findings: []Finding{{TransactionID: m.Transaction, What: WhatPull, About: m.words(), Recorded: "merged at " + m.Head}},
			ask:      func(ctx context.Context, a *asker, to []Finding) error { return a.end(ctx, m.place, m.compare, &to[0]) },
		}, m)
	}
	for _, d := range r.denied {
		add(d.place, d.question(), d)
	}
	for _, c := range r.checks {
		name := o.CheckName(c.PatchID)
		add(c.place, &question{
			findings: []Finding{{TransactionID: c.Transaction, What: WhatCheckRun, About: fmt.Sprintf("%s on %.12s", name, c.Head), Recorded: success}},
			ask:      func(ctx context.Context, a *asker, to []Finding) error { return a.check(ctx, c, name, &to[0]) },
		}, []any{c, name})
	}
	return out
}

// required is the question what the default branch demands.
func (r *recorded) required(o Options, branch string) *question {
	f := Finding{TransactionID: r.guarded, What: WhatRequired, About: o.Gate, Recorded: "no pull request of its own is recorded"}
	if r.guarded != "" {
		f.Recorded = "pull requests are guarded"
	}
	q := &question{findings: []Finding{f}, ask: func(ctx context.Context, a *asker, to []Finding) error {
		return a.required(ctx, r, branch, o.Gate, &to[0])
	}}
	q.key = keyOf(q.findings, []any{branch, r.gate, r.program})
	return q
}

// keyOf hashes what is recorded.
func keyOf(findings []Finding, of any) string {
	line, err := canon.Line([]any{keptSchema, findings, of})
	if err != nil {
		panic("online: a record without canonical JSON: " + err.Error())
	}
	return canon.Hex(line)
}

func (s statement) finding() Finding {
	what := WhatComment
	if s.Source.Kind == kindReview {
		what = WhatReview
	}
	return Finding{
		TransactionID: s.Transaction, What: what, About: fmt.Sprintf("%s %s on %s, by %s", strings.ReplaceAll(s.Source.Kind, "_", " "), s.Source.ID, s.words(), s.Source.Author.Login),
		Recorded: fmt.Sprintf("%s %s", s.Decision, cmp.Or(s.BodyHash, s.Source.BodySHA256)),
	}
}

const keptSchema = "countersign/online/1"

// A kept is what one run leaves for the next, as canonical JSON.
type kept struct {
	Schema     string   `json:"schema"`
	Address    string   `json:"address"`    // to clone the repository from
	Repository string   `json:"repository"` // its number
	Answers    []answer `json:"answers"`
}

// An answer is what a question came to. Tip is the ledger's when it was asked.
type answer struct {
	Key      string    `json:"key"`
	AskedAt  string    `json:"asked_at"` // RFC 3339, in UTC
	Tip      string    `json:"tip"`
	Findings []Finding `json:"findings"`

	counts bool // it is not too old
}

// readKept returns the answers of former runs by their key, also those that are too old
// to count. Nothing of a file counts that is damaged, whichever part of it is.
func readKept(o Options, at forge.Side) map[string]answer {
	out := map[string]answer{}
	var doc kept
	if len(o.Kept) == 0 || canon.Unmarshal(o.Kept, &doc) != nil || doc.Schema != keptSchema || doc.Address != at.CloneURL || doc.Repository != at.Repository.ID {
		return out
	}
	for _, a := range doc.Answers {
		at, err := time.Parse(time.RFC3339, a.AskedAt)
		_, twice := out[a.Key]
		if err != nil || at.UTC().Format(time.RFC3339) != a.AskedAt || at.After(o.Now) || twice || !a.whole() {
			return map[string]answer{}
		}
		a.counts = o.Now.Sub(at) < o.MaxAge
		out[a.Key] = a
	}
	return out
}

// whole reports whether every finding has a verdict and the answer's time.
func (a answer) whole() bool {
	return !slices.ContainsFunc(a.Findings, func(f Finding) bool {
		return !slices.Contains(Verdicts, f.Verdict) || f.AskedAt != a.AskedAt
	})
}

// answers reports whether an answer is one to a question: it is about the same things, in
// the same words.
func (a answer) answers(q *question) bool {
	return slices.EqualFunc(a.Findings, q.findings, func(f, asked Finding) bool {
		return f.TransactionID == asked.TransactionID && f.What == asked.What && f.About == asked.About && f.Recorded == asked.Recorded
	})
}

// writeKept is the file of the answers there are.
func writeKept(at forge.Side, answers map[string]answer) ([]byte, error) {
	doc := kept{Schema: keptSchema, Address: at.CloneURL, Repository: at.Repository.ID, Answers: []answer{}}
	for _, key := range slices.Sorted(maps.Keys(answers)) {
		doc.Answers = append(doc.Answers, answers[key])
	}
	return canon.Line(doc)
}
