package conformance

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/signed/signedtest"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// disposedLife is a transaction that says what became of an exception.
func disposedLife(g *generator) {
	key, other := signedtest.Ed25519(1), signedtest.Ed25519(2)
	ada := m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}
	const another = "tx_01KE5Q86Z943M4K0W7WAJYDRW9"
	// made has the document with what replaces or, where it is nil, leaves out members.
	made := func(doc m, by *signedtest.Signer, line string) *record {
		r := lifeOf(g.t, storetest.Reviewed).until("tx/status", 0)
		for name := range r.files {
			delete(r.files, name)
		}
		set("tx/meta", 0, "proposer", ada)(r)
		all := m{"schema": "countersign/disposition/1", "transaction_id": r.id, "about": strings.Repeat("a", 40), "as": "accepted", "author": ada, "reason": "it is right"}
		for name, value := range doc {
			if all[name] = value; value == nil {
				delete(all, name)
			}
		}
		if by != nil {
			all["signature"] = m{"armored": by.Sign(observation.DispositionNamespace, []byte(lineOf(all))), "line": line}
		}
		r.insert(len(r.events), r.artifact("disposition", all))
		r.add("tx/status", m{"from": "in_progress", "reason": "it proposes nothing", "to": "interrupted"})
		r.add("tx/close", m{"status": "interrupted"})
		r.settle()
		return r
	}
	c := g.life("E-46 E-47", "an exception that was accepted", made(nil, nil, ""), m{"status": "interrupted", "closed": true})
	good := func(note string, doc m, by *signedtest.Signer, line string) {
		c.good("E-47", note, func(r *record) { *r = *made(doc, by, line) })
	}
	bad := func(note string, doc m, by *signedtest.Signer, line string) {
		c.bad("E-47", note, "L26", func(r *record) { *r = *made(doc, by, line) })
	}
	good("a transaction that was revoked", m{"about": another, "as": "revoked"}, nil, "")
	good("a commit of SHA-256 that was fixed", m{"about": strings.Repeat("a", 64), "as": "fixed"}, nil, "")
	good("it is signed", nil, &key, "ada@example.org "+key.Public)
	good("signed by a key for this alone", nil, &key, `ada@example.org namespaces="countersign-disposition@v1" `+key.Public)
	bad("an outcome that is unknown", m{"as": "ignored"}, nil, "")
	bad("no reason", m{"reason": ""}, nil, "")
	bad("a reason of two lines", m{"reason": "a\nb"}, nil, "")
	bad("without a reason", m{"reason": nil}, nil, "")
	bad("about a branch", m{"about": "main"}, nil, "")
	bad("about itself", m{"about": c.base.id}, nil, "")
	bad("of another transaction", m{"transaction_id": another}, nil, "")
	bad("by somebody else", m{"author": m{"id": "local:eve@example.org", "kind": "user", "login": "Eve"}}, nil, "")
	bad("of another schema", m{"schema": "countersign/findings/1"}, nil, "")
	bad("with an unknown member", m{"by": "ada"}, nil, "")
	bad("signed by another key than its line's", nil, &other, "ada@example.org "+key.Public)
	bad("signed by a key of somebody else", nil, &key, "eve@example.org "+key.Public)
	bad("signed by a key for decisions", nil, &key, `ada@example.org namespaces="countersign-decision@v2" `+key.Public)
	bad("signed after the key was valid", nil, &key, `ada@example.org valid-before="20260101Z" `+key.Public)
	bad("signed, and its line ends", nil, &key, "ada@example.org "+key.Public+"\n")
	bad("signed, and not by who is named", m{"author": m{"id": "7", "kind": "user", "login": "ada@example.org"}}, &key, "ada@example.org "+key.Public)
	signature := func(doc m, space string) m {
		all := m{"schema": "countersign/disposition/1", "transaction_id": c.base.id, "about": strings.Repeat("a", 40), "as": "accepted", "author": ada, "reason": "it is right"}
		for name, value := range doc {
			all[name] = value
		}
		return m{"signature": m{"armored": key.Sign(space, []byte(lineOf(all))), "line": "ada@example.org " + key.Public}}
	}
	bad("signed for decisions", signature(nil, "countersign-decision@v2"), nil, "")
	bad("signed as something else", signature(m{"as": "fixed"}, observation.DispositionNamespace), nil, "")
	bad("signed in another transaction", signature(m{"transaction_id": another}, observation.DispositionNamespace), nil, "")
	c.bad("E-46", "two of them", "L26", func(r *record) {
		at := len(r.events) - 2
		r.insert(at, r.artifact("disposition", m{"schema": "countersign/disposition/1", "transaction_id": r.id, "about": strings.Repeat("b", 40), "as": "accepted", "author": ada, "reason": "it is right"}))
	})
	proposed := g.life("E-30", "a proposal that is open", lifeOf(g.t, storetest.Reviewed), m{"status": "proposed"})
	proposed.bad("E-46", "beside a proposal", "L26", func(r *record) {
		p, _ := r.find("tx/meta", 0)
		r.insert(len(r.events), r.artifact("disposition", m{"schema": "countersign/disposition/1", "transaction_id": r.id, "about": strings.Repeat("a", 40), "as": "accepted", "author": p["proposer"], "reason": "it is right"}))
	})
}

// observedLife is the record of an observation of a kind: what it says by default, with what replaces or, where it is nil, leaves out members.
func observedLife(g *generator, kind string, says, doc m) *record {
	ada := m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}
	r := lifeOf(g.t, storetest.Reviewed).until("tx/status", 0)
	for name := range r.files {
		delete(r.files, name)
	}
	set("tx/meta", 0, "proposer", ada)(r)
	all := m{"schema": "countersign/" + kind + "/1", "transaction_id": r.id, "author": ada}
	maps.Copy(all, says)
	for name, value := range doc {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	r.insert(len(r.events), r.artifact(kind, all))
	r.add("tx/status", m{"from": "in_progress", "reason": "it proposes nothing", "to": "interrupted"})
	r.add("tx/close", m{"status": "interrupted"})
	r.settle()
	return r
}

// settingsLife is a transaction that says what protected a branch.
func settingsLife(g *generator) {
	made := func(doc m) *record {
		return observedLife(g, "settings", m{
			"branch": "main", "read_at": "2026-01-01T00:00:00.000Z", "repository": m{"id": "7", "name": "acme/shop"}, "rules": []any{"deletion", "update"}, "unread": []any{},
		}, doc)
	}
	c := g.life("E-46 E-49", "what protected a branch", made(nil), m{"status": "interrupted", "closed": true})
	many := func(n int) (out []any) {
		for i := range n {
			out = append(out, fmt.Sprintf("rule %03d", i))
		}
		return out
	}
	for note, doc := range inOrder(
		"nothing, which was read", m{"rules": []any{}},
		"what was not read", m{"unread": []any{"who can bypass ruleset 7"}},
		"200 rules", m{"rules": many(200)},
		"a rule of 1,000 characters", m{"rules": []any{strings.Repeat("a", 1000)}},
	) {
		c.good("E-49", note, func(r *record) { *r = *made(doc) })
	}
	for note, doc := range inOrder(
		"rules in another order", m{"rules": []any{"update", "deletion"}},
		"a rule twice", m{"rules": []any{"update", "update"}},
		"a rule that says nothing", m{"rules": []any{""}},
		"a rule of two lines", m{"rules": []any{"a\nb"}},
		"201 rules", m{"rules": many(201)},
		"a rule of 1,001 characters", m{"rules": []any{strings.Repeat("a", 1001)}},
		"of no branch", m{"branch": ""},
		"of a branch of two lines", m{"branch": "a\nb"},
		"of a repository without a number", m{"repository": m{"id": "", "name": "acme/shop"}},
		"read after it was recorded", m{"read_at": "2036-01-01T00:00:00.000Z"},
		"without what was not read", m{"unread": nil},
	) {
		c.bad("E-49", note, "L26", func(r *record) { *r = *made(doc) })
	}
}

// deployedLife is a transaction that says that a commit was deployed.
func deployedLife(g *generator) {
	ada := m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}
	made := func(doc m) *record {
		return observedLife(g, "deployment", m{"commit": strings.Repeat("a", 40), "environment": "production", "deployed_at": "2026-01-01T00:00:00.000Z"}, doc)
	}
	c := g.life("E-46 E-48", "a commit that was deployed", made(nil), m{"status": "interrupted", "closed": true})
	for note, doc := range inOrder(
		"of SHA-256, to an environment with all that its name may have", m{"commit": strings.Repeat("a", 64), "environment": "eu-1/Prod_2.x"},
		"with an address", m{"url": "https://ci.example.org:8443/runs/7?a=b&c=%20#x"},
		"to an environment of 100 characters", m{"environment": strings.Repeat("a", 100)},
	) {
		c.good("E-48", note, func(r *record) { *r = *made(doc) })
	}
	for note, doc := range inOrder(
		"of a commit that is cut short", m{"commit": strings.Repeat("a", 39)},
		"of a branch", m{"commit": "main"},
		"to an environment without a name", m{"environment": ""},
		"to an environment that is an option", m{"environment": "--x"},
		"to an environment with markup", m{"environment": "a<b"},
		"to an environment of two lines", m{"environment": "a\nb"},
		"to an environment that ends with a line", m{"environment": "a\n"},
		"to an environment of 101 characters", m{"environment": strings.Repeat("a", 101)},
		"deployed after it was recorded", m{"deployed_at": "2036-01-01T00:00:00.000Z"},
		"at a time without milliseconds", m{"deployed_at": "2026-01-01T00:00:00Z"},
		"at a time of another zone", m{"deployed_at": "2026-01-01T00:00:00.000+01:00"},
		"at a time that does not exist", m{"deployed_at": "2026-02-30T00:00:00.000Z"},
		"with an address of a script", m{"url": "javascript:alert(1)"},
		"with an address that has a password", m{"url": "https://ada:x@example.org"},
		"with an address that is empty", m{"url": ""},
		"with an address that is too long", m{"url": "https://" + strings.Repeat("a", 491)},
		"deployed, with an unknown member", m{"by": "ada"},
		"without an environment", m{"environment": nil},
	) {
		c.bad("E-48", note, "L26", func(r *record) { *r = *made(doc) })
	}
	c.bad("E-46", "of another transaction that was deployed", "L26", func(r *record) { *r = *made(m{"transaction_id": "tx_01KE5Q86Z943M4K0W7WAJYDRW9"}) })
	c.bad("E-46", "deployed, by somebody else", "L26", func(r *record) {
		*r = *made(m{"author": m{"id": "local:eve@example.org", "kind": "user", "login": "Eve"}})
	})
	c.bad("E-46", "a disposition beside a deployment", "L26", func(r *record) {
		r.insert(len(r.events)-2, r.artifact("disposition", m{"schema": "countersign/disposition/1", "transaction_id": r.id, "about": strings.Repeat("b", 40), "as": "accepted", "author": ada, "reason": "it is right"}))
	})
}

// inOrder are notes, each with what it is about behind it.
func inOrder(all ...any) iter.Seq2[string, m] {
	return func(yield func(string, m) bool) {
		for pair := range slices.Chunk(all, 2) {
			if !yield(pair[0].(string), pair[1].(m)) {
				return
			}
		}
	}
}
