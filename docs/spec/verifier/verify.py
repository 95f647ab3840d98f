#!/usr/bin/env python3
"""A verifier of Countersign's records, written from the pages in docs/spec alone.

Without arguments it answers questions as vectors/README.md has them (V-6 to V-10).
For people: verify.py BUNDLE [--ref REF] [--tip COMMIT] [--allowed-signers FILE] [--witnesses FILE] [--quorum N]
"""
import argparse
import json
import pathlib
import sys
import traceback

import cjson
import globs
import linediff
import patch
import policy
import signatures
import transaction
import verdict
from cjson import Refused, from_bytes, hashed, need, sha, to_bytes, to_path, to_tree
from gitstore import Bundle
from history import Audit

def canonical(document):
    v = cjson.parse(to_bytes(document))
    return {"canonical": cjson.canonical(v).decode(), "sha256": sha(cjson.line_of(v))}

def made(data, ops):
    return {"patch_id": sha(data), "patch": from_bytes(data), "files": [o.to_json() for o in ops]}

def nothing(_):
    return {}

def described(p):
    line = cjson.line_of(p)
    return {"policy": line.decode(), "sha256": hashed(line)}

def hash_of(data, check, form=hashed):
    check(data)
    return {"sha256": form(data)}

def read_policy(data):
    return policy.read_file(to_bytes(data))

def refuse_problems(problems):
    for rule, text in problems:
        print(rule, ascii(text), file=sys.stderr)
    if problems:
        raise Refused(*next((p for p in problems if p[0] == "NEWER"), problems[0])[::-1])

def transaction_check(txid, files):
    r = transaction.Record(txid, to_tree(files)).check()
    refuse_problems(r.problems)
    approvals = [[p["fingerprint"], p["source"]["author"]["id"]] for _, p in r.of_type("approval/decision") if p["decision"] == "approve"]
    return {"status": r.fold.status, "closed": r.fold.closed, "patch_id": r.pid, "events": len(r.events), "approvals": approvals}

def transaction_fold(events):
    f = transaction.Fold(to_bytes(events))
    refuse_problems(f.problems)
    return {"transaction": f.folded}

def verdict_decide(txid, files, recorded, now, head, standing, drift, denials):
    r = transaction.Record(txid, to_tree(files)).check()
    need(r.fold.folded is not None and r.proposal is not None, "D-1: the events do not fold, or propose nothing")
    if standing is not None:
        verdict.check_standing(r, standing)
    if drift is not None:
        cjson.record(drift, "drift", "D-22")
    v = verdict.Verdict(r, len(r.events), policy.read_recorded(to_bytes(recorded)), signatures.rfc3339(now), head, standing, drift, None, denials, True)
    needs = [{k: x[k] for k in ("kind", "fingerprint", "required", "approved")} for x in v.needs]
    return {"verdict": v.verdict, "break_glass": v.broken, "needs": needs, "counted": v.counted}

def signature_sshsig(message, signature, namespace):
    key, _ = signatures.sshsig(to_bytes(message), to_bytes(signature).decode("latin-1"), namespace)
    return {"key_fingerprint": key.fingerprint, "key_type": key.type}

def signature_line(text):
    line = signatures.Line(text)
    times = {k: signatures.utc(t) for k, t in (("valid_after", line.after), ("valid_before", line.before)) if t is not None}
    return {"principals": line.principals, "key_fingerprint": line.key.fingerprint, **times}

def signature_statement(data):
    st = signatures.statement(to_bytes(data))
    return {k: st[k] for k in ("decision", "decided_at", "fingerprints")}

def signature_decision(data, signature, text, principal, recorded_at, hardware, pin):
    data = to_bytes(data)
    st, line = signatures.statement(data), signatures.Line(text)
    key, person = signatures.sshsig(data, to_bytes(signature).decode("latin-1"), signatures.NAMESPACE)
    said, event = signatures.rfc3339(st["decided_at"]), signatures.rfc3339(recorded_at)
    need(key.fingerprint == line.key.fingerprint, "S-30: another key")
    need(line.good_for([principal], [said, event]), "S-26: not good for the principal")
    need(verdict.hardware_allows({"hardware": hardware, "pin": pin}, key, person), "S-29")
    return {"key_fingerprint": key.fingerprint}

def history_bundle(data):
    refs = Bundle(to_bytes(data), whole=True).refs
    need(len(dict(refs)) == len(refs), "B-3: a ref twice", "BUNDLE")
    return {"refs": dict(refs)}

def history_audit(bundle, ref, tip, signers, witnesses, quorum):
    files = [None if x is None else to_bytes(x) for x in (signers, witnesses)]
    a = Audit(to_bytes(bundle), ref, tip, *files, quorum)
    refuse_problems(a.problems)
    return {"tip": a.tip, "commits": len(a.commits), "transactions": len(a.states), "states": a.states}

OPS = {  # class and op -> members of the input, and the values of what is accepted
    "json.document": ("document", canonical),
    "json.line": ("line", lambda line: hash_of(to_bytes(line), cjson.read_line, sha)),
    "json.id": ("document prefix", lambda document, prefix: {"id": prefix + "_" + sha(cjson.line_of(cjson.parse(to_bytes(document))))[:16]}),
    "patch.make": ("base after", lambda base, after: made(*patch.make(to_tree(base), to_tree(after)))),
    "patch.read": ("patch base", lambda data, base: made(to_bytes(data), patch.read(to_bytes(data), to_tree(base)))),
    "patch.path": ("path", lambda path: nothing(patch.check_path(to_path(path)))),
    "patch.paths": ("paths", lambda paths: nothing(patch.check_collisions([to_path(p) for p in paths]))),
    "patch.diff": ("before after", lambda before, after: {"body": from_bytes(linediff.body(to_bytes(before), to_bytes(after)))}),
    "patch.fingerprints": ("patch_id", patch.fingerprints),
    "policy.file": ("file", lambda file: described(read_policy(file))),
    "policy.document": ("document", lambda document: hash_of(to_bytes(document), policy.read_recorded)),
    "policy.tighten": ("default base", lambda default, base: described(policy.tighten(read_policy(default), read_policy(base)))),
    "policy.glob": ("glob path", lambda glob, path: {"matches": globs.Glob(glob).matches(path)}),
    "policy.owners": ("codeowners path", lambda data, path: {"owners": globs.owners(to_bytes(data), path)}),
    "policy.needs": ("file paths secrets", lambda file, paths, secrets: {"needs": policy.needs(read_policy(file), paths, secrets)}),
    "transaction.check": ("id files", transaction_check),
    "transaction.fold": ("events", transaction_fold),
    "verdict.decide": ("id files policy now head standing? drift? denials", verdict_decide),
    "signature.sshsig": ("message signature namespace", signature_sshsig),
    "signature.line": ("line", signature_line),
    "signature.statement": ("statement", signature_statement),
    "signature.decision": ("statement signature line principal recorded_at hardware? pin?", signature_decision),
    "history.bundle": ("bundle", history_bundle),
    "history.audit": ("bundle ref? tip? allowed_signers? witnesses? quorum?", history_audit)}

def answer(question):
    """The answer to one question (V-8). Whatever goes wrong refuses (U-6)."""
    name, given = "%s.%s" % (question.get("class"), question.get("op")), question.get("input")
    out = {"id": question.get("id")}
    if name not in OPS:
        return dict(out, verdict="unsupported")
    try:
        members, f = OPS[name]
        names = members.replace("?", "").split()
        need(isinstance(given, dict) and all(k in names for k in given), "a member of the input is not known")
        need(all(m in given for m in members.split() if m[-1] != "?"), "a member of the input is missing")
        return dict(out, verdict="accept", values=f(*(given.get(n) for n in names)))
    except Refused as e:
        print("%s: %s" % (out["id"], ascii(str(e))), file=sys.stderr)
        return dict(out, verdict="refuse", rule=e.rule)
    except Exception:
        traceback.print_exc()
        return dict(out, verdict="refuse", rule="")

def serve():
    for line in sys.stdin.buffer:
        try:
            question = json.loads(line)
            reply = answer(question if isinstance(question, dict) else {})
        except ValueError:
            reply = {"id": None, "verdict": "refuse", "rule": ""}
        print(json.dumps(reply), flush=True)

def main():
    p = argparse.ArgumentParser(description="Audits the ledger in a bundle.")
    p.add_argument("bundle", type=pathlib.Path)
    for name, kind in (("--ref", str), ("--tip", str), ("--allowed-signers", pathlib.Path), ("--witnesses", pathlib.Path), ("--quorum", int)):
        p.add_argument(name, type=kind)
    o = p.parse_args()
    signers, witnesses = (f and f.read_bytes() for f in (o.allowed_signers, o.witnesses))
    a = Audit(o.bundle.read_bytes(), o.ref, o.tip, signers, witnesses, o.quorum)
    for rule, text in a.problems:
        print(rule, ascii(text), sep="\t")
    print("%s: %d commits, %d transactions, %d findings" % (a.tip or "no ledger", len(a.commits), len(a.states), len(a.problems)))
    rules = {rule for rule, _ in a.problems}
    return 0 if not rules else 6 if rules == {"NEWER"} else 1

if __name__ == "__main__":
    sys.exit(main() if len(sys.argv) > 1 else serve())
