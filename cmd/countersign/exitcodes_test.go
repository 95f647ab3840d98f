package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// What a merge queue would do and nobody was asked about, and a bundle that is not
// proposed, have their exit code whatever else went wrong; the hint is that of the
// rest.
func TestExitCodeBesideOthers(t *testing.T) {
	queue, forge, push := pipeline.ErrUnasked, &rest.Error{Kind: rest.KindAuth}, &fault.Error{Kind: fault.Away, Try: "give a token"}
	authHint, pushHint := console.HintOf(forge), console.HintOf(push)
	for _, c := range []struct {
		err  error
		code int
		hint string
	}{
		{queue, console.ExitFailed, ""},
		{errors.Join(queue, forge), console.ExitFailed, authHint},
		{errors.Join(queue, push), console.ExitFailed, pushHint},
		{&fault.Error{Kind: fault.Barred, Message: "no JSON"}, console.ExitRefused, ""},
		{&fault.Error{Kind: fault.Barred, Message: "no bundle", Cause: os.ErrPermission}, console.ExitRefused, "check who owns the file and its directory"},
		{errors.Join(&console.ExitError{Code: console.ExitPending}, os.ErrPermission), console.ExitIO, "check who owns the file and its directory"},
		{errors.Join(&pipeline.DeniedError{}, errors.Join(&ledger.CorruptError{ID: "x", Err: os.ErrInvalid})), console.ExitFailed, console.HintOf(&pipeline.DeniedError{})},
		{errors.Join(&console.ExitError{Code: console.ExitPending}), console.ExitPending, ""},
		{&console.ExitError{Code: console.ExitIO, Err: errors.Join(forge, queue)}, console.ExitIO, authHint},
		{&effect.UncommittedError{Err: os.ErrExist, Unstaged: []string{"*", "a.txt"}}, console.ExitFailed, "git restore --staged -- ':(top,literal)*' :/a.txt"},
	} {
		if code, hint := console.CodeOf(c.err), console.HintOf(c.err); code != c.code || hint != c.hint {
			t.Errorf("%v: %d %q, want %d %q", c.err, code, hint, c.code, c.hint)
		}
	}
}

// The rule of README.md's exit codes, held by every command: what was to be read
// and is not there is 3, what the ledger does not have is 2. The verifiers and
// pack apply have the exit codes of their specifications.
func TestExitCodeOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, map[string]string{"a.txt": "a\n"})
	s.git("init", "-q", "-b", "main")
	s.commit()
	file := filepath.Join(s.dir, "new.patch")
	check(t, os.WriteFile(file, []byte(addition("new.txt", "x\n")), 0o644))
	const commit = "0123456789012345678901234567890123456789"
	covered := map[string]bool{}
	hold := func(want int, dir, lines string) {
		t.Helper()
		for line := range strings.Lines(lines) {
			args := strings.Fields(line)
			covered[args[0]] = true
			code, _, errs := runIn(s.repo, s.getenv, append([]string{"-C", dir}, args...)...)
			if code != want || want > 0 && !strings.Contains(errs, "countersign: error: ") {
				t.Errorf("-C %s %s: exit %d, want %d\n%s", dir, strings.TrimSpace(line), code, want, errs)
			}
		}
	}
	// A directory that is not there.
	hold(console.ExitIO, filepath.Join(s.dir, "nowhere"), `run --patch x
run --all
agent -- true
review --patch x
propose --patch x
approve
deny
gate
apply
validate
list
show
report
log
diff
export --out o
site --out o
browse --no-open
close
wait
serve --stdio
mcp
sync
ledger tip
ledger accept-tip `+commit+` --reason x
audit
audit --commit HEAD
attest --all --sign-key KEY --out o
witness
policy check
policy explain --patch x
passkey add x
checks --out o
init
init --mcp
init --agents
init --check
doctor
settle --pr 1
sign --pr 1
`)
	// A file that is not there.
	hold(console.ExitIO, s.repo, `run --patch no
run --checks no
review --patch no
propose --patch no
review --pack no
review --proposal no
review --proposal no --bundle no
review --recipe remove-todo --needle a --trace no
review --worktree --sign-key no
validate --dir no
audit --allowed-signers no
attest tx_7 --sign-key no
verify no --commit HEAD --allowed-signers no
witness --witnesses no
witness key a --sign-key no
policy check no
policy explain --patch no
advise tx_7 --from no
artifact put a no
canon no
`)
	// No ledger: a list of nothing, and otherwise nothing that is meant.
	hold(0, s.repo, "digest\nlist\nlist --matrix --max 3\nrun --all\nledger tip\npolicy check\n")
	hold(console.ExitRefused, s.repo, `run
approve
deny
gate
apply
validate
show
show tx_0
report
report --html
log
diff
export --out o
site --out o
browse --no-open
close
wait
checks --out o
ledger accept-tip `+commit+` --reason x
audit
audit --commit HEAD
attest tx_7
attest --commit HEAD
evidence
`)
	// A transaction that is not there.
	check(t, os.WriteFile(filepath.Join(s.dir, "advice.json"), []byte(`{"tool":"a","findings":[]}`), 0o644))
	s.run(0, "review", "--patch", file)
	hold(console.ExitRefused, s.repo, "run tx_7\napprove tx_7\ndeny tx_7\ngate tx_7\napply tx_7\nvalidate tx_7\nshow tx_7\nreport tx_7\nreport tx_7 --html\nlog tx_7\ndiff tx_7\nexport tx_7 --out o\napprove tx_7 --sign\nclose tx_7\ndispose tx_7 --as fixed -m x\nadvise tx_7 --from "+filepath.Join(s.dir, "advice.json")+"\nwait tx_7\nchecks tx_7 --out o\n")
	hold(console.ExitRefused, s.repo, "deployed "+strings.Repeat("1", 40)+" --to production\n")
	// No repository.
	hold(console.ExitRefused, s.dir, "run --patch x\nagent -- true\nstatus\nlist\naudit\nevidence\nserve --stdio\nmcp\nmcp --http\ninit --mcp\ninit\n")
	// By their specifications.
	hold(1, s.repo, "patch verify no\nresult verify no\nproposal verify no\n")
	hold(console.ExitIO, s.repo, "pack apply --pack no --target .\nguard install --all no\nconformance no\n")
	hold(console.ExitRefused, s.repo, "pack apply --pack . --target no\n")

	for _, c := range rootCommand(console.New(console.Process{})).Commands() {
		switch name := c.Name(); name {
		case "demo", "version", "help", "flags", "completion": // read nothing of a user's
		case "action", "plan", "fleet": // of workflows
		default:
			if !covered[name] {
				t.Errorf("no row has %s", name)
			}
		}
	}
}
