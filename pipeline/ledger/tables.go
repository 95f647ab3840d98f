package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/markdown"
)

// How many rows a table lists, so that who adds one rewrites a few kilobytes: a day's and denied/'s, and that
// of a folder of these. Above that a table only says how many there are.
const (
	maxListed = 30
	maxFolder = 60
)

// A TableRow is a row of a table that people browse: README.md of a month, of a day, of a folder
// of a day, of denied/ or of a folder there.
type TableRow struct {
	File string // the table, from the ledger's root

	title, head string // what the table begins with
	line        string // the row, "" in a table that counts by folder
	folder      string // what it is counted by
	most        int    // how many rows are listed
}

// Add is the table with the row. before is the table without it, nil where there is none; what
// is no row there is dropped.
func (r TableRow) Add(before []byte) []byte {
	t := readTable(before)
	if r.line == "" {
		t.counts[r.folder]++
		return t.byFolder(r.title)
	}
	if t.lines = append(t.lines, r.line); t.all == 0 && len(t.lines) <= r.most {
		return fmt.Appendf(nil, "# %s\n\n%s\n%s\n", r.title, r.head, strings.Join(t.lines, "\n"))
	}
	return fmt.Appendf(nil, "# %s\n\n%d in all, in the folders here.\n", r.title, t.all+len(t.lines))
}

// A table is one as it was written.
type table struct {
	lines  []string
	all    int            // how many there are, of which none is listed
	counts map[string]int // by folder
}

var (
	countRow = lazyregexp.New(`^\| \[([0-9]{2})\]\([0-9]{2}/README\.md\) \| ([0-9]{1,9}) \|$`)
	allLine  = lazyregexp.New(`^([0-9]{1,9}) in all, in the folders here\.$`)
)

// A row begins with a link to a place in the ledger, and may end with one; foreign text in between has none.
var (
	rowStart = lazyregexp.New("^\\| \\[`[0-9A-Za-z_]{1,64}`\\]\\([0-9A-Za-z_./]{1,200}\\) \\| ")
	rowEnd   = lazyregexp.New(`\| \[the transaction\]\((?:\.\./){1,2}transactions/[0-9A-Za-z_./]{1,200}\) \|$`)
	inert    = lazyregexp.New("\\\\[!-/:-@\\[-`{-~]|`[^`]*`|<code>[^<]*</code>|<span>\\$</span>")
)

// isRow reports whether a line is a row as this program makes them. A forged one that holds anything else does
// not get from one table into the next.
func isRow(line string) bool {
	start := rowStart().FindString(line)
	if start == "" || !strings.HasSuffix(line, " |") {
		return false
	}
	rest := rowEnd().ReplaceAllString(inert().ReplaceAllString(line[len(start):], ""), "")
	return !strings.ContainsAny(rest, "<`") && !strings.Contains(rest, "](") && !strings.Contains(rest, "://")
}

func readTable(raw []byte) table {
	t := table{counts: map[string]int{}}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if m := countRow().FindStringSubmatch(line); m != nil {
			t.counts[m[1]], _ = strconv.Atoi(m[2])
		} else if m := allLine().FindStringSubmatch(line); m != nil {
			t.all, _ = strconv.Atoi(m[1])
		} else if isRow(line) {
			t.lines = append(t.lines, line)
		}
	}
	return t
}

func (t table) byFolder(title string) []byte {
	out := fmt.Appendf(nil, "# %s\n\n| day | transactions |\n|---|---:|\n", title)
	for _, folder := range slices.Sorted(maps.Keys(t.counts)) {
		out = fmt.Appendf(out, "| [%s](%[1]s/README.md) | %d |\n", folder, t.counts[folder])
	}
	return out
}

// ProposalRows are the rows that a proposal adds to tables.
func ProposalRows(m Meta) []TableRow {
	id := m.TransactionID
	dir := Dir(id)
	shard := path.Dir(dir)
	day := path.Dir(shard)
	month := path.Dir(day)
	at := idTime(id)
	line := func(to string) string {
		return fmt.Sprintf("| [`%s`](%s/%s) | %s | %s | %s |", id, to, ReadmeFile, at.Format("15:04"), markdown.Name(m.Proposer.Login), markdown.Prose(markdown.ShortenTo(m.Summary, 80)))
	}
	const head = "| transaction | proposed (UTC) | by | summary, by the proposer |\n|---|---|---|---|"
	date := at.Format(time.DateOnly)
	return []TableRow{
		{File: path.Join(shard, ReadmeFile), title: "Proposed on " + date + ", in " + path.Base(shard), head: head, line: line(id), most: maxFolder},
		{File: path.Join(day, ReadmeFile), title: "Proposed on " + date, head: head, line: line(path.Base(shard) + "/" + id), most: maxListed},
		{File: path.Join(month, ReadmeFile), title: "Proposed in " + at.Format("January 2006"), folder: path.Base(day)},
	}
}

// DenialRows are the rows that a file below denied/ adds to tables; none where it is no denial.
func DenialRows(name string, raw []byte) []TableRow {
	var d Denial
	if canon.Unmarshal(raw, &d) != nil || CheckID(d.TransactionID) != nil || !canon.IsHex64(FingerprintPatch(d.Fingerprint)) {
		return nil
	}
	patchID := FingerprintPatch(d.Fingerprint)
	dir := DeniedDir(patchID)
	shard := path.Dir(dir)
	line := func(up, to string) string {
		return fmt.Sprintf("| [`%s`](%s) | %s | %s | %s | [the transaction](%s%s/%s) |", patchID, to, markdown.Name(d.Author.Login), clock(d.DeniedAt), markdown.Words(d.Reason), up, Dir(d.TransactionID), ReadmeFile)
	}
	const head = "| patch | denied by | when | reason | |\n|---|---|---|---|---|"
	return []TableRow{
		{File: path.Join(shard, ReadmeFile), title: "Denied patches in " + path.Base(shard), head: head, line: line("../../", path.Base(dir)+"/"+path.Base(name)), most: maxFolder},
		{File: path.Join(deniedRoot, ReadmeFile), title: "Denied patches", head: head, line: line("../", path.Base(shard)+"/"+path.Base(dir)+"/"+path.Base(name)), most: maxListed},
	}
}

var tableName = lazyregexp.New(`^(transactions/[0-9]{4,5}/[0-9]{2}(/[0-9]{2}(/[0-9a-f]{2})?)?|denied(/[0-9a-f]{2})?)/README\.md$`)

// IsTable reports whether a path is that of a table.
func IsTable(name string) bool { return tableName().MatchString(name) }

// IsPage reports whether a path is that of a page: a table's, or a transaction's README.md.
func IsPage(name string) bool {
	_, ok := TransactionOf(name)
	return ok && path.Base(name) == ReadmeFile && strings.Count(name, "/") == 6 || IsTable(name)
}

// hasPages reports whether a ledger has pages, after an entry on a tree.
func hasPages(tree fs.FS, e Entry) (bool, error) {
	raw, ok := e.Files[SchemaFile]
	if !ok {
		var err error
		if raw, err = fs.ReadFile(tree, SchemaFile); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return HasPages(raw), nil
}
