package input_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
)

// TestGHAW: the one change that an agent's output asks for, and its patch.
func TestGHAW(t *testing.T) {
	mail := func(name string) []byte {
		return []byte("From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001\nFrom: Agent <agent@example.org>\nDate: Tue, 24 Nov 2026 10:00:00 +0000\nSubject: [PATCH] " + name +
			"\n\n---\ndiff --git a/" + name + " b/" + name + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+" + name + "\n")
	}
	one, two := map[string][]byte{"aw-a.patch": mail("a")}, map[string][]byte{"aw-a.patch": mail("a"), "aw-b.patch": mail("b")}
	for _, c := range []struct {
		output, summary string
		patches         map[string][]byte
		want            map[string]string
		err             string
	}{
		{`{"items":[{"type":"create_pull_request","title":"T"}]}`, "T", one, map[string]string{"a": "a\n"}, ""},
		{`{"items":[{"type":"push_to_pull_request_branch","message":"M","patch_path":"/tmp/gh-aw/aw-b.patch"},{"type":"add_comment"}]}`, "M", two, map[string]string{"b": "b\n"}, ""},
		{`{"items":[{"type":"create_pull_request"}]}`, "a", map[string][]byte{"aw.patch": append(mail("a"), mail("b")...)}, map[string]string{"a": "a\n", "b": "b\n"}, ""},
		{`{"items":[{"type":"create_pull_request","patch_path":"../../etc/aw-z.patch"}]}`, "", two, nil, `"aw-z.patch"`},
		{`{"items":[{"type":"create_pull_request","patch_path":7}]}`, "", one, nil, "is not there"},
		{`{"items":[{"type":"create_pull_request"}]}`, "", two, nil, "which patch"},
		{`{"items":[{"type":"create_pull_request"}]}`, "", nil, nil, "patch-format: am"},
		{`{"items":[{"type":"create_pull_request"},{"type":"push_to_pull_request_branch"}]}`, "", one, nil, "two changes"},
		{`{"items":[{"title":"T"}]}`, "", one, nil, "no type"}, {`{"items":["x"]}`, "", one, nil, "no type"},
		{`{"items":{}}`, "", one, nil, "no list"}, {`[]`, "", one, nil, "no list"}, {`{}`, "", one, nil, "no list"}, {`{"items":[]}`, "", one, nil, "no change"},
		{`{`, "", one, nil, "agent_output.json"},
	} {
		in, _, err := input.GHAW([]byte(c.output), c.patches, "")
		var got map[string]string
		if err == nil {
			got, err = after(nil, in)
		}
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, want %q\n%s", err, c.err, c.output)
			}
		case err != nil || !maps.Equal(got, c.want) || in.Summary != c.summary || in.Format != "gh-aw":
			t.Errorf("%q, %v, %+v\n%s", got, err, in, c.output)
		}
	}
}
