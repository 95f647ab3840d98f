#!/usr/bin/env python3
"""A verifier of Countersign's records, written from the pages in docs/spec alone.

Without arguments it answers questions as vectors/README.md has them (V-6 to V-10).
For people: verify.py BUNDLE [--ref REF] [--tip COMMIT] [--signers FILE] [--witnesses FILE] [--quorum N]
"""
import argparse, base64, json, pathlib, re, sys

import core, patch, policy, signatures, transaction, verdict
from core import Refused, attempt, hashed, line_of, need, rfc3339, sha
from history import Audit, Bundle

def raw(v):  # Bytes
    need(isinstance(v, str) or set(v) == {"base64"}, "not Bytes")
    return v.encode("utf-8") if isinstance(v, str) else core.unbase64(v["base64"])
def path(v):
    return core.unbase64(v[7:]) if v.startswith("base64:") else raw(v)

def tree(v):  # path (bytes) -> (mode, bytes)
    files = [(path(p), f if isinstance(f, dict) and "mode" in f else {"mode": "100644", "content": f})
             for p, f in v.items()]
    need(len(dict(files)) == len(files) and all(re.fullmatch("[0-7]{6}", f["mode"]) for _, f in files), "no Tree")
    return {p: (f["mode"], raw(f["content"])) for p, f in files}

def shown(b):
    text = attempt(b.decode, "utf-8")
    return {"base64": base64.b64encode(b).decode()} if text is None else text
def picked(v, *members):
    return {k: v[k] for k in members}
def described(file):
    return {"policy": line_of(file).decode(), "sha256": hashed(line_of(file))}
def made(data, files):
    return {"patch_id": sha(data), "patch": shown(data), "files": files}
def patch_make(base, after):
    for p, (mode, _) in [*base.items(), *after.items()]:  # all is touched; so P-1 and P-3 hold for all
        patch.check_path(p)
        need(mode in (*patch.MODES, "040000"), "P-1: mode")
    return made(*patch.make(base, after))

def checked(found):  # what was found, if there are no problems; else the first, or NEWER
    for rule, text in found.problems:
        print(rule, ascii(text), file=sys.stderr)
    for rule, text in sorted(found.problems, key=lambda p: p[0] != "NEWER")[:1]:
        raise Refused(text, rule)
    return found

def transaction_check(id, files):
    r = checked(transaction.Record(id, files).check())
    approvals = [p for _, p in r.of_type("approval/decision") if p["decision"] == "approve"]
    return {"status": r.status, "closed": r.closed, "patch_id": r.pid, "events": len(r.events),
            "approvals": [[p["fingerprint"], p["source"]["author"]["id"]] for p in approvals]}

def verdict_decide(id, files, policy, now, head, denials, standing=None, drift=None):
    r = transaction.Record(id, files).check()
    need(r.folded is not None and (standing is None or verdict.check_standing(r, standing)), "D-1, D-21")
    need(drift is None or core.record(drift, "drift"), "D-22")
    v = verdict.Verdict(r, len(r.events), policy, now, head, standing, drift, None, denials, False)
    return {"verdict": v.verdict, "break_glass": v.broken, "counted": v.counted,
            "needs": [picked(x, "kind", "fingerprint", "required", "approved") for x in v.needs]}

def signature_sshsig(message, signature, namespace):
    key = signatures.sshsig(message, signature, namespace)
    return {"key_fingerprint": key.fingerprint, "key_type": key.type}
def signature_line(line):
    times = {"valid_after": line.after, "valid_before": line.before}
    return {"principals": line.principals, "key_fingerprint": line.key.fingerprint,
            **{k: (core.EPOCH + t // 1 * core.SECOND).isoformat()[:19] + "Z" for k, t in times.items() if t}}

def signature_decision(statement, signature, line, principal, recorded_at, hardware=False, pin=False, passkeys=""):
    key = signatures.sshsig(statement, signature, signatures.NAMESPACE)
    need(key.fingerprint == line.key.fingerprint, "S-30: another key")
    times = [rfc3339(signatures.statement(statement)["decided_at"]), recorded_at]
    need(line.good_for([principal], times) is not None, "S-26: not good for the principal")
    need(verdict.hardware_allows({"hardware": hardware, "pin": pin, "passkeys": passkeys}, key), "S-29")
    return {"key_fingerprint": key.fingerprint}

def history_bundle(bundle):
    refs = Bundle(bundle, whole=True).refs
    need(len(dict(refs)) == len(refs), "B-3: a ref twice", "BUNDLE")
    return {"refs": dict(refs)}
def history_audit(bundle, ref=None, tip=None, allowed_signers=None, witnesses=None, quorum=None):
    a = checked(Audit(bundle, ref, tip, allowed_signers, witnesses, quorum))
    return {"tip": a.tip, "commits": len(a.commits), "transactions": len(a.states), "states": a.states}
def json_document(document):
    line = line_of(core.parse(document))
    return {"canonical": line[:-1].decode(), "sha256": sha(line)}

READ = {"bytes": raw, "path": path, "tree": tree, "time": rfc3339, "line": signatures.Line,
        "paths": lambda v: list(map(path, v)), "armored": lambda v: raw(v).decode("latin-1"),
        "policy": lambda v: policy.read_file(raw(v)), "recorded": lambda v: policy.read_recorded(raw(v))}
OPS = {  # class and op -> what members of the input are, if they are not as they stand, and the values of an answer
    "json.document": ("document:bytes", json_document),
    "json.line": ("line:bytes", lambda line: {"sha256": sha(line_of(core.read_line(line)))}),
    "json.id": ("document:bytes", lambda document, prefix: {
        "id": prefix + "_" + json_document(document)["sha256"][:16]}),
    "patch.make": ("base:tree after:tree", patch_make),
    "patch.read": ("patch:bytes base:tree", lambda **given: made(given["patch"], patch.read(**given))),
    "patch.path": ("path:path", patch.check_path),
    "patch.paths": ("paths:paths", patch.check_collisions),
    "patch.diff": ("before:bytes after:bytes", lambda before, after: {"body": shown(patch.body(before, after))}),
    "patch.fingerprints": ("", patch.fingerprints),
    "policy.file": ("file:policy", described),
    "policy.document": ("document:recorded", lambda document: {"sha256": hashed(line_of(document))}),
    "policy.tighten": ("default:policy base:policy", lambda default, base: described(policy.tighten(default, base))),
    "policy.glob": ("", lambda glob, path: {"matches": policy.glob(glob)(path)}),
    "policy.owners": ("codeowners:bytes", lambda codeowners, path: {"owners": policy.owners(codeowners, path)}),
    "policy.needs": ("file:policy", lambda file, paths, secrets: {"needs": policy.needs(file, paths, secrets)}),
    "transaction.check": ("files:tree", transaction_check),
    "transaction.fold": ("events:bytes", lambda events: {"transaction": checked(transaction.Fold(events)).folded}),
    "verdict.decide": ("files:tree policy:recorded now:time", verdict_decide),
    "signature.sshsig": ("message:bytes signature:armored", signature_sshsig),
    "signature.line": ("line:line", signature_line),
    "signature.statement": ("statement:bytes", lambda statement: picked(
        signatures.statement(statement), "decision", "decided_at", "fingerprints")),
    "signature.decision": ("statement:bytes signature:armored line:line recorded_at:time", signature_decision),
    "history.bundle": ("bundle:bytes", history_bundle),
    "history.audit": ("bundle:bytes allowed_signers:bytes witnesses:bytes", history_audit)}

def answer(question):  # to one question (V-8). Whatever goes wrong refuses (U-6)
    members, op = OPS.get("%s.%s" % (question.get("class"), question.get("op")), ("", None))
    out, kinds = {"id": question.get("id")}, dict(m.split(":") for m in members.split())
    if op is None:
        return dict(out, verdict="unsupported")
    try:
        given = {k: READ[kinds[k]](v) if k in kinds and v is not None else v for k, v in question["input"].items()}
        return dict(out, verdict="accept", values=op(**given) or {})
    except Exception as e:
        print("%s: %s" % (out["id"], ascii(repr(e))), file=sys.stderr)
        return dict(out, verdict="refuse", rule=getattr(e, "rule", ""))

def content(name):
    return pathlib.Path(name).read_bytes()

def main():
    if len(sys.argv) == 1:
        for line in sys.stdin.buffer:
            question = attempt(json.loads, line)
            print(json.dumps(answer(question if isinstance(question, dict) else {})), flush=True)
        return 0
    p = argparse.ArgumentParser(description="Audits the ledger in a bundle.")
    p.add_argument("bundle", type=content)
    for name, kind in {"ref": str, "tip": str, "signers": content, "witnesses": content, "quorum": int}.items():
        p.add_argument("--" + name, type=kind)
    a = Audit(**vars(p.parse_args()))
    for rule, text in a.problems:
        print(rule, ascii(text), sep="\t")
    print("%s: %d commits, %d transactions, %d findings" % (a.tip, len(a.commits), len(a.states), len(a.problems)))
    rules = {rule for rule, _ in a.problems}
    return 0 if not rules else 6 if rules == {"NEWER"} else 1

if __name__ == "__main__":
    sys.exit(main())
