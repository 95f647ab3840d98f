"""A ledger's history (H-1 to H-45)."""
import datetime
import hashlib
import re

import cjson
import signatures
import ucd
import verdict
from cjson import Findings, Refused, need, record
from gitstore import Bundle, parse_commit, parse_tree, split_signature
from policy import read_file
from signatures import rfc3339
from transaction import STAMP, TX_ID, Fold, Record

VIEW = re.compile(r"((transactions(/\d{4,}(/\d\d(/\d\d(/[0-9a-f]{2}(/tx_[0-9A-Z]{26})?)?)?)?)?|denied(/[0-9a-f]{2})?)/)?README\.md(/.*)?", re.A | re.S)
STILL = ("OBJECT", "HISTORY", "L1", "L2", "L4", "L7", "L8", "L13", "L14", "L16", "WITNESS", "NEWER", "BUNDLE")  # V15
TX = re.compile(r"(transactions/(\d{4,}/\d\d/\d\d)/([0-9a-f]{2})/(tx_[0-9A-Z]{26}))/(.+)", re.A)
INDEX = re.compile(r"(?:denied|proposed)/([0-9a-f]{2})/(\1[0-9a-f]{62})/([A-Za-z_]+|tx_[0-9A-Z]{26})\.json")
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
    tx, index, pulls = TX.fullmatch(p), INDEX.fullmatch(p), PULLS.fullmatch(p)
    if tx:
        return bool(TX_ID.match(tx.group(4))) and tx.group(2) == day(tx.group(4)) and tx.group(3) == cjson.sha(tx.group(4).encode())[:2]
    if index:
        return p.startswith("denied/") or bool(TX_ID.match(index.group(3)))
    if pulls:
        return pulls.group(1) == "%02x" % (int(pulls.group(2)) % 256) and bool(TX_ID.match(pulls.group(3)))
    return bool(VIEW.fullmatch(p)) or p in ("ledger.json", "events.jsonl")

def as_line(text, n):  # H-22
    text = re.sub(" +", " ", "".join(c if ucd.visible(c) and c != "\ufffd" else " " for c in text)).strip(" ")
    return text if len(text) <= n else text[:n - 1] + "\u2026"

class Audit(Findings):
    def __init__(self, bundle, ref=None, tip=None, signers=None, witnesses=None, quorum=None):
        super().__init__()
        self.states, self.commits, self.tip = {}, [], ""
        self.events, self.own, self.proposers, self.folds = {}, [], {}, {}
        self.signers, self.version, self.late = None, None, None  # late: transactions that a newer version adds to (V15)
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

    def bad(self, rule, text, late=True):
        if rule in STILL or self.late is None or not late:
            super().bad(rule, text)

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
                todo += self.store.commit(at)["parents"]
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
        records, old = {}, self.files
        for p, f in changes:
            name = p.decode("utf-8", "replace")
            if f is None:
                if not VIEW.fullmatch(name):
                    self.bad("L8", "H-11: removes " + ascii(p))
            else:
                if VIEW.fullmatch(name):
                    continue  # U-7
                if name.encode() != p or not known_path(name) or f[0] != "100644":
                    self.bad("L10", "H-10: " + ascii(p))
                if f[0] != "160000":
                    records[name] = self.blob(f[1])
        for p in records:
            m = TX.fullmatch(p)
            if p in old and not (p == "events.jsonl" or m and m.group(5) in ("transaction.json", "events.jsonl")):
                self.bad("L16" if p == "ledger.json" else "L8", "H-11: changes " + ascii(p))
        ids = {m.group(4) for m in map(TX.fullmatch, records) if m}
        if (n == 0) != ("ledger.json" in records):
            self.bad("L16", "H-20: ledger.json")
        elif n == 0:
            self.run("L16", self.ledger, records["ledger.json"])
        if self.late is not None:
            self.late |= ids
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
            self.run("L16", self.own_event, c, plain, records, old)
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

    def raised(self, text):
        """The ledger has this version from here on (H-20, V12)."""
        self.version = cjson.version(text)
        if self.version > cjson.VERSION and self.late is None:
            self.directories()  # what was before is judged as it was (V15)
            self.bad("NEWER", "written by a newer countersign, needs at least " + text)
            self.late = set()

    def ledger(self, data):  # H-20
        v = record(cjson.read_line(data), "ledger")
        self.created = v["created_at"]
        self.raised(v["schema_version"])

    def may_need(self, lines):  # V13
        for v in filter(None, (cjson.attempt(cjson.parse, l) for l in lines)):
            need(not self.version or "needs_version" not in v or cjson.version(v["needs_version"]) <= self.version, "V13: needs a later version than the ledger has")

    def own_event(self, c, plain, records, old):  # H-22
        need(set(records) == {"events.jsonl"}, "H-22: brings something else")
        lines, before = records["events.jsonl"].split(b"\n"), self.own
        need(lines.pop() == b"" and len(lines) == len(before) + 1 and lines[:-1] == before, "H-22: brings one event")
        self.own = lines
        self.run("L16", self.may_need, lines[-1:])
        v = record(cjson.read_line(lines[-1] + b"\n"), "event")
        need(v["seq"] == len(lines) and v["prev"] == (cjson.hashed(before[-1] + b"\n") if before else None), "H-22: chain")
        need(v["type"] in ("ledger/accept_tip", "ledger/version") and STAMP.match(v["timestamp"]), "H-22: event")
        p, login, reason = record(v["payload"], v["type"]), as_line(v["payload"]["author"]["login"], 60), as_line(v["payload"]["reason"], 120)
        if v["type"] == "ledger/accept_tip":
            need(c["parents"] == [p["accepted_tip"]], "H-22: parent")
            title = "accept-tip: %s accepted %s: %s" % (login, p["accepted_tip"][:12], reason)
        else:
            need(cjson.version(p["from"]) == self.version and cjson.version(p["version"]) > self.version, "H-22: versions")
            title = "version: %s raised it from %s to %s: %s" % (login, p["from"], p["version"], reason)
        need(c["message"] == ("%s\n\nCountersign-Stage: %s\n" % (title, title.partition(":")[0])).encode(), "H-22: message")
        need(b" %d +0000\n\n" % (rfc3339(v["timestamp"]) // 1) in plain, "H-22: time")
        self.check_bytes(c, plain, v["timestamp"], c["message"])
        if v["type"] == "ledger/version":
            self.raised(p["version"])

    def stage(self, n, c, plain, txid, records, old):
        """What a commit adds to a transaction (H-6 to H-17)."""
        top = next(m.group(1) for m in map(TX.fullmatch, records) if m) + "/"
        data, was = records.get(top + "events.jsonl", b""), self.events.get(txid, b"")
        need(data.startswith(was) and len(data) > len(was) and data.endswith(b"\n"), "H-13: events of " + txid)
        self.events[txid] = data
        self.run("L16", self.may_need, data[len(was):].split(b"\n"))
        f, first = Fold(data), was.count(b"\n")
        for rule, text in f.problems:
            self.bad(rule, "%s in %s: %s" % (txid, c["id"], text), self.late and txid in self.late)
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
        if n == 0 and self.created != events[0]["timestamp"]:
            self.bad("L16", "H-20: created_at of ledger.json")
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
        complete = any(x["type"] == "apply/complete" for x in events)
        as_gate = {"awaiting_approval": "pending", "denied": "denied", "proposed": "approved denied"}.get(status, "approved pending denied")
        for e in events:
            p, t = e["payload"], e["type"]
            to = p["to"] if t == "tx/status" else ""
            for applies, stage, outcomes in (
                    (t == "tx/meta", "review", status), (t == "artifact/stored" and p.get("kind") == "proposed_again", "review", "again"),
                    (t == "apply/start", "apply", "started"), (t == "apply/complete", "apply", p.get("outcome")),
                    (to == "superseded" or to == "failed" and not complete, "apply", to), (t == "validate/complete", "validate", status),
                    (t == "approval/decision" and "evidence" not in p.get("source", {}), p.get("decision"), as_gate),
                    (to == "interrupted", "close", to)):
                if applies:
                    rows.add((stage, outcomes))
        rows = rows or {("gate", as_gate)}
        stage = next(iter(rows))[0]
        need({s for s, _ in rows} == {stage} and (len(rows) == 1 or ("apply", "started") not in rows), "H-8: no stage")
        m = re.fullmatch(r"([a-z-]+): ([^\n]*)\n\nCountersign-Transaction: ([^\n]*)\nCountersign-Stage: ([^\n]*)\n"
                         r"Countersign-Patch: ([^\n]*)\nCountersign-Outcome: ([^\n]*)\n", c["message"].decode())
        need(m and m.group(1) == m.group(4) == stage and ucd.one_line(m.group(2), 120), "H-6: message, stage or subject")
        need(m.group(3) == txid and m.group(5) == pid and any(m.group(6) in o.split(" ") for _, o in rows), "H-6: trailer")
        self.check_bytes(c, plain, events[-1]["timestamp"], c["message"])

    def added(self, f, first, top, records):  # H-14
        names, have = {"events.jsonl", "transaction.json"}, set()
        brought = [(n, "patches/%s.diff%s" % (m["patch_id"], end)) for n, m in f.proposals() for end in [""] + [".age"] * ("patch_sealed_sha256" in m)]
        for n, e in enumerate(f.events):
            if e["type"] == "artifact/stored":
                brought.append((n, e["payload"]["path"]))
            elif e["type"] == "apply/complete" and e["payload"]["success"]:
                brought.append((n, "apply_result.json"))
        for n, b in sorted(brought):
            if n >= first and b not in have:
                names.add(b)
            have.add(b)
        for p in records:
            need(not p.startswith(top) or p[len(top):] in names, "H-14: added out of time: " + ascii(p))

    def denials(self, f, first, events, records, old, txid, pid):  # H-15, H-17
        want = {}
        kinds = {e["payload"]["approval_request_id"]: e["payload"]["kind"] for e in f.events if e["type"] == "approval/request"}
        for e in events:
            p = e["payload"]
            if e["type"] == "approval/decision" and p["decision"] == "deny":
                kind, top = kinds[p["approval_request_id"]], "denied/%s/%s/" % (p["fingerprint"][-64:][:2], p["fingerprint"][-64:])
                want[top + kind + ".json"] = cjson.line_of({
                    "author": p["source"]["author"], "denied_at": p["source"]["created_at"], "fingerprint": p["fingerprint"], "kind": kind,
                    "reason": p.get("reason", ""), "transaction_id": txid})
        added = {p: d for p, d in records.items() if p.startswith("denied/")}
        need(all(want.get(p) == d for p, d in added.items()), "H-15: denied/")
        need(all(p in added or any(q.startswith(p.rsplit("/", 1)[0] + "/") for q in old) for p in want), "H-15: a denial that is not in denied/")
        if any(e["type"] == "tx/status" and e["payload"]["to"] == "denied" for e in events):
            top = "denied/%s/%s/" % (pid[:2], pid)
            need(pid and any(p.startswith(top) for p in list(old) + list(records)), "H-17: no denial is kept")

    def proposed(self, f, first, records, txid):  # H-16
        want, seen, line = {}, set(), cjson.line_of({"base_commit": f.meta["base_commit"], "transaction_id": txid})
        for n, m in f.proposals():
            pid, pull = m["patch_id"], m.get("pull_request", 0)
            if pid not in seen and n >= first:
                want["proposed/%s/%s/%s.json" % (pid[:2], pid, txid)] = line
                if pull > 0:
                    want["proposed/pulls/%02x/%d/%s.json" % (pull % 256, pull, txid)] = line
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

    def directories(self):
        """Each transaction's directory as it stands, checked (H-18)."""
        trees = {}
        for p, (mode, oid) in self.files.items():
            m = TX.fullmatch(p)
            if m and mode != "160000":
                trees.setdefault(m.group(4), {})[m.group(5).encode()] = (mode, self.blob(oid))
        records = {}
        for txid in sorted(trees):
            r = records[txid] = Record(txid, trees[txid]).check()
            for rule, text in r.problems:
                self.bad(rule, "%s: %s" % (txid, text), self.late and txid in self.late)
        return records

    def at_tip(self):  # H-18, H-26, H-27
        records = self.directories()
        self.states = {txid: r.fold.status if r.fold.folded else "" for txid, r in records.items()}
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
            a, local = p["source"]["author"]["id"], p["source"]["kind"] in ("local", "rpc") and r.meta["proposer"]["id"].startswith("local:")
            if p["decision"] != "approve" or not a or local and p["fingerprint"].startswith("patchset:"):
                continue
            mine = self.when(r.pid, txid, n)
            for other in set(self.proposers.get(r.pid, {})) & set(records) - {txid}:
                o = records[other]
                theirs = [(0, o.meta["proposer"])] + [(i, o.content(q)["proposer"]) for i, q in o.artifacts("proposed_again")] if o.fold.folded else []
                if any(x["id"] == a and self.when(r.pid, other, i) < mine for i, x in theirs):
                    need(a in [x["id"] for x in r.named(n)[0]], "H-26: an approval by a proposer of the same patch in another transaction")

    def key_lines(self, r):  # S-32
        for n, p in r.of_type("approval/decision"):
            g = p["source"].get("signature")
            if not g or self.store.objects.get(p["policy"]["commit"], ("",))[0] != "commit":
                continue
            tree = dict(self.store.changes(None, self.store.commit(p["policy"]["commit"])["tree"]))
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
            m = re.fullmatch(r'github:[A-Za-z0-9][A-Za-z0-9_-]{0,99} namespaces="countersign-decision@v2",valid-after="\d{14}Z" \S+ \S+', text, re.A)
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
        tree = parse_tree(self.store.get(self.store.commit(found[0])["tree"], "tree"))
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
    """The reader's file (H-42). groups: name -> (K, members), of a witness (1, []); keys: (name, hash) -> (name in the
    file or None for a log, key)."""

    def __init__(self, data):
        need(data is not None and len(data) <= 256 * 1024, "H-42: no file, or too large")
        self.groups, self.keys, self.quorum, self.origin = {}, {}, None, None
        lines, used = [l.split() for l in data.decode("utf-8").split("\n")], set()
        need(len(lines) <= 1001, "H-42: too many lines")
        for what, *w in (l for l in lines if l and not l[0].startswith("#")):
            need(what in ("log", "witness", "group", "quorum") and w, "H-42: " + ascii(what))
            if what in ("witness", "group"):
                need(w[0] not in self.groups and w[0] != "none", "H-42: name twice")
            if what in ("log", "witness"):
                need(len(w) == 1 if what == "log" else len(w) in (2, 3), "H-42: " + what)
                name, h, key = vkey(*[w[0], 1] if what == "log" else [w[1], 4])
                need(key not in [k for _, k in self.keys.values()] and (what != "log" or self.origin in (None, name)), "H-42: key twice, or logs of two names")
                self.origin = name if what == "log" else self.origin
                self.keys[name, h] = (None if what == "log" else w[0], key)
                if what == "witness":
                    self.groups[w[0]] = (1, [])
            elif what == "group":
                members = w[2:]
                need(members and len(set(members)) == len(members) and set(members) <= set(self.groups) - used, "H-42: member")
                used |= set(members)
                k = {"any": 1, "all": len(members)}.get(w[1]) or int(w[1]) * bool(re.fullmatch("[1-9][0-9]*", w[1]))
                need(1 <= k <= len(members), "H-42: K")
                self.groups[w[0]] = (k, members)
            else:
                need(len(w) == 1 and self.quorum is None and w[0] in {"none", *self.groups}, "H-42: quorum")
                self.quorum = w[0]
        need(self.origin is not None, "H-42: no log")

    def holds(self, name, signed):
        k, members = self.groups[name]
        return sum(self.holds(m, signed) for m in members) >= k if members else name in signed

    def reached(self, signed, number):  # H-45
        return (self.quorum in (None, "none") or self.holds(self.quorum, signed)) and len(signed) >= (number or 0)

    def checkpoint(self, data):  # H-41, H-43
        """(leaves, root, names of witnesses) of one that counts, or None."""
        try:
            text, _, tail = data.decode("utf-8").partition("\n\n")
            lines = text.split("\n")
            if len(lines) == 4 and lines[0] == self.origin and lines[3].startswith("needs_version "):  # V17
                cjson.check_needs({"needs_version": lines[3][14:]})
            need(len(lines) == 3 and lines[0] == self.origin and re.fullmatch("0|[1-9][0-9]{0,18}", lines[1]), "H-41: text")
            root, body, who = cjson.unbase64(lines[2]), (text + "\n").encode(), set()
            need(len(root) == 32 and tail.endswith("\n"), "H-41: root")
            for l in tail[:-1].split("\n"):
                m = re.fullmatch("\u2014 ([^ +]+) ([A-Za-z0-9+/=]+)", l)
                need(m, "H-43: line of a signature")
                raw = cjson.unbase64(m.group(2))
                name, key = self.keys.get((m.group(1), raw[:4]), (None, None))
                sig, begin = raw[4:], b""
                if name is not None:
                    need(len(sig) == 72 and 1 <= int.from_bytes(sig[:8], "big") <= 253402300799, "H-43: time")
                    sig, begin = sig[8:], b"cosignature/v1\ntime %d\n" % int.from_bytes(sig[:8], "big")
                if key is not None:
                    signatures.ed25519(key, begin + body, sig)
                    who.add(name)
            need(None in who, "H-43: no log signed it")
            return int(lines[1]), root, who - {None}
        except (Refused, UnicodeDecodeError) as e:
            need(getattr(e, "rule", "") != "NEWER", str(e), "NEWER")
            return None

def vkey(text, kind):
    """name, key hash, key of NAME+HASH+KEY (signed-note)."""
    name, h, key = (text.split("+", 2) + ["", ""])[:3]
    raw = cjson.unbase64(key)
    need(1 <= len(name.encode()) <= 200 and all(ucd.printable(c) and c != " " for c in name), "H-41: name")
    need(len(raw) == 33 and raw[0] == kind and re.fullmatch("[0-9a-f]{8}", h), "H-42: key")
    need(hashlib.sha256(name.encode() + b"\n" + raw).digest()[:4].hex() == h, "H-42: hash of a key")
    return name, bytes.fromhex(h), raw[1:]
