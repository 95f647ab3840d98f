"""Patches (P-1 to P-41). A file is (mode, bytes); trees map paths, as bytes, to files."""
import base64
import hashlib
import re
import struct
import zlib

import ucd
from cjson import HEX64, Refused, hashed, need
from linediff import body, hunks_of, lines_of

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

def check_collisions(paths, added=None):  # P-5
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
    for p in paths if added is None else added:
        at = ""
        for c in p.decode().split("/"):
            need(names[at][ucd.fold(c)] == {c}, "P-5: same folded form")
            at += c + "/"

class Op:
    """One section: operation, path, old (of a rename), before and after: files or None."""

    def __init__(self, operation, path, old, before, after):
        self.operation, self.path, self.old, self.before, self.after = operation, path, old, before, after

    def names(self):  # P-12
        return b"--- %s\n+++ %s\n" % (side(b"a/", self.old, self.before), side(b"b/", self.path, self.after))

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
    return out + op.names() + body(old, new)

def make(base, after):
    ops = operations(base, after)
    return b"".join(section(o) for o in ops), ops

MODE = rb"(100644|100755)\n"
SECTION = re.compile(rb"diff --git ([^\n]+)\n(?:new file mode " + MODE + rb"|deleted file mode " + MODE + rb"|old mode " + MODE + rb"new mode " + MODE
                     + rb")?(?:similarity index 100%\nrename from ([^\n]+)\nrename to ([^\n]+)\n)?index ([0-9a-f]{40})\.\.([0-9a-f]{40})(?: (100644|100755))?\n"
                     + rb"(?:--- [^\n]+\n\+\+\+ [^\n]+\n((?:[-+ @\\][^\n]*\n)+)|GIT binary patch\nliteral [0-9]+\n((?:[A-Za-z][^\n]*\n)+)\n)?")
HUNK = re.compile(rb"@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@\n((?:[-+ \\][^\n]*\n)+)")
LINE = re.compile(rb"([-+ ])([^\n]*)\n(\\ No newline at end of file\n)?")

def unquote(n):
    return n[1:-1].replace(b'\\"', b'"') if n[:1] == b'"' else n

class Section(Op):
    """A section that is read (P-25, P-26): before and after are (mode, None); ids of both; edits, and the lines of both
    sides that hunks show (number -> line), or None; binary: bytes or None; shown: [before, after], bytes or None (P-26).
    What is read loosely here is made anew and compared, so it has the one form."""

    def __init__(self, m):
        names, new, deleted, old_mode, new_mode, source, target, *ids, mode, text, binary = m.groups()
        half = unquote(names[:len(names) // 2])[2:]
        before, after = old_mode or deleted or (None if new else mode), new_mode or new or (None if deleted else mode)
        need((before or new) and (after or deleted), "P-9: no mode")
        operation = "add" if new else "delete" if deleted else "rename" if source else "update"
        super().__init__(operation, unquote(target) if source else half, unquote(source) if source else half,
                         before and (before.decode(), None), after and (after.decode(), None))
        self.ids, self.edits, self.binary = [i.decode() for i in ids], None, None
        need((self.ids[0] == ZEROS, self.ids[1] == ZEROS) == (before is None, after is None), "P-11: zeros")
        out = header(self, self.ids)
        if text:
            out += self.names() + self.hunks(text)
        elif binary:
            self.binary = binary_read([l + b"\n" for l in binary[:-1].split(b"\n")])
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
            for mark, l, cut in LINE.findall(m.group(5)):
                l, a, c = l if cut else l + b"\n", i, j
                for n, marks in enumerate((b" -", b" +")):
                    if mark in marks:
                        self.lines[n][(i, j)[n]] = l
                i, j = i + (mark in b" -"), j + (mark in b" +")
                if mark != b" " and self.edits and self.edits[-1][1::2] == [a, c]:
                    self.edits[-1][1::2] = [i, j]
                elif mark != b" ":
                    self.edits.append([a, i, c, j])
        need(at == len(text), "P-15: hunk")
        for e, f in zip([[0, 0, 0, 0]] + self.edits, self.edits):
            need(f[0] - e[1] == f[2] - e[3] >= 0, "P-15: positions do not agree")
        for lines, end in zip(self.lines, (i, j)):
            need(all(l and b"\0" not in l and (l.endswith(b"\n") or n == end - 1) for n, l in lines.items()), "P-12: NUL, or a line without its LF")
        try:
            return hunks_of(*self.lines, self.edits, i)
        except KeyError:
            raise Refused("P-14: common lines")

    def show(self):
        op, self.shown, same = self.operation, [None, None], self.ids[0] == self.ids[1]
        need(same == (self.edits is None and self.binary is None) or op in ("add", "delete"), "P-9: content")
        need(op != "rename" or same, "P-7: rename with content")
        if self.edits is not None:
            old, new = (b"".join(s.values()) for s in self.lines)
            need(EMPTY_ID not in self.ids or op == "update", "P-26: an empty file has no lines")
            need(op == "update" or len(self.edits) == 1 and not self.edits[0][0] and not self.edits[0][2] and not (old if op == "add" else new), "P-25: add or delete")
            self.shown = [old if op == "delete" else None, new if op == "add" else None]
        elif self.binary is not None:
            need(not self.binary if op == "delete" else op == "update" or b"\0" in self.binary, "P-13: bytes of a delete, or text as binary")
            self.shown[1] = self.binary if op != "delete" else None
        elif op in ("add", "delete"):
            need(EMPTY_ID in self.ids, "P-26: no content")
            self.shown[op == "add"] = b""
        else:
            need(op == "rename" or self.before != self.after, "P-2: nothing changes")
            self.shown = [b"", b""] if EMPTY_ID in self.ids else [None, None]
        need(all(f is None or blob_id((None, f)) == i for f, i in zip(self.shown, self.ids)), "P-26: index name")

    def apply(self, data):  # P-24
        if self.edits is None:
            return data if self.binary is None else self.binary
        lines, out, at = lines_of(data), [], 0
        need(all(n < len(lines) and lines[n] == l for n, l in self.lines[0].items()), "P-24: does not apply")
        for a, b, c, d in self.edits:
            out += lines[at:a] + [self.lines[1][n] for n in range(c, d)]
            at = b
        return b"".join(out + lines[at:])

def read_form(data):
    """P-25, P-26: the sections that the bytes show by themselves."""
    out, at, seen = [], 0, set()
    while at < len(data):
        m = SECTION.match(data, at)
        need(m, "P-9: no section")
        at = m.end()
        s = Section(m)
        need(not out or out[-1].path < s.path, "P-8: order")
        for p in {s.old, s.path}:
            check_path(p)
            need(p not in seen, "P-24: path twice")
            seen.add(p)
        out.append(s)
    need(out, "P-2: no section")
    return out

def read(data, base):
    """P-24: the operations of canonical bytes of a change of this base."""
    after = dict(base)
    for s in read_form(data):
        there = base.get(s.old)
        need((there and there[0]) == (s.before and s.before[0]), "P-24: file is there, or is not, or of another mode")
        after.pop(s.old, None)
        need(s.path not in base or s.path == s.old, "P-24: file is there")
        if s.after:
            after[s.path] = (s.after[0], s.apply(there[1] if there else b""))
        else:
            s.apply(there[1])
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
