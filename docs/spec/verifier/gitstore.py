"""Bundles (B-1 to B-6) and Git objects (H-1, H-3)."""
import hashlib
import re
import zlib

from cjson import Refused, need

MOST = 512 * 2**20  # bytes of all objects together
TYPES = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}

def object_id(kind, data):
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data).hexdigest()

class Bundle:
    """refs: list of (name, id); objects: id -> (type, bytes)."""

    def __init__(self, data):
        self.data, at, self.refs, self.objects = data, 0, [], {}
        lines = []
        while True:
            need(len(lines) <= 10000, "B-1: header too long")
            end = data.find(b"\n", at, at + 4096)
            need(end >= 0, "B-1: line too long, or no pack")
            lines.append(data[at:end])
            at = end + 1
            if lines[-1] == b"":
                break
        need(lines[0] in (b"# v2 git bundle", b"# v3 git bundle"), "B-1: signature")
        body = lines[1:-1]
        if lines[0][3:4] == b"3":
            capabilities = [l for l in body if l.startswith(b"@")]
            need(capabilities in ([], [b"@object-format=sha1"]) and body[:len(capabilities)] == capabilities, "B-2: capability")
            body = body[len(capabilities):]
        for l in body:
            m = re.fullmatch(rb"([0-9a-f]{40}) ([^ \0]+)", l)
            need(m, "B-2, B-3: " + ascii(l))
            try:
                self.refs.append((m.group(2).decode(), m.group(1).decode()))
            except UnicodeDecodeError:
                raise Refused("B-3: name of a ref")
        need(self.refs, "B-3: no ref")
        self.pack(data[at:])

    def pack(self, data):  # B-4
        need(len(data) >= 32 and data[:8] == b"PACK\0\0\0\2" and hashlib.sha1(data[:-20]).digest() == data[-20:], "B-4: pack")
        count, at, end = int.from_bytes(data[8:12], "big"), 12, len(data) - 20
        view, by_offset, waiting, total = memoryview(data), {}, [], 0
        for _ in range(count):
            start = at
            need(at < end, "B-4: too few objects")
            c = data[at]
            kind, size, shift = c >> 4 & 7, c & 15, 4
            while c & 128:
                at += 1
                need(at < end, "B-4: cut off")
                c = data[at]
                size |= (c & 127) << shift
                shift += 7
            at += 1
            base = None
            if kind == 6:
                c, n = 128, -1
                while c & 128:
                    need(at < end, "B-4: cut off")
                    c = data[at]
                    n = (n + 1) << 7 | c & 127
                    at += 1
                base = start - n
                need(base in by_offset, "B-4: base of a delta")
            elif kind == 7:
                base = data[at:at + 20].hex()
                at += 20
            else:
                need(kind in TYPES, "B-4: type")
            total += size
            need(total <= MOST, "B-6: too large")
            for window in (min(end - at, size + size // 100 + 1024), end - at):  # nearly always the first is enough
                z = zlib.decompressobj()
                try:
                    content = z.decompress(view[at:at + window], size + 1)
                    content += z.decompress(z.unconsumed_tail, 1) if not z.eof and len(content) == size else b""
                except zlib.error:
                    raise Refused("B-4: zlib")
                if z.eof or len(content) > size:
                    break
            need(z.eof and len(content) == size, "B-4: size")
            at += window - len(z.unused_data)
            by_offset[start] = (kind, base, content)
        need(at == end, "B-4: something behind the objects")
        done = {}
        for start, (kind, base, content) in by_offset.items():  # an offset's base is before it
            if kind in TYPES:
                done[start] = (TYPES[kind], content)
            elif kind == 6 and base in done:
                done[start] = (done[base][0], delta(done[base][1], content))
            else:
                waiting.append(start)
                continue
            self.objects[object_id(*done[start])] = done[start]
        while waiting:
            left = []
            for start in waiting:
                kind, base, content = by_offset[start]
                b = done.get(base) if kind == 6 else self.objects.get(base)
                if b is None:
                    left.append(start)
                    continue
                done[start] = (b[0], delta(b[1], content))
                self.objects[object_id(*done[start])] = done[start]
            need(len(left) < len(waiting), "B-4: base of a delta is not in the pack")
            waiting = left
        need(sum(len(c) for _, c in done.values()) <= MOST, "B-6: too large")

    def ledger(self, name=None):  # B-5
        if name is not None:
            found = [i for n, i in self.refs if n == name]
            need(len(found) == 1, "B-5: the ref is not there once")
            return name, found[0]
        if len(self.refs) == 1:
            n, i = self.refs[0]
            if not n.startswith("refs/agent/"):
                c = parse_commit(self.get(i, "commit"))
                root = {e[1] for e in parse_tree(self.get(c["tree"], "tree"))}
                need(root & {b"ledger.json", b"transactions"}, "B-5: not a ledger")
            return n, i
        found = [x for x in self.refs if x[0].startswith("refs/agent/")]
        need(len(found) == 1, "B-5: which ref?")
        return found[0]

    def get(self, oid, kind):  # H-1
        t, data = self.objects.get(oid, (None, None))
        need(t == kind, "H-1: %s %s is missing" % (kind, oid), "OBJECT")
        return data

    def changes(self, old, new, prefix=b"", depth=1):
        """(path, mode and id of the file or None) of all that is not the same in two trees, either of which may be None (H-3)."""
        need(depth <= 16, "H-3: trees nest too deep", "L10")
        a, b = ({name: (mode, oid) for mode, name, oid in parse_tree(self.get(t, "tree"))} if t else {} for t in (old, new))
        for name in {**a, **b}:
            x, y = a.get(name), b.get(name)
            if x == y:
                continue
            below = [f[1] if f and f[0] == "40000" else None for f in (x, y)]
            if x and not below[0] and (not y or below[1]):
                yield prefix + name, None
            if y and not below[1]:
                yield prefix + name, y
            if any(below):
                yield from self.changes(*below, prefix + name + b"/", depth + 1)

def delta(base, d):
    at = 0

    def size():
        nonlocal at
        n = shift = 0
        while True:
            need(at < len(d), "B-4: delta")
            c = d[at]
            at += 1
            n |= (c & 127) << shift
            shift += 7
            if not c & 128:
                return n

    need(size() == len(base), "B-4: delta of another base")
    want, out = size(), bytearray()
    need(want <= MOST, "B-6: too large")
    while at < len(d):
        c = d[at]
        at += 1
        if c & 128:
            v = [0] * 7
            for n in range(7):
                if c >> n & 1:
                    need(at < len(d), "B-4: delta")
                    v[n] = d[at]
                    at += 1
            start, length = int.from_bytes(v[:4], "little"), int.from_bytes(v[4:], "little") or 0x10000
            need(start + length <= len(base), "B-4: delta")
            out += base[start:start + length]
        else:
            need(c and at + c <= len(d), "B-4: delta")
            out += d[at:at + c]
            at += c
        need(len(out) <= want, "B-4: delta")
    need(len(out) == want, "B-4: delta")
    return bytes(out)

def parse_tree(data):  # H-3
    out, at, last = [], 0, None
    need(data, "H-3: empty tree", "L10")
    names = set()
    while at < len(data):
        m = re.compile(rb"(40000|100644|100755|120000|160000) ([^\0/]+)\0").match(data, at)
        need(m and len(data) >= m.end() + 20, "H-3: entry", "L10")
        mode, name = m.group(1).decode(), m.group(2)
        key = name + (b"/" if mode == "40000" else b"")
        need((last is None or last < key) and name not in names, "H-3: order", "L10")
        need(name not in (b".", b"..") and name.lower() != b".git", "H-3: name", "L10")
        names.add(name)
        last = key
        out.append((mode, name, data[m.end():m.end() + 20].hex()))
        at = m.end() + 20
    return out

def parse_commit(data):
    """tree, parents, and signature: what git needs to walk; the rest is compared as bytes (H-5)."""
    head, _, message = data.partition(b"\n\n")
    lines = head.split(b"\n")
    m = re.fullmatch(rb"tree ([0-9a-f]{40})", lines[0])
    need(m, "H-1: commit", "OBJECT")
    parents = []
    for l in lines[1:]:
        p = re.fullmatch(rb"parent ([0-9a-f]{40})", l)
        if not p:
            break
        parents.append(p.group(1).decode())
    return {"tree": m.group(1).decode(), "parents": parents, "message": message}

def split_signature(data):
    """A commit without its signature, and the armored text or None (S-50)."""
    head, sep, message = data.partition(b"\n\n")
    lines = head.split(b"\n")
    at = [n for n, l in enumerate(lines) if l.startswith(b"gpgsig")]
    if not at:
        return data, None
    sig = lines[at[0]:]
    need(len(at) == 1 and sig[0].startswith(b"gpgsig ") and all(l[:1] == b" " for l in sig[1:]), "S-50: header", "L13")
    text = b"\n".join([sig[0][7:]] + [l[1:] for l in sig[1:]]) + b"\n"
    return b"\n".join(lines[:at[0]]) + sep + message, text.decode("latin-1")
