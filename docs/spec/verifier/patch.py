"""Patches (P-1 to P-41). A file is (mode, bytes); trees map paths, as bytes, to files."""
import base64, bisect, collections, hashlib, itertools, re, struct, zlib

import core
from core import form, hashed, need

DEVICES = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", *(d + n for d in ("COM", "LPT") for n in "0123456789¹²³")}
EMPTY_ID = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
ZEROS = "0" * 40
MODES = ("100644", "100755")
LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

def check_component(c):  # P-4
    need(c and len(c.encode()) <= 255 and ":" not in c and c[-1] not in ". ", "P-4: component")
    plain = core.normalize("NFKC", c)
    need(plain not in (".", "..") and core.fold(plain.split(":")[0].rstrip(". ")) not in (".git", "git~1"), "P-4")
    device = "".join(ch.upper() if len(ch.upper()) == 1 else ch for ch in c.split(".")[0].rstrip(" "))
    need(device not in DEVICES and not form("short_name").fullmatch(c), "P-4: device, or short name")

def check_path(path):  # P-3
    p = path.decode("utf-8")
    need(p and "\\" not in p and p[0] != "/" and path[1:2] != b":", "P-3: empty, backslash, absolute, drive")
    for ch in p:
        blank = core.category(ch) in ("Cc", "Cf", "Co", "Zs", "Zl", "Zp") and ch != " "
        need(not blank and not form("hidden").match(ch), "P-3: not visible")
    need(len(path) <= 4096 and p.count("/") < 256, "P-3: too long or deep")
    for c in p.split("/"):
        check_component(c)

def above(path):  # the directories that a path is in, and itself
    return list(itertools.accumulate(path.split(b"/"), lambda directory, name: directory + b"/" + name))

def check_collisions(paths, added=None):  # P-5
    """paths: all of the tree after the change that are known; added: those to look at."""
    def place(p):
        directory, _, name = p.decode("utf-8").rpartition("/")
        return directory, core.fold(name)

    names = collections.Counter(map(place, {q for p in paths for q in above(p)}))
    need(not {q for p in paths for q in above(p)[:-1]} & set(paths), "P-5: file and directory")
    for p in paths if added is None else added:
        need(all(names[place(q)] == 1 for q in above(p)), "P-5: same folded form")

def lines_of(data):  # P-18
    return re.findall(rb"[^\n]*\n|[^\n]+", data)

def common(a, i, b, j):  # how many elements are equal from a[i] and b[j] on
    most, n = min(len(a) - i, len(b) - j), 1
    while n < most and a[i:i + n] == b[j:j + n]:
        n *= 2
    first, last = n // 2, min(n, most)  # so many are equal, and perhaps so many
    return bisect.bisect(range(last), False, first, key=lambda k: a[i + first:i + k + 1] != b[j + first:j + k + 1])

def furthest(reached, d, k, a, b):  # puts F(d,k) into reached, which has F(d-1,...). -2 if there is no such point
    x, insert = reached.get(k - 1, -2) + 1, reached.get(k + 1, -1)
    x = -1 if x > len(a) else x
    x = insert if insert > x and insert - k <= len(b) else x
    x = x if d else 0
    if 0 <= x < len(a) and x - k < len(b) and a[x] == b[x - k]:
        x += common(a, x, b, x - k)
    reached[k] = x if x >= 0 else -2
    return x

def point(a, b, most):
    """P-22 of a trimmed box; None if its distance is greater than most. R is F of both sides backwards."""
    n, m = len(a), len(b)
    delta, odd, back_a, back_b, forward, backward = n - m, (n - m) % 2, a[::-1], b[::-1], {}, {}
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

def edits(old, new):  # [a, b, c, d]: old[a:b] becomes new[c:d]
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
        bound = bound or min(4096, 2**29 // (len(left) + len(right) or 1))  # P-20
        at = left and right and point(left, right, bound)
        bound = 2**62
        if at:  # P-21: the first box is done first
            todo += [(x0 + at[0], x1, y0 + at[1], y1), (x0, x0 + at[0], y0, y0 + at[1])]
        elif left or right:
            add_edit(out, x0, x1, y0, y1)
    return out

def add_edit(out, *edit):  # P-23
    if out and out[-1][1::2] == list(edit[::2]):
        out[-1][1::2] = edit[1::2]
    else:
        out.append(list(edit))
def span(s, n):  # P-15
    return b"%d" % (s + 1) if n == 1 else b"%d,%d" % (s + 1 if n else s, n)

def hunks_of(old, new, edits, size):
    """P-14, P-15: the hunks of edits. size: the number of old lines; sides: lists, or maps of lines."""
    groups, out = [], []
    for e in edits:
        if not groups or e[0] - groups[-1][-1][1] > 6:
            groups.append([])
        groups[-1].append(e)
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

def body(before, after):  # the hunks between two texts
    old, new = lines_of(before), lines_of(after)
    return hunks_of(old, new, edits(old, new), len(old))
def blob_id(data):  # P-11
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
def quote(name):  # P-10
    return b'"' + name.replace(b'"', b'\\"') + b'"' if b'"' in name else name
def unquote(n):
    return n[1:-1].replace(b'\\"', b'"') if n[:1] == b'"' else n

def binary_lines(data):  # P-16
    z = b"\x78\x01"
    for i in range(0, max(len(data), 1), 65535):
        block = data[i:i + 65535]
        z += struct.pack("<BHH", i + 65535 >= len(data), len(block), len(block) ^ 0xFFFF) + block
    z += struct.pack(">I", zlib.adler32(data))
    parts = (z[i:i + 52] for i in range(0, len(z), 52))
    return b"".join(LENGTHS[len(p) - 1:len(p)] + base64.b85encode(p, pad=True) + b"\n" for p in parts)

def binary_read(text):  # the bytes that P-16 encodes. Stored blocks never grow, so what does is of another form
    lines = text.split(b"\n")[:-1]
    z = b"".join(base64.b85decode(line[1:])[:LENGTHS.index(line[:1]) + 1] for line in lines)
    return zlib.decompressobj().decompress(z, len(z) + 1)

class Section:
    """One operation: old (of a rename another path) and path; of both sides: modes (None: absent), ids, and lines,
    as far as they are known (number -> line); size: the number of old lines; edits, or binary bytes, or None."""

    def __init__(self, operation, old, path, modes, ids):
        self.operation, self.old, self.path, self.modes, self.ids = operation, old, path, modes, ids
        self.lines, self.size, self.edits, self.binary = ({}, {}), 0, None, None

    def text(self):  # P-9 to P-13
        (b, a), rename = [m and m.encode() for m in self.modes], self.operation == "rename"
        sides = (b"a/" + self.old, b"b/" + self.path)
        out = [b"diff --git %s %s" % tuple(map(quote, sides))]
        out += [] if b else [b"new file mode " + a]
        out += [] if a else [b"deleted file mode " + b]
        out += [b"old mode " + b, b"new mode " + a] if a and b and a != b else []
        moved = [b"rename from " + quote(self.old), b"rename to " + quote(self.path)]
        out += [b"similarity index 100%", *moved] if rename else []
        out += [b"index %s..%s" % tuple(i.encode() for i in self.ids) + (b" " + a if a == b else b"")]
        if self.edits is not None:
            tabs = [b"\t" if b" " in name and b'"' not in name else b"" for name in sides]
            names = [quote(name) + tab if mode else b"/dev/null" for name, tab, mode in zip(sides, tabs, (b, a))]
            out += [b"--- " + names[0], b"+++ " + names[1], hunks_of(*self.lines, self.edits, self.size)[:-1]]
        elif self.binary is not None:
            out += [b"GIT binary patch", b"literal %d" % len(self.binary), binary_lines(self.binary)]
        return b"\n".join(out) + b"\n"

def made(operation, old, path, before, after):  # the section of files, and what is said of it
    files, (a, b) = (before, after), (f[1] if f else b"" for f in (before, after))
    s = Section(operation, old, path, [f and f[0] for f in files], [blob_id(f[1]) if f else ZEROS for f in files])
    if a != b and b"\0" in a + b:
        s.binary = b
    elif a != b:
        s.lines, s.size = (lines_of(a), lines_of(b)), len(lines_of(a))
        s.edits = edits(*s.lines)
    source = {"from": old.decode()} if operation == "rename" else {}
    hashes = {side + "_sha256": f and hashed(f[1]) for side, f in zip(("base", "after"), files)}
    return s.text(), {"path": path.decode(), "operation": operation, **source, **hashes}

def make(base, after):
    """The canonical bytes of a change, and what is said of its operations, in the order of the bytes (P-1 to P-8)."""
    touched = sorted(p for p in {**base, **after} if base.get(p) != after.get(p))
    need(touched, "P-2: touches nothing")
    for p in touched:
        check_path(p)
        need(all(f is None or f[0] in MODES for f in (base.get(p), after.get(p))), "P-1: mode")
        over = {base[q][0] for q in above(p)[:-1] if q in base}
        need(over <= {*MODES, "040000"}, "P-1: link or submodule above")
    check_collisions([p for p in after if after[p][0] != "040000"], [p for p in touched if p not in base])
    deleted, ops = [p for p in touched if p not in after], []
    for p in [p for p in touched if p in after]:
        old = p if p in base else next((q for q in deleted if base[q][1] == after[p][1]), None)  # P-7
        kind = "update" if p in base else "rename" if old is not None else "add"
        if kind == "rename":
            deleted.remove(old)
        ops.append((p, kind, p if old is None else old, base.get(old), after[p]))
    ops += [(p, "delete", p, base[p], None) for p in deleted]
    done = [made(kind, old, p, *files) for p, kind, old, *files in sorted(ops)]
    return b"".join(text for text, _ in done), [said for _, said in done]

def read_section(m):  # what is read loosely here is made anew and compared, so it has the one form (P-25, P-26)
    names, new, deleted, old_mode, new_mode, source, target, *ids, mode, text, binary = m.groups()
    half = unquote(names[:len(names) // 2])[2:]
    modes = [old_mode or deleted or mode, new_mode or new or mode]
    modes = [None if new else modes[0], None if deleted else modes[1]]
    need(all(modes) or any(modes) and (new or deleted), "P-9: no mode")
    operation = "add" if new else "delete" if deleted else "rename" if source else "update"
    old, path = (unquote(source), unquote(target)) if source else (half, half)
    s = Section(operation, old, path, [m and m.decode() for m in modes], [i.decode() for i in ids])
    need([i == ZEROS for i in s.ids] == [m is None for m in modes], "P-11: zeros")
    if text:
        read_hunks(s, text)
    s.binary = binary_read(binary) if binary else None
    need(s.text() == m.group(), "P-9 to P-16: another form")  # a KeyError: common lines that are not there (P-14)
    s.shown = shown(s)
    need(all(x is None or blob_id(x) == i for x, i in zip(s.shown, s.ids)), "P-26: index name")
    return s

def read_hunks(s, text):
    s.edits, ends = [], [0, 0]
    for m in form("hunk").finditer(text):
        ends = [int(m.group(g)) - (m.group(g + 1) is None or int(m.group(g + 1)) > 0) for g in (1, 3)]
        for mark, line, cut in form("hunk_line").findall(m.group(5)):
            begin = list(ends)
            for side in [n for n in (0, 1) if mark in (b" -", b" +")[n]]:
                s.lines[side][ends[side]] = line if cut else line + b"\n"
                ends[side] += 1
            if mark != b" ":
                add_edit(s.edits, begin[0], ends[0], begin[1], ends[1])
    for e, f in zip([[0, 0, 0, 0]] + s.edits, s.edits):
        need(f[0] - e[1] == f[2] - e[3] >= 0, "P-15: positions do not agree")
    for lines, end in zip(s.lines, ends):
        for n, line in lines.items():
            need(line and b"\0" not in line and (line[-1:] == b"\n" or n == end - 1), "P-12, P-18")
    s.size = ends[0]

def shown(s):  # the bytes of both sides that a section shows whole, or None (P-26, P-27)
    op, same, one = s.operation, s.ids[0] == s.ids[1], s.operation in ("add", "delete")
    need((one or same == (s.edits is None and s.binary is None)) and (op != "rename" or same), "P-9, P-7")
    if s.edits is not None:
        old, new = (b"".join(side.values()) for side in s.lines)
        need(not one or s.edits[0][::2] == [0, 0] and len(s.edits) == 1 and not (old if op == "add" else new), "P-25")
        need(not one or EMPTY_ID not in s.ids, "P-26: an empty file has no lines")
        return [old if op == "delete" else None, new if op == "add" else None]
    if s.binary is not None:
        need(not s.binary if op == "delete" else op == "update" or b"\0" in s.binary, "P-13")
        return [None, s.binary if op != "delete" else None]
    need(EMPTY_ID in s.ids if one else op == "rename" or s.modes[0] != s.modes[1], "P-2, P-26: no content")
    return [b"" if i == EMPTY_ID else None for i in s.ids]

def apply(s, data):  # P-24
    if s.edits is None:
        return data if s.binary is None else s.binary
    lines, out, at = lines_of(data), [], 0
    need(all(lines[n] == line for n, line in s.lines[0].items()), "P-24: does not apply")
    for a, b, c, d in s.edits:
        out += lines[at:a] + [s.lines[1][n] for n in range(c, d)]
        at = b
    return b"".join(out + lines[at:])

def read_form(data):  # P-25, P-26: the sections that the bytes show by themselves
    found = list(form("section").finditer(data))
    need(found and b"".join(m.group() for m in found) == data, "P-9: something else than sections")
    out = list(map(read_section, found))
    paths, order = [p for s in out for p in {s.old, s.path}], [s.path for s in out]
    for p in paths:
        check_path(p)
    need(order == sorted(order) and len(set(paths)) == len(paths), "P-8, P-24: order")
    return out

def read(patch, base):  # P-24: what is said of the operations of canonical bytes of a change of this base
    after = dict(base)
    for s in read_form(patch):
        mode, content = base.get(s.old, (None, b""))
        need(mode == s.modes[0] and (s.path not in base or s.path == s.old), "P-24: is there, or not, or of a mode")
        after.pop(s.old, None)
        content = apply(s, content)
        if s.modes[1]:
            after[s.path] = (s.modes[1], content)
    again, said = make(base, after)
    need(again == patch, "P-24: other canonical bytes")
    return said

def fingerprints(patch_id):  # P-40
    return {k: p + core.take(patch_id, "hex64") for k, p in core.TABLES["prefixes"].items()}
def patch_of(fingerprint):  # the patch_id of a fingerprint, or None (P-41)
    m = re.fullmatch("(?:secret:|protected:)?patchset:([0-9a-f]{64})", fingerprint)
    return m and m.group(1)
