package audit

import (
	"bytes"
	"slices"
	"sort"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// readSchema finds out whether the ledger has pages: ledger.json says so, which was there before the audit
// begins or which the oldest commit that has one brings. Where it is neither, or cannot be read,
// that is found elsewhere, and pages are looked for.
func (a *auditor) readSchema(all []*transaction) {
	e, age := history.Entry{}, -1
	if former, err := a.Former(ledger.SchemaFile); err == nil {
		e = former[ledger.SchemaFile]
	}
	for _, tx := range all {
		for _, v := range tx.versions {
			if !v.schema.IsZero() && (e.ID.IsZero() || age >= 0 && v.age > age) { // what a later one says is found elsewhere
				e, age = history.Entry{Mode: history.ModeFile, ID: v.schema}, v.age
			}
		}
	}
	if a.paged = true; e.ID.IsZero() {
		return
	}
	raw, err := a.Blob(e.ID)
	a.paged = err != nil || !bytes.Equal(ledger.Schema(createdAt(raw), "1"), raw)
}

// createdAt is the time in a ledger.json as this program writes it.
func createdAt(raw []byte) string {
	rest, _ := bytes.CutPrefix(raw, []byte(`{"created_at":"`))
	at, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(at)
}

// pages is L23 for one version: it brings its transaction's page as its events make it, and each
// table with its own row more.
func (l *life) pages(v *version, from, to int, tx ledger.Transaction) {
	i := slices.IndexFunc(v.changes, func(ch history.Change) bool { return ch.Path == ledger.ReadmeFile })
	if !l.paged {
		if i >= 0 {
			l.fail("L23", v, ledger.ReadmeFile, "is a page in a ledger of schema 1, which has none")
		}
		for _, ch := range v.tables {
			l.add("L23", v.commit, ch.Path, "is a page in a ledger of schema 1, which has none")
		}
		return
	}
	same := bytes.Equal(l.content[v.page.ID], l.log.Page(newDirFS(l.files, l.content), to, tx))
	switch {
	case v.page == history.Entry{} && i < 0:
		l.fail("L23", v, ledger.ReadmeFile, "is missing: each stage writes it")
	case !same && i < 0:
		l.fail("L23", v, ledger.ReadmeFile, "was not written again: the commit changes what it shows")
	case !same && to < len(l.log.Events()) && v.page != history.Entry{}: // the last one was checked
		l.fail("L23", v, ledger.ReadmeFile, "is not the page that the events so far make")
	}
	l.tables(v, l.rows(v, from, to, tx))
}

// rows are those that a version adds to tables, by file.
func (l *life) rows(v *version, from, to int, tx ledger.Transaction) map[string][]ledger.TableRow {
	all := l.log.Rows(from, to, tx)
	denials := slices.DeleteFunc(slices.Clone(v.index), func(ch history.Change) bool { return !ledger.IsDenial(ch.Path) })
	sort.Slice(denials, func(i, j int) bool { return denials[i].Path < denials[j].Path })
	for _, ch := range denials {
		all = append(all, ledger.DenialRows(ch.Path, l.content[ch.New.ID])...)
	}
	out := map[string][]ledger.TableRow{}
	for _, row := range all {
		out[row.File] = append(out[row.File], row)
	}
	return out
}

// tables checks the tables that a version wrote: those that its rows belong to, each as it was
// before with the rows.
func (l *life) tables(v *version, rows map[string][]ledger.TableRow) {
	for _, ch := range v.tables {
		mine, ok := rows[ch.Path]
		delete(rows, ch.Path)
		switch raw := l.read(v.commit, ch.Path, ch.New); {
		case !ok:
			l.add("L23", v.commit, ch.Path, "was written, but its commit adds no row to it")
		case raw == nil: // which was told
		default:
			var want []byte
			if ch.Old.Mode&0o170000 == 0o100000 { // else it is no table
				want = l.read(v.commit, ch.Path, ch.Old)
			}
			for _, row := range mine {
				want = row.Add(want)
			}
			if !bytes.Equal(raw, want) {
				l.add("L23", v.commit, ch.Path, "is not the table before with the rows of this commit")
			}
		}
	}
	for name := range rows {
		if l.inTheWay(name) {
			continue // which was told
		}
		l.add("L23", v.commit, name, "lacks the row of what this commit records")
	}
}

// inTheWay reports whether there is a directory where a table would be, of this history or from before.
func (a *auditor) inTheWay(table string) bool {
	if a.taken[table] {
		return true
	}
	former, err := a.Former(table)
	_, file := former[table]
	return err == nil && len(former) > 0 && !file
}
