package pull

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

func TestObstacles(t *testing.T) {
	here, fork := forge.Side{Repository: &ledger.Repository{ID: "1"}}, forge.Side{Repository: &ledger.Repository{ID: "2"}}
	protected, ofOrganisation := here, fork
	protected.Protected, ofOrganisation.Owner = true, "Organization"
	for _, c := range []struct {
		state     string
		head      forge.Side
		open      bool // to maintainers
		workflows bool
		want      string
	}{
		{"open", here, false, false, ""},
		{"open", fork, true, false, ""},
		{forge.PullRequestMerged, forge.Side{}, false, true, "pull_request_merged"},
		{forge.PullRequestClosed, protected, false, false, "pull_request_closed"},
		{"open", forge.Side{}, false, false, "head_deleted"},
		{"open", fork, false, false, "fork_closed"},
		{"open", ofOrganisation, true, false, "fork_of_organisation"},
		{"open", protected, false, true, "head_protected workflows_permission"},
	} {
		var codes []string
		for _, o := range obstacles("tx_1", &forge.PullRequest{State: c.state, Head: c.head, Base: here, MaintainerCanModify: c.open}, c.workflows) {
			codes = append(codes, o.Code)
			if o.What == "" || !strings.Contains(o.Instead, "countersign export tx_1 --out DIR") {
				t.Errorf("%s offers nothing: %+v", o.Code, o)
			}
		}
		if got := strings.Join(codes, " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c, got, c.want)
		}
	}
}
