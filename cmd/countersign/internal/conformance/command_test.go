package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestMain is also the verifiers that the tests start.
func TestMain(m *testing.M) {
	if how := os.Getenv("CONFORMANCE_TEST_VERIFIER"); how != "" {
		verifier(how)
		return
	}
	os.Exit(m.Run())
}

// verifier answers as this program does, but for one question.
func verifier(how string) {
	_, _ = fmt.Fprintln(os.Stderr, "ready")
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if how == "bad end" {
				os.Exit(7)
			}
			return
		}
		var q Question
		_ = json.Unmarshal(line, &q)
		if q.ID == "json-0002" {
			switch how {
			case "dies":
				os.Exit(3)
			case "hangs":
				time.Sleep(time.Hour)
			case "lies":
				fmt.Printf("{\"id\":\"json-0002\",\"verdict\":\"accept\\u001b[2J\"}\n")
				continue
			case "babbles":
				fmt.Println("hello")
				continue
			case "other":
				fmt.Println(`{"id":"json-0001","verdict":"refuse"}`)
				continue
			}
		}
		err = Serve(bytes.NewReader(line), Own{}, func(text string) error {
			_, err := io.WriteString(os.Stdout, text)
			return err
		})
		if err != nil {
			os.Exit(1)
		}
	}
}

var three = fstest.MapFS{"json/a.jsonl": &fstest.MapFile{Data: []byte(`{"id":"json-0001","class":"json","op":"document","requires":["J-1"],"note":"","input":{"document":"{}"},"expect":{"verdict":"accept","values":{"canonical":"{}"}}}
{"id":"json-0002","class":"json","op":"document","requires":["J-1"],"note":"","input":{"document":"{"},"twin":"json-0001","expect":{"verdict":"refuse"}}
{"id":"json-0003","class":"json","op":"document","requires":["J-9"],"note":"","input":{"document":"1.0"},"like":"json-0001","expect":{"verdict":"accept","values":{"canonical":"1"}}}
`)}}

// TestCommand: whatever a verifier does, the vector of that moment fails, the others do not.
func TestCommand(t *testing.T) {
	for how, want := range map[string]string{
		"answers": "", "bad end": "",
		"dies":    "nothing: the verifier ended: EOF",
		"hangs":   "nothing: no answer within 2s",
		"lies":    `"accept\x1b[2J"`,
		"babbles": "nothing: no answer in JSON: invalid character 'h' looking for beginning of value",
		"other":   "the question json-0001",
	} {
		t.Run(how, func(t *testing.T) {
			t.Setenv("CONFORMANCE_TEST_VERIFIER", how)
			var said []string
			c := &Command{Argv: []string{os.Args[0]}, Say: func(line string) { said = append(said, line) }, Limit: 2 * time.Second}
			r, err := Run(three, c)
			teststand.Fatal(t, err)
			if err := c.Close(); (err != nil) != (how == "bad end") {
				t.Error(err)
			}
			if want == "" {
				if !r.OK || r.Text() != "json: 3 passed, 0 failed\n" {
					t.Errorf("%+v", r)
				}
			} else if len(r.Failures) != 1 || r.OK || r.Failures[0] != (Failure{"json-0002", "refuse", want}) || strings.Contains(r.Text(), "\x1b") || !strings.HasSuffix(r.Text(), "json: 2 passed, 1 failed\n") {
				t.Errorf("%+v %q", r, r.Text())
			}
			if len(said) == 0 || said[0] != "ready" {
				t.Errorf("%q", said)
			}
		})
	}
}

// TestCommandBelow: a verifier that has started another program is not waited for either, once that is to end.
func TestCommandBelow(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip(err)
	}
	begun := time.Now()
	c := &Command{Argv: []string{"/bin/sh", "-c", "sleep 20; true"}, Say: func(string) {}, Limit: 100 * time.Millisecond}
	if _, err := c.Ask(Question{ID: "x", Input: json.RawMessage("{}")}); err == nil || err.Error() != "no answer within 100ms" {
		t.Error(err)
	}
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestDiffers: an answer agrees as V-11 says.
func TestDiffers(t *testing.T) {
	accept := Expectation{Verdict: Accept, Values: m{"a": []any{1.0, map[string]any{"x": nil}}}}
	refuse := Expectation{Verdict: Refuse, Rules: []string{"L2", "L9"}}
	for _, c := range []struct {
		Expectation
		answer string
		agrees bool
	}{
		{accept, `{"id":"x","verdict":"accept","values":{"b":1,"a":[1.0,{"x":null}]}}`, true},
		{accept, `{"id":"x","verdict":"accept","values":{"a":[{"x":null},1]}}`, false},
		{accept, `{"id":"x","verdict":"accept"}`, false},
		{accept, `{"id":"x","verdict":"refuse"}`, false},
		{accept, `{"id":"x","verdict":"unsupported"}`, false},
		{refuse, `{"id":"x","verdict":"refuse","rule":"L9"}`, true},
		{refuse, `{"id":"x","verdict":"refuse","rule":"L3"}`, false},
		{refuse, `{"id":"x","verdict":"refuse"}`, false},
		{refuse, `{"id":"y","verdict":"refuse","rule":"L9"}`, false},
		{Expectation{Verdict: Refuse}, `{"id":"x","verdict":"refuse","rule":"L3"}`, true},
	} {
		var a Answer
		teststand.Fatal(t, json.Unmarshal([]byte(c.answer), &a))
		if differs := c.differs("x", a); (differs == "") != c.agrees {
			t.Errorf("%s: %q", c.answer, differs)
		}
	}
}

// TestRead: what is not of the form of a vector is refused, with its file and line.
func TestRead(t *testing.T) {
	good := strings.SplitAfter(string(three["json/a.jsonl"].Data), "\n")
	for _, c := range []struct{ why, line string }{
		{"an id twice", good[0] + good[0]},
		{"a member more", strings.Replace(good[0], `"note"`, `"notes":"","note"`, 1)},
		{"a member twice", strings.Replace(good[0], `"note":""`, `"note":"","note":""`, 1)},
		{"another class", strings.ReplaceAll(good[0], `"class":"json"`, `"class":"patch"`)},
		{"another id", strings.Replace(good[0], "json-0001", "json-1", 1)},
		{"no values", strings.Replace(good[0], `,"values":{"canonical":"{}"}`, "", 1)},
		{"rules where there are none", strings.Replace(good[1], `"refuse"`, `"refuse","rules":["L1"]`, 1)},
		{"like what is not there", good[2]},
		{"a twin that is refused", good[1] + strings.Replace(strings.Replace(good[1], "json-0001", "json-0002", 1), `"id":"json-0002"`, `"id":"json-0003"`, 1)},
		{"no requirement", strings.Replace(good[0], `["J-1"]`, `[]`, 1)},
		{"nothing", ""},
	} {
		if _, err := Read(fstest.MapFS{"json/a.jsonl": &fstest.MapFile{Data: []byte(c.line)}}); err == nil {
			t.Errorf("%s is read", c.why)
		}
	}
	if _, err := Read(fstest.MapFS{}); err == nil {
		t.Error("no vectors are read")
	}
	v := Vector{Input: m{"a": m{"join": []any{"x", m{"repeat": "é", "times": 2.0}, m{"base64": "/w=="}}}, "b": []any{m{"repeat": "y", "times": 0.0}}}}
	if err := v.complete(nil); err != nil || string(v.Question().Input) != `{"a":{"base64":"eMOpw6n/"},"b":[""]}` {
		t.Errorf("%v %s", err, v.Question().Input)
	}
}
