package main

import (
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// guardShell runs a script in a directory of a guarded repository, with what testdata/guard has for all of them.
func guardShell(dir, below, script string) (string, error) {
	cmd := exec.Command("sh", "-c", ". ../names; . ../lib.sh; "+script)
	if below == "" {
		cmd = exec.Command("sh", "-c", script)
	}
	cmd.Dir = filepath.Join(dir, below)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "GIT_CONFIG_NOSYSTEM=1", "TMPDIR=" + os.TempDir(), "TZ=UTC", "LC_ALL=C.UTF-8",
		"GIT_AUTHOR_DATE=2026-01-05T12:00:00Z", "GIT_COMMITTER_DATE=2026-01-05T12:00:00Z",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// guardTemplate makes the guarded repository once; each test has a copy.
var guardTemplate = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp(os.Getenv("PATH")[:strings.IndexByte(os.Getenv("PATH"), filepath.ListSeparator)], "guarded-") // which ends with the tests
	if err != nil {
		return "", err
	}
	script, err := os.ReadFile("testdata/guard/setup.sh")
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "home"), 0o700)
	}
	if err != nil {
		return "", err
	}
	if out, err := guardShell(dir, "", string(script)); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	lib, err := os.ReadFile("testdata/guard/lib.sh")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "lib.sh"), lib, 0o600)
	}
	return dir, err
})

// guarded is a copy of the guarded repository.
func guarded(t *testing.T) string {
	t.Helper()
	from, err := guardTemplate()
	check(t, err)
	dir := filepath.Join(t.TempDir(), "g")
	check(t, exec.Command("cp", "-R", from, dir).Run())
	_, err = guardShell(dir, "work", "git remote set-url origin ../app.git; git update-index -q --refresh || true")
	check(t, err)
	return dir
}

// guardedRefs are the refs of the server that nobody may move but as the guard allows.
func guardedRefs(t *testing.T, dir string, ledger bool) string {
	t.Helper()
	out, err := guardShell(dir, "app.git", "git for-each-ref --format='%(objectname) %(refname)'")
	check(t, err)
	kept := regexp.MustCompile(`(?i) refs/(heads/(main|release|relea.*e)$|tags/|replace/)`)
	if ledger {
		kept = regexp.MustCompile(`(?i) refs/(heads/(main|release|relea.*e)$|tags/|replace/|agent/)`)
	}
	var refs []string
	for line := range strings.Lines(out) {
		if kept.MatchString(strings.TrimSpace(line)) {
			refs = append(refs, line)
		}
	}
	return strings.Join(refs, "")
}

// attacks are those of testdata/guard/attacks.txt: names and scripts.
func attacks(t *testing.T) (all [][2]string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/guard/attacks.txt")
	check(t, err)
	words := regexp.MustCompile(`\{(.*)\}`)
	for _, one := range strings.Split(string(raw), "\n== ")[1:] {
		name, script, _ := strings.Cut(one, "\n")
		several := words.FindStringSubmatch(name)
		if several == nil {
			all = append(all, [2]string{name, ":\n" + script})
			continue
		}
		for _, x := range strings.Split(several[1], "|") {
			all = append(all, [2]string{strings.Replace(name, several[0], x, 1), "x='" + x + "'\n" + script})
		}
	}
	return all
}

// TestT91GuardAttacks: of testdata/guard/attacks.txt none gets anything onto a guarded branch. Each
// hundred and twenty-eighth is tried; all of them with COUNTERSIGN_LONG.
func TestT91GuardAttacks(t *testing.T) {
	t.Parallel()
	all := attacks(t)
	if len(all) < 200 {
		t.Errorf("only %d attacks", len(all))
	}
	for i, one := range all {
		if !everything() && i%128 != 0 {
			continue
		}
		t.Run(one[0], func(t *testing.T) {
			t.Parallel()
			dir := guarded(t)
			ledger := strings.Contains(one[0], "the ledger")
			script := regexp.MustCompile(`(?m)^first: (.*)$`).ReplaceAllStringFunc(one[1], func(line string) string {
				_, err := guardShell(dir, "work", strings.Split(one[1], "\n")[0]+"\n"+strings.TrimPrefix(line, "first: "))
				check(t, err)
				return ""
			})
			before := guardedRefs(t, dir, ledger)
			out, err := guardShell(dir, "work", script)
			if after := guardedRefs(t, dir, ledger); after != before {
				t.Errorf("it got in:\n%s%s\n%s", before, after, out)
			}
			said := "countersign: error: "
			if strings.HasPrefix(one[0], "git:") {
				said = "rejected"
				if !strings.Contains(out, said) {
					said = "error:"
				}
				if !strings.Contains(out, said) {
					said = "fatal:"
				}
			}
			if err == nil || !strings.Contains(out, said) {
				t.Errorf("nobody refused it (%v): %s", err, out)
			}
		})
	}
}

// TestGuardStory: the commands of docs/guard.md do what it says, word by word.
func TestGuardStory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"home", "keys"} {
		check(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	script := "set -e\nfor k in ada bob; do ssh-keygen -q -t ed25519 -N '' -C $k -f keys/$k; done\n"
	for _, block := range strings.Split(documentation(t)["docs/guard.md"], "```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		block = regexp.MustCompile(`(?m)^! (.*)$`).ReplaceAllString(block, "if $1; then echo it got in; exit 1; fi")
		script += strings.ReplaceAll(block, " TX ", ` $(countersign list --open --json | grep -o 'tx_[0-9A-Z]*' | head -n 1) `)
	}
	out, err := guardShell(dir, "", script)
	if err != nil || !strings.Contains(out, "remote: countersign: refs/heads/main: nothing accounts for 1 of its 1 new commits") || !strings.Contains(out, "main: 1 commit since ") || !strings.Contains(out, ", all explained") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestGuardHonest: what people approved gets in, and what is nobody's business.
func TestGuardHonest(t *testing.T) {
	long(t)
	t.Parallel()
	for name, script := range map[string]string{
		"an apply, with its record":     `apply ok; both`,
		"an apply, after its record":    `apply ok; git push -q origin refs/agent/ledger; push`,
		"an apply that has begun":       `begin ok; git push -q origin refs/agent/ledger; git merge -q --ff-only applied; push`,
		"two applies":                   `apply ok; apply half; both`,
		"an apply, squashed":            `apply half; git reset -q --soft $main; git commit -qm "other words"; both`,
		"the bot":                       `echo 2 >deps/lock; echo 1 >deps/new; git add -A; signed bot; push`,
		"a merge of what is approved":   `git checkout -q -b side $first; echo 2 >deps/new; git add -A; signed bot; git checkout -q main; git merge -q --no-ff -m x side; push`,
		"a proposal":                    `echo x >>f.txt; git diff >../x.patch; git checkout -q f.txt; countersign review ../x.patch --summary x --to branch --push -q`,
		"another branch":                `echo x >>f.txt; all; git push -q origin main:topic2; git push -q --force origin $first:topic2; git push -q origin :topic2`,
		"a tag":                         `git tag v1; git tag -am x v2; git push -q origin v1 v2`,
		"a tag with what it is on":      `apply ok; git tag v1; git push -q --atomic origin main refs/agent/ledger v1`,
		"an approval on another branch": `git checkout -q $first; sed -i 's/^two$/TWO/' a.txt; git diff >../x.patch; git checkout -q main; git branch -q release $first; id=$(countersign review ../x.patch --summary x --base $first --to branch -q); GIT_COMMITTER_EMAIL=ada@example.org countersign approve $id --sign --key ../ada -q >/dev/null; countersign apply $id --to branch --branch release -q >/dev/null; git push -q --atomic origin release refs/agent/ledger`,
		"a new branch of the Policy":    `git -C ../app.git update-ref -d refs/heads/release; git push -q origin $first:refs/heads/release`,
		"the glass broken":              `echo x >>f.txt; git add -A; signed ada "Countersign-Break-Glass: main fire"; git push origin main >../out 2>&1; grep -q 'refs/heads/main: ada@example.org broke the glass: fire' ../out`,
		"nothing new":                   `git push -q origin main`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := guarded(t)
			if out, err := guardShell(dir, "work", "set -e; "+script); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			if out, err := guardShell(dir, "work", "git fetch -q origin '+refs/agent/*:refs/agent/*'; countersign audit; git diff --quiet origin/main main"); err != nil && name != "another branch" && name != "an approval on another branch" {
				t.Errorf("afterwards: %v: %s", err, out)
			}
		})
	}
}

// TestT91GuardTransports: the guard holds a push by HTTP, from git http-backend, and by SSH as it does by a path.
func TestT91GuardTransports(t *testing.T) {
	long(t)
	t.Parallel()
	for _, transport := range []string{"http", "ssh"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			dir := guarded(t)
			use := "git remote set-url origin ssh://host" + dir + "/app.git; git config core.sshCommand 'sh ../ssh'"
			check(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte("shift $(($# - 1))\nexec sh -c \"$1\"\n"), 0o600))
			if transport == "http" {
				backend, err := exec.Command("git", "--exec-path").Output()
				check(t, err)
				server := httptest.NewServer(&cgi.Handler{
					Path: filepath.Join(strings.TrimSpace(string(backend)), "git-http-backend"),
					Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "PATH=" + os.Getenv("PATH"), "HOME=" + dir + "/home"},
				})
				t.Cleanup(server.Close)
				use = "git -C ../app.git config http.receivepack true; git remote set-url origin " + server.URL + "/app.git"
			}
			before := guardedRefs(t, dir, true)
			for _, script := range []string{"echo evil >>f.txt; all; push", "git push -q --force origin $evil:main", "git push -q origin :refs/agent/ledger", "apply ok; echo evil >>f.txt; all; both"} {
				out, err := guardShell(dir, "work", use+"; git reset -q --hard $main; "+script)
				if err == nil || !strings.Contains(out, "remote: countersign: error: the push is refused") || guardedRefs(t, dir, true) != before {
					t.Errorf("%s: %v: %s", script, err, out)
				}
			}
			if out, err := guardShell(dir, "work", "set -e; git reset -q --hard applied; both"); err != nil || guardedRefs(t, dir, true) == before {
				t.Errorf("what is approved: %v: %s", err, out)
			}
		})
	}
}

// TestGuardInstall: hooks that are there go on, in whatever form; a guard that cannot be asked is told, and lets nothing in.
func TestGuardInstall(t *testing.T) {
	long(t)
	t.Parallel()
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, "home"), 0o700))
	out, err := guardShell(dir, "", `set -e
exec 2>&1
refused() { if "$@" >out; then echo "taken: $*"; exit 1; fi; cat out; }
git init -q --bare -b main plain.git
refused countersign guard status -C plain.git
countersign guard install -C plain.git
before=$(ls -lR --time-style=full-iso plain.git/hooks)
countersign guard install --repo plain.git >/dev/null
[ "$before" = "$(ls -lR --time-style=full-iso plain.git/hooks)" ]

# A hook that was there runs first, and may refuse as before.
git init -q --bare -b main former.git
printf '#!/bin/sh\ncat >../saw\n[ ! -e ../no ]\n' >former.git/hooks/pre-receive; chmod +x former.git/hooks/pre-receive
countersign guard install -C former.git
git init -q work; cd work; git config user.name A; git config user.email a@b; echo 1 >f; git add .; git commit -qm x
touch ../no; refused git push -q ../former.git HEAD:refs/heads/main; rm ../no ../saw
git push -q ../former.git HEAD:refs/heads/main
grep -q 'refs/heads/main$' ../saw
echo 2 >f; git commit -qam x
refused git push -q ../former.git HEAD:refs/heads/main
cd ..

# Gitea's own runs all that is in the directory.
git init -q --bare -b main gitea.git
mkdir gitea.git/hooks/pre-receive.d
printf '#!/bin/sh\ndata=$(cat)\nfor hook in hooks/pre-receive.d/*; do echo "$data" | "$hook" || exit 1; done\n' >gitea.git/hooks/pre-receive; chmod +x gitea.git/hooks/pre-receive
cp gitea.git/hooks/pre-receive was
countersign guard install --all .
cmp was gitea.git/hooks/pre-receive
git -C work push -q ../gitea.git HEAD~1:refs/heads/main
refused git -C work push -q ../gitea.git HEAD:refs/heads/main

# One that only speaks of the directory does not; and an install that was cut off goes on.
git init -q --bare -b main speaks.git
printf '#!/bin/sh\n# not pre-receive.d\n' >speaks.git/hooks/pre-receive; chmod +x speaks.git/hooks/pre-receive
mkdir speaks.git/hooks/pre-receive.d; ln speaks.git/hooks/pre-receive speaks.git/hooks/pre-receive.d/before-countersign
refused countersign guard status -C speaks.git
countersign guard install -C speaks.git
git -C work push -q ../speaks.git HEAD~1:refs/heads/main
refused git -C work push -q ../speaks.git HEAD:refs/heads/main

# A directory of hooks, as GitLab has it; and hooks that git would not look for.
countersign guard install --hooks custom_hooks
[ -x custom_hooks/pre-receive.d/countersign ]
git -C plain.git config core.hooksPath /elsewhere
refused countersign guard install -C plain.git
git -C plain.git config --unset core.hooksPath

# A branch that HEAD does not name, before there is one.
git init -q --bare -b other other.git
countersign guard install -C other.git
refused git -C work push -q ../other.git HEAD:refs/heads/main

# One that begins with a Policy that nobody can read.
git init -q --bare -b main unread.git
countersign guard install -C unread.git
cd work; mkdir -p .github; echo 'x: [' >.github/countersign.yml; git add .github; git commit -q -m unread
refused git push -q ../unread.git HEAD:refs/heads/main
git reset -q --hard HEAD~1; git push -q ../unread.git HEAD:refs/heads/main; cd ..

# What cannot run lets nothing in, and status says so.
for spoil in 'rm countersign' 'chmod -x countersign' 'sed -i s/exec/exec.nothing/ countersign'; do
	countersign guard install -C former.git >/dev/null
	(cd former.git/hooks/pre-receive.d; $spoil)
	refused git -C work push -q ../former.git HEAD~1:refs/heads/free
	refused countersign guard status -C former.git
done
countersign guard install -C former.git >/dev/null
git -C former.git config countersign.guardSigners /nowhere
refused git -C work push -q ../former.git HEAD:refs/heads/main
git -C former.git config --unset countersign.guardSigners
git -C former.git config countersign.guardLedger /nowhere
refused git -C work push -q ../former.git HEAD:refs/heads/main

# What the guard builds on has to hold, and where others' word counts, to be theirs.
ssh-keygen -q -t ed25519 -N '' -C w@example.org -f writer
echo "w@example.org $(cat writer.pub)" >writers
cd work; echo 3 >g; git add g; git diff --cached >../x.patch; git reset -q --hard
countersign review ../x.patch --summary x --no-push -q >/dev/null; git push -q ../plain.git HEAD~1:refs/heads/main refs/agent/ledger; cd ..
refused countersign guard install --repo plain.git --allowed-signers writers
git -C plain.git update-ref -d refs/agent/ledger
countersign guard install --repo plain.git --allowed-signers writers
cd work; refused git push -q ../plain.git refs/agent/ledger
git update-ref -d refs/agent/ledger; rm -r .git/countersign
countersign review ../x.patch --summary x --no-push -q --sign-key ../writer >/dev/null; git push -q ../plain.git refs/agent/ledger; cd ..
git -C gitea.git update-ref refs/agent/ledger main
refused countersign guard install -C gitea.git
`)
	for _, want := range []string{
		"plain.git: not guarded: ", "guard install --repo ", "plain.git: guarded: main", "refs/heads/main: nothing accounts for 1 of its 1 new commits",
		"core.hooksPath has git look for hooks in /elsewhere", "comes before the default branch, refs/heads/other, which is not there yet",
		"countersign is not there, or may not be run", "may not be run", "the Policy of refs/heads/main", "the ledger that is there does not verify", "nowhere",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("nobody said %q", want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v: %s", err, out)
	}
}

// BenchmarkGuardedPush: a push of commits that a bot signed, by a path, to a guarded repository beside one without a hook; and what of
// it is the guard's.
func BenchmarkGuardedPush(b *testing.B) {
	from, err := guardTemplate()
	check(b, err)
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "g")
			shell := func(script string) time.Duration {
				start := time.Now()
				if out, err := guardShell(dir, "work", script); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				return time.Since(start)
			}
			check(b, exec.Command("cp", "-R", from, dir).Run())
			shell(fmt.Sprintf("git update-index -q --refresh; i=0; while [ $i -lt %d ]; do echo $i.2 >deps/lock; git add -A; signed bot; i=$((i+1)); done", n))
			spent := map[string]time.Duration{}
			for b.Loop() {
				for name, hook := range map[string]string{"guarded": "", "without": "rm ../x.git/hooks/pre-receive"} {
					shell("rm -rf ../x.git; cp -R ../app.git ../x.git; " + hook)
					spent[name] += shell("git push -q ../x.git main")
				}
			}
			ms := func(name string) float64 { return spent[name].Seconds() * 1000 / float64(b.N) }
			b.ReportMetric(ms("guarded"), "ms-guarded")
			b.ReportMetric(ms("without"), "ms-without")
			b.ReportMetric(ms("guarded")/(1.2*ms("without")+60), "of-aim")
		})
	}
}

// T91 A ledger on another server is a mirror that a hook of its own fetches, as docs/guard.md has it; where it cannot be fetched, nothing
// gets in. Neither does it where the guard has no room, or where a denial of what is pushed lands before the record of its apply.
func TestT91GuardFailsClosed(t *testing.T) {
	long(t)
	t.Parallel()
	doc, err := os.ReadFile("../../docs/guard.md")
	check(t, err)
	_, hook, found := strings.Cut(string(doc), "pre-receive.d/00-ledger`:\n\n")
	hook, _, ends := strings.Cut(strings.ReplaceAll(hook, "      ", ""), "\n\n")
	if !found || !ends {
		t.Fatal("docs/guard.md has no hook that fetches the ledger")
	}
	for _, c := range []struct{ name, script, want string }{
		{"a mirror", `
git init -q --bare ../ledger.git; git push -q ../ledger.git 'refs/agent/*:refs/agent/*'
git -C ../app.git for-each-ref --format='delete %(refname)' refs/agent | git -C ../app.git update-ref --stdin
git clone -q --mirror $PWD/../ledger.git ../mirror.git
countersign guard install -C ../app.git --ledger $PWD/../mirror.git
printf '%s' "$hook" | sed "s#/srv/git/ledger.git#$PWD/../mirror.git#" >../app.git/hooks/pre-receive.d/00-ledger; chmod +x ../app.git/hooks/pre-receive.d/00-ledger
apply ok; git push -q ../ledger.git refs/agent/ledger; git push -q origin main
test $(git rev-parse main) = $(git -C ../app.git rev-parse main)
apply half; git push -q ../ledger.git refs/agent/ledger; mv ../ledger.git ../gone.git
refused git push -q origin main
mv ../gone.git ../ledger.git; git push -q --force ../ledger.git $ledger:refs/agent/ledger
refused git push -q origin main`, "remote: fatal: Could not read from remote repository"},
		{"no room", `
mv ../app.git/hooks/pre-receive.d/countersign ../guard; mkdir -p ../full
printf '#!/bin/sh\nTMPDIR=%s; export TMPDIR; exec unshare -Urm sh -c "mount -t tmpfs -o size=4k none $TMPDIR && { head -c 9999 /dev/zero >$TMPDIR/x; exec %s; }"\n' $PWD/../full $PWD/../guard >../app.git/hooks/pre-receive.d/countersign; chmod +x ../app.git/hooks/pre-receive.d/countersign
apply ok
refused git push -q --atomic origin main refs/agent/ledger`, "remote: countersign: error"},
		{"a denial meanwhile", `
git clone -q ../app.git ../ada-clone; cd ../ada-clone; git fetch -q origin '+refs/agent/*:refs/agent/*'
GIT_COMMITTER_EMAIL=ada@example.org countersign deny $(countersign review ../ok.patch --base $first --summary x --to branch -q --no-push) --sign --key ../ada --reason no --no-push -q >/dev/null
cd ../work; apply ok
printf '#!/bin/sh\n%s && env -u GIT_QUARANTINE_PATH -u GIT_OBJECT_DIRECTORY -u GIT_ALTERNATE_OBJECT_DIRECTORIES -u GIT_DIR git -C %s fetch -q %s refs/agent/ledger:refs/agent/ledger' $PWD/../guard $PWD/../app.git $PWD/../ada-clone >../hook; mv ../app.git/hooks/pre-receive.d/countersign ../guard; mv ../hook ../app.git/hooks/pre-receive.d/countersign
chmod +x ../app.git/hooks/pre-receive.d/countersign
refused git push -q --atomic origin main refs/agent/ledger`, "refs/agent/ledger"},
	} {
		dir := guarded(t)
		if out, err := guardShell(dir, "", "mkdir full && unshare -Urm mount -t tmpfs -o size=4k none full"); err != nil && c.name == "no room" {
			t.Logf("%s: NOT RUN, as nobody may mount here: %v %s", c.name, err, out)
			continue
		}
		check(t, os.WriteFile(filepath.Join(dir, "hook"), []byte(hook), 0o600))
		out, err := guardShell(dir, "work", "set -e\nexec 2>&1\nhook=$(cat ../hook)\nrefused() { if \"$@\" >../out; then echo \"taken: $*\"; exit 1; fi; cat ../out; }\n"+c.script)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
	}
}

// TestGuardOtherHooks: the guard as Git's update hook refuses, as its pre-push hook warns, and as a command answers.
func TestGuardOtherHooks(t *testing.T) {
	long(t)
	t.Parallel()
	dir := guarded(t)
	out, err := guardShell(dir, "work", `set -e
exec 2>&1
refused() { if "$@" >../out; then echo "taken: $*"; exit 1; fi; cat ../out; }
rm ../app.git/hooks/pre-receive
printf '#!/bin/sh\nexec countersign guard update "$@"\n' >../app.git/hooks/update; chmod +x ../app.git/hooks/update
printf '#!/bin/sh\nexec countersign guard pre-push "$@"\n' >.git/hooks/pre-push; chmod +x .git/hooks/pre-push
apply ok
countersign guard check origin/main..main
echo evil >>f.txt; all
refused countersign guard check origin/main..main --json
refused git push -q origin main
git reset -q --hard applied
git push -q origin refs/agent/ledger
git push -q origin main
refused git push -q --force origin $first:main
`)
	for _, want := range []string{"all of it is accounted for", `"ok":false`, "countersign: a guarded server would refuse this:", "remote: countersign: refs/heads/main: nothing accounts for 2 of its 2 new commits", "remote: countersign: refs/heads/main: is guarded, and would lose commits"} {
		if !strings.Contains(out, want) {
			t.Errorf("nobody said %q", want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v: %s", err, out)
	}
}
