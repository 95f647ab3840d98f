package teststand

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// An SSH is a program in the place of ssh. It runs on this machine what it would have run on a server, and fails on demand.
type SSH struct {
	Program string
	t       testing.TB
	dir     string
}

const sshScript = `#!/bin/sh
dir=$(dirname "$0")
for last; do :; done
echo "$last" >>"$dir/commands"
[ -e "$dir/stall" ] && exec sleep 1000
[ -e "$dir/answer" ] && { cat "$dir/answer"; exec cat >/dev/null; }
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_COUNT=2
export GIT_CONFIG_KEY_0=uploadpack.allowFilter GIT_CONFIG_VALUE_0=true GIT_CONFIG_KEY_1=uploadpack.allowAnySHA1InWant GIT_CONFIG_VALUE_1=true
[ -e "$dir/refs" ] || eval "exec $last"
eval "$last" | { head -c "$(cat "$dir/refs")"; cat >/dev/null; }
exec sh -c "$(cat "$dir/then")"
`

// NewSSH makes a program, which the test skips on Windows.
func NewSSH(t testing.TB) *SSH {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	dir := t.TempDir()
	s := &SSH{filepath.Join(dir, "ssh"), t, dir}
	if err := WriteFile(s.Program, []byte(sshScript)); err != nil {
		t.Fatal(err)
	}
	return s
}

// URL is where a repository is served, by its absolute path.
func (s *SSH) URL(dir string) string {
	return "ssh://git@server" + strings.ReplaceAll(filepath.ToSlash(dir), " ", "%20")
}

// SetAnswer has the server send this in git's stead.
func (s *SSH) SetAnswer(answer string) { s.set("answer", answer) }

// Stall has the server say nothing from now on.
func (s *SSH) Stall() { s.set("stall", "") }

// CutReport has the server do what is pushed to a repository, and then, in place of its report, what a line of the shell says.
func (s *SSH) CutReport(r Repo, then string) {
	s.set("then", then)
	s.set("refs", strconv.Itoa(len(r.run(nil, r.Dir, "", "receive-pack", "--http-backend-info-refs", r.Dir))))
}

// Serve has it serve as git does again.
func (s *SSH) Serve() { _ = os.Remove(filepath.Join(s.dir, "refs")) }

// Commands are what the server was asked to run, a line each.
func (s *SSH) Commands() string {
	raw, _ := os.ReadFile(filepath.Join(s.dir, "commands"))
	return string(raw)
}

func (s *SSH) set(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}
