"""Canonical JSON (J-1 to J-12) and the shape of records (J-13 to J-15).

A number is read as int if its double is a whole number below 1e21, else as float.
"""
import base64
import hashlib
import json
import re
import sys

sys.setrecursionlimit(20000)

class Refused(Exception):
    """A requirement does not hold. rule is what it is reported under."""

    def __init__(self, text, rule=""):
        super().__init__(text)
        self.rule = rule

def attempt(f, *args):
    """What f returns, or None if it refuses."""
    try:
        return f(*args)
    except Refused:
        return None

def need(ok, text, rule=""):
    if not ok:
        raise Refused(text, rule)

TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.S)

def _number(text):  # J-5
    f = float(text)
    need(f not in (float("inf"), float("-inf")), "J-5: number too large")
    return int(f) if f == int(f) and abs(f) < 1e21 else f

def _object(pairs):  # J-3
    out = dict(pairs)
    need(len(out) == len(pairs), "J-3: key twice")
    return out

def _constant(text):
    raise Refused("J-1: " + text)

def parse(data):
    """The value of a document (J-1 to J-6)."""
    try:
        text = bytes(data).decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("J-2: not UTF-8")
    depth = 0
    for m in TOKENS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(m.group(), 0)
        need(depth <= 1000, "J-4: nested too deep")
    try:
        return json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_constant, object_pairs_hook=_object)
    except (ValueError, RecursionError) as e:
        raise Refused("J-1: %s" % e)

def utf16(text):
    """Key of UTF-16 order."""
    return text.encode("utf-16-be", "surrogatepass")

SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}

def _string(s):  # J-8
    return '"' + re.sub('["\\\\\x00-\x1f\ud800-\udfff]', lambda m: SHORT.get(m.group()) or "\\u%04x" % ord(m.group()), s) + '"'

def number(v):  # J-9
    v = float(v)
    if v == 0:
        return "0"
    sign, v = ("-", -v) if v < 0 else ("", v)
    mantissa, _, exponent = ("%r" % v).partition("e")
    whole, _, part = mantissa.partition(".")
    part = "" if part == "0" else part
    digits = (whole + part).lstrip("0")
    n = len(whole) + int(exponent or 0)  # the point is behind n digits
    if whole == "0":
        n -= 1 + len(part) - len(part.lstrip("0"))
    digits = digits.rstrip("0")
    k = len(digits)
    if k <= n <= 21:
        out = digits + "0" * (n - k)
    elif 0 < n <= 21:
        out = digits[:n] + "." + digits[n:]
    elif -6 < n <= 0:
        out = "0." + "0" * -n + digits
    else:
        e = n - 1
        out = digits[0] + ("." + digits[1:] if k > 1 else "") + "e" + ("+" if e > 0 else "-") + str(abs(e))
    return sign + out

def _write(v, out):
    if v is None or v is True or v is False:
        out.append({None: "null", True: "true", False: "false"}[v])
    elif isinstance(v, str):
        out.append(_string(v))
    elif isinstance(v, (int, float)):
        out.append(number(v))
    elif isinstance(v, list):
        for n, e in enumerate(v):
            out.append("," if n else "[")
            _write(e, out)
        out.append("]" if v else "[]")
    else:
        for n, k in enumerate(sorted(v, key=utf16)):
            out.append(("," if n else "{") + _string(k) + ":")
            _write(v[k], out)
        out.append("}" if v else "{}")

def canonical(v):
    """Canonical bytes (J-7 to J-9), without an LF."""
    out = []
    _write(v, out)
    return "".join(out).encode("utf-8")

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

def derived_id(prefix, v):  # J-12
    return prefix + "_" + sha(line_of(v))[:16]

# Records. A shape is written as in the tables: "name type" for each member, with ? behind the
# name of what may be left out where it is empty, and ?? where an empty value need not be left out.
# Types: text, bool, int, object, any, T[], map(T), T|null, or the name of a shape.

SHAPES = {}

def shape(name, members):
    table = {}
    for part in members.split(","):
        if part.strip():
            n, t = part.split()
            table[n.rstrip("?")] = (t, n.endswith("?"), n.endswith("??"))
    SHAPES[name] = table

def has_surrogate(s):
    return re.search("[\ud800-\udfff]", s) is not None

def typed(v, t, where):
    if t.endswith("|null"):
        ok = v is None or typed(v, t[:-5], where)
    elif t == "text":
        ok = isinstance(v, str) and not has_surrogate(v)
    elif t == "bool":
        ok = isinstance(v, bool)
    elif t == "int":
        ok = isinstance(v, int) and not isinstance(v, bool) and -2**63 <= v < 2**63
    elif t == "object":
        ok = isinstance(v, dict)
    elif t == "any":
        ok = True
    elif t.endswith("[]"):
        ok = v is None or isinstance(v, list) and all(typed(e, t[:-2], where) for e in v)
    elif t.startswith("map("):
        ok = v is None or isinstance(v, dict) and all(not has_surrogate(k) and typed(e, t[4:-1], where) for k, e in v.items())
    else:
        record(v, t, where)
        ok = True
    need(ok, "%s: not of type %s" % (where, t))
    return True

def empty(v):
    return v is None or v is False or v == "" or v == [] or v == {} or (v == 0 and not isinstance(v, bool))

def record(v, name, where="", rule=""):
    """Refuses what is not a record of this shape (J-13 to J-15)."""
    try:
        need(isinstance(v, dict), where + " J-13: not an object")
        table = SHAPES[name]
        for k in v:
            need(k in table, "%s J-13: member %s of %s is not known" % (where, ascii(k), name))
        for k, (t, optional, keeps) in table.items():
            if k not in v:
                need(optional, "%s J-14: member %s of %s is missing" % (where, k, name))
                continue
            need(not optional or keeps or not empty(v[k]), "%s J-14: empty member %s" % (where, k))
            typed(v[k], t, "%s %s.%s" % (where, name, k))
        return True
    except Refused as e:
        raise Refused(str(e), e.rule or rule)

def is_record(v, name):
    return attempt(record, v, name) is True

HASH = re.compile(r"sha256:[0-9a-f]{64}\Z")
HEX64 = re.compile(r"[0-9a-f]{64}\Z")
HEX40 = re.compile(r"[0-9a-f]{40}\Z")

# Values in an input of a vector.

def to_bytes(v):
    if isinstance(v, str):
        try:
            return v.encode("utf-8")
        except UnicodeEncodeError:
            raise Refused("Bytes with a lone surrogate")
    need(isinstance(v, dict) and set(v) == {"base64"} and isinstance(v["base64"], str), "not Bytes")
    return unbase64(v["base64"])

def unbase64(s):
    try:
        out = base64.b64decode(s, validate=True)
    except ValueError:
        raise Refused("not base64")
    need(base64.b64encode(out).decode() == s, "base64 in another form")
    return out

def to_path(v):
    need(isinstance(v, str), "not a Path")
    return unbase64(v[7:]) if v.startswith("base64:") else to_bytes(v)

def to_tree(v):
    """Path (bytes) -> (mode, bytes)."""
    need(isinstance(v, dict), "not a Tree")
    out = {}
    for p, f in v.items():
        mode = "100644"
        if isinstance(f, dict) and "mode" in f:
            need(set(f) == {"mode", "content"} and re.match(r"[0-7]{6}\Z", str(f["mode"])), "not a File")
            mode, f = f["mode"], f["content"]
        path = to_path(p)
        need(path not in out, "a Path twice")
        out[path] = (mode, to_bytes(f))
    return out

def from_bytes(b):
    try:
        return b.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(b).decode()}
