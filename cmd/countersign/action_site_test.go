package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
)

// TestActionSite: the stage site writes pages of the remote's ledger with a token that
// can only read; without diffs where not everybody may read the repository, or where
// the input says so. A ledger that does not verify has its pages too, and fails.
func TestActionSite(t *testing.T) {
	long(t)
	t.Parallel()
	for _, private := range []bool{false, true} {
		h := openHub(t, private)
		if code, outputs, printed := h.action("site", "out="+filepath.Join(t.TempDir(), "site")); code != 0 || outputs["site"] != "false" {
			t.Errorf("without a ledger: exit code %d, outputs %v\n%s", code, outputs, printed)
		}
		if code, _, printed := h.action("run", "patch="+h.write("fix.patch", greetFix), "summary=greet"); code != 0 {
			t.Fatalf("run: %d\n%s", code, printed)
		}
		build := func(redact string) (code int, diffs bool) {
			h.clone()
			h.event("schedule", nil)
			h.env["INPUT_TOKEN"] = h.s.ActionsToken(site, "contents:read")
			out := filepath.Join(t.TempDir(), "site")
			code, outputs, printed := h.step("site", "out="+out, "redact="+redact)
			pages, err := filepath.Glob(out + "/tx/*.html")
			check(t, err)
			if outputs["site"] != "true" || len(pages) != 1 {
				t.Fatalf("exit code %d, outputs %v, pages %v\n%s", code, outputs, pages, printed)
			}
			raw, err := os.ReadFile(pages[0])
			check(t, err)
			return code, bytes.Contains(bytes.ReplaceAll(raw, []byte(`<b class="word">`), nil), []byte("hello, world"))
		}
		for redact, want := range map[string]bool{"": !private, "true": false, "false": true, "nonsense": false} {
			if code, diffs := build(redact); code != 0 || diffs != want {
				t.Errorf("private %t, redact %q: exit code %d, diffs %t", private, redact, code, diffs)
			}
		}
		if code, outputs, printed := h.step("site", "out="); code == 0 || outputs["site"] == "true" {
			t.Errorf("without a directory: %d %v\n%s", code, outputs, printed)
		}
		forged := h.s.Git(site, "-c", "user.name=Eve", "-c", "user.email=eve@localhost", "commit-tree", "-m", "forged", "-p", "refs/agent/ledger", "refs/agent/ledger^{tree}")
		h.s.Git(site, "update-ref", "refs/agent/ledger", forged)
		if code, _ := build(""); code != console.ExitFailed {
			t.Errorf("a forged ledger: exit code %d", code)
		}
	}
}
