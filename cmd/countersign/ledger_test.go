package main

import (
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
)

// TestT24TokenHost: a token goes to one host, whatever remote is named.
func TestT24TokenHost(t *testing.T) {
	ours := wire.Basic("x-access-token", "t0ken")
	for _, c := range []struct {
		name, address, want string
		env                 map[string]string
	}{
		{"the workflow's own", "https://github.com/o/r", ours, map[string]string{"GITHUB_SERVER_URL": "https://github.com", "GITHUB_TOKEN": "t0ken"}},
		{"the action's input", "https://github.com/o/r", ours, map[string]string{"GITHUB_SERVER_URL": "https://github.com", "INPUT_TOKEN": "t0ken"}},
		{"another host", "https://example.org/o/r", "", map[string]string{"GITHUB_SERVER_URL": "https://github.com", "GITHUB_TOKEN": "t0ken", "COUNTERSIGN_TOKEN": "t0ken"}},
		{"a host that begins so", "https://github.com.example.org/o/r", "", map[string]string{"GITHUB_SERVER_URL": "https://github.com", "COUNTERSIGN_TOKEN": "t0ken"}},
		{"the host that is named", "https://example.org/o/r", ours, map[string]string{"COUNTERSIGN_TOKEN_HOST": "example.org", "COUNTERSIGN_TOKEN": "t0ken"}},
		{"none is named", "https://example.org/o/r", "", map[string]string{"COUNTERSIGN_TOKEN": "t0ken"}},
		{"ssh", "ssh://git@example.org/o/r", "", map[string]string{"COUNTERSIGN_TOKEN_HOST": "example.org", "COUNTERSIGN_TOKEN": "t0ken"}},
	} {
		a := console.New(console.Process{Getenv: func(name string) string { return c.env[name] }})
		o, err := session.Credentials(a, c.address, gitstore.Settings{}, "", false)
		if err != nil || o.Authorization != c.want {
			t.Errorf("%s: %q %v", c.name, o.Authorization, err)
		}
	}
}
