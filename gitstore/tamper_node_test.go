package gitstore

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/audit"
)

// mostWasm is how many bytes the compressed verifier may have, as Go compresses it: "gzip -9" makes 0.9 %
// less of it.
const mostWasm = 2_300_000

// TestT78Wasm: the verifier that browsers run says of each kind of tampering, of the
// sound ledger and of a hostile bundle what the command says. It runs in node, where
// COUNTERSIGN_BROWSER is set.
func TestT78Wasm(t *testing.T) {
	browser := os.Getenv("COUNTERSIGN_BROWSER")
	if browser == "" {
		t.Skip("NOT RUN: the verifier as WebAssembly; COUNTERSIGN_BROWSER=require runs it")
	}
	node, err := exec.LookPath("node")
	if err != nil && browser == "require" {
		t.Fatal("there is no node, and COUNTERSIGN_BROWSER=require asks for it")
	}
	if err != nil {
		t.Skip("NOT RUN: the verifier as WebAssembly: there is no node")
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		file := filepath.Join(dir, name)
		fatal(t, os.WriteFile(file, data, 0o644))
		return file
	}
	build := exec.Command("go", "run", "./cmd/countersign/internal/verifier/build", dir)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	packed, err := os.ReadFile(filepath.Join(dir, "verify.wasm.gz"))
	fatal(t, err)
	if len(packed) > mostWasm {
		t.Errorf("the verifier has %d bytes, more than %d", len(packed), mostWasm)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	fatal(t, err)
	wasm, err := io.ReadAll(unpacked)
	fatal(t, err)
	write("verify.wasm", wasm)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	fatal(t, err)
	s := newSoundLedgerOf(t, 27)
	known := s.commits[len(s.commits)-1].String()
	signers := write("signers", []byte(s.signersText))
	args := []string{"../cmd/verify/testdata/node.js", filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"), filepath.Join(dir, "verify.wasm")}
	var want []string
	add := func(f *forge, raw []byte, tip string) {
		args = append(args, write(fmt.Sprint(len(want)), raw), signers, tip)
		r, err := f.asRepository(tip)
		fatal(t, err)
		want = append(want, text(t, r))
	}
	for i, k := range slices.Concat(tamperers, forgers) {
		f, _, err := s.tamper(k, 0)
		if err != nil {
			continue // such a small ledger has no place for it; TestT78SameVerdict counts
		}
		if raw, err := f.bundle(); err == nil {
			add(f, raw, []string{"", known}[i%2])
		}
	}
	clean, err := s.forge(s.steps, len(s.steps), nil)
	fatal(t, err)
	raw, err := clean.bundle()
	fatal(t, err)
	add(clean, raw, known)
	hostile := bytes.Clone(raw)
	hostile[len(raw)/2] ^= 1
	args = append(args, write("hostile", hostile), signers, known)
	out, err := exec.Command(node, args...).Output()
	fatal(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(want)+2 || len(want) < 40 {
		t.Fatalf("%d answers to %d questions", len(lines)-1, len(want)+1)
	}
	for i, line := range lines[:len(want)] {
		var m struct {
			Kind, Error string
			Result      audit.Result
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Kind != "result" || text(t, m.Result) != want[i] {
			t.Errorf("question %d: %v %s %s\nnot %s", i, err, m.Error, line, want[i])
		}
	}
	if last := lines[len(want)]; !strings.Contains(last, `"kind":"error"`) || !strings.Contains(last, "checksum") && !strings.Contains(last, "damaged") { // as the bit falls
		t.Errorf("a hostile bundle: %s", last)
	}
	t.Log(len(want), "ledgers;", lines[len(lines)-1])
}
