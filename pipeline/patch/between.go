package patch

import (
	"crypto/sha256"
	"io/fs"
	"maps"
	"slices"
)

// Between makes the Patchset that turns the files of base into after: the
// content of each path afterwards, nil for a path that is gone. Paths that end
// as they began are left out; nothing changed at all is an *Error.
func Between(base fs.FS, after map[string]*File) (Patchset, error) {
	return between(newTree(base), after)
}

func between(t *tree, after map[string]*File) (Patchset, error) {
	var changes []Change
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if err := CheckPath(path); err != nil {
			return Patchset{}, err
		}
		before, err := t.file(path)
		if err != nil {
			return Patchset{}, err
		}
		if c := (Change{Path: path, Before: before, After: after[path]}); !before.Equal(c.After) {
			switch {
			case c.Before == nil:
				c.Kind = Add
			case c.After == nil:
				c.Kind = Delete
			default:
				c.Kind = Update
			}
			changes = append(changes, c)
		}
	}
	if len(changes) == 0 {
		return Patchset{}, &Error{Message: "the patch changes nothing"}
	}
	if err := checkCollisions(t.base, changes); err != nil {
		return Patchset{}, err
	}
	return newPatchset(pairRenames(changes)), nil
}

// pairRenames finds the renames. Walking the added paths in order, each is
// paired with the first deleted path of identical content.
func pairRenames(changes []Change) []Change {
	added := map[int]bool{} // sizes
	for _, c := range changes {
		if c.Kind == Add {
			added[len(c.After.Data)] = true
		}
	}
	// The deletions of a content, in path order. Only content of a size that is
	// also added is hashed.
	gone, sizes := map[[sha256.Size]byte][]int{}, map[int]bool{}
	for i, c := range changes {
		if c.Kind == Delete && added[len(c.Before.Data)] {
			sum := sha256.Sum256(c.Before.Data)
			gone[sum], sizes[len(c.Before.Data)] = append(gone[sum], i), true
		}
	}
	if len(gone) == 0 {
		return changes
	}
	paired := map[int]bool{}
	for i := range changes {
		c := &changes[i]
		if c.Kind != Add || !sizes[len(c.After.Data)] {
			continue
		}
		sum := sha256.Sum256(c.After.Data)
		from := gone[sum]
		if len(from) == 0 {
			continue
		}
		gone[sum] = from[1:]
		paired[from[0]] = true
		c.Kind, c.From, c.Before = Rename, changes[from[0]].Path, changes[from[0]].Before
	}
	out := changes[:0:0]
	for i, c := range changes {
		if !paired[i] {
			out = append(out, c)
		}
	}
	return out
}
