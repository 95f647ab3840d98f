package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/countersign-dev/countersign/gitstore/attributes"
	"github.com/countersign-dev/countersign/gitstore/git"
)

// Settings are the few values of Git's configuration that matter here.
type Settings struct {
	Name, Email string // whose commits would be made here; either may be empty
	IgnoreMode  bool   // core.fileMode is off

	// SSHCommand, SSHVariant, Pager and OwnPager are core.sshCommand, ssh.variant,
	// core.pager and countersign.pager of the system's and the user's files alone: a repository names no program (T84).
	SSHCommand, SSHVariant, Pager, OwnPager string

	Attributes attributes.Config // what is said of files in a working tree

	values map[string]string
}

// Settings reads Git's configuration as git does: the system's file, the
// user's, the repository's, each with what it includes (include.path, and
// includeIf with a gitdir condition). go-git's own reader follows no includes
// and refuses values that it does not know.
func (r *Repo) Settings(getenv func(string) string) (Settings, error) {
	s := settings{values: map[string]string{}, gitDir: r.ownDir, home: getenv("HOME")}
	if real, err := filepath.EvalSymlinks(s.home); err == nil && s.home != "" {
		s.home = real // as gitDir is, which conditions compare it with
	}
	files := []string{"/etc/gitconfig"}
	if getenv("GIT_CONFIG_NOSYSTEM") != "" {
		files = nil
	}
	for _, file := range append(files, userFiles(getenv)...) {
		if err := s.read(file, 0); err != nil {
			return Settings{}, fmt.Errorf("reading the Git configuration: %w", err)
		}
	}
	own := settings{values: maps.Clone(s.values)}
	for _, file := range []string{filepath.Join(r.gitDir, "config"), filepath.Join(r.ownDir, "config.worktree")} {
		if err := s.read(file, 0); err != nil {
			return Settings{}, fmt.Errorf("reading the Git configuration: %w", err)
		}
	}
	if err := s.environment(getenv); err != nil {
		return Settings{}, fmt.Errorf("reading the Git configuration: %w", err)
	}
	var env []string
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL"} {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	said, err := git.Config(context.Background(), cmp.Or(r.worktree, r.gitDir), env...)
	if err != nil {
		return Settings{}, err
	}
	return Settings{
		Name: s.identity(getenv, "name"), Email: s.identity(getenv, "email"),
		IgnoreMode: isFalse(s.values["core.filemode"]),
		SSHCommand: own.values["core.sshcommand"], SSHVariant: own.values["ssh.variant"],
		Pager: own.values["core.pager"], OwnPager: own.values["countersign.pager"],
		Attributes: attributes.New(said, r.ownDir, r.worktree, getenv("PATH"), getenv("GITHUB_ACTIONS") == "true"),
		values:     s.values,
	}, nil
}

// environment takes over what the environment sets (git-config(1), GIT_CONFIG_COUNT).
func (s *settings) environment(getenv func(string) string) error {
	given := getenv("GIT_CONFIG_COUNT")
	count, err := strconv.Atoi(cmp.Or(given, "0"))
	if err != nil || count < 0 || count > 1000 {
		return fmt.Errorf("GIT_CONFIG_COUNT is %+q, and no number up to 1000", given)
	}
	for i := range count {
		key := getenv(fmt.Sprintf("GIT_CONFIG_KEY_%d", i))
		first, last := strings.Index(key, "."), strings.LastIndex(key, ".")
		if first < 1 || last == len(key)-1 {
			return fmt.Errorf("GIT_CONFIG_KEY_%d is %+q, and no name of a setting", i, key)
		}
		s.values[strings.ToLower(key[:first])+key[first:last]+strings.ToLower(key[last:])] = getenv(fmt.Sprintf("GIT_CONFIG_VALUE_%d", i))
	}
	return nil
}

// identity is the committer's name or email as git finds it, else the author's. What git
// makes up of the login and the name of the machine is nobody's.
func (s settings) identity(getenv func(string) string, part string) string {
	of := func(role string) string {
		return cmp.Or(strings.TrimSpace(getenv("GIT_"+strings.ToUpper(role+"_"+part))), strings.TrimSpace(s.values[role+"."+part]))
	}
	return cmp.Or(of("committer"), strings.TrimSpace(s.values["user."+part]), of("author"))
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

// SetHabit puts a value of the section countersign behind what the repository's own
// configuration has: the last one counts. Nothing else in the file changes. The value is of
// plain characters, such as a ref's name.
func (r *Repo) SetHabit(key, value string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing the Git configuration: %w", err)
		}
	}()
	file, err := filepath.EvalSymlinks(filepath.Join(r.gitDir, "config"))
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	// Git's own lock. The file may hold a token: who could not read it still cannot.
	lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	if err == nil {
		_, err = fmt.Fprintf(lock, "%s[countersign]\n\t%s = %s\n", text, key, value)
	}
	if err = errors.Join(err, lock.Close()); err == nil {
		err = os.Rename(file+".lock", file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file+".lock"))
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

// userFiles are the user's own configuration files; without a HOME there are
// none.
func userFiles(getenv func(string) string) []string {
	if file := getenv("GIT_CONFIG_GLOBAL"); file != "" {
		return []string{file}
	}
	if getenv("HOME") == "" {
		return nil
	}
	return []string{filepath.Join(userDir(getenv), "config"), filepath.Join(getenv("HOME"), ".gitconfig")}
}

// userDir is where the user's other files for git are; "" for nowhere.
func userDir(getenv func(string) string) string {
	home, xdg := getenv("HOME"), getenv("XDG_CONFIG_HOME")
	switch {
	case xdg != "":
		return filepath.Join(xdg, "git")
	case home != "":
		return filepath.Join(home, ".config", "git")
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

func isTrue(v string) bool {
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

type settings struct {
	// values has the last value of each "section.key" and
	// "section.Subsection.key"; sections and keys are in lower case.
	values map[string]string
	gitDir string
	home   string
}

// maxIncludes is how deep files may include others, git's own limit.
const maxIncludes = 10

func (s *settings) read(file string, depth int) error {
	if depth > maxIncludes {
		return fmt.Errorf("%s: includes are nested too deeply", file)
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && depth == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var cfg config.Config
	if err := config.NewDecoder(f).Decode(&cfg); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, section := range cfg.Sections {
		if err := s.section(file, section, depth); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) section(file string, section *config.Section, depth int) error {
	name := strings.ToLower(section.Name)
	for _, o := range section.Options {
		key := name + "." + strings.ToLower(o.Key)
		if key == "include.path" {
			if err := s.read(s.path(file, o.Value), depth+1); err != nil {
				return err
			}
			continue
		}
		s.values[key] = o.Value
	}
	for _, sub := range section.Subsections {
		for _, o := range sub.Options {
			s.values[name+"."+sub.Name+"."+strings.ToLower(o.Key)] = o.Value
		}
	}
	if name != "includeif" {
		return nil
	}
	for _, sub := range section.Subsections {
		if !s.holds(file, sub.Name) {
			continue
		}
		for _, path := range sub.OptionAll("path") {
			if err := s.read(s.path(file, path), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// path resolves an included file: "~/" is the home directory, anything
// relative is beside the file that includes it.
func (s *settings) path(file, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(s.home, rest)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// holds reports whether an includeIf condition is true. Conditions other than
// gitdir are not known here and do not hold.
func (s *settings) holds(file, condition string) bool {
	pattern, plain := strings.CutPrefix(condition, "gitdir:")
	gitDir := filepath.ToSlash(s.gitDir)
	if !plain {
		var ok bool
		if pattern, ok = strings.CutPrefix(condition, "gitdir/i:"); !ok {
			return false
		}
		pattern, gitDir = strings.ToLower(pattern), strings.ToLower(gitDir)
	}
	dir := strings.HasSuffix(pattern, "/")
	if strings.HasPrefix(pattern, "~/") || strings.HasPrefix(pattern, "./") || filepath.IsAbs(pattern) {
		pattern = filepath.ToSlash(s.path(file, pattern))
	} else {
		pattern = "**/" + strings.TrimSuffix(pattern, "/")
	}
	if dir {
		pattern = strings.TrimSuffix(pattern, "/") + "/**"
	}
	return globMatch(strings.Split(pattern, "/"), strings.Split(gitDir, "/"))
}

// globMatch matches path components; "**" stands for any number of them.
func globMatch(pattern, path []string) bool {
	if len(pattern) == 0 {
		return len(path) == 0
	}
	if pattern[0] == "**" {
		for i := range len(path) + 1 {
			if globMatch(pattern[1:], path[i:]) {
				return true
			}
		}
		return false
	}
	if len(path) == 0 {
		return false
	}
	ok, err := filepath.Match(pattern[0], path[0])
	return ok && err == nil && globMatch(pattern[1:], path[1:])
}
