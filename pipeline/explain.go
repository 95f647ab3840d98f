package pipeline

import (
	"context"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// An Explanation is what the Policy asks of a patch.
type Explanation struct {
	PatchID      string             `json:"patch_id"`
	PolicyCommit string             `json:"policy_commit"`
	PolicySHA256 string             `json:"policy_sha256"`
	Paths        []policy.Explained `json:"paths"`
	Secrets      []ExplainedSecret  `json:"secrets"`
	Needs        []ExplainedNeed    `json:"needs"`
	Commands     []string           `json:"commands"`
}

// An ExplainedSecret is where a patch adds what looks like a secret; line is 0
// where it is in no line of text.
type ExplainedSecret struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Kind string `json:"kind"`
}

// An ExplainedNeed is one fingerprint that so many people must approve; users,
// teams and owners say which people, where it is not anybody who may.
type ExplainedNeed struct {
	Kind        string   `json:"kind"`
	Fingerprint string   `json:"fingerprint"`
	Required    int      `json:"required"`
	Users       []string `json:"users"`
	Teams       []string `json:"teams"`
	Owners      bool     `json:"owners"`
}

// Explain says what a patch would meet, and records nothing.
func (r *Runner) Explain(ctx context.Context, in input.Change) (Explanation, Known, error) {
	g, err := r.gather(ctx, in)
	if err != nil {
		return Explanation{}, g.known, err
	}
	paths := make([]string, 0, len(g.set.Files()))
	for _, f := range g.set.Files() {
		paths = append(paths, f.Path)
	}
	p := g.rules.Policy
	e := Explanation{
		PatchID: g.id, PolicyCommit: g.rules.Commit, PolicySHA256: p.Sum(),
		Paths: p.Explain(paths), Secrets: []ExplainedSecret{}, Needs: []ExplainedNeed{}, Commands: []string{},
	}
	for _, n := range p.Needs(paths, len(g.found) > 0) {
		e.Needs = append(e.Needs, ExplainedNeed{
			n.Kind, policy.Fingerprint(n.Kind, g.id), n.Required, orEmpty(n.Users), orEmpty(n.Teams), n.Owners,
		})
	}
	for _, f := range g.found {
		e.Secrets = append(e.Secrets, ExplainedSecret(f))
	}
	asked := checksDoc{}
	if in.Proposal != nil {
		asked = askedBy(*in.Proposal)
	}
	for _, w := range wantedCommands(p, asked) {
		e.Commands = append(e.Commands, w.target)
	}
	return e, g.known, nil
}

func orEmpty(words []string) []string {
	if words == nil {
		return []string{}
	}
	return words
}
