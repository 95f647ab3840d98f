package git

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Setting is one value of git's configuration.
type Setting struct {
	// Scope is "system", "global" (the user's), "local", "worktree" or "command" (the environment's,
	// and what this package gives); a file that another one includes has the scope of that one.
	Scope string
	// Origin is where it stands, such as "file:.git/config".
	Origin string
	// Key has section and name in lower case, and between them the subsection as it is written.
	Key string
	// Value is "true" where a key stands without one.
	Value string
}

// IsUsers reports whether the user's or the system's files say it, which alone may name a program (T84).
func (s Setting) IsUsers() bool { return s.Scope == "system" || s.Scope == "global" }

// IsTrue reads a value as git-config(1) reads a boolean; what is none is false.
func IsTrue(value string) bool {
	n, err := strconv.Atoi(value)
	return err == nil && n != 0 || slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(value))
}

// Set returns the command with a setting that goes before all others.
func (c Command) Set(key, value string) Command {
	name := fmt.Sprintf("COUNTERSIGN_SETTING_%d", len(c.Env))
	c.Args = append([]string{"--config-env=" + key + "=" + name}, c.Args...) // a key may have an equals sign, which -c takes for its end
	c.Env = append(slices.Clone(c.Env), name+"="+value)
	return c
}

// WithoutPrograms returns the command with every filter turned off that the configuration of its
// directory has a word on, whoever says it, as git would run its program in the working tree; and
// every hook (git 2.54 has some that core.hooksPath does not turn off).
func (c Command) WithoutPrograms(ctx context.Context) (Command, error) {
	said, err := c.Config(ctx)
	return c.Without(said), err
}

// Without is WithoutPrograms where it is known what the configuration says.
func (c Command) Without(said []Setting) Command {
	done := map[string]bool{}
	for _, s := range said {
		name := s.Key[:max(0, strings.LastIndexByte(s.Key, '.'))] // a key may stand before any section
		switch known := done[name]; {
		case known:
		case strings.HasPrefix(name, "filter."):
			c = c.Set(name+".clean", "").Set(name+".smudge", "").Set(name+".process", "").Set(name+".required", "false")
		case strings.HasPrefix(name, "hook."):
			c = c.Set(name+".enabled", "false")
		}
		done[name] = true
	}
	return c
}

// Config is what git's configuration says where the command runs, with what files include, in
// the order in which git reads it: the last value of a key counts.
func (c Command) Config(ctx context.Context) ([]Setting, error) {
	c.Args, c.Stdin = []string{"config", "--list", "-z", "--show-scope", "--show-origin", "--includes"}, nil
	said, _, err := c.Soon(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading Git's configuration: %w", err)
	}
	fields := strings.Split(said, "\x00") // and one that is empty
	var out []Setting
	for ; len(fields) > 3; fields = fields[3:] {
		key, value, valued := strings.Cut(fields[2], "\n")
		if !valued {
			value = "true"
		}
		out = append(out, Setting{fields[0], fields[1], key, value})
	}
	if len(fields) != 1 || fields[0] != "" {
		return nil, fmt.Errorf("reading Git's configuration: git ended with %q", fields)
	}
	return out, nil
}
