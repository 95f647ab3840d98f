package lookup

import (
	"cmp"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Files are all files of a transaction, by their paths in its directory.
func Files(tree fs.FS, id string) (map[string][]byte, error) {
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	err = fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(dir, name)
		return err
	})
	return files, err
}

// IDs returns the ids of all transactions, oldest first.
func IDs(tree fs.FS) ([]string, error) {
	ids := []string{}
	for id, err := range Backward(tree) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	return ids, nil
}

// Backward yields the ids of all transactions, newest first, and reads no day
// before it comes to it. It ends with the first error.
func Backward(tree fs.FS) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { backward(tree, ledger.TransactionsDir, 3, yield) } // year, month, day
}

// backward yields the ids of the days so many levels below dir, and reports
// whether more are asked for.
func backward(tree fs.FS, dir string, levels int, yield func(string, error) bool) bool {
	if levels == 0 {
		ids, err := idsOf(tree, dir)
		if err != nil {
			yield("", err)
			return false
		}
		for _, id := range slices.Backward(ids) {
			if !yield(id, nil) {
				return false
			}
		}
		return true
	}
	below, err := ledger.ListDir(tree, dir)
	if err != nil {
		yield("", err)
		return false
	}
	// A year of five digits comes after one of four.
	slices.SortFunc(below, func(a, b fs.DirEntry) int {
		return cmp.Or(len(a.Name())-len(b.Name()), strings.Compare(a.Name(), b.Name()))
	})
	for _, e := range slices.Backward(below) {
		if ledger.IsPage(path.Join(dir, e.Name())) {
			continue
		}
		if !backward(tree, path.Join(dir, e.Name()), levels-1, yield) {
			return false
		}
	}
	return true
}

// idsOf returns the ids of a day's transactions, oldest first.
func idsOf(tree fs.FS, day string) ([]string, error) {
	var ids []string
	shards, err := ledger.ListDir(tree, day)
	if err != nil {
		return nil, err
	}
	for _, shard := range shards {
		dir := path.Join(day, shard.Name())
		if ledger.IsPage(dir) {
			continue
		}
		entries, err := ledger.ListDir(tree, dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			id := e.Name()
			if ledger.IsPage(path.Join(dir, id)) {
				continue
			}
			if dir := path.Join(dir, id); ledger.CheckID(id) != nil || ledger.Dir(id) != dir {
				return nil, &ledger.DamagedError{Path: dir, Message: "is not where a transaction belongs"}
			}
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Form says in a word what an input was.
func Form(in ledger.Input) string {
	form := in.Kind
	if in.Format != "" {
		form = in.Format
	}
	if in.Via != "" {
		form += " over " + in.Via
	}
	return form
}

// Does is what the transaction's patch does to which files; it stands where the proposer does not say
// what the patch is for.
func Does(t ledger.Transaction) string {
	if t.Pointers.Proposal == nil {
		return ""
	}
	return DoesTo(t.Pointers.Proposal.BaseSHA256, t.Pointers.Proposal.AfterSHA256)
}

// DoesTo is what becomes of which files, the first few, by their hashes before and after; nil is no file:
// "update doc.go, add NEW.md".
func DoesTo(before, after map[string]*string) string {
	names := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		verb := "update"
		if after[name] == nil {
			verb = "delete"
		} else if before[name] == nil {
			verb = "add"
		}
		names[verb] = append(names[verb], name)
	}
	const most = 3
	var said []string
	named := 0
	for _, verb := range []string{"update", "add", "delete"} {
		if shown := names[verb][:min(len(names[verb]), most-named)]; len(shown) > 0 {
			said, named = append(said, verb+" "+strings.Join(shown, ", ")), named+len(shown)
		}
	}
	text := strings.Join(said, ", ")
	if len(after) > named {
		text += fmt.Sprintf(" and %d more", len(after)-named)
	}
	return text
}
