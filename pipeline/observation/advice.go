package observation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// MaxAdvice is how many bytes a file of advice may have, maxRuns how many runs of tools, and maxEntries how many entries another list.
const (
	MaxAdvice  = 64 << 20
	maxRuns    = 20
	maxEntries = 50_000
)

// ReadAdvice reads what tools found: SARIF 2.1.0, or the advice of one tool in our JSON (docs/schema/advice.json). Each is a tool
// once, the gravest findings first, and as many of them as are recorded. Its texts are the tool's, of any length. PatchID is
// that of the patch which the tool says that it looked at, "" where it does not say.
func ReadAdvice(raw []byte) ([]approval.Advice, error) {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	var form struct {
		Version string          `json:"version"`
		Runs    json.RawMessage `json:"runs"`
	}
	if err := json.Unmarshal(raw, &form); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	if form.Runs == nil {
		one, err := readOwn(raw)
		return kept([]approval.Advice{one}), err
	}
	if form.Version != "2.1.0" {
		return nil, fmt.Errorf("it is SARIF of version %.40q, and 2.1.0 is read", form.Version)
	}
	out, err := readRuns(form.Runs)
	return kept(out), err
}

// readRuns reads those of SARIF. Several of one tool are one advice.
func readRuns(raw []byte) (out []approval.Advice, err error) {
	var runs atMost[json.RawMessage]
	if err := json.Unmarshal(raw, &runs); err != nil || len(runs) == 0 || len(runs) > maxRuns {
		return nil, errors.Join(err, fmt.Errorf("it has %d runs of tools, not 1 to %d", len(runs), maxRuns))
	}
	for _, raw := range runs {
		var run sarifRun
		if err := json.Unmarshal(raw, &run); err != nil {
			return nil, fmt.Errorf("reading SARIF: %w", err)
		}
		a, err := run.advice()
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(out, func(o approval.Advice) bool { return o.Tool == a.Tool }); i >= 0 {
			out[i].Findings = append(out[i].Findings, a.Findings...)
		} else {
			out = append(out, a)
		}
	}
	return out, nil
}

// readOwn reads our JSON, of which nothing is passed over.
func readOwn(raw []byte) (a approval.Advice, err error) {
	var in struct {
		Tool     string                 `json:"tool"`
		Version  string                 `json:"version"`
		PatchID  string                 `json:"patch_id"`
		Findings atMost[approval.Claim] `json:"findings"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err = d.Decode(&in); err != nil {
		return a, fmt.Errorf("it is neither SARIF nor advice: %w", err)
	}
	for i, f := range in.Findings {
		if f.Level.Rank() < 0 || f.Line < 0 {
			return a, fmt.Errorf("finding %d has the unknown level %.40q, or a line below 0", i+1, f.Level)
		}
	}
	if in.Findings == nil {
		return a, errors.New("it has no findings: of none, that is an empty list")
	}
	return approval.Advice{Tool: in.Tool, Version: in.Version, PatchID: in.PatchID, Findings: in.Findings}, isTool(in.Tool)
}

func isTool(name string) error {
	if !policy.IsTool(name) {
		return fmt.Errorf("%.120q is no name of a tool: 1 to 100 letters, digits and . _ + / @ ( ) - with single spaces", name)
	}
	return nil
}

// kept are the findings that are recorded.
func kept(all []approval.Advice) []approval.Advice {
	for i, a := range all {
		slices.SortStableFunc(a.Findings, func(x, y approval.Claim) int { return cmp.Compare(y.Level.Rank(), x.Level.Rank()) })
		n := min(len(a.Findings), approval.MaxAdvised)
		all[i].Findings, all[i].More = append([]approval.Claim{}, a.Findings[:n]...), len(a.Findings)-n
	}
	return all
}

// atMost is a list of so many entries that it does not exhaust who reads it.
type atMost[T any] []T

// UnmarshalJSON reads one entry after the other.
func (l *atMost[T]) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	begin, err := d.Token()
	if err != nil || begin != json.Delim('[') && begin != nil {
		return errors.New("there is no list where one belongs")
	}
	if *l = nil; begin != nil {
		*l = []T{}
	}
	for d.More() {
		if len(*l) == maxEntries {
			return fmt.Errorf("a list has more than %d entries: make several files of it", maxEntries)
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}

// The parts of SARIF that are read (OASIS, SARIF 2.1.0, §3.14 to §3.28).
type (
	sarifRun struct {
		Tool struct {
			Driver     sarifComponent         `json:"driver"`
			Extensions atMost[sarifComponent] `json:"extensions"`
		} `json:"tool"`
		Results atMost[sarifResult] `json:"results"`
	}
	sarifComponent struct {
		Name            string            `json:"name"`
		Version         string            `json:"version"`
		SemanticVersion string            `json:"semanticVersion"`
		Rules           atMost[sarifRule] `json:"rules"`
	}
	sarifRule struct {
		ID      string `json:"id"`
		Default struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
		Short    sarifMessage            `json:"shortDescription"`
		Messages map[string]sarifMessage `json:"messageStrings"`
	}
	sarifMessage struct {
		Text      string         `json:"text"`
		Markdown  string         `json:"markdown"`
		ID        string         `json:"id"`
		Arguments atMost[string] `json:"arguments"`
	}
	sarifResult struct {
		RuleID    string `json:"ruleId"`
		RuleIndex *int   `json:"ruleIndex"`
		Rule      struct {
			ID string `json:"id"`
		} `json:"rule"`
		Level     string       `json:"level"`
		Kind      string       `json:"kind"`
		Baseline  string       `json:"baselineState"`
		Message   sarifMessage `json:"message"`
		Locations atMost[struct {
			Physical struct {
				Artifact struct {
					URI string `json:"uri"`
				} `json:"artifactLocation"`
				Region struct {
					Line int `json:"startLine"`
				} `json:"region"`
			} `json:"physicalLocation"`
		}] `json:"locations"`
	}
)

// advice is what a run says.
func (run sarifRun) advice() (a approval.Advice, err error) {
	driver := run.Tool.Driver
	a = approval.Advice{Tool: driver.Name, Version: cmp.Or(driver.SemanticVersion, driver.Version)}
	if err := isTool(a.Tool); err != nil {
		return a, err
	}
	rules := map[string]sarifRule{} // of two with one id, the graver
	for _, c := range append(slices.Clip(run.Tool.Extensions), driver) {
		for _, r := range c.Rules {
			if r.Default.Level = cmp.Or(r.Default.Level, "warning"); levelOf(r.Default.Level).Rank() >= levelOf(rules[r.ID].Default.Level).Rank() {
				rules[r.ID] = r
			}
		}
	}
	for i, r := range run.Results {
		id := cmp.Or(r.RuleID, r.Rule.ID)
		if n := r.RuleIndex; id == "" && n != nil && *n >= 0 && *n < len(driver.Rules) {
			id = driver.Rules[*n].ID
		}
		rule, known := rules[id]
		for of := id; !known && strings.Contains(of, "/"); { // CA1000/1 is one of CA1000
			of = of[:strings.LastIndexByte(of, '/')]
			rule, known = rules[of]
		}
		if r.none() {
			continue
		}
		level := levelOf(cmp.Or(r.Level, rule.Default.Level, "warning"))
		if level.Rank() < 0 {
			return a, fmt.Errorf("result %d of %s has the unknown level %.40q", i+1, a.Tool, cmp.Or(r.Level, rule.Default.Level))
		}
		f := approval.Claim{Rule: id, Level: level, Message: r.Message.in(rule)}
		if len(r.Locations) > 0 {
			at := r.Locations[0].Physical
			f.File, f.Line = at.Artifact.URI, min(max(0, at.Region.Line), 1<<30)
			if plain, err := url.PathUnescape(f.File); err == nil {
				f.File = plain
			}
		}
		a.Findings = append(a.Findings, f)
	}
	return a, nil
}

// none reports whether a result says that nothing was found. One with a level is a finding, whatever else it says.
func (r sarifResult) none() bool {
	quiet := r.Level == "" || r.Level == "none"
	return r.Baseline == "absent" || quiet && slices.Contains([]string{"pass", "notApplicable", "informational"}, r.Kind)
}

// levelOf is a level of SARIF, of which the least is none.
func levelOf(word string) policy.Level {
	if word == "none" {
		word = "note"
	}
	return policy.Level(word)
}

// in is a message's text, which may stand with its rule.
func (m sarifMessage) in(rule sarifRule) string {
	if text := cmp.Or(m.Text, m.Markdown); text != "" {
		return text
	}
	text := cmp.Or(rule.Messages[m.ID].Text, rule.Short.Text)
	var pairs []string
	for i, argument := range m.Arguments {
		pairs = append(pairs, "{"+strconv.Itoa(i)+"}", argument)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
