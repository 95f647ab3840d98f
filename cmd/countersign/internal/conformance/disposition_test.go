package conformance

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// disposedLife is a transaction that says what became of an exception.
func disposedLife(g *generator) {
	key, other := teststand.Ed25519(1), teststand.Ed25519(2)
	ada := m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}
	const another = "tx_01KE5Q86Z943M4K0W7WAJYDRW9"
	// made has the document with what replaces or, where it is nil, leaves out members.
	made := func(doc m, by *teststand.Signer, line string) *record {
		r := begun(g, "", ada)
		all := m{"schema": "countersign/disposition/1", "transaction_id": r.id, "about": strings.Repeat("a", 40), "as": "accepted", "author": ada, "reason": "it is right"}
		replace(all, doc)
		if by != nil {
			all["signature"] = m{"armored": by.Sign(observation.DispositionNamespace, []byte(lineOf(all))), "line": line}
		}
		return r.observes("disposition", all)
	}
	c := g.life("E-46 E-47", "an exception that was accepted", made(nil, nil, ""), m{"status": "interrupted", "closed": true})
	good := func(note string, doc m, by *teststand.Signer, line string) {
		c.good("E-47", note, func(r *record) { *r = *made(doc, by, line) })
	}
	bad := func(note string, doc m, by *teststand.Signer, line string) {
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

// saidLife is a disposition that was read from a comment.
func saidLife(g *generator) {
	bob := m{"id": "7", "kind": "user", "login": "bob"}
	about := strings.Repeat("a", 40)
	line, body := "/dispose "+about+" accepted", "/dispose "+about+" accepted\r\n\r\nit is right,\r\n  as I saw"
	const id, reason = "tx_01KE70EHG00C796EFJDZ75B506", "it is right, as I saw"
	// made has the comment and the document with what replaces or, where it is nil, leaves out members.
	made := func(id string, said, doc m) *record {
		all := m{
			"schema": "countersign/disposition/1", "transaction_id": id, "author": bob, "about": about, "as": "accepted", "reason": reason,
			"comment": m{"access": m{"permission": "write", "role": "write"}, "statement": m{
				"author": bob, "body": body, "created_at": "2026-01-05T12:00:00Z", "edited": false, "id": "4711", "kind": "issue_comment",
				"url": "https://forge.example/acme/app/issues/1#issuecomment-4711",
			}},
		}
		replace(all["comment"].(m)["statement"].(m), said)
		replace(all, doc)
		return begun(g, id, all["author"].(m)).observes("disposition", all)
	}
	c := g.life("E-50", "an exception that was accepted in a comment", made(id, nil, nil), m{"status": "interrupted", "closed": true})
	in := func(id, note string, said, doc m) {
		c.good("E-50", "in a comment: "+note, func(r *record) { *r = *made(id, said, doc) })
	}
	in("tx_01KE70EJF80C796EFJDZ75B506", "made in a part of a second, in another zone", m{"created_at": "2026-01-05T13:00:01.75+01:00"}, nil)
	in("tx_01KE70EHG0T9VRFBRHSY508X7J", "of another number", m{"id": "4712"}, nil)
	in(id, "its lines end with LF", m{"body": line + "\nit is right, as I saw"}, nil)
	in(id, "a slash inside a line", m{"body": line + "\nit is right,\n. /as I saw"}, m{"reason": "it is right, . /as I saw"})
	in(id, "with the text that it had", m{"earlier": []any{body}}, nil)
	in(id, "a reason that is long", m{"body": line + "\n" + strings.Repeat("b", 501)}, m{"reason": strings.Repeat("b", 499) + "…"})
	bad := func(note string, said, doc m) {
		c.bad("E-50", "in a comment: "+note, "L26", func(r *record) { *r = *made(id, said, doc) })
	}
	for note, said := range inOrder(
		"about something else", m{"body": strings.ReplaceAll(body, "a a", "b a")},
		"says something else", m{"body": strings.Replace(body, "accepted", "fixed", 1)},
		"another reason", m{"body": line + "\nit is wrong"},
		"a space behind the command", m{"body": strings.Replace(body, "accepted", "accepted ", 1)},
		"two spaces", m{"body": strings.Replace(body, " accepted", "  accepted", 1)},
		"a line before it", m{"body": "\n" + body},
		"upper case", m{"body": strings.Replace(body, "/dispose", "/DISPOSE", 1)},
		"its line ends with CR", m{"body": line + "\rit is right, as I saw"},
		"written by somebody else", m{"author": m{"id": "8", "kind": "user", "login": "bob"}},
		"written by somebody of another name", m{"author": m{"id": "7", "kind": "user", "login": "eve"}},
		"a review", m{"kind": "review"},
		"edited", m{"edited": true},
		"had another text", m{"earlier": []any{"a word"}},
		"gone", m{"gone": true},
		"hidden", m{"hidden": true},
		"its first text is not told", m{"untold": true},
		"through an app", m{"app": "helper"},
		"by e-mail", m{"email": true},
		"dismissed", m{"state": "DISMISSED"},
		"of no time", m{"created_at": "yesterday"},
		"of a time with a comma", m{"created_at": "2026-01-05T12:00:00,5Z"},
		"of another time", m{"created_at": "2026-01-05T12:00:01Z"},
		"of another number, where it is not recorded", m{"id": "4712"},
		"not told whether it was edited", m{"edited": nil},
		"an unknown member", m{"by": "bob"},
	) {
		bad(note, said, nil)
	}
	for note, who := range inOrder(
		"of a bot", m{"id": "7", "kind": "bot", "login": "bob"},
		"of nobody", m{"id": "", "kind": "user", "login": "bob"},
	) {
		bad(note, m{"author": who}, m{"author": who})
	}
	bad("two commands", m{"body": body + "\n \t/deny"}, m{"reason": reason + " /deny"})
	bad("without a statement", nil, m{"comment": m{"access": m{"permission": "write", "role": "write"}}})
	bad("a comment without a reason", m{"body": line + "\n\n"}, m{"reason": ""})
	c.bad("E-50", "in a comment: and signed", "L26", func(r *record) {
		key, ada := teststand.Ed25519(1), m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}
		var doc m
		said := m{"author": ada}
		*r = *made(id, said, m{"author": ada})
		teststand.Fatal(g.t, json.Unmarshal([]byte(r.files[r.path("disposition")]), &doc))
		armored := key.Sign(observation.DispositionNamespace, []byte(lineOf(doc)))
		*r = *made(id, said, m{"author": ada, "signature": m{"armored": armored, "line": "ada@example.org " + key.Public}})
	})
	c.bad("E-50", "in a comment: from before 1970", "L26", func(r *record) { *r = *made(id, m{"created_at": "1969-12-31T23:59:59.5Z"}, nil) })
}

// observedLife is the record of an observation of a kind: what it says by default, with what replaces or, where it is nil, leaves out members.
func observedLife(g *generator, kind string, says, doc m) *record {
	ada := m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}
	r := begun(g, "", ada)
	all := m{"schema": "countersign/" + kind + "/1", "transaction_id": r.id, "author": ada}
	maps.Copy(all, says)
	replace(all, doc)
	return r.observes(kind, all)
}

// begun is a transaction that proposes nothing, of this id unless that is "".
func begun(g *generator, id string, by m) *record {
	r := lifeOf(g.t, storetest.Reviewed).until("tx/status", 0)
	clear(r.files)
	set("tx/meta", 0, "proposer", by)(r)
	if id == "" {
		return r
	}
	r.id = id
	for _, e := range r.events {
		e["payload"].(m)["transaction_id"] = id
	}
	return r
}

// observes ends a transaction with an observation.
func (r *record) observes(kind string, doc m) *record {
	r.insert(len(r.events), r.artifact(kind, doc))
	r.add("tx/status", m{"from": "in_progress", "reason": "it proposes nothing", "to": "interrupted"})
	r.add("tx/close", m{"status": "interrupted"})
	r.settle()
	return r
}

// replace changes members of a document; nil leaves one out.
func replace(all, with m) {
	for name, value := range with {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
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
