// Package page makes the pages that a ledger has for people who browse it: README.md at its root, of each transaction, and
// the tables of transactions and denials. They are a view of the record: nothing is decided by one, and no stage
// fails for one. An audit makes them again and tells which say anything else.
//
// A page names in its first line the version of what made it:
//
//	<!-- countersign page 1 -->
//
// What a version makes of a record never changes: it has a package of its own (page/v1), with its own words and its own
// escaping. Each commit of the ledger brings its transaction's page in the newest version that its program knows. A table keeps
// the version that it was begun with: programs add rows to it in that version, and leave alone a table of a version that
// they do not know. What a page of an unknown version says, nobody has checked. It is pure.
package page

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/countersign-dev/countersign/pipeline/page/v1"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Version makes pages. No function of it fails, or changes what it is given.
type Version struct {
	// Root is README.md at the root.
	Root func() []byte
	// Transaction is README.md of a transaction's directory, dir, of which payloads are the events so far and tx is what
	// they fold to.
	Transaction func(dir fs.FS, payloads []ledger.Payload, tx ledger.Transaction) []byte
	// Rows are what a commit adds to tables: payloads and tx are those of its transaction, first says that it begins it, and
	// denials are the files that it adds to denied/.
	Rows func(payloads []ledger.Payload, tx ledger.Transaction, first bool, denials map[string][]byte) []Row
}

// A Row is one in a table. Add returns the table with it, given the one before, nil where there is none.
type Row = struct {
	File string // the table, from the ledger's root
	Add  func(before []byte) []byte
}

// Versions are the versions that a program knows, the first one being version 1. None are all that there are.
type Versions []Version

var all = Versions{
	{v1.Root, v1.Transaction, v1.Rows}, // 1
}

func (v Versions) known() Versions {
	if len(v) == 0 {
		return all
	}
	return v
}

// And are these versions and the one that comes next.
func (v Versions) And(next Version) Versions { return append(slices.Clip(v.known()), next) }

// Newest is the number of the newest version.
func (v Versions) Newest() int { return len(v.known()) }

// Knows reports whether a number is that of a version that is known here.
func (v Versions) Knows(number int) bool { return 0 < number && number <= v.Newest() }

func (v Versions) of(number int) Version { return v.known()[number-1] }

const begin, end = "<!-- countersign page ", " -->\n"

// marked is a page with the line that names its version.
func marked(number int, text []byte) []byte {
	return append([]byte(begin+strconv.Itoa(number)+end), text...)
}

// MaxSize is the size of the largest page, in bytes. All that are made here are much smaller, and what is larger is none.
const MaxSize = 4 << 20

// Number is the version that a page names, from 1 to 9999; 0 where it is none.
func Number(raw []byte) int {
	if len(raw) > MaxSize {
		return 0
	}
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	number, named := strings.CutPrefix(string(line)+"\n", begin)
	number, ends := strings.CutSuffix(number, end)
	n, err := strconv.Atoi(number)
	if !named || !ends || err != nil || n < 1 || n > 9999 || strconv.Itoa(n) != number {
		return 0
	}
	return n
}

// body is a page without its first line.
func body(raw []byte) []byte {
	_, rest, _ := bytes.Cut(raw, []byte("\n"))
	return rest
}

// Root is README.md at the root in a version that is known.
func (v Versions) Root(number int) []byte { return marked(number, v.of(number).Root()) }

// Transaction is the page of a transaction in a version that is known.
func (v Versions) Transaction(number int, dir fs.FS, payloads []ledger.Payload, tx ledger.Transaction) []byte {
	return marked(number, v.of(number).Transaction(dir, payloads, tx))
}

// Tables are what a commit adds to tables, by version and by file.
type Tables struct {
	versions Versions
	rows     []map[string][]Row
}

// Tables returns what Version.Rows says.
func (v Versions) Tables(payloads []ledger.Payload, tx ledger.Transaction, first bool, denials map[string][]byte) Tables {
	t := Tables{versions: v}
	for _, one := range v.known() {
		of := map[string][]Row{}
		for _, r := range one.Rows(payloads, tx, first, denials) {
			of[r.File] = append(of[r.File], r)
		}
		t.rows = append(t.rows, of)
	}
	return t
}

// Files are the tables that a version that is known adds to.
func (t Tables) Files() []string {
	var out []string
	for _, of := range t.rows {
		out = slices.AppendSeq(out, maps.Keys(of))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Adds reports whether a version that is known adds anything to a table.
func (t Tables) Adds(number int, file string) bool { return len(t.rows[number-1][file]) > 0 }

// Add is a table with what is added to it, in a version that is known: the one that the table before has. Of what is no
// table of that version nothing is kept.
func (t Tables) Add(number int, file string, before []byte) []byte {
	if Number(before) == number {
		before = body(before)
	} else {
		before = nil
	}
	for _, r := range t.rows[number-1][file] {
		before = r.Add(before)
	}
	return marked(number, before)
}

// Of are the pages that belong to an entry, given the tree before it: that of its transaction, the tables that have a new
// row, and the one at the root with the first entry. Whatever is in the place of one, there is no error: a file or a
// link is replaced, a directory, which would lose files, stays, and so does a table that cannot be read.
func (v Versions) Of(tree fs.FS, e writing.Entry) map[string][]byte {
	newest := v.Newest()
	out := map[string][]byte{}
	if _, first := e.Files[ledger.SchemaFile]; first {
		out[ledger.ReadmeFile] = v.Root(newest)
	}
	events, payloads, tx := e.Record()
	if events == "" {
		return out // the ledger's own events
	}
	dir := path.Dir(events)
	own := path.Join(dir, ledger.ReadmeFile)
	out[own] = v.Transaction(newest, laidOver{e.Files, tree, dir}, payloads, tx)
	_, err := fs.Stat(tree, events)
	tables := v.Tables(payloads, tx, err != nil, denialsOf(e))
	for _, file := range tables.Files() {
		before, readable := tableIn(tree, file)
		number := Number(before)
		if number == 0 {
			number = newest
		}
		if readable && v.Knows(number) && tables.Adds(number, file) {
			out[file] = tables.Add(number, file, before)
		}
	}
	maps.DeleteFunc(out, func(name string, _ []byte) bool {
		info, err := fs.Lstat(tree, name)
		return err == nil && info.IsDir()
	})
	return out
}

// TablesOf are the tables that an entry adds to, or may, as far as it tells by itself.
func (v Versions) TablesOf(e writing.Entry) []string {
	events, payloads, tx := e.Record()
	if events == "" {
		return nil
	}
	first := false
	for name := range e.Files {
		first = first || writing.IsListed(name)
	}
	return v.Tables(payloads, tx, first, denialsOf(e)).Files()
}

func denialsOf(e writing.Entry) map[string][]byte {
	out := map[string][]byte{}
	for name, raw := range e.Files {
		if ledger.IsDenial(name) {
			out[name] = raw
		}
	}
	return out
}

// tableIn reads a table, nil where there is none; false says that there may be one.
func tableIn(tree fs.FS, name string) (raw []byte, readable bool) {
	info, err := fs.Lstat(tree, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > MaxSize {
		return nil, err == nil || errors.Is(err, fs.ErrNotExist)
	}
	raw, err = fs.ReadFile(tree, name)
	return raw, err == nil
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
