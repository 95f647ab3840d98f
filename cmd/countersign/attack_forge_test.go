package main

import (
	"context"
	"crypto/rand"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"

	"github.com/countersign-dev/countersign/gitstore"
)

// COUNTERSIGN_TOKEN is for the host that COUNTERSIGN_TOKEN_HOST names alone, whatever the clone's remote is; without that it is
// sent to no server without TLS on a guess, whichever forge that is.
func TestTokenForItsHost(t *testing.T) {
	for _, test := range []struct {
		remote, host string
		want         bool
	}{
		{"https://github.com/acme/site", "github.com", true},
		{"https://codeberg.org/acme/site.git", "codeberg.org", true},
		{"https://github.com/acme/site", "git.example.org", false},
		{"git@codeberg.org:acme/site.git", "git.example.org", false},
		{"https://codeberg.org/acme/site.git", "git.example.org", false},
		{"https://codeberg.org/acme/site.git", "codeberg.org:8443", false},
		{"https://codeberg.org/acme/site.git", "", true},
		{"git@codeberg.org:acme/site.git", "", true},
		{"http://codeberg.org/acme/site.git", "", false},
		{"http://gitea.com/acme/site", "", false},
		{"http://github.com/acme/site", "", false},
	} {
		env := map[string]string{"COUNTERSIGN_TOKEN": "t", "COUNTERSIGN_TOKEN_HOST": test.host}
		a := console.New(console.Process{Getenv: func(name string) string { return env[name] }})
		a.Flags.Remote = test.remote
		client, err := session.Forge(a, gitstore.Settings{})
		if err != nil || (client != nil) != test.want {
			t.Errorf("%s, with the token for %q: a client %v, %v", test.remote, test.host, client != nil, err)
		}
	}
}

// Without COUNTERSIGN_TOKEN_HOST it is for the host of origin. Tokens of GitHub's programs are for GitHub, and for a server
// that somebody else than the clone says to be one of its.
func TestTokenForOriginsHost(t *testing.T) {
	t.Parallel()
	const enterprise = "https://git.example.org/acme/site.git"
	for _, test := range []struct {
		origin, remote, forge string
		env                   string
		want                  bool
	}{
		{enterprise, "origin", "github", "COUNTERSIGN_TOKEN", true},
		{enterprise, "origin", "gitea", "COUNTERSIGN_TOKEN", true},
		{"git@git.example.org:acme/site", enterprise, "github", "COUNTERSIGN_TOKEN", true},
		{enterprise, "https://git.example.com/acme/site", "github", "COUNTERSIGN_TOKEN", false},
		{enterprise, "https://git.example.com/acme/site", "gitea", "COUNTERSIGN_TOKEN", false},
		{enterprise, "https://github.com/acme/site", "", "COUNTERSIGN_TOKEN", false},
		{"https://github.com/acme/site", "origin", "", "GH_TOKEN", true},
		{"https://acme.ghe.com/acme/site", "origin", "", "GITHUB_TOKEN", true},
		{enterprise, "https://github.com/acme/site", "", "GITHUB_TOKEN", true},
		{enterprise, "origin", "", "GITHUB_TOKEN", false},
		{enterprise, "origin", "", "GH_TOKEN", false},
		{enterprise, "origin", "gitea", "GH_TOKEN", false},
		{enterprise, "origin", "github", "GH_TOKEN", true},
		{"https://github.com.example.org/acme/site", "origin", "", "GH_TOKEN", false},
		{"https://exampleghe.com/acme/site", "origin", "", "GH_TOKEN", false},
	} {
		dir := t.TempDir()
		for _, args := range [][]string{{"init", "-q", dir}, {"-C", dir, "remote", "add", "origin", test.origin}} {
			if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		env := map[string]string{test.env: "t", "GIT_CONFIG_NOSYSTEM": "1", "HOME": dir}
		a := console.New(console.Process{Getenv: func(name string) string { return env[name] }})
		a.Flags.Dir, a.Flags.Remote, a.Flags.Forge = dir, test.remote, test.forge
		s, err := session.OpenRepo(a)
		check(t, err)
		client, err := session.Forge(a, s.Repo.Config)
		if err != nil || (client != nil) != test.want {
			t.Errorf("%+v: a client %v, %v", test, client != nil, err)
		}
		check(t, s.Close())
	}
}

// A server that does not say what it is is taken for GitHub's; where that does not work, the error says how to say otherwise.
func TestGuessedServer(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q", dir}, {"-C", dir, "remote", "add", "origin", "https://127.0.0.1:1/acme/site"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for forge, says := range map[string]string{"": "if it is another: --forge gitea, forgejo or github", "github": "run it again", "gitea": "run it again"} {
		env := map[string]string{"COUNTERSIGN_TOKEN": "t", "GIT_CONFIG_NOSYSTEM": "1", "HOME": dir}
		var stderr strings.Builder
		app := console.Process{
			Args: []string{"-C", dir, "doctor"}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr,
			Getenv: func(name string) string { return env[name] }, Now: time.Now, Entropy: rand.Reader,
			Wait: func(context.Context, time.Duration) error { return nil },
		}
		if forge != "" {
			app.Args = append(app.Args, "--forge", forge)
		}
		if code := Main(app); code != console.ExitIO || !strings.Contains(stderr.String(), says) {
			t.Errorf("%q: %d %s", forge, code, stderr.String())
		}
	}
}
