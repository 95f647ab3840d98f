package attest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// ApprovalType is the predicate type of an Approval. It names the Go module that
// defines it, which is no address that somebody else could come to own.
const ApprovalType = "pkg:golang/github.com/countersign-dev/countersign#attestation/approval/v1"

// Unknown is the value of what was not found out. It never stands for "fine".
const Unknown = "unknown"

// An Approval is the predicate of this program's own statement: what a transaction's
// record proves of how a change was approved. Times are RFC 3339 in UTC, as they are
// recorded; no signature vouches for them but that of a decision.
type Approval struct {
	Transaction string             `json:"transaction"`
	Input       string             `json:"input"` // the kind of the proposal
	Repository  *ledger.Repository `json:"repository,omitempty"`
	PullRequest int                `json:"pullRequest,omitempty"`
	Proposer    ledger.Actor       `json:"proposer"`
	Proposers   []ledger.Actor     `json:"alsoProposedBy"` // while it was open, each once
	ProposedAt  string             `json:"proposedAt"`
	ReviewedOn  string             `json:"reviewedOn"` // the commit whose tree was patched
	SettledAt   string             `json:"settledAt"`
	Policy      Policy             `json:"policy"`
	Needs       []Need             `json:"needs"`
	Decisions   []Decision         `json:"decisions"`
	Change      Change             `json:"change"`
	Ledger      Ledger             `json:"ledger"`
	Extra       json.RawMessage    `json:"extra,omitempty"` // of a later version (package canon)
}

// A Policy is the one that was in force when it was decided. File is false where the
// repository had no Policy file, and the program's defaults were.
type Policy struct {
	Digest Digest `json:"digest"` // of its canonical JSON
	Commit string `json:"commit"` // that it was read from
	File   bool   `json:"file"`
}

// A Need is what the Policy asked for, and how many people gave it.
type Need struct {
	Kind     string `json:"kind"`
	Required int    `json:"required"`
	Approved int    `json:"approved"`
}

// A Decision is one that was recorded. Counted and Why are decided again from the
// record. VerifiedBy are the ways in which it was told who decided: "local" (nobody but
// the process that ran said so), "forge" (the forge's answer, which is recorded) and
// "signature" (a key, verified again). Standing tells what became of it until the
// change was applied or merged: "stood", "fell", "local" (nobody could be asked) or
// "unknown".
type Decision struct {
	Decision   ledger.Decision `json:"decision"`
	Kind       string          `json:"kind"`
	Counted    bool            `json:"counted"`
	Why        string          `json:"why"`
	Author     ledger.Actor    `json:"author"`
	Permission string          `json:"permission"`
	Source     string          `json:"source"`
	URL        string          `json:"url"`
	DecidedAt  string          `json:"decidedAt"`
	VerifiedBy []string        `json:"verifiedBy"`
	Key        *Key            `json:"key,omitempty"`
	Standing   string          `json:"standing"`
	Evidence   []Digest        `json:"evidence"` // artifacts of the record
}

// A Key is the one that a decision was signed with. Listed tells what vouches for it:
// "listed" (the commit of the Policy lists it), "registered" (by the record alone, the
// account had it at the forge) or "unknown" (that commit is not at hand).
type Key struct {
	Fingerprint string `json:"fingerprint"`
	Principal   string `json:"principal"`
	Hardware    bool   `json:"hardware"`
	PIN         bool   `json:"pin"`
	Listed      string `json:"listed"`
}

// What vouches for a key.
const (
	listed     = "listed"
	registered = "registered"
)

// A Change is how the approved patch got into the commit. Result is "exact" where what
// changes from Parent to Commit is the approved patch, byte for byte, and
// "replay" where it is what the patches of these transactions, put one after the other
// onto that parent, make of it (package explain). Of a row of commits that make the change together, Commit is the
// last, and Parent the commit before the first. Strength is that of the decisions that make up for the approval,
// Once "first" where the branch's history tells that it was used for nothing before, else "unknown".
type Change struct {
	Commit       string           `json:"commit"`
	Parent       string           `json:"parent"`
	Approved     string           `json:"approved"` // the patch_id of what was approved
	Shipped      string           `json:"shipped"`  // the patch_id of what the commit changes
	Result       explain.Making   `json:"result"`
	Transactions []string         `json:"transactions"`
	Applied      bool             `json:"applied"` // this program made the commit
	Strength     explain.Strength `json:"strength"`
	Once         string           `json:"once"`
}

// A Ledger is where the record is. Events is the hash of the transaction's events.
type Ledger struct {
	Ref    string `json:"ref"`
	Commit string `json:"commit"`
	Events Digest `json:"events"`
}

// A Record is a settled transaction in a ledger.
type Record struct {
	Tree   fs.FS // of the ledger's commit
	ID     string
	Ref    string
	Commit string
	// Keys reads the list of keys that a Policy names out of a commit of the code, and
	// tells whether that commit is at hand.
	Keys func(commit string, p policy.Policy) (keys approval.Keys, here bool)
}

// A CommitChange is what a commit changes in its first parent, and what accounts for it,
// as they were computed from the trees. Reviewed is the commit whose files were approved,
// where there is one and it is here: a pull request's head, or the commit that was
// applied on the commit that the change was reviewed on.
//
// From is where the change begins that is accounted for, and Shipped its patch_id.
type CommitChange struct {
	Commit, Tree  string
	Parents       []string
	From, Shipped string
	Change        explain.Explanation
	Reviewed      struct{ Commit, Tree string }
	Ref           string // that the commit is on, for statements that name one
	// Of a Summary: the address of the repository, and of the commit's page, and when it was verified.
	Resource, Page, At string
}

// An UnsettledError says why there is nothing to attest.
type UnsettledError struct{ ID, Why string }

func (e *UnsettledError) Error() string { return e.ID + " cannot be attested: " + e.Why }
func (e *UnsettledError) Hint() string  { return "countersign show " + e.ID }
func (e *UnsettledError) Unwrap() error { return fault.Refused }

// New makes the statement of one predicate type about a settled transaction and a commit
// that it explains. The record is verified, and decided again, before; whatever does not
// hold is an error.
func New(predicateType string, r Record, of CommitChange) (Statement, error) {
	s, err := read(r)
	if err != nil {
		return Statement{}, err
	}
	s.of = of
	i := slices.IndexFunc(of.Change.Transactions, func(c explain.Claim) bool { return c.TransactionID == r.ID && c.Explains })
	if i < 0 || len(of.Parents) == 0 || of.Change.From != of.Parents[0] || of.Shipped == "" || of.Change.Commit != of.Commit || of.Change.Tree != of.Tree {
		return Statement{}, &UnsettledError{r.ID, fmt.Sprintf("it does not account for what commit %s changes", of.Commit)}
	}
	if row := of.From + ".." + of.Commit; of.Change.PartOf != "" && (of.Change.PartOf != row || predicateType != ApprovalType) {
		return Statement{}, &UnsettledError{r.ID, fmt.Sprintf("commit %.12s is accounted for only as a part of %s", of.Commit, of.Change.PartOf)}
	}
	switch predicateType {
	case ApprovalType:
		return s.approval()
	case CoverageType:
		return s.coverage()
	case AuthorizationType:
		return s.authorization()
	case PullRequestApprovalType:
		return s.pullRequestApproval()
	case SummaryType:
		return s.summary()
	}
	return Statement{}, fmt.Errorf("the predicate type %.200q is not one of this program's", predicateType)
}

func (s settled) approval() (Statement, error) {
	tx, p, of := s.log.Transaction(), s.proposed, s.of
	events := s.log.Events()
	a := &Approval{
		Transaction: s.ID, Input: p.Kind, Repository: p.Repository, PullRequest: p.PullRequest, Proposer: tx.Proposer,
		ProposedAt: tx.CreatedAt, ReviewedOn: s.log.Meta().BaseCommit, SettledAt: events[len(events)-1].Timestamp,
		Policy: Policy{Digest{SHA256: strings.TrimPrefix(s.doc.SHA256, "sha256:")}, s.doc.Commit, s.doc.Found},
		Needs:  []Need{},
		Change: Change{Commit: of.Commit, Parent: of.From, Approved: p.PatchID, Shipped: of.Shipped, Result: of.Change.Result, Strength: of.Change.Strength, Once: of.Change.Once},
		Ledger: Ledger{s.Ref, s.Record.Commit, Digest{SHA256: canon.Hex(s.log.Bytes())}},
	}
	a.Change.Transactions = []string{s.ID}
	switch {
	case p.PatchID == of.Shipped: // a row as a whole may be, and none of its commits
		a.Change.Result = explain.Exact
	case of.Change.Result == explain.Replay:
		a.Change.Transactions = nil
		for _, c := range of.Change.Transactions {
			if c.Explains {
				a.Change.Transactions = append(a.Change.Transactions, c.TransactionID)
			}
		}
	}
	for _, done := range ledger.Of[*ledger.ApplyComplete](s.log) {
		a.Change.Applied = a.Change.Applied || done.Success && done.CommitAfter == of.Commit
	}
	for _, n := range s.verdict.Needs {
		a.Needs = append(a.Needs, Need{n.Kind, n.Required, n.Approved})
	}
	var err error
	if a.Proposers, err = s.proposers(); err != nil {
		return Statement{}, err
	}
	if a.Decisions, err = s.decisions(); err != nil {
		return Statement{}, err
	}
	return Statement{
		Subject: []Subject{
			{Name: "commit", Digest: Digest{GitCommit: of.Commit, GitTree: of.Tree}},
			{Name: "patch", Digest: Digest{SHA256: p.PatchID}},
		},
		PredicateType: ApprovalType, Predicate: a,
	}, nil
}

// settled is a record that was verified.
type settled struct {
	Record
	dir      fs.FS
	log      *ledger.Log
	proposed *ledger.Proposal
	verdict  approval.Verdict
	policy   policy.Policy
	doc      approval.PolicyDoc
	standing *approval.Standing // nil where none is recorded
	of       CommitChange
}

// read verifies a record and decides again.
func read(r Record) (settled, error) {
	if err := ledger.CheckID(r.ID); err != nil {
		return settled{}, err
	}
	log, found, err := approval.CheckRecord(r.Tree, r.ID)
	if err != nil {
		return settled{}, err
	}
	if len(found) > 0 {
		return settled{}, &ledger.CorruptError{ID: r.ID, Err: fmt.Errorf("its record does not verify: %w", canon.ErrorOf(found))}
	}
	tx := log.Transaction()
	switch {
	case tx.Status != ledger.Completed:
		return settled{}, &UnsettledError{r.ID, plain.Unsettled(log)}
	}
	s := settled{Record: r, log: log, proposed: tx.Pointers.Proposal}
	if s.dir, err = fs.Sub(r.Tree, ledger.Dir(r.ID)); err != nil {
		return settled{}, err
	}
	s.verdict, s.policy, s.doc, err = explain.AsRecorded(new(approval.Policies).Record(s.dir, log))
	if err == nil && s.verdict.State != approval.Approved {
		err = fmt.Errorf("decided again, its verdict is %s", s.verdict.State)
	}
	if err != nil {
		return settled{}, &ledger.CorruptError{ID: r.ID, Err: err}
	}
	if s.proposed.PullRequest > 0 {
		if s.standing, err = forge.ReadStanding(r.Tree, log); err != nil {
			return settled{}, err
		}
	}
	return s, nil
}

// proposers are those who proposed the patch after the first, each once.
func (s settled) proposers() ([]ledger.Actor, error) {
	all, err := lookup.Provenances(s.dir, s.log)
	if err != nil {
		return nil, err
	}
	out := []ledger.Actor{}
	is := func(a ledger.Actor) func(ledger.Actor) bool {
		return func(b ledger.Actor) bool { return a.Kind == b.Kind && a.ID == b.ID }
	}
	first := is(s.log.Transaction().Proposer)
	for _, p := range all {
		if a := p.Proposer; !first(a) && !slices.ContainsFunc(out, is(a)) {
			out = append(out, a)
		}
	}
	return out, nil
}

// decisions are those that were recorded before it was decided, each as the verdict
// judges it.
func (s settled) decisions() ([]Decision, error) {
	out := []Decision{}
	for i, d := range ledger.Of[*ledger.ApprovalDecision](s.log) {
		one := Decision{
			Decision: d.Decision, Kind: s.log.Request(d.ApprovalRequestID).Kind, Why: Unknown, Author: d.Source.Author,
			Permission: d.Source.Permission, Source: d.Source.Kind, URL: d.Source.URL, DecidedAt: d.Source.CreatedAt,
			Standing: s.stood(*d), Evidence: []Digest{}, VerifiedBy: []string{"local"},
		}
		if i < len(s.verdict.Decisions) { // one that came later was not judged
			one.Counted, one.Why = s.verdict.Decisions[i].Counted, s.verdict.Decisions[i].Reason
		}
		files := []string{d.Source.Evidence}
		if approval.IsForge(d.Source) {
			one.VerifiedBy = []string{"forge"}
		}
		if with := d.Source.Signature; with != nil {
			key, err := s.key(*d)
			if err != nil {
				return nil, &ledger.CorruptError{ID: s.ID, Err: fmt.Errorf("the signature of %s: %w", d.ApprovalRequestID, err)}
			}
			one.Key, one.VerifiedBy = key, append(one.VerifiedBy, "signature")
			files = append(files, with.Statement, with.Signature, with.Key)
		}
		for _, file := range files {
			if id := strings.TrimSuffix(path.Base(file), ".json"); canon.IsHex64(id) {
				one.Evidence = append(one.Evidence, Digest{SHA256: id})
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// stood tells what became of a decision until the change was applied or merged.
func (s settled) stood(d ledger.ApprovalDecision) string {
	if !approval.IsForge(d.Source) {
		return "local"
	}
	if s.standing == nil {
		return Unknown
	}
	for _, stood := range s.standing.Decisions {
		switch {
		case stood.ApprovalRequestID != d.ApprovalRequestID:
		case stood.Stands:
			return "stood"
		default:
			return "fell"
		}
	}
	return Unknown
}

// key verifies the signature of a decision again, by the recorded line of the key, and
// tells whether the commit of the Policy has that line.
func (s settled) key(d ledger.ApprovalDecision) (*Key, error) {
	made, line, err := approval.ReadSignature(s.dir, s.log, d)
	if err != nil {
		return nil, err
	}
	about, err := approval.SubjectOf(s.log, approval.ReadParty(s.dir, s.log), d)
	if err != nil {
		return nil, err
	}
	at, err := approval.DecidedIn(s.log, d)
	if err != nil {
		return nil, err
	}
	allowed, err := sshsig.ParseAllowedSigners([]byte(line))
	if err != nil {
		return nil, err
	}
	proof, err := approval.Prove(made, about, approval.Keys{Allowed: allowed}, d.Source, at)
	if err != nil {
		return nil, err
	}
	key := &Key{proof.Fingerprint, proof.Principal, proof.Hardware, proof.Verified, Unknown}
	rules, _, err := new(approval.Policies).Recorded(s.dir, s.log, d.Policy)
	if err != nil || s.Keys == nil {
		return key, err
	}
	began, err := s.log.Time(0)
	if err != nil {
		return nil, err
	}
	switch keys, here := s.Keys(d.Policy.Commit, rules); {
	case !here:
	case keys.Err != nil:
		return nil, fmt.Errorf("the list of keys in commit %s: %w", d.Policy.Commit, keys.Err)
	case keys.Allowed.HasLine(line):
		key.Listed = listed
	case keys.IsRegistered(line, began):
		key.Listed = registered
	default:
		return nil, errors.New("the commit of the Policy does not list its key so")
	}
	return key, nil
}
