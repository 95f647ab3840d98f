package pipeline

import (
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/proposal"
)

// checks is the artifact with all that a Proposal asks for beyond its files.
func checks(p proposal.Proposal) any {
	actions := []any{}
	for _, a := range append(p.Commands(), p.Checks()...) {
		action := map[string]any{"id": a.ID, "type": a.Type, "target": a.Target, "required": a.Required, "description": a.Description}
		if a.Content != nil {
			action["content"] = *a.Content
		}
		actions = append(actions, action)
	}
	tests := []any{}
	for _, t := range p.AcceptanceTests {
		tests = append(tests, map[string]any{
			"id": t.ID, "name": t.Name, "type": t.Type, "target": t.Target, "expected": t.Expected, "required": t.Required,
		})
	}
	return map[string]any{"schema": "countersign/checks/1", "proposal_id": p.ID, "actions": actions, "acceptance_tests": tests}
}

// plan shows a Proposal's actions and tests to the reviewer.
func plan(p proposal.Proposal) ledger.Item {
	item := ledger.Item{ID: "item_3", Type: "plan", Op: "upsert", Status: "proposed"}
	add := func(id, title string) {
		item.Steps = append(item.Steps, ledger.Step{ID: id, Title: ledger.OneLine(title, 200), Status: "pending"})
	}
	for _, a := range p.Actions {
		add(a.ID, a.Type+" "+a.Target+": "+a.Description)
	}
	for _, t := range p.AcceptanceTests {
		add(t.ID, t.Type+" "+t.Target+": "+t.Name)
	}
	return item
}
