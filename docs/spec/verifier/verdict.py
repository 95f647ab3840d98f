"""The verdict (D-1 to D-22)."""
import cjson
import policy
from cjson import Refused, is_record, need, record
from policy import PERMISSIONS, signed
from signatures import rfc3339

def listed(accounts, author):  # D-5
    return any(a == author["id"] if a.isascii() and a.isdigit() or ":" in a else a.casefold() == author["login"].casefold() for a in accounts)

def hardware_allows(ap, key, person):  # S-29
    return (key.security or not (ap.get("hardware") or ap.get("pin"))) and (person or not ap.get("pin"))

def latest(rec, kind, n, after=None):
    """The document of the last artifact of a kind before an event, and after all events of a type (D-20), or None."""
    start = max([i for i, _ in rec.of_type(after, before=n)], default=-1)
    found = [p for i, p in rec.artifacts(kind, n) if i > start]
    return rec.content(found[-1]) if found else None

def check_standing(rec, v):  # D-21
    record(v, "standing", "D-21")
    need(v["pull_request"] == rec.pull, "D-21: pull request")
    return v

def policy_of(rec, n):
    """The Policy at an event (D-20)."""
    ref = rec.events[n]["payload"].get("policy") or check_standing(rec, latest(rec, "standing", n))["policy"]
    for _, p in rec.artifacts("policy"):
        v = rec.content(p)
        if isinstance(v, dict) and (v.get("sha256"), v.get("commit")) == (ref["sha256"], ref["commit"]):
            data = record(v, "policy", "D-20")["policy"].encode()
            need(cjson.hashed(data) == v["sha256"], "D-20: policy")
            return policy.read_recorded(data)
    raise Refused("D-20: no policy")

def at_event(rec, n):  # D-20
    pol, p = policy_of(rec, n), rec.events[n]["payload"]
    standing = latest(rec, "standing", n, "apply/start") if rec.pull else None
    drift = latest(rec, "drift", n, "apply/start") if "drift" in pol["approvals"] else None
    head = check_standing(rec, standing)["head_commit"] if standing is not None else ""
    return Verdict(rec, n, pol, rfc3339(rec.events[n]["timestamp"]), head, standing, drift, p["base_commit"] if "apply_id" in p else head, [])

class Verdict:
    """verdict, broken (the glass), needs with fingerprint and approved, counted: one bool for each decision."""

    def __init__(self, rec, n, pol, now, head, standing, drift, onto, denials, given=False):
        self.rec, self.n, self.pol, self.now, self.head = rec, n, pol, now, head
        self.standing, self.drift, self.onto = standing, drift, onto
        self.local = not rec.pull and not given  # D-20; in the op decide, needs keep whom they name
        m = rec.proposal
        need(m is not None, "D-1: no proposal")
        self.lists = rec.people(n)
        prints = {p + "patchset:" + rec.pid for p in ("", "secret:", "protected:")}
        decisions = rec.of_type("approval/decision", before=n)
        self.needs = [dict(x, fingerprint=x["prefix"] + "patchset:" + rec.pid)
                      for x in policy.needs(pol, m["target_files"] or [], m["contains_secret_introductions"])]
        secret = any(x["kind"] == "secrets_override" for x in self.needs)
        votes = [{p: [] for p in (x["paths"] if x.get("owners") and not self.local else [None])} for x in self.needs]  # path -> (i, d, part)
        self.counted, self.broken = [], False
        for i, d in decisions:
            counts = d["decision"] == "deny" and d["fingerprint"] in prints
            if d["decision"] == "approve" and self.counts_at_all(i, d):
                own = self.own(i, d)
                if rec.request(d)["kind"] == "break_glass":
                    counts = bool(self.breaks_glass(i, d)) and not (own and secret)
                    self.broken = self.broken or counts
                else:
                    part = self.part(i, d, own)
                    for x, by_path in zip(self.needs, votes):
                        good = self.good_for(i, d, x, own)
                        for path, v in by_path.items():
                            theirs = self.persons([y for y in v if y[2]])
                            if good and (good is True or path in good) and not (part and theirs >= x["required"] - 1):  # D-16
                                counts = counts or not any(self.persons([y, (i, d, part)]) == 1 for y in v)  # D-11: one vote each
                                v.append((i, d, part))
            self.counted.append(counts)
        for x, by_path in zip(self.needs, votes):  # D-3
            x["approved"] = min(map(self.persons, by_path.values()))
        met = [x["approved"] >= x["required"] for x in self.needs]
        self.broken = self.broken and not all(ok for x, ok in zip(self.needs, met) if x["kind"] != "secrets_override")
        if self.broken:
            left = [(x, ok) for x, ok in zip(self.needs, met) if x["kind"] == "secrets_override"]
            self.needs = [{"kind": "break_glass", "fingerprint": "patchset:" + rec.pid, "required": 1, "approved": 1}] + [x for x, _ in left]
            met = [ok for _, ok in left]
        denied = any(d["decision"] == "deny" and d["fingerprint"] in prints for _, d in decisions) \
            or any(x.get("fingerprint") in prints for x in denials)
        self.verdict = "denied" if denied else "approved" if all(met) else "pending"  # D-2

    def breaks_glass(self, i, d):  # D-13
        return (d["fingerprint"] == "patchset:" + self.rec.pid and d.get("reason") and (i in self.rec.signatures or not any(x.get("signed") for x in self.needs))
                and listed(self.pol["approvals"].get("break_glass", []), d["source"]["author"]))

    def counts_at_all(self, i, d):  # D-5 to D-9
        s, a, ap, rec = d["source"], d["source"]["author"], self.pol["approvals"], self.rec
        if not a["id"] or a["kind"] != "user" or listed(self.pol.get("bots", []), a):
            return False
        named = cjson.attempt(rec.named, i)
        if named is None or any("<REDACTED:" in x["id"] for x in named[0]):  # D-6
            return False
        if "requester" in ap.get("independent", []) and any("<REDACTED:" in x["actor"]["id"] + x["actor"]["login"] for x in named[1]):  # D-16
            return False
        if s["kind"] in ("local", "rpc"):  # D-7
            if not ap.get("local", not rec.pull):
                return False
        elif s["kind"] in ("review", "review_comment", "issue_comment"):
            st = next((x for x in (self.standing or {}).get("decisions") or [] if x["approval_request_id"] == d["approval_request_id"]), None)
            if st is None or not st["stands"]:
                return False
            if not {s["permission"], st["permission"]} <= set(PERMISSIONS[PERMISSIONS.index(ap["permission"]):]):
                return False
        else:
            return False
        m, of = rec.proposal, s["commit"]
        said = cjson.attempt(rfc3339, s["created_at"])
        if "signature" in s:  # D-8
            g = rec.signatures.get(i)
            if g is None or signed(self.pol) == "off" or not hardware_allows(ap, g["key"], g["verified"]):
                return False
            said = min(said, g["decided_at"]) if said is not None else None
            of = m.get("head_commit") or m["base_commit"]
        if ap["same_head"] and not self.local and (not self.head or of != self.head):  # D-9
            return False
        if "drift" in ap and not self.drift_allows(of, ap["drift"]):
            return False
        if "max_age" in ap:
            return said is not None and -60 <= self.now - said <= int(ap["max_age"][:-1])
        return True

    def drift_allows(self, commit, bound):  # D-15, D-22
        v = self.drift
        if not is_record(v, "drift") or self.onto not in (None, v["to"], self.rec.meta["base_commit"]):
            return False
        x = next((x for x in v["since"] or [] if x["from"] == commit and x["to"] == v["to"]), None)
        return x is not None and (commit == v["to"] or "unknown" not in x and x["commits"] <= bound.get("commits", x["commits"])
                                  and not (x["same_directory"] > 0 and bound.get("same_directory") == "ask"))

    def names_of(self, a):  # S-25
        if a["id"].startswith("local:"):
            return {person_name(a["id"][6:])} if "@" in a["id"] else set()
        return {person_name(a["login"])} if a["login"] else set()

    def closure(self, a, i):
        """All names that the lists give to an actor, whose decision i a key may have signed."""
        names, keys = self.names_of(a), {self.rec.signatures[i]["key"].fingerprint} if i in self.rec.signatures else set()
        lines = [({person_name(p) for p in l.principals if not set(p) & set("!*?")}, l.key.fingerprint) for l, _ in self.lists if l]
        size = -1
        while size != len(names) + len(keys):
            size = len(names) + len(keys)
            for n, k in lines:
                if n & names or k in keys:
                    names |= n
                    keys |= {k}
        for l, text in self.lists:
            words = {person_name(w) for w in text.replace(",", " ").replace('"', " ").split()}
            if l is None and words & names:
                return names.union(*(n for n, _ in lines))
        return names

    def same(self, a, b, i, lists=True):  # D-12
        if a["id"] and b["id"]:
            if a["id"] == b["id"]:
                return True
        elif a["login"] and a["login"].casefold() == b["login"].casefold():
            return True
        return lists and bool(self.closure(a, i) & self.names_of(b))

    def own(self, i, d):  # D-10
        others = self.rec.named(i)[0] + (self.rec.proposal.get("authors") or [])
        return any(self.same(d["source"]["author"], o, i) for o in others)

    def part(self, i, d, own):  # D-16
        of = self.pol["approvals"].get("independent", [])
        return "proposer" in of and own or "requester" in of and any(self.same(d["source"]["author"], x["actor"], i) for x in self.rec.named(i)[1])

    def good_for(self, i, d, need_, own):
        """True, a set of paths, or False: what an approval is good for (D-4, D-10, D-11)."""
        s, a, m = d["source"], d["source"]["author"], self.rec.meta["proposer"]
        if d["fingerprint"] != need_["fingerprint"] or need_.get("signed") and "signature" not in s:
            return False
        if need_["kind"] == "secrets_override":
            if own or self.pol["secrets"]["mode"] == "refuse":
                return False
        elif own and not self.pol["approvals"]["allow_author"] and not (
                s["kind"] in ("local", "rpc") and (self.same(a, m, i, False) or m["id"].startswith("local:"))):
            return False
        if not (need_.get("users") or need_.get("teams") or need_.get("owners")) or self.local and (need_.get("teams") or need_.get("owners")):
            return True  # D-20: of a local one, teams and owners name nobody
        st = self.standing or {}
        if listed(need_.get("users", []), a) or any(a["id"] in ((st.get("teams") or {}).get(t) or []) for t in need_.get("teams", [])):
            return True
        return {p for p in need_["paths"] if a["id"] in ((st.get("owners") or {}).get(p) or [])} if need_.get("owners") else False

    def persons(self, votes):
        """How many people there are among the authors (D-11, D-12)."""
        groups = []
        for i, d, _ in votes:
            a = d["source"]["author"]
            joined = [g for g in groups if any(self.same(a, b, i) or self.same(b, a, j) for j, b in g)]
            groups = [g for g in groups if g not in joined] + [sum(joined, [(i, a)])]
        return len(groups)

def person_name(p):
    p = p.lower()
    return p[7:] if p.startswith("github:") else p
