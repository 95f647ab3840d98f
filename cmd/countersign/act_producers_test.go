package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/pull"
)

// producers are what agents leave behind in a job, each about the same change: the script
// that leaves it, as the agent's step would, and what the action is given then.
var producers = []struct{ name, leaves, with, format string }{
	{"worktree", "echo more >> other.txt", "", ""},
	{"git", "git checkout -q other.txt\n" + leave("git.patch", "diff --git a/other.txt b/other.txt\n--- a/other.txt\n+++ b/other.txt\n@@ -1 +1,2 @@\n other\n+more\n"), "patch: git.patch", ""},
	{"codex", leave("last-message.md", "Done:\n\n```\n*** Begin Patch\n*** Update File: other.txt\n@@\n other\n+more\n*** End Patch\n```\n"), "from: auto, patch: last-message.md", "codex"},
	{"chat", leave("answer.md", "You want\n\n```diff\n--- a/other.txt\n+++ b/other.txt\n@@ -1 +1,2 @@\n other\n+more\n```\n"), "from: auto, patch: answer.md", "unified"},
	{"aider", leave("aider.md", "other.txt\n<<<<<<< SEARCH\nother\n=======\nother\nmore\n>>>>>>> REPLACE\n"), "from: auto, patch: aider.md", "blocks"},
	{"edits", leave("calls.jsonl", `{"name": "Edit", "input": {"file_path": "other.txt", "old_string": "other\n", "new_string": "other\nmore\n"}}`+"\n"), "from: auto, patch: calls.jsonl", "edits"},
	{"codex-action", leave("final.json", `{"summary": "more", "patch": "*** Begin Patch\n*** Update File: other.txt\n@@\n other\n+more\n*** End Patch"}`+"\n"), "from: codex-action, patch: final.json", "codex-action"},
	{"claude-code-action", leave("claude-execution-output.json", `[
  {"type": "system", "subtype": "init", "session_id": "s"},
  {"type": "result", "subtype": "success", "is_error": false, "total_cost_usd": 0.01, "result": "done", "structured_output": {"edits": [{"path": "other.txt", "old_text": "other\n", "new_text": "other\nmore\n"}]}}
]
`), "from: auto, patch: claude-execution-output.json", "claude-code-action"},
	{"gh-aw", `head=$(git rev-parse HEAD)
git checkout -q -b Fix/other
echo more >> other.txt
git -c user.name=agent -c user.email=agent@example.org commit -q -a -m "say more"
mkdir agent
git bundle create -q agent/aw-fix-other.bundle $head..Fix/other
git format-patch -q --stdout $head > agent/aw-fix-other.patch
git checkout -q --detach $head
git branch -q -D Fix/other
` + leave("agent/agent_output.json", `{"items":[{"type":"create_pull_request","title":"say more","branch":"Fix/other","base_branch":"main"},{"type":"add_comment","body":"done"}],"errors":[]}`+"\n"), "from: auto, patch: agent", "gh-aw"},
}

// leave is a script that writes a file.
func leave(name, text string) string { return "cat > " + name + " <<'END'\n" + text + "END" }

// actProducers: the bot's job of each producer hands over a bundle, and all of them are one
// transaction, which one approval is enough for.
func actProducers(r *runner) {
	name := filepath.Join(r.dir, ".github", "workflows", eventsFile)
	raw, err := os.ReadFile(name)
	check(r.T, err)
	before, rest, is := strings.Cut(string(raw), "      - run: git ls-files")
	_, uses, isToo := strings.Cut(rest, "      - uses: ")
	uses, after, _ := strings.Cut(uses, "\n        with: ")
	_, after, _ = strings.Cut(after, "\n")
	if !is || !isToo {
		r.Fatalf("the events workflow has no bot:\n%s", raw)
	}
	var steps strings.Builder
	for _, p := range producers {
		fmt.Fprintf(&steps, "      - run: |\n          %s\n", strings.ReplaceAll(p.leaves, "\n", "\n          "))
		fmt.Fprintf(&steps, "      - uses: %s\n        with: {stage: propose, summary: More, %s}\n", uses, p.with)
		fmt.Fprintf(&steps, "      - run: mkdir -p \"$ARTIFACTS\" && cp \"$ARTIFACTS/%s/bundle.json\" \"$ARTIFACTS/%s.json\"\n", pull.BundleName, p.name)
	}
	check(r.T, os.WriteFile(name, []byte(before+steps.String()+after), 0o600))
	first := r.proposes()
	uploads := r.uploads
	r.settles(first) // the bundle of the last one, with all that GitHub does
	fingerprint := r.asked()
	for _, p := range producers {
		file := filepath.Join(uploads, p.name+".json")
		raw, err := os.ReadFile(file)
		check(r.T, err)
		if told := strings.Contains(string(raw), `"format":`); told != (p.format != "") || told && !strings.Contains(string(raw), `"format":"`+p.format+`"`) {
			r.Errorf("%s: the bundle has another format than %q", p.name, p.format)
		}
		if code, stdout, stderr := r.run("settle", "--pr", fmt.Sprint(r.pr), "--bundle", file, "--no-gate"); code != 4 {
			r.Errorf("%s: %d\n%s%s", p.name, code, stdout, stderr)
		}
		if now := r.asked(); now != fingerprint {
			r.Errorf("%s: asked for %s, not %s", p.name, now, fingerprint)
		}
	}
	if transactions := r.s.Git(site, "ls-tree", "-r", "-d", "--name-only", "refs/agent/ledger", "transactions/"); len(regexp.MustCompile(`(?m)/tx_[0-9A-Z]+$`).FindAllString(transactions, -1)) != 1 {
		r.Errorf("not one transaction:\n%s", transactions)
	}
	r.settles(commented(r.says("ada", approveLine+fingerprint)))
	if got := r.s.File(site, "topic", "other.txt"); got != "other\nmore\n" {
		r.Errorf("other.txt is %q", got)
	}
	r.wantAudit()
}
