package patch

import (
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
)

var (
	errNames = errors.New("headers disagree on the file's name")
	errDoes  = errors.New("headers disagree on what happens to the file")
	errModes = errors.New("headers disagree on the file's mode")
)

// section checks that the header lines agree with each other. Its errors are
// at the section's first line.
func (h *header) section() (section, error) {
	old, new, err := h.names()
	if err != nil {
		return section{}, &Error{Line: h.line, Message: err.Error()}
	}
	for _, name := range []string{old, new} {
		if err := CheckPath(name); err != nil {
			return section{}, at(err, h.line, name)
		}
	}
	if err := h.checkQuotes(old, new); err != nil {
		return section{}, &Error{Line: h.line, Path: new, Message: err.Error()}
	}
	does, err := h.action()
	if err == nil {
		err = h.fits(does)
	}
	if err != nil {
		return section{}, &Error{Line: h.line, Path: new, Message: err.Error()}
	}
	sec := section{line: h.line, old: old, new: new, does: does, oldID: h.oldID, newID: h.newID, oldMode: h.oldMode, newMode: h.newMode}
	if h.indexMode != 0 {
		sec.oldMode, sec.newMode = h.indexMode, h.indexMode
	}
	return sec, nil
}

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

// blobID is Git's object id of a file's content with as many hex digits as a
// SHA-1 or SHA-256 repository has.
func blobID(data []byte, digits int) string {
	h := sha1.New()
	if digits == 2*sha256.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return fmt.Sprintf("%x", h.Sum(nil))
}

func isEmptyBlob(id string) bool {
	return strings.HasPrefix(blobID(nil, 2*sha1.Size), id) || strings.HasPrefix(blobID(nil, 2*sha256.Size), id)
}

// sameID compares ids of which one may be abbreviated further.
func sameID(a, b string) bool {
	n := min(len(a), len(b))
	return a[:n] == b[:n]
}
