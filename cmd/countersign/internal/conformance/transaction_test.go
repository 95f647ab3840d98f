package conformance

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func init() { generators["transaction"] = transactionVectors }

// checks are cases of one life, of which each but the first is like it.
type checks struct {
	*generator
	base *record
	tree m
	note string
}

// life enters a life as it is, which is accepted.
func (g *generator) life(requires, note string, r *record, values m) checks {
	g.t.Helper()
	c := checks{g, r, r.tree(), note}
	g.good("check", requires, note, m{"id": r.id, "files": c.tree}, values)
	return c
}

func (c checks) vector(requires, note string, change func(*record)) Vector {
	c.t.Helper()
	r := c.base.clone()
	change(r)
	input := m{}
	if r.id != c.base.id {
		input["id"] = r.id
	}
	if files := likeFiles(c.tree, r.tree()); len(files) > 0 {
		input["files"] = files
	}
	return Vector{Op: "check", Requires: strings.Fields(requires), Note: note, Input: input}
}

func (c checks) good(requires, note string, change func(*record)) {
	c.t.Helper()
	v := c.vector(requires, note, change)
	v.Expect = Expectation{Verdict: Accept}
	c.like(c.note, v)
}

func (c checks) bad(requires, note, rules string, change func(*record)) {
	c.t.Helper()
	v := c.vector(requires, note, change)
	v.Expect, v.Twin = Expectation{Verdict: Refuse, Rules: strings.Fields(rules)}, c.noted(c.note)
	c.like(c.note, v)
}

func transactionVectors(g *generator) {
	g.in("whole")
	wholeLife(g)
	g.in("fold")
	folds(g)
	foldDetails(g)
	g.in("again")
	againLife(g)
	g.in("signed")
	signedLife(g)
	g.in("pull")
	guardedLife(g)
	g.in("disposition")
	disposedLife(g)
	g.in("comment")
	saidLife(g)
	g.in("deployment")
	deployedLife(g)
	g.in("settings")
	settingsLife(g)
	g.in("advice")
	adviceLife(g)
}

func set(kind string, nth int, name string, value any) func(*record) {
	return func(r *record) {
		p, _ := r.find(kind, nth)
		p[name] = value
	}
}

func wholeLife(g *generator) {
	whole := lifeOf(g.t, storetest.Whole)
	c := g.life("E-1 E-2 E-3 E-4 E-5 E-6 E-7 E-8 E-9 E-10 E-15 E-20 E-21 E-22 E-23 E-24 E-25 E-26 E-28 E-30 E-31 E-32 E-33 E-34 E-35 E-36 E-37 E-38 E-42 D-14 D-20 V-3 V-4 U-6 U-8", "a whole life", whole,
		m{"status": "completed", "closed": true, "patch_id": whole.patchID(), "approvals": []any{[]any{"patchset:" + whole.patchID(), "local:ada@example.org"}}})
	short := g.life("E-2 E-23 E-30", "a life until it is proposed", lifeOf(g.t, storetest.Reviewed).without("policy", "risks"), m{"status": "proposed", "closed": false, "approvals": []any{}})
	open := g.life("E-23 E-37 E-38", "a life until its apply is begun", lifeOf(g.t, storetest.Whole).until("apply/start", 0), m{"status": "proposed", "closed": false})
	file := func(name string, content any) func(*record) {
		return func(r *record) { r.exactly = m{name: content} }
	}
	// The directory.
	short.good("U-7 E-2", "a view", file("README.md", "# anything\n"))
	short.bad("E-2", "an empty directory", "L10", file("artifacts/x", m{"mode": "040000", "content": ""}))
	short.bad("E-2", "a file more", "L10", file("notes.txt", "x\n"))
	short.bad("E-2", "an artifact that no event names", "L10", file("artifacts/"+strings.Repeat("0", 64)+".json", "{}\n"))
	short.bad("E-2", "a patch that no event names", "L10", file("patches/"+strings.Repeat("0", 64)+".diff", "x\n"))
	short.bad("E-2", "a directory in artifacts", "L10", file("artifacts/x/y", "x\n"))
	short.bad("E-2", "a sealed patch that the proposal does not name", "L10", func(r *record) { r.exactly = m{"patches/" + r.patchID() + ".diff.age": "x"} })
	c.bad("E-2 H-10", "an executable file", "L10", func(r *record) {
		r.exactly = m{"apply_result.json": m{"mode": "100755", "content": r.files["apply_result.json"]}}
	})
	short.good("U-7 E-2", "a link for the view", file("README.md", m{"mode": "120000", "content": "x"}))
	short.bad("E-3 E-21", "the directory of another transaction", "I2", func(r *record) { r.id = "tx_01KE5Q86Z943M4K0W7WAJYDRW9" })
	short.bad("E-4", "no events", "EMPTY", func(r *record) { r.raw = func([]string) []string { return nil } })
	short.bad("E-4", "no events.jsonl", "EMPTY", file("events.jsonl", nil))
	short.bad("E-22", "no transaction.json", "L9 PARSE", file("transaction.json", nil))
	c.bad("E-34", "no apply_result.json", "L6", file("apply_result.json", nil))
	// Lines.
	raw := func(change func(lines []string) []string) func(*record) {
		return func(r *record) { r.raw = change }
	}
	short.bad("E-4 J-10", "a space in a line", "L7 L2", raw(func(l []string) []string { l[3] = strings.Replace(l[3], `{`, `{ `, 1); return l }))
	short.bad("E-4 J-10", "a line without its LF", "L7", raw(func(l []string) []string { l[len(l)-1] = strings.TrimSuffix(l[len(l)-1], "\n"); return l }))
	short.bad("E-4", "an empty line", "L7 PARSE", raw(func(l []string) []string { return append(l, "\n") }))
	short.bad("E-4", "a line that is no JSON", "PARSE", raw(func(l []string) []string { return append(l, "x\n") }))
	short.bad("E-4", "a line that is no object", "PARSE", raw(func(l []string) []string { return append(l, "[]\n") }))
	short.bad("E-5 J-13", "a member more in an event", "L9", func(r *record) { r.events[2]["more"] = 1 })
	short.bad("E-5 J-13", "a member in another case", "I3 L9", func(r *record) {
		e := r.events[len(r.events)-1]
		e["Payload"] = e["payload"]
		delete(e, "payload")
	})
	short.bad("E-5", "a time to the second", "L9", func(r *record) { r.events[2]["timestamp"] = "2026-01-05T00:00:01Z" })
	short.bad("E-5", "a time that does not exist", "L9", func(r *record) { r.events[2]["timestamp"] = "2026-02-30T00:00:01.000Z" })
	short.bad("E-5", "a time with an offset", "L9", func(r *record) { r.events[2]["timestamp"] = "2026-01-05T00:00:01.001+00:00" })
	short.bad("E-6", "seq that is too great", "L1", func(r *record) { r.events[4]["seq"] = 6 })
	short.bad("E-6", "seq as text", "L1", func(r *record) { r.events[4]["seq"] = "5" })
	short.bad("E-6", "seq with a fraction", "L1", func(r *record) { r.events[4]["seq"] = 5.5 })
	short.bad("E-6", "another prev", "L2", func(r *record) { r.events[4]["prev"] = "sha256:" + strings.Repeat("0", 64) })
	short.bad("E-6", "prev of the first", "L2", func(r *record) { r.events[0]["prev"] = "sha256:" + strings.Repeat("0", 64) })
	short.bad("E-6", "prev that is null in the middle", "L2", func(r *record) { r.events[4]["prev"] = nil })
	short.bad("E-6", "an event left out, the chain not made good", "I5 L1 L2", raw(func(l []string) []string { return append(l[:2:2], l[3:]...) }))
	short.bad("E-6", "two events exchanged, the chain not made good", "L1 L2", raw(func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }))
	// Payloads.
	short.bad("E-7 U-6", "an unknown type of event", "L9", func(r *record) { r.insert(len(r.events)-1, r.event("tx/note", m{"text": "x"})) })
	short.bad("E-7 J-13", "an unknown member of a payload", "L9", set("turn/start", 0, "more", 1))
	short.bad("E-7 J-14", "a member that is missing", "L9", func(r *record) { p, _ := r.find("turn/start", 0); delete(p, "mode") })
	c.bad("E-7 J-14", "an optional member that is empty", "L9", set("validate/complete", 0, "findings", ""))
	c.bad("E-7 J-15", "a bool as text", "L9", set("validate/complete", 0, "success", "true"))
	short.bad("E-7 J-15", "a number as text", "L9", func(r *record) { p, _ := r.find("tx/meta", 0); p["approval_policy"].(m)["required"] = "1" })
	short.good("J-15", "null for an empty list", func(r *record) { p, _ := r.find("tx/meta", 0); p["workspace_roots"] = nil })
	short.bad("E-7", "another transaction's id in an event", "L9", set("turn/start", 0, "transaction_id", "tx_01KE5Q86Z943M4K0W7WAJYDRW9"))
	short.bad("E-8 J-13", "an actor with a member more", "L9", func(r *record) { p, _ := r.find("tx/meta", 0); p["proposer"].(m)["name"] = "x" })
	c.bad("E-9 J-14", "an empty evidence", "L9", func(r *record) { p, _ := r.find("approval/decision", 0); p["source"].(m)["evidence"] = "" })
	item := func(nth int, change func(item m)) func(*record) {
		return func(r *record) { p, _ := r.find("turn/item", nth); change(p["item"].(m)) }
	}
	short.bad("E-10", "an item of no shape", "L9", item(0, func(i m) { i["more"] = "x" }))
	short.bad("E-10", "an item without a type", "I5", item(0, func(i m) { i["type"] = "" }))
	short.bad("E-10", "an item without an id", "I5", item(0, func(i m) { i["id"] = "" }))
	short.bad("E-11", "an unknown status of an item", "L9", item(0, func(i m) { i["status"] = "done" }))
	addItem := func(i m) func(*record) {
		return func(r *record) {
			_, at := r.find("tx/status", 1)
			r.insert(at, r.event("turn/item", m{"turn_id": "turn_1", "item": i}))
		}
	}
	short.good("E-10 E-11", "an item of any type", addItem(m{"id": "item_9", "type": "plan", "steps": []any{m{"id": "1", "status": "skipped", "title": "x"}}}))
	short.bad("E-11", "a step without an id", "L9", addItem(m{"id": "item_9", "type": "plan", "steps": []any{m{"id": "", "status": "skipped", "title": "x"}}}))
	short.bad("E-11", "a step of an unknown status", "L9", addItem(m{"id": "item_9", "type": "plan", "steps": []any{m{"id": "1", "status": "done", "title": "x"}}}))
	command := func(r *record, change func(i m)) m {
		_, at := r.find("tx/status", 1)
		a := r.artifact("command", m{"output": "ok"})
		hex := a["payload"].(m)["artifact_id"]
		i := m{"aggregatedOutput": "ok", "command": "go vet", "cwd": ".", "durationMs": 5, "exitCode": 0, "id": "item_9", "metadata": m{"artifact": m{"artifact_id": hex, "path": a["payload"].(m)["path"]}, "required": true, "tree": strings.Repeat("1", 40), "when": "review"}, "op": "final", "status": "completed", "type": "commandExecution"}
		change(i)
		r.insert(at, a, r.event("turn/item", m{"turn_id": "turn_1", "item": i}))
		return a
	}
	short.good("E-10 E-30", "a command", func(r *record) { command(r, func(m) {}) })
	short.bad("E-10", "a command of an unknown status", "L9", func(r *record) { command(r, func(i m) { i["status"] = "running" }) })
	short.bad("E-30", "a command without its artifact", "I12", func(r *record) {
		command(r, func(i m) { i["metadata"].(m)["artifact"].(m)["artifact_id"] = strings.Repeat("0", 64) })
	})
	trace := func(change func(i m)) func(*record) {
		return func(r *record) {
			_, at := r.find("tx/status", 1)
			a := r.artifact("trace", m{"steps": []any{}})
			p := a["payload"].(m)
			i := m{"content": "I looked.", "id": "item_9", "metadata": m{"artifact": m{"artifact_id": p["artifact_id"], "path": p["path"]}, "source": "trace", "step": 1, "steps": 1}, "op": "final", "type": "agentMessage"}
			change(i)
			r.insert(at, a, r.event("turn/item", m{"turn_id": "turn_1", "item": i}))
		}
	}
	short.good("E-10 E-13", "a step of a trace", trace(func(m) {}))
	short.good("E-13", "a step of a trace: a call of a tool", trace(func(i m) { delete(i, "content"); i["type"], i["server"], i["tool"] = "mcpToolCall", "", "read" }))
	short.good("E-13", "a message that is claimed", trace(func(i m) { i["metadata"].(m)["source"] = "claimed" }))
	short.bad("E-13", "a step of an unknown type", "L9", trace(func(i m) { i["type"] = "thought" }))
	short.bad("E-13", "a message without content", "L9", trace(func(i m) { delete(i, "content") }))
	short.bad("E-13", "a call without a tool", "L9", trace(func(i m) { delete(i, "content"); i["type"], i["server"] = "mcpToolCall", "x" }))
	short.bad("E-13", "a command that is claimed", "L9", trace(func(i m) {
		delete(i, "content")
		i["metadata"].(m)["source"], i["type"], i["command"], i["status"] = "claimed", "commandExecution", "ls", "completed"
	}))
	// The proposal.
	proposal := func(change func(p m)) func(*record) { return func(r *record) { r.proposal(change) } }
	short.good("E-16", "an author", proposal(func(p m) {
		p["author"] = m{"name": "Ada", "email": "ada@example.org", "date": "2026-01-05T01:00:00+01:00"}
	}))
	for _, a := range [][2]string{{"name", "Ada <x>"}, {"name", ""}, {"name", " Ada"}, {"email", "ada"}, {"email", "a b@example.org"}, {"date", "2026-01-05"}, {"date", "2026-01-05T01:00:00+15:00"}, {"date", "1969-12-31T23:59:59Z"}, {"date", "2026-01-05T01:00:00+00:00"}} {
		short.bad("E-12 E-16", fmt.Sprintf("an author whose %s is %q", a[0], a[1]), "L9", proposal(func(p m) {
			author := m{"name": "Ada", "email": "ada@example.org", "date": "2026-01-05T01:00:00+01:00"}
			author[a[0]] = a[1]
			p["author"] = author
		}))
	}
	short.bad("E-16", "an author of a proposal of another kind", "L9", proposal(func(p m) {
		p["kind"], p["author"] = "worktree", m{"name": "Ada", "email": "ada@example.org", "date": "2026-01-05T01:00:00Z"}
	}))
	short.good("E-17", "a message of many lines", proposal(func(p m) { p["message"] = "a\n\nb  c" }))
	short.bad("E-17", "a message with a control character", "L9", proposal(func(p m) { p["message"] = "a\x1bb" }))
	short.bad("E-17", "a trailer of ours that is declared", "L9", proposal(func(p m) { p["declared"] = []any{"Countersign-Stage: apply"} }))
	short.bad("E-17", "an approval that is declared", "L9", proposal(func(p m) { p["declared"] = []any{"Approved-by: Ada"} }))
	asked := m{"actor": m{"id": "100", "kind": "user", "login": "bob"}, "source": "actions.sender"}
	short.good("E-14 E-15", "somebody who asked for it", proposal(func(p m) { p["requested_by"] = []any{asked} }))
	for _, bad := range []struct {
		note string
		all  []any
	}{
		{"somebody who asked, by no known source", []any{merge(asked, m{"source": "mail"})}}, {"somebody who asked, without a name", []any{merge(asked, m{"actor": m{"id": "", "login": ""}})}}, {"somebody who asked, twice", []any{asked, asked}},
		{"who asked, out of order", []any{asked, merge(asked, m{"actor": m{"id": "10"}})}}, {"nobody who asked, and not left out", []any{}},
	} {
		short.bad("E-14", bad.note, "L9", proposal(func(p m) { p["requested_by"] = bad.all }))
	}
	// What later versions say.
	event := func(name string, value any) func(*record) { return func(r *record) { r.events[3][name] = value } }
	short.good("E-5 U-6", "an event with extra", event("extra", m{"weather": m{"it": "rains"}}))
	short.good("E-5 U-6", "an event with extra that names a later schema", event("extra", m{"schema": "countersign/event/2", "weather": m{"schema": "countersign/weather/2"}}))
	short.bad("E-5 U-6", "extra that is empty", "L9", event("extra", m{}))
	short.bad("E-5 U-6", "extra that is no object", "L9", event("extra", []any{1}))
	short.bad("E-5 U-6", "an event that needs a newer version", "NEWER", event("needs_version", "1.1"))
	short.bad("E-5 U-6", "an event that needs the first version", "L9", event("needs_version", "1.0"))
	short.bad("E-5 U-6", "an event that needs what is no version", "L9", event("needs_version", "2"))
	short.bad("E-7 U-6", "an event of an unknown type that needs a newer version", "NEWER", func(r *record) { r.events[3]["type"], r.events[3]["needs_version"] = "weather/changed", "1.1" })
	short.bad("E-5 E-6 U-6", "an event that needs a newer version, and a chain that is broken", "L2 NEWER", func(r *record) { r.events[3]["prev"], r.events[2]["needs_version"] = canon.Sum(nil), "1.1" })
	weather := func(needs any) func(*record) {
		return func(r *record) {
			e := r.artifact("weather", m{"schema": "countersign/weather/1"})
			if needs != nil {
				e["needs_version"] = needs
			}
			r.events = append(r.events, e)
		}
	}
	short.good("E-31 U-6", "an artifact of an unknown kind", weather(nil))
	short.bad("E-31 U-6", "an artifact of an unknown kind that is critical", "NEWER", weather("1.1"))
	for _, needs := range []any{"soon", "1.0", 1.1} {
		short.bad("E-31 U-6", fmt.Sprint("a trace that needs ", needs), "L4", func(r *record) {
			r.insert(4, r.artifact("trace", m{"needs_version": needs, "schema": "countersign/trace/1"}))
		})
	}
	short.good("E-31 U-6", "a trace in which an agent wrote a document of a later schema", func(r *record) {
		r.insert(4, r.artifact("trace", m{"schema": "countersign/trace/1", "steps": []any{m{"input": m{"needs_version": "9.9", "schema": "countersign/x/9"}}}}))
	})
	c.bad("E-19", "a second item that says something else", "L9", func(r *record) {
		p, at := r.find("turn/item", 0)
		r.insert(at+1, r.event("turn/item", deep(p).(m)))
		p["item"].(m)["metadata"].(m)["message"] = "another one"
	})
	short.bad("E-19", "an item whose patchId is another", "L9", item(0, func(i m) { i["patchId"] = strings.Repeat("0", 64) }))
	short.bad("E-20", "another base in the proposal", "L9", proposal(func(p m) { p["base_commit"] = strings.Repeat("1", 40) }))
	short.bad("E-20", "another fingerprint in the proposal", "L9", proposal(func(p m) { p["patch_fingerprint"] = "patchset:" + strings.Repeat("0", 64) }))
	short.bad("E-15 J-14", "confidence that is a fraction", "L9", proposal(func(p m) { p["confidence"] = 0.5 }))
	short.good("E-15", "confidence of zero", proposal(func(p m) { p["confidence"] = 0 }))
	short.good("E-15", "approval that is not required", proposal(func(p m) { p["requires_approval"] = false }))
	short.bad("E-15 J-14", "authors that are not complete, said", "L9", proposal(func(p m) { p["authors_complete"] = false }))
	// The fold.
	fold := func(change func(state m)) func(*record) { return func(r *record) { r.fold = change } }
	c.bad("E-22", "another status in transaction.json", "L9", fold(func(s m) { s["status"] = "applied" }))
	c.bad("E-22", "open in transaction.json", "L9", fold(func(s m) { s["closed"] = false }))
	c.bad("E-22", "a label", "L9", fold(func(s m) { s["labels"] = []any{"x"} }))
	c.bad("E-22 J-10", "transaction.json in another form", "L9", func(r *record) {
		r.noFold, r.was = true, "{}\n"
	})
	c.bad("E-3 E-22", "another id in transaction.json", "I2 L9", fold(func(s m) { s["transaction_id"] = "tx_01KE5Q86Z943M4K0W7WAJYDRW9" }))
	c.bad("E-21", "tx/meta twice", "I1 L9", func(r *record) { r.insert(1, deep(r.events[0]).(m)) })
	c.bad("E-21", "without tx/meta", "I1 L9", func(r *record) { r.drop(0) })
	// What may follow.
	c.bad("E-23", "an event after tx/close", "I9 L9", func(r *record) { r.add("turn/start", m{"input": "x", "mode": "x", "turn_id": "turn_9"}) })
	open.bad("E-24", "from in_progress to applied", "L9", func(r *record) {
		p, at := r.find("tx/status", 1)
		p["to"] = "applied"
		r.events = r.events[:at+1]
		delete(r.files, "apply_result.json")
	})
	open.bad("E-23", "an item of a turn that has not started", "I5 L9", set("turn/item", 0, "turn_id", "turn_2"))
	open.bad("E-23", "a request that is decided twice", "I6 L9", func(r *record) { _, at := r.find("approval/decision", 0); r.insert(at+1, deep(r.events[at]).(m)) })
	open.bad("E-23", "a decision on no request", "I6 L9", set("approval/decision", 0, "approval_request_id", "req_9"))
	open.bad("E-23", "a decision on another fingerprint", "L9", func(r *record) {
		p, _ := r.find("approval/decision", 0)
		p["fingerprint"] = "secret:" + p["fingerprint"].(string)
	})
	open.bad("E-23", "a decision that is neither", "L9", set("approval/decision", 0, "decision", "abstain"))
	open.bad("E-28", "a request of an unknown kind", "L9", set("approval/request", 0, "kind", "filechange"))
	open.bad("E-28 P-40", "a request whose fingerprint is of another kind", "L9", set("approval/request", 0, "kind", "secrets_override"))
	open.bad("E-28", "a request before the proposal", "L9", func(r *record) {
		_, at := r.find("approval/request", 0)
		e := r.events[at]
		r.drop(at)
		_, at = r.find("turn/item", 0)
		r.insert(at, e)
	})
	open.bad("E-23", "an apply inside an apply", "I7 L9", func(r *record) { _, at := r.find("apply/start", 0); r.insert(at+1, deep(r.events[at]).(m)) })
	c.bad("E-23", "the end of another apply", "I8 L9", set("apply/complete", 0, "apply_id", "apply_2"))
	c.bad("E-23 E-37", "an apply that has no end", "I8 L9", func(r *record) { _, at := r.find("apply/complete", 0); r.drop(at) })
	c.bad("E-25", "applied without an apply", "L9 L6", func(r *record) {
		_, at := r.find("apply/complete", 0)
		r.drop(at)
		_, at = r.find("apply/start", 0)
		r.drop(at)
	})
	c.bad("E-26", "completed without a validation", "L9", func(r *record) {
		_, at := r.find("validate/complete", 0)
		r.drop(at)
		r.drop(at - 1)
	})
	c.bad("E-23", "findings of a validation that succeeded", "L9 L6", set("validate/complete", 0, "findings", "artifacts/x.json"))
	// The directory's own rules.
	open.bad("E-30", "an artifact without its file", "I10", func(r *record) { r.exactly = m{r.path("risks"): nil} })
	short.bad("E-30", "a proposal without its patch", "I11", func(r *record) { r.exactly = m{"patches/" + r.patchID() + ".diff": nil} })
	open.bad("E-31", "an artifact with other bytes", "L4", func(r *record) { r.exactly = m{r.path("risks"): "{}\n"} })
	open.bad("E-31", "an artifact with another hash", "L4", func(r *record) { set("artifact/stored", 1, "stored_sha256", "sha256:"+strings.Repeat("0", 64))(r) })
	short.bad("E-32", "an artifact that is no line", "L7", func(r *record) { r.events = append(r.events, r.artifact("note", "{ }\n")) })
	short.good("E-32", "an artifact of another type that is no line", func(r *record) {
		a := r.artifact("note", "x")
		a["payload"].(m)["content_type"] = "text/plain"
		r.events = append(r.events, a)
	})
	c.bad("E-32 E-34", "apply_result.json that is no line", "L7", func(r *record) { r.exactly = m{"apply_result.json": " " + r.files["apply_result.json"]} })
	risks := func(change func(doc m)) func(*record) { return func(r *record) { r.change("risks", change) } }
	open.bad("E-33", "risks of an unknown schema", "L20", risks(func(d m) { d["schema"] = "countersign/risks/x" }))
	open.bad("E-33 U-6", "risks of a later schema", "NEWER", risks(func(d m) { d["schema"] = "countersign/risks/2" }))
	open.bad("E-33", "risks of schema 0", "L20", risks(func(d m) { d["schema"] = "countersign/risks/0" }))
	open.bad("E-33 U-6", "risks that need a newer version", "NEWER", risks(func(d m) { d["needs_version"] = "1.1" }))
	open.bad("D-20 U-6", "a Policy of a later version", "NEWER", func(r *record) { r.policy(canonicalPolicy(`"version":1`, `"version":2`)) })
	open.bad("E-33", "risks of another patch", "L20", risks(func(d m) { d["patch_id"] = strings.Repeat("0", 64) }))
	open.bad("E-33", "a risk of a file that the patch does not touch", "L20", risks(func(d m) { d["risks"] = []any{m{"kind": "x", "path": "other"}} }))
	open.good("E-33", "a risk of a file that the patch touches", risks(func(d m) { d["risks"] = []any{m{"kind": "x", "path": "dir/file0.txt", "lines": []any{1, 2}}} }))
	open.bad("E-33 J-13", "risks with a member more", "L20", risks(func(d m) { d["note"] = "x" }))
	open.bad("E-33", "risks twice", "L20", func(r *record) {
		_, at := r.find("artifact/stored", 1)
		r.insert(at+1, r.artifact("risks", m{"more": m{}, "patch_id": r.patchID(), "risks": []any{m{"kind": "x", "path": "dir/file0.txt"}}, "schema": "countersign/risks/1"}))
	})
	result := func(change func(doc m), both bool) func(*record) {
		return func(r *record) {
			var doc m
			teststand.Fatal(r.t, json.Unmarshal([]byte(r.files["apply_result.json"]), &doc))
			change(doc)
			r.files["apply_result.json"] = lineOf(doc)
			if both {
				r.change("apply", func(d m) { d["apply_result"] = doc })
			}
		}
	}
	op := func(d m) m { return d["operation_results"].([]any)[0].(m) }
	c.bad("E-34", "a result that differs from the artifact's", "L6", result(func(d m) { d["target_root"] = "x" }, false))
	c.bad("E-34", "a result with another hash before", "L6", result(func(d m) { op(d)["before_hash"] = nil }, true))
	c.bad("E-34", "a result of another file", "L6", result(func(d m) { op(d)["path"] = "dir/other.txt" }, true))
	c.bad("E-34 E-35", "an outcome that is not that of the end", "L6", set("apply/complete", 0, "outcome", "PARTIAL"))
	c.bad("E-35", "the end of an apply to another target", "L6", set("apply/complete", 0, "target", "refs/heads/main"))
	// Approvals of the apply.
	open.bad("E-38", "an apply without an approval", "L17", func(r *record) {
		_, at := r.find("approval/request", 0)
		for range 4 {
			r.drop(at)
		}
	})
	open.bad("E-38", "an apply after a denial", "L17", set("approval/decision", 0, "decision", "deny"))
	open.bad("E-38", "an apply that asks for nothing", "L17", set("apply/start", 0, "approvals", []any{}))
	open.bad("E-37", "an apply of other files", "L3", set("apply/start", 0, "files", []any{"dir/file0.txt", "other"}))
	open.bad("E-38", "a secret that nobody approved", "L17", func(r *record) { r.proposal(func(p m) { p["contains_secret_introductions"] = true }) })
	open.bad("E-38 D-20", "a Policy that asks for two", "L17", func(r *record) { r.policy(canonicalPolicy(`"required":1`, `"required":2`)) })
	open.bad("E-38 D-20", "a Policy that takes no local approvals", "L17", func(r *record) { r.policy(canonicalPolicy(`"permission"`, `"local":false,"permission"`)) })
	open.bad("D-20 Y-21", "a Policy that is not in its canonical form", "L17", func(r *record) { r.policy(canonicalPolicy(`{"apply"`, `{ "apply"`)) })
	open.bad("D-20", "a Policy of an unknown schema", "L17", func(r *record) { r.change("policy", func(d m) { d["schema"] = "countersign/policy/x" }) })
	open.bad("D-20 U-6", "a Policy's document of a later schema", "NEWER", func(r *record) { r.change("policy", func(d m) { d["schema"] = "countersign/policy/2" }) })
	open.bad("D-20 U-6", "a Policy of version 1.1", "NEWER", func(r *record) { r.policy(canonicalPolicy(`"version":1`, `"version":1.1`)) })
	open.bad("E-38 D-5", "an approval of a bot", "L17", func(r *record) { p, _ := r.find("approval/decision", 0); p["source"].(m)["author"].(m)["kind"] = "bot" })
	open.bad("E-38 D-7", "an approval from elsewhere", "L17 L18", func(r *record) { p, _ := r.find("approval/decision", 0); p["source"].(m)["kind"] = "email" })
	open.bad("E-38 D-10", "an approval of an author of the change", "L17", func(r *record) {
		d, _ := r.find("approval/decision", 0)
		d["source"].(m)["author"] = m{"id": "8", "kind": "user", "login": "cy"}
		d["source"].(m)["kind"] = "rpc"
		r.proposal(func(p m) { p["authors"] = []any{m{"id": "8", "kind": "user", "login": "cy"}} })
		p, _ := r.find("tx/meta", 0)
		p["proposer"] = m{"id": "9", "kind": "bot", "login": "bot"}
	})
	open.bad("E-38 D-9", "an approval that is too old", "L17", func(r *record) {
		r.policy(canonicalPolicy(`"permission"`, `"max_age":"1s","permission"`))
	})
	// The patch.
	patch := func(change func(text string) string, made bool) func(*record) {
		return func(r *record) {
			name := "patches/" + r.patchID() + ".diff"
			text := change(r.files[name])
			r.exactly = m{name: text}
			if made {
				hex := canon.Hex([]byte(text))
				r.exactly = m{name: nil, "patches/" + hex + ".diff": text}
				old := r.patchID()
				r.replace(old, hex)
				for kind := range map[string]bool{"risks": true} {
					r.change(kind, func(d m) { d["patch_id"] = hex })
				}
				result(func(d m) {
					d["patch_source"] = m{"proposal_hash": "sha256:" + hex, "proposal_id": "prop_" + hex[:16]}
				}, true)(r)
			}
		}
	}
	c.bad("E-42", "a byte of the patch", "L5", patch(func(t string) string { return strings.Replace(t, "+hello", "+hallo", 1) }, false))
	c.bad("E-42 P-11 P-26", "another patch, all names made good, not the index", "L5", patch(func(t string) string { return strings.Replace(t, "dir/file0", "dir/file1", -1) }, true))
	c.bad("E-42 P-25", "a patch with less context, all names made good", "L5", patch(func(t string) string { return t + "x\n" }, true))
	c.bad("E-42", "other target files", "L5 L3 L6", proposal(func(p m) { p["target_files"] = []any{"dir/file0.txt", "other"} }))
	short.bad("E-43", "a redacted hash that is not the file's", "L5", proposal(func(p m) { p["patch_redacted_sha256"] = "sha256:" + strings.Repeat("0", 64) }))
	short.bad("E-43", "a sealed hash without its file", "L5", proposal(func(p m) { p["patch_sealed_sha256"] = "sha256:" + strings.Repeat("0", 64) }))
	short.good("E-2 E-43", "a sealed patch", func(r *record) {
		r.files["patches/"+r.patchID()+".diff.age"] = "sealed"
		r.proposal(func(p m) { p["patch_sealed_sha256"] = canon.Sum([]byte("sealed")) })
	})
	c.bad("E-45", "a merge of what is applied", "L25", func(r *record) {
		r.insert(len(r.events)-1, r.artifact("merge", m{"base": "main", "head_commit": strings.Repeat("1", 40), "merge_commit": strings.Repeat("2", 40), "merged_at": "2026-01-05T00:00:05Z", "pull_request": 1, "repository": m{"id": "1", "name": "a/b"}, "schema": "countersign/merge/1"}))
	})
	c.bad("E-40", "proposed again after it was applied", "L24", func(r *record) {
		r.insert(len(r.events)-1, r.artifact("proposed_again", againDoc(r, m{})))
	})
	short.bad("E-1 E-21", "an id that is none", "L9 I2", func(r *record) {
		old := r.id
		r.id = "tx_81KE5Q86Z943M4K0W7WAJYDRW8"
		r.replace(old, r.id)
	})
	short.bad("E-25", "applied, and nothing was", "L9", func(r *record) { r.add("tx/status", m{"from": "proposed", "reason": "x", "to": "applied"}) })
	short.bad("E-23", "closed while it is proposed", "L9", func(r *record) { r.add("tx/close", m{"status": "proposed"}) })
	failedLife(g)
}

// failedLife is one whose apply failed and was done again, and whose validation found something.
func failedLife(g *generator) {
	r := lifeOf(g.t, storetest.Retried)
	c := g.life("E-24 E-25 E-35", "an apply that failed, then one that did not", r, m{"status": "applied", "closed": false})
	findings := func(more m) func(*record) {
		return func(r *record) {
			a := r.artifact("findings", merge(m{"schema": "countersign/findings/1", "violations": []any{m{"message": "x", "rule_id": "F1"}}}, more))
			r.add("validate/start", m{"validate_id": "validate_1"})
			r.events = append(r.events, a)
			r.add("validate/complete", m{"findings": a["payload"].(m)["path"], "success": false, "validate_id": "validate_1"})
		}
	}
	c.bad("E-31 U-6", "what an apply recorded, in a later schema", "NEWER", func(r *record) { r.change("apply", func(d m) { d["schema"] = "countersign/apply/2" }) })
	c.good("E-23 E-36", "a validation that found something", findings(nil))
	c.bad("E-23 E-36 U-6", "findings of a later schema", "NEWER", findings(m{"schema": "countersign/findings/2"}))
	c.bad("E-23", "a validation that failed without findings", "L9", func(r *record) {
		r.add("validate/start", m{"validate_id": "validate_1"})
		r.add("validate/complete", m{"success": false, "validate_id": "validate_1"})
	})
	c.good("E-23", "an apply that is open", func(r *record) {
		_, at := r.find("apply/start", -1)
		r.events = r.events[:at+1]
		delete(r.files, "apply_result.json")
		for _, e := range c.base.events[at+1:] {
			if p := e["payload"].(m); e["type"] == "artifact/stored" {
				delete(r.files, p["path"].(string))
			}
		}
	})
	c.bad("E-26", "applied, then completed without a validation", "L9", func(r *record) { r.add("tx/status", m{"from": "applied", "reason": "x", "to": "completed"}) })
}

func againDoc(r *record, more m) any {
	meta, _ := r.find("tx/meta", 0)
	return merge(m{"base_commit": meta["base_commit"], "input": m{"bytes": 5, "kind": "diff"}, "patch_id": r.patchID(), "proposer": m{"id": "local:eve@example.org", "kind": "bot", "login": "eve"}, "schema": "countersign/proposed_again/1", "tool": "test"}, plain(more))
}

func againLife(g *generator) {
	asked := lifeOf(g.t, storetest.Asked).without("policy", "risks")
	c := g.life("E-40", "proposed again by another agent, and waiting", asked, m{"status": "awaiting_approval", "closed": false})
	add := func(kind string, doc any) func(*record) {
		return func(r *record) { r.events = append(r.events, r.artifact(kind, doc)) }
	}
	again := func(more m) func(*record) {
		return func(r *record) { add("proposed_again", againDoc(r, more))(r) }
	}
	c.good("E-40", "with an author, a message and what is declared", again(m{"author": m{"name": "Eve", "email": "eve@example.org", "date": "2026-01-05T00:00:00Z"}, "message": "x", "declared": []any{"Assisted-by: x"}, "summary": "x"}))
	bob := m{"actor": m{"id": "", "kind": "user", "login": "bob"}, "source": "flag"}
	c.good("E-14 E-40", "proposed again for somebody", again(m{"requested_by": []any{bob}}))
	c.bad("E-14 E-40", "proposed again for nobody, and not left out", "L24", again(m{"requested_by": []any{}}))
	c.good("E-40 U-6", "proposed again with extra", again(m{"extra": m{"weather": "rain"}}))
	c.bad("E-40 U-6", "proposed again in a newer version", "NEWER", again(m{"needs_version": "1.1"}))
	c.bad("E-40", "another patch proposed again", "L24", again(m{"patch_id": strings.Repeat("0", 64)}))
	c.bad("E-40", "proposed again by nobody", "L24", again(m{"proposer": m{"id": ""}}))
	c.bad("E-40 J-13", "proposed again with a member more", "L24", again(m{"note": "x"}))
	c.bad("E-40 E-17", "proposed again with a message that cannot be seen", "L24", again(m{"message": "\u200b"}))
	c.bad("E-40", "a trace that is no artifact", "L24", again(m{"trace": "x"}))
	c.bad("E-40", "more than twenty further proposals, and one by the first proposer", "L24", func(r *record) {
		for i := range 20 {
			again(m{"proposer": m{"id": fmt.Sprintf("local:eve%d@example.org", i)}})(r)
		}
		again(m{"proposer": m{"id": "local:bot@example.org", "login": "bot"}})(r)
	})
	c.good("E-40", "more than twenty further proposals, and one by the first proposer for somebody else", func(r *record) {
		for i := range 20 {
			again(m{"proposer": m{"id": fmt.Sprintf("local:eve%d@example.org", i)}})(r)
		}
		again(m{"proposer": m{"id": "local:bot@example.org", "login": "bot"}, "requested_by": []any{bob}})(r)
	})
	elsewhere := func(change m) func(*record) {
		return func(r *record) {
			add("proposed_elsewhere", merge(m{"patch_id": r.patchID(), "proposals": []any{m{"proposer": m{"id": "9", "kind": "user", "login": "cy"}, "transaction_id": "tx_01KE5Q86Z943M4K0W7WAJYDRW9"}}, "schema": "countersign/proposed_elsewhere/1"}, plain(with(change))))(r)
		}
	}
	c.good("E-41", "proposed elsewhere", elsewhere(nil))
	c.bad("E-41 U-6", "proposed elsewhere in a later schema", "NEWER", elsewhere(m{"schema": "countersign/proposed_elsewhere/2"}))
	c.good("E-14 E-41", "proposed elsewhere for somebody", elsewhere(m{"proposals": []any{m{"proposer": m{"id": "9", "kind": "user", "login": "cy"}, "requested_by": []any{bob}, "transaction_id": "tx_01KE5Q86Z943M4K0W7WAJYDRW9"}}}))
	c.bad("E-41", "proposed nowhere else", "L24", elsewhere(m{"proposals": []any{}}))
	c.bad("E-41", "proposed elsewhere in this very transaction", "L24", func(r *record) {
		elsewhere(m{"proposals": []any{m{"proposer": m{"id": "9", "kind": "user", "login": "cy"}, "transaction_id": r.id}}})(r)
	})
}

func folds(g *generator) {
	r := lifeOf(g.t, storetest.Whole)
	events := func(r *record) string { return r.tree()["events.jsonl"].(string) }
	lines := strings.SplitAfter(strings.TrimSuffix(events(r), "\n"), "\n")
	for _, n := range []int{1, 5, 9, len(lines)} {
		g.good("fold", "E-21 E-22", fmt.Sprintf("the first %d events", n), m{"events": strings.TrimSuffix(strings.Join(lines[:n], ""), "\n") + "\n"}, nil)
	}
	whole := fmt.Sprintf("the first %d events", len(lines))
	for _, c := range []struct {
		requires, note, rules string
		change                func(*record)
	}{
		{"E-4", "no event", "L9 EMPTY", func(r *record) { r.raw = func([]string) []string { return nil } }},
		{"E-6", "a chain that is broken", "L9 L2", func(r *record) { r.events[3]["prev"] = "x" }},
		{"E-6", "a number that is wrong", "L9 L1", func(r *record) { r.events[3]["seq"] = 9 }},
		{"E-24", "a status that cannot follow", "L9", set("tx/status", 1, "to", "completed")},
		{"E-21", "another event first", "L9 I1", func(r *record) { r.drop(0) }},
	} {
		bad := r.clone()
		c.change(bad)
		g.bad("fold", c.requires, "no fold: "+c.note, whole, m{"events": events(bad)}, strings.Fields(c.rules)...)
	}
}
