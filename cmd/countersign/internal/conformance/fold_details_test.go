package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A step adds events to a record that begins with tx/meta alone.
type step func(r *record)

// start is a record with the least that a tx/meta has.
func start(t testing.TB) *record {
	r := &record{t: t, id: "tx_01KE5PJ800AAAAAAAAAAAAAAAA", files: map[string]string{}}
	r.events = []m{{"timestamp": "2026-01-05T00:00:00.000Z", "type": "tx/meta", "payload": m{
		"approval_policy": m{"local": true, "required": 1}, "base_commit": strings.Repeat("1", 40), "cwd": "", "policy_commit": "", "proposer": m{"id": "7", "kind": "bot", "login": "a"},
		"sandbox_policy": m{"network_access": false, "type": "", "writable_roots": []any{}}, "summary": "", "transaction_id": r.id, "workspace_roots": []any{}}}}
	return r
}

// to changes the status by a list of them, from the one that was before.
func to(statuses string) step {
	return func(r *record) {
		from := "created"
		for _, e := range r.events {
			if e["type"] == "tx/status" {
				from = e["payload"].(m)["to"].(string)
			}
		}
		for _, next := range strings.Fields(statuses) {
			r.add("tx/status", m{"from": from, "reason": "", "to": next})
			from = next
		}
	}
}

func event(kind string, payload m) step { return func(r *record) { r.add(kind, payload) } }

func turn(id string) step { return event("turn/start", m{"input": "", "mode": "", "turn_id": id}) }

func item(fields m) step {
	return event("turn/item", m{"turn_id": "t", "item": merge(m{"id": "i", "type": "note"}, fields)})
}

// proposed is an item with a proposal in which something is changed.
func proposed(change m) step {
	return func(r *record) {
		id := canon.Hex(nil)
		item(merge(m{"type": "fileChange", "patchId": id, "metadata": m{
			"after_sha256_by_path": m{}, "applied": false, "base_commit": strings.Repeat("1", 40), "base_sha256_by_path": m{}, "contains_secret_introductions": false, "kind": "patch", "needle": "",
			"patch_fingerprint": "patchset:" + id, "patch_id": id, "policy_sha256": "", "target_files": []any{}, "workspace_root": ""}}, m{"metadata": change}).(m))(r)
	}
}

func asked(id, kind, prefix string) step {
	return event("approval/request", m{"approval_request_id": id, "fingerprint": prefix + "patchset:" + canon.Hex(nil), "item_id": "i", "kind": kind, "policy": m{"commit": "", "sha256": ""}, "prompt": "", "turn_id": "t"})
}

func decided(id, prefix string) step {
	return event("approval/decision", m{"approval_request_id": id, "decision": "approve", "fingerprint": prefix + "patchset:" + canon.Hex(nil), "policy": m{"commit": "", "sha256": ""},
		"source": m{"author": m{"id": "8", "kind": "user", "login": "b"}, "body_sha256": "", "commit": "", "created_at": "", "id": "", "kind": "local", "permission": "", "url": ""}})
}

func applies(id string) step {
	return event("apply/start", m{"apply_id": id, "approvals": []any{}, "base_commit": "", "files": []any{}, "patch_ids": []any{}, "policy": m{"commit": "", "sha256": ""}, "target": ""})
}

func applied(id string, success bool) step {
	return event("apply/complete", m{"apply_artifact": "", "apply_id": id, "commit_after": "", "commit_before": "", "outcome": "", "success": success, "target": ""})
}

func checks1(id string) step { return event("validate/start", m{"validate_id": id}) }

func checked(id string, success bool) step {
	p := m{"success": success, "validate_id": id}
	if !success {
		p["findings"] = "x"
	}
	return event("validate/complete", p)
}

func closed(status string) step { return event("tx/close", m{"status": status}) }

// foldDetails are events of which one alone may not follow. transaction.json cannot hide that here.
func foldDetails(g *generator) {
	g.in("steps")
	events := func(steps []step) m {
		r := start(g.t)
		for _, s := range steps {
			s(r)
		}
		return m{"events": r.tree()["events.jsonl"]}
	}
	twin := ""
	good := func(requires, note string, steps ...step) {
		g.t.Helper()
		twin = "steps: " + note
		g.good("fold", requires, twin, events(steps), nil)
	}
	bad := func(requires, note, rules string, steps ...step) {
		g.t.Helper()
		g.bad("fold", requires, "steps: "+note, twin, events(steps), strings.Fields("L9 "+rules)...)
	}
	seq := func(s ...step) []step { return s }
	then := func(s []step, more ...step) []step { return append(append([]step{}, s...), more...) }

	good("E-24", "interrupted while it is in progress", to("in_progress interrupted"))
	good("E-24", "asked for, proposed again, denied", to("in_progress proposed awaiting_approval proposed denied"))
	good("E-24", "superseded while it is asked for", to("in_progress proposed awaiting_approval superseded"))
	good("E-24", "interrupted after it failed", to("in_progress proposed failed interrupted"))
	for _, path := range []string{"proposed", "interrupted", "applied", "in_progress awaiting_approval", "in_progress denied", "in_progress failed", "in_progress superseded", "in_progress completed", "in_progress in_progress", "in_progress proposed in_progress", "in_progress proposed completed",
		"in_progress proposed awaiting_approval failed", "in_progress proposed awaiting_approval completed", "in_progress proposed failed proposed", "in_progress proposed failed completed", "in_progress proposed denied proposed", "in_progress interrupted in_progress", "in_progress proposed superseded interrupted", "in_progress other"} {
		bad("E-24", "the statuses "+path, "", to(path))
	}
	good("E-23", "closed", to("in_progress interrupted"), closed("interrupted"))
	bad("E-23", "from another status", "I3", event("tx/status", m{"from": "in_progress", "reason": "", "to": "in_progress"}))
	bad("E-23", "closed twice", "I9", to("in_progress interrupted"), closed("interrupted"), closed("interrupted"))
	bad("E-23", "an artifact after the close", "I9", to("in_progress interrupted"), closed("interrupted"), event("artifact/stored", m{"artifact_id": "", "content_type": "", "kind": "", "path": "", "redacted": false, "stored_sha256": ""}))
	bad("E-23", "closed as denied, and interrupted", "", to("in_progress interrupted"), closed("denied"))
	bad("E-23", "closed as it is, in progress", "", to("in_progress"), closed("in_progress"))
	bad("E-7", "an unknown event", "", event("tx/note", m{}))
	bad("E-7", "an event of the ledger", "", event("ledger/accept_tip", m{"accepted_tip": "", "author": m{"id": "", "kind": "", "login": ""}, "reason": "", "remembered_tip": ""}))
	bad("E-7", "the name of a record for an event", "", event("actor", m{"id": "", "kind": "", "login": ""}))
	bad("E-7", "an event of another transaction", "", func(r *record) {
		to("in_progress")(r)
		r.events[1]["payload"].(m)["transaction_id"] = "tx_01KE5PJ800AAAAAAAAAAAAAAAB"
	})
	bad("E-21 E-1", "an id that is none", "", func(r *record) { r.events[0]["payload"].(m)["transaction_id"] = "tx_01KE5PJ800AAAAAAAAAAAAAAAI" })
	bad("E-21 E-1", "an id of a ULID that is too large", "", func(r *record) { r.events[0]["payload"].(m)["transaction_id"] = "tx_81KE5PJ800AAAAAAAAAAAAAAAA" })
	bad("E-21", "a second tx/meta", "I1", func(r *record) { r.events = append(r.events, r.events[0]) })
	bad("E-5", "a time that does not exist", "", func(r *record) { r.events[0]["timestamp"] = "2026-02-30T00:00:00.000Z" })
	bad("E-5", "a time to the second", "", func(r *record) { r.events[0]["timestamp"] = "2026-01-05T00:00:00Z" })
	bad("E-5", "a time with an offset", "", func(r *record) { r.events[0]["timestamp"] = "2026-01-05T00:00:00.000+00:00" })
	bad("J-15", "a number that is not whole", "", func(r *record) { r.events[0]["payload"].(m)["approval_policy"].(m)["required"] = 1.5 })
	bad("J-15", "a number of 2^63", "", func(r *record) { r.events[0]["payload"].(m)["approval_policy"].(m)["required"] = float64(1 << 63) })
	bad("J-15", "true for a number", "", func(r *record) { r.events[0]["payload"].(m)["approval_policy"].(m)["required"] = true })
	bad("J-15", "a text for a list", "", func(r *record) { r.events[0]["payload"].(m)["workspace_roots"] = "" })
	bad("J-15", "a number in a list of texts", "", func(r *record) { r.events[0]["payload"].(m)["workspace_roots"] = []any{1} })
	bad("J-13 E-8", "a text for an actor", "", func(r *record) { r.events[0]["payload"].(m)["proposer"] = "a" })
	good("J-15", "numbers at their bounds, lists that are null", func(r *record) {
		p := r.events[0]["payload"].(m)
		p["approval_policy"].(m)["required"], p["workspace_roots"] = -9223372036854774784.0, nil
	})

	in := seq(turn("t"))
	good("E-23", "a turn with an item", then(in, item(nil))...)
	bad("E-23", "a turn twice", "I4", then(in, turn("t"))...)
	bad("E-23", "a turn without an id", "I4", then(in, turn(""))...)
	bad("E-23", "an item of another turn", "I5", then(in, event("turn/item", m{"turn_id": "u", "item": m{"id": "i", "type": "note"}}))...)
	bad("E-23 E-10", "an item without an id", "I5", then(in, item(m{"id": ""}))...)
	bad("E-23 E-10", "an item without a type", "I5", then(in, item(m{"type": ""}))...)
	bad("E-11", "an item of an unknown status", "", then(in, item(m{"status": "done"}))...)
	bad("E-11", "a step without an id", "", then(in, item(m{"steps": []any{m{"id": "", "status": "pending", "title": ""}}}))...)
	trace := func(change m) step {
		return item(merge(m{"type": "agentMessage", "content": "", "op": "", "metadata": m{"artifact": m{"artifact_id": "", "path": ""}, "source": "trace", "step": 1, "steps": 1}}, change).(m))
	}
	good("E-13 E-10", "a message of a trace, empty", then(in, trace(nil))...)
	bad("E-13", "a message without content", "", then(in, trace(m{"content": nil}))...)
	bad("E-13", "reasoning without a summary", "", then(in, trace(m{"type": "reasoning"}))...)
	bad("E-13", "a plan without steps", "", then(in, trace(m{"type": "plan"}))...)
	bad("E-13", "a call without a tool", "", then(in, trace(m{"type": "mcpToolCall", "server": "s"}))...)
	bad("E-13", "a command without a status", "", then(in, trace(m{"type": "commandExecution", "command": "c"}))...)
	bad("E-13", "a claimed plan", "", then(in, trace(m{"type": "plan", "steps": []any{m{"id": "a", "status": "pending", "title": ""}}, "metadata": m{"source": "claimed"}}))...)
	bad("E-13", "a trace of another source", "", then(in, trace(m{"metadata": m{"source": "told"}}))...)
	bad("E-13", "a change in a trace", "", then(in, trace(m{"type": "fileChange"}))...)
	bad("E-13", "a claimed message without content", "", then(in, trace(m{"content": nil, "metadata": m{"source": "claimed"}}))...)
	good("E-13", "a claimed message", then(in, trace(m{"metadata": m{"source": "claimed"}}))...)

	with := func(more ...step) []step { return then(then(in, proposed(nil), to("in_progress proposed")), more...) }
	good("E-28 E-23", "three requests, two of which are decided", with(asked("a", "fileChange", ""), asked("b", "secrets_override", "secret:"), asked("c", "break_glass", ""), decided("b", "secret:"), decided("a", ""))...)
	bad("E-23", "a request twice", "I6", with(asked("a", "fileChange", ""), asked("a", "fileChange", ""))...)
	bad("E-23", "a request without an id", "I6", with(asked("", "fileChange", ""))...)
	bad("E-23", "a decision without a request", "I6", with(decided("a", ""))...)
	bad("E-23", "a decision of another fingerprint", "I6", with(asked("a", "fileChange", ""), decided("a", "secret:"))...)
	bad("E-23", "a request that is decided twice", "I6", with(asked("a", "fileChange", ""), decided("a", ""), decided("a", ""))...)

	done := with(applies("a"), applied("a", true), to("applied"))
	checkedOnce := then(done, checks1("v"), checked("v", true))
	good("E-25 E-26", "applied, checked, completed, closed", then(checkedOnce, to("completed"), closed("completed"))...)
	good("E-25", "applied after it failed", with(applies("a"), applied("a", false), to("failed"), applies("b"), applied("b", true), to("applied"))...)
	good("E-26", "checked again after it did not pass", then(done, checks1("v"), checked("v", false), checks1("w"), checked("w", true), to("completed"))...)
	bad("E-23", "an apply inside an apply", "I7", with(applies("a"), applies("b"))...)
	bad("E-23", "an apply without an id", "", with(applies(""))...)
	bad("E-23", "the end of another apply", "I8", with(applies("a"), applied("b", true))...)
	bad("E-23", "the end of no apply", "I8", with(applied("a", true))...)
	bad("E-23", "an apply of what is applied", "", then(done, applies("b"))...)
	bad("E-23", "closed while an apply is open", "I8", with(applies("a"), to("interrupted"), closed("interrupted"))...)
	bad("E-25", "applied after an apply that failed", "", with(applies("a"), applied("a", false), to("applied"))...)
	bad("E-25", "applied while another apply is open", "", with(applies("a"), applied("a", true), applies("b"), to("applied"))...)
	bad("E-25", "applied without an apply", "", with(to("applied"))...)
	bad("E-26", "completed without a check", "", then(done, to("completed"))...)
	bad("E-26", "completed after a check that did not pass", "", then(done, checks1("v"), checked("v", false), to("completed"))...)
	bad("E-26", "completed while another check runs", "", then(checkedOnce, checks1("w"), to("completed"))...)
	bad("E-23", "the end of no check", "", then(done, checked("v", true))...)
	bad("E-23", "a check that ends twice", "", then(checkedOnce, checked("v", true))...)
	bad("E-23", "findings of a check that passed", "", then(done, checks1("v"), event("validate/complete", m{"findings": "x", "success": true, "validate_id": "v"}))...)
	bad("E-23", "no findings of a check that did not pass", "", then(done, checks1("v"), event("validate/complete", m{"success": false, "validate_id": "v"}))...)
	bad("E-23", "a check before it is applied", "", with(checks1("v"), checked("v", true))...)

	gate := func(more ...step) []step {
		return then(then(in, proposed(m{"kind": "pr_diff"}), to("in_progress proposed")), more...)
	}
	good("E-24 E-26 E-27", "gate-only, checked and completed", gate(checks1("v"), checked("v", true), to("completed"))...)
	bad("E-27", "gate-only, and an apply", "", gate(applies("a"))...)
	bad("E-26", "gate-only, completed without a check", "", gate(to("completed"))...)
	bad("E-23", "gate-only, a check that did not pass", "", gate(checks1("v"), checked("v", false))...)
	bad("E-23", "gate-only, a check before it is proposed", "", then(in, proposed(m{"kind": "pr_diff"}), checks1("v"), checked("v", true))...)
	bad("E-26", "gate-only, asked for after its check", "", gate(checks1("v"), checked("v", true), to("awaiting_approval proposed completed"))...)
	bad("E-23", "gate-only, a check while it is asked for", "", gate(checks1("v"), to("awaiting_approval"), checked("v", true))...)

	author := func(name, email, date string) m {
		return m{"author": m{"name": name, "email": email, "date": date}}
	}
	const mail, day = "a@b.example", "2026-01-05T00:00:00Z"
	said := func(change m) []step { return then(in, proposed(change)) }
	letters := func(n int) string { return strings.Repeat("a", n) }
	good("E-16", "an author with the latest date and the longest name and address", said(author(letters(100), letters(190)+"@b.example", "2099-12-31T23:59:59+14:00"))...)
	bad("E-16", "an author without a name", "", said(author("", mail, day))...)
	bad("E-16", "an author of 101 characters", "", said(author(letters(101), mail, day))...)
	bad("E-16", "an author of two lines", "", said(author("a\nb", mail, day))...)
	bad("E-16", "an author with a quote", "", said(author("a\"b", mail, day))...)
	bad("E-16", "an author with a backslash", "", said(author("a\\b", mail, day))...)
	bad("E-16", "an author with a bracket", "", said(author("a>b", mail, day))...)
	bad("E-16", "an address of 201 bytes", "", said(author("a", letters(191)+"@b.example", day))...)
	bad("E-16", "an address with a space", "", said(author("a", "a b@c", day))...)
	bad("E-16", "an address of two", "", said(author("a", "a@b@c", day))...)
	bad("E-16", "a date with fractions", "", said(author("a", mail, "2026-01-05T00:00:00.0Z"))...)
	bad("E-16", "a date with an offset of none", "", said(author("a", mail, "2026-01-05T00:00:00+00:00"))...)
	bad("E-16", "a date with an offset of more than 14 hours", "", said(author("a", mail, "2026-01-05T00:00:00+14:01"))...)
	bad("E-16", "a date that does not exist", "", said(author("a", mail, "2026-02-29T00:00:00Z"))...)
	bad("E-16", "a date before 1970", "", said(author("a", mail, "1969-12-31T23:59:59Z"))...)
	bad("E-16", "a date after 2099", "", said(author("a", mail, "2100-01-01T00:00:00Z"))...)
	bad("E-16", "an author of what is not a patch", "", said(merge(author("a", mail, day), m{"kind": "inline"}).(m))...)
	bad("E-16 E-17", "an author of a pull request's own diff", "", said(merge(author("a", mail, day), m{"kind": "pr_diff"}).(m))...)
	declared := func(d ...any) m { return m{"declared": d} }
	good("E-17", "a message, and what is declared", said(m{"message": "a\n\nb é", "declared": []any{"A-1: x", "Approved: y"}})...)
	bad("E-17", "a message of a pull request's own diff", "", said(m{"kind": "pr_diff", "message": "a"})...)
	bad("E-17", "declared in a pull request's own diff", "", said(m{"kind": "pr_diff", "declared": []any{"A: x"}})...)
	bad("E-17", "a message with a tab", "", said(m{"message": "a\tb"})...)
	bad("E-17", "declared without a value", "", said(declared("A: "))...)
	bad("E-17", "declared without a space", "", said(declared("A:x"))...)
	bad("E-17", "declared with a key of a digit", "", said(declared("1A: x"))...)
	bad("E-17", "declared in our name", "", said(declared("CounterSign-x: y"))...)
	bad("E-17", "declared approved", "", said(declared("approved-BY: y"))...)
	bad("E-17", "declared over two lines", "", said(declared("A: x\ny"))...)
	bad("E-17", "a hundred and one declared", "", said(declared(slices.Repeat([]any{"A: x"}, 101)...))...)
	requested := func(rs ...any) m { return m{"requested_by": rs} }
	asker := func(id, kind, login string) m {
		return m{"actor": m{"id": id, "kind": kind, "login": login}, "source": "rpc"}
	}
	good("E-14", "asked for by an id without a login, and a login without an id", said(requested(asker("", "user", "b"), asker("8", "user", "")))...)
	bad("E-14", "asked for by nobody", "", said(requested(asker("", "user", "")))...)
	bad("E-14", "asked for by an actor without a kind", "", said(requested(asker("8", "", "b")))...)
	bad("E-14", "asked for by a login of two lines", "", said(requested(asker("8", "user", "a\nb")))...)
	bad("E-14", "asked for by a login of 101 characters", "", said(requested(asker("8", "user", letters(101))))...)
	bad("E-14", "asked for twice by one", "", said(requested(asker("8", "user", "b"), asker("8", "user", "b")))...)
}
