#!/usr/bin/env python3
"""A verifier of Countersign's records, written from the pages in docs/spec alone.

Without arguments it answers questions as vectors/README.md has them (V-6 to V-10).
For people: verify.py BUNDLE [--ref REF] [--tip COMMIT] [--allowed-signers FILE] [--witnesses FILE] [--quorum N]
"""
import argparse
import json
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
from gitstore import Bundle, parse_commit, parse_tree
from history import Audit

MEMBERS = {  # of an input, by class and op; with ? what may be left out
    "json": {"document": "document", "line": "line", "id": "document prefix"},
    "patch": {"make": "base after", "read": "patch base", "path": "path", "paths": "paths", "diff": "before after", "fingerprints": "patch_id"},
    "transaction": {"check": "id files", "fold": "events"},
    "policy": {"file": "file", "document": "document", "tighten": "default base", "glob": "glob path", "owners": "codeowners path",
               "needs": "file paths secrets"},
    "verdict": {"decide": "id files policy now head standing? drift? denials"},
    "signature": {"sshsig": "message signature namespace", "line": "line", "statement": "statement",
                  "decision": "statement signature line principal recorded_at hardware? pin?"},
    "history": {"bundle": "bundle", "audit": "bundle ref? tip? allowed_signers? witnesses? quorum?"}}

def json_document(i):
    v = cjson.parse(to_bytes(i["document"]))
    return {"canonical": cjson.canonical(v).decode(), "sha256": sha(cjson.line_of(v))}

def json_line(i):
    data = to_bytes(i["line"])
    cjson.read_line(data)
    return {"sha256": sha(data)}

def json_id(i):
    return {"id": cjson.derived_id(i["prefix"], cjson.parse(to_bytes(i["document"])))}

def patch_make(i):
    data, ops = patch.make(to_tree(i["base"]), to_tree(i["after"]))
    return {"patch_id": sha(data), "patch": from_bytes(data), "files": [o.to_json() for o in ops]}

def patch_read(i):
    data = to_bytes(i["patch"])
    return {"patch_id": sha(data), "files": [o.to_json() for o in patch.read(data, to_tree(i["base"]))]}

def patch_path(i):
    patch.check_path(to_path(i["path"]))
    return {}

def patch_paths(i):
    paths = [to_path(p) for p in i["paths"]]
    patch.check_collisions(paths, paths)
    return {}

def patch_diff(i):
    return {"body": from_bytes(linediff.body(to_bytes(i["before"]), to_bytes(i["after"])))}

def patch_fingerprints(i):
    return patch.fingerprints(i["patch_id"])

def refuse_problems(problems):
    for rule, text in problems:
        print(rule, text, file=sys.stderr)
    if problems:
        raise Refused(problems[0][1], problems[0][0])

def transaction_check(i):
    r = transaction.Record(i["id"], to_tree(i["files"])).check()
    refuse_problems(r.problems)
    approvals = [[p["fingerprint"], p["source"]["author"]["id"]] for _, p in r.of_type("approval/decision") if p["decision"] == "approve"]
    return {"status": r.fold.status, "closed": r.fold.closed, "patch_id": r.pid, "events": len(r.events), "approvals": approvals}

def transaction_fold(i):
    f = transaction.Fold(to_bytes(i["events"]))
    refuse_problems(f.problems)
    return {"transaction": f.folded}

def described(p):
    line = cjson.line_of(p)
    return {"policy": line.decode(), "sha256": hashed(line)}

def policy_file(i):
    return described(policy.read_file(to_bytes(i["file"])))

def policy_document(i):
    data = to_bytes(i["document"])
    policy.read_recorded(data)
    return {"sha256": hashed(data)}

def policy_tighten(i):
    return described(policy.tighten(policy.read_file(to_bytes(i["default"])), policy.read_file(to_bytes(i["base"]))))

def policy_glob(i):
    return {"matches": globs.Glob(i["glob"]).matches(i["path"])}

def policy_owners(i):
    return {"owners": globs.owners(to_bytes(i["codeowners"]), i["path"])}

def policy_needs(i):
    return {"needs": policy.needs(policy.read_file(to_bytes(i["file"])), i["paths"], i["secrets"])}

def verdict_decide(i):
    r = transaction.Record(i["id"], to_tree(i["files"]))
    r.check()
    need(r.fold.folded is not None and r.proposal is not None, "D-1: the events do not fold, or propose nothing")
    standing, drift = i.get("standing"), i.get("drift")
    if standing is not None:
        verdict.check_standing(r, standing)
    if drift is not None:
        cjson.record(drift, "drift", "D-22")
    onto = i["head"] if r.gate_only() else (drift or {}).get("to", r.meta["base_commit"])
    v = verdict.Verdict(r, len(r.events), policy.read_recorded(to_bytes(i["policy"])), signatures.rfc3339(i["now"]), i["head"],
                        standing, drift, onto, i["denials"])
    needs = [{k: x[k] for k in ("kind", "fingerprint", "required", "approved")} for x in v.needs]
    return {"verdict": v.verdict, "break_glass": v.broken, "needs": needs, "counted": v.counted}

def signature_sshsig(i):
    key, _ = signatures.sshsig(to_bytes(i["message"]), to_bytes(i["signature"]).decode("latin-1"), i["namespace"])
    return {"key_fingerprint": key.fingerprint, "key_type": key.type}

def signature_line(i):
    line = signatures.Line(i["line"])
    out = {"principals": line.principals, "key_fingerprint": line.key.fingerprint}
    for name, t in (("valid_after", line.after), ("valid_before", line.before)):
        if t is not None:
            out[name] = signatures.utc(t)
    return out

def signature_statement(i):
    st = signatures.statement(to_bytes(i["statement"]))
    return {k: st[k] for k in ("decision", "decided_at", "fingerprints")}

def signature_decision(i):
    data = to_bytes(i["statement"])
    st, line = signatures.statement(data), signatures.Line(i["line"])
    key, person = signatures.sshsig(data, to_bytes(i["signature"]).decode("latin-1"), signatures.NAMESPACE)
    said, event = signatures.rfc3339(st["decided_at"]), signatures.rfc3339(i["recorded_at"])
    need(key.fingerprint == line.key.fingerprint, "S-30: another key")
    need(said <= event + 300, "S-28: decided after it was recorded")
    need(line.good_for([i["principal"]], [said, event]), "S-26: not good for the principal")
    need(not (i.get("hardware") or i.get("pin")) or key.application is not None, "S-29: not a security key")
    need(not i.get("pin") or person, "S-29: the person is not verified")
    return {"key_fingerprint": key.fingerprint}

def history_bundle(i):
    b = Bundle(to_bytes(i["bundle"]))
    refs = dict(b.refs)
    need(len(refs) == len(b.refs), "B-3: a ref twice")
    todo, seen = list(refs.values()), set()
    while todo:  # all objects that the refs reach
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        need(at in b.objects, "B-4: %s is missing" % at)
        kind, data = b.objects[at]
        if kind == "commit":
            c = parse_commit(data)
            todo += [c["tree"], *c["parents"]]
        elif kind == "tree":
            todo += [o for mode, _, o in (parse_tree(data) if data else []) if mode != "160000"]
        elif kind == "tag":
            todo.append(data[7:47].decode("latin-1"))
    return {"refs": refs}

def history_audit(i):
    given = [to_bytes(i[k]) if i.get(k) is not None else None for k in ("allowed_signers", "witnesses")]
    a = Audit(to_bytes(i["bundle"]), i.get("ref"), i.get("tip"), *given, i.get("quorum"))
    refuse_problems(a.problems)
    return {"tip": a.tip, "commits": len(a.commits), "transactions": len(a.states), "states": a.states}

def answer(question):
    """The answer to one question (V-8). Whatever goes wrong refuses (U-6)."""
    cls, op, i = question.get("class"), question.get("op"), question.get("input")
    out = {"id": question.get("id")}
    if op not in MEMBERS.get(cls, {}):
        return dict(out, verdict="unsupported")
    try:
        names = MEMBERS[cls][op].split()
        need(isinstance(i, dict) and all(k in names or k + "?" in names for k in i), "a member of the input is not known")
        need(all(n in i for n in names if not n.endswith("?")), "a member of the input is missing")
        return dict(out, verdict="accept", values=globals()["%s_%s" % (cls, op)](i))
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
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()

def main():
    p = argparse.ArgumentParser(description="Audits the ledger in a bundle.")
    p.add_argument("bundle")
    p.add_argument("--ref")
    p.add_argument("--tip")
    p.add_argument("--allowed-signers")
    p.add_argument("--witnesses")
    p.add_argument("--quorum", type=int)
    o = p.parse_args()

    def content(name):
        if name is None:
            return None
        with open(name, "rb") as f:
            return f.read()

    a = Audit(content(o.bundle), o.ref, o.tip, content(o.allowed_signers), content(o.witnesses), o.quorum)
    for rule, text in a.problems:
        print("%s\t%s" % (rule, text))
    print("%s: %d commits, %d transactions, %d findings" % (a.tip or "no ledger", len(a.commits), len(a.states), len(a.problems)))
    return 1 if a.problems else 0

if __name__ == "__main__":
    sys.exit(main() if len(sys.argv) > 1 else serve())
