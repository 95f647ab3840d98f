package approval

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// KindPolicy is the kind of the artifact that holds a Policy.
const KindPolicy = "policy"

// A PolicyDoc is that artifact, countersign/policy/1: with it whoever has the
// transaction alone can decide again. Policy is the Policy's canonical JSON and
// one LF, which hash to SHA256; Found is false for the defaults of a repository
// without a Policy file.
type PolicyDoc struct {
	Schema string `json:"schema"`
	Commit string `json:"commit"`
	Found  bool   `json:"found"`
	SHA256 string `json:"sha256"`
	Policy string `json:"policy"`
}

// NewPolicyDoc is the artifact of a Policy.
func NewPolicyDoc(p policy.Policy, commit string, found bool) PolicyDoc {
	return PolicyDoc{"countersign/policy/1", commit, found, p.Sum(), string(p.JSON())}
}

// Policies reads Policies from the records of transactions, and each text once:
// most transactions of a ledger went by few. The zero value has read none; it
// may be used by several goroutines.
type Policies struct{ known sync.Map } // by text: policy.Policy

// Recorded reads a Policy that a transaction went by from its directory.
func (ps *Policies) Recorded(dir fs.FS, log *ledger.Log, ref ledger.PolicyRef) (policy.Policy, PolicyDoc, error) {
	for _, a := range log.Artifacts(KindPolicy) {
		var doc PolicyDoc
		raw, err := fs.ReadFile(dir, a.Path)
		if err == nil {
			err = canon.Unmarshal(raw, &doc)
		}
		if err != nil {
			return policy.Policy{}, doc, fmt.Errorf("%s: %w", a.Path, err)
		}
		if doc.SHA256 != ref.SHA256 || doc.Commit != ref.Commit {
			continue
		}
		if canon.Sum([]byte(doc.Policy)) != ref.SHA256 {
			return policy.Policy{}, doc, errors.New("the recorded Policy is not the one that its hash names")
		}
		p, err := ps.decode(doc.Policy)
		return p, doc, err
	}
	return policy.Policy{}, PolicyDoc{}, errors.New("the Policy that was gone by is not recorded")
}

func (ps *Policies) decode(text string) (policy.Policy, error) {
	if p, ok := ps.known.Load(text); ok {
		return p.(policy.Policy), nil
	}
	p, err := policy.Decode([]byte(text))
	if err == nil {
		ps.known.Store(text, p)
	}
	return p, err
}

// Redo holds decisions to their evidence, rule L18, and decides again, from the
// record alone, what each apply/start was begun on: rule L17. Of a pull request
// the last artifact "standing" before the apply/start tells what the forge
// answered then. Without one, what the record does not tell (who is in a team or
// owns a path, which commit was HEAD) is taken for granted.
func (ps *Policies) Redo(dir fs.FS, log *ledger.Log) []rule.Violation {
	var f rule.Finder
	end := 0
	for i, p := range log.Payloads() {
		at := fmt.Sprintf("%s:%d", ledger.EventsFile, i+1)
		switch p := p.(type) {
		case *ledger.ApplyStart:
			if err := ps.redo(dir, log, i, end, p); err != nil {
				f.Add("L17", at, "%v", err)
			}
		case *ledger.ValidateComplete:
			if tx := log.Transaction(); tx.GateOnly() {
				if err := ps.redoMerged(dir, log, i, end); err != nil {
					f.Add("L17", at, "%v", err)
				}
			}
		case *ledger.ApprovalDecision:
			if err := checkEvidence(dir, log, i, p); err != nil {
				f.Add("L18", at, "%v", err)
			}
		}
		end += bytes.IndexByte(log.Bytes()[end:], '\n') + 1
	}
	return f.Sorted()
}

// redo decides on the first n events, which end at a byte of the log.
func (ps *Policies) redo(dir fs.FS, log *ledger.Log, n, end int, start *ledger.ApplyStart) error {
	v, err := ps.decideAgain(dir, log, n, end, start.Policy)
	if err == nil && !slices.Equal(start.Approvals, v.Approvals()) {
		err = errors.New("apply/start does not ask for what the recorded Policy asks for")
	}
	return err
}

// redoMerged decides likewise on a pull request's own diff that was merged, by
// the Policy that its Standing names.
func (ps *Policies) redoMerged(dir fs.FS, log *ledger.Log, n, end int) error {
	before, err := ledger.ReadLog(log.Bytes()[:end])
	if err != nil {
		return err
	}
	s, err := lastStanding(dir, before)
	if err != nil {
		return err
	}
	_, err = ps.decideAgain(dir, log, n, end, s.Policy)
	return err
}

// decideAgain is an error unless the verdict on the first n events is approved.
func (ps *Policies) decideAgain(dir fs.FS, log *ledger.Log, n, end int, ref ledger.PolicyRef) (v Verdict, err error) {
	p, _, err := ps.Recorded(dir, log, ref)
	if err != nil {
		return v, err
	}
	at, err := log.Time(n)
	if err != nil {
		return v, err
	}
	before, err := ledger.ReadLog(log.Bytes()[:end])
	if err != nil {
		return v, err
	}
	proposed := before.Transaction().Pointers.Proposal
	if proposed == nil {
		return v, errors.New("nothing is proposed")
	}
	c := Case{
		Policy: p, Needs: p.Needs(proposed.TargetFiles, proposed.ContainsSecrets), Log: before, Now: at, Authors: proposed.Authors,
	}
	if c, err = c.asRecorded(dir, proposed.PullRequest); err != nil {
		return v, err
	}
	if v = c.Decide(); v.State != Approved {
		return v, fmt.Errorf("by the recorded Policy the verdict was %s (%s)", v.State, v.Reason)
	}
	return v, nil
}

// asRecorded is a case with what its log tells of the world around it.
func (c Case) asRecorded(dir fs.FS, pullRequest int) (Case, error) {
	if pullRequest == 0 {
		c.Needs, c.Policy.Approvals.SameHead = granted(c.Needs), false
		return c, nil
	}
	s, err := lastStanding(dir, c.Log)
	if err == nil && s.PullRequest != pullRequest {
		err = fmt.Errorf("what stood of the approvals is recorded of pull request %d, not %d", s.PullRequest, pullRequest)
	}
	return c.On(s), err
}

// granted leaves out whom the record cannot tell apart.
func granted(needs []policy.Need) []policy.Need {
	out := slices.Clone(needs)
	for i := range out {
		if len(out[i].Teams) > 0 || out[i].Owners {
			out[i].Users, out[i].Teams, out[i].Owners = nil, nil, false
		}
	}
	return out
}

// Approvals are what a verdict rests on, as apply/start records it.
func (v Verdict) Approvals() []ledger.Approved {
	var out []ledger.Approved
	for _, n := range v.Needs {
		out = append(out, ledger.Approved{Kind: n.Kind, Fingerprint: n.Fingerprint, Required: n.Required})
	}
	return out
}
