package patch

import (
	"bytes"
	"errors"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// checkContent compares what the header says with the content that follows: git
// writes no hunks only where the bytes stay, or an empty file comes or goes.
func (s section) checkContent(h header) error {
	fail := func(msg string) error { return &Error{Line: s.line, Message: msg} }
	if len(s.hunks) > 0 || s.binary != nil {
		if h.seen[rankScore] == "similarity index" && h.score == 100 && s.binary == nil && !movesLines(s.hunks) {
			return fail("similarity index says that the content stays, but it changes")
		}
		return s.checkWhole()
	}
	switch {
	case s.does == makes && s.newID == "":
		return fail("new file without hunks and without an index line")
	case s.does == makes && !isEmptyBlob(s.newID), s.does == deletes && s.oldID != "" && !isEmptyBlob(s.oldID):
		return fail("index line names content, but there are no hunks")
	case s.does != makes && s.does != deletes && !sameID(s.oldID, s.newID):
		return fail("index line says that the content changes, but there are no hunks")
	case h.seen[rankScore] != "" && (s.does == updates || h.score < 100):
		return fail("similarity index says that the content changes, but there are no hunks")
	case s.does == updates && h.seen[rankOldMode] == "":
		return fail("file section without a change")
	}
	return nil
}

// checkWhole: a new file's hunk takes nothing away, a deleted one's adds
// nothing, and there is just one.
func (s section) checkWhole() error {
	if s.binary != nil || s.does != makes && s.does != deletes {
		return nil
	}
	first := s.hunks[0]
	switch {
	case s.does == makes && first.oldLines > 0:
		return &Error{Line: first.line, Message: "new file depends on old content"}
	case s.does == deletes && first.newLines > 0:
		return &Error{Line: first.line, Message: "deleted file keeps content"}
	case first.at > 0 || len(s.hunks) > 1:
		return &Error{Line: s.hunks[len(s.hunks)-1].line, Message: "a new or deleted file has one hunk, from its first line"}
	}
	return nil
}

// movesLines reports whether hunks do no more than to put lines elsewhere, which
// git counts as a similarity of 100 percent: it compares the lines as a set.
func movesLines(hunks []hunk) bool {
	more := map[string]int{} // added, less removed
	for _, h := range hunks {
		for rest := h.body; len(rest) > 0; {
			var line []byte
			line, rest = cutLine(rest)
			mark, content := line[0], string(line[1:])
			if len(rest) > 0 && rest[0] == '\\' {
				content = strings.TrimSuffix(content, "\n")
				_, rest = cutLine(rest)
			}
			switch mark {
			case '+':
				more[content]++
			case '-':
				more[content]--
			}
		}
	}
	for _, n := range more {
		if n != 0 {
			return false
		}
	}
	return true
}

// checkBlobs holds the ids of the index line that are not abbreviated to the
// content before and after. An abbreviated one names no content for certain, and
// is not looked at.
func (s section) checkBlobs(before, after []byte) error {
	if isWhole(s.oldID) && s.does != makes && blobID(before, len(s.oldID)) != s.oldID {
		return errors.New("its index line names another content")
	}
	if isWhole(s.newID) && s.does != deletes && blobID(after, len(s.newID)) != s.newID {
		return errors.New("it does not give the content that its index line names")
	}
	return nil
}

// secondOpinion has go-gitdiff read the section too; what it sees must be what
// we see.
func (s section) secondOpinion(text []byte) (*gitdiff.File, error) {
	fail := func(msg string) error { return &Error{Line: s.line, Message: msg} }
	files, preamble, err := gitdiff.Parse(bytes.NewBuffer(text))
	if err != nil || len(files) != 1 || preamble != "" {
		return nil, fail("malformed file section")
	}
	f := files[0]
	if f.OldName != "" && f.OldName != s.old || f.NewName != "" && f.NewName != s.new {
		return nil, fail(errNames.Error())
	}
	if f.IsNew != (s.does == makes) || f.IsDelete != (s.does == deletes) || f.IsRename != (s.does == renames) || f.IsCopy != (s.does == copies) {
		return nil, fail(errDoes.Error())
	}
	return f, nil
}
