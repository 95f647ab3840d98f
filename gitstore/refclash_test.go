package gitstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
)

// TestCheckRefBeside: a new ref that git would refuse, as another is its
// directory or lies below it, is refused, whether that one is packed or loose.
func TestCheckRefBeside(t *testing.T) {
	for _, packed := range []bool{false, true} {
		r := newWork(t, map[string]string{"a.txt": "1\n"})
		r.git("branch", "fixes")
		r.git("branch", "more/deep")
		if packed {
			r.git("pack-refs", "--all")
		}
		repo := r.open()
		for name, good := range map[string]bool{
			"refs/heads/fixes/one": false, "refs/heads/more": false, "refs/heads/more/deep/er": false,
			"refs/heads/more/other": true, "refs/heads/fixes": true, "refs/heads/fixesone": true, "refs/heads/mor": true,
		} {
			_, err := repo.Ref(context.Background(), name)
			if err == nil {
				err = repo.CheckRef(context.Background(), name)
			}
			var no *gitstore.RefError
			if good != (err == nil) || err != nil && !errors.As(err, &no) {
				t.Errorf("packed %v, %s: %v", packed, name, err)
			}
		}
	}
}
