package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// The packages' recorded answers, through the command.
func TestVerifyVectors(t *testing.T) {
	for noun, file := range map[string]string{
		"patch": "document/testdata/patch.json", "result": "document/testdata/apply_result.json",
		"proposal": "document/testdata/vectors.json",
	} {
		raw, err := os.ReadFile("../../pipeline/" + file)
		check(t, err)
		var cases []struct {
			Name     string
			Input    string `json:"input_json"`
			Expected map[string]any
		}
		check(t, json.Unmarshal(raw, &cases))
		for _, c := range cases {
			t.Run(noun+"/"+c.Name, func(t *testing.T) {
				want, err := canon.Line(c.Expected)
				check(t, err)
				code, out, errs := inProcess(c.Input, noun, "verify", "-")
				exit := 3
				if c.Expected["ok"] == true {
					exit = 0
				}
				if code != exit || out != string(want) || (errs == "") != (exit == 0) {
					t.Errorf("exit %d, stderr %q\n got %s\nwant %s", code, errs, out, want)
				}
			})
		}
	}
}

const (
	hello = `{"acceptance_tests":[],"actions":[{"content":"hello\n","description":"Say hello.",` +
		`"id":"act_cd8da12f774313b8","order":0,"required":true,"target":"hello.txt","type":"create_file"}],` +
		`"confidence":90,"id":"prop_bc4cd7dd71f288f2","requires_approval":true,"schema_version":"1.0.0",` +
		`"source_bundle_hash":"sha256:d7c0d128c186bb3ec7961400a98115fea6bd8b15aaee60ddc78d68c56012b1ee",` +
		`"source_bundle_id":"bun_0123456789abcdef","summary":"Add a greeting."}`
	bundle   = `{"files":[],"id":"bun_0123456789abcdef"}`
	onePatch = `{"patch_schema_version":"1","source_proposal_id":"p","source_proposal_hash":"h",` +
		`"operations":[{"op":"create","path":"a","content":"xyz"}],"total_bytes":3}`
	oneResult = `{"apply_schema_version":"1.0.0","dry_run":false,"operation_results":[{"after_hash":null,"before_hash":null,` +
		`"bytes_written":0,"op":"delete","path":"a","status":"success"}],"outcome":"SUCCESS","patch_source":` +
		`{"proposal_hash":"","proposal_id":""},"summary":{"failed":0,"skipped":0,"succeeded":1,"total_bytes_written":0,` +
		`"total_operations":1},"target_root":"."}`
)

func TestVerifyCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"proposal": hello, "bundle": bundle, "patch": onePatch, "result": oneResult, "bad": "{", "null": "null",
		"ids": strings.Replace(hello, "Say hello", "Say hi", 1), "no-patch": `{"operations":[]}`,
		"surrogate": strings.Replace(onePatch, `"op":"create"`, `"op":"\ud800"`, 1),
	} {
		check(t, os.WriteFile(name, []byte(text), 0o666))
	}
	for _, c := range []struct {
		args      string
		code      int
		out, errs string // parts
	}{
		{"patch verify patch", 0, `{"ok":true}` + "\n", ""},
		{"patch verify patch --max-bytes 3", 0, `{"ok":true}` + "\n", ""},
		{"patch verify patch --max-bytes 2", 3, `"message":"total_bytes (3) exceeds limit (2)"`, "patch: 1 violations"},
		{"patch verify surrogate", 3, `invalid operation type: \ud800`, "surrogate: 1 violations"},
		{"patch verify null", 3, `patch must be object, got null`, "null: 1 violations"},
		{"patch verify bad", 2, "", "bad: invalid JSON at byte 1: expected a key"},
		{"patch verify nowhere", 1, "", "nowhere: no such file or directory"},
		{"patch verify .", 1, "", ".: is a directory"},
		{"patch verify", 2, "", "no document given"},
		{"patch verify patch result", 2, "", `unexpected argument "result"`},
		{"patch verify -", 2, "", "standard input: invalid JSON"},
		{"result verify result", 0, `{"ok":true}` + "\n", ""},
		{"result verify result --patch patch", 0, `{"ok":true}` + "\n", ""},
		{"result verify result --patch no-patch", 3, `path in result but not in patch: a","path":"a","rule_id":"AS6"`, "result: 1 violations"},
		{"result verify result --patch null", 3, "AS6", "result: 1 violations"},
		{"result verify result --patch bad", 2, "", "bad: invalid JSON"},
		{"result verify result --patch nowhere", 1, "", "nowhere: no such file"},
		{"proposal verify proposal --strict --bundle bundle", 0, `{"ok":true}` + "\n", ""},
		{"proposal verify proposal --bundle patch", 3, "ID4", "proposal: 1 violations"},
		{"proposal verify ids", 0, `{"ok":true}` + "\n", ""},
		{"proposal verify ids --bundle bundle", 0, `{"ok":true}` + "\n", ""},
		{"proposal verify ids --strict", 3, "ID1", "ids: 1 violations"},
		{"proposal verify proposal --bundle nowhere", 1, "", "nowhere: no such file"},
	} {
		code, out, errs := inProcess("", strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out, c.out) || (out == "") != (c.out == "") {
			t.Errorf("%s: exit %d, stdout %q", c.args, code, out)
		}
		if (errs == "") != (c.errs == "") || c.errs != "" && !strings.HasPrefix(errs, "countersign: error: "+c.errs) {
			t.Errorf("%s: stderr %q", c.args, errs)
		}
	}
}

// Without a verb these print their help, and nothing fails.
func TestVerifyGroups(t *testing.T) {
	for _, noun := range []string{"patch", "result", "proposal", "pack"} {
		if code, out, _ := inProcess("", noun); code != 0 || !strings.Contains(out, "countersign "+noun) {
			t.Errorf("%s: exit %d, %s", noun, code, out)
		}
	}
}
