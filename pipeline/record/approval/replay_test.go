package approval_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A past is a transaction as a gate under a Policy recorded it, and all that was so when
// it did: what the record tells of that, and what it does not.
type past struct {
	t       *testing.T
	policy  policy.Policy
	paths   []string
	secret  bool
	pull    int
	said    []ledger.ApprovalDecision // everything, recorded or not
	gone    map[string]bool           // by id: the comments that were taken away before the verdict
	moved   int                       // commits that the base moved by since any approval
	dir     fstest.MapFS
	log     *ledger.Log
	counted []ledger.ApprovalDecision // recorded as decisions
	kept    []ledger.ApprovalDecision // recorded at all: what does not count with the command line leaves no trace
}

const pastID = "tx_01KE5W5200041061050R3GG28A"

// truth is the verdict by a Policy on all that was so.
func (h *past) truth(p policy.Policy, said []ledger.ApprovalDecision) approval.Case {
	c := approval.Case{
		Policy: p, Needs: p.Needs(h.paths, h.secret), Now: noon, Head: "head", PullRequest: h.pull > 0,
		Teams:  func(team string, who ledger.Actor) (bool, error) { return team == "acme/sec" && who.ID == "2", nil },
		Owners: func(path string, who ledger.Actor) (bool, error) { return strings.HasPrefix(path, who.Login), nil },
		Stands: func(d ledger.ApprovalDecision) string {
			if h.gone[d.Source.ID] {
				return "its comment is gone"
			}
			return approval.Refused(p, approval.Access{Permission: d.Source.Permission})
		},
		Drift: func(from string) approval.Drift {
			return approval.Drift{From: from, To: "to", Commits: h.moved}
		},
	}
	heard := slices.DeleteFunc(slices.Clone(said), func(d ledger.ApprovalDecision) bool {
		return d.Decision == ledger.Deny && d.Source.Kind != "local" && d.Source.Kind != "rpc" && approval.Refused(p, approval.Access{Permission: d.Source.Permission}) != ""
	})
	c.Log = record(h.t, agent, heard)
	return c
}

func (h *past) String() string {
	out := fmt.Sprintf("%s of %v, secret %v, pull request %d, moved %d", h.policy.JSON(), h.paths, h.secret, h.pull, h.moved)
	for _, d := range h.said {
		out += fmt.Sprintf("\n%s %s %s %q %+v", d.Source.Author.Login, d.Decision, d.Fingerprint[:9], d.Reason, d.Source)
	}
	return out
}

func (h *past) add(payloads ...ledger.Payload) {
	for _, p := range payloads {
		fatal(h.t, h.log.Append(noon, p))
	}
}

func (h *past) artifact(kind string, doc any) string {
	line, err := canon.Line(doc)
	fatal(h.t, err)
	file := ledger.ArtifactFile(canon.Hex(line))
	h.dir[file] = &fstest.MapFile{Data: line}
	h.add(&ledger.ArtifactStored{TransactionID: pastID, ArtifactID: canon.Hex(line), Kind: kind, Path: file, StoredSHA256: canon.Sum(line)})
	return file
}

// record writes what a gate would have written, and an apply where that is approved.
func (h *past) record() {
	h.dir, h.log = fstest.MapFS{}, &ledger.Log{}
	doc := forge.PolicyDoc(h.policy, strings.Repeat("a", 40), true)
	ref := ledger.PolicyRef{Commit: doc.Commit, SHA256: doc.SHA256}
	h.add(
		&ledger.Meta{TransactionID: pastID, Proposer: agent, PolicyCommit: doc.Commit, BaseCommit: "base"},
		&ledger.StatusChange{TransactionID: pastID, From: ledger.Created, To: ledger.InProgress},
		&ledger.TurnStart{TransactionID: pastID, TurnID: "turn_1"},
	)
	h.artifact(approval.KindPolicy, doc)
	h.add(
		&ledger.TurnItem{TransactionID: pastID, TurnID: "turn_1", Item: ledger.Item{ID: "item_1", Type: "fileChange", Metadata: &ledger.Proposal{
			Kind: "patch", PatchID: thePatch, TargetFiles: h.paths, ContainsSecrets: h.secret, PullRequest: h.pull, PolicySHA256: doc.SHA256, HeadCommit: "head",
		}}},
		&ledger.StatusChange{TransactionID: pastID, From: ledger.InProgress, To: ledger.Proposed},
		&ledger.StatusChange{TransactionID: pastID, From: ledger.Proposed, To: ledger.Awaiting},
	)
	for i, d := range h.said {
		d.TransactionID, d.ApprovalRequestID, d.Policy = pastID, fmt.Sprintf("req_%d", i+1), ref
		kind := map[bool]string{true: policy.KindBreakGlass}[strings.HasPrefix(d.Source.URL, "glass")]
		there := *h // nothing was taken away yet
		there.gone = nil
		judged := there.truth(h.policy, append(slices.Clone(h.counted), d)).Decide().Decisions
		forge := d.Source.Kind != "local" && d.Source.Kind != "rpc"
		command := approval.Command{Verb: approval.Verb(d.Decision), Fingerprint: d.Fingerprint, Reason: d.Reason, BreakGlass: kind != ""}
		statement := approval.StatementDoc{
			Schema: "countersign/statement/1", Access: approval.Access{Permission: d.Source.Permission}, Command: command,
			Statement: approval.Statement{Kind: d.Source.Kind, ID: d.Source.ID, Author: d.Source.Author, CreatedAt: d.Source.CreatedAt, Commit: d.Source.Commit},
		}
		if len(judged) == len(h.counted)+1 && judged[len(h.counted)].Counted {
			if forge {
				d.Source.Evidence = h.artifact(approval.KindStatement, statement)
			}
			h.add(&ledger.ApprovalRequest{TransactionID: pastID, ApprovalRequestID: d.ApprovalRequestID, Kind: kind, Fingerprint: d.Fingerprint, Policy: ref}, &d)
			h.counted, h.kept = append(h.counted, d), append(h.kept, d)
		} else if forge {
			h.kept = append(h.kept, d)
			h.artifact(approval.KindStatement, statement)
		}
	}
	c := h.truth(h.policy, h.counted)
	asked := forge.StandingAt(noon, h.pull, "head")
	asked.Policy = ref
	for _, d := range h.counted {
		if d.Decision == ledger.Approve && d.Source.Evidence != "" {
			asked.Decisions = append(asked.Decisions, forge.Stood(d, map[bool]string{true: "its comment is gone"}[h.gone[d.Source.ID]], approval.Access{Permission: d.Source.Permission}))
		}
	}
	teams, owners := c.Teams, c.Owners
	c.Teams = func(team string, who ledger.Actor) (bool, error) {
		in, err := teams(team, who)
		if in {
			forge.AddID(asked.Teams, team, who.ID)
		}
		return in, err
	}
	c.Owners = func(path string, who ledger.Actor) (bool, error) {
		owns, err := owners(path, who)
		if owns {
			forge.AddID(asked.Owners, path, who.ID)
		}
		return owns, err
	}
	v := c.Decide()
	switch v.State {
	case approval.Denied:
		h.add(&ledger.StatusChange{TransactionID: pastID, From: ledger.Awaiting, To: ledger.Denied}, &ledger.Close{TransactionID: pastID, Status: ledger.Denied})
	case approval.Approved:
		h.add(&ledger.StatusChange{TransactionID: pastID, From: ledger.Awaiting, To: ledger.Proposed})
		if h.pull > 0 {
			h.artifact(approval.KindStanding, asked)
		}
		if h.policy.Approvals.Drift != nil {
			h.artifact(approval.KindDrift, forge.DriftDoc(h.log, "base", func(from string) approval.Drift {
				return approval.Drift{From: from, To: "base", Commits: h.moved, Names: []string{}}
			}))
		}
		h.add(&ledger.ApplyStart{TransactionID: pastID, ApplyID: "apply_1", BaseCommit: "base", Policy: ref, Approvals: v.Approvals(), PatchIDs: []string{thePatch}})
	}
}

func anyPast(t *testing.T, r *rand.Rand) *past {
	paths := strings.Fields(pick(r, "x", "a", "ada/b", "a CLAUDE.md", "ada/b bob/b"))
	h := &past{t: t, policy: driftingPolicy(r), paths: paths, secret: r.IntN(5) == 0, pull: pick(r, 0, 7, 7), gone: map[string]bool{}, moved: pick(r, 0, 0, 3)}
	words := anyWords(r)
	if r.IntN(3) > 0 { // or next to nothing is approved
		words = pick(r, "", "ada perm=admin;", "ada perm=write; bob perm=write;", "ada local; bob local;", "eve deny perm=read; ada perm=admin; bob perm=admin;", "ada protected perm=admin; ada perm=admin; bob perm=admin;", "ada protected perm=admin; bob protected perm=write; ada perm=admin; bob perm=admin;") + words
	}
	for _, d := range spoken(t, words) {
		local := d.Source.Kind == "local" || d.Source.Kind == "rpc"
		if d.Source.ID = fmt.Sprint(len(h.said) + 1); h.pull > 0 || local {
			h.gone[d.Source.ID] = !local && r.IntN(8) == 0
			h.said = append(h.said, d)
		}
	}
	h.record()
	return h
}

func driftingPolicy(r *rand.Rand) policy.Policy {
	p := anyPolicy(r)
	if r.IntN(5) == 0 {
		p.Approvals.Drift = &policy.Drift{Commits: new(int)}
	}
	return p
}

// TestReplay: the Policy that was in force gives the recorded verdict, and another one
// that of what was so, or none.
func TestReplay(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 90))
	seen := map[string]int{}
	for n := range 500 {
		h := anyPast(t, r)
		again, err := explain.Rejudge(new(approval.Policies), h.dir, h.log, nil, h.policy)
		if err != nil {
			t.Fatalf("%d: %v\n%s", n, err, h)
		}
		then := h.truth(h.policy, h.counted).Decide().State
		if again.State() != then || again.Then.State != then {
			t.Fatalf("%d: the verdict was %s, recorded as %s, and replayed as %s (%v)\n%s", n, then, again.Then.State, again.State(), again.Untold, h)
		}
		p := driftingPolicy(r)
		if r.IntN(2) == 0 { // one that differs in little
			p = h.policy
			p.Approvals.Required = pick(r, 1, 2, 3)
			p.Approvals.Permission = pick(r, p.Approvals.Permission, policy.CanAdmin)
			if r.IntN(2) == 0 {
				p.Protected = []policy.Rule{{Paths: []string{"*"}, Required: pick(r, 1, 1, 2), Owners: r.IntN(3) == 0, Teams: pick(r, nil, []string{"acme/sec"})}}
			}
		}
		got, err := explain.Rejudge(new(approval.Policies), h.dir, h.log, nil, p)
		fatal(t, err)
		want := h.truth(p, h.kept).Decide()
		seen[string(then)+" "+string(got.State())]++
		if got.State() != explain.UnknownVerdict && got.State() != want.State {
			t.Fatalf("%d: %s\nbecomes %s\nthe verdict would have been %s (%s), and is told as %s\n%s", n, h.policy.JSON(), p.JSON(), want.State, want.Reason, cmp.Or(got.State(), "nothing"), h)
		}
		if got.State() == explain.UnknownVerdict && len(got.Untold) == 0 {
			t.Fatalf("%d: nobody says what is not known", n)
		}
	}
	for _, then := range []approval.State{approval.Approved, approval.Pending, approval.Denied} {
		for _, now := range []approval.State{approval.Approved, approval.Pending, approval.Denied, explain.UnknownVerdict} {
			if impossible := then == approval.Denied && (now == approval.Approved || now == approval.Pending); seen[string(then)+" "+string(now)] == 0 && !impossible {
				t.Errorf("no transaction that was %s became %s: %v", then, now, seen)
			}
		}
	}
	t.Log(seen)
}

// TestReplayTooMuchSaid: where as many statements are recorded as are kept, others may have
// been said that are not, and no other Policy's verdict is known.
func TestReplayTooMuchSaid(t *testing.T) {
	for said, want := range map[int]approval.State{forge.KeptStatements - 1: approval.Pending, forge.KeptStatements: explain.UnknownVerdict} {
		h := &past{t: t, policy: policy.Default(), paths: []string{"x"}, pull: 7}
		h.said = spoken(t, strings.Repeat("eve perm=read;", said))
		h.record()
		p := policy.Default()
		p.Approvals.Required = 2
		r, err := explain.Rejudge(new(approval.Policies), h.dir, h.log, nil, p)
		if err != nil || r.State() != want {
			t.Errorf("%d statements: %s, want %s: %v, %v", said, r.State(), want, r.Untold, err)
		}
		if r, err = explain.Rejudge(new(approval.Policies), h.dir, h.log, nil, h.policy); err != nil || r.State() != approval.Pending {
			t.Errorf("%d statements, by the Policy in force: %s, %v", said, r.State(), err)
		}
	}
}

// TestReplayPeople: who was asked about then and is in no team is in none, by another Policy
// too; who was not asked about may be.
func TestReplayPeople(t *testing.T) {
	rules := func(first, second policy.Rule) policy.Policy {
		p := policy.Default()
		first.Paths, second.Paths = []string{"*"}, []string{"*"}
		p.Protected = []policy.Rule{first, second}
		return p
	}
	team, anybody := policy.Rule{Required: 1, Teams: []string{"acme/sec"}}, policy.Rule{Required: 1}
	h := &past{t: t, policy: rules(team, anybody), paths: []string{"x"}, pull: 7}
	h.said = spoken(t, "ada perm=admin; ada protected perm=admin; bob protected perm=admin")
	for i := range h.said {
		h.said[i].Source.ID = fmt.Sprint(i + 1)
	}
	h.record()
	two, other := team, team
	two.Required, other.Teams = 2, []string{"acme/other"}
	for name, c := range map[string]struct {
		policy policy.Policy
		want   approval.State
	}{
		"in force":               {h.policy, approval.Approved},
		"two of the team":        {rules(two, anybody), approval.Pending},
		"a team nobody asked of": {rules(other, anybody), explain.UnknownVerdict},
		"code owners":            {rules(policy.Rule{Required: 1, Owners: true}, anybody), explain.UnknownVerdict},
	} {
		r, err := explain.Rejudge(new(approval.Policies), h.dir, h.log, nil, c.policy)
		if err != nil || r.Then.State != approval.Approved || r.State() != c.want {
			t.Errorf("%s: %s, then %s, want %s: %v, %v", name, r.State(), r.Then.State, c.want, r.Untold, err)
		}
	}
}

// TestReplayDrift: how far the base had moved is known where the Policy in force bounded it.
func TestReplayDrift(t *testing.T) {
	allow := func(commits int) policy.Policy {
		p := policy.Default()
		p.Approvals.Drift = &policy.Drift{Commits: &commits}
		return p
	}
	h := &past{t: t, policy: allow(5), paths: []string{"x"}, pull: 7, moved: 3}
	h.said = spoken(t, "ada")
	h.said[0].Source.ID = "1"
	h.record()
	for commits, want := range map[int]approval.State{2: approval.Pending, 3: approval.Approved} {
		r, err := explain.Rejudge(new(approval.Policies), h.dir, h.log, nil, allow(commits))
		if err != nil || r.Then.State != approval.Approved || r.State() != want {
			t.Errorf("%d commits allowed: %s, then %s: %v, %v", commits, r.State(), r.Then.State, r.Untold, err)
		}
	}
}
