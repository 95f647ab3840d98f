package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// partialCopy is what is here of a ledger that is elsewhere: the objects that were
// needed so far, in a directory of their own. It is a cache, and may be removed
// at any time. What is missing is asked for when it is read.
type partialCopy struct {
	ctx    context.Context
	server *wire.Server
	own    *git.Objects

	mu    sync.Mutex
	tip   packfile.ID // what to ask for again where the server gives no objects by hash
	depth int         // how many commits are needed, from the tip on back
	whole bool        // all of them were fetched
	base  packfile.ID // the last commit of which all was fetched at once
}

func openPartial(dir string, server *wire.Server) (*partialCopy, error) {
	own, err := openObjects(filepath.Join(dir, "objects"), server.Format())
	if err != nil {
		return nil, fmt.Errorf("opening the copy of the ledger: %w", err)
	}
	return &partialCopy{server: server, own: own}, nil
}

// maxCachePacks is how many fetches are kept before git makes few packs of them.
var maxCachePacks = 200

// openObjects opens an objects directory of ours, which it makes if need be.
func openObjects(dir string, format packfile.Format) (*git.Objects, error) {
	own := &git.Objects{Dir: dir, Format: format}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	_ = own.Merge(context.Background(), maxCachePacks) // else all is there, in more files
	return own, nil
}

// View returns an object, which it fetches if it is not here.
func (p *partialCopy) View(id packfile.ID) (packfile.Object, error) {
	o, err := p.own.View(id)
	if !errors.Is(err, packfile.ErrMissing) {
		return o, err
	}
	if err := p.fetchObjects([]packfile.ID{id}, shallow); err != nil {
		return packfile.Object{}, err
	}
	return p.own.View(id)
}

// Size returns an object's type and size, likewise.
func (p *partialCopy) Size(id packfile.ID) (plumbing.ObjectType, int64, error) {
	kind, size, err := p.own.Size(id)
	if !errors.Is(err, packfile.ErrMissing) {
		return kind, size, err
	}
	if _, err := p.View(id); err != nil {
		return 0, 0, err
	}
	return p.own.Size(id)
}

func (p *partialCopy) has(id packfile.ID) bool {
	_, _, err := p.own.Size(id)
	return err == nil
}

// fetchTip gets a commit with the first levels of its tree. Of a server that cannot
// filter it gets all, as what is missing could not be asked for once the ref has moved:
// what came after seen, the commit that was remembered, where all before that is here
// anyway, and else the whole commit. The commit alone says nothing there, as a history
// that was fetched has commits without all that they lead to (T80).
func (p *partialCopy) fetchTip(tip, seen packfile.ID) error {
	p.tip, p.depth, p.whole = tip, 1, false
	if p.server.CanFilter() {
		if p.has(tip) {
			return nil
		}
		return p.fetch(wire.FetchRequest{Wants: []packfile.ID{tip}, Depth: 1, Filter: "tree:2"})
	}
	p.whole = true
	if p.isWhole(tip) {
		return nil
	}
	base := p.base // a whole fetch takes long: the ref has moved meanwhile, and the next try goes on from it
	if p.isWhole(seen) {
		base = seen
	}
	if !base.IsZero() && !seen.IsZero() && seen != tip {
		if err := p.fetch(wire.FetchRequest{Wants: []packfile.ID{tip}, Haves: []packfile.ID{seen}, Shallow: []packfile.ID{seen}}); err != nil {
			return err
		}
		after, err := descends(p.own, tip, base)
		if after && err == nil {
			if after, err = descends(p.own, base, seen); after && err == nil {
				return p.noteWhole(tip)
			}
		}
	}
	if err := p.fetch(wire.FetchRequest{Wants: []packfile.ID{tip}, Depth: 1}); err != nil {
		return err
	}
	p.base = tip
	return p.noteWhole(tip)
}

// isWhole reports whether all that a commit leads to, but for its parents, is known to
// be here.
func (p *partialCopy) isWhole(commit packfile.ID) bool {
	_, err := os.Stat(filepath.Join(p.own.Dir, "whole", commit.String()))
	return err == nil && p.has(commit)
}

func (p *partialCopy) noteWhole(commit packfile.ID) error {
	dir := filepath.Join(p.own.Dir, "whole")
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, commit.String()), nil, 0o666)
	}
	if err != nil {
		return fmt.Errorf("noting what is here of the ledger: %w", err)
	}
	return nil
}

// What comes with a tree that is wanted by its hash.
var (
	shallow = "tree:1" // what is directly in it
	deep    = ""       // everything below
	// what is directly in it with its files, and in the directories below
	withTable = "tree:2"
)

// fetchObjects gets objects, and of trees what the filter leaves. A server that
// gives nothing by hash is asked for the whole tip, and for as many whole commits
// before it as are needed.
func (p *partialCopy) fetchObjects(ids []packfile.ID, filter string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.whole {
		return nil // it is nowhere
	}
	if p.server.CanFilter() {
		err := p.fetch(wire.FetchRequest{Wants: ids, Filter: filter})
		if err == nil || unreachable(err) {
			return err
		}
	}
	p.whole = true
	return p.fetch(wire.FetchRequest{Wants: []packfile.ID{p.tip}, Depth: p.depth})
}

// unreachable tells an answer that never came from one that says no.
func unreachable(err error) bool {
	var auth *wire.AuthError
	var network *wire.NetworkError
	var status *wire.StatusError
	return errors.As(err, &auth) || errors.As(err, &network) || errors.As(err, &status)
}

// fetchHistory gets the commits after ancestors, to show that tip descends from
// one of them.
func (p *partialCopy) fetchHistory(tip packfile.ID, ancestors ...packfile.ID) error {
	ancestors = slices.DeleteFunc(ancestors, packfile.ID.IsZero)
	if slices.Contains(ancestors, tip) {
		return nil
	}
	req := wire.FetchRequest{Wants: []packfile.ID{tip}, Haves: ancestors, Shallow: ancestors}
	if p.server.CanFilter() {
		req.Filter = "tree:0"
	}
	return p.fetch(req)
}

func (p *partialCopy) fetch(req wire.FetchRequest) error {
	held, err := fetchPack(p.ctx, p.server, req, p.own, false)
	held.Release() // git deletes nothing there
	return err
}

// prefetch gets what is needed to read these paths of a tree, one request a
// level.
func (p *partialCopy) prefetch(root packfile.ID, paths []string) error {
	for range 12 { // a server that sends something else is found out when it is read
		trees, whole, err := p.missing(root, paths)
		if err != nil || len(trees)+len(whole) == 0 {
			return err
		}
		if len(trees) > 0 {
			tables, err2 := p.tables(root, paths)
			if err2 != nil {
				return err2
			}
			err = p.fetchObjects(append(trees, tables...), shallow)
		} else {
			err = p.fetchObjects(whole, deep)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tables are those tables beside these paths that are not here, as far as the directories are: who adds a
// row needs them, and they come with what is fetched anyway.
func (p *partialCopy) tables(root packfile.ID, paths []string) (out []packfile.ID, err error) {
	for _, name := range paths {
		at := treeEntry{mode: filemode.Dir, id: root}
		parts := strings.Split(name, "/")
		for depth := 0; at.mode == filemode.Dir && p.has(at.id); depth++ {
			entries, err := readTree(p.own, at.id)
			if err != nil {
				return nil, err
			}
			table, ok := named(entries, ledger.ReadmeFile)
			if ok && 0 < depth && depth < transactionDepth && ledger.IsPage(path.Join(path.Join(parts[:depth]...), ledger.ReadmeFile)) && !p.has(table.id) && !slices.Contains(out, table.id) {
				out = append(out, table.id)
			}
			if depth == len(parts) {
				break
			}
			at, _ = named(entries, parts[depth])
		}
	}
	return out, nil
}

// prefetchRows gets what entries' pages are made of and is not here yet: tables, and the directories that
// these are in.
func (p *partialCopy) prefetchRows(root packfile.ID, pages writing.Pages, entries []writing.Entry) error {
	var dirs []string
	for _, e := range entries {
		for _, file := range pages.TablesOf(e) {
			dirs = append(dirs, path.Dir(file))
		}
	}
	for range 12 {
		trees, _, err := p.missing(root, dirs)
		if err != nil {
			return err
		}
		tables, err := p.tables(root, dirs)
		if err != nil || len(trees)+len(tables) == 0 {
			return err
		}
		filter := shallow
		if len(trees) == 1 {
			filter = withTable
		}
		if err := p.fetchObjects(append(trees, tables...), filter); err != nil {
			return err
		}
	}
	return nil
}

// transactionDepth is how many directories a transaction's path has.
const transactionDepth = 6

func (p *partialCopy) hasAll(entries []treeEntry) bool {
	return !slices.ContainsFunc(entries, func(e treeEntry) bool { return !p.has(e.id) })
}

// missing returns the first tree on each path that is not here; those of which everything is wanted, transactions'
// own directories and lists of transactions, apart from the others.
func (p *partialCopy) missing(root packfile.ID, paths []string) (trees, whole []packfile.ID, err error) {
	for _, name := range paths {
		id, all, err := p.firstMissing(root, name)
		if err != nil {
			return nil, nil, err
		}
		to := &trees
		if all {
			to = &whole
		}
		if !id.IsZero() && !slices.Contains(*to, id) {
			*to = append(*to, id)
		}
	}
	return trees, whole, nil
}

// firstMissing walks down a path to a tree that is not here, or, where everything in it is
// wanted, is not here with all its files; zero if there is none.
func (p *partialCopy) firstMissing(root packfile.ID, name string) (id packfile.ID, whole bool, err error) {
	at := treeEntry{mode: filemode.Dir, id: root}
	for depth, part := range append(strings.Split(name, "/"), "") {
		if at.mode != filemode.Dir {
			break // there is no such path
		}
		whole = depth >= transactionDepth || part == "" && writing.IsListed(name)
		if !p.has(at.id) {
			return at.id, whole, nil
		}
		entries, err := readTree(p.own, at.id)
		if err != nil {
			return id, false, err
		}
		if whole && !p.hasAll(entries) {
			return at.id, true, nil
		}
		at, _ = named(entries, part)
	}
	return id, false, nil
}
