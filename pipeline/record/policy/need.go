package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// The kinds of approval (contract: approvals).
const (
	KindFileChange = "fileChange"       // every patch needs it
	KindSecret     = "secrets_override" // the patch adds what looks like a secret
	KindProtected  = "protected_path"   // the patch touches a protected path
	KindBreakGlass = "break_glass"      // one of break_glass stands in for all but a secret's
)

// prefixes are what a kind's fingerprint has before patchset:.
var prefixes = map[string]string{KindFileChange: "", KindSecret: "secret:", KindProtected: "protected:", KindBreakGlass: ""}

// Word is what an approval of a kind is called in a short answer: secret, protected,
// or "" for the change itself.
func Word(kind string) string { return strings.TrimSuffix(prefixes[kind], ":") }

// Fingerprint is what an approval of a kind names: patchset:<id>,
// secret:patchset:<id> or protected:patchset:<id>; break_glass names the patch
// as fileChange does. It panics on another kind.
func Fingerprint(kind, patchID string) string {
	prefix, ok := prefixes[kind]
	if !ok {
		panic("policy: no approvals of kind " + kind)
	}
	return prefix + "patchset:" + patchID
}

// Fingerprints are those of all kinds. A denial of any of them stops the patch.
func Fingerprints(patchID string) []string {
	var out []string
	for _, kind := range []string{KindFileChange, KindSecret, KindProtected} {
		out = append(out, Fingerprint(kind, patchID))
	}
	return out
}

// A Need is one approval that a patch takes: Required people on the fingerprint
// of Kind. The rest is of KindProtected only. If Users, Teams or Owners name
// anybody, only these count; with Owners it is, for each of Paths, whoever owns
// it. Paths are the touched ones that Rules matched ("built-in", approvals.keys,
// explained.bots[n].keys, witnesses.file, protected[n]).
//
// Signed says that only signed approvals count. After is the place in the log of the Advice that asks for it, 0 of another
// need: only what was decided behind it counts.
type Need struct {
	Kind     string   `json:"kind"`
	Prefix   string   `json:"prefix"`
	Required int      `json:"required"`
	Users    []string `json:"users,omitempty"`
	Teams    []string `json:"teams,omitempty"`
	Owners   bool     `json:"owners,omitempty"`
	Paths    []string `json:"paths,omitempty"`
	Rules    []string `json:"rules,omitempty"`
	Signed   bool     `json:"signed,omitempty"`
	After    int      `json:"-"`
}

// Advice says that a tool claimed something of a Level, and where in the log that stands.
type Advice struct {
	Tool  string
	Level Level
	Event int
}

// Needs are the approvals that a patch takes which touches paths (both sides of
// a rename) and, with secret, adds what looks like one: fileChange first, then
// secrets_override, then a protected_path for each set of people that the rules
// name. Those of one kind have one fingerprint; one vote can count for several. Advice, in the
// order of the log, can only add to them.
func (p Policy) Needs(paths []string, secret bool, said ...Advice) []Need {
	signed := p.Approvals.Signing() == SignedOnly
	needs := []Need{{Kind: KindFileChange, Required: max(1, p.Approvals.Required), Signed: signed}}
	if secret {
		needs = append(needs, Need{Kind: KindSecret, Prefix: prefixes[KindSecret], Required: 1, Signed: signed || p.Secrets.Signed == SignedOnly})
	}
	var protected []Need
	for _, m := range p.Rules() {
		var touched []string
		for _, path := range paths {
			if _, ok := m.find(strings.Split(patch.FoldName(path), "/")); ok {
				touched = append(touched, path)
			}
		}
		for _, a := range said {
			if m.Advice.met(a) {
				touched, m.after = paths, a.Event
			}
		}
		if len(touched) > 0 || m.after > 0 {
			protected = addNeed(protected, m, touched, signed)
		}
	}
	return append(needs, protected...)
}

// met reports whether Advice is of a rule's tool, and of its level or above.
func (r *AdviceRule) met(a Advice) bool {
	return r != nil && a.Tool == r.Tool && a.Level.Rank() >= r.Level.Rank()
}

// Rules are all that protect files: the built-in one, those of the files that the Policy itself
// is read from, and its own.
func (p Policy) Rules() []NamedRule {
	files := [][2]string{{keysRule, p.Approvals.Keys}} // who decides, as the Policy itself
	for i, bot := range p.Explained.Bots {
		files = append(files, [2]string{fmt.Sprintf("explained.bots[%d].keys", i), bot.Keys})
	}
	out := []NamedRule{builtInRule()}
	for _, f := range append(files, [2]string{"witnesses.file", p.Witnesses.File}) {
		if f[1] != "" {
			out = append(out, namedRule(f[0], Rule{Paths: []string{"/" + f[1]}, Required: 1}))
		}
	}
	for i, rule := range p.Protected {
		out = append(out, namedRule(fmt.Sprintf("protected[%d]", i), rule))
	}
	return out
}

// keysRule is the name of the rule that protects the file of keys.
const keysRule = "approvals.keys"

// addNeed joins a rule that was met with those that name the same people. If one
// of them asks for signatures, all do: one vote counts for all.
func addNeed(needs []Need, m NamedRule, touched []string, signed bool) []Need {
	n := Need{
		Kind: KindProtected, Prefix: prefixes[KindProtected], Required: max(1, m.Required), Users: sorted(m.Users),
		Teams: sorted(m.Teams), Owners: m.Owners, Paths: sorted(touched), Rules: []string{m.Name}, Signed: signed || m.Signed == SignedOnly,
		After: m.after,
	}
	for i, other := range needs {
		if slices.Equal(other.Users, n.Users) && slices.Equal(other.Teams, n.Teams) && other.Owners == n.Owners && other.After == n.After {
			needs[i].Required = max(other.Required, n.Required)
			needs[i].Paths = sorted(append(other.Paths, n.Paths...))
			needs[i].Rules = append(other.Rules, m.Name)
			needs[i].Signed = other.Signed || n.Signed
			return needs
		}
	}
	return append(needs, n)
}

// sorted is a set in order, nil if it is empty.
func sorted(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// BreaksGlass reports whether the file lists an account under break_glass.
func (p Policy) BreaksGlass(id, login string) bool { return listed(p.Approvals.BreakGlass, id, login) }

// Names reports whether the need is for certain people.
func (n Need) Names() bool { return n.Owners || len(n.Users)+len(n.Teams) > 0 }

// People says in words whom a need names, "" for anybody with the permission.
func (n Need) People() string {
	who := slices.Clone(n.Users)
	for _, team := range n.Teams {
		who = append(who, "team "+team)
	}
	if n.Owners {
		who = append(who, "the code owners")
	}
	return strings.Join(who, ", ")
}
