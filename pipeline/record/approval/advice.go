package approval

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// MaxAdvised is how many findings an artifact of advice has, and MaxAdviceText how many characters a text of them.
const (
	MaxAdvised    = 100
	MaxAdviceText = 500
)

// Advice is the artifact of kind ledger.KindAdvice. Findings are the gravest first, and More counts those that are left out. Nobody has checked them,
// or that the Tool said so: it is the word of its Author. It can add a need (policy.AdviceRule), and takes none away.
type Advice struct {
	Schema        string       `json:"schema"`
	TransactionID string       `json:"transaction_id"`
	PatchID       string       `json:"patch_id"`
	Author        ledger.Actor `json:"author"`
	Tool          string       `json:"tool"`
	Version       string       `json:"version,omitempty"`
	Findings      []Claim      `json:"findings"`
	More          int          `json:"more,omitempty"`
}

// A Claim is one thing that a tool is said to have found. Rule, File and Message are its words, each "" where it has none, and Line is 0
// where it is about the whole file.
type Claim struct {
	Rule    string       `json:"rule,omitempty"`
	Level   policy.Level `json:"level"`
	File    string       `json:"file,omitempty"`
	Line    int          `json:"line,omitempty"`
	Message string       `json:"message,omitempty"`
}

// Check is an error unless the artifact has the form of one of a transaction, rule L27.
func (a Advice) Check(tx ledger.Transaction) error {
	switch {
	case tx.PatchID() == "" || a.PatchID != tx.PatchID() || a.TransactionID != tx.TransactionID:
		return errors.New("the advice is about another change")
	case a.Author.ID == "" || a.Author.Kind == "" || !policy.IsTool(a.Tool) || ledger.OneLine(a.Version, 100) != a.Version:
		return errors.New("the advice does not say who recorded it, or of which tool")
	case len(a.Findings) > MaxAdvised || a.More < 0:
		return fmt.Errorf("the advice has more than %d findings", MaxAdvised)
	}
	for i, f := range a.Findings {
		told := ledger.OneLine(f.Rule, 100) == f.Rule && ledger.OneLine(f.File, MaxAdviceText) == f.File && ledger.OneLine(f.Message, MaxAdviceText) == f.Message
		if !told || f.Line < 0 || f.Level.Rank() < 0 || i > 0 && f.Level.Rank() > a.Findings[i-1].Level.Rank() {
			return fmt.Errorf("finding %d of the advice is not as this program writes it", i+1)
		}
	}
	return nil
}

// ReadAdvice reads one from a transaction's directory, and holds it to its form.
func ReadAdvice(dir fs.FS, log *ledger.Log, stored *ledger.ArtifactStored) (a Advice, err error) {
	if err = ReadArtifact(dir, stored, &a, &a.Schema); err == nil {
		err = a.Check(log.Transaction())
	}
	return a, err
}

// Advised is what tools said in the first n events of a log, as the needs of a Policy depend on it. What cannot be read is an error.
func Advised(dir fs.FS, log *ledger.Log, n int) (said []policy.Advice, err error) {
	for i, event := range log.Payloads()[:n] {
		if stored, is := event.(*ledger.ArtifactStored); is && stored.Kind == ledger.KindAdvice {
			a, err := ReadAdvice(dir, log, stored)
			if err != nil {
				return nil, err
			}
			for _, f := range a.Findings[:min(len(a.Findings), 1)] {
				said = append(said, policy.Advice{Tool: a.Tool, Level: f.Level, Event: i})
			}
		}
	}
	return said, nil
}
