package gitstore_test

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// lives makes entries of transactions' lives.
func lives(tb testing.TB, all ...storetest.Life) []writing.Entry {
	tb.Helper()
	entries, err := storetest.Lives(all...)
	fatal(tb, err)
	return entries
}

// appendAll adds entries to the ledger of a repository, some at a time.
func appendAll(tb testing.TB, dir string, entries []writing.Entry, some int, sign func([]byte) (string, error)) (tip string) {
	tb.Helper()
	repo, err := gitstore.Open(dir)
	fatal(tb, err)
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}, Sign: sign})
	fatal(tb, err)
	snap, err := l.Snapshot(tb.Context())
	fatal(tb, err)
	for tip = snap.Tip; len(entries) > 0; {
		n := min(some, len(entries))
		if tip, err = l.Append(tb.Context(), tip, entries[:n]...); err != nil {
			tb.Fatal(err)
		}
		entries = entries[n:]
	}
	return tip
}

// auditOf audits the ledger of a repository, packs and all.
func auditOf(tb testing.TB, dir, from string, signers *sshsig.Allowed) (audit.Result, error) {
	tb.Helper()
	return auditBeside(tb, dir, from, signers, nil)
}

// auditBeside is auditOf beside the commits of the code.
func auditBeside(tb testing.TB, dir, from string, signers *sshsig.Allowed, code func(commit string) (fs.FS, error)) (audit.Result, error) {
	tb.Helper()
	repo, err := gitstore.Open(dir)
	if err != nil {
		return audit.Result{}, err
	}
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	if err != nil {
		return audit.Result{}, err
	}
	h, err := l.History(tb.Context(), gitstore.HistoryOptions{From: from, Signers: signers})
	if err != nil {
		return audit.Result{}, err
	}
	var keys audit.KeyReader
	if code != nil {
		keys = page.CodeKeys(code)
	}
	r, err := page.Audit(h, audit.Options{Tip: h.Tip(), Signatures: signers != nil, Found: h.Packs(nil), Keys: keys}, nil)
	r.From = h.From()
	return r, err
}

// told are the rules of the findings, each once, in order.
func told(r audit.Result) string {
	var ids []string
	for _, f := range r.Findings {
		if len(ids) == 0 || ids[len(ids)-1] != f.RuleID {
			ids = append(ids, f.RuleID)
		}
	}
	return strings.Join(ids, " ")
}

func TestAuditSound(t *testing.T) {
	w := newWork(t, nil)
	entries := lives(t, storetest.Mixed(40)...)
	tip := appendAll(t, w.dir, entries, 7, nil)
	r, err := auditOf(t, w.dir, "", nil)
	fatal(t, err)
	for _, f := range r.Findings {
		t.Errorf("%+v", f)
	}
	if !r.Pages.OK || r.Pages.NotChecked != 0 {
		t.Errorf("%+v", r.Pages)
	}
	if !r.OK || !r.Complete || r.Tip != tip || r.Commits != len(entries) || r.Transactions != 45 || r.Signed != 0 || r.Count != 0 {
		t.Errorf("%+v", r)
	}
	if len(r.Notes) != 4 || !strings.Contains(r.Notes[0].Message, "apply_1 is in progress, or was cut off") {
		t.Errorf("notes %+v", r.Notes)
	}
}

// TestAuditFrom: an audit may begin after any commit, and sees what came then. COUNTERSIGN_TAMPER
// is for each seventh commit, and not each twenty-fifth.
func TestAuditFrom(t *testing.T) {
	w := newWork(t, nil)
	entries := lives(t, storetest.Mixed(27)...)
	appendAll(t, w.dir, entries, 20, nil)
	commits := strings.Fields(w.git("rev-list", "--reverse", gitstore.LedgerRef))
	stride := 25
	if os.Getenv("COUNTERSIGN_TAMPER") != "" {
		stride = 7
	}
	for i, from := range commits {
		if i%stride != 0 {
			continue
		}
		r, err := auditOf(t, w.dir, from, nil)
		if err != nil || !r.OK || !r.Pages.OK || !r.Complete || r.Commits != len(commits)-1-i || r.From != from {
			t.Errorf("from commit %d: %+v %v", i, r, err)
		}
	}
	w.git("tag", "-a", "-m", "x", "seen", commits[10])
	if r, err := auditOf(t, w.dir, "refs/tags/seen", nil); err != nil || !r.OK || r.Commits != len(commits)-11 {
		t.Errorf("from a tag: %+v %v", r, err)
	}
	w.git("tag", "code", "main")
	for _, from := range []string{"refs/tags/code", "refs/tags/none", "main", commits[3][:12], strings.Repeat("1", 40)} {
		if _, err := auditOf(t, w.dir, from, nil); !errors.Is(err, fault.Refused) {
			t.Errorf("from %s: %v", from, err)
		}
	}
	// Somebody changes a file of the very first commit.
	w.git("read-tree", gitstore.LedgerRef)
	first, _, _ := strings.Cut(w.git("ls-tree", "-r", "--name-only", commits[0], "transactions"), "\n")
	w.git("update-index", "--add", "--cacheinfo", "100644,"+w.git("rev-parse", commits[0]+":README.md")+","+first)
	w.git("update-ref", gitstore.LedgerRef, w.git("commit-tree", "-m", "x", "-p", gitstore.LedgerRef, w.git("write-tree")))
	r, err := auditOf(t, w.dir, commits[len(commits)-1], nil)
	if err != nil || r.OK || r.Commits != 1 || !strings.Contains(told(r), "L8") {
		t.Errorf("%+v %v", r, err)
	}
}

// BenchmarkAudit audits 10,000 whole lives (50,000 commits), and git fsck checks
// the same repository.
func BenchmarkAudit(b *testing.B) {
	dir := b.TempDir()
	if kept := os.Getenv("COUNTERSIGN_AUDIT_LEDGER"); kept != "" {
		dir = kept
	}
	if _, err := os.Stat(dir + "/.git"); err != nil {
		gitRun(b, dir, nil, "init", "-q", "-b", "main")
		appendAll(b, dir, lives(b, make([]storetest.Life, 10_000)...), 1000, nil)
	}
	var ours, theirs []time.Duration
	for b.Loop() {
		start := time.Now()
		gitRun(b, dir, nil, "fsck", "--full")
		theirs = append(theirs, time.Since(start))
		runtime.GC()
		start = time.Now()
		r, err := auditOf(b, dir, "", nil)
		if err != nil || !r.OK || r.Commits != 50_000 {
			b.Fatal(err, r)
		}
		ours = append(ours, time.Since(start))
	}
	b.ReportMetric(median(ours), "ms-ours")
	b.ReportMetric(median(theirs), "ms-fsck")
	b.ReportMetric(median(ours)/median(theirs), "x-fsck")
}

// rules is the Policy of storetest's signed lives as a commit has it.
const rules = "approvals: {keys: keys, signed: require}\n"

// TestAuditSigned: an audit verifies decisions that were signed, and holds the keys that
// are recorded with them to the list of the Policy's commit, where that is here.
func TestAuditSigned(t *testing.T) {
	w := newWork(t, nil)
	appendAll(t, w.dir, lives(t, storetest.Signed, storetest.Whole, storetest.Signed), 20, nil)
	gone := errors.New("no such commit")
	for name, c := range map[string]struct {
		file  string // "" is none
		rules string // the Policy's file there, "" for one that names the list
		err   error
		want  audit.SignedDecisions
		found string
	}{
		"the commit is not here":  {err: gone, want: audit.SignedDecisions{Count: 2, Unknown: 2}},
		"it lists the key":        {file: "# keys\r\n\t" + storetest.KeyLine() + "\r\n", want: audit.SignedDecisions{Count: 2, Listed: 2}},
		"it lists another":        {file: "ada@example.org " + teststand.Ed25519(7).Public + "\n", want: audit.SignedDecisions{Count: 2}, found: "L22"},
		"it lists it otherwise":   {file: `ada@example.org valid-before="20200101Z" ` + teststand.Ed25519(1).Public + "\n", want: audit.SignedDecisions{Count: 2}, found: "L22"},
		"it has no list":          {want: audit.SignedDecisions{Count: 2}, found: "L22"},
		"its Policy has no keys":  {file: storetest.KeyLine() + "\n", rules: "approvals: {required: 5}\n", want: audit.SignedDecisions{Count: 2}, found: "L22"},
		"its Policy has others":   {file: storetest.KeyLine() + "\n", rules: "approvals: {keys: other}\n", want: audit.SignedDecisions{Count: 2}, found: "L22"},
		"its Policy takes others": {file: storetest.KeyLine() + "\n", rules: "approvals: {keys: keys, forge_keys: true}\n", want: audit.SignedDecisions{Count: 2}, found: "L22"},
		"its Policy is broken":    {file: storetest.KeyLine() + "\n", rules: "approvals: 5\n", want: audit.SignedDecisions{Count: 2}, found: "L22"},
		"its list is none":        {file: "bob\n", want: audit.SignedDecisions{Count: 2}, found: "L22"},
		"a line is no key":        {file: storetest.KeyLine() + "\nbob\n", want: audit.SignedDecisions{Count: 2, Listed: 2}},
	} {
		read := map[string]int{}
		var mu sync.Mutex
		r, err := auditBeside(t, w.dir, "", nil, func(commit string) (fs.FS, error) {
			mu.Lock()
			defer mu.Unlock()
			read[commit]++
			tree := fstest.MapFS{policy.Path: &fstest.MapFile{Data: []byte(cmp.Or(c.rules, rules)), Mode: 0o644}}
			if c.file != "" {
				tree["keys"] = &fstest.MapFile{Data: []byte(c.file), Mode: 0o644}
			}
			return tree, c.err
		})
		if err != nil || r.OK != (c.found == "") || told(r) != c.found || r.Decisions != c.want {
			t.Errorf("%s: %+v %v", name, r, err)
		}
		for commit, times := range read {
			if times > 1 {
				t.Errorf("%s: commit %s was read %d times", name, commit, times)
			}
		}
	}
	if r, err := auditOf(t, w.dir, "", nil); err != nil || !r.OK || !r.Complete || r.Transactions != 3 || r.Decisions != (audit.SignedDecisions{Count: 2, Unknown: 2}) {
		t.Errorf("without the code: %+v %v", r, err)
	}
}

// BenchmarkAuditSigned audits whole lives whose approval is signed, and as many without.
// COUNTERSIGN_SIGNED is how many; docs/benchmarks.md has the number.
func BenchmarkAuditSigned(b *testing.B) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("COUNTERSIGN_SIGNED"), "500"))
	fatal(b, err)
	var dirs [2]string
	for i, life := range []storetest.Life{storetest.Whole, storetest.Signed} {
		dirs[i] = b.TempDir()
		gitRun(b, dirs[i], nil, "init", "-q", "-b", "main")
		appendAll(b, dirs[i], lives(b, slices.Repeat([]storetest.Life{life}, n)...), 1000, nil)
	}
	var took [2][]time.Duration
	list := func(string) (fs.FS, error) {
		return fstest.MapFS{policy.Path: &fstest.MapFile{Data: []byte(rules), Mode: 0o644}, "keys": &fstest.MapFile{Data: []byte(storetest.KeyLine() + "\n"), Mode: 0o644}}, nil
	}
	for b.Loop() {
		for i, dir := range dirs {
			runtime.GC()
			start := time.Now()
			if r, err := auditBeside(b, dir, "", nil, list); err != nil || !r.OK || r.Transactions != n || r.Decisions.Listed != i*n {
				b.Fatal(err, r)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	b.ReportMetric(median(took[0]), "ms-plain")
	b.ReportMetric(median(took[1]), "ms-signed")
	b.ReportMetric(median(took[1])/median(took[0]), "x-plain")
}

// TestAuditSchemaForged: what a later commit writes to ledger.json is that commit's fault, and no other's.
func TestAuditSchemaForged(t *testing.T) {
	w := newWork(t, nil)
	entries := slices.Clone(lives(t, storetest.Mixed(9)...))
	last := len(entries) - 1
	entries[last].Files = maps.Clone(entries[last].Files)
	entries[last].Files[ledger.SchemaFile] = writing.Schema("2026-01-05T00:00:00.000Z", "1")
	tip := appendAll(t, w.dir, entries, 7, nil)
	for _, from := range []string{"", strings.TrimSpace(w.git("rev-parse", tip+"~3"))} {
		r, err := auditOf(t, w.dir, from, nil)
		if err != nil || r.OK {
			t.Errorf("from %q: %v %+v", from, err, r)
		}
		for _, f := range r.Findings {
			if f.Commit != tip {
				t.Errorf("from %q: %+v", from, f)
			}
		}
	}
}

// TestDamagedTable: a table that somebody made something else of keeps nobody from recording, and the next commit, which makes it
// anew, is sound.
func TestDamagedTable(t *testing.T) {
	entries := lives(t, storetest.Mixed(9)...)
	n := 0
	for !strings.HasPrefix(entries[n].Message, "deny: ") {
		n++
	}
	n++
	for n < len(entries) && !slices.ContainsFunc(slices.Collect(maps.Keys(entries[n].Files)), func(name string) bool { return strings.HasPrefix(name, "proposed/") }) {
		n++
	}
	var table string
	for name := range entries[n].Files {
		if id, _, ok := ledger.Within(name); ok {
			table = path.Dir(path.Dir(path.Dir(ledger.Dir(id)))) + "/README.md"
		}
	}
	for _, as := range []string{"120000 blob", "040000 tree", "100755 blob", "160000 commit"} {
		w := newWork(t, nil)
		tip := appendAll(t, w.dir, entries[:n], 7, nil)
		id := strings.TrimSpace(w.stdin("| [`forged` |\n", "hash-object", "-w", "--stdin"))
		switch {
		case strings.HasSuffix(as, "commit"):
			id = tip
		case strings.HasSuffix(as, "tree"):
			id = strings.TrimSpace(w.stdin("100644 blob "+id+"\tx\n", "mktree"))
		}
		entry := as + " " + id + "\tREADME.md\n"
		for dir := path.Dir(table); ; dir = path.Dir(dir) {
			at := tip + ":" + dir
			if dir == "." {
				at = tip + "^{tree}"
			}
			var lines []string
			_, replaced, _ := strings.Cut(strings.TrimSuffix(entry, "\n"), "\t")
			for _, line := range strings.Split(strings.TrimSpace(w.git("ls-tree", at)), "\n") {
				if !strings.HasSuffix(line, "\t"+replaced) {
					lines = append(lines, line)
				}
			}
			tree := strings.TrimSpace(w.stdin(strings.Join(append(lines, entry), "\n"), "mktree"))
			if entry = "040000 tree " + tree + "\t" + path.Base(dir) + "\n"; dir == "." {
				tip = strings.TrimSpace(w.git("commit-tree", "-p", tip, "-m", "x", tree))
				break
			}
		}
		w.git("update-ref", gitstore.LedgerRef, tip)
		made, err := ledgerAt(t, w.dir).Append(t.Context(), tip, entries[n])
		if err != nil {
			t.Errorf("%s: %v", as, err)
			continue
		}
		r, err := auditOf(t, w.dir, "", nil)
		fatal(t, err)
		for _, f := range slices.Concat(r.Findings, r.Pages.Findings) {
			if f.Commit == made {
				t.Errorf("%s: %+v", as, f)
			}
		}
	}
}
