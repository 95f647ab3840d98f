package policy

import (
	"fmt"
	"slices"
)

// An Explanation is what the Policy asks of a patch.
type Explanation struct {
	PatchID      string            `json:"patch_id"`
	PolicyCommit string            `json:"policy_commit"`
	PolicySHA256 string            `json:"policy_sha256"`
	Paths        []Explained       `json:"paths"`
	Secrets      []ExplainedSecret `json:"secrets"`
	Needs        []ExplainedNeed   `json:"needs"`
	Commands     []string          `json:"commands"`
	Merge        Merge             `json:"merge,omitempty"` // who merges what becomes a pull request
}

// An ExplainedSecret is where a patch adds what looks like a secret; line is 0
// where it is in no line of text.
type ExplainedSecret struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Kind string `json:"kind"`
}

// An ExplainedNeed is one fingerprint that so many people must approve; users,
// teams and owners say which people, where it is not anybody who may. Signed says
// that only signed approvals count.
type ExplainedNeed struct {
	Kind        string   `json:"kind"`
	Fingerprint string   `json:"fingerprint"`
	Required    int      `json:"required"`
	Users       []string `json:"users"`
	Teams       []string `json:"teams"`
	Owners      bool     `json:"owners"`
	Signed      bool     `json:"signed,omitempty"`
}

// ExplainPatch says what the Policy, which a commit has, asks of a patch to paths
// that adds these secrets. Its commands are the caller's to fill in.
func (p Policy) ExplainPatch(commit, patchID string, paths []string, secrets []ExplainedSecret) Explanation {
	e := Explanation{
		PatchID: patchID, PolicyCommit: commit, PolicySHA256: p.Sum(),
		Paths: p.Explain(paths), Secrets: append([]ExplainedSecret{}, secrets...), Needs: []ExplainedNeed{}, Commands: []string{},
	}
	switch {
	case p.Merges():
		e.Merge = MergeAuto
	case p.Apply.To == ToPullRequest:
		e.Merge = MergeHuman
	}
	for _, n := range p.Needs(paths, len(secrets) > 0) {
		e.Needs = append(e.Needs, ExplainedNeed{
			n.Kind, Fingerprint(n.Kind, patchID), n.Required, append([]string{}, n.Users...), append([]string{}, n.Teams...), n.Owners, n.Signed,
		})
	}
	return e
}

// Warnings are what a valid Policy says that does not come to what whoever wrote it may
// think: a merge that is never made, security keys that are asked for of those who sign, where
// nobody has to sign, and signatures where nothing says whose count.
func (p Policy) Warnings() []string {
	out := p.mergeWarnings()
	a := p.Approvals
	signing := a.Signing()
	for _, key := range []struct {
		name string
		set  bool
	}{{"hardware", a.Hardware}, {"pin", a.PIN}} {
		switch {
		case !key.set || signing == SignedOnly:
		case signing == SignedOff:
			out = append(out, fmt.Sprintf("approvals.%s: no signature counts at all, and approvals count without one (approvals.signed is off)", key.name))
		default:
			out = append(out, fmt.Sprintf("approvals.%s: who does not sign gets around it, as approvals count without a signature; signed: require closes that", key.name))
		}
	}
	lists := a.Keys != "" || a.ForgeKeys
	if !lists && signing != SignedOff {
		out = append(out, fmt.Sprintf("approvals.signed: %s, and nothing says whose keys count: %s (approvals.keys, approvals.forge_keys)", signing, map[Signing]string{
			SignedOnly: "nothing can be approved", SignedToo: "no signature counts",
		}[signing]))
	}
	if lists && signing != SignedOff {
		return out
	}
	asking := func(name string) {
		out = append(out, name+".signed: require, and no signature counts: nothing that it asks about can be approved")
	}
	for i, r := range p.Protected {
		if r.Signed == SignedOnly {
			asking(fmt.Sprintf("protected[%d]", i))
		}
	}
	if p.Secrets.Signed == SignedOnly {
		asking("secrets")
	}
	if slices.Equal(p.Explained.Decisions, []DecisionKind{SignedDecision}) {
		out = append(out, "explained.decisions: signed alone, and no signature counts: no approval accounts for a commit")
	}
	return out
}

// mergeWarnings are those about apply.merge.
func (p Policy) mergeWarnings() []string {
	out := []string{}
	switch {
	case p.Apply.Merge != "" && p.Apply.To != ToPullRequest:
		out = append(out, "apply.merge: it says nothing without apply.to: pull_request")
	case p.Apply.Merge == MergeAuto && !p.Merges():
		out = append(out, "apply.merge: auto merges nothing beside commands.run, as nothing runs these on the merge: a person merges")
	}
	return out
}
