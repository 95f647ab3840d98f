package decide

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/terminal"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/report"
)

// DecideHere shows a transaction to the person at the terminal, asks, and records the
// answer. The answer is about what was shown: where that is something else by then,
// nothing is recorded, and it is shown again. Find is asked each time which transaction
// is meant. Without an answer, which is not answered, nothing is recorded; nor where there
// is nothing to decide, whatever there is by the time that it would be recorded.
func DecideHere(ctx context.Context, s *session.Session, find func() (string, error), ruling pipeline.Ruling, sign signFunc, person io.Writer) (g pipeline.Judgement, answered bool, err error) {
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
			about, refused, err = Countable(ctx, r, g, about, ruling)
		}
		if len(about) == 0 && err == nil {
			err = pipeline.Undecided(strings.Join(refused, "; "))
		}
		if err != nil {
			return g, false, err
		}
		answer, err := ask(ctx, s, g, asking{about, refused, sign != nil}, ruling, person)
		if answer == nil || err != nil {
			return g, false, err
		}
		if answer.Signature, err = sign.of(g, *answer); err != nil {
			return g, false, err
		}
		if now, err := find(); err == nil && now == id {
			g, err = r.Decide(ctx, id, *answer)
			if !errors.As(err, new(*pipeline.ChangedError)) {
				return g, true, err
			}
		}
		s.Say("it has changed since you were shown it, so nothing was recorded; this is how it is now")
	}
}

// An asking is what a person is asked about, why not about the rest, and whether they sign.
type asking struct {
	about   []approval.Request
	refused []string
	signs   bool
}

// ask shows a transaction and asks about what it can decide: a denial once, approvals by their kinds.
// It returns the person's ruling on what was shown, nil for no answer. What was typed before
// a question is no answer to it (T70): where that cannot be told apart, nobody is asked.
func ask(ctx context.Context, a *session.Session, g pipeline.Judgement, what asking, ruling pipeline.Ruling, person io.Writer) (*pipeline.Ruling, error) {
	basis := g.Basis()
	ruling.Basis = &basis
	kinds := kindsOf(what.about)
	if len(kinds) == 0 {
		return nil, pipeline.Undecided("there is nothing to decide here")
	}
	p, err := prompt(ctx, a, g, person)
	if err != nil {
		return nil, err
	}
	p.NotAsked, p.Signs, p.First = what.refused, what.signs, !what.signs && a.FirstTime("local-decision")
	s := report.Style{Colour: a.Colours(person)}
	diff, err := g.Diff()
	if err != nil {
		return nil, err
	}
	page := a.RedactDiff(diff).Show(func(diff string) string { return p.Page([]byte(diff), s) })
	look := func() error {
		seen, err := a.Page(a.Repo.Config, person, page)
		return errors.Join(err, console.Emit(person, a.Redact(p.Standing()+report.Seen(seen, strings.Count(page.String(), "\n")))))
	}
	if err := look(); err != nil {
		return nil, err
	}
	switch {
	case ruling.Decision == ledger.Deny:
		kinds = []string{""}
	case ruling.All:
		kinds = []string{strings.Join(kinds, " ")}
	}
	var yes []string
	for i := 0; i < len(kinds); {
		answer, err := a.Answer(person, p.Question(strings.Fields(kinds[i]), s))
		switch {
		case errors.Is(err, io.EOF): // the terminal is gone, or closed: no answer to anything
			return nil, nil
		case err != nil:
			return nil, err
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			if ruling.Decision == ledger.Deny {
				return deniesFor(a.Console, person, ruling)
			}
			yes = append(yes, kinds[i])
			i++
		case "d", "deny":
			return deniesFor(a.Console, person, ruling)
		case "", "n", "no":
			i++
		case "l", "look":
			if err := look(); err != nil {
				return nil, err
			}
		}
	}
	if len(yes) == 0 {
		return nil, nil
	}
	ruling.All, ruling.Fingerprints = false, nil
	for _, kind := range strings.Fields(strings.Join(yes, " ")) {
		ruling.Fingerprints = append(ruling.Fingerprints, policy.Fingerprint(kind, basis.PatchID))
	}
	return &ruling, nil
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
	return &pipeline.Ruling{Decision: ledger.Deny, Reason: ruling.Reason, Kind: ruling.Kind, Basis: ruling.Basis, Fingerprints: denied(ruling)}, nil
}

// denied are what a denial names: as given where it was asked for as such, else all of the patch.
func denied(ruling pipeline.Ruling) []string {
	if ruling.Decision == ledger.Deny {
		return ruling.Fingerprints
	}
	return nil
}

// Countable are those on which the person's ruling would count, and why it would not on
// the others: nobody is asked for what is then refused.
func Countable(ctx context.Context, r *pipeline.Runner, g pipeline.Judgement, about []approval.Request, ruling pipeline.Ruling) (counts []approval.Request, refused []string, err error) {
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

// kindsOf are the kinds of what is asked about, each once.
func kindsOf(about []approval.Request) []string {
	var kinds []string
	for _, q := range about {
		if !slices.Contains(kinds, q.Kind) {
			kinds = append(kinds, q.Kind)
		}
	}
	return kinds
}

// prompt is what the person is shown of a transaction, without secrets.
func prompt(ctx context.Context, s *session.Session, g pipeline.Judgement, person io.Writer) (report.Prompt, error) {
	rep, err := s.Report(ctx, g)
	if err == nil {
		rep, err = s.CleanReport(rep)
	}
	p := report.Prompt{Report: rep, Decider: s.Runner.Decider}
	if err == nil {
		p.Commands, err = g.Commands()
	}
	p.Columns, p.Rows = terminal.Size(person)
	p.Protected = plain.Explain(g.Policy(), g.Transaction().Pointers.Proposal.TargetFiles)
	return p, err
}
