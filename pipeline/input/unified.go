package input

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/patch"
)

// A plainFile is what a diff without "diff --git" lines says of one file.
type plainFile struct {
	line             int
	path             string
	added, gone, nil bool // nil: its hunk is about no line of the old file
	hunks            strings.Builder
	lines            []int // the number of each line of the hunks
}

// plain reads a unified diff as "diff -u" writes it, or a model that leaves Git's lines out
// (POSIX diff, "Diff -u Output Format").
func plain(raw []byte) ([]*plainFile, error) {
	var out []*plainFile
	var f *plainFile
	olds, news := 0, 0 // lines that the hunk still has
	was, number := "", 0
	for l := range strings.Lines(string(raw)) {
		number++
		fail := func(format string, args ...any) ([]*plainFile, error) {
			return nil, &patch.Error{Line: number, Message: fmt.Sprintf(format, args...)}
		}
		text := strings.TrimRight(l, "\r\n")
		switch {
		case olds > 0 || news > 0:
			switch l[0] {
			case '-':
				olds--
			case '+':
				news--
			case ' ', '\n', '\r':
				olds, news = olds-1, news-1
				if l[0] != ' ' {
					l = " " + l // an editor took the space away
				}
			case '\\':
			default:
				return fail("the hunk lacks lines")
			}
			if olds < 0 || news < 0 {
				return fail("the hunk has more lines than it says")
			}
			f.add(number, l)
		case strings.HasPrefix(l, "\\") && f != nil:
			f.add(number, l)
		case strings.HasPrefix(l, "--- "):
			was = text[4:]
		case strings.HasPrefix(l, "+++ ") && was != "":
			f = &plainFile{line: number - 1}
			if err := f.name(was, text[4:]); err != nil {
				return fail("%v", err)
			}
			out, was = append(out, f), ""
		case strings.HasPrefix(l, "@@ ") && f != nil && was == "":
			var err error
			if olds, news, err = counts(text); err != nil {
				return fail("%v", err)
			}
			f.nil = strings.HasPrefix(text, "@@ -0,0 ")
			f.add(number, l)
		case was != "":
			return fail("a \"---\" line without a \"+++\" line")
		case text == "", strings.HasPrefix(l, "diff "), strings.HasPrefix(l, "Index: "), strings.Trim(text, "=") == "":
		default:
			return fail("not a unified diff: unexpected text %+q", text[:min(len(text), 60)])
		}
	}
	if olds > 0 || news > 0 || was != "" || len(out) == 0 {
		return nil, &patch.Error{Line: number, Message: "the diff ends before it is whole"}
	}
	return out, nil
}

func (f *plainFile) add(number int, line string) {
	f.hunks.WriteString(line)
	f.lines = append(f.lines, number)
}

// name finds a file's path in what follows "---" and "+++", without the times behind a tab.
func (f *plainFile) name(was, is string) error {
	was, then, _ := strings.Cut(was, "\t")
	is, now, _ := strings.Cut(is, "\t")
	f.added = was == "/dev/null" || isEpoch(then)
	f.gone = is == "/dev/null" || isEpoch(now)
	a, hasA := strings.CutPrefix(was, "a/")
	b, hasB := strings.CutPrefix(is, "b/")
	if (hasA || was == "/dev/null") && (hasB || is == "/dev/null") {
		was, is = a, b
	}
	switch {
	case was == "/dev/null":
		f.path = is
	case is == "/dev/null", was == is:
		f.path = was
	default:
		return fmt.Errorf("the two names of a file, %+q and %+q, differ", was, is)
	}
	if f.path == "/dev/null" || f.added && f.gone {
		return fmt.Errorf("a file that is neither before nor after")
	}
	return nil
}

// isEpoch reports whether a time is what diff -N gives a file that is not there.
func isEpoch(date string) bool {
	return strings.HasPrefix(date, "1970-01-01 ") || strings.HasPrefix(date, "1969-12-31 ") || strings.HasPrefix(date, "Thu Jan  1 00:00:00 1970")
}

// counts are the numbers of lines that a hunk says it has.
func counts(head string) (olds, news int, err error) {
	fields := strings.Fields(head)
	if len(fields) < 4 || !strings.HasPrefix(fields[1], "-") || !strings.HasPrefix(fields[2], "+") || fields[3] != "@@" {
		return 0, 0, fmt.Errorf("%+q is not the head of a hunk", head[:min(len(head), 60)])
	}
	for i, to := range []*int{&olds, &news} {
		_, n, given := strings.Cut(fields[i+1], ",")
		if !given {
			n = "1"
		}
		if *to, err = strconv.Atoi(n); err != nil || *to < 0 {
			return 0, 0, fmt.Errorf("%+q is not the head of a hunk", head[:min(len(head), 60)])
		}
	}
	return olds, news, nil
}

// Unified reads a unified diff that lacks Git's lines. They are written, and the diff
// is then read as strictly as one of Git's.
func Unified(raw []byte, summary string) (Change, error) {
	files, err := plain(raw)
	if err != nil {
		return Change{}, err
	}
	return Change{Kind: KindPatch, Summary: summary, Raw: raw, Resolve: func(base fs.FS) (patch.Patchset, error) {
		var git strings.Builder
		lines := []int{0} // of the input, by that of what is written
		for _, f := range files {
			head, err := f.head(base)
			if err != nil {
				return patch.Patchset{}, err
			}
			git.WriteString(head + f.hunks.String())
			for range strings.Count(head, "\n") {
				lines = append(lines, f.line)
			}
			lines = append(lines, f.lines...)
		}
		diff, err := patch.Parse([]byte(git.String()))
		var set patch.Patchset
		if err == nil {
			set, err = diff.Resolve(base)
		}
		if e, is := err.(*patch.Error); is && e.Line < len(lines) { //nolint:errorlint // they are not wrapped
			err = &patch.Error{Line: lines[e.Line], Path: e.Path, Message: e.Message}
		}
		return set, err
	}}, nil
}

// head is what Git writes above the hunks of a file.
func (f *plainFile) head(base fs.FS) (string, error) {
	if err := patch.CheckPath(f.path); err != nil {
		return "", err
	}
	there, err := patch.Lookup(base, f.path)
	if err != nil {
		return "", err
	}
	out := "diff --git " + quoted("a/"+f.path) + " " + quoted("b/"+f.path) + "\n"
	a, b := mark("a/"+f.path), mark("b/"+f.path)
	switch {
	case f.added, f.nil && there == nil:
		out, a = out+"new file mode 100644\n", "/dev/null"
	case there == nil:
		return "", &patch.Error{Line: f.line, Path: f.path, Message: "does not exist in the base commit"}
	case f.gone:
		out, b = out+fmt.Sprintf("deleted file mode %o\n", there.Mode), "/dev/null"
	}
	return out + "--- " + a + "\n+++ " + b + "\n", nil
}

// quoted is a name as Git writes it. Of what Git quotes, a path may have the double quote alone.
func quoted(name string) string {
	if !strings.Contains(name, `"`) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `\"`) + `"`
}

// mark is a name behind "---" or "+++", where Git ends one that has a space with a tab.
func mark(name string) string {
	if q := quoted(name); q != name || !strings.Contains(name, " ") {
		return q
	}
	return name + "\t"
}
