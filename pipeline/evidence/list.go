package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Listed repository is one to be fetched. Branch is "" for the default one.
type Listed struct{ Name, Address, Branch string }

// The bounds of a list.
const (
	maxListed  = 20_000
	MaxListLen = 4 << 20 // bytes of a file
)

// A name has a dot in front as well: many an organisation has a repository .github.
var listedName = canon.Regexp(`^[A-Za-z0-9_.][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+){0,3}$`)

// ParseList reads a list of repositories, one a line: what it is to be called, its address, and a branch
// unless it is the default one, with spaces or tabs between.
//
//	# the shop
//	acme/shop  https://github.com/acme/shop.git
//	legacy     ../legacy  release
//
// Empty lines, and what follows a # at the beginning of a line, are left out. Anything else is an
// error that names the line: also a name twice, in whatever case, and a list of none.
func ParseList(raw string) ([]Listed, error) {
	var out []Listed
	if len(raw) > MaxListLen {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxListLen)
	}
	seen := map[string]bool{}
	n := 0
	for line := range strings.Lines(raw) {
		n++
		line = strings.TrimRight(line, "\r\n")
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		var one Listed
		switch len(words) {
		case 3:
			one.Branch = words[2]
			fallthrough
		case 2:
			one.Name, one.Address = words[0], words[1]
		default:
			return nil, fmt.Errorf("line %d: it has %d words, and not a name, an address and perhaps a branch", n, len(words))
		}
		if err := one.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if key := strings.ToLower(one.Name); seen[key] {
			return nil, fmt.Errorf("line %d: %s is listed twice", n, one.Name)
		} else {
			seen[key] = true
		}
		if out = append(out, one); len(out) > maxListed {
			return nil, fmt.Errorf("it lists more than %d repositories", maxListed)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it lists no repository")
	}
	return out, nil
}

func (l Listed) check() error {
	hidden := func(r rune) bool { return !ledger.Visible(r) }
	switch {
	case len(l.Name) > 200 || !listedName().MatchString(l.Name) || slices.ContainsFunc(strings.Split(l.Name, "/"), func(part string) bool { return part == "." || part == ".." }):
		return fmt.Errorf("%+q is no name: letters, digits, and . _ - / within", ledger.OneLine(l.Name, 50))
	case len(l.Address) > 2000 || strings.IndexFunc(l.Address, hidden) >= 0 || strings.HasPrefix(l.Address, "-"):
		return fmt.Errorf("the address of %s is none", l.Name)
	case len(l.Branch) > 250 || strings.IndexFunc(l.Branch, hidden) >= 0 || strings.HasPrefix(l.Branch, "-"):
		return fmt.Errorf("the branch of %s is none", l.Name)
	}
	return nil
}
