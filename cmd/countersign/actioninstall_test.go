package main

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/exectest"
)

// installer is .github/action/install.sh, run for a made-up action on a Linux
// runner. Its Go is a script that "builds" a file with the word source.
type installer struct {
	t    *testing.T
	dir  string
	env  map[string]string
	gets int // downloads that the server saw
}

const releasedProgram = "#!/bin/sh\necho released\n"

func newInstaller(t *testing.T, served string) *installer {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX system")
	}
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	in := &installer{t: t, dir: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.gets++
		if r.URL.Path != "/acme/countersign/releases/download/v1.2.3/countersign_linux_amd64" || served == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(served))
	}))
	t.Cleanup(server.Close)
	for _, folder := range []string{"action", "temp", "bin"} {
		check(t, os.Mkdir(filepath.Join(in.dir, folder), 0o755))
	}
	fake := "#!/bin/sh\necho \"$CGO_ENABLED $COUNTERSIGN_SIGN_KEY $*\" >> '" + in.dir + "/built'\nwhile [ \"$1\" != -o ]; do shift; done\necho source > \"$2\"\n"
	check(t, exectest.WriteFile(filepath.Join(in.dir, "bin", "go"), []byte(fake)))
	in.env = map[string]string{
		"PATH": filepath.Join(in.dir, "bin") + ":" + os.Getenv("PATH"), "RUNNER_OS": "Linux", "RUNNER_ARCH": "X64",
		"RUNNER_TEMP": filepath.Join(in.dir, "temp"), "GITHUB_ACTION_PATH": filepath.Join(in.dir, "action"),
		"GITHUB_OUTPUT": filepath.Join(in.dir, "output"), "GITHUB_SERVER_URL": server.URL, "ACTION_REPOSITORY": "acme/countersign", "COUNTERSIGN_SIGN_KEY": "hidden",
	}
	return in
}

// release puts the files of a release's commit into the action.
func (in *installer) release(tag, checksums string) {
	in.t.Helper()
	folder := filepath.Join(in.dir, "action", ".github", "release")
	check(in.t, os.MkdirAll(folder, 0o755))
	check(in.t, os.WriteFile(filepath.Join(folder, "tag"), []byte(tag+"\n"), 0o644))
	check(in.t, os.WriteFile(filepath.Join(folder, "checksums.txt"), []byte(checksums), 0o644))
}

// run returns what the program is that the script chose ("" for none), and what
// the script printed.
func (in *installer) run() (program, printed string) {
	in.t.Helper()
	check(in.t, os.RemoveAll(in.env["GITHUB_OUTPUT"]))
	script, err := os.ReadFile("../../.github/action/install.sh") // read here, so that go test knows of it
	check(in.t, err)
	cmd := exec.Command("bash", "-c", string(script))
	for k, v := range in.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.CombinedOutput()
	named, readErr := os.ReadFile(in.env["GITHUB_OUTPUT"])
	if err != nil {
		if readErr == nil {
			in.t.Errorf("it failed and named %s", named)
		}
		return "", string(out)
	}
	check(in.t, readErr)
	path := strings.TrimSuffix(strings.TrimPrefix(string(named), "program="), "\n")
	data, err := os.ReadFile(path)
	check(in.t, err)
	return string(data), string(out)
}

func (in *installer) builds() int {
	raw, _ := os.ReadFile(filepath.Join(in.dir, "built"))
	if strings.Contains(string(raw), "hidden") {
		in.t.Errorf("the build sees the key: %s", raw)
	}
	return strings.Count(string(raw), "\n")
}

func lineOf(content, name string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:]) + "  " + name + "\n"
}

// TestT25ReleasedProgram: the release's program is run if it is, by its digest,
// the one that the commit names, and never one with another digest.
func TestT25ReleasedProgram(t *testing.T) {
	t.Parallel()
	right := lineOf(releasedProgram, "countersign_linux_amd64")
	for _, c := range []struct {
		name, served, tag, sums string
		system                  string
		program, printed        string
		builds                  int
	}{
		{name: "no release", program: "source\n", printed: "built from source", builds: 1},
		{name: "match", served: releasedProgram, tag: "v1.2.3", sums: "x  other\n" + right, program: releasedProgram, printed: "using the released"},
		{name: "mismatch", served: "another", tag: "v1.2.3", sums: right, printed: "nothing is run"},
		{name: "not served", tag: "v1.2.3", sums: right, program: "source\n", printed: "::warning::", builds: 1},
		{name: "no such system", served: releasedProgram, tag: "v1.2.3", sums: right, system: "macOS", program: "source\n", printed: "built from source", builds: 1},
		{name: "no digest", served: releasedProgram, tag: "v1.2.3", sums: "abc  countersign_linux_amd64\n", printed: "has no SHA-256"},
		{name: "no tag", served: releasedProgram, tag: "../../evil", sums: right, printed: "does not name a release"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := newInstaller(t, c.served)
			if c.tag != "" {
				in.release(c.tag, c.sums)
			}
			if c.system != "" {
				in.env["RUNNER_OS"] = c.system
			}
			program, printed := in.run()
			if program != c.program || !strings.Contains(printed, c.printed) || in.builds() != c.builds {
				t.Errorf("program %q, %d builds; printed\n%s", program, in.builds(), printed)
			}
		})
	}
}

// A second step of the job takes the program that is there, after looking at its
// digest again.
func TestT25ProgramOfAnEarlierStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, served, file string }{
		{"released", releasedProgram, "released/countersign"}, {"built", "", "built/countersign"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := newInstaller(t, c.served)
			if c.served != "" {
				in.release("v1.2.3", lineOf(c.served, "countersign_linux_amd64"))
			}
			first, _ := in.run()
			gets, builds := in.gets, in.builds()
			in.env["GITHUB_ACTION_PATH"] += "/.github/action" // the action of the workflows, which is in the same tree
			if second, printed := in.run(); second != first || in.gets != gets || in.builds() != builds {
				t.Errorf("the second step has %q, %d downloads, %d builds\n%s", second, in.gets, in.builds(), printed)
			}
			found, err := filepath.Glob(filepath.Join(in.dir, "temp", "countersign", "*", c.file))
			check(t, err)
			if len(found) != 1 {
				t.Fatalf("programs: %v", found)
			}
			check(t, exectest.WriteFile(found[0], []byte("changed")))
			if program, printed := in.run(); program != "" || !strings.Contains(printed, "nothing is run") {
				t.Errorf("a changed program was taken: %q\n%s", program, printed)
			}
		})
	}
}

// On a machine that keeps what jobs leave, the build takes nothing from there.
func TestT26BuildOnAMachineOfOnesOwn(t *testing.T) {
	t.Parallel()
	in := newInstaller(t, "")
	in.env["RUNNER_ENVIRONMENT"] = "self-hosted"
	fake := "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\necho \"$GOCACHE $GOMODCACHE\" > \"$2\"\n"
	check(t, exectest.WriteFile(filepath.Join(in.dir, "bin", "go"), []byte(fake)))
	temp := in.env["RUNNER_TEMP"] + "/countersign/"
	if got, _ := in.run(); got != temp+"cache "+temp+"modules\n" {
		t.Errorf("the caches are %s", got)
	}
}
