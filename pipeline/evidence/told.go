package evidence

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Told is what the forge tells of a change when it is asked; nothing of it is on record. Unknown says in words what it does not
// tell: a list is whole, or empty.
type Told struct {
	AskedAt     string           `json:"asked_at"`
	Checks      []ToldCheck      `json:"checks"`
	Deployments []ToldDeployment `json:"deployments"`
	Unknown     []string         `json:"unknown"`
}

// A ToldCheck is a check of a commit of the change, or of the head that was merged. Conclusion is its status while it runs.
type ToldCheck struct {
	Commit     string `json:"commit"`
	Name       string `json:"name"`
	App        string `json:"app"`
	Conclusion string `json:"conclusion"`
	At         string `json:"at"`
}

// A ToldDeployment is one of the change's own commit.
type ToldDeployment struct {
	Environment string `json:"environment"`
	State       string `json:"state"`
	At          string `json:"at"`
}

// maxTold is how many checks, and how many deployments, are shown of a change. Of more none is.
const maxTold = 200

// Ask asks the forge about a change. The error is that no more requests can be sent, or the context's; the row says in any case
// what is not known.
func (r *Row) Ask(ctx context.Context, of forge.Auditor, now time.Time) error {
	t := &Told{AskedAt: ledger.FormatTime(now), Checks: []ToldCheck{}, Deployments: []ToldDeployment{}, Unknown: []string{}}
	r.Told = t
	return errors.Join(t.checks(ctx, of, r.heads()), t.deployments(ctx, of, r.Commit))
}

// heads are its commit, and what was merged of pull requests.
func (r *Row) heads() []string {
	out := []string{r.Commit}
	for _, rec := range r.Records {
		if rec.head != "" && rec.head != r.Commit {
			out = append(out, rec.head)
		}
	}
	return out
}

func (t *Told) checks(ctx context.Context, of forge.Auditor, commits []string) error {
	var all []ToldCheck
	for _, commit := range commits {
		runs, err := of.CheckRuns(ctx, commit, "")
		if err != nil {
			return t.unknown(ctx, "checks of "+commit, err)
		}
		for _, run := range runs {
			all = append(all, ToldCheck{commit, ledger.OneLine(run.Name, 200), ledger.OneLine(run.App, 100), ledger.OneLine(cmp.Or(run.Conclusion, run.Status), 40), told(run.CompletedAt)})
		}
	}
	if len(all) > maxTold {
		return t.unknown(ctx, "checks", errors.New("there are more than are shown"))
	}
	t.Checks = append(t.Checks, all...)
	return nil
}

func (t *Told) deployments(ctx context.Context, of forge.Auditor, commit string) error {
	with, has := of.(forge.Deployments)
	if !has {
		return t.unknown(ctx, "deployments", errors.New("a forge of this kind has none"))
	}
	all, err := with.Deployments(ctx, commit)
	if err == nil && len(all) > maxTold {
		err = errors.New("there are more than are shown")
	}
	if err != nil {
		return t.unknown(ctx, "deployments of "+commit, err)
	}
	for _, d := range all {
		t.Deployments = append(t.Deployments, ToldDeployment{ledger.OneLine(d.Environment, 200), ledger.OneLine(d.State, 40), told(d.At)})
	}
	return nil
}

// unknown notes what the forge does not tell, and why.
func (t *Told) unknown(ctx context.Context, what string, err error) error {
	t.Unknown = append(t.Unknown, ledger.OneLine(what+": "+err.Error(), 300))
	if errors.Is(err, forge.ErrSpent) {
		return err
	}
	return ctx.Err()
}

// told is a time that a forge tells, "" for none.
func told(at time.Time) string {
	if at.Year() < 1970 || at.Year() > 9999 {
		return ""
	}
	return ledger.FormatTime(at)
}
