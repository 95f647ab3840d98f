"""The Policy: globs, CODEOWNERS, its file in YAML, canonical form, tightening and needs (Y).

A Policy is the object of its canonical form (Y-20). A glob becomes a regular expression: each run between two
stars, and each run of components between two **, takes the first place that it fits, and never another, as
what follows has only less to choose from. So they are atomic, and take no more than quadratic time.
"""
import functools, json, re

import core
from core import SHAPES, TABLES, attempt, by_bytes, form, need, take

@functools.lru_cache(None)
def cases():  # sets of characters with the same simple case folding (statuses C and S)
    same = {}
    for c in map(chr, range(0x20000)):
        forms = [f for f in (c.casefold(), c.lower(), c) if len(f) == 1 and core.category(c) != "Cn"]
        same.setdefault((forms + [c])[0], set()).add(c)
    return [s for s in same.values() if len(s) > 1]

def stars(runs, any_of):  # runs with a star between each two
    middle = ["(?>%s*?%s)" % (any_of, run) for run in runs[1:-1]]
    return "".join(runs[:1] + middle + [any_of + "*" + run for run in runs[1:][-1:]])

def char_class(others, members, folded):  # Y-32, Y-34
    ranges, classes = [], TABLES["classes"]
    for name, a, b, c, d in form("class_member").findall(members):
        named = classes.get(name) or (a or b) + (c or d or a or b)
        need(name in classes if name else named[0] <= named[1], "Y-30: unknown name, or a range that goes down")
        ranges += zip(named[::2], named[1::2])
    chars = [re.escape(a) + "-" + re.escape(b) for a, b in ranges]
    for same in cases() if folded else ():
        chars += map(re.escape, same if any(a <= x <= b for x in same for a, b in ranges) else ())
    return "(?!/)[%s%s]" % ("^" if others else "", "".join(chars))

def component(text, folded):  # Y-32
    runs, tokens = [""], list(form("glob_token").finditer(text))
    need("".join(m.group() for m in tokens) == text, "Y-30: class not closed, or a backslash")
    for plain, star, one, others, members in (m.groups("") for m in tokens):
        plain = re.sub(r"\\(.)", r"\1", plain, flags=re.S)
        plain = re.escape(core.fold(plain) if folded else plain)
        runs += [""] * bool(star)
        runs[-1] += char_class(others, members, folded) if members else "[^/]" if one else plain
    return stars(runs, "[^/]")

@functools.lru_cache(4096)
def glob(text, folded=True, below=True):
    """Whether the glob matches a path, as a function (Y-30, Y-31, Y-33); without below, not what is in it."""
    need(1 <= len(text) <= 256 and text[0] not in "!#" and text[-1] != " ", "Y-30: length, beginning or end")
    inner, dirs = text.removesuffix("/"), text.endswith("/")
    parts = inner.removeprefix("/").split("/")
    need(all(p not in ("", ".", "..") for p in parts), "Y-30: component")
    groups = [[]] if "/" in inner else [[], []]  # Y-31
    for p in parts:
        if p == "**":
            groups.append([])
        else:
            groups[-1].append(component(p, folded))
    out = "/".join(groups[0])
    for g in filter(None, groups[1:]):
        out += "/" * bool(out) + r"(?>(?:[^/]*/)*?%s(?=/|\Z))" % "/".join(g)
    if parts[-1] == "**":
        out += "/" * bool(out) + ".*"
    end = "/.*" if dirs else "(?:/.*)?"
    compiled = re.compile(out + (end if below else "(?!)" if dirs else ""), re.S)
    return lambda path: compiled.fullmatch(core.fold(path) if folded else path) is not None

WHITE = " \t\r\v\f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200b)))

def owners(data, path):
    found, lines = [], data.decode("utf-8").removeprefix("\ufeff").split("\n")
    need(len(data) <= 3000000 and all(len(line.encode()) <= 60000 for line in lines), "Y-50: too long")
    for line in (line.strip(WHITE) for line in lines):
        pattern = re.match(r"(?:\\[ \t]|[^ \t])*", line).group()  # Y-51
        names = [n for n in re.split("[ \t]", line[len(pattern):].split("#")[0]) if n]
        bare = re.sub(r"\\[\[\]]", "", pattern)
        passed = re.match(r"[#!]|\\#|\Z", pattern) or re.search(r"[\[\]]|\*\*\*", bare) or "***" in pattern
        special = "#" in pattern or bare != pattern  # Y-52
        patterns = [pattern, pattern.split("#")[0]] if special else [pattern]
        globs = [attempt(glob, p, False, not p.endswith("/*")) for p in patterns if not passed]
        if all(map(form("owner").fullmatch, names)) and any(g and g(path) for g in globs):
            found = [] if special else names
    return found

# The part of YAML that a Policy file may use (Y-1 to Y-3).

class Reader:
    """Reads self.text at self.at; there is a line before it, so that each line begins behind an LF."""

    def __init__(self, data):
        need(len(data) <= 65536, "Y-1: too long")
        text = "\n" + data.decode("utf-8").replace("\r\n", "\n") + "\n"
        need(all(c == "\n" or core.visible(c) for c in text) and not re.search("\n {64,}[^ \n#]", text), "Y-1, Y-2")
        self.text, self.at = form("yaml_last").sub("", form("yaml_first").sub("", text)), 0
        need(self.skip() and self.column() >= 0 and not form("yaml_mark").search(self.text), "Y-2: no document")

    def char(self):
        return self.text[self.at:self.at + 1]
    def take(self, name):
        m = form(name).match(self.text, self.at)
        self.at = m.end() if m else self.at
        return m
    def skip(self):  # whether what is passed over has the end of a line
        return "\n" in self.take("yaml_space").group()
    def column(self):  # -1 at the end
        return -1 if self.at >= len(self.text) else self.at - self.text.rfind("\n", 0, self.at) - 1
    def document(self):
        v = self.block()
        need(self.at >= len(self.text), "Y-2: something behind it")
        return v

    def block(self):  # A block node whose first character is here; goes to what follows it
        col, start, key = self.column(), self.at, None
        if form("yaml_dash").match(self.text, self.at):
            return self.sequence(col)
        if self.char() not in "[{":
            self.scalar(False)
            key, self.at = form("yaml_colon").match(self.text, self.at), start
        return self.mapping(col) if key else self.inline()

    def inline(self):
        v = self.flow(1) if self.char() in "[{" else self.scalar(False)
        need(self.skip(), "Y-2: something behind a value")
        return v

    def sequence(self, col):
        out = []
        while self.column() == col and self.take("yaml_dash"):
            dashes = self.text[self.text.rfind("\n", 0, self.at):self.at].count("-")
            self.skip()
            need(dashes <= 4 and self.column() > col, "Y-2, Y-3: too many dashes, or nothing")
            out.append(self.block())
        need(self.column() <= col, "Y-2: indentation")  # equal: the next key of a mapping that this is in
        return out

    def mapping(self, col):
        out = {}
        while self.column() == col:
            key = str(self.scalar(False))
            need(self.take("yaml_colon") and key != "<<" and key not in out, "Y-2: key")
            below, dash = self.skip(), form("yaml_dash").match(self.text, self.at)
            least = col + (not dash) if below else 0  # on the line of the key there is no block collection
            need(self.column() >= least and (below or not dash), "Y-2, Y-3: nothing, or a sequence behind a key")
            out[key] = self.block() if below else self.inline()
        need(self.column() < col, "Y-2: indentation")
        return out

    def gap(self, n):
        self.at += n
        need(not self.skip() or self.column() >= 0, "Y-2: not closed")

    def flow(self, depth, braces=False, no_colon=False):  # A flow collection, or a scalar in one
        opening = self.char()
        if opening not in "[{":
            return self.scalar(True, no_colon)
        need(depth <= 8, "Y-2: too deep")
        braces = braces or opening == "{"
        out, closing = ([], "]") if opening == "[" else ({}, "}")
        self.gap(1)
        while self.char() != closing:
            begin, quoted = self.at, self.char() in "\"'["
            v = self.flow(depth + 1, braces, braces)
            self.gap(0)
            if self.char() == ":":
                one_line = "\n" not in self.text[begin:self.at]
                need(not isinstance(v, (list, dict)) and (opening == "{" or one_line), "Y-2: key")
                need(quoted or self.text[self.at + 1] in " \n", "Y-2: colon")
                self.gap(1)
                key, v = str(v), self.flow(depth + 1, braces)
                need(opening == "[" or key != "<<" and key not in out, "Y-2: key")
                self.gap(0)
                out.append({key: v}) if opening == "[" else out.update({key: v})
            else:
                need(opening == "[", "Y-3: key without a value")
                out.append(v)
            need(self.char() in (",", closing), "Y-2: no comma")
            self.gap(self.char() == ",")
        self.at += 1
        return out

    def scalar(self, in_flow, no_colon=False):  # Y-3
        m = self.take("yaml_quoted")
        if m:
            single, double = m.groups()
            text = form("yaml_escape").sub(escape, double) if single is None else single.replace("''", "'")
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        m = self.take("yaml_flow" if in_flow else "yaml_block")
        need(m and not (no_colon and ":" in m.group()), "Y-2: quotes, indicator, nothing, or a colon in braces")
        text = m.group().rstrip(" ")
        self.at -= len(m.group()) - len(text)
        if re.fullmatch(r"true|false|0|-?[1-9][0-9]*|[1-9][0-9]*\.[0-9]+", text):
            return json.loads(text)  # V16: a float is of no type of Y-5, but perhaps a later version
        need(not form("yaml_other").fullmatch(text), "Y-3: " + text)
        return text

def escape(m):
    e = m.group(1)
    return chr(int(e[1:], 16)) if len(e) > 1 else TABLES["escapes"][e]  # ValueError, KeyError: Y-2

PERMISSIONS = SHAPES["Approvals"]["permission"][0][1:-1].split("/")
SIGNED = ["off", "accept", "require"]

def size(v, _):
    if isinstance(v, str):
        n, unit = re.fullmatch("([0-9]+) ?(.*)", take(v, "sized")).groups()
        v = int(n) * TABLES["units"][unit]
    return take(v, "number:1..1073741824")
def time_span(v, hours):
    n = int(take(v, "timed")[:-1]) * TABLES["seconds"][v[-1]]
    need(n <= int(hours) * 3600, "Y-6: time span too long")
    return "%ds" % n
def words(v, of):  # Y-20; Y-21: a recorded list with forge may be empty
    need((v or "forge" in of) and sorted(v) == sorted(set(v) & set(of.split("/"))), "Y-6: words")
    return [w for w in of.split("/") if w in take(v, "list")]
def each(v, of):  # Y-5; of commands no two have the same argv
    out = [take(e, of) for e in take(v, "list")]
    keys = [c["argv"] for c in out] if of in SHAPES else out
    need(len(set(map(core.line_of, keys))) == len(keys), "Y-5, Y-6: element twice")
    return out
def argv(v):  # Y-7
    return {"argv": take(v, "command").split()}
def runs(v):
    return v["argv"] and v["argv"][0] and (len(v["argv"]) == 1 or not v.get("shell"))

core.PLAIN["glob"] = lambda v, _: glob(take(v, "globbed"))
core.TYPES.update({
    "size": size, "span": time_span, "words": words, "each": each, "some": lambda v, of: each(v or None, of),
    "account": lambda v, _: take(str(v) if type(v) is int and v > 0 else v, "named")})
core.SHORT.update({"Secrets": lambda v: {"mode": v}, "Run": argv, "Command": argv})
core.CHECKS.update({"Run": runs, "Command": runs, "Bots": lambda v: len(v["paths"]) <= 1000,
                    "Protected": lambda v: ("paths" in v) != ("advice" in v), "Drift": bool,
                    "Policy": lambda v: len(v.get("tickets", [])) <= 20})

def build(v):  # the canonical form of what was read (Y-6, Y-20, Y-21)
    newer = isinstance(v, dict) and isinstance(v.get("version"), (int, float)) and v["version"] > 1
    need(not newer, "V16: written by a newer countersign", "NEWER")
    return take(v, "Policy")
def read_file(data):
    v = build(Reader(data).document())
    need(sum(len(r.get("paths", [])) for r in v.get("protected", [])) <= 1000, "Y-6: too many globs")
    need(v.get("explained", {}).get("decisions") != [], "Y-6: words")
    return v
def read_recorded(data):  # Y-21
    need(len(data) <= 4 * 2**20, "Y-21: too long")
    v = build(core.parse(data))
    need(core.line_of(v) == data, "Y-21: Y-20 writes it differently")
    return v
def signed(p):  # what approvals.signed comes to (Y-6)
    a = p["approvals"]
    return a.get("signed", "accept" if "keys" in a or a.get("forge_keys") else "off")
def union(x, y):
    return (x or []) + [v for v in y or [] if v not in (x or [])] or None
def run(x, y):
    mine, theirs = ({tuple(c["argv"]): c for c in v or []} for v in (x, y))
    others = [{**c, "network": False} for a, c in theirs.items() if a not in mine]
    others = [{k: v for k, v in c.items() if k != "env"} for c in others]
    return [tighten(c, theirs[a], "Run") if a in theirs else c for a, c in mine.items()] + others or None
def allow(x, y):
    return [tighten(c, d, "Command") for c in x or [] for d in y or []
            if (c["argv"], c.get("shell")) == (d["argv"], d.get("shell"))] or None
def decisions(x, y):
    if y is None or x is None and len(y) == 3:
        return x
    return [d for d in (["signed", "forge"] if x is None else x) if d in y]

HOW = {  # Y-25: how two values are one, where None is one that is left out
    "-": lambda x, y: x, "first": lambda x, y: x, "second": lambda x, y: x if y is None else y,
    "both": lambda x, y: x and y, "either": lambda x, y: x or y, "greater": max, "union": union, "run": run,
    "smaller": lambda x, y: min({x, y} - {None}, key=lambda v: int(str(v).rstrip("s")), default=None),
    "local": lambda x, y: max(x, y, key=[True, None, False].index), "allow": allow, "decisions": decisions,
    "shared": lambda x, y: [v for v in x or [] if v in (y or [])] or None,
    "named": lambda x, y: [v for v in ("proposer", "requester") if v in (x or []) + (y or [])] or None,
    "merge": lambda x, y: "human" if x == "auto" and y != "auto" else x,
    "bases": lambda x, y: union(x, y) if x else None, "stricter": lambda x, y: max(x, y, key=STRICTER.index)}
STRICTER = [w for s in SHAPES.values() for t, *_, rule in s.values() if rule == "stricter" for w in t[1:-1].split("/")]

def tighten(p, b, t="Policy"):
    out = {}
    for k, (of, marks, _, rule) in SHAPES[t].items():
        x, y = p.get(k), b.get(k)
        v = tighten(x or {}, y or {}, of) if of in SHAPES and rule == "-" else HOW[rule](x, y)
        if v is not None and (v != {} or not marks):
            out[k] = v
    if t == "Approvals" and SIGNED.index(b.get("signed", "off")) > SIGNED.index(signed({"approvals": p})):
        out["signed"] = b["signed"]
    return out

BUILT_IN = re.findall("`([^`]+)`", re.search(  # Y-40
    r"\n\| why \| globs \|\n((?:\|.*\n)+)", (core.HERE.parent / "policy.md").read_text()).group(1))

def rules(p):  # name, globs, rule (Y-41, Y-46)
    files = [("approvals.keys", p["approvals"].get("keys"))]
    files += [("explained.bots[%d].keys" % n, b["keys"]) for n, b in enumerate(p.get("explained", {}).get("bots", []))]
    files += [("witnesses.file", p.get("witnesses", {}).get("file"))]
    return [("built-in", BUILT_IN, {}), *[(name, ["/" + file], {}) for name, file in files if file],
            *[("protected[%d]" % n, r.get("paths", []), r) for n, r in enumerate(p.get("protected", []))]]

LEVELS = SHAPES["Advised"]["level"][0][1:-1].split("/")

def needs(p, paths, secret, said=()):  # Y-45 to Y-49; said: event, tool and level of what tools said
    everywhere = {"signed": True} if signed(p) == "require" else {}
    out = [{"kind": "fileChange", "prefix": "", "required": p["approvals"]["required"], **everywhere}]
    if secret:
        mine = {"signed": True} if "signed" in p["secrets"] else everywhere
        out.append({"kind": "secrets_override", "prefix": "secret:", "required": 1, **mine})
    groups = {}
    for name, globs, r in rules(p):
        hit, of = [x for x in paths if any(glob(g)(x) for g in globs)], r.get("advice", {"tool": None})
        met = [n for n, tool, level in said if tool == of["tool"] and LEVELS.index(level) >= LEVELS.index(of["level"])][-1:]
        if hit or met:
            hit = paths if met else hit
            who = {k: by_bytes(r[k]) for k in ("users", "teams") if k in r}
            who.update({"owners": True} if "owners" in r else {})
            n = groups.setdefault(str((who, met)), {"kind": "protected_path", "prefix": "protected:", "required": 0,
                                             "paths": [], "rules": [], **who, **everywhere,
                                                     **({"behind": met[0]} if met else {})})
            n.update(required=max(n["required"], r.get("required", 1)), paths=by_bytes(n["paths"] + hit),
                     rules=n["rules"] + [name], **({"signed": True} if "signed" in r else {}))
    return out + list(groups.values())
