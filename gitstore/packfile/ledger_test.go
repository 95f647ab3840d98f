package packfile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// A book makes the commits of a ledger: every one adds a transaction of four
// files, which is twelve objects.
type book struct {
	tb    testing.TB
	batch *Batch
	trees map[string][]byte // by path
	ids   map[string]ID
	tip   ID
	n     int
}

func newBook(tb testing.TB) *book {
	return &book{tb: tb, batch: &Batch{}, trees: map[string][]byte{}, ids: map[string]ID{}}
}

// transaction is the n-th one's directory and its files.
func transaction(n int) (dir []string, files []treeFile) {
	random := rand.New(rand.NewPCG(5, uint64(n)))
	shard := sha256.Sum256(fmt.Append(nil, n))
	id := fmt.Sprintf("tx-%06d-%08x", n, random.Uint32())
	for _, name := range []string{"events.jsonl", "fix.patch", "intent.json", "transaction.json"} {
		var text strings.Builder
		fmt.Fprintf(&text, "{\"schema\":%q,\"tx\":%q,\"patch_id\":\"%016x%016x\"", name, id, random.Uint64(), random.Uint64())
		for i := range 2 + random.IntN(4) {
			fmt.Fprintf(&text, ",\n \"field_%d\":\"value %d of %s\"", i, random.IntN(1000), id)
		}
		files = append(files, treeFile{"100644", name, text.String() + "}\n"})
	}
	return []string{"transactions", "2026", "11", "20", fmt.Sprintf("%02x", shard[0]), id}, files
}

type treeFile struct{ mode, name, text string }

func (b *book) commit() {
	dir, files := transaction(b.n)
	objects := make([]Object, len(files))
	for i, f := range files {
		objects[i] = Object{plumbing.BlobObject, []byte(f.text)}
	}
	ids, err := b.batch.Add(objects...)
	fatal(b.tb, err)
	var tree []byte
	for i, f := range files {
		tree = putEntry(tree, f.mode, f.name, ids[i])
	}
	id := b.put(strings.Join(dir, "/"), tree)
	for depth := len(dir) - 1; depth >= 0; depth-- {
		path := strings.Join(dir[:depth], "/")
		id = b.put(path, putEntry(b.trees[path], "40000", dir[depth], id))
	}
	b.tip, err = b.batch.AddOn(Object{plumbing.CommitObject, b.text(id)}, None)
	fatal(b.tb, err)
	b.n++
}

func (b *book) text(tree ID) []byte {
	parent := ""
	if b.n > 0 {
		parent = fmt.Sprintf("parent %s\n", b.tip)
	}
	const who = "countersign <countersign@localhost>"
	return fmt.Appendf(nil, "tree %s\n%sauthor %s %[4]d +0000\ncommitter %[3]s %[4]d +0000\n\n%s", tree, parent, who, 1795132800+b.n, message(b.n))
}

func message(n int) string { return fmt.Sprintf("propose %d: a change\n", n) }

func (b *book) put(path string, tree []byte) ID {
	id, err := b.batch.AddOn(Object{plumbing.TreeObject, tree}, b.ids[path])
	fatal(b.tb, err)
	b.trees[path], b.ids[path] = tree, id
	return id
}

// putEntry returns a tree with one entry more, or another one of that name. No
// name here is the beginning of another.
func putEntry(tree []byte, mode, name string, id ID) []byte {
	at, end := 0, 0
	for at < len(tree) {
		zero := at + bytes.IndexByte(tree[at:], 0)
		_, other, _ := bytes.Cut(tree[at:zero], []byte(" "))
		end = zero + 1 + 20
		if c := strings.Compare(string(other), name); c == 0 {
			break
		} else if c > 0 {
			end = at
			break
		}
		at = end
	}
	out := make([]byte, 0, len(tree)+len(mode)+len(name)+2+20)
	out = append(fmt.Appendf(append(out, tree[:at]...), "%s %s\x00", mode, name), id.Append(nil)...)
	return append(out, tree[end:]...)
}

// fastImport is the same commits for `git fast-import`.
func fastImport(ref string, commits int) string {
	var text strings.Builder
	for n := range commits {
		fmt.Fprintf(&text, "commit %s\ncommitter countersign <countersign@localhost> %d +0000\ndata %d\n%s\n", ref, 1795132800+n, len(message(n)), message(n))
		dir, files := transaction(n)
		for _, f := range files {
			fmt.Fprintf(&text, "M %s inline %s/%s\ndata %d\n%s\n", f.mode, strings.Join(dir, "/"), f.name, len(f.text), f.text)
		}
	}
	return text.String()
}
