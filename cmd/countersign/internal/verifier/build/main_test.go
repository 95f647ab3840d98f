package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildEnvironment: what somebody has set for their own builds does not get into this one, whose hash is named.
func TestBuildEnvironment(t *testing.T) {
	own := map[string]string{"GOFLAGS": "-tags=x", "GOWASM": "satconv", "GOEXPERIMENT": "jsonv2", "GOFIPS140": "latest", "CGO_ENABLED": "1"}
	names, lines := []string{}, ""
	for name, value := range own {
		names, lines = append(names, name), lines+name+"="+value+"\n"
	}
	file := filepath.Join(t.TempDir(), "env") // as "go env -w" writes it
	if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T) {
		out, err := run("go", append([]string{"env"}, names...)...)
		if err != nil {
			t.Fatal(err)
		}
		for i, value := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
			if value == own[names[i]] {
				t.Errorf("%s is %q", names[i], value)
			}
		}
	}
	t.Run("by go env -w", func(t *testing.T) {
		t.Setenv("GOENV", file)
		check(t)
	})
	t.Run("in the environment", func(t *testing.T) {
		for name, value := range own {
			t.Setenv(name, value)
		}
		check(t)
	})
}
