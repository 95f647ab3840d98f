package ledger_test

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

func TestNewID(t *testing.T) {
	entropy := func() *bytes.Reader { return bytes.NewReader([]byte("0123456789abcdef")) }
	a, err := writing.NewID(moment, entropy())
	fatal(t, err)
	b, _ := writing.NewID(moment.In(time.FixedZone("", 3600)), entropy())
	later, _ := writing.NewID(moment.Add(time.Millisecond), entropy())
	if a != b || later <= a || ledger.CheckID(a) != nil {
		t.Errorf("%s %s %s", a, b, later)
	}
	if _, err := writing.NewID(moment, iotest.ErrReader(errors.New("dry"))); err == nil {
		t.Error("an id without entropy")
	}
}

func TestDir(t *testing.T) {
	id, err := writing.NewID(time.Date(2026, 3, 31, 23, 59, 59, 0, time.FixedZone("", -3600)), bytes.NewReader(make([]byte, 10)))
	fatal(t, err)
	if got, want := ledger.Dir(id), "transactions/2026/04/01/"+canon.Hex([]byte(id))[:2]+"/"+id; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCheckID(t *testing.T) {
	if err := ledger.CheckID(txID); err != nil {
		t.Error(err)
	}
	for _, id := range []string{
		"", "tx_", txID[3:], "TX_" + txID[3:], strings.ToLower(txID), txID[:28], txID + "0", txID + "\n",
		"tx_../../../../../../../../../etc", "tx_81KE5W5200041061050R3GG28A", "tx_01KE5W5200041061050R3GG28U",
	} {
		if ledger.CheckID(id) == nil {
			t.Errorf("%q is taken for an id", id)
		}
	}
}

// three is a ledger with an open, a closed and another open transaction.
func three(t *testing.T) (fstest.MapFS, []string) {
	tree := fstest.MapFS{"README.md": {}}
	var ids []string
	for i, closed := range []bool{false, true, false} {
		id, err := writing.NewID(moment.AddDate(0, i, 0), bytes.NewReader(make([]byte, 10)))
		fatal(t, err)
		ids = append(ids, id)
		tree[ledger.Dir(id)+"/"+ledger.TransactionFile] = &fstest.MapFile{
			Data: []byte(line(t, ledger.Transaction{TransactionID: id, Status: ledger.Proposed, Closed: closed})),
		}
	}
	tree[ledger.Dir(ids[0])+"/"+ledger.PatchFile(patchID)] = &fstest.MapFile{}
	listed(t, tree, patchID, ids[0])
	return tree, ids
}

func all(ledger.Transaction) bool { return true }

// TestLatest: the newest are found without a look at older ones.
func TestLatest(t *testing.T) {
	tree, ids := three(t)
	for _, c := range []struct {
		max  int
		open bool
		want []string
		more bool
	}{
		{1, false, ids[2:], true}, {2, false, ids[1:], true}, {3, false, ids, false}, {4, false, ids, false},
		{1, true, ids[2:], true}, {2, true, []string{ids[0], ids[2]}, false},
	} {
		latest, more, err := lookup.Latest(tree, c.max, func(t ledger.Transaction) bool { return !c.open || !t.Closed })
		var got []string
		for _, t := range latest {
			got = append(got, t.TransactionID)
		}
		if err != nil || more != c.more || !slices.Equal(got, c.want) {
			t.Errorf("%d: %v %v %v, want %v %v", c.max, got, more, err, c.want, c.more)
		}
	}
	tree["transactions/2025"] = &fstest.MapFile{} // a year that cannot be read
	if latest, _, err := lookup.Latest(tree, 2, all); err != nil || len(latest) != 2 {
		t.Errorf("%v %v", latest, err)
	}
	if latest, _, err := lookup.Latest(tree, 3, all); err == nil {
		t.Errorf("a file for a year: %v", latest)
	}
}

// listed puts a transaction in the index.
func listed(t *testing.T, tree fstest.MapFS, patchID, id string) {
	tree[ledger.ProposedDir(patchID)+"/"+id+".json"] = &fstest.MapFile{Data: []byte(line(t, ledger.Listed{TransactionID: id}))}
}

func TestFind(t *testing.T) {
	tree, ids := three(t)
	both := canon.Hex([]byte("both"))
	for _, id := range ids[1:] {
		listed(t, tree, both, id)
	}
	for _, c := range []struct{ name, want string }{
		{ids[1], ids[1]},
		{ids[1][:9], ids[1]},
		{ids[1][3:9], ids[1]},
		{strings.ToLower(ids[2]), ids[2]},
		{strings.ToUpper(ids[2]), ids[2]},
		{"Tx_" + ids[2][3:], ids[2]},
		{patchID, ids[0]},
		{patchID[:63], ids[0]},
		{patchID[:7], ""},
		{"patchset:" + patchID, ids[0]},
		{strings.ToUpper(patchID), ""},
		{ids[2][6:11], ids[2]},
		{strings.ToLower(ids[1][6:10]), ids[1]},
		{ids[1][7:10], ""},
		{"tx_" + ids[1][6:11], ids[1]},
		{"tx_", ""},
		{"nothing", ""},
		{"../../../README.md", ""},
		{ids[0] + "0", ""},
	} {
		got, err := lookup.Find(tree, c.name)
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, lookup.ErrNotFound) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
	for name, n := range map[string]int{"01": 3, "tx_01K": 3, both: 2} {
		_, err := lookup.Find(tree, name)
		var several *lookup.AmbiguousError
		if !errors.As(err, &several) || len(several.IDs) != n || several.Name != name || !strings.Contains(err.Error(), several.IDs[1]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFindOpen(t *testing.T) {
	tree, ids := three(t)
	_, err := lookup.FindOpen(tree)
	var several *lookup.AmbiguousError
	if !errors.As(err, &several) || several.Name != "" || len(several.IDs) != 2 || !strings.Contains(err.Error(), "2 transactions are open") {
		t.Errorf("two open: %v", err)
	}
	delete(tree, ledger.Dir(ids[0])+"/"+ledger.TransactionFile)
	if _, err := lookup.FindOpen(tree); err == nil {
		t.Error("a transaction without its state")
	}
	delete(tree, ledger.Dir(ids[0])+"/"+ledger.PatchFile(patchID))
	if id, err := lookup.FindOpen(tree); id != ids[2] || err != nil {
		t.Errorf("one open: %s %v", id, err)
	}
	if id, err := lookup.Newest(tree); id != ids[2] || err != nil {
		t.Errorf("newest: %s %v", id, err)
	}
	delete(tree, ledger.Dir(ids[2])+"/"+ledger.TransactionFile)
	if id, err := lookup.FindOpen(tree); !errors.Is(err, lookup.ErrNoneOpen) {
		t.Errorf("none open: %s %v", id, err)
	}
}

func TestEmptyLedger(t *testing.T) {
	for _, tree := range []fstest.MapFS{{}, {"README.md": {}}} {
		_, err := lookup.Find(tree, "x")
		_, newest := lookup.Newest(tree)
		_, open := lookup.FindOpen(tree)
		if !errors.Is(err, lookup.ErrNoTransactions) || !errors.Is(newest, lookup.ErrNoTransactions) || !errors.Is(open, lookup.ErrNoneOpen) {
			t.Errorf("%v %v %v", err, newest, open)
		}
	}
}

// TestT55Misplaced: a transaction that is not where its id says it belongs.
func TestT55Misplaced(t *testing.T) {
	for _, dir := range []string{
		"transactions/2026/01/06/" + txID,
		"transactions/2026/01/05/x",
		"transactions/2026/01/05/" + strings.ToLower(txID),
	} {
		if ids, err := lookup.IDs(fstest.MapFS{dir + "/transaction.json": {}}); err == nil {
			t.Errorf("%s: %v", dir, ids)
		}
	}
	if ids, err := lookup.IDs(fstest.MapFS{"transactions/2026/01": {}}); err == nil {
		t.Errorf("a file for a month: %v", ids)
	}
}

// TestT03Denials: what cannot be read must not read as none.
func TestT03Denials(t *testing.T) {
	d := ledger.Denial{Fingerprint: "patchset:" + patchID, Kind: "fileChange", TransactionID: otherID, Author: actor}
	name := ledger.DeniedDir(patchID) + "/fileChange.json"
	tree := fstest.MapFS{name: {Data: []byte(line(t, d))}}
	if got, err := ledger.Denials(tree, patchID); err != nil || len(got) != 1 || got[0] != d {
		t.Errorf("%v %v", got, err)
	}
	if got, err := ledger.Denials(tree, canon.Hex(nil)); err != nil || got != nil {
		t.Errorf("another patch: %v %v", got, err)
	}
	for _, bad := range []string{"", "{}\n", " " + line(t, d), strings.Replace(line(t, d), `"kind"`, `"KIND"`, 1)} {
		tree[name] = &fstest.MapFile{Data: []byte(bad)}
		if got, err := ledger.Denials(tree, patchID); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
	if got, err := ledger.Denials(fstest.MapFS{ledger.DeniedDir(patchID): {}}, patchID); err == nil {
		t.Errorf("a file for a directory: %v", got)
	}
	broken := failing{tree, name}
	if got, err := ledger.Denials(broken, patchID); err == nil {
		t.Errorf("unreadable: %v", got)
	}
}

// failing is a tree with one file that cannot be read.
type failing struct {
	fs.FS
	name string
}

func (f failing) Open(name string) (fs.File, error) {
	if name == f.name {
		return nil, errors.New("disk on fire")
	}
	return f.FS.Open(name)
}

// TestT54Read: transaction.json is the fold of its events, in its own place.
func TestT54Read(t *testing.T) {
	whole := func() fstest.MapFS {
		tree := fstest.MapFS{}
		for name, f := range newDirectory(t).files {
			tree[ledger.Dir(txID)+"/"+name] = f
		}
		return tree
	}
	log, err := lookup.Read(whole(), txID)
	if err != nil || log.Transaction().TransactionID != txID {
		t.Fatal(err)
	}
	state, events := ledger.Dir(txID)+"/"+ledger.TransactionFile, ledger.Dir(txID)+"/"+ledger.EventsFile
	for name, edit := range map[string]func(fstest.MapFS){
		"another status": func(m fstest.MapFS) {
			m[state] = &fstest.MapFile{Data: bytes.Replace(m[state].Data, []byte("completed"), []byte("applied"), 1)}
		},
		"events cut": func(m fstest.MapFS) {
			m[events] = &fstest.MapFile{Data: m[events].Data[:bytes.LastIndexByte(m[events].Data[:len(m[events].Data)-1], '\n')+1]}
		},
		"events of another": func(m fstest.MapFS) {
			m[ledger.Dir(otherID)+"/"+ledger.TransactionFile], m[ledger.Dir(otherID)+"/"+ledger.EventsFile] = m[state], m[events]
		},
	} {
		tree := whole()
		edit(tree)
		id := txID
		if name == "events of another" {
			id = otherID
		}
		var corrupt *ledger.CorruptError
		if _, err := lookup.Read(tree, id); !errors.As(err, &corrupt) || corrupt.ID != id || errors.Unwrap(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{state, events} {
		tree := whole()
		delete(tree, name)
		if _, err := lookup.Read(tree, txID); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
