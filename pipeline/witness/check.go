package witness

import (
	"cmp"
	"fmt"
	"slices"
)

// A Report is what the witnesses of a file say of a ledger.
type Report struct {
	Witnessed // but for Commit
	// Found is what is wrong: another history, or too few witnesses.
	Found []string

	newest *Note // that is the ledger's, nil if there is none
}

// Check holds what is kept of a ledger's checkpoints to its commits. Witnesses are needed as the file
// says, and atLeast of them if that is not 0.
func (f File) Check(notes [][]byte, t *Tree, atLeast int) (Report, error) {
	origin, err := f.Origin()
	if err != nil {
		return Report{}, err
	}
	r := Report{Witnessed: Witnessed{Origin: origin, Witnesses: []Testimony{}, Ignored: []string{}}}
	for _, w := range f.Witnesses {
		r.Witnesses = append(r.Witnesses, Testimony{Name: w.Name})
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
		if r.newest == nil || n.Size > r.newest.Size {
			r.newest = &n
		}
		for i, before := range r.Witnesses {
			at, signed := n.Seen[before.Name]
			said := Testimony{Name: before.Name, Commits: n.Size, At: FormatTime(at)}
			if signed && (said.Commits > before.Commits || said.Commits == before.Commits && said.At > before.At) {
				r.Witnesses[i] = said
			}
		}
	}
	if len(notes) > MostNotes {
		r.Ignored = append(r.Ignored, fmt.Sprintf("%d more than the %d that are read", len(notes)-MostNotes, MostNotes))
	}
	r.judge(f, atLeast)
	r.Newer = t.Size() - r.Covered
	slices.Sort(r.Found)
	r.Found = slices.Compact(r.Found)
	return r, nil
}

// judge works out what is covered, and finds if that is nothing.
func (r *Report) judge(f File, atLeast int) {
	size, some := map[string]int64{}, 0
	for _, s := range r.Witnesses {
		size[s.Name] = s.Commits
		if s.Commits > 0 {
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

// An Answer is what a witness said when it was asked to sign a checkpoint: its cosignature, with the line and its time; or an
// error, with the size of a larger tree that it has seen, if that is why.
type Answer struct {
	Name string
	Line []byte // under the checkpoint
	At   int64  // in seconds since 1970
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
		case a.Size > newest.Size:
			found = append(found, fmt.Sprintf("the ledger was set back, or checkpoints are kept from you: witness %s has seen %d commits, and the newest checkpoint here has %d", a.Name, a.Size, newest.Size))
		}
	}
	if f.covered(size, atLeast) == 0 {
		found = append(found, fmt.Sprintf("too few witnesses say that the checkpoint of %d commits is the newest: %d of the %d that were asked", newest.Size, len(size), len(answers)))
	}
	slices.SortFunc(found, cmp.Compare)
	return found
}
