package patch

import (
	"errors"
	"maps"
	"slices"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/countersign-dev/countersign/pipeline/canon"
)

var errSays = errors.New("the files that it names are not those of its patch")

// Agrees holds canonical bytes to what is said of them: the paths that they touch, sorted, and the "sha256:…" of each file
// before and after, nil if there is none. Without the base, content is held where the Diff shows all of a file, or that it
// stays; contents says whether it is what it was, and not without its secrets. Modes are not looked at.
func (d Diff) Agrees(files []string, before, after map[string]*string, contents bool) error {
	var paths []string
	for _, s := range d.sections {
		if !s.agrees(before, after, contents) {
			return errSays
		}
		if paths = append(paths, s.new); s.does == renames {
			paths = append(paths, s.old)
		}
	}
	slices.Sort(paths)
	if !slices.Equal(paths, files) || !slices.Equal(paths, slices.Sorted(maps.Keys(before))) || !slices.Equal(paths, slices.Sorted(maps.Keys(after))) {
		return errSays
	}
	return nil
}

func (s section) agrees(before, after map[string]*string, contents bool) bool {
	was, is := before[s.new], after[s.new]
	if (was == nil) != (s.does == makes || s.does == renames) || (is == nil) != (s.does == deletes) {
		return false
	}
	empty := len(s.hunks) == 0 && s.binary == nil
	switch {
	case s.does == copies:
		return false // which canonical bytes do not have
	case s.does == renames:
		was = before[s.old]
		return empty && was != nil && after[s.old] == nil && *was == *is
	case s.does == updates && empty:
		return *was == *is
	case !contents:
		return true
	case s.binary != nil:
		return s.agreesBinary(is)
	case s.does == makes:
		return *is == canon.Sum(s.whole('-'))
	case s.does == deletes:
		return *was == canon.Sum(s.whole('+'))
	}
	return true
}

// whole is the content of a file of one hunk, all of whose lines are on one side.
func (s section) whole(not byte) []byte {
	if len(s.hunks) == 0 {
		return nil
	}
	return s.hunks[0].without(not)
}

// agreesBinary holds a binary file after to its hash. Canonical bytes hold it stored, so that none expands.
func (s section) agreesBinary(is *string) bool {
	if s.binary.Method != gitdiff.BinaryPatchLiteral || s.binary.Size > int64(len(s.binary.RawData)) {
		return false
	}
	content, err := inflate(s.binary)
	return err == nil && (is == nil && len(content) == 0 || is != nil && *is == canon.Sum(content))
}
