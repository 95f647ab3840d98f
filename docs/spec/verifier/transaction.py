"""A transaction's directory: events, their fold, its own rules (E-1 to E-51, D-25 to D-27, S-30, S-31)."""
import functools, itertools, re

import core, patch, policy, signatures, verdict
from core import SHAPES, WRONG, Findings, Refused, attempt, hashed, need, record, rfc3339, sha
from signatures import actor_key

TX_ID = core.form("tx_id")
SCHEMAS = re.search(r"\| schemas of artifacts .*", (core.HERE.parent / "names.md").read_text()).group()
KINDS = ["decision"] + re.findall("`countersign/([a-z_]+)/1`", SCHEMAS)  # of others V9 speaks
FORGE = ("review", "review_comment", "issue_comment")
SHORT = core.TABLES["short"]
MEMBERS = "transaction_id workspace_roots cwd sandbox_policy approval_policy proposer".split()  # E-22

def check_words(v):  # E-16, E-17
    kind, declared = v.get("kind", "patch"), v.get("declared") or []
    need(kind == "patch" or "author" not in v, "E-16: kind")
    need(kind != "pr_diff" or "message" not in v and "declared" not in v, "E-17: pr_diff")
    return len(declared) <= 100 and all(len(d.encode()) <= 4096 and all(map(core.visible, d)) for d in declared)
def check_trace(v):  # E-13
    least = SHAPES["traces"][v["type"]][0][1:-1].split("/")
    return set(least) <= set(v) and (v["metadata"]["source"] == "trace" or v["type"] == "agentMessage")

core.CHECKS.update({
    "git_author": lambda v: v["name"] and not set(v["name"]) & set('<>"\\'), "proposal": check_words,
    "proposed_again": check_words, "trace": check_trace, "findings": lambda v: 1 <= len(v["violations"]) <= 50,
    "proposed_elsewhere": lambda v: v["proposals"], "result_op": lambda v: v["status"] != "error" or "error" in v})

def item_shape(v):  # E-10
    return next((s for s in ("general", "command") if attempt(record, v, s)), None) or record(v, "trace") and "trace"
@functools.lru_cache(5000)
def read_event(line):  # the object of a line, whether it is canonical, and why it is no event, if it is none
    v, found = attempt(core.parse, line), Findings()
    found.run("L9", record, v, "event")
    return v, isinstance(v, dict) and core.line_of(v) == line, (found.problems or [None])[0]

class Fold(Findings):
    """Events of a transaction. at[n]: (status, apply that is open) before event n; folded: the document, if
    all is well; applies: payloads of apply/start and apply/complete; proposals: (number of event, metadata) of
    all; shapes: of items, by number of event."""

    def __init__(self, data):
        super().__init__()
        self.folded, self.at, self.applies, self.shapes, self.proposals = None, [], [], {}, []
        self.status, self.proposal, self.turn, self.meta, self.closed = "created", None, "", None, False
        events = self.read_events(data) or []
        self.events = [e for e in events if e]
        if not events or None in events:
            return
        try:
            self.fold()
            self.folded = self.document()
        except WRONG as e:
            rule = getattr(e, "rule", "")
            for rule in [rule] if rule == "I1" else ["L9"] + [rule] * bool(rule):
                self.bad(rule, str(e))

    def read_events(self, data):
        """E-4 to E-6: the events of a chain; None for one that is no record, and nothing if one is no object."""
        lines, out, prev = data.split(b"\n"), [], None
        self.expect(lines.pop() == b"" and lines, "L7" if data else "EMPTY", "E-4: no event, or no LF at the end")
        for n, line in enumerate(lines, 1):
            v, canonical, problem = read_event(line + b"\n")
            if not isinstance(v, dict):
                return self.bad("PARSE", "E-4: line %d" % n)
            for rule, ok in (("L7", canonical), ("L1", v.get("seq") == n), ("L2", v.get("prev") == prev)):
                self.expect(ok, rule, "E-4 to E-6: line %d" % n)
            if problem:
                self.bad(*problem)
            out.append(None if problem else v)
            prev = hashed(line + b"\n")
        return out

    def fold(self):
        """E-7, E-19 to E-28. first: the first proposal; done: whether the last apply event is a success; valid: the
        number of the last validate event, if it is a success; since: that of the status that validations are of."""
        turns, requests, validates, since, gate = set(), {}, set(), -1, False
        apply_open = done = valid = first = None
        for n, e in enumerate(self.events):
            p, kind, status = e["payload"], e["type"], self.status
            core.take(e["timestamp"], "time:stamp")  # E-5
            need("/" in kind and not kind.startswith("ledger/") and kind in SHAPES, "E-7: type")
            need((n == 0) == (kind == "tx/meta"), "E-21", "I1")
            record(p, kind)
            self.at.append((status, apply_open))
            self.meta = self.meta or p
            need(p["transaction_id"] == self.meta["transaction_id"], "E-7: transaction_id")
            need(not self.closed, "E-23: closed", "I9")
            if kind == "tx/status":
                to = self.status = p["to"]
                need(p["from"] == status, "E-23: from", "I3")
                if not gate or (status, to) != ("proposed", "completed"):
                    core.take(to, SHAPES["statuses"][status][0])  # E-24
                need(to != "applied" or done and not gate, "E-25, E-27")
                need(to != "completed" or valid and valid > since, "E-26")
                since = n if to == ("proposed" if gate else "applied") else since
            elif kind == "turn/start":
                self.turn = p["turn_id"]
                need(self.turn and self.turn not in turns, "E-23: turn", "I4")
                turns.add(self.turn)
            elif kind == "turn/item":
                v = p["item"]
                need(p["turn_id"] in turns and v.get("id") and v.get("type"), "E-23: item", "I5")
                self.shapes[n] = item_shape(v)
                if self.shapes[n] == "general" and ("metadata" in v or v["type"] == "fileChange"):
                    m = v["metadata"]
                    need(m["base_commit"] == self.meta["base_commit"], "E-20: base_commit")
                    need(m["patch_fingerprint"] == "patchset:" + m["patch_id"], "E-20: patch_fingerprint")
                    self.proposals.append((n, m))
                    if v["type"] == "fileChange":  # E-15, E-19
                        first = first or dict(m, applied=None)
                        need(v["patchId"] == m["patch_id"] and first == dict(m, applied=None), "E-19")
                        self.proposal = dict(m, proposal_turn_id=p["turn_id"], proposal_item_id=v["id"])
                gate = self.proposal is not None and self.proposal["kind"] == "pr_diff"
            elif kind == "approval/request":
                r = p["approval_request_id"]
                need(r and r not in requests, "E-23: request", "I6")
                need(p["fingerprint"] == patch.fingerprints(self.proposal["patch_id"])[p["kind"]], "E-28")
                requests[r] = p["fingerprint"]
            elif kind == "approval/decision":  # a request is decided once
                need(requests.get(p["approval_request_id"]) == p["fingerprint"], "E-23: decision", "I6")
                requests[p["approval_request_id"]] = None
            elif kind == "apply/start":
                need(apply_open is None, "E-23: open", "I7")
                need(status != "applied" and not gate, "E-23, E-27: apply/start")
                apply_open, start, done = p["apply_id"], p, None
            elif kind == "apply/complete":
                need(p["apply_id"] == apply_open, "E-23: apply/complete", "I8")
                self.applies.append((start, p))
                apply_open, done = None, p["success"]
            elif kind == "validate/start":
                validates.add(p["validate_id"])
                valid = None
            elif kind == "validate/complete":
                allowed = status == "applied" or p["success"] and gate and status == "proposed"
                need(allowed and ("findings" in p) != p["success"], "E-23: validate")
                validates.remove(p["validate_id"])
                valid = n if p["success"] else None
            elif kind == "tx/close":
                need(p["status"] == status, "E-23: close")
                need(apply_open is None, "E-23: close", "I8")
                self.closed = True

    def document(self):  # E-22
        m, diff = self.meta, "patches/%s.diff" % self.proposal["patch_id"] if self.proposal else ""
        artifact = ([""] + [p["path"] for _, p in self.of_type("artifact/stored")])[-1]
        pointers = {"events_jsonl": "events.jsonl", "latest_diff": diff, "latest_turn": self.turn,
                    "latest_artifact": artifact, "proposal": self.proposal}
        return {**{k: m[k] for k in MEMBERS}, "version": "0", "created_at": self.events[0]["timestamp"],
                "updated_at": self.events[-1]["timestamp"], "status": self.status, "closed": self.closed,
                "current_turn_id": self.turn, "labels": [], "notes": m["summary"], "pointers": pointers}

    def of_type(self, *types, before=None):
        return [(n, e["payload"]) for n, e in enumerate(self.events[:before]) if e["type"] in types]
    def brings(self):  # (number of the event, file) of all files that events name (E-2, H-14)
        out = [(n, "patches/%s.diff%s" % (m["patch_id"], end)) for n, m in self.proposals
               for end in [""] + [".age"] * ("patch_sealed_sha256" in m)]
        out += [(n, p["path"]) for n, p in self.of_type("artifact/stored")]
        return out + [(n, "apply_result.json") for n, p in self.of_type("apply/complete") if p["success"]]

def check_artifact(v, kind):  # V7, V9, V11
    if kind in KINDS and isinstance(v, dict):
        core.check_newer(v, (str(v.get("schema")) + "//").split("/")[1])
    return v

class Record(Fold):
    """A directory. files: path -> bytes. signatures: number of a decision -> what its good signature says; None
    if it is newer."""

    def __init__(self, txid, tree):
        self.id, self.signatures = txid, {}
        tree = {p: f for p, f in tree.items() if p.split(b"/")[0] != b"README.md"}  # U-7, L23
        self.files = {p.decode("utf-8", "replace"): f for p, (mode, f) in tree.items() if mode != "040000"}
        super().__init__(self.files.get("events.jsonl", b""))
        m = self.proposal or {"patch_id": "", "kind": ""}
        self.pid, self.gate, self.pull = m["patch_id"], m["kind"] == "pr_diff", max(0, m.get("pull_request", 0))  # E-18
        odd = {(mode, p) for p, (mode, _) in tree.items() if mode != "100644"}
        self.expect(odd <= {("040000", b"patches"), ("040000", b"artifacts")}, "L10", "E-2: mode")

    def artifacts(self, kind, before=None):  # of a kind, or of any (None)
        return [(n, p) for n, p in self.of_type("artifact/stored", before=before) if kind in (None, p["kind"])]
    def content(self, p, name=None):  # the document of an artifact/stored; of a shape, if it is given
        v = check_artifact(core.read_line(self.files[p["path"]]), p["kind"])
        return record(v, name) if name else v
    def stored(self, kind, name, before):
        """The artifact of a kind (None: of any) that an event names by its path (E-31)."""
        return [p for _, p in self.artifacts(kind, before) if p["path"] == name][0]
    def time(self, n):
        return rfc3339(self.events[n]["timestamp"])
    def request(self, p):
        return {r["approval_request_id"]: r for _, r in self.of_type("approval/request")}[p["approval_request_id"]]

    def check(self):
        doc = self.files.get("transaction.json", b"")
        v = self.run("L9", core.parse, doc)
        named = v.get("transaction_id") if isinstance(v, dict) else self.id
        self.expect(TX_ID.fullmatch(self.id) and named == self.id, "I2", "E-1, E-3: transaction_id")
        if self.folded is None:
            return self
        self.expect(doc == core.line_of(self.folded), "L9", "E-22: transaction.json is not the fold")
        decisions, starts = self.of_type("approval/decision"), self.of_type("apply/start")
        checks = [("L4", self.artifact, p) for _, p in self.of_type("artifact/stored")]
        checks += [("L10", self.names), ("I11", self.items), ("L20", self.risks), ("L6", self.results)]
        checks += [("L5", self.patch_files), *(("L18", self.evidence, *d) for d in decisions)]
        checks += [*(("L21", self.signed, *d) for d in decisions), *(("L3", self.start, p) for _, p in starts)]
        checks += [("L17", self.verdict, *x) for x in (self.of_type("validate/complete") if self.gate else starts)]
        for check in [*checks, ("L24", self.again), ("L25", self.merges), ("L26", self.observation), ("L27", self.advice)]:
            if check[0] not in ("L17", "L18", "L21", "L25", "L26", "L27") or all(rule != "NEWER" for rule, _ in self.problems):  # V10
                self.run(*check)
        return self

    def names(self):  # E-2
        known = {"events.jsonl", "transaction.json", *(f for _, f in self.brings())}
        self.expect("apply_result.json" in known or "apply_result.json" not in self.files, "L6", "E-34: no success")
        for f in set(self.files) - {"apply_result.json"}:
            need(f in known and re.match(r"artifacts/[0-9a-f]{64}\.json\Z|(?!artifacts/)", f), "E-2: " + ascii(f))

    def line(self, data):  # E-32
        v = attempt(core.read_line, data)
        need(v is not None or data == b"null\n", "E-32: not a line", "L7")
        return v

    def artifact(self, p):  # E-30 to E-32
        need(p["path"] == "artifacts/%s.json" % p["artifact_id"], "E-31: path")
        need(p["path"] in self.files, "E-30: artifact is missing", "I10")
        data = self.files[p["path"]]
        need(sha(data) == p["artifact_id"] and hashed(data) == p["stored_sha256"], "E-31: hash")
        check_artifact(self.line(data) if p["content_type"] == "application/json" else None, p["kind"])

    def items(self):  # E-30
        for n, p in self.of_type("turn/item"):
            v, kind = p["item"], self.shapes[n]
            if kind == "general" and v["type"] == "fileChange":
                need("patches/%s.diff" % v["metadata"]["patch_id"] in self.files, "E-30: patch", "I11")
            if kind == "command" or kind == "trace" and v["type"] == "commandExecution" and "status" in v:
                output = "artifacts/%s.json" % v["metadata"]["artifact"]["artifact_id"]
                need(output in self.files, "E-30: output", "I12")

    def risks(self):  # E-33
        found = [self.content(p, "risks") for _, p in self.artifacts("risks")]
        need(len(found) <= 1, "E-33: two of them")
        paths = {*((self.proposal or {}).get("target_files") or []), ""}
        for v in found:
            need(v["patch_id"] == self.pid, "E-33: patch_id")
            need(all({r["path"], r.get("from", "")} <= paths for r in v["risks"] or []), "E-33: path")

    def results(self):  # E-34 to E-36
        for start, p in self.applies:
            need(p["success"] == (p["outcome"] == "SUCCESS") and p["target"] == start["target"], "E-35")
        for n, p in self.of_type("validate/complete"):
            if "findings" in p:
                self.content(self.stored("findings", p["findings"], n), "findings")
        done, m = [p for _, p in self.applies if p["success"]], self.proposal
        if not done:
            return
        r = record(self.line(self.files["apply_result.json"]), "apply_result")
        ops, violations = r["operation_results"] or [], r.get("violations") or []
        for things, *keys in ((ops, "path"), (violations, "rule_id", "path")):
            keys = [[core.utf16(x.get(k, "")) for k in keys] for x in things]
            need(keys == sorted(keys), "E-34: order")
        paths = [r["target_root"]] + [o.get("path", "") for o in ops + violations]
        need(not any(re.match("/|[A-Za-z]:", x) for x in paths), "E-34: absolute")
        statuses, names = [o["status"] for o in ops], {"failed": "error", "skipped": "skipped", "succeeded": "success"}
        sums = {"total_operations": len(ops), "total_bytes_written": sum(o["bytes_written"] for o in ops)}
        need(r["summary"] == {**sums, **{k: statuses.count(s) for k, s in names.items()}}, "E-34: summary")
        need(sorted(o["path"] for o in ops) == sorted(m["target_files"] or []), "E-34: operations")
        hashes = [(m["base_sha256_by_path"][o["path"]], m["after_sha256_by_path"][o["path"]]) for o in ops]
        need(hashes == [(o["before_hash"], o["after_hash"]) for o in ops], "E-34: hashes")
        source = {"proposal_id": "prop_" + self.pid[:16], "proposal_hash": "sha256:" + self.pid}
        source = {k: m.get("source_" + k, "") for k in source} if "source_proposal_id" in m else source
        need(r["patch_source"] == source, "E-34: patch_source")
        need(self.content(self.stored(None, done[-1]["apply_artifact"], None))["apply_result"] == r, "E-34: artifact")

    def patch_files(self):  # E-42, E-43
        named = [("patches/%s.diff" % m["patch_id"], m) for _, m in self.proposals]
        for name, m in [(name, m) for name, m in named if name in self.files]:  # of another I11 speaks
            data, redacted = self.files[name], m.get("patch_redacted_sha256")
            need(hashed(data) == (redacted or "sha256:" + m["patch_id"]), "E-42, E-43: hash")
            if "patch_sealed_sha256" in m:
                need(hashed(self.files[name + ".age"]) == m["patch_sealed_sha256"], "E-43: sealed")
            sections = attempt(patch.read_form, data) if redacted else patch.read_form(data)
            if sections is not None:  # what was taken out, nobody can tell
                self.sections(m, sections)

    def sections(self, m, sections):  # E-42
        before, after = m["base_sha256_by_path"], m["after_sha256_by_path"]
        targets = [x.decode() for x in sorted({x for s in sections for x in (s.old, s.path)})]
        need(m["target_files"] == targets and set(before) == set(after) == set(targets), "E-42: target_files")
        does = []
        for s in sections:
            old, new, kind = s.old.decode(), s.path.decode(), s.operation
            moved, same = kind == "rename", s.edits is None and s.binary is None and kind in ("rename", "update")
            does.append((new, kind, old if moved else None))
            need((before[new] is None) == (moved or kind == "add"), "E-42: hash before")
            need((after[old] is None) == (moved or kind == "delete"), "E-42: hash after")
            need(not same or after[new] == before[old] is not None, "E-42: same bytes")
            need(all(b is None or h == hashed(b) for b, h in zip(s.shown, (before[old], after[new]))), "E-42: bytes")
        for n, p in self.of_type("turn/item"):
            changes = p["item"].get("changes") if self.shapes[n] == "general" else None
            says = [(c["path"], c["kind"], c.get("from")) for c in changes or []]
            need(says in ([], does), "E-42: changes")

    def people(self, before):  # the lists of keys of the record (S-25), as (Line or None, text)
        docs = [attempt(self.content, p, "key") for _, p in self.artifacts("key", before)]
        return [(attempt(signatures.Line, d["line"]), d["line"]) for d in docs if d]

    def named(self, before):  # proposers and requesters named before an event; refuses what E-40 and E-41 do
        who, asked = [self.meta["proposer"]], list(self.proposal.get("requested_by") or [])
        named = [self.said("proposed_again", p) for _, p in self.artifacts("proposed_again", before)]
        for _, p in self.artifacts("proposed_elsewhere", before):
            named += self.said("proposed_elsewhere", p)["proposals"]
        return who + [v["proposer"] for v in named], asked + [r for v in named for r in v.get("requested_by") or []]

    def evidence(self, n, p):  # D-25
        s = p["source"]
        if s["kind"] not in FORGE:
            return
        a = self.stored("statement", s["evidence"], n)
        v = self.content(a, "statement")
        c, said, text, approve = v["command"], v["statement"], v["text"], p["decision"] == "approve"
        glass, earlier = self.request(p)["kind"] == "break_glass", said.get("earlier") or []
        need(a["redacted"] or hashed(text.encode()) == s["body_sha256"], "D-25.1: body_sha256")
        need(all(said[k] == s[k] for k in ("kind", "id", "url", "author", "created_at")), "D-25.2: source")
        need(v["access"]["permission"] == s["permission"], "D-25.2: permission")
        need((c["verb"], c["fingerprint"]) == (p["decision"], p["fingerprint"]), "D-25.3: command")
        need(c.get("break_glass", False) == glass, "D-25.3: break_glass")
        need(text == said["body"] or not approve and text in earlier, "D-25.4: text")
        if v.get("native"):
            need(reads_native(text, said) and approve and not glass and not c.get("signed"), "D-27")
            need(c["fingerprint"] == "patchset:" + self.pid, "D-27")
        else:
            need(reads_as(text, said, c, self.pid), "D-26: text does not read as the command")
            void = said["edited"] or said.get("untold") or any(x != said["body"] for x in earlier)
            need(not approve or not void, "D-25.5: void")
        void = any(map(said.get, ("gone", "hidden", "app", "email"))) or said.get("state") == "DISMISSED"
        need(not approve or not void and rfc3339(said["created_at"]) is not None, "D-25.5: void")

    def signed(self, n, p):  # S-30, S-31; keeps what a good signature says for the verdict
        try:
            self.good_signature(n, p)
        except Refused as e:
            if e.rule == "NEWER":
                self.signatures[n] = None
            raise

    def good_signature(self, n, p):
        s, m, a = p["source"], self.proposal, p["source"]["author"]
        text = self.content(self.stored("statement", s["evidence"], n))["text"] if "evidence" in s else ""
        forge = self.pull and (s["kind"] in FORGE and p["decision"] == "approve" or "signature" in s)
        comment = attempt(signatures.signed_comment, text) if forge else None
        if "signature" not in s:
            need(not comment, "S-31: no signature")
            return
        g = s["signature"]
        data = self.files[self.stored("decision", g["statement"], n)["path"]]
        sig = self.content(self.stored("signature", g["signature"], n), "signature")["armored"]
        line = signatures.Line(self.content(self.stored("key", g["key"], n), "key")["line"])
        st, (who, asked), risks = signatures.statement(data), self.named(n), self.artifacts("risks", n)
        policies = [r["policy"] for _, r in self.of_type("approval/request", before=n)]
        policies = [p["policy"]] + [x for x in policies if x["sha256"] == p["policy"]["sha256"]]
        need(len(risks) == 1 and st["policy"] in policies, "S-30.1: risks, or policy")
        need(st.get("repository") == m.get("repository") and st == {
            **st, "pull_request": m.get("pull_request", 0), "shown": risks[0][1]["stored_sha256"],
            "transaction_id": self.meta["transaction_id"], "base_commit": self.meta["base_commit"],
            "proposers": unique(who), "requested_by": unique(asked)}, "S-30.1")
        glass = p["decision"] == "approve" and self.request(p)["kind"] == "break_glass"
        need(st["decision"] == ("break-glass" if glass else p["decision"]), "S-30.2: decision")
        need(p["fingerprint"] in st["fingerprints"] and st["reason"] == p.get("reason", ""), "S-30.1, S-30.2")  # S-2
        key = signatures.sshsig(data, sig, signatures.NAMESPACE)
        need(key.fingerprint == line.key.fingerprint == g["key_fingerprint"], "S-30.3: key")
        said, event, first = rfc3339(st["decided_at"]), self.time(n), self.time(0)
        need(said <= event + 300 and min(said, event) >= first - 300, "S-28")
        local = [a["id"][6:]] if a["id"].startswith("local:") and "@" in a["id"] else []
        principals = [a["login"], "github:" + a["login"]] if self.pull else local
        times = [said, event] + ([rfc3339(s["created_at"])] if self.pull else [])
        need(line.good_for(principals, times) == g["principal"], "S-26: principal")
        need(not self.pull or comment and (comment[0], comment[2]) == (data, sig), "S-30.4: comment")
        self.signatures[n] = {"key": key, "decided_at": said}  # D-8 asks the Policy
        pol = verdict.policy_of(self, n)
        need(verdict.signed(pol) != "off" and verdict.hardware_allows(pol["approvals"], key), "S-29, S-30.5")

    def start(self, p):  # E-37
        files = self.proposal["target_files"] or []
        need(p["patch_ids"] == [self.pid] and (p["files"] or []) == files, "E-37: patch, or files")
    def verdict(self, n, p):  # E-38
        v = verdict.at_event(self, n)
        need(v.verdict == "approved", "E-38: the verdict is " + v.verdict)
        entries = [{k: x[k] for k in ("kind", "fingerprint", "required")} for x in v.needs]
        need("apply_id" not in p or p["approvals"] == entries, "E-38: needs")
    def said(self, kind, p):  # E-40, E-41, of one document
        v = self.content(p, kind)
        ids = [x["transaction_id"] for x in v.get("proposals") or []]
        need(v["patch_id"] == self.pid and self.id not in ids, "E-40, E-41: patch_id, or the same transaction")
        return v

    def again(self):  # E-40, E-41
        seen = [actor_key(self.meta["proposer"])[:2]]
        seen += map(actor_key, (self.proposal or {}).get("requested_by") or [])
        for count, (n, p) in enumerate(self.artifacts("proposed_again")):
            status, apply_open = self.at[n]
            need(status in ("proposed", "awaiting_approval", "failed") and apply_open is None and not self.gate, "E-40")
            v = self.said("proposed_again", p)
            keys = [actor_key(v["proposer"])[:2], *map(actor_key, v.get("requested_by") or [])]
            need(count < 20 or any(k not in seen for k in keys), "E-40: after 20")
            seen += keys
        for _, p in self.artifacts("proposed_elsewhere"):
            self.said("proposed_elsewhere", p)

    def merges(self):  # E-45
        found = [self.content(p, "merge") for _, p in self.artifacts("merge")]
        for v in found:
            need(self.gate and v == found[0] and v["pull_request"] == self.proposal.get("pull_request")
                 and v["repository"]["id"] == self.proposal["repository"]["id"], "E-45: pull request, or two")

    def observation(self):  # E-46
        kinds = {"disposition": self.disposition, "deployment": self.deployment, "settings": self.settings}
        found = [(n, p["kind"], self.content(p, p["kind"])) for n, p in self.artifacts(None) if p["kind"] in kinds]
        need(len(found) <= 1 and (self.proposal is None or not found), "E-46: two, or a proposal")
        for n, kind, v in found:
            need((v["transaction_id"], v["author"]) == (self.id, self.meta["proposer"]), "E-46: transaction, or author")
            kinds[kind](n, v)

    def advice(self, before=None):  # E-51; what it says, by event
        found = [(n, self.content(p, "advice")) for n, p in self.artifacts("advice", before)]
        for _, v in found:
            levels = [policy.LEVELS.index(f["level"]) for f in v["findings"] or []]
            need((v["patch_id"], v["transaction_id"]) == (self.pid, self.id), "E-51: another change")
            need(len(levels) <= 100 and levels == sorted(levels, reverse=True), "E-51: too many, or their order")
            need(all(f.get("line", 0) >= 0 for f in v["findings"] or []) and v.get("more", 0) >= 0, "E-51: negative")
        return found
    def advised(self, before):  # Y-49
        return [(n, v["tool"], v["findings"][0]["level"]) for n, v in self.advice(before) if v["findings"]]

    def disposition(self, n, v):  # E-47
        need(v["about"] != self.id and v["reason"], "E-47: about itself, or no reason")
        if "comment" in v:
            self.comment(v, v["comment"]["statement"])
        if "signature" in v:
            space, mail = "countersign-disposition@v1", v["author"]["id"].removeprefix("local:")
            said = core.line_of({k: x for k, x in v.items() if k != "signature"})
            line, key = signatures.Line(v["signature"]["line"]), signatures.sshsig(said, v["signature"]["armored"], space)
            need(key.fingerprint == line.key.fingerprint and "@" in mail != v["author"]["id"], "E-47: key, or author")
            need(line.good_for([mail], [self.time(n)], space), "E-47: principal")

    def comment(self, v, said):  # E-50
        first, _, rest = said["body"].partition("\n")
        need(first.removesuffix("\r") == "/dispose %s %s" % (v["about"], v["as"]) and core.as_line(rest, 500) == v["reason"], "E-50: text")
        need(not any(x.lstrip(" \t").startswith("/") for x in rest.split("\n")), "E-50: two commands")
        need(said["author"] == v["author"] and v["author"]["kind"] == "user" and v["author"]["id"], "E-50: author")
        void = said["edited"] or any(x != said["body"] for x in said.get("earlier") or []) or said.get("state") == "DISMISSED"
        void = void or any(map(said.get, ("gone", "hidden", "untold", "app", "email")))
        need(said["kind"] == "issue_comment" and not void and "signature" not in v, "E-50: void, or signed")
        made = rfc3339(said["created_at"]) // 1 * 1000
        number = made << 80 | int(sha(b"countersign-disposition@v1 " + said["id"].encode())[:20], 16)
        digits = ["0123456789ABCDEFGHJKMNPQRSTVWXYZ"[number >> i & 31] for i in range(125, -5, -5)]
        need(made >= 0 and self.id == "tx_" + "".join(digits), "E-50: another transaction")

    def deployment(self, n, v):  # E-48
        need(rfc3339(v["deployed_at"]) <= self.time(n), "E-48: deployed later")

    def settings(self, n, v):  # E-49
        need(rfc3339(v["read_at"]) <= self.time(n) and v["branch"] and v["repository"]["id"], "E-49: read later, or of nothing")
        for lines in (v["rules"] or [], v["unread"] or []):
            need(len(lines) <= 200 and "" not in lines and lines == sorted(set(lines), key=str.encode), "E-49: lines")

def unique(things):
    return [x for x, _ in itertools.groupby(sorted(things, key=actor_key))]
def first_line(text):
    line, lf, _ = text.partition("\n")
    return line[:-1] if lf and line.endswith("\r") else line

def reads_as(text, said, c, pid):  # whether the text reads as the command c, but for its reason (D-26)
    signed, glass, f, approve = None, c.get("break_glass", False), c["fingerprint"], c["verb"] == "approve"
    try:
        signed = attempt(signatures.signed_comment, text)
    except Refused:  # a newer statement; a denial counts without
        need(not approve, "V3: the statement is newer", "NEWER")
    if signed:
        st = signed[1]
        return (c.get("signed", False) and approve == (st["decision"] != "deny") and f in st["fingerprints"]
                and glass == (st["decision"] == "break-glass"))
    line, reply = first_line(text), said["kind"] == "review_comment" and bool(said.get("reply_to"))
    if c.get("signed") or approve and signatures.has_mark(text):
        return False
    if approve and glass:
        m = re.fullmatch(r"/approve --break-glass (\S+) (?! |sig:)(.+)", line, re.S)
        return m and m.group(1) == f
    if approve:
        return line == "/approve " + f or reply and line in SHORT and f == SHORT[line] + pid
    words = re.split(" +", "".join(x if core.visible(x) else " " for x in line[6:]).lstrip(" "))
    return (line == "/deny" or line.startswith("/deny ")) and (
        words[0] == f if signatures.patch_of(words[0]) else reply and f == "patchset:" + pid)

def reads_native(text, said):  # D-27
    line = first_line(text)
    bare = "".join(x for x in line if core.visible(x)).lstrip(" \t>`*_~-#\"'").lower()
    return (said["kind"] == "review" and said.get("state") in ("APPROVED", "DISMISSED")
            and not signatures.has_mark(text)
            and (line == "/approve" or not re.match("/approve|/deny", bare) and "patchset:" not in bare))
