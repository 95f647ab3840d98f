package input_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// mail is what "git format-patch" writes of a commit that adds a file with its name in it.
func mail(name string) []byte {
	return []byte("From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001\nFrom: Agent <agent@example.org>\nDate: Tue, 24 Nov 2026 10:00:00 +0000\nSubject: [PATCH] " + name +
		"\n\n---\ndiff --git a/" + name + " b/" + name + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+" + name + "\n")
}

// TestGHAW: the one change that an agent's output asks for, and the patch that goes with
// it. gh-aw names that after the branch.
func TestGHAW(t *testing.T) {
	one, two := []string{"aw-a.patch"}, []string{"aw-a.patch", "aw-b.patch"}
	for _, c := range []struct {
		output, summary string
		names           []string
		want            map[string]string
		err             string
	}{
		{`{"items":[{"type":"create_pull_request","title":"T"}]}`, "T", one, map[string]string{"a": "a\n"}, ""},
		{`{"items":[{"type":"push_to_pull_request_branch","message":"M","patch_path":"/tmp/gh-aw/aw-b.patch"},{"type":"add_comment"}]}`, "M", two, map[string]string{"b": "b\n"}, ""},
		{`{"items":[{"type":"create_pull_request","branch":"b"}]}`, "b", two, map[string]string{"b": "b\n"}, ""},
		{`{"items":[{"type":"create_pull_request","branch":"Fix//the: \"b\"/","repo":"Acme/Site"}]}`, "b", []string{"aw-a.patch", "aw-acme-site-fix-the- -b.patch", "aw-fix-the- -b.patch"}, map[string]string{"b": "b\n"}, ""},
		{`{"items":[{"type":"create_pull_request","branch":"Fix/b","repo":"Acme/Site"}]}`, "b", []string{"aw-a.patch", "aw-fix-b.patch", "aw-fallback.bundle"}, map[string]string{"b": "b\n"}, ""},
		{`{"items":[{"type":"create_pull_request"}]}`, "ab", []string{"aw.patch"}, map[string]string{"a": "a\n", "b": "b\n"}, ""},
		{`{"items":[{"type":"create_pull_request","patch_path":"../../etc/aw-z.patch"}]}`, "", two, nil, `"aw-z.patch"`},
		{`{"items":[{"type":"create_pull_request","patch_path":7}]}`, "", one, nil, "is not there"},
		{`{"items":[{"type":"create_pull_request","patch_path":"agent_output.json"}]}`, "", []string{"agent_output.json"}, nil, "is not there"},
		{`{"items":[{"type":"create_pull_request","branch":"c"}]}`, "", two, nil, "which patch"},
		{`{"items":[{"type":"create_pull_request"}]}`, "", []string{"aw-a.bundle", "aw-b.bundle"}, nil, "which bundle goes with the item is not told, of aw-a.bundle, aw-b.bundle"},
		{`{"items":[{"type":"create_pull_request"}]}`, "", nil, nil, "neither aw-*.patch nor aw-*.bundle"},
		{`{"items":[{"type":"create_pull_request"},{"type":"push_to_pull_request_branch"}]}`, "", one, nil, "two changes"},
		{`{"items":[{"title":"T"}]}`, "", one, nil, "no type"}, {`{"items":["x"]}`, "", one, nil, "no type"},
		{`{"items":{}}`, "", one, nil, "no list"}, {`[]`, "", one, nil, "no list"}, {`{}`, "", one, nil, "no list"}, {`{"items":[]}`, "", one, nil, "no change"},
		{`{`, "", one, nil, "agent_output.json"}, {strings.Repeat("[", 1<<20), "", one, nil, "agent_output.json"},
	} {
		asked, err := input.ReadGHAW([]byte(c.output))
		var in input.Change
		var got map[string]string
		if err == nil {
			var name string
			if name, _, err = asked.Files(c.names); err == nil {
				raw := map[string][]byte{"aw-a.patch": mail("a"), "aw.patch": append(mail("a"), mail("b")...)}[name]
				if raw == nil {
					raw = mail("b")
				}
				in, err = asked.Change(raw, nil, "")
			}
		}
		if err == nil {
			got, err = after(nil, in)
		}
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, want %q\n%.200s", err, c.err, c.output)
			}
		case err != nil || !maps.Equal(got, c.want) || !strings.HasPrefix(c.summary, in.Summary) || in.Format != "gh-aw":
			t.Errorf("%q, %v, %+v\n%s", got, err, in, c.output)
		}
	}
}

// TestGHAWBundle: commits are a change to the files that they were made on and to no
// others, and the patch beside them must say the same.
func TestGHAWBundle(t *testing.T) {
	asked, err := input.ReadGHAW([]byte(`{"items":[{"type":"create_pull_request","branch":"fix"}]}`))
	fatal(t, err)
	patchName, bundleName, err := asked.Files([]string{"aw-fix.bundle", "aw-fix.patch", "aw-other.bundle"})
	if err != nil || patchName != "aw-fix.patch" || bundleName != "aw-fix.bundle" {
		t.Errorf("%q, %q, %v", patchName, bundleName, err)
	}
	file := func(data string) *patch.File { return &patch.File{Mode: patch.Regular, Data: []byte(data)} }
	commit := "tree 1234567890123456789012345678901234567890\nauthor %s\ncommitter C <c@example.org> 1 +0000\n\n%s\n\nWhy.\n"
	raw := func(who, subject string) []byte {
		return []byte(strings.NewReplacer("%s\nc", who+"\nc", "%s\n\n", subject+"\n\n").Replace(commit))
	}
	made := &input.Commits{
		Raw: []byte("bundle"), Base: strings.Repeat("1", 40),
		Set:  patch.Patchset{Changes: []patch.Change{{Kind: patch.Update, Path: "a", Before: file("1\n2\n3\n"), After: file("1\n2\n4\n")}}},
		List: [][]byte{raw("Agent X <agent@example.org> 1764000000 +0130", "First"), raw("Agent X <agent@example.org> 1764000001 +0000", "Second")},
	}
	diff := []byte("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -2,2 +2,2 @@\n 2\n-3\n+4\n")
	for _, c := range []struct {
		base map[string]string
		diff []byte
		err  string
	}{
		{map[string]string{"a": "1\n2\n3\n", "other": "o\n"}, nil, ""},
		{map[string]string{"a": "1\n2\n3\n"}, diff, ""},
		{map[string]string{"a": "0\n2\n3\n"}, nil, "a: is another file than in 111111111111"},
		{map[string]string{"a": "0\n2\n3\n"}, diff, "a: is another file than in 111111111111"}, // though the patch fits
		{map[string]string{"b": "1\n2\n3\n"}, nil, "is another file"},
		{map[string]string{"a": "1\n2\n3\n"}, []byte(strings.Replace(string(diff), "+4", "+5", 1)), "another change than the bundle"},
		{map[string]string{"a": "1\n2\n3\n"}, mail("b"), "another change than the bundle"},
		{map[string]string{"a": "1\n2\n3\n"}, []byte(strings.Replace(string(diff), "-3", "-9", 1)), "the patch beside the bundle: "},
	} {
		in, err := asked.Change(c.diff, made, "")
		fatal(t, err)
		got, err := after(c.base, in)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, want %q", err, c.err)
			}
		case err != nil || got["a"] != "1\n2\n4\n" || string(in.Raw) != "bundle" || in.Summary != "First":
			t.Errorf("%q, %v, %+v", got, err, in)
		case in.Author == nil || in.Author.Name != "Agent X" || in.Author.Email != "agent@example.org" || in.Author.Date != "2025-11-24T17:30:00+01:30":
			t.Errorf("the author is %+v", in.Author)
		}
	}
	for _, who := range []string{"", "A", "A <a@example.org>", "A <a@example.org> x +0000", "A <a@example.org> 1 UTC", "A <a@example.org> 99999999999999 +0000", "<a@example.org> 1 +0000", "A\x1b[1m <a@example.org> 1 +0000"} {
		made.List = [][]byte{raw(who, "S")}
		if in, err := asked.Change(nil, made, ""); err != nil || in.Author != nil {
			t.Errorf("%q: %+v, %v", who, in.Author, err)
		}
	}
	made.List = [][]byte{raw("A <a@example.org> 1 +0000", "S"), raw("B <b@example.org> 1 +0000", "S")}
	if in, err := asked.Change(nil, made, ""); err != nil || in.Author != nil {
		t.Errorf("of two authors one was taken: %+v, %v", in.Author, err)
	}
	if names := []string{"aw.patch", "aw-x.patch", "aw-x.bundle", "x.patch", "aw-x.json", "agent_output.json"}; !slices.Equal(slices.DeleteFunc(names, func(n string) bool { return !input.IsGHAWFile(n) }), []string{"aw.patch", "aw-x.patch", "aw-x.bundle"}) {
		t.Error(names)
	}
}
