"""Patches (P-1 to P-41). A file is (mode, bytes); trees map paths, as bytes, to files."""
import base64
import hashlib
import re
import struct
import zlib

import ucd
from cjson import HEX64, Refused, hashed, need
from linediff import body, lines_of, span

NAMES = ("CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$") + tuple(d + n for d in ("COM", "LPT") for n in "0123456789¹²³")
EMPTY_ID = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
ZEROS = "0" * 40

def reads_git(c):
    """NFKC(c) reads as .git (P-4)."""
    return ucd.fold(ucd.nfkc(c).split(":")[0].rstrip(". ")) in (".git", "git~1")

def check_component(c):  # P-4
    need(c and len(c.encode()) <= 255 and ":" not in c and c[-1] not in ". ", "P-4: component")
    need(ucd.nfkc(c) not in (".", "..") and not reads_git(c), "P-4: reads as .git or dots")
    device = "".join(u if len(u) == 1 else ch for ch in c.split(".")[0].rstrip(" ") for u in (ch.upper(),))
    need(device not in NAMES, "P-4: device")
    stem, _, ext = c.partition(".")
    before, tilde, digits = stem.partition("~")
    need(not (tilde and before and re.fullmatch("[0-9]+", digits) and len(stem) <= 8 and len(ext) <= 3 and "." not in ext),
         "P-4: short name")

def check_path(path):  # P-3
    try:
        p = path.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("P-3: not UTF-8")
    need(p and "\\" not in p and p[0] != "/" and path[1:2] != b":", "P-3: empty, backslash, absolute or drive")
    for ch in p:
        need(ch >= " " and (ch == " " or ucd.category(ch) not in ("Cc", "Cf", "Co", "Zs", "Zl", "Zp"))
             and not ucd.hidden_ignorable(ch) and ch not in "\u2800\U0001D159\U00016FE4\U00013441\U00013442", "P-3: character")
    need(len(path) <= 4096 and p.count("/") < 256, "P-3: too long or deep")
    for c in p.split("/"):
        check_component(c)

def check_collisions(paths, added):  # P-5
    """paths: all of the tree after the change that are known; added: those to look at."""
    need(all(p.decode("utf-8", "replace").encode() == p for p in paths), "P-5: not UTF-8")
    names = {}  # directory -> folded form -> set of names
    for p in paths:
        at = ""
        for c in p.decode().split("/"):
            names.setdefault(at, {}).setdefault(ucd.fold(c), set()).add(c)
            at += c + "/"
    above = {b"/".join(p.split(b"/")[:n]) for p in paths for n in range(1, p.count(b"/") + 1)}
    need(not above & set(paths), "P-5: file and directory")
    for p in added:
        at = ""
        for c in p.decode().split("/"):
            need(names[at][ucd.fold(c)] == {c}, "P-5: same folded form")
            at += c + "/"

class Op:
    """One section: operation, path, old (of a rename), before and after: files or None."""

    def __init__(self, operation, path, old, before, after):
        self.operation, self.path, self.old, self.before, self.after = operation, path, old, before, after

    def to_json(self):
        out = {"path": self.path.decode(), "operation": self.operation, "base_sha256": hashed(self.before[1]) if self.before else None,
               "after_sha256": hashed(self.after[1]) if self.after else None}
        if self.operation == "rename":
            out["from"] = self.old.decode()
        return out

def operations(base, after):
    """The operations of a change, in the order of the bytes (P-1 to P-8)."""
    touched = sorted(p for p in set(base) | set(after) if base.get(p) != after.get(p))
    need(touched, "P-2: touches nothing")
    for p in touched:
        check_path(p)
        for f in (base.get(p), after.get(p)):
            need(f is None or f[0] in ("100644", "100755"), "P-1: mode")
        for n in range(1, p.count(b"/") + 1):  # P-1: what is not a file above a path
            f = base.get(b"/".join(p.split(b"/")[:n]))
            need(f is None or f[0] in ("100644", "100755", "040000"), "P-1: link or submodule above")
    added = [p for p in touched if p not in base]
    check_collisions([p for p in after if after[p][0] != "040000"], added)
    deleted = [p for p in touched if p not in after]
    ops, taken = [], set()
    for p in added:  # P-7
        old = next((q for q in deleted if q not in taken and base[q][1] == after[p][1]), None)
        if old is None:
            ops.append(Op("add", p, p, None, after[p]))
        else:
            taken.add(old)
            ops.append(Op("rename", p, old, base[old], after[p]))
    for p in touched:
        if p in base and p in after:
            ops.append(Op("update", p, p, base[p], after[p]))
        elif p in base and p not in taken:
            ops.append(Op("delete", p, p, base[p], None))
    return sorted(ops, key=lambda o: o.path)

def blob_id(f):  # P-11
    return hashlib.sha1(b"blob %d\0" % len(f[1]) + f[1]).hexdigest() if f else ZEROS

def quote(name):  # P-10
    return b'"' + name.replace(b'"', b'\\"') + b'"' if b'"' in name else name

def side(prefix, name, there):  # P-12
    if not there:
        return b"/dev/null"
    q = quote(prefix + name)
    return q + b"\t" if q[:1] != b'"' and b" " in q else q

LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

def binary_lines(data):  # P-16
    z = [b"\x78\x01"]
    for i in range(0, max(len(data), 1), 65535):
        block = data[i:i + 65535]
        z.append(struct.pack("<BHH", i + 65535 >= len(data), len(block), len(block) ^ 0xFFFF) + block)
    z = b"".join(z) + struct.pack(">I", zlib.adler32(data))
    parts = (z[i:i + 52] for i in range(0, len(z), 52))
    return b"".join(LENGTHS[len(p) - 1:len(p)] + base64.b85encode(p, pad=True) + b"\n" for p in parts)

def binary_read(lines):
    """The bytes that P-16 encodes, or refused."""
    z = bytearray()
    for l in lines:
        n = LENGTHS.find(l[:1]) + 1
        try:
            z += base64.b85decode(l[1:-1])[:n]
        except ValueError:
            raise Refused("P-16: digits")
    out, i = bytearray(), 2
    while True:  # stored blocks alone
        need(i + 5 <= len(z), "P-16: stream")
        last, size = z[i], z[i + 1] | z[i + 2] << 8
        out += z[i + 5:i + 5 + size]
        i += 5 + size
        if last:
            break
    need(binary_lines(bytes(out)) == b"".join(lines), "P-16: other form")
    return bytes(out)

def header(op, ids):
    """The lines of a section before its content (P-9)."""
    b, a = op.before, op.after
    out = [b"diff --git %s %s\n" % (quote(b"a/" + op.old), quote(b"b/" + op.path))]
    if b is None:
        out.append(b"new file mode %s\n" % a[0].encode())
    elif a is None:
        out.append(b"deleted file mode %s\n" % b[0].encode())
    elif a[0] != b[0]:
        out.append(b"old mode %s\nnew mode %s\n" % (b[0].encode(), a[0].encode()))
    if op.operation == "rename":
        out.append(b"similarity index 100%%\nrename from %s\nrename to %s\n" % (quote(op.old), quote(op.path)))
    mode = b" " + a[0].encode() if a and b and a[0] == b[0] else b""
    out.append(b"index %s..%s%s\n" % (ids[0].encode(), ids[1].encode(), mode))
    return b"".join(out)

def section(op):
    old, new = op.before[1] if op.before else b"", op.after[1] if op.after else b""
    out = header(op, (blob_id(op.before), blob_id(op.after)))
    if old == new:
        return out
    if b"\0" in old or b"\0" in new:  # P-13
        return out + b"GIT binary patch\nliteral %d\n%s\n" % (len(new), binary_lines(new))
    return out + b"--- %s\n+++ %s\n%s" % (side(b"a/", op.old, op.before), side(b"b/", op.path, op.after), body(old, new))

def make(base, after):
    ops = operations(base, after)
    return b"".join(section(o) for o in ops), ops

HUNK = re.compile(rb"@@ -(0|[1-9][0-9]*)(?:,(0|[1-9][0-9]*))? \+(0|[1-9][0-9]*)(?:,(0|[1-9][0-9]*))? @@\n")
INDEX = re.compile(rb"index ([0-9a-f]{40})\.\.([0-9a-f]{40})(?: (100644|100755))?\n")

class Hunk:
    """start and end of both sides (counted from 0), and lines: (mark, bytes of the line)."""

class Section:
    """operation, path, old, modes and ids (before, after), hunks or None, binary or None."""

class Reader:
    """Reads the form of P-8 to P-16 from bytes."""

    def __init__(self, data):
        need(data.endswith(b"\n"), "P-9: no LF at the end")
        self.lines = [l + b"\n" for l in data[:-1].split(b"\n")]
        self.i = 0

    def peek(self, start=b""):
        return self.i < len(self.lines) and self.lines[self.i].startswith(start)

    def next(self, start=b""):
        need(self.peek(start), "P-9: expected %s" % ascii(start))
        self.i += 1
        return self.lines[self.i - 1]

    def name(self, start):
        """The name in a line of a rename, unquoted."""
        n = self.next(start)[len(start):-1]
        if n[:1] == b'"':
            need(len(n) > 2 and n[-1:] == b'"', "P-10: quotes")
            n = n[1:-1].replace(b'\\"', b'"')
        return n

    def mode(self, start):
        m = self.next(start)[len(start):-1]
        need(m in (b"100644", b"100755"), "P-1: mode")
        return m.decode()

    def sections(self):
        out = []
        while self.i < len(self.lines):
            out.append(self.section())
        need(out, "P-2: no section")
        return out

    def section(self):
        s = Section()
        first, start = self.next(b"diff --git "), self.i - 1
        before = after = None
        s.operation, s.hunks, s.binary = "update", None, None
        if self.peek(b"new file mode "):
            s.operation, after = "add", self.mode(b"new file mode ")
        elif self.peek(b"deleted file mode "):
            s.operation, before = "delete", self.mode(b"deleted file mode ")
        elif self.peek(b"old mode "):
            before, after = self.mode(b"old mode "), self.mode(b"new mode ")
            need(before != after, "P-9: equal modes")
        if self.peek(b"similarity index "):
            need(s.operation == "update" and self.next() == b"similarity index 100%\n", "P-9: similarity")
            s.operation = "rename"
            s.old, s.path = self.name(b"rename from "), self.name(b"rename to ")
            need(s.old != s.path, "P-7: renamed to itself")
        else:  # both names are one, so its length is known
            names = first[len(b"diff --git "):-1]
            need(len(names) % 2 and len(names) >= 7, "P-9: names")
            n = names[:len(names) // 2]
            n = n[1:-1].replace(b'\\"', b'"') if n[:1] == b'"' else n
            need(n[:2] == b"a/", "P-9: names")
            s.old = s.path = n[2:]
        m = INDEX.fullmatch(self.next(b"index "))
        need(m, "P-9: index")
        s.ids = (m.group(1).decode(), m.group(2).decode())
        mode = m.group(3) and m.group(3).decode()
        if s.operation in ("update", "rename") and before is None:
            need(mode, "P-9: no mode")
            before = after = mode
        s.modes = (before, after)
        # The header in the one form that it has, of whatever content.
        op = Op(s.operation, s.path, s.old, before and (before, b""), after and (after, b""))
        need(b"".join(self.lines[start:self.i]) == header(op, s.ids), "P-9: header in another form")
        need((s.ids[0] == ZEROS) == (before is None) and (s.ids[1] == ZEROS) == (after is None), "P-11: zeros")
        if self.peek(b"--- "):
            need(self.next() == b"--- " + side(b"a/", s.old, before) + b"\n", "P-12: name before")
            need(self.next() == b"+++ " + side(b"b/", s.path, after) + b"\n", "P-12: name after")
            s.hunks = self.hunks()
        elif self.peek(b"GIT binary patch\n"):
            self.next()
            literal = self.next(b"literal ")
            start = self.i
            while self.peek() and self.lines[self.i] != b"\n":
                self.i += 1
            s.binary = binary_read(self.lines[start:self.i])
            self.next(b"\n")
            need(literal == b"literal %d\n" % len(s.binary), "P-13: length")
        return s

    def hunks(self):
        out = []
        end, shift, open_end = 0, 0, [False, False]
        while self.peek(b"@@ ") or not out:
            m = HUNK.fullmatch(self.next(b"@@ "))
            need(m, "P-15: hunk")
            h = Hunk()
            (s1, n1), (s2, n2) = ((int(m.group(g)), 1 if m.group(g + 1) is None else int(m.group(g + 1))) for g in (1, 3))
            h.a, h.c = (s - 1 if n else s for s, n in ((s1, n1), (s2, n2)))
            need(h.a >= 0 and h.c >= 0, "P-15: position")
            need(m.group() == b"@@ -%s +%s @@\n" % (span(h.a, n1), span(h.c, n2)), "P-15: range in another form")
            # P-14: more than 6 common lines before the edit, of which 3 and 3 are in the hunks.
            need(h.a - end >= (1 if out else 0) and h.c - h.a == shift, "P-15: positions do not agree")
            h.lines, old, new = [], 0, 0
            while old < n1 or new < n2:
                l = self.next()
                mark, l = l[:1], l[1:]
                need(mark in (b" ", b"-", b"+"), "P-15: line")
                need(b"\0" not in l, "P-12: NUL in text")
                if self.peek(b"\\"):
                    need(self.next() == b"\\ No newline at end of file\n", "P-15: marker")
                    l = l[:-1]
                    need(l, "P-15: no line at all")
                for n, marks in enumerate((b" -", b" +")):
                    if mark in marks:
                        need(not open_end[n], "P-15: line behind the last")
                        open_end[n] = not l.endswith(b"\n")
                old, new = old + (mark in b" -"), new + (mark in b" +")
                h.lines.append((mark, l))
            need((old, new) == (n1, n2), "P-15: counts")
            marks = b"".join(x[0] for x in h.lines)
            need(b"+-" not in marks, "P-15: new before old lines")
            need(marks.strip(b" "), "P-25: hunk without a change")
            lead, trail = len(marks) - len(marks.lstrip(b" ")), len(marks) - len(marks.rstrip(b" "))
            need(b" " * 7 not in marks.strip(b" ") and lead <= 3 and trail <= 3, "P-14: common lines")
            need(lead == 3 or h.a == 0 and h.c == 0, "P-14: too few common lines before")
            need(not out or out[-1].trail == 3, "P-14: too few common lines after")
            h.trail = trail
            end, shift = h.a + n1, shift + n2 - n1
            out.append(h)
        return out

def read_form(data):
    """P-25, P-26: what the bytes show by themselves. Sections get shown: [before, after], bytes or None."""
    sections = Reader(data).sections()
    seen = set()
    for n, s in enumerate(sections):
        need(n == 0 or sections[n - 1].path < s.path, "P-8: order")
        for p in {s.old, s.path}:
            check_path(p)
            need(p not in seen, "P-24: path twice")
            seen.add(p)
        content = s.hunks is not None or s.binary is not None
        need(s.operation != "rename" or not content, "P-7: rename with content")
        s.shown = [None, None]
        if s.hunks is not None:
            need(s.ids[0] != s.ids[1], "P-9: bytes that do not differ")
            need(EMPTY_ID not in s.ids or s.operation == "update", "P-26: an empty file has no lines")
            old, new = (b"".join(l for h in s.hunks for m, l in h.lines if m in ms) for ms in (b" -", b" +"))
            if s.operation == "add":
                need(len(s.hunks) == 1 and s.hunks[0].a == s.hunks[0].c == 0 and not old, "P-25: add")
                s.shown[1] = new
            elif s.operation == "delete":
                need(len(s.hunks) == 1 and s.hunks[0].a == s.hunks[0].c == 0 and not new, "P-25: delete")
                s.shown[0] = old
        elif s.binary is not None:
            need(s.ids[0] != s.ids[1], "P-9: bytes that do not differ")
            s.shown[1] = s.binary if s.operation != "delete" else None
            need(s.operation != "delete" or not s.binary, "P-13: delete with bytes")
            need(s.operation != "add" or b"\0" in s.binary, "P-13: text as binary")
        elif s.operation in ("add", "delete"):
            need(EMPTY_ID in s.ids, "P-26: no content")
            s.shown[s.operation == "add"] = b""
        else:
            need(s.ids[0] == s.ids[1], "P-9: no content")
            need(s.operation == "rename" or s.modes[0] != s.modes[1], "P-2: nothing changes")
            if s.ids[0] == EMPTY_ID:
                s.shown = [b"", b""]
        for n, f in enumerate(s.shown):  # P-26
            need(f is None or blob_id((None, f)) == s.ids[n], "P-26: index name")
    return sections

def apply_hunks(data, hunks):
    lines, out, at = lines_of(data), [], 0
    for h in hunks:
        need(h.a >= at, "P-24: does not apply")
        out += lines[at:h.a]
        at = h.a
        for mark, l in h.lines:
            if mark in b" -":
                need(at < len(lines) and lines[at] == l, "P-24: does not apply")
                at += 1
            if mark in b" +":
                out.append(l)
    return b"".join(out + lines[at:])

def read(data, base):
    """P-24: the operations of canonical bytes of a change of this base."""
    after = dict(base)
    for s in read_form(data):
        there = base.get(s.old)
        if s.operation == "add":
            need(there is None, "P-24: file is there")
            content = b""
        else:
            need(there is not None and there[0] == s.modes[0], "P-24: no such file")
            content = there[1]
            after.pop(s.old, None)
        if s.hunks is not None:
            content = apply_hunks(content, s.hunks)
        elif s.binary is not None:
            content = s.binary
        if s.operation != "delete":
            need(s.path not in base or s.path == s.old, "P-24: file is there")
            after[s.path] = (s.modes[1], content)
    again, ops = make(base, after)
    need(again == data, "P-24: other canonical bytes")
    return ops

PREFIXES = {"fileChange": "patchset:", "secrets_override": "secret:patchset:",
            "protected_path": "protected:patchset:", "break_glass": "patchset:"}

def fingerprints(patch_id):  # P-40
    need(isinstance(patch_id, str) and HEX64.match(patch_id), "P-41: not a patch_id")
    return {k: p + patch_id for k, p in PREFIXES.items()}

FINGERPRINT = re.compile(r"(?:secret:|protected:)?patchset:([0-9a-f]{64})\Z")

def patch_of(fingerprint):
    """The patch_id of a fingerprint, or None (P-41)."""
    m = FINGERPRINT.match(fingerprint)
    return m and m.group(1)
