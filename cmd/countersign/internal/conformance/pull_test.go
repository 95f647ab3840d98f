package conformance

import (
	"encoding/json"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func signedLife(g *generator) {
	r := lifeOf(g.t, storetest.Signed).until("tx/status", 3)
	c := g.life("S-30 S-26 S-27 S-28 Y-47 D-8", "a life whose approval is signed", r, nil)
	source := func(change func(s m)) func(*record) {
		return func(r *record) { p, _ := r.find("approval/decision", 0); change(p["source"].(m)) }
	}
	signature := func(name, value string) func(*record) {
		return source(func(s m) { s["signature"].(m)[name] = value })
	}
	c.bad("S-30", "another key's fingerprint", "L21", signature("key_fingerprint", "SHA256:"+strings.Repeat("A", 43)))
	c.bad("S-30", "another author", "L21", source(func(s m) { s["author"].(m)["id"] = "local:bea@example.org" }))
	c.bad("S-30", "another reason", "L21", set("approval/decision", 0, "reason", "whyever"))
	c.bad("S-30", "a signature stored after its decision", "L21", func(r *record) {
		_, at := r.find("artifact/stored", 0)
		for i, e := range r.events {
			if e["payload"].(m)["kind"] == "signature" {
				at = i
			}
		}
		e := r.events[at]
		r.drop(at)
		_, at = r.find("approval/decision", 0)
		r.insert(at+1, e)
	})
	c.bad("S-30 S-40", "a key on an unreadable line", "L21", func(r *record) { r.change("key", func(d m) { d["line"] = "ada@example.org x" }) })
	for _, kind := range []string{"key", "signature"} {
		c.bad("S-30 U-6", "a "+kind+" of a later schema", "NEWER", func(r *record) { r.change(kind, func(d m) { d["schema"] = "countersign/" + kind + "/2" }) })
	}
	c.bad("S-26 S-46", "a key that was not valid any more", "L21", func(r *record) {
		r.change("key", func(d m) {
			d["line"] = strings.Replace(d["line"].(string), " ", ` valid-before="20260104Z" `, 1)
		})
	})
	c.good("S-55", "a key that was retired later", func(r *record) {
		r.change("key", func(d m) {
			d["line"] = strings.Replace(d["line"].(string), " ", ` valid-before="20260106Z" `, 1)
		})
	})
	c.bad("S-20 S-30", "a signature in another form", "L21", func(r *record) {
		r.change("signature", func(d m) { d["armored"] = d["armored"].(string) + "\n" })
	})
	c.bad("S-30", "other risks than were shown", "L21", func(r *record) {
		r.change("risks", func(d m) { d["risks"] = []any{m{"kind": "x", "path": "dir/file0.txt"}} })
	})
	c.bad("S-28", "decided too late", "L21", func(r *record) {
		for i, e := range r.events {
			if i > 2 {
				break
			}
			e["timestamp"] = "2026-01-05T00:10:00.000Z"
		}
	})
	c.bad("S-29 S-30", "software, where hardware is asked", "L21", func(r *record) {
		r.policy(canonicalPolicy(`"permission":"write","required":1,"same_head":false`, `"hardware":true,"keys":"keys","permission":"write","required":1,"same_head":false,"signed":"require"`))
	})
	c.bad("S-30", "signed, where no signatures are taken", "L21", func(r *record) { r.policy(canonicalPolicy()) })
}

// guardedLife is a pull request's own diff, approved in a comment.
func guardedLife(g *generator) {
	r := lifeOf(g.t, storetest.Guarded)
	r = r.without("risks")
	c := g.life("E-18 D-25 D-26", "a pull request's own diff, approved in a comment", r.clone().without("policy").until("approval/decision", 0), m{"closed": false})
	said := func(change func(doc, said m)) func(*record) {
		return func(r *record) {
			r.change("statement", func(d m) { change(d, d["statement"].(m)) })
		}
	}
	c.bad("D-25 E-39", "a comment of somebody else", "L18", said(func(_, s m) { s["author"].(m)["id"] = "9" }))
	c.bad("D-25", "a comment that says something else", "L18", said(func(d, s m) { d["text"], s["body"] = "/deny", "/deny" }))
	c.bad("D-25", "a text that is not the comment's", "L18", said(func(d, s m) { s["body"] = "LGTM" }))
	c.bad("D-25", "a comment that was edited", "L18", said(func(_, s m) { s["edited"] = true }))
	for _, name := range []string{"gone", "untold"} {
		c.bad("D-25", "a comment that is "+name, "L18", said(func(_, s m) { s[name] = true }))
	}
	c.bad("D-25", "a comment whose earlier text was another", "L18", said(func(_, s m) { s["earlier"] = []any{"no"} }))
	c.bad("D-25 J-14", "a member that is empty", "L18", said(func(_, s m) { s["app"] = "" }))
	c.bad("D-25", "evidence of an unknown schema", "L18", said(func(d, _ m) { d["schema"] = "countersign/statement/x" }))
	c.bad("D-25 U-6", "evidence of a later schema", "NEWER", said(func(d, _ m) { d["schema"] = "countersign/statement/2" }))
	c.bad("D-25", "evidence that is not recorded", "L18", func(r *record) {
		p, _ := r.find("approval/decision", 0)
		p["source"].(m)["evidence"] = "artifacts/" + strings.Repeat("0", 64) + ".json"
	})
	body := func(text string) func(*record) {
		return func(r *record) {
			text := strings.ReplaceAll(text, "F", "patchset:"+r.patchID())
			said(func(d, s m) { d["text"], s["body"] = text, text })(r)
			p, _ := r.find("approval/decision", 0)
			p["source"].(m)["body_sha256"] = canon.Sum([]byte(text))
		}
	}
	native := func(state, text string) func(*record) {
		return func(r *record) {
			body(text)(r)
			said(func(d, s m) {
				text := s["body"].(string)
				d["native"], s["kind"], s["state"] = true, "review", state
				d["command"] = m{"fingerprint": "patchset:" + r.patchID(), "verb": "approve"}
				d["text"] = text
			})(r)
			p, _ := r.find("approval/decision", 0)
			p["source"].(m)["kind"] = "review"
		}
	}
	c.good("D-27", "a green review", native("APPROVED", "LGTM"))
	c.bad("D-27", "a review that only comments", "L18", native("COMMENTED", "LGTM"))
	c.bad("D-27", "a green review that looks like a command", "L18", native("APPROVED", "> **/Approve** it"))
	c.bad("D-27", "a green review that denies", "L18", native("APPROVED", "/deny"))
	c.bad("D-27", "a green review that names a patch", "L18", native("APPROVED", "not F"))
	c.good("D-26", "the command and more lines", body("/approve F\r\nthanks"))
	for _, text := range []string{"/approve  F", "/Approve F", "/approve F because", "/approve", "thanks\n/approve F", "/approve F\u200b", "/approve secret:F"} {
		c.bad("D-26", "no command: "+strings.ReplaceAll(text, "\u200b", "ZWSP"), "L18", body(text))
	}
	for _, c2 := range []struct {
		note   string
		change func(doc, said m)
	}{
		{"that is hidden", func(_, s m) { s["hidden"] = true }}, {"of a mail", func(_, s m) { s["email"] = true }}, {"of an app", func(_, s m) { s["app"] = "x" }}, {"that was dismissed", func(_, s m) { s["state"] = "DISMISSED" }},
		{"of another permission", func(d, _ m) { d["access"].(m)["permission"] = "admin" }}, {"that is read as a denial", func(d, _ m) { d["command"].(m)["verb"] = "deny" }}, {"that is read as breaking the glass", func(d, _ m) { d["command"].(m)["break_glass"] = true }},
		{"that is read as signed", func(d, _ m) { d["command"].(m)["signed"] = true }}, {"under another id", func(_, s m) { s["id"] = "x" }}, {"of another time", func(_, s m) { s["created_at"] = "2026-01-05T00:00:00Z" }},
	} {
		c.bad("D-25", "a comment "+c2.note, "L18", said(c2.change))
	}
	c.bad("D-25", "a comment with another hash", "L18", func(r *record) {
		p, _ := r.find("approval/decision", 0)
		p["source"].(m)["body_sha256"] = canon.Sum(nil)
	})
	// reply says what follows in a reply to a comment of a review.
	reply := func(change func(*record)) func(*record) {
		return func(r *record) {
			change(r)
			said(func(_, s m) { s["kind"], s["reply_to"] = "review_comment", "1" })(r)
			p, _ := r.find("approval/decision", 0)
			p["source"].(m)["kind"] = "review_comment"
		}
	}
	denies := func(text string) func(*record) {
		return func(r *record) {
			body(text)(r)
			said(func(d, _ m) { d["command"].(m)["verb"] = "deny" })(r)
			p, _ := r.find("approval/decision", 0)
			p["decision"] = "deny"
		}
	}
	const block = "\n-----BEGIN SSH SIGNATURE-----"
	c.good("D-26", "approved in a reply", reply(body("/approve")))
	c.bad("D-26", "a secret approved in a reply", "L18", reply(body("/approve secret")))
	c.bad("D-26", "approved, and something signed that is not read", "L18", body("/approve F"+block))
	c.bad("D-26", "approved, and a block that is not read", "L18", body("/approve F\n```countersign-decision"))
	c.bad("D-27", "a green review, and something signed that is not read", "L18", native("APPROVED", "LGTM"+block))
	c.bad("D-27", "a green review with a mark of a signature", "L18", native("APPROVED", "LGTM sig:x"))
	c.good("D-26", "denied, with a reason and something signed that is not read", denies("/deny  F\u200b  no \nsig"+block))
	c.good("D-26", "denied in a reply", reply(denies("/deny not now")))
	c.bad("D-26", "denied nothing", "L18", denies("/deny not now"))
	c.bad("D-26", "denied without a space", "L18", denies("/denyF"))
	c.bad("D-26", "denied on the second line", "L18", denies("no\n/deny F"))
	c.good("D-25", "denied, then edited", func(r *record) {
		denies("/deny F")(r)
		said(func(d, s m) { s["body"], s["edited"], s["earlier"] = "fine", true, []any{d["text"]} })(r)
	})
	g.postedLife(lifeOf(g.t, storetest.Guarded).until("approval/decision", 0))
	c = g.life("E-18 D-21", "a pull request's own diff, approved", r, m{"status": "proposed"})
	c.bad("E-27", "an apply of a pull request's own diff", "L9", func(r *record) {
		r.add("apply/start", m{"apply_id": "apply_1", "approvals": []any{}, "base_commit": strings.Repeat("1", 40), "files": []any{}, "patch_ids": []any{}, "policy": r.ref(), "target": "x"})
	})
	c.bad("E-26", "a pull request's own diff, completed and never validated", "L9", func(r *record) { r.add("tx/status", m{"from": "proposed", "reason": "x", "to": "completed"}) })
	c.bad("E-17", "a message of a pull request's own diff", "L9", func(r *record) { r.proposal(func(p m) { p["message"] = "x" }) })
	c.bad("E-40", "a pull request's own diff proposed again", "L24", func(r *record) {
		r.events = append(r.events, r.artifact("proposed_again", againDoc(r, m{})))
	})
	merged := func(change m) func(*record) {
		return func(r *record) {
			p, _ := r.find("turn/item", 0)
			proposal := p["item"].(m)["metadata"].(m)
			r.events = append(r.events, r.artifact("merge", merge(m{"base": "main", "head_commit": strings.Repeat("1", 40), "merge_commit": strings.Repeat("2", 40), "merged_at": "2026-01-05T00:00:05Z", "pull_request": proposal["pull_request"], "repository": proposal["repository"], "schema": "countersign/merge/1"}, plain(with(change)))))
		}
	}
	c.good("E-45", "merged", merged(nil))
	c.bad("E-45 U-6", "merged, in a later schema", "NEWER", merged(m{"schema": "countersign/merge/2"}))
	c.bad("E-45", "merged as another pull request", "L25", merged(m{"pull_request": 2}))
	c.bad("E-45", "merged as two commits", "L25", func(r *record) { merged(nil)(r); merged(m{"merge_commit": strings.Repeat("3", 40)})(r) })
	validated := func(change func(doc m)) func(*record) {
		return func(r *record) {
			d, _ := r.find("approval/decision", 0)
			doc := m{"decisions": []any{m{"approval_request_id": d["approval_request_id"], "permission": "write", "reason": "", "role": "write", "stands": true}}, "head_commit": "40cf9f153676e8c7484b55c729bea3a7c8a260dd", "owners": m{}, "policy": r.ref(), "pull_request": 1, "read_at": "2026-01-05T00:00:05.000Z", "schema": "countersign/standing/1", "teams": m{}}
			change(doc)
			r.events = append(r.events, r.artifact("standing", doc))
			r.add("validate/start", m{"validate_id": "validate_1"})
			r.add("validate/complete", m{"success": true, "validate_id": "validate_1"})
			r.add("tx/status", m{"from": "proposed", "reason": "merged", "to": "completed"})
			r.add("tx/close", m{"status": "completed"})
		}
	}
	c.good("E-26 E-38 D-20 D-21", "validated and completed", validated(func(m) {}))
	c.bad("E-38 D-21", "validated, with an approval that does not stand", "L17", validated(func(d m) { d["decisions"].([]any)[0].(m)["stands"] = false }))
	c.bad("E-38 D-21", "validated, with a standing of other decisions", "L17", validated(func(d m) { d["decisions"] = []any{} }))
	c.bad("E-38 D-21 D-7", "validated, with a permission that is lost", "L17", validated(func(d m) { d["decisions"].([]any)[0].(m)["permission"] = "read" }))
	c.bad("E-38 D-21", "validated, with a standing of another pull request", "L17", validated(func(d m) { d["pull_request"] = 2 }))
	c.bad("E-38 D-21 U-6", "validated, with a standing of a later schema", "NEWER", validated(func(d m) { d["schema"] = "countersign/standing/2" }))
	c.bad("E-38 D-20", "validated without a standing", "L17", func(r *record) {
		for i, e := range r.events {
			if p := e["payload"].(m); p["kind"] == "standing" {
				delete(r.files, p["path"].(string))
				r.drop(i)
				break
			}
		}
		r.add("validate/start", m{"validate_id": "validate_1"})
		r.add("validate/complete", m{"success": true, "validate_id": "validate_1"})
	})
}

// postedLife is the same, with an approval that is signed and posted.
func (g *generator) postedLife(base *record) {
	key, other := teststand.Ed25519(1), teststand.Ed25519(2)
	postedOn := func(r *record, text func(approval.Signature) string, change func(s *approval.SignedDecision), by teststand.Signer) *record {
		r.policy(canonicalPolicy(`"permission":"write","required":1,"same_head":false`, `"keys":"keys","permission":"write","required":1,"same_head":false`))
		risks, _ := r.find("artifact/stored", 1)
		meta, _ := r.find("tx/meta", 0)
		s := approval.SignedDecision{
			Schema: approval.DecisionSchema, Repository: &ledger.Repository{ID: "1", Name: "acme/app"}, PullRequest: 1, TransactionID: r.id, BaseCommit: meta["base_commit"].(string),
			Decision: ledger.Approve, Fingerprints: []string{"patchset:" + r.patchID()}, DecidedAt: "2026-01-05T00:00:03Z", Shown: risks["stored_sha256"].(string),
			Proposers: []ledger.Actor{actorOf(meta["proposer"])}, RequestedBy: []ledger.Requester{}, Policy: ledger.PolicyRef{Commit: r.ref()["commit"].(string), SHA256: r.ref()["sha256"].(string)},
		}
		if change != nil {
			change(&s)
		}
		signature := by.Signs(s)
		text2 := text(signature)
		r.change("statement", func(d m) {
			d["text"], d["statement"].(m)["body"] = text2, text2
			d["command"].(m)["signed"] = true
		})
		d, at := r.find("approval/decision", 0)
		decision, armor, line := r.artifact("decision", string(s.Bytes())), r.artifact("signature", forge.SignatureDoc(signature)), r.artifact("key", forge.KeyDoc("ada,github:ada "+by.Public))
		d["source"].(m)["body_sha256"] = canon.Sum([]byte(text2))
		d["source"].(m)["signature"] = m{"key": line["payload"].(m)["path"], "key_fingerprint": by.Fingerprint(), "principal": "ada", "signature": armor["payload"].(m)["path"], "statement": decision["payload"].(m)["path"]}
		r.insert(at, decision, armor, line)
		return r
	}
	posted := func(text func(approval.Signature) string, change func(s *approval.SignedDecision), by teststand.Signer) *record {
		return postedOn(base.clone(), text, change, by)
	}
	block := posted(forge.SignedBlock, nil, key)
	c := g.life("S-10 S-11 S-27 S-30 D-26", "an approval that is signed in a block", block, nil)
	line := posted(func(s approval.Signature) string { return strings.TrimSuffix(approval.SignedLine(s), "\n") }, nil, key)
	as := func(other *record) func(*record) { return func(r *record) { *r = *other.clone() } }
	c.good("S-10", "an approval that is signed on one line", as(line))
	c.good("S-10", "an approval that is signed on one line, and CR LF", as(posted(func(s approval.Signature) string { return strings.TrimSuffix(approval.SignedLine(s), "\n") + "\r\n" }, nil, key)))
	c.good("S-11", "an approval that is signed in a block, in lines with CR LF", as(posted(func(s approval.Signature) string {
		return strings.ReplaceAll(strings.TrimSuffix(forge.SignedBlock(s), "\n"), "\n", "\r\n")
	}, nil, key)))
	for _, bad := range []struct {
		note string
		text func(string) string
	}{
		{"a block that names a secret before", func(t string) string { return strings.Replace(t, "/approve ", "/approve secret:", 1) }},
		{"text before a block", func(t string) string { return "hello\n" + t }},
		{"a block with some CR LF", func(t string) string { return strings.Replace(t, "\n", "\r\n", 1) }},
	} {
		c.bad("S-11 D-25", "signed: "+bad.note, "L18 L21", as(posted(func(s approval.Signature) string { return bad.text(forge.SignedBlock(s)) }, nil, key)))
	}
	for _, bad := range []struct {
		note string
		text func(string) string
	}{
		{"a space at the end of a line", func(t string) string { return t + " " }},
		{"a line and two LF", func(t string) string { return t + "\n\n" }},
		{"a line that denies", func(t string) string { return strings.Replace(t, "/approve ", "/deny ", 1) }},
		{"a line with padding", func(t string) string {
			return t + strings.Repeat("=", (4-len(t[strings.LastIndexByte(t, ':')+1:])%4)%4)
		}},
		{"two spaces in a line", func(t string) string { return strings.Replace(t, " sig:", "  sig:", 1) }},
	} {
		c.bad("S-10 D-25", "signed: "+bad.note, "L18 L21", as(posted(func(s approval.Signature) string { return bad.text(strings.TrimSuffix(approval.SignedLine(s), "\n")) }, nil, key)))
	}
	c.bad("S-31", "signed, and the signature is not recorded", "L21", func(r *record) {
		p, _ := r.find("approval/decision", 0)
		delete(p["source"].(m), "signature")
	})
	c.bad("S-30", "the comment has another signature than is recorded", "L21", func(r *record) {
		text := posted(forge.SignedBlock, nil, other)
		var doc m
		teststand.Fatal(r.t, json.Unmarshal([]byte(text.files[text.path("statement")]), &doc))
		r.change("statement", func(d m) { d["text"], d["statement"].(m)["body"] = doc["text"], doc["text"] })
		p, _ := r.find("approval/decision", 0)
		p["source"].(m)["body_sha256"] = canon.Sum([]byte(doc["text"].(string)))
	})
	// Others had proposed it elsewhere, and somebody asked for it, before the decision and after it.
	bob, zoe := ledger.Requester{Actor: ledger.Actor{Kind: "user", Login: "bob"}, Source: "flag"}, ledger.Actor{Kind: "user", ID: "99", Login: "zoe"}
	several := func(change func(*approval.SignedDecision)) *record {
		r := base.clone()
		elsewhere := func(who m) m {
			return r.artifact("proposed_elsewhere", m{"patch_id": r.patchID(), "proposals": []any{merge(m{"transaction_id": "tx_01KE5Q86Z943M4K0W7WAJYDRW9"}, plain(who))}, "schema": "countersign/proposed_elsewhere/1"})
		}
		_, at := r.find("approval/request", 0)
		r.insert(at, elsewhere(m{"proposer": zoe, "requested_by": []any{bob}}))
		r.events = append(r.events, elsewhere(m{"proposer": ledger.Actor{Kind: "user", ID: "98", Login: "yan"}}))
		return postedOn(r, forge.SignedBlock, change, key)
	}
	c.good("S-30 E-41", "signed for all who proposed it and asked for it", as(several(func(s *approval.SignedDecision) {
		s.Proposers, s.RequestedBy = append(s.Proposers, zoe), []ledger.Requester{bob}
	})))
	c.bad("S-30 E-41", "signed without who proposed it elsewhere", "L21", as(several(func(s *approval.SignedDecision) { s.RequestedBy = []ledger.Requester{bob} })))
	c.bad("S-30 E-41", "signed without who asked for it elsewhere", "L21", as(several(func(s *approval.SignedDecision) { s.Proposers = append(s.Proposers, zoe) })))
	for _, bad := range []struct {
		note   string
		change func(*approval.SignedDecision)
	}{
		{"another repository", func(s *approval.SignedDecision) { s.Repository.ID = "2" }}, {"another pull request", func(s *approval.SignedDecision) { s.PullRequest = 2 }},
		{"other proposers", func(s *approval.SignedDecision) { s.Proposers[0].ID += "0" }}, {"a proposer under another login", func(s *approval.SignedDecision) { s.Proposers[0].Login += "x" }}, {"a proposer more", func(s *approval.SignedDecision) {
			s.Proposers = append(s.Proposers, ledger.Actor{Kind: "user", ID: "99", Login: "zoe"})
		}}, {"somebody who asked for nothing", func(s *approval.SignedDecision) {
			s.RequestedBy = []ledger.Requester{{Actor: ledger.Actor{Kind: "user", Login: "bob"}, Source: "flag"}}
		}},
		{"another Policy", func(s *approval.SignedDecision) { s.Policy.SHA256 = "sha256:" + strings.Repeat("0", 64) }}, {"a Policy of a commit that asked nobody", func(s *approval.SignedDecision) { s.Policy.Commit = strings.Repeat("9", 40) }},
		{"a time before the transaction", func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-04T23:54:59Z" }}, {"a time that is to come", func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T00:05:10Z" }},
	} {
		c.bad("S-30 S-28", "signed for "+bad.note, "L21", as(posted(forge.SignedBlock, bad.change, key)))
	}
}

func actorOf(v any) ledger.Actor {
	who := v.(m)
	return ledger.Actor{Kind: who["kind"].(string), ID: who["id"].(string), Login: who["login"].(string)}
}

// with is an empty map for none.
func with(change m) m {
	if change == nil {
		return m{}
	}
	return change
}
