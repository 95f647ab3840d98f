//go:build race

package gitstore

// The race detector makes a mutation take ten times as long.
func init() { sampled = 1000 }
