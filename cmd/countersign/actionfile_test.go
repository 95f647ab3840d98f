package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestT21NoExpressionsInScripts: what a workflow's event brings reaches our steps
// through the environment; an expression inside a script would be part of it.
func TestT21NoExpressionsInScripts(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	check(t, err)
	for _, file := range append(files, "../../action.yml") {
		raw, err := os.ReadFile(file)
		check(t, err)
		runs := 0
		script := -1 // how far a script's key is indented, -1 outside of one
		for line := range strings.Lines(string(raw)) {
			text := strings.TrimLeft(line, " -")
			indent := len(line) - len(text)
			if strings.TrimSpace(text) != "" && indent <= script {
				script = -1
			}
			if strings.HasPrefix(text, "run:") {
				runs++
				script = indent
			}
			if script >= 0 && strings.Contains(line, "${{") {
				t.Errorf("%s: %s", file, line)
			}
		}
		if runs == 0 {
			t.Errorf("%s: no script was seen", file)
		}
	}
}
