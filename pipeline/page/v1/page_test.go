package v1_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/page"
	v1 "github.com/countersign-dev/countersign/pipeline/page/v1"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// TestTables: a table is the table before with one row more, up to where it only counts; one that has ended stands
// in its own row.
func TestTables(t *testing.T) {
	tables := map[string][]byte{}
	add := func(rows []v1.Row) {
		for _, r := range rows {
			tables[r.File] = r.Add(tables[r.File])
		}
	}
	one := func(i int) (open, ended []v1.Row) {
		s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
		record(s)
		m := s.Log.Payloads()[0].(*ledger.Meta)
		m.Summary = fmt.Sprint("number ", i)
		tx := s.Log.Transaction()
		tx.TransactionID = fmt.Sprintf("tx_01KE5W5200041061050R3%05d", i) // all in one folder, as the paths say
		open, ended = v1.Rows(s.Log.Payloads()[:1], ledger.Transaction{TransactionID: tx.TransactionID, Status: ledger.Proposed}, true, nil), v1.Rows(s.Log.Payloads(), tx, false, nil)
		for _, rows := range [][]v1.Row{open, ended} {
			for k := range min(2, len(rows)) {
				rows[k].File = []string{"folder", "day"}[k]
			}
		}
		return open, ended
	}
	const month, year, all = "transactions/2026/01/README.md", "transactions/2026/README.md", "transactions/README.md"
	for i := range 100 {
		open, ended := one(i)
		add(open)
		if day := tables["day"]; i < 30 && bytes.Count(day, []byte("number ")) != i+1 || i >= 30 && !bytes.Contains(day, fmt.Appendf(nil, "\n%d in all, in the folders here, %d open.\n", i+1, i+1-i/2)) {
			t.Fatalf("%d:\n%s", i, day)
		}
		if n := bytes.Count(tables["folder"], []byte("number ")); i < 60 && n != i+1 || i >= 60 && n != 0 {
			t.Fatalf("%d:\n%s", i, tables["folder"])
		}
		if i%2 == 0 {
			continue
		}
		add(ended)
		for name, want := range map[string]string{
			month: fmt.Sprintf("| [05](05/README.md) | %d | %[2]d open, %[2]d applied | `Ada` |\n", i+1, (i+1)/2),
			year:  fmt.Sprintf("| [January](01/README.md) | %d |\n", i+1), all: fmt.Sprintf("| [January 2026](2026/01/README.md) | %d |\n", i+1),
		} {
			if !bytes.Contains(tables[name], []byte(want)) {
				t.Fatalf("%d: no %s in\n%s", i, want, tables[name])
			}
		}
		if day := tables["day"]; i < 30 && bytes.Count(day, []byte("| `Ada` | applied, approved by `Ada` |\n")) != (i+1)/2 || i < 30 && bytes.Count(day, []byte("| open |\n")) != (i+1)/2 {
			t.Fatalf("%d:\n%s", i, day)
		}
	}
	if len(tables["folder"]) > 100 || len(tables["day"]) > 100 {
		t.Errorf("%d and %d bytes", len(tables["folder"]), len(tables["day"]))
	}
}

// written are the pages of a life with one foreign text in every place for foreign text.
func written(t testing.TB, text string) map[string][]byte {
	t.Helper()
	word := "x" + text
	who := ledger.Actor{Kind: word, ID: word, Login: word}
	log := &ledger.Log{}
	s := writing.NewStage(log, moment, storetest.Plain{})
	s.Event(&ledger.Meta{TransactionID: txID, Proposer: who, Summary: word, BaseCommit: word, PolicyCommit: text})
	s.Status(ledger.InProgress, word)
	s.Event(&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1", Input: word, Mode: "review"})
	it := change()
	it.Metadata.Repository, it.Metadata.PullRequest, it.Metadata.HeadCommit = &ledger.Repository{ID: "1", Name: "acme/" + word}, 7, word
	it.Metadata.Kind, it.Metadata.Author, it.Metadata.Supersedes = ledger.KindPatch, nil, []string{word, otherID}
	it.Metadata.PatchRedactedSHA256 = word
	it.Metadata.Message, it.Metadata.Declared = ledger.OneLine(word, 900)+"\n\n    "+ledger.OneLine(word, 900), []string{"Note: " + ledger.OneLine(word, 900)}
	s.Artifact(ledger.KindRisks, map[string]any{"schema": ledger.RisksSchema, "patch_id": patchID, "more": map[string]int{word: 3}, "risks": []map[string]any{
		{"kind": "executable", "path": word, "detail": word}, {"kind": word, "path": word},
	}})
	s.Event(item(it))
	s.Patch(patchID, []byte("diff --git a/a b/a\n"+text+"\n```\n~~~\n+"+text))
	s.Proposed(patchID, 7)
	s.Status(ledger.Proposed, word)
	s.Artifact(ledger.KindAgain, ledger.Provenance{Proposer: who, Input: ledger.Input{Kind: word, Format: word, Via: word}})
	q := request("req_1")
	q.Kind = word
	s.Event(q)
	d := decision("req_1", ledger.Deny)
	d.Reason, d.Source.Author, d.Source.Kind, d.Source.CreatedAt = word, who, word, word
	d.Source.URL = "https://github.com/acme/" + word + "/pull/7#x"
	d.Source.Signature = &ledger.Signature{KeyFingerprint: word}
	s.Event(d)
	s.Denied(ledger.Denial{Fingerprint: d.Fingerprint, Kind: "fileChange", TransactionID: txID, Author: who, Reason: word, DeniedAt: word})
	s.Status(ledger.Denied, word)
	e, err := s.Entry(writing.Title{Stage: "review", Outcome: "x", Subject: "x"}, true)
	if err != nil {
		t.Skip(err)
	}
	return page.Versions(nil).Of(fstest.MapFS{}, *e)
}

var (
	// inert are the only shapes of foreign text: an escape, a sign that is broken up, a code span, and code with entities.
	inert = regexp.MustCompile(`\\[!-/:-@\[-` + "`" + `{-~]|&lt;|<span>\$</span>|[@#:]` + "\u200b|`[^`\n|\\\\]+`" + `|<code>(?:[^!-.:-@\[-` + "`" + `{-~]|&#[0-9]+;)*</code>`)
	// ours are links that this program makes.
	ours  = regexp.MustCompile(`\[[A-Za-z0-9_ .:-]*\]\((?:(?:\.\./)*(?:[A-Za-z0-9_]+/)*[A-Za-z0-9_]+\.(?:md|json|jsonl|diff)|https://github\.com/acme/[A-Za-z0-9._-]+/[A-Za-z0-9/#]+)\)`)
	loose = regexp.MustCompile("(?i)[`*_{}\\[\\]<>~@#!$^&\\\\]|://|www\\.|\\bgh-")
	bold  = regexp.MustCompile(`\*\*[A-Za-z ,.0-9-]+\*\*`)
	shape = regexp.MustCompile(`^(#{1,2} .*|\|[-: |]+\||\| .* \||- .*|[A-Z0-9].*|x .*|)$`)
)

// isText reports what in a page is more than text in places of ours.
func isText(page string) error {
	page, named := strings.CutPrefix(page, "<!-- countersign page 1 -->\n")
	if !named {
		return errors.New("names no version")
	}
	fence := ""
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if fence != "" {
			if line == fence {
				fence = ""
			}
			continue
		}
		if run := len(line) - len(strings.TrimLeft(line, "`")); run >= 3 {
			fence = line[:run]
			continue
		}
		line = ours.ReplaceAllString(inert.ReplaceAllString(line, "x"), "x")
		line = bold.ReplaceAllString(line, "x")
		if !shape.MatchString(line) || loose.MatchString(strings.TrimLeft(line, "#")) {
			return fmt.Errorf("%q", line)
		}
		if strings.HasPrefix(line, "|") && !slices.Contains([]int{3, 4, 5, 6}, strings.Count(line, "|")) {
			return fmt.Errorf("cells: %q", line)
		}
	}
	if fence != "" {
		return fmt.Errorf("the block does not end")
	}
	return nil
}

// T76 Nothing that others wrote is more than text in a page: no link, mention, image, HTML, row or heading.
func TestT76HostilePages(t *testing.T) {
	for _, text := range hostileTexts {
		for name, page := range written(t, text) {
			if name == ledger.ReadmeFile {
				continue // has no foreign text
			}
			if err := isText(string(page)); err != nil {
				t.Errorf("%s, with %q: %v\n%s", name, text, err, page)
			}
		}
	}
}

var hostileTexts = []string{
	"", "a|b `c` <img src=x> @team #1 ![x](y) **bold**", "\n| new | row |", "``` \n</details>\n```", "`", "``", "\\", "a\\|b", "|", "<!-- hidden", "-->", "</code>", "&lt;b&gt;", "@ada", "acme/app#1", "GH-1",
	"https://evil.example/x", "www.evil.example", "wwwgh-1", "[x](https://evil.example)", ":tada:", "$x$ $$y$$", "~~x~~ __y__ *z*", "\u202egnp.exe", "zero\u200bwidth", "\x1b[2J", "\r\n# head",
	"> [!NOTE]", "- [x] done", "# head", "    code", "````", "~~~", "```diff", "<script>alert(1)</script>", "../../x", "/../../evil/x", "{{.}}", "\xff\xfe", "\x00", " 0123456789abcdef0123456789abcdef01234567", strings.Repeat("y", 5000),
}

// FuzzPage: no text makes structure of its own, and the same record makes the same page.
func FuzzPage(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pages, again := written(t, text), written(t, text)
		for name, page := range pages {
			if name == ledger.ReadmeFile {
				continue
			}
			if err := isText(string(page)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !bytes.Equal(page, again[name]) {
				t.Errorf("%s differs", name)
			}
		}
	})
}

// TestPagesOfTwoDenials: a commit that brings two denials of a patch adds both to each table.
func TestPagesOfTwoDenials(t *testing.T) {
	log := &ledger.Log{}
	s := writing.NewStage(log, moment, storetest.Plain{})
	record(s)
	for _, kind := range []string{"fileChange", "secrets_override"} {
		s.Denied(ledger.Denial{Fingerprint: "patchset:" + patchID, Kind: kind, TransactionID: txID, Author: actor, Reason: kind, DeniedAt: "2026-01-05T00:00:00.000Z"})
	}
	e, err := s.Entry(writing.Title{Stage: "deny", Outcome: "denied", Subject: "x"}, true)
	fatal(t, err)
	tree := storetest.LaidOut(*e)
	for _, name := range []string{"denied/README.md", "denied/" + patchID[:2] + "/README.md"} {
		if table := tree[name]; table == nil || bytes.Count(table.Data, []byte(txID)) != 2 {
			t.Errorf("%s: %s", name, table.Data)
		}
	}
}

// TestPageSays: what a page says of how a transaction stands, who decided, and what was applied is what the record does.
func TestPageSays(t *testing.T) {
	begin := func(s *writing.Stage, edit func(*ledger.Proposal)) {
		s.Event(meta())
		s.Status(ledger.InProgress, "")
		s.Event(&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1", Mode: "review"})
		s.Patch(patchID, diff)
		it := change()
		edit(it.Metadata)
		s.Event(item(it))
		s.Status(ledger.Proposed, "")
	}
	plain := func(*ledger.Proposal) {}
	of := func(pull int) func(*ledger.Proposal) {
		return func(p *ledger.Proposal) {
			p.Repository, p.PullRequest = &ledger.Repository{ID: "1", Name: "acme/app"}, pull
		}
	}
	answer := func(s *writing.Stage, n int, kind string, who ledger.Actor, url string) {
		q := request(fmt.Sprint("req_", n))
		q.Kind = kind
		s.Event(q)
		d := decision(q.ApprovalRequestID, ledger.Approve)
		d.Source.Author, d.Source.URL = who, url
		s.Event(d)
	}
	try := func(s *writing.Stage, outcome string) {
		st := start(1)
		st.ApplyID = fmt.Sprint("apply_", len(s.Log.Events()))
		s.Event(st)
		artifact := s.Artifact("apply", map[string]any{"apply_result": applied(), "n": outcome})
		s.Event(&ledger.ApplyComplete{TransactionID: txID, ApplyID: st.ApplyID, Success: outcome == "SUCCESS", Outcome: outcome, ApplyArtifact: artifact})
	}
	for _, c := range []struct {
		name     string
		record   func(*writing.Stage)
		has, not []string
	}{
		{"applied, then closed", func(s *writing.Stage) {
			begin(s, plain)
			try(s, "SUCCESS")
			s.Result(applied())
			s.Status(ledger.Applied, "")
			s.Status(ledger.Interrupted, "enough")
			s.Close()
		}, []string{"**Closed after it was applied.**", "These files"}, []string{"without being"}},
		{"closed", func(s *writing.Stage) {
			begin(s, plain)
			s.Status(ledger.Interrupted, "enough")
		}, []string{"**Closed without being applied.**"}, nil},
		{"merged without every approval", func(s *writing.Stage) {
			begin(s, func(p *ledger.Proposal) { p.Kind = ledger.KindPullRequest })
			s.Status(ledger.Interrupted, "the pull request was merged without every approval")
			s.Close()
		}, []string{"**Closed without being completed.**"}, []string{"being applied"}},
		{"applied half-way", func(s *writing.Stage) {
			begin(s, plain)
			try(s, "PARTIAL")
			s.Status(ledger.Failed, "half")
			s.Status(ledger.Interrupted, "enough")
		}, []string{"Not the change that was approved: the last try ended as `PARTIAL`", "](artifacts/", "**Closed after an apply that did not succeed.**"}, []string{"Nothing", "without being"}},
		{"refused", func(s *writing.Stage) {
			begin(s, plain)
			try(s, "REFUSED")
		}, []string{"Nothing: the last try ended as `REFUSED`"}, nil},
		{"being applied", func(s *writing.Stage) {
			begin(s, plain)
			s.Event(start(1))
		}, []string{"An apply has begun, and how it ended is not recorded yet."}, nil},
		{"a part approved", func(s *writing.Stage) {
			begin(s, plain)
			answer(s, 1, "protected_path", actor, "")
		}, []string{"`" + actor.Login + "` approved its protected paths."}, []string{"approved it."}},
		{"the glass broken", func(s *writing.Stage) {
			begin(s, plain)
			answer(s, 1, "break_glass", actor, "")
		}, []string{"`" + actor.Login + "` broke the glass for it."}, []string{"approved it."}},
		{"many approvals", func(s *writing.Stage) {
			begin(s, plain)
			for i := range 12 {
				answer(s, i, "fileChange", ledger.Actor{Kind: "human", ID: fmt.Sprint("id-", i), Login: fmt.Sprint("a", i)}, "")
			}
		}, []string{"`a9` and 2 others approved it.", "Whether these still count, and are enough, is asked again"}, nil},
		{"a check failed after the apply", func(s *writing.Stage) {
			begin(s, plain)
			try(s, "SUCCESS")
			s.Result(applied())
			s.Status(ledger.Applied, "")
			start := writing.NextValidate(s.Log)
			file := s.Artifact(ledger.KindFindings, ledger.Findings{Schema: ledger.FindingsSchema, Violations: []canon.Violation{{RuleID: "READBACK", Path: "a", Message: "is not as approved"}}, More: 2})
			s.Event(start)
			s.Event(&ledger.ValidateComplete{TransactionID: txID, ValidateID: start.ValidateID, Findings: file})
		}, []string{"**Check failed.**", "The check failed:\n\n- `a` is not as approved\n- and 2 more\n"}, []string{"found as approved", "To answer"}},
		{"protected by a later Policy than the review's", func(s *writing.Stage) {
			begin(s, plain)
			s.Artifact(ledger.KindRisks, map[string]any{"schema": ledger.RisksSchema, "patch_id": patchID, "more": map[string]int{}, "risks": []any{}})
			q := request("req_1")
			q.Kind = "protected_path"
			s.Event(q)
			s.Status(ledger.Awaiting, "")
		}, []string{"**Waits for approval.**", "| ○ protected paths | nobody yet | |", "- **protected**: an approval of its protected paths was asked for", "To answer, in a clone: `countersign approve R3GG28A`"}, []string{"None found"}},
		{"by its own proposer, and signed", func(s *writing.Stage) {
			begin(s, plain)
			q := request("req_1")
			s.Event(q)
			s.Status(ledger.Awaiting, "")
			d := decision("req_1", ledger.Approve)
			d.Source.Author, d.Source.Signature = meta().Proposer, &ledger.Signature{KeyFingerprint: "SHA256:" + strings.Repeat("a", 43)}
			s.Event(d)
			s.Status(ledger.Proposed, "approved")
		}, []string{"**Approved, not applied.**", "| the proposer themself, signed by a key, `SHA256:aaaaaaaaaaaa…` |", "and are enough, is asked again"}, []string{"To answer"}},
		{"two of one name", func(s *writing.Stage) {
			begin(s, plain)
			answer(s, 1, "fileChange", ledger.Actor{Kind: "human", ID: "local:ada@example.org", Login: "Ada"}, "")
			answer(s, 2, "fileChange", ledger.Actor{Kind: "human", ID: "local:eve@example.org", Login: "Ada"}, "")
		}, []string{"| `Ada` (`local:ada@example.org`), ", "| `Ada` (`local:eve@example.org`), ", " `Ada` (`local:ada@example.org`), `Ada` (`local:eve@example.org`) approved it."}, nil},
		{"another forge", func(s *writing.Stage) {
			begin(s, of(7))
			answer(s, 1, "fileChange", actor, "https://evil.example/acme/app/pull/7#x")
		}, []string{"[pull request 7 of `acme/app` on evil.example](https://evil.example/acme/app/pull/7)"}, []string{"[pull request 7 of `acme/app`]("}},
		{"another kind of forge", func(s *writing.Stage) {
			begin(s, of(7))
			answer(s, 1, "fileChange", actor, "") // signed on a person's machine
			answer(s, 2, "fileChange", actor, "http://git.example.org:3000/acme/app/pulls/7#issuecomment-12")
		}, []string{"[pull request 7 of `acme/app` on git.example.org:3000](http://git.example.org:3000/acme/app/pulls/7)", "(http://git.example.org:3000/acme/app/pulls/7#issuecomment-12)"}, nil},
		{"a forge that is not known", func(s *writing.Stage) {
			begin(s, of(7))
			for i, at := range []string{"merge_requests/7#x", "issues/7#x", "pulls/8#x", "pulls/70#x", "pulls/7", "pull/7/files#x", "x/pull/7#x"} {
				answer(s, i, "fileChange", actor, "https://git.example.org/acme/app/"+at)
			}
		}, []string{"| for | pull request 7 of `acme/app` |", "(https://git.example.org/acme/app/issues/7#x)"}, []string{"[pull request"}},
		{"hostile addresses", func(s *writing.Stage) {
			begin(s, of(7))
			for i, at := range []string{
				"javascript:alert(1)//acme/app/pull/7#x", "https://evil.example/x/app/pulls/7#x", "https://evil.example/?/acme/app/pulls/7#x", "https://eve@evil.example/acme/app/pulls/7#x",
				"https://evil.example/acme/app/pulls/7#)[x](https://evil.example", "https://evil.example/acme/app/pulls/7#<img src=x>", "https://evil.example/acme/app/pulls/7#x\n[x](https://evil.example)",
				"https://evil.example/acme/app/../../x/y/pulls/7#x", "https://evil.example/acme/app/..", "https://evil.example/acme/app/pulls/7#" + strings.Repeat("x", 300), "//evil.example/acme/app/pulls/7#x",
				"data:text/html,/acme/app/pulls/7#x", "https://evil.example\\acme/app/pulls/7#x", "https://evil.example/acme/app/pulls/7 \"x\"#x",
			} {
				answer(s, i, "fileChange", actor, at)
			}
		}, []string{"| for | pull request 7 of `acme/app` |"}, []string{"evil", "javascript", "data:", "<img", "](http"}},
	} {
		s := writing.NewStage(&ledger.Log{}, moment, storetest.Plain{})
		c.record(s)
		e, err := s.Entry(writing.Title{Stage: "review", Outcome: "x", Subject: "x"}, true)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		page := string(storetest.LaidOut(*e)[ledger.Dir(txID)+"/"+ledger.ReadmeFile].Data)
		for _, want := range c.has {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, page)
			}
		}
		for _, no := range c.not {
			if strings.Contains(page, no) {
				t.Errorf("%s: %q in\n%s", c.name, no, page)
			}
		}
	}
}

// T77 A forged row with a link or markup of its own is not carried on by the next honest one, and every honest row is,
// whatever its words are.
func TestT77ForgedRow(t *testing.T) {
	const row = "| [`R3GG28B`](d7/tx_01KE5W5200041061050R3GG28B/README.md) words | "
	for _, forged := range []string{
		row + "[Ada](https://evil.example) | all is well |", row + "`Ada` | <img src=x> |", "| [`x`](https://evil.example) | 00:00 | `Ada` | x |",
		row + "`Ada` | https://evil.example |", row + "`Ada` | ![x](y) |", row + "`Ada` | x", "| [`x`](javascript:1) | x | y | z |", "and more", "| x | y | z | w |",
	} {
		table := proposedIn(t, *meta())[1].Add([]byte("# Proposed on 2026-01-05\n\n" + forged + "\n"))
		if strings.Contains(string(table), forged) || !strings.Contains(string(table), txID) {
			t.Errorf("%q is carried on: %s", forged, table)
		}
	}
	for _, text := range hostileTexts {
		m := *meta()
		m.Proposer.Login, m.Summary = text, text
		d, err := canon.Line(ledger.Denial{Fingerprint: "patchset:" + patchID, TransactionID: txID, Author: m.Proposer, Reason: text, DeniedAt: text})
		if err != nil {
			continue
		}
		for _, r := range slices.Concat(proposedIn(t, m)[:2], denied(t, d)) {
			if twice := r.Add(r.Add(nil)); bytes.Count(twice, []byte("\n| [`")) != 2 {
				t.Errorf("%s with %q: %s", r.File, text, twice)
			}
		}
	}
}

// proposed are the rows of a proposal.
func proposedIn(t *testing.T, m ledger.Meta) []v1.Row {
	log := &ledger.Log{}
	fatal(t, log.Append(moment, &m))
	return v1.Rows(log.Payloads(), log.Transaction(), true, nil)
}

// denied are the rows of a denial.
func denied(t *testing.T, raw []byte) []v1.Row {
	log := &ledger.Log{}
	fatal(t, log.Append(moment, meta()))
	return v1.Rows(log.Payloads(), log.Transaction(), false, map[string][]byte{"denied/" + patchID[:2] + "/" + patchID + "/fileChange.json": raw})
}

// T77 A forged row of a month's table is not carried on either, nor are words of its own in it.
func TestT77ForgedCount(t *testing.T) {
	for _, forged := range []string{
		"| [Click](05/README.md) | 3 |", "| [06](https://evil.example/README.md) | 3 |", "| [06](06/README.md) | many |", "| [06](../06/README.md) | 3 |", "| [06](06/README.md) | 3 | 3 applied | `Ada` | x",
		"| [06](06/README.md)", "| [06](06/README.md) | 3 | 3 applied | `Ada` | x | y |",
	} {
		table := string(proposedIn(t, *meta())[2].Add([]byte("# x\n\n" + forged + "\n")))
		if strings.Contains(table, forged) || strings.Contains(table, "evil") || !strings.Contains(table, "| [05](05/README.md) | 1 | 1 open | – |\n") {
			t.Errorf("%q: %s", forged, table)
		}
	}
	for forged, want := range map[string]string{
		"| [06](06/README.md) | 3 | 2 applied, 1 sold | [x](https://evil.example) |": "| [06](06/README.md) | 3 | 2 applied | – |\n",
		"| [06](06/README.md) | 3 | <img src=x> | <b>x</b> |":                        "| [06](06/README.md) | 3 |  | – |\n",
		"| [06](06/README.md) | 3 | 3 denied | `Ada`, `Eve` and others |":            "| [06](06/README.md) | 3 | 3 denied | `Ada`, `Eve` and others |\n",
	} {
		if table := string(proposedIn(t, *meta())[2].Add([]byte(forged + "\n"))); !strings.Contains(table, want) {
			t.Errorf("%q: %s", forged, table)
		}
	}
}
