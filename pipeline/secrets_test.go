package pipeline_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// leak is a patch that adds a made-up secret to a file.
func leak() (patch, secret string) {
	secret = teststand.Samples()[1].Text()
	return "diff --git a/greet.txt b/greet.txt\n--- a/greet.txt\n+++ b/greet.txt\n@@ -1,3 +1,4 @@\n one\n hello\n+" + secret + "\n three\n", secret
}

// proposed records a patch and has ada approve it.
func (w *world) proposed(patch string) string {
	w.Helper()
	out := w.reviews(bot, w.input(patch))
	w.gate(out.ID)
	w.says(ada, ledger.Approve, out.ID)
	return out.ID
}

func (w *world) excuses(who ledger.Actor, tx string) error {
	_, err := w.as(who).Decide(w.Context(), tx, pipeline.Ruling{Decision: ledger.Approve, Fingerprints: []string{"secret"}, Kind: "local"})
	return err
}

// keeps fails the test if the ledger holds a text.
func (w *world) keeps(out string) {
	w.Helper()
	snap := w.ledger()
	_ = fs.WalkDir(snap.Tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if data, err := fs.ReadFile(snap.Tree, name); err != nil || strings.Contains(string(data), out) {
			w.Errorf("%s holds the secret (%v)", name, err)
		}
		return nil
	})
}

// TestT46SecretOverride: a patch with what looks like a secret needs another
// approval, of somebody else than the proposer, and the patch itself.
func TestT46SecretOverride(t *testing.T) {
	w := newWorld(t)
	patch, secret := leak()
	tx := w.proposed(patch)
	if g := w.gate(tx); g.Verdict.State != approval.Pending {
		t.Fatalf("%+v", g.Verdict)
	}
	if err := w.excuses(bot, tx); !errors.Is(err, fault.Refused) {
		t.Errorf("the proposer excused the secret: %v", err)
	}
	fatal(t, w.excuses(bob, tx))
	g := w.gate(tx)
	var redacted *pipeline.RedactedError
	if _, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &redacted) {
		t.Fatalf("%v", err)
	}
	w.holds(base)
	r := w.as(bot)
	if _, err := r.Give(t.Context(), w.ledger(), tx, []byte(fix)); err == nil {
		t.Error("another patch was taken")
	}
	r, err := r.Give(t.Context(), w.ledger(), tx, []byte(patch))
	fatal(t, err)
	if _, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	w.holds(map[string]string{"greet.txt": "one\nhello\n" + secret + "\nthree\n", "old.txt": "old\n", "other.txt": "other\n"})
	w.validate(tx)
	w.sound(tx, ledger.Completed)
	w.keeps(secret)
}

// TestT46DeniedSecret: who denies the secret denies the patch.
func TestT46DeniedSecret(t *testing.T) {
	w := newWorld(t)
	patch, _ := leak()
	tx := w.proposed(patch)
	_, err := w.as(bob).Decide(t.Context(), tx, pipeline.Ruling{Decision: ledger.Deny, Fingerprints: []string{"secret"}, Kind: "local"})
	fatal(t, err)
	w.sound(tx, ledger.Denied)
	var denied *pipeline.DeniedError
	if _, err := review.Run(t.Context(), w.as(bot), w.input(patch), false); !errors.As(err, &denied) {
		t.Errorf("%v", err)
	}
}

// TestT46RefusedSecret: a Policy can end it there, and nothing is recorded.
func TestT46RefusedSecret(t *testing.T) {
	w := newWorld(t)
	w.policy.Secrets.Mode = policy.Refuse
	var refused *redact.FoundError
	patch, secret := leak()
	_, err := review.Run(t.Context(), w.as(bot), w.input(patch), false)
	if !errors.As(err, &refused) || strings.Contains(err.Error(), secret) || w.tip() != "" {
		t.Errorf("%v", err)
	}
}

// TestSecretInContext: what the base has already nobody needs to give again.
func TestSecretInContext(t *testing.T) {
	w := newWorld(t)
	_, secret := leak()
	files := map[string]string{"greet.txt": "one\n" + secret + "\nthree\n", "old.txt": "old\n", "other.txt": "other\n"}
	w.repo.commit(files)
	w.write(files)
	tx := w.proposed("diff --git a/greet.txt b/greet.txt\n--- a/greet.txt\n+++ b/greet.txt\n@@ -1,3 +1,3 @@\n one\n " + secret + "\n-three\n+four\n")
	w.keeps(secret)
	w.apply(w.gate(tx))
	files["greet.txt"] = "one\n" + secret + "\nfour\n"
	w.holds(files)
	w.sound(tx, ledger.Applied)
	w.keeps(secret)
}

// TestT35ProtectedPath: a workflow takes an approval of its own.
func TestT35ProtectedPath(t *testing.T) {
	w := newWorld(t)
	tx := w.proposed("diff --git a/.github/workflows/x.yml b/.github/workflows/x.yml\nnew file mode 100644\n--- /dev/null\n+++ b/.github/workflows/x.yml\n@@ -0,0 +1 @@\n+on: push\n")
	var pending *pipeline.PendingError
	if _, err := w.as(bot).Apply(t.Context(), w.gate(tx), pipeline.ApplyOptions{}); !errors.As(err, &pending) {
		t.Fatalf("%v", err)
	}
	w.holds(base)
	_, err := w.as(bob).Decide(t.Context(), tx, pipeline.Ruling{Decision: ledger.Approve, Fingerprints: []string{"protected"}, Kind: "local"})
	fatal(t, err)
	w.apply(w.gate(tx))
	w.sound(tx, ledger.Applied)
}

// TestT20NewestPolicy: the Policy at the apply rules, whatever held at review;
// what was applied is judged by the Policy of its apply for ever.
func TestT20NewestPolicy(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	tx := g.Transaction().TransactionID
	w.policy.Approvals.Required = 2
	var pending *pipeline.PendingError
	if _, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &pending) {
		t.Fatalf("%v", err)
	}
	w.holds(base)
	w.gate(tx)
	w.policy.Approvals.Required = 1 // a request is open that nobody has to answer any more
	w.apply(w.gate(tx))
	w.sound(tx, ledger.Applied)
	w.policy.Approvals.Required = 3
	if h, err := w.as(bot).History(t.Context(), w.ledger(), tx); err != nil || h.Verdict.State != approval.Approved {
		t.Errorf("%+v %v", h.Verdict, err)
	}
	w.validate(tx)
}

// TestT49NoRawHashes: beside the ids that tie an approval to the bytes, no hash
// of what holds the secret is stored: an artifact is named by its redacted
// bytes, and the input's own hash is left out.
func TestT49NoRawHashes(t *testing.T) {
	w := newWorld(t)
	patch, secret := leak()
	in := w.input(patch)
	in.Trace = []any{map[string]any{"output": secret}}
	out := w.reviews(bot, in)
	w.sound(out.ID, ledger.Proposed)
	w.keeps(secret)
	w.keeps(canon.Hex([]byte(patch)))
	raw, err := canon.Line(map[string]any{"schema": "countersign/trace/1", "calls": in.Trace})
	fatal(t, err)
	w.keeps(canon.Hex(raw))
	log := w.log(out.ID)
	for _, a := range ledger.Of[*ledger.ArtifactStored](log) {
		if a.Redacted != (a.Kind == "trace") {
			t.Errorf("%+v", a)
		}
	}
}

// TestRedactedPatchAndCommands: validate builds the tree again for the commands,
// and takes the patch as apply does.
func TestRedactedPatchAndCommands(t *testing.T) {
	w, shop := commanded(t, "has hello greet.txt")
	patch, _ := leak()
	tx := w.proposed(patch)
	fatal(t, w.excuses(bob, tx))
	given := func() *pipeline.Runner {
		r, err := w.in(shop, bot).Give(t.Context(), w.ledger(), tx, []byte(patch))
		fatal(t, err)
		return r
	}
	if _, err := given().Apply(t.Context(), w.gate(tx), pipeline.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	var redacted *pipeline.RedactedError
	if _, err := w.in(shop, bot).Validate(t.Context(), tx); !errors.As(err, &redacted) {
		t.Errorf("%v", err)
	}
	if v, err := given().Validate(t.Context(), tx); err != nil || !v.Completed {
		t.Errorf("%+v %v", v, err)
	}
	w.sound(tx, ledger.Completed)
}

// TestKeepableTests: what a test expects is recorded, and a secret is
// not: such a Proposal is refused rather than bound to fail.
func TestKeepableTests(t *testing.T) {
	w := newWorld(t)
	var refused *redact.FoundError
	_, secret := leak()
	in := w.input(fix)
	in.Proposal = &document.Proposal{AcceptanceTests: []document.Test{{ID: "t1", Type: document.ContentMatch, Target: "a", Expected: secret}}}
	if _, err := review.Run(t.Context(), w.as(bot), in, false); !errors.As(err, &refused) || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
}

// TestRequiredByAction: an action that must succeed makes the test that it names
// one that must.
func TestRequiredByAction(t *testing.T) {
	w := newWorld(t)
	in := w.input(fix)
	in.Proposal = &document.Proposal{
		Actions:         []document.Action{{ID: "act_0123456789abcdef", Type: document.Validate, Target: "t1", Required: true}},
		AcceptanceTests: []document.Test{{ID: "t1", Type: document.FileExists, Target: "nowhere"}},
	}
	out := w.reviews(bot, in)
	w.gate(out.ID)
	w.says(ada, ledger.Approve, out.ID)
	var failed *pipeline.ChecksError
	if _, err := w.as(bot).Apply(t.Context(), w.gate(out.ID), pipeline.ApplyOptions{}); !errors.As(err, &failed) {
		t.Errorf("%v", err)
	}
	w.holds(base)
}
