package secret_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// change is a Patchset that turns one tree of files into another.
func change(t testing.TB, before, after map[string]string) patch.Patchset {
	t.Helper()
	base := fstest.MapFS{}
	files := map[string]*patch.File{}
	for name, data := range before {
		base[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
		files[name] = nil
	}
	for name, data := range after {
		files[name] = &patch.File{Mode: patch.Regular, Data: []byte(data)}
	}
	set, err := patch.NewTree(base).Between(files)
	fatal(t, err)
	return set
}

// redactDiff is Diff, with the checks that hold for every diff.
func redactDiff(t testing.TB, f redact.Finder, diff []byte) string {
	t.Helper()
	was := bytes.Clone(diff)
	out := f.Diff(diff)
	if !bytes.Equal(was, diff) {
		t.Error("the input was changed")
	}
	if again := f.Diff(out); !bytes.Equal(again, out) {
		t.Errorf("not idempotent:\n%.1000q\n%.1000q", out, again)
	}
	if !bytes.Contains(diff, []byte("GIT binary patch")) {
		samePrefixes(t, string(diff), string(out))
	}
	return string(out)
}

// keptWhole are the beginnings of lines that are never replaced.
var keptWhole = regexp.MustCompile(`^(@@ -\d{1,9}(,\d{1,9})? \+\d{1,9}(,\d{1,9})? @@|index [0-9a-f]{40}\.\.[0-9a-f]{40}( \d{6})?$)`)

// samePrefixes checks that every line of a text diff kept its first byte, and
// all of it if it is a hunk header or an index line.
func samePrefixes(t testing.TB, before, after string) {
	t.Helper()
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	if len(was) != len(is) {
		t.Fatalf("%d lines became %d:\n%.1000q", len(was), len(is), after)
	}
	for i := range was {
		kept := len(was[i]) == 0 || len(is[i]) > 0 && is[i][0] == was[i][0]
		kept = kept && strings.HasPrefix(is[i], keptWhole.FindString(was[i]))
		if !kept && !strings.HasPrefix(is[i], "<REDACTED:") {
			t.Errorf("line %d: %q became %q", i+1, was[i], is[i])
		}
	}
}

const tenLines = "line one\nline two\nline three\nline four\nline five\nline six\nline seven\nline eight\nline nine\nline ten\n"

// positions are patches that hold a text somewhere.
var positions = map[string]func(s string) (before, after map[string]string){
	"added line": func(s string) (_, _ map[string]string) {
		return map[string]string{"a.go": tenLines}, map[string]string{"a.go": strings.Replace(tenLines, "five\n", "five\n"+s+"\n", 1)}
	},
	"removed line": func(s string) (_, _ map[string]string) {
		return map[string]string{"a.go": strings.Replace(tenLines, "five\n", "five\n"+s+"\n", 1)}, map[string]string{"a.go": tenLines}
	},
	"context": func(s string) (_, _ map[string]string) {
		text := strings.Replace(tenLines, "five\n", "five\n"+s+"\n", 1)
		return map[string]string{"a.go": text}, map[string]string{"a.go": strings.Replace(text, "six", "6", 1)}
	},
	"new file": func(s string) (_, _ map[string]string) {
		return map[string]string{}, map[string]string{"a/new.lock": s}
	},
	"deleted file": func(s string) (_, _ map[string]string) {
		return map[string]string{"go.sum": "x " + s + "\n"}, nil
	},
	"binary": func(s string) (_, _ map[string]string) {
		return map[string]string{"a.png": "\x00\x01"}, map[string]string{"a.png": "\x89PNG\x00\xff\xfe " + s + " \x00\x00rest"}
	},
	"wide binary": func(s string) (_, _ map[string]string) {
		return nil, map[string]string{"a.bin": "MZ\x00\x00\xff" + string(teststand.Encodings(s)[13]) + "\xff"}
	},
	"Latin-1": func(s string) (_, _ map[string]string) {
		return map[string]string{"a": "caf\xe9\n"}, map[string]string{"a": "caf\xe9\n\xff\xfe" + " " + s + " \xe9\n"}
	},
	"base64": func(s string) (_, _ map[string]string) {
		return map[string]string{"a": "x\n"}, map[string]string{"a": "x\ny: " + planted(s)[1] + "\n"}
	},
}

// T47, T50: wherever in a patch a secret is, the diff does not show it.
func TestT47DiffPositions(t *testing.T) {
	for name, position := range positions {
		for _, s := range teststand.Samples() {
			before, after := position(s.Text())
			out := redactDiff(t, secret.Default(), change(t, before, after).Bytes())
			for _, line := range strings.Split(s.Value, "\n") {
				if len(line) > 20 && !strings.Contains(line, "-----") {
					absent(t, []byte(out), line)
				}
			}
			if strings.Contains(name, "binary") && !strings.Contains(out, "\n<REDACTED:") {
				t.Errorf("%s: %q", name, out)
			}
		}
	}
}

// T50: split over added lines, with removed lines in between.
func TestT50DiffSplit(t *testing.T) {
	for _, s := range teststand.Samples() {
		if strings.Contains(s.Value, "\n") {
			continue
		}
		half := len(s.Value) / 2
		for _, parts := range [][]string{
			{"s = \"" + s.Before + s.Value[:half] + "\" +", "    \"" + s.Value[half:] + s.After + "\""},
			{"s = `" + s.Before + s.Value[:half] + `\`, s.Value[half:] + s.After + "`"},
		} {
			after := "a\n" + parts[0] + "\nb\n"
			set := change(t, map[string]string{"f": "a\nold one\nold two\nb\n"}, map[string]string{"f": strings.Replace(after, "\nb\n", "\n"+parts[1]+"\nb\n", 1)})
			out := redactDiff(t, secret.Default(), set.Bytes())
			if strings.Contains(out, s.Value[:half]) || strings.Contains(out, s.Value[half:]) {
				t.Errorf("%s:\n%s", s.Kind, out)
			}
			if found := secret.Default().Patch(set); len(found) != 1 || found[0].Line != 2 || found[0].Path != "f" {
				t.Errorf("%s: %v", s.Kind, found)
			}
		}
	}
}

// T47: names, in every header line.
func TestT47DiffNames(t *testing.T) {
	for _, s := range teststand.Samples() {
		if s.Before != "" || strings.ContainsAny(s.Value, "\n:") || s.Kind == "azure client secret" {
			continue // no part of a name, or a rule that wants a quote beside it
		}
		for _, name := range []string{"dir/" + s.Value + ".txt", s.Value, `a "quoted" ` + s.Value} {
			set := change(t, map[string]string{"old": tenLines}, map[string]string{name: tenLines, "b": "b\n"})
			out := redactDiff(t, secret.Default(), set.Bytes())
			absent(t, []byte(out), s.Value)
			found := secret.Default().Patch(set)
			if len(found) != 1 || found[0].Line != 0 || strings.Contains(found[0].Path, s.Value) {
				t.Errorf("%s: %v", name, found)
			}
		}
	}
}

// T47: what follows a hunk header, and text that is no part of a diff.
func TestT47DiffElsewhere(t *testing.T) {
	for _, s := range teststand.Samples() {
		if strings.Contains(s.Value, "\n") {
			continue
		}
		for _, format := range []string{
			"@@ -1 +1 @@ func f(" + s.Text() + ")\n-a\n+b\n", "Subject: " + s.Text() + "\n\ndiff --git a/a b/a\n", "index " + s.Text() + "\n",
			"@@ -1,3 +1,3 @@\n " + s.Text(), "literal 5\n" + s.Text() + "\n\n", "+++ " + s.Text(), "@@ -1 +1 @@\n-a\n+b\n+" + s.Text() + "\n",
		} {
			absent(t, []byte(redactDiff(t, secret.Default(), []byte(format))), s.Value)
		}
	}
}

// A diff without a secret is not touched, whatever it is.
func TestT48Diff(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		before, after := randomText(r, 300), randomText(r, 20)
		set := change(t, map[string]string{"a": before, "b": after, "c": "c"}, map[string]string{"a": before[:len(before)/2] + after + before[len(before)/2:], "b.bin": "\x00" + before})
		if out := redactDiff(t, secret.Default(), set.Bytes()); out != string(set.Bytes()) {
			t.Fatalf("redacted:\n%s", out)
		}
		if found := secret.Default().Patch(set); found != nil {
			t.Fatal(found)
		}
	}
}

// A binary section that cannot be read is redacted whole.
func TestT50BrokenBinary(t *testing.T) {
	good := string(change(t, nil, map[string]string{"a": "\x00hello"}).Bytes())
	line := strings.Split(good, "\n")[5]
	for name, payload := range map[string]string{
		"alphabet": strings.Replace(line, line[3:4], `"`, 1), "length": line + "0", "zlib": "E" + strings.Repeat("0", 10), "text": "ghp",
	} {
		out := redactDiff(t, secret.Default(), []byte(strings.Replace(good, line, payload, 1)))
		if !strings.Contains(out, "\n<REDACTED:unscanned>\n\n") {
			t.Errorf("%s: %q", name, out)
		}
	}
	for _, header := range []string{"literal 9999999999", "literal 5", "delta 6"} {
		out := redactDiff(t, secret.Default(), []byte(strings.Replace(good, "literal 6", header, 1)))
		if !strings.Contains(out, header+"\n<REDACTED:unscanned>\n\n") {
			t.Errorf("%s: %q", header, out)
		}
	}
	if out := redactDiff(t, secret.Default(), []byte(good)); out != good {
		t.Errorf("a good one: %q", out)
	}
}

// A file that is a secret by its name.
func TestT46KeyStore(t *testing.T) {
	set := change(t, nil, map[string]string{"deploy/store.p12": "\x30\x82\x00"})
	out := redactDiff(t, secret.Default(), set.Bytes())
	if !strings.Contains(out, "\n<REDACTED:pkcs12-file>\n\n") {
		t.Errorf("%q", out)
	}
	if found := fmt.Sprint(secret.Default().Patch(set)); found != "[{deploy/store.p12 0 pkcs12-file} {deploy/store.p12 1 pkcs12-file}]" {
		t.Error(found)
	}
}
