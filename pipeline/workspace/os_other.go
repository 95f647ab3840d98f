//go:build !unix

package workspace

import "os"

func rmdir(parent *os.Root, name string) error { return parent.Remove(name) }
