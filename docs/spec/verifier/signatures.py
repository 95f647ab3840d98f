"""SSHSIG, files of keys, statements and signed comments (S)."""
import base64
import calendar
import datetime
import hashlib
import re
from fractions import Fraction

import cjson
import ucd
from cjson import HASH, Refused, need, shape
from globs import fits
from patch import patch_of

NAMESPACE = "countersign-decision@v1"

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

# Signature schemes.

class Curve:
    """A prime curve; of a point, None is infinity. a is -3 for the NIST curves."""

    def __init__(self, name, digest, p, b, n, gx, gy):
        self.name, self.digest, self.p, self.b, self.n, self.g = name, digest, p, b, n, (gx, gy, 1)
        self.size = (p.bit_length() + 7) // 8

    def double(self, q):  # Jacobian coordinates
        x, y, z = q
        p = self.p
        if not y or not z:
            return 0, 1, 0
        s, m = 4 * x * y * y % p, 3 * (x - z * z) * (x + z * z) % p
        u = (m * m - 2 * s) % p
        return u, (m * (s - u) - 8 * y**4) % p, 2 * y * z % p

    def add(self, q, r):
        if not q[2] or not r[2]:
            return r if not q[2] else q
        p = self.p
        z1, z2 = q[2] * q[2] % p, r[2] * r[2] % p
        u1, u2, s1, s2 = q[0] * z2 % p, r[0] * z1 % p, q[1] * z2 * r[2] % p, r[1] * z1 * q[2] % p
        if u1 == u2:
            return self.double(q) if s1 == s2 else (0, 1, 0)
        h, w = u2 - u1, s2 - s1
        h2, h3 = h * h % p, h * h * h % p
        x = (w * w - h3 - 2 * u1 * h2) % p
        return x, (w * (u1 * h2 - x) - s1 * h3) % p, h * q[2] * r[2] % p

    def times(self, k, q):
        out = (0, 1, 0)
        for bit in bin(k)[2:]:
            out = self.double(out)
            if bit == "1":
                out = self.add(out, q)
        return out

    def point(self, data):
        need(len(data) == 1 + 2 * self.size and data[0] == 4, "S-22: point")
        x, y = int.from_bytes(data[1:1 + self.size], "big"), int.from_bytes(data[1 + self.size:], "big")
        need(x < self.p and y < self.p and (y * y - x**3 + 3 * x - self.b) % self.p == 0, "S-22: not on the curve")
        return x, y, 1

    def verify(self, point, message, r, s):
        need(0 < r < self.n and 0 < s < self.n, "S-22: signature out of range")
        h = hashlib.new(self.digest, message).digest()
        e = int.from_bytes(h, "big") >> max(0, len(h) * 8 - self.n.bit_length())
        w = pow(s, -1, self.n)
        x, _, z = self.add(self.times(e * w % self.n, self.g), self.times(r * w % self.n, self.point(point)))
        need(z and x * pow(z, -2, self.p) % self.p % self.n == r, "S-22: bad signature")

CURVES = {c.name: c for c in (Curve("nistp256", "sha256", 2**256 - 2**224 + 2**192 + 2**96 - 1,
          0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B,
          0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
          0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
          0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5),
    Curve("nistp384", "sha384", 2**384 - 2**128 - 2**96 + 2**32 - 1,
          0xB3312FA7E23EE7E4988E056BE3F82D19181D9C6EFE8141120314088F5013875AC656398D8A2ED19D2A85C8EDD3EC2AEF,
          0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973,
          0xAA87CA22BE8B05378EB1C71EF320AD746E1D3B628BA79B9859F741E082542A385502F25DBF55296C3A545E3872760AB7,
          0x3617DE4A96262C6F5D9E98BF9292DC29F8F41DBD289A147CE9DA3113B5F0B8C00A60B1CE1D7E819D7A431D7C90EA0E5F),
    Curve("nistp521", "sha512", 2**521 - 1,
          0x0051953EB9618E1C9A1F929A21A0B68540EEA2DA725B99B315F3B8B489918EF109E156193951EC7E937B1652C0BD3BB1BF073573DF883D2C34F1EF451FD46B503F00,
          0x1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFA51868783BF2F966B7FCC0148F709A5D03BB5C9B8899C47AEBB6FB71E91386409,
          0x00C6858E06B70404E9CD9E3ECB662395B4429C648139053FB521F828AF606B4D3DBAA14B5E77EFE75928FE1DC127A2FFA8DE3348B3C1856A429BF97E7E31C2E5BD66,
          0x011839296A789A3BC0045C8A5FB42C7D1BD998F54449579B446817AFBD17273E662C97EE72995EF42640C550B9013FAD0761353C7086A272C24088BE94769FD16650))}

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

def _ed_add(q, r):  # extended coordinates
    a, b = (q[1] - q[0]) * (r[1] - r[0]), (q[1] + q[0]) * (r[1] + r[0])
    c, d = 2 * q[3] * r[3] * D, 2 * q[2] * r[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P

def _ed_times(k, q):
    out = (0, 1, 1, 0)
    while k:
        if k & 1:
            out = _ed_add(out, q)
        q, k = _ed_add(q, q), k >> 1
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

ED_BASE = _ed_point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))

def ed25519(key, message, signature):
    need(len(key) == 32 and len(signature) == 64, "Ed25519: length")
    s = int.from_bytes(signature[32:], "little")
    need(s < L, "Ed25519: s")
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    a = _ed_point(key)
    x, y, z, _ = _ed_add(_ed_times(s, ED_BASE), _ed_times(k, (P - a[0], a[1], 1, P - a[3])))
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

def wire(b):
    return len(b).to_bytes(4, "big") + b

ECDSA = ["ecdsa-sha2-" + c for c in CURVES]
SK = {"sk-ssh-ed25519@openssh.com": "ssh-ed25519", "sk-ecdsa-sha2-nistp256@openssh.com": "ecdsa-sha2-nistp256"}
KEY_TYPES = ["ssh-ed25519", "ssh-rsa", *ECDSA, *SK]

class Key:
    """A public key (S-22)."""

    def __init__(self, blob):
        w = Wire(blob)
        self.type = w.string().decode("latin-1")
        need(self.type in KEY_TYPES, "S-22: key type")
        self.plain = SK.get(self.type, self.type)
        self.fingerprint = "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
        if self.plain == "ssh-rsa":
            self.e, self.n = w.mpint(), w.mpint()
            need(2048 <= self.n.bit_length() <= 16384 and self.e % 2 and 3 <= self.e < 2**24, "S-22: RSA")
        else:
            if self.plain in ECDSA:
                self.curve = CURVES[self.plain[11:]]
                need(w.string() == self.curve.name.encode(), "S-22: curve")
            self.point = w.string()
            if self.plain in ECDSA:
                self.curve.point(self.point)
            else:
                need(len(self.point) == 32, "S-22: length")
        self.application = w.string() if self.type in SK else None
        w.end()

    def verify(self, data, blob):
        """Refuses a signature that is not good. Returns whether a security key verified the person (S-23)."""
        w = Wire(blob)
        kind, sig, flags = w.string().decode("latin-1"), w.string(), 0
        if self.type in SK:
            tail = w.take(5)
            flags = tail[0]
            need(flags & 1, "S-23: not touched")
            data = hashlib.sha256(self.application).digest() + tail + hashlib.sha256(data).digest()
        w.end()
        if self.type == "ssh-rsa":
            digest = {"rsa-sha2-512": "sha512", "rsa-sha2-256": "sha256"}.get(kind)
            size = (self.n.bit_length() + 7) // 8
            need(digest and len(sig) == size, "S-22: RSA signature")
            info = bytes.fromhex({"sha512": "3051300d060960864801650304020305000440", "sha256": "3031300d060960864801650304020105000420"}[digest])
            tail = info + hashlib.new(digest, data).digest()
            s = int.from_bytes(sig, "big")
            padded = b"\0\1" + b"\xff" * (size - len(tail) - 3) + b"\0" + tail
            need(s < self.n and pow(s, self.e, self.n).to_bytes(size, "big") == padded, "S-22: bad signature")
        else:
            need(kind == self.type, "S-22: signature type")
            if self.plain in ECDSA:
                rs = Wire(sig)
                r, s = rs.mpint(), rs.mpint()
                rs.end()
                self.curve.verify(self.point, data, r, s)
            else:
                ed25519(self.point, data, sig)
        return bool(flags & 4)

BEGIN, END = "-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n"

def armor(blob):
    s = base64.b64encode(blob).decode()
    return BEGIN + "".join(s[i:i + 70] + "\n" for i in range(0, len(s), 70)) + END

def sshsig(message, text, namespace):
    """The key of a good signature, and whether it verified the person (S-20 to S-24)."""
    need(text.startswith(BEGIN) and text.endswith(END), "S-20: armor")
    blob = cjson.unbase64(text[len(BEGIN):-len(END)].replace("\n", ""))
    need(armor(blob) == text, "S-20: another form")
    w = Wire(blob)
    need(w.take(6) == b"SSHSIG" and w.take(4) == b"\0\0\0\1", "S-21: magic")
    public, ns, reserved, digest, sig = (w.string() for _ in range(5))
    w.end()
    need(ns == namespace.encode() and not reserved and digest in (b"sha512", b"sha256"), "S-21: namespace, reserved or hash")
    key = Key(public)
    h = hashlib.new(digest.decode(), message).digest()
    return key, key.verify(b"SSHSIG" + wire(ns) + wire(reserved) + wire(digest) + wire(h), sig)

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

class Line:
    """A usable line (S-41 to S-44)."""

    def __init__(self, text):
        text = text.lstrip(" \t")
        need(all(c == "\t" or ucd.printable(c) for c in text), "S-41: character")
        m = re.match(r'(?:"([^"]*)"|([^ \t"]+))[ \t]+', text)
        need(m, "S-42: principals")
        self.principals = (m.group(2) if m.group(1) is None else m.group(1)).split(",")
        need(all(p.lstrip("!") and p == p.strip(" \t") for p in self.principals), "S-42: empty or blank")
        rest = text[m.end():]
        self.namespaces = self.after = self.before = None
        if rest.split(" ")[0].split("\t")[0] not in KEY_TYPES:
            m = re.match(r'((?:[^ \t"]|"[^"]*")+)[ \t]+', rest)
            need(m, "S-43: options")
            self.options(m.group(1))
            rest = rest[m.end():]
        fields = rest.replace("\t", " ").split(" ")
        fields = [f for f in fields if f]
        need(len(fields) >= 2 and fields[0] in KEY_TYPES, "S-41: key type")
        self.blob = cjson.unbase64(fields[1])
        self.key = Key(self.blob)
        need(self.key.type == fields[0], "S-41: another key type")
        need(any(in_list(self.principals, p) for p in self.principals if p[:1] != "!"), "S-42: matches nobody")
        need(self.after is None or self.before is None or self.before > self.after, "S-43: valid-before")

    def options(self, text):  # S-43
        one = r'([A-Za-z-]+)="([^"\\]*)"'
        found = [(n.lower(), v) for n, v in re.findall(one, text)]
        v = dict(found)
        need(re.fullmatch("%s(,%s)*" % (one, one), text) and len(v) == len(found)
             and set(v) <= {"namespaces", "valid-after", "valid-before"}, "S-43: options")
        self.namespaces = v["namespaces"].split(",") if "namespaces" in v else None
        self.after = key_time(v["valid-after"], 12) if "valid-after" in v else None
        self.before = key_time(v["valid-before"], -14) if "valid-before" in v else None

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

def is_authority(text):
    m = re.match(r'(?:"[^"]*"|[^ \t"]+)[ \t]+((?:[^ \t"]|"[^"]*")+)[ \t]', text)
    return bool(m) and "cert-authority" in re.sub(r'"[^"]*"', "", m.group(1)).lower().split(",")

def key_file(data):
    """Usable lines and unreadable ones of a file (S-40, S-47)."""
    usable, unreadable = [], []
    need(len(data) <= 2**20, "S-47: too large")
    for raw in data.split(b"\n"):
        text = raw.decode("utf-8", "replace")
        text = (text[:-1] if text.endswith("\r") else text).lstrip(" \t")
        if not text or text[0] == "#" or is_authority(text):
            continue
        try:
            need(text.encode() == raw.rstrip(b"\r").lstrip(b" \t"), "S-40: not UTF-8")
            usable.append((text, Line(text)))
        except Refused:
            unreadable.append(text)
    return usable, unreadable

# Statements.

shape("repo", "id text, name text")
shape("statement", "schema text, repository? repo, pull_request int, transaction_id text, base_commit text, decision text, "
      "fingerprints text[], reason text, decided_at text, shown text")

def statement(data):  # S-1, S-2
    v = cjson.read_line(data)
    cjson.record(v, "statement", "S-1")
    need(v["schema"] == "countersign/decision/1", "S-1: version")
    r = v.get("repository")
    need((r or v["pull_request"] == 0) and v["pull_request"] >= 0 and (not r or r["id"] and r["name"]), "S-1: pull request")
    need(v["transaction_id"] and v["base_commit"] and HASH.match(v["shown"]), "S-1: member")
    need(v["decision"] in ("approve", "deny", "break-glass") and ucd.one_line(v["reason"], 500), "S-1: decision or reason")
    need(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", v["decided_at"], re.A), "S-1: decided_at")
    rfc3339(v["decided_at"])
    f = v["fingerprints"] or []
    need(f and f == sorted(set(f)) and all(map(patch_of, f)) and len(set(map(patch_of, f))) == 1, "S-2: fingerprints")
    if v["decision"] == "break-glass":
        need(f == ["patchset:" + patch_of(f[0])] and v["reason"], "S-2: break-glass")
    return v

def has_mark(text):
    """Whether a text has a signature mark or a block (D-26)."""
    return " sig:" in text or "```countersign-decision" in text

shape("said_signed", "signature text, statement object")

def signed_comment(text):
    """The statement (bytes and value) and the armored signature of a signed line or block (S-10, S-11), or None."""
    try:
        line = text[:-2] if text.endswith("\r\n") else text[:-1] if text.endswith("\n") else text
        if "\n" in line or "\r" in line:  # a block
            end = "\r\n" if "\r\n" in text else "\n"
            need("\r" not in text.replace(end, ""), "S-11: line ends")
            lines = line.split(end)
            need(not any("\n" in l or "\r" in l for l in lines) and len(lines) >= 6, "S-11: lines")
            need(len(text.split(end, 1)[1].encode()) <= 16384, "S-11: too long")
            need(lines[1] == "```countersign-decision" and lines[-1] == "```", "S-11: fence")
            first, sig, data = lines[0], "".join(l + "\n" for l in lines[2:-2]), lines[-2].encode() + b"\n"
            blob = cjson.unbase64("".join(lines[3:-3]))
        else:
            first, _, coded = line.rpartition(" sig:")
            need(first and len(coded) <= 16384 and re.fullmatch("[A-Za-z0-9_-]+", coded), "S-10: no mark")
            raw = cjson.unbase64(coded.replace("-", "+").replace("_", "/") + "=" * (-len(coded) % 4))
            v = cjson.parse(raw)
            need(cjson.canonical(v) == raw, "S-10: another form")
            cjson.record(v, "said_signed", "S-10")
            blob, data = cjson.unbase64(v["signature"]), cjson.line_of(v["statement"])
            sig = armor(blob)
        need(armor(blob) == sig, "S-20: another form")
        st = statement(data)
        verb = {"approve": "/approve", "deny": "/deny", "break-glass": "/approve --break-glass"}[st["decision"]]
        need(first == " ".join([verb, *st["fingerprints"]]), "S-10: command")
        return data, st, sig
    except (Refused, UnicodeEncodeError):
        return None
