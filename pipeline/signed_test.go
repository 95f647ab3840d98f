package pipeline_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// Keys of people, and of others.
var (
	adaKey  = teststand.Ed25519(1)
	bobKey  = teststand.Ed25519(2)
	evesKey = teststand.Ed25519(3)
)

// lists makes these lines the keys of the trusted base, and has the Policy ask for
// signatures.
func (w *world) lists(lines ...string) {
	w.policy.Approvals.Keys, w.policy.Approvals.Signed = "keys", policy.SignedOnly
	w.keys = strings.Join(lines, "\n") + "\n"
}

// statement is what somebody signs who approves the change of a transaction now.
func (w *world) statement(tx string, fingerprints ...string) approval.SignedDecision {
	w.Helper()
	s, err := w.history(tx).Statement(ledger.Approve, fingerprints, "read it", w.time())
	fatal(w, err)
	return s
}

// signedPull is a pull request whose Policy asks for signatures of listed keys, with a
// transaction.
func signedPull(t *testing.T) (h *hub, tx, fingerprint string) {
	h = newHub(newWorld(t))
	h.w.lists("ada,ada@example.org "+adaKey.Public, "bob "+bobKey.Public)
	tx, fingerprint = h.propose()
	h.gate(tx)
	return h, tx, fingerprint
}

// TestT72SignedPull: with a Policy that asks for it, an account is not enough, and a
// signature that the account posts is; the record has all that shows it.
func TestT72SignedPull(t *testing.T) {
	h, tx, fingerprint := signedPull(t)
	h.said = nil
	h.says(adaThere, "/approve "+fingerprint)
	h.want(tx, approval.Pending, "is not signed, which the Policy asks for: countersign sign --pr 7")
	h.says(adaThere, approval.SignedLine(adaKey.Signs(h.w.statement(tx, fingerprint))))
	g := h.want(tx, approval.Approved, "approved")
	h.apply(g)
	if _, err := h.runner().Validate(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	h.w.sound(tx, ledger.Completed)
	h.w.verifies(tx)

	log := h.w.log(tx)
	d := ledger.Of[*ledger.ApprovalDecision](log)[0]
	if s := d.Source.Signature; s == nil || s.Principal != "ada" || !strings.HasPrefix(s.KeyFingerprint, "SHA256:") || d.Reason != "read it" {
		t.Errorf("%+v", d)
	}
	// A key that is revoked later stays good in the record.
	h.w.lists("ada " + evesKey.Public)
	if g := h.gate(tx); g.Verdict.State != approval.Approved {
		t.Errorf("once the key was revoked: %+v", g.Verdict)
	}
	h.w.verifies(tx)
}

// TestT73Login: a key is looked up by the login that an account has, and not by one that
// somebody who can write the ledger says that it had.
func TestT73Login(t *testing.T) {
	h, tx, fingerprint := signedPull(t)
	h.says(adaThere, approval.SignedLine(adaKey.Signs(h.w.statement(tx, fingerprint))))
	h.want(tx, approval.Approved, "approved")
	h.said[len(h.said)-1].Author.Login = "eve" // of the same number
	g := h.gate(tx)
	if _, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); err == nil {
		t.Error("a signature counted for an account with another login")
	} else if !strings.Contains(err.Error(), "another login") && !strings.Contains(fmt.Sprint(g.Verdict), "another login") {
		t.Error(err, g.Verdict)
	}
}

// verifies fails the test if the record of a transaction breaks a rule.
func (w *world) verifies(tx string) {
	w.Helper()
	_, found, err := approval.CheckRecord(w.ledger().Tree, tx)
	if err != nil || len(found) > 0 {
		w.Errorf("the record: %v %v", found, err)
	}
}

// registers keys of an account at the forge, long before, and has the Policy go by these alone.
func (h *hub) registers(login string, keys ...teststand.Signer) {
	h.w.policy.Approvals.Keys, h.w.policy.Approvals.ForgeKeys, h.w.policy.Approvals.Signed = "", true, policy.SignedOnly
	if h.keys == nil {
		h.keys = map[string][]approval.Registered{}
	}
	for _, k := range keys {
		h.keys[login] = append(h.keys[login], approval.Registered{Key: k.Public, Since: time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)})
	}
}

// TestT73ForgeKeys: the forge is asked for the keys of who signs and of nobody else; it
// is asked again until the change is applied; the record has the line that it came to;
// what cannot be read is no list.
func TestT73ForgeKeys(t *testing.T) {
	h := newHub(newWorld(t))
	h.registers("ada", adaKey)
	tx, fingerprint := h.propose()
	h.gate(tx)
	h.says(bobThere, "looks good to me")
	stranger := approval.SignedLine(evesKey.Signs(h.w.statement(tx, fingerprint)))
	h.says(eveThere, stranger) // who may not approve
	h.says(adaThere, stranger).Edited = true
	h.says(adaThere, strings.Replace(stranger, fingerprint, "patchset:"+strings.Repeat("a", 64), 1))
	h.gate(tx)
	if h.asked["SigningKeys"] != 0 {
		t.Error("asked for keys although nobody signed")
	}
	h.says(adaThere, approval.SignedLine(adaKey.Signs(h.w.statement(tx, fingerprint))))
	h.broken = errors.New("the forge is down")
	if _, err := h.runner().Gate(t.Context(), tx); err == nil {
		t.Error("a forge that does not answer is no reason to stop")
	}
	h.broken = nil
	h.before = func(method string) {
		h.broken = nil
		if method == "SigningKeys" {
			h.broken = errors.New("no keys today")
		}
	}
	if _, err := h.runner().Gate(t.Context(), tx); err == nil || !strings.Contains(err.Error(), "no keys today") {
		t.Error("keys that cannot be read:", err)
	}
	h.before, h.broken = nil, nil
	h.want(tx, approval.Approved, "approved")

	registered := h.keys
	h.keys = nil
	g := h.gate(tx)
	if _, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); err == nil || g.Verdict.State != approval.Pending {
		t.Errorf("applied by a key that is not registered any more: %v, %+v", err, g.Verdict)
	}
	h.keys = registered
	h.apply(h.want(tx, approval.Approved, "approved"))
	h.keys = nil // what was applied stays approved
	h.want(tx, approval.Approved, "approved")
	h.w.verifies(tx)
	log := h.w.log(tx)
	d := ledger.Of[*ledger.ApprovalDecision](log)[0]
	dir := h.w.directory(tx)
	_, line, err := approval.ReadSignature(dir, log, *d)
	want := `github:ada namespaces="countersign-decision@v2",valid-after="20250301000000Z" ` + adaKey.Public
	if err != nil || line != want || d.Source.Signature.Principal != "github:ada" {
		t.Errorf("%v\n%s\n%s\n%+v", err, line, want, d.Source.Signature)
	}
}

// TestT73Pull: signatures that are good, and none of this account for this change under
// this Policy.
func TestT73Pull(t *testing.T) {
	type world struct {
		*hub
		tx, fingerprint string
	}
	sign := func(x world, key teststand.Signer, change func(*approval.SignedDecision)) string {
		x.gate(x.tx) // which asks by the Policy as it is now
		s := x.w.statement(x.tx, x.fingerprint)
		if change != nil {
			change(&s)
		}
		return approval.SignedLine(key.Signs(s))
	}
	block := func(x world, key teststand.Signer) string {
		return strings.ReplaceAll(forge.SignedBlock(key.Signs(x.w.statement(x.tx, x.fingerprint))), "\n", "\r\n")
	}
	post := func(key teststand.Signer, change func(*approval.SignedDecision)) func(world) {
		return func(x world) { x.says(adaThere, sign(x, key, change)) }
	}
	for name, c := range map[string]struct {
		said func(world)
		want string
	}{
		"another transaction":  {post(adaKey, func(s *approval.SignedDecision) { s.TransactionID = "tx_01KE5W5200041061050R3GG28A" }), "another transaction"},
		"another pull request": {post(adaKey, func(s *approval.SignedDecision) { s.PullRequest = 8 }), "another pull request"},
		"another repository":   {post(adaKey, func(s *approval.SignedDecision) { s.Repository = &ledger.Repository{ID: "101", Name: "acme/site"} }), "another repository"},
		"another base":         {post(adaKey, func(s *approval.SignedDecision) { s.BaseCommit = id(2) }), "another base"},
		"another proposer":     {post(adaKey, func(s *approval.SignedDecision) { s.Proposers = []ledger.Actor{bobThere} }), "others as who proposed"},
		"one proposer more":    {post(adaKey, func(s *approval.SignedDecision) { s.Proposers = append(s.Proposers, bobThere) }), "others as who proposed"},
		"another requester": {post(adaKey, func(s *approval.SignedDecision) {
			s.RequestedBy = []ledger.Requester{input.Named("eve", ledger.AskedByFlag)}
		}), "others as who asked"},
		"another Policy":             {post(adaKey, func(s *approval.SignedDecision) { s.Policy.SHA256 = "sha256:" + strings.Repeat("a", 64) }), "another Policy than the one that asks for it now: sign again"},
		"a Policy of another commit": {post(adaKey, func(s *approval.SignedDecision) { s.Policy.Commit = id(9) }), "sign again"},
		"a Policy that changed": {func(x world) {
			x.says(adaThere, sign(x, adaKey, nil))
			x.w.policy.Approvals.MaxAge = policy.Duration(time.Hour)
		}, "another Policy than the one that asks for it now: sign again"},
		"a Policy that changed, signed again": {func(x world) {
			line := sign(x, adaKey, nil)
			x.w.policy.Approvals.MaxAge = policy.Duration(time.Hour)
			x.says(adaThere, line)
			x.says(adaThere, sign(x, adaKey, nil))
		}, ""},
		"a Policy that changed, and is again as it was": {func(x world) {
			x.w.policy.Approvals.MaxAge = policy.Duration(time.Hour)
			x.gate(x.tx)
			x.w.policy.Approvals.MaxAge = 0
			x.says(adaThere, sign(x, adaKey, nil))
		}, ""},
		"other risks":             {post(adaKey, func(s *approval.SignedDecision) { s.Shown = "sha256:" + strings.Repeat("a", 64) }), "shown other risks"},
		"a decision to come":      {post(adaKey, func(s *approval.SignedDecision) { s.DecidedAt = "2027-01-05T00:00:00Z" }), "still to come"},
		"another patch":           {post(adaKey, func(s *approval.SignedDecision) { s.Fingerprints = []string{"patchset:" + strings.Repeat("a", 64)} }), "names another patch"},
		"another kind":            {post(adaKey, func(s *approval.SignedDecision) { s.Fingerprints = []string{"protected:" + s.Fingerprints[0]} }), "is not asked for"},
		"a key that is not ada's": {post(bobKey, nil), "lists the key for bob"},
		"a key of nobody":         {post(evesKey, nil), "do not list"},
		"a name that is negated":  {func(x world) { x.w.lists("*,!ada " + adaKey.Public); x.says(adaThere, sign(x, adaKey, nil)) }, "lists the key for *,!ada"},
		"posted by another account": {func(x world) {
			x.access["eve"] = "write"
			x.says(eveThere, sign(x, adaKey, nil))
		}, "lists the key for ada"},
		"posted by a bot": {func(x world) {
			x.access["github-actions"] = "admin"
			x.w.lists("github-actions " + adaKey.Public)
			x.says(botThere, sign(x, adaKey, nil))
		}, "not a human account"},
		"the proposer's key": {func(x world) {
			x.w.lists("bob " + bobKey.Public)
			x.said = nil
			x.says(bobThere, sign(x, bobKey, nil))
		}, ""}, // bob opened the pull request, the bot proposed: counts
		"a part of it":  {func(x world) { line := sign(x, adaKey, nil); x.says(adaThere, line[:len(line)-2]) }, "is not an exact signed command"},
		"beside a text": {func(x world) { x.says(adaThere, sign(x, adaKey, nil)+"\nlooks good") }, "must be all of the comment"},
		"another line": {func(x world) {
			x.says(adaThere, strings.Replace(sign(x, adaKey, nil), "/approve ", "/approve secret:"+x.fingerprint+" ", 1))
		}, "does not say what was signed"},
		"in a review": {func(x world) {
			s := x.says(adaThere, sign(x, adaKey, nil))
			s.Kind, s.State = approval.KindReview, "COMMENTED"
		}, ""},
		"in a dismissed review": {func(x world) {
			s := x.says(adaThere, sign(x, adaKey, nil))
			s.Kind, s.State = approval.KindReview, approval.ReviewDismissed
		}, "was dismissed"},
		"through an app": {func(x world) { x.says(adaThere, sign(x, adaKey, nil)).App = "helper" }, "posted through the app helper"},
		"by e-mail":      {func(x world) { x.says(adaThere, sign(x, adaKey, nil)).Email = true }, "sent by e-mail"},
		"hidden":         {func(x world) { x.says(adaThere, sign(x, adaKey, nil)).Hidden = true }, "is hidden"},
		"deleted":        {func(x world) { x.says(adaThere, sign(x, adaKey, nil)).Gone = true }, "is gone"},
		"from before":    {func(x world) { x.says(adaThere, sign(x, adaKey, nil)).CreatedAt = "2026-01-04T00:00:00Z" }, "is from before this was proposed"},
		"twice, by two people": {func(x world) {
			x.w.policy.Approvals.Required = 2
			line := sign(x, adaKey, nil)
			x.says(adaThere, line)
			x.gate(x.tx)
			x.says(bobThere, line)
		}, "lists the key for ada"},
		"twice, by one": {func(x world) {
			x.w.policy.Approvals.Required = 2
			line := sign(x, adaKey, nil)
			x.says(adaThere, line)
			x.gate(x.tx)
			x.says(adaThere, line)
		}, "this person's vote is counted already"},
		"again, once it was deleted": {func(x world) {
			line := sign(x, adaKey, nil)
			x.says(adaThere, line)
			x.gate(x.tx)
			x.said[0].Gone = true
			x.says(adaThere, line)
		}, ""},
		"edited":  {func(x world) { x.says(adaThere, sign(x, adaKey, nil)).Edited = true }, "edited after posting"},
		"no keys": {func(x world) { x.w.policy.Approvals.Keys = ""; x.says(adaThere, sign(x, adaKey, nil)) }, "names no file of keys"},
		"no file": {func(x world) { x.w.policy.Approvals.Keys = "gone"; x.says(adaThere, sign(x, adaKey, nil)) }, "there is no file gone"},
		"a file with a line that cannot be read": {func(x world) {
			x.w.keys += "eve\n"
			x.says(adaThere, sign(x, adaKey, nil))
		}, ""},
		"a key on a line that cannot be read": {func(x world) {
			x.w.lists("bob "+bobKey.Public, "ada namespaces "+adaKey.Public)
			x.says(adaThere, sign(x, adaKey, nil))
		}, `do not list, of which line 2 cannot be read: namespaces=`},
		"a key of the forge beside a line that cannot be read": {func(x world) {
			x.registers("ada", adaKey)
			x.w.keys, x.w.policy.Approvals.Keys = "bob "+bobKey.Public+"\nada namespaces "+adaKey.Public+"\n", "keys"
			x.says(adaThere, sign(x, adaKey, nil))
		}, "line 2 cannot be read"},
		"a key of other uses": {func(x world) {
			x.w.lists(`ada namespaces="git" ` + adaKey.Public)
			x.says(adaThere, sign(x, adaKey, nil))
		}, "only for git"},
		"a key that has expired": {func(x world) {
			x.w.lists(`ada valid-before="20260104Z" ` + adaKey.Public)
			x.says(adaThere, sign(x, adaKey, nil))
		}, "is after 2026-01-04"},
		"expired between signing and recording": {func(x world) {
			x.w.lists(`ada valid-before="20260105001000Z" ` + adaKey.Public)
			line := sign(x, adaKey, nil)
			x.w.clock += 3600
			x.says(adaThere, line)
		}, "is after 2026-01-05 00:10:00Z"},
		"a software key, where hardware is asked for": {func(x world) { x.w.policy.Approvals.Hardware = true; x.says(adaThere, sign(x, adaKey, nil)) }, "not a security key"},
		"a security key that was not touched": {func(x world) {
			key := teststand.SecurityKey("sk-ed25519", teststand.Verified)
			x.w.lists("ada " + key.Public)
			x.says(adaThere, sign(x, key, nil))
		}, "did not sign this"},
		"a security key without a PIN, where that is asked for": {func(x world) {
			key := teststand.SecurityKey("sk-ecdsa", teststand.Touched)
			x.w.lists("ada " + key.Public)
			x.w.policy.Approvals.PIN = true
			x.says(adaThere, sign(x, key, nil))
		}, "did not verify the person"},
		"a base branch that takes none": {func(x world) {
			x.w.policy.Approvals.Signed = policy.SignedOff
			x.says(adaThere, sign(x, adaKey, nil))
		}, "the Policy takes none"},
		"a secret in its reason": {func(x world) {
			_, secret := leak()
			x.says(adaThere, sign(x, adaKey, func(s *approval.SignedDecision) { s.Reason = secret }))
		}, "looks like a secret"},
		"good, by a security key": {func(x world) {
			key := teststand.SecurityKey("sk-ed25519", teststand.Touched|teststand.Verified)
			x.w.lists("github:ada " + key.Public)
			x.w.policy.Approvals.Hardware, x.w.policy.Approvals.PIN = true, true
			x.says(adaThere, sign(x, key, nil))
		}, ""},
		"good":                                 {post(adaKey, nil), ""},
		"good, as a block that a browser sent": {func(x world) { x.says(adaThere, block(x, adaKey)) }, ""},
		"a block of a key that is not ada's":   {func(x world) { x.says(adaThere, block(x, bobKey)) }, "lists the key for bob"},
		"a block that was edited":              {func(x world) { x.says(adaThere, block(x, adaKey)).Edited = true }, "edited after posting"},
		"a block and a text":                   {func(x world) { x.says(adaThere, block(x, adaKey)+"\r\nlooks good") }, "is not an exact signed command"},
		"a block of another patch": {func(x world) {
			x.says(adaThere, strings.ReplaceAll(block(x, adaKey), x.fingerprint, "patchset:"+strings.Repeat("a", 64)))
		}, "names another patch"},
		"a block of another transaction": {func(x world) {
			x.says(adaThere, strings.ReplaceAll(block(x, adaKey), x.tx, "tx_01KE5W5200041061050R3GG28A"))
		}, "another transaction"},
		"a block with another reason": {func(x world) {
			x.says(adaThere, strings.ReplaceAll(block(x, adaKey), "read it", "read all"))
		}, "did not sign this"},
		"a key of the forge, which the Policy does not go by": {func(x world) {
			x.w.lists("bob " + bobKey.Public)
			x.registers("ada", adaKey)
			x.w.policy.Approvals.Keys, x.w.policy.Approvals.ForgeKeys = "keys", false
			x.says(adaThere, sign(x, adaKey, nil))
		}, "do not list"},
		"a key that was registered after the change was proposed": {func(x world) {
			x.registers("ada", adaKey)
			x.keys["ada"][0].Since = x.w.time()
			x.says(adaThere, sign(x, adaKey, nil))
		}, "had not registered for the account when the change was proposed"},
		"a key that was registered nobody knows when": {func(x world) {
			x.registers("ada", adaKey)
			x.keys["ada"][0].Since = time.Time{}
			x.says(adaThere, sign(x, adaKey, nil))
		}, "had not registered"},
		"a key that another account has registered": {func(x world) {
			x.registers("bob", adaKey)
			x.says(adaThere, sign(x, adaKey, nil))
		}, "had not registered"},
		"a key that both accounts have registered, posted by the other": {func(x world) {
			x.registers("ada", adaKey)
			x.registers("eve", adaKey)
			x.access["eve"] = "write"
			x.says(adaThere, "thank you")
			x.says(eveThere, sign(x, bobKey, nil))
		}, "had not registered"},
		"a registered key that the file gives to another": {func(x world) {
			x.w.lists("bob " + adaKey.Public)
			x.registers("ada", adaKey)
			x.w.policy.Approvals.Keys = "keys"
			x.says(adaThere, sign(x, adaKey, nil))
		}, "lists the key for bob"},
		"a registered key that the file revokes": {func(x world) {
			x.w.lists(`ada valid-before="20260104Z" ` + adaKey.Public)
			x.registers("ada", adaKey)
			x.w.policy.Approvals.Keys = "keys"
			x.says(adaThere, sign(x, adaKey, nil))
		}, "is after 2026-01-04"},
		"what is registered is no key": {func(x world) {
			x.registers("ada", adaKey)
			x.keys["ada"][0].Key = "ssh-ed25519 AAAA\neve " + adaKey.Public
			x.says(adaThere, sign(x, adaKey, nil))
		}, "had not registered"},
		"a registered software key, where hardware is asked for": {func(x world) {
			x.registers("ada", adaKey)
			x.w.policy.Approvals.Hardware = true
			x.says(adaThere, sign(x, adaKey, nil))
		}, "not a security key"},
		"good, by a registered key": {func(x world) {
			x.registers("ada", evesKey, adaKey)
			x.says(adaThere, sign(x, adaKey, nil))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, tx, fingerprint := signedPull(t)
			c.said(world{h, tx, fingerprint})
			state := approval.Pending
			if c.want == "" {
				state = approval.Approved
			}
			g := h.want(tx, state, c.want)
			h.w.verifies(tx)
			if state == approval.Pending {
				return
			}
			h.apply(g)
			h.w.verifies(tx)
		})
	}
}

// TestT73ReplayAfterSupersede: a signed approval is of one transaction, also where the
// next one proposes the same bytes.
func TestT73ReplayAfterSupersede(t *testing.T) {
	h, tx, fingerprint := signedPull(t)
	line := approval.SignedLine(adaKey.Signs(h.w.statement(tx, fingerprint)))
	if _, err := h.runner().Interrupt(t.Context(), tx, "again"); err != nil {
		t.Fatal(err)
	}
	h.w.clock += 60
	again, _ := h.propose()
	h.gate(again)
	h.w.clock += 60
	h.says(adaThere, line)
	h.want(again, approval.Pending, "another transaction")
}

// TestT73Kinds: one signature decides on what it names and on nothing else, each kind
// by itself.
func TestT73Kinds(t *testing.T) {
	h := newHub(newWorld(t))
	h.w.lists("ada " + adaKey.Public)
	h.w.policy.Protected = []policy.Rule{{Paths: []string{"greet.txt"}, Required: 1}}
	tx, fingerprint := h.propose()
	h.gate(tx)
	h.says(adaThere, approval.SignedLine(adaKey.Signs(h.w.statement(tx, fingerprint))))
	h.want(tx, approval.Pending, "approved")
	h.says(adaThere, approval.SignedLine(adaKey.Signs(h.w.statement(tx, fingerprint, "protected:"+fingerprint))))
	g := h.want(tx, approval.Approved, "approved")
	h.apply(g)
	h.w.verifies(tx)
}

// TestT73BreakGlass: who approved alone has not broken the glass, whoever posts it as
// that; who broke it has signed that.
func TestT73BreakGlass(t *testing.T) {
	h, tx, fingerprint := signedPull(t)
	h.w.policy.Approvals.BreakGlass, h.w.policy.Approvals.Required = []string{"ada"}, 2
	h.gate(tx)
	s := h.w.statement(tx, fingerprint)
	line := approval.SignedLine(adaKey.Signs(s))
	h.says(adaThere, "/approve --break-glass "+fingerprint+" down")
	h.want(tx, approval.Pending, "is not signed")
	h.says(adaThere, strings.Replace(line, "/approve ", "/approve --break-glass ", 1))
	h.want(tx, approval.Pending, "is not an exact signed command: the line does not say what was signed")
	h.says(adaThere, line)
	h.want(tx, approval.Pending, "approved")
	s.Decision = approval.BreakGlass
	h.says(adaThere, approval.SignedLine(adaKey.Signs(s)))
	g := h.want(tx, approval.Approved, "breaking the glass")
	if _, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); err != nil || !g.Verdict.BreakGlass {
		t.Fatal(err)
	}
	h.w.verifies(tx)
}

// TestT72Denial: a denial needs no signature, and one that is no good is a denial too.
func TestT72Denial(t *testing.T) {
	for name, key := range map[string]teststand.Signer{"good": adaKey, "another's": evesKey} {
		h, tx, fingerprint := signedPull(t)
		s := h.w.statement(tx, fingerprint)
		s.Decision = ledger.Deny
		h.says(adaThere, approval.SignedLine(key.Signs(s)))
		h.want(tx, approval.Denied, "denied")
		h.w.verifies(tx)
		log := h.w.log(tx)
		if d := ledger.Last[*ledger.ApprovalDecision](log); (d.Source.Signature != nil) != (name == "good") || d.Reason != "read it" {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestT73KeyIsGone: until the change is applied the key must be one of the trusted
// base, whatever the record says: those who can write the ledger can write any key.
func TestT73KeyIsGone(t *testing.T) {
	h, tx, fingerprint := signedPull(t)
	h.says(adaThere, approval.SignedLine(adaKey.Signs(h.w.statement(tx, fingerprint))))
	g := h.want(tx, approval.Approved, "")
	h.w.lists("ada " + bobKey.Public)
	var pending *pipeline.PendingError
	if _, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &pending) {
		t.Errorf("applied: %v", err)
	}
	h.want(tx, approval.Pending, "do not list")
	// Of a key that is no longer valid, what was decided before stands.
	h.w.lists(`ada valid-before="20260105020000Z" ` + adaKey.Public)
	h.w.clock += 4 * 3600
	g = h.want(tx, approval.Approved, "")
	h.apply(g)
	h.w.verifies(tx)
}

// TestT72SignedLocally: with a Policy that asks for it, whoever has the shell and the
// Git identity cannot approve, and the holder of the key can.
func TestT72SignedLocally(t *testing.T) {
	w := newWorld(t)
	person := ledger.Actor{Kind: "user", ID: "local:ada@example.org", Login: "Ada"}
	w.lists("ada,ada@example.org "+adaKey.Public, "bob@example.org "+bobKey.Public)
	tx := w.review().ID
	w.gate(tx)
	decide := func(who ledger.Actor, signature *approval.Signature) error {
		t.Helper()
		_, err := w.as(who).Decide(t.Context(), tx, pipeline.Ruling{Decision: ledger.Approve, Kind: "local", Signature: signature})
		return err
	}
	refused := func(who ledger.Actor, signature *approval.Signature, want string) {
		t.Helper()
		if err := decide(who, signature); !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused(person, nil, "is not signed, which the Policy asks for: countersign approve "+tx+" --sign")
	fingerprint := "patchset:" + w.history(tx).Transaction().PatchID()
	s := w.statement(tx, fingerprint)
	by := func(key teststand.Signer) *approval.Signature { made := key.Signs(s); return &made }
	refused(person, by(evesKey), "do not list")
	refused(person, by(bobKey), "lists the key for bob@example.org")
	refused(ledger.Actor{Kind: "user", ID: "local:eve@example.org", Login: "ada"}, by(adaKey), "lists the key for ada,ada@example.org")
	refused(ledger.Actor{Kind: "user", ID: "local:ada", Login: "ada"}, by(adaKey), "lists the key for")
	glass := s
	glass.Decision = approval.BreakGlass
	broken := adaKey.Signs(glass)
	refused(person, &broken, "nothing is decided here by break-glass")
	fatal(t, decide(person, by(adaKey)))
	w.apply(w.gate(tx))
	w.validate(tx)
	w.sound(tx, ledger.Completed)
	w.verifies(tx)
}

// TestT73NothingShown: a transaction whose record says nothing of its risks takes no
// signed decision.
func TestT73NothingShown(t *testing.T) {
	h, tx, fingerprint := signedPull(t)
	s := h.w.statement(tx, fingerprint)
	log := h.w.log(tx)
	old := &ledger.Log{}
	for i, p := range log.Payloads() {
		if a, ok := p.(*ledger.ArtifactStored); ok && a.Kind == ledger.KindRisks {
			continue
		}
		at, err := log.Time(i)
		if err == nil {
			err = old.Append(at, p)
		}
		fatal(t, err)
	}
	if _, err := approval.SubjectOf(old, approval.Party{}, ledger.ApprovalDecision{}); err == nil || !strings.Contains(err.Error(), "review the change again") {
		t.Error(err)
	}
	if approval.Shown(log) != s.Shown || approval.Shown(old) != "" {
		t.Error("what was shown is another hash than the statement's")
	}
}

// TestT73RecordedSignature: rule L21. Whatever of a signed decision is exchanged in the
// record is found, also where every hash is made to fit.
func TestT73RecordedSignature(t *testing.T) {
	h, tx, fingerprint := signedPull(t)
	h.says(adaThere, approval.SignedLine(adaKey.Signs(h.w.statement(tx, fingerprint))))
	h.want(tx, approval.Approved, "")
	log := h.w.log(tx)
	dir := h.w.directory(tx)
	good, line, err := approval.ReadSignature(dir, log, *ledger.Of[*ledger.ApprovalDecision](log)[0])
	fatal(t, err)
	another := func(change func(*approval.SignedDecision)) approval.SignedDecision {
		s := good.Statement
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		forge forged
		want  string
	}{
		"as it was":           {forged{}, ""},
		"another statement":   {forged{statement: another(func(s *approval.SignedDecision) { s.Reason = "" })}, "did not sign this"},
		"of another change":   {forged{signature: adaKey.Signs(another(func(s *approval.SignedDecision) { s.TransactionID = "tx_01KE5W5200041061050R3GG28A" }))}, "another transaction"},
		"a denial":            {forged{signature: adaKey.Signs(another(func(s *approval.SignedDecision) { s.Decision = ledger.Deny }))}, "signed to deny"},
		"with another reason": {forged{signature: adaKey.Signs(another(func(s *approval.SignedDecision) { s.Reason = "x" }))}, "another reason"},
		"of another proposer": {forged{signature: adaKey.Signs(another(func(s *approval.SignedDecision) { s.Proposers = []ledger.Actor{adaThere} }))}, "who proposed this"},
		"of another requester": {forged{signature: adaKey.Signs(another(func(s *approval.SignedDecision) {
			s.RequestedBy = []ledger.Requester{input.Named("eve", ledger.AskedByFlag)}
		}))}, "who asked for this"},
		"of another Policy":      {forged{signature: adaKey.Signs(another(func(s *approval.SignedDecision) { s.Policy.SHA256 = "sha256:" + strings.Repeat("a", 64) }))}, "another Policy"},
		"of a Policy elsewhere":  {forged{signature: adaKey.Signs(another(func(s *approval.SignedDecision) { s.Policy.Commit = id(9) }))}, "from which nobody was asked"},
		"of other risks":         {forged{signature: adaKey.Signs(another(func(s *approval.SignedDecision) { s.Shown = "sha256:" + strings.Repeat("a", 64) }))}, "other risks"},
		"made later":             {forged{signature: adaKey.Signs(another(func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T12:00:00Z" }))}, "still to come"},
		"another good one":       {forged{signature: adaKey.Signs(another(func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T00:00:01Z" }))}, "what was posted has another signature"},
		"another key":            {forged{signature: evesKey.Signs(good.Statement)}, "do not list"},
		"another key, listed":    {forged{signature: evesKey.Signs(good.Statement), line: "ada " + evesKey.Public}, "names another key"},
		"and named":              {forged{signature: evesKey.Signs(good.Statement), line: "ada " + evesKey.Public, names: adaAs(evesKey)}, "what was posted has another signature"},
		"another principal":      {forged{line: "*,!ada " + adaKey.Public}, "lists the key for"},
		"of another namespace":   {forged{line: `ada namespaces="git" ` + adaKey.Public}, "only for git"},
		"a key that was no more": {forged{line: `ada valid-before="20260101Z" ` + adaKey.Public}, "is after 2026-01-01"},
		"two lines":              {forged{line: line + "\n" + line}, "is not one of a list of keys"},
		"no line":                {forged{line: "# " + line}, "do not list"},
		"named otherwise":        {forged{names: func(s *ledger.Signature) { s.Principal = "bob" }}, "names another key, or another principal"},
		"hardware was asked for": {forged{policy: func(p *policy.Policy) { p.Approvals.Hardware = true }}, "not a security key"},
		"none was taken":         {forged{policy: func(p *policy.Policy) { p.Approvals.Signed = policy.SignedOff }}, "took none"},
		"left out":               {forged{names: func(s *ledger.Signature) { *s = ledger.Signature{} }}, "what was posted is signed, but its signature is not recorded"},
		"not recorded":           {forged{names: func(s *ledger.Signature) { s.Key = s.Statement }}, "its key is not recorded before it"},
	} {
		t.Run(name, func(t *testing.T) {
			files, made := c.forge.record(t, log, dir)
			var found []string
			for _, v := range new(approval.Policies).Record(files, made).Redo() {
				found = append(found, v.RuleID+" "+v.Message)
			}
			switch {
			case c.want == "" && len(found) > 0, c.want != "" && (len(found) == 0 || !strings.HasPrefix(found[0], "L21 its signature: ") || !strings.Contains(found[0], c.want)):
				t.Errorf("%q, want %q", found, c.want)
			}
		})
	}
}

func adaAs(key teststand.Signer) func(*ledger.Signature) {
	return func(s *ledger.Signature) { s.KeyFingerprint = key.Fingerprint() }
}

// forged is a signed decision of which something was exchanged.
type forged struct {
	statement approval.SignedDecision
	signature approval.Signature
	line      string
	names     func(*ledger.Signature)
	policy    func(*policy.Policy)
}

// record writes a transaction anew with what was exchanged, and with hashes that fit.
func (f forged) record(t *testing.T, log *ledger.Log, dir fs.FS) (fstest.MapFS, *ledger.Log) {
	t.Helper()
	files := fstest.MapFS{}
	put := func(kind string, doc any, into *ledger.ArtifactStored) string {
		raw, err := canon.Line(doc)
		fatal(t, err)
		name := ledger.ArtifactFile(canon.Hex(raw))
		files[name] = &fstest.MapFile{Data: raw}
		into.Kind, into.Path = kind, name
		into.ArtifactID = strings.TrimSuffix(strings.TrimPrefix(name, "artifacts/"), ".json")
		into.StoredSHA256 = "sha256:" + into.ArtifactID
		return name
	}
	made, paths, ref := &ledger.Log{}, map[string]string{}, ledger.PolicyRef{}
	if f.policy != nil { // signed under that one
		d := ledger.Of[*ledger.ApprovalDecision](log)[0]
		changed, doc, err := new(approval.Policies).Recorded(dir, log, d.Policy)
		fatal(t, err)
		f.policy(&changed)
		ref = ledger.PolicyRef{Commit: doc.Commit, SHA256: changed.Sum()}
		was, _, err := approval.ReadSignature(dir, log, *d)
		fatal(t, err)
		was.Statement.Policy = ref
		f.signature = adaKey.Signs(was.Statement)
	}
	body := approval.SignedLine(f.signature)
	for i, p := range log.Payloads() {
		switch was := p.(type) {
		case *ledger.ArtifactStored:
			now := *was
			raw, err := fs.ReadFile(dir, was.Path)
			fatal(t, err)
			files[was.Path] = &fstest.MapFile{Data: raw}
			switch {
			case was.Kind == approval.KindDecision && f.statement.Schema != "":
				paths[was.Path] = put(was.Kind, f.statement, &now)
			case was.Kind == approval.KindDecision && f.signature.Armored != "":
				paths[was.Path] = put(was.Kind, f.signature.Statement, &now)
			case was.Kind == approval.KindSignature && f.signature.Armored != "":
				paths[was.Path] = put(was.Kind, forge.SignatureDoc(f.signature), &now)
			case was.Kind == approval.KindKey && f.line != "":
				paths[was.Path] = put(was.Kind, forge.KeyDoc(f.line), &now)
			case was.Kind == approval.KindPolicy && f.policy != nil:
				var doc approval.PolicyDoc
				fatal(t, canon.Unmarshal(raw, &doc))
				changed, err := policy.Decode([]byte(doc.Policy))
				fatal(t, err)
				f.policy(&changed)
				put(was.Kind, forge.PolicyDoc(changed, doc.Commit, doc.Found), &now)
			case was.Kind == approval.KindStatement && f.policy != nil:
				var doc approval.StatementDoc
				fatal(t, canon.Unmarshal(raw, &doc))
				doc.Statement.Body, doc.Text = body, body
				paths[was.Path] = put(was.Kind, doc, &now)
			}
			p = &now
		case *ledger.ApprovalDecision:
			now := *was
			s := *now.Source.Signature
			for _, file := range []*string{&s.Statement, &s.Signature, &s.Key} {
				if name, ok := paths[*file]; ok {
					*file = name
				}
			}
			if f.names != nil {
				f.names(&s)
			}
			if now.Source.Signature = &s; s == (ledger.Signature{}) {
				now.Source.Signature = nil
			}
			if ref.Commit != "" {
				now.Policy, now.Source.BodySHA256, now.Source.Evidence = ref, canon.Sum([]byte(body)), paths[now.Source.Evidence]
			}
			p = &now
		}
		at, err := log.Time(i)
		if err == nil {
			err = made.Append(at, p)
		}
		fatal(t, err)
	}
	return files, made
}
