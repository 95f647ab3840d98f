package statements

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Apply applies the patch.json in packDir to the directory target (APPLY_SPEC 1.0.0), or with
// dryRun tells what that would do. What is wrong with the target or the patch is
// in the Result. The error is for what could not be judged: there is no such
// pack, or the pack or the target cannot be read. expected_hash is not looked at.
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
func Apply(packDir, target string, dryRun bool) (ledger.ApplyResult, error) {
	src, ops, err := apply(packDir, target, dryRun)
	var no *refusal
	switch {
	case errors.As(err, &no):
		return effect.RefuseResult(reported(target), dryRun, no.message, no.violations), nil
	case err != nil:
		return ledger.ApplyResult{}, err
	}
	return effect.NewResult(reported(target), src, dryRun, ops), nil
}

func apply(packDir, target string, dryRun bool) (ledger.PatchSource, []ledger.Operation, error) {
	root, err := openTarget(target)
	if err != nil {
		return ledger.PatchSource{}, nil, err
	}
	defer root.Close()
	p, err := readPatch(packDir)
	if err != nil {
		return ledger.PatchSource{}, nil, err
	}
	var t tree = disk{root}
	if dryRun {
		t = forecast{disk{root}, filepath.Clean(target), map[string]entry{}}
	}
	slices.SortStableFunc(p.Operations, func(a, b document.Operation) int { return canon.Compare(a.Path, b.Path) })
	ops := make([]ledger.Operation, len(p.Operations))
	for i, o := range p.Operations {
		ops[i] = operate(t, o)
	}
	return ledger.PatchSource{ProposalID: p.SourceProposalID, ProposalHash: p.SourceProposalHash}, ops, nil
}

// A refusal is why nothing was attempted (outcome REFUSED).
type refusal struct {
	message    string
	violations []canon.Violation
}

func (r *refusal) Error() string { return r.message }

// refuse is a refusal with one violation; path may be empty.
func refuse(id, path, message string) error {
	return &refusal{message, []canon.Violation{{RuleID: id, Path: path, Message: message}}}
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

// readPatch reads a pack's patch.json and refuses one that is missing (AS3) or
// breaks a rule (AS4).
func readPatch(packDir string) (document.Pack, error) {
	raw, err := readFile(packDir)
	if err != nil {
		return document.Pack{}, err
	}
	doc, err := canon.Parse(raw)
	if err != nil {
		return document.Pack{}, refuse("AS3", "", "invalid JSON in patch.json")
	}
	p, found := document.ReadPack(doc)
	if len(found) > 0 {
		message := fmt.Sprintf("patch verification failed: %d violations", len(found))
		all := []canon.Violation{{RuleID: "AS4", Message: message}}
		for _, v := range found {
			all = append(all, canon.Violation{RuleID: "AS4", Path: v.Path, Message: "[" + v.RuleID + "] " + v.Message})
		}
		return document.Pack{}, &refusal{message, all}
	}
	return p, nil
}

func readFile(packDir string) ([]byte, error) {
	info, err := os.Stat(packDir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: packDir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pack: %w", err)
	}
	name := filepath.Join(packDir, "patch.json")
	info, err = os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, refuse("AS3", "", "pack has no patch.json")
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the pack: %w", err)
	}
	return raw, nil
}

// openTarget opens a target that is safe to write to (APPLY_SPEC 4, AS5).
func openTarget(target string) (*os.Root, error) {
	if slices.Contains(strings.FieldsFunc(target, func(r rune) bool { return r == '/' || r == '\\' }), "..") {
		return nil, refuse("AS5", "", "target root contains path traversal")
	}
	dir := filepath.Clean(target)
	info, err := checkTarget(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the target: %w", err)
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = errors.New("it is another directory than it was before")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the target: %w", err), root.Close())
	}
	if err := checkTree(root.FS()); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// checkTarget looks at the target itself and at what is above it. Of a relative
// target this is what it names: where the process runs is not for us to judge.
func checkTarget(dir string) (fs.FileInfo, error) {
	info, err := os.Lstat(dir)
	_, missing := os.Stat(dir) // follows a link; one to nowhere is no target at all
	top, topErr := os.Lstat(filepath.VolumeName(dir) + string(filepath.Separator))
	message := ""
	switch {
	case err == nil && topErr == nil && os.SameFile(info, top):
		message = "target root cannot be filesystem root"
	case err != nil || missing != nil:
		message = "target root is not a directory"
	case info.Mode().Type() == fs.ModeSymlink:
		message = "target root is a symbolic link"
	case !info.IsDir():
		message = "target root is not a directory"
	case underLink(dir):
		message = "target root is under a symbolic link"
	case !writable(dir):
		message = "target root is not writable"
	default:
		return info, nil
	}
	return nil, refuse("AS5", "", message)
}

func underLink(dir string) bool {
	above := filepath.Dir(dir)
	if above == dir || above == "." {
		return false
	}
	info, err := os.Lstat(above)
	return err != nil || info.Mode().Type() == fs.ModeSymlink || underLink(above)
}

// checkTree refuses the first link in the target, in the order of names. Where
// it cannot look there may be links, so that is refused as well.
func checkTree(tree fs.FS) error {
	return fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		path := strings.ToValidUTF8(name, "\uFFFD")
		switch {
		case err != nil && absent(err):
			return nil // gone since its directory was read
		case err != nil:
			return refuse("AS5", path, "target tree cannot be read: "+path)
		case d.Type() == fs.ModeSymlink:
			return refuse("AS5", path, "symlink found in target tree: "+path)
		}
		return nil
	})
}

// A tree is where operations take place: the disk, or a dry run's forecast of
// it. Both obey one operate, so that they cannot differ in the rules.
type tree interface {
	// look tells what is at a name. Where nothing can be, nothing is.
	look(name string) (entry, error)
	// put makes a file, and the directories above it, or replaces the file
	// that before describes.
	put(name, content string, before entry) error
	remove(name string) error
}

// An entry is what is at a name.
type entry struct {
	kind kind
	perm fs.FileMode // of a file
	hash *string     // of a file that can be read
}

type kind int

const (
	nothing kind = iota
	file
	directory
	special // a device, a pipe, or a link that got there since the target was checked
)

// operate carries out one operation (APPLY_SPEC 5). Its report always comes back.
func operate(t tree, o document.Operation) ledger.Operation {
	// The rules of patch.json let "a/./b" through, and lone surrogates, for
	// which no file system has a name.
	name := path.Clean(strings.ToValidUTF8(o.Path, "\uFFFD"))
	before, err := t.look(name)
	r := ledger.Operation{Op: o.Op, Path: o.Path, Status: ledger.StatusError, BeforeHash: before.hash}
	if why := misfit(o.Op, before.kind); err == nil && why != "" {
		r.Error = why + ": " + o.Path
		return r
	}
	switch {
	case err != nil:
	case o.Content == nil:
		err = t.remove(name)
	default:
		err = t.put(name, *o.Content, before)
	}
	if err != nil {
		r.Error = "cannot write: " + o.Path
		return r
	}
	r.Status = ledger.StatusSuccess
	if o.Content != nil {
		sum := canon.Sum([]byte(*o.Content))
		r.AfterHash, r.BytesWritten = &sum, int64(len(*o.Content))
	}
	return r
}

// misfit is why an operation cannot be done to what is there (APPLY_SPEC 9.2).
func misfit(op string, k kind) string {
	switch {
	case op == "create" && k != nothing:
		return "file already exists"
	case op == "create" || k == file:
		return ""
	case k == nothing:
		return "file does not exist"
	case k == directory:
		return "path is a directory"
	}
	return "cannot write"
}

// absent reports whether an error says that nothing is at a name: also below a
// file, and at a name that is too long to be.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}
