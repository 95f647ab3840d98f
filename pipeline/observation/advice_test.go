package observation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
)

// sarif is a file with one run.
func sarif(tool, results string) string {
	return `{"version":"2.1.0","runs":[{"tool":` + tool + `,"results":` + results + `}]}`
}

// TestReadAdvice: what is read of SARIF and of our JSON. No level is taken for a lesser one, and what is not understood is refused.
func TestReadAdvice(t *testing.T) {
	const plain = `{"driver":{"name":"a"}}`
	const rules = `{"driver":{"name":"a","version":"1","rules":[{"id":"x","defaultConfiguration":{"level":"error"},"shortDescription":{"text":"short"}},{"id":"y","messageStrings":{"m":{"text":"{0} of {1}{0}"}}},{"id":"n","defaultConfiguration":{"level":"none"}}]},
		"extensions":[{"name":"b","rules":[{"id":"z","defaultConfiguration":{"level":"error"}},{"id":"x","defaultConfiguration":{"level":"note"}}]}]}`
	for _, c := range []struct{ in, want string }{
		{sarif(plain, `[]`), "a "},
		{sarif(plain, `null`), "a "},
		{sarif(plain, `[{}]`), "a  warning::0:"},
		{sarif(plain, `[{"level":"note"},{"level":"error","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a%20b.go"},"region":{"startLine":3}}}]}]`), "a  error:a b.go:3:m note::0:"},
		{sarif(plain, `[{"kind":"pass"},{"kind":"notApplicable","level":"none"},{"kind":"informational"},{"baselineState":"absent","level":"error"}]`), "a "},
		{sarif(plain, `[{"kind":"pass","level":"error"},{"kind":"review"},{"kind":"open","level":"none"}]`), "a  error::0: warning::0: note::0:"},
		{sarif(plain, `[{"level":"error","suppressions":[{"kind":"inSource"}]}]`), "a  error::0:"},
		{sarif(plain, `[{"locations":[{"physicalLocation":{"region":{"startLine":-7}}}]}]`), "a  warning::0:"},
		{sarif(rules, `[{"ruleId":"x"}]`), "a 1 error x::0:short"},
		{sarif(rules, `[{"ruleId":"x/1/2"}]`), "a 1 error x/1/2::0:short"},
		{sarif(rules, `[{"ruleIndex":0},{"ruleIndex":9},{"ruleIndex":-1}]`), "a 1 error x::0:short warning::0: warning::0:"},
		{sarif(rules, `[{"rule":{"id":"z"}},{"ruleId":"n"},{"ruleId":"unknown"}]`), "a 1 error z::0: warning unknown::0: note n::0:"},
		{sarif(rules, `[{"ruleId":"y","message":{"id":"m","arguments":["{1}","w"]}}]`), "a 1 warning y::0:{1} of w{1}"},
		{"\ufeff" + `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"a"}},"results":[{"level":"note"}]},{"tool":{"driver":{"name":"b"}}},{"tool":{"driver":{"name":"a"}},"results":[{"level":"error"}]}]}`, "a  error::0: note::0:; b "},
		{`{"tool":"a","version":"2","findings":[{"level":"note"},{"rule":"r","level":"error","file":"f","line":1,"message":"m"}]}`, "a 2 error r:f:1:m note::0:"},
		{`{"tool":"a","findings":[]}`, "a "},

		{`{"tool":"a"}`, "! no findings"},
		{`{"tool":"a","findings":null}`, "! no findings"},
		{`{"tool":"a","findings":{}}`, "! no list"},
		{`{"tool":"a","findings":7}`, "! no list"},
		{`{"tool":"a","findings":[{}]}`, "! unknown level"},
		{`{"tool":"a","findings":[{"level":"Error"}]}`, "! unknown level"},
		{`{"tool":"a","findings":[{"level":"note","line":-1}]}`, "! line below 0"},
		{`{"tool":"a","findings":[],"approved":true}`, "! unknown field"},
		{`{"tool":"` + strings.Repeat("a", 101) + `","findings":[]}`, "! no name of a tool"},
		{`[]`, "! no JSON object"},
		{``, "! no JSON object"},
		{`{"tool":"a","findings":[]} {}`, "! no JSON object"},
		{`{"version":"2.0.0","runs":[]}`, "! 2.1.0 is read"},
		{`{"version":"2.1.0","runs":[]}`, "! 0 runs"},
		{`{"version":"2.1.0","runs":null}`, "! 0 runs"},
		{`{"version":"2.1.0","runs":[` + strings.Repeat(`{},`, 20) + `{}]}`, "! 21 runs"},
		{sarif(`{"driver":{"name":"a\nb"}}`, `[]`), "! no name of a tool"},
		{sarif(plain, `{"a":{}}`), "! no list"},
		{sarif(plain, `[{"level":"fatal"}]`), `! unknown level "fatal"`},
		{sarif(plain, `[{"level":7}]`), "! reading SARIF"},
		{sarif(plain, `[`+strings.Repeat(`{},`, 50_000)+`{}]`), "! more than 50000"},
	} {
		said, err := observation.ReadAdvice([]byte(c.in))
		if want, bad := strings.CutPrefix(c.want, "! "); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.120s: %v, want %s", c.in, err, want)
			}
		} else if got := told(said); err != nil || got != c.want {
			t.Errorf("%.120s: %v\ngot  %s\nwant %s", c.in, err, got, c.want)
		}
	}
	said, err := observation.ReadAdvice([]byte(sarif(plain, `[`+strings.Repeat(`{"level":"note"},`, 150)+`{"level":"error"}]`)))
	if err != nil || len(said[0].Findings) != approval.MaxAdvised || said[0].More != 51 || said[0].Findings[0].Level != "error" {
		t.Errorf("%v %+v", err, said)
	}
}

func told(said []approval.Advice) string {
	var tools []string
	for _, a := range said {
		text := a.Tool + " " + a.Version
		for _, f := range a.Findings {
			text += " " + strings.TrimSpace(string(f.Level)+" "+f.Rule) + fmt.Sprintf(":%s:%d:%s", f.File, f.Line, f.Message)
		}
		tools = append(tools, text)
	}
	return strings.Join(tools, "; ")
}

// FuzzReadAdvice: whatever a file holds, what is read of it is bounded, in order, and of a known level and tool.
func FuzzReadAdvice(f *testing.F) {
	f.Add([]byte(sarif(`{"driver":{"name":"a","rules":[{"id":"x"}]}}`, `[{"ruleId":"x/1","message":{"id":"a","arguments":["b"]}}]`)))
	f.Add([]byte(`{"tool":"a","findings":[{"level":"error"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		said, err := observation.ReadAdvice(raw)
		if err != nil {
			return
		}
		for _, a := range said {
			for i, one := range a.Findings {
				if one.Level.Rank() < 0 || one.Line < 0 || i > 0 && one.Level.Rank() > a.Findings[i-1].Level.Rank() {
					t.Errorf("%+v", a)
				}
			}
			if a.Findings == nil || len(a.Findings) > approval.MaxAdvised || a.More < 0 || a.Tool == "" {
				t.Errorf("%+v", a)
			}
		}
	})
}
