package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/format"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
)

// The bounds of what a file may ask for. A Policy that nobody can meet, or that
// sets no bound, is a slip.
const (
	mostApprovals = 100
	mostFiles     = 100_000
	mostSize      = 1 << 30 // bytes
	mostAge       = 10 * 365 * 24 * time.Hour
	mostTimeout   = 24 * time.Hour
	mostGlobs     = 1000
)

// Parse reads a Policy file; file is the name that errors tell. What the file
// leaves out is as in Default. The error is of type Problems, or of a file of a later
// version a *format.NewerError, whatever else is in it.
func Parse(file string, raw []byte) (Policy, error) {
	r := &reader{file: file}
	p := Default()
	if root, ok := r.document(raw); ok {
		if err := newer(root); err != nil {
			return Policy{}, err
		}
		r.policy(root, &p)
	}
	if err := r.problems.err(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// newer is about the version that a file says: a whole number, or MAJOR.MINOR.
func newer(root node) error {
	for i, key := range root.keys {
		version := root.values[i].text
		if !strings.Contains(version, ".") {
			version += ".0"
		}
		if order, ok := format.Compare(version, format.Version()); key.text == "version" && ok && order > 0 {
			return &format.NewerError{What: "the Policy", Needs: version}
		}
	}
	return nil
}

// policy reads the whole file: every key that there is stands here.
func (r *reader) policy(n node, p *Policy) {
	section := func(fields ...field) read {
		return func(r *reader, n node, key string) { r.mapping(n, key, fields...) }
	}
	a := &p.Approvals
	section(
		field{"version", number(&p.Version, 1, 1)},
		field{"approvals", section(
			field{"required", number(&a.Required, 1, mostApprovals)},
			field{"permission", word(&a.Permission, permissions)},
			field{"allow_author", boolean(&a.AllowAuthor)},
			field{"independent", independent(&a.Independent)},
			field{"same_head", boolean(&a.SameHead)},
			field{"max_age", duration(&a.MaxAge, mostAge)},
			field{"drift", drift(&a.Drift)},
			field{"local", local(&a.Local)},
			field{"break_glass", accounts(&a.BreakGlass)},
			field{"keys", text(&a.Keys, pathForm)},
			field{"signed", word(&a.Signed, signings)},
			field{"forge_keys", boolean(&a.ForgeKeys)},
			field{"hardware", boolean(&a.Hardware)},
			field{"pin", boolean(&a.PIN)},
		)},
		field{"bots", accounts(&p.Bots)},
		field{"protected", protected(&p.Protected)},
		field{"sandbox", word(&p.Sandbox, sandboxes)},
		field{"secrets", secrets(&p.Secrets)},
		field{"limits", section(
			field{"files", number(&p.Limits.Files, 1, mostFiles)},
			field{"bytes", size(&p.Limits.Bytes)},
		)},
		field{"commands", section(
			field{"run", list(func(r *reader, n node, key string) {
				check := Check{Required: true}
				r.command(n, key, &check.Command, field{"required", boolean(&check.Required)})
				once(r, n.mark, key, &p.Commands.Run, check, func(c Check) []string { return c.Argv })
			})},
			field{"allow", list(func(r *reader, n node, key string) {
				var allowed Command
				r.command(n, key, &allowed)
				once(r, n.mark, key, &p.Commands.Allow, allowed, func(c Command) []string { return c.Argv })
			})},
		)},
		field{"apply", section(
			field{"to", word(&p.Apply.To, targets)},
			field{"merge", word(&p.Apply.Merge, merges)},
			field{"sign", text(&p.Apply.Sign, variableForm)},
		)},
		field{"gate", section(field{"bases", texts(&p.Gate.Bases, branchForm)})},
		field{"explained", section(
			field{"decisions", decisions(&p.Explained.Decisions)},
			field{"merges", word(&p.Explained.Merges, []Merges{MergesCovered})},
			field{"empty", negated(&p.Explained.RefuseEmpty)},
			field{"bots", versionBots(&p.Explained.Bots)},
		)},
		field{"ledger", section(
			field{"repository", repository(&p.Ledger.Repository)},
			field{"tip", text(&p.Ledger.Tip, commitForm)},
			field{"since", text(&p.Ledger.Since, timeForm)},
		)},
		field{"witnesses", func(r *reader, n node, key string) {
			ok := r.mapping(n, key,
				field{"file", text(&p.Witnesses.File, pathForm)},
				field{"required", number(&p.Witnesses.Required, 0, mostApprovals)},
			)
			if ok && !n.has("file") { // who would be asked?
				r.problem(n.mark, key, "has no file")
			}
		}},
	)(r, n, "")
}

func local(dst *Local) read {
	return func(r *reader, n node, key string) {
		var always bool
		before := len(r.problems)
		boolean(&always)(r, n, key)
		switch {
		case len(r.problems) > before:
		case always:
			*dst = LocalAlways
		default:
			*dst = LocalNever
		}
	}
}

var (
	accountForm   = form{lazyregexp.New(`^[^@\s][^\s]*$`), 100, "a login (without @) or a numeric id"}
	teamForm      = form{lazyregexp.New(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$`), 100, "a team such as acme/security"}
	recipientForm = form{lazyregexp.New(`^age1[0-9a-z]{58,}$`), 4000, "an age recipient (age1…)"}
	variableForm  = form{lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`), 100, "the name of an environment variable"}
	branchForm    = form{lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./+@#=-]*$`), 200, "the name of a branch"}
	pathForm      = form{lazyregexp.New(`^([A-Za-z0-9_-][A-Za-z0-9._-]*|\.[A-Za-z0-9_-][A-Za-z0-9._-]*)(/([A-Za-z0-9_-][A-Za-z0-9._-]*|\.[A-Za-z0-9_-][A-Za-z0-9._-]*))*$`), 200, "the path of a file, such as .github/allowed_signers"}
	commitForm    = form{lazyregexp.New(`^[0-9a-f]{40}$`), 40, "a commit id of 40 digits"}
	timeForm      = form{lazyregexp.New(`^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z$`), 20, "a time such as 2026-01-05T12:00:00Z"}
	sizeForm      = form{lazyregexp.New(`^[1-9][0-9]{0,9} ?(B|KiB|MiB|GiB)$`), 20, "a size such as 5 MiB"}
)

// repositoryForm: neither half can be an option, a way up or hidden.
var repositoryForm = form{lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*/[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`), 200, "a repository on the same server, such as acme/ledgers"}

// IsRepository reports whether a text can be the OWNER/NAME of ledger.repository.
func IsRepository(name string) bool {
	return repositoryForm.pattern().MatchString(name) && len(name) <= repositoryForm.most && !endsInGit(name)
}

// endsInGit: a name that does is none on any forge, as the address of a clone may end so.
func endsInGit(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".git") }

// repository reads OWNER/NAME.
func repository(dst *string) read {
	return func(r *reader, n node, key string) {
		before := len(r.problems)
		text(dst, repositoryForm)(r, n, key)
		if len(r.problems) == before && endsInGit(*dst) {
			r.problem(n.mark, key, "ends in .git: leave that out")
		}
	}
}

// accounts reads logins and numeric ids. A number stands for the id.
func accounts(dst *[]string) read {
	return list(func(r *reader, n node, key string) {
		if n.kind == isInteger && decimal().MatchString(n.text) && n.text > "0" {
			n.kind = isText
		}
		var s string
		before := len(r.problems)
		text(&s, accountForm)(r, n, key)
		appendOnce(r, dst, s, n.mark, key, before)
	})
}

// secrets is a word, or a mapping with the word as mode.
func secrets(s *Secrets) read {
	return func(r *reader, n node, key string) {
		if n.kind == isText {
			word(&s.Mode, secretsModes)(r, n, key)
			return
		}
		if !r.is(n, key, isMapping, isText) {
			return
		}
		r.mapping(n, key,
			field{"mode", word(&s.Mode, secretsModes)},
			field{"seal_to", texts(&s.SealTo, recipientForm)},
			field{"signed", word(&s.Signed, signedOnly)},
		)
	}
}

// size reads bytes: a number, or one with a unit.
func size(dst *int64) read {
	units := map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
	return func(r *reader, n node, key string) {
		if n.kind == isInteger {
			number(dst, 1, mostSize)(r, n, key)
			return
		}
		if !r.is(n, key, isInteger, isText) {
			return
		}
		var s string
		if text(&s, sizeForm)(r, n, key); s == "" {
			return
		}
		digits := strings.TrimRight(s, " BKMGi")
		count, _ := strconv.ParseInt(digits, 10, 64)
		if unit := units[strings.TrimSpace(s[len(digits):])]; count <= mostSize/unit {
			*dst = count * unit
			return
		}
		r.problem(n.mark, key, fmt.Sprintf("is %s, more than 1 GiB", s))
	}
}

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

// Text is the command as a Proposal would write it.
func (c Command) Text() string { return strings.Join(c.Argv, " ") }

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

// once adds an entry, unless one with the same argv is there: which of the two
// holds would be a guess.
func once[T any](r *reader, m mark, key string, dst *[]T, entry T, argv func(T) []string) {
	same := func(other T) bool { return slices.Equal(argv(other), argv(entry)) }
	if len(argv(entry)) > 0 && slices.ContainsFunc(*dst, same) {
		r.problem(m, key, "an earlier entry has the same argv")
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
		r.problem(n.mark, key, fmt.Sprintf("argv has %d strings; with shell: true it must be one, the shell's command line", len(c.Argv)))
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

// IsAccount reports whether an entry of the file names an account. Digits are a
// numeric id and never a login, so that nobody registers a login which is
// another's id; what has a colon, as local:ada@example.org, is an id too.
// Anything else is a login, in which case does not count. A login can be given
// up and taken by somebody else (T11): where that matters the file has the id.
func IsAccount(entry, id, login string) bool {
	if entry == "" {
		return false
	}
	if strings.Trim(entry, "0123456789") == "" || strings.Contains(entry, ":") {
		return entry == id
	}
	return strings.EqualFold(entry, login)
}

// IsBot reports whether the file lists an account under bots.
func (p Policy) IsBot(id, login string) bool { return listed(p.Bots, id, login) }

// Lists reports whether a need's Users have an account.
func (n Need) Lists(id, login string) bool { return listed(n.Users, id, login) }

func listed(entries []string, id, login string) bool {
	return slices.ContainsFunc(entries, func(e string) bool { return IsAccount(e, id, login) })
}
