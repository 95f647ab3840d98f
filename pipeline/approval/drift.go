package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
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

// maxDriftNames is how many files a Drift names.
const maxDriftNames = 5

// NewDrift is the Drift of a change of touched files; changed are the files that
// differ.
func NewDrift(from, to string, commits int, changed, touched []string) Drift {
	d := Drift{From: from, To: to, Commits: commits, Files: len(changed), Names: []string{}}
	dirs := map[string]bool{}
	for _, name := range touched {
		dirs[path.Dir(name)] = true
	}
	for _, name := range slices.Sorted(slices.Values(changed)) {
		if !dirs[path.Dir(name)] || slices.Contains(touched, name) {
			continue
		}
		if d.Beside++; d.Beside <= maxDriftNames {
			d.Names = append(d.Names, name)
		}
	}
	return d
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
	from := madeOn(c.Log, of)
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
		return fmt.Sprintf("%s since it was made, and the Policy allows %d%s", count(d.Commits, "commit"), *bound.Commits, again)
	case bound.SameDirectory == policy.Ask && d.Beside > 0:
		names := ledger.OneLine(strings.Join(d.Names, ", "), 300)
		if d.Beside > len(d.Names) {
			names += ", …"
		}
		return fmt.Sprintf("%s in the same directory changed since it was made (%s), and the Policy asks again then%s", count(d.Beside, "other file"), names, again)
	}
	return ""
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// shownDrift is the drift that people are shown: of the first approval that counts;
// where none does, of the first that would but for its drift. Nobody looks how far
// it is since an approval that does not count anyway.
func (c Case) shownDrift(decisions []Judged) *Drift {
	if c.Drift == nil {
		return nil
	}
	unbound := c
	unbound.Policy.Approvals.Drift = nil
	var drifted *Drift
	for i, d := range ledger.Of[*ledger.ApprovalDecision](c.Log) {
		from := madeOn(c.Log, *d)
		switch j := decisions[i]; {
		case d.Decision != ledger.Approve:
		case j.Counted:
			drift := c.Drift(from)
			return &drift
		case drifted == nil && unbound.refuse(*d) == "" && j.Reason == c.drifted(*d):
			drift := c.Drift(from)
			drifted = &drift
		}
	}
	return drifted
}

// KindDrift is the kind of the artifact that tells how far what a change goes onto
// had moved when an apply began, or a pull request's own diff was merged.
const KindDrift = "drift"

const driftSchema = "countersign/drift/1"

// A DriftDoc is that artifact, countersign/drift/1, which is recorded under a
// Policy that bounds drift: one Drift for each commit that an approval was made on.
type DriftDoc struct {
	Schema string  `json:"schema"`
	To     string  `json:"to"`
	Since  []Drift `json:"since"`
}

// NewDriftDoc asks for the drift of every approval of a log.
func NewDriftDoc(log *ledger.Log, to string, drift func(from string) Drift) DriftDoc {
	doc := DriftDoc{Schema: driftSchema, To: to, Since: []Drift{}}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		from := madeOn(log, *d)
		known := slices.ContainsFunc(doc.Since, func(s Drift) bool { return s.From == from })
		if d.Decision == ledger.Approve && !known {
			doc.Since = append(doc.Since, drift(from))
		}
	}
	return doc
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

// lastDrift reads the last DriftDoc among events, which has to be of the apply
// that follows and not of one before.
func lastDrift(dir fs.FS, events []ledger.Payload) (doc DriftDoc, err error) {
	var at *ledger.ArtifactStored
	for _, p := range events {
		switch p := p.(type) {
		case *ledger.ArtifactStored:
			if p.Kind == KindDrift {
				at = p
			}
		case *ledger.ApplyStart:
			at = nil
		}
	}
	if at == nil {
		return doc, errors.New("how far the base had moved since the approvals is not recorded")
	}
	if err = readArtifact(dir, at, &doc); err == nil && doc.Schema != driftSchema {
		err = errors.New("how far the base had moved is recorded in an unknown schema")
	}
	return doc, err
}

// ReadDrift reads what was recorded of drift before an event of a log.
func ReadDrift(tree fs.FS, log *ledger.Log, event int) (DriftDoc, error) {
	id := log.Transaction().TransactionID
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return DriftDoc{}, err
	}
	doc, err := lastDrift(dir, log.Payloads()[:event])
	if err != nil {
		err = &ledger.CorruptError{ID: id, Err: err}
	}
	return doc, err
}

// measured holds a DriftDoc to where the change went: it was measured up to there,
// or the change went onto the commit that was reviewed.
func (doc DriftDoc) measured(to, reviewed string) error {
	if to == "" || doc.To != to && to != reviewed {
		return fmt.Errorf("how far the base had moved is recorded for %.12s, and the change went onto %.12s", doc.To, to)
	}
	return nil
}
