package sshsig

import (
	"errors"
	"strings"
)

// parsePatterns reads a pattern-list (ssh_config(5), PATTERNS).
func parsePatterns(text string) ([]string, error) {
	list := strings.Split(text, ",")
	for _, pattern := range list {
		if name := strings.TrimPrefix(pattern, "!"); name == "" || strings.Trim(name, blank) != name {
			return nil, errors.New("a name is empty, or a blank is around it")
		}
	}
	return list, nil
}

// matchList reports whether a name matches a list: one of its patterns, and
// none that is negated.
func matchList(list []string, name string) bool {
	matched := false
	for _, pattern := range list {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if !match(pattern, name) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

// match reports whether a whole name matches a pattern, in which * stands for
// any bytes and ? for one. It takes time in the product of both lengths.
func match(pattern, name string) bool {
	star, from := -1, 0 // the last *, and where in name what follows it is tried
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p, n = p+1, n+1
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
