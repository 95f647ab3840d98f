package sandbox_test

import (
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

func TestParseMode(t *testing.T) {
	for _, name := range []string{"read-only", "workspace-write", "danger-full-access"} {
		if m, err := sandbox.ParseMode(name); err != nil || string(m) != name {
			t.Errorf("%s: %q, %v", name, m, err)
		}
	}
	for _, name := range []string{"", "readonly", "Read-Only", "workspace-write ", "full"} {
		if m, err := sandbox.ParseMode(name); err == nil || m != "" {
			t.Errorf("%q is mode %q", name, m)
		}
	}
}

func TestT24OnlyAllowedVariables(t *testing.T) {
	have := map[string]string{"GITHUB_TOKEN": "secret", "CI": "true", "EMPTY": "", "LANG": "de_DE", "HOME": "/home/me", "PATH": "/mine"}
	lookup := func(name string) (string, bool) { v, ok := have[name]; return v, ok }
	for _, c := range []struct {
		allowed []string
		want    []string // nil is an error
	}{
		{nil, []string{"PATH=/p", "HOME=/h", "TMPDIR=/t", "LANG=C.UTF-8"}},
		{[]string{"CI", "EMPTY", "UNSET"}, []string{"PATH=/p", "HOME=/h", "TMPDIR=/t", "LANG=C.UTF-8", "CI=true", "EMPTY="}},
		{[]string{"LANG"}, []string{"PATH=/p", "HOME=/h", "TMPDIR=/t", "LANG=de_DE"}},
		{[]string{"HOME"}, nil},
		{[]string{"PATH"}, nil},
		{[]string{"TMPDIR"}, nil},
		{[]string{""}, nil},
		{[]string{"A=B"}, nil},
		{[]string{"A\x00"}, nil},
	} {
		got, err := sandbox.Environment("/p", "/h", "/t", c.allowed, lookup)
		if (err != nil) != (c.want == nil) || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v", c.allowed, got, err)
		}
	}
	if got, err := sandbox.Environment("/p", "/h", "/t", []string{"CI"}, nil); err != nil || len(got) != 4 {
		t.Errorf("without a source: %q, %v", got, err)
	}
}
