package code

import (
	"bytes"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// RemoveTodo is a recipe, a change that is a rule and not bytes: the kind of a proposal whose lines with a needle are deleted.
const RemoveTodo = "remove_todo_multi"

// CheckNeedle refuses a needle that is no part of one line.
func CheckNeedle(needle string) error {
	if needle == "" || strings.ContainsAny(needle, "\r\n") {
		return &patch.Error{Message: "the needle must be a part of one line"}
	}
	return nil
}

// MakeAgain runs the recipe of a proposal again, if it is one: what it makes of the base must
// be what was approved (seed: checkpoint 10, section 1).
func MakeAgain(base fs.FS, p ledger.Proposal) error {
	if p.Kind != RemoveTodo || strings.Contains(p.Needle, "<REDACTED:") {
		return nil // a needle that is a secret is not in the ledger; hashes tie the patch to the base as well
	}
	if err := CheckNeedle(p.Needle); err != nil {
		return err
	}
	set, err := RemoveLines(base, p.Needle, p.TargetFiles)
	if err == nil && set.ID() != p.PatchID {
		err = &patch.Error{Message: "the recipe gives another patch now: " + set.ID()}
	}
	return err
}

// RemoveLines deletes every line that contains the needle, in the named files, or with
// none named in all text files of the tree.
func RemoveLines(base fs.FS, needle string, files []string) (patch.Patchset, error) {
	named := len(files) > 0
	if !named {
		var err error
		if files, err = regularFiles(base); err != nil {
			return patch.Patchset{}, err
		}
	}
	after := map[string]*patch.File{}
	for _, name := range files {
		if err := patch.CheckPath(name); err != nil {
			if named {
				return patch.Patchset{}, err
			}
			continue // a path that no patch may touch
		}
		f, err := patch.Lookup(base, name)
		switch {
		case err != nil:
			return patch.Patchset{}, err
		case f == nil:
			return patch.Patchset{}, &patch.Error{Path: name, Message: "does not exist in the base commit"}
		case !named && bytes.IndexByte(f.Data, 0) >= 0:
			continue
		}
		after[name] = &patch.File{Mode: f.Mode, Data: without(f.Data, needle)}
	}
	return patch.NewTree(base).Between(after)
}

func without(data []byte, needle string) []byte {
	var out []byte
	for _, line := range patch.Lines(data) {
		if !bytes.Contains(line, []byte(needle)) {
			out = append(out, line...)
		}
	}
	return out
}

func regularFiles(base fs.FS) ([]string, error) {
	var out []string
	err := fs.WalkDir(base, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, name)
		}
		return err
	})
	return out, err
}
