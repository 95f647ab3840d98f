package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/atomicfile"
)

func TestWhole(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	for _, want := range []string{"one", "another"} {
		if err := atomicfile.Write(name, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%q %v", got, err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	half := errors.New("half")
	for _, fails := range []error{half, nil} {
		f, err := root.Create("temp")
		if err != nil {
			t.Fatal(err)
		}
		err = atomicfile.Place(root, f, "temp", "a", func(f *os.File) error {
			_, err := f.WriteString("third")
			return errors.Join(err, fails)
		})
		if got, _ := os.ReadFile(name); !errors.Is(err, fails) || string(got) != map[bool]string{true: "third", false: "another"}[fails == nil] {
			t.Errorf("%q %v", got, err)
		}
	}
	if err := atomicfile.Write(filepath.Join(dir, "none", "a"), nil); err == nil {
		t.Error("a file in no directory")
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "d"), nil); err == nil {
		t.Error("a file in the place of a directory")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Error(left, err)
	}
}
