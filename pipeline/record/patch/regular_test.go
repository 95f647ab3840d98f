package patch

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
)

func TestStat(t *testing.T) {
	file, link := &fstest.MapFile{Data: []byte("x"), Mode: 0o644}, &fstest.MapFile{Data: []byte("d"), Mode: fs.ModeSymlink | 0o777}
	tree := NewTree(fstest.MapFS{"d/e/f": file, "f": file, "l": link, "d/l": link, "d/m": &fstest.MapFile{Mode: fs.ModeDir | fs.ModeIrregular}})
	for range 2 { // what is remembered is the same
		for name, want := range map[string]struct {
			found, err bool
		}{
			"f": {found: true}, "d/e/f": {found: true},
			"x": {}, "d": {}, "d/e": {}, "f/x": {}, "x/f": {}, "d/x/f": {},
			"l": {err: true}, "d/l": {err: true}, "l/e": {err: true}, "l/e/f": {err: true}, "d/l/e/f": {err: true},
		} {
			info, err := tree.Stat(name)
			if (info != nil) != want.found || (err != nil) != want.err {
				t.Errorf("%q: %v, %v", name, info, err)
			}
			if err != nil && !errors.As(err, new(*Error)) {
				t.Errorf("%q: %v is no reason", name, err)
			}
		}
	}
}
