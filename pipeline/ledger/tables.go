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

// folderCount reads a row that counts by folder: "| [05](05/README.md) | 12 |".
func folderCount(line string) (folder string, n int, ok bool) {
	if len(line) < len("| [05](05/README.md) | 1 |") || line[:3] != "| [" {
		return "", 0, false
	}
	folder = line[3:5]
	rest, ok := strings.CutPrefix(line[5:], "]("+folder+"/"+ReadmeFile+") | ")
	count, end := strings.CutSuffix(rest, " |")
	n, whole := number(count)
	return folder, n, ok && end && whole && span(folder, isDigit) == 2
}

// countOfAll reads the line of a table that lists none.
func countOfAll(line string) (int, bool) {
	count, ok := strings.CutSuffix(line, " in all, in the folders here.")
	n, whole := number(count)
	return n, ok && whole
}

// number reads one to nine digits.
func number(text string) (int, bool) {
	if len(text) > 9 || text == "" || span(text, isDigit) < len(text) {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// span is how many characters a text begins with that are in a set.
func span(text string, in func(byte) bool) int {
	for i := range len(text) {
		if !in(text[i]) {
			return i
		}
	}
	return len(text)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c == '_'
}

func isPlace(c byte) bool { return isWord(c) || c == '.' || c == '/' }

// cut takes a text of one to most characters of a set off, which is between two others.
func cut(text, before string, in func(byte) bool, most int, after string) (rest string, ok bool) {
	if text, ok = strings.CutPrefix(text, before); !ok {
		return "", false
	}
	n := span(text, in)
	rest, ok = strings.CutPrefix(text[n:], after)
	return rest, ok && 0 < n && n <= most
}

// isRow reports whether a line is a row as this program makes them: it begins with a link to a place in the ledger,
// and may end with one; foreign text in between has none. A forged one that holds anything else does
// not get from one table into the next.
func isRow(line string) bool {
	rest, id := cut(line, "| [`", isWord, 64, "`](")
	rest, place := cut(rest, "", isPlace, 200, ") | ")
	if !id || !place || !strings.HasSuffix(line, " |") {
		return false
	}
	rest = withoutLink(active(rest))
	return !strings.ContainsAny(rest, "<`") && !strings.Contains(rest, "](") && !strings.Contains(rest, "://")
}

// active is a text without what means nothing in it: escaped punctuation, code, and the dollar sign of prose.
func active(text string) string {
	at := strings.IndexAny(text, "\\`<")
	if at < 0 {
		return text
	}
	var b strings.Builder
	for ; at >= 0; at = strings.IndexAny(text, "\\`<") {
		b.WriteString(text[:at])
		if text = text[at:]; inert(text) == 0 {
			b.WriteByte(text[0])
			text = text[1:]
			continue
		}
		text = text[inert(text):]
	}
	b.WriteString(text)
	return b.String()
}

// inert is how many bytes of what begins with a backslash, a backtick or a "<" mean nothing.
func inert(text string) int {
	const dollar, code, end = "<span>$</span>", "<code>", "</code>"
	switch {
	case text[0] == '\\' && len(text) > 1 && '!' <= text[1] && text[1] <= '~' && !isDigit(text[1]) && (text[1] == '_' || !isWord(text[1])):
		return 2
	case text[0] == '`':
		if n := strings.IndexByte(text[1:], '`'); n >= 0 {
			return n + 2
		}
	case strings.HasPrefix(text, dollar):
		return len(dollar)
	case strings.HasPrefix(text, code):
		if n := strings.IndexByte(text[len(code):], '<'); n >= 0 && strings.HasPrefix(text[len(code)+n:], end) {
			return len(code) + n + len(end)
		}
	}
	return 0
}

// withoutLink is a row without the link to a transaction that it may end with.
func withoutLink(row string) string {
	at := strings.LastIndex(row, "| [the transaction](../")
	if at < 0 {
		return row
	}
	link := strings.TrimPrefix(row[at+len("| [the transaction](../"):], "../")
	if rest, ok := cut(link, "transactions/", isPlace, 200, ") |"); ok && rest == "" {
		return row[:at]
	}
	return row
}

func readTable(raw []byte) table {
	t := table{counts: map[string]int{}}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if folder, n, ok := folderCount(line); ok {
			t.counts[folder] = n
		} else if n, ok := countOfAll(line); ok {
			t.all = n
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
