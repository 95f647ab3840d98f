package pull

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// TestT22BundleTrace: a bundle's trace is steps, and nothing that is still to be made into
// steps; it names a format that there is, and none without a trace.
func TestT22BundleTrace(t *testing.T) {
	t.Parallel()
	diff := []byte("diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n")
	step := `{"exit_code":null,"status":"cancelled","tool":"shell"}` + "\n"
	for _, c := range []struct{ trace, format, err string }{
		{step, "", ""}, {step, input.TraceClaude, ""}, {"", "", ""},
		{step, "steps", "trace_format"}, {step, "auto", "trace_format"}, {"", input.TraceCodex, "trace_format"},
		{`{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}`, input.TraceClaude, "no step has the type"},
		{"a\n  k 1\n---\n" + `{"schema_version":"authorship/3.0.0"}`, input.TraceGitAI, "not a JSON object"},
		{"[" + step + "]", "", "not a JSON object"},
	} {
		b := NewBundle(input.Change{Kind: input.KindPatch}, diff, nil)
		b.Trace, b.TraceFormat = base64.StdEncoding.EncodeToString([]byte(c.trace)), c.format
		raw, err := canon.Line(b)
		if err != nil {
			t.Fatal(err)
		}
		in, err := readBundle(raw, policy.Default())
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q of %q: %v", c.trace, c.format, err)
			}
			continue
		}
		written, writeErr := input.WriteTrace(in.Trace)
		if err != nil || writeErr != nil || string(written) != c.trace || in.TraceFormat != c.format {
			t.Errorf("%q of %q: %q of %q, %v", c.trace, c.format, written, in.TraceFormat, err)
		}
	}
}

// TestNewerBundle: of a bundle of a later version nothing is taken, and it is not called broken; what may be passed over is.
func TestNewerBundle(t *testing.T) {
	t.Parallel()
	diff := []byte("diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n")
	raw, err := canon.Line(NewBundle(input.Change{Kind: input.KindPatch}, diff, nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"extra":    {`"kind"`, `"extra":{"weather":"rain"},"kind"`, "read"},
		"needs":    {`"schema"`, `"needs_version":"1.1","schema"`, "newer"},
		"schema":   {`bundle/1`, `bundle/2`, "newer"},
		"another":  {`bundle/1`, `bundle/0`, "refused"},
		"a member": {`"kind"`, `"friend":"x","kind"`, "refused"},
	} {
		_, err := readBundle([]byte(strings.Replace(string(raw), c.from, c.to, 1)), policy.Default())
		got := "refused"
		if err == nil {
			got = "read"
		} else if errors.As(err, new(*canon.NewerError)) {
			got = "newer"
		}
		if got != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
