package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Drift is how far what a change goes onto has moved since an approval: From is
// the commit that the approval was made on, To what the change goes onto now.
// Commits are those that only one of the two leads to. Files differ; Beside of
// them, the first of which are Names, are in the directory of a touched file and
// none of these, whose change would supersede the transaction. Where Unknown says
// why that cannot be told, there are no counts.
type Drift struct {
	From    string   `json:"from"`
	To      string   `json:"to"`
	Commits int      `json:"commits"`
	Files   int      `json:"files"`
	Beside  int      `json:"same_directory"`
	Names   []string `json:"names"`
	Unknown string   `json:"unknown,omitempty"`
}

// UnknownDrift is one that cannot be told, and why.
func UnknownDrift(from, to, why string) Drift {
	return Drift{From: from, To: to, Names: []string{}, Unknown: ledger.OneLine(why, 300)}
}

// None reports that nothing has moved.
func (d Drift) None() bool { return d.From == d.To && d.To != "" && d.Unknown == "" }

// drifted says why an approval is out of date by what has moved since, "" if it is
// not.
func (c Case) drifted(of ledger.ApprovalDecision) string {
	bound := c.Policy.Approvals.Drift
	if bound == nil {
		return ""
	}
	from := MadeOn(c.Log, of)
	d := UnknownDrift(from, "", "nobody looked")
	if c.Drift != nil {
		d = c.Drift(from)
	}
	again := "; look at it as it is now and approve again"
	if of.Source.Signature != nil {
		again = "; what is signed is of the commit that was reviewed, so propose the change anew"
	}
	switch {
	case d.None():
		return ""
	case d.Unknown != "" || d.From == "" || d.To == "":
		return "what has changed beside it since cannot be told, and the Policy bounds that: " + d.Unknown + again
	case bound.Commits != nil && d.Commits > *bound.Commits:
		return fmt.Sprintf("%s since it was made, and the Policy allows %d%s", ledger.Plural(d.Commits, "commit", "commits"), *bound.Commits, again)
	case bound.SameDirectory == policy.Ask && d.Beside > 0:
		names := ledger.OneLine(strings.Join(d.Names, ", "), 300)
		if d.Beside > len(d.Names) {
			names += ", …"
		}
		return fmt.Sprintf("%s in the same directory changed since it was made (%s), and the Policy asks again then%s", ledger.Plural(d.Beside, "other file", "other files"), names, again)
	}
	return ""
}

// KindDrift is the kind of the artifact that tells how far what a change goes onto
// had moved when an apply began, or a pull request's own diff was merged.
const KindDrift = "drift"

// A DriftDoc is that artifact, which is recorded under a
// Policy that bounds drift: one Drift for each commit that an approval was made on.
type DriftDoc struct {
	Schema string  `json:"schema"`
	To     string  `json:"to"`
	Since  []Drift `json:"since"`
}

// Of is the drift since a commit, as it was recorded.
func (doc DriftDoc) Of(from string) Drift {
	for _, d := range doc.Since {
		if d.From == from && d.To == doc.To {
			return d
		}
	}
	return UnknownDrift(from, doc.To, "it is not recorded")
}

// LastDrift reads the DriftDoc among events that is of the apply which follows.
func LastDrift(dir fs.FS, events []ledger.Payload) (doc DriftDoc, err error) {
	a, again := lastFor(events, KindDrift)
	if a == nil || again {
		return doc, errors.New("how far the base had moved since the approvals is not recorded")
	}
	return doc, ReadArtifact(dir, a, &doc, &doc.Schema)
}

// measured holds a DriftDoc to where the change went: it was measured up to there,
// or the change went onto the commit that was reviewed.
func (doc DriftDoc) measured(to, reviewed string) error {
	if to == "" || doc.To != to && to != reviewed {
		return fmt.Errorf("how far the base had moved is recorded for %.12s, and the change went onto %.12s", doc.To, to)
	}
	return nil
}
