package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// verifyScript is the script that docs/verify-with-git.md says to run.
func verifyScript(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"sh", "git", "jq", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	return filepath.Join(docsDir, "verify.sh")
}

const greetPatch = "diff --git a/greet.txt b/greet.txt\n--- a/greet.txt\n+++ b/greet.txt\n@@ -1 +1 @@\n-hello\n+hello, %s\n"

// TestT53VerifyWithGit: what the page says to run takes what is sound, and
// nothing that was tampered with. COUNTERSIGN_LONG=1 is for every way to do that, and
// not two of them.
func TestT53VerifyWithGit(t *testing.T) {
	long(t)
	t.Parallel()
	script := verifyScript(t)
	s := newSandbox(t, map[string]string{"greet.txt": "hello\n"})
	s.git("init", "-q", "-b", "main")
	s.commit()
	propose := func(what string) string {
		patch := filepath.Join(s.dir, what+".patch")
		check(t, os.WriteFile(patch, fmt.Appendf(nil, greetPatch, what), 0o644))
		out, _ := s.run(0, "review", "--patch", patch, "--json")
		_, id, _ := strings.Cut(out, `"transaction_id":"`)
		id, _, _ = strings.Cut(id, `"`)
		return id
	}
	verify := func(args ...string) (string, error) {
		cmd := exec.Command("sh", append([]string{script}, args...)...)
		cmd.Dir, cmd.Env = s.repo, append(s.env(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	good := func(id string, want string) {
		t.Helper()
		if out, err := verify(id); err != nil || !strings.HasPrefix(out, "verified "+id+": "+want+", patch ") {
			t.Errorf("%s: %v\n%s", id, err, out)
		}
	}
	open := propose("open")
	good(open, "proposed")
	denied := propose("denied")
	s.run(0, "deny", denied, "--reason", "no")
	good(denied, "denied")
	closed := propose("closed")
	s.run(0, "close", closed, "--reason", "no")
	good(closed, "interrupted")
	whole := propose("world")
	s.run(0, "approve", whole)
	s.run(0, "apply", whole, "--to", "branch", "--branch", "fixes")
	good(whole, "applied")
	s.run(0, "validate", whole)
	good(whole, "completed")
	here := propose("worktree")
	s.run(0, "approve", here)
	s.run(0, "apply", here)
	good(here, "applied")

	var all sync.WaitGroup
	for i, c := range tamperings {
		if !everything() && i%8 != 0 {
			continue
		}
		id := map[string]string{"": whole, "denied": denied}[c.of]
		ref := s.rewrite(id, c, i)
		all.Go(func() {
			if out, err := verify(id, ref); err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%s: %v, want %q\n%s", c.name, err, c.want, out)
			}
		})
	}
	all.Wait()
	if out, err := verify("tx_01KE5W5200041061050R3GG28A"); err == nil || !strings.Contains(out, "not in refs/agent/ledger") {
		t.Errorf("one that is not there: %v\n%s", err, out)
	}
	if out, err := verify("tx_'; true"); err == nil || !strings.Contains(out, "not a transaction id") {
		t.Errorf("no id: %v\n%s", err, out)
	}
	good(whole, "completed")
}

// A tampering rewrites one file at the tip with sed, adds one, or removes one;
// alone in its history, unless it is to be a change that the history shows.
type tampering struct {
	name, of, file, sed, want string
	shown                     bool
}

var tamperings = []tampering{
	{name: "an event changed", file: "events.jsonl", sed: "2s/in_progress/proposed/", want: "the chain is broken at event 3"},
	{name: "an event dropped", file: "events.jsonl", sed: "3d", want: "the chain is broken at event 3"},
	{name: "the last line cut", file: "events.jsonl", sed: "$d", want: "transaction.json is not what the events say"},
	{name: "an event twice", file: "events.jsonl", sed: "3p", want: "the chain is broken at event 4"},
	{name: "an event of another", file: "events.jsonl", sed: `s/"transaction_id":"tx_[0-9A-Z]*","turn_id":"turn_1"/"transaction_id":"tx_X","turn_id":"turn_1"/`, want: "the chain is broken"},
	{name: "no JSON", file: "events.jsonl", sed: "1s/^{/[/", want: "events are not JSON"},
	{name: "the state", file: "transaction.json", sed: `s/"status":"completed"/"status":"denied"/`, want: "transaction.json is not what the events say"},
	{name: "the patch", file: "patches/.*", sed: "s/world/moon/", want: "the patch does not hash to its id"},
	{name: "the evidence", file: "artifacts/.*", sed: "s/base_commit/bass_commit/", want: "does not hash to its id"},
	{name: "the result", file: "apply_result.json", sed: `s/"bytes_written":[0-9]*/"bytes_written":1/`, want: "apply_result.json is not what was recorded"},
	{name: "the result gone", file: "apply_result.json", want: "apply_result.json is missing"},
	{name: "a file more", file: "+artifacts/x.json", want: "there are files that no event names"},
	{name: "the denial gone", of: "denied", file: "/denied/.*", want: "its denial is not in denied/"},
	{name: "an event changed by a later commit", file: "events.jsonl", sed: "2s/in_progress/proposed/", want: "events were changed in", shown: true},
	{name: "the patch changed by a later commit", file: "patches/.*", sed: "s/world/moon/", want: "was changed or removed in", shown: true},
	{name: "a file removed by a later commit", file: "apply_result.json", want: "was changed or removed in", shown: true},
}

// rewrite makes the tip's tree again with one change, on the tip or as a history
// of its own, and returns a ref for it.
func (s playground) rewrite(id string, c tampering, i int) (ref string) {
	s.t.Helper()
	sh := `set -e
export GIT_INDEX_FILE=$PWD/.git/forge-index
git read-tree refs/agent/ledger
dir=$(git ls-tree -r -d --name-only refs/agent/ledger transactions | grep "/$1$")
case $2 in
/*) paths=$(git ls-files | grep "^${2#/}$") ;;
+*) git update-index --add --cacheinfo "100644,$(echo x | git hash-object -w --stdin),$dir/${2#+}"; paths= ;;
*) paths=$(git ls-files | grep "^$dir/$2$") ;;
esac
for path in $paths; do
  if [ -z "$3" ]; then git update-index --force-remove "$path"; continue; fi
  blob=$(git cat-file blob ":$path" | sed "$3" | git hash-object -w --stdin)
  git update-index --cacheinfo "100644,$blob,$path"
done
tree=$(git write-tree)
git update-ref $5 "$(git -c user.name=e -c user.email=e@localhost commit-tree $4 -m forged "$tree")"
`
	parent := ""
	if c.shown {
		parent = "-p refs/agent/ledger"
	}
	ref = fmt.Sprintf("refs/agent/forged/%d", i)
	cmd := exec.Command("sh", "-c", sh, "sh", id, c.file, c.sed, parent, ref)
	cmd.Dir, cmd.Env = s.repo, append(s.env(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", c.name, err, out)
	}
	return ref
}
