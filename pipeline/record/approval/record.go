package approval

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// schemas are those of the documents of each kind of artifact here.
var schemas = map[string]string{
	ledger.KindAdvice: "countersign/advice/1", KindDrift: "countersign/drift/1", KindKey: "countersign/key/1", KindMerge: "countersign/merge/1", KindPolicy: "countersign/policy/1",
	KindSignature: "countersign/signature/1", KindStanding: "countersign/standing/1", KindStatement: "countersign/statement/1",
}

// Schema is that of the documents of a kind of artifact, "" of a kind of others.
func Schema(kind string) string { return schemas[kind] }

// ReadArtifact reads a JSON document that a transaction recorded; schema is where it says its own.
func ReadArtifact(dir fs.FS, a *ledger.ArtifactStored, doc any, schema *string) error {
	err := ledger.ReadDocument(dir, a.Path, doc)
	if err == nil && (*schema == "" || *schema != Schema(a.Kind)) {
		err = fmt.Errorf("%s: it is of an unknown schema", a.Path)
	}
	return err
}

// storedAt is the artifact of a kind at a path among events, nil if there is none.
func storedAt(events []ledger.Payload, kind, path string) *ledger.ArtifactStored {
	for _, p := range events {
		if a, is := p.(*ledger.ArtifactStored); is && a.Kind == kind && a.Path == path {
			return a
		}
	}
	return nil
}

// lastFor is the last artifact of a kind among events, nil if there is none. It has to be of the
// apply that follows: again reports whether it was of one before. That goes by their order, as two
// machines' clocks may differ (T56).
func lastFor(events []ledger.Payload, kind string) (last *ledger.ArtifactStored, again bool) {
	for _, p := range events {
		switch p := p.(type) {
		case *ledger.ArtifactStored:
			if p.Kind == kind {
				last, again = p, false
			}
		case *ledger.ApplyStart:
			again = true
		}
	}
	return last, again
}

// KindPolicy is the kind of the artifact that holds a Policy.
const KindPolicy = "policy"

// A PolicyDoc is that artifact: with it whoever has the
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

// Policies reads Policies from the records of transactions, and each text once:
// most transactions of a ledger went by few. The zero value has read none; it
// may be used by several goroutines.
type Policies struct{ known sync.Map } // by text: policy.Policy

// Recorded reads a Policy that a transaction went by from its directory.
func (ps *Policies) Recorded(dir fs.FS, log *ledger.Log, ref ledger.PolicyRef) (policy.Policy, PolicyDoc, error) {
	for _, a := range log.Artifacts(KindPolicy) {
		var doc PolicyDoc
		if err := ReadArtifact(dir, a, &doc, &doc.Schema); err != nil {
			return policy.Policy{}, doc, err
		}
		if doc.SHA256 != ref.SHA256 || doc.Commit != ref.Commit {
			continue
		}
		if canon.Sum([]byte(doc.Policy)) != ref.SHA256 {
			return policy.Policy{}, doc, errors.New("the recorded Policy is not the one that its hash names")
		}
		if p, known := ps.known.Load(doc.Policy); known {
			return p.(policy.Policy), doc, nil
		}
		p, err := policy.Decode([]byte(doc.Policy))
		if err == nil {
			ps.known.Store(doc.Policy, p)
		}
		return p, doc, err
	}
	return policy.Policy{}, PolicyDoc{}, errors.New("the Policy in force then is not recorded")
}

// A Record is what a transaction recorded: its directory, and the log in that. It verifies each
// signature once, by the line of its key that it has.
type Record struct {
	Dir      fs.FS
	Log      *ledger.Log
	policies *Policies
	proofs   map[string]proof // by the id of the request that is answered
}

// Record is that of a directory and its log.
func (ps *Policies) Record(dir fs.FS, log *ledger.Log) *Record {
	return &Record{dir, log, ps, map[string]proof{}}
}

// Redo holds decisions to their evidence, rule L18, and to their signatures, rule
// L21, and decides again, from the record alone, what each apply/start was begun
// on: rule L17. As what a pull request was merged has to be of that one: rule L25. Advice has its form: rule L27. Of a pull
// request the last artifact "standing" before the apply/start tells what the forge
// answered then. Without one, what the record does not tell (who is in a team or
// owns a path, which commit was HEAD) is taken for granted.
func (r *Record) Redo() []canon.Violation {
	dir, log := r.Dir, r.Log
	var f canon.Finder
	for i, p := range log.Payloads() {
		add := func(id, about string, err error) {
			if err != nil {
				f.Add(id, fmt.Sprintf("%s:%d", ledger.EventsFile, i+1), "%s%v", about, err)
			}
		}
		switch p := p.(type) {
		case *ledger.ApplyStart:
			v, err := r.Approved(i, p.Policy)
			if err == nil && !slices.Equal(p.Approvals, v.Approvals()) {
				err = errors.New("apply/start does not ask for what the recorded Policy asks for")
			}
			add("L17", "", err)
		case *ledger.ValidateComplete:
			if tx := log.Transaction(); !tx.GateOnly() {
				break
			}
			// A pull request's own diff was merged by the Policy that its Standing names.
			s, err := LastStanding(dir, log.Payloads()[:i])
			if err == nil {
				_, err = r.Approved(i, s.Policy)
			}
			add("L17", "", err)
		case *ledger.ArtifactStored:
			switch p.Kind {
			case KindMerge:
				_, err := ReadMerge(dir, log)
				add("L25", "", err)
			case ledger.KindAdvice:
				_, err := ReadAdvice(dir, log, p)
				add("L27", "", err)
			}
		case *ledger.ApprovalDecision:
			evidence, err := checkEvidence(dir, log, i, p)
			add("L18", "", err)
			add("L21", "its signature: ", r.checkSignature(p, evidence))
		}
	}
	return f.Sorted()
}

// Approved decides on the first n events. It is an error unless the verdict is approved.
func (r *Record) Approved(n int, ref ledger.PolicyRef) (v Verdict, err error) {
	c, err := r.Before(n, ref)
	if err != nil {
		return v, err
	}
	if v = c.Decide(); v.State != Approved {
		return v, fmt.Errorf("by the recorded Policy the verdict was %s (%s)", v.State, v.Reason)
	}
	return v, nil
}

// Policy is the recorded one that a reference names, and where it was read.
func (r *Record) Policy(ref ledger.PolicyRef) (policy.Policy, PolicyDoc, error) {
	return r.policies.Recorded(r.Dir, r.Log, ref)
}

// Before is the case of the first n events, at the time of the event that follows them.
func (r *Record) Before(n int, ref ledger.PolicyRef) (c Case, err error) {
	p, _, err := r.Policy(ref)
	if err != nil {
		return c, err
	}
	at, err := r.Log.Time(n)
	if err != nil {
		return c, err
	}
	if c, err = r.At(n, at, p); err != nil {
		return c, err
	}
	if c.Log.Transaction().Pointers.Proposal.PullRequest != 0 {
		s, err := r.Standing(c.Log)
		if err != nil {
			return c, err
		}
		c = c.On(s)
	} else {
		c.Needs, c.Policy.Approvals.SameHead = Granted(c.Needs), false
	}
	if p.Approvals.Drift == nil {
		return c, nil
	}
	onto := c.Head // of a pull request's own diff
	if start, is := r.Log.Payloads()[n].(*ledger.ApplyStart); is {
		onto = start.BaseCommit
	}
	doc, err := LastDrift(r.Dir, c.Log.Payloads())
	if err == nil {
		err = doc.measured(onto, r.Log.Meta().BaseCommit)
	}
	c.Drift = doc.Of
	return c, err
}

// At is the case of the first n events, under a Policy and at a time, by what stands in these
// events: without what the forge answered, and what has moved.
func (r *Record) At(n int, at time.Time, p policy.Policy) (Case, error) {
	before := r.Log.First(n)
	proposed := before.Transaction().Pointers.Proposal
	if proposed == nil {
		return Case{}, errors.New("nothing is proposed")
	}
	said, err := Advised(r.Dir, r.Log, n)
	return Case{
		Policy: p, Needs: p.Needs(proposed.TargetFiles, proposed.ContainsSecrets, said...), Log: before, Now: at, Authors: proposed.Authors,
		Party: ReadParty(r.Dir, before), PullRequest: proposed.PullRequest > 0, Signed: r.Signed(p), People: People(r.Dir, before, sshsig.Allowed{}),
	}, err
}

// Granted leaves out of needs whom the record of a change without a pull request cannot tell apart.
func Granted(needs []policy.Need) []policy.Need {
	out := slices.Clone(needs)
	for i := range out {
		if len(out[i].Teams) > 0 || out[i].Owners {
			out[i].Users, out[i].Teams, out[i].Owners = nil, nil, false
		}
	}
	return out
}

// KindStanding is the kind of the artifact that tells what became of recorded
// approvals when the forge was asked again, before an apply.
const KindStanding = "standing"

// A Standing is that artifact. Teams and Owners have the
// ids of the accounts that are in a team, or own a path; who is not there is in
// none, and owns nothing.
type Standing struct {
	Schema      string              `json:"schema"`
	ReadAt      string              `json:"read_at"`
	PullRequest int                 `json:"pull_request"`
	HeadCommit  string              `json:"head_commit"`
	Decisions   []StandingApproval  `json:"decisions"`
	Teams       map[string][]string `json:"teams"`
	Owners      map[string][]string `json:"owners"`
	Policy      ledger.PolicyRef    `json:"policy"` // that the decisions were judged by
}

// StandingApproval is what became of one approval: whether its statement still says so, why
// not, and what its author may do by now.
type StandingApproval struct {
	ApprovalRequestID string `json:"approval_request_id"`
	Stands            bool   `json:"stands"`
	Reason            string `json:"reason"` // "" where it stands
	Permission        string `json:"permission"`
	Role              string `json:"role"`
}

// On is the case of a pull request with what a Standing tells and nothing else:
// the head, whether approvals stand, and who is in a team or owns a path. A stage
// that decides so decides as an auditor will.
func (c Case) On(s Standing) Case {
	c.PullRequest, c.Head = true, s.HeadCommit
	c.Stands = func(d ledger.ApprovalDecision) string {
		for _, stood := range s.Decisions {
			if stood.ApprovalRequestID != d.ApprovalRequestID {
				continue
			}
			if !stood.Stands {
				return cmp.Or(stood.Reason, "does not stand any more")
			}
			return Refused(c.Policy, Access{Permission: stood.Permission})
		}
		return "its comment was not read again"
	}
	c.Teams = func(team string, who ledger.Actor) (bool, error) { return slices.Contains(s.Teams[team], who.ID), nil }
	c.Owners = func(path string, who ledger.Actor) (bool, error) { return slices.Contains(s.Owners[path], who.ID), nil }
	return c
}

// LastStanding reads the Standing among events that is of the apply which follows.
func LastStanding(dir fs.FS, events []ledger.Payload) (s Standing, err error) {
	a, again := lastFor(events, KindStanding)
	switch {
	case a == nil:
		return s, errors.New("which approvals still stood when the change was applied is not recorded")
	case again:
		return s, errors.New("which approvals still stood was not asked again for this apply")
	}
	return s, ReadArtifact(dir, a, &s, &s.Schema)
}

// Standing is that of the apply that follows on a log, which must be of the
// same pull request.
func (r *Record) Standing(before *ledger.Log) (Standing, error) {
	s, err := LastStanding(r.Dir, before.Payloads())
	if number := before.Transaction().PullRequest(); err == nil && s.PullRequest != number {
		err = fmt.Errorf("which approvals still stood is recorded for pull request %d, not %d", s.PullRequest, number)
	}
	return s, err
}

// CheckRecord verifies a transaction's directory and its place in the index of
// denials. The log is nil where it cannot be read; something was found then.
func CheckRecord(tree fs.FS, id string) (*ledger.Log, []canon.Violation, error) {
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return nil, nil, err
	}
	log, found := ledger.ReadOwn(dir, id)
	if log != nil {
		found = append(found, checkDenials(tree, log)...)
		listed, err := checkProposed(tree, log)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, listed...)
		found = append(found, new(Policies).Record(dir, log).Redo()...)
	}
	return log, found, nil
}

// checkDenials is L11 for one transaction: each denial it records is in the
// index, and one is there if it says that it is denied.
func checkDenials(tree fs.FS, log *ledger.Log) []canon.Violation {
	var found []canon.Violation
	for i, p := range log.Payloads() {
		d, decides := p.(*ledger.ApprovalDecision)
		s, moves := p.(*ledger.StatusChange)
		if !(decides && d.Decision == ledger.Deny || moves && s.To == ledger.Denied) {
			continue
		}
		denials, err := ledger.Denials(tree, log.Transaction().PatchID())
		if err != nil || len(denials) == 0 {
			found = append(found, canon.Violation{
				RuleID: "L11", Path: fmt.Sprintf("%s:%d", ledger.EventsFile, i+1), Message: "the denial is not in denied/",
			})
		}
	}
	return found
}

// checkProposed is L12 for one transaction: its proposal is in the index.
func checkProposed(tree fs.FS, log *ledger.Log) ([]canon.Violation, error) {
	tx := log.Transaction()
	if !canon.IsHex64(tx.PatchID()) {
		return nil, nil
	}
	dirs := []string{ledger.ProposedDir(tx.PatchID())}
	if number := tx.PullRequest(); number > 0 {
		dirs = append(dirs, ledger.PullDir(number))
	}
	here := ledger.Listed{BaseCommit: log.Meta().BaseCommit, TransactionID: tx.TransactionID}
	for _, dir := range dirs {
		listed, err := ledger.ListedIn(tree, dir, tx.TransactionID)
		if errors.As(err, new(*fs.PathError)) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err // whether it is there was not read
		}
		if err != nil || listed != here {
			return []canon.Violation{{RuleID: "L12", Path: ledger.TransactionFile, Message: "the transaction is not in proposed/ as it is"}}, nil
		}
	}
	return nil, nil
}
