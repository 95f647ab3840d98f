package approval

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/format"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/rule"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
)

// KindPolicy is the kind of the artifact that holds a Policy.
const KindPolicy = "policy"

const policySchema = "countersign/policy/1"

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
	return PolicyDoc{policySchema, commit, found, p.Sum(), string(p.JSON())}
}

// readArtifact reads a JSON document that a transaction recorded.
func readArtifact(dir fs.FS, a *ledger.ArtifactStored, doc any) error {
	raw, err := fs.ReadFile(dir, a.Path)
	if err == nil {
		err = format.Unmarshal("it", raw, doc)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a.Path, err)
	}
	return nil
}

// Policies reads Policies from the records of transactions, and each text once:
// most transactions of a ledger went by few. The zero value has read none; it
// may be used by several goroutines.
type Policies struct{ known sync.Map } // by text: policy.Policy

// Recorded reads a Policy that a transaction went by from its directory.
func (ps *Policies) Recorded(dir fs.FS, log *ledger.Log, ref ledger.PolicyRef) (policy.Policy, PolicyDoc, error) {
	for _, a := range log.Artifacts(KindPolicy) {
		var doc PolicyDoc
		if err := readArtifact(dir, a, &doc); err != nil {
			return policy.Policy{}, doc, err
		}
		if doc.Schema != policySchema {
			return policy.Policy{}, doc, errors.New("a Policy is recorded in an unknown schema")
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

// Redo holds decisions to their evidence, rule L18, and to their signatures, rule
// L21, and decides again, from the record alone, what each apply/start was begun
// on: rule L17. As what a pull request was merged has to be of that one: rule L25. Of a pull request the last artifact "standing" before the apply/start tells what the forge
// answered then. Without one, what the record does not tell (who is in a team or
// owns a path, which commit was HEAD) is taken for granted.
func (ps *Policies) Redo(dir fs.FS, log *ledger.Log) []rule.Violation {
	var f rule.Finder
	end := 0
	signatures := &signatures{dir: dir, log: log}
	for i, p := range log.Payloads() {
		at := fmt.Sprintf("%s:%d", ledger.EventsFile, i+1)
		switch p := p.(type) {
		case *ledger.ApplyStart:
			v, err := ps.decideAgain(signatures, i, end, p.Policy)
			if err == nil && !slices.Equal(p.Approvals, v.Approvals()) {
				err = errors.New("apply/start does not ask for what the recorded Policy asks for")
			}
			if err != nil {
				f.Add("L17", at, "%v", err)
			}
		case *ledger.ValidateComplete:
			// A pull request's own diff was merged by the Policy that its Standing names.
			if tx := log.Transaction(); tx.GateOnly() {
				s, err := lastStanding(dir, log.Payloads()[:i])
				if err == nil {
					_, err = ps.decideAgain(signatures, i, end, s.Policy)
				}
				if err != nil {
					f.Add("L17", at, "%v", err)
				}
			}
		case *ledger.ArtifactStored:
			if p.Kind != KindMerge {
				break
			}
			if _, err := ReadMerge(dir, log); err != nil {
				f.Add("L25", at, "%v", err)
			}
		case *ledger.ApprovalDecision:
			evidence, err := checkEvidence(dir, log, i, p)
			if err != nil {
				f.Add("L18", at, "%v", err)
			}
			if err := signatures.check(ps, p, evidence); err != nil {
				f.Add("L21", at, "its signature: %v", err)
			}
		}
		end += bytes.IndexByte(log.Bytes()[end:], '\n') + 1
	}
	return f.Sorted()
}

// decideAgain decides on the first n events, which end at a byte of the log. It
// is an error unless the verdict is approved.
func (ps *Policies) decideAgain(signatures *signatures, n, end int, ref ledger.PolicyRef) (v Verdict, err error) {
	c, err := ps.caseBefore(signatures, n, end, ref)
	if err != nil {
		return v, err
	}
	if v = c.Decide(); v.State != Approved {
		return v, fmt.Errorf("by the recorded Policy the verdict was %s (%s)", v.State, v.Reason)
	}
	return v, nil
}

// caseBefore is the case of the first n events, which end at a byte of the log.
func (ps *Policies) caseBefore(signatures *signatures, n, end int, ref ledger.PolicyRef) (c Case, err error) {
	dir, log := signatures.dir, signatures.log
	p, _, err := ps.Recorded(dir, log, ref)
	if err != nil {
		return c, err
	}
	at, err := log.Time(n)
	if err != nil {
		return c, err
	}
	c, err = signatures.caseAt(end, at, p)
	if err != nil {
		return c, err
	}
	if proposed := c.Log.Transaction().Pointers.Proposal; proposed.PullRequest == 0 {
		c.Needs, c.Policy.Approvals.SameHead = granted(c.Needs), false
	} else {
		s, err := standingFor(dir, c.Log)
		if err != nil {
			return c, err
		}
		c = c.On(s)
	}
	if p.Approvals.Drift != nil {
		doc, err := lastDrift(dir, c.Log.Payloads())
		if err == nil {
			err = doc.measured(c.goesOnto(log.Payloads()[n]), log.Meta().BaseCommit)
		}
		if err != nil {
			return c, err
		}
		c.Drift = doc.Of
	}
	return c, nil
}

// caseAt is the case of the events that end at a byte of the log, under a Policy and at a
// time, by what stands in these events: without what the forge answered, and what has moved.
func (s *signatures) caseAt(end int, at time.Time, p policy.Policy) (Case, error) {
	before, err := ledger.ReadLog(s.log.Bytes()[:end])
	if err != nil {
		return Case{}, err
	}
	proposed := before.Transaction().Pointers.Proposal
	if proposed == nil {
		return Case{}, errors.New("nothing is proposed")
	}
	return Case{
		Policy: p, Needs: p.Needs(proposed.TargetFiles, proposed.ContainsSecrets), Log: before, Now: at, Authors: proposed.Authors,
		Party: ReadParty(s.dir, before), PullRequest: proposed.PullRequest > 0, Signed: s.signedAt(p),
		People: people(before, sshsig.Allowed{}, func(name string) ([]byte, error) { return fs.ReadFile(s.dir, name) }),
	}, nil
}

// standingFor is the Standing of the apply that follows on a log, which must be of the
// same pull request.
func standingFor(dir fs.FS, before *ledger.Log) (Standing, error) {
	s, err := lastStanding(dir, before.Payloads())
	if number := before.Transaction().PullRequest(); err == nil && s.PullRequest != number {
		err = fmt.Errorf("which approvals still stood is recorded for pull request %d, not %d", s.PullRequest, number)
	}
	return s, err
}

// goesOnto is the commit that an event says the change goes onto; of a pull
// request's own diff it is the head.
func (c Case) goesOnto(p ledger.Payload) string {
	if start, ok := p.(*ledger.ApplyStart); ok {
		return start.BaseCommit
	}
	return c.Head
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

// KindStanding is the kind of the artifact that tells what became of recorded
// approvals when the forge was asked again, before an apply.
const KindStanding = "standing"

const standingSchema = "countersign/standing/1"

// A Standing is that artifact, countersign/standing/1. Teams and Owners have the
// ids of the accounts that are in a team, or own a path; who is not there is in
// none, and owns nothing.
type Standing struct {
	Schema      string              `json:"schema"`
	ReadAt      string              `json:"read_at"`
	PullRequest int                 `json:"pull_request"`
	HeadCommit  string              `json:"head_commit"`
	Decisions   []Stood             `json:"decisions"`
	Teams       map[string][]string `json:"teams"`
	Owners      map[string][]string `json:"owners"`
	Policy      ledger.PolicyRef    `json:"policy"` // that the decisions were judged by
}

// Stood is what became of one approval: whether its statement still says so, why
// not, and what its author may do by now.
type Stood struct {
	ApprovalRequestID string `json:"approval_request_id"`
	Stands            bool   `json:"stands"`
	Reason            string `json:"reason"` // "" where it stands
	Permission        string `json:"permission"`
	Role              string `json:"role"`
}

// NewStanding is a Standing of a pull request, read at a time when head was the
// commit of its head.
func NewStanding(readAt time.Time, pullRequest int, head string) Standing {
	return Standing{
		Schema: standingSchema, ReadAt: ledger.FormatTime(readAt), PullRequest: pullRequest, HeadCommit: head,
		Decisions: []Stood{}, Teams: map[string][]string{}, Owners: map[string][]string{},
	}
}

// Add notes a recorded approval: the reason of Conversation.Stands, and what its
// author may do now.
func (s *Standing) Add(d ledger.ApprovalDecision, reason string, a Access) {
	s.Decisions = append(s.Decisions, Stood{d.ApprovalRequestID, reason == "", reason, a.Permission, a.Role})
}

// AddMember notes that the account of an id is in "org/team".
func (s *Standing) AddMember(team, id string) { addID(s.Teams, team, id) }

// AddOwner notes that the account of an id owns a path.
func (s *Standing) AddOwner(path, id string) { addID(s.Owners, path, id) }

func addID(sets map[string][]string, key, id string) {
	if at, has := slices.BinarySearch(sets[key], id); !has && id != "" {
		sets[key] = slices.Insert(sets[key], at, id)
	}
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

// lastStanding reads the last Standing among events, which has to be of the apply
// that follows and not of one before.
func lastStanding(dir fs.FS, events []ledger.Payload) (Standing, error) {
	var s Standing
	at, applied := -1, -1
	for i, p := range events {
		switch p := p.(type) {
		case *ledger.ArtifactStored:
			if p.Kind == KindStanding {
				at = i
			}
		case *ledger.ApplyStart:
			applied = i
		}
	}
	if at < 0 {
		return s, errors.New("which approvals still stood when the change was applied is not recorded")
	}
	if at < applied { // by their order: two machines' clocks may differ (T56)
		return s, errors.New("which approvals still stood was not asked again for this apply")
	}
	if err := readArtifact(dir, events[at].(*ledger.ArtifactStored), &s); err != nil {
		return s, err
	}
	if s.Schema != standingSchema {
		return s, errors.New("which approvals still stood is recorded in an unknown schema")
	}
	return s, nil
}

// CheckRecord verifies a transaction's directory and its place in the index of
// denials. The log is nil where it cannot be read; something was found then.
func CheckRecord(tree fs.FS, id string) (*ledger.Log, []rule.Violation, error) {
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
		found = append(found, new(Policies).Redo(dir, log)...)
	}
	return log, found, nil
}

// checkDenials is L11 for one transaction: each denial it records is in the
// index, and one is there if it says that it is denied.
func checkDenials(tree fs.FS, log *ledger.Log) []rule.Violation {
	var found []rule.Violation
	for i, p := range log.Payloads() {
		d, decides := p.(*ledger.ApprovalDecision)
		s, moves := p.(*ledger.StatusChange)
		if !(decides && d.Decision == ledger.Deny || moves && s.To == ledger.Denied) {
			continue
		}
		denials, err := ledger.Denials(tree, log.Transaction().PatchID())
		if err != nil || len(denials) == 0 {
			found = append(found, rule.Violation{
				RuleID: "L11", Path: fmt.Sprintf("%s:%d", ledger.EventsFile, i+1), Message: "the denial is not in denied/",
			})
		}
	}
	return found
}

// checkProposed is L12 for one transaction: its proposal is in the index.
func checkProposed(tree fs.FS, log *ledger.Log) ([]rule.Violation, error) {
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
			return []rule.Violation{{RuleID: "L12", Path: ledger.TransactionFile, Message: "the transaction is not in proposed/ as it is"}}, nil
		}
	}
	return nil, nil
}

// ReadStanding reads what an apply recorded of its approvals: the last before it.
func ReadStanding(tree fs.FS, log *ledger.Log) (*Standing, error) {
	id := log.Transaction().TransactionID
	last := ""
	for _, a := range ledger.Of[*ledger.ArtifactStored](log) {
		if a.Kind == KindStanding {
			last = a.Path
		}
	}
	var s Standing
	raw, err := ledger.ReadFile(tree, id, last)
	if err == nil {
		err = format.Unmarshal("it", raw, &s)
	}
	if err == nil && s.Schema != standingSchema {
		err = errors.New("its schema is unknown")
	}
	if err != nil {
		return nil, &ledger.CorruptError{ID: id, Err: fmt.Errorf("what its approvals were when it was applied: %w", err)}
	}
	return &s, nil
}

// KindPosted is the kind of the artifact that says what we posted.
const KindPosted = "posted"

// PostedSchema is its schema.
const PostedSchema = "countersign/posted/1"

// A PostedDoc is that artifact, countersign/posted/1.
type PostedDoc struct {
	Schema   string   `json:"schema"`
	Comments []Posted `json:"comments"`
}

// ReadPosted reads the comments that were made for a transaction, in the order in which
// they were.
func ReadPosted(tree fs.FS, log *ledger.Log) ([]Posted, error) {
	var out []Posted
	tx := log.Transaction().TransactionID
	for _, a := range log.Artifacts(KindPosted) {
		var doc PostedDoc
		raw, err := ledger.ReadFile(tree, tx, a.Path)
		if err == nil {
			err = format.Unmarshal("what was posted", raw, &doc)
		}
		if err == nil && doc.Schema != PostedSchema {
			err = errors.New("what was posted is recorded in an unknown schema")
		}
		if err != nil {
			return nil, &ledger.CorruptError{ID: tx, Err: err}
		}
		out = append(out, doc.Comments...)
	}
	return out, nil
}
