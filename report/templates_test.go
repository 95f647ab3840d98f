package report

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// In tests every template is held to fit what it is filled in with, in all of its branches.
var _ = []any{pagetest.CheckTemplates(texts()), pagetest.CheckTemplates(paragraphs())}

// TestTemplatesFit fills in the templates that no other test here does.
func TestTemplatesFit(t *testing.T) {
	for name, text := range map[string]string{
		"audit": Audit(Audited{}, Style{}), "branch": Branch(explain.Branch{}, Style{}), "explanation": Explanation(explain.Explanation{}),
		"online": Online(online.Result{}, Style{}), "simulation": Simulation(explain.Simulation{}, Style{}), "checks": Checks("", nil),
		"asks": Asks(risk.PolicyExplanation{Commands: []string{"make"}}),
	} {
		if text == "" {
			t.Errorf("%s says nothing", name)
		}
	}
	for name, payload := range map[string]ledger.Payload{
		"CommandItem": &ledger.CommandItem{}, "TraceItem": &ledger.TraceItem{}, "StatusChange": &ledger.StatusChange{}, "Close": &ledger.Close{}, "ApplyComplete": &ledger.ApplyComplete{},
	} {
		if (Style{}).fill(name, payload) == "" {
			t.Errorf("%s says nothing", name)
		}
	}
}
