package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Pages are the pages that belong to an entry, given the tree before it: that of its
// transaction, and the tables that have a new row.
func Pages(tree fs.FS, e Entry) (map[string][]byte, error) {
	if has, err := hasPages(tree, e); !has || err != nil {
		return nil, err
	}
	var events string
	for name := range e.Files {
		if _, ok := TransactionOf(name); ok && path.Base(name) == EventsFile && strings.Count(name, "/") == 6 {
			events = name
		}
	}
	if events == "" {
		return nil, nil // the ledger's own events
	}
	if e.payloads == nil {
		log, err := ReadLog(e.Files[events])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", events, err)
		}
		e.payloads, e.tx = log.payloads, log.tx
	}
	dir := path.Dir(events)
	out := map[string][]byte{path.Join(dir, ReadmeFile): pageOf(laidOver{e.Files, tree, dir}, e.payloads, e.tx)}
	_, err := fs.Stat(tree, events)
	first := errors.Is(err, fs.ErrNotExist)
	if err != nil && !first {
		return nil, err
	}
	for _, row := range rowsOf(e, first) {
		before, again := out[row.File]
		if !again {
			if before, err = tableIn(tree, row.File); errors.Is(err, errInTheWay) {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		out[row.File] = row.Add(before)
	}
	return out, nil
}

var errInTheWay = errors.New("a directory is in the way")

// tableIn reads a table, nil where there is none. What somebody put in its place keeps nobody from recording: what is
// no file is replaced, and beside a directory, which would lose files, there is no table (errInTheWay).
func tableIn(tree fs.FS, name string) ([]byte, error) {
	raw, err := fs.ReadFile(tree, name)
	if err == nil {
		return raw, nil
	}
	info, err2 := fs.Lstat(tree, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err2 == nil && info.IsDir():
		return nil, errInTheWay
	case err2 == nil && !info.Mode().IsRegular():
		return nil, nil
	}
	return nil, err
}

// Tables are the tables that an entry adds rows to, as far as it tells by itself: a proposal is
// told by its place in proposed/, an end by transaction.json.
func Tables(e Entry) (files []string) {
	for name := range e.Files {
		id := strings.TrimSuffix(path.Base(name), ".json")
		switch {
		case strings.HasPrefix(name, proposedRoot+"/") && CheckID(id) == nil:
			shard := path.Dir(Dir(id))
			year := path.Dir(path.Dir(path.Dir(shard)))
			files = append(files, path.Join(TransactionsDir, ReadmeFile), path.Join(year, ReadmeFile))
			files = append(files, tablesOf(shard)...)
		case path.Base(name) == TransactionFile && bytes.Contains(e.Files[name], []byte(`"closed":true`)): // a text has \" there
			files = append(files, tablesOf(path.Dir(path.Dir(name)))...)
		case IsDenial(name):
			files = append(files, path.Join(deniedRoot, ReadmeFile), path.Join(path.Dir(path.Dir(name)), ReadmeFile))
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// tablesOf are the tables that list or count the transactions of a folder of a day.
func tablesOf(shard string) []string {
	return []string{path.Join(path.Dir(path.Dir(shard)), ReadmeFile), path.Join(path.Dir(shard), ReadmeFile), path.Join(shard, ReadmeFile)}
}

// rowsOf are the rows that an entry adds to tables.
func rowsOf(e Entry, first bool) (rows []TableRow) {
	rows = transactionRows(e.payloads, e.tx, first)
	var denials []string
	for name := range e.Files {
		if IsDenial(name) {
			denials = append(denials, name)
		}
	}
	slices.Sort(denials)
	for _, name := range denials {
		rows = append(rows, DenialRows(name, e.Files[name])...)
	}
	return rows
}

// laidOver is a transaction's directory as an entry leaves it.
type laidOver struct {
	files map[string][]byte
	tree  fs.FS
	dir   string
}

// ReadFile reads one of the entry's files, else one that is there.
func (o laidOver) ReadFile(name string) ([]byte, error) {
	if data, ok := o.files[path.Join(o.dir, name)]; ok {
		return data, nil
	}
	return fs.ReadFile(o.tree, path.Join(o.dir, name))
}

// Open is never called.
func (o laidOver) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
}
