package input

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A look returns a file that a diff is put on, nil where there is none.
type look = func(path string) (*patch.File, error)

// A reader reads a diff, given the files that it is put on.
type reader = func(look) (gitpatch.Diff, error)

// A file is what a diff says of one file.
type file struct {
	line        int
	git         bool   // Git wrote its header, which is in text
	titled      bool   // a line "diff --git" is above its names
	was, is     string // the names behind "---" and "+++", "" for none
	added, gone bool
	nil         bool // its last hunk is about no line of the old file
	text        strings.Builder
	lines       []int // the number of each line of text
}

func (f *file) add(number int, line string) {
	f.text.WriteString(line)
	f.lines = append(f.lines, number)
}

// read reads one diff: as gitpatch.Parse does, else as "git apply" finds it in a text.
func read(raw []byte) (reader, error) {
	d, err := gitpatch.Parse(raw)
	f := newFinder(raw)
	if err == nil || f.first() == 0 {
		return func(look) (gitpatch.Diff, error) { return d.Moved(), nil }, err
	}
	files, err := f.files()
	return func(there look) (gitpatch.Diff, error) { return diff(files, there) }, err
}

// A finder reads the diffs that "git apply" finds in a text: below a line "diff --git", or
// below "---", "+++" and "@@". What it passes over it passes over too, but for what could
// be a part of a diff.
type finder struct {
	lines []string
	next  int // the index of the next line, and so the number of the one before
}

func newFinder(raw []byte) *finder {
	var f finder
	for line := range strings.Lines(string(raw)) {
		f.lines = append(f.lines, line)
	}
	return &f
}

// at reports whether a line that is so many behind the next begins with a text.
func (f *finder) at(ahead int, prefix string) bool {
	return f.next+ahead >= 0 && f.next+ahead < len(f.lines) && strings.HasPrefix(f.lines[f.next+ahead], prefix)
}

func (f *finder) atGit() bool { return f.at(0, "diff --git ") }

func (f *finder) atNames() bool { return f.at(0, "--- ") && f.at(1, "+++ ") }

func (f *finder) fail(number int, format string, args ...any) error {
	return &patch.Error{Line: number, Message: fmt.Sprintf(format, args...)}
}

// first is the number of the line that the first diff begins with, 0 for none.
func (f *finder) first() int {
	for ; f.next < len(f.lines); f.next++ {
		if f.atGit() || f.atNames() || f.at(0, "diff --cc ") || f.at(0, "diff --combined ") {
			return f.next + 1
		}
	}
	return 0
}

// leftovers begin lines that belong to a diff, and to none that can be read.
var leftovers = []struct{ begin, why, try string }{
	{"@@ ", `an "@@" line without "---" and "+++" lines above it`, ""},
	{"diff --cc ", "a merge's combined diff cannot be applied", "git diff HEAD^1 HEAD"},
	{"diff --combined ", "a merge's combined diff cannot be applied", "git diff HEAD^1 HEAD"},
	{"Binary files ", "binary file without its content", "git diff --binary"},
	{"GIT binary patch", `a binary patch without a "diff --git" line above it`, ""},
	{"***************", "a context diff, and not a unified one", "git diff"},
}

// files are those of a text, in its order.
func (f *finder) files() (out []*file, err error) {
	for f.next < len(f.lines) {
		var one *file
		switch {
		case f.atGit():
			one, err = f.git()
		case f.atNames():
			one, err = f.plain()
		default:
			for _, l := range leftovers {
				if f.at(0, l.begin) {
					return nil, &patch.Error{Line: f.next + 1, Message: l.why, Try: l.try}
				}
			}
			f.next++
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// headLines begin what Git writes above the content of a file.
var headLines = []string{
	"old mode ", "new mode ", "deleted file mode ", "new file mode ", "copy ", "rename ", "similarity index ", "dissimilarity index ", "index ", "--- ", "+++ ",
}

// git takes over a file whose header Git wrote, as it is.
func (f *finder) git() (*file, error) {
	out := &file{line: f.next + 1, git: true}
	take := func() {
		f.next++
		out.add(f.next, f.lines[f.next-1])
	}
	take()
	for slices.ContainsFunc(headLines, func(begin string) bool { return f.at(0, begin) }) {
		take()
	}
	switch {
	case f.saysNoMore(len(out.lines)):
		f.next -= 2
		plain, err := f.plain()
		if err == nil {
			plain.titled, plain.line = true, out.line
		}
		return plain, err
	case f.at(0, "GIT binary patch"):
		for take(); f.at(0, "literal ") || f.at(0, "delta "); take() {
			for f.next < len(f.lines)-1 && f.lines[f.next] != "\n" {
				take()
			}
		}
		return out, nil
	}
	return out, f.hunks(out)
}

var indexLine = canon.Regexp(`^index [0-9a-f]+\.\.[0-9a-f]+( 100644| 100755)?\n$`)

// saysNoMore reports whether Git's header of so many lines, which ends here, says no more than the
// two names that are its last lines.
func (f *finder) saysNoMore(lines int) bool {
	if lines != 3 && (lines != 4 || !indexLine().MatchString(f.lines[f.next-3])) {
		return false
	}
	names := strings.TrimSuffix(strings.TrimPrefix(f.lines[f.next-2], "--- "), "\n") + " " + strings.TrimPrefix(f.lines[f.next-1], "+++ ")
	return f.lines[f.next-lines] == "diff --git "+names
}

// plain reads a file that has its names alone.
func (f *finder) plain() (*file, error) {
	out := &file{line: f.next + 1}
	for i, to := range []*string{&out.was, &out.is} {
		f.next++
		name, epoch, err := plainName(strings.TrimRight(f.lines[f.next-1][len("--- "):], "\r\n"))
		if err != nil {
			return nil, f.fail(f.next, "%v", err)
		}
		*to = name
		*[]*bool{&out.added, &out.gone}[i] = name == "" || epoch
	}
	if out.added && out.gone {
		return nil, f.fail(f.next, "a file that is neither before nor after")
	}
	if !f.at(0, "@@ ") {
		return nil, f.fail(f.next, `no "@@" line follows the "---" and "+++" lines`)
	}
	return out, f.hunks(out)
}

// hunks takes over the hunks of a file. Where one goes in the new file is written anew, as it follows
// from the old one, and so are GNU diff's words for a line without an end, which it translates.
func (f *finder) hunks(out *file) error {
	shift := 0
	for f.at(0, "@@ ") {
		f.next++
		start, olds, news, err := readHead(f.lines[f.next-1])
		if err != nil {
			return f.fail(f.next, "%v", err)
		}
		if out.nil = start == 0 && olds == 0; out.added && olds == 0 {
			start = 0 // some write 1
		}
		made := start + shift
		switch {
		case olds == 0 && news > 0:
			made++
		case olds > 0 && news == 0:
			made--
		}
		out.add(f.next, fmt.Sprintf("@@ -%d,%d +%d,%d @@\n", start, olds, made, news))
		shift += news - olds
		f.body(out, olds, news)
	}
	return nil
}

// body takes over the lines of a hunk. What it has beyond its counts comes along, for
// gitpatch.Parse to refuse.
func (f *finder) body(out *file, olds, news int) {
	for f.next < len(f.lines) {
		l := f.lines[f.next]
		if strings.TrimRight(l, "\r\n") == "" {
			l = " " + l // an editor took the space away
		}
		if olds <= 0 && news <= 0 && l[0] != '\\' {
			break
		}
		switch l[0] {
		case '\\':
			if len(l) >= len(`\ 345678901`) { // as git apply has it
				l = "\\ No newline at end of file\n"
			}
		case '-':
			olds--
		case '+':
			news--
		case ' ':
			olds, news = olds-1, news-1
		default:
			return
		}
		f.next++
		out.add(f.next, l)
	}
	blank := 0
	for f.at(blank, "\n") {
		blank++
	}
	if l := ""; f.at(blank, " ") || f.at(blank, "+") || f.at(blank, "-") && !f.at(blank, "--\n") && !f.at(blank, "-- \n") && !f.at(blank, "---") {
		for range blank + 1 {
			l, f.next = f.lines[f.next], f.next+1
			out.add(f.next, l)
		}
	}
}

var headOfHunk = canon.Regexp(`^@@ -([0-9]{1,10})(?:,([0-9]{1,10}))? \+[0-9]{1,10}(?:,([0-9]{1,10}))? @@`)

// readHead reads what stands above a hunk.
func readHead(line string) (start, olds, news int, err error) {
	m := headOfHunk().FindStringSubmatch(line[:min(len(line), 100)])
	if m == nil {
		line = strings.TrimRight(line, "\r\n")
		return 0, 0, 0, fmt.Errorf("%+q is not the head of a hunk, such as \"@@ -1,3 +1,4 @@\"", line[:min(len(line), 60)])
	}
	number := func(digits string) int {
		n, _ := strconv.Atoi(digits) // ten digits are a number
		return n
	}
	return number(m[1]), number(cmp.Or(m[2], "1")), number(cmp.Or(m[3], "1")), nil
}

// stamp is a time behind a name, which a tab or what an editor made of it is before.
var stamp = canon.Regexp(`[\t ]+([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]+)?)(?: ([-+])([0-9]{2}):?([0-9]{2}))?$`)

// plainName reads what stands behind "---" or "+++": a name, "" for /dev/null, and whether
// the time behind it is the one that stands for a file that is not there, the first moment
// of 1970 (has_epoch_timestamp in git's apply.c).
func plainName(text string) (name string, epoch bool, err error) {
	if m := stamp().FindStringSubmatch(text); m != nil {
		text = strings.TrimSuffix(text, m[0])
		at, err := time.Parse("2006-01-02 15:04:05 -0700", m[1]+" "+m[2]+":"+m[3]+":"+m[4]+" "+cmp.Or(m[5], "+")+cmp.Or(m[6], "00")+cmp.Or(m[7], "00"))
		epoch = m[5] != "" && err == nil && at.UnixNano() == 0
	}
	if !strings.HasPrefix(text, `"`) {
		text, _, _ = strings.Cut(text, "\t")
	}
	if name, err = gitpatch.Unquote(strings.TrimRight(text, " \t")); name == "/dev/null" {
		name = ""
	}
	return name, epoch, err
}

// find returns a file's path where so many directories are taken off both names. Of a name and the
// same with more behind it, such as x.orig, the shorter one counts (find_name in git's
// apply.c); of two others the one that is there.
func (f *file) find(level int, there look) (string, error) {
	was, is := strip(f.was, level), strip(f.is, level)
	names := []string{was, is}
	if f.was == "" || f.is != "" && strings.HasPrefix(was, is) {
		names = []string{is}
	} else if f.is == "" || strings.HasPrefix(is, was) {
		names = []string{was}
	}
	var found []string
	for _, name := range []string{was, is} {
		if f.was == "" && name == was || f.is == "" && name == is {
			continue
		}
		if err := patch.CheckPath(name); err != nil {
			return "", err
		}
		if file, err := there(name); err != nil {
			return "", err
		} else if file != nil && slices.Contains(names, name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	switch {
	case f.titled && was != is:
		return "", &patch.Error{Message: "headers disagree on the file's name", Try: "make all lines that name the file agree, or make the diff anew"}
	case len(found) == 1:
		return found[0], nil
	case len(names) == 2:
		return "", &patch.Error{Path: is, Message: fmt.Sprintf("%+q and %+q are no file's two names", f.was, f.is), Base: true, Try: "make both names those of one file in the base commit, such as a/FILE and b/FILE"}
	case f.added || f.nil:
		return names[0], nil
	}
	return "", &patch.Error{Path: names[0], Message: "does not exist in the base commit", Base: true}
}

// strip is a name without its first directories, "" where it has not so many.
func strip(name string, directories int) string {
	for range directories {
		_, name, _ = strings.Cut(name, "/")
	}
	return name
}

// find returns the paths of files. As many directories are taken off all names: one, where they begin
// with a/ and b/; else none, or one where that finds all of them.
func find(files []*file, there look) (paths []string, err error) {
	at := func(level int) (paths []string, err error) {
		for _, f := range files {
			path := ""
			if !f.git {
				path, err = f.find(level, there)
			}
			if e, is := err.(*patch.Error); is { //nolint:errorlint // they are not wrapped
				return nil, &patch.Error{Line: f.line, Path: e.Path, Message: e.Message, Try: e.Try, Base: e.Base}
			} else if err != nil {
				return nil, err
			}
			paths = append(paths, path)
		}
		return paths, nil
	}
	if !slices.ContainsFunc(files, func(f *file) bool {
		return f.was != "" && !strings.HasPrefix(f.was, "a/") || f.is != "" && !strings.HasPrefix(f.is, "b/")
	}) {
		return at(1)
	}
	if paths, err = at(0); err != nil {
		below, failed := at(1)
		if failed == nil || !strings.Contains(failed.Error(), "empty path") && strings.Contains(err.Error(), "two names") {
			return below, failed
		}
	}
	return paths, err
}

// diff is what gitpatch.Parse makes of files, once what Git writes above their hunks is there.
// It reads them as strictly as one of Git's.
func diff(files []*file, there look) (gitpatch.Diff, error) {
	paths, err := find(files, there)
	if err != nil {
		return gitpatch.Diff{}, err
	}
	var git strings.Builder
	lines := []int{0} // of the input, by that of what is written
	for i, f := range files {
		if !f.git {
			head, err := f.head(paths[i], there)
			if err != nil {
				return gitpatch.Diff{}, err
			}
			git.WriteString(head)
			for range strings.Count(head, "\n") {
				lines = append(lines, f.line)
			}
		}
		git.WriteString(f.text.String())
		lines = append(lines, f.lines...)
	}
	d, err := gitpatch.Parse([]byte(git.String()))
	if e, is := err.(*patch.Error); is && e.Line < len(lines) { //nolint:errorlint // they are not wrapped
		err = &patch.Error{Line: lines[e.Line], Path: e.Path, Message: e.Message, Try: e.Try}
	}
	return d.Moved().At(lines), err
}

// head is what Git writes above the hunks of a file.
func (f *file) head(path string, there look) (string, error) {
	found, err := there(path)
	if err != nil {
		return "", err
	}
	p := patch.Part{Path: path, Before: patch.Regular, After: patch.Regular}
	out := "diff --git " + patch.QuoteName("a/"+path) + " " + patch.QuoteName("b/"+path) + "\n"
	switch {
	case f.added, found == nil:
		out, p.Before = out+"new file mode 100644\n", 0
	case f.gone:
		out, p.After = out+fmt.Sprintf("deleted file mode %o\n", found.Mode), 0
	}
	return out + p.Names(), nil
}
