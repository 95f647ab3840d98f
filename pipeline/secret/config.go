package secret

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// The form of gitleaks' configuration file, as far as it is used.
type (
	configFile struct {
		Extend     extendFile
		Rules      []ruleFile
		AllowList  *allowFile // the older form
		Allowlists []allowFile
	}
	extendFile struct {
		Path, URL     string
		UseDefault    bool
		DisabledRules []string
	}
	ruleFile struct {
		ID, Path, Regex string
		SecretGroup     int
		Entropy         float64
		Keywords        []string
		AllowList       *allowFile
		Allowlists      []allowFile
		SkipReport      bool
	}
	allowFile struct {
		TargetRules []string
		Condition   string
		Paths       []string
		RegexTarget string
		Regexes     []string
		StopWords   []string
	}
)

// Limits of a repository's configuration.
const (
	maxConfig = 256 << 10
	maxRules  = 1000
)

func readConfig(data []byte) (c configFile, err error) {
	if len(data) > maxConfig {
		return c, fmt.Errorf("more than %d bytes", maxConfig)
	}
	if err := toml.Unmarshal(data, &c); err != nil {
		return c, err
	}
	if c.Extend.Path != "" || c.Extend.URL != "" {
		return c, errors.New("extend.path and extend.url are not followed: only this file is read")
	}
	if c.AllowList != nil {
		c.Allowlists = append(c.Allowlists, *c.AllowList)
	}
	for i := range c.Rules {
		if r := &c.Rules[i]; r.AllowList != nil {
			r.Allowlists = append(r.Allowlists, *r.AllowList)
		}
	}
	if len(c.Rules) > maxRules {
		return c, fmt.Errorf("more than %d rules", maxRules)
	}
	return c, nil
}

// A ruleEntry is a rule that is read when it is first needed: reading all takes
// ten times as long as starting does otherwise, and few are met in a run.
type ruleEntry struct {
	id    string
	wakes []string // it finds nothing in a text without one of these; none: not known
	read  func() (ruleFile, error)
}

// entry is a rule that was read.
func entry(r ruleFile) ruleEntry {
	return ruleEntry{id: r.ID, read: func() (ruleFile, error) { return r, nil }}
}

// wakes lists, for rules whose matches need none of their keywords, the literals that all of their
// matches begin with.
var wakes = map[string][]string{
	"airtable-personnal-access-token": {"pat"}, "lob-api-key": {"lob"}, "lob-pub-api-key": {"lob"},
	"microsoft-teams-webhook": {"https://"}, "new-relic-browser-api-token": newRelic, "new-relic-insert-key": newRelic, "new-relic-user-api-key": newRelic,
	"openai-api-key": {"sk-"}, "sidekiq-sensitive-url": {"https://", "http://"}, "slack-config-access-token": {"xoxe"}, "slack-webhook-url": {"hooks"},
	"typeform-api-token": {"typeform"},
}

var newRelic = []string{"new-relic", "newrelic", "new_relic"}

// gitleaksRules is gitleaks' default configuration, byte for byte, under the
// license in gitleaks.LICENSE. TestUpstream names its version and renews it.
//
//go:embed gitleaks.toml
var gitleaksRules string

//go:embed ownrules.toml
var ownRules string

// defaults are gitleaks' rules, less what would let a patch excuse itself (no
// path exempts content, and no rule is limited to paths), and our own; and what
// stands in the files before the rules.
func defaults() (head string, rules []ruleEntry) {
	for _, file := range []string{gitleaksRules, ownRules} {
		sections := strings.Split(strings.ReplaceAll(file, "\r\n", "\n"), rulesHeader) // Git may have changed its lines
		head += sections[0]
		for _, s := range sections[1:] {
			rules = append(rules, outline(rulesHeader+s))
		}
	}
	return head, rules
}

const rulesHeader = "\n[[rules]]\n"

// outline takes a rule's id and keywords from its part of the file. All of it
// is read when it is needed.
func outline(section string) ruleEntry {
	e := ruleEntry{read: func() (ruleFile, error) {
		c, err := readConfig([]byte(section))
		if err != nil {
			return ruleFile{}, err
		}
		r := c.Rules[0]
		r.Allowlists = strictly(r.Allowlists)
		return r, nil
	}}
	_, rest, _ := strings.Cut(section, "\nid = \"")
	e.id, _, _ = strings.Cut(rest, "\"")
	if e.wakes = wakes[e.id]; e.wakes != nil || !strings.Contains(section, "\nregex = ") {
		return e
	}
	_, rest, _ = strings.Cut(section, "\nkeywords = [")
	rest, _, _ = strings.Cut(rest, "]")
	for i, part := range strings.Split(rest, "\"") {
		if i%2 == 1 {
			e.wakes = append(e.wakes, part)
		}
	}
	return e
}

// fixedAllowlists replaces upstream expressions that excuse too much: whatever has "false" in it,
// and longer tokens in which a short one can be read.
var fixedAllowlists = map[string]string{
	`(?i)^true|false|null$`: `(?i)^(?:true|false|null)$`,
	`s\.[A-Za-z]{24}`:       `^s\.[A-Za-z]{24}$`,
}

// strictly drops conditions on paths, and allowlists that need one to hold.
func strictly(list []allowFile) []allowFile {
	var out []allowFile
	for _, a := range list {
		if a.Paths != nil && strings.ToUpper(a.Condition) == "AND" || len(a.Regexes)+len(a.StopWords) == 0 {
			continue
		}
		a.Paths = nil
		for i, expr := range a.Regexes {
			a.Regexes[i] = cmp.Or(fixedAllowlists[expr], expr)
		}
		out = append(out, a)
	}
	return out
}

// extended adds a repository's file to rules, as gitleaks' useDefault does: a
// rule of the same id changes the fields that it gives. It returns also the
// allowlists of every rule.
func extended(rules []ruleEntry, own configFile) ([]ruleEntry, []allowFile, error) {
	rules = slices.DeleteFunc(rules, func(e ruleEntry) bool { return slices.Contains(own.Extend.DisabledRules, e.id) })
	change := func(id string, to func(ruleFile) ruleFile) (bool, error) {
		i := slices.IndexFunc(rules, func(e ruleEntry) bool { return e.id == id })
		if i < 0 {
			return false, nil
		}
		r, err := rules[i].read()
		if err == nil {
			rules[i] = entry(to(r))
		}
		return true, err
	}
	for _, r := range own.Rules {
		known, err := change(r.ID, func(old ruleFile) ruleFile { return old.changed(r) })
		if err != nil {
			return nil, nil, err
		}
		if !known {
			rules = append(rules, entry(r))
		}
	}
	var all []allowFile
	for _, a := range own.Allowlists {
		if len(a.TargetRules) == 0 {
			all = append(all, a)
		}
		for _, id := range a.TargetRules {
			known, err := change(id, func(r ruleFile) ruleFile {
				r.Allowlists = append(slices.Clip(r.Allowlists), a)
				return r
			})
			if err != nil {
				return nil, nil, err
			}
			if !known {
				return nil, nil, fmt.Errorf("allowlist: target rule %q does not exist", id)
			}
		}
	}
	return rules, all, nil
}

func (r ruleFile) changed(own ruleFile) ruleFile {
	r.Regex, r.Path = cmp.Or(own.Regex, r.Regex), cmp.Or(own.Path, r.Path)
	r.Entropy, r.SecretGroup = cmp.Or(own.Entropy, r.Entropy), cmp.Or(own.SecretGroup, r.SecretGroup)
	r.Keywords = append(slices.Clip(r.Keywords), own.Keywords...)
	r.Allowlists = append(slices.Clip(r.Allowlists), own.Allowlists...)
	return r
}
