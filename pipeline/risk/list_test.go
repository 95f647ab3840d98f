package risk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/risk"
)

// T75 Many files of one sort hide none of another, and what somebody else lists beside
// takes no room from the list.
func TestT75Decoys(t *testing.T) {
	const agents, workflow = "agents take it for instructions", "the forge runs it"
	var decoys []risk.Risk
	for i := range 300 {
		decoys = append(decoys, risk.Risk{Kind: risk.Trusted, Path: fmt.Sprintf("-d/%03d/AGENTS.md", i), Detail: agents})
	}
	bad := risk.Risk{Kind: risk.Trusted, Path: ".github/workflows/z.yml", Detail: workflow}
	list := risk.NewList("p", append(slices.Clone(decoys), bad))
	if list.Risks[0].Path != bad.Path || list.Count() != 301 {
		t.Errorf("the workflow is not the first of %d: %+v", list.Count(), list.Risks[0])
	}
	for i := range decoys { // a reason each, all of them before the workflow's by name
		decoys[i].Detail = fmt.Sprintf("!%03d", i)
	}
	long := risk.Risk{Kind: risk.Long, Path: strings.Repeat("p", 60<<10)}
	list = risk.NewList("p", []risk.Risk{bad}).Also(risk.List{Risks: append(decoys, long)})
	if !slices.ContainsFunc(list.Risks, func(r risk.Risk) bool { return r.Path == bad.Path }) || list.Count() != 302 {
		t.Errorf("the workflow gave way: %d, %+v", list.Count(), list.Risks[0])
	}
	if again := risk.NewList("p", []risk.Risk{bad, long}); len(again.Risks) != 2 {
		t.Errorf("a long path takes another kind's room: %+v", again.More)
	}
}

// T75 Kinds that nobody knows take the room of one, and what a record left out is
// counted once.
func TestT75Record(t *testing.T) {
	var risks []risk.Risk
	for i := range 1000 {
		risks = append(risks, risk.Risk{Kind: risk.Kind(fmt.Sprint("kind", i)), Path: "p"})
	}
	list := risk.NewList("p", []risk.Risk{{Kind: risk.Build, Path: "go.mod"}}).Also(risk.List{Risks: risks})
	if len(list.Risks) != 201 || list.Count() != 1001 {
		t.Errorf("%d of %d are named", len(list.Risks), list.Count())
	}
	risks = risks[:0]
	for i := range 300 {
		risks = append(risks, risk.Risk{Kind: risk.Build, Path: fmt.Sprint("go.mod", i)})
	}
	recorded := risk.NewList("p", risks)
	if n := recorded.Also(recorded).Count(); n != 300 {
		t.Errorf("the same list twice has %d", n)
	}
	if n := risk.NewList("p", nil).Also(recorded).Count(); n != 300 {
		t.Errorf("the record alone has %d", n)
	}
	calm := risk.Risk{Kind: risk.Build, Path: "go.mod0", Detail: "looked at by security"}
	if i := slices.IndexFunc(recorded.Also(risk.List{Risks: []risk.Risk{calm}}).Risks, func(r risk.Risk) bool { return r.Detail == calm.Detail }); i >= 0 {
		t.Error("the record's words read as this program's")
	}
	forged := risk.List{More: map[risk.Kind]int{risk.Build: -300, risk.Long: 1 << 62}}
	if again := recorded.Also(forged); again.More[risk.Build] != 100 || again.Count() < 300 {
		t.Errorf("%v", again.More)
	}
}
