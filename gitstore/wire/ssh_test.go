package wire_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A standIn is a program in ssh's place that notes its arguments and runs the
// last one here. It takes -G as OpenSSH does, unless it is simple.
func standIn(t *testing.T, name string, simple bool) (program string, calls func() string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	dir := t.TempDir()
	program = filepath.Join(dir, name)
	probed := "exit 0"
	if simple {
		probed = "exit 1"
	}
	err := teststand.WriteFile(program, []byte(`#!/bin/sh
printf '[%s]' "$@" >>'`+dir+`/calls'
echo >>'`+dir+`/calls'
[ "$1" = -G ] && `+probed+`
for last; do :; done
eval "$last"
`))
	fatal(t, err)
	return program, func() string {
		raw, err := os.ReadFile(filepath.Join(dir, "calls"))
		_ = os.Remove(filepath.Join(dir, "calls"))
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(raw), "\n")
	}
}

// TestSSHProgram: which program runs, with which options, is as with git.
func TestSSHProgram(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, "")
	ssh, sshCalls := standIn(t, "ssh", false)
	plink, plinkCalls := standIn(t, "plink", false)
	putty, puttyCalls := standIn(t, "TortoisePlink.exe", false)
	other, otherCalls := standIn(t, "connect", false)
	simple, simpleCalls := standIn(t, "connect", true)
	repo := teststand.Bare(t, filepath.Join(t.TempDir(), "it's r"))
	tip := repo.Commit(ledger, map[string]string{"a": "1"})
	run := "[git-upload-pack '" + strings.ReplaceAll(repo.Dir, "'", `'\''`) + "']"
	path := strings.ReplaceAll(repo.Dir, " ", "%20")
	for _, row := range []struct {
		url   string
		ssh   wire.SSH
		calls func() string
		want  string
	}{
		{"host:" + repo.Dir, wire.SSH{Program: ssh}, sshCalls, "[host]" + run},
		{"me@[::1]:" + repo.Dir, wire.SSH{Program: ssh}, sshCalls, "[me@::1]" + run},
		{"ssh://me:pw@host:22" + path, wire.SSH{Program: ssh, Batch: true}, sshCalls, "[-oBatchMode=yes][-p][22][me@host]" + run},
		{"host:" + repo.Dir, wire.SSH{Program: ssh, KeyFile: key, KnownHosts: []string{"/a b", "/c%"}}, sshCalls,
			`[-oIdentitiesOnly=yes][-oIdentityFile="` + key + `"][-oStrictHostKeyChecking=yes][-oUserKnownHostsFile="/a b" "/c%%"][-oGlobalKnownHostsFile="/a b" "/c%%"][host]` + run},
		{"host:" + repo.Dir, wire.SSH{Command: ssh + " -v 'a  b'", Program: simple}, sshCalls, "[-v][a  b][host]" + run},
		{"host:" + repo.Dir, wire.SSH{Command: "X=1 " + ssh}, sshCalls, "[-G][host]\n[host]" + run},
		{"ssh://host:22" + path, wire.SSH{Program: plink, KeyFile: key}, plinkCalls, "[-i][" + key + "][-P][22][host]" + run},
		{"ssh://host:22" + path, wire.SSH{Program: putty}, puttyCalls, "[-batch][-P][22][host]" + run},
		{"ssh://host:22" + path, wire.SSH{Program: other, Variant: "auto"}, otherCalls, "[-G][host]\n[-p][22][host]" + run},
		{"ssh://host:22" + path, wire.SSH{Program: other, Variant: "putty"}, otherCalls, "[-P][22][host]" + run},
		{"ssh://host" + path, wire.SSH{Program: simple, Batch: true}, simpleCalls, "[-G][host]\n[host]" + run},
		{"ssh://host:22" + path, wire.SSH{Program: simple}, simpleCalls, "[-G][host]"},
		{"ssh://host" + path, wire.SSH{Program: simple, KeyFile: key}, simpleCalls, "[-G][host]"},
		{"ssh://host" + path, wire.SSH{Program: simple, KnownHosts: []string{"/a"}}, simpleCalls, "[-G][host]"},
		{"ssh://host" + path, wire.SSH{Program: ssh, Variant: "SSH"}, sshCalls, ""},
	} {
		s := open(t, row.url, wire.Options{SSH: row.ssh})
		got, err := s.Tip(t.Context(), ledger)
		if calls := row.calls(); calls != row.want {
			t.Errorf("%s %+v:\n%s, want\n%s", row.url, row.ssh, calls, row.want)
		}
		if ran := strings.HasSuffix(row.want, run); ran != (err == nil) || ran && got != tip {
			t.Errorf("%s %+v: %s %v", row.url, row.ssh, got, err)
		}
	}
	s := open(t, "host:"+repo.Dir, wire.Options{SSH: wire.SSH{Program: other}})
	mustTip(t, s, ledger, tip)
	next, pack := repo.Pack(tip, map[string]string{"a": "2"})
	mustPush(t, s, tip, next, pack)
	if n := strings.Count(otherCalls(), "[-G]"); n != 1 {
		t.Errorf("the program was asked %d times what it takes", n)
	}
}

// TestNoSSH: without the program there is no connection, and a reason.
func TestNoSSH(t *testing.T) {
	for _, ssh := range []wire.SSH{{}, {Program: "ssh-of-nobody"}, {Program: "/no/ssh"}, {Command: "ssh -v"}} {
		t.Setenv("PATH", t.TempDir())
		if _, err := open(t, "host:r", wire.Options{SSH: ssh}).Tip(t.Context(), ledger); !errors.Is(err, wire.ErrNoSSH) {
			t.Errorf("%+v: %v", ssh, err)
		}
	}
}

// TestT84Dashes: neither host, nor user, nor path is an option of ssh's or of
// git's, or is more than a name for a command of ssh_config's.
func TestT84Dashes(t *testing.T) {
	for _, raw := range []string{
		"-oProxyCommand=x:r", "ssh://-oProxyCommand=x/r", "ssh://-oProxyCommand=x@h/r", "ssh://%2doProxyCommand=x@h/r", "-l@h:r", "h:-x", "h:--upload-pack=x",
		"ssh://h%0a/r", "ssh://a%0ab@h/r", "ssh://a%20b@h/r", "`id`@h:r", "$(id)@h:r", "a;id@h:r", "ssh://%24%28id%29@h/r", "a|id@h:r", "a&@h:r", `a\@h:r`, "a'b@h:r", "{a,b}@h:r", "$(id):r", "`id`:r",
	} {
		if r, err := wire.ParseRemote(raw, "/dir"); err == nil {
			t.Errorf("%s is %s", raw, r)
		}
	}
	for _, raw := range []string{"git@h:r", "a.b-c_d+e@h:r", `DOMAIN\user@h:r`, "ssh://me%40example.org@h/r", "ünal@h:r"} {
		if _, err := wire.ParseRemote(raw, "/dir"); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// What ssh says is shown without what a terminal would heed.
func TestSSHWords(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ssh")
	fatal(t, teststand.WriteFile(program, []byte("#!/bin/sh\nprintf 'kex: \\033[2Jclosed\\r\\n\\n' >&2\nexit 255\n")))
	s := open(t, "host:r", wire.Options{SSH: wire.SSH{Program: program}})
	_, tip := s.Tip(t.Context(), ledger)
	push := s.Push(t.Context(), ledger, packfile.None, packfile.ParseID("1234567890123456789012345678901234567890"), []byte("PACK"))
	for _, err := range []error{tip, push} {
		var network *wire.NetworkError
		if !errors.As(err, &network) || !strings.HasSuffix(err.Error(), "ssh ended with status 255: kex: [2Jclosed") {
			t.Errorf("%q", err)
		}
	}
}
