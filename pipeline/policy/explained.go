package policy

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/patch/casefold"
)

// CommitRules say what accounts for a commit of a branch beside a transaction, for an
// audit; nothing is approved by them. A rule goes by what a commit is and by trusted data,
// never by what its author may write into it.
type CommitRules struct {
	Merges Merges       `json:"merges,omitempty"`
	Bots   []VersionBot `json:"bots,omitempty"`
}

// Merges says which merges are accounted for: none where it is "".
type Merges string

// MergesCovered are merges of commits all of which are accounted for, and whose files are
// exactly what merging them gives.
const MergesCovered Merges = "covered"

// A VersionBot accounts for commits that a key signed which the file Keys lists, in the
// commit that the Policy is read from, and that change nothing but files which one of the
// globs of Paths matches. It never accounts for a protected file.
type VersionBot struct {
	Keys  string   `json:"keys"`
	Paths []string `json:"paths"`
}

func versionBots(dst *[]VersionBot) read {
	return list(func(r *reader, n node, key string) {
		var bot VersionBot
		ok := r.mapping(n, key,
			field{"keys", text(&bot.Keys, pathForm)},
			field{"paths", paths(&bot.Paths)},
		)
		for _, name := range []string{"keys", "paths"} {
			if ok && !n.has(name) {
				r.problem(n.mark, key, "has no "+name)
			}
		}
		if len(bot.Paths) > mostGlobs {
			r.problem(n.mark, key, fmt.Sprintf("more than %d globs", mostGlobs))
		}
		*dst = append(*dst, bot)
	})
}

// Beyond returns the first of some files that a rule for a bot does not cover: one that
// none of its paths matches, or that the Policy protects. It is "" where it covers all.
func (p Policy) Beyond(bot VersionBot, files []string) (file, why string) {
	m := newMatcher("", Rule{Paths: bot.Paths})
	for _, name := range files {
		names := strings.Split(casefold.Name(name), "/")
		if _, ok := m.find(names); !ok {
			return name, "is none of its paths"
		}
		if slices.ContainsFunc(p.matchers(), func(m matcher) bool { _, ok := m.find(names); return ok }) {
			return name, "is protected"
		}
	}
	return "", ""
}

// ReadBotKeys reads the file of keys of the n-th rule for a bot from the tree that the
// Policy is read from, as ReadKeys does.
func (p Policy) ReadBotKeys(tree fs.FS, n int) ([]byte, error) {
	return ReadNamed(tree, botKeysRule(n), p.Explained.Bots[n].Keys)
}

// botKeysRule is the name of the rule that protects the n-th bot's file of keys.
func botKeysRule(n int) string { return fmt.Sprintf("explained.bots[%d].keys", n) }
