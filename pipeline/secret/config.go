package secret

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
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

// privateKey is the rule that keyBlocks stands in for.
const privateKey = "private-key"

// A ruleset is everything that is looked for, ready to be run.
type ruleset struct {
	rules    []*rule
	paths    []*pathRule
	allowed  []allowlist // of every rule
	literals *keywords
	led      [][]int // by literal: rules whose matches begin with it
	near     [][]int // by literal: rules that are tried around it
	always   []int   // rules without any literal
	begin    uint16  // the literals of keyBlocks
	end      uint16
	blocks   bool
	kinds    map[string]bool
	engines  engines
}

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
	c.fold()
	if len(c.Rules) > maxRules {
		return c, fmt.Errorf("more than %d rules", maxRules)
	}
	return c, nil
}

// fold turns the older form of allowlists into the newer one.
func (c *configFile) fold() {
	if c.AllowList != nil {
		c.Allowlists = append(c.Allowlists, *c.AllowList)
	}
	for i := range c.Rules {
		if r := &c.Rules[i]; r.AllowList != nil {
			r.Allowlists = append(r.Allowlists, *r.AllowList)
		}
	}
}

// defaults are gitleaks' rules, less what would let a patch excuse itself (no
// path exempts content, and no rule is limited to paths), and our own.
func defaults() (configFile, error) {
	c, err := readConfig([]byte(config.DefaultConfig))
	if err != nil {
		return c, err
	}
	own, err := readConfig([]byte(ownRules))
	if err != nil {
		return c, err
	}
	c.Rules = append(c.Rules, own.Rules...)
	c.Allowlists = strictly(c.Allowlists)
	for i := range c.Rules {
		c.Rules[i].Allowlists = strictly(c.Rules[i].Allowlists)
	}
	return c, nil
}

// meant has the allowlist expressions that excuse more than is meant: what has
// "false" in it, and longer tokens in which a short one can be read.
var meant = map[string]string{
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
			a.Regexes[i] = cmp.Or(meant[expr], expr)
		}
		out = append(out, a)
	}
	return out
}

// extend adds a repository's file to the defaults, as gitleaks' useDefault
// does: a rule of the same id changes the fields that it gives.
func (c *configFile) extend(own configFile) error {
	c.Rules = slices.DeleteFunc(c.Rules, func(r ruleFile) bool { return slices.Contains(own.Extend.DisabledRules, r.ID) })
	for _, r := range own.Rules {
		i := c.find(r.ID)
		if i < 0 {
			c.Rules = append(c.Rules, r)
			continue
		}
		c.Rules[i] = c.Rules[i].changed(r)
	}
	for _, a := range own.Allowlists {
		if len(a.TargetRules) == 0 {
			c.Allowlists = append(c.Allowlists, a)
		}
		for _, id := range a.TargetRules {
			i := c.find(id)
			if i < 0 {
				return fmt.Errorf("allowlist: target rule %q does not exist", id)
			}
			c.Rules[i].Allowlists = append(slices.Clip(c.Rules[i].Allowlists), a)
		}
	}
	return nil
}

func (c *configFile) find(id string) int {
	return slices.IndexFunc(c.Rules, func(r ruleFile) bool { return r.ID == id })
}

func (r ruleFile) changed(own ruleFile) ruleFile {
	if own.Regex != "" {
		r.Regex = own.Regex
	}
	if own.Path != "" {
		r.Path = own.Path
	}
	if own.Entropy != 0 {
		r.Entropy = own.Entropy
	}
	if own.SecretGroup != 0 {
		r.SecretGroup = own.SecretGroup
	}
	r.Keywords = append(slices.Clip(r.Keywords), own.Keywords...)
	r.Allowlists = append(slices.Clip(r.Allowlists), own.Allowlists...)
	return r
}
