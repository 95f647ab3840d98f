package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestCanonVectors(t *testing.T) {
	raw, err := os.ReadFile("../../pipeline/record/canon/testdata/canonical.json")
	check(t, err)
	var cases []struct {
		Name, Canonical, SHA256 string
		Input                   string `json:"input_json"`
		ID                      string `json:"prop_id"`
	}
	check(t, json.Unmarshal(raw, &cases))
	for _, c := range cases {
		for flags, want := range map[string]string{"": c.Canonical, "--hash": c.SHA256, "--id prop": c.ID} {
			code, out, errs := inProcess(c.Input, append([]string{"canon", "-"}, strings.Fields(flags)...)...)
			if code != 0 || out != want+"\n" || errs != "" {
				t.Errorf("%s %s: exit %d, stderr %q, got %q, want %q", c.Name, flags, code, errs, out, want+"\n")
			}
		}
	}
}

func TestCanonErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	check(t, os.WriteFile("f", []byte(`{"b":1.0,"a":[]}`), 0o666))
	for _, c := range []struct {
		args []string
		code int
		out  string
		errs string
	}{
		{[]string{"f"}, 0, `{"a":[],"b":1}` + "\n", ""},
		{[]string{"nowhere"}, 3, "", "nowhere: no such file or directory"},
		{[]string{"."}, 3, "", ".: is a directory"},
		{[]string{"-"}, 2, "", "standard input: invalid JSON at byte 0: unexpected end"},
		{nil, 2, "", "no document given"},
		{[]string{"f", "--hash", "--id", "x"}, 2, "", "both --hash and --id were given"},
		{[]string{"f", "--id", ""}, 2, "", "--id is given, and empty"},
	} {
		code, out, errs := inProcess("", append([]string{"canon"}, c.args...)...)
		if code != c.code || out != c.out || c.errs != "" && !strings.HasPrefix(errs, "countersign: error: "+c.errs) {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", c.args, code, out, errs)
		}
	}
}
