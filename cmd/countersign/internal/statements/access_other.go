//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package statements

// writable cannot be told here without writing: a directory that is not shows in
// the operations.
func writable(string) bool { return true }
