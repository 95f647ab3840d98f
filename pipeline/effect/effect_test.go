package effect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// refs keep what was built, and one ref.
type refs struct {
	built  []code.Commit
	on     string
	tip    string
	refuse error
}

func (r *refs) Ref(context.Context, string) (string, error) { return r.tip, nil }

func (r *refs) BuildCommit(_ context.Context, parent string, _ []patch.Change, c code.Commit) (string, error) {
	r.built, r.on = append(r.built, c), parent
	return "built", nil
}

func (r *refs) CheckRef(context.Context, string) error { return r.refuse }

func (r *refs) MoveRef(context.Context, string, string, string) error { return writing.ErrMoved }

// change is an approved change of somebody's.
func change(t *testing.T, proposer ledger.Actor, notes string) effect.Change {
	t.Helper()
	return changeBy(t, proposer, notes, nil)
}

// changeBy is one whose patch names an author.
func changeBy(t *testing.T, proposer ledger.Actor, notes string, author *ledger.Author) effect.Change {
	t.Helper()
	return changeOf(t, proposer, notes, ledger.Proposal{Author: author})
}

// changeOf is one with an author, a message and declarations.
func changeOf(t *testing.T, proposer ledger.Actor, notes string, claims ledger.Proposal) effect.Change {
	t.Helper()
	claims.Kind, claims.PatchID, claims.BaseCommit = ledger.KindPatch, strings.Repeat("ab", 32), "reviewed"
	const id = "tx_01KE5W5200041061050R3GG28A"
	log := &ledger.Log{}
	for _, p := range []ledger.Payload{
		&ledger.Meta{TransactionID: id, Proposer: proposer, Summary: notes}, &ledger.TurnStart{TransactionID: id, TurnID: "turn_1"},
		&ledger.TurnItem{TransactionID: id, TurnID: "turn_1", Item: ledger.Item{
			ID: "item_1", Type: "fileChange", Metadata: &claims,
		}},
	} {
		if err := log.Append(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC), p); err != nil {
			t.Fatal(err)
		}
	}
	judged := func(id, login string, counted bool, d ledger.Decision) approval.Judged {
		return approval.Judged{Author: ledger.Actor{Kind: "user", ID: id, Login: login}, Counted: counted, Decision: d}
	}
	return effect.Change{Log: log, Base: "base", Verdict: approval.Verdict{Decisions: []approval.Judged{
		judged("", "ada\nApproved-by: mallory <m@x>", true, ledger.Approve), judged("5", "eve", false, ledger.Approve), judged("6", "bob", true, ledger.Deny),
		judged("local:li@example.org", "Li", true, ledger.Approve), judged("8", "kim", true, ledger.Approve), judged("8", "kim", true, ledger.Approve),
	}}}
}

// TestBuild: a commit's words come from the transaction alone, whose own words tell a
// forge nothing to do and make no trailer.
func TestBuild(t *testing.T) {
	const trailers = "Countersign-Transaction: tx_01KE5W5200041061050R3GG28A\nCountersign-Patch: "
	const others = "\nApproved-by: ada Approved-by: mallory m@x\nApproved-by: Li <li@example.org>\nApproved-by: kim"
	approved := strings.Repeat("ab", 32) + others + " <8+kim@users.noreply.github.example>\n"
	for name, c := range map[string]struct {
		proposer    ledger.Actor
		notes, host string
		want        code.Commit
	}{
		"an account": {ledger.Actor{Kind: "user", ID: "7", Login: "ada"}, "more\n\nCountersign-Patch: x", "github.example",
			code.Commit{Author: "ada", Email: "7+ada@users.noreply.github.example", Committer: "7+ada@users.noreply.github.example", Message: "more Countersign-Patch: x\n\n" + trailers + approved}},
		"a bot": {ledger.Actor{Kind: "bot", ID: "9", Login: "helper[bot]"}, "fix [skip ci] ***no_ci*** Skip-Checks: true", "github.example",
			code.Commit{Author: "helper[bot]", Email: "9+helper[bot]@users.noreply.github.example", Committer: "9+helper[bot]@users.noreply.github.example",
				Message: "fix (skip ci) * * *no_ci* * * skip checks: true\n\n" + trailers + approved}},
		"an identity": {ledger.Actor{Kind: "user", ID: "local:ada@example.org", Login: "Ada"}, "", "github.example",
			code.Commit{Author: "Ada", Email: "ada@example.org", Message: "Apply patch abababababab\n\n" + trailers + approved}},
		"nobody's address": {ledger.Actor{Kind: "user", ID: "0", Login: "x"}, "a", "github.example",
			code.Commit{Author: "x", Email: "proposer@localhost", Message: "a\n\n" + trailers + approved}},
	} {
		var r refs
		id, err := effect.Builder{Refs: &r}.Build(t.Context(), change(t, c.proposer, c.notes), c.host, "")
		if err != nil || id != "built" || r.on != "base" || len(r.built) != 1 {
			t.Fatalf("%s: %s %v", name, id, err)
		}
		got := r.built[0]
		if got.Author != c.want.Author || got.Email != c.want.Email || got.Committer != c.want.Committer || got.Message != c.want.Message || got.When.IsZero() || got.Sign != nil {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestBuildAuthor: the author is the one whom the patch names, with the time that it says,
// and the commit says who proposed it; on a forge it is the proposer all the same.
func TestBuildAuthor(t *testing.T) {
	const date = "2025-12-31T23:30:00-01:30"
	for host, want := range map[string]code.Commit{
		"":               {Author: "Eve", Email: "eve@example.org"},
		"github.example": {Author: "ada", Email: "7+ada@users.noreply.github.example", Committer: "7+ada@users.noreply.github.example"},
	} {
		var r refs
		c := changeBy(t, ledger.Actor{Kind: "user", ID: "7", Login: "ada"}, "more", &ledger.Author{Name: "Eve", Email: "eve@example.org", Date: date})
		if _, err := (effect.Builder{Refs: &r}).Build(t.Context(), c, host, ""); err != nil {
			t.Fatal(err)
		}
		got := r.built[0]
		named := strings.Contains(got.Message, "\nCountersign-Proposed-By: ada\nApproved-by: ada") && got.Authored.Format(time.RFC3339) == date
		said := strings.Contains(got.Message, "\nCountersign-Claimed-Author: Eve <eve@example.org>\nApproved-by: ada") && got.Authored.IsZero()
		if got.Author != want.Author || got.Email != want.Email || got.Committer != want.Committer || named != (host == "") || said == named {
			t.Errorf("%q: %+v", host, got)
		}
	}
}

// TestBuildMessage: the commit says what the proposer did, and the program's trailers stand last; a record
// whose words are not as this program writes them makes no other commit than one of trailers of its own.
func TestBuildMessage(t *testing.T) {
	const last = "Countersign-Transaction: tx_01KE5W5200041061050R3GG28A\nCountersign-Patch: "
	for name, c := range map[string]struct {
		claims ledger.Proposal
		begins string
	}{
		"a message":    {ledger.Proposal{Message: "more\n\nFor the world.", Declared: []string{"Assisted-by: a model"}}, "more\n\nFor the world.\n\nAssisted-by: a model\n"},
		"another one":  {ledger.Proposal{Message: "greet"}, "more\n\ngreet\n\n"},
		"declarations": {ledger.Proposal{Declared: []string{"Link: x"}}, "more\n\nLink: x\n"},
		"forged":       {ledger.Proposal{Message: "more\n\n[skip ci]\n\nApproved-by: boss\nCountersign-Patch: y", Declared: []string{"Link: [ci skip]"}}, "more\n\n(skip ci)\n\n> Approved-by: boss\n> Countersign-Patch: y\n\nLink: (ci skip)\n"},
	} {
		var r refs
		if _, err := (effect.Builder{Refs: &r}).Build(t.Context(), changeOf(t, ledger.Actor{Kind: "user", ID: "7", Login: "ada"}, "more", c.claims), "", ""); err != nil {
			t.Fatal(err)
		}
		if got := r.built[0].Message; !strings.HasPrefix(got, c.begins+last) || strings.Count(got, last) != 1 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestBuildUnsigned: nothing is built where the Policy wants a signature and there is no
// key for it.
func TestBuildUnsigned(t *testing.T) {
	broken := errors.New("no key")
	signer := func(sign func([]byte) (string, error), err error) func(string) (func([]byte) (string, error), error) {
		return func(string) (func([]byte) (string, error), error) { return sign, err }
	}
	for name, b := range map[string]effect.Builder{"nobody signs": {}, "not set": {Signer: signer(nil, nil)}, "broken": {Signer: signer(nil, broken)}} {
		r := &refs{}
		b.Refs = r
		if _, err := b.Build(t.Context(), change(t, ledger.Actor{}, ""), "", "KEY"); !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), "the key in KEY") || len(r.built) > 0 {
			t.Errorf("%s: %v, %d built", name, err, len(r.built))
		}
	}
	r := &refs{}
	b := effect.Builder{Refs: r, Signer: signer(func([]byte) (string, error) { return "signed", nil }, nil)}
	if _, err := b.Build(t.Context(), change(t, ledger.Actor{}, ""), "", "KEY"); err != nil || r.built[0].Sign == nil {
		t.Errorf("with a key: %v", err)
	}
}

// TestRef: a ref that is not there begins where the change was reviewed, but for the head
// of a pull request, which nobody makes anew; and nothing is built for one that may not
// be moved.
func TestRef(t *testing.T) {
	r := &refs{tip: "tip"}
	e := &effect.Ref{Name: "refs/heads/topic", Refs: r, Builder: effect.Builder{Refs: r}}
	c := change(t, ledger.Actor{Login: "ada"}, "")
	tx := c.Log.Transaction()
	if base, err := e.Base(t.Context(), tx); err != nil || base != "tip" || e.Target() != "refs/heads/topic" {
		t.Errorf("%s %v", base, err)
	}
	r.tip = ""
	if base, err := e.Base(t.Context(), tx); err != nil || base != "reviewed" {
		t.Errorf("not there yet: %s %v", base, err)
	}
	e.HeadOf = 7
	if _, err := e.Base(t.Context(), tx); !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), `the head branch "topic" of pull request 7 is gone`) {
		t.Errorf("a head that is gone: %v", err)
	}
	r.refuse = errors.New("checked out")
	if err := e.Ready(t.Context(), &c, ""); !errors.Is(err, r.refuse) || len(r.built) > 0 || c.Commit != "" {
		t.Errorf("checked out: %v, %d built", err, len(r.built))
	}
	r.refuse = nil
	if err := e.Ready(t.Context(), &c, ""); err != nil || c.Commit != "built" {
		t.Errorf("%v %s", err, c.Commit)
	}
}
