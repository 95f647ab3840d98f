package witness

import (
	"cmp"
	"fmt"
	"slices"
)

// A Report is what the witnesses of a file say of a ledger.
type Report struct {
	Origin string
	// Covered is how many commits, from the first, are vouched for by as many witnesses as are asked for.
	Covered int64
	// Newest is how many commits the newest checkpoint has that is the ledger's, 0 if there is none.
	Newest int64
	Saw    []Saw // by each witness, in the file's order
	// Found is what is wrong: another history, or too few witnesses.
	Found []string
	// Ignored is why notes did not count.
	Ignored []string

	newest *Note
}

// Saw is what one witness vouches for: Size commits, 0 for none, at a time in seconds since 1970.
type Saw struct {
	Name string
	Size int64
	At   int64
}

// Check holds what is kept of a ledger's checkpoints to its commits. Witnesses are needed as the file
// says, and atLeast of them if that is not 0.
func (f File) Check(notes [][]byte, t *Tree, atLeast int) (Report, error) {
	origin, err := f.Origin()
	if err != nil {
		return Report{}, err
	}
	r := Report{Origin: origin}
	for _, w := range f.Witnesses {
		r.Saw = append(r.Saw, Saw{Name: w.Name})
	}
	for i, raw := range notes[:min(len(notes), MostNotes)] {
		n, err := f.Open(raw)
		if err != nil {
			r.Ignored = append(r.Ignored, fmt.Sprintf("checkpoint %d of those that are kept: %v", i+1, err))
			continue
		}
		if err := n.In(t); err != nil {
			r.Found = append(r.Found, err.Error())
			continue
		}
		if r.newest == nil || n.Size > r.Newest {
			r.Newest, r.newest = n.Size, &n
		}
		for i, w := range f.Witnesses {
			at, signed := n.Seen[w.Name]
			if signed && (n.Size > r.Saw[i].Size || n.Size == r.Saw[i].Size && at > r.Saw[i].At) {
				r.Saw[i].Size, r.Saw[i].At = n.Size, at
			}
		}
	}
	if len(notes) > MostNotes {
		r.Ignored = append(r.Ignored, fmt.Sprintf("%d more than the %d that are read", len(notes)-MostNotes, MostNotes))
	}
	r.judge(f, atLeast)
	slices.Sort(r.Found)
	r.Found = slices.Compact(r.Found)
	return r, nil
}

// judge works out what is covered, and finds if that is nothing.
func (r *Report) judge(f File, atLeast int) {
	size, some := map[string]int64{}, 0
	for _, s := range r.Saw {
		size[s.Name] = s.Size
		if s.Size > 0 {
			some++
		}
	}
	r.Covered = f.covered(size, atLeast)
	if r.Covered > 0 {
		return
	}
	whom := "the quorum of the file is needed"
	if atLeast > 0 {
		whom = fmt.Sprintf("%d of %d witnesses are needed", atLeast, len(f.Witnesses))
		if f.quorum != "" {
			whom += ", and the quorum of the file"
		}
	}
	r.Found = append(r.Found, fmt.Sprintf("%s, and %d have signed a checkpoint of this history", whom, some))
}

// NewestNote is the newest note that is the ledger's, if there is one.
func (r Report) NewestNote() (Note, bool) {
	if r.newest == nil {
		return Note{}, false
	}
	return *r.newest, true
}

// An Answer is what a witness said when it was asked to sign the newest checkpoint once more: that it did,
// at a time; or that it has seen a larger tree, of a size; or an error. One of the three.
type Answer struct {
	Name string
	At   int64
	Size int64
	Err  error
}

// Fresh holds a ledger to what witnesses answered just now: each signs the newest checkpoint again only if it
// has seen no larger tree. As many have to do so as are needed; each that has seen more is a finding. It returns
// what is wrong.
func (f File) Fresh(newest Note, answers []Answer, atLeast int) (found []string) {
	size := map[string]int64{}
	for _, a := range answers {
		switch {
		case a.At > 0:
			size[a.Name] = newest.Size
		case a.Err == nil && a.Size > newest.Size:
			found = append(found, fmt.Sprintf("the ledger was set back, or checkpoints are kept from you: witness %s has seen %d commits, and the newest checkpoint here has %d", a.Name, a.Size, newest.Size))
		}
	}
	if f.covered(size, atLeast) == 0 {
		found = append(found, fmt.Sprintf("too few witnesses say that the checkpoint of %d commits is the newest: %d of the %d that were asked", newest.Size, len(size), len(answers)))
	}
	slices.SortFunc(found, cmp.Compare)
	return found
}
