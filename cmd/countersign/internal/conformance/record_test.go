package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A record is a transaction's directory in which anything can be changed: its chain, the names of
// its artifacts and its fold are made good when it is written, but for what a case leaves wrong.
type record struct {
	t      testing.TB
	id     string
	files  map[string]string // but for events and fold
	events []m               // timestamp, type, payload

	raw     func(lines []string) []string // the lines of events.jsonl, if not nil, in the end
	fold    func(state m)                 // changes transaction.json
	noFold  bool                          // transaction.json is what it was
	was     string                        // transaction.json of the life
	exactly map[string]any                // files as they stand in the input; nil removes one
}

// lifeOf is a life's record: of the first transaction of a ledger with this life alone.
func lifeOf(t testing.TB, life storetest.Life) *record {
	t.Helper()
	entries, err := storetest.Lives(life)
	teststand.Fatal(t, err)
	r := &record{t: t, files: map[string]string{}}
	for _, e := range entries {
		for name, data := range e.Files {
			id, _, ok := ledger.Within(name)
			if !ok || r.id != "" && id != r.id {
				continue
			}
			r.id = id
			r.files[strings.TrimPrefix(name, ledger.Dir(id)+"/")] = string(data)
		}
	}
	r.read(r.files["events.jsonl"], "proposal")
	delete(r.files, "events.jsonl")
	delete(r.files, "transaction.json")
	r.settle()
	return r
}

// read takes over events, but for those that no rule asks for, so that vectors are short:
// display diffs, the proposal once it was applied, and artifacts of some kinds.
func (r *record) read(events string, without ...string) {
	for line := range strings.Lines(events) {
		var e m
		teststand.Fatal(r.t, json.Unmarshal([]byte(line), &e))
		payload := e["payload"].(m)
		item, _ := payload["item"].(m)
		if item["type"] == "turnDiff" || item["type"] == "fileChange" && item["status"] == "completed" {
			continue
		}
		if kind, ok := payload["kind"].(string); ok && e["type"] == "artifact/stored" && slices.Contains(without, kind) {
			delete(r.files, payload["path"].(string))
			continue
		}
		delete(item, "changes")
		if p, ok := item["metadata"].(m); ok {
			delete(p, "message")
			delete(p, "declared")
		}
		r.events = append(r.events, m{"timestamp": e["timestamp"], "type": e["type"], "payload": e["payload"]})
	}
}

// settle makes the fold as it is now that which stays where a case has none.
func (r *record) settle() { r.was = r.tree()["transaction.json"].(string) }

// without leaves out the artifacts of some kinds.
func (r *record) without(kinds ...string) *record {
	r.events = slices.DeleteFunc(r.events, func(e m) bool {
		p := e["payload"].(m)
		gone := e["type"] == "artifact/stored" && slices.Contains(kinds, p["kind"].(string))
		if gone {
			delete(r.files, p["path"].(string))
		}
		return gone
	})
	r.settle()
	return r
}

// until cuts a life off after the nth event of a type, with what came behind it.
func (r *record) until(kind string, nth int) *record {
	_, at := r.find(kind, nth)
	for _, e := range r.events[at+1:] {
		if p := e["payload"].(m); e["type"] == "artifact/stored" {
			delete(r.files, p["path"].(string))
		}
	}
	r.events = r.events[:at+1]
	delete(r.files, "apply_result.json")
	r.settle()
	return r
}

// clone is a copy that shares nothing.
func (r *record) clone() *record {
	c := *r
	c.files, c.exactly = maps.Clone(r.files), maps.Clone(r.exactly)
	c.events = nil
	for _, e := range r.events {
		c.events = append(c.events, deep(e).(m))
	}
	return &c
}

func deep(v any) any {
	switch v := v.(type) {
	case m:
		out := m{}
		for k, x := range v {
			out[k] = deep(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = deep(x)
		}
		return out
	}
	return v
}

// plain makes maps and numbers of JSON of any value.
func plain(v any) any {
	raw, err := json.Marshal(v)
	var out any
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

func lineOf(v any) string {
	line, err := canon.Line(plain(v))
	if err != nil {
		panic(err)
	}
	return string(line)
}

// tree is the directory as the input of a question.
func (r *record) tree() m {
	r.t.Helper()
	var lines []string
	prev := any(nil)
	for i, e := range r.events {
		whole := maps.Clone(e)
		if _, has := whole["seq"]; !has {
			whole["seq"] = i + 1
		}
		if _, has := whole["prev"]; !has {
			whole["prev"] = prev
		}
		line := lineOf(whole)
		prev = canon.Sum([]byte(line))
		lines = append(lines, line)
	}
	if r.raw != nil {
		lines = r.raw(lines)
	}
	events := strings.Join(lines, "")
	state := r.was
	if log, err := ledger.ReadLog([]byte(events)); err == nil && !r.noFold {
		doc := plain(log.Transaction()).(m)
		if r.fold != nil {
			r.fold(doc)
		}
		state = lineOf(doc)
	}
	out := m{"events.jsonl": events, "transaction.json": state}
	for name, data := range r.files {
		out[name] = Bytes(data)
	}
	for name, file := range r.exactly {
		if out[name] = file; file == nil {
			delete(out, name)
		}
	}
	return plain(out).(m)
}

// find is the payload of the nth event of a type, from 0; -1 is the last.
func (r *record) find(kind string, nth int) (payload m, at int) {
	r.t.Helper()
	var all []int
	for i, e := range r.events {
		if e["type"] == kind {
			all = append(all, i)
		}
	}
	if nth < 0 {
		nth += len(all)
	}
	if nth < 0 || nth >= len(all) {
		r.t.Fatalf("there is no %s %d", kind, nth)
	}
	return r.events[all[nth]]["payload"].(m), all[nth]
}

// event makes one with the time of the last.
func (r *record) event(kind string, payload m) m {
	payload = maps.Clone(payload)
	payload["transaction_id"] = r.id
	return m{"type": kind, "payload": plain(payload), "timestamp": r.events[len(r.events)-1]["timestamp"]}
}

func (r *record) add(kind string, payload m) {
	r.events = append(r.events, r.event(kind, payload))
}

func (r *record) insert(at int, e ...m) { r.events = slices.Insert(r.events, at, e...) }
func (r *record) drop(at int)           { r.events = slices.Delete(r.events, at, at+1) }

// artifact is the event of an artifact, whose file is entered.
func (r *record) artifact(kind string, doc any) m {
	data, ok := doc.(string)
	if !ok {
		data = lineOf(doc)
	}
	hex := canon.Hex([]byte(data))
	name := "artifacts/" + hex + ".json"
	r.files[name] = data
	return r.event("artifact/stored", m{"artifact_id": hex, "content_type": "application/json", "kind": kind, "path": name, "redacted": false, "stored_sha256": "sha256:" + hex})
}

// path is where the last artifact of a kind is.
func (r *record) path(kind string) string {
	r.t.Helper()
	last := ""
	for _, e := range r.events {
		if p := e["payload"].(m); e["type"] == "artifact/stored" && p["kind"] == kind {
			last = p["path"].(string)
		}
	}
	if last == "" {
		r.t.Fatalf("there is no artifact %s", kind)
	}
	return last
}

// replace replaces a text in all events.
func (r *record) replace(from, to string) {
	raw, err := json.Marshal(r.events)
	teststand.Fatal(r.t, err)
	if !bytes.Contains(raw, []byte(from)) {
		r.t.Fatalf("%q is nowhere", from)
	}
	r.events = nil
	teststand.Fatal(r.t, json.Unmarshal(bytes.ReplaceAll(raw, []byte(from), []byte(to)), &r.events))
}

// change changes the last artifact of a kind, and its name wherever that is.
func (r *record) change(kind string, change func(doc m)) {
	r.t.Helper()
	name := r.path(kind)
	var doc m
	teststand.Fatal(r.t, json.Unmarshal([]byte(r.files[name]), &doc))
	change(doc)
	r.rewrite(name, lineOf(doc))
}

// rewrite gives an artifact other bytes, and its name is then that of these.
func (r *record) rewrite(name, data string) {
	old := strings.TrimSuffix(strings.TrimPrefix(name, "artifacts/"), ".json")
	hex := canon.Hex([]byte(data))
	delete(r.files, name)
	r.files["artifacts/"+hex+".json"] = data
	r.replace(old, hex)
}

// policy records another Policy in place of the one that the life went by.
func (r *record) policy(canonical string) {
	r.t.Helper()
	old, sum := "", canon.Sum([]byte(canonical))
	r.change("policy", func(doc m) { old = doc["sha256"].(string); doc["sha256"], doc["policy"] = sum, canonical })
	if old != sum {
		r.replace(old, sum)
	}
}

// proposal changes what every item says of the proposal.
func (r *record) proposal(change func(p m)) {
	for _, e := range r.events {
		if item, ok := e["payload"].(m)["item"].(m); ok && item["type"] == "fileChange" {
			change(item["metadata"].(m))
		}
	}
}

func (r *record) patchID() string {
	p, _ := r.find("turn/item", 0)
	return p["item"].(m)["patchId"].(string)
}

// ref is the Policy that the events name.
func (r *record) ref() m {
	if !slices.ContainsFunc(r.events, func(e m) bool { return e["payload"].(m)["kind"] == "policy" }) {
		return m{"commit": strings.Repeat("1", 40), "sha256": "sha256:" + strings.Repeat("0", 64)} // in a verdict it is given
	}
	var doc m
	teststand.Fatal(r.t, json.Unmarshal([]byte(r.files[r.path("policy")]), &doc))
	return m{"commit": doc["commit"], "sha256": doc["sha256"]}
}

// A vote is a decision of somebody, with what it takes of its request.
type vote struct {
	decision, kind, prefix, reason string
	id, login                      string
	source                         m // changes
}

// votes enters requests and decisions, a pair of events each.
func (r *record) votes(all ...vote) {
	for i, v := range all {
		request := fmt.Sprintf("asked_%d_%d", len(r.events), i)
		fingerprint := v.prefix + "patchset:" + r.patchID()
		kind := v.kind
		if kind == "" {
			kind = map[string]string{"": "fileChange", "secret:": "secrets_override", "protected:": "protected_path"}[v.prefix]
		}
		if v.decision == "" {
			v.decision = "approve"
		}
		meta, _ := r.find("tx/meta", 0)
		r.add("approval/request", m{"approval_request_id": request, "fingerprint": fingerprint, "item_id": "item_1", "kind": kind, "policy": r.ref(), "prompt": "Apply?", "turn_id": "turn_1"})
		at := r.events[len(r.events)-1]["timestamp"]
		source := m{"author": m{"id": v.id, "kind": "user", "login": v.login}, "body_sha256": canon.Sum(nil), "commit": meta["base_commit"], "created_at": at, "id": "", "kind": "local", "permission": "local", "url": ""}
		decision := m{"approval_request_id": request, "decision": v.decision, "fingerprint": fingerprint, "policy": r.ref(), "source": merge(source, plain(with(v.source)))}
		if v.reason != "" {
			decision["reason"] = v.reason
		}
		r.add("approval/decision", decision)
	}
}

// likeFiles is what a tree changes of another, as a merge patch.
func likeFiles(base, tree m) m {
	out := m{}
	for name, file := range tree {
		if had, ok := base[name]; !ok || fmt.Sprint(had) != fmt.Sprint(file) {
			out[name] = file
		}
	}
	for name := range base {
		if _, ok := tree[name]; !ok {
			out[name] = nil
		}
	}
	return out
}
