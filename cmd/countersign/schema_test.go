package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

const schemaDir = "../../docs/schema"

// schemas are the documents of docs/schema, compiled, and what was validated
// against each.
type schemas struct {
	compiled map[string]*jsonschema.Schema // by name without .json
	mu       sync.Mutex
	accepted map[string][]any // real documents
}

// TestSchema validates what the program reads, prints and records, and then
// turns these documents into ones that must be refused. By default it does the first for one script, and with
// COUNTERSIGN_LONG for all.
func TestSchema(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("documents of many processes, each on its own")
	}
	s := loadSchemas(t)
	t.Run("readme", s.readme)
	t.Run("vectors", s.vectors)
	if !everything() {
		t.Run("output", func(t *testing.T) { s.scripts(t, "testdata/schema/stages.txtar") })
		return
	}
	scripts, err := filepath.Glob("testdata/schema/*.txtar")
	check(t, err)
	t.Run("output", func(t *testing.T) { s.scripts(t, scripts...) })
	for name := range s.compiled {
		if len(s.accepted[name]) == 0 {
			t.Errorf("%s.json: no document was validated against it", name)
		}
	}
	t.Run("rows", s.rows)
	t.Run("mutants", s.mutants)
}

// schemaID is the $id of a schema: absolute, and no address. It ends with the schema's version.
func schemaID(name string) string { return schemaURN + name + ":1" }

const schemaURN = "urn:countersign:schema:"

// schemaIndex is the file of docs/schema that lists the others.
const schemaIndex = "schema.json"

// schemaFiles are all schemas.
func schemaFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(schemaDir + "/*.json")
	check(t, err)
	return slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == schemaIndex })
}

// TestSchemaIndex: schema.json has each schema, its $id, version and title; UPDATE_SCRIPTS=1 writes it anew.
func TestSchemaIndex(t *testing.T) {
	t.Parallel()
	type entry struct {
		ID      string `json:"$id"`
		File    string `json:"file"`
		Title   string `json:"title"`
		Version int    `json:"version"`
	}
	var lines []string
	for _, file := range schemaFiles(t) {
		raw, err := os.ReadFile(file)
		check(t, err)
		e := entry{File: filepath.Base(file)}
		check(t, json.Unmarshal(raw, &e))
		_, err = fmt.Sscanf(e.ID, schemaURN+strings.TrimSuffix(e.File, ".json")+":%d", &e.Version)
		if err != nil || e.Title == "" {
			t.Errorf("%s: $id %q, title %q: %v", e.File, e.ID, e.Title, err)
		}
		line, err := json.Marshal(e)
		check(t, err)
		lines = append(lines, "  "+string(line))
	}
	list := "{\"schemas\":[\n" + strings.Join(lines, ",\n") + "\n]}\n"
	file := filepath.Join(schemaDir, schemaIndex)
	if os.Getenv("UPDATE_SCRIPTS") != "" {
		check(t, os.WriteFile(file, []byte(list), 0o644))
	}
	have, err := os.ReadFile(file)
	check(t, err)
	if string(have) != list {
		t.Errorf("%s is another list: UPDATE_SCRIPTS=1 writes it anew", file)
	}
}

// loadSchemas compiles every schema, which checks it against the metaschema.
func loadSchemas(t *testing.T) *schemas {
	s := &schemas{compiled: map[string]*jsonschema.Schema{}, accepted: map[string][]any{}}
	files := schemaFiles(t)
	c := jsonschema.NewCompiler()
	for _, file := range files {
		raw, err := os.ReadFile(file)
		check(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		check(t, err)
		name, fields := strings.TrimSuffix(filepath.Base(file), ".json"), doc.(map[string]any)
		if fields["$id"] != schemaID(name) || fields["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("%s: its $id is %v, its $schema %v", name, fields["$id"], fields["$schema"])
		}
		check(t, c.AddResource(schemaID(name), doc))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		compiled, err := c.Compile(schemaID(name))
		check(t, err)
		if name != "common" { // which describes no document
			s.compiled[name] = compiled
		}
	}
	return s
}

// accept validates a real document and keeps it.
func (s *schemas) accept(name string, raw []byte) error {
	sch := s.compiled[name]
	if sch == nil {
		return fmt.Errorf("there is no %s.json", name)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err == nil {
		err = sch.Validate(doc)
	}
	if err != nil {
		return fmt.Errorf("%s.json: %w\n%s", name, err, raw)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted[name] = append(s.accepted[name], doc)
	return nil
}

// scripts runs the program as the files say; what it prints and records is
// validated by these commands:
//
//	prints SCHEMA EXIT ARGS…   run countersign --json here; SCHEMA may be "nothing"
//	reads SCHEMA FILE          a document that the program reads, JSON or YAML
//	ledger                     every file of the ledger here
//	directory DIR              every file of an exported transaction
//
// SECRET is what looks like one, RECIPIENT somebody whom a patch is sealed to;
// both are new each time.
func (s *schemas) scripts(t *testing.T, files ...string) {
	testscript.Run(t, testscript.Params{
		Files: files, RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("SECRET", "ghp_"+rand.Text()+rand.Text()[:10])
			identity, err := age.GenerateX25519Identity()
			if err != nil {
				return err
			}
			e.Setenv("RECIPIENT", identity.Recipient().String())
			addHub(e)
			return beSomebody(e.WorkDir + "/home")
		},
		Condition: func(name string) (bool, error) {
			if name != "sandbox" {
				return false, fmt.Errorf("no condition is called %q", name)
			}
			return hasSandbox(t.TempDir()), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"adds": patchThatAdds, "changes": patchThatChanges, "derive": deriveIDs, "hub": hubCommand, "repo": repoCommand, "txid": txID, "commit": commitID, "signs": signsCommand, "prints": s.prints,
			"reads": func(ts *testscript.TestScript, _ bool, args []string) {
				raw := []byte(ts.ReadFile(args[1]))
				if path.Ext(args[1]) == ".yml" {
					var err error
					raw, err = yaml.YAMLToJSON(raw)
					ts.Check(err)
				}
				ts.Check(s.accept(args[0], raw))
			},
			"ledger": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(s.ledger(ts.MkAbs("."))) },
			"directory": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(s.files(os.DirFS(ts.MkAbs(args[0]))))
			},
		},
	})
}

func (s *schemas) prints(ts *testscript.TestScript, _ bool, args []string) {
	code, out, errs := inScript(ts, append([]string{"--json"}, args[2:]...)...)
	if strconv.Itoa(code) != args[1] {
		ts.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	if args[0] != "nothing" {
		ts.Check(canonicalLine(out))
		ts.Check(s.accept(args[0], []byte(out)))
	} else if out != "" {
		ts.Fatalf("stdout: %s", out)
	}
	if code == 0 {
		return
	}
	lines := strings.SplitAfter(strings.TrimSuffix(errs, "\n"), "\n")
	last := lines[len(lines)-1] + "\n"
	ts.Check(canonicalLine(last))
	ts.Check(s.accept("error", []byte(last)))
	if !strings.Contains(last, fmt.Sprintf(`"exit":%d`, code)) {
		ts.Fatalf("exit code %d, but %s", code, last)
	}
}

// canonicalLine: --json prints one canonical document and one LF.
func canonicalLine(text string) error {
	doc, err := canon.Parse([]byte(text))
	if err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	if line, err := canon.Line(doc); err != nil || string(line) != text {
		return fmt.Errorf("not canonical: %s", text)
	}
	return nil
}

func (s *schemas) ledger(dir string) error {
	repo, err := gitstore.Open(dir)
	if err != nil {
		return err
	}
	store, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	if err != nil {
		return err
	}
	snap, err := store.Snapshot(context.Background())
	if err != nil {
		return err
	}
	return s.files(snap.Tree)
}

// exported tells a transaction's directory from a ledger.
func exported(tree fs.FS) bool {
	_, err := fs.Stat(tree, ledger.TransactionFile)
	return err == nil
}

// files validates every JSON document of a tree; one that has no schema is an
// error.
func (s *schemas) files(tree fs.FS) error {
	return fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		base := path.Base(name)
		switch {
		case base == "README.md" || path.Ext(base) == ".diff" || path.Ext(base) == ".age":
			return nil
		case name == ledger.LedgerEventsFile && !exported(tree):
			return s.accept("ledger_event", raw)
		case base == "events.jsonl":
			for line := range bytes.Lines(raw) {
				if err := s.accept("event", line); err != nil {
					return err
				}
			}
			return nil
		case strings.HasPrefix(name, "denied/"):
			return s.accept("denial", raw)
		case strings.HasPrefix(name, "proposed/"):
			return s.accept("listed", raw)
		case path.Base(path.Dir(name)) == "artifacts":
			return s.artifact(raw)
		}
		return s.accept(strings.TrimSuffix(base, ".json"), raw)
	})
}

// artifact validates one, and the Policy that one holds as text.
func (s *schemas) artifact(raw []byte) error {
	var doc struct {
		Schema string
		Policy any
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return err
	}
	kind := path.Base(path.Dir(doc.Schema))
	err := s.accept("artifact_"+kind, raw)
	if err == nil && kind == "policy" {
		err = s.accept("policy_recorded", []byte(doc.Policy.(string)))
	}
	return err
}

// beyond are the rules of the verifiers that a schema cannot state: an order, a
// sum, a value that is used once.
var beyond = regexp.MustCompile(`^(PS5|PS8|PR4|PR7|PR11|AS2) |^PS7 .* does not match`)

// vectors: of the recorded documents a schema accepts what the format's verifier
// accepts, and refuses what breaks a rule that it can state; the recorded
// results are ApplyResults.
func (s *schemas) vectors(t *testing.T) {
	for name, file := range map[string]string{
		"patch": "document/testdata/patch.json", "apply_result": "document/testdata/apply_result.json",
		"proposal": "document/testdata/vectors.json",
	} {
		raw, err := os.ReadFile("../../pipeline/" + file)
		check(t, err)
		var cases []struct {
			Name     string
			Input    string `json:"input_json"`
			Expected struct {
				OK         bool
				Violations []struct {
					RuleID  string `json:"rule_id"`
					Message string
				}
			}
		}
		check(t, json.Unmarshal(raw, &cases))
		for _, c := range cases {
			refuse := false
			for _, v := range c.Expected.Violations {
				refuse = refuse || !beyond.MatchString(v.RuleID+" "+v.Message)
			}
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(c.Input))
			check(t, err)
			if name == "proposal" { // the schema wants every field, as review does and the reference does not
				parsed, err := canon.Parse([]byte(c.Input))
				check(t, err)
				refuse = refuse || slices.ContainsFunc(document.VerifyStrict(parsed, document.Strict{}), func(v canon.Violation) bool {
					return v.RuleID == "SCHEMA"
				})
			}
			err = s.compiled[name].Validate(doc)
			if c.Expected.OK && !refuse && err != nil || refuse && err == nil {
				t.Errorf("%s.json, %s: %v\n%s", name, c.Name, err, c.Input)
			}
		}
	}
	raw, err := os.ReadFile("testdata/vectors/apply.json")
	check(t, err)
	var cases []packCase
	check(t, json.Unmarshal(raw, &cases))
	for _, c := range cases {
		if c.Expected.Stdout != "" {
			check(t, s.accept("apply_result", []byte(c.Expected.Stdout)))
		}
	}
}

// A refusedRow edits real documents that hold a text, of which … leaves out a part, at one place; without a value that place is removed. The schema refuses each
// of them then.
type refusedRow struct {
	Why, Schema, Holds, At string
	Value                  any
}

func (s *schemas) rows(t *testing.T) {
	raw, err := os.ReadFile("testdata/schema/refused.json")
	check(t, err)
	var rows []refusedRow
	check(t, json.Unmarshal(raw, &rows))
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r.Schema] = true
		edited, taken := 0, 0
		for _, doc := range s.holding(r.Schema, r.Holds) {
			if doc, ok := edit(doc, strings.Split(r.At, "/")[1:], r.Value); ok {
				edited++
				if s.compiled[r.Schema].Validate(doc) == nil {
					taken++
				}
			}
		}
		if edited == 0 {
			t.Errorf("%s.json: the row %q changes nothing", r.Schema, r.Why)
		} else if taken > 0 {
			t.Errorf("%s.json accepts %s: %s is %v in %d of %d documents", r.Schema, r.Why, r.At, r.Value, taken, edited)
		}
	}
	for name := range s.compiled {
		if !seen[name] {
			t.Errorf("refused.json has no row for %s.json", name)
		}
	}
}

func (s *schemas) holding(name, text string) (docs []any) {
	for _, doc := range s.accepted[name] {
		raw, err := json.Marshal(doc)
		rest, found := string(raw), err == nil
		for part := range strings.SplitSeq(text, "…") {
			if found {
				_, rest, found = strings.Cut(rest, part)
			}
		}
		if found {
			docs = append(docs, doc)
		}
	}
	return docs
}

// edit is a document with another value at a place, and whether it has that place and another value there.
func edit(doc any, at []string, value any) (any, bool) {
	if len(at) == 0 {
		return value, !reflect.DeepEqual(doc, value)
	}
	switch doc := doc.(type) {
	case []any:
		i, err := strconv.Atoi(at[0])
		if err != nil || i >= len(doc) {
			return nil, false
		}
		list, ok := slices.Clone(doc), false
		list[i], ok = edit(list[i], at[1:], value)
		return list, ok
	case map[string]any:
		m, ok := maps.Clone(doc), false
		if m[at[0]], ok = edit(m[at[0]], at[1:], value); len(at) == 1 && value == nil {
			delete(m, at[0])
		}
		return m, ok
	}
	return nil, false
}

// mutants: whatever is added to a real document, left out of it, given another
// type or made a bad hash is refused, but for what testdata/schema/survivors.list
// lists.
func (s *schemas) mutants(t *testing.T) {
	raw, err := os.ReadFile("testdata/schema/survivors.list")
	check(t, err)
	listed := map[string]bool{} // true once it was found
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			name, rare := strings.CutPrefix(line, "? ") // of documents that not every run has
			listed[name] = rare
		}
	}
	tried := 0
	seen := map[string]bool{}
	for name, docs := range s.accepted {
		for _, doc := range docs {
			shape := name + shapeOf(doc)
			if seen[shape] {
				continue // its mutants were tried on another
			}
			seen[shape] = true
			mutate(doc, "", func(what string, mutant any) {
				tried++
				if s.compiled[name].Validate(mutant) != nil {
					return
				}
				what = strings.TrimSpace(name + " " + what)
				if _, known := listed[what]; !known {
					t.Errorf("survives: %s", what)
				}
				listed[what] = true
			})
		}
	}
	for what, found := range listed {
		if !found {
			t.Errorf("survivors.list: %s does not survive", what)
		}
	}
	t.Logf("%d mutants", tried)
}

// telling are the members whose values decide which rules hold for the rest.
var telling = []string{
	"type", "kind", "status", "decision", "schema", "verdict", "outcome", "mode", "op", "from", "to", "when", "success", "state", "shell", "required", "ok",
}

// shapeOf is what mutate sees of a document: its members and their types, and
// the values that are telling.
func shapeOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var b strings.Builder
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if strings.Contains(key, "/") || strings.Contains(key, ".") {
				b.WriteString("path " + shapeOf(v[key]) + ";")
				continue
			}
			b.WriteString(key + " " + shapeOf(v[key]) + ";")
			if slices.Contains(telling, key) {
				fmt.Fprintf(&b, "%v;", v[key])
			}
		}
		return "{" + b.String() + "}"
	case []any:
		shapes := map[string]bool{}
		for _, one := range v {
			shapes[shapeOf(one)] = true
		}
		return fmt.Sprint(slices.Sorted(maps.Keys(shapes)))
	case string:
		if m := hashText.FindStringSubmatch(v); m != nil {
			return m[1] + "hash" + m[3]
		}
		return fmt.Sprint(v == "")
	}
	return fmt.Sprintf("%T", v)
}

var hashText = regexp.MustCompile(`^(sha256:|patchset:|patches/|artifacts/)?([0-9a-f]{64}|[0-9a-f]{40})(\.[a-z]+)?$`)

// mutate yields copies of a document that differ from it in one place, and says
// how: "add", "remove", "retype" or "hash", and where.
func mutate(v any, at string, yield func(what string, mutant any)) {
	switch v := v.(type) {
	case map[string]any:
		yield("retype "+at, []any{})
		yield("add "+at, with(v, "another", map[string]any{}))
		if at == "/policy" {
			return // of policy check --json; Policies are tried by themselves
		}
		for key, value := range v {
			below := at + "/" + key
			if strings.HasSuffix(at, "_by_path") {
				below = at + "/*"
			}
			without := maps.Clone(v)
			delete(without, key)
			yield("remove "+below, without)
			mutate(value, below, func(what string, m any) { yield(what, with(v, key, m)) })
		}
	case []any:
		yield("retype "+at, map[string]any{})
		if at == "/events" {
			return // of log --json; events are tried by themselves
		}
		for i, value := range v {
			mutate(value, at+"/*", func(what string, m any) {
				list := slices.Clone(v)
				list[i] = m
				yield(what, list)
			})
		}
	case string:
		yield("retype "+at, []any{})
		if m := hashText.FindStringSubmatch(v); m != nil {
			yield("hash "+at, m[1]+m[2][1:]+m[3])
			yield("hash "+at, m[1]+"G"+m[2][1:]+m[3])
		}
	default:
		yield("retype "+at, []any{})
	}
}

func with(m map[string]any, key string, value any) map[string]any {
	m = maps.Clone(m)
	m[key] = value
	return m
}

// readme: the table lists every schema.
func (s *schemas) readme(t *testing.T) {
	raw, err := os.ReadFile(schemaDir + "/README.md")
	check(t, err)
	for _, name := range append(slices.Sorted(maps.Keys(s.compiled)), "common", "schema") {
		if strings.Count(string(raw), "["+name+".json]("+name+".json)") != 1 {
			t.Errorf("README.md does not list %s.json once", name)
		}
	}
	if n := strings.Count(string(raw), ".json)"); n != len(s.compiled)+2 {
		t.Errorf("README.md lists %d files, there are %d", n, len(s.compiled)+2)
	}
}
