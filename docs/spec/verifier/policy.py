"""The Policy: its file, canonical form, tightening and needs (Y). A Policy is the object of its canonical form (Y-20)."""
import re

import cjson
import yamlread
from cjson import need
from globs import Glob

PERMISSIONS = ("read", "triage", "write", "maintain", "admin")
SIGNED = ("off", "accept", "require")
SANDBOX = ("danger-full-access", "workspace-write", "read-only")  # the strictest last
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

# Types of values (Y-5): each takes a value as it was read and returns it as it is kept.

def number(low, high):
    def f(v):
        need(isinstance(v, int) and not isinstance(v, bool) and low <= v <= high, "Y-5: not a number in bounds")
        return v
    return f

def boolean(v):
    need(isinstance(v, bool), "Y-5: not a bool")
    return v

def word(*words):
    def f(v):
        need(isinstance(v, str) and v in words, "Y-5: not one of the words")
        return v
    return f

def text(n, form):
    def f(v):
        need(isinstance(v, str) and len(v) <= n and re.fullmatch(form, v, re.S), "Y-5: text of another form")
        return yamlread.check_text(v)
    return f

def sequence(of, least=0, most=10**9, unique=True):
    def f(v):
        need(isinstance(v, list) and least <= len(v) <= most, "Y-5: not a list, or of another length")
        out = [of(e) for e in v]
        need(not unique or len({cjson.canonical(e) for e in out}) == len(out), "Y-5: element twice")
        return out
    return f

def mapping(must=(), /, **keys):
    def f(v):
        need(isinstance(v, dict) and all(k in keys for k in v) and all(k in v for k in must), "Y-4: keys")
        return {k: keys[k](e) for k, e in v.items()}
    return f

def account(v):
    if isinstance(v, int) and not isinstance(v, bool):
        need(v > 0, "Y-5: account")
        v = str(v)
    return text(100, r"[^@\s]\S*")(v)

def span(hours):
    def f(v):
        need(isinstance(v, str) and re.fullmatch("[1-9][0-9]{0,8}[smhdw]", v), "Y-5: time span")
        s = int(v[:-1]) * SECONDS[v[-1]]
        need(s <= hours * 3600, "Y-5: time span too long")
        return "%ds" % s
    return f

def glob(v):
    Glob(text(256, ".*")(v))
    return v

def file(v):
    v = text(200, r"[A-Za-z0-9._/-]+")(v)
    need(all(c.strip(".") and not c.startswith("..") for c in v.split("/")), "Y-5: file")
    return v

def size(v):
    if isinstance(v, str):
        m = re.fullmatch("([1-9][0-9]{0,9}) ?(B|KiB|MiB|GiB)", v)
        need(m and len(v) <= 20, "Y-6: size")
        v = int(m.group(1)) * UNITS[m.group(2)]
    return number(1, 2**30)(v)

def command(run):
    def f(v):  # Y-7
        if isinstance(v, str):
            v = {"argv": text(1000, r"[A-Za-z0-9_@%+:,./-]+( +[A-Za-z0-9_@%+=:,./-]+)*")(v).split()}
        more = {"required": boolean} if run else {}
        v = mapping(("argv",), argv=sequence(text(4000, ".*"), 1, unique=False), timeout=span(24), network=boolean,
                    shell=boolean, env=sequence(NAME), **more)(v)
        need(v["argv"][0] and (not v.get("shell") or len(v["argv"]) == 1), "Y-7: argv")
        out = {"argv": v["argv"], "timeout": v.get("timeout", "600s"), "network": v.get("network", False)}
        if v.get("shell"):
            out["shell"] = True
        if v.get("env"):
            out["env"] = v["env"]
        if run:
            out["required"] = v.get("required", True)
        return out
    return f

def commands(run):
    def f(v):
        out = sequence(command(run), unique=False)(v)
        need(len({tuple(c["argv"]) for c in out}) == len(out), "Y-6: argv twice")
        return out
    return f

def secrets(v):
    mode = word("refuse", "require-approval")
    if isinstance(v, str):
        return {"mode": mode(v)}
    return mapping(mode=mode, seal_to=sequence(text(4000, "age1[0-9a-z]{58,}")), signed=word("require"))(v)

def drift(v):
    need(v != {}, "Y-6: drift is empty")
    return mapping(commits=number(0, 100000), same_directory=word("ask"))(v)

NAME = text(100, "[A-Za-z_][A-Za-z0-9_]*")
PART = r"(?!-)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*"
GLOBS = sequence(glob, 1)

def schema(recorded):
    def decisions(v):
        out = sequence(word("signed", "forge", "local"), 0 if recorded else 1)(v)
        return [d for d in ("signed", "forge", "local") if d in out]

    return mapping(version=number(1, 1), approvals=mapping(
            required=number(1, 100), permission=word(*PERMISSIONS), allow_author=boolean, same_head=boolean, forge_keys=boolean,
            hardware=boolean, pin=boolean, max_age=span(87600), drift=drift, local=boolean, break_glass=sequence(account),
            keys=file, signed=word(*SIGNED)), bots=sequence(account), protected=sequence(mapping(
            ("paths",), paths=GLOBS, required=number(1, 100), users=sequence(account, 1),
            teams=sequence(text(100, "[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+"), 1), owners=boolean, signed=word("require")), unique=False),
        sandbox=word(*SANDBOX), secrets=secrets, limits=mapping(files=number(1, 100000), bytes=size),
        commands=mapping(run=commands(True), allow=commands(False)),
        apply=mapping(to=word("worktree", "branch", "ref", "pull_request"), merge=word("human", "auto"), sign=NAME),
        gate=mapping(bases=sequence(text(200, "[A-Za-z0-9_][A-Za-z0-9_./+@#=-]*"))), explained=mapping(
            decisions=decisions, merges=word("covered"), empty=boolean,
            bots=sequence(mapping(("keys", "paths"), keys=file, paths=sequence(glob, 1, 1000), modes=boolean), unique=False)),
        ledger=mapping(
            repository=lambda v: text(200, "%s/%s" % (PART, PART))(v) if not str(v).lower().endswith(".git") else need(False, "Y-6"),
            tip=text(40, "[0-9a-f]{40}"), since=text(20, "20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z")),
        witnesses=mapping(("file",), file=file, required=number(0, 100)))

def given(v, keys, true=(), full=()):
    """The members of v among keys; of true, only true ones; of full, only those that are not empty."""
    return {k: v[k] for k in keys if k in v and (k not in true or v[k]) and (k not in full or v[k])}

def build(v, recorded=False):
    """The canonical form of what was read (Y-4 to Y-7, Y-20)."""
    v = schema(recorded)(v)
    need(recorded or sum(len(r["paths"]) for r in v.get("protected", [])) <= 1000, "Y-6: too many globs")
    a = {"required": 1, "permission": "write", "allow_author": False, "same_head": False}
    a.update(given(v.get("approvals", {}), (*a, "max_age", "drift", "local", "break_glass", "keys", "signed", "forge_keys",
                                            "hardware", "pin"), ("forge_keys", "hardware", "pin")))
    out = {"version": 1, "approvals": a, "sandbox": v.get("sandbox", "workspace-write"),
           "secrets": {"mode": "require-approval", **given(v.get("secrets", {}), ("mode", "seal_to", "signed"), full=("seal_to",))},
           "limits": {"files": 500, "bytes": 5 * 2**20, **v.get("limits", {})},
           "commands": given(v.get("commands", {}), ("run", "allow"), full=("run", "allow")),
           "apply": v.get("apply", {}), "gate": given(v.get("gate", {}), ("bases",), full=("bases",))}
    if v.get("bots"):
        out["bots"] = v["bots"]
    if v.get("protected"):
        out["protected"] = [{"required": 1, **given(r, ("paths", "required", "users", "teams", "owners", "signed"), ("owners",))}
                            for r in v["protected"]]
    e = v.get("explained", {})
    e = {**given(e, ("decisions", "merges", "bots"), full=("bots",)), **({"empty": False} if e.get("empty") is False else {})}
    if "bots" in e:
        e["bots"] = [given(b, ("keys", "paths", "modes"), ("modes",)) for b in e["bots"]]
    if e:
        out["explained"] = e
    if v.get("ledger"):
        out["ledger"] = v["ledger"]
    if "witnesses" in v:
        out["witnesses"] = given(v["witnesses"], ("file", "required"), full=("required",))
    return out

def read_file(data):
    return build(yamlread.read(data))

def read_recorded(data):  # Y-21
    need(len(data) <= 4 * 2**20, "Y-21: too long")
    v = build(cjson.parse(data), True)
    need(cjson.line_of(v) == data, "Y-21: Y-20 writes it differently")
    return v

def signed(p):
    """What approvals.signed comes to (Y-6)."""
    a = p["approvals"]
    return a.get("signed", "accept" if "keys" in a or a.get("forge_keys") else "off")

def smaller(p, b, key, size=int):
    """Keeps the smaller of two bounds in p[key]; that of the one that has a bound."""
    if key in b and (key not in p or size(b[key]) < size(p[key])):
        p[key] = b[key]

def span_size(s):
    return int(s[:-1])

def tighten_command(p, b):
    out = dict(p, network=p["network"] and b["network"])
    smaller(out, b, "timeout", span_size)
    env = [n for n in out.pop("env", []) if n in b.get("env", [])]
    if env:
        out["env"] = env
    if "required" in p:
        out["required"] = p["required"] or b["required"]
    return out

def tighten(p, b):  # Y-25
    a, ba = dict(p["approvals"]), b["approvals"]
    strict = SIGNED.index(ba.get("signed", "off")) > SIGNED.index(signed(p))
    a["required"] = max(a["required"], ba["required"])
    a["permission"] = max(a["permission"], ba["permission"], key=PERMISSIONS.index)
    a["allow_author"] = a["allow_author"] and ba["allow_author"]
    for k in ("same_head", "hardware", "pin"):
        if ba.get(k):
            a[k] = True
    smaller(a, ba, "max_age", span_size)
    d, bd = dict(a.get("drift", {})), ba.get("drift", {})
    smaller(d, bd, "commits")
    d.update(given(bd, ("same_directory",)))
    if d:
        a["drift"] = d
    local = min((False, None, True).index(x.get("local")) for x in (a, ba))
    a.pop("local", None)
    if local != 1:
        a["local"] = local == 2
    if "break_glass" in a:
        a["break_glass"] = [x for x in a["break_glass"] if x in ba.get("break_glass", [])]
    if strict:
        a["signed"] = ba["signed"]
    out = dict(p, approvals=a, sandbox=max(p["sandbox"], b["sandbox"], key=SANDBOX.index))
    s, bs = dict(p["secrets"]), b["secrets"]
    s["mode"] = "refuse" if "refuse" in (s["mode"], bs["mode"]) else s["mode"]
    seal = [x for x in s.pop("seal_to", []) if x in bs.get("seal_to", [])]
    out["secrets"] = {**s, **given(bs, ("signed",)), **({"seal_to": seal} if seal else {})}
    out["limits"] = {k: min(p["limits"][k], b["limits"][k]) for k in ("files", "bytes")}
    for k in ("bots", "protected"):
        both = p.get(k, []) + [x for x in b.get(k, []) if x not in p.get(k, [])]
        if both:
            out[k] = both
    run, brun = p["commands"].get("run", []), b["commands"].get("run", [])
    by = {tuple(c["argv"]): c for c in brun}
    argvs = {tuple(c["argv"]) for c in run}
    run = [tighten_command(c, by[tuple(c["argv"])]) if tuple(c["argv"]) in by else c for c in run]
    run += [given(dict(c, network=False), ("argv", "timeout", "network", "shell", "required")) for c in brun
            if tuple(c["argv"]) not in argvs]
    by = {(tuple(c["argv"]), c.get("shell", False)): c for c in b["commands"].get("allow", [])}
    allow = [tighten_command(c, by[k]) for c in p["commands"].get("allow", []) for k in [(tuple(c["argv"]), c.get("shell", False))] if k in by]
    out["commands"] = given({"run": run, "allow": allow}, ("run", "allow"), full=("run", "allow"))
    if p["apply"].get("merge") == "auto" and b["apply"].get("merge") != "auto":
        out["apply"] = dict(p["apply"], merge="human")
    bases = p["gate"].get("bases", [])
    if bases:
        out["gate"] = {"bases": bases + [x for x in b["gate"].get("bases", []) if x not in bases]}
    e, be = dict(p.get("explained", {})), b.get("explained", {})
    if "decisions" in be and ("decisions" in e or len(be["decisions"]) < 3):
        e["decisions"] = [d for d in e.get("decisions", ["signed", "forge"]) if d in be["decisions"]]
    if "empty" in be:
        e["empty"] = False
    if e:
        out["explained"] = e
    return out

BUILT_IN = """/.github/countersign.yml /.github/countersign.yaml /CODEOWNERS /docs/CODEOWNERS /.github/CODEOWNERS
/.github/workflows /.github/actions /.gitea/workflows /.forgejo/workflows .gitattributes .gitmodules .gitleaks.toml .gitleaksignore
AGENTS.md AGENTS.override.md AGENTS.local.md AGENT.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md CRUSH.md WARP.md replit.md SKILL.md
/.github/copilot-instructions.md /.github/instructions /.github/prompts /.github/chatmodes /.github/agents /.github/skills
/.github/hooks .cursorrules .windsurfrules .clinerules .clinerules-* .continuerules .roorules .roorules-* .roomodes .kilocodemodes
.goosehints .rules .augment-guidelines .openhands_instructions .aider.conf.yml .agent .agents .aiassistant .amazonq .augment .claude
.claude-plugin .cline .codex .continue .copilot .crush .cursor .devin .factory .gemini .goose .junie .kilocode .kiro .opencode
.openhands .qoder .qwen .roo .ruler .rulesync .trae .windsurf .zencoder .mcp.json .crush.json crush.json opencode.json opencode.jsonc
**/.vscode/mcp.json **/.vscode/settings.json **/.vscode/tasks.json""".split()  # Y-40

def rules(p):
    """Name, globs, rule (Y-41, Y-46)."""
    yield "built-in", BUILT_IN, {}
    if "keys" in p["approvals"]:
        yield "approvals.keys", ["/" + p["approvals"]["keys"]], {}
    for n, b in enumerate(p.get("explained", {}).get("bots", [])):
        yield "explained.bots[%d].keys" % n, ["/" + b["keys"]], {}
    if "witnesses" in p:
        yield "witnesses.file", ["/" + p["witnesses"]["file"]], {}
    for n, r in enumerate(p.get("protected", [])):
        yield "protected[%d]" % n, r["paths"], r

def by_bytes(texts):
    return sorted(set(texts), key=lambda s: s.encode("utf-8", "surrogatepass"))

def needs(p, paths, secret):  # Y-45 to Y-48
    everywhere = {"signed": True} if signed(p) == "require" else {}
    out = [{"kind": "fileChange", "prefix": "", "required": p["approvals"]["required"], **everywhere}]
    if secret:
        out.append({"kind": "secrets_override", "prefix": "secret:", "required": 1, **everywhere,
                    **({"signed": True} if "signed" in p["secrets"] else {})})
    groups = {}
    for name, globs, r in rules(p):
        compiled = [Glob(g) for g in globs]
        hit = [x for x in paths if any(g.matches(x) for g in compiled)]
        if not hit:
            continue
        users, teams = by_bytes(r.get("users", [])), by_bytes(r.get("teams", []))
        key = (tuple(users), tuple(teams), r.get("owners", False))
        n = groups.get(key)
        if n is None:
            n = groups[key] = {"kind": "protected_path", "prefix": "protected:", "required": 0, "paths": [], "rules": [], **everywhere}
            n.update({k: v for k, v in (("users", users), ("teams", teams), ("owners", key[2])) if v})
        n["required"] = max(n["required"], r.get("required", 1))
        n["paths"] = by_bytes(n["paths"] + hit)
        n["rules"].append(name)
        if "signed" in r:
            n["signed"] = True
    return out + list(groups.values())
