package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
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
	mostTickets   = 20
)

// file reads the whole file: every key that there is stands here, and what it takes.
var file = section(
	field{name: "version", read: number(1, 1)},
	field{name: "approvals", read: section(
		field{name: "required", read: number(1, mostApprovals)},
		field{name: "permission", read: word(permissions...)},
		field{name: "allow_author", read: boolean},
		field{name: "independent", read: choice(parts, "which asks for nobody")},
		field{name: "same_head", read: boolean},
		field{name: "max_age", read: duration(mostAge)},
		field{name: "due", read: duration(mostAge)},
		field{name: "drift", read: drift},
		field{name: "local", read: boolean},
		field{name: "break_glass", read: accounts("")},
		field{name: "keys", read: text(pathForm)},
		field{name: "signed", read: word(signings...)},
		field{name: "forge_keys", read: boolean},
		field{name: "hardware", read: boolean},
		field{name: "pin", read: boolean},
		field{name: "passkeys", read: text(originForm)},
	)},
	field{name: "bots", read: accounts("")},
	field{name: "protected", read: protected},
	field{name: "sandbox", read: word(sandboxes...)},
	field{name: "secrets", read: secrets},
	field{name: "limits", read: section(
		field{name: "files", read: number(1, mostFiles)},
		field{name: "bytes", read: size},
		field{name: "open", read: number(1, mostFiles)},
	)},
	field{name: "commands", read: section(
		field{name: "run", read: commands(field{name: "required", read: boolean, otherwise: true})},
		field{name: "allow", read: commands()},
	)},
	field{name: "apply", read: section(
		field{name: "to", read: word(targets...)},
		field{name: "merge", read: word(merges...)},
		field{name: "sign", read: text(variableForm)},
	)},
	field{name: "gate", read: section(
		field{name: "bases", read: set(text(branchForm), "")},
		field{name: "allow_force", read: boolean}, field{name: "allow_delete", read: boolean}, field{name: "allow_tags", read: boolean})},
	field{name: "explained", read: section(
		field{name: "decisions", read: choice(decisionKinds, "by which no decision accounts for a commit")},
		field{name: "merges", read: word(MergesCovered)},
		field{name: "empty", read: boolean},
		field{name: "bots", read: list(versionBot, "")},
	)},
	field{name: "exceptions", read: section(field{name: "review", read: duration(mostAge)})},
	field{name: "tickets", read: tickets},
	field{name: "ledger", read: section(
		field{name: "repository", read: repository},
		field{name: "tip", read: text(commitForm)},
		field{name: "since", read: text(timeForm)},
	)},
	field{name: "witnesses", read: section(
		field{name: "file", read: text(pathForm), required: true}, // who would be asked?
		field{name: "required", read: number(0, mostApprovals)},
	)},
)

// rule reads one of protected.
var rule = section(
	field{name: "paths", read: set(glob, "which protects nothing")},
	field{name: "advice", read: section(field{name: "tool", read: text(toolForm), required: true}, field{name: "level", read: word(Levels...), required: true})},
	field{name: "required", read: number(1, mostApprovals), otherwise: 1},
	field{name: "users", read: accounts("which lets anybody approve; leave it out for that")},
	field{name: "teams", read: set(text(teamForm), "which lets anybody approve; leave it out for that")},
	field{name: "owners", read: boolean},
	field{name: "signed", read: word(SignedOnly)}, // it asks for more, never for less
)

// bot reads one of explained.bots.
var bot = section(
	field{name: "keys", read: text(pathForm), required: true},
	field{name: "paths", read: set(glob, "which protects nothing"), required: true},
	field{name: "modes", read: boolean},
)

var command = []field{
	{name: "argv", read: argv, required: true},
	{name: "timeout", read: duration(mostTimeout), otherwise: DefaultTimeout},
	{name: "network", read: boolean},
	{name: "shell", read: boolean},
	{name: "env", read: set(text(variableForm), "")},
}

var (
	accountForm   = form{canon.Regexp(`^[^@\s][^\s]*$`), 100, "a login (without @) or a numeric id"}
	toolForm      = form{canon.Regexp(`^[A-Za-z0-9][A-Za-z0-9._+/@()-]*( [A-Za-z0-9._+/@()-]+)*$`), 100, "the name of a tool, in letters, digits and . _ + / @ ( ) - with single spaces"}
	teamForm      = form{canon.Regexp(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$`), 100, "a team such as acme/security"}
	recipientForm = form{canon.Regexp(`^age1[0-9a-z]{58,}$`), 4000, "an age recipient (age1…)"}
	variableForm  = form{canon.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`), 100, "the name of an environment variable"}
	branchForm    = form{canon.Regexp(`^[A-Za-z0-9_][A-Za-z0-9_./+@#=-]*$`), 200, "the name of a branch"}
	originForm    = form{canon.Regexp(`^(https://([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]|http://localhost)(:[1-9][0-9]{0,4})?$`), 200, "the origin of a site, such as https://acme.github.io"}
	pathForm      = form{canon.Regexp(`^([A-Za-z0-9_-][A-Za-z0-9._-]*|\.[A-Za-z0-9_-][A-Za-z0-9._-]*)(/([A-Za-z0-9_-][A-Za-z0-9._-]*|\.[A-Za-z0-9_-][A-Za-z0-9._-]*))*$`), 200, "the path of a file, such as .github/allowed_signers"}
	ticketForm    = form{canon.Regexp(`^(([A-Za-z0-9_#/:@ -]|\\[d.]|\[(a-z|A-Z|0-9|[A-Za-z0-9_])+\])([+*?]|\{[1-9][0-9]?,?\})?)+$`), 100, "a plain pattern of tickets, such as [A-Z]+-[0-9]+"}
	commitForm    = form{canon.Regexp(`^([0-9a-f]{40}|[0-9a-f]{64})$`), 64, "a commit id of 40 or 64 digits"}
	timeForm      = form{canon.Regexp(`^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z$`), 20, "a time such as 2026-01-05T12:00:00Z"}
)

// repositoryForm: neither half can be an option, a way up or hidden.
var repositoryForm = form{canon.Regexp(`^[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*/[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`), 200, "a repository on the same server, such as acme/ledgers"}

// IsRepository reports whether a text can be the OWNER/NAME of ledger.repository.
func IsRepository(name string) bool {
	return repositoryForm.pattern().MatchString(name) && len(name) <= repositoryForm.most && !endsInGit(name)
}

// endsInGit: a name that does is none on any forge, as the address of a clone may end so.
func endsInGit(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".git") }

// IsTool reports whether a text can be the name of a tool.
func IsTool(name string) bool {
	return len(name) <= toolForm.most && toolForm.pattern().MatchString(name)
}

// Parse reads a Policy file; name is what errors call it. What the file
// leaves out is as in Default. The error is of type Problems, or of a file of a later
// version a *canon.NewerError, whatever else is in it.
func Parse(name string, raw []byte) (Policy, error) {
	r := &reader{file: name}
	root, ok := r.document(raw)
	if !ok {
		return Policy{}, r.problems.err()
	}
	return r.policy(root)
}

// policy is the Policy that a file says, a *canon.NewerError of one of a later version.
func (r *reader) policy(root node) (Policy, error) {
	if err := newer(root); err != nil {
		return Policy{}, err
	}
	said := file(r, root, "")
	if err := r.problems.err(); err != nil {
		return Policy{}, err
	}
	p := Default()
	raw, err := json.Marshal(said)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		panic("policy: a value that is no problem cannot be taken: " + err.Error())
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
		if order, ok := canon.CompareVersions(version, canon.Version()); key.text == "version" && ok && order > 0 {
			return &canon.NewerError{What: "the Policy", Needs: version}
		}
	}
	return nil
}

func repository(r *reader, n node, key string) any {
	v := text(repositoryForm)(r, n, key)
	if name, ok := v.(string); ok && endsInGit(name) {
		r.problem(n.mark, key, "ends in .git: leave that out")
	}
	return v
}

// accounts reads logins and numeric ids. A number stands for the id.
func accounts(why string) read {
	return set(func(r *reader, n node, key string) any {
		if n.kind == isInteger && decimal().MatchString(n.text) && n.text > "0" {
			n.kind = isText
		}
		return text(accountForm)(r, n, key)
	}, why)
}

func glob(r *reader, n node, key string) any {
	v := text(anyText(mostGlob))(r, n, key)
	if _, err := ParseGlob(n.text); err != nil && n.kind == isText {
		r.problem(n.mark, key, err.Error())
	}
	return v
}

// protected reads the rules; globs are counted over all of them, as each is
// asked about each path.
func protected(r *reader, n node, key string) any {
	globs := 0
	return list(func(r *reader, n node, key string) any {
		v, _ := rule(r, n, key).(map[string]any)
		if globs += countOf(v["paths"]); globs > mostGlobs && !r.joined {
			r.problem(n.mark, key, fmt.Sprintf("more than %d globs", mostGlobs))
		}
		is := [2]bool{} // whether it has each of the two, of which it has one
		for _, k := range n.keys {
			is = [2]bool{is[0] || k.text == "paths", is[1] || k.text == "advice"}
		}
		if n.kind == isMapping && is[0] == is[1] {
			r.problem(n.mark, key, map[bool]string{true: "has paths and advice: make two rules of it", false: "has no paths"}[is[0]])
		}
		return v
	}, "")(r, n, key)
}

func versionBot(r *reader, n node, key string) any {
	v, _ := bot(r, n, key).(map[string]any)
	if countOf(v["paths"]) > mostGlobs {
		r.problem(n.mark, key, fmt.Sprintf("more than %d globs", mostGlobs))
	}
	return v
}

// tickets reads patterns, which are asked about every text of a change.
func tickets(r *reader, n node, key string) any {
	if len(n.values) > mostTickets {
		r.problem(n.mark, key, fmt.Sprintf("more than %d patterns", mostTickets))
	}
	return set(text(ticketForm), "")(r, n, key)
}

func countOf(list any) int {
	values, _ := list.([]any)
	return len(values)
}

// secrets is a word, or a mapping with the word as mode.
func secrets(r *reader, n node, key string) any {
	mode := word(secretsModes...)
	if n.kind == isText {
		return map[string]any{"mode": mode(r, n, key)}
	}
	if !r.is(n, key, isMapping, isText) {
		return nil
	}
	return section(
		field{name: "mode", read: mode},
		field{name: "seal_to", read: set(text(recipientForm), "")},
		field{name: "signed", read: word(SignedOnly)},
	)(r, n, key)
}

func drift(r *reader, n node, key string) any {
	v := section(
		field{name: "commits", read: number(0, mostDrift)},
		field{name: "same_directory", read: word(Ask)},
	)(r, n, key)
	if v != nil && len(n.keys) == 0 {
		r.problem(n.mark, key, "bounds nothing", "commits", "same_directory")
	}
	return v
}

// plainForm is a command without anything that a shell would read: what its
// words are is then beyond doubt.
var plainForm = form{
	canon.Regexp(`^[A-Za-z0-9_@%+:,./-]+( +[A-Za-z0-9_@%+=:,./-]+)*$`), 1000,
	"a command of plain words; write {argv: […]}, with shell: true if it needs a shell",
}

// commands reads a list of them, each a mapping, or as plain text its argv. None may have the
// argv of another: which of the two holds would be a guess.
func commands(more ...field) read {
	entry := section(slices.Concat(command, more)...)
	return func(r *reader, n node, key string) any {
		var known [][]string
		return list(func(r *reader, n node, key string) any {
			if n.kind == isText {
				s, ok := text(plainForm)(r, n, key).(string)
				if !ok {
					return nil
				}
				words := node{kind: isSequence, mark: n.mark}
				for w := range strings.FieldsSeq(s) {
					words.values = append(words.values, node{kind: isText, text: w, mark: n.mark})
				}
				n = node{kind: isMapping, mark: n.mark, keys: []node{{kind: isText, text: "argv", mark: n.mark}}, values: []node{words}}
			}
			if !r.is(n, key, isMapping, isText) {
				return nil
			}
			v, _ := entry(r, n, key).(map[string]any)
			args, _ := v["argv"].([]string)
			switch {
			case v["shell"] == true && len(args) > 1:
				r.problem(n.mark, key, fmt.Sprintf("argv has %d strings; with shell: true it must be one, the shell's command line", len(args)))
			case len(args) > 0 && slices.ContainsFunc(known, func(other []string) bool { return slices.Equal(other, args) }):
				r.problem(n.mark, key, "an earlier entry has the same argv")
			}
			known = append(known, args)
			return v
		}, "")(r, n, key)
	}
}

// argv reads a list of strings, the first of which names a program.
func argv(r *reader, n node, key string) any {
	if !r.is(n, key, isSequence) {
		return nil
	}
	var out []string
	for i, v := range n.values {
		s, _ := text(anyText(4000))(r, v, fmt.Sprintf("%s[%d]", key, i)).(string)
		out = append(out, s)
	}
	if len(n.values) == 0 || n.values[0].text == "" {
		r.problem(n.mark, key, "names no program")
	}
	return out
}
