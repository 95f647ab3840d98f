#!/usr/bin/env python3
"""A verifier of Countersign's records, written from the pages in docs/spec alone.

Without arguments it answers questions as vectors/README.md has them (V-6 to V-10).
For people: verify.py BUNDLE [--ref REF] [--tip COMMIT] [--signers FILE] [--witnesses FILE] [--quorum N]
"""
import argparse, base64, json, re, sys

import core, patch, policy, signatures, transaction, verdict
from core import Refused, attempt, hashed, line_of, need, parse, sha
from history import Audit, Bundle

def raw(v):  # Bytes
    if isinstance(v, dict):
        need(set(v) == {"base64"}, "not Bytes")
        return core.unbase64(v["base64"])
    return v.encode("utf-8")

def to_path(v):  # Path
    return core.unbase64(v[7:]) if v.startswith("base64:") else raw(v)

def tree(v):  # path (bytes) -> (mode, bytes)
    files = [(to_path(p), f if isinstance(f, dict) and "mode" in f else {"mode": "100644", "content": f})
             for p, f in v.items()]
    need(len(dict(files)) == len(files), "a Path twice")
    need(all(re.fullmatch("[0-7]{6}", f["mode"]) for _, f in files), "not a mode")
    return {p: (f["mode"], raw(f["content"])) for p, f in files}

def shown(b):
    text = attempt(b.decode, "utf-8")
    return {"base64": base64.b64encode(b).decode()} if text is None else text

def picked(v, *members):
    return {k: v[k] for k in members}

def json_document(document):
    line = line_of(parse(raw(document)))
    return {"canonical": line[:-1].decode(), "sha256": sha(line)}

def accepted(data, check, form=hashed):
    check(data)
    return {"sha256": form(data)}

def policy_file(data):
    return policy.read_file(raw(data))

def described(p):
    return {"policy": line_of(p).decode(), "sha256": hashed(line_of(p))}

def made(data, files):
    return {"patch_id": sha(data), "patch": shown(data), "files": files}

def patch_make(base, after):
    base, after = tree(base), tree(after)
    for p, (mode, _) in [*base.items(), *after.items()]:  # all is touched; so P-1 and P-3 hold for all
        patch.check_path(p)
        need(mode in (*patch.MODES, "040000"), "P-1: mode")
    return made(*patch.make(base, after))

def signature_sshsig(message, signature, namespace):
    key, _ = signatures.sshsig(raw(message), raw(signature).decode("latin-1"), namespace)
    return {"key_fingerprint": key.fingerprint, "key_type": key.type}

def checked(found):  # what was found, if there are no problems; else the first, or NEWER
    for rule, text in found.problems:
        print(rule, ascii(text), file=sys.stderr)
    for rule, text in sorted(found.problems, key=lambda p: p[0] != "NEWER")[:1]:
        raise Refused(text, rule)
    return found

def transaction_check(id, files):
    r = checked(transaction.Record(id, tree(files)).check())
    approvals = [p for _, p in r.of_type("approval/decision") if p["decision"] == "approve"]
    return {"status": r.fold.status, "closed": r.fold.closed, "patch_id": r.pid, "events": len(r.events),
            "approvals": [[p["fingerprint"], p["source"]["author"]["id"]] for p in approvals]}

def verdict_decide(id, files, policy, now, head, denials, standing=None, drift=None):
    r = transaction.Record(id, tree(files)).check()
    need(r.fold.folded is not None, "D-1: the events do not fold")
    if standing is not None:
        verdict.check_standing(r, standing)
    if drift is not None:
        core.record(drift, "drift")
    p, now = verdict.policy.read_recorded(raw(policy)), core.rfc3339(now)
    v = verdict.Verdict(r, len(r.events), p, now, head, standing, drift, None, denials, False)
    return {"verdict": v.verdict, "break_glass": v.broken, "counted": v.counted,
            "needs": [picked(x, "kind", "fingerprint", "required", "approved") for x in v.needs]}

def signature_line(line):
    x = signatures.Line(line)
    times = {"valid_after": x.after, "valid_before": x.before}
    return {"principals": x.principals, "key_fingerprint": x.key.fingerprint,
            **{k: core.utc(t) for k, t in times.items() if t is not None}}

def signature_decision(statement, signature, line, principal, recorded_at, hardware=False, pin=False):
    st, line = signatures.statement(raw(statement)), signatures.Line(line)
    key, person = signatures.sshsig(raw(statement), raw(signature).decode("latin-1"), signatures.NAMESPACE)
    need(key.fingerprint == line.key.fingerprint, "S-30: another key")
    times = [core.rfc3339(st["decided_at"]), core.rfc3339(recorded_at)]
    need(line.good_for([principal], times) is not None, "S-26: not good for the principal")
    need(verdict.hardware_allows({"hardware": hardware, "pin": pin}, key, person), "S-29")
    return {"key_fingerprint": key.fingerprint}

def history_bundle(bundle):
    refs = Bundle(raw(bundle), whole=True).refs
    need(len(dict(refs)) == len(refs), "B-3: a ref twice", "BUNDLE")
    return {"refs": dict(refs)}

def history_audit(bundle, ref=None, tip=None, allowed_signers=None, witnesses=None, quorum=None):
    signers, witnesses = (None if x is None else raw(x) for x in (allowed_signers, witnesses))
    a = checked(Audit(raw(bundle), ref, tip, signers, witnesses, quorum))
    return {"tip": a.tip, "commits": len(a.commits), "transactions": len(a.states), "states": a.states}

OPS = {  # class and op -> the values of what is accepted; parameters are members of the input
    "json.document": json_document,
    "json.line": lambda line: accepted(raw(line), core.read_line, sha),
    "json.id": lambda document, prefix: {"id": prefix + "_" + json_document(document)["sha256"][:16]},
    "patch.make": patch_make,
    "patch.read": lambda patch, base: made(raw(patch), read_patch(raw(patch), tree(base))),
    "patch.path": lambda path: patch.check_path(to_path(path)),
    "patch.paths": lambda paths: patch.check_collisions([to_path(p) for p in paths]),
    "patch.diff": lambda before, after: {"body": shown(patch.body(raw(before), raw(after)))},
    "patch.fingerprints": patch.fingerprints,
    "policy.file": lambda file: described(policy_file(file)),
    "policy.document": lambda document: accepted(raw(document), policy.read_recorded),
    "policy.tighten": lambda default, base: described(policy.tighten(policy_file(default), policy_file(base))),
    "policy.glob": lambda glob, path: {"matches": policy.glob(glob)(path)},
    "policy.owners": lambda codeowners, path: {"owners": policy.owners(raw(codeowners), path)},
    "policy.needs": lambda file, paths, secrets: {"needs": policy.needs(policy_file(file), paths, secrets)},
    "transaction.check": transaction_check,
    "transaction.fold": lambda events: {"transaction": checked(transaction.Fold(raw(events))).folded},
    "verdict.decide": verdict_decide,
    "signature.sshsig": signature_sshsig,
    "signature.line": signature_line,
    "signature.statement": lambda statement: picked(
        signatures.statement(raw(statement)), "decision", "decided_at", "fingerprints"),
    "signature.decision": signature_decision,
    "history.bundle": history_bundle, "history.audit": history_audit}
read_patch = patch.read

def answer(question):  # the answer to one question (V-8). Whatever goes wrong refuses (U-6)
    op, out = OPS.get("%s.%s" % (question.get("class"), question.get("op"))), {"id": question.get("id")}
    if op is None:
        return dict(out, verdict="unsupported")
    try:
        return dict(out, verdict="accept", values=op(**question["input"]) or {})
    except Exception as e:
        print("%s: %s" % (out["id"], ascii(repr(e))), file=sys.stderr)
        return dict(out, verdict="refuse", rule=getattr(e, "rule", ""))

def serve():
    for line in sys.stdin.buffer:
        question = attempt(json.loads, line)
        print(json.dumps(answer(question if isinstance(question, dict) else {})), flush=True)

def content(name):
    with open(name, "rb") as f:
        return f.read()

def main():
    p = argparse.ArgumentParser(description="Audits the ledger in a bundle.")
    p.add_argument("bundle", type=content)
    for name, kind in {"ref": str, "tip": str, "signers": content, "witnesses": content, "quorum": int}.items():
        p.add_argument("--" + name, type=kind)
    a = Audit(**vars(p.parse_args()))
    for rule, text in a.problems:
        print(rule, ascii(text), sep="\t")
    numbers = len(a.commits), len(a.states), len(a.problems)
    print("%s: %d commits, %d transactions, %d findings" % (a.tip, *numbers))
    rules = {rule for rule, _ in a.problems}
    return 0 if not rules else 6 if rules == {"NEWER"} else 1

if __name__ == "__main__":
    sys.exit(main() if len(sys.argv) > 1 else serve())
