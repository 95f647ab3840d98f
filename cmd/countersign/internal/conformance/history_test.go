package conformance

import (
	"bytes"
	"compress/zlib"
	"crypto/ed25519"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

func init() { generators["history"] = historyVectors }

const ledgerRef = "refs/agent/ledger"

// A stage is one commit of a ledger, in which anything may be wrong.
type stage struct {
	files   map[string]string // what it adds or changes
	gone    []string
	modes   map[string]string // of files that are no regular ones: "100755", "120000", "160000", "040000"
	message string
	when    int64
	parents []int // by number; nil: the last
	head    func(raw string) string
	tree    func(raw string) string // changes the root tree's bytes
	sign    bool
}

// A ledgerHistory is stages, and what is made of them.
type ledgerHistory struct {
	t       testing.TB
	stages  []*stage
	objects map[string]string // by id: type, a space, and content
	names   map[string]string // paths of files, for better deltas
	ids     []string          // of commits
	hidden  string            // an object that is left out
	sha256  bool              // names all objects
}

func (h *ledgerHistory) put(kind, data, name string) string {
	whole := fmt.Appendf(nil, "%s %d\x00%s", kind, len(data), data)
	sum := sha1.Sum(whole)
	id := hex.EncodeToString(sum[:])
	if h.sha256 {
		id = canon.Hex(whole)
	}
	h.objects[id], h.names[id] = kind+" "+data, name
	return id
}

// ledgerOf is the history of a ledger with some lives, without pages and what no rule asks for.
func ledgerOf(t testing.TB, lives ...storetest.Life) *ledgerHistory {
	t.Helper()
	h := wholeLedgerOf(t, 5, lives...)
	for _, s := range h.stages {
		s.shorten(t, slices.Contains(lives, storetest.Whole))
	}
	return h
}

// wholeLedgerOf is the history of a ledger with some lives, without pages.
func wholeLedgerOf(t testing.TB, seed byte, lives ...storetest.Life) *ledgerHistory {
	t.Helper()
	entries, err := storetest.LivesOf(seed, lives...)
	teststand.Fatal(t, err)
	h := &ledgerHistory{t: t}
	for _, e := range entries {
		s := &stage{files: map[string]string{}, message: e.Message, when: e.When.Unix()}
		for name, data := range e.Files {
			s.files[name] = string(data)
		}
		h.stages = append(h.stages, s)
	}
	return h
}

// shorten leaves out of a stage what no rule asks for; where something is applied, the Policy stays.
func (s *stage) shorten(t testing.TB, applied bool) {
	name := s.file(t, "/events.jsonl")
	dir := strings.TrimSuffix(name, "events.jsonl")
	r := &record{t: t, files: map[string]string{}}
	if r.read(s.files[name], "proposal", "risks"); !applied {
		r.events = nil
		r.read(s.files[name], "proposal", "risks", "policy")
	}
	r.id, _, _ = ledger.Within(name)
	tree := r.tree()
	s.files[name], s.files[dir+"transaction.json"] = tree["events.jsonl"].(string), tree["transaction.json"].(string)
	for file := range s.files {
		if strings.HasPrefix(file, dir+"artifacts/") && !strings.Contains(s.files[name], path.Base(file)) {
			delete(s.files, file)
		}
	}
}

func (h *ledgerHistory) clone() *ledgerHistory {
	c := &ledgerHistory{t: h.t, hidden: h.hidden, sha256: h.sha256}
	for _, s := range h.stages {
		one := *s
		one.files, one.modes = maps.Clone(s.files), maps.Clone(s.modes)
		c.stages = append(c.stages, &one)
	}
	return c
}

// dir makes the tree of files below a prefix.
func (h *ledgerHistory) dir(files map[string]string, modes map[string]string, prefix string) string {
	type entry struct{ sort, raw string }
	var entries []entry
	seen := map[string]bool{}
	for name := range files {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		first, _, nested := strings.Cut(rest, "/")
		if seen[first] {
			continue
		}
		seen[first] = true
		mode, id, order := "100644", "", first
		switch {
		case nested:
			mode, order, id = "40000", first+"/", h.dir(files, modes, prefix+first+"/")
		case modes[name] == "040000":
			mode, order, id = "40000", first+"/", h.put("tree", "", name)
		case modes[name] == "160000":
			mode, id = modes[name], files[name]
		default:
			if modes[name] != "" {
				mode = modes[name]
			}
			id = h.put("blob", files[name], name)
		}
		raw, _ := hex.DecodeString(id)
		entries = append(entries, entry{order, mode + " " + first + "\x00" + string(raw)})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.sort, b.sort) })
	var out strings.Builder
	for _, e := range entries {
		out.WriteString(e.raw)
	}
	return h.put("tree", out.String(), prefix)
}

// make makes all objects, and returns the tip.
func (h *ledgerHistory) make() string {
	h.objects, h.names, h.ids = map[string]string{}, map[string]string{}, nil
	files, modes := map[string]string{}, map[string]string{}
	for i, s := range h.stages {
		maps.Copy(files, s.files)
		for name := range s.files {
			delete(modes, name)
		}
		maps.Copy(modes, s.modes)
		for _, name := range s.gone {
			delete(files, name)
		}
		tree := h.dir(files, modes, "")
		if s.tree != nil {
			_, raw, _ := strings.Cut(h.objects[tree], " ")
			tree = h.put("tree", s.tree(raw), "")
		}
		parents := s.parents
		if parents == nil && i > 0 {
			parents = []int{i - 1}
		}
		raw := "tree " + tree + "\n"
		for _, p := range parents {
			raw += "parent " + h.ids[p] + "\n"
		}
		raw += fmt.Sprintf("author countersign <countersign@localhost> %d +0000\ncommitter countersign <countersign@localhost> %[1]d +0000\n\n%s", s.when, s.message)
		if s.head != nil {
			raw = s.head(raw)
		}
		if s.sign {
			signature := sign(raw, nil, nil)
			head, message, _ := strings.Cut(raw, "\n\n")
			raw = head + "\ngpgsig " + strings.ReplaceAll(strings.TrimSuffix(signature, "\n"), "\n", "\n ") + "\n\n" + message
		}
		h.ids = append(h.ids, h.put("commit", raw, ""))
	}
	return h.ids[len(h.ids)-1]
}

// bundle is a bundle of refs with all objects.
func (h *ledgerHistory) bundle(head string) Bytes {
	h.t.Helper()
	dir := h.t.TempDir()
	git := func(in string, args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "core.compression=9", "-c", "pack.threads=1"}, args...)...)
		cmd.Stdin, cmd.Stderr = strings.NewReader(in), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			h.t.Fatal(args, err)
		}
		return string(out)
	}
	git("", "init", "-q", "--object-format="+map[bool]string{true: "sha256", false: "sha1"}[h.sha256])
	var list strings.Builder
	for _, id := range slices.Sorted(maps.Keys(h.objects)) {
		if id == h.hidden {
			continue
		}
		kind, data, _ := strings.Cut(h.objects[id], " ")
		file := filepath.Join(dir, ".git", "objects", id[:2], id[2:])
		_ = os.MkdirAll(filepath.Dir(file), 0o777)
		var out bytes.Buffer
		z := zlib.NewWriter(&out)
		_, _ = fmt.Fprintf(z, "%s %d\x00%s", kind, len(data), data)
		_ = z.Close()
		teststand.Fatal(h.t, os.WriteFile(file, out.Bytes(), 0o666))
		fmt.Fprintf(&list, "%s %s\n", id, h.names[id])
	}
	return Bytes(head + "\n" + git(list.String(), "pack-objects", "--stdout", "-q", "--window=50"))
}

func (h *ledgerHistory) whole() Bytes { return h.bundleAt(h.make()) }

// at is the number of the nth stage whose message begins so.
func (h *ledgerHistory) at(title string, nth int) int {
	h.t.Helper()
	for i, s := range h.stages {
		if strings.HasPrefix(s.message, title+": ") {
			if nth--; nth < 0 {
				return i
			}
		}
	}
	h.t.Fatalf("no stage %q", title)
	return 0
}

// file is the name of a stage's file that ends so.
func (s *stage) file(t testing.TB, end string) string {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if strings.HasSuffix(name, end) {
			return name
		}
	}
	t.Fatalf("no file …%s", end)
	return ""
}

func historyVectors(g *generator) {
	bundleCases(g)
	auditCases(g)
	acrossCases(g)
	sha256Cases(g)
	signedCases(g)
	witnessCases(g)
}

func bundleCases(g *generator) {
	g.in("bundle")
	h := ledgerOf(g.t, storetest.Reviewed)
	tip := h.make()
	v2 := string(h.whole())
	_, pack, _ := strings.Cut(v2, "\n\n")
	ask := func(text string) m { return m{"bundle": Bytes(text)} }
	ref := tip + " " + ledgerRef + "\n"
	const twin = "a bundle of version 2"
	g.good("bundle", "B-1 B-3 B-4 B-6", twin, ask(v2), m{"refs": m{ledgerRef: tip}})
	g.good("bundle", "B-2", "a bundle of version 3", ask("# v3 git bundle\n@object-format=sha1\n"+ref+"\n"+pack), m{"refs": m{ledgerRef: tip}})
	bad := func(requires, note, text string) {
		g.t.Helper()
		g.bad("bundle", requires, "bundle: "+note, twin, ask(text), "BUNDLE")
	}
	short := "\n" + pack[:32] // of what is wrong in the header, the pack does not matter
	bad("B-1", "of version 1", "# v1 git bundle\n"+ref+short)
	bad("B-1", "nothing", "")
	bad("B-1", "without its empty line", "# v2 git bundle\n"+ref)
	bad("B-1", "a line of 4,097 bytes", "# v2 git bundle\n"+tip+" refs/"+strings.Repeat("x", 4097-47)+"\n"+short)
	bad("B-2", "of SHA-256", "# v3 git bundle\n@object-format=sha256\n"+ref+short)
	bad("B-2", "a filter", "# v3 git bundle\n@object-format=sha1\n@filter=blob:none\n"+ref+short)
	bad("B-2", "a capability in version 2", "# v2 git bundle\n@object-format=sha1\n"+ref+short)
	bad("B-2", "a prerequisite", "# v2 git bundle\n-"+strings.Repeat("1", 40)+" x\n"+ref+short)
	bad("B-3", "no ref", "# v2 git bundle\n"+short)
	bad("B-3", "a ref without a name", "# v2 git bundle\n"+tip+"\n"+short)
	bad("B-3", "a ref that is short", "# v2 git bundle\n"+tip[1:]+" "+ledgerRef+"\n"+short)
	bad("B-4", "a pack of version 3", "# v2 git bundle\n"+ref+"\n"+strings.Replace(pack, "PACK\x00\x00\x00\x02", "PACK\x00\x00\x00\x03", 1))
	bad("B-4", "a pack that is cut short", v2[:len(v2)-1])
	bad("B-4", "a byte behind the pack", v2+"x")
	bad("B-4", "another checksum", v2[:len(v2)-1]+string(v2[len(v2)-1]^1))
	bad("B-4", "another number of objects", "# v2 git bundle\n"+ref+"\n"+pack[:11]+string(pack[11]+1)+pack[12:])
	bad("B-4", "a byte that is changed", v2[:len(v2)-200]+string(v2[len(v2)-200]^1)+v2[len(v2)-199:])
	g.in("ref")
	audit := func(requires, note, head string, more m, values m) {
		g.t.Helper()
		g.good("audit", requires, note, merge(ask(head+"\n"+pack), with(more)).(m), values)
	}
	audit("B-5", "the only ref", "# v2 git bundle\n"+tip+" refs/heads/x\n", nil, m{"tip": tip, "commits": 1, "transactions": 1})
	audit("B-5", "the one below refs/agent", "# v2 git bundle\n"+tip+" refs/heads/x\n"+ref, nil, m{"tip": tip})
	audit("B-5", "the one that is named", "# v2 git bundle\n"+tip+" refs/agent/a\n"+tip+" refs/agent/b\n", m{"ref": "refs/agent/b"}, m{"tip": tip})
	none := func(note, head string, more m) {
		g.t.Helper()
		g.bad("audit", "B-5", "ledger: "+note, "the only ref", merge(ask(head+"\n"+pack), with(more)).(m), "BUNDLE")
	}
	stray := &ledgerHistory{t: g.t, stages: []*stage{{files: map[string]string{"a": "x\n"}, message: "x\n", when: 1767571200}}}
	g.bad("audit", "B-5", "ledger: the only ref, and nothing of a ledger at its root", "the only ref", m{"bundle": stray.bundle("# v2 git bundle\n" + stray.make() + " refs/heads/x\n")}, "BUNDLE")
	none("two below refs/agent", "# v2 git bundle\n"+tip+" refs/agent/a\n"+tip+" refs/agent/b\n", nil)
	none("a name that is not there", "# v2 git bundle\n"+ref, m{"ref": "refs/agent/x"})
	none("a name that is there twice", "# v2 git bundle\n"+ref+ref, m{"ref": ledgerRef})
}

func auditCases(g *generator) {
	g.in("audit")
	refused := ledgerOf(g.t, storetest.Refused)
	denied, _, _ := ledger.Within(refused.stages[refused.at("deny", 0)].file(g.t, "/events.jsonl"))
	refused.stages = slices.DeleteFunc(refused.stages, func(s *stage) bool {
		id, _, _ := ledger.Within(s.file(g.t, "/events.jsonl"))
		return id != denied
	})
	input := func(h *ledgerHistory) m { return m{"bundle": h.whole()} }
	const twin = "a patch that is denied"
	g.good("audit", "H-1 H-2 H-3 H-4 H-5 H-6 H-7 H-8 H-10 H-11 H-12 H-13 H-14 H-15 H-16 H-17 H-18 H-20 S-32 H-27", twin, input(refused.clone()), m{"commits": 2, "transactions": 1})
	whole := ledgerOf(g.t, storetest.Whole)
	g.good("audit", "H-7 H-8 H-13", "a whole life, as a ledger", input(whole.clone()), m{"commits": 5, "transactions": 1})
	bad := func(requires, note, rules string, change func(h *ledgerHistory)) {
		g.t.Helper()
		h := refused.clone()
		change(h)
		g.bad("audit", requires, "history: "+note, twin, input(h), strings.Fields(rules)...)
	}
	last := len(refused.stages) - 1
	deny := refused.at("deny", 0)
	bad("H-1", "a file that is missing", "OBJECT", func(h *ledgerHistory) {
		h.make()
		h.hidden = h.put("blob", h.stages[0].files[h.stages[0].file(h.t, ".diff")], "")
	})
	bad("H-2", "a parent that is missing", "HISTORY", func(h *ledgerHistory) { h.make(); h.hidden = h.ids[0] })
	bad("H-3", "an empty directory", "L10", func(h *ledgerHistory) {
		h.stages[last].files["denied/ff"], h.stages[last].modes = "", map[string]string{"denied/ff": "040000"}
	})
	bad("H-3", "a tree out of order", "L10", func(h *ledgerHistory) {
		h.stages[last].tree = func(raw string) string {
			return raw[len(raw)-len(lastEntry(raw)):] + raw[:len(raw)-len(lastEntry(raw))]
		}
	})
	bad("H-3", "an entry twice", "L10", func(h *ledgerHistory) {
		h.stages[last].tree = func(raw string) string { return raw + lastEntry(raw) }
	})
	bad("H-3", "a mode with a zero before it", "L10", func(h *ledgerHistory) {
		h.stages[last].tree = func(raw string) string { return strings.Replace(raw, "40000 ", "040000 ", 1) }
	})
	for _, name := range []string{".git", ".GIT", ".", ".."} {
		bad("H-3", "an entry named "+name, "L10", func(h *ledgerHistory) {
			h.stages[last].tree = func(raw string) string { return "100644 " + name + "\x00" + strings.Repeat("\x01", 20) + raw }
		})
	}
	deep := func(n int) func(h *ledgerHistory) {
		return func(h *ledgerHistory) { h.stages[last].files["README.md/"+strings.Repeat("a/", n)+"b"] = "x\n" }
	}
	bad("H-3", "trees that nest 17 deep", "L10", deep(16))
	nested := refused.clone()
	deep(15)(nested)
	g.good("audit", "H-3 U-7", "history: trees that nest 16 deep, in a view", input(nested), nil)
	bad("H-4", "a merge", "L8", func(h *ledgerHistory) { h.stages[last].parents = []int{last - 1, 0} })
	bad("H-4 H-11", "a second root", "L8", func(h *ledgerHistory) { h.stages[last].parents = []int{} })
	bad("H-5", "another author", "L15", func(h *ledgerHistory) {
		h.stages[last].head = func(raw string) string { return strings.Replace(raw, "author countersign <", "author Eve <", 1) }
	})
	bad("H-5", "another zone", "L15", func(h *ledgerHistory) {
		h.stages[last].head = func(raw string) string { return strings.Replace(raw, "+0000\ncommitter", "+0100\ncommitter", 1) }
	})
	bad("H-5", "a header more", "L15", func(h *ledgerHistory) {
		h.stages[last].head = func(raw string) string { return strings.Replace(raw, "\n\n", "\nencoding UTF-8\n\n", 1) }
	})
	message := func(requires, note string, change func(text string) string) {
		g.t.Helper()
		bad(requires, note, "L15", func(h *ledgerHistory) { h.stages[last].message = change(h.stages[last].message) })
	}
	message("H-6", "a trailer more", func(t string) string { return t + "X: y\n" })
	message("H-6", "another transaction in the trailers", func(t string) string {
		return strings.Replace(t, "Countersign-Transaction: tx_", "Countersign-Transaction: tx_0", 1)
	})
	message("H-6", "another patch in the trailers", func(t string) string { return strings.Replace(t, "Countersign-Patch: ", "Countersign-Patch: 0", 1) })
	message("H-8", "another outcome in the trailers", func(t string) string {
		return strings.Replace(t, "Countersign-Outcome: denied", "Countersign-Outcome: approved", 1)
	})
	message("H-8", "another stage", func(t string) string { return strings.ReplaceAll(t, "deny", "review") })
	message("H-6", "a subject of two spaces", func(t string) string { return strings.Replace(t, ": ", ":  ", 1) })
	bad("H-7", "another time", "L15", func(h *ledgerHistory) { h.stages[last].when++ })
	bad("H-10", "a file at the root", "L10", func(h *ledgerHistory) { h.stages[last].files["notes.txt"] = "x\n" })
	bad("H-10", "a file below transactions", "L10", func(h *ledgerHistory) { h.stages[last].files["transactions/x"] = "x\n" })
	bad("H-10", "an executable file", "L10", func(h *ledgerHistory) {
		s := h.stages[last]
		s.modes = map[string]string{s.file(h.t, "transaction.json"): "100755"}
	})
	bad("H-10", "a link", "L10", func(h *ledgerHistory) {
		s := h.stages[0]
		s.modes = map[string]string{s.file(h.t, ".diff"): "120000"}
	})
	bad("H-10", "a submodule", "L10", func(h *ledgerHistory) {
		h.stages[last].files["x"], h.stages[last].modes = strings.Repeat("1", 40), map[string]string{"x": "160000"}
	})
	bad("H-11", "a file is removed", "L8", func(h *ledgerHistory) { h.stages[last].gone = []string{h.stages[0].file(h.t, ".diff")} })
	bad("H-11", "a patch is changed", "L8 L5", func(h *ledgerHistory) { h.stages[last].files[h.stages[0].file(h.t, ".diff")] = "x\n" })
	bad("H-12", "a commit that adds nothing", "L8", func(h *ledgerHistory) {
		h.stages = append(h.stages, &stage{files: map[string]string{}, message: h.stages[last].message, when: h.stages[last].when})
	})
	bad("H-12 H-15", "a denial of no transaction", "L11", func(h *ledgerHistory) {
		h.stages[last].files["denied/00/"+strings.Repeat("0", 64)+"/fileChange.json"] = "{}\n"
	})
	bad("H-13", "an event is cut off again", "L8", func(h *ledgerHistory) {
		s := h.stages[last]
		name := s.file(h.t, "/events.jsonl")
		for _, before := range h.stages[:last] {
			if text, ok := before.files[name]; ok {
				s.files[name] = text[:strings.LastIndexByte(text[:len(text)-1], '\n')+1]
			}
		}
	})
	bad("H-14", "transaction.json of an earlier commit", "L9", func(h *ledgerHistory) {
		s := h.stages[0]
		name := s.file(h.t, "transaction.json")
		s.files[name] = strings.Replace(s.files[name], `"status":"proposed"`, `"status":"applied"`, 1)
	})
	bad("H-14", "a patch that comes a commit later", "L10", func(h *ledgerHistory) {
		name := h.stages[0].file(h.t, ".diff")
		id, _, _ := ledger.Within(name)
		for i := 1; i <= last; i++ {
			if other, _, _ := ledger.Within(h.stages[i].file(h.t, "/events.jsonl")); other == id {
				h.stages[i].files[name] = h.stages[0].files[name]
				delete(h.stages[0].files, name)
				return
			}
		}
	})
	bad("H-15", "a denial that is not in the index", "L11", func(h *ledgerHistory) { delete(h.stages[deny].files, h.stages[deny].file(h.t, "fileChange.json")) })
	bad("H-15", "a denial with another reason in the index", "L11", func(h *ledgerHistory) {
		s := h.stages[deny]
		name := s.file(h.t, "fileChange.json")
		s.files[name] = strings.Replace(s.files[name], "because", "whyever", 1)
	})
	bad("H-16", "a proposal that is not in the index", "L12", func(h *ledgerHistory) {
		s := h.stages[0]
		for name := range s.files {
			if strings.HasPrefix(name, "proposed/") {
				delete(s.files, name)
			}
		}
	})
	bad("H-16", "a proposal with another base in the index", "L12", func(h *ledgerHistory) {
		s := h.stages[0]
		for name, text := range s.files {
			if strings.HasPrefix(name, "proposed/") {
				s.files[name] = strings.Replace(text, `"base_commit":"`, `"base_commit":"0`, 1)
			}
		}
	})
	bad("H-20", "ledger.json of another time", "L16", func(h *ledgerHistory) {
		s := h.stages[0]
		s.files["ledger.json"] = strings.Replace(s.files["ledger.json"], "2026", "2025", 1)
	})
	bad("H-20", "no ledger.json", "L16", func(h *ledgerHistory) { delete(h.stages[0].files, "ledger.json") })
	for _, c := range [][3]string{{"an unknown version", "2", "L16"}, {"version 0.9", "0.9", "L16"}, {"version 1.1", "1.1", "NEWER"}, {"version 2.0", "2.0", "NEWER"}} {
		bad("H-20 U-6", "ledger.json of "+c[0], c[2], func(h *ledgerHistory) {
			s := h.stages[0]
			s.files["ledger.json"] = strings.Replace(s.files["ledger.json"], `"1.0"`, `"`+c[1]+`"`, 1)
		})
	}
	bad("H-20 E-5 U-6", "an event that needs more than its ledger", "L16 NEWER", func(h *ledgerHistory) {
		r := h.record(last)
		r.was = h.stages[last].files[h.stages[last].file(h.t, "transaction.json")]
		r.events[len(r.events)-1]["needs_version"] = "1.1"
		h.stages[last].write(r)
	})
	removed := refused.clone()
	removed.stages[last].gone = []string{"README.md"}
	removed.stages[0].files["README.md"] = "# x\n"
	g.good("audit", "H-11 U-7", "history: a view that is removed", input(removed), nil)
	bad("H-18", "a patch that is changed where it is added", "L5", func(h *ledgerHistory) { h.stages[0].files[h.stages[0].file(h.t, ".diff")] = "x\n" })
	bad("H-6", "two stages in one commit", "L8 L15", func(h *ledgerHistory) {
		a, b := h.stages[0], h.stages[1]
		maps.Copy(a.files, b.files)
		h.stages = slices.Delete(h.stages, 1, 2)
	})
	joined := ledgerOf(g.t, storetest.Whole)
	begun := joined.at("apply", 0)
	maps.Copy(joined.stages[begun].files, joined.stages[begun+1].files)
	joined.stages[begun].message = strings.NewReplacer("Countersign-Stage: apply", "Countersign-Stage: apply and apply begins", "apply: ", "apply and apply begins: ").Replace(joined.stages[begun+1].message)
	joined.stages = slices.Delete(joined.stages, begun+1, begun+2)
	g.bad("audit", "H-8", "history: two stages in one commit, which its words say", "a whole life, as a ledger", input(joined), "L15")
	view := refused.clone()
	view.stages[0].files["README.md"] = "# other words\n"
	g.good("audit", "U-7 H-10", "history: other words at the root", input(view), nil)
	both := ledgerOf(g.t, storetest.Refused)
	both.stages[2], both.stages[3] = both.stages[3], both.stages[2]
	g.bad("audit", "H-17", "history: denied before a denial is in the index", twin, input(both), "L11")
	ownEvents(g, refused)
	known(g)
}

// lastEntry is the last entry of a tree.
func lastEntry(raw string) string {
	at := 0
	for i := 0; i < len(raw); {
		at = i
		i += strings.IndexByte(raw[i:], 0) + 21
	}
	return raw[at:]
}

// known are questions of a reader who knows a commit.
func known(g *generator) {
	h := ledgerOf(g.t, storetest.Reviewed, storetest.Reviewed)
	bundle := h.whole()
	const twin = "a tip that is known"
	g.good("audit", "H-30", twin, m{"bundle": bundle, "tip": h.ids[0]}, nil)
	g.like(twin, Vector{Op: "audit", Requires: []string{"H-30"}, Note: "the tip itself is known", Input: m{"tip": h.ids[1]}, Expect: Expectation{Verdict: Accept}})
	g.like(twin, Vector{Op: "audit", Requires: []string{"H-30"}, Note: "a tip that is not in the history", Twin: g.noted(twin), Input: m{"tip": strings.Repeat("1", 40)}, Expect: Expectation{Verdict: Refuse, Rules: []string{"L14"}}})
}

// ownEvents are events of the ledger itself: somebody accepted its tip.
func ownEvents(g *generator, base *ledgerHistory) {
	accepted := func(change func(payload m, s *stage)) *ledgerHistory {
		h := base.clone()
		tip := h.make()
		payload := m{"accepted_tip": tip, "author": m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}, "reason": "the clone was restored", "remembered_tip": strings.Repeat("1", 40)}
		at := time.Date(2026, 1, 5, 1, 0, 0, 0, time.UTC)
		s := &stage{files: map[string]string{}, when: at.Unix(), message: "accept-tip: Ada accepted " + tip[:12] + ": the clone was restored\n\nCountersign-Stage: accept-tip\n"}
		change(payload, s)
		if s.files["events.jsonl"] == "" {
			s.files["events.jsonl"] = lineOf(acceptTip(payload))
		}
		h.stages = append(h.stages, s)
		return h
	}
	raised := func(from, version, title string) Bytes {
		h := base.clone()
		at := time.Date(2026, 1, 5, 1, 0, 0, 0, time.UTC)
		payload := m{"author": m{"id": "local:ada@example.org", "kind": "user", "login": "Ada"}, "from": from, "reason": "all have it", "version": version}
		h.stages = append(h.stages, &stage{when: at.Unix(), message: "version: Ada raised it from " + title + ": all have it\n\nCountersign-Stage: version\n", files: map[string]string{
			"events.jsonl": lineOf(m{"payload": payload, "prev": nil, "seq": 1, "timestamp": "2026-01-05T01:00:00.000Z", "type": "ledger/version"}),
		}})
		return h.whole()
	}
	own := func(change func(event m)) func(m, *stage) {
		return func(p m, s *stage) {
			e := acceptTip(p)
			change(e)
			s.files["events.jsonl"] = lineOf(e)
		}
	}
	const twin = "a tip that somebody accepted"
	g.good("audit", "H-22", twin, m{"bundle": accepted(func(m, *stage) {}).whole()}, nil)
	for _, c := range []struct {
		note, rules string
		change      func(m, *stage)
	}{
		{"another tip than its parent", "L16", func(p m, _ *stage) { p["accepted_tip"] = strings.Repeat("2", 40) }},
		{"a member more", "L16", func(p m, _ *stage) { p["note"] = "x" }},
		{"another message", "L15 L16", func(_ m, s *stage) { s.message = strings.Replace(s.message, "restored", "lost", 1) }},
		{"another time", "L15 L16", func(_ m, s *stage) { s.when++ }},
		{"another number", "L16", own(func(e m) { e["seq"] = 2 })},
		{"a hash of nothing before", "L16", own(func(e m) { e["prev"] = "sha256:" + strings.Repeat("0", 64) })},
		{"a time to the second", "L16", own(func(e m) { e["timestamp"] = "2026-01-05T01:00:00Z" })},
		{"a transaction's event", "L16", own(func(e m) { e["type"] = "tx/status" })},
		{"a file beside it", "L10 L16", func(_ m, s *stage) { s.files["notes.txt"] = "x\n" }},
		{"two events", "L16", func(p m, s *stage) {
			first := lineOf(acceptTip(p))
			second := acceptTip(p)
			second["seq"], second["prev"] = 2, canon.Sum([]byte(first))
			s.files["events.jsonl"] = first + lineOf(second)
		}},
	} {
		g.bad("audit", "H-22", "accepted: "+c.note, twin, m{"bundle": accepted(c.change).whole()}, strings.Fields(c.rules)...)
	}
	g.bad("audit", "H-22 U-6", "raised to a newer version", twin, m{"bundle": raised("1.0", "1.1", "1.0 to 1.1")}, "NEWER")
	g.bad("audit", "H-22", "raised from another version", twin, m{"bundle": raised("1.1", "1.2", "1.1 to 1.2")}, "L16")
	g.bad("audit", "H-22", "raised to the same version", twin, m{"bundle": raised("1.0", "1.0", "1.0 to 1.0")}, "L16")
}

// acceptTip is the ledger's own first event.
func acceptTip(payload m) m {
	return m{"payload": payload, "prev": nil, "seq": 1, "timestamp": "2026-01-05T01:00:00.000Z", "type": "ledger/accept_tip"}
}

func signedCases(g *generator) {
	g.in("signed")
	key := "ci@example.org ssh-ed25519 " + base64Of(publicOf(madeUp)) + "\n"
	h := ledgerOf(g.t, storetest.Reviewed)
	h.stages[0].sign = true
	const twin = "commits that are signed"
	g.good("audit", "S-50 S-51 H-31", twin, m{"bundle": h.whole(), "allowed_signers": key}, nil)
	like := func(requires, note string, more m, rules ...string) {
		g.t.Helper()
		v := Vector{Op: "audit", Requires: strings.Fields(requires), Note: note, Input: more, Expect: Expectation{Verdict: Accept}}
		if len(rules) > 0 {
			v.Expect, v.Twin = Expectation{Verdict: Refuse, Rules: rules}, g.noted(twin)
		}
		g.like(twin, v)
	}
	like("S-51", "signed, and nobody asks", m{"allowed_signers": nil})
	like("S-51", "signed with a key that is not on the list", m{"allowed_signers": "ci@example.org ssh-ed25519 " + base64Of(publicOf(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{43}, 32)))) + "\n"}, "L13")
	like("S-51 S-46", "signed with a key that was not valid any more", m{"allowed_signers": strings.Replace(key, " ", ` valid-before="20260101Z" `, 1)}, "L13")
	like("S-51 S-46", "signed with a key for something else", m{"allowed_signers": strings.Replace(key, " ", ` namespaces="file" `, 1)}, "L13")
	keyFileDetails(g, twin, key)
	unsigned := ledgerOf(g.t, storetest.Reviewed)
	g.bad("audit", "S-51", "a commit without a signature", twin, m{"bundle": unsigned.whole(), "allowed_signers": key}, "L13")
	other := ledgerOf(g.t, storetest.Reviewed)
	other.stages[0].head = func(raw string) string {
		return strings.Replace(raw, "\n\n", "\ngpgsig "+strings.ReplaceAll(strings.TrimSuffix(sign("x", nil, nil), "\n"), "\n", "\n ")+"\n\n", 1)
	}
	g.bad("audit", "S-51", "a signature of something else, and nobody asks", twin, m{"bundle": other.whole()}, "L13")
	pgp := ledgerOf(g.t, storetest.Reviewed)
	pgp.stages[0].head = func(raw string) string {
		return strings.Replace(raw, "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\n", 1)
	}
	g.bad("audit", "S-50", "a PGP signature", twin, m{"bundle": pgp.whole()}, "L13")
}

func witnessCases(g *generator) {
	g.in("witness")
	h := ledgerOf(g.t, storetest.Reviewed)
	tip := h.make()
	logKey := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{50}, 32))
	witnessKey := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{51}, 32))
	check := func(err error) {
		g.t.Helper()
		teststand.Fatal(g.t, err)
	}
	public := func(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }
	signs := func(k ed25519.PrivateKey) witness.Sign {
		return func(message []byte) ([]byte, error) { return ed25519.Sign(k, message), nil }
	}
	log, err := witness.NewKey("example.org/ledger", public(logKey), false)
	check(err)
	one, err := witness.NewKey("witness.example.org/w1", public(witnessKey), true)
	check(err)
	file := "log " + log.String() + "\nwitness w1 " + one.String() + "\nquorum w1\n"
	note := func(change func(c *witness.Checkpoint), at int64, cosign bool) string {
		_, raw, _ := strings.Cut(h.objects[tip], " ")
		tree, err := witness.NewTree([]witness.Hash{witness.Leaf([]byte(raw))})
		check(err)
		root, err := tree.Root(1)
		check(err)
		c := witness.Checkpoint{Origin: log.Name(), Size: 1, Root: root}
		if change != nil {
			change(&c)
		}
		by, err := witness.NewKey(c.Origin, public(logKey), false)
		check(err)
		line, err := c.SignLog(by, signs(logKey))
		check(err)
		out := string(line)
		if cosign {
			line, err := c.Cosign(one, signs(witnessKey), at)
			check(err)
			out += string(line)
		}
		return out
	}
	kept := func(notes ...string) Bytes {
		both := &ledgerHistory{t: g.t, stages: []*stage{{files: map[string]string{}, message: "checkpoints\n", when: 1767571200}}}
		for i, n := range notes {
			both.stages[0].files[fmt.Sprintf("%d-%s", i+1, canon.Hex([]byte(n))[:12])] = n
		}
		beside := both.make()
		maps.Copy(both.objects, h.objects)
		maps.Copy(both.names, h.names)
		return both.bundle("# v2 git bundle\n" + tip + " " + ledgerRef + "\n" + beside + " " + ledgerRef + "-checkpoints\n")
	}
	const twin = "a checkpoint that a witness signed"
	good := note(nil, 1767571200, true)
	g.good("audit", "H-40 H-41 H-42 H-43 H-44 H-45", twin, m{"bundle": kept(good), "ref": ledgerRef, "witnesses": file}, nil)
	bad := func(requires, text string, bundle Bytes, more m) {
		g.t.Helper()
		g.bad("audit", requires, "witness: "+text, twin, merge(m{"bundle": bundle, "ref": ledgerRef, "witnesses": file}, with(more)).(m), "WITNESS")
	}
	bad("H-45", "no checkpoint", h.bundleAt(tip), nil)
	bad("H-45", "a checkpoint that no witness signed", kept(note(nil, 0, false)), nil)
	bad("H-44", "a checkpoint of another root", kept(note(func(c *witness.Checkpoint) { c.Root[0] ^= 1 }, 1767571200, true)), nil)
	bad("H-44", "a checkpoint of more commits, beside a good one", kept(good, note(func(c *witness.Checkpoint) { c.Size = 2 }, 1767571200, true)), nil)
	bad("H-43", "a checkpoint of another origin", kept(note(func(c *witness.Checkpoint) { c.Origin = "example.org/other" }, 1767571200, true)), nil)
	bad("H-41", "a checkpoint with a line more", kept(strings.Replace(good, "\n\n", "\nx\n\n", 1)), nil)
	bad("H-43", "a signature that is bad", kept(good[:len(good)-6]+"AAAA=\n"), nil)
	// The last line is the witness's: a name, and base64 of 4 bytes of the key, 8 of the time, R and S.
	resigned := func(change func(raw []byte) []byte) string {
		at := strings.LastIndexByte(good, ' ') + 1
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(good[at:]))
		check(err)
		return good[:at] + base64Of(change(raw)) + "\n"
	}
	bad("H-43", "one bit of R", kept(resigned(func(raw []byte) []byte { raw[12] ^= 1; return raw })), nil)
	bad("H-43", "one bit of S", kept(resigned(func(raw []byte) []byte { raw[44] ^= 1; return raw })), nil)
	bad("H-43", "another time than was signed", kept(resigned(func(raw []byte) []byte { raw[11] ^= 1; return raw })), nil)
	bad("H-43", "an S that is not reduced", kept(resigned(func(raw []byte) []byte { return append(raw[:12], unreduced(raw[12:])...) })), nil)
	bad("H-43", "a signature that is cut short", kept(resigned(func(raw []byte) []byte { return raw[:75] })), nil)
	bad("H-43", "a signature with a byte behind it", kept(resigned(func(raw []byte) []byte { return append(raw, 0) })), nil)
	timed := func(at uint64) Bytes {
		text, _, _ := strings.Cut(good, "\n\n")
		signature := ed25519.Sign(witnessKey, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s\n", at, text))
		return kept(resigned(func(raw []byte) []byte { return append(binary.BigEndian.AppendUint64(raw[:4], at), signature...) }))
	}
	bad("H-43", "the time 0", timed(0), nil)
	bad("H-43", "a time after the year 9999", timed(253402300800), nil)
	g.good("audit", "H-43", "witness: the last time of the year 9999", m{"bundle": timed(253402300799), "ref": ledgerRef, "witnesses": file}, nil)
	unknown := func(hash, raw string) string {
		return good + "\u2014 " + log.Name() + " " + base64Of([]byte(hash+raw)) + "\n"
	}
	g.good("audit", "H-43", "witness: a signature of a key that is not known", merge(m{"bundle": kept(unknown("abcd", "x")), "ref": ledgerRef, "witnesses": file}, m{}).(m), nil)
	for _, c := range [][2]string{{"two logs of one name", "log " + log.String() + "\nlog " + log.String() + "\n"}, {"a quorum of none", strings.Replace(file, "quorum w1", "quorum none", 1)}, {"two quorums", file + "quorum w1\n"}, {"no log", file[strings.IndexByte(file, '\n')+1:]},
		{"a group of more than there are", strings.Replace(file, "quorum w1", "group g 2 w1\nquorum g", 1)}, {"a group of none", strings.Replace(file, "quorum w1", "group g 0 w1\nquorum g", 1)}, {"a member twice", strings.Replace(file, "quorum w1", "group g any w1 w1\nquorum g", 1)}, {"a member that comes later", "group g any w1\n" + file},
		{"a member of two groups", strings.Replace(file, "quorum w1", "group g any w1\ngroup h any w1\nquorum g", 1)}, {"a key whose hash is another", strings.Replace(file, "+"+strings.Split(one.String(), "+")[1]+"+", "+00000000+", 1)}} {
		g.like(twin, Vector{Op: "audit", Requires: []string{"H-42"}, Note: "witness: a file with " + c[0], Twin: g.noted(twin), Input: m{"witnesses": c[1]}, Expect: Expectation{Verdict: Refuse, Rules: []string{"WITNESS"}}})
	}
	for _, c := range [][2]string{{"a group", strings.Replace(file, "quorum w1", "group g all w1\nquorum g", 1)}, {"comments, blank lines and an address", "# a\n\n" + strings.Replace(file, "\nquorum", " https://witness.example.org/\nquorum", 1)}} {
		g.like(twin, Vector{Op: "audit", Requires: []string{"H-42"}, Note: "witness: a file with " + c[0], Input: m{"witnesses": c[1]}, Expect: Expectation{Verdict: Accept}})
	}
	for _, c := range [][2]string{{"a word more", file + "x\n"}, {"a key that is none", strings.Replace(file, "+", "-", 1)}, {"a quorum of nobody", strings.Replace(file, "quorum w1", "quorum w2", 1)}, {"a name twice", strings.Replace(file, "quorum", "witness w1 "+one.String()+"\nquorum", 1)}, {"a log's key for a witness", strings.Replace(file, one.String(), log.String(), 1)}} {
		g.like(twin, Vector{Op: "audit", Requires: []string{"H-42"}, Note: "witness: a file with " + c[0], Twin: g.noted(twin), Input: m{"witnesses": c[1]}, Expect: Expectation{Verdict: Refuse, Rules: []string{"WITNESS"}}})
	}
	g.like(twin, Vector{Op: "audit", Requires: []string{"H-45"}, Note: "witness: two are demanded", Twin: g.noted(twin), Input: m{"quorum": 2}, Expect: Expectation{Verdict: Refuse, Rules: []string{"WITNESS"}}})
}

// bundleAt is the bundle of the tip that was made.
func (h *ledgerHistory) bundleAt(tip string) Bytes {
	return h.bundle("# v2 git bundle\n" + tip + " " + ledgerRef + "\n")
}

// record is the transaction of a stage as it stands after it.
func (h *ledgerHistory) record(i int) *record {
	name := h.stages[i].file(h.t, "/events.jsonl")
	r := &record{t: h.t, files: map[string]string{}}
	r.id, _, _ = ledger.Within(name)
	r.read(h.stages[i].files[name])
	return r
}

// write makes a stage's files those of a record.
func (s *stage) write(r *record) {
	for name, file := range r.tree() {
		s.files[ledger.Dir(r.id)+"/"+name] = file.(string)
	}
}

// more adds a stage with more events of a record, an hour later.
func (h *ledgerHistory) more(r *record, title, outcome string, add func()) {
	n := len(r.events)
	add()
	for _, e := range r.events[n:] {
		e["timestamp"] = "2026-01-05T01:00:00.000Z"
	}
	at := time.Date(2026, 1, 5, 1, 0, 0, 0, time.UTC)
	s := &stage{files: map[string]string{}, when: at.Unix(), message: fmt.Sprintf("%s: x\n\nCountersign-Transaction: %s\nCountersign-Stage: %[1]s\nCountersign-Patch: %[3]s\nCountersign-Outcome: %s\n", title, r.id, r.patchID(), outcome)}
	s.write(r)
	h.stages = append(h.stages, s)
}

// acrossCases are about two transactions of one patch.
func acrossCases(g *generator) {
	g.in("across")
	two := ledgerOf(g.t, storetest.Refused)
	two.stages = two.stages[:2]
	approved := func(add func(r *record, first string), author string) *ledgerHistory {
		h := two.clone()
		a, b := h.record(0), h.record(1)
		set("tx/meta", 0, "proposer", m{"id": "8", "kind": "user", "login": "ada"})(a)
		set("tx/meta", 0, "proposer", m{"id": "7", "kind": "user", "login": "bea"})(b)
		h.stages[0].write(a)
		h.stages[1].write(b)
		h.more(b, "approve", "approved", func() {
			add(b, a.id)
			b.votes(vote{id: author, login: "ada"})
		})
		return h
	}
	elsewhere := func(r *record, first string) {
		r.events = append(r.events, r.artifact("proposed_elsewhere", m{"patch_id": r.patchID(), "proposals": []any{m{"proposer": m{"id": "8", "kind": "user", "login": "ada"}, "transaction_id": first}}, "schema": "countersign/proposed_elsewhere/1"}))
	}
	nothing := func(*record, string) {}
	const twin = "an approval of who proposed it in another transaction, who is named"
	g.good("audit", "H-26 E-41", twin, m{"bundle": approved(elsewhere, "8").whole()}, nil)
	g.good("audit", "H-26", "an approval of somebody else", m{"bundle": approved(nothing, "9").whole()}, nil)
	g.bad("audit", "H-26", "an approval of who proposed it in another transaction, who is not named", twin, m{"bundle": approved(nothing, "8").whole()}, "L24")
	succeeded := func(change func(old, new *record), reason func(id string) string, first bool) *ledgerHistory {
		h := two.clone()
		a, b := h.record(0), h.record(1)
		for _, r := range []*record{a, b} {
			r.proposal(func(p m) { p["pull_request"], p["repository"] = 1, m{"id": "1", "name": "acme/app"} })
		}
		b.proposal(func(p m) { p["supersedes"] = []any{a.id} })
		change(a, b)
		for i, r := range []*record{a, b} {
			h.stages[i].write(r)
			meta, _ := r.find("tx/meta", 0)
			item, _ := r.find("turn/item", 0)
			h.stages[i].files[fmt.Sprintf("proposed/pulls/01/%v/%s.json", item["item"].(m)["metadata"].(m)["pull_request"], r.id)] = lineOf(m{"base_commit": meta["base_commit"], "transaction_id": r.id})
		}
		h.more(a, "apply", "superseded", func() {
			a.add("tx/status", m{"from": "proposed", "reason": reason(b.id), "to": "superseded"})
			a.add("tx/close", m{"status": "superseded"})
		})
		if !first {
			h.stages[1], h.stages[2] = h.stages[2], h.stages[1]
		}
		return h
	}
	same, by := func(_, _ *record) {}, func(id string) string { return "superseded by " + id }
	const after = "a proposal that takes another one's place"
	g.good("audit", "H-25", after, m{"bundle": succeeded(same, by, false).whole()}, m{"transactions": 2})
	bad := func(note string, h *ledgerHistory, more ...string) {
		g.t.Helper()
		g.bad("audit", "H-25", "superseded: "+note, after, m{"bundle": h.whole()}, append(more, "L19")...)
	}
	bad("before it ended", succeeded(same, by, true))
	bad("which names another one", succeeded(same, func(string) string { return "superseded" }, false))
	bad("of another proposer", succeeded(func(_, b *record) {
		set("tx/meta", 0, "proposer", m{"id": "local:eve@example.org", "kind": "bot", "login": "eve"})(b)
	}, by, false))
	bad("of another pull request", succeeded(func(a, _ *record) { a.proposal(func(p m) { p["pull_request"] = 257 }) }, by, false))
	bad("of another repository", succeeded(func(a, _ *record) { a.proposal(func(p m) { p["repository"].(m)["id"] = "2" }) }, by, false))
}

// sha256Cases are ledgers of SHA-256 objects.
func sha256Cases(g *generator) {
	g.in("sha256")
	h := ledgerOf(g.t, storetest.Reviewed)
	h.sha256 = true
	tip := h.make()
	const format = "# v3 git bundle\n@object-format=sha256\n"
	ref := tip + " " + ledgerRef + "\n"
	whole := string(h.bundle(format + ref))
	_, pack, _ := strings.Cut(whole, "\n\n")
	const twin, read = "a ledger of SHA-256 objects", "a bundle of SHA-256 objects"
	g.good("audit", "B-2 B-3 H-1", twin, m{"bundle": Bytes(whole)}, m{"tip": tip, "commits": 1, "transactions": 1})
	like := func(note string, more m, rules ...string) {
		g.t.Helper()
		v := Vector{Op: "audit", Requires: []string{"H-30", "B-2"}, Note: "SHA-256: " + note, Input: more, Expect: Expectation{Verdict: Accept}}
		if len(rules) > 0 {
			v.Expect, v.Twin = Expectation{Verdict: Refuse, Rules: rules}, g.noted(twin)
		}
		g.like(twin, v)
	}
	like("the tip is known", m{"tip": tip})
	like("a tip of 40 digits is known", m{"tip": tip[:40]}, "L14")
	like("another tip is known", m{"tip": strings.Repeat("1", 64)}, "L14")
	changed := h.clone()
	changed.stages[0].when++
	g.bad("audit", "H-7 B-2", "SHA-256: another time", twin, m{"bundle": changed.bundle(format + changed.make() + " " + ledgerRef + "\n")}, "L15")
	lost := h.clone()
	lost.make()
	lost.hidden = lost.put("blob", lost.stages[0].files[lost.stages[0].file(g.t, ".diff")], "")
	g.bad("audit", "H-1 B-2", "SHA-256: a file that is missing", twin, m{"bundle": lost.bundle(format + ref)}, "OBJECT")
	g.good("bundle", "B-2 B-3 B-4", read, m{"bundle": Bytes(whole)}, m{"refs": m{ledgerRef: tip}})
	bad := func(requires, note, text string) {
		g.t.Helper()
		g.bad("bundle", requires, "bundle of SHA-256: "+note, read, m{"bundle": Bytes(text)}, "BUNDLE")
	}
	short := "\n" + pack[:32]
	bad("B-4", "a byte that is changed", whole[:len(whole)-200]+string(whole[len(whole)-200]^1)+whole[len(whole)-199:])
	bad("B-4", "the checksum of SHA-1 alone", whole[:len(whole)-12])
	bad("B-3", "a ref of 40 digits", format+tip[:40]+" "+ledgerRef+"\n"+short)
	bad("B-2 B-3", "called SHA-1", "# v3 git bundle\n@object-format=sha1\n"+ref+short)
	bad("B-2 B-3", "of version 2", "# v2 git bundle\n"+ref+short)
	bad("B-2 B-3", "without its format", "# v3 git bundle\n"+ref+short)
	bad("B-2", "of two formats", "# v3 git bundle\n@object-format=sha256\n@object-format=sha256\n"+ref+short)
	bad("B-2", "of an unknown format", "# v3 git bundle\n@object-format=sha512\n"+ref+short)
}
