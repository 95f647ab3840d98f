package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
)

// A Command is one that may be run: exactly this Argv. With Shell it is one
// string, which a shell reads. Env names the variables that it sees beside the
// sandbox's own.
type Command struct {
	Argv    []string `json:"argv"`
	Shell   bool     `json:"shell,omitempty"`
	Timeout Duration `json:"timeout"`
	Network bool     `json:"network"`
	Env     []string `json:"env,omitempty"`
}

// A Check is a Command that always runs before a branch moves. Where it is
// Required, its failure stops the change.
type Check struct {
	Command
	Required bool `json:"required"`
}

// Same reports whether argv is this command: every argument, byte for byte.
func (c Command) Same(argv []string) bool { return slices.Equal(c.Argv, argv) }

// Allowed returns the entry of Allow that argv is, and whether there is one.
func (c Commands) Allowed(argv []string) (Command, bool) {
	i := slices.IndexFunc(c.Allow, func(c Command) bool { return c.Same(argv) })
	if i < 0 {
		return Command{}, false
	}
	return c.Allow[i], true
}

// DefaultTimeout is how long a command may run where its entry does not say.
const DefaultTimeout = Duration(10 * time.Minute)

// plainForm is a command without anything that a shell would read: what its
// words are is then beyond doubt.
var plainForm = form{
	lazyregexp.New(`^[A-Za-z0-9_@%+:,./-]+( +[A-Za-z0-9_@%+=:,./-]+)*$`), 1000,
	"a command of plain words; write {argv: […]}, with shell: true if it needs a shell",
}

func commands(c *Commands) read {
	return func(r *reader, n node, key string) {
		r.mapping(n, key,
			field{"run", list(func(r *reader, n node, key string) {
				check := Check{Required: true}
				r.command(n, key, &check.Command, field{"required", boolean(&check.Required)})
				once(r, n.mark, key, &c.Run, check, func(c Check) []string { return c.Argv })
			})},
			field{"allow", list(func(r *reader, n node, key string) {
				var allowed Command
				r.command(n, key, &allowed)
				once(r, n.mark, key, &c.Allow, allowed, func(c Command) []string { return c.Argv })
			})},
		)
	}
}

// once adds an entry, unless one with the same argv is there: which of the two
// holds would be a guess.
func once[T any](r *reader, m mark, key string, dst *[]T, entry T, argv func(T) []string) {
	same := func(other T) bool { return slices.Equal(argv(other), argv(entry)) }
	if len(argv(entry)) > 0 && slices.ContainsFunc(*dst, same) {
		r.problem(m, key, "the same argv stands in an earlier entry")
		return
	}
	*dst = append(*dst, entry)
}

// command reads an entry: a plain string, or a mapping.
func (r *reader) command(n node, key string, c *Command, more ...field) {
	c.Timeout = DefaultTimeout
	if n.kind == isText {
		var s string
		text(&s, plainForm)(r, n, key)
		c.Argv = strings.Fields(s)
		return
	}
	if !r.is(n, key, isMapping, isText) {
		return
	}
	fields := []field{
		{"argv", argv(&c.Argv)},
		{"timeout", duration(&c.Timeout, mostTimeout)},
		{"network", boolean(&c.Network)},
		{"shell", boolean(&c.Shell)},
		{"env", texts(&c.Env, variableForm)},
	}
	r.mapping(n, key, append(fields, more...)...)
	switch {
	case !n.has("argv"):
		r.problem(n.mark, key, "has no argv")
	case c.Shell && len(c.Argv) > 1:
		r.problem(n.mark, key, fmt.Sprintf("argv has %d strings; with shell it is one, which the shell reads", len(c.Argv)))
	}
}

// anyText is text of up to most characters.
func anyText(most int) form { return form{nil, most, "text"} }

// argv reads a list of strings, the first of which names a program.
func argv(dst *[]string) read {
	return func(r *reader, n node, key string) {
		if !r.is(n, key, isSequence) {
			return
		}
		*dst = nil
		for i, v := range n.values {
			s := ""
			text(&s, anyText(4000))(r, v, fmt.Sprintf("%s[%d]", key, i))
			*dst = append(*dst, s)
		}
		if len(n.values) == 0 || n.values[0].text == "" {
			r.problem(n.mark, key, "names no program")
		}
	}
}
