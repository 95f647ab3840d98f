package input

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A Piece is one diff of what was given, with the subject, the whole message and the author of its mail
// or commit, for which nobody vouches. Author is nil where it is not told whole.
type Piece struct {
	Diff    []byte
	Subject string
	Message string // the subject, and what follows it
	Author  *ledger.Author
}

// Pieces finds the diffs in what people have at hand: a diff as it is, mails of
// "git format-patch" or a pull request's .patch, the output of "git show" and "git
// log -p", and diffs that a text fences with ```diff. What is around them is left out.
func Pieces(raw []byte) ([]Piece, error) {
	if err := checkEncoding(raw); err != nil {
		return nil, err
	}
	text := bytes.TrimLeft(raw, "\r\n")
	switch first, _, _ := bytes.Cut(text, []byte("\n")); {
	case isHead(first, "From "):
		return mails(text), nil
	case isHead(first, "commit "):
		return commits(text)
	case !bytes.HasPrefix(text, []byte("diff --git ")) && bytes.Contains(raw, []byte("```diff")):
		return fenced(raw)
	}
	return []Piece{{Diff: raw}}, nil
}

// checkEncoding refuses UTF-16, which PowerShell makes of what another program prints.
func checkEncoding(raw []byte) error {
	if bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff")) {
		return &patch.Error{Line: 1, Message: "the text is UTF-16 and not UTF-8", Try: "git diff --output=fix.patch"}
	}
	return nil
}

// isHead reports whether a line begins a mail or a commit: a word and a commit id.
func isHead(line []byte, word string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(word))
	id, _, _ := bytes.Cut(bytes.TrimRight(rest, "\r"), []byte(" "))
	return ok && (canon.IsHex(string(id), 40) || canon.IsHex(string(id), 64))
}

// split cuts a text before each line that begins a mail or a commit. None is within
// a hunk, whose lines begin otherwise.
func split(text []byte, word string) (out [][]byte) {
	start, at := 0, 0
	for line := range bytes.Lines(text) {
		if at > start && isHead(bytes.TrimSuffix(line, []byte("\n")), word) {
			out, start = append(out, text[start:at]), at
		}
		at += len(line)
	}
	return append(out, text[start:])
}

func mails(text []byte) (out []Piece) {
	for _, mail := range split(text, "From ") {
		head, body, _ := strings.Cut(aboveDiff(mail), "\n\n")
		f := fields(head)
		if strings.HasPrefix(body, "From: ") { // whose patch somebody else has sent
			head, body, _ = strings.Cut(body, "\n\n")
			maps.Copy(f, fields(head))
		}
		subject := strings.Join(strings.Fields(subject(f["Subject"])), " ")
		out = append(out, Piece{mail, subject, subject + "\n\n" + body, author(f["From"], f["Date"])})
	}
	return out
}

// aboveDiff is a mail without its diff and the numbers above that: as git-mailinfo(1) has it, a line of
// "---" ends it, or one that begins a diff.
func aboveDiff(mail []byte) string {
	var b strings.Builder
	for line := range bytes.Lines(mail) {
		line := strings.TrimRight(string(line), "\r\n")
		rest, dashes := strings.CutPrefix(line, "---")
		name, named := strings.CutPrefix(rest, " ")
		if dashes && (strings.TrimSpace(rest) == "" || named && strings.TrimLeft(name[:1], " \t") != "") || strings.HasPrefix(line, "diff -") || strings.HasPrefix(line, "Index: ") {
			break
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// fields are the lines "Name: text" of a mail's or commit's head, unfolded. What is
// there twice is "".
func fields(head string) map[string]string {
	parts := map[string][]string{}
	name := ""
	for line := range strings.Lines(head) {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			if len(parts[name]) > 0 {
				parts[name] = append(parts[name], strings.TrimSpace(line))
			}
			continue
		}
		var text string
		name, text, _ = strings.Cut(line, ": ")
		_, twice := parts[name]
		parts[name] = nil
		if text = strings.TrimSpace(text); text != "" && !twice {
			parts[name] = []string{text}
		}
	}
	out := map[string]string{}
	for name, texts := range parts {
		out[name] = strings.Join(texts, " ")
	}
	return out
}

// subject is a mail's without "[PATCH 1/2]".
func subject(text string) string {
	if plain, err := new(mime.WordDecoder).DecodeHeader(text); err == nil {
		text = plain
	}
	if strings.HasPrefix(text, "[") {
		if _, rest, found := strings.Cut(text, "] "); found {
			text = rest
		}
	}
	return text
}

// dates are the forms in which Git writes a date: that of mails, its own, and two of
// ISO 8601.
var dates = []string{"Mon, 2 Jan 2006 15:04:05 -0700", "Mon Jan 2 15:04:05 2006 -0700", "2006-01-02 15:04:05 -0700", time.RFC3339}

// author reads "NAME <ADDRESS>" and a date. It returns nil where one of them is
// missing, or is nothing that a commit may say.
func author(who, date string) *ledger.Author {
	name, address, _ := strings.Cut(who, "<")
	name, address = strings.TrimSpace(name), strings.TrimSuffix(address, ">")
	if inner, ok := strings.CutPrefix(name, `"`); ok {
		name = strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `\`, "")
	}
	name, err := new(mime.WordDecoder).DecodeHeader(name)
	if err != nil || !strings.HasSuffix(who, ">") {
		return nil
	}
	for _, form := range dates {
		if at, err := time.Parse(form, date); err == nil {
			a := &ledger.Author{Name: name, Email: address, Date: at.Format(time.RFC3339)}
			if a.Valid() {
				return a
			}
		}
	}
	return nil
}

// commits reads commits as "git show" and "git log -p" print them: a head, the
// message four columns in, then the diff. Other text above the diff is left out.
func commits(text []byte) (out []Piece, err error) {
	for _, commit := range split(text, "commit ") {
		f := newFinder(commit)
		if f.first() == 0 {
			continue // without changes
		}
		var head, message strings.Builder
		notes := false
		for _, line := range f.lines[:f.next] {
			line = strings.TrimRight(line, "\n")
			word, _, named := strings.Cut(line, ": ")
			switch text, indented := strings.CutPrefix(line, "    "); {
			case line == "Notes:", line == "---":
				notes = true
			case notes:
			case indented:
				message.WriteString(text + "\n")
			case named && headWords[word]:
				head.WriteString(line + "\n")
			case line == "": // of a message whose empty lines have lost their spaces
				message.WriteString("\n")
			}
		}
		fields := fields(head.String())
		first, body, _ := strings.Cut(strings.TrimLeft(message.String(), "\n"), "\n\n")
		subject := strings.Join(strings.Fields(first), " ")
		diff := strings.TrimRight(strings.Join(f.lines[f.next:], ""), "\n") + "\n"
		out = append(out, Piece{[]byte(diff), subject, subject + "\n\n" + body, author(fields["Author"], cmp.Or(fields["AuthorDate"], fields["Date"]))})
	}
	if len(out) == 0 {
		err = &patch.Error{Message: "the patch is empty", Try: "git diff HEAD"}
	}
	return out, err
}

// headWords begin the lines above a commit's message.
var headWords = map[string]bool{"Author": true, "AuthorDate": true, "Commit": true, "CommitDate": true, "Date": true}

// fenced reads the blocks of a text that ```diff begins and ``` ends.
func fenced(text []byte) (out []Piece, err error) {
	n, start, at, open := 0, 0, 0, 0
	for line := range bytes.Lines(text) {
		n++
		switch mark := strings.TrimRight(string(line), " \t\r\n"); {
		case open > 0 && mark == "```":
			out, open = append(out, Piece{Diff: text[start:at]}), 0
		case open == 0 && mark == "```diff":
			start, open = at+len(line), n
		case open == 0 && strings.HasPrefix(mark, "diff --git "):
			return nil, &patch.Error{Line: n, Message: "a diff without ```diff above it, beside one that has it"}
		}
		at += len(line)
	}
	if open > 0 {
		return nil, &patch.Error{Line: open, Message: "the ```diff block does not end"}
	}
	if len(out) == 0 {
		err = &patch.Error{Message: "not a Git diff: no line is ```diff alone", Try: "git diff HEAD"}
	}
	return out, err
}

// A SeveralError is what was given being several diffs. File is the name that it was given by, "" where nobody said.
type SeveralError struct {
	Number int
	File   string
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("it holds %d patches: say whether they are one change", e.Number)
}

// One reads the diffs that people have at hand as one change; together says that
// several are.
func One(raw []byte, together bool, summary string) (Change, error) {
	pieces, err := Pieces(raw)
	if err == nil && len(pieces) > 1 && !together {
		err = &SeveralError{Number: len(pieces)}
	}
	if err != nil {
		return Change{}, err
	}
	return change(raw, pieces, summary)
}

// Each reads them as a change each.
func Each(raw []byte, summary string) ([]Change, error) {
	pieces, err := Pieces(raw)
	if err != nil {
		return nil, err
	}
	out := make([]Change, len(pieces))
	for i, p := range pieces {
		if out[i], err = change(p.Diff, pieces[i:i+1], summary); err != nil {
			return nil, fmt.Errorf("patch %d of %d: %w", i+1, len(pieces), err)
		}
	}
	return out, nil
}

// expandsLater is Expands of diffs that can be read only beside the files. What cannot is told when it is
// resolved.
func expandsLater(diffs []reader) func(base fs.FS) int64 {
	return func(base fs.FS) int64 {
		var read []gitpatch.Diff
		for _, diff := range diffs {
			if d, err := diff(func(path string) (*patch.File, error) { return patch.Lookup(base, path) }); err == nil {
				read = append(read, d)
			}
		}
		return gitpatch.Expands(base, read...)
	}
}

// change proposes pieces as one change: each on what those before it leave. raw is
// what they were found in.
func change(raw []byte, pieces []Piece, summary string) (Change, error) {
	diffs := make([]reader, len(pieces))
	for i, p := range pieces {
		var err error
		if diffs[i], err = read(p.Diff); err != nil && len(pieces) > 1 {
			return Change{}, fmt.Errorf("patch %d of %d: %w", i+1, len(pieces), err)
		} else if err != nil {
			return Change{}, err
		}
	}
	if summary == "" && len(pieces) > 0 {
		summary = pieces[0].Subject
	}
	in := Change{Kind: KindPatch, Summary: summary, Raw: raw, Author: oneAuthor(pieces), Messages: messages(pieces), Expands: expandsLater(diffs)}
	return in.with(diffs), nil
}

// with is the change with other diffs, one on what the other makes.
func (in Change) with(diffs []reader) Change {
	in.diffs, in.Resolve = diffs, func(base fs.FS) (patch.Patchset, error) { return gitpatch.Series(base, diffs) }
	return in
}

// After is a change on what others make, each on the one before, and these as well.
func (in Change) After(others ...Change) Change {
	var diffs []reader
	for _, other := range append(slices.Clone(others), in) {
		diffs = append(diffs, other.diffs...)
	}
	return in.with(diffs)
}

// IsDiff reports whether the change was given as diffs.
func (in Change) IsDiff() bool { return len(in.diffs) > 0 }

// Parts are what the diffs of a change say of its files on a tree, nil where it is none, or they
// cannot be read there.
func (in Change) Parts(base fs.FS) (parts []gitpatch.Part) {
	for _, read := range in.diffs {
		d, err := read(func(path string) (*patch.File, error) { return patch.Lookup(base, path) })
		if err != nil {
			return nil
		}
		parts = append(parts, d.Parts()...)
	}
	return parts
}

// Below is a change with each file below a directory.
func (in Change) Below(dir string) Change {
	diffs := make([]reader, len(in.diffs))
	for i, read := range in.diffs {
		diffs[i] = func(there look) (gitpatch.Diff, error) {
			d, err := read(func(path string) (*patch.File, error) { return there(dir + "/" + path) })
			return d.Below(dir), err
		}
	}
	return in.with(diffs)
}

// DoneIn reports whether a tree has what the change makes.
func (in Change) DoneIn(base fs.FS) bool {
	back := make([]reader, len(in.diffs))
	for i, read := range in.diffs {
		back[len(back)-1-i] = func(there look) (gitpatch.Diff, error) {
			d, err := read(there)
			if err != nil {
				return d, err
			}
			d, ok := d.Reverse()
			if !ok {
				err = &patch.Error{Message: "it cannot be taken back"}
			}
			return d, err
		}
	}
	_, err := in.with(back).Resolve(base)
	return err == nil && len(back) > 0
}

// messages are those of pieces that have one.
func messages(pieces []Piece) (out []string) {
	for _, p := range pieces {
		if p.Message != "" {
			out = append(out, p.Message)
		}
	}
	return out
}

// oneAuthor is the author of all pieces, with the first one's date; nil where they have
// several, or one has none.
func oneAuthor(pieces []Piece) *ledger.Author {
	for _, p := range pieces {
		if first := pieces[0].Author; p.Author == nil || first == nil || p.Author.Name != first.Name || p.Author.Email != first.Email {
			return nil
		}
	}
	if len(pieces) == 0 {
		return nil
	}
	return pieces[0].Author
}
