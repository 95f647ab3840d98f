"""A ledger's history: bundles (B), commits and indexes (H-1 to H-31), witnesses (H-40 to H-45)."""
import datetime, hashlib, io, pathlib, re, tempfile, types

import core, signatures, verdict
from core import SHAPES, Findings, Refused, attempt, execute, form, need, record, rfc3339
from policy import read_file
from transaction import TX_ID, Fold, Record

SIZES = {"sha1": 20, "sha256": 32}
STILL = "OBJECT HISTORY L1 L2 L4 L7 L8 L13 L14 L16 WITNESS NEWER BUNDLE".split()  # V15
TX = form("tx_path")
TRAILERS = ("%s: %s\n\nCountersign-Transaction: %s\nCountersign-Stage: %s\nCountersign-Patch: %s\n"
            "Countersign-Outcome: %s\n")

class Bundle:
    """refs: list of (name, id); objects: id -> (type, bytes)."""

    def __init__(self, data, whole=False):
        m = form("bundle").match(data)
        lines = m.group().split(b"\n") if m else [b""] * 10003
        need(len(lines) <= 10002 and all(len(line) < 4096 for line in lines), "B-1 to B-3: header", "BUNDLE")
        names = (m.group(1) or b"sha1").decode()
        self.refs, self.size = [tuple(x.decode().split(" ")[::-1]) for x in m.group(2).splitlines()], SIZES[names]
        need(all(len(i) == 2 * self.size for _, i in self.refs), "B-3: id", "BUNDLE")
        # B-4: git index-pack checks it, and names each object by its content. All that the tips reach is there.
        data, tips, self.objects = data[m.end():], [i for _, i in self.refs] if whole else [], {}
        need(data[:8] == b"PACK\0\0\0\2", "B-4: pack", "BUNDLE")
        with tempfile.TemporaryDirectory() as d:
            git, pack = ("git", "--git-dir", d), d + "/objects/pack/pack-0.pack"
            every = (*git, "cat-file", "--batch-all-objects", "--buffer")
            execute(*git, "init", "-q", "--bare", "--template=", "--object-format=" + names)
            pathlib.Path(pack).write_bytes(data)
            execute(*git, "index-pack", pack)
            size = sum(map(int, execute(*every, "--batch-check=%(objectsize)").split()))
            need(size <= 512 * 2**20, "B-6: too large", "BUNDLE")
            found = io.BytesIO(execute(*every, "--batch"))
            if tips:
                execute(*git, "rev-list", "--objects", "--quiet", "--stdin", data="\n".join([*tips, ""]).encode())
        for oid, kind, size in (line.decode().split() for line in found):
            self.objects[oid] = (kind, found.read(int(size) + 1)[:-1])

    def ledger(self, name=None):  # B-5
        in_agent = [x for x in self.refs if x[0].startswith("refs/agent/")]
        found = [x for x in self.refs if x[0] == name] if name is not None else self.refs[1:] and in_agent or self.refs
        need(len(found) == 1, "B-5: which ref?", "BUNDLE")
        if name is None and not in_agent:
            root = {e[1] for e in self.tree(self.commit(found[0][1]).tree)}
            need(root & {b"ledger.json", b"transactions"}, "B-5: not a ledger", "BUNDLE")
        return found[0]

    def get(self, oid, kind="blob"):  # H-1
        t, data = self.objects.get(oid, (None, None))
        need(t == kind, "H-1: %s %s is missing" % (kind, oid), "OBJECT")
        return data

    def commit(self, oid):  # what git needs to walk; the rest is compared as bytes (H-5)
        data = self.get(oid, "commit")
        head, _, message = data.partition(b"\n\n")
        m = form("commit_head").match(head + b"\n")
        need(m, "H-1: commit", "OBJECT")
        return types.SimpleNamespace(id=oid, data=data, tree=m.group(1).decode(), message=message,
                                     parents=m.group(2).decode().split()[1::2])

    def tree(self, oid):  # H-3: (mode, name, id) of each entry
        data = self.get(oid, "tree")
        out = [(m.decode(), n, i.hex()) for m, n, i in form("tree_entry%d" % self.size).findall(data)]
        keys, names = [n + b"/" * (m == "40000") for m, n, _ in out], {n for _, n, _ in out}
        size = sum(len(m) + len(n) + 2 + self.size for m, n, _ in out)
        need(out and size == len(data) and not {n.lower() for n in names} & {b".", b"..", b".git"}, "H-3", "L10")
        need(keys == sorted(keys) and len(names) == len(out), "H-3: order", "L10")
        return out

    def changes(self, old, new, prefix=b"", depth=0):
        """(path, mode and id of the file or None) of what differs in two trees, each perhaps None (H-3)."""
        need(depth <= 16, "H-3: trees nest too deep", "L10")
        a, b = ({name: (mode, oid) for mode, name, oid in self.tree(t)} if t else {} for t in (old, new))
        for name in [name for name in {**a, **b} if a.get(name) != b.get(name)]:
            x, y = a.get(name), b.get(name)
            below = [f[1] if f and f[0] == "40000" else None for f in (x, y)]
            files = [None if t else f for f, t in zip((x, y), below)]
            if any(files):
                yield prefix + name, files[1]
            if any(below):
                yield from self.changes(*below, prefix + name + b"/", depth + 1)

def merkle(leaves):  # H-40
    if len(leaves) < 2:
        return hashlib.sha256(b"".join(b"\0" + leaf for leaf in leaves)).digest()
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + merkle(leaves[:k]) + merkle(leaves[k:])).digest()

class Witnesses:
    """The reader's file (H-42). groups: name -> (K, members), of a witness (1, []); keys: (name, hash) ->
    (name in the file or None for a log, key)."""

    def __init__(self, data):
        self.groups, self.keys, self.quorum, self.origin, self.free = {}, {}, None, None, set()
        lines = data.decode("utf-8").split("\n")
        need(len(data) <= 256 * 1024 and len(lines) <= 1001, "H-42: too large")
        for words in (line.split() for line in lines if line.strip() and line.split()[0][0] != "#"):
            self.line(*words)
        need(self.origin is not None, "H-42: no log")

    def line(self, what, name, *w):
        if what == "quorum":
            need(not w and self.quorum is None and name in self.groups, "H-42: quorum")
            self.quorum = name
        elif what == "log":
            signer = self.vkey(name, 1, None)
            need(not w and self.origin in (None, signer), "H-42: logs of two names")
            self.origin = signer
        else:
            k, *members = w if what == "group" else "1"
            if what != "group":
                need(what == "witness" and len(w) in (1, 2), "H-42: another line")
                self.vkey(w[0], 4, name)
            need(set(members) <= self.free and len(set(members)) == len(members), "H-42: members")
            need(re.fullmatch("any|all|[1-9][0-9]*", k), "H-42: K")
            k = {"any": 1, "all": len(members)}.get(k) or int(k)
            need((k <= len(members) or what == "witness") and name not in self.groups and name != "none", "H-42")
            self.groups[name] = (k, members)
            self.free = self.free - set(members) | {name}

    def vkey(self, text, kind, owner):  # keeps the key of NAME+HASH+KEY (signed-note), and returns its name
        name, h, key = text.split("+", 2)
        raw = core.unbase64(key)
        need(1 <= len(name.encode()) <= 200 and all(core.printable(c) and c != " " for c in name), "H-41: name")
        need(len(raw) == 33 and raw[0] == kind and raw[1:] not in [k for _, k in self.keys.values()], "H-42: key")
        need(hashlib.sha256(name.encode() + b"\n" + raw).digest()[:4].hex() == h, "H-42: hash of a key")
        self.keys[name, bytes.fromhex(h)] = (owner, raw[1:])
        return name

    def holds(self, name, signed):
        k, members = self.groups[name]
        return sum(self.holds(m, signed) for m in members) >= k if members else name in signed
    def reached(self, signed, number):  # H-45
        return (self.quorum is None or self.holds(self.quorum, signed)) and len(signed) >= (number or 0)

    def checkpoint(self, data):  # (leaves, root, names of witnesses) of one that counts, or None (H-41, H-43)
        text, _, tail = (attempt(data.decode, "utf-8") or "").partition("\n\n")
        lines = text.split("\n")
        if len(lines) == 4 and lines[0] == self.origin and lines[3].startswith("needs_version "):  # V17
            attempt(core.check_newer, {"needs_version": lines[3][14:]})
        return attempt(self.signed, lines, (text + "\n").encode(), tail)

    def signed(self, lines, body, tail):
        need(len(lines) == 3 and lines[0] == self.origin and re.fullmatch("0|[1-9][0-9]{0,18}", lines[1]), "H-41")
        root, who = core.unbase64(lines[2]), set()
        need(len(root) == 32 and tail.endswith("\n"), "H-41: root")
        for line in tail[:-1].split("\n"):
            signer, sig = form("checkpoint_line").fullmatch(line).groups()
            sig = core.unbase64(sig)
            if (signer, sig[:4]) in self.keys:
                name, key = self.keys[signer, sig[:4]]
                time = None if name is None else int.from_bytes(sig[4:12], "big")
                need(time is None or 1 <= time <= 253402300799, "H-43: time")
                signed = body if time is None else b"cosignature/v1\ntime %d\n" % time + body
                signatures.ed25519(key, signed, sig[4 if time is None else 12:])
                who.add(name)
        need(None in who, "H-43: no log signed it")
        return int(lines[1]), root, who - {None}

def day(txid):  # the day of a ULID's time
    ms = sum("0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(c) * 32**n for n, c in enumerate(reversed(txid[3:13])))
    cycles, days = divmod(ms // 86400000, 146097)  # the calendar repeats every 400 years
    d = datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
    return "%04d/%02d/%02d" % (d.year + 400 * cycles, d.month, d.day)

def known_path(p):  # H-10
    tx, pulls = TX.fullmatch(p), form("pull_path").fullmatch(p)
    if tx:
        return TX_ID.fullmatch(tx.group(4)) and tx.group(2, 3) == (day(tx.group(4)), core.sha(tx.group(4).encode())[:2])
    if pulls:
        return pulls.group(1) == "%02x" % (int(pulls.group(2)) % 256)
    return p in ("ledger.json", "events.jsonl") or form("index_path").fullmatch(p)

def split_signature(data):  # S-50: a commit without its signature, and the armored text or None
    head, _, message = data.partition(b"\n\n")
    if b"\ngpgsig" not in head:
        return data, None
    m = form("gpgsig").fullmatch(head)
    return m.group(1) + b"\n" + message, m.group(2).replace(b"\n ", b"\n").decode("latin-1") + "\n"

class Audit(Findings):
    """states: transaction -> status. Of what was read up to a commit: files (path -> mode, id), events
    (transaction -> bytes), folds (transaction -> Fold), own (lines of the ledger's own events), version, and
    proposers: patch_id -> transaction -> (number of a commit, number of its first event). late: transactions
    that a newer version adds to, or None (V15)."""

    def __init__(self, bundle, ref=None, tip=None, signers=None, witnesses=None, quorum=None):
        super().__init__()
        self.states, self.commits, self.tip, self.tree, self.files = {}, [], "", None, {}
        self.events, self.folds, self.own, self.proposers = {}, {}, [], {}
        self.version = self.late = self.created = None
        self.signers = signers and (attempt(signatures.key_file, signers) or [[]])[0]
        self.store = self.run("BUNDLE", Bundle, bundle)
        found = self.store and self.run("BUNDLE", self.store.ledger, ref)
        if found:
            self.ref, self.tip = found
            self.run("OBJECT", self.all, tip, witnesses, quorum)

    def all(self, tip, witnesses, quorum):
        self.walk()
        self.run("L14", self.known, tip)
        if witnesses is not None or quorum is not None:
            self.run("WITNESS", self.witness, witnesses, quorum)
        for n, c in enumerate(self.commits):
            self.commit(n, c)
        records = self.directories()
        self.states = {txid: r.status if r.folded else "" for txid, r in records.items()}
        for txid, r in records.items():  # H-18, H-26, H-27
            if r.folded and r.proposal:
                self.run("L24", self.named, txid, r, records)
                self.run("L22", self.key_lines, r)

    def bad(self, rule, text, late=True):
        if rule in STILL or self.late is None or not late:
            super().bad(rule, text)

    def walk(self):  # H-2
        self.expect(not any(n.startswith("refs/replace/") for n, _ in self.store.refs), "HISTORY", "H-2: replacements")
        at = [self.tip]
        while at:
            self.expect(at[0] in self.store.objects, "HISTORY", "H-2: commit %s is missing" % at[0])  # OBJECT, too
            self.commits.insert(0, self.store.commit(at[0]))
            at = self.commits[0].parents
            self.expect(len(at) < 2, "L8", "H-4: several parents of a commit")

    def known(self, tip):  # H-30
        todo, seen = [self.tip], {None}
        while tip not in seen and todo:
            at = todo.pop()
            if at not in seen and at in self.store.objects:
                seen.add(at)
                todo += self.store.commit(at).parents
        need(tip in seen, "H-30: the tip does not descend from the known one")

    def changed(self, c):
        changes = [(p.decode("utf-8", "surrogateescape"), f) for p, f in self.store.changes(self.tree, c.tree)]
        self.tree = c.tree
        self.expect(len(changes) <= 10000, "L10", "H-3: changes too many paths")
        return changes

    def commit(self, n, c):  # the rules of one commit, where self.files are those of the tree before
        changes = self.run("L10", self.changed, c)
        if changes is None:
            return
        c.n, c.records, c.old = n, {}, self.files
        for p, f in [(p, f) for p, f in changes if not form("view").fullmatch(p)]:  # U-7
            m = TX.fullmatch(p)
            grows = p == "events.jsonl" or m and m.group(5) in ("transaction.json", "events.jsonl")
            self.expect(f, "L8", "H-11: removes " + ascii(p))
            self.expect(not f or known_path(p) and f[0] == "100644", "L10", "H-10: " + ascii(p))
            if f and f[0] != "160000":
                c.records[p] = self.store.get(f[1])
                self.expect(p not in c.old or grows, "L16" if p == "ledger.json" else "L8", "H-11: changes " + ascii(p))
        self.expect((n == 0) == ("ledger.json" in c.records), "L16", "H-20: ledger.json")
        if n == 0 and "ledger.json" in c.records:
            self.run("L16", self.ledger, c.records["ledger.json"])
        ids = {m.group(4) for m in map(TX.fullmatch, c.records) if m}
        self.late = None if self.late is None else self.late | ids
        c.plain, c.sig = self.run("L13", split_signature, c.data) or (c.data, None)
        self.run("L13", self.signature, c)
        if len(ids) + ("events.jsonl" in c.records) != 1:
            self.bad("L8", "H-12: adds to %d transactions" % len(ids))
            for top in {p.split("/")[0] for p in c.records} & {"denied", "proposed"} if not ids else ():
                self.bad("L11" if top == "denied" else "L12", "H-12: index alone")
        else:
            self.run(*("L8", self.stage, c, ids.pop()) if ids else ("L16", self.own_event, c))
        self.files = {p: f for p, f in {**self.files, **dict(changes)}.items() if f}

    def signature(self, c):  # S-51
        need(c.sig is not None or self.signers is None, "S-51: %s has no signature" % c.id)
        key = signatures.sshsig(c.plain, c.sig, "git") if c.sig is not None else None
        if key and self.signers is not None:
            t = int(re.search(rb"\ncommitter [^\n]* (\d+) \+0000\n", c.plain + b"\n").group(1))
            theirs = [x.admits("git", t) for _, x in self.signers if x.key.fingerprint == key.fingerprint]
            need(any(theirs), "S-51: nobody's key")

    def check_bytes(self, c, t):  # H-5, H-7
        who = "countersign <countersign@localhost> %d +0000" % (rfc3339(t) // 1)
        parents = "".join("parent %s\n" % p for p in c.parents)
        want = "tree %s\n%sauthor %s\ncommitter %s\n\n" % (c.tree, parents, who, who)
        need(c.plain == want.encode() + c.message, "H-5: commit %s is in another form" % c.id, "L15")

    def raised(self, text):  # the ledger has this version from here on (H-20, V12)
        self.version = core.version(text)
        if self.version > core.VERSION and self.late is None:
            self.directories()  # what was before is judged as it was (V15)
            self.bad("NEWER", "written by a newer countersign, needs at least " + text)
            self.late = set()

    def ledger(self, data):  # H-20
        v = core.read_line(data)
        self.created, self.version = v["created_at"], core.version(v["schema_version"])
        try:
            record(v, "ledger")
        except Refused as e:
            self.late = set() if e.rule == "NEWER" else None
            raise
        self.raised(v["schema_version"])

    def may_need(self, lines):  # V13
        for v in filter(None, (attempt(core.parse, line) for line in lines if self.version)):
            need("needs_version" not in v or core.version(v["needs_version"]) <= self.version, "V13: needs_version")

    def own_event(self, c):  # H-22
        lines, before = c.records["events.jsonl"].split(b"\n"), self.own
        need(set(c.records) == {"events.jsonl"} and lines.pop() == b"" and lines and lines[:-1] == before, "H-22")
        self.own = lines
        self.run("L16", self.may_need, lines[-1:])
        v = record(core.read_line(lines[-1] + b"\n"), "event")
        prev = core.hashed(before[-1] + b"\n") if before else None
        need(v["seq"] == len(lines) and v["prev"] == prev and v["type"].startswith("ledger/"), "H-22: chain, or type")
        core.take(v["timestamp"], "time:stamp")
        p = record(v["payload"], v["type"])
        if v["type"] == "ledger/accept_tip":
            need(c.parents == [p["accepted_tip"]], "H-22: parent")
        else:
            need(core.version(p["from"]) == self.version < core.version(p["version"]), "H-22: versions")
        said = {"login": core.as_line(p["author"]["login"], 60), "reason": core.as_line(p["reason"], 120)}
        title = core.TABLES["own"][v["type"]].format(**{**p, **said, "tip": p.get("accepted_tip", "")[:12]})
        message = ("%s\n\nCountersign-Stage: %s\n" % (title, title.partition(":")[0])).encode()
        need(c.message == message and b" %d +0000\n\n" % (rfc3339(v["timestamp"]) // 1) in c.plain, "H-22")
        self.check_bytes(c, v["timestamp"])
        if v["type"] == "ledger/version":
            self.raised(p["version"])

    def stage(self, c, txid):  # what a commit adds to a transaction (H-6 to H-17)
        c.top, c.txid = next(m.group(1) for m in map(TX.fullmatch, c.records) if m), txid
        data, was = c.records.get(c.top + "events.jsonl", b""), self.events.get(txid, b"")
        need(data.startswith(was) and data != was and data[-1:] == b"\n", "H-13: events of " + txid)
        self.events[txid] = data
        self.run("L16", self.may_need, data[len(was):].split(b"\n"))
        f, c.first = Fold(data), was.count(b"\n")
        for rule, text in f.problems:
            self.bad(rule, "%s in %s: %s" % (txid, c.id, text), self.late and txid in self.late)
        if f.folded is None:
            return
        doc, c.fold, c.events = c.top + "transaction.json", f, f.events[c.first:]
        kept = c.records.get(doc, doc in c.old and self.store.get(c.old[doc][1]))
        self.expect(kept == core.line_of(f.folded), "L9", "H-14: transaction.json of %s in %s" % (txid, c.id))
        self.expect(len({e["timestamp"] for e in c.events}) == 1, "L8", "H-7: several timestamps")
        self.expect(c.n or self.created == c.events[0]["timestamp"], "L16", "H-20: created_at of ledger.json")
        c.pid = f.proposal["patch_id"] if f.proposal else ""
        for check in zip(("L15", "L10", "L11", "L12"), (self.message, self.added, self.denials, self.proposed)):
            self.run(*check, c)
        mine = self.proposers.setdefault(c.pid, {}).setdefault(txid, [])
        if "supersedes" in (f.proposal or {}) and not mine:
            self.run("L19", self.supersedes, f, txid)
        mine.append((c.n, c.first))
        self.folds[txid] = f

    def message(self, c):  # H-6, H-8
        rows, status, complete = set(), c.fold.status, any(e["type"] == "apply/complete" for e in c.events)
        gate = SHAPES["gates"].get(status, ("approved/pending/denied",))[0]
        for p, t in ((e["payload"], e["type"]) for e in c.events):
            word = p.get("to") or p.get("kind") or p.get("decision") or ""
            stage, _, _, outcome = SHAPES["stages"].get(t + "=" + word, (None,) * 4)
            if stage and not (word == "failed" and complete) and "evidence" not in p.get("source", {}):
                rows.add((stage, {"status": status, "gate": gate, "outcome": p.get("outcome")}.get(outcome, outcome)))
        rows = rows or {("gate", gate)}
        stage = min(rows)[0]
        need(len({s for s, _ in rows}) == 1 and (len(rows) == 1 or ("apply", "started") not in rows), "H-8")
        subject = c.message.decode().partition("\n")[0][len(stage) + 2:]
        need(core.one_line(subject, 120), "H-6: subject")
        outcomes = "/".join(o for _, o in rows).split("/")
        messages = [TRAILERS % (stage, subject, c.txid, stage, c.pid, o) for o in outcomes]
        need(c.message.decode() in messages, "H-6: message")
        self.check_bytes(c, c.events[-1]["timestamp"])

    def added(self, c):  # H-14
        brought = c.fold.brings()
        before = {b for n, b in brought if n < c.first}
        names = {"events.jsonl", "transaction.json"} | {b for n, b in brought if n >= c.first} - before
        mine = {p[len(c.top):] for p in c.records if p.startswith(c.top)}
        need(mine <= names, "H-14: added out of time: " + ascii(mine - names))

    def denials(self, c):  # H-15, H-17
        want, kinds = {}, {p["approval_request_id"]: p["kind"] for _, p in c.fold.of_type("approval/request")}
        for n, p in c.fold.of_type("approval/decision"):
            if n >= c.first and p["decision"] == "deny":
                pid, kind, s = p["fingerprint"][-64:], kinds[p["approval_request_id"]], p["source"]
                want["denied/%s/%s/%s.json" % (pid[:2], pid, kind)] = core.line_of({
                    "author": s["author"], "denied_at": s["created_at"], "fingerprint": p["fingerprint"],
                    "kind": kind, "reason": p.get("reason", ""), "transaction_id": c.txid})
        added = {p: d for p, d in c.records.items() if p.startswith("denied/")}
        need(all(want.get(p) == d for p, d in added.items()), "H-15: denied/")
        had = {p.rpartition("/")[0] for p in c.old}
        need(all(p in added or p.rpartition("/")[0] in had for p in want), "H-15: a denial is missing")
        if any(n >= c.first and p["to"] == "denied" for n, p in c.fold.of_type("tx/status")):
            top = "denied/%s/%s/" % (c.pid[:2], c.pid)
            need(c.pid and any(p.startswith(top) for p in [*c.old, *c.records]), "H-17: no denial is kept")

    def proposed(self, c):  # H-16
        want, line = {}, core.line_of({"base_commit": c.fold.meta["base_commit"], "transaction_id": c.txid})
        first = {m["patch_id"]: (n, m.get("pull_request", 0)) for n, m in reversed(c.fold.proposals)}
        for pid, pull in [(pid, pull) for pid, (n, pull) in first.items() if n >= c.first]:
            want["proposed/%s/%s/%s.json" % (pid[:2], pid, c.txid)] = line
            if pull > 0:
                want["proposed/pulls/%02x/%d/%s.json" % (pull % 256, pull, c.txid)] = line
        need({p: d for p, d in c.records.items() if p.startswith("proposed/")} == want, "H-16: proposed/")

    def supersedes(self, f, txid):  # H-25
        m = f.proposal
        for o in map(self.folds.get, m["supersedes"]):
            reasons = [p["reason"] for _, p in o.of_type("tx/status") if p["to"] == "superseded"]
            q, mine, theirs = o.proposal, f.meta["proposer"], o.meta["proposer"]
            need(o.closed and o.status == "superseded" and txid in reasons[-1], "H-25: closed, reason")
            need((mine["kind"], mine["id"]) == (theirs["kind"], theirs["id"]), "H-25: proposer")
            need(m["pull_request"] == q["pull_request"] > 0 and m["repository"]["id"] == q["repository"]["id"], "H-25")
            need(set(m["target_files"]) & set(q["target_files"]) and "pr_diff" not in (m["kind"], q["kind"]), "H-25")

    def directories(self):  # each transaction's directory as it stands, checked (H-18)
        trees = {}
        for p, (mode, oid) in self.files.items():
            m = TX.fullmatch(p)
            if m and mode != "160000":
                name = m.group(5).encode("utf-8", "surrogateescape")
                trees.setdefault(m.group(4), {})[name] = (mode, self.store.get(oid))
        records = {txid: Record(txid, trees[txid]).check() for txid in sorted(trees)}
        for txid, r in records.items():
            for rule, text in r.problems:
                self.bad(rule, "%s: %s" % (txid, text), self.late and txid in self.late)
        return records

    def when(self, pid, txid, n):  # the number of the commit that brought event n of a transaction
        brought = self.proposers[pid][txid]
        return max([c for c, first in brought if first <= n], default=brought[0][0])

    def named(self, txid, r, records):  # H-26
        others = [(x, o) for x, o in records.items() if x in self.proposers.get(r.pid, {}) and x != txid and o.folded]
        for n, p in r.of_type("approval/decision"):
            a, mine = p["source"]["author"]["id"], p["fingerprint"].startswith("patchset:")
            local = p["source"]["kind"] in ("local", "rpc") and r.meta["proposer"]["id"].startswith("local:")
            counts = p["decision"] == "approve" and a and not (local and mine)
            for other, o in others if counts else ():
                again = [(i, o.content(q)["proposer"]) for i, q in o.artifacts("proposed_again")]
                earlier = [i for i, x in [(0, o.meta["proposer"]), *again] if x["id"] == a]
                if any(self.when(r.pid, other, i) < self.when(r.pid, txid, n) for i in earlier):
                    need(a in [x["id"] for x in r.named(n)[0]], "H-26: a proposer in another transaction")

    def key_lines(self, r):  # S-32
        for n, p in r.of_type("approval/decision"):
            g, commit = p["source"].get("signature"), p["policy"]["commit"]
            if not g or self.store.objects.get(commit, ("",))[0] != "commit":
                continue
            tree = dict(self.store.changes(None, self.store.commit(commit).tree))

            def file(name):
                mode, oid = tree.get(name.encode(), ("", ""))
                return self.store.get(oid) if mode in ("100644", "100755") else None

            pol = verdict.policy_of(r, n)["approvals"]
            there = read_file(file(".github/countersign.yml"))["approvals"]
            need(all(there.get(k) == pol.get(k) for k in ("keys", "forge_keys", "passkeys")), "S-32: other keys")
            text = r.content(r.stored("key", g["key"], n))["line"]
            usable, unreadable = signatures.key_file(file(pol.get("keys", "")) or b"")
            if text not in [t for t, _ in usable]:
                line = signatures.Line(text)
                need(pol.get("forge_keys") and not unreadable and form("forge_line").fullmatch(text)
                     and all(x.key.fingerprint != line.key.fingerprint for _, x in usable)
                     and line.after <= rfc3339(r.events[0]["timestamp"]), "S-32: the line is not in the file")

    def witness(self, data, number):  # H-40 to H-45
        w = Witnesses(data)
        name = self.ref.removeprefix("refs/").removeprefix("agent/")
        found = [i for n, i in self.store.refs if n == "refs/agent/%s-checkpoints" % name]
        demanded = w.quorum is not None or number
        need(len(found) == 1 or not found and not demanded, "H-43: no checkpoints")
        kept = [self.store.get(i) for at in found for mode, n, i in self.store.tree(self.store.commit(at).tree)
                if mode in ("100644", "100755") and re.fullmatch(rb"[0-9]{1,18}-[0-9a-f]{12}", n)]
        leaves, sizes = [c.data for c in self.commits], {}  # sizes: witness -> the most leaves it signed
        for d in [d for d in kept if len(d) <= 32768][:32]:
            size, root, who = w.checkpoint(d) or (0, merkle([]), [])
            need(size <= len(leaves) and root == merkle(leaves[:size]), "H-44: another history")
            sizes.update({x: max(size, sizes.get(x, 0)) for x in who})
        covered = [n for n in sizes.values() if w.reached({x for x, s in sizes.items() if s >= n}, number)]
        need(not demanded or any(covered), "H-45: no quorum")
