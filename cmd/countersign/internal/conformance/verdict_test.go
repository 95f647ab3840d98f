package conformance

import (
	"strings"

	"github.com/countersign-dev/countersign/pipeline/storetest"
)

func init() { generators["verdict"] = verdictVectors }

// A deciding is a case of one proposal that is not decided yet, which others change.
type deciding struct {
	*generator
	base *record
	tree m
	note string
	more m // of the input
}

func (g *generator) proposal(requires, note string, r *record, more m) deciding {
	g.t.Helper()
	d := deciding{g, r, r.tree(), note, merge(m{"policy": canonicalPolicy(), "now": "2026-01-05T01:00:00Z", "head": "40cf9f153676e8c7484b55c729bea3a7c8a260dd", "denials": []any{}}, more).(m)}
	g.good("decide", requires, note, merge(d.more, m{"id": r.id, "files": d.tree}).(m), m{"verdict": "pending", "counted": []any{}})
	return d
}

func (d deciding) input(change func(*record), more m) m {
	r := d.base.clone()
	if change != nil {
		change(r)
	}
	input := with(more)
	if files := likeFiles(d.tree, r.tree()); len(files) > 0 {
		input = merge(input, m{"files": files}).(m)
	}
	return input
}

// decides is a case with the verdict, whether the glass is broken, and which decisions count.
func (d deciding) decides(requires, note, verdict string, counted string, change func(*record), more m) {
	d.t.Helper()
	list := []any{}
	for _, c := range counted {
		list = append(list, c == '1')
	}
	values := m{"verdict": strings.TrimSuffix(verdict, "!"), "counted": list, "break_glass": strings.HasSuffix(verdict, "!")}
	d.like(d.note, Vector{Op: "decide", Requires: strings.Fields(requires), Note: note, Input: d.input(change, more), Expect: Expectation{Verdict: Accept, Values: values}})
}

func votes(all ...vote) func(*record) { return func(r *record) { r.votes(all...) } }

// canonicalPolicy is the canonical form of a file that says nothing, with some texts replaced.
func canonicalPolicy(replace ...string) string {
	text := `{"apply":{},"approvals":{"allow_author":false,"permission":"write","required":1,"same_head":false},"commands":{},"gate":{},"limits":{"bytes":5242880,"files":500},"sandbox":"workspace-write","secrets":{"mode":"require-approval"},"version":1}` + "\n"
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			panic(replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return text
}

func policyOf(replace ...string) m { return m{"policy": canonicalPolicy(replace...)} }

func verdictVectors(g *generator) {
	ada, bea, cy := vote{id: "local:ada@example.org", login: "Ada"}, vote{id: "local:bea@example.org", login: "Bea"}, vote{id: "local:cy@example.org", login: "Cy"}
	of := func(v vote, change func(*vote)) vote { change(&v); return v }
	g.in("local")
	d := g.proposal("D-1 D-2", "nothing is said", lifeOf(g.t, storetest.Reviewed).without("policy", "risks"), nil)
	d.decides("D-3 D-4 D-7", "one approval", "approved", "1", votes(ada), nil)
	d.decides("D-3 D-11", "one of two", "pending", "1", votes(ada), policyOf(`"required":1`, `"required":2`))
	d.decides("D-3 D-11", "two of two", "approved", "11", votes(ada, bea), policyOf(`"required":1`, `"required":2`))
	d.decides("D-11", "one person twice", "pending", "10", votes(ada, ada), policyOf(`"required":1`, `"required":2`))
	d.decides("D-2", "a denial", "denied", "1", votes(of(ada, func(v *vote) { v.decision = "deny" })), nil)
	d.decides("D-2", "a denial by a bot", "denied", "1", votes(of(ada, func(v *vote) { v.decision = "deny"; v.source = m{"author": m{"kind": "bot"}} })), nil)
	d.decides("D-2", "an approval, then a denial", "denied", "11", votes(ada, of(bea, func(v *vote) { v.decision = "deny" })), nil)
	denial := m{"author": m{"id": "9", "kind": "user", "login": "eve"}, "denied_at": "2026-01-05T00:00:00Z", "fingerprint": "patchset:" + d.base.patchID(), "kind": "fileChange", "reason": "", "transaction_id": "tx_01KE5Q86Z943M4K0W7WAJYDRW9"}
	d.decides("D-2", "a denial elsewhere in the ledger", "denied", "1", votes(ada), m{"denials": []any{denial}})
	d.decides("D-5", "an approval of a bot", "pending", "0", votes(of(ada, func(v *vote) { v.source = m{"author": m{"kind": "bot"}} })), nil)
	d.decides("D-5", "an approval of nobody", "pending", "0", votes(of(ada, func(v *vote) { v.id = "" })), nil)
	d.decides("D-5", "an account that is listed under bots, by its login", "pending", "0", votes(ada), policyOf(`"commands"`, `"bots":["aDA"],"commands"`))
	d.decides("D-5", "an account that is listed under bots, by its id", "pending", "0", votes(ada), policyOf(`"commands"`, `"bots":["local:ada@example.org"],"commands"`))
	d.decides("D-7", "local approvals that do not count", "pending", "0", votes(ada), policyOf(`"permission"`, `"local":false,"permission"`))
	d.decides("D-7", "an approval over RPC", "approved", "1", votes(of(ada, func(v *vote) { v.source = m{"kind": "rpc"} })), nil)
	d.decides("D-7", "a comment, without a standing", "pending", "0", votes(of(ada, func(v *vote) { v.source = m{"kind": "issue_comment", "permission": "admin"} })), nil)
	d.decides("D-10", "the proposer's own, from the shell", "approved", "1", votes(vote{id: "local:bot@example.org", login: "bot"}), nil)
	d.decides("D-10", "the proposer's own, of another proposer, over RPC", "pending", "0", func(r *record) {
		p, _ := r.find("tx/meta", 0)
		p["proposer"] = m{"id": "7", "kind": "user", "login": "eve"}
		r.proposal(func(p m) { p["authors"] = []any{m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}} })
		r.votes(ada)
	}, nil)
	d.decides("D-10", "the proposer's own, which the Policy allows", "approved", "1", func(r *record) {
		p, _ := r.find("tx/meta", 0)
		p["proposer"] = m{"id": "7", "kind": "user", "login": "eve"}
		r.proposal(func(p m) { p["authors"] = []any{m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}} })
		r.votes(ada)
	}, policyOf(`"allow_author":false`, `"allow_author":true`))
	again := func(who m) func(*record) {
		return func(r *record) {
			p, _ := r.find("tx/meta", 0)
			p["proposer"] = m{"id": "7", "kind": "user", "login": "eve"}
			r.events = append(r.events, r.artifact("proposed_again", againDoc(r, m{"proposer": who})))
			r.votes(ada)
		}
	}
	d.decides("D-10", "an approval of who proposed it again", "pending", "0", again(m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}), nil)
	d.decides("D-10", "an approval of somebody else than who proposed it again", "approved", "1", again(m{"id": "local:bea@example.org", "kind": "user", "login": "Bea"}), nil)
	d.decides("D-4 D-10", "an approval of who proposed it again afterwards", "approved", "1", func(r *record) {
		r.votes(ada)
		r.events = append(r.events, r.artifact("proposed_again", againDoc(r, m{"proposer": m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}})))
	}, nil)
	d.decides("D-6", "a proposer who is redacted", "pending", "0", func(r *record) {
		p, _ := r.find("tx/meta", 0)
		p["proposer"] = m{"id": "<REDACTED:x>", "kind": "user", "login": "x"}
		r.votes(ada)
	}, nil)
	d.decides("D-6", "somebody who is redacted proposed it again", "pending", "0", again(m{"id": "<REDACTED:x>", "kind": "user", "login": "x"}), nil)
	secret := func(all ...vote) func(*record) {
		return func(r *record) {
			r.proposal(func(p m) { p["contains_secret_introductions"] = true })
			r.votes(all...)
		}
	}
	excuse := func(v *vote) { v.prefix = "secret:" }
	d.decides("D-3 D-4", "a secret, and the change alone is approved", "pending", "1", secret(ada), nil)
	d.decides("D-3 D-4", "a secret, and it alone is approved", "pending", "1", secret(of(ada, excuse)), nil)
	d.decides("D-4", "a secret, and both are approved", "approved", "11", secret(ada, of(ada, excuse)), nil)
	d.decides("D-10", "a secret, excused by who proposed it", "pending", "10", secret(ada, of(vote{id: "local:bot@example.org", login: "bot"}, excuse)), nil)
	d.decides("D-10", "a secret, where they are refused", "pending", "10", secret(ada, of(ada, excuse)), policyOf("require-approval", "refuse"))
	d.decides("D-4", "a fingerprint that nobody asked for", "pending", "0", votes(of(ada, excuse)), nil)
	protect := func(more string) m {
		return policyOf(`"sandbox"`, `"protected":[{"paths":["dir/"],`+more+`}],"sandbox"`)
	}
	protected := func(v *vote) { v.prefix = "protected:" }
	d.decides("D-3 D-4", "protected, and the change alone is approved", "pending", "1", votes(ada), protect(`"required":1`))
	d.decides("D-4", "protected, and both are approved", "approved", "11", votes(ada, of(ada, protected)), protect(`"required":1`))
	d.decides("D-11", "protected, for one who is named", "approved", "11", votes(ada, of(bea, protected)), protect(`"required":1,"users":["bea"]`))
	d.decides("D-11", "protected, for another who is named", "pending", "10", votes(ada, of(ada, protected)), protect(`"required":1,"users":["bea"]`))
	d.decides("D-11", "protected, for one of two who are named", "pending", "110", votes(ada, of(bea, protected), of(cy, protected)), protect(`"required":2,"users":["bea","ada"]`))
	d.decides("D-11", "protected, for a team, from the shell", "pending", "10", votes(ada, of(ada, protected)), protect(`"required":1,"teams":["acme/ops"]`))
	advised(d, ada, bea)
	d.decides("D-9", "an approval of the very age", "approved", "1", votes(of(ada, func(v *vote) { v.source = m{"created_at": "2026-01-05T00:00:00Z"} })), policyOf(`"permission"`, `"max_age":"3600s","permission"`))
	d.decides("D-9", "an approval that is a second older", "pending", "0", votes(of(ada, func(v *vote) { v.source = m{"created_at": "2026-01-04T23:59:59Z"} })), policyOf(`"permission"`, `"max_age":"3600s","permission"`))
	d.decides("D-9", "an approval of the next minute", "approved", "1", votes(of(ada, func(v *vote) { v.source = m{"created_at": "2026-01-05T01:01:00Z"} })), policyOf(`"permission"`, `"max_age":"3600s","permission"`))
	d.decides("D-9", "an approval from after the next minute", "pending", "0", votes(of(ada, func(v *vote) { v.source = m{"created_at": "2026-01-05T01:01:01Z"} })), policyOf(`"permission"`, `"max_age":"3600s","permission"`))
	d.decides("D-9", "an approval at a time that is none", "pending", "0", votes(of(ada, func(v *vote) { v.source = m{"created_at": "yesterday"} })), policyOf(`"permission"`, `"max_age":"3600s","permission"`))
	d.decides("D-9", "an approval at an hour of one digit", "pending", "0", votes(of(ada, func(v *vote) { v.source = m{"created_at": "2026-01-05T0:30:00Z"} })), policyOf(`"permission"`, `"max_age":"3600s","permission"`))
	d.decides("D-9", "a time that is none, where nobody asks", "approved", "1", votes(of(ada, func(v *vote) { v.source = m{"created_at": "yesterday"} })), nil)
	drift := func(commits, beside int) m {
		return m{"policy": canonicalPolicy(`"permission"`, `"drift":{"commits":3,"same_directory":"ask"},"permission"`), "drift": m{"schema": "countersign/drift/1", "to": strings.Repeat("2", 40),
			"since": []any{m{"commits": commits, "files": 1, "from": "40cf9f153676e8c7484b55c729bea3a7c8a260dd", "names": []any{}, "same_directory": beside, "to": strings.Repeat("2", 40)}}}}
	}
	d.decides("D-15 D-22", "a drift up to the bound", "approved", "1", votes(ada), drift(3, 0))
	d.decides("D-15 D-22", "a drift beyond the bound", "pending", "0", votes(ada), drift(4, 0))
	d.decides("D-15", "a drift in the same directory", "pending", "0", votes(ada), drift(1, 1))
	d.decides("D-22", "a drift of another commit", "pending", "0", votes(of(ada, func(v *vote) { v.source = m{"commit": strings.Repeat("3", 40)} })), drift(1, 0))
	very := of(ada, func(v *vote) { v.source = m{"commit": strings.Repeat("2", 40)} })
	d.decides("D-15 D-22", "an approval on the very commit", "pending", "0", votes(very), drift(9, 9))
	same := drift(9, 9)
	same["drift"].(m)["since"].([]any)[0].(m)["from"] = strings.Repeat("2", 40)
	d.decides("D-15 D-22", "an approval on the very commit, which the drift has", "approved", "1", votes(very), same)
	d.decides("D-22", "a drift that is unknown", "pending", "0", votes(ada), merge(drift(0, 0), m{"drift": m{"since": []any{m{"commits": 0, "files": 0, "from": "40cf9f153676e8c7484b55c729bea3a7c8a260dd", "names": []any{}, "same_directory": 0, "to": strings.Repeat("2", 40), "unknown": "gone"}}}}).(m))
	independent := func(parts string, more ...string) m {
		return policyOf(append([]string{`"permission"`, `"independent":[` + parts + `],"permission"`}, more...)...)
	}
	bot := vote{id: "local:bot@example.org", login: "bot"}
	d.decides("D-16", "independent: the proposer's own, from the shell", "pending", "0", votes(bot), independent(`"proposer"`))
	d.decides("D-16", "independent: of somebody else", "approved", "1", votes(ada), independent(`"proposer"`))
	d.decides("D-16", "independent: the proposer and somebody else", "approved", "11", votes(bot, ada), independent(`"proposer"`, `"required":1`, `"required":2`))
	for _, parts := range []string{`"proposer"`, `"requester"`} {
		for _, who := range []m{{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}, {"id": "", "kind": "user", "login": "ada"}} {
			d.decides("D-16 E-14", "independent ("+parts+"): of who asked for it, by "+map[bool]string{true: "login", false: "id"}[who["id"] == ""], map[string]string{`"proposer"`: "approved", `"requester"`: "pending"}[parts], map[string]string{`"proposer"`: "1", `"requester"`: "0"}[parts], func(r *record) {
				r.proposal(func(p m) { p["requested_by"] = []any{m{"actor": who, "source": "flag"}} })
				r.votes(ada)
			}, independent(parts))
		}
	}
	d.decides("D-16", "independent: of two who had a part, one counts", "pending", "10", func(r *record) {
		r.proposal(func(p m) {
			p["requested_by"] = []any{m{"actor": m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}, "source": "flag"}}
		})
		r.votes(bot, ada)
	}, independent(`"proposer","requester"`, `"required":1`, `"required":2`))
	d.decides("D-16", "independent: nobody is known to have asked", "approved", "1", votes(bot), independent(`"requester"`))
	d.decides("D-16 D-6", "independent: who asked is redacted", "pending", "0", func(r *record) {
		r.proposal(func(p m) {
			p["requested_by"] = []any{m{"actor": m{"id": "", "kind": "user", "login": "<REDACTED:x>"}, "source": "flag"}}
		})
		r.votes(ada)
	}, independent(`"requester"`))
	d.decides("D-4 D-16", "independent: of somebody who asked afterwards", "approved", "1", func(r *record) {
		r.votes(ada)
		r.events = append(r.events, r.artifact("proposed_again", againDoc(r, m{"requested_by": []any{m{"actor": m{"id": "", "kind": "user", "login": "ada"}, "source": "flag"}}})))
	}, independent(`"requester"`))
	breaks := func(v *vote) { v.kind, v.reason = "break_glass", "it burns" }
	glass := policyOf(`"permission":"write","required":1`, `"break_glass":["ada"],"permission":"write","required":2`)
	d.decides("D-13", "the glass is broken", "approved!", "1", votes(of(ada, breaks)), glass)
	d.decides("D-13", "the glass is broken by who may not", "pending", "0", votes(of(bea, breaks)), glass)
	d.decides("D-13", "the glass is broken without a reason", "pending", "0", votes(of(ada, func(v *vote) { v.kind = "break_glass" })), glass)
	d.decides("D-13 D-16", "independent: the glass is broken by the proposer", "approved!", "1", votes(of(bot, breaks)), policyOf(`"permission"`, `"break_glass":["bot"],"independent":["proposer"],"permission"`))
	d.decides("D-13", "a broken glass is no approval", "approved!", "11", votes(bea, of(ada, breaks)), glass)
	d.decides("D-13 D-2", "the glass is broken, and somebody denied", "denied!", "11", votes(of(ada, breaks), of(bea, func(v *vote) { v.decision = "deny" })), glass)
	d.decides("D-13", "the glass is broken, and a secret is not excused", "pending!", "1", secret(of(ada, breaks)), glass)
	d.decides("D-13", "the glass is broken, and a secret is excused", "approved!", "11", secret(of(ada, breaks), of(bea, excuse)), glass)
	d.bad("decide", "Y-21", "a Policy that is not in its canonical form", d.note, merge(d.more, m{"id": d.base.id, "files": d.tree, "policy": "{}\n"}).(m))
	d.bad("decide", "D-1 U-6", "a Policy of a newer version", d.note, merge(d.more, m{"id": d.base.id, "files": d.tree, "policy": canonicalPolicy(`"version":1`, `"version":2`)}).(m))
	pullVerdicts(g)
}

// pullVerdicts are of a pull request, where the forge is asked.
func pullVerdicts(g *generator) {
	g.in("pull")
	d := g.proposal("D-1 D-7", "nothing is said on the pull request", lifeOf(g.t, storetest.Guarded).without("policy", "risks").until("tx/status", 1), nil)
	comment := func(id, login string, source m) vote {
		return vote{id: id, login: login, source: merge(m{"kind": "issue_comment", "permission": "write", "id": "20", "url": "https://forge.example/1"}, with(source)).(m)}
	}
	ada, bea := comment("8", "ada", nil), comment("9", "cy", nil)
	standing := func(r *record, stood ...m) m {
		decisions := []any{}
		n := 0
		for _, e := range r.events {
			if e["type"] != "approval/decision" {
				continue
			}
			one := m{"approval_request_id": e["payload"].(m)["approval_request_id"], "permission": "write", "reason": "", "role": "write", "stands": true}
			if n < len(stood) {
				one = merge(one, stood[n]).(m)
			}
			n++
			decisions = append(decisions, one)
		}
		return m{"standing": m{"decisions": decisions, "head_commit": "40cf9f153676e8c7484b55c729bea3a7c8a260dd", "owners": m{}, "policy": m{"commit": strings.Repeat("1", 40), "sha256": "sha256:" + strings.Repeat("0", 64)}, "pull_request": 1, "read_at": "2026-01-05T00:59:00.000Z", "schema": "countersign/standing/1", "teams": m{}}}
	}
	decides := func(requires, note, verdict, counted string, all []vote, stood m, more m) {
		g.t.Helper()
		r := d.base.clone()
		r.votes(all...)
		d.decides(requires, note, verdict, counted, votes(all...), merge(standing(r, with(stood)), with(more)).(m))
	}
	one := []vote{ada}
	decides("D-7", "a comment that stands", "approved", "1", one, nil, nil)
	decides("D-7 D-21", "a comment that does not stand", "pending", "0", one, m{"stands": false, "reason": "edited"}, nil)
	decides("D-7", "a permission that was lost", "pending", "0", one, m{"permission": "read"}, nil)
	decides("D-7", "a permission that was too little when it was recorded", "pending", "0", []vote{comment("8", "ada", m{"permission": "triage"})}, nil, nil)
	decides("D-7", "a permission that is no word", "pending", "0", []vote{comment("8", "ada", m{"permission": "owner"})}, nil, nil)
	decides("D-7", "a review", "approved", "1", []vote{comment("8", "ada", m{"kind": "review"})}, nil, nil)
	decides("D-7", "a permission that is asked to be greater", "pending", "0", one, nil, policyOf(`"write"`, `"maintain"`))
	decides("D-21", "a standing that does not have the decision", "pending", "0", one, nil, m{"standing": m{"decisions": []any{}}})
	decides("D-7", "from the shell, on a pull request", "pending", "0", []vote{{id: "8", login: "ada"}}, nil, nil)
	decides("D-7", "from the shell, where that is allowed", "approved", "1", []vote{{id: "8", login: "ada"}}, nil, policyOf(`"permission"`, `"local":true,"permission"`))
	decides("D-10 D-12", "the proposer's own", "pending", "0", []vote{comment("7", "bea", nil)}, nil, nil)
	decides("D-12 S-25", "the proposer's login with another id", "pending", "0", []vote{comment("10", "bea", nil)}, nil, nil)
	decides("D-10", "the proposer's own, which is allowed", "approved", "1", []vote{comment("7", "bea", nil)}, nil, policyOf(`"allow_author":false`, `"allow_author":true`))
	decides("D-9", "same_head, on the head", "approved", "1", one, nil, policyOf(`"same_head":false`, `"same_head":true`))
	decides("D-9", "same_head, on another commit", "pending", "0", []vote{comment("8", "ada", m{"commit": strings.Repeat("1", 40)})}, nil, policyOf(`"same_head":false`, `"same_head":true`))
	decides("D-11", "two people, of whom one", "pending", "1", one, nil, policyOf(`"required":1`, `"required":2`))
	decides("D-11", "two people", "approved", "11", []vote{ada, bea}, nil, policyOf(`"required":1`, `"required":2`))
	protected := func(v vote) vote { v.prefix = "protected:"; return v }
	team := policyOf(`"sandbox"`, `"protected":[{"paths":["dir/"],"required":1,"teams":["acme/ops"]}],"sandbox"`)
	decides("D-11", "of a team, in which nobody is", "pending", "10", []vote{ada, protected(ada)}, nil, team)
	decides("D-11 D-21", "of a team, by somebody in it", "approved", "11", []vote{ada, protected(ada)}, nil, merge(team, m{"standing": m{"teams": m{"acme/ops": []any{"8"}}}}).(m))
	owners := policyOf(`"sandbox"`, `"protected":[{"owners":true,"paths":["dir/"],"required":1}],"sandbox"`)
	decides("D-3 D-11", "of owners, by who owns the path", "approved", "11", []vote{ada, protected(ada)}, nil, merge(owners, m{"standing": m{"owners": m{"dir/file0.txt": []any{"8"}}}}).(m))
	decides("D-3 D-11", "of owners, by who owns another path", "pending", "10", []vote{ada, protected(ada)}, nil, merge(owners, m{"standing": m{"owners": m{"other": []any{"8"}}}}).(m))
	signedOnly := policyOf(`"permission":"write","required":1,"same_head":false`, `"keys":"k","permission":"write","required":1,"same_head":false,"signed":"require"`)
	decides("D-10 Y-47", "signed is required, and it is not", "pending", "0", one, nil, signedOnly)
}
