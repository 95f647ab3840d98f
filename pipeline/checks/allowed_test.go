package checks

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// TestT24Allowed: what a Proposal may have run is on the Policy's list to the
// byte; a shell is used only where the entry says so.
func TestT24Allowed(t *testing.T) {
	var p policy.Policy
	p.Commands.Run = []policy.Check{check(true, "only", "run")}
	p.Commands.Allow = []policy.Command{
		{Argv: []string{"make test | tee log"}, Shell: true},
		{Argv: []string{"go test ./..."}, Shell: true},
		{Argv: []string{"go", "test", "./..."}, Network: true},
		{Argv: []string{"echo", "a b"}},
		{Argv: []string{"echo", "", "x"}},
		{Argv: []string{"echo", `"x"`}},
		{Argv: []string{"echo", "'x'"}},
		{Argv: []string{"echo", `x\`, "y"}},
		{Argv: []string{"echo", "a\tb"}},
		{Argv: []string{"echo", "a\u00a0b"}},
		{Argv: []string{"one argument"}},
		{Argv: []string{"true"}},
		{Argv: []string{}},
		{Argv: []string{""}, Shell: true},
		{Argv: []string{"two", "scripts"}, Shell: true},
	}
	for line, want := range map[string]int{
		"go test ./...":             2, // the entry without a shell comes first
		"make test | tee log":       0,
		"true":                      11,
		"":                          -1,
		" ":                         -1,
		"true ":                     -1,
		" true":                     -1,
		"true\n":                    -1,
		"True":                      -1,
		"go test  ./...":            -1,
		"go\ttest ./...":            -1,
		"go test ./... ; id":        -1,
		"go test ./... extra":       -1,
		"go test":                   -1,
		"go test './...'":           -1,
		"sh -c 'go test ./...'":     -1,
		"make test":                 -1,
		"make test | tee log; id":   -1,
		"make test  | tee log":      -1,
		"only run":                  -1,
		"echo a b":                  -1, // also the line of echo, a, b
		`echo "a b"`:                -1,
		"echo  x":                   -1,
		`echo "x"`:                  -1,
		"echo 'x'":                  -1,
		`echo x\ y`:                 -1,
		"echo a\tb":                 -1,
		"echo a\u00a0b":             -1,
		"one argument":              -1,
		"two scripts":               -1,
		"two":                       -1,
		"go\u00a0test ./...":        -1,
		"true\x00":                  -1,
		"$(true)":                   -1,
		"true # go test ./...":      -1,
		"/bin/true":                 -1,
		"go test ./...\r":           -1,
		"\ufefftrue":                -1,
		"tr\u200bue":                -1,
		"make test | tee log\nrm x": -1,
	} {
		c, ok := Allowed(p, line)
		if want < 0 {
			if ok || c.Argv != nil {
				t.Errorf("%q is allowed as %+v", line, c)
			}
			continue
		}
		if w := p.Commands.Allow[want]; !ok || key(c.Argv, c.Shell) != key(w.Argv, w.Shell) || c.Network != w.Network {
			t.Errorf("%q is %+v, want %+v", line, c, w)
		}
	}
	if c, ok := Allowed(policy.Default(), "true"); ok {
		t.Errorf("the default allows %+v", c)
	}
}
