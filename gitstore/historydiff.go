package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
)

// differ compares the trees of one commit after another, as raw bytes. It is
// for one goroutine.
type differ struct {
	*History
	trees, older map[plumbing.Hash][]byte // those read lately
	size         int

	out *history.Commit
}

// keptTrees is how many bytes of trees a differ keeps, in two generations.
const keptTrees = 4 << 20

// What a commit may hold before it is called none of ours: a stage adds a few
// files, a few directories down. A crafted tree could hold more than there is
// time for.
const (
	maxChanges = 10_000
	maxDepth   = 16
)

func newDiffer(h *History) *differ {
	return &differ{History: h, trees: map[plumbing.Hash][]byte{}}
}

// commit reads one commit and everything that is new in it but its files.
func (d *differ) commit(c rawCommit) history.Commit {
	out := history.Commit{ID: history.ID(c.id), Age: c.age, Problems: c.wrong, Base: c.base}
	for _, p := range c.parents {
		out.Parents = append(out.Parents, history.ID(p))
	}
	d.out = &out
	if !c.base {
		d.words(c)
		d.entered(c.tree, "")
		d.dirs("", c.former, c.tree, 0)
	}
	return out
}

// words reads the commit itself.
func (d *differ) words(c rawCommit) {
	payload, signature, err := c.raw, "", error(nil)
	if bytes.Contains(c.raw, []byte("\ngpgsig")) {
		payload, signature, err = sshsig.Split(c.raw)
	}
	switch {
	case signature == "" && err == nil, errors.Is(err, sshsig.ErrNoSignature): // in its message, perhaps
		payload = c.raw
	case err != nil:
		payload, d.out.Signature, d.out.SignatureError = c.raw, history.Bad, err
	default:
		d.out.Signature = history.Signed
	}
	head, message, _ := strings.Cut(string(payload), "\n\n")
	_, who, _ := strings.Cut(head, "\ncommitter "+us+" ")
	seconds, _, _ := strings.Cut(who, " ")
	when, _ := strconv.ParseInt(seconds, 10, 64)
	d.out.When, d.out.Message = when, message
	d.out.Ours = when >= 0 && bytes.HasPrefix(payload, encodeCommit(c.commit, us, us, time.Unix(when, 0), ""))
	if d.out.Signature != history.Signed {
		return
	}
	good := history.Signed
	if d.signers == nil {
		err = sshsig.Check(payload, signature)
	} else {
		good = history.Good
		_, _, err = d.signers.Verify(payload, signature, time.Unix(when, 0))
	}
	if d.out.Signature = good; err != nil {
		d.out.Signature, d.out.SignatureError = history.Bad, err
	}
}

func (d *differ) problem(rule, path, format string, args ...any) {
	d.out.Problems = append(d.out.Problems, history.Finding{
		RuleID: rule, Commit: d.out.ID.String(), Path: path, Message: fmt.Sprintf(format, args...),
	})
}

// entered is told of every object that a commit brings.
func (d *differ) entered(id plumbing.Hash, path string) {
	if d.replaced[id] {
		d.problem("HISTORY", path, "git shows something else in place of %s (refs/replace/); countersign reads it as it is", id)
	}
}

// tree returns the content of a tree, nil for the zero id.
func (d *differ) tree(id plumbing.Hash) ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	if raw, ok := d.trees[id]; ok {
		return raw, nil
	}
	raw, ok := d.older[id]
	if !ok {
		var err error
		if raw, err = readObject(d.objects, plumbing.TreeObject, id); err != nil {
			return nil, err
		}
	}
	if d.size += len(raw) + 128; d.size > keptTrees/2 {
		d.trees, d.older, d.size = map[plumbing.Hash][]byte{}, d.trees, len(raw)+128
	}
	d.trees[id] = raw
	return raw, nil
}

// dirs compares two versions of a directory; zero is none. Only what differs is
// read. Every entry of the new one is held to its form.
func (d *differ) dirs(dir string, old, new plumbing.Hash, depth int) {
	if depth > maxDepth || len(d.out.Changes) > maxChanges {
		d.problem("L10", dir, "holds more than a ledger can")
		return
	}
	before, err := d.tree(old)
	if err != nil {
		d.problem("OBJECT", dir, "what was there before: %v", err)
		return
	}
	after, err := d.tree(new)
	if err != nil {
		d.problem("OBJECT", dir, "%v", err)
		return
	}
	if len(after) == 0 && !new.IsZero() {
		d.change(dir, history.Entry{}, history.Entry{Mode: history.ModeDir, ID: history.ID(new)})
	}
	if err := d.entries(dir, before, after, depth); err != nil {
		d.problem("L10", dir, "the tree %s %v", new, err)
	}
}

var errTree = errors.New("is malformed")

func (d *differ) entries(dir string, before, after []byte, depth int) error {
	var last, a, b rawEntry
	haveA, haveB := false, false
	for {
		if !haveA && len(before) > 0 {
			if a, before, haveA = cutEntry(before); !haveA {
				return errTree
			}
		}
		if !haveB && len(after) > 0 {
			if b, after, haveB = cutEntry(after); !haveB {
				return errTree
			}
			if err := sound(last, b); err != nil {
				return err
			}
			last = b
		}
		switch {
		case !haveA && !haveB:
			return nil
		case haveA && haveB && bytes.Equal(a.name, b.name) && a.isDir() == b.isDir():
			if !bytes.Equal(a.id, b.id) || !bytes.Equal(a.mode, b.mode) {
				d.entry(dir, a, b, depth)
			}
			haveA, haveB = false, false
		case !haveB || haveA && compareRaw(a, b) < 0:
			d.entry(dir, a, rawEntry{}, depth)
			haveA = false
		default:
			d.entry(dir, rawEntry{}, b, depth)
			haveB = false
		}
	}
}

// entry takes in one name that differs.
func (d *differ) entry(dir string, a, b rawEntry, depth int) {
	name := b.name
	if name == nil {
		name = a.name
	}
	path := string(name)
	if dir != "" {
		path = dir + "/" + path
	}
	if b.name != nil {
		d.entered(b.hash(), path)
	}
	if a.isDir() || b.isDir() {
		d.dirs(path, a.hash(), b.hash(), depth+1)
		return
	}
	d.change(path, a.entry(), b.entry())
}

func (d *differ) change(path string, old, new history.Entry) {
	d.out.Changes = append(d.out.Changes, history.Change{Path: path, Old: old, New: new})
}

// A rawEntry is an entry as it stands in a tree.
type rawEntry struct {
	mode []byte
	name []byte
	id   []byte
}

func (e rawEntry) isDir() bool { return string(e.mode) == "40000" }

func (e rawEntry) hash() (id plumbing.Hash) {
	copy(id[:], e.id)
	return id
}

func (e rawEntry) entry() history.Entry {
	if e.id == nil {
		return history.Entry{}
	}
	mode, _ := strconv.ParseUint(string(e.mode), 8, 32)
	return history.Entry{Mode: uint32(mode), ID: history.ID(e.hash())}
}

// cutEntry takes the first entry off a tree. Without one, ok is false.
func cutEntry(raw []byte) (e rawEntry, rest []byte, ok bool) {
	const idSize = len(plumbing.Hash{})
	space := bytes.IndexByte(raw[:min(len(raw), 8)], ' ')
	if space < 1 {
		return e, raw, false
	}
	end := bytes.IndexByte(raw[space:], 0)
	if end < 2 || len(raw) < space+end+1+idSize {
		return e, raw, false
	}
	e = rawEntry{raw[:space], raw[space+1 : space+end], raw[space+end+1 : space+end+1+idSize]}
	return e, raw[space+end+1+idSize:], true
}

func compareRaw(a, b rawEntry) int { return compareNames(a.name, a.isDir(), b.name, b.isDir()) }

// sound refuses entries that no git writes: out of order, twice, with a name
// that is none, or a mode that is written otherwise.
func sound(before, e rawEntry) error {
	switch n := e.name; {
	case n[0] == '.' && (len(n) == 1 || string(n) == ".." || strings.EqualFold(string(n), ".git")), bytes.IndexByte(n, '/') >= 0:
		return fmt.Errorf("has an entry named %+q", n)
	case before.name != nil && compareRaw(before, e) >= 0, bytes.Equal(before.name, n):
		return fmt.Errorf("has the entry %+q out of order, or twice", n)
	}
	switch string(e.mode) {
	case "40000", "100644", "100755", "120000", "160000":
		return nil
	}
	return fmt.Errorf("has an entry %+q with the mode %+q", e.name, e.mode)
}

// Drift returns how many commits only one of two commits leads to, as "git
// rev-list --count a...b" does, and the paths of the files in which their trees
// differ. A history or a tree that is not here as far as it takes is an error:
// of a history, a *CutOffError. Where clocks were wrong, commits of both may be
// counted as well, and none is left out.
func (r *Repo) Drift(_ context.Context, a, b string) (commits int, files []string, err error) {
	fail := func(err error) (int, []string, error) {
		return 0, nil, fmt.Errorf("comparing %s with %s: %w", a, b, err)
	}
	if commits, err = apart(r.objects, plumbing.NewHash(a), plumbing.NewHash(b)); err != nil {
		return fail(err)
	}
	var trees [2]plumbing.Hash
	for i, id := range []string{a, b} {
		c, err := readCommit(r.objects, plumbing.NewHash(id))
		if errors.Is(err, packfile.ErrMissing) {
			err = &CutOffError{id}
		}
		if err != nil {
			return fail(err)
		}
		trees[i] = c.tree
	}
	paths := 0
	err = diffTrees(r.objects, trees[0], trees[1], func(c treeChange) error {
		if paths++; paths > maxDiffPaths {
			return fmt.Errorf("more than %d files and directories differ", maxDiffPaths)
		}
		if isFile(c.old) || isFile(c.new) {
			files = append(files, c.path)
		}
		return nil
	})
	if err != nil {
		return fail(err)
	}
	return commits, files, nil
}

// isFile is true of links and submodules too.
func isFile(e treeEntry) bool { return e.mode != filemode.Empty && e.mode != filemode.Dir }

// apart counts the commits that are before, or are, one of two and not the other.
func apart(s source, a, b plumbing.Hash) (int, error) {
	p, err := paint(s, a, b)
	if err != nil {
		return 0, err
	}
	one := func(n *ancestor) bool { return n.paint&(ofOne|ofOthers) != ofOne|ofOthers }
	oldest, found := int64(0), false
	for _, n := range p.nodes {
		if one(n) && !n.gone && (!found || n.when < oldest) {
			oldest, found = n.when, true
		}
	}
	// What is left in the queue is before both, and so is what is before that:
	// of commits of one second, or with a wrong clock, that may have been painted
	// from one side alone.
	for found && len(p.queue) > 0 && p.queue[0].when >= oldest {
		if err := p.step(); err != nil {
			return 0, err
		}
	}
	count := 0
	for id, n := range p.nodes {
		switch {
		case one(n) && n.gone:
			return 0, &CutOffError{id.String()}
		case one(n):
			count++
		}
	}
	return count, nil
}
