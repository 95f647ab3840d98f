"""The Policy: its file, canonical form, tightening and needs (Y). A Policy is the object of its canonical form (Y-20)."""
import re

import cjson
import yamlread
from cjson import by_bytes, need
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
    """Y-4, Y-20. keys: name -> type; of (type, default), the default holds where it is left out; with None, what is
    empty or false is left out of the canonical form."""
    def f(v):
        need(isinstance(v, dict) and set(v) <= set(keys) and set(must) <= set(v), "Y-4: keys")
        out = {}
        for k, t in keys.items():
            t, *default = t if isinstance(t, tuple) else (t,)
            if k in v or default not in ([], [None]):
                x = t(v[k] if k in v else default[0])
                if x or default != [None]:
                    out[k] = x
        return out
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

NAME = text(100, "[A-Za-z_][A-Za-z0-9_]*")
PART = r"(?!-)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*"

def commands(**more):
    command = mapping(("argv",), argv=sequence(text(4000, ".*"), 1, unique=False), timeout=(span(24), "10m"), network=(boolean, False),
                      shell=(boolean, None), env=(sequence(NAME), None), **more)

    def one(v):  # Y-7
        v = command({"argv": text(1000, r"[A-Za-z0-9_@%+:,./-]+( +[A-Za-z0-9_@%+=:,./-]+)*")(v).split()} if isinstance(v, str) else v)
        need(v["argv"][0] and (not v.get("shell") or len(v["argv"]) == 1), "Y-7: argv")
        return v

    def f(v):
        out = sequence(one, unique=False)(v)
        need(len({tuple(c["argv"]) for c in out}) == len(out), "Y-6: argv twice")
        return out
    return f

def secrets(v):
    return mapping(mode=(word("refuse", "require-approval"), "require-approval"), seal_to=(sequence(text(4000, "age1[0-9a-z]{58,}")), None),
                   signed=word("require"))({"mode": v} if isinstance(v, str) else v)

def ordered(*words, least=1):
    def f(v):
        out = sequence(word(*words), least)(v)
        return [x for x in words if x in out]
    return f

def drift(v):
    need(v != {}, "Y-6: drift is empty")
    return mapping(commits=number(0, 100000), same_directory=word("ask"))(v)

def repository(v):
    need(not str(v).lower().endswith(".git"), "Y-6: repository")
    return text(200, "%s/%s" % (PART, PART))(v)

def build(v, recorded=False):
    """The canonical form of what was read (Y-6, Y-20, Y-21)."""
    newer = isinstance(v, dict) and isinstance(v.get("version"), int) and v["version"] > 1
    need(not newer, "V16: written by a newer countersign", "NEWER")
    explained = mapping(
        decisions=ordered("signed", "forge", "local", least=not recorded), merges=word("covered"), empty=boolean,
        bots=(sequence(mapping(("keys", "paths"), keys=file, paths=sequence(glob, 1, 1000), modes=(boolean, None)), unique=False), None))

    def without_true(v):
        return {k: x for k, x in explained(v).items() if k != "empty" or not x}

    v = mapping(
        version=(number(1, 1), 1),
        approvals=(mapping(
            required=(number(1, 100), 1), permission=(word(*PERMISSIONS), "write"), allow_author=(boolean, False), same_head=(boolean, False),
            forge_keys=(boolean, None), hardware=(boolean, None), pin=(boolean, None), max_age=span(87600), drift=drift, local=boolean,
            break_glass=(sequence(account), None), independent=ordered("proposer", "requester"), keys=file, signed=word(*SIGNED)), {}),
        bots=(sequence(account), None),
        protected=(sequence(mapping(
            ("paths",), paths=sequence(glob, 1), required=(number(1, 100), 1), users=sequence(account, 1),
            teams=sequence(text(100, "[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+"), 1), owners=(boolean, None), signed=word("require")), unique=False), None),
        sandbox=(word(*SANDBOX), "workspace-write"), secrets=(secrets, {}),
        limits=(mapping(files=(number(1, 100000), 500), bytes=(size, 5 * 2**20)), {}),
        commands=(mapping(run=(commands(required=(boolean, True)), None), allow=(commands(), None)), {}),
        apply=(mapping(to=word("worktree", "branch", "ref", "pull_request"), merge=word("human", "auto"), sign=NAME), {}),
        gate=(mapping(bases=(sequence(text(200, "[A-Za-z0-9_][A-Za-z0-9_./+@#=-]*")), None)), {}),
        explained=(without_true, None),
        ledger=(mapping(repository=repository, tip=text(40, "[0-9a-f]{40}"),
                        since=text(20, "20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z")), None),
        witnesses=mapping(("file",), file=file, required=(number(0, 100), None)))(v)
    need(recorded or sum(len(r["paths"]) for r in v.get("protected", [])) <= 1000, "Y-6: too many globs")
    return v

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

# Y-25. How two values are one: of what is left out, the value is None, and so is a result that is left out.

def first(x, y):
    return x

def either(x, y):
    return x or y

def smaller(x, y, key=int):
    return min((v for v in (x, y) if v is not None), key=key, default=None)

def shorter(x, y):
    return smaller(x, y, lambda s: int(s[:-1]))

def stricter(*words):
    return lambda x, y: max(x, y, key=words.index)

def shared(x, y):
    return [v for v in x or [] if v in (y or [])] or None

def union(x, y):
    return (x or []) + [v for v in y or [] if v not in (x or [])] or None

def of(**how):
    """Members that have no rule of their own are those of the first."""
    def f(x, y):
        x, y = x or {}, y or {}
        out = {k: how.get(k, first)(x.get(k), y.get(k)) for k in {**x, **y}}
        return {k: v for k, v in out.items() if v is not None} or None
    return f

command = of(network=lambda x, y: x and y, timeout=shorter, env=shared, required=either)

def run(x, y):
    mine, theirs = ({tuple(c["argv"]): c for c in v or []} for v in (x, y))
    others = [{k: v for k, v in dict(c, network=False).items() if k != "env"} for a, c in theirs.items() if a not in mine]
    return [command(c, theirs[a]) if a in theirs else c for a, c in mine.items()] + others or None

def allow(x, y):
    theirs = {(tuple(c["argv"]), c.get("shell")): c for c in y or []}
    both = [(c, theirs.get((tuple(c["argv"]), c.get("shell")))) for c in x or []]
    return [command(c, t) for c, t in both if t] or None

def decisions(x, y):
    return x if y is None or x is None and len(y) == 3 else [d for d in (["signed", "forge"] if x is None else x) if d in y]

def tighten(p, b):
    independent = ("proposer", "requester")
    out = of(approvals=of(
                required=max, permission=stricter(*PERMISSIONS), allow_author=lambda x, y: x and y, same_head=either, hardware=either, pin=either,
                max_age=shorter, drift=of(commits=smaller, same_directory=either), local=stricter(True, None, False), break_glass=shared,
                independent=lambda x, y: [v for v in independent if v in (x or []) + (y or [])] or None,
                signed=lambda x, y: y if SIGNED.index(y or "off") > SIGNED.index(signed(p)) else x),
             bots=union, protected=union, sandbox=stricter(*SANDBOX),
             secrets=of(mode=stricter("require-approval", "refuse"), seal_to=shared, signed=either), limits=of(files=min, bytes=min),
             commands=of(run=run, allow=allow), apply=of(merge=lambda x, y: "human" if x == "auto" and y != "auto" else x),
             gate=of(bases=lambda x, y: union(x, y) if x else None), explained=of(decisions=decisions, empty=lambda x, y: x if y is None else y))(p, b)
    return {**{k: {} for k in ("commands", "apply", "gate")}, **out}

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
