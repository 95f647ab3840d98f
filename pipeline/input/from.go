package input

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// The formats that From reads (docs/agents.md).
const (
	FormatAuto    = "auto"
	FormatGit     = "git"
	FormatUnified = "unified"
	FormatCodex   = "codex"
	FormatBlocks  = "blocks"
	FormatEdits   = "edits"
)

// Formats are the names of all, in the order in which they are listed.
var Formats = []string{FormatAuto, FormatGit, FormatUnified, FormatCodex, FormatBlocks, FormatEdits, FormatGHAW, FormatCodexAction, FormatClaudeAction}

// IsFormat reports whether a change can have a format, once it was read.
func IsFormat(name string) bool {
	return name == FormatSuggestion || name != FormatAuto && slices.Contains(Formats, name)
}

// tryFrom helps where no format is known.
const tryFrom = "say what it is with --from: docs/agents.md lists the formats"

// ErrFormat is wrapped where there is no format of a name.
var ErrFormat = errors.New("no format is called")

// From reads a change in one of the formats, and returns which one it was: of FormatAuto
// the one that the text has. root is the directory that absolute paths of edits are below;
// together says that several diffs are one change.
func From(format string, raw []byte, root string, together bool, summary string) (Change, error) {
	if !slices.Contains(Formats, format) {
		return Change{}, &fault.Error{Kind: fault.Refused, Message: fmt.Sprintf("%v %+q", ErrFormat, format), Try: "--from is one of: " + strings.Join(Formats, ", "), Cause: ErrFormat}
	}
	if format == FormatGHAW {
		return Change{}, &patch.Error{Message: "gh-aw leaves a directory, and this is a file"}
	}
	if err := checkEncoding(raw); err != nil {
		return Change{}, err
	}
	text, skipped := raw, 0
	if format == FormatAuto {
		b, found, err := changeIn(raw)
		if err != nil {
			return Change{}, err
		}
		text, skipped, format = b.text, b.line, found
		if format == FormatEdits {
			if doc, err := canon.Parse(raw); err == nil && isExecution(doc) {
				format = FormatClaudeAction
			}
		}
	}
	if format == FormatCodexAction || format == FormatClaudeAction {
		return fromAnswer(format, raw, root, together, summary)
	}
	in, err := as(format, text, root, together, summary)
	if e, is := err.(*patch.Error); is && e.Line > 0 && skipped > 0 { //nolint:errorlint // they are not wrapped
		err = &patch.Error{Line: e.Line + skipped, Path: e.Path, Message: e.Message, Try: e.Try}
	}
	in.Raw, in.Format = raw, format
	return in, err
}

func as(format string, raw []byte, root string, together bool, summary string) (Change, error) {
	in := Change{Kind: KindPatch, Summary: summary}
	switch format {
	case FormatGit:
		return One(raw, together, summary)
	case FormatUnified:
		return change(raw, []Piece{{Diff: raw}}, summary)
	case FormatCodex:
		p, err := ParseApplyPatch(raw)
		if err == nil {
			in.Resolve = p.Resolve
		}
		return in, err
	}
	read := Blocks
	if format == FormatEdits {
		read = func(raw []byte) ([]Edit, error) { return Calls(raw, root) }
	}
	all, err := read(raw)
	in.Resolve = func(base fs.FS) (patch.Patchset, error) { return resolveEdits(base, all) }
	return in, err
}

// list begins a list, and no text such as "[PATCH]".
var list = canon.Regexp(`^\[[^A-Za-z]`)

// detect is the format of a text, "" for none that is known.
func detect(raw []byte) string {
	text := bytes.TrimLeft(raw, " \t\r\n")
	first, _, _ := bytes.Cut(text, []byte("\n"))
	switch {
	case IsApplyPatch(raw):
		return FormatCodex
	case isHead(first, "From "), isHead(first, "commit "), bytes.HasPrefix(text, []byte("diff --git ")):
		return FormatGit
	case bytes.HasPrefix(text, []byte("{")), list().Match(text):
		return FormatEdits
	case IsBlocks(raw):
		return FormatBlocks
	case bytes.HasPrefix(text, []byte("--- ")), bytes.HasPrefix(text, []byte("diff -")), bytes.HasPrefix(text, []byte("Index: ")):
		return FormatUnified
	}
	return ""
}

// onlyBlock returns the one fenced block of a text that holds a change.
func onlyBlock(raw []byte) (block, error) {
	all, open := blocks(raw)
	var found []block
	for _, b := range all {
		if detect(b.text) != "" {
			found = append(found, b)
		}
	}
	switch {
	case open > 0:
		return block{line: open}, &patch.Error{Line: open, Message: "the fenced block does not end"}
	case len(found) == 0:
		return block{}, &patch.Error{Message: "no format that is known: neither the text nor a fenced block in it is a change", Try: tryFrom}
	case len(found) > 1:
		return found[0], &patch.Error{Message: fmt.Sprintf("%d fenced blocks hold a change, at lines %s: give one of them", len(found), beginnings(found))}
	}
	return found[0], nil
}

// beginnings are the numbers of the lines that blocks begin with, in words.
func beginnings(all []block) string {
	var lines []string
	for _, b := range all[:min(10, len(all))] {
		lines = append(lines, fmt.Sprint(b.line))
	}
	if len(all) > 10 {
		lines = append(lines, "and others")
	}
	return strings.Join(lines, ", ")
}
