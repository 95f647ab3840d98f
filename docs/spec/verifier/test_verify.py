#!/usr/bin/env python3
"""Runs the vectors against verify.py (vectors/README.md, V-3, V-11 to V-13): test_verify.py [CLASS or ID]..."""
import base64
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent

def merge(target, patch):  # RFC 7396
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for k, v in patch.items():
        if v is None:
            out.pop(k, None)
        else:
            out[k] = merge(out.get(k), v)
    return out

def raw(v):
    if isinstance(v, str):
        return v.encode()
    if "repeat" in v:
        return v["repeat"].encode() * v["times"]
    return b"".join(map(raw, v["join"])) if "join" in v else base64.b64decode(v["base64"])

def resolve(v):
    if isinstance(v, dict) and set(v) in ({"repeat", "times"}, {"join"}):
        try:
            return raw(v).decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(raw(v)).decode()}
    return {k: resolve(x) for k, x in v.items()} if isinstance(v, dict) else [resolve(x) for x in v] if isinstance(v, list) else v

def agrees(want, got):  # V-11
    if want["verdict"] == got["verdict"] == "accept":
        return all(got["values"].get(k, got) == x for k, x in want["values"].items())
    return want["verdict"] == got["verdict"] and ("rules" not in want or got["rule"] in want["rules"])

def main(only):
    vectors = [json.loads(l) for f in sorted(HERE.parent.glob("vectors/*/*.jsonl")) for l in f.read_text().split("\n") if l]
    by_id, score = {v["id"]: v for v in vectors}, {}
    p = subprocess.Popen([sys.executable, HERE / "verify.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for v in vectors:
        if only and not {v["class"], v["id"]} & set(only):
            continue
        given, begin = resolve(merge(by_id[v["like"]]["input"], v["input"]) if "like" in v else v["input"]), time.time()
        p.stdin.write(json.dumps({"class": v["class"], "id": v["id"], "input": given, "op": v["op"]}) + "\n")
        p.stdin.flush()
        got = json.loads(p.stdout.readline())
        ok = agrees(v["expect"], got)
        if not ok:
            print(v["id"], v["note"], "\n  expected", json.dumps(v["expect"])[:300], "\n  answered", json.dumps(got)[:300])
        n = score.setdefault(v["class"], [0, 0, 0, 0])
        score[v["class"]] = [n[0] + ok, n[1] + (not ok), n[2] + time.time() - begin, max(n[3], time.time() - begin)]
    for name, n in score.items():
        print("%s: %d passed, %d failed, %.1f s, the slowest %.2f s" % (name, *n))
    return any(n[1] for n in score.values())

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
