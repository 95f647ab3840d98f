package secret_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// upstream is the release of gitleaks that gitleaks.toml is from. To follow
// another, name it here and run
//
//	go test ./pipeline/secret -run TestUpstream -update
const upstream = "github.com/zricethezav/gitleaks/v8@v8.30.1"

var update = flag.Bool("update", false, "take gitleaks' files from the release that is named")

// TestUpstream: rules and license are gitleaks', byte for byte; with -update and
// in CI as Go's checksum database knows them. Otherwise nothing is downloaded: the
// files are compared if Go has the module already.
func TestUpstream(t *testing.T) {
	cmd := exec.Command("go", "mod", "download", "-json", upstream)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if !*update && os.Getenv("CI") == "" {
		cmd.Env = append(cmd.Env, "GOPROXY=off", "GOSUMDB=off")
	}
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &module); err != nil || jsonErr != nil || module.Dir == "" {
		if *update || os.Getenv("CI") != "" {
			t.Fatal(err, jsonErr, module.Error)
		}
		t.Skipf("%s is not in the module cache", upstream)
	}
	for ours, theirs := range map[string]string{"gitleaks.toml": "config/gitleaks.toml", "gitleaks.LICENSE": "LICENSE"} {
		want, err := os.ReadFile(filepath.Join(module.Dir, theirs))
		fatal(t, err)
		if *update {
			fatal(t, os.WriteFile(ours, want, 0o644))
		}
		if got, err := os.ReadFile(ours); err != nil || string(got) != string(want) {
			t.Errorf("%s is not the file of %s (%v)", ours, upstream, err)
		}
	}
}
