package evidence_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

var (
	packetNow = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	signer    = teststand.Ed25519(7)
)

// A sample is one as it is written, before it is signed.
type sample struct {
	evidence.Manifest
	files map[string][]byte // by path, with those of the packets
}

// draw makes a sample of changes: one without a transaction, and one for each of these lives.
func draw(t testing.TB, asked int, lives ...storetest.Life) sample {
	t.Helper()
	tree, ids := storetest.Recorded(t, lives...)
	rows := []evidence.Row{row(strings.Repeat("e", 40))}
	for i, id := range ids {
		one := row(strings.Repeat(fmt.Sprint(i), 40))
		one.Records = []evidence.Record{{TransactionID: id}}
		rows = append(rows, one)
	}
	repo := evidence.Repository{
		Name: "acme/shop", Branch: "main", Read: true, Commit: strings.Repeat("c", 40), LedgerRef: "refs/agent/ledger", LedgerCommit: strings.Repeat("1", 40),
	}
	r := evidence.New(evidence.Period{From: packetNow, To: packetNow}, packetNow, []evidence.Part{{Repository: repo, Rows: rows}})
	m, drawn := evidence.NewPacket(r, "a seed", asked)
	s := sample{m, map[string][]byte{evidence.ReadmeFile: []byte("read me\n"), evidence.ReportFile: packetLine(t, r)}}
	for i, row := range drawn {
		dir := m.Packets[i].Dir + "/"
		s.files[dir+evidence.ItemFile] = packetLine(t, row)
		for _, rec := range row.Records {
			files, err := lookup.Files(tree, rec.TransactionID)
			check(t, err)
			for name, data := range files {
				s.files[dir+ledger.Dir(rec.TransactionID)+"/"+name] = data
			}
		}
	}
	return s
}

func row(commit string) evidence.Row {
	return evidence.Row{
		Repository: "acme/shop", Branch: "main", Exceptions: []evidence.Exception{}, Commit: commit, Commits: []string{commit}, Records: []evidence.Record{},
	}
}

// check ends a test that has an error.
var check = teststand.Fatal

func packetLine(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := canon.Line(v)
	check(t, err)
	return raw
}

// list lists the files in the manifest, as they are.
func (s *sample) list() {
	s.Files = []evidence.File{}
	for i := range s.Packets {
		s.Packets[i].Files = []evidence.File{}
	}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		list, below := &s.Files, name
		for i, p := range s.Packets {
			if after, is := strings.CutPrefix(name, p.Dir+"/"); is {
				list, below = &s.Packets[i].Files, after
			}
		}
		*list = append(*list, evidence.ListFile(below, s.files[name]))
	}
}

// sign is the directory of the sample, with the manifest as it is, signed.
func (s sample) sign(t testing.TB) fstest.MapFS {
	t.Helper()
	raw := packetLine(t, s.Manifest)
	dir := fstest.MapFS{}
	put := func(name string, data []byte) { dir[name] = &fstest.MapFile{Data: data, Mode: 0o644} }
	for name, data := range s.files {
		put(name, data)
	}
	signature := []byte(signer.Sign(evidence.PacketNamespace, raw))
	for _, p := range append([]evidence.Packet{{}}, s.Packets...) {
		put(path.Join(p.Dir, evidence.ManifestFile), raw)
		put(path.Join(p.Dir, evidence.SignatureFile), signature)
	}
	return dir
}

func (s sample) signed(t testing.TB) fstest.MapFS {
	s.list()
	return s.sign(t)
}

var signers = sync.OnceValue(func() *sshsig.Allowed {
	list, err := sshsig.ParseAllowedSigners([]byte("audit@example.org " + signer.Public + "\n"))
	if err != nil {
		panic(err)
	}
	return &list
})

// bad are the checks of a directory that are bad, by someone who believes the signer, and what the first says.
func bad(t testing.TB, dir fs.FS) (what, why string) {
	t.Helper()
	done, err := evidence.CheckPacket(dir, signers(), packetNow)
	if err != nil {
		return "unknown", err.Error()
	}
	for _, c := range done.Checks {
		if c.Outcome == explain.Bad {
			what, why = strings.TrimSpace(what+" "+c.What), why+c.Message+"; "
		}
	}
	if done.OK() != (what == "") {
		t.Fatalf("OK is %v: %+v", done.OK(), done.Checks)
	}
	return what, why
}

// alone is the packet of a sample with these many transactions.
func alone(t testing.TB, s sample, dir fs.FS, transactions int) fstest.MapFS {
	t.Helper()
	i := slices.IndexFunc(s.Packets, func(p evidence.Packet) bool { return len(p.Transactions) == transactions })
	sub, err := fs.Sub(dir, s.Packets[i].Dir)
	check(t, err)
	out := fstest.MapFS{}
	check(t, fs.WalkDir(sub, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var data []byte
			data, err = fs.ReadFile(sub, name)
			out[name] = &fstest.MapFile{Data: data, Mode: 0o644}
		}
		return err
	}))
	return out
}

// TestDraw: a sample is what the package comment says, whatever the order of the rows; what has no commit is no change.
func TestDraw(t *testing.T) {
	var rows []evidence.Row
	sums := map[string]string{}
	for i := range 40 {
		commit := fmt.Sprintf("%040x", i)
		rows = append(rows, row(commit))
		sums[fmt.Sprintf("%x", sha256.Sum256([]byte("audit 7\x00"+commit)))] = commit
	}
	twin := row(rows[0].Commit)
	twin.Repository = "acme/fork"
	rows = append(rows, evidence.Row{Repository: "acme/gone"}, twin)
	slices.Reverse(rows)
	drawn, population := evidence.DrawSample(rows, "audit 7", 41)
	if population != 41 || len(drawn) != 41 {
		t.Fatalf("%d of %d", len(drawn), population)
	}
	i := slices.IndexFunc(drawn, func(r evidence.Row) bool { return r.Commit == twin.Commit })
	if drawn[i].Repository != "acme/fork" || drawn[i+1].Repository != "acme/shop" {
		t.Errorf("a commit in two repositories: %s before %s", drawn[i].Repository, drawn[i+1].Repository)
	}
	drawn = slices.Delete(drawn, i, i+1)
	for i, key := range slices.Sorted(maps.Keys(sums)) {
		if drawn[i].Commit != sums[key] {
			t.Errorf("number %d is %s, want %s", i+1, drawn[i].Commit, sums[key])
		}
	}
	few, _ := evidence.DrawSample(rows, "audit 7", 5)
	if none, n := evidence.DrawSample(nil, "audit 7", 5); len(few) != 5 || few[0].Commit != drawn[0].Commit || len(none) != 0 || n != 0 {
		t.Errorf("five: %d; of none: %d of %d", len(few), len(none), n)
	}
	for _, seed := range []string{"", "a\nb", "a\u200bb", "\xff", strings.Repeat("x", 201)} {
		if evidence.CheckSeed(seed) == nil {
			t.Errorf("seed %q", seed)
		}
	}
}

// TestBits: each bit of a small packet that is another one is told, and some of all of the bits of a large one.
func TestBits(t *testing.T) {
	s, large := draw(t, 1), draw(t, 3, storetest.Whole, storetest.Signed)
	small, step := s.signed(t), 3
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		step = 1
	}
	for name, x := range map[string]struct {
		dir  fstest.MapFS
		step int // in bits
	}{"small": {alone(t, s, small, 0), step}, "large": {large.signed(t), 1009 * step}} {
		if what, why := bad(t, x.dir); what != "" {
			t.Fatalf("%s: %s: %s", name, what, why)
		}
		at := 0
		for _, file := range slices.Sorted(maps.Keys(x.dir)) {
			data := x.dir[file].Data
			for ; at < 8*len(data); at += x.step {
				data[at/8] ^= 1 << (at % 8)
				if what, _ := bad(t, x.dir); what == "" {
					t.Fatalf("%s: bit %d of %s is not told", name, at, file)
				}
				data[at/8] ^= 1 << (at % 8)
			}
			at -= 8 * len(data)
		}
	}
}

// TestMembers: a file that is missing, more, a link, or has its name in another case is told, and without a
// signature, or keys to believe, nothing is good.
func TestMembers(t *testing.T) {
	s := draw(t, 2, storetest.Whole)
	whole := s.signed(t)
	m, err := evidence.ParsePacket(whole[evidence.ManifestFile].Data)
	check(t, err)
	for _, name := range []string{evidence.ManifestFile, "Manifest.json", evidence.SignatureFile} {
		listing := m
		listing.Files = append(slices.Clone(m.Files), evidence.ListFile(name, nil))
		raw, err := listing.Bytes()
		if _, parsed := evidence.ParsePacket(raw); err != nil || parsed == nil {
			t.Errorf("a manifest may list %s, %v", name, err)
		}
	}
	for which, dir := range map[string]fstest.MapFS{"whole": whole, "alone": alone(t, s, whole, 1)} {
		told := func(name string, alter func(d fstest.MapFS)) {
			t.Helper()
			d := maps.Clone(dir)
			if alter(d); func() bool { what, _ := bad(t, d); return what == "" }() {
				t.Errorf("%s: %s is not told", which, name)
			}
		}
		for name, file := range dir {
			told(name+" missing", func(d fstest.MapFS) { delete(d, name) })
			told(name+" in capitals", func(d fstest.MapFS) { delete(d, name); d[strings.ToUpper(name)] = file })
			told(name+" a link", func(d fstest.MapFS) { d[name] = &fstest.MapFile{Data: []byte("other"), Mode: fs.ModeSymlink} })
			told(name+" twice", func(d fstest.MapFS) { d[name+"2"] = file })
		}
		for _, name := range []string{"x", "x/y", "transactions/x", ".x", evidence.ItemFile + ".", evidence.ItemFile} {
			told(name+" more", func(d fstest.MapFS) { d[name] = &fstest.MapFile{Data: []byte("x")} })
		}
		told("an empty directory", func(d fstest.MapFS) { d["x"] = &fstest.MapFile{Mode: fs.ModeDir} })
		unsigned := maps.Clone(dir)
		maps.DeleteFunc(unsigned, func(name string, _ *fstest.MapFile) bool { return path.Base(name) == evidence.SignatureFile })
		if what, why := bad(t, unsigned); what != "signature" || !strings.Contains(why, "nobody vouches for it: it is not signed") {
			t.Errorf("%s: without a signature: %s: %s", which, what, why)
		}
		done, err := evidence.CheckPacket(dir, nil, packetNow)
		if err != nil || done.OK() || !strings.Contains(done.Checks[0].Message, "nobody vouches for it: SHA256:") {
			t.Errorf("%s: without keys: %+v, %v", which, done.Checks, err)
		}
	}
}

// TestTooLarge: of what is listed, whoever lists it, no more is read into memory than fits.
func TestTooLarge(t *testing.T) {
	for name, large := range map[string]string{"report": evidence.ReportFile, "change": evidence.ItemFile, "record": "transactions/"} {
		s := draw(t, 2, storetest.Whole)
		s.list()
		for _, list := range [][]evidence.File{s.Files, s.Packets[0].Files, s.Packets[1].Files} {
			for i, f := range list {
				if strings.HasPrefix(f.Path, large) {
					list[i].Size = 512<<20 + 1
				}
			}
		}
		if what, why := bad(t, s.sign(t)); what != "files" || !strings.Contains(why, "is too large") {
			t.Errorf("%s: %s: %s", name, what, why)
		}
	}
}

// TestSigned: what somebody signed is held to its own rules all the same.
func TestSigned(t *testing.T) {
	for name, x := range map[string]struct {
		alter func(s *sample)
		what  string
	}{
		"as it is": {func(*sample) {}, ""},
		"another patch": {func(s *sample) {
			for name := range s.files {
				if strings.HasSuffix(name, ".diff") {
					s.files[name] = append(slices.Clone(s.files[name]), '\n')
				}
			}
		}, "record"},
		"a record that is another's": {func(s *sample) {
			var at []string
			for _, p := range s.Packets {
				for _, id := range p.Transactions {
					at = append(at, p.Dir+"/"+ledger.Dir(id)+"/")
				}
			}
			maps.DeleteFunc(s.files, func(name string, _ []byte) bool { return strings.HasPrefix(name, at[0]) })
			for name, data := range maps.Clone(s.files) {
				if below, is := strings.CutPrefix(name, at[1]); is {
					s.files[at[0]+below] = data
				}
			}
		}, "record"},
		"no record": {func(s *sample) {
			maps.DeleteFunc(s.files, func(name string, _ []byte) bool { return strings.Contains(name, "/transactions/") })
		}, "record"},
		"another change":  {func(s *sample) { s.Packets[0].Commit = strings.Repeat("d", 40) }, "sample record"},
		"another seed":    {func(s *sample) { s.Seed = "another" }, "sample"},
		"more changes":    {func(s *sample) { s.Population++ }, "sample"},
		"another report":  {func(s *sample) { s.files[evidence.ReportFile] = []byte("{}\n") }, "sample"},
		"another item":    {func(s *sample) { s.files[s.Packets[0].Dir+"/"+evidence.ItemFile] = []byte("{}\n") }, "sample record"},
		"too many":        {func(s *sample) { s.Asked = 251 }, "manifest"},
		"one left out":    {func(s *sample) { s.Packets = s.Packets[1:] }, "manifest"},
		"no commit":       {func(s *sample) { s.LedgerCommit = "-x" }, "manifest"},
		"another method":  {func(s *sample) { s.Method = "random" }, "manifest"},
		"an ugly seed":    {func(s *sample) { s.Seed = "a\x00" }, "manifest"},
		"a way out":       {func(s *sample) { s.Packets[0].Dir = "../x" }, "manifest"},
		"from the root":   {func(s *sample) { s.Packets[0].Dir = "/x" }, "manifest"},
		"with backslash":  {func(s *sample) { s.Packets[0].Dir = `a\b` }, "manifest"},
		"the same place":  {func(s *sample) { s.Packets[0].Dir = s.Packets[1].Dir }, "manifest"},
		"in another case": {func(s *sample) { s.Packets[0].Dir, s.Packets[1].Dir = "Aa", "aA" }, "manifest"},
	} {
		s := draw(t, 3, storetest.Whole, storetest.Whole)
		if s.list(); x.what == "manifest" { // what lists the files is altered, and not they
			x.alter(&s)
		} else {
			x.alter(&s)
			s.list()
		}
		if what, why := bad(t, s.sign(t)); what != x.what {
			t.Errorf("%s: %q is bad, want %q: %s", name, what, x.what, why)
		}
	}
	newer := fstest.MapFS{evidence.ManifestFile: &fstest.MapFile{Data: []byte(`{"schema":"countersign/packet/9"}` + "\n")}}
	if _, err := evidence.CheckPacket(newer, nil, packetNow); err == nil {
		t.Error("a manifest of a newer version")
	}
}
