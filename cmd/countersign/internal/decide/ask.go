package decide

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/view"
)

// decideHere shows a transaction to the person at the terminal, asks, and records the
// answer. The answer is about what was shown: where that is something else by then,
// nothing is recorded, and it is shown again. Find is asked each time which transaction
// is meant. Without an answer, which is not answered, nothing is recorded; nor where there
// is nothing to decide, whatever there is by the time that it would be recorded.
// If the person takes a part of it, that is proposed in its place, shown, and asked about.
func decideHere(ctx context.Context, s *session.Session, find func() (string, error), ruling pipeline.Ruling, sign signFunc, person io.Writer) (g pipeline.Judgement, answered bool, err error) {
	r := s.Runner
	for {
		id, err := find()
		if err != nil {
			return g, false, err
		}
		if g, err = r.Judge(ctx, id); err != nil {
			return g, false, err
		}
		about, err := r.Asks(g, ruling)
		if len(about) == 0 || err != nil {
			return g, err == nil, err
		}
		var refused []string
		if sign == nil { // a signature may be what it takes
			about, refused, err = countable(ctx, r, g, about, ruling)
		}
		if len(about) == 0 && err == nil {
			err = pipeline.Undecided(strings.Join(refused, "; "))
		}
		if err != nil {
			return g, false, err
		}
		answer, take, err := ask(ctx, s, g, asking{about: about, refused: refused, signs: sign != nil}, ruling, person)
		if take != nil {
			done, err := review.Part(ctx, r, id, take)
			s.Learn(done.Learnt)
			if err != nil {
				return g, false, err
			}
			s = s.With(r.With(done.Learnt))
			r, find = s.Runner, func() (string, error) { return done.ID, nil }
			s.Say("%s takes the place of %s: this is all that it has", done.ID, id)
			continue
		}
		if answer == nil || err != nil {
			return g, false, err
		}
		if answer.Signature, err = sign.of(g, *answer); err != nil {
			return g, false, err
		}
		if now, err := find(); err == nil && now == id {
			g, err = r.Decide(ctx, id, *answer)
			if !errors.Is(err, pipeline.ErrChanged) {
				return g, true, err
			}
		}
		s.Say("it has changed since you were shown it, so nothing was recorded; this is how it is now")
	}
}

// An asking is what a person is asked about, why not about the rest, whether they sign, and whether they can take the whole alone.
type asking struct {
	about   []approval.Request
	refused []string
	signs   bool
	whole   bool
}

// ask shows a transaction and asks about what it can decide: a denial once, approvals by their kinds.
// It returns the person's ruling on what was shown, or which pieces of it they take instead, nil for no answer. What was typed before
// a question is no answer to it (T70): where that cannot be told apart, nobody is asked.
func ask(
	ctx context.Context, a *session.Session, g pipeline.Judgement, what asking, ruling pipeline.Ruling, person io.Writer,
) (_ *pipeline.Ruling, take []bool, err error) {
	basis := g.Basis()
	ruling.Basis = &basis
	kinds := view.Distinct(what.about, func(q approval.Request) string { return q.Kind })
	if len(kinds) == 0 {
		return nil, nil, pipeline.Undecided("there is nothing to decide here")
	}
	p, err := prompt(ctx, a, g, person)
	if err != nil {
		return nil, nil, err
	}
	var pieces []review.Piece
	if ruling.Decision == ledger.Approve && !what.whole {
		if _, pieces, err = review.Divided(ctx, g); err != nil {
			return nil, nil, err
		}
	}
	p.Parts = len(pieces) > 0
	p.NotAsked, p.Signs, p.First = what.refused, what.signs, !what.signs && a.FirstTime("local-decision")
	s := report.Style{Colour: a.Colours(person)}
	diff, err := g.Diff()
	if err != nil {
		return nil, nil, err
	}
	page := a.RedactDiff(diff).Show(func(diff string) string { return p.Page([]byte(diff), s) })
	look := func() error {
		seen, err := a.Page(a.Repo.Config, person, page)
		return errors.Join(err, console.Emit(person, a.Redact(p.Standing()+report.Seen(seen, strings.Count(page.String(), "\n")))))
	}
	if err := look(); err != nil {
		return nil, nil, err
	}
	switch {
	case ruling.Decision == ledger.Deny:
		kinds = []string{""}
	case ruling.All:
		kinds = []string{strings.Join(kinds, " ")}
	}
	var yes []string
	for i := 0; i < len(kinds); {
		answer, err := answer(a, person, p.Question(strings.Fields(kinds[i]), s))
		switch {
		case errors.Is(err, io.EOF): // the terminal is gone, or closed: no answer to anything
			return nil, nil, nil
		case err != nil:
			return nil, nil, err
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			if ruling.Decision == ledger.Deny {
				denial, err := deniesFor(a.Console, person, ruling)
				return denial, nil, err
			}
			yes = append(yes, kinds[i])
			i++
		case "d", "deny":
			denial, err := deniesFor(a.Console, person, ruling)
			return denial, nil, err
		case "p", "part":
			if !p.Parts {
				continue
			}
			if take, err := choose(a, p, pieces, s, person); take != nil || err != nil {
				return nil, take, err
			}
		case "", "n", "no":
			i++
		case "l", "look":
			if err := look(); err != nil {
				return nil, nil, err
			}
		}
	}
	return approved(ruling, strings.Fields(strings.Join(yes, " ")), basis.PatchID), nil, nil
}

// answer asks the person a question, which in a queue a single key answers.
func answer(a *session.Session, person io.Writer, question string) (string, error) {
	if a.OneKey {
		return a.Key(person, question)
	}
	return a.Answer(person, question)
}

// approved is the ruling that approves of these kinds and no others, nil of none.
func approved(ruling pipeline.Ruling, kinds []string, patchID string) *pipeline.Ruling {
	ruling.All, ruling.Fingerprints = false, nil
	for _, kind := range kinds {
		ruling.Fingerprints = append(ruling.Fingerprints, policy.Fingerprint(kind, patchID))
	}
	if len(kinds) == 0 {
		return nil
	}
	return &ruling
}

// choose shows the pieces of a patch one after the other, and returns which of them the person takes: nil for none, for all, or for no
// answer, which decides nothing.
func choose(a *session.Session, p report.Prompt, pieces []review.Piece, s report.Style, person io.Writer) (take []bool, err error) {
	take = make([]bool, len(pieces))
	n := 0
	for i := 0; i < len(pieces); {
		shown := a.RedactDiff(pieces[i].Alone().Bytes()).Show(func(diff string) string { return report.Fold(report.Diff([]byte(diff), s), p.Columns) })
		if err := console.Emit(person, shown); err != nil {
			return nil, err
		}
		answer, err := a.Answer(person, report.TakePiece(i+1, len(pieces)))
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		last := i + pieces[i].Hunks - pieces[i].Hunk + 1 // behind the file's
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			last = i + 1
			take[i], n = true, n+1
		case "n", "no":
			last = i + 1
		case "a", "all":
			for ; i < last; i++ {
				take[i], n = true, n+1
			}
		case "d":
		case "q", "quit":
			return nil, nil
		default:
			continue
		}
		i = last
	}
	if n == 0 || n == len(pieces) {
		return nil, console.Emit(person, a.Redact(report.NoPart(n)))
	}
	answer, err := a.Answer(person, report.ProposePart(n, len(pieces)))
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil || word != "y" && word != "yes" {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return nil, err
	}
	return take, nil
}

// deniesFor is a ruling as a denial of the whole patch, with the reason that the person is asked for
// where none was given: nil without one.
func deniesFor(c *console.Console, person io.Writer, ruling pipeline.Ruling) (*pipeline.Ruling, error) {
	if ruling.Reason == "" {
		why, err := c.Answer(person, report.WhyDeny)
		if ruling.Reason = strings.TrimSpace(why); ruling.Reason == "" || err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return nil, err
		}
	}
	var named []string // as given where a denial was asked for as such, else all of the patch
	if ruling.Decision == ledger.Deny {
		named = ruling.Fingerprints
	}
	return &pipeline.Ruling{Decision: ledger.Deny, Reason: ruling.Reason, Kind: ruling.Kind, Basis: ruling.Basis, Fingerprints: named}, nil
}

// countable are those on which the person's ruling would count, and why it would not on
// the others: nobody is asked for what is then refused.
func countable(ctx context.Context, r *pipeline.Runner, g pipeline.Judgement, about []approval.Request, ruling pipeline.Ruling) (counts []approval.Request, refused []string, err error) {
	for _, one := range about {
		why, err := r.WhyNot(ctx, g, one, ruling)
		switch {
		case err != nil:
			return nil, nil, err
		case why != "":
			refused = append(refused, why)
		default:
			counts = append(counts, one)
		}
	}
	return counts, refused, nil
}

// prompt is what the person is shown of a transaction, without secrets.
func prompt(ctx context.Context, s *session.Session, g pipeline.Judgement, person io.Writer) (report.Prompt, error) {
	rep, err := s.Report(ctx, g)
	if err == nil {
		_, rep, err = console.Cleanly(s.Console, rep)
	}
	p := report.Prompt{Report: rep, Decider: s.Runner.Decider}
	if err == nil {
		p.Commands, err = g.Commands()
	}
	p.Columns, p.Rows = console.Size(person)
	p.Protected = risk.Explain(g.Policy(), g.Transaction().Pointers.Proposal.TargetFiles)
	return p, err
}

// AskPerson asks the person at the terminal, where there is one, about what the gate
// waits for and they can decide on. It returns the transaction that they were shown last.
func AskPerson(ctx context.Context, s *session.Session, g pipeline.Judgement, find func() (string, error)) (pipeline.Judgement, error) {
	r, person := s.Runner, s.Person()
	if person == nil || g.Transaction().Closed || !errors.As(g.Err(), new(*pipeline.PendingError)) {
		return g, nil
	}
	defer person.Close()
	if r.Decider.ID == "" {
		s.Say("not asked: %s; hint: %s", pipeline.ErrNobody, s.Typed(console.HintOf(pipeline.ErrNobody), g.Transaction().TransactionID))
		return g, nil
	}
	ruling := pipeline.Ruling{Decision: ledger.Approve, Kind: "local"}
	about, err := r.Asks(g, ruling)
	if err != nil {
		return g, nil // a decision that cannot be taken here, as where the Policy has none
	}
	about, refused, err := countable(ctx, r, g, about, ruling)
	if err != nil {
		return g, err
	}
	if len(about) == 0 {
		for _, why := range refused {
			s.Say("not asked: %s", why)
		}
		return g, nil
	}
	decided, _, err := decideHere(ctx, s, find, ruling, nil, person)
	if errors.Is(err, console.ErrNotAsked) {
		return g, nil
	}
	sayUncounted(s.Console, decided)
	return decided, err
}
