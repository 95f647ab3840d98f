package owners

import (
	"errors"
	"slices"
	"strings"
)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// spell writes a pattern with characters that the library takes: letters, digits
// and *?./@_+-\(). Any other changes places with a letter that the pattern does
// not have. As a pattern asks of a character only whether it is a certain one,
// or a slash, it matches a path after the exchange if and only if it did before.
func spell(pattern string) (string, *strings.Replacer, error) {
	free := strings.Map(func(r rune) rune {
		if strings.ContainsRune(pattern, r) {
			return -1
		}
		return r
	}, letters)
	var pairs []string
	seen := map[rune]bool{}
	for _, r := range pattern {
		if taken(r) || seen[r] {
			continue
		}
		if free == "" {
			return "", nil, errors.New("too many different characters in the pattern")
		}
		seen[r] = true
		pairs = append(pairs, string(r), free[:1], free[:1], string(r))
		free = free[1:]
	}
	if len(pairs) == 0 {
		return pattern, nil, nil
	}
	swap := strings.NewReplacer(pairs...)
	return swap.Replace(pattern), swap, nil
}

// taken tells whether the library takes a character in a pattern; a space only
// stands there behind a backslash.
func taken(r rune) bool {
	return r < 0x80 && strings.ContainsRune(letters+`*?./@_+-\() `+"\t", r)
}

// settle writes a pattern so that the library reads its ** as git does: several
// of them in a row are one, and a directory that ** stands for has a name.
func settle(pattern string) string {
	parts := strings.Split(pattern, "/")
	for i := len(parts) - 1; i > 0; i-- {
		if parts[i] == "**" && parts[i-1] == "**" {
			parts = slices.Delete(parts, i, i+1)
		}
	}
	if n := len(parts); n > 1 && parts[n-1] == "" && parts[n-2] == "**" {
		parts = slices.Insert(parts, n-1, "*")
	}
	return strings.Join(parts, "/")
}
