package checks

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

var (
	treeID    = strings.Repeat("4b825dc6", 5)
	policySum = canon.Sum([]byte("a policy"))
)

func check(required bool, argv ...string) policy.Check {
	return policy.Check{Command: policy.Command{Argv: argv}, Required: required}
}

func shell(script string) policy.Check {
	return policy.Check{Command: policy.Command{Argv: []string{script}, Shell: true}, Required: true}
}

// ran is what comes of a command that did well.
func ran(c policy.Check) Execution {
	return Execution{
		Argv: c.Argv, Shell: c.Shell, Required: c.Required, DurationMS: 12, Stdout: "done\n", StdoutBytes: 5,
		Protection: Protection{Mode: "workspace-write", Landlock: 5, Namespaces: []string{"user", "net"}, Seccomp: true},
	}
}

func results(commands ...policy.Check) Results {
	r := Results{Schema: Schema, Tree: treeID, PolicySHA256: policySum, Executions: []Execution{}}
	for _, c := range commands {
		r.Executions = append(r.Executions, ran(c))
	}
	return r
}

func ExampleResults_Line() {
	e := ran(check(true, "go", "vet", "./..."))
	line, err := Results{Schema, treeID, policySum, []Execution{e}}.Line()
	fmt.Printf("%s%v\n", line, err)
	// Output:
	// {"executions":[{"argv":["go","vet","./..."],"duration_ms":12,"error":"","exit_code":0,"protection":{"landlock":5,"mode":"workspace-write","namespaces":["user","net"],"network_filter":false,"seccomp":true},"required":true,"shell":false,"stderr":"","stderr_bytes":0,"stdout":"done\n","stdout_bytes":5,"timed_out":false}],"policy_sha256":"sha256:1b551587059622f0d62ffa8a371207104a31c6d59bbe2d6563c5199e51d9f267","schema":"countersign/results/1","tree":"4b825dc64b825dc64b825dc64b825dc64b825dc6"}
	// <nil>
}

func TestLineAndParse(t *testing.T) {
	failed := ran(check(false, "a"))
	failed.ExitCode, failed.Signal, failed.TimedOut = 137, "killed", true
	failed.Stderr = "\x00\x1b[31m\"\\\ufffd€\u2028" + strings.Repeat("x", 1000)
	never := Execution{Argv: []string{"b", ""}, ExitCode: -1, Error: "it is not there", Protection: Protection{Namespaces: []string{}}}
	for _, r := range []Results{
		results(),
		results(check(true, "go", "test"), shell("go test"), check(false, "go test")),
		{Schema, treeID, policySum, []Execution{failed, never}},
	} {
		line, err := r.Line()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(line)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%v: read\n%+v\nwant\n%+v", err, again, r)
		}
	}
}

func TestOK(t *testing.T) {
	for want, change := range map[string]func(*Execution){
		"true":            func(*Execution) {},
		"false exit code": func(e *Execution) { e.ExitCode = 1 },
		"false signal":    func(e *Execution) { e.Signal = "killed" },
		"false timed out": func(e *Execution) { e.TimedOut = true },
		"false error":     func(e *Execution) { e.Error = "no such program" },
	} {
		e := ran(check(true, "a"))
		if change(&e); fmt.Sprint(e.OK()) != strings.Fields(want)[0] {
			t.Errorf("%s: OK is %t", want, e.OK())
		}
	}
}

// TestT22Values: no value out of its bounds is read, nor written.
func TestT22Values(t *testing.T) {
	long := strings.Repeat("x", MaxOutput+1)
	for name, change := range map[string]func(*Results){
		"another schema":             func(r *Results) { r.Schema = "countersign/results/2" },
		"no schema":                  func(r *Results) { r.Schema = "" },
		"no tree":                    func(r *Results) { r.Tree = "" },
		"upper case tree":            func(r *Results) { r.Tree = strings.ToUpper(treeID) },
		"short tree":                 func(r *Results) { r.Tree = treeID[1:] },
		"63 digits of tree":          func(r *Results) { r.Tree = treeID + treeID[:23] },
		"tree is a path":             func(r *Results) { r.Tree = "../" + treeID[3:] },
		"policy without sha256:":     func(r *Results) { r.PolicySHA256 = policySum[7:] },
		"short policy":               func(r *Results) { r.PolicySHA256 = policySum[:70] },
		"upper case policy":          func(r *Results) { r.PolicySHA256 = "sha256:" + strings.ToUpper(policySum[7:]) },
		"no list":                    func(r *Results) { r.Executions = nil },
		"too many":                   func(r *Results) { many(r, maxExecutions) },
		"twice":                      func(r *Results) { r.Executions = append(r.Executions, r.Executions[0]) },
		"twice, with another result": func(r *Results) { again(r) },
		"no argv":                    func(r *Results) { r.Executions[0].Argv = nil },
		"empty argv":                 func(r *Results) { r.Executions[0].Argv = []string{} },
		"too many words":             func(r *Results) { r.Executions[0].Argv = make([]string, maxWords+1) },
		"too long a word":            func(r *Results) { r.Executions[0].Argv[0] = long },
		"argv not UTF-8":             func(r *Results) { r.Executions[0].Argv[0] = "\xed\xa0\x80" },
		"exit code 256":              func(r *Results) { r.Executions[0].ExitCode = 256 },
		"exit code -2":               func(r *Results) { r.Executions[0].ExitCode = -2 },
		"exit code -1, no error":     func(r *Results) { r.Executions[0].ExitCode = -1 },
		"exit code 0, error":         func(r *Results) { r.Executions[0].Error = "x" },
		"a long signal":              func(r *Results) { r.Executions[0].Signal = long[:MaxNote+1] },
		"a signal of two lines":      func(r *Results) { r.Executions[0].Signal = "a\nb" },
		"a long error":               func(r *Results) { noted(r, long[:MaxNote+1]) },
		"an error with an escape":    func(r *Results) { noted(r, "\x1b[2J") },
		"an error with an override":  func(r *Results) { noted(r, "a\u202eb") },
		"an error not UTF-8":         func(r *Results) { noted(r, "\xed\xa0\x80") },
		"long stdout":                func(r *Results) { r.Executions[0].Stdout = long },
		"long stderr":                func(r *Results) { r.Executions[0].Stderr = long },
		"stdout not UTF-8":           func(r *Results) { r.Executions[0].Stdout = "\xed\xa0\x80" },
		"stderr not UTF-8":           func(r *Results) { r.Executions[0].Stderr = "\xed\xa0\x80" },
		"negative duration":          func(r *Results) { r.Executions[0].DurationMS = -1 },
		"negative stdout_bytes":      func(r *Results) { r.Executions[0].StdoutBytes = -1 },
		"large stderr_bytes":         func(r *Results) { r.Executions[0].StderrBytes = 1e15 },
		"a long mode":                func(r *Results) { r.Executions[0].Protection.Mode = long },
		"a mode of two lines":        func(r *Results) { r.Executions[0].Protection.Mode = "a\nb" },
		"negative landlock":          func(r *Results) { r.Executions[0].Protection.Landlock = -1 },
		"no list of namespaces":      func(r *Results) { r.Executions[0].Protection.Namespaces = nil },
		"many namespaces":            func(r *Results) { r.Executions[0].Protection.Namespaces = make([]string, 17) },
		"a namespace of two lines":   func(r *Results) { r.Executions[0].Protection.Namespaces[1] = "a\nb" },
		"over 8 MiB": func(r *Results) {
			many(r, 22)
			for i := range r.Executions {
				r.Executions[i].Stdout = strings.Repeat("\x01", MaxOutput)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := results(check(true, "go", "test"), shell("go test"))
			change(&r)
			if line, err := r.Line(); err == nil || line != nil || !strings.HasPrefix(err.Error(), "writing the results: ") {
				t.Errorf("written: %v", err)
			}
			if strings.HasSuffix(name, "not UTF-8") {
				return // TestT22Forms has what JSON can say of it
			}
			raw, err := canon.Line(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse(raw)
			if err == nil || !reflect.DeepEqual(got, Results{}) || len(err.Error()) > 2000 || !strings.HasPrefix(err.Error(), "reading the results: ") {
				t.Errorf("read: %v", err)
			}
			if _, err := r.For(r.Tree, r.PolicySHA256, []policy.Check{check(true, "go", "test"), shell("go test")}); err == nil {
				t.Error("used")
			}
		})
	}
}

func many(r *Results, n int) {
	for i := range n {
		r.Executions = append(r.Executions, ran(check(true, fmt.Sprint(i))))
	}
}

func again(r *Results) {
	e := ran(check(true, "go", "test"))
	e.ExitCode, e.Required = 1, false
	r.Executions = append(r.Executions, e)
}

func noted(r *Results, why string) { r.Executions[0].ExitCode, r.Executions[0].Error = -1, why }

// TestT22Forms: another form of the same results is not read.
func TestT22Forms(t *testing.T) {
	line, err := results(check(true, "go", "test")).Line()
	if err != nil {
		t.Fatal(err)
	}
	swap := func(old, new string) string {
		if !bytes.Contains(line, []byte(old)) {
			t.Fatalf("no %s in %s", old, line)
		}
		return strings.Replace(string(line), old, new, 1)
	}
	for name, raw := range map[string]string{
		"empty":                   "",
		"an LF":                   "\n",
		"null":                    "null\n",
		"a list":                  "[]\n",
		"no LF":                   string(line[:len(line)-1]),
		"two LF":                  string(line) + "\n",
		"CR LF":                   swap("}\n", "}\r\n"),
		"twice":                   string(line) + string(line),
		"cut short":               string(line[:len(line)/2]) + "\n",
		"a byte order mark":       "\ufeff" + string(line),
		"a space":                 swap(`,"required"`, `, "required"`),
		"a key twice":             swap(`"exit_code":0`, `"exit_code":0,"exit_code":1`),
		"a key in another case":   swap(`"exit_code"`, `"Exit_code"`),
		"a key more":              swap(`"exit_code":0`, `"exit_code":0,"extra":1`),
		"a key less":              swap(`"exit_code":0,`, ``),
		"keys in another order":   swap(`"shell":false,"stderr":""`, `"stderr":"","shell":false`),
		"exit code null":          swap(`"exit_code":0`, `"exit_code":null`),
		"exit code true":          swap(`"exit_code":0`, `"exit_code":true`),
		"exit code 0.5":           swap(`"exit_code":0`, `"exit_code":0.5`),
		"exit code -0":            swap(`"exit_code":0`, `"exit_code":-0`),
		"required as text":        swap(`"required":true`, `"required":"true"`),
		"an empty signal":         swap(`,"stderr":`, `,"signal":"","stderr":`),
		"a needless escape":       swap(`"done`, `"\u0064one`),
		"half a surrogate":        swap(`"done`, `"\ud800`),
		"executions null":         `{"executions":null,"policy_sha256":"` + policySum + `","schema":"` + Schema + `","tree":"` + treeID + `"}` + "\n",
		"deep":                    strings.Repeat("[", 1<<20) + "\n",
		"over 8 MiB":              strings.Repeat(" ", maxResults) + "\n",
		"a path to be written to": swap(`"shell":false`, `"path":"../../x","shell":false`),
	} {
		if r, err := Parse([]byte(raw)); err == nil || !reflect.DeepEqual(r, Results{}) || len(err.Error()) > 2000 {
			t.Errorf("%s: read, %v", name, err)
		}
	}
}

func TestT22For(t *testing.T) {
	vet, test, script := check(true, "go", "vet"), check(false, "go", "test"), shell("go vet")
	list := func(c ...policy.Check) []policy.Check { return c }
	otherTree, otherSum := strings.Repeat("0", 40), canon.Sum(nil)
	for _, c := range []struct {
		name            string
		tree, sum, want string
		have, wanted    []policy.Check
	}{
		{"nothing", treeID, policySum, "", nil, nil},
		{"all", treeID, policySum, "", list(vet, test, script), list(vet, test, script)},
		{"in another order", treeID, policySum, "", list(vet, test, script), list(script, vet, test)},
		{"another tree", otherTree, policySum, "of the tree " + treeID + ", not of " + otherTree, list(vet), list(vet)},
		{"another Policy", treeID, otherSum, "of the Policy " + policySum + ", not of " + otherSum, list(vet), list(vet)},
		{"no tree", "", policySum, "of the tree", list(vet), list(vet)},
		{"no Policy", treeID, "", "of the Policy", list(vet), list(vet)},
		{"one is missing", treeID, policySum, `"go test" is missing`, list(vet), list(vet, test)},
		{"all are missing", treeID, policySum, `"go vet" is missing`, nil, list(vet)},
		{"one more", treeID, policySum, `"go test" has a result, although nobody asked for it`, list(vet, test), list(vet)},
		{"nothing was wanted", treeID, policySum, `"go vet" has a result, although nobody asked for it`, list(vet), nil},
		{"a shell was used", treeID, policySum, `"go vet" is missing`, list(script), list(vet)},
		{"words put together", treeID, policySum, `"go vet" is missing`, list(check(true, "go vet")), list(vet)},
		{"a word more", treeID, policySum, `"go vet" is missing`, list(check(true, "go", "vet", "")), list(vet)},
		{"required, and it says optional", treeID, policySum, "optional in the other", list(check(false, "go", "vet")), list(vet)},
		{"optional, and it says required", treeID, policySum, "required in one place", list(check(true, "go", "test")), list(test)},
		{"wanted twice", treeID, policySum, `"go vet" is asked for twice`, list(vet), list(vet, vet)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := results(c.have...).For(c.tree, c.sum, c.wanted)
			if c.want != "" {
				if err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("error %v, want %q", err, c.want)
				}
				return
			}
			same := slices.EqualFunc(got, c.wanted, func(e Execution, w policy.Check) bool {
				return slices.Equal(e.Argv, w.Argv) && e.Shell == w.Shell && e.Required == w.Required
			})
			if err != nil || !same {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}

// TestT22ErrorsAreTame: an error about untrusted results is one short line.
func TestT22ErrorsAreTame(t *testing.T) {
	r := results(check(true, "x\n::error::forged\x1b[2J\u202e"+strings.Repeat("long ", 1000)))
	_, err := r.For(treeID, policySum, nil)
	if err == nil || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x1b\u202e") {
		t.Errorf("%q", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, r := range []Results{results(), results(check(true, "go", "test"), shell("x"))} {
		line, err := r.Line()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := Parse(raw)
		if err != nil {
			return
		}
		if line, err := r.Line(); err != nil || !bytes.Equal(line, raw) {
			t.Fatalf("written back as %q, %v", line, err)
		}
	})
}
