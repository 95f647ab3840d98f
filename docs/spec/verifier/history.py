"""A ledger's history (H-1 to H-45)."""
import datetime
import hashlib
import re

import cjson
import signatures
import ucd
import verdict
from cjson import Refused, need, record, shape
from gitstore import Bundle, parse_commit, parse_tree, split_signature
from policy import read_file
from signatures import rfc3339
from transaction import TX_ID, Fold, Record

shape("ledger", "created_at text, schema_version text")
shape("accept_tip", "accepted_tip text, author actor, reason text, remembered_tip text")
VIEW = re.compile(r"README\.md|transactions(/\d{4,}(/\d\d(/\d\d(/[0-9a-f]{2}(/tx_[0-9A-Z]{26})?)?)?)?)?/README\.md|denied(/[0-9a-f]{2})?/README\.md", re.A)
TX = re.compile(r"(transactions/(\d{4,}/\d\d/\d\d)/([0-9a-f]{2})/(tx_[0-9A-Z]{26}))/(.+)", re.A)
DENIED = re.compile(r"denied/([0-9a-f]{2})/(([0-9a-f]{2})[0-9a-f]{62})/([A-Za-z_]+)\.json")
PROPOSED = re.compile(r"proposed/([0-9a-f]{2})/(([0-9a-f]{2})[0-9a-f]{62})/(tx_[0-9A-Z]{26})\.json")
PULLS = re.compile(r"proposed/pulls/([0-9a-f]{2})/([1-9][0-9]*)/(tx_[0-9A-Z]{26})\.json")

def day(txid):
    """The day of a ULID's time."""
    n = 0
    for c in txid[3:13]:
        n = n * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(c)
    days, year = n // 86400000, 1970
    while days > 146096:  # the calendar repeats every 400 years
        days, year = days - 146097, year + 400
    d = datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
    return "%04d/%02d/%02d" % (d.year + year - 1970, d.month, d.day)

def known_path(p):  # H-10
    m = TX.fullmatch(p)
    if VIEW.fullmatch(p) or p in ("ledger.json", "events.jsonl"):
        return True
    if m:
        return bool(TX_ID.match(m.group(4))) and m.group(2) == day(m.group(4)) and m.group(3) == cjson.sha(m.group(4).encode())[:2]
    m = DENIED.fullmatch(p) or PROPOSED.fullmatch(p)
    if m:
        return m.group(1) == m.group(3) and (not p.startswith("proposed/") or bool(TX_ID.match(m.group(4))))
    m = PULLS.fullmatch(p)
    return bool(m) and m.group(1) == "%02x" % (int(m.group(2)) % 256) and bool(TX_ID.match(m.group(3)))

def as_line(text, n):  # H-22
    text = " ".join("".join(c if ucd.visible(c) and c != "\ufffd" else " " for c in text).split(" "))
    text = re.sub(" +", " ", text).strip(" ")
    return text if len(text) <= n else text[:n - 1] + "\u2026"

class Audit:
    def __init__(self, bundle, ref=None, tip=None, signers=None, witnesses=None, quorum=None):
        self.problems, self.states, self.commits, self.tip = [], {}, [], ""
        self.events, self.own, self.proposers, self.folds = {}, [], {}, {}
        self.signers = None
        try:
            self.store = Bundle(bundle)
            self.ref, self.tip = self.store.ledger(ref)
        except Refused as e:
            return self.bad(e.rule or "BUNDLE", str(e))
        try:
            if signers is not None:
                self.signers = (cjson.attempt(signatures.key_file, signers) or ([], []))[0]
            self.walk()
            self.run("L14", self.known, tip)
            if witnesses is not None or quorum is not None:
                self.run("WITNESS", self.witness, witnesses, quorum)
            self.tree, self.files = None, {}
            for n, c in enumerate(self.commits):
                self.commit(n, c)
            self.at_tip()
        except Refused as e:
            self.bad(e.rule or "OBJECT", str(e))

    def bad(self, rule, text):
        self.problems.append((rule, text))

    def run(self, rule, f, *args):
        try:
            return f(*args)
        except Refused as e:
            self.bad(e.rule or rule, str(e))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as e:
            self.bad(rule, "%s: %r" % (f.__name__, e))

    def walk(self):  # H-2
        if any(n.startswith("refs/replace/") for n, _ in self.store.refs):
            self.bad("HISTORY", "H-2: replacements")
        seen, at = set(), self.tip
        while True:
            need(at not in seen, "H-2: circle", "HISTORY")
            seen.add(at)
            if at not in self.store.objects:  # neither whole nor there
                self.bad("HISTORY", "H-2: commit %s is missing" % at)
            data = self.store.get(at, "commit")
            c = parse_commit(data)
            self.commits.append(dict(c, id=at, data=data))
            if len(c["parents"]) > 1:
                self.bad("L8", "H-4: %s has several parents" % at)
            if not c["parents"]:
                break
            at = c["parents"][0]
        self.commits.reverse()

    def known(self, tip):  # H-30
        todo, seen = [self.tip], set()
        while tip is not None and todo:
            at = todo.pop()
            if at == tip:
                return
            if at not in seen and at in self.store.objects:
                seen.add(at)
                todo += parse_commit(self.store.get(at, "commit"))["parents"]
        need(tip is None, "H-30: the tip does not descend from the known one")

    def blob(self, oid):
        return self.store.get(oid, "blob")

    def commit(self, n, c):
        """The rules of one commit. self.files are those of the tree before: path -> mode, id."""
        changes = self.run("L10", lambda: list(self.store.changes(self.tree, c["tree"])))
        if changes is None:
            return
        self.tree = c["tree"]
        if len(changes) > 10000:
            self.bad("L10", "H-3: changes too many paths")
        new, old = {}, self.files
        for p, f in changes:
            name = p.decode("utf-8", "replace")
            if f is None:
                if not VIEW.fullmatch(name):
                    self.bad("L8", "H-11: removes " + ascii(p))
            else:
                if name.encode() != p or not known_path(name) or f[0] != "100644":
                    self.bad("L10", "H-10: " + ascii(p))
                if f[0] != "160000":
                    new[name] = self.blob(f[1])
        for p in new:
            m = TX.fullmatch(p)
            if p in old and not (VIEW.fullmatch(p) or p == "events.jsonl" or m and m.group(5) in ("transaction.json", "events.jsonl")):
                self.bad("L16" if p == "ledger.json" else "L8", "H-11: changes " + ascii(p))
        records = {p: d for p, d in new.items() if not VIEW.fullmatch(p)}
        ids = {m.group(4) for m in map(TX.fullmatch, records) if m}
        plain, sig = self.run("L13", split_signature, c["data"]) or (c["data"], None)
        self.run("L13", self.signature, c, plain, sig)
        if len(ids) + ("events.jsonl" in records) != 1:
            self.bad("L8", "H-12: adds to %d transactions" % len(ids))
            for p in records:
                if p.startswith(("denied/", "proposed/")) and not ids:
                    self.bad("L11" if p[0] == "d" else "L12", "H-12: index alone")
        elif ids:
            self.run("L8", self.stage, n, c, plain, ids.pop(), records, old)
        else:
            self.run("L16", self.accept, c, plain, records, old)
        if (n == 0) != ("ledger.json" in records):
            self.bad("L16", "H-20: ledger.json")
        for p, f in changes:
            self.files.pop(p.decode("utf-8", "replace"), None)
            if f is not None:
                self.files[p.decode("utf-8", "replace")] = f

    def signature(self, c, plain, sig):  # S-51
        if sig is None:
            need(self.signers is None, "S-51: %s has no signature" % c["id"])
            return
        key, _ = signatures.sshsig(plain, sig, "git")
        if self.signers is not None:
            t = int(re.search(rb"\ncommitter [^\n]* (\d+) \+0000\n", plain + b"\n").group(1))
            need(any(l.key.fingerprint == key.fingerprint and l.admits("git", t) for _, l in self.signers), "S-51: nobody's key")

    def check_bytes(self, c, plain, t, message):  # H-5, H-7
        who = b"countersign <countersign@localhost> %d +0000" % (rfc3339(t) // 1)
        want = b"tree %s\n%sauthor %s\ncommitter %s\n\n" % (
            c["tree"].encode(), b"".join(b"parent %s\n" % p.encode() for p in c["parents"]), who, who)
        need(plain == want + message, "H-5: commit %s is in another form" % c["id"], "L15")

    def accept(self, c, plain, records, old):  # H-22
        need(set(records) == {"events.jsonl"}, "H-22: brings something else")
        lines = records["events.jsonl"].split(b"\n")
        before = self.own
        need(lines.pop() == b"" and len(lines) == len(before) + 1 and lines[:-1] == before, "H-22: brings one event")
        v = cjson.read_line(lines[-1] + b"\n")
        record(v, "event")
        p = v["payload"]
        record(p, "accept_tip")
        need(v["seq"] == len(lines) and v["prev"] == (cjson.hashed(before[-1] + b"\n") if before else None), "H-22: chain")
        need(v["type"] == "ledger/accept_tip" and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", v["timestamp"], re.A), "H-22: event")
        need(c["parents"] == [p["accepted_tip"]], "H-22: parent")
        self.own = lines
        message = "accept-tip: %s accepted %s: %s\n\nCountersign-Stage: accept-tip\n" % (
            as_line(p["author"]["login"], 60), p["accepted_tip"][:12], as_line(p["reason"], 120))
        need(c["message"] == message.encode(), "H-22: message")
        need(b" %d +0000\n\n" % (rfc3339(v["timestamp"]) // 1) in plain, "H-22: time")
        self.check_bytes(c, plain, v["timestamp"], c["message"])

    def stage(self, n, c, plain, txid, records, old):
        """What a commit adds to a transaction (H-6 to H-17)."""
        top = next(m.group(1) for m in map(TX.fullmatch, records) if m) + "/"
        data, was = records.get(top + "events.jsonl", b""), self.events.get(txid, b"")
        need(data.startswith(was) and len(data) > len(was) and data.endswith(b"\n"), "H-13: events of " + txid)
        self.events[txid] = data
        f, first = Fold(data), was.count(b"\n")
        for rule, text in f.problems:
            self.bad(rule, "%s in %s: %s" % (txid, c["id"], text))
        if f.folded is None:
            return
        doc = top + "transaction.json"
        if records.get(doc, doc in old and self.blob(old[doc][1])) != cjson.line_of(f.folded):
            self.bad("L9", "H-14: transaction.json of %s in %s" % (txid, c["id"]))
        events = f.events[first:]
        if len({e["timestamp"] for e in events}) != 1:
            self.bad("L8", "H-7: several timestamps")
        pid = f.proposal["patch_id"] if f.proposal else ""
        self.run("L15", self.message, c, plain, f, events, txid, pid)
        if n == 0 and records.get("ledger.json") != cjson.line_of({"created_at": events[0]["timestamp"], "schema_version": "2"}):
            self.bad("L16", "H-20: ledger.json")
        self.run("L10", self.added, f, first, top, records)
        self.run("L11", self.denials, f, first, events, records, old, txid, pid)
        self.run("L12", self.proposed, f, first, records, txid)
        if "supersedes" in (f.proposal or {}) and not self.proposers.get(pid, {}).get(txid):
            self.run("L19", self.supersedes, f, txid)
        if pid:
            self.proposers.setdefault(pid, {}).setdefault(txid, []).append((n, first))
        self.folds[txid] = f

    def message(self, c, plain, f, events, txid, pid):  # H-6, H-8
        rows, status = set(), f.status
        for e in events:
            p, t = e["payload"], e["type"]
            complete = any(x["type"] == "apply/complete" for x in events)
            if t == "tx/meta":
                rows.add(("review", status))
            elif t == "artifact/stored" and p["kind"] == "proposed_again":
                rows.add(("review", "again"))
            elif t == "apply/start":
                rows.add(("apply", "started"))
            elif t == "apply/complete":
                rows.add(("apply", p["outcome"]))
            elif t == "tx/status" and (p["to"] == "superseded" or p["to"] == "failed" and not complete):
                rows.add(("apply", p["to"]))
            elif t == "validate/complete":
                rows.add(("validate", status))
            elif t == "approval/decision" and "evidence" not in p["source"]:
                rows.add((p["decision"], None))
            elif t == "tx/status" and p["to"] == "interrupted":
                rows.add(("close", "interrupted"))
        rows = rows or {("gate", None)}
        need(len({s for s, _ in rows}) == 1 and (len(rows) == 1 or ("apply", "started") not in rows), "H-8: no stage")
        m = re.fullmatch(r"([a-z-]+): ([^\n]*)\n\nCountersign-Transaction: ([^\n]*)\nCountersign-Stage: ([^\n]*)\n"
                         r"Countersign-Patch: ([^\n]*)\nCountersign-Outcome: ([^\n]*)\n", c["message"].decode())
        need(m, "H-6: message")
        stage = next(iter(rows))[0]
        outcomes = {o for _, o in rows if o is not None}
        if None in {o for _, o in rows}:
            outcomes |= set({"awaiting_approval": ["pending"], "denied": ["denied"], "proposed": ["approved", "denied"]}.get(
                status, ["approved", "pending", "denied"]))
        need(m.group(1) == m.group(4) == stage and ucd.one_line(m.group(2), 120), "H-6: stage or subject")
        need(m.group(3) == txid and m.group(5) == pid and m.group(6) in outcomes, "H-6: trailer")
        self.check_bytes(c, plain, events[-1]["timestamp"], c["message"])

    def added(self, f, first, top, records):  # H-14
        names, have = {"events.jsonl", "transaction.json"}, set()
        for n, e in enumerate(f.events):
            p, brings = e["payload"], []
            if e["type"] == "artifact/stored":
                brings = [p["path"]]
            elif e["type"] == "turn/item" and f.shapes[n] == "general" and "metadata" in p["item"]:
                m = p["item"]["metadata"]
                brings = ["patches/%s.diff" % m["patch_id"]] + ["patches/%s.diff.age" % m["patch_id"]] * ("patch_sealed_sha256" in m)
            elif e["type"] == "apply/complete" and p["success"]:
                brings = ["apply_result.json"]
            for b in brings:
                if n >= first and b not in have:
                    names.add(b)
                have.add(b)
        for p in records:
            need(not p.startswith(top) or p[len(top):] in names, "H-14: added out of time: " + ascii(p))

    def denials(self, f, first, events, records, old, txid, pid):  # H-15, H-17
        want = {}
        requests = {e["payload"]["approval_request_id"]: e["payload"] for e in f.events if e["type"] == "approval/request"}
        for e in events:
            p = e["payload"]
            if e["type"] == "approval/decision" and p["decision"] == "deny":
                kind, patch_id = requests[p["approval_request_id"]]["kind"], p["fingerprint"][-64:]
                path = "denied/%s/%s/%s.json" % (patch_id[:2], patch_id, kind)
                if not any(q.startswith(path.rsplit("/", 1)[0]) for q in old):
                    want[path] = cjson.line_of({"author": p["source"]["author"], "denied_at": p["source"]["created_at"], "fingerprint": p["fingerprint"],
                                                "kind": kind, "reason": p.get("reason", ""), "transaction_id": txid})
        need({p: d for p, d in records.items() if p.startswith("denied/")} == want, "H-15: denied/")
        if any(e["type"] == "tx/status" and e["payload"]["to"] == "denied" for e in events):
            top = "denied/%s/%s/" % (pid[:2], pid)
            need(pid and any(p.startswith(top) for p in list(old) + list(records)), "H-17: no denial is kept")

    def proposed(self, f, first, records, txid):  # H-16
        want, seen = {}, set()
        for n, e in enumerate(f.events):
            if e["type"] == "turn/item" and f.shapes[n] == "general" and "metadata" in e["payload"]["item"]:
                m = e["payload"]["item"]["metadata"]
                pid, line = m["patch_id"], cjson.line_of({"base_commit": f.meta["base_commit"], "transaction_id": txid})
                if pid not in seen and n >= first:
                    want["proposed/%s/%s/%s.json" % (pid[:2], pid, txid)] = line
                    if m.get("pull_request", 0) > 0:
                        want["proposed/pulls/%02x/%d/%s.json" % (m["pull_request"] % 256, m["pull_request"], txid)] = line
                seen.add(pid)
        need({p: d for p, d in records.items() if p.startswith("proposed/")} == want, "H-16: proposed/")

    def supersedes(self, f, txid):  # H-25
        m = f.proposal
        for other in m["supersedes"]:
            o = self.folds.get(other)
            need(TX_ID.match(other) and o is not None and o.closed and o.status == "superseded", "H-25: not closed as superseded")
            reason = [e["payload"]["reason"] for e in o.events if e["type"] == "tx/status" and e["payload"]["to"] == "superseded"][-1]
            q = o.proposal
            need(txid in reason, "H-25: reason")
            need(q and all(o.meta["proposer"][k] == f.meta["proposer"][k] for k in ("kind", "id")), "H-25: proposer")
            need(m.get("pull_request", 0) == q.get("pull_request", 0) > 0 and m["repository"]["id"] == q["repository"]["id"], "H-25: pull request")
            need(set(m["target_files"] or []) & set(q["target_files"] or []), "H-25: files")
            need("pr_diff" not in (m["kind"], q["kind"]), "H-25: gate-only")

    def at_tip(self):  # H-18, H-26, H-27
        trees = {}
        for p, (mode, oid) in self.files.items():
            m = TX.fullmatch(p)
            if m and mode != "160000":
                trees.setdefault(m.group(4), {})[m.group(5).encode()] = (mode, self.blob(oid))
        records = {}
        for txid in sorted(trees):
            r = records[txid] = Record(txid, trees[txid]).check()
            self.states[txid] = r.fold.status if r.fold.folded else ""
            self.problems += [(rule, "%s: %s" % (txid, text)) for rule, text in r.problems]
        for txid, r in records.items():
            if r.fold.folded and r.proposal:
                self.run("L24", self.named, txid, r, records)
                self.run("L22", self.key_lines, r)

    def when(self, pid, txid, n):
        """The number of the commit that brought event n of a transaction."""
        brought = self.proposers[pid][txid]
        return max([c for c, first in brought if first <= n], default=brought[0][0])

    def named(self, txid, r, records):  # H-26
        for n, p in r.of_type("approval/decision"):
            a = p["source"]["author"]["id"]
            if p["decision"] != "approve" or not a or p["source"]["kind"] in ("local", "rpc") \
                    and p["fingerprint"].startswith("patchset:") and r.meta["proposer"]["id"].startswith("local:"):
                continue
            mine = self.when(r.pid, txid, n)
            elsewhere = False
            for other in self.proposers.get(r.pid, {}):
                o = records.get(other)
                if other == txid or o is None or not o.fold.folded:
                    continue
                if o.meta["proposer"]["id"] == a and self.when(r.pid, other, 0) < mine:
                    elsewhere = True
                for i, q in o.artifacts("proposed_again"):
                    if o.content(q)["proposer"]["id"] == a and self.when(r.pid, other, i) < mine:
                        elsewhere = True
            if not elsewhere:
                continue
            names = [r.meta["proposer"]["id"]] + [r.content(q)["proposer"]["id"] for _, q in r.artifacts("proposed_again", n)]
            for _, q in r.artifacts("proposed_elsewhere", n):
                names += [x["proposer"]["id"] for x in r.content(q)["proposals"]]
            need(a in names, "H-26: an approval by a proposer of the same patch in another transaction")

    def key_lines(self, r):  # S-32
        for n, p in r.of_type("approval/decision"):
            g = p["source"].get("signature")
            if not g or self.store.objects.get(p["policy"]["commit"], ("",))[0] != "commit":
                continue
            tree = dict(self.store.changes(None, parse_commit(self.store.get(p["policy"]["commit"], "commit"))["tree"]))
            pol = verdict.policy_of(r, n)["approvals"]
            mode, oid = tree.get(b".github/countersign.yml", ("", ""))
            need(mode in ("100644", "100755"), "S-32: no Policy file")
            there = read_file(self.blob(oid))["approvals"]
            need(there.get("keys") == pol.get("keys") and there.get("forge_keys") == pol.get("forge_keys"), "S-32: another approvals.keys")
            text = r.content(r.stored("key", g["key"], n))["line"]
            mode, oid = tree.get(pol.get("keys", "").encode(), ("", ""))
            usable, unreadable = signatures.key_file(self.blob(oid)) if mode in ("100644", "100755") else ([], [])
            if text in [t for t, _ in usable]:
                continue
            line = signatures.Line(text)
            m = re.fullmatch(r'github:[A-Za-z0-9][A-Za-z0-9_-]{0,99} namespaces="countersign-decision@v1",valid-after="\d{14}Z" \S+ \S+', text, re.A)
            need(pol.get("forge_keys") and not unreadable and m and all(l.key.fingerprint != line.key.fingerprint for _, l in usable)
                 and line.after <= rfc3339(r.events[0]["timestamp"]), "S-32: the line is not in the file")

    def witness(self, data, number):  # H-40 to H-45
        leaves = [hashlib.sha256(b"\0" + c["data"]).digest() for c in self.commits]
        w = Witnesses(data)
        name = self.ref[len("refs/agent/"):] if self.ref.startswith("refs/agent/") else self.ref[len("refs/"):]
        found = [i for n, i in self.store.refs if n == "refs/agent/%s-checkpoints" % name]
        demanded = w.quorum not in (None, "none") or number
        if not found and not demanded:
            return
        need(len(found) == 1, "H-43: no checkpoints")
        tree = parse_tree(self.store.get(parse_commit(self.store.get(found[0], "commit"))["tree"], "tree"))
        kept = sorted((n, i) for mode, n, i in tree if mode in ("100644", "100755") and re.fullmatch(rb"[0-9]{1,18}-[0-9a-f]{12}", n))
        kept = [d for d in (self.blob(i) for _, i in kept) if len(d) <= 32768][:32]
        sizes = {}  # name of a witness -> the most leaves that it signed
        for d in kept:
            c = w.checkpoint(d)
            if c is None:
                continue
            size, root, who = c
            need(size <= len(leaves) and root == merkle(leaves[:size]), "H-44: another history")
            for x in who:
                sizes[x] = max(size, sizes.get(x, 0))
        best = max([n for n in sizes.values() if w.reached({x for x, s in sizes.items() if s >= n}, number)], default=0)
        need(not demanded or best > 0, "H-45: no quorum")

def merkle(leaves):  # H-40
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + merkle(leaves[:k]) + merkle(leaves[k:])).digest()

class Witnesses:
    """The reader's file (H-42)."""

    def __init__(self, data):
        need(data is not None and len(data) <= 256 * 1024, "H-42: no file, or too large")
        self.logs, self.witnesses, self.groups, self.quorum = {}, {}, {}, None
        lines = data.decode("utf-8").split("\n")
        need(len(lines) <= 1001, "H-42: too many lines")
        keys, origin, used = set(), None, set()
        for l in lines:
            w = l.split()
            if not w or w[0].startswith("#"):
                continue
            if w[0] == "log":
                need(len(w) == 2, "H-42: log")
                name, h, key = vkey(w[1], 1)
                need(origin in (None, name), "H-42: logs with different names")
                origin = name
                self.logs[h] = key
            elif w[0] == "witness":
                need(len(w) in (3, 4) and w[1] not in self.witnesses and w[1] not in self.groups and w[1] != "none", "H-42: witness")
                name, h, key = vkey(w[2], 4)
                self.witnesses[w[1]] = (name, h, key)
            elif w[0] == "group":
                members = w[3:]
                need(members and w[1] not in self.witnesses and w[1] not in self.groups and w[1] != "none", "H-42: group")
                need(len(set(members)) == len(members) and all((m in self.witnesses or m in self.groups) and m not in used for m in members), "H-42: member")
                used |= set(members)
                k = {"any": 1, "all": len(members)}.get(w[2]) or int(w[2]) * bool(re.fullmatch("[1-9][0-9]*", w[2]))
                need(1 <= k <= len(members), "H-42: K")
                self.groups[w[1]] = (k, members)
                continue
            elif w[0] == "quorum":
                need(len(w) == 2 and self.quorum is None and (w[1] == "none" or w[1] in self.witnesses or w[1] in self.groups), "H-42: quorum")
                self.quorum = w[1]
                continue
            else:
                raise Refused("H-42: " + ascii(w[0]))
            need(key not in keys, "H-42: key twice")
            keys.add(key)
        need(origin is not None, "H-42: no log")
        self.origin = origin

    def holds(self, name, signed):
        if name in self.groups:
            k, members = self.groups[name]
            return sum(self.holds(m, signed) for m in members) >= k
        return name in signed

    def reached(self, signed, number):  # H-45
        return (self.quorum in (None, "none") or self.holds(self.quorum, signed)) and len(signed) >= (number or 0)

    def checkpoint(self, data):  # H-41, H-43
        """(leaves, root, names of witnesses) of one that counts, or None."""
        try:
            text, _, tail = data.decode("utf-8").partition("\n\n")
            lines = text.split("\n")
            need(len(lines) == 3 and lines[0] == self.origin and re.fullmatch("0|[1-9][0-9]{0,18}", lines[1]), "H-41: text")
            root = cjson.unbase64(lines[2])
            need(len(root) == 32 and tail.endswith("\n"), "H-41: root")
            body, by_log, who = (text + "\n").encode(), False, set()
            for l in tail[:-1].split("\n"):
                m = re.fullmatch("\u2014 ([^ +]+) ([A-Za-z0-9+/=]+)", l)
                need(m, "H-43: line of a signature")
                raw = cjson.unbase64(m.group(2))
                h, sig = raw[:4], raw[4:]
                if m.group(1) == self.origin and h in self.logs:
                    signatures.ed25519(self.logs[h], body, sig)
                    by_log = True
                for name, (n, hw, key) in self.witnesses.items():
                    if (n, hw) == (m.group(1), h):
                        t = int.from_bytes(sig[:8], "big")
                        need(len(sig) == 72 and 1 <= t <= 253402300799, "H-43: time")
                        signatures.ed25519(key, b"cosignature/v1\ntime %d\n" % t + body, sig[8:])
                        who.add(name)
            need(by_log, "H-43: no log signed it")
            return int(lines[1]), root, who
        except (Refused, UnicodeDecodeError):
            return None

def vkey(text, kind):
    """name, key hash, key of NAME+HASH+KEY (signed-note)."""
    name, h, key = (text.split("+", 2) + ["", ""])[:3]
    raw = cjson.unbase64(key)
    need(1 <= len(name.encode()) <= 200 and all(ucd.printable(c) and c != " " for c in name), "H-41: name")
    need(len(raw) == 33 and raw[0] == kind and re.fullmatch("[0-9a-f]{8}", h), "H-42: key")
    need(hashlib.sha256(name.encode() + b"\n" + raw).digest()[:4].hex() == h, "H-42: hash of a key")
    return name, bytes.fromhex(h), raw[1:]
