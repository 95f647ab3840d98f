"""SSHSIG, files of keys, statements and signed comments (S)."""
import base64
import calendar
import datetime
import hashlib
import re
import tempfile
from fractions import Fraction

import cjson
import gitstore
import ucd
from cjson import Refused, need
from globs import fits
from patch import patch_of

NAMESPACE = "countersign-decision@v2"

# Times: seconds since 1970.

def seconds(y, mo, d, h=0, mi=0, s=0):
    try:
        return calendar.timegm(datetime.datetime(y, mo, d, h, mi, s).timetuple())
    except ValueError:
        raise Refused("a time that does not exist")

RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", re.A)

def rfc3339(text):
    m = RFC3339.fullmatch(text)
    need(m, "not RFC 3339")
    t = seconds(*map(int, m.groups()[:6])) + Fraction("0" + (m.group(7) or ".0"))
    zone = m.group(8)
    if zone != "Z":
        h, mi = int(zone[1:3]), int(zone[4:])
        need(h < 24 and mi < 60, "not RFC 3339")
        t -= (h * 3600 + mi * 60) * (1 if zone[0] == "+" else -1)
    return t

def utc(t):
    d = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=t)
    return "%04d-%02d-%02dT%02d:%02d:%02dZ" % d.timetuple()[:6]

# Signatures are verified by ssh-keygen; what follows checks their form, where it is less strict. A checkpoint's
# Ed25519 signatures (H-43) are no SSHSIG, so ed25519 does them here.

CURVES = {  # digits of a coordinate in hex, p, b (S-22: the point is on the curve)
    "nistp256": (64, 2**256 - 2**224 + 2**192 + 2**96 - 1, 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B),
    "nistp384": (96, 2**384 - 2**128 - 2**96 + 2**32 - 1,
                 0xB3312FA7E23EE7E4988E056BE3F82D19181D9C6EFE8141120314088F5013875AC656398D8A2ED19D2A85C8EDD3EC2AEF),
    "nistp521": (132, 2**521 - 1, int("0051953EB9618E1C9A1F929A21A0B68540EEA2DA725B99B315F3B8B489918EF109E156193951EC7E937B"
                                      "1652C0BD3BB1BF073573DF883D2C34F1EF451FD46B503F00", 16))}
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

def _ed_add(q, r):  # extended coordinates
    a, b = (q[1] - q[0]) * (r[1] - r[0]), (q[1] + q[0]) * (r[1] + r[0])
    c, d = 2 * q[3] * r[3] * D, 2 * q[2] * r[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P

def _ed_times(k, q):
    out = (0, 1, 1, 0)
    while k:
        out, q, k = _ed_add(out, q) if k & 1 else out, _ed_add(q, q), k >> 1
    return out

def _ed_point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    x2 = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    need((x * x - x2) % P == 0 and (x or not sign), "Ed25519: not a point")
    x = P - x if x & 1 != sign else x
    return x, y % P, 1, x * y % P

def ed25519(key, message, signature):
    need(len(key) == 32 and len(signature) == 64 and int.from_bytes(signature[32:], "little") < L, "Ed25519: form")
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    a, base = _ed_point(key), _ed_point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    x, y, z, _ = _ed_add(_ed_times(int.from_bytes(signature[32:], "little"), base), _ed_times(k, (P - a[0], a[1], 1, P - a[3])))
    x, y = x * pow(z, -1, P) % P, y * pow(z, -1, P) % P
    need((y | (x & 1) << 255).to_bytes(32, "little") == signature[:32], "Ed25519: bad signature")

class Wire:
    """Types of RFC 4251."""

    def __init__(self, data):
        self.data = data

    def take(self, n):
        need(len(self.data) >= n, "S-21: too short")
        out, self.data = self.data[:n], self.data[n:]
        return out

    def string(self):
        return self.take(int.from_bytes(self.take(4), "big"))

    def mpint(self):  # S-24
        b = self.string()
        need(b and b[0] < 128 and b[0:1] != b"\0" or len(b) > 1 and b[0] == 0 and b[1] >= 128, "S-24: number")
        return int.from_bytes(b, "big")

    def end(self):
        need(not self.data, "S-24: something behind the last field")

SK = {"sk-ssh-ed25519@openssh.com": "ssh-ed25519", "sk-ecdsa-sha2-nistp256@openssh.com": "ecdsa-sha2-nistp256"}
KEY_TYPES = ["ssh-ed25519", "ssh-rsa", *("ecdsa-sha2-" + c for c in CURVES), *SK]

class Key:
    """A public key (S-22, S-24)."""

    def __init__(self, blob):
        w = Wire(blob)
        self.type = w.string().decode("latin-1")
        need(self.type in KEY_TYPES, "S-22: key type")
        self.plain = SK.get(self.type, self.type)
        self.fingerprint = "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
        if self.plain == "ssh-rsa":
            e, self.n = w.mpint(), w.mpint()
            need(2048 <= self.n.bit_length() <= 16384 and e % 2 and 3 <= e < 2**24, "S-22: RSA")
        elif self.plain == "ssh-ed25519":
            need(len(w.string()) == 32, "S-22: length")
        else:
            curve, point = w.string().decode("latin-1"), w.string().hex()
            need(self.plain == "ecdsa-sha2-" + curve, "S-22: curve")
            n, p, b = CURVES[curve]
            need(len(point) == 2 * n + 2 and point[:2] == "04", "S-22: point in another form")
            x, y = int(point[2:n + 2], 16), int(point[n + 2:], 16)
            need(x < p and y < p and (y * y - x**3 + 3 * x - b) % p == 0, "S-22: not on the curve")
        self.security = self.type in SK and w.string() is not None
        w.end()

    def check(self, blob):
        """The form of a signature (S-22 to S-24). Returns whether a security key verified the person."""
        w = Wire(blob)
        kind, sig, flags = w.string().decode("latin-1"), w.string(), 1
        if self.security:
            flags = w.take(5)[0]
        w.end()
        need(flags & 1, "S-23: not touched")
        need(kind in (("rsa-sha2-512", "rsa-sha2-256") if self.plain == "ssh-rsa" else (self.type,)), "S-22: signature type")
        if self.plain == "ssh-rsa":
            need(len(sig) == (self.n.bit_length() + 7) // 8, "S-22: RSA signature")
        elif self.plain == "ssh-ed25519":
            need(len(sig) == 64 and int.from_bytes(sig[32:], "little") < L, "S-24: Ed25519")
        else:
            rs = Wire(sig)
            need(rs.mpint() and rs.mpint(), "S-24: zero")
            rs.end()
        return bool(flags & 4)

BEGIN, END = "-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n"

def armor(blob):
    s = base64.b64encode(blob).decode()
    return BEGIN + "".join(s[i:i + 70] + "\n" for i in range(0, len(s), 70)) + END

def dearmor(text):  # S-20
    need(text.startswith(BEGIN) and text.endswith(END), "S-20: armor")
    blob = cjson.unbase64(text[len(BEGIN):-len(END)].replace("\n", ""))
    need(armor(blob) == text, "S-20: another form")
    return blob

def sshsig(message, text, namespace):
    """The key of a good signature, and whether it verified the person (S-21 to S-24)."""
    w = Wire(dearmor(text))
    need(w.take(6) == b"SSHSIG" and w.take(4) == b"\0\0\0\1", "S-21: magic")
    public, ns, reserved, digest, sig = (w.string() for _ in range(5))
    w.end()
    need(ns and ns == namespace.encode() and not reserved and digest in (b"sha512", b"sha256"), "S-21: namespace, reserved or hash")
    key = Key(public)
    person = key.check(sig)
    with tempfile.NamedTemporaryFile() as f:
        f.write(text.encode())
        f.flush()
        said = gitstore.run("ssh-keygen", "-Y", "check-novalidate", "-n", namespace, "-s", f.name, data=message, rule="")
    need(said.decode("latin-1").rstrip("\n").endswith("key " + key.fingerprint), "S-21: another key")
    return key, person

# Lines of files of keys.

def matches(patterns, name, lower=False):
    """Whether (a pattern that is not negated, a negated one) matches (S-45). Patterns go by bytes."""
    hit = [False, False]
    for p in patterns:
        negated, p = p[:1] == "!", p[1:] if p[:1] == "!" else p
        a, b = (x.lower() if lower else x for x in (p, name))
        tokens = [c if c in "*?" else "=" + c for c in a.encode().decode("latin-1")]
        hit[negated] = hit[negated] or fits(tokens, b.encode().decode("latin-1"))
    return hit[0], hit[1]

def in_list(patterns, name):
    return matches(patterns, name) == (True, False)

FIELDS = re.compile(r'(?:"([^"]*)"|([^ \t"]+))[ \t]+(?:((?:[^ \t"]|"[^"]*")+)[ \t]+)??(%s)[ \t]+([^ \t]+)(?:[ \t].*)?' % "|".join(map(re.escape, KEY_TYPES)))
OPTION = r'([A-Za-z-]+)="([^"\\]*)"'

class Line:
    """A usable line (S-41 to S-44)."""

    def __init__(self, text):
        m = FIELDS.fullmatch(text.lstrip(" \t"))
        need(m and all(c == "\t" or ucd.printable(c) for c in text), "S-41: fields or characters")
        quoted, bare, options, kind, key = m.groups()
        found = [(n.lower(), v) for n, v in re.findall(OPTION, options or "")]
        v = dict(found)
        need(options is None or re.fullmatch("%s(,%s)*" % (OPTION, OPTION), options) and len(v) == len(found)
             and set(v) <= {"namespaces", "valid-after", "valid-before"}, "S-43: options")
        self.principals = (bare if quoted is None else quoted).split(",")
        self.namespaces = v["namespaces"].split(",") if "namespaces" in v else None
        self.after, self.before = (key_time(v[k], hours) if k in v else None for k, hours in (("valid-after", 12), ("valid-before", -14)))
        self.key = Key(cjson.unbase64(key))
        need(self.key.type == kind, "S-41: another key type")
        need(all(p.lstrip("!") and p == p.strip(" \t") for p in self.principals + (self.namespaces or [])), "S-42, S-43: empty or blank")
        need(any(in_list(self.principals, p) for p in self.principals if p[:1] != "!"), "S-42: matches nobody")
        need(self.after is None or self.before is None or self.before > self.after, "S-43: valid-before")

    def admits(self, namespace, t):  # S-46
        t = t // 1
        return ((self.namespaces is None or in_list(self.namespaces, namespace))
                and (self.after is None or t >= self.after) and (self.before is None or t <= self.before))

    def good_for(self, principals, times, namespace=NAMESPACE):  # S-26
        """The first of the principals that it matches, or None."""
        if any(matches(self.principals, p, True)[1] for p in principals) or not all(self.admits(namespace, t) for t in times):
            return None
        return next((p for p in principals if in_list(self.principals, p)), None)

def key_time(text, hours):  # S-44
    m = re.fullmatch(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?(Z?)", text, re.A)
    need(m, "S-44: time")
    return seconds(*(int(g or 0) for g in m.groups()[:6])) + (0 if m.group(7) else hours * 3600)

AUTHORITY = re.compile(r'(?:"[^"]*"|[^ \t"]+)[ \t]+(?:(?:[^ \t",]|"[^"]*")+,)*cert-authority(?:,(?:[^ \t"]|"[^"]*")+)?[ \t]', re.I)

def key_file(data):
    """Usable lines and unreadable ones of a file (S-40, S-47)."""
    need(len(data) <= 2**20, "S-47: too large")
    usable, unreadable = [], []
    for raw in data.split(b"\n"):
        text = raw.decode("utf-8", "replace")
        text = (text[:-1] if text.endswith("\r") else text).lstrip(" \t")
        if not text or text[0] == "#" or AUTHORITY.match(text):
            continue
        try:
            need(text.encode() == raw.rstrip(b"\r").lstrip(b" \t"), "S-40: not UTF-8")
            usable.append((text, Line(text)))
        except Refused:
            unreadable.append(text)
    return usable, unreadable

# Statements.

def actor_key(a):
    return [a[k].encode() for k in ("kind", "id", "login")]

def requester_key(r):
    return actor_key(r["actor"]) + [r["source"].encode()]

def check_requesters(rs):  # E-14
    for r in rs or []:
        a = r["actor"]
        need(a["kind"] and (a["id"] or a["login"]) and ucd.one_line(a["login"], 100), "E-14: requester")
    keys = [requester_key(r) for r in rs or []]
    need(all(a < b for a, b in zip(keys, keys[1:])), "E-14: order")

def statement(data):  # S-1, S-2
    v = cjson.read_line(data)
    cjson.record(v, "decision", "S-1")
    r, f, who = v.get("repository"), v["fingerprints"] or [], v["proposers"] or []
    need(v["schema"] == "countersign/decision/2" and None not in v.values(), "S-1: version, or null")
    need((r or v["pull_request"] == 0) and v["pull_request"] >= 0 and ucd.one_line(v["reason"], 500), "S-1: pull request or reason")
    need(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", v["decided_at"], re.A) and rfc3339(v["decided_at"]) is not None, "S-1: decided_at")
    keys = list(map(actor_key, who))
    need(keys and all(a < b for a, b in zip(keys, keys[1:])), "S-1: proposers")
    check_requesters(v["requested_by"])
    need(f and f == sorted(set(f)) and all(map(patch_of, f)) and len(set(map(patch_of, f))) == 1, "S-2: fingerprints")
    need(v["decision"] != "break-glass" or f == ["patchset:" + patch_of(f[0])] and v["reason"], "S-2: break-glass")
    return v

def has_mark(text):
    """Whether a text has a signature mark or a block (D-26)."""
    return " sig:" in text.partition("\n")[0] or "```countersign-decision" in text or BEGIN.strip() in text

BLOCK = re.compile("([^\n]*)\n```countersign-decision\n(" + BEGIN + "(?:[^\n]*\n)*?" + END + ")([^\n]*\n)```\n?")
VERBS = {"approve": "/approve", "deny": "/deny", "break-glass": "/approve --break-glass"}

def signed_comment(text):
    """The statement (bytes and value) and the armored signature of a signed line or block (S-10, S-11), or None."""
    try:
        need("\r" not in text or text.count("\r") == text.count("\r\n") >= text.count("\n"), "S-11: line ends")
        lines = text.replace("\r\n", "\n")
        m = BLOCK.fullmatch(lines)
        if m:
            need(len(text.partition("\n")[2].encode()) <= 16384 and dearmor(m.group(2)), "S-11: too long")
            first, sig, data = m.group(1), m.group(2), m.group(3).encode()
        else:
            m = re.fullmatch("(.+) sig:([A-Za-z0-9_-]{1,16384})\n?", lines)
            need(m, "S-10: no mark")
            raw = cjson.unbase64(m.group(2).replace("-", "+").replace("_", "/") + "=" * (-len(m.group(2)) % 4))
            v = cjson.record(cjson.parse(raw), "said_signed", "S-10")
            need(cjson.canonical(v) == raw, "S-10: another form")
            first, sig, data = m.group(1), armor(cjson.unbase64(v["signature"])), cjson.line_of(v["statement"])
        st = statement(data)
        need(first == " ".join([VERBS[st["decision"]], *st["fingerprints"]]), "S-10: command")
        return data, st, sig
    except (Refused, UnicodeEncodeError):
        return None
