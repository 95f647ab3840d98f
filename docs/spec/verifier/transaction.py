"""A transaction's directory: events, their fold, and the directory's rules (E-1 to E-45, D-25 to D-27, S-30, S-31)."""
import re

import cjson
import patch
import shapes  # noqa: F401 (fills SHAPES)
import signatures
import ucd
import verdict
from cjson import SHAPES, Findings, Refused, hashed, is_record, need, record, sha
from signatures import actor_key, check_requesters, requester_key, rfc3339

TX_ID = re.compile(r"tx_[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z", re.A)
EVENTS = [t for t in SHAPES if "/" in t and not t.startswith("ledger/")]
STATUSES = {  # E-24
    "created": ["in_progress"], "in_progress": ["proposed", "interrupted"],
    "proposed": ["awaiting_approval", "applied", "failed", "denied", "superseded", "interrupted"],
    "awaiting_approval": ["proposed", "denied", "superseded", "interrupted"],
    "failed": ["applied", "denied", "superseded", "interrupted"], "applied": ["completed", "interrupted"]}
TRACES = {"agentMessage": ["content"], "reasoning": ["summary"], "plan": ["steps"], "mcpToolCall": ["server", "tool"],
          "commandExecution": ["command", "status"]}  # E-13
KINDS = ("apply checks command decision drift findings key merge policy posted proposal proposed_again proposed_elsewhere risks signature standing "
         "statement trace validation").split()  # names.md: of others V9 speaks
FORGE = ("review", "review_comment", "issue_comment")

def check_words(v, kind=None):
    """author, message, declared and requested_by of a proposal (E-14, E-16, E-17); kind None: of any kind."""
    a, message, declared = v.get("author"), v.get("message", ""), v.get("declared") or []
    if a is not None:
        need(kind in (None, "patch"), "E-16: author")
        need(ucd.one_line(a["name"], 100) and not set(a["name"]) & set('<>"\\'), "E-16: name")
        need(len(a["email"].encode()) <= 200 and re.fullmatch(r"[A-Za-z0-9.!#$%&*+/=?^_{|}~\[\]-]+@[A-Za-z0-9.-]+", a["email"]), "E-16: email")
        m = re.fullmatch(r"(\d{4})-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-](\d\d):(\d\d))", a["date"], re.A)
        need(m and "1970" <= m.group(1) <= "2099" and rfc3339(a["date"]) is not None, "E-16: date")
        need(m.group(2) == "Z" or 0 < int(m.group(3)) * 60 + int(m.group(4)) <= 14 * 60, "E-16: offset")
    need(kind != "pr_diff" or "message" not in v and "declared" not in v, "E-17: pr_diff")
    need(len(message.encode()) <= 16384 and all(map(ucd.visible, message.replace("\n", ""))), "E-17: message")
    need(len(declared) <= 100, "E-17: declared")
    for d in declared:
        need(len(d.encode()) <= 4096 and all(map(ucd.visible, d)) and re.match("[A-Za-z][A-Za-z0-9-]*: .", d)
             and not d.lower().startswith(("countersign-", "approved-by")), "E-17: declared")
    check_requesters(v.get("requested_by"))

def item_shape(v):  # E-10 to E-13
    for shape in ("general", "command"):
        if is_record(v, shape):
            if shape == "general" and "metadata" in v:
                check_words(v["metadata"], v["metadata"]["kind"])
            return shape
    record(v, "trace", "E-10")
    need(all(k in v for k in TRACES[v["type"]]) if v["metadata"]["source"] == "trace" and v["type"] in TRACES
         else v["metadata"]["source"] == "claimed" and v["type"] == "agentMessage", "E-13: trace")
    return "trace"

def read_events(data, bad):
    """E-4 to E-6: the events of a chain; None for one that is no record, and nothing if one is no object."""
    lines, out, prev = data.split(b"\n"), [], None
    if lines.pop() != b"":
        bad("L7", "E-4: no LF at the end")
    for n, l in enumerate(lines, 1):
        l += b"\n"
        try:
            v = cjson.parse(l)
            need(isinstance(v, dict), "not an object")
        except Refused as e:
            return bad("PARSE", "line %d: %s" % (n, e))
        if cjson.line_of(v) != l:
            bad("L7", "line %d is not canonical" % n)
        if v.get("seq") != n:
            bad("L1", "E-6: seq of line %d" % n)
        if v.get("prev") != prev:
            bad("L2", "E-6: prev of line %d" % n)
        try:
            out.append(record(v, "event"))
        except Refused as e:
            bad(e.rule or "L9", "line %d: %s" % (n, e))
            out.append(None)
        prev = hashed(l)
    return out

class Fold(Findings):
    """Events of a transaction. at[n] is (status, apply that is open) before event n; folded: the document, if all is well;
    problems: (rule, text); applies: numbers of apply/start and apply/complete."""

    def __init__(self, data):
        super().__init__()
        self.folded, self.at, self.applies = None, [], []
        self.status, self.proposal, self.turn, self.last_artifact = "created", None, "", ""
        self.meta, self.closed, self.first_proposal, self.shapes = None, False, None, {}
        self.events = read_events(data, self.bad) if data else self.bad("EMPTY", "E-4: no event")
        if self.events is None or None in self.events:
            self.events = [e for e in self.events or [] if e]
            return
        try:
            self.fold()
            self.folded = self.document()
        except Refused as e:
            for rule in {"": ["L9"], "I1": ["I1"]}.get(e.rule, ["L9", e.rule]):
                self.bad(rule, str(e))

    def fold(self):
        """E-7, E-21 to E-28. done: whether the last apply event is a success; valid: the number of the last validate
        event, if it is a success; since: that of the status that validations are of."""
        turns, requests, decided, validates = set(), {}, set(), set()
        apply_open = done = None
        valid, since, gate = False, -1, False
        for n, e in enumerate(self.events):
            p, kind = e["payload"], e["type"]

            def must(ok, text, rule=""):
                need(ok, "event %d: %s" % (n + 1, text), rule)

            must(STAMP.match(e["timestamp"]) and rfc3339(e["timestamp"]) is not None, "E-5: timestamp")
            must(kind in EVENTS, "E-7: type")
            must((n == 0) == (kind == "tx/meta"), "E-21", "I1")
            record(p, kind, "event %d" % (n + 1))
            self.at.append((self.status, apply_open))
            self.meta = self.meta or p
            must(p["transaction_id"] == self.meta["transaction_id"] and TX_ID.match(p["transaction_id"]), "E-7, E-21: transaction_id")
            must(not self.closed, "E-23: closed", "I9")
            if kind == "tx/status":
                to = p["to"]
                must(p["from"] == self.status, "E-23: from", "I3")
                must(to in STATUSES.get(self.status, []) or gate and self.status == "proposed" and to == "completed", "E-24")
                must(to != "applied" or done and not gate, "E-25, E-27")
                must(to != "completed" or valid and valid > since, "E-26")
                self.status = to
                since = n if to == ("proposed" if gate else "applied") else since
            elif kind == "turn/start":
                self.turn = p["turn_id"]
                must(self.turn and self.turn not in turns, "E-23: turn", "I4")
                turns.add(self.turn)
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
                r = p["approval_request_id"]
                must(r and r not in requests, "E-23: request", "I6")
                must(self.proposal and p["fingerprint"] == patch.fingerprints(self.proposal["patch_id"]).get(p["kind"]), "E-28")
                requests[r] = p
            elif kind == "approval/decision":
                r = p["approval_request_id"]
                must(r in requests and requests[r]["fingerprint"] == p["fingerprint"] and r not in decided, "E-23: decision", "I6")
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
                must(p["status"] == self.status, "E-23: close")
                must(apply_open is None, "E-23: close", "I8")
                self.closed = True

    def take_proposal(self, item, turn):  # E-15, E-19, E-20
        v = item["metadata"]
        need(v["base_commit"] == self.meta["base_commit"] and v["patch_fingerprint"] == "patchset:" + v["patch_id"], "E-20")
        if item["type"] == "fileChange":
            bare = {k: x for k, x in v.items() if k != "applied"}
            need(item.get("patchId") == v["patch_id"] and self.first_proposal in (None, bare), "E-19: patchId, or another proposal")
            self.first_proposal = bare
            self.proposal = dict(v, proposal_turn_id=turn, proposal_item_id=item["id"])

    def document(self):  # E-22
        m, pid = self.meta, self.proposal["patch_id"] if self.proposal else None
        return {**{k: m[k] for k in ("transaction_id", "workspace_roots", "cwd", "sandbox_policy", "approval_policy", "proposer")},
                "version": "0", "created_at": self.events[0]["timestamp"], "updated_at": self.events[-1]["timestamp"], "status": self.status,
                "closed": self.closed, "current_turn_id": self.turn, "labels": [], "notes": m["summary"],
                "pointers": {"events_jsonl": "events.jsonl", "latest_diff": "patches/%s.diff" % pid if pid else "",
                             "latest_turn": self.turn, "latest_artifact": self.last_artifact, "proposal": self.proposal}}

    def proposals(self):
        """(number, metadata) of all proposals."""
        return [(n, e["payload"]["item"]["metadata"]) for n, e in enumerate(self.events)
                if self.shapes.get(n) == "general" and "metadata" in e["payload"]["item"]]

class Record(Findings):
    """A directory. files: path (text) -> bytes. problems: (rule, text) of all that is wrong. signatures: number of a
    decision -> what its good signature says."""

    def __init__(self, txid, tree):
        super().__init__()
        self.id, self.signatures = txid, {}
        tree = {p: f for p, f in tree.items() if p.split(b"/")[0] != b"README.md"}  # U-7, L23
        self.files = {p.decode("utf-8", "replace"): content for p, (mode, content) in tree.items() if mode != "040000"}
        f = self.fold = Fold(self.files.get("events.jsonl", b""))
        self.problems += f.problems
        self.events, self.proposal, self.meta = f.events, f.proposal, f.meta
        self.pid = self.proposal["patch_id"] if self.proposal else ""
        self.gate = bool(self.proposal) and self.proposal["kind"] == "pr_diff"  # E-18
        self.pull = max(0, self.proposal.get("pull_request", 0)) if self.proposal else 0
        if any(mode != "100644" and (mode != "040000" or p not in (b"patches", b"artifacts")) for p, (mode, _) in tree.items()):
            self.bad("L10", "E-2: mode")

    def of_type(self, *types, before=None):
        return [(n, e["payload"]) for n, e in enumerate(self.events[:before]) if e["type"] in types]

    def artifacts(self, kind, before=None):
        return [(n, p) for n, p in self.of_type("artifact/stored", before=before) if p["kind"] == kind]

    def content(self, p, name=None):
        """The document of an artifact/stored; of a shape, if it is given."""
        need(p["path"] in self.files, "artifact is missing")
        v = cjson.read_line(self.files[p["path"]])
        return record(v, name) if name else v

    def stored(self, kind, name, before):
        """The artifact of a kind (None: of any) that an event names by its path (E-31)."""
        found = [p for _, p in self.of_type("artifact/stored", before=before) if kind in (None, p["kind"]) and name == p["path"]]
        need(found and found[0]["path"] in self.files, "%s is not stored" % kind)
        return found[0]

    def request(self, p):
        return next(r for _, r in self.of_type("approval/request") if r["approval_request_id"] == p["approval_request_id"])

    def check(self):
        need_fold = self.fold.folded is not None
        doc = self.files.get("transaction.json", b"")
        self.run("I2", lambda: need(TX_ID.match(self.id), "E-1: id"))
        v = self.run("L9", cjson.parse, doc)
        self.run("I2", lambda: need(not doc or v is None or v.get("transaction_id") == self.id, "E-3: transaction_id"))
        if not need_fold:
            return self
        self.run("L9", lambda: need(doc == cjson.line_of(self.fold.folded), "E-22: transaction.json is not the fold"))
        self.run("L10", self.names)
        for n, p in self.of_type("artifact/stored"):
            self.run("L4", self.artifact, p)
        for check, rule in ((self.items, "I11"), (self.risks, "L20"), (self.results, "L6"), (self.patch_file, "L5")):
            self.run(rule, check)
        for n, p in self.of_type("approval/decision"):
            self.run("L18", self.evidence, n, p)
            self.run("L21", self.signed, n, p)
        for n, p in self.of_type("apply/start", *["validate/complete"] * self.gate):
            if "apply_id" in p:
                self.run("L3", self.approvals, n, p)
            self.run("L17", self.verdict, n, p)
        self.run("L24", self.again)
        self.run("L25", self.merges)
        return self

    def names(self):  # E-2
        known = {"events.jsonl", "transaction.json", "README.md"} | {p["path"] for _, p in self.of_type("artifact/stored")}
        for _, m in self.fold.proposals():
            known |= {"patches/%s.diff" % m["patch_id"]} | ({"patches/%s.diff.age" % m["patch_id"]} if "patch_sealed_sha256" in m else set())
        if not any(p["success"] for _, p in self.of_type("apply/complete")) and "apply_result.json" in self.files:
            self.bad("L6", "E-34: apply_result.json without a success")
        for f in self.files:
            ok = f in known and (not f.startswith("artifacts/") or re.fullmatch(r"artifacts/[0-9a-f]{64}\.json", f))
            need(ok or f == "apply_result.json", "E-2: " + ascii(f))

    def line(self, data):  # E-32
        try:
            return cjson.read_line(data)
        except Refused as e:
            raise Refused("E-32: %s" % e, "L7")

    def artifact(self, p):
        data = self.files.get(p["path"])
        need(p["path"] == "artifacts/%s.json" % p["artifact_id"], "E-31: path")
        need(data is not None, "E-30: artifact is missing", "I10")
        need(sha(data) == p["artifact_id"] and hashed(data) == p["stored_sha256"], "E-31: hash")
        if p["content_type"] == "application/json":
            v = self.line(data)
            if isinstance(v, dict) and (str(v.get("schema")) + "//").split("/")[1] in KINDS:
                cjson.check_needs(v)

    def items(self):  # E-30
        for n, p in self.of_type("turn/item"):
            v, kind = p["item"], self.fold.shapes[n]
            if kind == "general" and v["type"] == "fileChange" and "metadata" in v:
                need("patches/%s.diff" % v["metadata"]["patch_id"] in self.files, "E-30: patch", "I11")
            if kind == "command" or kind == "trace" and v["type"] == "commandExecution" and "status" in v:
                need("artifacts/%s.json" % v["metadata"]["artifact"]["artifact_id"] in self.files, "E-30: output", "I12")

    def risks(self):  # E-33
        found = [self.content(p, "risks") for _, p in self.artifacts("risks")]
        need(len(found) <= 1, "E-33: two of them")
        for v in found:
            paths = {*(self.proposal["target_files"] or []), ""}
            need(v["patch_id"] == self.pid and all(r["path"] in paths and r.get("from", "") in paths for r in v["risks"] or []), "E-33: patch_id or path")

    def results(self):  # E-34 to E-36
        last, m = None, self.proposal
        for s, n in self.fold.applies:
            p = self.events[n]["payload"]
            need(p["success"] == (p["outcome"] == "SUCCESS") and p["target"] == self.events[s]["payload"]["target"], "E-35")
            last = n if p["success"] else last
        for n, p in self.of_type("validate/complete"):
            if "findings" in p:
                v = self.content(self.stored("findings", p["findings"], n), "findings")
                need(1 <= len(v["violations"] or []) <= 50, "E-36: violations")
        if last is None:
            return
        need("apply_result.json" in self.files, "E-34: apply_result.json is missing")
        r = record(self.line(self.files["apply_result.json"]), "apply_result", "E-34")
        ops, violations, statuses = r["operation_results"] or [], r.get("violations") or [], [o["status"] for o in r["operation_results"] or []]
        need(all(o["status"] != "error" or o.get("error") for o in ops), "E-34: error")
        need(ops == sorted(ops, key=lambda o: cjson.utf16(o["path"])), "E-34: order")
        need(violations == sorted(violations, key=lambda v: (cjson.utf16(v["rule_id"]), cjson.utf16(v.get("path", "")))), "E-34: order")
        need(not any(re.match("/|[A-Za-z]:", x) for x in [r["target_root"]] + [o.get("path", "") for o in ops + violations]), "E-34: absolute")
        need(r["summary"] == {"failed": statuses.count("error"), "skipped": statuses.count("skipped"), "succeeded": statuses.count("success"),
                              "total_operations": len(ops), "total_bytes_written": sum(o["bytes_written"] for o in ops)}, "E-34: summary")
        need(sorted(o["path"] for o in ops) == sorted(m["target_files"] or []), "E-34: operations")
        need(all((o["before_hash"], o["after_hash"]) == (m["base_sha256_by_path"][o["path"]], m["after_sha256_by_path"][o["path"]]) for o in ops), "E-34: hashes")
        source = (m["source_proposal_id"], m.get("source_proposal_hash", "")) if "source_proposal_id" in m else ("prop_" + self.pid[:16], "sha256:" + self.pid)
        need((r["patch_source"]["proposal_id"], r["patch_source"]["proposal_hash"]) == source, "E-34: patch_source")
        a = self.stored(None, self.events[last]["payload"]["apply_artifact"], last)
        need(self.content(a).get("apply_result") == r, "E-34: apply_artifact")

    def patch_file(self):  # E-42, E-43
        for _, m in self.fold.proposals():
            name = "patches/%s.diff" % m["patch_id"]
            data, sealed = self.files.get(name), self.files.get(name + ".age")
            if data is None:
                continue  # I11
            need("patch_sealed_sha256" not in m or sealed is not None and hashed(sealed) == m["patch_sealed_sha256"], "E-43: sealed")
            redacted = m.get("patch_redacted_sha256")
            need(hashed(data) == (redacted or "sha256:" + m["patch_id"]), "E-42, E-43: hash")
            before, after = m["base_sha256_by_path"] or {}, m["after_sha256_by_path"] or {}
            sections = cjson.attempt(patch.read_form, data) if redacted else patch.read_form(data)
            if sections is None:
                continue  # what was taken out, nobody can tell
            targets = [x.decode() for x in sorted({x for s in sections for x in (s.old, s.path)})]
            need((m["target_files"] or []) == targets and set(before) == set(after) == set(targets), "E-42: target_files")
            for s in sections:
                old, new, moved = s.old.decode(), s.path.decode(), s.operation == "rename"
                need((before[new] is None) == (moved or s.operation == "add"), "E-42: hash before")
                need((after[old] is None) == (moved or s.operation == "delete"), "E-42: hash after")
                need(s.edits is not None or s.binary is not None or s.operation in ("add", "delete") or after[new] == before[old] is not None, "E-42: same bytes")
                need(s.operation == "delete" or after[new] is not None, "E-42: hash after")
                for shown, h in zip(s.shown, (before[old], after[new])):
                    need(shown is None or h == hashed(shown), "E-42: hash of bytes")
            does = [(s.path.decode(), s.operation, s.old.decode() if s.operation == "rename" else None) for s in sections]
            for n, p in self.of_type("turn/item"):
                listed = p["item"].get("changes") if self.fold.shapes[n] == "general" else None
                need(not listed or [(c["path"], c["kind"], c.get("from")) for c in listed] == does, "E-42: changes")

    def people(self, before):
        """The lists of keys of the record (S-25), as (Line or None, text)."""
        docs = [cjson.attempt(self.content, p, "key") for _, p in self.artifacts("key", before)]
        return [(cjson.attempt(signatures.Line, d["line"]), d["line"]) for d in docs if d]

    def named(self, before):
        """Proposers and requesters that are named before an event; refused if an artifact is not as E-40 and E-41 say."""
        who, asked = [self.meta["proposer"]], list(self.proposal.get("requested_by") or [])
        for v in ([self.check_again(p) for _, p in self.artifacts("proposed_again", before)]
                  + [x for _, p in self.artifacts("proposed_elsewhere", before) for x in self.check_elsewhere(p)["proposals"]]):
            who.append(v["proposer"])
            asked += v.get("requested_by") or []
        return who, asked

    def evidence(self, n, p):  # D-25
        s = p["source"]
        if s["kind"] not in FORGE:
            return
        need("evidence" in s, "D-25: no evidence")
        a = self.stored("statement", s["evidence"], n)
        v = self.content(a, "statement")
        c, said, approve = v["command"], v["statement"], p["decision"] == "approve"
        need(a["redacted"] or hashed(v["text"].encode()) == s["body_sha256"], "D-25: body_sha256")
        need(all(said[k] == s[k] for k in ("kind", "id", "url", "author", "created_at")) and v["access"]["permission"] == s["permission"], "D-25: source")
        glass, earlier = self.request(p)["kind"] == "break_glass", said.get("earlier") or []
        need(c["verb"] == p["decision"] and c.get("fingerprint") == p["fingerprint"] and c.get("break_glass", False) == glass, "D-25: command")
        need(v["text"] == said["body"] or not approve and v["text"] in earlier, "D-25: text")
        if v.get("native"):
            need(reads_native(v["text"], said) and approve and not glass and c.get("fingerprint") == "patchset:" + self.pid and not c.get("signed"), "D-27")
        else:
            need(reads_as(v["text"], said, c, self.pid), "D-26: text does not read as the command")
        if approve:
            need(not any(said.get(k) for k in ("gone", "hidden", "app", "email")) and said.get("state") != "DISMISSED", "D-25: void")
            need(v.get("native") or not said["edited"] and not said.get("untold") and all(x == said["body"] for x in earlier), "D-25: void")
            rfc3339(said["created_at"])

    def signed(self, n, p):
        """S-30, S-31. Keeps what a good signature says for the verdict."""
        s, m = p["source"], self.proposal
        text = self.content(self.stored("statement", s["evidence"], n))["text"] if "evidence" in s else ""
        comment = signatures.signed_comment(text) if self.pull else None
        if "signature" not in s:
            need(comment is None or s["kind"] not in FORGE or p["decision"] != "approve", "S-31: no signature")
            return
        g, a = s["signature"], s["author"]
        data = self.files[self.stored("decision", g["statement"], n)["path"]]
        st = signatures.statement(data)
        sig = self.content(self.stored("signature", g["signature"], n), "signature")["armored"]
        line = signatures.Line(self.content(self.stored("key", g["key"], n), "key")["line"])
        risks, (who, asked) = self.artifacts("risks", n), self.named(n)
        need(st.get("repository") == m.get("repository") and st["pull_request"] == m.get("pull_request", 0), "S-30.1: pull request")
        need((st["transaction_id"], st["base_commit"]) == (self.meta["transaction_id"], self.meta["base_commit"])
             and signatures.patch_of(st["fingerprints"][0]) == self.pid, "S-30.1: transaction")
        need(len(risks) == 1 and st["shown"] == risks[0][1]["stored_sha256"], "S-30.1: shown")
        need(st["proposers"] == unique(who, actor_key) and st["requested_by"] == unique(asked, requester_key), "S-30.1: proposers or requested_by")
        need(st["policy"] in [p["policy"]] + [r["policy"] for _, r in self.of_type("approval/request", before=n)]
             and st["policy"]["sha256"] == p["policy"]["sha256"], "S-30.1: policy")
        glass = p["decision"] == "approve" and self.request(p)["kind"] == "break_glass"
        need(st["decision"] == ("break-glass" if glass else p["decision"]) and p["fingerprint"] in st["fingerprints"]
             and st["reason"] == p.get("reason", ""), "S-30.2: decision")
        key, person = signatures.sshsig(data, sig, signatures.NAMESPACE)
        need(key.fingerprint == line.key.fingerprint == g["key_fingerprint"], "S-30.3: key")
        said, event, first = (rfc3339(t) for t in (st["decided_at"], self.events[n]["timestamp"], self.events[0]["timestamp"]))
        need(said <= event + 300 and min(said, event) >= first - 300, "S-28")
        principals = [a["login"], "github:" + a["login"]] if self.pull else [a["id"][6:]] if a["id"].startswith("local:") and "@" in a["id"] else []
        principal = line.good_for(principals, [said, event] + ([rfc3339(s["created_at"])] if self.pull else []))
        need(principal is not None and principal == g["principal"], "S-26: principal")
        need(not self.pull or comment is not None and (comment[0], comment[2]) == (data, sig), "S-30.4: comment")
        self.signatures[n] = {"key": key, "verified": person, "decided_at": said}  # D-8 asks the Policy itself
        pol = verdict.policy_of(self, n)
        need(verdict.signed(pol) != "off", "S-30.5: signatures are off")
        need(verdict.hardware_allows(pol["approvals"], key, person), "S-29")

    def approvals(self, n, p):  # E-37
        decisions, m, entries = self.of_type("approval/decision", before=n), self.proposal, p["approvals"] or []
        need(all(d["decision"] == "approve" for _, d in decisions), "E-37: denied")
        need(m and p["patch_ids"] == [self.pid] and (p["files"] or []) == (m["target_files"] or []), "E-37: patch_ids or files")
        secret = m["contains_secret_introductions"]
        for e in entries:
            need(signatures.patch_of(e["fingerprint"]) == self.pid, "E-37: fingerprint")
            glass = e["kind"] == "break_glass"
            who = {d["source"]["author"]["id"] for _, d in decisions if d["fingerprint"] == e["fingerprint"]
                   and (self.request(d)["kind"] == "break_glass") == glass and (d.get("reason") or not glass)}
            if e["fingerprint"].startswith("secret:") or glass and secret:
                who.discard(self.meta["proposer"]["id"])
            need(len(who) >= max(1, e["required"]), "E-37: too few approved " + e["fingerprint"])
        kinds = [(e["kind"] == "break_glass", e["fingerprint"].split("patchset")[0]) for e in entries]
        need((False, "") in kinds or any(g for g, _ in kinds) and all(g or f == "secret:" for g, f in kinds), "E-37: patchset")
        need(not secret or "secret:" in [f for _, f in kinds], "E-37: secret")

    def verdict(self, n, p):  # E-38
        v = verdict.at_event(self, n)
        need(v.verdict == "approved", "E-38: the verdict is " + v.verdict)
        if "apply_id" in p:
            need((p["approvals"] or []) == [{k: x[k] for k in ("kind", "fingerprint", "required")} for x in v.needs], "E-38: needs")

    def check_again(self, p):  # E-40, of one document
        v = self.content(p, "proposed_again")
        need(v["patch_id"] == self.pid and re.fullmatch(r"(artifacts/[0-9a-f]{64}\.json)?", v.get("trace", "")), "E-40: patch_id or trace")
        check_words(v)
        return v

    def check_elsewhere(self, p):  # E-41
        v = self.content(p, "proposed_elsewhere")
        need(v["patch_id"] == self.pid and v["proposals"], "E-41: member")
        for x in v["proposals"]:
            need(TX_ID.match(x["transaction_id"]) and x["transaction_id"] != self.meta["transaction_id"], "E-41: proposal")
            check_requesters(x.get("requested_by"))
        return v

    def again(self):  # E-40, E-41
        seen = [actor_key(self.meta["proposer"])[:2]] + [requester_key(r) for r in (self.proposal or {}).get("requested_by") or []]
        for count, (n, p) in enumerate(self.artifacts("proposed_again")):
            status, apply_open = self.fold.at[n]
            need(status in ("proposed", "awaiting_approval", "failed") and apply_open is None and not self.gate, "E-40: when")
            v = self.check_again(p)
            keys = [actor_key(v["proposer"])[:2]] + [requester_key(r) for r in v.get("requested_by") or []]
            need(count < 20 or any(k not in seen for k in keys), "E-40: after 20")
            seen += keys
        for _, p in self.artifacts("proposed_elsewhere"):
            self.check_elsewhere(p)

    def merges(self):  # E-45
        found = [self.content(p, "merge") for _, p in self.artifacts("merge")]
        for v in found:
            need(v["merged_at"].endswith("Z") and rfc3339(v["merged_at"]) is not None, "E-45: time")
            need(self.gate and v["pull_request"] == self.proposal.get("pull_request")
                 and v["repository"]["id"] == self.proposal.get("repository", {}).get("id") and v == found[0], "E-45: pull request, or two that differ")

def unique(things, key):
    return [x for n, x in enumerate(sorted(things, key=key)) if x not in sorted(things, key=key)[:n]]

def first_line(text):
    line, lf, _ = text.partition("\n")
    return line[:-1] if lf and line.endswith("\r") else line

SHORT = {"/approve": "patchset:", "/approve secret": "secret:patchset:", "/approve protected": "protected:patchset:"}

def reads_as(text, said, c, pid):  # D-26
    """Whether the text reads as the command c, but for its reason."""
    signed, glass, f = signatures.signed_comment(text), c.get("break_glass", False), c["fingerprint"]
    if signed:
        st = signed[1]
        return (c.get("signed", False) and c["verb"] == ("deny" if st["decision"] == "deny" else "approve")
                and f in st["fingerprints"] and glass == (st["decision"] == "break-glass"))
    line, reply = first_line(text), said["kind"] == "review_comment" and bool(said.get("reply_to"))
    if c.get("signed") or c["verb"] == "approve" and signatures.has_mark(text):
        return False
    if c["verb"] == "approve":
        m = re.fullmatch(r"/approve --break-glass (\S+) (?! |sig:)(.+)", line, re.S)
        return bool(m) and m.group(1) == f if glass else line == "/approve " + f or reply and line in SHORT and f == SHORT[line] + pid
    if line != "/deny" and not line.startswith("/deny "):
        return False
    rest = re.sub(" +", " ", "".join(x if ucd.visible(x) else " " for x in line[6:])).split(" ")
    return rest[0] == f if signatures.patch_of(rest[0]) else reply and f == "patchset:" + pid

def reads_native(text, said):  # D-27
    line = first_line(text)
    bare = "".join(x for x in line if ucd.visible(x)).lstrip(" \t>`*_~-#\"'").lower()
    return (said["kind"] == "review" and said.get("state") in ("APPROVED", "DISMISSED") and not signatures.has_mark(text)
            and (line == "/approve" or not bare.startswith(("/approve", "/deny")) and "patchset:" not in bare))
