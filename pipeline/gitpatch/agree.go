package gitpatch

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// section is one file's part of a diff. It has hunks, or a binary fragment, or
// neither.
type section struct {
	line         int // of the "diff --git" line, from 1
	old, new     string
	does         action
	oldMode      patch.Mode // 0 where the diff does not say
	newMode      patch.Mode
	oldID, newID string // from the index line, perhaps abbreviated
	moved        bool   // the file may have another content before than oldID
	hunks        []hunk
	binary       *gitdiff.BinaryFragment
}

// An action is what a section's headers say happens to the file.
type action int

const (
	updates action = iota
	makes
	deletes
	renames
	copies
)

// section checks that the header lines agree with each other. Its errors are
// at the section's first line.
func (h *header) section() (section, error) {
	old, new, err := h.names()
	if err != nil {
		return section{}, (&patch.Error{Line: h.line, Message: err.Error()}).With(tryNames[err])
	}
	for _, name := range []string{old, new} {
		if err := patch.CheckPath(name); err != nil {
			return section{}, patch.At(err, h.line, name)
		}
	}
	if err := h.checkQuotes(old, new); err != nil {
		return section{}, &patch.Error{Line: h.line, Path: new, Message: err.Error()}
	}
	does, err := h.action()
	if err == nil {
		err = h.fits(does)
	}
	if err != nil {
		return section{}, &patch.Error{Line: h.line, Path: new, Message: err.Error()}
	}
	sec := section{line: h.line, old: old, new: new, does: does, oldID: h.oldID, newID: h.newID, oldMode: h.oldMode, newMode: h.newMode}
	if h.indexMode != 0 {
		sec.oldMode, sec.newMode = h.indexMode, h.indexMode
	}
	return sec, nil
}

// tryNames is what helps against errors of names.
var tryNames = map[error]string{errNames: "make all lines that name the file agree, or make the diff anew", errPrefix: "git diff --src-prefix=a/ --dst-prefix=b/"}

// action is what the header says happens to the file.
func (h *header) action() (action, error) {
	exists, from, to := h.seen[rankExists], h.seen[rankFrom], h.seen[rankTo]
	switch {
	case exists != "" && (from != "" || h.seen[rankOldMode] != "" || h.seen[rankNewMode] != ""):
		return 0, errDoes
	case (from == "rename from") != (to == "rename to"):
		return 0, errDoes
	case exists == "new file mode":
		return makes, nil
	case exists != "":
		return deletes, nil
	case from == "rename from":
		return renames, nil
	case from != "":
		return copies, nil
	}
	return updates, nil
}

// fits checks that modes, ids and similarity go with what happens to the file.
// An id of zeros stands for an absent file, in both directions.
func (h *header) fits(does action) error {
	isZero := func(id string) bool { return strings.Trim(id, "0") == "" }
	changes := h.seen[rankOldMode] != ""
	switch word := h.seen[rankScore]; {
	case changes != (h.seen[rankNewMode] != ""):
		return errors.New(`"old mode" and "new mode" must come together`)
	case h.indexMode != 0 && (changes || does == makes && h.newMode != h.indexMode || does == deletes && h.oldMode != h.indexMode):
		return errModes
	case h.oldID != "" && (isZero(h.oldID) != (does == makes) || isZero(h.newID) != (does == deletes)):
		return errDoes
	case word == "similarity index" && does != renames && does != copies:
		return errors.New("similarity index without a rename or copy")
	case word == "dissimilarity index" && does != updates:
		return errors.New("dissimilarity index on what is not a rewrite")
	}
	return nil
}

func isEmptyBlob(id string) bool {
	return strings.HasPrefix(patch.BlobID(nil, 2*sha1.Size), id) || strings.HasPrefix(patch.BlobID(nil, 2*sha256.Size), id)
}

// sameID compares ids of which one may be abbreviated further.
func sameID(a, b string) bool {
	n := min(len(a), len(b))
	return a[:n] == b[:n]
}

// removes reports whether the old path is not free for another section.
func (s section) removes() bool { return s.does != makes && s.does != copies }

// checkContent compares what the header says with the content that follows: git
// writes no hunks only where the bytes stay, or an empty file comes or goes.
func (s section) checkContent(h header) error {
	fail := func(msg string) error { return &patch.Error{Line: s.line, Message: msg} }
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
		return &patch.Error{Line: first.line, Message: "new file depends on old content"}
	case s.does == deletes && first.newLines > 0:
		return &patch.Error{Line: first.line, Message: "deleted file keeps content"}
	case first.at > 0 || len(s.hunks) > 1:
		return &patch.Error{Line: s.hunks[len(s.hunks)-1].line, Message: "a new or deleted file has one hunk, from its first line"}
	}
	return nil
}

// movesLines reports whether hunks do no more than to put lines elsewhere, which
// git counts as a similarity of 100 percent: it compares the lines as a set.
func movesLines(hunks []hunk) bool {
	more := map[string]int{} // added, less removed
	for _, h := range hunks {
		for mark, content := range h.lines {
			switch content := string(content); mark {
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
	if isWhole(s.oldID) && s.does != makes && patch.BlobID(before, len(s.oldID)) != s.oldID {
		if s.moved {
			return nil
		}
		return errors.New("its index line names another content")
	}
	if isWhole(s.newID) && s.does != deletes && patch.BlobID(after, len(s.newID)) != s.newID {
		return errors.New("it does not give the content that its index line names")
	}
	return nil
}

// secondOpinion has go-gitdiff read the section too; what it sees must be what
// we see.
func (s section) secondOpinion(text []byte) (*gitdiff.File, error) {
	fail := func(msg string) error { return &patch.Error{Line: s.line, Message: msg} }
	files, preamble, err := gitdiff.Parse(bytes.NewBuffer(text))
	if err != nil || len(files) != 1 || preamble != "" {
		return nil, fail("malformed file section")
	}
	f := files[0]
	if f.OldName != "" && f.OldName != s.old || f.NewName != "" && f.NewName != s.new {
		return nil, (&patch.Error{Line: s.line, Message: errNames.Error()}).With(tryNames[errNames])
	}
	if f.IsNew != (s.does == makes) || f.IsDelete != (s.does == deletes) || f.IsRename != (s.does == renames) || f.IsCopy != (s.does == copies) {
		return nil, fail(errDoes.Error())
	}
	return f, nil
}
