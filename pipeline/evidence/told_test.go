package evidence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
)

// A hub is a forge that tells of checks and deployments; the latter only if it has any.
type hub struct {
	forge.Auditor
	checks map[string][]forge.CheckRun
	fails  error
}

func (h hub) CheckRuns(_ context.Context, commit, name string) ([]forge.CheckRun, error) {
	if name != "" {
		return nil, errors.New("a name was given")
	}
	return h.checks[commit], h.fails
}

type deploying struct {
	hub
	all   []forge.Deployment
	fails error
}

func (d deploying) Deployments(context.Context, string) ([]forge.Deployment, error) {
	return d.all, d.fails
}

// T82 What the forge does not tell in full is not known, never none; texts are bounded, and more than are shown are not shown as all.
func TestT82Told(t *testing.T) {
	at := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	c, head := strings.Repeat("c", 40), strings.Repeat("d", 40)
	run := forge.CheckRun{Name: "ci\x1b[2J" + strings.Repeat("x", 300), App: "actions", Conclusion: "success", CompletedAt: at}
	with := hub{checks: map[string][]forge.CheckRun{c: {run}, head: {{Name: "lint", Status: "in_progress"}}}}
	many := hub{checks: map[string][]forge.CheckRun{c: make([]forge.CheckRun, 201)}}
	for name, row := range map[string]struct {
		of      forge.Auditor
		want    string
		unknown int
		stops   bool
	}{
		"all":               {deploying{with, []forge.Deployment{{Environment: "eu", State: "success", At: at}}, nil}, "2 1", 0, false},
		"no deployments":    {deploying{with, nil, nil}, "2 0", 0, false},
		"none of that kind": {with, "2 0", 1, false},
		"no checks":         {deploying{hub{fails: forge.ErrPermission}, nil, nil}, "0 0", 1, false},
		"nothing":           {deploying{hub{fails: forge.ErrPermission}, nil, forge.ErrNotFound}, "0 0", 2, false},
		"half":              {deploying{with, []forge.Deployment{{Environment: "eu"}}, errors.New("a page is missing")}, "2 0", 1, false},
		"too many checks":   {deploying{many, nil, nil}, "0 0", 1, false},
		"too many":          {deploying{hub{}, make([]forge.Deployment, 201), nil}, "0 0", 1, false},
		"no more requests":  {deploying{hub{fails: forge.ErrSpent}, nil, forge.ErrSpent}, "0 0", 2, true},
	} {
		r := Row{Commit: c, Records: []Record{{head: head}, {head: c}, {}}}
		err := r.Ask(t.Context(), row.of, at)
		if got := fmt.Sprint(len(r.Told.Checks), len(r.Told.Deployments)); got != row.want || len(r.Told.Unknown) != row.unknown || (err != nil) != row.stops {
			t.Errorf("%s: %s, %+v, %v", name, got, r.Told, err)
		}
		for _, check := range r.Told.Checks {
			if len(check.Name) > 210 || strings.Contains(check.Name, "\x1b") || check.Conclusion == "" {
				t.Errorf("%s: %+v", name, check)
			}
		}
	}
}
