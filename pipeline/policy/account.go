package policy

import (
	"slices"
	"strings"
)

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
