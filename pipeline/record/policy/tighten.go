package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// Tighten is p with all that base, the Policy of a pull request's base branch,
// asks for beyond it; where base asks for less, p holds (T20). Call it only
// where the base branch has a file: Default is no wish of anybody's.
//
// What gives somebody power stays as p has it, or shrinks: base can name no
// signing key, no file of keys, no keys of the forge, no recipient of secrets, nobody for break_glass, no bot and no kind of decision that accounts for commits. A command that
// only base runs has no network and no variables.
func Tighten(p, base Policy) Policy {
	out := p
	a, b, gate, g := &out.Approvals, base.Approvals, &out.Gate, base.Gate
	a.Required = max(a.Required, b.Required)
	a.Permission = permissions[max(slices.Index(permissions, a.Permission), slices.Index(permissions, b.Permission), 0)]
	a.AllowAuthor = a.AllowAuthor && b.AllowAuthor
	a.Independent = intersection(parts, union(a.Independent, b.Independent))
	a.SameHead = a.SameHead || b.SameHead
	a.MaxAge = tightenBound(a.MaxAge, b.MaxAge)
	a.Drift = tightenDrift(a.Drift, b.Drift)
	a.Local = min(a.Local, b.Local)
	a.BreakGlass = intersection(a.BreakGlass, b.BreakGlass)
	a.Hardware, a.PIN = a.Hardware || b.Hardware, a.PIN || b.PIN
	if slices.Index(signings, b.Signed) > slices.Index(signings, a.Signing()) {
		a.Signed = b.Signed
	}
	out.Bots = union(p.Bots, base.Bots)
	out.Protected = union(p.Protected, base.Protected)
	out.Sandbox = stricter(p.Sandbox, base.Sandbox, sandboxes)
	out.Secrets.Mode = stricter(p.Secrets.Mode, base.Secrets.Mode, secretsModes)
	if base.Secrets.Signed == SignedOnly {
		out.Secrets.Signed = SignedOnly
	}
	out.Secrets.SealTo = intersection(p.Secrets.SealTo, base.Secrets.SealTo)
	out.Limits = Limits{min(p.Limits.Files, base.Limits.Files), min(p.Limits.Bytes, base.Limits.Bytes), tightenBound(p.Limits.Open, base.Limits.Open)}
	out.Commands = Commands{Run: unionRun(p.Commands.Run, base.Commands.Run), Allow: intersectAllow(p.Commands.Allow, base.Commands.Allow)}
	if base.Apply.Merge != MergeAuto && p.Apply.Merge == MergeAuto {
		out.Apply.Merge = MergeHuman
	}
	if len(p.Gate.Bases) > 0 { // none stands for the default branch, whose Policy p is
		out.Gate.Bases = union(p.Gate.Bases, base.Gate.Bases)
	}
	gate.AllowForce, gate.AllowDelete, gate.AllowTags = gate.AllowForce && g.AllowForce, gate.AllowDelete && g.AllowDelete, gate.AllowTags && g.AllowTags
	out.Explained.Decisions = tightenDecisions(p.Explained.Decisions, base.Explained.Decisions)
	out.Explained.RefuseEmpty = p.Explained.RefuseEmpty || base.Explained.RefuseEmpty
	return out
}

// tightenBound is the smaller of two bounds, of which 0 is none.
func tightenBound[T int | Duration](p, base T) T {
	if p == 0 || base == 0 {
		return max(p, base)
	}
	return min(p, base)
}

// tightenDrift has the bounds of both.
func tightenDrift(p, base *Drift) *Drift {
	if p == nil || base == nil {
		return cmp.Or(p, base)
	}
	out := Drift{cmp.Or(p.Commits, base.Commits), cmp.Or(p.SameDirectory, base.SameDirectory)}
	if base.Commits != nil && *base.Commits < *out.Commits {
		out.Commits = base.Commits
	}
	return &out
}

// tightenDecisions are the kinds that both have. Of a base alone no local ones are taken, as
// whether they account by default depends on more than the Policy.
func tightenDecisions(p, base []DecisionKind) []DecisionKind {
	switch {
	case base == nil || p == nil && len(base) == len(decisionKinds):
		return p
	case p == nil:
		p = []DecisionKind{SignedDecision, ForgeDecision}
	}
	return append([]DecisionKind{}, intersection(p, base)...)
}

// stricter is the one that is first in order; what is not in order is strictest.
func stricter[T comparable](a, b T, order []T) T {
	return order[max(0, min(slices.Index(order, a), slices.Index(order, b)))]
}

func union[T any](a, b []T) []T {
	out := slices.Clone(a)
	for _, one := range b {
		if !slices.ContainsFunc(out, func(had T) bool { return reflect.DeepEqual(had, one) }) {
			out = append(out, one)
		}
	}
	return out
}

func intersection[T comparable](a, b []T) []T {
	var out []T
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// tightenCommand is c with no more leave than base gives it.
func tightenCommand(c, base Command) Command {
	c.Timeout = min(c.Timeout, base.Timeout)
	c.Network = c.Network && base.Network
	c.Env = intersection(c.Env, base.Env)
	return c
}

// unionRun joins commands by argv, as a file may have each argv once.
func unionRun(p, base []Check) []Check {
	out := slices.Clone(p)
	for _, b := range base {
		i := slices.IndexFunc(out, func(c Check) bool { return c.Same(b.Argv) })
		if i < 0 {
			b.Network, b.Env = false, nil
			out = append(out, b)
			continue
		}
		out[i] = Check{tightenCommand(out[i].Command, b.Command), out[i].Required || b.Required}
	}
	return out
}

func intersectAllow(p, base []Command) []Command {
	var out []Command
	for _, c := range p {
		i := slices.IndexFunc(base, func(b Command) bool { return c.Same(b.Argv) && c.Shell == b.Shell })
		if i >= 0 {
			out = append(out, tightenCommand(c, base[i]))
		}
	}
	return out
}

// maxRecorded bounds the bytes that Decode reads. It is beyond what JSON writes
// of two files of maxBytes that were joined.
const maxRecorded = 4 << 20

// Decode reads what JSON wrote, and nothing else: of a file, or of what Tighten
// made of two, which together may be longer than one file can be. The error
// tells what is wrong by key; there are no lines.
func Decode(raw []byte) (Policy, error) {
	if len(raw) > maxRecorded {
		return Policy{}, fmt.Errorf("a recorded Policy of %d bytes, more than %d", len(raw), maxRecorded)
	}
	doc, err := canon.Parse(raw)
	if err != nil {
		return Policy{}, fmt.Errorf("a recorded Policy: %w", err)
	}
	r := &reader{file: "recorded", joined: true}
	p, err := r.policy(jsonNode(doc))
	if err != nil {
		return Policy{}, err
	}
	if !bytes.Equal(p.JSON(), raw) {
		return Policy{}, errors.New("a recorded Policy that this program would write differently")
	}
	return p, nil
}

// jsonNode is a node of a parsed JSON document.
func jsonNode(v any) node {
	n := node{mark: mark{1, 1}, kind: isOther}
	switch v := v.(type) {
	case nil:
		n.kind = isNull
	case bool:
		n.kind, n.text = isBool, fmt.Sprint(v)
	case string:
		n.kind, n.text = isText, v
	case float64:
		n.kind, n.text = isInteger, strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		n.kind = isSequence
		for _, one := range v {
			n.values = append(n.values, jsonNode(one))
		}
	case map[string]any:
		n.kind = isMapping
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.keys = append(n.keys, node{kind: isText, text: key, mark: n.mark})
			n.values = append(n.values, jsonNode(v[key]))
		}
	}
	return n
}
