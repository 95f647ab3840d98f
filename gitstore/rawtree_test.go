package gitstore

import (
	"bytes"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// FuzzParseTree: a tree that is read writes back to the same bytes, unless a
// mode has zeros before it.
func FuzzParseTree(f *testing.F) {
	id := "01234567890123456789"
	f.Add([]byte("100644 a\x00" + id + "40000 b\x00" + id))
	f.Add([]byte("100644 a\x00" + id[1:]))
	f.Add([]byte("040000 a\x00" + id))
	f.Add([]byte("1 \x00" + id))
	f.Fuzz(func(t *testing.T, raw []byte) {
		entries, err := parseTree(raw, packfile.SHA1)
		if err != nil {
			return
		}
		again := encodeTree(entries)
		if len(again) == len(raw) && !bytes.Equal(again, raw) || len(again) > len(raw) {
			t.Errorf("%q became %q", raw, again)
		}
		if _, err := parseTree(again, packfile.SHA1); err != nil {
			t.Error(err)
		}
	})
}

// FuzzParseCommit: a commit that is read begins as it is written.
func FuzzParseCommit(f *testing.F) {
	id := "0123456789012345678901234567890123456789"
	f.Add([]byte("tree " + id + "\nparent " + id + "\nauthor A <a> 0 +0000\n\nx"))
	f.Add([]byte("tree " + id + "\nauthor A <a> 0 +0000\nparent " + id + "\n\nx"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := packfile.ParseCommit(raw)
		if err != nil {
			return
		}
		again := packfile.EncodeCommit(c, packfile.Us, packfile.Us, time.Unix(0, 0), "")
		head, _, _ := bytes.Cut(again, []byte("author "))
		if !bytes.HasPrefix(bytes.ToLower(raw), head) {
			t.Errorf("%q began as %q", head, raw)
		}
	})
}
