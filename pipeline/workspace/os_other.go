//go:build !unix

package workspace

import "os"

const nonblock = 0

func rmdir(parent *os.Root, name string) error { return parent.Remove(name) }
