package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record"
)

// TestSHA256Bundle: the ledger of a repository of SHA-256 objects is audited out of its bundle, by the program and by
// the second verifier, and a bundle of which one byte is another is refused.
func TestSHA256Bundle(t *testing.T) {
	long(t)
	t.Parallel()
	src := t.TempDir()
	k := kind{t: t, work: t.TempDir(), src: src}
	for _, name := range []string{"here/a.txt", "there/b.txt", "big.bin"} {
		k.write(filepath.Join(src, name), "a")
	}
	k.write(filepath.Join(k.work, "home", ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@localhost\n")
	dir := k.sha256()
	fix, file := filepath.Join(k.work, "fix.patch"), filepath.Join(k.work, "ledger.bundle")
	k.write(fix, "--- a/here/a.txt\n+++ b/here/a.txt\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+A\n")
	id := regexp.MustCompile(`countersign approve ([0-9A-Z]{7})`).FindStringSubmatch(k.program(dir, "review", "--patch", fix))
	k.program(dir, "approve", id[1], "-m", "ok")
	k.program(dir, "run", "--commit")
	k.git(dir, "bundle", "create", "-q", file, "refs/agent/ledger")
	raw, err := os.ReadFile(file)
	check(t, err)
	got, err := record.Audit(bytes.NewReader(raw), int64(len(raw)), record.Known{})
	if err != nil || !got.Sound || !got.PagesAgree || got.Transactions != 1 || len(got.Tip) != 64 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := record.Audit(bytes.NewReader(raw), int64(len(raw)), record.Known{Tip: got.Tip[:40]}); err == nil && got.Sound {
		t.Error("40 digits are taken for a commit of it")
	}
	raw[len(raw)/2] ^= 1
	if got, err := record.Audit(bytes.NewReader(raw), int64(len(raw)), record.Known{}); err == nil && got.Sound {
		t.Error("another byte is not noticed")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT RUN: the second verifier needs python3")
	}
	said, err := exec.Command(python, "../../docs/spec/verifier/verify.py", file).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(said), got.Tip+":") || !strings.Contains(string(said), " 0 findings") {
		t.Errorf("the second verifier: %s%v", said, err)
	}
}
