package evidence

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Deployment is one that had a change: of its commit, or of one of the branch that has that among its ancestors. All but
// RecordedAt is the word of its Author.
type Deployment struct {
	Environment   string       `json:"environment"`
	Commit        string       `json:"commit"`
	DeployedAt    string       `json:"deployed_at"`
	RecordedAt    string       `json:"recorded_at"`
	Author        ledger.Actor `json:"author"`
	TransactionID string       `json:"transaction_id"`
	URL           string       `json:"url"`
}

// A Setting is what protected a branch from one moment to the next one at which something else was read, "" if nothing else was.
type Setting struct {
	Branch        string       `json:"branch"`
	From          string       `json:"from"`
	Until         string       `json:"until"`
	Rules         []string     `json:"rules"`
	Unread        []string     `json:"unread"`
	Author        ledger.Actor `json:"author"`
	TransactionID string       `json:"transaction_id"`
}

// observed are the observations of a ledger: reviews by what they are about, settings, and deployments, in the order in which they were recorded.
type observed struct {
	reviews     map[string][]said
	deployments []Deployment
	settings    []Setting
}

// observations reads those of the ledger.
func (s Source) observations() (out observed, err error) {
	out.reviews = map[string][]said{}
	for _, id := range s.Index.Observations() {
		log, found, err := observation.CheckRecord(s.Ledger, id)
		if err != nil {
			return out, err
		}
		if len(found) > 0 { // it says nothing then: an audit, which came before, tells
			continue
		}
		dir, err := fs.Sub(s.Ledger, ledger.Dir(id))
		if err != nil {
			return out, err
		}
		o, at, err := observation.Read(dir, log)
		if err != nil {
			return out, err
		}
		switch o := o.(type) {
		case *observation.Disposition:
			one := said{Disposition: *o, at: at}
			one.proof, one.why = s.signs(*o, at)
			out.reviews[o.About] = append(out.reviews[o.About], one)
		case *observation.Deployment:
			out.deployments = append(out.deployments, Deployment{o.Environment, o.Commit, o.DeployedAt, ledger.FormatTime(at), o.Author, id, o.URL})
		case *observation.Settings:
			out.settings = append(out.settings, Setting{o.Branch, o.ReadAt, "", o.Rules, o.Unread, o.Author, id})
		}
	}
	return out, nil
}

// maxEnvironments is how many environments a report shows: each may have every change.
const maxEnvironments = 50

// deploy finds, by environment, the first deployment that had each commit of the branch, and says what it leaves out.
func (t *table) deploy(all []Deployment) (left string) {
	t.deployed = map[string]map[string]*Deployment{}
	names := map[string]bool{}
	slices.SortStableFunc(all, func(a, b Deployment) int { return strings.Compare(a.DeployedAt, b.DeployedAt) })
	for i := range all {
		d := &all[i]
		if names[d.Environment] = true; len(names) > maxEnvironments && t.deployed[d.Environment] == nil {
			continue
		}
		had := t.deployed[d.Environment]
		if had == nil {
			had = map[string]*Deployment{}
			t.deployed[d.Environment] = had
		}
		for next := []string{d.Commit}; len(next) > 0; { // what an earlier one had, that had with all before it
			id := next[len(next)-1]
			next = next[:len(next)-1]
			if c, is := t.commits[id]; is && had[id] == nil {
				had[id] = d
				next = append(next, c.Parents...)
			}
		}
	}
	if n := len(names) - maxEnvironments; n > 0 {
		left = fmt.Sprintf("%s: deployments to %d more environments than the first %d are not shown", t.Repository.Name, n, maxEnvironments)
	}
	return left
}

// deployments are those of a change, by environment.
func (t *table) deployments(commit string) (out []Deployment) {
	for _, name := range slices.Sorted(maps.Keys(t.deployed)) {
		if d := t.deployed[name][commit]; d != nil {
			out = append(out, *d)
		}
	}
	return out
}

// maxSettings is how many settings a report has of a repository: the last ones.
const maxSettings = 100

// inPeriod are the settings of a period, in order, and what is not known of it. What was read when is the word of who recorded it.
func inPeriod(all []Setting, p Period) (out []Setting, unknown string) {
	slices.SortStableFunc(all, func(a, b Setting) int { return strings.Compare(a.From, b.From) })
	last := map[string]int{}
	for i := range all {
		if before, is := last[all[i].Branch]; is {
			all[before].Until = all[i].From
		}
		last[all[i].Branch] = i
	}
	from, end := ledger.FormatTime(p.From), ledger.FormatTime(p.End())
	for _, s := range all {
		if s.From < end && (s.Until == "" || s.Until > from) {
			out = append(out, s)
		}
	}
	switch {
	case len(out) == 0:
		unknown = "what protected the branch is not on record (audit --online --record-settings)"
	case out[0].From > from:
		unknown = "what protected the branch before " + out[0].From + " is not on record"
	}
	if n := len(out) - maxSettings; n > 0 {
		out, unknown = out[n:], fmt.Sprintf("of what protected the branch the last %d settings are shown, of %d", maxSettings, n+maxSettings)
	}
	return out, unknown
}
