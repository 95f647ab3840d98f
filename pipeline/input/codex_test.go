package input_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// TestCodex: on random files and patches, and on those that people wrote, the same bytes
// as the real tool gives, COUNTERSIGN_CODEX, or none where it gives none.
func TestCodex(t *testing.T) {
	tool := os.Getenv("COUNTERSIGN_CODEX")
	if tool == "" {
		t.Skip("SKIPPED: no COUNTERSIGN_CODEX, the program codex, to compare with")
	}
	link := filepath.Join(t.TempDir(), "apply_patch") // it acts by its name
	fatal(t, os.Symlink(tool, link))
	times := 300
	if n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_CODEX_TIMES")); err == nil {
		times = n
	}
	applied, refused, ambiguous := 0, 0, 0
	var kept []recordedPatches
	for seed := range uint64(times) {
		r := rand.New(rand.NewPCG(seed, 20))
		files, text := randomCase(r)
		want, ok := byTool(t, link, files, text)
		got, err := byUs(files, text)
		switch {
		case err != nil && (strings.Contains(err.Error(), " places, lines ") || strings.Contains(err.Error(), "does not say where")):
			ambiguous++
		case ok != (err == nil):
			t.Fatalf("seed %d: the tool: %v, we: %v\n%q\n%s", seed, ok, err, files, text)
		case ok && !maps.Equal(got, want):
			t.Fatalf("seed %d: %q\nwe: %q\nthe tool: %q\n%s", seed, files, got, want, text)
		case ok:
			applied++
			if applied <= 100 {
				kept = append(kept, recordedPatches{files, text, want})
			}
		default:
			refused++
			if refused <= 40 {
				kept = append(kept, recordedPatches{files, text, nil})
			}
		}
	}
	if *update {
		raw, err := json.MarshalIndent(kept, "", " ")
		fatal(t, err)
		fatal(t, os.WriteFile(recordedFile, append(raw, '\n'), 0o600))
	}
	t.Logf("numbers: %d patches: %d alike, %d refused by both, %d ambiguous", times, applied, refused, ambiguous)
}

// A recordedPatches is one recorded case: what the tool made of files, nil where it refused.
type recordedPatches struct {
	Files map[string]string `json:"files"`
	Patch string            `json:"patch"`
	Out   map[string]string `json:"out"`
}

const recordedFile = "testdata/codex-0.169.json"

// TestRecorded: the same bytes as the tool gave when its answers were recorded.
func TestRecorded(t *testing.T) {
	raw, err := os.ReadFile(recordedFile)
	fatal(t, err)
	var all []recordedPatches
	if err := json.Unmarshal(raw, &all); err != nil || len(all) < 100 {
		t.Fatalf("%d cases: %v", len(all), err)
	}
	for i, c := range all {
		got, err := byUs(c.Files, c.Patch)
		if (err == nil) != (c.Out != nil) || err == nil && !maps.Equal(got, c.Out) {
			t.Errorf("case %d: %q, %v, want %q\n%q\n%s", i, got, err, c.Out, c.Files, c.Patch)
		}
	}
}

func byTool(t *testing.T, tool string, files map[string]string, text string) (map[string]string, bool) {
	dir := t.TempDir()
	spread(t, dir, files)
	cmd := exec.Command(tool)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(text)
	err := cmd.Run()
	return gathered(t, dir), err == nil
}

// byUs returns the files after a patch.
func byUs(files map[string]string, text string) (map[string]string, error) {
	p, err := input.ParseApplyPatch([]byte(text))
	if err != nil {
		return nil, err
	}
	got, err := resolved(files, p.Resolve)
	if errors.Is(err, patch.ErrUnchanged) {
		return files, nil
	}
	return got, err
}

// randomCase is a file of few different lines, so that they are alike often, and a patch
// that was made from it, and then broken a little.
func randomCase(r *rand.Rand) (map[string]string, string) {
	words := []string{"a", "b", "c", "  a", "a ", "", "d \u201cq\u201d", "d \"q\"", "func f() {", "e\u2013f", "e-f", "\ta", "x\ry"}
	end := "\n"
	if r.IntN(4) == 0 {
		end = "\r\n"
	}
	var lines []string
	for range r.IntN(14) {
		lines = append(lines, words[r.IntN(len(words))])
	}
	var file strings.Builder
	for i, l := range lines {
		file.WriteString(l)
		switch {
		case i == len(lines)-1 && r.IntN(4) == 0:
		case r.IntN(12) == 0:
			file.WriteString("\n")
		default:
			file.WriteString(end)
		}
	}
	files := map[string]string{"a.txt": file.String(), "b.txt": "b\n"}
	var p bytes.Buffer
	p.WriteString("*** Begin Patch\n")
	switch r.IntN(8) {
	case 0:
		p.WriteString("*** Add File: new/c.txt\n+one\n+two\n")
	case 1:
		p.WriteString("*** Delete File: b.txt\n")
	}
	p.WriteString("*** Update File: a.txt\n")
	switch r.IntN(10) {
	case 0:
		p.WriteString("*** Move to: moved/a.txt\n")
	case 1:
		p.WriteString("*** Move to: b.txt\n")
	}
	at := 0
	for range 1 + r.IntN(2) {
		at += r.IntN(3)
		switch {
		case r.IntN(3) == 0 && at < len(lines):
			fmt.Fprintf(&p, "@@ %s\n", lines[at])
			at++
		case r.IntN(8) > 0:
			p.WriteString("@@\n")
		}
		for n := 1 + r.IntN(5); n > 0; n-- {
			text := words[r.IntN(len(words))]
			if at < len(lines) && r.IntN(12) > 0 {
				text = lines[at]
			}
			if r.IntN(8) == 0 {
				text = strings.TrimSpace(text)
			}
			switch r.IntN(4) {
			case 0:
				p.WriteString("+" + words[r.IntN(len(words))] + "\n")
			case 1:
				p.WriteString("-" + text + "\n")
				at++
			default:
				if text == "" && r.IntN(2) == 0 {
					p.WriteString("\n")
				} else {
					p.WriteString(" " + text + "\n")
				}
				at++
			}
		}
		if at >= len(lines)-1 && r.IntN(2) == 0 {
			p.WriteString("*** End of File\n")
		}
	}
	p.WriteString("*** End Patch\n")
	return files, p.String()
}
