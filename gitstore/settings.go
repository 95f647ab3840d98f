package gitstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/git"
)

// Settings are the few values of Git's configuration that matter here.
type Settings struct {
	Name, Email string // whose commits would be made here; either may be empty
	IgnoreMode  bool   // core.fileMode is off

	// SSHCommand, SSHVariant, Pager and OwnPager are core.sshCommand, ssh.variant,
	// core.pager and countersign.pager of the system's and the user's files alone: a repository names no program (T84).
	SSHCommand, SSHVariant, Pager, OwnPager string

	HooksPath string // core.hooksPath of a file, "" where the repository has hooks of its own

	Attributes git.Attributes // what is said of files in a working tree

	values map[string]string
}

// Settings is what git's configuration says here, in the environment that getenv tells.
func (r *Repo) Settings(getenv func(string) string) (Settings, error) {
	said, err := git.Command{Dir: cmp.Or(r.worktree, r.ownDir), Getenv: getenv}.Config(context.Background())
	if err != nil {
		return Settings{}, err
	}
	r.mu.Lock()
	r.said = said
	r.mu.Unlock()
	values, own := map[string]string{}, map[string]string{}
	hooks := ""
	for _, one := range said {
		values[one.Key] = one.Value
		if one.Key == "core.hookspath" && one.Scope != "command" {
			hooks = one.Value
		}
		if one.IsUsers() {
			own[one.Key] = one.Value
		}
	}
	return Settings{
		Name: identityOf(values, getenv, "name"), Email: identityOf(values, getenv, "email"),
		IgnoreMode: isFalse(values["core.filemode"]),
		SSHCommand: own["core.sshcommand"], SSHVariant: own["ssh.variant"],
		Pager: own["core.pager"], OwnPager: own["countersign.pager"], HooksPath: hooks,
		Attributes: git.NewAttributes(said, r.ownDir, r.worktree, getenv("PATH"), getenv("GITHUB_ACTIONS") == "true"),
		values:     values,
	}, nil
}

// identityOf is the committer's name or email as git finds it, else the author's. What git
// makes up of the login and the name of the machine is nobody's.
func identityOf(values map[string]string, getenv func(string) string, part string) string {
	of := func(role string) string {
		return cmp.Or(strings.TrimSpace(getenv("GIT_"+strings.ToUpper(role+"_"+part))), strings.TrimSpace(values[role+"."+part]))
	}
	return cmp.Or(of("committer"), strings.TrimSpace(values["user."+part]), of("author"))
}

// RemoteURL returns where a remote is: remote.<name>.url, with the longest
// url.<base>.insteadOf put in its place. A name that is no remote's and looks
// like an address is one; "" means that there is none.
func (s Settings) RemoteURL(name string) string {
	url := s.values["remote."+name+".url"]
	if url == "" && strings.ContainsAny(name, ":/\\") {
		url = name
	}
	longest, base := "", ""
	for key, prefix := range s.values {
		b, ok := strings.CutPrefix(key, "url.")
		b, ok2 := strings.CutSuffix(b, ".insteadof")
		if ok && ok2 && strings.HasPrefix(url, prefix) && len(prefix) > len(longest) {
			longest, base = prefix, b
		}
	}
	return base + url[len(longest):]
}

// RepositoryNumber is the number that a forge has for a remote's repository, as
// remote.<name>.repositoryId says; "" if it says nothing. Each remote has its own, as a clone may
// have a fork beside the repository.
func (s Settings) RepositoryNumber(remote string) string {
	return s.values["remote."+remote+".repositoryid"]
}

// Remotes returns the names of the remotes, in order.
func (s Settings) Remotes() (names []string) {
	for key := range s.values {
		name, named := strings.CutPrefix(key, "remote.")
		if name, is := strings.CutSuffix(name, ".url"); named && is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// SyncOr is the command that brings a remote's ledger here or, where there is no such remote, other.
func (s Settings) SyncOr(remote, other string) string {
	if s.RemoteURL(remote) != "" {
		return "countersign sync"
	}
	return other
}

// ExtraHeader returns the header that Git's configuration adds to requests to
// an address (http.<url>.extraHeader), as actions/checkout leaves it; "" means
// none.
func (s Settings) ExtraHeader(url string) string {
	longest, header := "", ""
	for key, value := range s.values {
		base, ok := strings.CutPrefix(key, "http.")
		base, ok2 := strings.CutSuffix(base, ".extraheader")
		under := strings.HasPrefix(url, strings.TrimSuffix(base, "/")+"/")
		if ok && ok2 && under && len(base) > len(longest) {
			longest, header = base, value
		}
	}
	return header
}

// Habit is a value of the section countersign, of the repository too; "" for none.
func (s Settings) Habit(key string) string { return s.values["countersign."+strings.ToLower(key)] }

// SetHabit writes a value of the section countersign to the repository's own configuration.
func (r *Repo) SetHabit(key, value string) error {
	if _, err := r.ask("config", "--local", "--replace-all", "--", "countersign."+key, value); err != nil {
		return fmt.Errorf("writing the Git configuration: %w", err)
	}
	return nil
}

// SigningKey is what signs by SSH: user.signingKey, if gpg.format is ssh; "" for nothing.
func (s Settings) SigningKey() string {
	if s.values["gpg.format"] == "ssh" {
		return s.values["user.signingkey"]
	}
	return ""
}

// isFalse follows git-config(1), "boolean".
func isFalse(v string) bool {
	switch strings.ToLower(v) {
	case "false", "no", "off", "0":
		return true
	}
	return false
}
