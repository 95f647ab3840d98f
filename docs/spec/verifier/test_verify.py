"""Small tests of the verifier, from the text: python3 -m unittest (in this directory)."""
import base64
import hashlib
import json
import os
import subprocess
import tempfile
import unittest
import zlib

import cjson
import history
import linediff
import patch
import policy
import signatures
import transaction
import verify

TX = "tx_01HZZZZZZZZZZZZZZZZZZZZZZZ"
ME = {"id": "local:me@example.org", "kind": "user", "login": "me"}

def ask(cls, op, **given):
    return verify.answer({"class": cls, "op": op, "id": "x", "input": given})

class Transaction:
    """Builds a directory, stage by stage."""

    def __init__(self):
        self.lines, self.files, self.minute, self.commits = [], {}, 0, []
        base, after = {b"a.txt": ("100644", b"1\n")}, {b"a.txt": ("100644", b"2\n"), b"b/c": ("100755", b"x\n")}
        self.patch, ops = patch.make(base, after)
        self.pid = cjson.sha(self.patch)
        self.before = {"a.txt": cjson.hashed(b"1\n"), "b/c": None}
        self.after = {"a.txt": cjson.hashed(b"2\n"), "b/c": cjson.hashed(b"x\n")}
        self.policy = cjson.line_of(policy.read_file(b"approvals: {allow_author: true}\n"))
        self.ref = {"commit": "c" * 40, "sha256": cjson.hashed(self.policy)}

    def event(self, kind, /, **payload):
        prev = cjson.hashed(self.lines[-1]) if self.lines else None
        self.lines.append(cjson.line_of({"seq": len(self.lines) + 1, "prev": prev, "type": kind, "payload": dict(payload, transaction_id=TX),
                                         "timestamp": "2024-06-01T00:%02d:00.000Z" % self.minute}))

    def artifact(self, kind, doc):
        data = cjson.line_of(doc)
        path = "artifacts/%s.json" % cjson.sha(data)
        self.files[path] = data
        self.event("artifact/stored", artifact_id=cjson.sha(data), content_type="application/json", kind=kind, path=path, redacted=False,
                   stored_sha256=cjson.hashed(data))
        return path

    def review(self):
        self.event("tx/meta", approval_policy={"local": True, "required": 1}, base_commit="b" * 40, cwd="", policy_commit="c" * 40, proposer=ME,
                   sandbox_policy={"network_access": False, "type": "workspace-write", "writable_roots": []}, summary="s", workspace_roots=[])
        self.event("tx/status", **{"from": "created", "to": "in_progress", "reason": ""})
        self.artifact("policy", {"commit": "c" * 40, "found": True, "policy": self.policy.decode(), "schema": "countersign/policy/1",
                                 "sha256": self.ref["sha256"]})
        self.event("turn/start", input="", mode="", turn_id="t1")
        self.files["patches/%s.diff" % self.pid] = self.patch
        meta = {"after_sha256_by_path": self.after, "base_sha256_by_path": self.before, "applied": False, "contains_secret_introductions": False,
                "base_commit": "b" * 40, "kind": "patch", "needle": "", "patch_fingerprint": "patchset:" + self.pid, "patch_id": self.pid,
                "policy_sha256": self.ref["sha256"], "workspace_root": "", "target_files": ["a.txt", "b/c"]}
        self.event("turn/item", turn_id="t1", item={"id": "i1", "type": "fileChange", "patchId": self.pid, "metadata": meta})
        self.event("tx/status", **{"from": "in_progress", "to": "proposed", "reason": ""})
        self.event("approval/request", approval_request_id="r1", fingerprint="patchset:" + self.pid, item_id="i1", kind="fileChange",
                   policy=self.ref, prompt="", turn_id="t1")
        self.event("tx/status", **{"from": "proposed", "to": "awaiting_approval", "reason": ""})
        return self.stage("review", "awaiting_approval")

    def decide(self, decision="approve"):
        self.event("approval/decision", approval_request_id="r1", decision=decision, fingerprint="patchset:" + self.pid, policy=self.ref, source={
            "author": ME, "body_sha256": "", "commit": "", "created_at": "2024-06-01T00:01:00Z", "id": "", "kind": "local", "permission": "", "url": ""})
        self.event("tx/status", **{"from": "awaiting_approval", "to": "proposed", "reason": ""})
        return self.stage(decision, "approved")

    def apply(self, required=1):
        self.event("apply/start", apply_id="a1", approvals=[{"fingerprint": "patchset:" + self.pid, "kind": "fileChange", "required": required}],
                   base_commit="b" * 40, files=["a.txt", "b/c"], patch_ids=[self.pid], policy=self.ref, target="worktree")
        return self.stage("apply", "started")

    def stage(self, stage, outcome):
        self.files["events.jsonl"] = b"".join(self.lines)
        self.files["transaction.json"] = cjson.line_of(transaction.Fold(self.files["events.jsonl"]).doc)
        message = "%s: s\n\nCountersign-Transaction: %s\nCountersign-Stage: %s\nCountersign-Patch: %s\nCountersign-Outcome: %s\n" % (
            stage, TX, stage, self.pid, outcome)
        self.commits.append((1717200000 + 60 * self.minute, message.encode(), dict(self.files)))
        self.minute += 1
        return self

    def check(self, **more):
        return ask("transaction", "check", id=TX, files={**{p: d.decode() for p, d in self.files.items()}, **more})

    def bundle(self):
        objects, parent = {}, None

        def put(kind, data):
            name = hashlib.sha1(b"%s %d\0" % (kind, len(data)) + data).digest()
            objects[name] = ({b"commit": 1, b"tree": 2, b"blob": 3}[kind], data)
            return name

        def tree(files):
            entries = {}
            for p, d in files.items():
                head, _, rest = p.partition("/")
                entries.setdefault(head, {})[rest] = d
            out = [(n + "/", b"40000 " + n.encode(), tree(e)) if "" not in e else (n, b"100644 " + n.encode(), put(b"blob", e[""])) for n, e in entries.items()]
            return put(b"tree", b"".join(b + b"\0" + i for _, b, i in sorted(out)))

        top = "transactions/%s/%s/%s/" % (history.day(TX), cjson.sha(TX.encode())[:2], TX)
        line = cjson.line_of({"base_commit": "b" * 40, "transaction_id": TX})
        for t, message, files in self.commits:
            all_files = {top + p: d for p, d in files.items()}
            all_files["ledger.json"] = cjson.line_of({"created_at": "2024-06-01T00:00:00.000Z", "schema_version": "2"})
            all_files["proposed/%s/%s/%s.json" % (self.pid[:2], self.pid, TX)] = line
            who = b"countersign <countersign@localhost> %d +0000" % t
            parent = put(b"commit", b"tree %s\n%sauthor %s\ncommitter %s\n\n%s" % (
                tree(all_files).hex().encode(), b"parent %s\n" % parent.hex().encode() if parent else b"", who, who, message))
        pack = b"PACK\0\0\0\2" + len(objects).to_bytes(4, "big")
        for kind, data in objects.values():
            size, head = len(data) >> 4, [kind << 4 | len(data) & 15]
            while size:
                head[-1] |= 128
                head.append(size & 127)
                size >>= 7
            pack += bytes(head) + zlib.compress(data)
        pack += hashlib.sha1(pack).digest()
        return b"# v2 git bundle\n%s refs/agent/ledger\n\n" % parent.hex().encode() + pack

def b64(data):
    return {"base64": base64.b64encode(data).decode()}

class Tests(unittest.TestCase):
    def test_json(self):
        self.assertEqual(ask("json", "document", document='{"\\u00e9":1e21,"a":-0}')["values"]["canonical"], '{"a":0,"\u00e9":1e+21}')
        for bad in ('{"a":1,"\\u0061":2}', "[" * 1001 + "]" * 1001, "1e999", "01", "NaN"):
            self.assertEqual(ask("json", "document", document=bad)["verdict"], "refuse", bad[:9])

    def test_patch(self):
        t = Transaction()
        self.assertEqual(ask("patch", "read", patch=t.patch.decode(), base={"a.txt": "1\n"})["values"]["patch_id"], t.pid)
        self.assertEqual(ask("patch", "read", patch=t.patch.decode(), base={"a.txt": "0\n"})["verdict"], "refuse")
        for bad in (".git", "a/.GIT ", "x/con.txt", "git~1", "a//b", "a\u200bb", "ABCDEF~1.TXT", "/a", "..", "a:b", "a."):
            self.assertEqual(ask("patch", "path", path=bad)["verdict"], "refuse", bad)
        self.assertEqual(ask("patch", "paths", paths=["A/x", "a/y"])["verdict"], "refuse")
        self.assertEqual(linediff.body(b"a\nb\n", b"b\nc"), b"@@ -1,2 +1,2 @@\n-a\n b\n+c\n\\ No newline at end of file\n")

    def test_policy(self):
        for bad in ("a: 1\n", "version: 0x1\n", "version: 1\nversion: 1\n", "bots: [a, a]\n", "version: ~\n", "bots: &a [b]\n", "", "sandbox:\n"):
            self.assertEqual(ask("policy", "file", file=bad)["verdict"], "refuse", bad)
        self.assertTrue(ask("policy", "glob", glob="**/.VSCODE/*.json", path="x/.vscode/mcp.json")["values"]["matches"])
        needs = ask("policy", "needs", file="protected:\n- paths: ['*.sql']\n  users: [ann]\n", paths=["db/a.SQL"], secrets=False)["values"]["needs"]
        self.assertEqual(needs[1]["rules"], ["protected[0]"])

    def test_transaction(self):
        t = Transaction().review().decide().apply()
        a = t.check()
        self.assertEqual((a["verdict"], a.get("values", {}).get("events")), ("accept", 11), a)
        self.assertEqual(t.check(extra="x")["rule"], "L10")
        self.assertEqual(Transaction().review().decide().apply(2).check()["rule"], "L3")
        self.assertEqual(Transaction().review().apply().check()["rule"], "L3")
        d = ask("verdict", "decide", id=TX, files={p: x.decode() for p, x in Transaction().review().decide().files.items()},
                policy=t.policy.decode(), now="2024-06-01T01:00:00Z", head="", denials=[])
        self.assertEqual((d["values"]["verdict"], d["values"]["counted"]), ("approved", [True]))

    def test_history(self):
        t = Transaction().review().decide().apply()
        good = t.bundle()
        self.assertEqual(ask("history", "audit", bundle=b64(good))["values"]["states"], {TX: "proposed"})
        self.assertEqual(ask("history", "audit", bundle=b64(good), tip="0" * 40)["rule"], "L14")
        self.assertEqual(ask("history", "audit", bundle=b64(good[:-1]))["rule"], "BUNDLE")
        t.commits[1] = (t.commits[1][0] + 1, *t.commits[1][1:])
        self.assertEqual(ask("history", "audit", bundle=b64(t.bundle()))["rule"], "L15")
        with tempfile.TemporaryDirectory() as d:  # git reads it, and packs it with deltas
            with open(os.path.join(d, "b"), "wb") as f:
                f.write(good)
            subprocess.run(["git", "init", "-q", d], check=True)
            subprocess.run(["git", "-C", d, "fetch", "-q", "b", "refs/agent/ledger:refs/agent/ledger"], check=True)
            subprocess.run(["git", "-C", d, "bundle", "create", "-q", "c", "refs/agent/ledger"], check=True)
            with open(os.path.join(d, "c"), "rb") as f:
                self.assertEqual(ask("history", "audit", bundle=b64(f.read()))["verdict"], "accept")

    def test_signature(self):
        with tempfile.TemporaryDirectory() as d:
            for kind in ("ed25519", "ecdsa", "rsa"):
                key = os.path.join(d, kind)
                subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "", "-f", key], check=True)
                sign = subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "n"], input=b"m", stdout=subprocess.PIPE, check=True)
                sig = sign.stdout.decode()
                with open(key + ".pub") as f:
                    line = signatures.Line("me@example.org " + f.read().strip())
                self.assertEqual(ask("signature", "sshsig", message="m", signature=sig, namespace="n")["values"]["key_fingerprint"], line.key.fingerprint)
                self.assertEqual(ask("signature", "sshsig", message="M", signature=sig, namespace="n")["verdict"], "refuse")

    def test_protocol(self):
        self.assertEqual([ask("json", op)["verdict"] for op in ("nothing", "document")], ["unsupported", "refuse"])
        json.dumps(ask("patch", "diff", before="a", after={"base64": "/w=="}))

if __name__ == "__main__":
    unittest.main()
