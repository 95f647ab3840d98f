"""Canonical JSON (J-1 to J-12) and the shape of records (J-13 to J-15).

A number is read as int if its double is a whole number below 1e21, else as float.
"""
import base64
import hashlib
import json
import re
import sys
from decimal import Decimal

sys.setrecursionlimit(20000)

class Refused(Exception):
    """A requirement does not hold. rule is what it is reported under."""

    def __init__(self, text, rule=""):
        super().__init__(text)
        self.rule = rule

def need(ok, text, rule=""):
    if not ok:
        raise Refused(text, rule)

def attempt(f, *args):
    """What f returns, or None if it refuses."""
    try:
        return f(*args)
    except Refused:
        return None

def fail(text):
    raise Refused(text)

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
        except Refused as e:
            self.bad(e.rule or rule, str(e))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as e:  # what is not of its shape
            self.bad(rule, "%s: %r" % (check.__name__, e))

def _number(text):  # J-5
    f = float(text)
    need(abs(f) != float("inf"), "J-5: number too large")
    return int(f) if f == int(f) and abs(f) < 1e21 else f

def _object(pairs):  # J-3
    return dict(pairs) if len(dict(pairs)) == len(pairs) else fail("J-3: key twice")

def parse(data):
    """The value of a document (J-1 to J-6)."""
    depth = 0
    try:
        text = bytes(data).decode("utf-8")
        for m in re.finditer(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', text, re.S):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(m.group(), 0)
            need(depth <= 1000, "J-4: nested too deep")
        return json.loads(text, parse_int=_number, parse_float=_number, parse_constant=fail, object_pairs_hook=_object)
    except (ValueError, RecursionError) as e:
        raise Refused("J-1, J-2: %s" % e)

def utf16(text):
    """Key of UTF-16 order."""
    return text.encode("utf-16-be", "surrogatepass")

def by_bytes(texts):
    return sorted(set(texts), key=lambda s: s.encode("utf-8", "surrogatepass"))

SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}

def number(v):  # J-9
    if v == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(float(v))).normalize().as_tuple()
    d = "".join(map(str, digits))
    k, n = len(d), len(d) + exponent  # the point is behind n digits
    if k <= n <= 21:
        out = d + "0" * (n - k)
    elif 0 < n <= 21:
        out = d[:n] + "." + d[n:]
    elif -6 < n <= 0:
        out = "0." + "0" * -n + d
    else:
        out = d[0] + ("." + d[1:]) * (k > 1) + "e%+d" % (n - 1)
    return "-" * sign + out

def _write(v):  # J-7, J-8
    if isinstance(v, dict):
        return "{" + ",".join([_write(k) + ":" + _write(v[k]) for k in sorted(v, key=utf16)]) + "}"
    if isinstance(v, list):
        return "[" + ",".join([_write(e) for e in v]) + "]"
    if isinstance(v, str):
        return '"' + re.sub('["\\\\\x00-\x1f\ud800-\udfff]', lambda m: SHORT.get(m.group()) or "\\u%04x" % ord(m.group()), v) + '"'
    return number(v) if isinstance(v, (int, float)) and not isinstance(v, bool) else json.dumps(v)

def canonical(v):
    """Canonical bytes, without an LF."""
    return _write(v).encode("utf-8")

def line_of(v):
    return canonical(v) + b"\n"

def read_line(data):  # J-10
    v = parse(data)
    need(line_of(v) == data, "J-10: not a line in canonical form")
    return v

def sha(data):
    return hashlib.sha256(data).hexdigest()

def hashed(data):
    return "sha256:" + sha(data)

# Records. SHAPES has the tables of the pages, a shape a line: its name, a colon, and "name type" for each member, with ?
# behind the name of what is left out where it is empty, and ?? where an empty value need not be left out. A type is text,
# bool, int, object, T[], map(T), T|null, text+ (not empty), hash, hex40, hex64, one of a/b/c in quotes, =NAME (countersign/NAME/1), or a shape.

SHAPES = {}

def shapes(table):
    for line in re.sub(r"\n +", " ", table.strip()).split("\n"):
        name, _, members = line.partition(": ")
        SHAPES[name] = {m.split()[0].rstrip("?"): (m.split()[1], m.count("?")) for m in members.split(",")}

def is_text(v):
    return isinstance(v, str) and not re.search("[\ud800-\udfff]", v)

HASH, HEX40, HEX64 = (re.compile(f) for f in (r"sha256:[0-9a-f]{64}\Z", r"[0-9a-f]{40}\Z", r"[0-9a-f]{64}\Z"))
SIMPLE = {"text": is_text, "text+": lambda v: is_text(v) and v != "", "bool": lambda v: isinstance(v, bool),
          "int": lambda v: isinstance(v, int) and not isinstance(v, bool) and -2**63 <= int(number(v)) < 2**63,
          "object": lambda v: isinstance(v, dict), "hash": lambda v: is_text(v) and HASH.match(v),
          "hex40": lambda v: is_text(v) and HEX40.match(v), "hex64": lambda v: is_text(v) and HEX64.match(v)}

def typed(v, t, where):
    """Refuses what is not of the type t (J-15)."""
    if t in SIMPLE:
        return need(SIMPLE[t](v), "%s: not of type %s" % (where, t))
    if t[0] == '"':
        return need(isinstance(v, str) and v in t[1:-1].split("/"), "%s: not one of %s" % (where, t))
    if t[0] == "=":
        return need(v == "countersign/%s/1" % t[1:], "%s: not schema %s" % (where, t[1:]))
    if t.endswith("|null"):
        return v is None or typed(v, t[:-5], where)
    if t.endswith("[]"):
        need(v is None or isinstance(v, list), where + ": not an array")
        return [typed(e, t[:-2], where) for e in v or []]
    if t.startswith("map("):
        need(v is None or isinstance(v, dict) and all(map(is_text, v)), where + ": not a map")
        return [typed(e, t[4:-1], where) for e in (v or {}).values()]
    return record(v, t, where)

VERSION = (1, 0)  # that this verifier reads (V2)

def version(text):
    m = re.fullmatch(r"([1-9][0-9]*)\.(0|[1-9][0-9]*)", text)
    need(m, "V1: no version")
    return int(m.group(1)), int(m.group(2))

def check_needs(v):  # V7
    if "needs_version" in v:
        need(is_text(v["needs_version"]) and version(v["needs_version"]) > (1, 0), "V7: needs_version")
        need(version(v["needs_version"]) <= VERSION, "written by a newer countersign, needs at least " + v["needs_version"], "NEWER")

def grown(v, name, table):
    """V5 to V7, V11: the members that are left of a document that may grow; refused as NEWER if it needs a newer version."""
    known = table.get("schema", ("",))[0]
    if known[:1] == "=" or name in ("event", "decision", "ledger"):
        check_needs(v)
        m = re.fullmatch("countersign/%s/([1-9][0-9]*)" % (known[1:] if known[:1] == "=" else name), str(v.get("schema")))
        need(not m or int(m.group(1)) <= 1 + (name == "decision"), "V11: written by a newer countersign", "NEWER")
        need("extra" not in v or isinstance(v["extra"], dict) and v["extra"], "V6: extra")
        return set(v) - {"extra", "needs_version"}
    return set(v)

def record(v, name, where="", rule=""):
    """Refuses what is not a record of this shape (J-13, J-14)."""
    try:
        need(isinstance(v, dict), where + " J-13: not an object")
        table = SHAPES[name]
        members = grown(v, name, table)
        need(members <= set(table), "%s J-13: %s has an unknown member: %s" % (where, name, ascii(members - set(table))))
        for k, (t, marks) in table.items():
            need(k in v or marks, "%s J-14: member %s of %s is missing" % (where, k, name))
            empty = k in v and (v[k] in (None, "", [], {}) or not v[k])
            need(not empty or marks != 1, "%s J-14: empty member %s" % (where, k))
            if k in v:
                typed(v[k], t, "%s %s.%s" % (where, name, k))
        return v
    except Refused as e:
        raise Refused(str(e), e.rule or rule)

def is_record(v, name):
    return attempt(record, v, name) is not None

# Values in an input of a vector.

def to_bytes(v):
    if isinstance(v, str):
        return v.encode("utf-8") if is_text(v) else fail("Bytes with a lone surrogate")
    need(isinstance(v, dict) and set(v) == {"base64"} and isinstance(v["base64"], str), "not Bytes")
    return unbase64(v["base64"])

def unbase64(s):
    try:
        out = base64.b64decode(s, validate=True)
    except ValueError:
        raise Refused("not base64")
    return out if base64.b64encode(out).decode() == s else fail("base64 in another form")

def to_path(v):
    need(isinstance(v, str), "not a Path")
    return unbase64(v[7:]) if v.startswith("base64:") else to_bytes(v)

def to_tree(v):
    """Path (bytes) -> (mode, bytes)."""
    need(isinstance(v, dict), "not a Tree")
    out = {}
    for p, f in v.items():
        mode, content = (f["mode"], f.get("content")) if isinstance(f, dict) and "mode" in f else ("100644", f)
        need(isinstance(mode, str) and re.fullmatch("[0-7]{6}", mode) and to_path(p) not in out, "not a File, or a Path twice")
        out[to_path(p)] = (mode, to_bytes(content))
    return out

def from_bytes(b):
    try:
        return b.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(b).decode()}
