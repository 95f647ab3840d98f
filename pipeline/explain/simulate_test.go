package explain_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// inForce is the Policy that a transaction's record was decided by.
func inForce(t *testing.T, tree fs.FS, id string) policy.Policy {
	t.Helper()
	dir, err := fs.Sub(tree, ledger.Dir(id))
	fatal(t, err)
	log, err := lookup.Read(tree, id)
	fatal(t, err)
	denials, err := ledger.Denials(tree, log.Transaction().PatchID())
	fatal(t, err)
	r, err := explain.Rejudge(new(approval.Policies), dir, log, denials, policy.Default())
	fatal(t, err)
	return r.Policy
}

// TestInForce: the Policy that was in force changes nothing in any life, and the verdict
// of then is the one that the transaction came to.
func TestInForce(t *testing.T) {
	tree, _ := storetest.Recorded(t, append(storetest.Mixed(18), storetest.Signed)...)
	all, err := lookup.All(tree)
	fatal(t, err)
	seen := map[ledger.Status]bool{}
	for _, tx := range all {
		seen[tx.Status] = true
		c := explain.SimulateTransaction(tree, new(approval.Policies), tx.TransactionID, inForce(t, tree, tx.TransactionID))
		if c.Difference != explain.NoDifference || c.Now != c.Then || len(c.Why) > 0 {
			t.Errorf("%s, %s: %+v", tx.TransactionID, tx.Status, c)
		}
		log, err := lookup.Read(tree, tx.TransactionID)
		fatal(t, err)
		want := map[ledger.Status]approval.State{
			ledger.Completed: approval.Approved, ledger.Applied: approval.Approved, ledger.Awaiting: approval.Pending, ledger.Denied: approval.Denied,
			ledger.Interrupted: approval.Approved, ledger.Superseded: approval.Approved, ledger.Failed: approval.Approved,
		}[tx.Status]
		if tx.Status == ledger.Proposed { // reviewed, or approved and left
			want = approval.Pending
			if len(ledger.Of[*ledger.ApprovalDecision](log)) > 0 {
				want = approval.Approved
			}
		}
		if c.Then != want {
			t.Errorf("%s, %s, is told as %s, not %s", tx.TransactionID, tx.Status, c.Then, want)
		}
	}
	if len(seen) < 7 {
		t.Errorf("only %v", seen)
	}
}

// TestWhatIf: another Policy, and what it makes of one life.
func TestWhatIf(t *testing.T) {
	for _, c := range []struct {
		name string
		life storetest.Life
		edit func(*policy.Policy)
		want string // then, now and the difference
		why  string // part of the reasons
	}{
		{"the defaults", storetest.Whole, func(*policy.Policy) {}, "approved approved none", ""},
		{"a second person", storetest.Whole, func(p *policy.Policy) { p.Approvals.Required = 2 }, "approved pending asks_more", "asks for 2 approvals of the change instead of 1; 1 of 2 approvals"},
		{"signatures", storetest.Whole, func(p *policy.Policy) { p.Approvals.Keys, p.Approvals.Signed = "keys", policy.SignedOnly }, "approved pending asks_more", "is not signed"},
		{"no local decisions", storetest.Whole, func(p *policy.Policy) { p.Approvals.Local = policy.LocalNever }, "approved pending asks_more", "the Policy does not allow local decisions"},
		{"who approved is a bot", storetest.Whole, func(p *policy.Policy) { p.Bots = []string{"local:ada@example.org"} }, "approved pending asks_more", "lists its author under bots"},
		{"a rule for the path", storetest.Whole, func(p *policy.Policy) { p.Protected = []policy.Rule{{Paths: []string{"/dir/"}, Required: 1}} }, "approved pending asks_more", "asks for 1 approval of the protected paths (dir/file0.txt, by protected[0])"},
		{"a rule for another path", storetest.Whole, func(p *policy.Policy) { p.Protected = []policy.Rule{{Paths: []string{"/other/"}, Required: 1}} }, "approved approved none", ""},
		{"one file at most", storetest.Whole, func(p *policy.Policy) { p.Limits.Files = 0 }, "approved refused blocked", "takes 0 files at most, and it has 1"},
		{"few bytes", storetest.Whole, func(p *policy.Policy) { p.Limits.Bytes = 10 }, "approved refused blocked", "takes 10 bytes at most"},
		{"nothing is applied", storetest.Whole, func(p *policy.Policy) { p.Sandbox = policy.ReadOnly }, "approved refused blocked", "sandbox is read-only"},
		{"a command that never ran", storetest.Whole, func(p *policy.Policy) {
			p.Commands.Run = []policy.Check{{Command: policy.Command{Argv: []string{"go", "vet"}}, Required: true}}
		}, "approved unknown unknown", "not known: whether go vet would have passed"},
		{"a command that need not pass", storetest.Whole, func(p *policy.Policy) {
			p.Commands.Run = []policy.Check{{Command: policy.Command{Argv: []string{"go", "vet"}}}}
		}, "approved approved none", ""},
		{"which commit was HEAD", storetest.Whole, func(p *policy.Policy) { p.Approvals.SameHead = true }, "approved unknown unknown", "which commit was the head"},
		{"what moved", storetest.Whole, func(p *policy.Policy) { p.Approvals.Drift = &policy.Drift{Commits: new(int)} }, "approved unknown unknown", "how far the base had moved"},
		{"an age that was kept", storetest.Whole, func(p *policy.Policy) { p.Approvals.MaxAge = policy.Duration(time.Hour) }, "approved approved none", ""},
		{"an age that was not", storetest.Whole, func(p *policy.Policy) { p.Approvals.MaxAge = policy.Duration(time.Second) }, "approved pending asks_more", "expired"},
		{"an apply that was cut off", storetest.CutOff, func(p *policy.Policy) { p.Approvals.Required = 2 }, "approved pending asks_more", "1 of 2"},
		{"one that waits", storetest.Asked, func(p *policy.Policy) { p.Approvals.Required = 3 }, "pending pending asks_more", "asks for 3 approvals of the change instead of 1"},
		{"one that was denied", storetest.Refused, func(p *policy.Policy) { p.Approvals.Required = 2 }, "denied denied none", ""},
		{"a denial of the command line is heard", storetest.Refused, func(p *policy.Policy) { p.Approvals.Permission = policy.CanAdmin }, "denied denied none", ""},
		{"an approved one that was stopped", storetest.Stopped, func(p *policy.Policy) { p.Approvals.Required = 2 }, "approved pending asks_more", "1 of 2"},
		{"a signed one without signing", storetest.Signed, func(*policy.Policy) {}, "approved pending asks_more", "the Policy takes none"},
		{"a signed one by another list", storetest.Signed, func(p *policy.Policy) { p.Approvals.Keys = "other" }, "approved unknown unknown", "whether the key of Ada counts"},
		{"a team, and nobody asked", storetest.Whole, func(p *policy.Policy) {
			p.Protected = []policy.Rule{{Paths: []string{"*.txt"}, Required: 1, Teams: []string{"acme/sec"}}}
		}, "approved pending asks_more", "by team acme/sec"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, ids := storetest.Recorded(t, c.life)
			p := policy.Default()
			c.edit(&p)
			got := explain.SimulateTransaction(tree, new(approval.Policies), ids[0], p)
			if have := string(got.Then) + " " + string(got.Now) + " " + string(got.Difference); have != c.want {
				t.Errorf("%s, want %s: %q", have, c.want, got.Why)
			}
			if why := strings.Join(got.Why, "; "); !strings.Contains(why, c.why) || c.why == "" && why != "" {
				t.Errorf("%q, want %q", why, c.why)
			}
			if (got.AtBest != "") != (got.Now == explain.UnknownVerdict) {
				t.Errorf("at best %q beside %s", got.AtBest, got.Now)
			}
		})
	}
}

// TestLessAsked: a Policy that asks for less than the one that was in force.
func TestLessAsked(t *testing.T) {
	tree, _ := storetest.Recorded(t, storetest.Whole, storetest.Given) // the second one needs two approvals, and has them
	cases, err := explain.Simulate(tree, time.Time{}, policy.Default(), func(int, int) {})
	fatal(t, err)
	var r explain.Simulation
	r.Sum(cases)
	c := r.Cases[0]
	if c.Difference != explain.AsksLess || c.Now != approval.Approved || c.Why[0] != "asks for 1 approval of the change instead of 2" || r.Counts[explain.NoDifference] != 1 {
		t.Errorf("%+v", r)
	}
	// Its two people may be one by a list of keys that was not in force.
	p := policy.Default()
	p.Approvals.Required, p.Approvals.Keys = 2, "other"
	c = explain.SimulateTransaction(tree, new(approval.Policies), c.TransactionID, p)
	if c.Now != explain.UnknownVerdict || c.AtBest != approval.Approved || !strings.Contains(strings.Join(c.Why, "; "), "which accounts other has for one person") {
		t.Errorf("%+v", c)
	}
}

// TestDamaged: a record with any file missing, or changed, is never one without a
// difference.
func TestDamaged(t *testing.T) {
	whole, ids := storetest.Recorded(t, storetest.Whole)
	for name := range whole {
		inside, is := strings.CutPrefix(name, ledger.Dir(ids[0])+"/")
		if !is || inside == "README.md" {
			continue
		}
		for _, change := range []string{"missing", "empty", "changed"} {
			tree := fstest.MapFS{}
			for other, file := range whole {
				tree[other] = file
			}
			switch change {
			case "missing":
				delete(tree, name)
			case "empty":
				tree[name] = &fstest.MapFile{Mode: 0o644}
			case "changed":
				tree[name] = &fstest.MapFile{Data: append([]byte(" "), whole[name].Data...), Mode: 0o644}
			}
			if c := explain.SimulateTransaction(tree, new(approval.Policies), ids[0], policy.Default()); c.Difference != explain.DifferenceUnknown || len(c.Why) == 0 {
				t.Errorf("%s is %s: %+v", inside, change, c)
			}
		}
	}
	if c := explain.SimulateTransaction(fstest.MapFS{}, new(approval.Policies), ids[0], policy.Default()); c.Difference != explain.DifferenceUnknown {
		t.Errorf("no record: %+v", c)
	}
}

// TestSince: what was proposed before is left out, and what is damaged is not.
func TestSince(t *testing.T) {
	tree, _ := storetest.Recorded(t, storetest.Whole, storetest.Reviewed, storetest.Whole)
	all, err := lookup.All(tree)
	fatal(t, err)
	latest := ""
	for _, tx := range all {
		latest = max(latest, tx.UpdatedAt)
	}
	last, err := time.Parse(ledger.TimeFormat, latest)
	fatal(t, err)
	count := func(since time.Time) int {
		cases, err := explain.Simulate(tree, since, policy.Default(), func(int, int) {})
		fatal(t, err)
		return len(cases)
	}
	if n := count(time.Time{}); n != 3 {
		t.Errorf("%d", n)
	}
	if n := count(last); n != 1 {
		t.Errorf("%d since the last one", n)
	}
	tree[ledger.Dir(all[0].TransactionID)+"/"+ledger.TransactionFile] = &fstest.MapFile{Data: []byte("{}")}
	if n := count(last); n != 2 {
		t.Errorf("%d with one that cannot be read", n)
	}
}
