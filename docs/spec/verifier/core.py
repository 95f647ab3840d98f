"""Characters (U-1 to U-5), times, canonical JSON (J-1 to J-12), shapes of records (J-13 to J-15) and their growth.

Categories are those of Unicode 15.0.0, in unicode-15.0.0.txt, whatever version this Python has. Version 14.0.0, of
Python 3.11, lacks characters of 15.0.0: none has a case mapping or a canonical decomposition, the table combine has
those that do, and their compatibility decompositions are letters that no requirement can tell from them.
"""
import base64, bisect, datetime, decimal, fractions, functools, hashlib, itertools
import json, os, pathlib, re, subprocess, sys, unicodedata, zlib

HERE = pathlib.Path(__file__).parent
RUNS = re.findall("([A-Z][a-z])([0-9]+)", (HERE / "unicode-15.0.0.txt").read_text())
ENDS = list(itertools.accumulate(int(n) for _, n in RUNS))
STANDS = {122: "\u0ec8", 9: "\u0acd", 230: "\u0363", 232: "\u031a", 220: "\u0353", 0: "\ue000"}
EPOCH, SECOND = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc), datetime.timedelta(seconds=1)
ENV = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": os.devnull,
       "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
VERSION, MAJOR = (1, 0), {"decision": 2}  # that this verifier reads (V2), of schemas 1 where it is not here (V11)
sys.setrecursionlimit(20000)

class Refused(Exception):
    """A requirement does not hold. rule is what it is reported under."""

    def __init__(self, text, rule=""):
        super().__init__(text)
        self.rule = rule

# What is not of its shape is refused, too.
WRONG = (Refused, KeyError, TypeError, AttributeError, IndexError, ValueError, zlib.error)

def need(ok, text, rule=""):
    if not ok:
        raise Refused(text, rule)
def attempt(f, *args):  # what f returns, or None if it refuses, but for what is newer, of which nobody can tell (V3)
    try:
        return f(*args)
    except WRONG as e:
        need(getattr(e, "rule", "") != "NEWER", str(e), "NEWER")

class Findings:
    """problems: (rule, text) of all that is wrong."""

    def __init__(self):
        self.problems = []
    def bad(self, rule, text):
        self.problems.append((rule, text))
    def expect(self, ok, rule, text):
        if not ok:
            self.bad(rule, text)
    def run(self, rule, check, *args):  # what a check returns; what it refuses is reported, under its rule or this one
        try:
            return check(*args)
        except WRONG as e:
            self.bad(getattr(e, "rule", "") or rule, "%s: %r" % (check.__name__, e))

def execute(*args, data=b"", rule="BUNDLE"):  # what git or ssh-keygen writes; refused if it fails
    p = subprocess.run(args, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
    need(p.returncode == 0, " ".join(args[:3]) + " refuses", rule)
    return p.stdout
def form(name):
    return FORMS[name][1]
@functools.lru_cache(None)
def category(ch):  # U-1
    return RUNS[bisect.bisect_right(ENDS, ord(ch))][0]
def printable(ch):  # U-3
    return ch == " " or category(ch)[0] in "LMNPS"
def visible(ch):  # U-3
    return " " <= ch <= "~" or printable(ch) and not form("hidden").match(ch) and ch != "\ufffc"
def one_line(text, n):  # U-4
    return len(text) <= n and "\ufffd" not in text and all(map(visible, text)) and text == re.sub("^ | $|  ", "", text)
def as_line(text, n):  # H-22
    text = " ".join("".join(c if visible(c) and c != "\ufffd" else " " for c in text).split())
    return text if len(text) <= n else text[:n - 1] + "\u2026"
def normalize(form, text):  # Python's, of a text in which others of the same class stand for what it may not know
    combine = [TABLES["combine"].get("%04X" % ord(c), 0) for c in text]
    known = [c if category(c) != "Cn" and not k else STANDS[k] for c, k in zip(text, combine)]
    queues = {s: iter([c for c, k in zip(text, known) if k == s]) for s in STANDS.values()}
    return "".join(next(queues[c]) if c in queues else c for c in unicodedata.normalize(form, "".join(known)))
def fold(text):  # U-5
    if text.isascii():
        return text.lower()
    return normalize("NFC", "".join(c if category(c) == "Cn" else c.casefold() for c in normalize("NFD", text)))
def rfc3339(text):  # seconds since 1970
    m = form("rfc3339").fullmatch(text)
    whole = (datetime.datetime.fromisoformat(m.group(1) + m.group(3).replace("Z", "+00:00")) - EPOCH) // SECOND
    return whole + fractions.Fraction("0" + (m.group(2) or ".0"))
def read_number(text):  # J-5, J-9: an int is the decimal of the canonical form, without point and exponent
    f = float(text)
    need(abs(f) != float("inf"), "J-5: number too large")
    return int(decimal.Decimal(repr(f))) if f == int(f) and abs(f) < 1e21 else f
def read_object(pairs):  # J-3
    need(len(dict(pairs)) == len(pairs), "J-3: key twice")
    return dict(pairs)

def parse(data):  # the value of a document (J-1 to J-6)
    text = bytes(data).decode("utf-8")
    if text.count("[") + text.count("{") > 1000:  # J-4
        tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text, re.S)
        depths = itertools.accumulate((t in "[{") - (t in "]}") for t in tokens)
        need(max(depths, default=0) <= 1000, "J-4: nested too deep")
    numbers = {"parse_int": read_number, "parse_float": read_number, "parse_constant": int}
    return json.loads(text, object_pairs_hook=read_object, **numbers)

def utf16(text):  # key of UTF-16 order
    return text.encode("utf-16-be", "surrogatepass")
def by_bytes(texts):
    return sorted(set(texts), key=lambda s: s.encode("utf-8", "surrogatepass"))

def write(v):  # canonical text but for lone surrogates (J-7 to J-9)
    if isinstance(v, dict):
        return "{%s}" % ",".join([write(k) + ":" + write(v[k]) for k in sorted(v, key=utf16)])
    if isinstance(v, list):
        return "[%s]" % ",".join([write(e) for e in v])
    if isinstance(v, str):
        return json.encoder.encode_basestring(v)
    if not isinstance(v, float):
        return json.dumps(v)
    return format(decimal.Decimal(repr(v)), "f") if 1e-6 <= abs(v) < 1e21 else re.sub("e([+-])0*", r"e\1", repr(v))

def line_of(v):
    return re.sub("[\ud800-\udfff]", lambda m: "\\u%04x" % ord(m.group()), write(v)).encode("utf-8") + b"\n"
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

# Of forms.txt and shapes.txt: tables; forms, name -> (most characters or None, expression); shapes, record -> member ->
# (type, number of question marks, default or None, rule of Y-25 or "-").
FORMS, SHAPES, TABLES = {}, {}, {}
for line in re.sub(r"\n +", " ", (HERE / "forms.txt").read_text() + (HERE / "shapes.txt").read_text()).split("\n"):
    name, _, rest = line.removeprefix("= ").removeprefix("& ").partition(" ")
    if line[:2] == "& ":
        TABLES[name] = json.loads(rest)
    elif line[:2] == "= ":
        most, _, text = rest.partition(" ")
        text = text.encode("latin-1") if most == "b" else text
        FORMS[name] = (int(most) if most.isdigit() else None, re.compile(text, re.S))
    elif name[-1:] == ":":
        SHAPES[name[:-1]] = {}
        for words in map(str.split, rest.split(", ")):
            member, of, default, rule = (*words, "-", "-")[:4]
            default = None if default == "-" else json.loads(default)
            SHAPES[name[:-1]][member.rstrip("?")] = (of, member.count("?"), default, rule)
PLAIN = {  # types that have a value as it is (J-15)
    "bool": lambda v, _: isinstance(v, bool), "object": lambda v, _: isinstance(v, dict),
    "list": lambda v, _: isinstance(v, list), "int": lambda v, _: type(v) is int and -2**63 <= v < 2**63,
    "number": lambda v, of: type(v) is int and int(of.split("..")[0]) <= v <= int(of.split("..")[1]),
    "lines": lambda v, n: len(v.encode()) <= int(n) and all(map(visible, v.replace("\n", ""))),
    "line": lambda v, n: isinstance(v, str) and one_line(v, int(n)),
    "schema": lambda v, name: v == "countersign/%s/%d" % (name, MAJOR.get(name, 1)),
    "time": lambda v, form: take(v, form) == v and rfc3339(v) is not None}
# What the pages add: other types, a function of the value and of what stands behind a colon; what else holds of a
# record; what a text stands for in its place.
TYPES, CHECKS, SHORT = {}, {}, {}

def take(v, t):  # what is kept of a value of type t; refused if it is of another (J-15, Y-5)
    name, _, of = t.partition(":")
    if t in FORMS:
        most, form = FORMS[t]
        need(isinstance(v, str) and form.fullmatch(v), "not " + t)
        need(most is None or len(v) <= most and all(map(visible, v)), "too long for %s, or not visible" % t)
    elif t[0] == '"':
        need(isinstance(v, str) and v in t[1:-1].split("/"), "not one of " + t)
    elif t in SHAPES:
        return members(v, t)
    elif v is None and t.endswith(("|null", "[]", ")")):
        return None
    elif t.endswith("|null"):
        return take(v, t[:-5])
    elif t.endswith("[]"):
        return [take(e, t[:-2]) for e in take(v, "list")]
    elif t.startswith("map("):
        return {take(k, "text"): take(e, t[4:-1]) for k, e in v.items()}
    elif name in TYPES:
        return TYPES[name](v, of)
    else:
        need(PLAIN[name](v, of), "not " + t)
    return v

def members(v, name):  # J-13, J-14, Y-4, Y-6
    v = SHORT[name](v) if isinstance(v, str) and name in SHORT else v
    need(isinstance(v, dict), "J-13: %s is no object" % name)
    table, out = SHAPES[name], {}
    if "schema" in table or name in ("event", "ledger"):  # V5 to V7
        check_newer(v, name)
        need("extra" not in v or isinstance(v["extra"], dict) and v["extra"], "V6: extra")
        out = {k: v[k] for k in ("extra", "needs_version") if k in v}
    need(not set(v) - set(table) - set(out), "J-13: %s has an unknown member" % name)
    for k, (t, marks, default, _) in table.items():
        need(k in v or marks or default is not None, "J-14: %s has no %s" % (name, k))
        if k in v or not marks:
            kept = take(v.get(k, default), "schema:" + name if t == "schema" else t)
            if marks != 1 or (kept if default is None else kept != default):
                out[k] = kept
    need(name not in CHECKS or CHECKS[name](out), "what else holds of " + name)
    return out

def record(v, name):  # refuses what is not a record of this shape, as it is written
    need(members(v, name) == v, "J-14: a member of %s is empty" % name)
    return v
def version(text):  # V1
    need(re.fullmatch(r"[1-9][0-9]*\.(0|[1-9][0-9]*)", text), "V1: no version")
    return tuple(map(int, text.split(".")))

def check_newer(v, name=""):  # V7, V11
    if "needs_version" in v:
        needs = version(v["needs_version"])
        need(needs > (1, 0), "V7: needs_version")
        need(needs <= VERSION, "written by a newer countersign, needs at least %d.%d" % needs, "NEWER")
    m = re.fullmatch("countersign/%s/([1-9][0-9]*)" % name, str(v.get("schema")))
    need(not m or int(m.group(1)) <= MAJOR.get(name, 1), "V11: written by a newer countersign", "NEWER")
