"""The verdict (D-1 to D-22)."""
import core, policy
from core import attempt, need, record, rfc3339
from policy import PERMISSIONS, signed

def listed(accounts, author):  # D-5
    ids = {a for a in accounts if a.isascii() and a.isdigit() or ":" in a}
    logins = {a.casefold() for a in accounts if a not in ids}
    return author["id"] in ids or author["login"].casefold() in logins
def hardware_allows(ap, key):  # S-29, S-34
    site = ap.get("passkeys", "")
    asked = not key.origin or key.origin == site and key.host.decode("latin-1") == site.split("//")[1].split(":")[0]
    return asked and (key.hardware or not ap.get("hardware")) and (key.verified and key.security or not ap.get("pin"))
def latest(rec, kind, n, after=None):
    """The last artifact's document of a kind before an event, and after all events of a type, or None."""
    start = max([i for i, _ in rec.of_type(after, before=n)], default=-1)
    found = [p for i, p in rec.artifacts(kind, n) if i > start]
    return rec.content(found[-1]) if found else None
def check_standing(rec, v):  # D-21
    need(record(v, "standing")["pull_request"] == rec.pull, "D-21: pull request")
    return v

def policy_of(rec, n):  # the Policy at an event (D-20)
    ref = rec.events[n]["payload"].get("policy") or check_standing(rec, latest(rec, "standing", n))["policy"]
    for _, p in rec.artifacts("policy"):
        v = record(rec.content(p), "policy")
        if {k: v[k] for k in ref} == ref:
            need(core.hashed(v["policy"].encode()) == v["sha256"], "D-20: policy")
            return policy.read_recorded(v["policy"].encode())
    raise core.Refused("D-20: no policy")

def at_event(rec, n):  # D-20
    pol, p = policy_of(rec, n), rec.events[n]["payload"]
    standing = latest(rec, "standing", n, "apply/start") if rec.pull else None
    drift = latest(rec, "drift", n, "apply/start") if "drift" in pol["approvals"] else None
    head = check_standing(rec, standing)["head_commit"] if standing is not None else ""
    return Verdict(rec, n, pol, rec.time(n), head, standing, drift, p.get("base_commit", head), [], not rec.pull)

def person_name(p):
    return p.lower().removeprefix("github:")
def names_of(a):  # S-25
    name = a["id"][6:] * ("@" in a["id"]) if a["id"].startswith("local:") else a["login"]
    return {person_name(name)} if name else set()

class Verdict:
    """verdict, broken (the glass), needs with fingerprint and approved, counted: a bool for each decision.
    local: teams and owners name nobody, and same_head is false (D-20)."""

    def __init__(self, rec, n, pol, now, head, standing, drift, onto, denials, local):
        self.rec, self.pol, self.now, self.head, self.drift, self.onto = rec, pol, now, head, drift, onto
        self.local, self.standing, self.named, m = local, standing or {}, {}, rec.proposal
        need(m is not None, "D-1: no proposal")
        self.lists, change = rec.people(n), "patchset:" + rec.pid
        prints = {p + change for p in ("", "secret:", "protected:")}
        needs = policy.needs(pol, m["target_files"] or [], m["contains_secret_introductions"], rec.advised(n))
        self.needs = [dict(x, fingerprint=x["prefix"] + change) for x in needs]
        self.secret = [x for x in self.needs if x["kind"] == "secrets_override"]
        votes = [(x, path, []) for x in self.needs  # votes are (i, d, part)
                 for path in (x["paths"] if x.get("owners") and not local else [None])]
        self.counted, glass, decisions = [], False, rec.of_type("approval/decision", before=n)
        for i, d in decisions:
            counts = d["decision"] == "deny" and d["fingerprint"] in prints
            if d["decision"] == "approve" and attempt(self.check, i, d):
                if rec.request(d)["kind"] == "break_glass":
                    counts = self.breaks_glass(i, d, change)
                    glass = glass or counts
                else:
                    counts = any([self.vote(i, d, *place) for place in votes])
            self.counted.append(counts)
        for x in self.needs:  # D-3
            x["approved"] = min(self.persons(v) for y, _, v in votes if y is x)
        unmet = [x for x in self.needs if x["approved"] < x["required"]]
        self.broken = glass and unmet not in ([], self.secret)  # D-13
        if self.broken:
            unmet = [x for x in unmet if x in self.secret]
            self.needs = [{"kind": "break_glass", "fingerprint": change, "required": 1, "approved": 1}, *self.secret]
        denials = [*denials, *(d for _, d in decisions if d["decision"] == "deny")]
        denied = any(x.get("fingerprint") in prints for x in denials)
        self.verdict = "denied" if denied else "pending" if unmet else "approved"  # D-2

    def vote(self, i, d, x, path, votes):  # whether an approval is one person more for a need, at a path
        part, good = self.part(i, d), self.good_for(i, d, x)
        theirs = self.persons([v for v in votes if v[2]])
        if not self.knew(i, d, x.get("behind")) or not good or good is not True and path not in good or part and theirs >= x["required"] - 1:  # D-16
            return False
        votes.append((i, d, part))
        return not any(self.persons([v, votes[-1]]) == 1 for v in votes[:-1])  # D-11: one vote each

    def made(self, i, d):  # D-8
        said, s = attempt(rfc3339, d["source"]["created_at"]), self.rec.signatures.get(i)
        return said and s and min(said, s["decided_at"]) or said
    def knew(self, i, d, behind):  # D-4
        made = self.made(i, d)
        return behind is None or i > behind and made is not None and made >= self.rec.time(behind)

    def breaks_glass(self, i, d, change):  # D-13
        asks_signed = any(x.get("signed") for x in self.needs)
        return bool(d["fingerprint"] == change and d.get("reason")
                    and (i in self.rec.signatures or not asks_signed)
                    and listed(self.pol["approvals"].get("break_glass", []), d["source"]["author"])
                    and not (self.secret and self.own(i, d)))

    def check(self, i, d):  # refuses what does not count at all (D-5 to D-9)
        s, a, ap, rec = d["source"], d["source"]["author"], self.pol["approvals"], self.rec
        need(a["id"] and a["kind"] == "user" and not listed(self.pol.get("bots", []), a), "D-5")
        who, asked = self.named[i] = rec.named(i)
        need(not any("<REDACTED:" in x["id"] for x in who), "D-6")
        need("requester" not in ap.get("independent", [])
             or not any("<REDACTED:" in x["actor"]["id"] + x["actor"]["login"] for x in asked), "D-16")
        if s["kind"] in ("local", "rpc"):  # D-7
            need(ap.get("local", not rec.pull), "D-7")
        else:
            need(s["kind"] in ("review", "review_comment", "issue_comment"), "D-7")
            stand = [x for x in self.standing["decisions"] if x["approval_request_id"] == d["approval_request_id"]][0]
            enough = PERMISSIONS[PERMISSIONS.index(ap["permission"]):]
            need(stand["stands"] and s["permission"] in enough and stand["permission"] in enough, "D-7")
        commit, said = s["commit"], self.made(i, d)
        if "signature" in s:  # D-8
            g = rec.signatures[i]
            need(g, "V3: the signature is newer", "NEWER")
            need(signed(self.pol) != "off" and hardware_allows(ap, g["key"]), "D-8")
            commit = rec.proposal.get("head_commit") or rec.proposal["base_commit"]
        need(not ap["same_head"] or self.local or self.head and commit == self.head, "D-9")
        need("drift" not in ap or self.drift_allows(commit, ap["drift"]), "D-15")
        need("max_age" not in ap or -60 <= self.now - said <= int(ap["max_age"][:-1]), "D-9")
        return True

    def drift_allows(self, commit, bound):  # D-15, D-22
        v = record(self.drift, "drift")
        need(self.onto in (None, v["to"], self.rec.meta["base_commit"]), "D-22")
        x = [x for x in v["since"] if x["from"] == commit and x["to"] == v["to"]][0]
        return commit == v["to"] or ("unknown" not in x and x["commits"] <= bound.get("commits", x["commits"])
                                     and not (x["same_directory"] > 0 and "same_directory" in bound))

    def closure(self, a, i):  # all names that the lists give to an actor, whose decision i a key may have signed (S-25)
        names, signature = names_of(a), self.rec.signatures.get(i)
        keys, size = {signature["key"].fingerprint} if signature else set(), -1
        lines = [({person_name(p) for p in line.principals if not set(p) & set("!*?")}, line.key.fingerprint)
                 for line, _ in self.lists if line]
        while size != len(names) + len(keys):
            size = len(names) + len(keys)
            for n, k in lines:
                if n & names or k in keys:
                    names, keys = names | n, keys | {k}
        unread = " ".join(text for line, text in self.lists if line is None).replace(",", " ").replace('"', " ")
        return names.union(*(n for n, _ in lines)) if set(map(person_name, unread.split())) & names else names

    def same(self, a, b, i, lists=True):  # D-12
        ids = a["id"] and b["id"]
        mine, theirs = (x["id"] if ids else x["login"].casefold() for x in (a, b))
        return bool(mine and mine == theirs or lists and self.closure(a, i) & names_of(b))

    def own(self, i, d):  # D-10
        others = self.named[i][0] + (self.rec.proposal.get("authors") or [])
        return any(self.same(d["source"]["author"], o, i) for o in others)
    def part(self, i, d):  # D-16
        of = self.pol["approvals"].get("independent", [])
        asked = [x["actor"] for x in self.named[i][1]] if "requester" in of else []
        return "proposer" in of and self.own(i, d) or any(self.same(d["source"]["author"], x, i) for x in asked)

    def good_for(self, i, d, x):
        """True, a set of paths, or False: what an approval is good for of a need (D-4, D-10, D-11)."""
        s, a, m = d["source"], d["source"]["author"], self.rec.meta["proposer"]
        shell = s["kind"] in ("local", "rpc") and (self.same(a, m, i, False) or m["id"].startswith("local:"))
        secret = x["kind"] == "secrets_override"
        if (d["fingerprint"] != x["fingerprint"] or x.get("signed") and "signature" not in s
                or secret and self.pol["secrets"]["mode"] == "refuse"
                or self.own(i, d) and (secret or not self.pol["approvals"]["allow_author"] and not shell)):
            return False
        users, teams, owners = x.get("users", []), x.get("teams", []), x.get("owners", False)
        anybody = not (users or teams or owners) or self.local and (teams or owners)  # D-20
        in_team, owns = self.standing.get("teams") or {}, self.standing.get("owners") or {}
        if anybody or listed(users, a) or any(a["id"] in (in_team.get(t) or []) for t in teams):
            return True
        return owners and {p for p in x["paths"] if a["id"] in (owns.get(p) or [])}

    def persons(self, votes):  # how many people there are among the authors (D-11, D-12)
        groups = []
        for i, d, _ in votes:
            a = d["source"]["author"]
            joined = [g for g in groups if any(self.same(a, b, i) or self.same(b, a, j) for j, b in g)]
            groups = [g for g in groups if g not in joined] + [sum(joined, [(i, a)])]
        return len(groups)
