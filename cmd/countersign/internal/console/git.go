package console

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// errNoPassword says that no helper has a password, and that nobody typed one.
var errNoPassword = errors.New("git's credential helpers have no password for it")

// A Credential is what a helper said, as git hands it on.
type Credential struct {
	User, Password string
	description    string
}

// FillCredential asks Git's credential helpers (gitcredentials(7)) for what there is of an address with https. Git is run
// outside of the repository, so that only the user's and the system's files name a helper, which is a program. Person says that somebody is at
// the terminal, whom git may ask.
func FillCredential(ctx context.Context, address *url.URL, person bool) (Credential, error) {
	asked := "protocol=" + address.Scheme + "\nhost=" + address.Host + "\npath=" + strings.TrimPrefix(address.Path, "/") + "\n"
	if strings.Count(asked, "\n") != 3 || strings.ContainsAny(asked, "\r\x00") { // else an address could say what is asked for
		return Credential{}, errNoPassword
	}
	said, err := runGit(ctx, "fill", asked+"\n", person)
	if err != nil {
		return Credential{}, errors.Join(errNoPassword, err)
	}
	c := Credential{description: said + "\n"}
	for line := range strings.Lines(said) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch key {
		case "username":
			c.User = value
		case "password":
			c.Password = value
		}
	}
	if c.Password == "" {
		return Credential{}, errNoPassword
	}
	return c, nil
}

// Settle tells the helpers whether the server took a credential: they keep it, or forget
// it.
func (c Credential) Settle(ctx context.Context, took bool) {
	word := "reject"
	if took {
		word = "approve"
	}
	_, _ = runGit(ctx, word, c.description, false) // what they keep is theirs
}

// runGit runs git where it finds no repository.
func runGit(ctx context.Context, word, input string, person bool) (string, error) {
	cmd := exec.CommandContext(ctx, "git", "credential", word)
	cmd.Dir = os.TempDir()
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GIT_DIR=") || strings.HasPrefix(v, "GIT_COMMON_DIR=") || strings.HasPrefix(v, "GIT_CONFIG_PARAMETERS=")
	})
	cmd.Env = append(cmd.Env, "GIT_DIR="+os.DevNull)
	if !person {
		cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0")
	}
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout = strings.NewReader(input), &out
	err := cmd.Run() // what helpers say on stderr is not for a log
	return out.String(), err
}
