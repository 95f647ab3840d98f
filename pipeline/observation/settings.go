package observation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// KindSettings is the kind of Settings.
const KindSettings = "settings"

// Settings are what protected a branch when a forge was asked: Rules are lines in the forge's own words, Unread what it did not tell,
// each sorted. That Rules is empty says that nothing protects it only if Unread is as well.
type Settings struct {
	Head
	Repository ledger.Repository `json:"repository"`
	Branch     string            `json:"branch"`
	ReadAt     string            `json:"read_at"`
	Rules      []string          `json:"rules"`
	Unread     []string          `json:"unread"`
}

// The bounds of lines: how many, and how long each.
const (
	MaxSettings = 200
	MaxSetting  = 1000
)

// NewSettings are those of what a forge told at a time. Of a line that is too long, its hash tells whether the rest has changed.
func NewSettings(in ledger.Repository, branch string, at time.Time, rules, unread []string) *Settings {
	lines := func(all []string) []string {
		out := []string{}
		for _, line := range all {
			if short := ledger.OneLine(line, MaxSetting); short != line {
				line = ledger.OneLine(line, MaxSetting-100) + " " + canon.Sum([]byte(line))
			}
			out = append(out, line)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return &Settings{Repository: in, Branch: branch, ReadAt: ledger.FormatTime(at), Rules: lines(rules), Unread: lines(unread)}
}

// Kind is Observation's.
func (*Settings) Kind() string { return KindSettings }

// Words is Observation's.
func (s *Settings) Words() string {
	return fmt.Sprintf("what protects %s: %s", ledger.OneLine(s.Branch, 100), ledger.Plural(len(s.Rules), "rule", "rules"))
}

// Same reports whether two say the same of a branch.
func (s *Settings) Same(o *Settings) bool {
	return s.Repository.ID == o.Repository.ID && s.Branch == o.Branch && slices.Equal(s.Rules, o.Rules) && slices.Equal(s.Unread, o.Unread)
}

// Check is Observation's.
func (s *Settings) Check(at time.Time) error {
	when, err := time.Parse(time.RFC3339, s.ReadAt)
	switch {
	case s.Repository.ID == "" || s.Branch == "" || ledger.OneLine(s.Branch, 250) != s.Branch:
		return errors.New("it names no repository and branch")
	case err != nil || ledger.FormatTime(when) != s.ReadAt || when.After(at):
		return fmt.Errorf("%.60q is no time before it was recorded", s.ReadAt)
	}
	for _, lines := range [][]string{s.Rules, s.Unread} {
		bad := func(line string) bool { return line == "" || ledger.OneLine(line, MaxSetting) != line }
		if len(lines) > MaxSettings || slices.ContainsFunc(lines, bad) || !slices.Equal(slices.Compact(slices.Sorted(slices.Values(lines))), lines) {
			return fmt.Errorf("its lines are not sorted, or more than %d, or one is not of 1 to %d characters", MaxSettings, MaxSetting)
		}
	}
	return nil
}
