// Package packapply applies a pack's patch.json to a plain directory
// (APPLY_SPEC 1.0.0). It knows nothing of Git, approvals or the ledger.
//
// The order is fixed: the target (AS5), patch.json (AS3), its rules (AS4), then
// the operations in the order of their paths. A target or a patch that fails is
// REFUSED and nothing is attempted. One operation's failure does not stop the
// others, and nothing is rolled back.
//
// All that is written goes through an os.Root: whatever becomes of the tree in
// the meantime, nothing outside the target is reached. Content is written to a
// file beside its target, which is then renamed: a reader sees the old content
// or the new. There is no fsync.
//
// A dry run foresees what the operations would do, each after those before it,
// and the permissions of directories. It cannot foresee a disk that gets full,
// a name that the file system takes for another one (letter case), or what other
// processes do.
package packapply

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/pack"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// Apply applies the patch.json in packDir to the directory target, or with
// dryRun tells what that would do. What is wrong with the target or the patch is
// in the Result. The error is for what could not be judged: there is no such
// pack, or the pack or the target cannot be read. expected_hash is not looked at.
func Apply(packDir, target string, dryRun bool) (result.Result, error) {
	src, ops, err := apply(packDir, target, dryRun)
	var no *refusal
	switch {
	case errors.As(err, &no):
		return result.Refuse(reported(target), dryRun, no.message, no.violations), nil
	case err != nil:
		return result.Result{}, err
	}
	return result.New(reported(target), src, dryRun, ops), nil
}

func apply(packDir, target string, dryRun bool) (result.Source, []result.Operation, error) {
	root, err := openTarget(target)
	if err != nil {
		return result.Source{}, nil, err
	}
	defer root.Close()
	p, err := readPatch(packDir)
	if err != nil {
		return result.Source{}, nil, err
	}
	var t tree = disk{root}
	if dryRun {
		t = forecast{disk{root}, filepath.Clean(target), map[string]entry{}}
	}
	slices.SortStableFunc(p.Operations, func(a, b pack.Operation) int { return canon.Compare(a.Path, b.Path) })
	ops := make([]result.Operation, len(p.Operations))
	for i, o := range p.Operations {
		ops[i] = operate(t, o)
	}
	return result.Source{ProposalID: p.SourceProposalID, ProposalHash: p.SourceProposalHash}, ops, nil
}

// A refusal is why nothing was attempted (outcome REFUSED).
type refusal struct {
	message    string
	violations []rule.Violation
}

func (r *refusal) Error() string { return r.message }

// refuse is a refusal with one violation; path may be empty.
func refuse(id, path, message string) error {
	return &refusal{message, []rule.Violation{{RuleID: id, Path: path, Message: message}}}
}

// reported is target_root: the target as it was given, of an absolute one what
// follows its last slash, so that no absolute path gets out (AS12).
func reported(target string) string {
	name := strings.ToValidUTF8(target, "\uFFFD")
	if !filepath.IsAbs(target) && !strings.HasPrefix(target, "/") {
		return name
	}
	if name = name[strings.LastIndexAny(name, "/"+string(filepath.Separator))+1:]; name == "" {
		return "."
	}
	return name
}
