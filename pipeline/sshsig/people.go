package sshsig

import (
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Name is a principal as people are told apart by it: an account has one name in
// whatever case, with "github:" before it or without.
func Name(principal string) string {
	return strings.TrimPrefix(strings.ToLower(principal), "github:")
}

// Person returns the names and the fingerprints of keys that some lists have for one
// person, of whom some of them are given: a line is one person's, with all of its names,
// and so are other lines with the same key or one of these names. A pattern names
// nobody. What is given is among them, as [Name] has it.
func Person(known []string, lists ...Allowed) []string {
	person := map[string]bool{}
	for _, name := range known {
		person[named(name)] = true
	}
	for grown := true; grown; {
		grown = false
		for _, list := range lists {
			for _, lines := range list.keys {
				grown = joins(person, lines) || grown
			}
		}
	}
	out := make([]string, 0, len(person))
	for name := range person {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// joins adds what the lines of one key have, if any of it is the person's, and reports
// whether that is more than was known.
func joins(person map[string]bool, lines []signerLine) bool {
	all := []string{ssh.FingerprintSHA256(lines[0].key)}
	for _, line := range lines {
		for _, name := range line.principals {
			if !strings.ContainsAny(name, "!*?") {
				all = append(all, named(name))
			}
		}
	}
	before := len(person)
	if slices.ContainsFunc(all, func(name string) bool { return person[name] }) {
		for _, name := range all {
			person[name] = true
		}
	}
	return len(person) > before
}

// named is Name, but for fingerprints.
func named(name string) string {
	if strings.HasPrefix(name, "SHA256:") {
		return name
	}
	return Name(name)
}
