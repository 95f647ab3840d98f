package risk

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A PolicyExplanation is what the Policy asks of a patch.
type PolicyExplanation struct {
	PatchID      string            `json:"patch_id"`
	PolicyCommit string            `json:"policy_commit"`
	PolicySHA256 string            `json:"policy_sha256"`
	Paths        []Explained       `json:"paths"`
	Secrets      []ExplainedSecret `json:"secrets"`
	Needs        []ExplainedNeed   `json:"needs"`
	Commands     []string          `json:"commands"`
	Merge        policy.Merge      `json:"merge,omitempty"` // who merges what becomes a pull request
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

// ExplainPatch says what a Policy, which a commit has, asks of a patch to paths
// that adds these secrets. Its commands are the caller's to fill in.
func ExplainPatch(p policy.Policy, commit, patchID string, paths []string, secrets []ExplainedSecret) PolicyExplanation {
	e := PolicyExplanation{
		PatchID: patchID, PolicyCommit: commit, PolicySHA256: p.Sum(),
		Paths: Explain(p, paths), Secrets: append([]ExplainedSecret{}, secrets...), Needs: []ExplainedNeed{}, Commands: []string{},
	}
	switch {
	case Merges(p):
		e.Merge = policy.MergeAuto
	case p.Apply.To == policy.ToPullRequest:
		e.Merge = policy.MergeHuman
	}
	for _, n := range p.Needs(paths, len(secrets) > 0) {
		e.Needs = append(e.Needs, ExplainedNeed{
			n.Kind, policy.Fingerprint(n.Kind, patchID), n.Required, append([]string{}, n.Users...), append([]string{}, n.Teams...), n.Owners, n.Signed,
		})
	}
	return e
}

// An Explained is a path with the rules that protect it, none where it may
// change with the approvals that every patch needs. Where one of them asks for the
// owners, OwnedBy has them, as CODEOWNERS names them: nobody where it is empty.
type Explained struct {
	Path    string   `json:"path"`
	Rules   []Met    `json:"rules"`
	OwnedBy []string `json:"owned_by,omitzero"`
}

// A Met rule is "built-in", approvals.keys, explained.bots[n].keys, witnesses.file or protected[n], with the first of its globs that
// matches, and what it asks for.
type Met struct {
	Rule     string   `json:"rule"`
	Glob     string   `json:"glob"`
	Required int      `json:"required"`
	Users    []string `json:"users,omitempty"`
	Teams    []string `json:"teams,omitempty"`
	Owners   bool     `json:"owners,omitempty"`
	Signed   bool     `json:"signed,omitempty"`
}

// Explain says of each path which rules it meets, in the order of paths. Policy.Needs
// is what these add up to.
func Explain(p policy.Policy, paths []string) []Explained {
	rules := p.Rules()
	out := make([]Explained, 0, len(paths))
	for _, path := range paths {
		e := Explained{Path: path, Rules: []Met{}}
		for _, r := range rules {
			if glob, ok := r.Match(path); ok {
				e.Rules = append(e.Rules, Met{r.Name, glob, max(1, r.Required), r.Users, r.Teams, r.Owners, r.Signed == policy.SignedOnly})
			}
		}
		out = append(out, e)
	}
	return out
}

// Merges reports whether this program merges what is approved under the Policy. It
// does not where commands are to run first: nothing runs them on a merge.
func Merges(p policy.Policy) bool {
	return p.Apply.To == policy.ToPullRequest && p.Apply.Merge == policy.MergeAuto && len(p.Commands.Run) == 0
}

// Warnings returns what a valid Policy says that does not come to what whoever wrote it may
// think: a merge that is never made, security keys that are asked for of those who sign, where
// nobody has to sign, and signatures where nothing says whose count.
func Warnings(p policy.Policy) []string {
	out := mergeWarnings(p)
	a := p.Approvals
	signing := a.Signing()
	for _, key := range []struct {
		name string
		set  bool
	}{{"hardware", a.Hardware}, {"pin", a.PIN}} {
		switch {
		case !key.set || signing == policy.SignedOnly:
		case signing == policy.SignedOff:
			out = append(out, fmt.Sprintf("approvals.%s: no signature counts at all, and approvals count without one (approvals.signed is off)", key.name))
		default:
			out = append(out, fmt.Sprintf("approvals.%s: who does not sign gets around it, as approvals count without a signature; signed: require closes that", key.name))
		}
	}
	if a.Passkeys != "" && (a.Keys == "" || signing == policy.SignedOff) {
		out = append(out, "approvals.passkeys: no passkey counts without a list of keys, and without signatures (approvals.keys, approvals.signed)")
	}
	lists := a.Keys != "" || a.ForgeKeys
	if !lists && signing != policy.SignedOff {
		out = append(out, fmt.Sprintf("approvals.signed: %s, and nothing says whose keys count: %s (approvals.keys, approvals.forge_keys)", signing, map[policy.Signing]string{
			policy.SignedOnly: "nothing can be approved", policy.SignedToo: "no signature counts",
		}[signing]))
	}
	if lists && signing != policy.SignedOff {
		return out
	}
	asking := func(name string) {
		out = append(out, name+".signed: require, and no signature counts: nothing that it asks about can be approved")
	}
	for i, r := range p.Protected {
		if r.Signed == policy.SignedOnly {
			asking(fmt.Sprintf("protected[%d]", i))
		}
	}
	if p.Secrets.Signed == policy.SignedOnly {
		asking("secrets")
	}
	if slices.Equal(p.Explained.Decisions, []policy.DecisionKind{policy.SignedDecision}) {
		out = append(out, "explained.decisions: signed alone, and no signature counts: no approval accounts for a commit")
	}
	return out
}

// mergeWarnings are those about apply.merge.
func mergeWarnings(p policy.Policy) []string {
	out := []string{}
	switch {
	case p.Apply.Merge != "" && p.Apply.To != policy.ToPullRequest:
		out = append(out, "apply.merge: it says nothing without apply.to: pull_request")
	case p.Apply.Merge == policy.MergeAuto && !Merges(p):
		out = append(out, "apply.merge: auto merges nothing beside commands.run, as nothing runs these on the merge: a person merges")
	}
	return out
}
