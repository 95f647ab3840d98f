package statements

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fake is a program in place of countersign-sigstore.
func fake(t *testing.T, script string) helper {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	file := filepath.Join(t.TempDir(), "countersign-sigstore")
	check(t, teststand.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n")))
	p, err := findHelper(func(name string) string {
		return map[string]string{
			helperVariable: file, "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.example.org", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "secret",
			"HTTPS_PROXY": "http://proxy.example.org", "GITHUB_TOKEN": "another", "LD_PRELOAD": "x.so",
		}[name]
	})
	check(t, err)
	return p
}

var (
	payload = []byte(`{"_type":"x"}`)
	wanted  = expected{Identity: "who", Issuer: "https://issuer.example.org", Digest: "sha256:ab"}
)

func says(identity, issuer, payload, time string) string {
	line, err := canon.Line(map[string]any{"identity": identity, "issuer": issuer, "payload": payload, "time": time})
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("cat >/dev/null; printf '%%s\\n' '%s'", strings.TrimSuffix(string(line), "\n"))
}

// TestT79Helper: whatever a program answers that is not exactly what was asked for is an error.
func TestT79Helper(t *testing.T) {
	t.Parallel()
	now, id := "2026-01-02T15:04:05Z", canon.Hex(payload)
	good := says("who", wanted.Issuer, id, now)
	if at, err := fake(t, good).Verify(t.Context(), []byte("{}"), payload, wanted); err != nil || at != now {
		t.Fatalf("%q %v", at, err)
	}
	for name, c := range map[string]struct {
		script string
		code   helperCode
		want   string
	}{
		"nothing":          {"true", -1, "its answer is not one"},
		"yes":              {"echo OK", -1, "its answer is not one"},
		"true":             {"echo true", -1, "its answer is not one"},
		"null":             {"echo null", -1, "its answer is not one"},
		"empty":            {"echo '{}'", -1, "its answer is not one"},
		"two":              {good + "\n" + good, -1, "its answer is not one"},
		"more members":     {`echo '{"a":"","identity":"who","issuer":"https://issuer.example.org","payload":"","time":""}'`, -1, "its answer is not one"},
		"other bytes":      {says("who", wanted.Issuer, canon.Hex([]byte("other")), now), -1, "another payload"},
		"no payload":       {says("who", wanted.Issuer, "", now), -1, "another payload"},
		"another identity": {says("whom", wanted.Issuer, id, now), -1, "another identity"},
		"another issuer":   {says("who", "https://issuer.example.org/", id, now), -1, "another identity"},
		"no time":          {says("who", wanted.Issuer, id, ""), -1, "does not say when"},
		"exit 1":           {good + "; echo 'countersign-sigstore: no' >&2; exit 1", 1, "countersign-sigstore: no"},
		"exit 3":           {good + "; exit 3", 3, ""},
		"killed":           {good + "; kill -9 $$", -1, ""},
		"huge":             {"cat /dev/zero", -1, "more than it can have to say"},
		"huge error":       {"head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1", 1, "xxx"},
		"controls":         {"printf '\\033[2Jno\\n::add-mask::x\\n' >&2; exit 1", 1, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, err := fake(t, c.script).Verify(t.Context(), []byte("{}"), payload, wanted)
			if !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.want) || at != "" || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q %v", at, err)
			}
		})
	}
}

// TestHelperEnvironment: only who signs gets the job's variables, and nobody any other.
func TestHelperEnvironment(t *testing.T) {
	t.Parallel()
	env := `cat >/dev/null; printf '["'; env | cut -d= -f1 | grep -vx -e PWD -e _ -e SHLVL -e OLDPWD | sort | tr '\n' ' '; printf '","'; printf '%s ' "$@"; printf '"]\n'`
	raw, err := fake(t, env).Sign(t.Context(), payload, helperConfig{SigningConfig: "/a b", TrustedRoot: "/c"})
	if want := `["ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL HTTPS_PROXY ","sign --signing-config=/a b --trusted-root=/c "]` + "\n"; err != nil || string(raw) != want {
		t.Errorf("%v %s", err, raw)
	}
	_, err = fake(t, "{ "+env+"; } >&2; exit 1").Verify(t.Context(), nil, payload, wanted)
	if err == nil || !strings.Contains(err.Error(), `HTTPS_PROXY `) || strings.Contains(err.Error(), "TOKEN") {
		t.Errorf("who verifies: %v", err)
	}
	if _, err := fake(t, "echo no").Sign(t.Context(), payload, helperConfig{}); err == nil {
		t.Error("what is no JSON is a bundle")
	}
}

// TestHelperFind: it is where the variable says, or beside this program, and never in PATH.
func TestHelperFind(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "countersign-sigstore")
	check(t, teststand.WriteFile(program, []byte("#!/bin/sh\n")))
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	for _, named := range []string{"", "countersign-sigstore", "./countersign-sigstore", filepath.Join(dir, "nowhere"), dir} {
		_, err := findHelper(func(string) string { return named })
		if !errors.Is(err, helperMissing) {
			t.Errorf("%q: %v", named, err)
		}
	}
	found, err := findHelper(func(string) string { return program })
	if err != nil || found.Path != program {
		t.Errorf("%v %v", found.Path, err)
	}
	check(t, os.Chmod(program, 0o666))
	found.Getenv = func(string) string { return "" }
	if _, err := found.Verify(t.Context(), nil, payload, wanted); !errors.Is(err, helperMissing) && !slices.Contains([]string{"windows"}, runtime.GOOS) {
		t.Errorf("a file that cannot be run: %v", err)
	}
}
