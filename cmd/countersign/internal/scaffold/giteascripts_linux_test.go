package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// script is the block that a step of a file of init runs: the first behind a text.
func script(t *testing.T, file File, step string) string {
	t.Helper()
	_, from, found := strings.Cut(string(file.Render(Settings{Guarded: "main", Uses: "./x"})), step)
	_, from, run := strings.Cut(from, "run: |\n")
	if !found || !run {
		t.Fatalf("%s has no step %q", file.Path, step)
	}
	block := ""
	for line := range strings.Lines(from) {
		if !strings.HasPrefix(line, "          ") {
			break
		}
		block += line
	}
	return block
}

// runScript runs one as a runner does, with a program countersign that writes down its arguments and fails where they have
// the word missing. It returns what was written down.
func runScript(t *testing.T, script, dir string, env ...string) (told string, err error) {
	t.Helper()
	bin := t.TempDir()
	check(t, teststand.WriteFile(filepath.Join(bin, "countersign"), []byte("#!/bin/sh\necho \"$*\" >>\"$TOLD\"\ncase \"$*\" in *missing*) exit 3 ;; esac\n")))
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "TOLD="+bin+"/told", "PATH="+bin+":"+os.Getenv("PATH"))...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	raw, _ := os.ReadFile(bin + "/told")
	return string(raw), err
}

// TestGiteaHandsOver: a transaction whose commands left nothing, as one that was denied meanwhile, keeps back no other's results,
// neither where they are left nor where they are taken; and the job fails.
func TestGiteaHandsOver(t *testing.T) {
	t.Parallel()
	settle := giteaFiles(".gitea/workflows")[1]
	const needs = `NEEDS=["tx_1","tx_missing","tx_2"]`
	told, err := runScript(t, script(t, settle, "- name: Leave the results with the run"), t.TempDir(), needs, "RUNNER_TEMP=/r")
	want := "artifact put countersign-results-tx_1 /r/tx_1.json\nartifact put countersign-results-tx_missing /r/tx_missing.json\nartifact put countersign-results-tx_2 /r/tx_2.json\n"
	if err == nil || told != want {
		t.Errorf("%v, %s", err, told)
	}
	told, err = runScript(t, script(t, settle, "INPUT_STAGE: settle\n"), t.TempDir(), needs, "RUNNER_TEMP=/r")
	want = "artifact get countersign-results-tx_1 /r/tx_1.json\naction\nartifact get countersign-results-tx_missing /r/tx_missing.json\nartifact get countersign-results-tx_2 /r/tx_2.json\naction\n"
	if err == nil || told != want {
		t.Errorf("%v, %s", err, told)
	}
}

// TestExampleBot: the name of a file is no option of the example bot's, whose expressions run commands.
func TestExampleBot(t *testing.T) {
	t.Parallel()
	for _, file := range []File{giteaFiles(".gitea/workflows")[2], List[2]} {
		dir := t.TempDir()
		for _, name := range []string{"-e1etouch pwned #.md", "b.md"} {
			check(t, os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600))
		}
		_, bot, found := strings.Cut(string(file.Render(Settings{Guarded: "main", Uses: "./x"})), "- run: git ls-files")
		bot, _, _ = strings.Cut(bot, "\n")
		_, err := runScript(t, "git init -q && git add . && git ls-files"+bot, dir)
		if !found || err != nil {
			t.Errorf("%s: %v", file.Path, err)
		}
		for _, name := range []string{"-e1etouch pwned #.md", "b.md"} {
			if raw, err := os.ReadFile(filepath.Join(dir, name)); string(raw) != "text\n" {
				t.Errorf("%s: %s is %q, %v", file.Path, name, raw, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, "pwned")); err == nil {
			t.Errorf("%s: the name of a file ran a command", file.Path)
		}
	}
}
