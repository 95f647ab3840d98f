"""Globs (Y-30 to Y-34) and CODEOWNERS (Y-50 to Y-52)."""
import re
import string

import ucd
from cjson import Refused, need

_of = {"alnum": string.ascii_letters + string.digits, "alpha": string.ascii_letters, "blank": " \t",
       "cntrl": "".join(map(chr, [*range(32), 127])), "digit": string.digits, "graph": "".join(map(chr, range(33, 127))),
       "lower": string.ascii_letters, "upper": string.ascii_letters, "print": "".join(map(chr, range(32, 127))),
       "punct": string.punctuation, "space": " \t\n\r\f\v", "xdigit": string.hexdigits}
_same = {}  # simple case folding -> the characters that have it

def same_case(ch):
    if not _same:
        for c in range(0x20000):
            _same.setdefault(ucd.simple_fold(chr(c)), set()).add(chr(c))
    return _same.get(ucd.simple_fold(ch), {ch})

class Class:
    def __init__(self, others, ranges, folded):
        self.others, self.ranges, self.folded = others, ranges, folded

    def has(self, ch):  # Y-34
        there = any(a <= c <= b for c in (same_case(ch) if self.folded else (ch,)) for a, b in self.ranges)
        return there != self.others

MEMBER = re.compile(r"\[:([^\]]*):\]|(?:\\(.)|([^\\]))(?:-(?!\])(?:\\(.)|([^\\])))?", re.S)

def component(c, folded):
    """Tokens of a component (Y-32): "*", "?", a Class, or a text of one character behind "="."""
    out, run, i = [], "", 0

    def flush():
        out.extend("=" + x for x in (ucd.fold(run) if folded else run))
        return ""

    while i < len(c):
        ch, i = c[i], i + 1
        if ch == "\\":
            need(i < len(c), "Y-30: backslash")
            run, i = run + c[i], i + 1
        elif ch in "*?":
            run = flush()
            out.append(ch)
        elif ch == "[":
            run = flush()
            others = c[i:i + 1] in ("!", "^")
            i += others
            ranges = []
            while c[i:i + 1] != "]" or not ranges:
                m = MEMBER.match(c, i)
                need(m, "Y-30: class not closed, or a backslash")
                i, name = m.end(), m.group(1)
                low, high = m.group(2) or m.group(3), m.group(4) or m.group(5)
                need(name in _of if name is not None else low <= (high or low), "Y-30: unknown name, or a range that goes down")
                ranges += [(x, x) for x in _of[name]] if name is not None else [(low, high or low)]
            i += 1
            out.append(Class(others, ranges, folded))
        else:
            run += ch
    flush()
    return out

def fits(tokens, text):
    """Whether the tokens match all of the text; the last star alone needs to be tried again."""
    t = i = 0
    star = back = -1
    while i < len(text):
        tok = tokens[t] if t < len(tokens) else None
        if tok == "*":
            star, back = t, i
            t += 1
        elif tok is not None and (tok == "?" or (tok.has(text[i]) if isinstance(tok, Class) else tok[1:] == text[i])):
            t, i = t + 1, i + 1
        elif star >= 0:
            back += 1
            t, i = star + 1, back
        else:
            return False
    return all(x == "*" for x in tokens[t:])

class Glob:
    def __init__(self, text, folded=True):  # Y-30
        need(1 <= len(text) <= 256 and text[0] not in "!#" and text[-1] != " ", "Y-30: length, beginning or end")
        self.folded, self.dirs = folded, text.endswith("/")
        inner = text[:-1] if self.dirs else text
        anchored = "/" in inner
        parts = (inner[1:] if inner[:1] == "/" else inner).split("/")
        need(all(p not in ("", ".", "..") for p in parts), "Y-30: component")
        self.parts = [None if p == "**" else component(p, folded) for p in parts]
        if not anchored:  # Y-31
            self.parts.insert(0, None)
            if self.parts == [None, None]:
                self.parts = [None]

    def whole(self, comps):
        """Whether it matches a path of these components."""
        now = {0}  # how many components are used up
        for n, part in enumerate(self.parts):
            if part is None:
                low = min(now, default=len(comps)) + (n == len(self.parts) - 1)
                now = set(range(low, len(comps) + 1)) if now else now
            else:
                now = {i + 1 for i in now if i < len(comps) and fits(part, comps[i])}
        return len(comps) in now

    def matches(self, path):  # Y-33
        comps = (ucd.fold(path) if self.folded else path).split("/")
        return any(self.whole(comps[:n]) for n in range(1, len(comps) + (not self.dirs)))

WHITE = " \t\r\v\f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200b)))
OWNER = re.compile(r"@[A-Za-z0-9_-]+|@[A-Za-z0-9-]+/[A-Za-z0-9_-]+|[A-Za-z0-9._%/+-]+@[A-Za-z0-9._%+-]+")

def owners(data, path):
    need(len(data) <= 3000000, "Y-50: too long")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("Y-50: not UTF-8")
    text = text[1:] if text.startswith("\ufeff") else text
    found = []
    for line in text.split("\n"):
        need(len(line.encode()) <= 60000, "Y-50: line too long")
        line = line.strip(WHITE)
        pattern = re.match(r"(?:\\[ \t]|[^ \t])*", line).group()  # Y-51
        names = line[len(pattern):].split("#")[0].replace("\t", " ").split(" ")
        names = [n for n in names if n]
        bare = re.sub(r"\\[\[\]]", "", pattern)
        if not pattern or pattern[0] in "#!" or pattern.startswith("\\#") or "***" in pattern or re.search(r"[\[\]]", bare):
            continue
        if not all(OWNER.fullmatch(n) for n in names):
            continue
        patterns = [pattern]
        if "#" in pattern or bare != pattern:  # Y-52
            names = []
            patterns.append(pattern.split("#")[0])
        if any(_owns(p, path) for p in patterns):
            found = names
    return found

def _owns(pattern, path):
    try:
        g = Glob(pattern, folded=False)
    except Refused:
        return False
    comps = path.split("/")
    return g.whole(comps) and not g.dirs if pattern.endswith("/*") else g.matches(path)
