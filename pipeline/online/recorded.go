package online

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// recorded is what a ledger says of a forge, the newest first.
type recorded struct {
	said    []statement
	threads []thread
	checks  []checked
	merged  []merged
	denied  []denied
	program ledger.Actor // the newest that applied something on a pull request
	guarded string       // the newest transaction of a pull request's own diff
	gate    merged       // the newest of those that were merged, whose head has the gate's check
}

// A place is the pull request that a transaction is for. Repository is its number.
type place struct {
	Transaction, Repository, Name string
	Number                        int
}

// A statement is a decision that was read on a pull request.
type statement struct {
	place
	Decision ledger.Decision
	Source   ledger.Source
	Doc      approval.StatementDoc // without the texts
	BodyHash string                // of the text that stood there when it was recorded, "" where a secret was taken out
}

// A thread is the comment of the program's that a decision answers, and without which an
// answer that names no patch would say nothing.
type thread struct {
	place
	Posted forge.Posted
}

// A checked is a change that was applied on a pull request, or merged.
type checked struct {
	place
	PatchID, Head string
	By            ledger.Actor // who applied it, zero where that is not recorded
}

// A merged is a pull request whose own diff was approved and merged.
type merged struct {
	place
	Head string
}

// read goes through the transactions of a ledger.
func read(tree fs.FS) (*recorded, error) {
	r := &recorded{}
	for id, err := range lookup.Backward(tree) {
		if err != nil {
			return nil, err
		}
		log, err := lookup.Read(tree, id)
		if err != nil {
			return nil, err
		}
		if err := r.transaction(tree, log); err != nil {
			return nil, &ledger.CorruptError{ID: id, Err: err}
		}
	}
	var err error
	r.denied, _, err = deniedPulls(tree, math.MaxInt)
	return r, err
}

func (r *recorded) transaction(tree fs.FS, log *ledger.Log) error {
	tx := log.Transaction()
	p := tx.Pointers.Proposal
	if p == nil || p.PullRequest == 0 {
		return nil
	}
	at := place{Transaction: tx.TransactionID, Number: p.PullRequest}
	if p.Repository != nil {
		at.Repository, at.Name = p.Repository.ID, p.Repository.Name
	}
	if tx.GateOnly() {
		r.guarded = cmp.Or(r.guarded, tx.TransactionID)
	}
	posted, err := forge.ReadPosted(tree, log)
	if err != nil {
		return err
	}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		if d.Source.Evidence == "" {
			continue // taken at a command line
		}
		s, err := readStatement(tree, log, at, d)
		if err != nil {
			return err
		}
		r.said = append(r.said, s)
		for _, p := range posted {
			t := thread{at, p}
			if p.Kind == s.Source.Kind && p.ID == s.Doc.Statement.ReplyTo && !slices.Contains(r.threads, t) {
				r.threads = append(r.threads, t)
			}
		}
	}
	if tx.Status != ledger.Completed {
		return nil
	}
	standing, err := forge.ReadStanding(tree, log)
	if err != nil {
		return err
	}
	c := checked{place: at, PatchID: p.PatchID, Head: standing.HeadCommit}
	if tx.GateOnly() {
		m := merged{at, standing.HeadCommit}
		r.merged = append(r.merged, m)
		r.gate = cmp.Or(r.gate, m)
	} else if c.By, err = appliedBy(tree, log); err != nil {
		return err
	}
	r.program = cmp.Or(r.program, c.By)
	r.checks = append(r.checks, c)
	return nil
}

// readStatement reads what a decision was read from.
func readStatement(tree fs.FS, log *ledger.Log, at place, d *ledger.ApprovalDecision) (statement, error) {
	s := statement{place: at, Decision: d.Decision, Source: d.Source}
	raw, err := ledger.ReadFile(tree, at.Transaction, d.Source.Evidence)
	if err == nil {
		err = canon.UnmarshalDocument("it", raw, &s.Doc)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", d.Source.Evidence, err)
	}
	redacted := slices.ContainsFunc(log.Artifacts(approval.KindStatement), func(a *ledger.ArtifactStored) bool {
		return a.Path == d.Source.Evidence && a.Redacted
	})
	switch {
	case d.Decision == ledger.Approve: // which stood in the present text
		s.BodyHash = d.Source.BodySHA256 // of the text before anything was taken out
	case !redacted: // a denial counts in an earlier text as well
		s.BodyHash = canon.Sum([]byte(s.Doc.Statement.Body))
	}
	s.Doc.Text, s.Doc.Statement.Body, s.Doc.Statement.Earlier = "", "", nil
	return s, nil
}

// appliedBy is who made the last apply, as its artifact has it.
func appliedBy(tree fs.FS, log *ledger.Log) (ledger.Actor, error) {
	done := ledger.Last[*ledger.ApplyComplete](log)
	if done == nil {
		return ledger.Actor{}, nil
	}
	var doc struct {
		Actor ledger.Actor `json:"actor"`
	}
	raw, err := ledger.ReadFile(tree, log.Transaction().TransactionID, done.ApplyArtifact)
	if err == nil {
		err = json.Unmarshal(raw, &doc) // it has more than that
	}
	return doc.Actor, err
}

// An account is somebody who decided on pull requests, as the newest decision has it.
type account struct {
	Who         ledger.Actor
	Permission  string
	Transaction string
	Repository  string
	Name        string
}

// accounts are they, each number once, those of the newest decisions first.
func (r *recorded) accounts() []account {
	var out []account
	seen := map[string]bool{}
	for _, s := range r.said {
		who := s.Source.Author
		if seen[who.ID+" "+s.Repository] {
			continue
		}
		seen[who.ID+" "+s.Repository] = true
		out = append(out, account{who, s.Source.Permission, s.Transaction, s.Repository, s.Name})
	}
	return out
}

// A talk is what is recorded of the conversation on one pull request.
type talk struct {
	Said    []statement
	Threads []thread
}

// talks are all of them, the newest first. Every thread has an answer.
func (r *recorded) talks() []*talk {
	by := map[place]*talk{}
	var out []*talk
	of := func(at place) *talk {
		at.Transaction, at.Name = "", ""
		if by[at] == nil {
			by[at] = &talk{}
			out = append(out, by[at])
		}
		return by[at]
	}
	for _, s := range r.said {
		t := of(s.place)
		t.Said = append(t.Said, s)
	}
	for _, one := range r.threads {
		t := of(one.place)
		t.Threads = append(t.Threads, one)
	}
	return out
}

// words are a pull request, for people.
func (p place) words() string { return fmt.Sprintf("pull request %d", p.Number) }

// pullNumbers are the pull requests of a repository whose end is asked about, each once.
func (r *recorded) pullNumbers(repository string) []int {
	var out []int
	add := func(p place) {
		if p.Repository == repository && !slices.Contains(out, p.Number) {
			out = append(out, p.Number)
		}
	}
	for _, m := range r.merged {
		add(m.place)
	}
	for _, d := range r.denied {
		add(d.place)
	}
	return out
}
