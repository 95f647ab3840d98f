package view

import (
	"cmp"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// A File is one changed path; From is where a renamed one was, and Before its
// hash there. Hashes are "sha256:…" over raw bytes, null where there is no
// file; Added and Deleted count lines.
type File struct {
	Path    string  `json:"path"`
	From    string  `json:"from,omitempty"`
	Kind    string  `json:"kind"`
	Before  *string `json:"base_sha256"`
	After   *string `json:"after_sha256"`
	Added   int     `json:"added"`
	Deleted int     `json:"deleted"`

	// Only where the patch deletes a file, and adds it here with changes.
	RenamedFrom string `json:"renamed_from,omitempty"`
	Alike       int    `json:"alike,omitempty"` // percent

	// What a reader cannot see in these numbers, as far as it is known.
	Binary bool     `json:"-"` // it has no lines
	Notes  []string `json:"-"` // "becomes executable", "white space only"
}

// Files are the changes of a proposal. Stats and renamings are those of its diff, none where that cannot be read.
func Files(changes []ledger.ItemChange, p *ledger.Proposal, stats []gitpatch.Stat, renamings []gitpatch.Renaming) []File {
	out := []File{}
	for i, c := range changes {
		f := File{Path: c.Path, From: c.From, Kind: c.Kind, Before: p.BaseSHA256[cmp.Or(c.From, c.Path)], After: p.AfterSHA256[c.Path]}
		if i < len(stats) {
			f.Added, f.Deleted, f.Binary = stats[i].Added, stats[i].Deleted, stats[i].Binary
		}
		out = append(out, f)
	}
	for _, r := range renamings {
		if r.From < len(out) && r.To < len(out) {
			out[r.To].RenamedFrom, out[r.To].Alike = out[r.From].Path, r.Alike
		}
	}
	return out
}

// Lines sums the changed lines of all files.
func (t Transaction) Lines() (added, deleted int) {
	for _, f := range t.Files {
		added, deleted = added+f.Added, deleted+f.Deleted
	}
	return added, deleted
}

// noted are files with what the risks say of them beside their lines.
func noted(files []File, risks *risk.List) []File {
	if risks == nil {
		return files
	}
	files = slices.Clone(files)
	at := map[string]*File{}
	for i := range files {
		at[files[i].Path] = &files[i]
	}
	for _, r := range risks.Risks {
		f := at[r.Path]
		if f == nil {
			continue
		}
		switch r.Kind {
		case risk.Binary:
			f.Binary = true
		case risk.Executable, risk.Mode, risk.Whitespace:
			f.Notes = append(f.Notes, RiskTitle(r.Kind))
		}
	}
	return files
}
