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

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// installer is .github/action/install.sh, run for a made-up action on a Linux
// runner. Its Go is a script that "builds" a file with the word source, or where the signer's is.
type installer struct {
	t      *testing.T
	dir    string
	env    map[string]string
	serves map[string]string // what the release has, by the name of its file
	gets   int               // downloads that the server saw
	signer string            // the signer that the last run chose; "" for none
}

const (
	releasedProgram = "#!/bin/sh\necho released\n"
	releasedSigner  = "#!/bin/sh\necho signer\n"
	builtSigner     = "cmd/sigstore\n"
	signerAsset     = "countersign-sigstore_linux_amd64"
)

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
	in := &installer{t: t, dir: t.TempDir(), serves: map[string]string{}}
	if served != "" {
		in.serves["countersign_linux_amd64"] = served
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.gets++
		name, ok := strings.CutPrefix(r.URL.Path, "/acme/countersign/releases/download/v1.2.3/")
		if !ok || in.serves[name] == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(in.serves[name]))
	}))
	t.Cleanup(server.Close)
	for _, folder := range []string{"action/cmd/sigstore", "temp", "bin"} {
		check(t, os.MkdirAll(filepath.Join(in.dir, folder), 0o755))
	}
	fake := "#!/bin/sh\necho \"$CGO_ENABLED $COUNTERSIGN_SIGN_KEY $*\" >> '" + in.dir + "/built'\nwhile [ \"$1\" != -o ]; do shift; done\ncase $3 in .) echo \"${PWD#*/action/}\" ;; *) echo source ;; esac > \"$2\"\n"
	check(t, teststand.WriteFile(filepath.Join(in.dir, "bin", "go"), []byte(fake)))
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
// the script printed. The signer that it chose is in in.signer.
func (in *installer) run() (program, printed string) {
	in.t.Helper()
	in.signer = ""
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
	first, rest, _ := strings.Cut(string(named), "\n")
	data, err := os.ReadFile(strings.TrimPrefix(first, "program="))
	check(in.t, err)
	if signer := strings.TrimSuffix(strings.TrimPrefix(rest, "signer="), "\n"); signer != "" {
		raw, err := os.ReadFile(signer)
		check(in.t, err)
		in.signer = string(raw)
	}
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
			check(t, teststand.WriteFile(found[0], []byte("changed")))
			if program, printed := in.run(); program != "" || !strings.Contains(printed, "nothing is run") {
				t.Errorf("a changed program was taken: %q\n%s", program, printed)
			}
		})
	}
}

// TestT25Signer: the program that signs without a key is there for the stage attest alone, by
// the same rules as the program; where it is not as it must be, or cannot be had, nothing is named.
func TestT25Signer(t *testing.T) {
	t.Parallel()
	right, program := lineOf(releasedSigner, signerAsset), lineOf(releasedProgram, "countersign_linux_amd64")
	for _, c := range []struct {
		name, stage, served, sums, noGo string
		signer, printed                 string
		builds                          int
	}{
		{name: "another stage", stage: "settle", served: releasedSigner, sums: program + right, printed: "using the released countersign_linux_amd64"},
		{name: "no stage", served: releasedSigner, sums: program + right, printed: "using the released countersign_linux_amd64"},
		{name: "match", stage: "attest", served: releasedSigner, sums: program + right, signer: releasedSigner, printed: "using the released " + signerAsset},
		{name: "mismatch", stage: "attest", served: "another", sums: program + right, printed: signerAsset[:20] + " has the SHA-256"},
		{name: "the program's digest", stage: "attest", served: releasedProgram, sums: program + right, printed: "nothing is run"},
		{name: "no digest", stage: "attest", served: releasedSigner, sums: program + "abc  " + signerAsset + "\n", printed: "has no SHA-256"},
		{name: "not in the release", stage: "attest", served: releasedSigner, sums: program, signer: builtSigner, printed: "countersign-sigstore was built from source", builds: 1},
		{name: "not served", stage: "attest", sums: program + right, signer: builtSigner, printed: "::warning::", builds: 1},
		{name: "no release", stage: "attest", signer: builtSigner, printed: "countersign-sigstore was built from source", builds: 2},
		{name: "neither served nor built", stage: "attest", sums: program + right, noGo: "exit 1", printed: "::error::countersign: countersign-sigstore could not be built"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := newInstaller(t, releasedProgram)
			in.env["STAGE"] = c.stage
			if c.served != "" {
				in.serves[signerAsset] = c.served
			}
			if c.sums != "" {
				in.release("v1.2.3", c.sums)
			}
			if c.noGo != "" {
				check(t, teststand.WriteFile(filepath.Join(in.dir, "bin", "go"), []byte("#!/bin/sh\n"+c.noGo+"\n")))
			}
			program, printed := in.run()
			fails := c.signer == "" && c.stage == "attest"
			if in.signer != c.signer || (program == "") != fails || !strings.Contains(printed, c.printed) || in.builds() != c.builds {
				t.Errorf("program %q, signer %q, %d builds; printed\n%s", program, in.signer, in.builds(), printed)
			}
			if fails {
				return
			}
			gets, builds := in.gets, in.builds()
			if in.run(); c.name != "not served" && (in.signer != c.signer || in.gets != gets || in.builds() != builds) {
				t.Errorf("a second step: signer %q, %d downloads, %d builds", in.signer, in.gets, in.builds())
			}
			found, err := filepath.Glob(filepath.Join(in.dir, "temp", "countersign", "*", "*", "countersign-sigstore"))
			check(t, err)
			if len(found) != min(len(c.signer), 1) {
				t.Fatalf("signers: %v", found)
			}
			for _, file := range found { // T26 what another step left is looked at again
				check(t, teststand.WriteFile(file, []byte("changed")))
				if program, printed := in.run(); program != "" || !strings.Contains(printed, "nothing is run") {
					t.Errorf("a changed signer was taken: %q\n%s", in.signer, printed)
				}
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
	check(t, teststand.WriteFile(filepath.Join(in.dir, "bin", "go"), []byte(fake)))
	temp := in.env["RUNNER_TEMP"] + "/countersign/"
	if got, _ := in.run(); got != temp+"cache "+temp+"modules\n" {
		t.Errorf("the caches are %s", got)
	}
}
