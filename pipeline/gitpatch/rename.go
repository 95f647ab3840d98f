package gitpatch

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A Renaming is a text file that a diff deletes and adds elsewhere with changes. The
// canonical bytes have it as a deletion and an addition, and those are what is approved; this
// is for people to read.
type Renaming struct {
	From, To         int    // which of the diff's files they are, from 0
	OldPath, NewPath string // where it was, and where it is
	Alike            int    // percent
	Diff             []byte // as git diff -M writes it: put on the old file, it gives the new one
}

// Git's measure of similarity: of all, of the least that makes a rename, and of the least
// that makes one before all others where no more than two files have the name.
const (
	wholeScore = 60000
	leastScore = wholeScore / 2
	namedScore = wholeScore * 3 / 4
)

// The bounds of the search for renames, so that it takes some hundredths of a second at
// most: the bytes of a diff, and how many spans of files are looked up in others.
const (
	maxRenameBytes = 2 << 20
	maxLookups     = 500_000
)

// Renamings finds the renames of a diff as git diff -M does, in the order of the new files. A
// file counts only if the diff has every byte of it, as the object id of its index line says. A
// diff beyond the bounds has none.
func Renamings(diff []byte) []Renaming {
	if len(diff) > maxRenameBytes || !bytes.Contains(diff, []byte("\nnew file mode ")) || !bytes.Contains(diff, []byte("\ndeleted file mode ")) {
		return nil
	}
	d, err := patch.Parse(diff)
	if err != nil {
		return nil
	}
	var out []Renaming
	taken := map[int]bool{}
	for _, p := range similar(d) {
		if taken[p.from.file] || taken[p.to.file] {
			continue
		}
		taken[p.from.file], taken[p.to.file] = true, true
		r := Renaming{From: p.from.file, To: p.to.file, OldPath: p.from.path, NewPath: p.to.path, Alike: 100 * p.score / wholeScore}
		r.Diff = patch.Change{Kind: patch.Rename, Path: r.NewPath, From: r.OldPath, Before: &p.from.File, After: &p.to.File}.Bytes()
		r.Diff = bytes.Replace(r.Diff, []byte("\nsimilarity index 100%\n"), fmt.Appendf(nil, "\nsimilarity index %d%%\n", r.Alike), 1)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Renaming) int { return a.To - b.To })
	return out
}

// A wholeFile is one that a diff adds, or deletes.
type wholeFile struct {
	patch.File
	file  int // of the diff
	path  string
	spans spans
}

// A pair is a deleted and an added file that are alike.
type pair struct {
	from, to  *wholeFile
	score     int
	sameName  int // 1 if their names without directories are the same
	onlyNamed int // 1 if moreover they are all but alike, and no other file of the diff has that name
}

// similar pairs files, those first that belong together before others.
func similar(d patch.Diff) []pair {
	gone, made, names := wholeFiles(d)
	var out []pair
	lookups := 0
	for t := range made {
		for f := range gone {
			p := pair{from: &gone[f], to: &made[t]}
			if lookups += min(len(p.from.spans.times), len(p.to.spans.times)); lookups > maxLookups {
				break
			}
			if p.score = p.from.spans.score(p.to.spans); p.score < leastScore {
				continue
			}
			if name := path.Base(p.to.path); name == path.Base(p.from.path) {
				p.sameName = 1
				if names[name] == 2 && p.score >= namedScore {
					p.onlyNamed = 1
				}
			}
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b pair) int {
		return cmp.Or(b.onlyNamed-a.onlyNamed, b.score-a.score, b.sameName-a.sameName)
	})
	return out
}

// wholeFiles are the text files that a diff deletes, and those that it adds, and how many of
// all that it deletes or adds have a name.
func wholeFiles(d patch.Diff) (gone, made []wholeFile, names map[string]int) {
	names = map[string]int{}
	for i, p := range d.Parts {
		f, id, to := wholeFile{file: i, path: p.Path}, p.OldID, &gone
		f.Mode = p.Before
		switch p.Kind {
		case patch.Add:
			f.Mode, id, to = p.After, p.NewID, &made
		case patch.Delete:
		default:
			continue
		}
		names[path.Base(f.path)]++
		for _, h := range p.Hunks {
			for _, text := range h.Lines {
				f.Data = append(f.Data, text...)
			}
		}
		if len(f.Data) > 0 && f.BlobID() == id {
			f.spans = spansOf(f.Data)
			*to = append(*to, f)
		}
	}
	return gone, made, names
}

// ChangedLines are the lines that a part of a diff adds, with their numbers, and how many it takes away.
func ChangedLines(p patch.Part) (added []Line, lost int) {
	shift := 0
	for _, h := range p.Hunks {
		number := h.At + shift + 1
		for mark, text := range h.Lines {
			switch mark {
			case '-':
				lost++
				continue
			case '+':
				added = append(added, Line{Mark: '+', After: number, Text: bytes.TrimSuffix(text, []byte("\n"))})
			}
			number++
		}
		shift += h.NewLines - h.OldLines
	}
	return added, lost
}

// Spans are the pieces of a file that Git compares: its lines, those of more than 64 bytes
// cut after each 64, and how often each is there. Git counts hashes of 17 bits, which others can
// choose to be equal; these are the pieces themselves.
type spans struct {
	times map[string]int
	size  int // of the file
}

func spansOf(data []byte) spans {
	s := spans{times: map[string]int{}, size: len(data)}
	text := bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0
	var span []byte
	for i, c := range data {
		if text && c == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			continue // as Git does
		}
		if span = append(span, c); c == '\n' || len(span) == 64 {
			s.times[string(span)]++
			span = span[:0]
		}
	}
	if len(span) > 0 {
		s.times[string(span)]++
	}
	return s
}

// score is how much of the larger file stands in the other, of wholeScore. It is 0 where
// their sizes alone say that this is less than half.
func (s spans) score(t spans) int {
	if large := max(s.size, t.size); large == 0 || 2*min(s.size, t.size) < large {
		return 0
	}
	if len(s.times) > len(t.times) {
		s, t = t, s
	}
	common := 0
	for span, n := range s.times {
		common += len(span) * min(n, t.times[span])
	}
	return common * wholeScore / max(s.size, t.size)
}

// Alike is how similar two files are by Git's measure, in percent; 0 stands for all below 50.
func Alike(a, b []byte) int {
	if score := spansOf(a).score(spansOf(b)); score >= leastScore {
		return 100 * score / wholeScore
	}
	return 0
}
