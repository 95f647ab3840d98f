package conformance

import (
	"strings"

	"github.com/countersign-dev/countersign/pipeline/disposition"
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
			all["signature"] = m{"armored": by.Sign(disposition.Namespace, []byte(lineOf(all))), "line": line}
		}
		r.insert(len(r.events), r.artifact("disposition", all))
		r.add("tx/status", m{"from": "in_progress", "reason": "it proposes nothing", "to": "interrupted"})
		r.add("tx/close", m{"status": "interrupted"})
		r.settle()
		return r
	}
	c := g.life("E-46", "an exception that was accepted", made(nil, nil, ""), m{"status": "interrupted", "closed": true})
	good := func(note string, doc m, by *signedtest.Signer, line string) {
		c.good("E-46", note, func(r *record) { *r = *made(doc, by, line) })
	}
	bad := func(note string, doc m, by *signedtest.Signer, line string) {
		c.bad("E-46", note, "L26", func(r *record) { *r = *made(doc, by, line) })
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
	bad("signed as something else", signature(m{"as": "fixed"}, disposition.Namespace), nil, "")
	bad("signed in another transaction", signature(m{"transaction_id": another}, disposition.Namespace), nil, "")
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
