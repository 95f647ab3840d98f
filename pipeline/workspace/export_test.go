package workspace

import (
	"context"
	"io/fs"
)

// Copy is copyTree as checks have it.
func Copy(tree fs.FS, dir string) error {
	return copyTree(context.Background(), tree, dir, copyLimits)
}
