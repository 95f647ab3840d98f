"""Bundles (B-1 to B-6) and Git objects (H-1, H-3). Packs are read by git, in a temporary repository."""
import os
import re
import subprocess
import tempfile

from cjson import Refused, need

MOST = 512 * 2**20  # bytes of all objects together (B-6)
ENV = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}

def run(*args, data=b"", rule="BUNDLE"):
    """What a program writes; refused if it fails."""
    p = subprocess.run(args, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
    need(p.returncode == 0, " ".join(args[:3]) + " refuses", rule)
    return p.stdout

def read_pack(data, tips=()):
    """B-4: name -> (type, bytes). git index-pack checks the rest, and names each object by its content. All objects that
    the tips reach must be there."""
    need(data[:8] == b"PACK\0\0\0\2", "B-4: pack", "BUNDLE")
    out, at = {}, 0
    with tempfile.TemporaryDirectory() as d:
        run("git", "init", "-q", "--bare", "--template=", d)
        name = os.path.join(d, "objects", "pack", "pack-0.pack")
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "wb") as f:
            f.write(data)
        run("git", "-C", d, "index-pack", name)
        every = ("git", "-C", d, "cat-file", "--batch-all-objects", "--buffer")
        need(sum(map(int, run(*every, "--batch-check=%(objectsize)").split())) <= MOST, "B-6: too large", "BUNDLE")
        found = run(*every, "--batch")
        if tips:
            run("git", "-C", d, "rev-list", "--objects", "--quiet", "--stdin", data=("\n".join(tips) + "\n").encode())
    while at < len(found):
        end = found.index(b"\n", at)
        oid, kind, size = found[at:end].decode().split()
        out[oid] = (kind, found[end + 1:end + 1 + int(size)])
        at = end + int(size) + 2
    return out

HEADER = re.compile(rb"# v(?:2 git bundle\n|3 git bundle\n(?:@object-format=sha1\n)?)((?:[0-9a-f]{40} [^ \0\n]+\n)+)\n")  # B-1 to B-3

class Bundle:
    """refs: list of (name, id); objects: id -> (type, bytes)."""

    def __init__(self, data, whole=False):
        m = HEADER.match(data)
        need(m and m.group().count(b"\n") <= 10001 and all(len(l) < 4096 for l in m.group().split(b"\n")), "B-1 to B-3: header", "BUNDLE")
        try:
            self.refs = [(l[41:].decode(), l[:40].decode()) for l in m.group(1).splitlines()]
        except UnicodeDecodeError:
            raise Refused("B-3: name of a ref", "BUNDLE")
        self.objects = read_pack(data[m.end():], [i for _, i in self.refs] if whole else ())

    def ledger(self, name=None):  # B-5
        found = [x for x in self.refs if (x[0] == name if name is not None else len(self.refs) == 1 or x[0].startswith("refs/agent/"))]
        need(len(found) == 1, "B-5: which ref?", "BUNDLE")
        if name is None and not found[0][0].startswith("refs/agent/"):
            root = {e[1] for e in parse_tree(self.get(self.commit(found[0][1])["tree"], "tree"))}
            need(root & {b"ledger.json", b"transactions"}, "B-5: not a ledger", "BUNDLE")
        return found[0]

    def get(self, oid, kind):  # H-1
        t, data = self.objects.get(oid, (None, None))
        need(t == kind, "H-1: %s %s is missing" % (kind, oid), "OBJECT")
        return data

    def commit(self, oid):
        return parse_commit(self.get(oid, "commit"))

    def changes(self, old, new, prefix=b"", depth=0):
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

ENTRY = re.compile(rb"(40000|100644|100755|120000|160000) ([^\0/]+)\0(.{20})", re.S)

def parse_tree(data):
    """H-3: (mode, name, id) of each entry."""
    out = [(m.group(1).decode(), m.group(2), m.group(3).hex()) for m in ENTRY.finditer(data)]
    keys, names = [n + b"/" * (m == "40000") for m, n, _ in out], [n for _, n, _ in out]
    need(out and sum(len(m) + len(n) + 22 for m, n, _ in out) == len(data), "H-3: entry, or an empty tree", "L10")
    need(keys == sorted(keys) and len(set(names)) == len(names), "H-3: order", "L10")
    need(not {n.lower() for n in names} & {b".", b"..", b".git"}, "H-3: name", "L10")
    return out

COMMIT = re.compile(rb"tree ([0-9a-f]{40})\n((?:parent [0-9a-f]{40}\n)*)")

def parse_commit(data):
    """What git needs to walk; the rest is compared as bytes (H-5)."""
    head, _, message = data.partition(b"\n\n")
    m = COMMIT.match(head + b"\n")
    need(m, "H-1: commit", "OBJECT")
    return {"tree": m.group(1).decode(), "parents": m.group(2).decode().split()[1::2], "message": message}

def split_signature(data):
    """S-50: a commit without its signature, and the armored text or None."""
    head, _, message = data.partition(b"\n\n")
    if b"\ngpgsig" not in head:
        return data, None
    m = re.fullmatch(rb"((?:(?!gpgsig)[^\n]*\n)+)gpgsig ([^\n]*(?:\n [^\n]*)*)", head)
    need(m, "S-50: header", "L13")
    return m.group(1) + b"\n" + message, m.group(2).replace(b"\n ", b"\n").decode("latin-1") + "\n"
