package workpaper

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/view"
)

const unverified = "the word of a shell, which nobody verified"

// A step is one of the way of a change from the request to its deployment: what is known of it, "" for nothing, and where from.
type step struct{ Step, Known, From string }

// chain is the way of a row's change, by each of its transactions.
func chain(row evidence.Row) (steps []step) {
	if row.Commit == "" {
		return nil
	}
	steps = ticketed(row)
	records := row.Records
	if len(records) == 0 {
		records = []evidence.Record{{}} // of which nothing is known
	}
	for _, rec := range records {
		steps = append(steps, asked(rec)...)
		steps = append(steps, proposed(rec))
		steps = append(steps, decided(rec)...)
		steps = append(steps, step{"Checked", checks(rec.Checks), "the record: commands that countersign ran"})
		steps = append(steps, put(rec)...)
	}
	steps = append(steps, told("Checked by the forge", "checks", row.Told, toldChecks(row.Told)))
	came := step{"On the branch", "", "the order of the ledger's commits"}
	if row.CameBy != "" {
		came.Known = strings.TrimSpace("by " + row.CameBy + " " + word("after ", row.CameAfter))
	}
	steps = append(append(steps, came), deployed(row)...)
	return append(steps, told("Deployed, by the forge", "deployments", row.Told, toldDeployments(row.Told)))
}

// told is a step of which the forge alone tells: a list, or why it is not known.
func told(name, what string, t *evidence.Told, list string) step {
	if t == nil {
		return step{name, "", "the forge was not asked (--online), and it is not on record"}
	}
	for _, why := range t.Unknown {
		if strings.HasPrefix(why, what) {
			return step{name, "", "the forge, asked at " + t.AskedAt + ": " + why}
		}
	}
	return step{name, cmp.Or(list, "none"), "the forge, as it was at " + t.AskedAt + ", and not the record"}
}

func toldChecks(t *evidence.Told) string {
	if t == nil {
		return ""
	}
	return view.Joined(t.Checks, "; ", func(c evidence.ToldCheck) string {
		return item(c.Name, ":;()\"") + ": " + item(c.Conclusion, ":;()\"") + word(" of ", item(c.App, ":;()\"")) + word(" at ", c.At) + " (" + short(c.Commit) + ")"
	})
}

func toldDeployments(t *evidence.Told) string {
	if t == nil {
		return ""
	}
	return view.Joined(t.Deployments, "; ", func(d evidence.ToldDeployment) string {
		return "to " + item(d.Environment, ":;()\"") + word(": ", item(d.State, ":;()\"")) + word(" at ", d.At)
	})
}

// deployed are the first deployments that had it.
func deployed(row evidence.Row) (steps []step) {
	for _, d := range row.Deployments {
		from := "the record: the account of the forge " + who(d.Author)
		if strings.HasPrefix(d.Author.ID, "local:") {
			from = "the record, by " + who(d.Author) + ": " + unverified
		}
		steps = append(steps, step{"Deployed", deployment(d), from + word(" ", d.URL)})
	}
	if steps == nil {
		return []step{{"Deployed", "", "no deployment that had it is on record"}}
	}
	return steps
}

func deployment(d evidence.Deployment) string {
	return fmt.Sprintf("to %s at %s, with commit %s", d.Environment, d.DeployedAt, short(d.Commit))
}

// ticketFrom says where a ticket stands.
var ticketFrom = map[string]string{
	"proposal": "the proposal's title or message in the record", "commit": "the message of a commit", "merge": "the message of the merge that brought it",
}

// ticketed are the tickets that its texts name, which nobody has verified.
func ticketed(row evidence.Row) (steps []step) {
	for _, t := range row.Tickets {
		steps = append(steps, step{"Ticket", ticket(t), ticketFrom[t.From] + ": its author's word"})
	}
	if steps == nil {
		return []step{{"Ticket", "", "no text that is kept has what the Policy takes for one (tickets)"}}
	}
	return steps
}

func ticket(t evidence.Ticket) string { return item(ledger.OneLine(t.ID, 100), ";\"") }

// word is a text behind another one, or nothing where there is none.
func word(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

func asked(rec evidence.Record) (steps []step) {
	for _, r := range rec.RequestedBy {
		from := "the word of whoever proposed it"
		if r.IsForges() {
			from = "the forge, of the run that proposed it"
		}
		steps = append(steps, step{"Asked for by", who(r.Actor), from + " (" + r.Source + ")"})
	}
	if steps == nil {
		return []step{{"Asked for by", "", "no proposal names anybody"}}
	}
	return steps
}

func proposed(rec evidence.Record) step {
	if len(rec.Proposers) == 0 {
		return step{"Proposed by", "", "no transaction is about it"}
	}
	from := "the record: accounts of the forge, by their numbers"
	for _, p := range rec.Proposers {
		if strings.HasPrefix(p.ID, "local:") {
			from = "the record: " + unverified
		}
	}
	return step{"Proposed by", people(rec.Proposers) + word(", ", ledger.OneLine(rec.ProposedAt, 40)), from}
}

func decided(rec evidence.Record) (steps []step) {
	for _, d := range rec.Decisions {
		s := step{"Approved by", decision(d), "the record: "}
		if d.Decision != ledger.Approve {
			s.Step = "Denied by"
		}
		if !d.Counted {
			s.Known += ": did not count, " + d.Why
		}
		known := map[string]string{"local": unverified, "forge": "the forge, asked about it", "signature": "a signature with " + d.KeyFingerprint}
		s.From += view.Joined(d.VerifiedBy, ", ", func(by string) string { return known[by] }) + word(" ", d.URL)
		steps = append(steps, s)
	}
	if steps == nil {
		return []step{{"Approved by", "", "no decision is on record"}}
	}
	return steps
}

// put is when it was applied, or merged, and proved.
func put(rec evidence.Record) (steps []step) {
	if rec.AppliedAt != "" {
		steps = append(steps, step{"Applied", rec.AppliedAt, "the record: the bytes were written, and read back"})
	}
	if rec.MergedAt != "" {
		steps = append(steps, step{"Merged", rec.MergedAt, "the forge, asked after the merge"})
	}
	if steps == nil {
		steps = []step{{"Applied or merged", "", "neither is on record"}}
	}
	if rec.CompletedAt != "" {
		steps = append(steps, step{"Proved", rec.CompletedAt, "the record: record, result and files were compared"})
	}
	return steps
}
