"""SSHSIG, files of keys, statements and signed comments (S). ssh-keygen verifies; this checks the forms."""
import base64, functools, hashlib, re, tempfile

import core
from core import attempt, form, need, rfc3339
from patch import patch_of
from policy import stars

NAMESPACE = "countersign-decision@v2"
POINTS, SK, VERBS = (core.TABLES[name] for name in ("points", "security", "verbs"))
WEBAUTHN = "webauthn-sk-ecdsa-sha2-nistp256@openssh.com"
KEY_TYPES = ["ssh-ed25519", "ssh-rsa", *("ecdsa-sha2-" + c for c in POINTS), *SK]
BEGIN, END = "-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n"
# A checkpoint's Ed25519 signatures (H-43) are no SSHSIG, so they are verified here (RFC 8032).
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

def ed_add(q, r):
    t = D * q[0] * r[0] * q[1] * r[1]
    x, y = q[0] * r[1] + r[0] * q[1], q[1] * r[1] + q[0] * r[0]
    return x * pow(1 + t, -1, P) % P, y * pow(1 - t, -1, P) % P
def ed_times(k, q):
    half = ed_times(k // 2, q) if k else (0, 1)
    return ed_add(ed_add(half, half), q if k % 2 else (0, 1)) if k else half

def ed_point(data):
    sign, y = divmod(int.from_bytes(data, "little"), 2**255)
    x2 = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(x2, (P + 3) // 8, P)
    x = x if x * x % P == x2 else x * pow(2, (P - 1) // 4, P) % P
    need(x * x % P == x2 and (x or not sign), "Ed25519: not a point")
    return x if x & 1 == sign else P - x, y % P

def ed25519(key, message, signature):
    s = int.from_bytes(signature[32:], "little")
    need(len(key) == 32 and len(signature) == 64 and s < L, "Ed25519: form")
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little")
    (x, y), base = ed_point(key), ed_point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    x, y = ed_add(ed_times(s, base), ed_times(k % L, (P - x, y)))
    need((y | (x & 1) << 255).to_bytes(32, "little") == signature[:32], "Ed25519: bad signature")

def split(data):  # a string of RFC 4251, and what follows it (S-21)
    size = 4 + int.from_bytes(data[:4], "big")
    need(4 <= size <= len(data), "S-21: too short")
    return data[4:size], data[size:]
def strings(data):
    out = []
    while data:
        one, data = split(data)
        out.append(one)
    return out

def mpint(b):  # S-24
    need(re.match(rb"[\1-\x7f]|\0[\x80-\xff]", b), "S-24: number")
    return int.from_bytes(b, "big")

class Key:
    """A public key (S-22, S-24)."""

    def __init__(self, blob):
        kind, *fields = strings(blob)
        self.type = kind.decode("latin-1")
        need(self.type in KEY_TYPES, "S-22: key type")
        self.security, self.plain = self.type in SK, SK.get(self.type, self.type)
        self.fingerprint = "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
        if self.security:
            *fields, self.host = fields
        if self.plain == "ssh-rsa":
            e, self.n = map(mpint, fields)
            need(2048 <= self.n.bit_length() <= 16384 and e % 2 and 3 <= e < 2**24, "S-22: RSA")
        elif self.plain == "ssh-ed25519":
            need([len(f) for f in fields] == [32], "S-22: length")
        else:
            curve, point = fields
            need(self.plain == "ecdsa-sha2-" + curve.decode("latin-1"), "S-22: curve")
            need(len(point) == POINTS[curve.decode()] and point[0] == 4, "S-22: point in another form")
            key = b"%s %s" % (kind, base64.b64encode(blob))
            core.execute("ssh-keygen", "-l", "-f", "-", data=key, rule="")  # S-22: the point is on the curve

    def check(self, blob, namespace):  # the form of a signature (S-22 to S-24), and how a security key made it
        kind, (sig, rest) = split(blob)[0].decode(), split(split(blob)[1])
        types = ("rsa-sha2-512", "rsa-sha2-256") if self.plain == "ssh-rsa" else (self.type,)
        self.origin, flags = "", rest[0] if self.security else 1
        if kind == WEBAUTHN and self.plain == "ecdsa-sha2-nistp256" and self.security:  # S-33; ssh-keygen looks at the rest
            origin, words, more = strings(rest[5:])
            end = words.partition(b'","origin":"%s"' % origin)[2]
            need(flags & 5 == 5 and not flags & ~29 and not more and namespace == NAMESPACE, "S-33: flags, or use")
            need(origin and b"\\" not in origin and re.fullmatch(rb'(,"crossOrigin":false(,.*)?)?}', end, re.S), "S-33: words")
            self.origin, rest, types = origin.decode(), rest[:5], (kind,)
        need(self.origin or not self.security or self.host.startswith(b"ssh:"), "S-33: a passkey that no browser asked")
        need(flags & 1 and kind in types and len(rest) == 5 * self.security, "S-22, S-23: signature type, or not touched")
        if self.plain == "ssh-rsa":
            need(len(sig) == (self.n.bit_length() + 7) // 8, "S-22: RSA signature")
        elif self.plain == "ssh-ed25519":
            need(len(sig) == 64 and int.from_bytes(sig[32:], "little") < L, "S-24: Ed25519")
        else:
            need(len([mpint(x) for x in strings(sig)]) == 2, "S-24: two numbers")
        self.verified, self.hardware = bool(flags & 4), self.security and not flags & 8

def armor(blob):
    return BEGIN + re.sub("(.{1,70})", r"\1\n", base64.b64encode(blob).decode()) + END
def dearmor(text):  # S-20
    blob = core.unbase64(text[len(BEGIN):-len(END)].replace("\n", ""))
    need(armor(blob) == text, "S-20: another form")
    return blob

@functools.lru_cache(256)
def sshsig(message, text, namespace):  # the key of a good signature (S-21 to S-24)
    blob = dearmor(text)
    public, ns, reserved, digest, sig = strings(blob[10:])
    need(blob[:10] == b"SSHSIG\0\0\0\1" and ns and ns == namespace.encode(), "S-21: magic, or namespace")
    need(not reserved and digest in (b"sha512", b"sha256"), "S-21: reserved, or hash")
    key = Key(public)
    key.check(sig, namespace)
    with tempfile.NamedTemporaryFile() as f:
        f.write(text.encode())
        f.flush()
        check = ("ssh-keygen", "-Y", "check-novalidate", "-n", namespace, "-s", f.name)
        said = core.execute(*check, data=message, rule="").decode("latin-1")
    need(said.rstrip("\n").endswith("key " + key.fingerprint), "S-21: another key")
    return key

def matches(pattern, name):  # whether a pattern, without its !, matches, by bytes (S-42)
    runs = [re.escape(run).replace(rb"\?", b".").decode("latin-1") for run in pattern.encode().split(b"*")]
    return re.fullmatch(stars(runs, "."), name.encode().decode("latin-1"), re.S) is not None
def in_list(patterns, name):  # S-45
    return {p[:1] == "!" for p in patterns if matches(p.removeprefix("!"), name)} == {False}

class Line:
    """A usable line (S-41 to S-44)."""

    def __init__(self, text):
        quoted, bare, options, kind, key = form("key_line").fullmatch(text.lstrip(" \t")).groups()
        need(all(c == "\t" or core.visible(c) for c in text), "S-41: characters")
        found = form("key_option").findall(options or "")
        v = {n.lower(): v for n, v in found}
        need(",".join('%s="%s"' % x for x in found) == (options or "") and len(v) == len(found)
             and set(v) <= {"namespaces", "valid-after", "valid-before"}, "S-43: options")
        self.principals = (bare if quoted is None else quoted).split(",")
        self.namespaces = v["namespaces"].split(",") if "namespaces" in v else None
        self.after, self.before = (key_time(v[k], zone) if k in v else None
                                   for k, zone in (("valid-after", 12), ("valid-before", -14)))
        self.key, patterns = Key(core.unbase64(key)), self.principals + (self.namespaces or [])
        need(self.key.type == kind and all(p.lstrip("!") and p == p.strip(" \t") for p in patterns), "S-41, S-42, S-43")
        need(any(in_list(self.principals, p) for p in self.principals if p[0] != "!"), "S-42: matches nobody")
        need(None in (self.after, self.before) or self.before > self.after, "S-43: valid-before")

    def admits(self, namespace, t):  # S-46
        return ((self.namespaces is None or in_list(self.namespaces, namespace))
                and (self.after is None or t // 1 >= self.after) and (self.before is None or t // 1 <= self.before))

    def good_for(self, principals, times, space=NAMESPACE):  # the first of the principals that it matches, or None (S-26)
        negated = [p[1:].lower() for p in self.principals if p[0] == "!"]
        good = [p for p in principals if in_list(self.principals, p)]
        banned = any(matches(n, p.lower()) for n in negated for p in principals)
        return good[0] if good and not banned and all(self.admits(space, t) for t in times) else None

def key_time(text, hours):  # S-44
    *parts, zone = form("key_time").fullmatch(text).groups("00")
    t = rfc3339("%s-%s-%sT%s:%s:%sZ" % tuple(parts)) + (0 if zone else hours * 3600)
    need(t > 0, "S-44: time")
    return t
def key_file(data):  # usable lines, (text, Line), and unreadable ones of a file (S-40, S-47)
    need(len(data) <= 2**20, "S-47: too large")
    texts = [raw.decode("utf-8", "surrogateescape").removesuffix("\r").lstrip(" \t") for raw in data.split(b"\n")]
    lines = [(t, attempt(Line, t)) for t in texts if t and t[0] != "#" and not form("authority").match(t)]
    return [x for x in lines if x[1]], [x for x in lines if not x[1]]  # what is not UTF-8 is not printable
def actor_key(v):  # of an actor, or of a requester (E-14)
    a = v.get("actor", v)
    return [x.encode() for x in (a["kind"], a["id"], a["login"], *([v["source"]] if "actor" in v else []))]
def in_order(v, of):  # a list in the order of E-14, each once
    keys = [actor_key(x) for x in core.take(core.take(v, "list"), of + "[]")]
    need(all(a < b for a, b in zip(keys, keys[1:])), "E-14: order")
    return v
def check_statement(v):  # S-1, S-2
    f = v["fingerprints"]
    need("repository" in v or v["pull_request"] == 0, "S-1: pull request")
    need(v["proposers"] and f == sorted(set(f)) and len(set(map(patch_of, f))) == 1 and patch_of(f[0]), "S-1, S-2")
    return v["decision"] != "break-glass" or f == ["patchset:" + patch_of(f[0])] and v["reason"]

core.TYPES["in_order"] = in_order
core.CHECKS.update(decision=check_statement, requester=lambda v: v["actor"]["id"] or v["actor"]["login"])

def statement(data):
    return core.record(core.read_line(data), "decision")
def has_mark(text):  # a signature mark or a block (D-26)
    return " sig:" in text.partition("\n")[0] or "```countersign-decision" in text or BEGIN.strip() in text

def signed_comment(text):  # the statement (bytes, value) and armored signature of a signed line or block (S-10, S-11)
    lines, cr = text.replace("\r\n", "\n"), text.count("\r")
    block, line = form("signed_block").fullmatch(lines), form("signed_line").fullmatch(lines)
    need(cr == 0 or cr == text.count("\r\n") >= text.count("\n"), "S-11: line ends")
    if block:
        first, sig, data = block.groups()
        need(len(text.partition("\n")[2].encode()) <= 16384 and dearmor(sig), "S-11: too long")
        data = data.encode()
    else:
        first, said = line.groups()
        raw = core.unbase64(said.replace("-", "+").replace("_", "/") + "=" * (-len(said) % 4))
        v = core.record(core.read_line(raw + b"\n"), "said_signed")
        sig, data = armor(core.unbase64(v["signature"])), core.line_of(v["statement"])
    st = statement(data)
    need(first == " ".join([VERBS[st["decision"]], *st["fingerprints"]]), "S-10: command")
    return data, st, sig
