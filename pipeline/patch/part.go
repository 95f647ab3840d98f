package patch

import "bytes"

// A Part is what a Diff says of one file by itself, without its base. Before and
// After are modes, 0 where there is no file or the Diff does not say. Lost is how
// many lines it takes away.
type Part struct {
	Kind          Kind
	Path, From    string
	Before, After Mode
	Binary        bool
	Added         []Line
	Lost          int
}

// A Line is one of a file after a change, without its LF, counted from 1.
type Line struct {
	Number int
	Text   []byte
}

// Parts are the files of a Diff in its order. A copy is a file that is added.
func (d Diff) Parts() []Part {
	var out []Part
	for _, s := range d.sections {
		p := Part{Kind: Update, Path: s.new, Before: s.oldMode, After: s.newMode, Binary: s.binary != nil}
		switch s.does {
		case makes, copies:
			p.Kind, p.Before = Add, 0
		case deletes:
			p.Kind, p.Path, p.After = Delete, s.old, 0
		case renames:
			p.Kind, p.From = Rename, s.old
		}
		shift := 0
		for _, h := range s.hunks {
			number := h.at + shift + 1
			for line := range bytes.Lines(h.body) {
				switch line[0] {
				case '+':
					p.Added = append(p.Added, Line{number, bytes.TrimSuffix(line[1:], []byte("\n"))})
					number++
				case '-':
					p.Lost++
				case '\\':
				default:
					number++
				}
			}
			shift += h.newLines - h.oldLines
		}
		out = append(out, p)
	}
	return out
}
