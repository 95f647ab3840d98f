#!/usr/bin/env python3
"""Asks verify.py the vectors (vectors/README.md, V-3, V-11 to V-13): test_verify.py [CLASS or ID]..."""
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
    old = target if isinstance(target, dict) else {}
    new = {k: merge(old.get(k), v) for k, v in patch.items() if v is not None}
    return {**{k: v for k, v in old.items() if k not in patch}, **new}


def raw(v):
    if isinstance(v, str):
        return v.encode()
    if "repeat" in v:
        return v["repeat"].encode() * v["times"]
    return b"".join(map(raw, v["join"])) if "join" in v else base64.b64decode(v["base64"])


def resolve(v):
    if isinstance(v, list):
        return list(map(resolve, v))
    if not isinstance(v, dict):
        return v
    if set(v) not in ({"repeat", "times"}, {"join"}):
        return {k: resolve(x) for k, x in v.items()}
    try:
        return raw(v).decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw(v)).decode()}


def agrees(want, got):  # V-11
    if want["verdict"] == got["verdict"] == "accept":
        return all(k in got["values"] and got["values"][k] == x for k, x in want["values"].items())
    return want["verdict"] == got["verdict"] and ("rules" not in want or got["rule"] in want["rules"])


def main(only):
    files = sorted(HERE.parent.glob("vectors/*/*.jsonl"))
    vectors = [json.loads(line) for f in files for line in f.read_text().split("\n") if line]
    by_id, score = {v["id"]: v for v in vectors}, {}
    p = subprocess.Popen([sys.executable, HERE / "verify.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    for v in (v for v in vectors if not only or {v["class"], v["id"]} & set(only)):
        given = resolve(merge(by_id[v["like"]]["input"], v["input"]) if "like" in v else v["input"])
        begin = time.time()
        p.stdin.write(json.dumps({"class": v["class"], "id": v["id"], "input": given, "op": v["op"]}) + "\n")
        p.stdin.flush()
        got = json.loads(p.stdout.readline())
        ok, took = agrees(v["expect"], got), time.time() - begin
        if not ok:
            print(v["id"], v["note"])
            print("  expected", json.dumps(v["expect"])[:300], "\n  answered", json.dumps(got)[:300])
        passed, failed, total, most = score.get(v["class"], (0, 0, 0, 0))
        score[v["class"]] = (passed + ok, failed + (not ok), total + took, max(most, took))
    for name, numbers in score.items():
        print("%s: %d passed, %d failed, %.1f s, the slowest %.2f s" % (name, *numbers))
    return any(n[1] for n in score.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
