package v1

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// How many rows a table lists, so that who adds one rewrites a few kilobytes: a day's and denied/'s, and that
// of a folder of these. Above that a table only says how many there are.
const (
	maxListed = 30
	maxFolder = 60
)

// A Row is one that a commit adds to a table that people browse: README.md of transactions/, of a year, a month, a day,
// of a folder of a day, of denied/ or of a folder there.
type Row = struct {
	File string                     // the table, from the ledger's root
	Add  func(before []byte) []byte // the table with the row, given the one before, nil where there is none
}

// Rows are the rows that a commit adds to tables: those of a transaction, of which payloads are the events up to this
// commit, which fold to tx, when it is proposed (first) and when it ends; and those of its denials, by path in denied/.
func Rows(payloads []ledger.Payload, tx ledger.Transaction, first bool, denials map[string][]byte) (out []Row) {
	rows := transactionRows(payloads, tx, first)
	for _, name := range slices.Sorted(maps.Keys(denials)) {
		rows = append(rows, denialRows(name, denials[name])...)
	}
	for _, r := range rows {
		out = append(out, Row{r.file, r.add})
	}
	return out
}

// A tableRow is a row on its way.
type tableRow struct {
	file string

	title, head string // what the table begins with
	line        string // the row, "" in a table that counts by folder
	key         string // what a row of the same transaction begins with, "" where none is written again
	most        int    // how many rows are listed
	folder      string // what it is counted by
	monthly     bool   // whether the folders are months

	again bool   // the table has the transaction, as open
	state string // openWord, or where it stood at its end; "" in a table without
	by    string // who approved it, in Markdown; "" for nobody
}

// openWord says in a table that a transaction has not ended: its page says how it stands.
const openWord = "open"

// add is the table with the row; what is no row in the one before is dropped.
func (r tableRow) add(before []byte) []byte {
	t := readTable(before, r.monthly)
	if r.line == "" {
		return t.count(r)
	}
	at := -1
	if r.again {
		at = slices.IndexFunc(t.lines, func(line string) bool { return strings.HasPrefix(line, r.key) })
	}
	switch {
	case at >= 0:
		t.lines[at] = r.line
	case r.again && t.all > 0:
		t.open--
	default:
		t.lines = append(t.lines, r.line)
	}
	if t.all == 0 && len(t.lines) <= r.most {
		return fmt.Appendf(nil, "# %s\n\n%s\n%s\n", r.title, r.head, strings.Join(t.lines, "\n"))
	}
	text := fmt.Sprintf("%d in all, in the folders here", t.all+len(t.lines))
	if r.key != "" {
		for _, line := range t.lines {
			if strings.HasSuffix(line, "| "+openWord+" |") {
				t.open++
			}
		}
		text += fmt.Sprintf(", %d %s", max(t.open, 0), openWord)
	}
	return fmt.Appendf(nil, "# %s\n\n%s.\n", r.title, text)
}

// A table is one as it was written.
type table struct {
	lines     []string
	all, open int               // how many there are, of which none is listed
	counts    map[string]counts // by folder
}

// counts are how many transactions a folder has, how many of them stand how, and who approved them.
type counts struct {
	all    int
	states map[string]int
	by     string
}

// folderCount reads a row that counts by folder: "| [05](05/README.md) | 12 |", or with states and people behind it.
func folderCount(line string, monthly bool) (folder string, c counts, ok bool) {
	line, ends := strings.CutSuffix(line, " |")
	cells := strings.SplitN(line, " | ", 4)
	folder, link := strings.CutSuffix(cells[0], "/"+ledger.ReadmeFile+")")
	folder = folder[strings.LastIndexByte(folder, '(')+1:]
	if !ends || !link || len(cells) != 2 && len(cells) != 4 || folderLabel(folder, monthly) == "" || cells[0] != folderLink(folder, monthly) {
		return "", c, false
	}
	all, ok := number(cells[1])
	c = counts{all: all, states: map[string]int{}}
	if len(cells) == 4 {
		for one := range strings.SplitSeq(cells[2], ", ") {
			n, word, _ := strings.Cut(one, " ")
			if count, whole := number(n); whole && slices.Contains(states, word) {
				c.states[word] = count
			}
		}
		if by := active(cells[3]); isPlain(by) && !strings.Contains(by, "|") && cells[3] != nobody {
			c.by = cells[3]
		}
	}
	return folder, c, ok
}

// nobody stands where nobody approved.
const nobody = "–"

// folderLabel is what people call a folder: a day by its number, a month by its name, with the year where there
// are several; "" for no folder of these.
func folderLabel(folder string, monthly bool) string {
	year, month, of := strings.Cut(folder, "/")
	if !of {
		year, month = "", folder
	}
	n, ok := number(month)
	switch {
	case !ok || len(month) != 2 || of && (!monthly || len(year) < 4 || len(year) > 5 || span(year, isDigit) < len(year)):
		return ""
	case !monthly:
		return month
	case n < 1 || n > 12:
		return ""
	}
	return strings.TrimSpace(time.Month(n).String() + " " + year)
}

func folderLink(folder string, monthly bool) string {
	return "| [" + folderLabel(folder, monthly) + "](" + folder + "/" + ledger.ReadmeFile + ")"
}

// countOfAll reads the line of a table that lists none.
func countOfAll(line string) (all, open int, ok bool) {
	line, dot := strings.CutSuffix(line, ".")
	count, rest, in := strings.Cut(line, " in all, in the folders here")
	all, ok = number(count)
	if rest, some := strings.CutPrefix(rest, ", "); some {
		open, _ = number(strings.TrimSuffix(rest, " "+openWord))
	}
	return all, open, ok && dot && in
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
	rest, place := cut(rest, "", isPlace, 200, ") ")
	return id && place && strings.HasSuffix(line, " |") && isPlain(withoutLink(active(rest)))
}

// isPlain reports whether an active text has no link and no HTML.
func isPlain(text string) bool {
	return !strings.ContainsAny(text, "<`") && !strings.Contains(text, "](") && !strings.Contains(text, "://")
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
	at := strings.LastIndex(row, " ([the transaction](../")
	if at < 0 {
		return row
	}
	link := strings.TrimPrefix(row[at+len(" ([the transaction](../"):], "../")
	if rest, ok := cut(link, "transactions/", isPlace, 200, ")) |"); ok && rest == "" {
		return row[:at]
	}
	return row
}

func readTable(raw []byte, monthly bool) table {
	t := table{counts: map[string]counts{}}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if folder, c, ok := folderCount(line, monthly); ok {
			t.counts[folder] = c
		} else if all, open, ok := countOfAll(line); ok {
			t.all, t.open = all, open
		} else if isRow(line) {
			t.lines = append(t.lines, line)
		}
	}
	return t
}

// count is the table with the row counted.
func (t table) count(r tableRow) []byte {
	c := t.counts[r.folder]
	if c.states == nil {
		c.states = map[string]int{}
	}
	if r.again {
		c.states[openWord]--
	} else {
		c.all++
	}
	c.states[r.state]++
	c.by = together(c.by, r.by)
	t.counts[r.folder] = c
	out := fmt.Appendf(nil, "# %s\n\n%s\n", r.title, r.head)
	for _, folder := range slices.Sorted(maps.Keys(t.counts)) {
		c := t.counts[folder]
		out = fmt.Appendf(out, "%s | %d |", folderLink(folder, r.monthly), c.all)
		if r.state != "" {
			var at []string
			for _, word := range states {
				if n := c.states[word]; n > 0 {
					at = append(at, fmt.Sprintf("%d %s", n, word))
				}
			}
			out = fmt.Appendf(out, " %s | %s |", strings.Join(at, ", "), cmp.Or(c.by, nobody))
		}
		out = append(out, '\n')
	}
	return out
}

// together are some people and some more, in Markdown, the first few.
func together(some, more string) string {
	const others = " and others"
	for one := range strings.SplitSeq(more, ", ") {
		switch {
		case one == "" || strings.HasSuffix(some, others) || strings.Contains(", "+some+", ", ", "+one+", "):
		case strings.Count(some, ", ") > 3:
			some += others
		default:
			some = strings.TrimPrefix(some+", "+one, ", ")
		}
	}
	return some
}

// transactionRows are the rows that a transaction has in tables, as its first events say that fold to tx: when it is
// proposed, and when it ends. first says that the tables have none of it yet.
func transactionRows(payloads []ledger.Payload, tx ledger.Transaction, first bool) []tableRow {
	if !first && !tx.Closed {
		return nil
	}
	p := &page{tx: tx, payloads: payloads, meta: *payloads[0].(*ledger.Meta)}
	id := tx.TransactionID
	shard := path.Dir(ledger.Dir(id))
	day := path.Dir(shard)
	month := path.Dir(day)
	year := path.Dir(month)
	row := tableRow{again: !first, state: openWord, key: "| [`" + id[len(id)-7:] + "`]("}
	stands := openWord
	if tx.Closed {
		row.state, row.by = p.stands(), p.people(ledger.Approve)
		stands = row.state
		switch denied := p.people(ledger.Deny); {
		case tx.Status == ledger.Denied && denied != "":
			stands += " by " + denied
		case tx.Status != ledger.Denied && row.by != "":
			stands += ", approved by " + row.by
		}
	}
	line := func(to string) string {
		return fmt.Sprintf("%s%s/%s) %s | %s | %s |", row.key, to, ledger.ReadmeFile, cmp.Or(prose(shortenTo(p.meta.Summary, 80)), "without a summary"), name(p.meta.Proposer.Login), stands)
	}
	const head = "| change | proposed by | how it stands |\n|---|---|---|"
	const counted = "| day | changes | how they stand | approved by |\n|---|---:|---|---|"
	const monthly = "| month | changes |\n|---|---:|"
	date := path.Base(year) + "-" + path.Base(month) + "-" + path.Base(day)
	with := func(edit func(*tableRow)) tableRow { r := row; edit(&r); return r }
	rows := []tableRow{
		with(func(r *tableRow) {
			r.file, r.title, r.head, r.most = path.Join(shard, ledger.ReadmeFile), "Proposed on "+date+", in "+path.Base(shard), head, maxFolder
			r.key += id + "/"
			r.line = line(id)
		}),
		with(func(r *tableRow) {
			r.file, r.title, r.head, r.most = path.Join(day, ledger.ReadmeFile), "Proposed on "+date, head, maxListed
			r.key += path.Base(shard) + "/" + id + "/"
			r.line = line(path.Base(shard) + "/" + id)
		}),
		with(func(r *tableRow) {
			r.file, r.title, r.head, r.folder = path.Join(month, ledger.ReadmeFile), "Proposed in "+folderLabel(path.Base(year)+"/"+path.Base(month), true), counted, path.Base(day)
		}),
	}
	if first {
		folder := path.Base(month)
		rows = append(rows,
			tableRow{file: path.Join(year, ledger.ReadmeFile), title: "Proposed in " + path.Base(year), head: monthly, folder: folder, monthly: true},
			tableRow{file: path.Join(ledger.TransactionsDir, ledger.ReadmeFile), title: "Proposed in each month", head: monthly, folder: path.Join(path.Base(year), folder), monthly: true})
	}
	return rows
}

// people are those who decided so, by name, each once, the first few.
func (p *page) people(so ledger.Decision) (names string) {
	for _, d := range each[*ledger.ApprovalDecision](p) {
		if (d.Decision == ledger.Approve) == (so == ledger.Approve) {
			names = together(names, strings.ReplaceAll(name(d.Source.Author.Login), ", ", ","))
		}
	}
	return names
}

// denialRows are the rows that a file below denied/ adds to tables; none where it is no denial.
func denialRows(file string, raw []byte) []tableRow {
	var d ledger.Denial
	if canon.Unmarshal(raw, &d) != nil || ledger.CheckID(d.TransactionID) != nil || !canon.IsHex64(ledger.FingerprintPatch(d.Fingerprint)) {
		return nil
	}
	patchID := ledger.FingerprintPatch(d.Fingerprint)
	dir := ledger.DeniedDir(patchID)
	shard := path.Dir(dir)
	line := func(up, to string) string {
		return fmt.Sprintf("| [`%s`](%s) | %s, %s | %s ([the transaction](%s%s/%s)) |", patchID[:12], to, name(d.Author.Login), clock(d.DeniedAt), words(d.Reason), up, ledger.Dir(d.TransactionID), ledger.ReadmeFile)
	}
	const head = "| patch | denied by | reason |\n|---|---|---|"
	return []tableRow{
		{file: path.Join(shard, ledger.ReadmeFile), title: "Denied patches in " + path.Base(shard), head: head, line: line("../../", path.Base(dir)+"/"+path.Base(file)), most: maxFolder},
		{file: path.Join("denied", ledger.ReadmeFile), title: "Denied patches", head: head, line: line("../", path.Base(shard)+"/"+path.Base(dir)+"/"+path.Base(file)), most: maxListed},
	}
}
