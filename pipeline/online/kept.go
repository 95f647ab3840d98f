package online

import (
	"maps"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

const keptSchema = "countersign/online/1"

// A kept is what one run leaves for the next, as canonical JSON.
type kept struct {
	Schema     string   `json:"schema"`
	Address    string   `json:"address"`    // to clone the repository from
	Repository string   `json:"repository"` // its number
	Answers    []answer `json:"answers"`
}

// An answer is what a question came to. Tip is the ledger's when it was asked.
type answer struct {
	Key      string    `json:"key"`
	AskedAt  string    `json:"asked_at"` // RFC 3339, in UTC
	Tip      string    `json:"tip"`
	Findings []Finding `json:"findings"`

	counts bool // it is not too old
}

// readKept returns the answers of former runs by their key, also those that are too old
// to count. Nothing of a file counts that is damaged, whichever part of it is.
func readKept(o Options, at forge.Side) map[string]answer {
	out := map[string]answer{}
	var doc kept
	if len(o.Kept) == 0 || canon.Unmarshal(o.Kept, &doc) != nil || doc.Schema != keptSchema || doc.Address != at.CloneURL || doc.Repository != at.Repository.ID {
		return out
	}
	for _, a := range doc.Answers {
		at, err := time.Parse(time.RFC3339, a.AskedAt)
		_, twice := out[a.Key]
		if err != nil || at.UTC().Format(time.RFC3339) != a.AskedAt || at.After(o.Now) || twice || !a.whole() {
			return map[string]answer{}
		}
		a.counts = o.Now.Sub(at) < o.MaxAge
		out[a.Key] = a
	}
	return out
}

// whole reports whether every finding has a verdict and the answer's time.
func (a answer) whole() bool {
	return !slices.ContainsFunc(a.Findings, func(f Finding) bool {
		return !slices.Contains(Verdicts, f.Verdict) || f.AskedAt != a.AskedAt
	})
}

// answers reports whether an answer is one to a question: it is about the same things, in
// the same words.
func (a answer) answers(q *question) bool {
	return slices.EqualFunc(a.Findings, q.findings, func(f, asked Finding) bool {
		return f.TransactionID == asked.TransactionID && f.What == asked.What && f.About == asked.About && f.Recorded == asked.Recorded
	})
}

// writeKept is the file of the answers there are.
func writeKept(at forge.Side, answers map[string]answer) ([]byte, error) {
	doc := kept{Schema: keptSchema, Address: at.CloneURL, Repository: at.Repository.ID, Answers: []answer{}}
	for _, key := range slices.Sorted(maps.Keys(answers)) {
		doc.Answers = append(doc.Answers, answers[key])
	}
	return canon.Line(doc)
}
