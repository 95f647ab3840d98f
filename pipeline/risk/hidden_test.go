package risk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// told are the details of a kind of risk in a new file of this name and content.
func told(t *testing.T, kind risk.Kind, name, content string) (out []string) {
	t.Helper()
	for _, r := range risk.Of(between(t, nil, map[string]*patch.File{name: text(content)}), nil) {
		if r.Kind == kind {
			out = append(out, r.Detail)
		}
	}
	return out
}

// T75 Characters that pass for ASCII's are told wherever they stand, also as signs, and
// prose in which they are at home is left alone.
func TestT75Lookalikes(t *testing.T) {
	for _, r := range "\u01C3\u037E\u2215\u2044\uFF0E\uFF0F\uFF20\u217D\u2113\u212A\uFB01\uFF41\uFF11\U0001D41A\u0430\u03BF\uA4EE\uA4D0\u2C9F\u1D04\u2212\u2A75\u0338" {
		want := []string{fmt.Sprintf("<U+%04X>", r)}
		for _, line := range []string{"if a " + string(r) + " b", "x = 1 // (" + string(r) + ") ж 字"} {
			if got := told(t, risk.Lookalike, "f", line+"\n"); !slices.Equal(got, want) {
				t.Errorf("%q: %q", line, got)
			}
		}
		got := told(t, risk.Lookalike, "d/a."+string(r)+"b", "")
		if want[0] += " in its name"; !slices.Equal(got, want) {
			t.Errorf("name with %U: %q", r, got)
		}
	}
	for _, r := range "；！，（" {
		if got := told(t, risk.Lookalike, "f", "a"+string(r)+"b\n"); len(got) != 1 {
			t.Errorf("%q: %q", r, got)
		}
	}
	for line, want := range map[string]string{
		"var 𝐚𝐝 = 1 // a":  "<U+1D41A><U+1D41D>",
		"var ａｄ = 1 // 字":  "<U+FF41><U+FF44>",
		"x = сору // жж":   "<U+0441><U+043E><U+0440><U+0443>",
		"сору(жж)":         "<U+0441><U+043E><U+0440><U+0443>",
		"x = gitж сору":    "<U+0441><U+043E><U+0440><U+0443>",
		"cafe\u0301 = 1":   "cafe<U+0301>",
		"a =\u0338 b":      "<U+0338>",
		"environmentǃ=LIV": "environment<U+01C3>",
		"ＡＢad":             "<U+FF21><U+FF22>ad",
	} {
		if got := told(t, risk.Lookalike, "f", line+"\n"); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: %q, want %s", line, got, want)
		}
	}
	for _, line := range []string{
		"// Он, а не она: «а» и о", "中文（English），使用 foo；好！", "Ａ社の１０月", "x² + y³ … ½ ① ™ 1ª nº", "naïve café 한국어 ру́сский", "α β", "हिन्दी ไทย עברית",
		"日本語のtext", "“quoted” – it’s", "Это просто слово а", "ὁ δὲ υἱός",
	} {
		if got := told(t, risk.Lookalike, "f", line+"\n"); got != nil {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// T75 Blanks that are no spaces by their class are told, as is text that blanks push
// out of sight, and text that is shown in another order.
func TestT75OutOfSight(t *testing.T) {
	for _, r := range "\U00013441\U00013442\U0001D159\U00016FE4\u3164\uFFA0\u115F\u1160\u2800\u00A0\u3000\uFFFC\u200B\u2066\U000E0041" {
		if got, want := told(t, risk.Hidden, "f", "a"+string(r)+"b\n"), fmt.Sprintf("U+%04X", r); !slices.Equal(got, []string{want}) {
			t.Errorf("%U: %q", r, got)
		}
	}
	const beside, below, reordered = "text behind columns of blanks", "text below blank lines", "right-to-left letters reorder the line"
	blanks := strings.Repeat(" ", 40)
	for content, want := range map[string]string{
		"a;" + blanks + "b":                               beside,
		"a;" + blanks[1:] + "b":                           "",
		"a;" + blanks:                                     "",
		"a;\t\t\t\t\tb":                                   "", // 38 columns
		"a\t\t\t\t\t\tb":                                  beside,
		"a" + strings.Repeat(" \t", 5) + "b":              "",
		"a" + strings.Repeat(" \t", 6) + "b":              beside,
		blanks + blanks[1:] + "b":                         "", // indented
		blanks + blanks + "b":                             beside,
		strings.Repeat("\t", 10) + "b":                    beside,
		"a" + strings.Repeat("\n", 25) + "b":              below,
		"a" + strings.Repeat("\n \t", 24) + "\nb":         below,
		"a" + strings.Repeat("\n", 24) + "b":              "",
		"a" + strings.Repeat("\n", 60):                    "",
		"a" + strings.Repeat("\n", 20) + "b\n\n\n\n\n\nc": "",
		`x = "א" + 1 - "ב"`:                               reordered,
		"א = 5":                                           reordered,
		"// שלום, עולם 2024":                              "",
		`s := "שלום" + name + "עולם"`:                     "",
		"rm a \\ \n\tb":                                   "blanks behind a final backslash",
		"rm a \\\n\tb":                                    "",
		"#!/usr/bin/python\n# -*- coding: utf_7 -*-":      "it is read as utf_7",
		"# vim: set fileencoding=rot13 :":                 "it is read as rot13",
		"# -*- coding: UTF-8 -*-":                         "",
		"\n\n# coding: utf-7":                             "",
		"x[ab] = é + 5":                                   "",
	} {
		got := strings.Join(told(t, risk.Hidden, "f", content+"\n"), "; ")
		if got != want {
			t.Errorf("%q: %q, want %q", content, got, want)
		}
	}
	if got := told(t, risk.Hidden, "a"+blanks+".sh", ""); !slices.Equal(got, []string{beside + " in its name"}) {
		t.Errorf("%q", got)
	}
	if got := told(t, risk.Hidden, "א=5.sh", ""); !slices.Equal(got, []string{"right-to-left letters reorder its name"}) {
		t.Errorf("%q", got)
	}
}

// T75 A carriage return that hides what is before it is told apart from the ends of lines,
// words that are not named are counted, and white space that moves the ends of lines is
// told as that.
func TestT75Apart(t *testing.T) {
	if got := told(t, risk.Hidden, "f", "a\r\nevil\rgood\r\nb\r\n"); !slices.Equal(got, []string{`\x0d`, "a carriage return within the line"}) {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		before, after string
		want          bool
	}{{"a\r\nb\r\n", "a\r\nc\r\n", false}, {"a\r\nb\r\n", "a\r\nc", false}, {"a\nb\n", "a\nc\r\n", true}, {"a\r\nb\r\n", "a\r\nx\rc\r\n", true}, {"a\nb\n", "a\r\nc\r\n", true}} {
		list := risk.Of(between(t, map[string]*patch.File{"f": text(c.before)}, map[string]*patch.File{"f": text(c.after)}), nil)
		if got := slices.ContainsFunc(list, func(r risk.Risk) bool { return r.Kind == risk.Hidden }); got != c.want {
			t.Errorf("%q to %q: %s", c.before, c.after, lines(list))
		}
	}
	got := told(t, risk.Lookalike, "f", "1а 2а 3а 4а 5а 6а 7а 7а\n")
	if len(got) != 1 || !strings.HasSuffix(got[0], "5<U+0430> and 2 more") {
		t.Errorf("%q", got)
	}
	for after, want := range map[string]string{"# a\nb\n": "lines end elsewhere", "# a  b\n": "", "#  ab": "", "\n# a b\r\n": "line endings become CRLF"} {
		list := risk.Of(between(t, map[string]*patch.File{"f": text("# a b\n")}, map[string]*patch.File{"f": text(after)}), nil)
		if list[0].Kind != risk.Whitespace || list[0].Detail != want {
			t.Errorf("%q: %s, want %s", after, lines(list), want)
		}
	}
	for _, name := range []string{"vendor/a/b.go", "x/node_modules/y.js", "api.pb.go", "a_pb2.py", "Form.Designer.cs", "zz_generated.deepcopy.go", "a.generated.ts", "web/dist/a.js"} {
		if got := told(t, risk.Generated, name, "x\n"); !slices.Equal(got, []string{"generated or copied, by its name"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
