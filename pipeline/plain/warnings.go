package plain

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// Warnings returns what a valid Policy says that does not come to what whoever wrote it may
// think: a merge that is never made, security keys that are asked for of those who sign, where
// nobody has to sign, and signatures or passkeys where nothing says whose count.
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
