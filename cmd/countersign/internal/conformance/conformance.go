// Package conformance runs the vectors of docs/spec/vectors against a verifier: another
// program, which is asked line by line on its standard input, or this one, in process.
// docs/spec/vectors/README.md is the format of both; V-1 and so on are requirements there.
//
// The answers of this program come from the packages that decide, and no rule is here a
// second time.
package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
)

// A Question is one vector as a verifier gets it.
type Question struct {
	Class string          `json:"class"`
	ID    string          `json:"id"`
	Input json.RawMessage `json:"input"`
	Op    string          `json:"op"`
}

// An Answer is what a verifier says.
type Answer struct {
	ID      string         `json:"id"`
	Verdict string         `json:"verdict"`
	Rule    string         `json:"rule,omitempty"`
	Values  map[string]any `json:"values,omitzero"`
}

// The verdicts.
const (
	Accept      = "accept"
	Refuse      = "refuse"
	Unsupported = "unsupported"
)

// A Verifier answers questions. After an error it can be asked again.
type Verifier interface {
	Ask(Question) (Answer, error)
}

// A Failure is a vector whose answer is not the expected one. Its texts are short and safe to
// print, whatever the verifier wrote.
type Failure struct {
	ID       string `json:"id"`
	Expected string `json:"expected"`
	Answered string `json:"answered"`
}

// A ClassResult counts the vectors of one class.
type ClassResult struct {
	Class  string `json:"class"`
	Passed int    `json:"passed"`
	Failed int    `json:"failed"`
}

// A Result is what a run found.
type Result struct {
	OK       bool          `json:"ok"`
	Classes  []ClassResult `json:"classes"`
	Failures []Failure     `json:"failures"`
}

// Run asks a verifier all vectors of a directory. The error is that of reading them.
func Run(dir fs.FS, of Verifier) (Result, error) {
	r := Result{OK: true, Classes: []ClassResult{}, Failures: []Failure{}}
	vectors, err := Read(dir)
	if err != nil {
		return r, err
	}
	for _, v := range vectors {
		i := slices.IndexFunc(r.Classes, func(c ClassResult) bool { return c.Class == v.Class })
		if i < 0 {
			i, r.Classes = len(r.Classes), append(r.Classes, ClassResult{Class: v.Class})
		}
		got, err := of.Ask(v.Question())
		answered := ""
		switch {
		case err != nil:
			answered = "nothing: " + err.Error()
		default:
			answered = v.Expect.differs(v.ID, got)
		}
		if answered == "" {
			r.Classes[i].Passed++
			continue
		}
		r.OK = false
		r.Classes[i].Failed++
		r.Failures = append(r.Failures, Failure{v.ID, shown(v.Expect.String()), shown(answered)})
	}
	return r, nil
}

// Text is a line for each failure and one for each class (V-13).
func (r Result) Text() string {
	var b strings.Builder
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "%s: expected %s, answered %s\n", f.ID, f.Expected, f.Answered)
	}
	for _, c := range r.Classes {
		fmt.Fprintf(&b, "%s: %d passed, %d failed\n", c.Class, c.Passed, c.Failed)
	}
	return b.String()
}

// shown makes a text safe to print, and short.
func shown(text string) string {
	const most = 400 // bytes
	more := ""
	if len(text) > most {
		text, more = text[:most], "…"
	}
	if quoted := fmt.Sprintf("%+q", text); quoted != `"`+text+`"` {
		text = quoted
	}
	return text + more
}

// An Expectation is the right answer.
type Expectation struct {
	Verdict string         `json:"verdict"`
	Rules   []string       `json:"rules,omitempty"`
	Values  map[string]any `json:"values,omitzero"`
}

func (e Expectation) String() string {
	if len(e.Rules) == 0 {
		return e.Verdict
	}
	return e.Verdict + " by " + strings.Join(e.Rules, " or ")
}

// differs is what was answered where that is not what is expected, else "" (V-11, V-12).
func (e Expectation) differs(id string, got Answer) string {
	switch {
	case got.ID != id:
		return "the question " + cmp.Or(got.ID, "without an id")
	case got.Verdict != e.Verdict:
		return strings.TrimSpace(cmp.Or(got.Verdict, "no verdict") + " " + got.Rule)
	case e.Verdict == Refuse:
		if len(e.Rules) > 0 && !slices.Contains(e.Rules, got.Rule) {
			return "refuse by " + cmp.Or(got.Rule, "no rule")
		}
		return ""
	}
	// Values that a program made in process become what JSON has.
	raw, err := json.Marshal(got.Values)
	var values map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &values)
	}
	if err != nil {
		return err.Error()
	}
	for name, want := range e.Values {
		if have, ok := values[name]; !ok || !reflect.DeepEqual(have, want) {
			raw, _ := json.Marshal(have)
			wanted, _ := json.Marshal(want)
			return fmt.Sprintf("%s %s, not %s", name, raw, wanted)
		}
	}
	return ""
}
