package policy

import "cmp"

// A Drift bounds how far what a change goes onto may move before an approval counts
// no more: by more than Commits, nil for any number, or, where SameDirectory is Ask,
// by any other file in a directory of a touched one. A nil *Drift sets no bound.
type Drift struct {
	Commits       *int          `json:"commits,omitempty"`
	SameDirectory SameDirectory `json:"same_directory,omitempty"`
}

// A SameDirectory is what follows when a file beside a touched one changes: Ask, or
// "" for nothing.
type SameDirectory string

// Ask is to approve again.
const Ask SameDirectory = "ask"

// mostDrift is more commits than anybody would want to allow.
const mostDrift = 100_000

func drift(dst **Drift) read {
	return func(r *reader, n node, key string) {
		commits := -1
		d := &Drift{}
		ok := r.mapping(n, key,
			field{"commits", number(&commits, 0, mostDrift)},
			field{"same_directory", word(&d.SameDirectory, []SameDirectory{Ask})},
		)
		if ok && len(n.keys) == 0 {
			r.problem(n.mark, key, "bounds nothing", "commits", "same_directory")
		}
		if commits >= 0 {
			d.Commits = &commits
		}
		*dst = d
	}
}

// tightenDrift has the bounds of both.
func tightenDrift(p, base *Drift) *Drift {
	if p == nil || base == nil {
		return cmp.Or(p, base)
	}
	out := Drift{cmp.Or(p.Commits, base.Commits), cmp.Or(p.SameDirectory, base.SameDirectory)}
	if base.Commits != nil && *base.Commits < *out.Commits {
		out.Commits = base.Commits
	}
	return &out
}
