package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A journal names what a Write may leave behind when it is cut off. It is on
// disk, in canonical JSON, before the first of it is:
//
//	{"directories":[".","x"],"made":["x"],"prefix":".countersign-0123456789abcdef0123456789abcdef-","schema":"countersign/journal/1"}
type journal struct {
	Directories []string `json:"directories"` // where temporary files may be
	Made        []string `json:"made"`        // directories that were not there before
	Prefix      string   `json:"prefix"`      // how their names begin
	Schema      string   `json:"schema"`
}

const (
	journalSchema = "countersign/journal/1"
	tempPrefix    = ".countersign-"
	tempSuffix    = ".tmp"
)

// newPrefix makes names for temporary files that are the same in every run of
// one change, and that no other change and no file of this one can have: they
// hold a hash of all paths and hashes.
func newPrefix(files []patch.Change, hashOf func(int) *string) string {
	var all strings.Builder
	for i, f := range files {
		fmt.Fprintf(&all, "%q", f.Path)
		if sum := hashOf(i); sum != nil {
			all.WriteString(*sum)
		}
	}
	return tempPrefix + canon.Hex([]byte(all.String()))[:32] + "-"
}

func (j *journal) check() error {
	hash := strings.TrimSuffix(strings.TrimPrefix(j.Prefix, tempPrefix), "-")
	if j.Schema != journalSchema || j.Prefix != tempPrefix+hash+"-" || !canon.IsHex(hash, 32) {
		return errors.New("it is not a journal of this version")
	}
	for _, dir := range slices.Concat(j.Directories, j.Made) {
		if !fs.ValidPath(dir) {
			return fmt.Errorf("%s is not a directory of a working tree", patch.Quote(dir))
		}
	}
	return nil
}

// temp is the name of the temporary file of the file with an index.
func (j *journal) temp(i int) string { return fmt.Sprintf("%s%d%s", j.Prefix, i, tempSuffix) }

// plan is the journal for the writing of some folders.
func (t *Tree) plan(prefix string, into []folder, gone map[string]bool) journal {
	j := journal{Directories: []string{}, Made: []string{}, Prefix: prefix, Schema: journalSchema}
	seen := map[string]bool{}
	for _, f := range into {
		j.Directories = append(j.Directories, f.name)
		for _, dir := range append(parents(f.name), f.name) {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			if info, err := t.root.Lstat(dir); err != nil || !info.IsDir() {
				j.Made = append(j.Made, dir)
			}
			if gone[dir] { // a file is there until all else waits beside it
				j.Directories = append(j.Directories, path.Dir(dir))
			}
		}
	}
	for _, list := range []*[]string{&j.Directories, &j.Made} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return j
}

func (t *Tree) journalFile() string { return t.stateFile("apply", ".json") }

func (t *Tree) saveJournal(j journal) error {
	line, err := canon.Line(j)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.stateDir, 0o777); err != nil {
		return err
	}
	t.changing()
	return t.note(t.journalFile(), line)
}

// note puts a file into the state directory, all of it or none, and on disk.
func (t *Tree) note(name string, data []byte) error {
	f, err := os.Create(name + unfinished)
	if err == nil {
		_, err = f.Write(data)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return errors.Join(err, os.Remove(name+unfinished))
	}
	t.changing()
	if err := os.Rename(name+unfinished, name); err != nil {
		return err
	}
	return atomicfile.SyncDir(t.stateDir)
}

// unfinished ends the name of a note that is still being written.
const unfinished = ".new"

// recover clears away what a Write that was cut off left behind.
func (t *Tree) recover() error {
	if err := os.Remove(t.journalFile() + unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	line, err := os.ReadFile(t.journalFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var j journal
	if err == nil {
		err = canon.Unmarshal(line, &j)
	}
	if err == nil {
		err = j.check()
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", t.journalFile(), plain(err))
	}
	return t.sweep(j)
}

// sweep removes temporary files, new directories that are empty, and the
// journal when there is nothing left for it to name.
func (t *Tree) sweep(j journal) error {
	err := parallel.Try(t.workers, len(j.Directories), func(i int) error { return t.sweepDir(j, j.Directories[i]) })
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(j.Made) {
		t.removeDir(dir)
	}
	return t.dropJournal()
}

func (t *Tree) dropJournal() error {
	t.changing()
	return os.Remove(t.journalFile())
}

func (t *Tree) sweepDir(j journal, name string) error {
	dir, at, err := t.reach(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLink) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	if at != name {
		return nil
	}
	all, err := dir.Open(".")
	if err != nil {
		return err
	}
	names, err := all.Readdirnames(-1)
	_ = all.Close()
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasPrefix(n, j.Prefix) && strings.HasSuffix(n, tempSuffix) {
			t.changing()
			err = errors.Join(err, dir.Remove(n))
		}
	}
	return err
}

// Lock waits until no other process applies to this working tree, and clears
// what one that died left behind. The system releases the lock when a process
// dies.
func (t *Tree) Lock(context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(t.stateDir, 0o777); err != nil {
		return nil, fmt.Errorf("locking the working tree: %w", err)
	}
	unlock, err = lockedfile.MutexAt(filepath.Join(t.stateDir, "apply.lock")).Lock()
	if err != nil {
		return nil, fmt.Errorf("locking the working tree: %w", err)
	}
	if err := t.recover(); err != nil {
		unlock()
		return nil, fmt.Errorf("clearing what an interrupted apply left: %w", err)
	}
	return unlock, nil
}

// The ledger says that an apply was begun, but a ledger is shared; only the
// working tree knows that it was here, and remembers it across a crash. The
// caller holds the Lock.

// Begin notes that applies begin here, before the ledger is told.
func (t *Tree) Begin(applies ...string) error {
	return t.renote("noting the apply", func(noted []string) []string {
		return slices.Compact(slices.Sorted(slices.Values(append(noted, applies...))))
	})
}

// Begun returns the applies that were begun here and have not ended.
func (t *Tree) Begun() ([]string, error) {
	data, err := os.ReadFile(t.claims())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the noted applies: %w", err)
	}
	return strings.Fields(string(data)), nil
}

// End notes that applies have ended, after the ledger was told.
func (t *Tree) End(applies ...string) error {
	return t.renote("noting the end of the apply", func(noted []string) []string {
		return slices.DeleteFunc(noted, func(a string) bool { return slices.Contains(applies, a) })
	})
}

func (t *Tree) claims() string { return t.stateFile("applying", "") }

func (t *Tree) renote(doing string, change func([]string) []string) error {
	noted, err := t.Begun()
	if err != nil {
		return err
	}
	now := change(slices.Clone(noted))
	switch {
	case slices.Equal(now, noted):
		return nil
	case len(now) == 0:
		err = os.Remove(t.claims())
	default:
		err = t.note(t.claims(), []byte(strings.Join(now, "\n")+"\n"))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
