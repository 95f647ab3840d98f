package gitstore

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
)

// A rawEntry is an entry as it stands in a tree.
type rawEntry struct {
	mode []byte
	name []byte
	id   []byte
}

func (e rawEntry) isDir() bool { return string(e.mode) == "40000" }

func (e rawEntry) hash() (id plumbing.Hash) {
	copy(id[:], e.id)
	return id
}

func (e rawEntry) entry() history.Entry {
	if e.id == nil {
		return history.Entry{}
	}
	mode, _ := strconv.ParseUint(string(e.mode), 8, 32)
	return history.Entry{Mode: uint32(mode), ID: history.ID(e.hash())}
}

// cutEntry takes the first entry off a tree. Without one, ok is false.
func cutEntry(raw []byte) (e rawEntry, rest []byte, ok bool) {
	const idSize = len(plumbing.Hash{})
	space := bytes.IndexByte(raw[:min(len(raw), 8)], ' ')
	if space < 1 {
		return e, raw, false
	}
	end := bytes.IndexByte(raw[space:], 0)
	if end < 2 || len(raw) < space+end+1+idSize {
		return e, raw, false
	}
	e = rawEntry{raw[:space], raw[space+1 : space+end], raw[space+end+1 : space+end+1+idSize]}
	return e, raw[space+end+1+idSize:], true
}

func compareRaw(a, b rawEntry) int { return compareNames(a.name, a.isDir(), b.name, b.isDir()) }

// sound refuses entries that no git writes: out of order, twice, with a name
// that is none, or a mode that is written otherwise.
func sound(before, e rawEntry) error {
	switch n := e.name; {
	case n[0] == '.' && (len(n) == 1 || string(n) == ".." || strings.EqualFold(string(n), ".git")), bytes.IndexByte(n, '/') >= 0:
		return fmt.Errorf("has an entry named %+q", n)
	case before.name != nil && compareRaw(before, e) >= 0, bytes.Equal(before.name, n):
		return fmt.Errorf("has the entry %+q out of order, or twice", n)
	}
	switch string(e.mode) {
	case "40000", "100644", "100755", "120000", "160000":
		return nil
	}
	return fmt.Errorf("has an entry %+q with the mode %+q", e.name, e.mode)
}
