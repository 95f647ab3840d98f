"""Characters (U-1 to U-5), canonical JSON (J-1 to J-12), records (J-13 to J-15), how they grow (V1 to V11).

Categories are those of Unicode 15.0.0, in unicode-15.0.0.txt, whatever version this Python has: what it knows
beyond is unassigned here. Version 14.0.0, of Python 3.11, lacks characters of 15.0.0. None of them has a case
mapping or a canonical decomposition; CLASSES has those that combine, and their compatibility decompositions
are letters that no requirement can tell from them.
"""
import base64
import bisect
import decimal
import functools
import hashlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import unicodedata

HERE = pathlib.Path(__file__).parent


def page(name):
    """A page of the specification, for tables that are read from it."""
    return (HERE.parent / (name + ".md")).read_text()


RUNS = re.findall("([A-Z][a-z])([0-9]+)", (HERE / "unicode-15.0.0.txt").read_text())
ENDS = list(itertools.accumulate(int(n) for _, n in RUNS))
CLASSES = {0x0ECE: 122, 0x11F41: 9, 0x11F42: 9, 0x1E08F: 230, 0x1E4EC: 232, 0x1E4ED: 232,
           0x1E4EE: 220, 0x1E4EF: 220, 0x10EFD: 220, 0x10EFE: 220, 0x10EFF: 220}
HIDDEN = re.compile(  # U-2
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000\U000e0002-\U000e001f\U000e0080-\U000e00ff\U000e0100-\U000e01ef\U000e01f0-\U000e0fff]")
BLANK = "\u2800\uFFFC\U00016FE4\U00013441\U00013442\U0001D159"
sys.setrecursionlimit(20000)


class Refused(Exception):
    """A requirement does not hold. rule is what it is reported under."""

    def __init__(self, text, rule=""):
        super().__init__(text)
        self.rule = rule


# What is not of its shape is refused, too.
WRONG = (Refused, KeyError, TypeError, AttributeError, IndexError, ValueError)


def need(ok, text, rule=""):
    if not ok:
        raise Refused(text, rule)


def attempt(f, *args):
    """What f returns, or None if it refuses, but for what is newer, of which nobody can tell (V3)."""
    try:
        return f(*args)
    except WRONG as e:
        if getattr(e, "rule", "") == "NEWER":
            raise
        return None


class Findings:
    """problems: (rule, text) of all that is wrong."""

    def __init__(self):
        self.problems = []

    def bad(self, rule, text):
        self.problems.append((rule, text))

    def run(self, rule, check, *args):
        """What a check returns. What it refuses is reported under its rule, or else this one."""
        try:
            return check(*args)
        except WRONG as e:
            self.bad(getattr(e, "rule", "") or rule, "%s: %r" % (check.__name__, e))


@functools.lru_cache(None)
def category(ch):  # U-1
    return RUNS[bisect.bisect_right(ENDS, ord(ch))][0]


def assigned(ch):
    return category(ch) != "Cn"


def printable(ch):  # U-3
    return ch == " " or category(ch)[0] in "LMNPS"


def visible(ch):  # U-3
    return " " <= ch <= "~" or printable(ch) and not HIDDEN.match(ch) and ch not in BLANK


def one_line(text, n):  # U-4
    return (len(text) <= n and all(visible(c) and c != "\ufffd" for c in text)
            and text == text.strip(" ") and "  " not in text)


def normalize(form, text):
    """Each run of characters that are assigned; others have no decomposition, and none goes over them."""
    runs = [(known, "".join(run)) for known, run in itertools.groupby(text, assigned)]
    return "".join(unicodedata.normalize(form, run) if known else run for known, run in runs)


def combining(ch):
    return CLASSES.get(ord(ch)) or (unicodedata.combining(ch) if assigned(ch) else 0)


def nfd(text):
    """With canonical order again, by the classes of 15.0.0: a stable sort of each run that combines."""
    runs = itertools.groupby(normalize("NFD", text), lambda c: combining(c) > 0)
    return "".join(c for marks, run in runs for c in (sorted(run, key=combining) if marks else run))


def nfc(text):
    out, starter, last = [], -1, 0
    for ch in nfd(text):
        c = combining(ch)
        if starter >= 0 and (starter == len(out) - 1 or last < c):
            both = normalize("NFC", out[starter] + ch)
            if len(both) == 1 and assigned(both):
                out[starter] = both
                continue
        out.append(ch)
        starter, last = len(out) - 1 if c == 0 else starter, c
    return "".join(out)


def fold(text):  # U-5
    if text.isascii():
        return text.lower()
    return nfc("".join(c.casefold() if assigned(c) else c for c in nfd(text)))


def read_number(text):  # J-5, J-9: an int is the decimal of the canonical form, without point and exponent
    f = float(text)
    need(abs(f) != float("inf"), "J-5: number too large")
    return int(decimal.Decimal(repr(f))) if f == int(f) and abs(f) < 1e21 else f


def read_object(pairs):  # J-3
    need(len(dict(pairs)) == len(pairs), "J-3: key twice")
    return dict(pairs)


def parse(data):
    """The value of a document (J-1 to J-6)."""
    try:
        text = bytes(data).decode("utf-8")
        if text.count("[") + text.count("{") > 1000:  # J-4
            tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text, re.S)
            depths = itertools.accumulate((t in "[{") - (t in "]}") for t in tokens)
            need(max(depths, default=0) <= 1000, "J-4: nested too deep")
        return json.loads(text, parse_int=read_number, parse_float=read_number, parse_constant=int,
                          object_pairs_hook=read_object)
    except (ValueError, RecursionError) as e:
        raise Refused("J-1, J-2: %s" % e)


def utf16(text):
    """Key of UTF-16 order."""
    return text.encode("utf-16-be", "surrogatepass")


def by_bytes(texts):
    return sorted(set(texts), key=lambda s: s.encode("utf-8", "surrogatepass"))


def write(v):
    """Canonical text but for lone surrogates (J-7 to J-9)."""
    if isinstance(v, dict):
        return "{%s}" % ",".join([write(k) + ":" + write(v[k]) for k in sorted(v, key=utf16)])
    if isinstance(v, list):
        return "[%s]" % ",".join([write(e) for e in v])
    if isinstance(v, str):
        return json.encoder.encode_basestring(v)
    if not isinstance(v, float):
        return json.dumps(v)
    if 1e-6 <= abs(v) < 1e21:
        return format(decimal.Decimal(repr(v)), "f")
    return re.sub("e([+-])0*", r"e\1", repr(v))


def canonical(v):
    """Canonical bytes, without an LF."""
    return re.sub("[\ud800-\udfff]", lambda m: "\\u%04x" % ord(m.group()), write(v)).encode("utf-8")


def line_of(v):
    return canonical(v) + b"\n"


def read_line(data):  # J-10
    v = parse(data)
    need(line_of(v) == data, "J-10: not a line in canonical form")
    return v


def sha(data):
    return hashlib.sha256(data).hexdigest()


def hashed(data):  # J-11
    return "sha256:" + sha(data)


def unbase64(s):
    out = base64.b64decode(s, validate=True)
    need(base64.b64encode(out).decode() == s, "base64 in another form")
    return out


def load_shapes(text):
    """shapes.txt: record -> member -> (type, marks, default or None, rule of Y-25 or "-")."""
    out = {}
    for line in re.sub(r"\n +", " ", text).split("\n"):
        name, colon, members = line.partition(": ")
        if colon and line[0] != "#":
            out[name] = {}
            for words in map(str.split, members.split(",")):
                member, of, default, rule = (*words, "-", "-")[:4]
                value = None if default == "-" else json.loads(default)
                out[name][member.rstrip("?")] = (of, member.count("?"), value, rule)
    return out


SHAPES = load_shapes((HERE / "shapes.txt").read_text())
SIMPLE = {  # J-15
    "text": "[^\ud800-\udfff]*", "text+": "[^\ud800-\udfff]+", "hash": "sha256:[0-9a-f]{64}",
    "commit": "[0-9a-f]{40}([0-9a-f]{24})?", "hex64": "[0-9a-f]{64}"}


def typed(v, t):
    """Whether v is of the type t (J-15)."""
    if t in SIMPLE or t[0] == '"':
        return isinstance(v, str) and (re.fullmatch(SIMPLE[t], v) if t in SIMPLE else v in t[1:-1].split("/"))
    if t == "int":
        return isinstance(v, int) and not isinstance(v, bool) and -2**63 <= v < 2**63
    if t in ("bool", "object"):
        return isinstance(v, bool if t == "bool" else dict)
    if t.endswith("|null"):
        return v is None or typed(v, t[:-5])
    if t.endswith("[]"):
        return v is None or isinstance(v, list) and all(typed(e, t[:-2]) for e in v)
    if t.startswith("map("):
        return v is None or isinstance(v, dict) and all(typed(k, "text") and typed(v[k], t[4:-1]) for k in v)
    return record(v, t) is v


VERSION = (1, 0)  # that this verifier reads (V2)


def version(text):  # V1
    need(re.fullmatch(r"[1-9][0-9]*\.(0|[1-9][0-9]*)", text), "V1: no version")
    return tuple(map(int, text.split(".")))


def check_needs(v):  # V7
    if "needs_version" in v:
        needs = version(v["needs_version"])
        need(needs > (1, 0), "V7: needs_version")
        need(needs <= VERSION, "written by a newer countersign, needs at least %d.%d" % needs, "NEWER")


def check_newer(v, name):  # V7, V11
    check_needs(v)
    m = re.fullmatch("countersign/%s/([1-9][0-9]*)" % name, str(v.get("schema")))
    need(not m or int(m.group(1)) <= number_of(name), "V11: written by a newer countersign", "NEWER")


def number_of(name):  # V11
    return 2 if name == "decision" else 1


def record(v, name):
    """Refuses what is not a record of this shape (J-13, J-14)."""
    need(isinstance(v, dict), "J-13: %s is no object" % name)
    table, known = SHAPES[name], set(SHAPES[name])
    if "schema" in table or name in ("event", "ledger"):  # V5 to V7, V11
        check_newer(v, name)
        need("extra" not in v or isinstance(v["extra"], dict) and v["extra"], "V6: extra")
        known |= {"extra", "needs_version"}
    need(set(v) <= known, "J-13: %s has an unknown member: %s" % (name, ascii(set(v) - known)))
    for k, (t, marks, *_) in table.items():
        need(k in v or marks, "J-14: %s has no %s" % (name, k))
        need(marks != 1 or v.get(k, True), "J-14: %s.%s is empty" % (name, k))
        if t == "schema":
            need(v[k] == "countersign/%s/%d" % (name, number_of(name)), "V11: schema of " + name)
        else:
            need(k not in v or typed(v[k], t), "J-15: %s.%s is not of its type" % (name, k))
    return v


ENV = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": os.devnull,
       "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


def execute(*args, data=b"", rule="BUNDLE"):
    """What git or ssh-keygen writes; refused if it fails."""
    p = subprocess.run(args, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
    need(p.returncode == 0, " ".join(args[:3]) + " refuses", rule)
    return p.stdout
