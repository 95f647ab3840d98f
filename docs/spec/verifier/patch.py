"""Patches (P-1 to P-41). A file is (mode, bytes); trees map paths, as bytes, to files."""
import base64
import hashlib
import re
import struct
import zlib

import core
from core import Refused, hashed, need, typed

DEVICES = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$",
           *(d + n for d in ("COM", "LPT") for n in "0123456789¹²³")}
SHORT_NAME = re.compile(r"(?=[^.]{0,8}(\.|\Z))[^.~]+~[0-9]+(\.[^.]{0,3})?", re.S)
EMPTY_ID = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
ZEROS = "0" * 40
MODES = ("100644", "100755")


def check_component(c):  # P-4
    need(c and len(c.encode()) <= 255 and ":" not in c and c[-1] not in ". ", "P-4: component")
    plain = core.normalize("NFKC", c)
    need(plain not in (".", ".."), "P-4: dots")
    need(core.fold(plain.split(":")[0].rstrip(". ")) not in (".git", "git~1"), "P-4: .git")
    device = "".join(ch.upper() if len(ch.upper()) == 1 else ch for ch in c.split(".")[0].rstrip(" "))
    need(device not in DEVICES and not SHORT_NAME.fullmatch(c), "P-4: device, or short name")


def check_path(path):  # P-3
    p = path.decode("utf-8")
    need(p and "\\" not in p and p[0] != "/" and path[1:2] != b":", "P-3: empty, backslash, absolute, drive")
    for ch in p:
        blank = core.category(ch) in ("Cc", "Cf", "Co", "Zs", "Zl", "Zp") and ch != " "
        need(not blank and not core.HIDDEN.match(ch) and (ch not in core.BLANK or ch == "\ufffc"), "P-3")
    need(len(path) <= 4096 and p.count("/") < 256, "P-3: too long or deep")
    for c in p.split("/"):
        check_component(c)


def above(path):
    """The directories that a path is in, and itself."""
    parts = path.split(b"/")
    return [b"/".join(parts[:n + 1]) for n in range(len(parts))]


def check_collisions(paths, added=None):  # P-5
    """paths: all of the tree after the change that are known; added: those to look at."""
    def place(p):
        directory, _, name = p.decode("utf-8").rpartition("/")
        return directory, core.fold(name)

    names = {}  # directory and folded form -> names
    for p in {q for path in paths for q in above(path)}:
        names.setdefault(place(p), set()).add(p)
    need(not {q for p in paths for q in above(p)[:-1]} & set(paths), "P-5: file and directory")
    for p in paths if added is None else added:
        need(all(len(names[place(q)]) == 1 for q in above(p)), "P-5: same folded form")


def lines_of(data):  # P-18
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def common(a, i, b, j):
    """How many elements are equal from a[i] and b[j] on."""
    n, most, step = 0, min(len(a) - i, len(b) - j), 1
    while n < most:
        if a[i + n:i + n + step] == b[j + n:j + n + step]:
            n, step = n + step, step * 2
        elif step == 1:
            break
        else:
            step //= 2
    return min(n, most)


def furthest(reached, d, k, a, b):
    """Puts F(d,k) into reached, which has F(d-1,...). -1 if there is no such point."""
    x, insert = reached.get(k - 1, -2) + 1, reached.get(k + 1, -1)
    if x > len(a):
        x = -1
    if insert > x and insert - k <= len(b):
        x = insert
    x = x if d else 0
    if x >= 0 and x < len(a) and x - k < len(b) and a[x] == b[x - k]:
        x += common(a, x, b, x - k)
    reached[k] = x if x >= 0 else -2
    return x


def point(a, b, most):
    """P-22 of a trimmed box; None if its distance is greater than most. R is F of both sides backwards."""
    n, m = len(a), len(b)
    delta, odd, back_a, back_b = n - m, (n - m) % 2, a[::-1], b[::-1]
    forward, backward = {}, {}
    for d in range((most + odd) // 2 + 1):
        first = max(-d, (d + m) % 2 - m)  # outside -m..n there is no point of the box
        diagonals = range(first, min(d, n) + 1, 2)
        for k in diagonals:
            x = furthest(forward, d, k, a, b)
            if odd and n - backward.get(delta - k, -n - m) <= x:
                return x, x - k
        for k in reversed(diagonals):
            x = n - furthest(backward, d, k, back_a, back_b)
            if not odd and x <= n and forward.get(delta - k, -1) >= x:
                return x, x - (delta - k)


def edits(old, new):
    """[a, b, c, d]: old[a:b] becomes new[c:d]."""
    names = {}
    a, b = ([names.setdefault(line, len(names)) for line in side] for side in (old, new))
    out, todo, bound = [], [(0, len(a), 0, len(b))], None
    while todo:
        x0, x1, y0, y1 = todo.pop()
        left, right = a[x0:x1], b[y0:y1]
        n = common(left, 0, right, 0)  # P-19
        left, right, x0, y0 = left[n:], right[n:], x0 + n, y0 + n
        n = common(left[::-1], 0, right[::-1], 0)
        left, right, x1, y1 = left[:x1 - x0 - n], right[:y1 - y0 - n], x1 - n, y1 - n
        at = None
        if left and right:
            at = point(left, right, bound or min(4096, 2**29 // (len(left) + len(right))))  # P-20
        bound = 2**62
        if at:  # P-21: the first box is done first
            todo += [(x0 + at[0], x1, y0 + at[1], y1), (x0, x0 + at[0], y0, y0 + at[1])]
        elif out and out[-1][1::2] == [x0, y0]:  # P-23
            out[-1][1::2] = [x1, y1]
        elif left or right:
            out.append([x0, x1, y0, y1])
    return out


def span(s, n):  # P-15
    return b"%d" % (s + 1) if n == 1 else b"%d,%d" % (s + 1 if n else s, n)


def hunks_of(old, new, edits, size):
    """P-14, P-15: the hunks of edits. size: the number of old lines; sides: lists, or maps of lines."""
    groups, out = [], []
    for e in edits:
        if groups and e[0] - groups[-1][-1][1] <= 6:
            groups[-1].append(e)
        else:
            groups.append([e])
    for g in groups:
        lead, trail = min(3, g[0][0]), min(3, size - g[-1][1])
        a, c, end = g[0][0] - lead, g[0][2] - lead, g[-1][1] + trail
        out.append(b"@@ -%s +%s @@\n" % (span(a, end - a), span(c, g[-1][3] + trail - c)))
        for e in g + [[end, end, 0, 0]]:
            sides = ((b" ", old, a, e[0]), (b"-", old, e[0], e[1]), (b"+", new, e[2], e[3]))
            for line in [mark + side[n] for mark, side, x, y in sides for n in range(x, y)]:
                out.append(line if line[-1:] == b"\n" else line + b"\n\\ No newline at end of file\n")
            a = e[1]
    return b"".join(out)


def body(before, after):
    """The hunks between two texts."""
    old, new = lines_of(before), lines_of(after)
    return hunks_of(old, new, edits(old, new), len(old))


class Op:
    """One section: operation, path, old (of a rename), before and after: files or None."""

    def __init__(self, operation, path, old, before, after):
        self.operation, self.path, self.old, self.before, self.after = operation, path, old, before, after

    def header(self, ids):  # P-9
        b, a = (f and f[0].encode() for f in (self.before, self.after))
        mode, both, rename = a or b, a and b, self.operation == "rename"
        lines = (
            (True, b"diff --git %s %s" % (quote(b"a/" + self.old), quote(b"b/" + self.path))),
            (not b, b"new file mode " + mode),
            (not a, b"deleted file mode " + mode),
            (both and a != b, b"old mode %s\nnew mode %s" % (b or mode, mode)),
            (rename, b"similarity index 100%\nrename from " + quote(self.old)),
            (rename, b"rename to " + quote(self.path)),
            (True, b"index %s..%s%s" % (*(i.encode() for i in ids), b" " + mode if both and a == b else b"")))
        return b"".join(line + b"\n" for there, line in lines if there)

    def names(self):  # P-12
        sides = ((b"a/" + self.old, self.before), (b"b/" + self.path, self.after))
        tabs = [b"\t" if b" " in name and b'"' not in name else b"" for name, _ in sides]
        return b"--- %s\n+++ %s\n" % tuple(
            quote(name) + tab if there else b"/dev/null" for (name, there), tab in zip(sides, tabs))

    def section(self):
        old, new = (f[1] if f else b"" for f in (self.before, self.after))
        out = self.header((blob_id(self.before), blob_id(self.after)))
        if old == new:
            return out
        if b"\0" in old + new:  # P-13
            return out + b"GIT binary patch\nliteral %d\n%s\n" % (len(new), binary_lines(new))
        return out + self.names() + body(old, new)

    def to_json(self):
        before, after = (f and hashed(f[1]) for f in (self.before, self.after))
        source = {"from": self.old.decode()} if self.operation == "rename" else {}
        return {"path": self.path.decode(), "operation": self.operation, **source,
                "base_sha256": before, "after_sha256": after}


def operations(base, after):
    """The operations of a change, in the order of the bytes (P-1 to P-8)."""
    touched = sorted(p for p in {**base, **after} if base.get(p) != after.get(p))
    need(touched, "P-2: touches nothing")
    for p in touched:
        check_path(p)
        need(all(f is None or f[0] in MODES for f in (base.get(p), after.get(p))), "P-1: mode")
        over = [base[q][0] for q in above(p)[:-1] if q in base]
        need(all(mode in MODES + ("040000",) for mode in over), "P-1: link or submodule above")
    check_collisions([p for p in after if after[p][0] != "040000"], [p for p in touched if p not in base])
    deleted = [p for p in touched if p not in after]
    ops = []
    for p in touched:
        if p in base and p in after:
            ops.append(Op("update", p, p, base[p], after[p]))
        elif p in after:  # P-7
            old = next((q for q in deleted if base[q][1] == after[p][1]), None)
            if old is None:
                ops.append(Op("add", p, p, None, after[p]))
            else:
                deleted.remove(old)
                ops.append(Op("rename", p, old, base[old], after[p]))
    ops += [Op("delete", p, p, base[p], None) for p in deleted]
    return sorted(ops, key=lambda o: o.path)


def blob_id(f):  # P-11
    return hashlib.sha1(b"blob %d\0" % len(f[1]) + f[1]).hexdigest() if f else ZEROS


def quote(name):  # P-10
    return b'"' + name.replace(b'"', b'\\"') + b'"' if b'"' in name else name


def unquote(n):
    return n[1:-1].replace(b'\\"', b'"') if n[:1] == b'"' else n


LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def binary_lines(data):  # P-16
    z = b"\x78\x01"
    for i in range(0, max(len(data), 1), 65535):
        block = data[i:i + 65535]
        z += struct.pack("<BHH", i + 65535 >= len(data), len(block), len(block) ^ 0xFFFF) + block
    z += struct.pack(">I", zlib.adler32(data))
    parts = (z[i:i + 52] for i in range(0, len(z), 52))
    return b"".join(LENGTHS[len(p) - 1:len(p)] + base64.b85encode(p, pad=True) + b"\n" for p in parts)


def binary_read(text):
    """The bytes that P-16 encodes. Stored blocks never grow, so what does is of another form."""
    try:
        lines = text.split(b"\n")[:-1]
        z = b"".join(base64.b85decode(line[1:])[:LENGTHS.index(line[:1]) + 1] for line in lines)
        out = zlib.decompressobj().decompress(z, len(z) + 1)
    except zlib.error as e:
        raise Refused("P-16: %s" % e)
    need(binary_lines(out) == text, "P-16: other form")
    return out


def make(base, after):
    ops = operations(base, after)
    return b"".join(o.section() for o in ops), ops


SECTION = re.compile(rb"""diff\ --git\ ([^\n]+)\n
    (?:new\ file\ mode\ (M)\n | deleted\ file\ mode\ (M)\n | old\ mode\ (M)\nnew\ mode\ (M)\n)?
    (?:similarity\ index\ 100%\nrename\ from\ ([^\n]+)\nrename\ to\ ([^\n]+)\n)?
    index\ ([0-9a-f]{40})\.\.([0-9a-f]{40})(?:\ (M))?\n
    (?:---\ [^\n]+\n\+\+\+\ [^\n]+\n((?:[-+\ @\\][^\n]*\n)+)
    | GIT\ binary\ patch\nliteral\ [0-9]+\n((?:[A-Za-z][^\n]*\n)+)\n)?"""
    .replace(b"M)", b"100644|100755)"), re.X)
HUNK = re.compile(rb"@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@\n((?:[-+ \\][^\n]*\n)+)")
LINE = re.compile(rb"([-+ ])([^\n]*)\n(\\ No newline at end of file\n)?")


class Section(Op):
    """A section that is read (P-25, P-26): before and after are (mode, None); ids of both; edits, and the
    lines of both sides that hunks show (number -> line), or None; binary: bytes or None; shown: bytes or None
    of both sides. What is read loosely here is made anew and compared, so it has the one form."""

    def __init__(self, m):
        names, new, deleted, old_mode, new_mode, source, target, *ids, mode, text, binary = m.groups()
        half = unquote(names[:len(names) // 2])[2:]
        modes = [old_mode or deleted or mode, new_mode or new or mode]
        modes = [None if new else modes[0], None if deleted else modes[1]]
        need(all(modes) or any(modes) and (new or deleted), "P-9: no mode")
        operation = "add" if new else "delete" if deleted else "rename" if source else "update"
        old, path = (unquote(source), unquote(target)) if source else (half, half)
        super().__init__(operation, path, old, *(f and (f.decode(), None) for f in modes))
        self.ids, self.edits, self.binary = [i.decode() for i in ids], None, None
        need([i == ZEROS for i in self.ids] == [f is None for f in modes], "P-11: zeros")
        out = self.header(self.ids)
        if text:
            out += self.names() + self.hunks(text)
        elif binary:
            self.binary = binary_read(binary)
            out += b"GIT binary patch\nliteral %d\n%s\n" % (len(self.binary), binary)
        need(out == m.group(), "P-9 to P-15: another form")
        self.show()

    def hunks(self, text):
        """Reads hunks, and makes them again."""
        self.edits, self.lines = [], ({}, {})
        i = j = at = 0
        for m in HUNK.finditer(text):
            need(m.start() == at, "P-15: hunk")
            at = m.end()
            i, j = (int(m.group(g)) - (m.group(g + 1) is None or int(m.group(g + 1)) > 0) for g in (1, 3))
            for mark, line, cut in LINE.findall(m.group(5)):
                line, a, c = line if cut else line + b"\n", i, j
                if mark in b" -":
                    self.lines[0][i] = line
                    i += 1
                if mark in b" +":
                    self.lines[1][j] = line
                    j += 1
                if mark != b" " and self.edits and self.edits[-1][1::2] == [a, c]:
                    self.edits[-1][1::2] = [i, j]
                elif mark != b" ":
                    self.edits.append([a, i, c, j])
        need(at == len(text), "P-15: hunk")
        for e, f in zip([[0, 0, 0, 0]] + self.edits, self.edits):
            need(f[0] - e[1] == f[2] - e[3] >= 0, "P-15: positions do not agree")
        for lines, end in zip(self.lines, (i, j)):
            for n, line in lines.items():
                need(line and b"\0" not in line and (line[-1:] == b"\n" or n == end - 1), "P-12, P-18")
        return hunks_of(*self.lines, self.edits, i)  # a KeyError: common lines that are not there (P-14)

    def show(self):
        op, same = self.operation, self.ids[0] == self.ids[1]
        old = new = None
        need(same == (self.edits is None and self.binary is None) or op in ("add", "delete"), "P-9: content")
        need(op != "rename" or same, "P-7: rename with content")
        if self.edits is not None:
            old, new = (b"".join(s.values()) for s in self.lines)
            need(op == "update" or self.edits[0][::2] == [0, 0] and len(self.edits) == 1
                 and not (old if op == "add" else new), "P-25: add or delete")
            need(EMPTY_ID not in self.ids or op == "update", "P-26: an empty file has no lines")
            old, new = old if op == "delete" else None, new if op == "add" else None
        elif self.binary is not None:
            need(not self.binary if op == "delete" else op == "update" or b"\0" in self.binary, "P-13")
            new = self.binary if op != "delete" else None
        elif op in ("add", "delete"):
            need(EMPTY_ID in self.ids, "P-26: no content")
            old, new = (None, b"") if op == "add" else (b"", None)
        else:
            need(op == "rename" or self.before != self.after, "P-2: nothing changes")
            old = new = b"" if EMPTY_ID in self.ids else None
        self.shown = [old, new]
        for content, i in zip(self.shown, self.ids):
            need(content is None or blob_id((None, content)) == i, "P-26: index name")

    def apply(self, data):  # P-24
        if self.edits is None:
            return data if self.binary is None else self.binary
        lines, out, at = lines_of(data), [], 0
        need(all(lines[n] == line for n, line in self.lines[0].items()), "P-24: does not apply")
        for a, b, c, d in self.edits:
            out += lines[at:a] + [self.lines[1][n] for n in range(c, d)]
            at = b
        return b"".join(out + lines[at:])


def read_form(data):
    """P-25, P-26: the sections that the bytes show by themselves."""
    out, at = [], 0
    while at < len(data) or not out:
        m = SECTION.match(data, at)
        need(m, "P-9: no section")
        at = m.end()
        out.append(Section(m))
    paths, order = [p for s in out for p in {s.old, s.path}], [s.path for s in out]
    for p in paths:
        check_path(p)
    need(order == sorted(order) and len(set(paths)) == len(paths), "P-8, P-24: order")
    return out


def read(data, base):
    """P-24: the operations of canonical bytes of a change of this base."""
    after = dict(base)
    for s in read_form(data):
        there = base.get(s.old, (None, b""))
        need(there[0] == (s.before and s.before[0]), "P-24: file is there, or is not, or of another mode")
        after.pop(s.old, None)
        need(s.path not in base or s.path == s.old, "P-24: file is there")
        content = s.apply(there[1])
        if s.after:
            after[s.path] = (s.after[0], content)
    again, ops = make(base, after)
    need(again == data, "P-24: other canonical bytes")
    return ops


PREFIXES = {"fileChange": "patchset:", "secrets_override": "secret:patchset:",
            "protected_path": "protected:patchset:", "break_glass": "patchset:"}


def fingerprints(patch_id):  # P-40
    need(typed(patch_id, "hex64"), "P-41: not a patch_id")
    return {k: p + patch_id for k, p in PREFIXES.items()}


def patch_of(fingerprint):
    """The patch_id of a fingerprint, or None (P-41)."""
    m = re.fullmatch("(?:secret:|protected:)?patchset:([0-9a-f]{64})", fingerprint)
    return m and m.group(1)
