"""A transaction's directory: events, their fold, and the directory's rules (E-1 to E-45, D-25 to D-27, S-30, S-31)."""
import re

import cjson
import patch
import signatures
import ucd
import verdict
from cjson import HASH, HEX40, HEX64, Refused, hashed, is_record, need, record, sha, shape
from signatures import rfc3339

TX_ID = re.compile(r"tx_[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")
shape("event", "seq int, prev text|null, timestamp text, type text, payload object")
shape("actor", "id text, kind text, login text")
shape("ref", "commit text, sha256 text")
shape("sign", "key text, key_fingerprint text, principal text, signature text, statement text")
shape("source", "author actor, body_sha256 text, commit text, created_at text, evidence? text, id text, kind text, permission text, "
      "signature? sign, url text")
shape("approval_policy", "local bool, required int")
shape("sandbox_policy", "network_access bool, type text, writable_roots text[]")
shape("entry", "fingerprint text, kind text, required int")
PAYLOADS = {"tx/meta": "approval_policy approval_policy, base_commit text, cwd text, policy_commit text, proposer actor, "
               "sandbox_policy sandbox_policy, summary text, workspace_roots text[]", "tx/status": "from text, reason text, to text",
    "turn/start": "input text, mode text, turn_id text", "turn/item": "item object, turn_id text",
    "artifact/stored": "artifact_id text, content_type text, kind text, path text, redacted bool, stored_sha256 text",
    "approval/request": "approval_request_id text, fingerprint text, item_id text, kind text, policy ref, prompt text, turn_id text",
    "approval/decision": "approval_request_id text, decision text, fingerprint text, policy ref, reason? text, source source",
    "apply/start": "apply_id text, approvals entry[], base_commit text, files text[], patch_ids text[], policy ref, target text",
    "apply/complete": "apply_artifact text, apply_id text, commit_after text, commit_before text, outcome text, success bool, target text",
    "validate/start": "validate_id text", "validate/complete": "findings? text, success bool, validate_id text", "tx/close": "status text"}
for _t, _m in PAYLOADS.items():  # E-7
    shape(_t, _m + ", transaction_id text")
shape("change", "from? text, kind text, path text, unified_diff text")
shape("step", "id text, status text, title text")
shape("art", "artifact_id text, path text")
shape("general", "changes? change[], id text, metadata? proposal, op? text, patchId? text, status? text, steps? step[], type text, unified_diff? text")
shape("command_meta", "artifact art, required bool, tree text, when text")
shape("command", "aggregatedOutput text, command text, cwd text, durationMs int, exitCode int, id text, metadata command_meta, op text, "
      "status text, type text")
shape("trace_meta", "artifact art, ended_at? text, output_bytes? int, paths? text[], source text, started_at? text, step int, steps int")
shape("trace", "aggregatedOutput? text, command?? text, content?? text, cwd? text, durationMs?? int, exitCode?? int, id text, metadata trace_meta, "
      "op text, server?? text, status? text, steps? step[], summary?? text, tool?? text, type text")
shape("git_author", "date text, email text, name text")
shape("proposal", "after_sha256_by_path map(text|null), base_sha256_by_path map(text|null), applied bool, contains_secret_introductions bool, "
      "base_commit text, kind text, needle text, patch_fingerprint text, patch_id text, policy_sha256 text, workspace_root text, "
      "target_files text[], author? git_author, authors? actor[], authors_complete? bool, requires_approval?? bool, checks? text, "
      "head_commit? text, message? text, patch_redacted_sha256? text, patch_sealed_sha256? text, proposal_item_id? text, "
      "proposal_turn_id? text, source_proposal_hash? text, source_proposal_id? text, confidence?? int, declared? text[], "
      "supersedes? text[], pull_request? int, repository? repo")
shape("risk", "detail? text, from? text, kind text, lines? int[], more? int, path text")
shape("risks", "more map(int), patch_id text, risks risk[], schema text")
shape("result_op", "after_hash text|null, before_hash text|null, bytes_written int, error? text, op text, path text, status text")
shape("violation", "message text, path? text, rule_id text")
shape("patch_source", "proposal_hash text, proposal_id text")
shape("result_sum", "failed int, skipped int, succeeded int, total_bytes_written int, total_operations int")
shape("apply_result", "apply_schema_version text, dry_run bool, error? text, operation_results result_op[], outcome text, "
      "patch_source patch_source, summary result_sum, target_root text, violations? violation[]")
shape("findings", "more? int, schema text, violations violation[]")
shape("input", "bytes int, format? text, kind text, sha256? text, via? text")
shape("proposed_again", "author? git_author, base_commit text, declared? text[], input input, message? text, patch_id text, proposer actor, "
      "schema text, summary? text, tool text, trace? text")
shape("elsewhere", "proposer actor, transaction_id text")
shape("proposed_elsewhere", "patch_id text, proposals elsewhere[], schema text")
shape("merge", "base text, head_commit text, merge_commit text, merged_at text, pull_request int, repository repo, schema text")
shape("access", "permission text, role text")
shape("cmd", "break_glass? bool, fingerprint? text, reason? text, signed? bool, verb text")
shape("said", "app? text, author actor, body text, commit? text, created_at text, earlier? text[], edited bool, email? bool, gone? bool, "
      "hidden? bool, id text, kind text, reply_to? text, state? text, untold? bool, url text")
shape("said_statement", "access access, command cmd, native? bool, schema text, statement said, text text")
shape("signature", "armored text, schema text")
shape("key", "line text, schema text")

STATUSES = {  # E-24
    "created": ["in_progress"], "in_progress": ["proposed", "interrupted"],
    "proposed": ["awaiting_approval", "applied", "failed", "denied", "superseded", "interrupted"],
    "awaiting_approval": ["proposed", "denied", "superseded", "interrupted"],
    "failed": ["applied", "denied", "superseded", "interrupted"], "applied": ["completed", "interrupted"]}
TRACES = {"agentMessage": ["content"], "reasoning": ["summary"], "plan": ["steps"], "mcpToolCall": ["server", "tool"],
          "commandExecution": ["command", "status"]}
FORGE = ("review", "review_comment", "issue_comment")

def check_words(v, kind=None):
    """author, message and declared of a proposal (E-16, E-17); kind None: of any kind."""
    a = v.get("author")
    if a is not None:
        need(kind in (None, "patch"), "E-16: author")
        need(a["name"] and ucd.one_line(a["name"], 100) and not set(a["name"]) & set('<>"\\'), "E-16: name")
        need(len(a["email"].encode()) <= 200 and re.fullmatch(r"[A-Za-z0-9.!#$%&*+/=?^_{|}~\[\]-]+@[A-Za-z0-9.-]+", a["email"]), "E-16: email")
        m = re.fullmatch(r"(\d{4})-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-](\d\d):(\d\d))", a["date"], re.A)
        need(m and "1970" <= m.group(1) <= "2099" and rfc3339(a["date"]) is not None, "E-16: date")
        need(m.group(2) == "Z" or 0 < int(m.group(3)) * 60 + int(m.group(4)) <= 14 * 60, "E-16: offset")
    need(kind != "pr_diff" or "message" not in v and "declared" not in v, "E-17: pr_diff")
    need(len(v.get("message", "").encode()) <= 16384 and all(map(ucd.visible, v.get("message", "").replace("\n", ""))), "E-17: message")
    need(len(v.get("declared") or []) <= 100, "E-17: declared")
    for d in v.get("declared") or []:
        need(len(d.encode()) <= 4096 and all(map(ucd.visible, d)) and re.match("[A-Za-z][A-Za-z0-9-]*: .", d)
             and not d.lower().startswith(("countersign-", "approved-by")), "E-17: declared")

def item_shape(v):  # E-10 to E-13
    if is_record(v, "general"):
        need(v["id"] and v["type"], "I5")
        need(v.get("status", "completed") in ("inProgress", "completed", "failed", "cancelled"), "E-11: status")
        for s in v.get("steps", []):
            need(s["id"] and s["status"] in ("pending", "inProgress", "completed", "skipped", "failed"), "E-11: step")
        if "metadata" in v:
            check_words(v["metadata"], v["metadata"]["kind"])
        return "general"
    if is_record(v, "command"):
        need(v["id"] and v["type"] == "commandExecution" and v["status"] in ("completed", "failed"), "E-10: command")
        return "command"
    record(v, "trace", "E-10")
    source = v["metadata"]["source"]
    need(v["id"] and (source == "trace" and v["type"] in TRACES and all(k in v for k in TRACES[v["type"]])
                      or source == "claimed" and v["type"] == "agentMessage"), "E-13: trace")
    return "trace"

class Fold:
    """Events of a transaction. events are parsed; at[n] is (status, apply that is open) before event n; problems: (rule, text)."""

    def __init__(self, data):
        self.problems, self.events, self.folded, self.at = [], [], None, []
        self.status, self.proposal, self.doc, self.turn, self.last_artifact = "created", None, None, "", ""
        self.meta, self.closed, self.first_proposal, self.shapes = None, False, None, {}
        if not data:
            return self.bad("EMPTY", "no event")
        lines = data.split(b"\n")
        if lines.pop() != b"":
            self.bad("L7", "E-4: no LF at the end")
        prev = None
        for n, l in enumerate(lines):
            l += b"\n"
            try:
                v = cjson.parse(l)
                need(isinstance(v, dict), "not an object")
            except Refused as e:
                return self.bad("PARSE", "line %d: %s" % (n + 1, e))
            if cjson.line_of(v) != l:
                self.bad("L7", "line %d is not canonical" % (n + 1))
            try:
                record(v, "event")
            except Refused as e:
                self.bad("L9", "line %d: %s" % (n + 1, e))
                self.events.append(None)
                prev = hashed(l)
                continue
            if v["seq"] != n + 1:
                self.bad("L1", "line %d: seq" % (n + 1))
            if v["prev"] != prev:
                self.bad("L2", "line %d: prev" % (n + 1))
            prev = hashed(l)
            self.events.append(v)
        if None in self.events:
            return
        try:
            self.fold()
            self.folded = self.doc
        except Refused as e:
            if e.rule != "I1":
                self.bad("L9", str(e))
            if e.rule:
                self.bad(e.rule, str(e))

    def bad(self, rule, text):
        self.problems.append((rule, text))

    def fold(self):
        turns, requests, decided = set(), {}, set()
        apply_open, applies, start, done = None, set(), None, None  # done: whether the last apply event was a success
        validates, valid, since = set(), False, -1
        self.applies, gate = [], False
        for n, e in enumerate(self.events):
            where = "event %d: " % (n + 1)
            p, kind = e["payload"], e["type"]

            def must(ok, text, rule=""):
                need(ok, where + text, rule)

            must(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", e["timestamp"], re.A), "E-5: timestamp")
            rfc3339(e["timestamp"])
            must(kind in PAYLOADS, "E-7: type")
            must((n == 0) == (kind == "tx/meta"), "E-21", "I1")
            record(p, kind, where)
            self.at.append((self.status, apply_open))
            if n == 0:
                self.meta = p
                must(TX_ID.match(p["transaction_id"]), "E-21: id")
            must(p["transaction_id"] == self.meta["transaction_id"], "E-7: transaction_id")
            must(not self.closed, "E-23: closed", "I9")
            if kind == "tx/status":
                to = p["to"]
                must(p["from"] == self.status, "E-23: from", "I3")
                must(to in STATUSES.get(self.status, []) or gate and self.status == "proposed" and to == "completed", "E-24")
                if to == "applied":
                    must(done is True and not gate, "E-25, E-27")
                if to == "completed":
                    must(valid and valid > since, "E-26")
                self.status = to
                if to == ("proposed" if gate else "applied"):
                    since = n
            elif kind == "turn/start":
                must(p["turn_id"] and p["turn_id"] not in turns, "E-23: turn", "I4")
                turns.add(p["turn_id"])
                self.turn = p["turn_id"]
            elif kind == "turn/item":
                v = p["item"]
                must(p["turn_id"] in turns and v.get("id") and v.get("type"), "E-23: item", "I5")
                self.shapes[n] = item_shape(v)
                need(self.shapes[n] != "general" or v["type"] != "fileChange" or "metadata" in v, "E-19: no proposal")
                if self.shapes[n] == "general" and "metadata" in v:
                    self.take_proposal(v, p["turn_id"])
                    gate = self.proposal is not None and self.proposal["kind"] == "pr_diff"
            elif kind == "artifact/stored":
                self.last_artifact = p["path"]
            elif kind == "approval/request":
                must(p["approval_request_id"] and p["approval_request_id"] not in requests, "E-23: request", "I6")
                must(self.proposal and p["kind"] in patch.PREFIXES
                     and p["fingerprint"] == patch.PREFIXES[p["kind"]] + self.proposal["patch_id"], "E-28")
                requests[p["approval_request_id"]] = p
            elif kind == "approval/decision":
                r = p["approval_request_id"]
                must(r in requests and requests[r]["fingerprint"] == p["fingerprint"] and r not in decided, "E-23: decision", "I6")
                must(p["decision"] in ("approve", "deny"), "E-23: decision")
                decided.add(r)
            elif kind == "apply/start":
                must(apply_open is None, "E-23: open", "I7")
                must(p["apply_id"] and self.status != "applied" and not gate, "E-23, E-27: apply/start")
                apply_open, start, done = p["apply_id"], n, None
            elif kind == "apply/complete":
                must(apply_open is not None and p["apply_id"] == apply_open, "E-23: apply/complete", "I8")
                self.applies.append((start, n))
                apply_open, done = None, p["success"]
            elif kind == "validate/start":
                validates.add(p["validate_id"])
                valid = False
            elif kind == "validate/complete":
                must(p["validate_id"] in validates and ("findings" in p) != p["success"], "E-23: validate")
                must(self.status == "applied" or p["success"] and gate and self.status == "proposed", "E-23: validate")
                validates.remove(p["validate_id"])
                valid = n if p["success"] else False
            elif kind == "tx/close":
                must(p["status"] == self.status and p["status"] in ("completed", "interrupted", "denied", "superseded"), "E-23: close")
                must(apply_open is None, "E-23: close", "I8")
                self.closed = True
        self.make_doc()

    def take_proposal(self, item, turn):
        v = item["metadata"]
        need(v["base_commit"] == self.meta["base_commit"] and HEX64.match(v["patch_id"])
             and v["patch_fingerprint"] == "patchset:" + v["patch_id"], "E-20")
        if item["type"] != "fileChange":
            return
        need(item.get("patchId") == v["patch_id"], "E-19: patchId")
        bare = {k: x for k, x in v.items() if k != "applied"}
        need(self.first_proposal in (None, bare), "E-19: another proposal")
        self.first_proposal = bare
        self.proposal = dict(v, proposal_turn_id=turn, proposal_item_id=item["id"])

    def make_doc(self):  # E-22
        m, pid = self.meta, self.proposal["patch_id"] if self.proposal else None
        self.doc = {k: m[k] for k in ("transaction_id", "workspace_roots", "cwd", "sandbox_policy", "approval_policy", "proposer")}
        self.doc.update({
            "version": "0", "created_at": self.events[0]["timestamp"], "updated_at": self.events[-1]["timestamp"], "status": self.status,
            "closed": self.closed, "current_turn_id": self.turn, "labels": [], "notes": m["summary"],
            "pointers": {"events_jsonl": "events.jsonl", "latest_diff": "patches/%s.diff" % pid if pid else "", "latest_turn": self.turn,
                         "latest_artifact": self.last_artifact, "proposal": self.proposal}})

class Record:
    """A directory. files: path (text) -> bytes. problems: (rule, text) of all that is wrong."""

    def __init__(self, txid, tree):
        self.id, self.problems, self.files, self.signatures = txid, [], {}, {}
        for p, (mode, content) in tree.items():
            if mode == "040000":
                continue
            self.files[p.decode("utf-8", "replace")] = content
            if mode != "100644":
                self.bad("L10", "mode of %s" % ascii(p))
        f = self.fold = Fold(self.files.get("events.jsonl", b""))
        self.problems += f.problems
        self.events, self.proposal, self.meta = f.events, f.proposal, f.meta
        self.pid = self.proposal["patch_id"] if self.proposal else ""

    def bad(self, rule, text):
        self.problems.append((rule, text))

    def run(self, check, rule, *args):
        try:
            return check(*args)
        except Refused as e:
            self.bad(e.rule or rule, str(e))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as e:  # what is not of its shape
            self.bad(rule, "%s: %r" % (check.__name__, e))

    def of_type(self, *types, before=None):
        return [(n, e["payload"]) for n, e in enumerate(self.events[:before]) if e["type"] in types]

    def artifacts(self, kind, before=None):
        return [(n, p) for n, p in self.of_type("artifact/stored", before=before) if p["kind"] == kind]

    def content(self, p, name=None, schema=None):
        """The document of an artifact/stored; of a shape and schema, if they are given."""
        need(p["path"] in self.files, "artifact is missing")
        v = cjson.read_line(self.files[p["path"]])
        if name:
            record(v, name)
        need(schema is None or v["schema"] == schema, "schema")
        return v

    def check(self):
        if not TX_ID.match(self.id):
            self.bad("I2", "E-1: id")
        doc = self.files.get("transaction.json")
        try:
            v = cjson.parse(doc or b"")
            if not isinstance(v, dict) or v.get("transaction_id") != self.id:
                self.bad("I2", "E-3: transaction_id of transaction.json")
        except Refused as e:
            self.bad("L9", "transaction.json: %s" % e)
        if self.fold.folded is None:
            return self
        if doc != cjson.line_of(self.fold.folded):
            self.bad("L9", "E-22: transaction.json is not the fold")
        self.run(self.names, "L10")
        for n, p in self.of_type("artifact/stored"):
            self.run(self.artifact, "L4", p)
        self.run(self.items, "I11")
        self.run(self.risks, "L20")
        self.run(self.results, "L6")
        self.run(self.patch_file, "L5")
        for n, p in self.of_type("approval/decision"):
            self.run(self.evidence, "L18", n, p)
            self.run(self.signed, "L21", n, p)
        gate = self.gate_only()
        for n, p in self.of_type("apply/start", "validate/complete"):
            if "apply_id" in p:
                self.run(self.approvals, "L3", n, p)
            if "apply_id" in p or gate:
                self.run(self.verdict, "L17", n, p)
        self.run(self.again, "L24")
        self.run(self.merges, "L25")
        return self

    def gate_only(self):  # E-18
        return bool(self.proposal) and self.proposal["kind"] == "pr_diff"

    def pull(self):
        return self.proposal.get("pull_request", 0) if self.proposal and self.proposal.get("pull_request", 0) > 0 else 0

    def proposals(self):
        return [p["item"]["metadata"] for n, p in self.of_type("turn/item") if self.fold.shapes[n] == "general" and "metadata" in p["item"]]

    def names(self):  # E-2
        known = {"events.jsonl", "transaction.json", "README.md"} | {p["path"] for _, p in self.of_type("artifact/stored")}
        for m in self.proposals():
            known.add("patches/%s.diff" % m["patch_id"])
            if "patch_sealed_sha256" in m:
                known.add("patches/%s.diff.age" % m["patch_id"])
        if any(p["success"] for _, p in self.of_type("apply/complete")):
            known.add("apply_result.json")
        for f in self.files:
            ok = f in known and (not f.startswith("artifacts/") or re.fullmatch(r"artifacts/[0-9a-f]{64}\.json", f))
            need(ok or f == "apply_result.json", "E-2: " + ascii(f))
        if "apply_result.json" in self.files and "apply_result.json" not in known:
            self.bad("L6", "E-34: apply_result.json without a success")

    def artifact(self, p):
        data = self.files.get(p["path"])
        need(p["path"] == "artifacts/%s.json" % p["artifact_id"], "E-31: path")
        need(data is not None, "E-30: artifact is missing", "I10")
        need(sha(data) == p["artifact_id"] and hashed(data) == p["stored_sha256"], "E-31: hash")
        if p["content_type"] == "application/json":
            try:
                cjson.read_line(data)
            except Refused as e:
                raise Refused("E-32: %s" % e, "L7")

    def items(self):  # E-30
        for n, p in self.of_type("turn/item"):
            v, kind = p["item"], self.fold.shapes[n]
            if kind == "general" and v["type"] == "fileChange" and "metadata" in v:
                need("patches/%s.diff" % v["metadata"]["patch_id"] in self.files, "E-30: patch", "I11")
            if kind == "command" or kind == "trace" and v["type"] == "commandExecution" and "status" in v:
                need("artifacts/%s.json" % v["metadata"]["artifact"]["artifact_id"] in self.files, "E-30: output", "I12")

    def risks(self):  # E-33
        found = self.artifacts("risks")
        need(len(found) <= 1, "E-33: two of them")
        for _, p in found:
            v = self.content(p, "risks", "countersign/risks/1")
            need(self.proposal and v["patch_id"] == self.pid, "E-33: patch_id")
            paths = set(self.proposal["target_files"] or []) | {""}
            need(all(r["path"] in paths and r.get("from", "") in paths for r in v["risks"] or []), "E-33: path")

    def results(self):  # E-34 to E-36
        last = None
        for s, n in self.fold.applies:
            p = self.events[n]["payload"]
            need(p["success"] == (p["outcome"] == "SUCCESS") and p["target"] == self.events[s]["payload"]["target"], "E-35")
            last = (n, p) if p["success"] else last
        for n, p in self.of_type("validate/complete"):
            if "findings" in p:
                a = [x for _, x in self.artifacts("findings", n) if p["findings"] in (x["path"], x["artifact_id"])]
                need(a, "E-36: findings")
                v = self.content(a[0], "findings", "countersign/findings/1")
                need(1 <= len(v["violations"] or []) <= 50, "E-36: violations")
        if last is None:
            return
        need("apply_result.json" in self.files, "E-34: apply_result.json is missing")
        try:
            r = cjson.read_line(self.files["apply_result.json"])
        except Refused as e:
            raise Refused("E-32: %s" % e, "L7")
        record(r, "apply_result", "E-34")
        ops, m, s = r["operation_results"] or [], self.proposal, r["summary"]
        need(r["apply_schema_version"] and r["outcome"] == "SUCCESS", "E-34: version or outcome")
        for o in ops:
            need(o["op"] in ("create", "modify", "delete") and o["status"] in ("success", "skipped", "error"), "E-34: op or status")
            need(all(h is None or HASH.match(h) for h in (o["before_hash"], o["after_hash"])), "E-34: hash")
            need(o["status"] != "error" or o.get("error"), "E-34: error")
        need(ops == sorted(ops, key=lambda o: cjson.utf16(o["path"])), "E-34: order")
        vs = r.get("violations") or []
        need(vs == sorted(vs, key=lambda v: (cjson.utf16(v["rule_id"]), cjson.utf16(v.get("path", "")))), "E-34: order")
        for path in [r["target_root"]] + [o["path"] for o in ops + vs if "path" in o]:
            need(not re.match("/|[A-Za-z]:", path), "E-34: absolute")
        count = {w: sum(o["status"] == w for o in ops) for w in ("success", "skipped", "error")}
        need(s == {"failed": count["error"], "skipped": count["skipped"], "succeeded": count["success"], "total_operations": len(ops),
                   "total_bytes_written": sum(o["bytes_written"] for o in ops)}, "E-34: summary")
        need(sorted(o["path"] for o in ops) == sorted(m["target_files"] or []), "E-34: operations")
        for o in ops:
            need(o["before_hash"] == m["base_sha256_by_path"][o["path"]] and o["after_hash"] == m["after_sha256_by_path"][o["path"]], "E-34: hashes")
        source = (m["source_proposal_id"], m.get("source_proposal_hash", "")) if "source_proposal_id" in m else ("prop_" + self.pid[:16], "sha256:" + self.pid)
        need((r["patch_source"]["proposal_id"], r["patch_source"]["proposal_hash"]) == source, "E-34: patch_source")
        n, p = last
        a = [x for _, x in self.of_type("artifact/stored", before=n) if p["apply_artifact"] in (x["path"], x["artifact_id"])]
        need(a and self.content(a[0]).get("apply_result") == r and r["outcome"] == p["outcome"], "E-34: apply_artifact")

    def patch_file(self):  # E-42, E-43
        for m in self.proposals():
            name = "patches/%s.diff" % m["patch_id"]
            data = self.files.get(name)
            if data is None:
                continue  # I11
            if "patch_sealed_sha256" in m:
                need(hashed(self.files.get(name + ".age", b"")) == m["patch_sealed_sha256"] and name + ".age" in self.files, "E-43: sealed")
            if "patch_redacted_sha256" in m:
                need(hashed(data) == m["patch_redacted_sha256"], "E-43: redacted")
                # That it differs in added lines alone cannot be told without the patch.
                need(m["contains_secret_introductions"] or sha(data) == m["patch_id"] or cjson.attempt(lambda: patch.Reader(data).sections()), "E-43: what is left")
                continue
            need(sha(data) == m["patch_id"], "E-42: hash")
            before, after = m["base_sha256_by_path"] or {}, m["after_sha256_by_path"] or {}
            sections = patch.read_form(data)
            paths = sorted({x for s in sections for x in (s.old, s.path)})
            targets = [x.decode() for x in paths]
            need((m["target_files"] or []) == targets and set(before) == set(after) == set(targets), "E-42: target_files")
            for s in sections:
                old, new = s.old.decode(), s.path.decode()
                moved = s.operation == "rename"
                need((before[new] is None) == (moved or s.operation == "add"), "E-42: hash before")
                need((after[old] is None) == (moved or s.operation == "delete"), "E-42: hash after")
                need(not moved or after[new] == before[old] is not None, "E-42: hash of a rename")
                need(s.operation == "delete" or after[new] is not None, "E-42: hash after")
                for shown, h in zip(s.shown, (before[old], after[new])):
                    need(shown is None or h == hashed(shown), "E-42: hash of bytes")
            does = [(s.path.decode(), s.operation, s.old.decode() if s.operation == "rename" else None) for s in sections]
            for n, p in self.of_type("turn/item"):
                listed = p["item"].get("changes") if self.fold.shapes[n] == "general" else None
                need(not listed or [(c["path"], c["kind"], c.get("from")) for c in listed] == does, "E-42: changes")

    def people(self, before):
        """The lists of keys of the record (S-25), as (Line or None, text)."""
        out = []
        for _, p in self.artifacts("key", before):
            doc = cjson.attempt(self.content, p)
            if is_record(doc, "key"):
                out.append((cjson.attempt(signatures.Line, doc["line"]), doc["line"]))
        return out

    def stored(self, kind, name, before):
        """The artifact of a kind that a source names: its path, or else its id."""
        found = [p for _, p in self.artifacts(kind, before) if name in (p["path"], p["artifact_id"])]
        need(found and found[0]["path"] in self.files, "%s is not stored" % kind)
        return found[0]

    def request(self, p):
        return next(r for _, r in self.of_type("approval/request") if r["approval_request_id"] == p["approval_request_id"])

    def evidence(self, n, p):  # D-25
        s = p["source"]
        if s["kind"] not in FORGE:
            return
        need("evidence" in s, "D-25: no evidence")
        a = self.stored("statement", s["evidence"], n)
        v = self.content(a, "said_statement", "countersign/statement/1")
        c, said, approve = v["command"], v["statement"], p["decision"] == "approve"
        need(a["redacted"] or hashed(v["text"].encode()) == s["body_sha256"], "D-25: body_sha256")
        need(all(said[k] == s[k] for k in ("kind", "id", "url", "author", "created_at")) and v["access"]["permission"] == s["permission"], "D-25: source")
        glass = self.request(p)["kind"] == "break_glass"
        need(c["verb"] == p["decision"] and c.get("fingerprint") == p["fingerprint"] and c.get("break_glass", False) == glass, "D-25: command")
        earlier = said.get("earlier") or []
        need(v["text"] == said["body"] or not approve and v["text"] in earlier, "D-25: text")
        if v.get("native"):
            need(reads_native(v["text"], said) and approve and not glass and c.get("fingerprint") == "patchset:" + self.pid and not c.get("signed"), "D-27")
        else:
            need(reads_as(v["text"], said, c, self.pid), "D-26: text does not read as the command")
        if approve:
            need(not said.get("gone") and not said.get("hidden") and not said.get("app") and not said.get("email")
                 and said.get("state") != "DISMISSED", "D-25: void")
            need(v.get("native") or not said["edited"] and not said.get("untold") and all(x == said["body"] for x in earlier), "D-25: void")
            rfc3339(said["created_at"])

    def signed(self, n, p):
        """S-30, S-31. Keeps what a good signature says for the verdict."""
        s = p["source"]
        if "signature" not in s:
            if self.pull() and s["kind"] in FORGE and p["decision"] == "approve" and "evidence" in s:
                text = self.content(self.stored("statement", s["evidence"], n))["text"]
                need(signatures.signed_comment(text) is None, "S-31: no signature")
            return
        g, m = s["signature"], self.proposal
        data = self.files[self.stored("decision", g["statement"], n)["path"]]
        st = signatures.statement(data)
        sig = self.content(self.stored("signature", g["signature"], n), "signature", "countersign/signature/1")["armored"]
        text = self.content(self.stored("key", g["key"], n), "key", "countersign/key/1")["line"]
        line = signatures.Line(text)
        risks = self.artifacts("risks", n)
        need(st.get("repository") == m.get("repository") and st["pull_request"] == m.get("pull_request", 0), "S-30.1: pull request")
        need((st["transaction_id"], st["base_commit"]) == (self.meta["transaction_id"], self.meta["base_commit"])
             and signatures.patch_of(st["fingerprints"][0]) == self.pid, "S-30.1: transaction")
        need(len(risks) == 1 and st["shown"] == risks[0][1]["stored_sha256"], "S-30.1: shown")
        glass = p["decision"] == "approve" and self.request(p)["kind"] == "break_glass"
        need(st["decision"] == ("break-glass" if glass else p["decision"]) and p["fingerprint"] in st["fingerprints"]
             and st["reason"] == p.get("reason", ""), "S-30.2: decision")
        key, person = signatures.sshsig(data, sig, signatures.NAMESPACE)
        need(key.fingerprint == line.key.fingerprint == g["key_fingerprint"], "S-30.3: key")
        said, event = rfc3339(st["decided_at"]), rfc3339(self.events[n]["timestamp"])
        times, first = [said, event], rfc3339(self.events[0]["timestamp"])
        if self.pull():
            times.append(rfc3339(s["created_at"]))
        need(said <= event + 300 and said >= first - 300 and event >= first - 300, "S-28")
        a = s["author"]
        principals = [a["login"], "github:" + a["login"]] if self.pull() else [a["id"][6:]] if a["id"].startswith("local:") and "@" in a["id"] else []
        who = line.good_for(principals, times)
        need(who is not None and who == g["principal"], "S-26: principal")
        if self.pull():
            c = signatures.signed_comment(self.content(self.stored("statement", s.get("evidence"), n))["text"])
            need(c is not None and (c[0], c[2]) == (data, sig), "S-30.4: comment")
        self.signatures[n] = {"key": key, "verified": person, "decided_at": said}  # D-8 asks the Policy itself
        pol = verdict.policy_of(self, n)
        need(verdict.signed(pol) != "off", "S-30.5: signatures are off")
        ap = pol["approvals"]
        need(not (ap.get("hardware") or ap.get("pin")) or key.application is not None, "S-29: security key")
        need(not ap.get("pin") or person, "S-29: person")

    def approvals(self, n, p):  # E-37
        decisions = self.of_type("approval/decision", before=n)
        need(all(d["decision"] == "approve" for _, d in decisions), "E-37: denied")
        m = self.proposal
        need(m and p["patch_ids"] == [self.pid] and (p["files"] or []) == (m["target_files"] or []), "E-37: patch_ids or files")
        prints = set(patch.fingerprints(self.pid).values())
        secret, proposer = m["contains_secret_introductions"], self.meta["proposer"]["id"]
        for e in p["approvals"] or []:
            need(e["fingerprint"] in prints, "E-37: fingerprint")
            glass, who = e["kind"] == "break_glass", set()
            for _, d in decisions:
                if d["fingerprint"] == e["fingerprint"] and (self.request(d)["kind"] == "break_glass") == glass and (d.get("reason") or not glass):
                    who.add(d["source"]["author"]["id"])
            if e["fingerprint"].startswith("secret:") or glass and secret:
                who.discard(proposer)
            need(len(who) >= max(1, e["required"]), "E-37: too few approved " + e["fingerprint"])
        es = p["approvals"] or []
        need(any(e["fingerprint"] == "patchset:" + self.pid and e["kind"] != "break_glass" for e in es)
             or any(e["kind"] == "break_glass" for e in es)
             and all(e["kind"] == "break_glass" or e["fingerprint"].startswith("secret:") for e in es), "E-37: patchset")
        need(not secret or any(e["fingerprint"] == "secret:patchset:" + self.pid for e in es), "E-37: secret")

    def verdict(self, n, p):  # E-38
        v = verdict.at_event(self, n)
        need(v.verdict == "approved", "E-38: the verdict is " + v.verdict)
        if "apply_id" in p:
            entries = [{"kind": x["kind"], "fingerprint": x["fingerprint"], "required": x["required"]} for x in v.needs]
            need((p["approvals"] or []) == entries, "E-38: needs")

    def check_again(self, p):  # E-40, of one document
        v = self.content(p, "proposed_again", "countersign/proposed_again/1")
        need(v["patch_id"] == self.pid and v["proposer"]["id"] and v["proposer"]["kind"] and v["input"]["kind"], "E-40: member")
        check_words(v)
        need("trace" not in v or re.fullmatch(r"artifacts/[0-9a-f]{64}\.json", v["trace"]), "E-40: trace")
        return v

    def check_elsewhere(self, p):  # E-41
        v = self.content(p, "proposed_elsewhere", "countersign/proposed_elsewhere/1")
        need(v["patch_id"] == self.pid and v["proposals"], "E-41: member")
        for x in v["proposals"]:
            need(x["proposer"]["id"] and x["proposer"]["kind"] and TX_ID.match(x["transaction_id"])
                 and x["transaction_id"] != self.meta["transaction_id"], "E-41: proposal")
        return v

    def again(self):  # E-40, E-41
        seen = {(self.meta["proposer"]["kind"], self.meta["proposer"]["id"])}
        for count, (n, p) in enumerate(self.artifacts("proposed_again")):
            status, apply_open = self.fold.at[n]
            need(status in ("proposed", "awaiting_approval", "failed") and apply_open is None and not self.gate_only(), "E-40: when")
            v = self.check_again(p)
            who = (v["proposer"]["kind"], v["proposer"]["id"])
            need(count < 20 or who not in seen, "E-40: after 20")
            seen.add(who)
        for _, p in self.artifacts("proposed_elsewhere"):
            self.check_elsewhere(p)

    def merges(self):  # E-45
        found = [self.content(p, "merge", "countersign/merge/1") for _, p in self.artifacts("merge")]
        for v in found:
            need(HEX40.match(v["head_commit"]) and HEX40.match(v["merge_commit"]) and v["base"] and v["merged_at"].endswith("Z"), "E-45: member")
            rfc3339(v["merged_at"])
            need(self.gate_only() and v["pull_request"] == self.proposal.get("pull_request")
                 and v["repository"]["id"] == self.proposal.get("repository", {}).get("id"), "E-45: pull request")
            need(v == found[0], "E-45: two that differ")

def first_line(text):
    line, lf, _ = text.partition("\n")
    return line[:-1] if lf and line.endswith("\r") else line

def reads_as(text, said, c, pid):  # D-26
    """Whether the text reads as the command c, but for its reason."""
    signed = signatures.signed_comment(text)
    if signed:
        st = signed[1]
        return (c.get("signed", False) and c["verb"] == ("deny" if st["decision"] == "deny" else "approve")
                and c.get("fingerprint") in st["fingerprints"] and c.get("break_glass", False) == (st["decision"] == "break-glass"))
    line, glass = first_line(text), c.get("break_glass", False)
    reply = said["kind"] == "review_comment" and bool(said.get("reply_to"))
    if c.get("signed"):
        return False
    if c["verb"] == "approve":
        if signatures.has_mark(text):
            return False
        if glass:
            m = re.fullmatch(r"/approve --break-glass (\S+) (?! |sig:)(.+)", line, re.S)
            return bool(m) and m.group(1) == c["fingerprint"]
        short = {"/approve": "patchset:", "/approve secret": "secret:patchset:", "/approve protected": "protected:patchset:"}
        return line == "/approve " + c["fingerprint"] or reply and line in short and c["fingerprint"] == short[line] + pid
    if line != "/deny" and not line.startswith("/deny "):
        return False
    rest = re.sub(" +", " ", "".join(x if ucd.visible(x) else " " for x in line[6:])).split(" ")
    if signatures.patch_of(rest[0]):
        return rest[0] == c["fingerprint"]
    return reply and c["fingerprint"] == "patchset:" + pid

def reads_native(text, said):  # D-27
    if said["kind"] != "review" or said.get("state") not in ("APPROVED", "DISMISSED") or signatures.has_mark(text):
        return False
    line = first_line(text)
    bare = "".join(x for x in line if ucd.visible(x)).lstrip(" \t>`*_~-#\"'").lower()
    return line == "/approve" or not bare.startswith(("/approve", "/deny")) and "patchset:" not in bare
