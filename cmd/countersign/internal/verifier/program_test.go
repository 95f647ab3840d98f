package verifier

import (
	"errors"
	"testing"
	"testing/fstest"
)

// TestProgram: a checker of which a part is missing is none.
func TestProgram(t *testing.T) {
	all := func() fstest.MapFS {
		return fstest.MapFS{
			"program/" + Wasm: {Data: []byte("packed")}, "program/" + Exec: {Data: []byte("script")}, "program/" + Go: {Data: []byte("go1.26.8\n")},
		}
	}
	p, err := read(all())
	if err != nil || string(p.Wasm) != "packed" || string(p.Exec) != "script" || p.Go != "go1.26.8" {
		t.Errorf("%+v, %v", p, err)
	}
	for name := range all() {
		part := all()
		delete(part, name)
		if _, err := read(part); !errors.Is(err, ErrNone) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
