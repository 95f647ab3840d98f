// Package gitpatch reads the Git diffs that people and tools write, and puts them on a
// base: strictly, or where their lines are now, one on the other, taken back, or below
// another directory. What it makes is a patch.Patchset, of which people are shown, and
// approve, the canonical bytes: nothing that this package says is believed afterwards.
//
// A Diff is what somebody sent, read strictly but not yet believed. Everything here is
// pure: no clock, no environment, no I/O but the fs.FS given.
//
// People are shown of a diff its [Lines] and their numbers, its [Stats], and the files that were
// renamed with changes.
package gitpatch
