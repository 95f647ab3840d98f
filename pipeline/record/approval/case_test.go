package approval_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

var (
	thePatch = canon.Hex([]byte("the patch"))
	noon     = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	agent    = ledger.Actor{Kind: "bot", ID: "90", Login: "agent[bot]"}
	people   = map[string]ledger.Actor{
		"ada": {Kind: "user", ID: "1", Login: "ada"}, "bob": {Kind: "user", ID: "2", Login: "bob"}, "eve": {Kind: "user", ID: "3", Login: "eve"},
		"agent": agent, "app": {Kind: "bot", ID: "91", Login: "helper"}, "nobody": {Kind: "user", Login: "ada"}, "ghost": {ID: "92", Login: "ghost"},
		"home":    {Kind: "user", ID: "local:ada@home.example", Login: "Ada"},
		"renamed": {Kind: "user", ID: "1", Login: "ada-of-old"}, "reused": {Kind: "user", ID: "4", Login: "ada"}, "2": {Kind: "user", ID: "5", Login: "2"},
	}
)

// spoken reads decisions, one a line:
//
//	ada                        approves the patch by a comment, with write permission, on commit "head", an hour before noon
//	bob deny                   denies it
//	eve secret local           approves the secret, with the command line
//	ada perm=read at=3h on=old patch=<hex> source=review
//	ada glass=down             breaks the glass, and says why
//
// A fingerprint is written secret, protected or, in full, fingerprint=….
func spoken(t *testing.T, lines string) []ledger.ApprovalDecision {
	t.Helper()
	var out []ledger.ApprovalDecision
	for line := range strings.SplitSeq(lines, ";") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		who, known := people[words[0]]
		if !known {
			t.Fatalf("who is %s?", words[0])
		}
		d := ledger.ApprovalDecision{
			Decision: ledger.Approve, Fingerprint: "patchset:" + thePatch, Source: ledger.Source{
				Kind: "issue_comment", Author: who, Permission: "write", Commit: "head", CreatedAt: ledger.FormatTime(noon.Add(-time.Hour)),
			},
		}
		for _, word := range words[1:] {
			adjust(t, &d, word)
		}
		out = append(out, d)
	}
	return out
}

func adjust(t *testing.T, d *ledger.ApprovalDecision, word string) {
	t.Helper()
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "deny":
		d.Decision, d.Reason = ledger.Deny, value
	case "secret", "protected":
		d.Fingerprint = key + ":patchset:" + thePatch
	case "glass": // breaks the glass, for a reason
		d.Source.URL, d.Reason = key, value
	case "sign": // with the key of this name; the signature of the key "bad" is none
		d.Source.Signature = &ledger.Signature{KeyFingerprint: value}
	case "local", "rpc":
		d.Source.Kind, d.Source.Permission = key, key
	case "source":
		d.Source.Kind = value
	case "perm":
		d.Source.Permission = value
	case "on":
		d.Source.Commit = value
	case "fingerprint":
		d.Fingerprint = value
	case "decision":
		d.Decision = ledger.Decision(value)
	case "created":
		d.Source.CreatedAt = value
	case "at":
		ago, err := time.ParseDuration(value)
		fatal(t, err)
		d.Source.CreatedAt = ledger.FormatTime(noon.Add(-ago))
	default:
		t.Fatalf("what is %s?", word)
	}
}

// record is a transaction that the proposer opened, with decisions.
func record(t *testing.T, proposer ledger.Actor, decisions []ledger.ApprovalDecision) *ledger.Log {
	t.Helper()
	const id = "tx_01KE5W5200041061050R3GG28A"
	log := &ledger.Log{}
	events := []ledger.Payload{
		&ledger.Meta{TransactionID: id, Proposer: proposer},
		&ledger.TurnStart{TransactionID: id, TurnID: "turn_1"},
		&ledger.TurnItem{TransactionID: id, TurnID: "turn_1", Item: ledger.Item{
			ID: "item_1", Type: "fileChange", Metadata: &ledger.Proposal{PatchID: thePatch},
		}},
	}
	for i := range decisions {
		d := decisions[i]
		d.ApprovalRequestID, d.TransactionID = fmt.Sprintf("req_%d", i+1), id
		q := &ledger.ApprovalRequest{TransactionID: id, ApprovalRequestID: d.ApprovalRequestID, Fingerprint: d.Fingerprint}
		if strings.HasPrefix(d.Source.URL, "glass") {
			q.Kind = policy.KindBreakGlass
		}
		events = append(events, q, &d)
	}
	for _, e := range events {
		fatal(t, log.Append(noon, e))
	}
	return log
}

// A situation is a Policy file, the touched paths, and what was said. Paths
// "!" adds a secret. Judged tells of each decision, in order, whether it
// counted (+) and part of the reason.
type situation struct {
	name   string
	policy string
	paths  string
	said   string
	state  approval.State
	reason string
	judged string
	edit   func(*approval.Case)
}

func newCase(t *testing.T, p policy.Policy, paths, said string) approval.Case {
	t.Helper()
	return approval.Case{
		Policy: p, Needs: p.Needs(strings.Fields(strings.Trim(paths, "!")), strings.HasPrefix(paths, "!")),
		Log: record(t, agent, spoken(t, said)), Now: noon, Head: "head", PullRequest: true,
		Teams:  func(team string, who ledger.Actor) (bool, error) { return team == "acme/sec" && who.ID == "2", nil },
		Owners: func(path string, who ledger.Actor) (bool, error) { return strings.HasPrefix(path, who.Login+"/"), nil },
		Stands: func(d ledger.ApprovalDecision) string {
			if d.Decision == ledger.Deny || d.Source.Permission == d.Source.Kind {
				t.Errorf("asked whether %+v stands", d)
			}
			return ""
		},
		Signed: func(d ledger.ApprovalDecision) (time.Time, error) {
			if d.Source.Signature.KeyFingerprint == "bad" {
				return time.Time{}, errors.New("it was signed for another patch")
			}
			return noon.Add(-2 * time.Hour), nil
		},
	}
}

func judgeAll(t *testing.T, rows []situation) {
	t.Helper()
	for _, s := range rows {
		t.Run(s.name, func(t *testing.T) {
			p, err := policy.Parse("countersign.yml", []byte(s.policy))
			if s.policy == "" {
				p, err = policy.Default(), nil
			}
			fatal(t, err)
			c := newCase(t, p, s.paths, s.said)
			if s.edit != nil {
				s.edit(&c)
			}
			v := c.Decide()
			if v.State != s.state || v.Reason != s.reason {
				t.Errorf("%s (%s), want %s (%s)", v.State, v.Reason, s.state, s.reason)
			}
			compareJudged(t, v.Decisions, s.judged)
		})
	}
}

func compareJudged(t *testing.T, got []approval.Judged, want string) {
	t.Helper()
	words := strings.FieldsFunc(want, func(r rune) bool { return r == ';' })
	if len(got) != len(words) {
		t.Fatalf("%d decisions judged, want %d: %+v", len(got), len(words), got)
	}
	for i, j := range got {
		word := strings.TrimSpace(words[i])
		if j.Counted != (word[0] == '+') || !strings.Contains(j.Reason, word[1:]) || j.Reason == "" {
			t.Errorf("decision %d: counted %v, %q; want %s", i+1, j.Counted, j.Reason, word)
		}
	}
}

const (
	approved, pending, denied = approval.Approved, approval.Pending, approval.Denied
	none, one                 = "0 of 1 approvals", "1 of 1 approvals"
)

func TestCase(t *testing.T) {
	judgeAll(t, []situation{
		{"nothing said", "", "a", "", pending, none, "", nil},
		{"approved", "", "a", "ada", approved, one, "+approved", nil},
		{"by a review", "", "a", "ada source=review", approved, one, "+approved", nil},
		{"by a review's comment", "", "a", "ada source=review_comment", approved, one, "+approved", nil},
		{"from nowhere", "", "a", "ada source=e-mail", pending, none, "-source is of no known kind", nil},
		{"one of two", "approvals: {required: 2}", "a", "ada", pending, "1 of 2 approvals", "+approved", nil},
		{"two of two", "approvals: {required: 2}", "a", "ada; bob", approved, "2 of 2 approvals", "+approved; +approved", nil},
		{"neither", "", "a", "ada decision=perhaps", pending, none, "-neither", nil},
		{"local on a pull request", "", "a", "ada local", pending, none, "-the Policy does not allow local decisions", nil},
		{"rpc on a pull request", "", "a", "ada rpc", pending, none, "-the Policy does not allow local decisions", nil},
		{"local, allowed", "approvals: {local: true}", "a", "ada local", approved, one, "+approved", nil},
		{"local, alone", "", "a", "ada local", approved, one, "+approved", alone},
		{"local, never", "approvals: {local: false}", "a", "ada local", pending, none, "-does not allow local", alone},
		{"no needs given", "", "a", "", pending, none, "", func(c *approval.Case) { c.Needs = nil }},
		{"the change is left out", "", "a", "ada secret", pending, "0 of 1 approvals; secrets_override: 1 of 1", "+approved",
			func(c *approval.Case) { c.Needs = c.Policy.Needs(nil, true)[1:] }},
		{"a need of none", "", "a", "", pending, none, "", func(c *approval.Case) { c.Needs[0].Required = 0 }},
		{"a secret not asked for", "", "a", "ada secret", pending, none, "-is not asked for", nil},
		{"a protected path not asked for", "", "a", "ada protected; bob", approved, one, "-is not asked for; +approved", nil},
	})
}

func alone(c *approval.Case) { c.PullRequest = false }

// TestT03AnyDenial: a denial of any of the patch's fingerprints, asked for or
// not, from here or elsewhere, wins over all approvals.
func TestT03AnyDenial(t *testing.T) {
	elsewhere := func(fingerprint string) func(*approval.Case) {
		return func(c *approval.Case) {
			c.Denials = []ledger.Denial{{Fingerprint: fingerprint, Author: people["bob"], Reason: "no"}}
		}
	}
	judgeAll(t, []situation{
		{"after approval", "", "a", "ada; bob deny=risky", denied, "denied by bob: risky", "+approved; +denied", nil},
		{"before approval", "", "a", "bob deny; ada", denied, "denied by bob", "+denied; +approved", nil},
		{"of the secret", "", "!a", "ada; bob secret; eve secret deny", denied, "denied by eve", "+approved; +approved; +denied", nil},
		{"of a secret that is not asked for", "", "a", "ada; eve secret deny", denied, "denied by eve", "+approved; +denied", nil},
		{"of the protected path", "", "a", "ada; eve protected deny", denied, "denied by eve", "+approved; +denied", nil},
		{"with little permission", "", "a", "ada; eve deny perm=read", denied, "denied by eve", "+approved; +denied", nil},
		{"that is old and local", "approvals: {local: false, max_age: 1h, same_head: true}", "a", "eve deny local at=99h on=old; ada", denied, "denied by eve",
			"+denied; +approved", nil},
		{"of another patch", "", "a", "ada; eve deny fingerprint=patchset:" + strings.Repeat("0", 64), approved, one, "+approved; -names another patch", nil},
		{"elsewhere", "", "a", "ada", denied, "denied by bob: no", "+approved", elsewhere("patchset:" + thePatch)},
		{"elsewhere, of the secret", "", "a", "ada", denied, "denied by bob: no", "+approved", elsewhere("secret:patchset:" + thePatch)},
		{"the first is told", "", "a", "eve deny=first; bob deny", denied, "denied by eve: first", "+denied; +denied", elsewhere("patchset:" + thePatch)},
	})
}

func TestT06AnotherPatch(t *testing.T) {
	judgeAll(t, []situation{
		{"another patch", "", "a", "ada fingerprint=patchset:" + canon.Hex([]byte("B")), pending, none, "-names another patch", nil},
		{"another patch's secret", "", "!a", "ada; bob fingerprint=secret:patchset:" + canon.Hex([]byte("B")), pending, "1 of 1 approvals; secrets_override: 0 of 1",
			"+approved; -names another patch", nil},
	})
}

func TestT07Inexact(t *testing.T) {
	for _, f := range []string{
		"patchset:" + thePatch[:12], "patchset:" + strings.ToUpper(thePatch), thePatch, "PATCHSET:" + thePatch, "patchset:" + thePatch + "0",
		"secret:secret:patchset:" + thePatch, "break_glass:patchset:" + thePatch, "patchset:",
	} {
		judgeAll(t, []situation{{f, "", "!a", "ada fingerprint=" + f, pending, "0 of 1 approvals; secrets_override: 0 of 1", "-names another patch", nil}})
	}
}

func TestT08Permission(t *testing.T) {
	judgeAll(t, []situation{
		{"read", "", "a", "ada perm=read", pending, none, `-has read permission, write needed`, nil},
		{"triage", "", "a", "ada perm=triage", pending, none, "-triage", nil},
		{"none", "", "a", "ada perm=none", pending, none, "-has no permission, write needed", nil},
		{"no answer", "", "a", "ada perm=", pending, none, "-has no permission, write needed", nil},
		{"an unknown word", "", "a", "ada perm=owner", pending, none, "-owner", nil},
		{"upper case", "", "a", "ada perm=WRITE", pending, none, "-WRITE", nil},
		{"local is no permission", "", "a", "ada perm=local", pending, none, "-local", nil},
		{"maintain", "", "a", "ada perm=maintain", approved, one, "+approved", nil},
		{"triage suffices", "approvals: {permission: triage}", "a", "ada perm=triage", approved, one, "+approved", nil},
		{"admin asked for", "approvals: {permission: admin}", "a", "ada perm=maintain; bob perm=admin", approved, one, "-has maintain permission, admin needed; +approved", nil},
		{"every kind", "", "!CLAUDE.md", "ada perm=read; ada secret perm=read; ada protected perm=read", pending,
			"0 of 1 approvals; secrets_override: 0 of 1; protected_path: 0 of 1", "-read; -read; -read", nil},
		{"a Policy without the word", "", "a", "ada perm=admin", pending, none, "-admin", func(c *approval.Case) { c.Policy.Approvals.Permission = "" }},
	})
}

// TestT10Bots: by kind and id, not by name; and the proposer.
func TestT10Bots(t *testing.T) {
	proposedBy := func(name string) func(*approval.Case) {
		return func(c *approval.Case) { c.Log = record(t, people[name], spoken(t, "ada; bob")) }
	}
	byHand := func(said string) func(*approval.Case) {
		return func(c *approval.Case) { c.Log, c.PullRequest = record(t, people["ada"], spoken(t, said)), false }
	}
	judgeAll(t, []situation{
		{"a bot", "", "a", "app", pending, none, "-not a human account", nil},
		{"a kind we do not know", "", "a", "ghost", pending, none, "-not a human account", nil},
		{"nobody", "", "a", "nobody", pending, none, "-has no author", nil},
		{"a machine account by id", "bots: [1]", "a", "ada; bob", approved, one, "-under bots; +approved", nil},
		{"a machine account by login", "bots: [Ada]", "a", "ada", pending, none, "-under bots", nil},
		{"a machine account, locally", "{bots: [ada], approvals: {local: true}}", "a", "ada local", pending, none, "-under bots", nil},
		{"the proposing bot", "", "a", "agent", pending, none, "-not a human account", nil},
		{"the proposer", "", "a", "", approved, one, "-is the proposer; +approved", proposedBy("ada")},
		{"the proposer, renamed", "", "a", "", approved, one, "-is the proposer; +approved", proposedBy("renamed")},
		{"another of the proposer's name", "", "a", "", approved, "2 of 1 approvals", "+approved; +approved", proposedBy("reused")},
		{"a proposer without an id", "", "a", "", approved, one, "-is the proposer; +approved", proposedBy("nobody")},
		{"solo", "approvals: {allow_author: true}", "a", "", approved, "2 of 1 approvals", "+approved; +approved", proposedBy("ada")},
		{"a committer", "", "a", "ada; bob", approved, one, "+approved; -is the proposer", func(c *approval.Case) { c.Authors = []ledger.Actor{people["bob"]} }},
		{"the proposer, locally", "", "a", "", approved, one, "+approved", byHand("ada local")},
		{"the proposer, locally, a protected path", "", "CLAUDE.md", "", approved, "1 of 1 approvals; protected_path: 1 of 1", "+approved; +approved",
			byHand("ada local; ada local protected")},
		{"the proposer, a protected path", "", "CLAUDE.md", "", pending, "0 of 1 approvals; protected_path: 0 of 1", "-is the proposer; -is the proposer",
			byHand("ada; ada protected")},
	})
}

func TestT11Names(t *testing.T) {
	judgeAll(t, []situation{
		{"one person, renamed", "approvals: {required: 2}", "a", "ada; renamed", pending, "1 of 2 approvals", "+approved; -counted already", nil},
		{"another person of that name", "approvals: {required: 2}", "a", "ada; reused", approved, "2 of 2 approvals", "+approved; +approved", nil},
		{"a login that is another's id", "protected: [{paths: [a], users: [2]}]", "a", "ada; 2 protected", pending, "1 of 1 approvals; protected_path by 2: 0 of 1",
			"+approved; -is not one of 2", nil},
	})
}

func TestT12OneVote(t *testing.T) {
	judgeAll(t, []situation{
		{"twice", "approvals: {required: 2}", "a", "ada; ada", pending, "1 of 2 approvals", "+approved; -counted already", nil},
		{"here and locally", "approvals: {required: 2, local: true}", "a", "ada; ada local", pending, "1 of 2 approvals", "+approved; -counted already", nil},
		{"once for each need", "", "!CLAUDE.md", "ada; ada secret; ada protected", approved,
			"1 of 1 approvals; secrets_override: 1 of 1; protected_path: 1 of 1", "+approved; +approved; +approved", nil},
		{"a void vote is none", "", "a", "ada perm=read; ada", approved, one, "-read; +approved", nil},
	})
}

// TestT35Protected: who may approve protected paths.
func TestT35Protected(t *testing.T) {
	const file = "protected: [{paths: [/x/], users: [ada], teams: [acme/sec]}, {paths: ['*.sql'], required: 2}]"
	const owned = "protected: [{paths: ['*.go'], owners: true}]"
	judgeAll(t, []situation{
		{"built-in, not approved", "", "CLAUDE.md", "ada", pending, "1 of 1 approvals; protected_path: 0 of 1", "+approved", nil},
		{"built-in", "", ".GitHub/Workflows/ci.yml", "ada; bob protected", approved, "1 of 1 approvals; protected_path: 1 of 1", "+approved; +approved", nil},
		{"not the change itself", "", "CLAUDE.md", "ada protected", pending, "0 of 1 approvals; protected_path: 1 of 1", "+approved", nil},
		{"not among the users", file, "x/a", "ada; eve protected", pending, "1 of 1 approvals; protected_path by ada, team acme/sec: 0 of 1",
			"+approved; -is not one of ada, team acme/sec", nil},
		{"a user", file, "x/a", "bob; ada protected", approved, "1 of 1 approvals; protected_path by ada, team acme/sec: 1 of 1", "+approved; +approved", nil},
		{"a team's member", file, "x/a", "ada; bob protected", approved, "1 of 1 approvals; protected_path by ada, team acme/sec: 1 of 1", "+approved; +approved", nil},
		{"no teams known", file, "x/a", "bob protected", pending, "0 of 1 approvals; protected_path by ada, team acme/sec: 0 of 1", "-is not one of",
			func(c *approval.Case) { c.Teams = nil }},
		{"teams cannot be read", file, "x/a", "bob protected", pending, "0 of 1 approvals; protected_path by ada, team acme/sec: 0 of 1", "-acme/sec cannot be told: status 500",
			func(c *approval.Case) {
				c.Teams = func(string, ledger.Actor) (bool, error) { return true, errors.New("status 500") }
			}},
		{"two rules, one vote for both", file, "x/a.sql", "ada; ada protected; bob protected", approved,
			"1 of 1 approvals; protected_path by ada, team acme/sec: 2 of 1; protected_path: 2 of 2", "+approved; +approved; +approved", nil},
		{"two rules, a vote for one", file, "x/a.sql", "ada; eve protected; bob protected", approved,
			"1 of 1 approvals; protected_path by ada, team acme/sec: 1 of 1; protected_path: 2 of 2", "+approved; +approved; +approved", nil},
		{"two rules, one not met", file, "x/a.sql", "ada; eve protected; agent protected", pending,
			"1 of 1 approvals; protected_path by ada, team acme/sec: 0 of 1; protected_path: 1 of 2", "+approved; +approved; -human", nil},
		{"an owner", owned, "ada/x.go", "bob; ada protected", approved, "1 of 1 approvals; protected_path by the code owners: 1 of 1", "+approved; +approved", nil},
		{"another's owner", owned, "ada/x.go", "bob; bob protected", pending, "1 of 1 approvals; protected_path by the code owners: 0 of 1", "+approved; -not one of the code owners", nil},
		{"the owner of one path of two", owned, "ada/x.go bob/y.go", "bob; ada protected", pending, "1 of 1 approvals; protected_path by the code owners: 0 of 1",
			"+approved; +approved", nil},
		{"each path's owner", owned, "ada/x.go bob/y.go", "bob; ada protected; bob protected", approved, "1 of 1 approvals; protected_path by the code owners: 1 of 1",
			"+approved; +approved; +approved", nil},
		{"owners cannot be read", owned, "ada/x.go", "bob; ada protected", pending, "1 of 1 approvals; protected_path by the code owners: 0 of 1",
			"+approved; -ada/x.go cannot be told: status 500", func(c *approval.Case) {
				c.Owners = func(string, ledger.Actor) (bool, error) { return true, errors.New("status 500") }
			}},
		{"no owners known", owned, "ada/x.go", "bob; ada protected", pending, "1 of 1 approvals; protected_path by the code owners: 0 of 1", "+approved; -not one of",
			func(c *approval.Case) { c.Owners = nil }},
	})
}

// TestT46Secrets: by a different human than the proposer, always.
func TestT46Secrets(t *testing.T) {
	const missing = "1 of 1 approvals; secrets_override: 0 of 1"
	byAda := func(said string) func(*approval.Case) {
		return func(c *approval.Case) { c.Log, c.PullRequest = record(t, people["ada"], spoken(t, said)), false }
	}
	judgeAll(t, []situation{
		{"not overridden", "", "!a", "ada", pending, missing, "+approved", nil},
		{"overridden", "", "!a", "ada; ada secret", approved, "1 of 1 approvals; secrets_override: 1 of 1", "+approved; +approved", nil},
		{"by the proposer, locally", "", "!a", "", pending, missing, "+approved; -cannot excuse a secret", byAda("ada local; ada local secret")},
		{"by the proposer, solo", "approvals: {allow_author: true}", "!a", "", pending, missing, "+approved; -cannot excuse a secret", byAda("ada; ada secret")},
		{"by the proposer, renamed", "approvals: {allow_author: true}", "!a", "", pending, missing, "+approved; -cannot excuse a secret", byAda("ada; renamed secret")},
		{"by another, locally", "", "!a", "", approved, "1 of 1 approvals; secrets_override: 1 of 1", "+approved; +approved", byAda("ada local; bob local secret")},
		{"by an author", "", "!a", "ada; bob secret", pending, missing, "+approved; -cannot excuse a secret",
			func(c *approval.Case) { c.Authors = []ledger.Actor{people["bob"]} }},
		{"refused", "secrets: refuse", "!a", "ada; bob secret", pending, missing, "+approved; -the Policy refuses secrets", nil},
	})
}

// TestStale: max_age and same_head.
func TestStale(t *testing.T) {
	const aged, headed = "approvals: {max_age: 2h}", "approvals: {same_head: true}"
	judgeAll(t, []situation{
		{"old, which is fine", "", "a", "ada at=99999h", approved, one, "+approved", nil},
		{"expired", aged, "a", "ada at=3h", pending, none, "-expired", nil},
		{"just in time", aged, "a", "ada at=2h", approved, one, "+approved", nil},
		{"as the forge writes time", aged, "a", "ada created=2026-01-05T11:59:59Z", approved, one, "+approved", nil},
		{"no time", aged, "a", "ada created=yesterday", pending, none, "-age cannot be told", nil},
		{"from the future", aged, "a", "ada at=-2m", pending, none, "-age cannot be told", nil},
		{"a clock that differs", aged, "a", "ada at=-30s", approved, one, "+approved", nil},
		{"no clock", aged, "a", "ada", pending, none, "-age cannot be told", func(c *approval.Case) { c.Now = time.Time{} }},
		{"an old local one", "approvals: {max_age: 2h, local: true}", "a", "ada local at=3h", pending, none, "-expired", nil},
		{"another head, which is fine", "", "a", "ada on=old", approved, one, "+approved", nil},
		{"another head", headed, "a", "ada on=old; bob", approved, one, "-another commit; +approved", nil},
		{"no head", headed, "a", "ada on=", pending, none, "-another commit", func(c *approval.Case) { c.Head = "" }},
	})
}

func TestMissing(t *testing.T) {
	const file = "{approvals: {required: 2}, protected: [{paths: [/x/], users: [ada]}, {paths: ['*.sql'], required: 2}]}"
	p, err := policy.Parse("x", []byte(file))
	fatal(t, err)
	for _, c := range []struct{ paths, said, want string }{
		{"a", "", "fileChange fileChange"},
		{"a", "ada", "fileChange"},
		{"a", "ada; bob", ""},
		{"a", "ada deny", ""},
		{"!x/a.sql", "", "fileChange fileChange secrets_override protected_path protected_path"},
		{"!x/a.sql", "ada; bob; eve protected; bob protected", "secrets_override protected_path"},
		{"!x/a.sql", "ada; bob; eve secret; ada protected; bob protected", ""},
	} {
		var got []string
		for _, q := range plain.Missing(newCase(t, p, c.paths, c.said).Decide()) {
			got = append(got, q.Kind)
			if q.Fingerprint != policy.Fingerprint(q.Kind, thePatch) {
				t.Errorf("%s: %s", q.Kind, q.Fingerprint)
			}
		}
		if joined := strings.Join(got, " "); joined != c.want {
			t.Errorf("%s, %s: missing %q, want %q", c.paths, c.said, joined, c.want)
		}
	}
}

// TestCaseJSON pins the shape that reports print and the ledger keeps.
func TestCaseJSON(t *testing.T) {
	v := newCase(t, policy.Default(), "!a", "ada").Decide()
	line, err := canon.Marshal(v)
	want := `{"decisions":[{"author":{"id":"1","kind":"user","login":"ada"},"counted":true,"created_at":"2026-01-05T11:00:00.000Z","decision":"approve",` +
		`"fingerprint":"patchset:` + thePatch + `","reason":"approved","recorded":true,"source":"issue_comment"}],"needs":[{"approved":1,"fingerprint":"patchset:` + thePatch +
		`","kind":"fileChange","required":1},{"approved":0,"fingerprint":"secret:patchset:` + thePatch + `","kind":"secrets_override","required":1}],` +
		`"reason":"1 of 1 approvals; secrets_override: 0 of 1","verdict":"pending"}`
	if err != nil || string(line) != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, line, want)
	}
}

// TestT10RedactedProposer: where the id of who proposed the change was taken out of the record, nobody can tell that
// an approver is another.
func TestT10RedactedProposer(t *testing.T) {
	for id, want := range map[string]approval.State{"7": approval.Approved, "<REDACTED:generic-api-key>": approval.Pending, "local:<REDACTED:x>": approval.Pending} {
		d := ledger.ApprovalDecision{Decision: ledger.Approve, Fingerprint: "patchset:" + thePatch, Source: ledger.Source{
			Kind: "issue_comment", Author: ledger.Actor{Kind: "user", ID: "8", Login: "ada"}, Permission: "write", CreatedAt: ledger.FormatTime(noon),
		}}
		v := approval.Case{
			Policy: policy.Default(), Needs: policy.Default().Needs([]string{"a.txt"}, false), PullRequest: true, Now: noon,
			Log:    record(t, ledger.Actor{Kind: "user", ID: id, Login: "eve"}, []ledger.ApprovalDecision{d}),
			Stands: func(ledger.ApprovalDecision) string { return "" },
		}.Decide()
		if v.State != want {
			t.Errorf("%s: %+v", id, v)
		}
	}
}
