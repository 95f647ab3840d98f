package pipeline

import (
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/proposal"
)

// checksDoc is the artifact with all that a Proposal asks for beyond its files.
type checksDoc struct {
	Schema     string        `json:"schema"`
	ProposalID string        `json:"proposal_id"`
	Actions    []checkAction `json:"actions"`
	Tests      []checkTest   `json:"acceptance_tests"`
}

// checkAction is an execute_command, validate or test action.
type checkAction struct {
	ID          string  `json:"id"`
	Type        string  `json:"type"`
	Target      string  `json:"target"`
	Content     *string `json:"content,omitempty"`
	Required    bool    `json:"required"`
	Description string  `json:"description"`
}

type checkTest struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Type     string `json:"type"`
	Target   string `json:"target"`
	Expected string `json:"expected"`
	Required bool   `json:"required"`
}

func askedBy(p proposal.Proposal) checksDoc {
	doc := checksDoc{Schema: "countersign/checks/1", ProposalID: p.ID, Actions: []checkAction{}, Tests: []checkTest{}}
	for _, a := range append(p.Commands(), p.Checks()...) {
		doc.Actions = append(doc.Actions, checkAction{a.ID, a.Type, a.Target, a.Content, a.Required, a.Description})
	}
	for _, t := range p.AcceptanceTests {
		doc.Tests = append(doc.Tests, checkTest(t))
	}
	return doc
}

// plan shows a Proposal's actions and tests to the reviewer.
func (r *Runner) plan(p proposal.Proposal) ledger.Item {
	item := ledger.Item{ID: "item_3", Type: "plan", Op: "upsert", Status: ledger.ItemInProgress}
	add := func(id, title string) {
		item.Steps = append(item.Steps, ledger.Step{ID: id, Title: r.oneLine(title, 200), Status: ledger.StepPending})
	}
	for _, a := range p.Actions {
		add(a.ID, a.Type+" "+a.Target+": "+a.Description)
	}
	for _, t := range p.AcceptanceTests {
		add(t.ID, t.Type+" "+t.Target+": "+t.Name)
	}
	return item
}
