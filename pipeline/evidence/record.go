package evidence

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// record adds what a transaction tells of a change, which it accounts for, or else only is
// about. One that does not verify tells nothing.
func (t *table) record(row *Row, id string, accounts bool) error {
	if err := ledger.CheckID(id); err != nil {
		row.add(RecordInvalid, "it has no transaction: "+err.Error())
		return nil
	}
	dir, err := fs.Sub(t.Ledger, ledger.Dir(id))
	if err != nil {
		return err
	}
	log, found, err := approval.CheckRecord(t.Ledger, id)
	switch {
	case err != nil:
		return err
	case len(found) > 0:
		if !accounts { // which the row says already
			return nil
		}
		row.add(RecordInvalid, fmt.Sprintf("%s does not verify: %v", id, canon.ErrorOf(found)))
		return nil
	}
	tx := log.Transaction()
	verdict, rules, _, err := explain.AsRecorded(t.policies.Record(dir, log))
	if err == nil && tx.Pointers.Proposal == nil {
		err = fmt.Errorf("nothing is proposed")
	}
	if err == nil && accounts && verdict.State != approval.Approved {
		err = fmt.Errorf("decided again, its verdict is %s (%s)", verdict.State, verdict.Reason)
	}
	r := &Record{
		TransactionID: id, PatchID: tx.PatchID(), Summary: ledger.OneLine(tx.Notes, 200), ProposedAt: tx.CreatedAt, Independent: Untold,
		Proposers: []Person{}, Decisions: []Decision{}, Checks: []Check{}, Needs: []Need{}, Status: tx.Status,
	}
	if err == nil && accounts {
		r.Independent, r.Why, err = Independent(t.policies, dir, log)
	}
	var again []ledger.Provenance
	if err == nil {
		again, err = lookup.Provenances(dir, log)
	}
	if err != nil {
		row.add(RecordInvalid, fmt.Sprintf("%s: %v", id, err))
		return nil
	}
	r.PullRequest = tx.PullRequest()
	if r.PullRequest > 0 {
		r.PullURL = t.Links.Pull(r.PullRequest)
	}
	r.people(dir, log, tx, again)
	for _, n := range verdict.Needs {
		r.Needs = append(r.Needs, Need{n.Kind, n.Required, n.Approved})
	}
	r.decisions(log, verdict)
	r.checks(dir, log)
	r.ends(dir, log)
	if row.Records = append(row.Records, *r); accounts {
		t.judge(row, *r, log, verdict, rules)
	}
	return nil
}

// people are who proposed it, there and elsewhere, who wrote it and who asked for it.
func (r *Record) people(dir fs.FS, log *ledger.Log, tx ledger.Transaction, again []ledger.Provenance) {
	r.Proposers = append(r.Proposers, Person{tx.Proposer, "proposer"})
	for _, p := range again {
		if !p.By(tx.Proposer) {
			r.add(Person{p.Proposer, "proposed_again"})
		}
	}
	for _, a := range tx.Pointers.Proposal.Authors {
		r.add(Person{a, "author"})
	}
	r.RequestedBy = append(r.RequestedBy, tx.RequestedBy()...)
	for _, by := range ledger.Requesters(dir, log) {
		r.RequestedBy = append(r.RequestedBy, by...)
	}
	r.RequestedBy = append([]ledger.Requester{}, ledger.SortRequesters(r.RequestedBy)...)
	named := ledger.Proposers(dir, log)
	for _, a := range log.Artifacts(ledger.KindElsewhere) {
		for _, who := range named[a.Path] {
			r.add(Person{who, ledger.KindElsewhere})
		}
	}
}

func (r *Record) add(p Person) {
	if !slices.ContainsFunc(r.Proposers, func(o Person) bool { return o.Kind == p.Kind && o.ID == p.ID }) {
		r.Proposers = append(r.Proposers, p)
	}
}

// decisions adds those on record.
func (r *Record) decisions(log *ledger.Log, verdict approval.Verdict) {
	n := 0
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		one := Decision{
			Decision: d.Decision, Author: d.Source.Author, Permission: d.Source.Permission, URL: d.Source.URL,
			DecidedAt: d.Source.CreatedAt, VerifiedBy: []string{"local"}, Why: "it came after it was decided",
		}
		if asked := log.Request(d.ApprovalRequestID); asked != nil {
			one.Kind = asked.Kind
		}
		if approval.IsForge(d.Source) {
			one.VerifiedBy = []string{"forge"}
		}
		if d.Source.Signature != nil {
			one.VerifiedBy, one.KeyFingerprint = append(one.VerifiedBy, "signature"), d.Source.Signature.KeyFingerprint
		}
		if n < len(verdict.Decisions) {
			one.Counted, one.Requester, one.Why = verdict.Decisions[n].Counted, verdict.Decisions[n].Asked, verdict.Decisions[n].Reason
		}
		n++
		r.Policy = d.Policy
		r.Decisions = append(r.Decisions, one)
	}
	if start := ledger.Last[*ledger.ApplyStart](log); start != nil {
		r.Policy = start.Policy
	}
}

// checks adds the commands that ran, and the other checks of what was applied.
func (r *Record) checks(dir fs.FS, log *ledger.Log) {
	events := log.Events()
	for i, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.CommandItem:
			c := p.Item
			r.Checks = append(r.Checks, Check{c.Command, c.Status == ledger.ItemCompleted && c.ExitCode == 0, c.Metadata.Required, c.Metadata.When, events[i].Timestamp})
		case *ledger.ArtifactStored:
			if p.Kind != "validation" {
				continue
			}
			var doc struct {
				Checks []struct {
					Type, Target string
					Required     *bool
					OK           bool
				}
			}
			raw, err := fs.ReadFile(dir, p.Path)
			if err == nil {
				err = json.Unmarshal(raw, &doc)
			}
			if err != nil { // the record verifies, so that it is of another program's version
				r.Checks = append(r.Checks, Check{"the checks of " + p.Path + ", which cannot be read", false, true, "after", events[i].Timestamp})
			}
			for _, c := range doc.Checks {
				ran := func(o Check) bool { return o.Name == c.Target && o.When == "after" }
				if !slices.ContainsFunc(r.Checks, ran) {
					r.Checks = append(r.Checks, Check{strings.TrimSpace(c.Type + " " + c.Target), c.OK, c.Required == nil || *c.Required, "after", events[i].Timestamp})
				}
			}
		}
	}
}

// ends notes when it was applied and proved.
func (r *Record) ends(dir fs.FS, log *ledger.Log) {
	if merge, err := approval.ReadMerge(dir, log); err == nil && merge != nil { // CheckRecord has told of an error
		r.MergedAt, r.head = merge.MergedAt, merge.HeadCommit
	}
	events := log.Events()
	for i, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.ApplyComplete:
			if p.Success && r.AppliedAt == "" {
				r.AppliedAt = events[i].Timestamp
			}
		case *ledger.StatusChange:
			if p.To == ledger.Completed {
				r.CompletedAt = events[i].Timestamp
			}
		}
	}
}

// judge adds what is not as it should be.
func (t *table) judge(row *Row, r Record, log *ledger.Log, verdict approval.Verdict, rules policy.Policy) {
	tx := log.Transaction()
	if verdict.BreakGlass {
		row.add(BreakGlass, verdict.Reason)
	}
	switch {
	case r.Independent == Yes:
	case r.Independent == No && !verdict.BreakGlass:
		row.add(DependentApproval, r.Why)
	case r.Independent != No:
		row.add(UnknownIndependence, r.Why)
	}
	if denials, err := ledger.Denials(t.Ledger, tx.PatchID()); err != nil {
		row.add(RecordInvalid, "whether somebody denied it: "+err.Error())
	} else if len(denials) > 0 {
		row.add(Denied, "denied by "+denials[0].Author.Login)
	}
	last := map[string]Check{}
	for _, c := range r.Checks {
		last[c.When+" "+c.Name] = c
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		if c := last[key]; c.Required && !c.Passed {
			row.add(ChecksFailed, c.Name)
		}
	}
	for _, c := range rules.Commands.Run {
		name := strings.Join(c.Argv, " ")
		if !tx.GateOnly() && !slices.ContainsFunc(r.Checks, func(ran Check) bool { return ran.Name == name }) {
			row.add(ChecksAbsent, name)
		}
	}
	switch {
	case tx.Status == ledger.Completed:
	case tx.GateOnly():
		row.add(NotValidated, "that it was merged as approved is not on record")
	default:
		row.add(NotValidated, plain.Unsettled(log))
	}
}
