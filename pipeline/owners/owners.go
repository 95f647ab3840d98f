// Package owners tells who owns a path by a repository's CODEOWNERS file. It is
// the one place that uses github.com/hmarr/codeowners.
//
// It reads the file as GitHub documents it ("About code owners"): the first of
// .github/CODEOWNERS, CODEOWNERS and docs/CODEOWNERS; the last line that matches
// a path decides, also where it names nobody; paths have one letter case; a #
// begins a comment, on a line of its own or after a space; a line with a !
// pattern, a class in brackets, \# or an owner that is none is skipped.
//
// An owner is a gate here, so what GitHub's text leaves open is owned by nobody
// rather than by whom an earlier line names: a pattern with a # inside, or with
// a bracket behind a backslash.
//
// Whether an account exists, and whether it or a team may write, the file does
// not tell; who asks has to look.
package owners

import (
	"strings"

	"github.com/hmarr/codeowners"
)

// The kinds of owner.
const (
	KindUser  = "user"
	KindTeam  = "team"
	KindEmail = "email"
)

// An Owner is one that a line names. Name is a login, "org/team" or an address.
type Owner struct {
	Kind string
	Name string
}

// Rules are the lines of a CODEOWNERS file. Nil has none.
type Rules struct{ rules []rule }

// A rule is one line as the library reads it. Its pattern is written in other
// letters where the library would not take those that stand there; swap makes
// the same exchange in a path.
type rule struct {
	codeowners.Rule
	swap *strings.Replacer // nil for none
}

func (r rule) matches(path string) (bool, error) {
	if r.swap != nil {
		path = r.swap.Replace(path)
	}
	return r.Match(path)
}

// Owners are those whom the last line that matches a path names, relative to the
// root and with slashes. None means that nobody owns it.
func (r *Rules) Owners(path string) []Owner {
	if r == nil {
		return nil
	}
	for i := len(r.rules) - 1; i >= 0; i-- {
		matches, err := r.rules[i].matches(path)
		if err != nil {
			return nil
		}
		if matches {
			return named(r.rules[i].Owners)
		}
	}
	return nil
}

func named(list []codeowners.Owner) []Owner {
	kinds := map[string]string{
		codeowners.UsernameOwner: KindUser, codeowners.TeamOwner: KindTeam, codeowners.EmailOwner: KindEmail,
	}
	var out []Owner
	for _, o := range list {
		out = append(out, Owner{kinds[o.Type], o.Value})
	}
	return out
}

// Owns tells whether an account owns a path, itself or in a team that does. An
// address says nothing about accounts. Member tells whether the account is in
// "org/team"; it is asked until one team has it, and its error comes back if none
// has.
func (r *Rules) Owns(path, login string, member func(team string) (bool, error)) (bool, error) {
	list := r.Owners(path)
	for _, o := range list {
		if o.Kind == KindUser && strings.EqualFold(o.Name, login) {
			return true, nil
		}
	}
	var failed error
	for _, o := range list {
		if o.Kind != KindTeam {
			continue
		}
		in, err := member(o.Name)
		if in && err == nil {
			return true, nil
		}
		if failed == nil {
			failed = err
		}
	}
	return false, failed
}
