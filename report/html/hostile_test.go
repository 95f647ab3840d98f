package html_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/net/html/atom"

	parser "golang.org/x/net/html"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// A forger writes records that have a text wherever the record of a whole life has words.
type forger struct {
	text  string // as JSON can have it
	all   bool   // in every string that a reader of logs takes, whatever it means
	id    string
	files fstest.MapFS
	log   *ledger.Log
	turn  string
}

// kept are the strings without which a log is none.
var kept = []string{
	"transaction_id", "turn_id", "id", "approval_request_id", "apply_id", "validate_id", "from", "to", "fingerprint", "decision", "type", "status",
	"artifact_id", "path", "evidence", "patch_id", "patchId", "base_sha256_by_path", "after_sha256_by_path",
}

// forged makes a record with a text in it.
func forged(t testing.TB, life map[string]fstest.MapFS, text string, all bool) (string, fstest.MapFS) {
	t.Helper()
	f := &forger{text: strings.ToValidUTF8(beginning(text), "\ufffd"), all: all, files: fstest.MapFS{}, log: new(ledger.Log)}
	line := strings.ReplaceAll(text, "\n", " ")
	var dir fstest.MapFS
	for f.id, dir = range life {
	}
	log, found := ledger.ReadOwn(dir, f.id)
	if len(found) > 0 {
		t.Fatal(found)
	}
	diff := fmt.Sprintf("diff --git a/x%s b/x%[1]s\n--- a/x%[1]s\n+++ b/x%[1]s\n@@ -1,2 +1,2 @@ %[1]s\n %[1]s\n-old %[1]s\n+new %s\n", beginning(line), line)
	patch, old := strings.TrimPrefix(canon.Sum([]byte(diff)), "sha256:"), log.Transaction().PatchID()
	f.files[ledger.PatchFile(patch)] = &fstest.MapFile{Data: []byte(diff)}
	if result := dir[ledger.ResultFile]; result != nil {
		f.files[ledger.ResultFile] = &fstest.MapFile{Data: f.document(t, result.Data)}
	}
	renamed := []string{old, patch}
	for i, p := range log.Payloads() {
		e := log.Events()[i]
		e.Payload = []byte(strings.NewReplacer(renamed...).Replace(string(e.Payload)))
		switch p := p.(type) {
		case *ledger.ApprovalDecision:
			if all {
				e.Payload = f.decision(t, e.Payload)
			}
		case *ledger.ArtifactStored:
			path := f.artifact(t, p.Kind, json.RawMessage(strings.ReplaceAll(string(dir[p.Path].Data), old, patch)))
			renamed = append(renamed, p.Path, path)
			continue
		}
		f.add(t, e)
		switch p := p.(type) {
		case *ledger.TurnStart:
			f.turn = p.TurnID
		case *ledger.TurnItem:
			if all && p.Item.Type == ledger.FileChange && len(ledger.Of[*ledger.CommandItem](f.log)) == 0 {
				f.others(t)
			}
		}
	}
	f.files[ledger.EventsFile] = &fstest.MapFile{Data: f.log.Bytes()}
	state, err := canon.Line(f.log.Transaction())
	check(t, err)
	f.files[ledger.TransactionFile] = &fstest.MapFile{Data: state}
	return f.id, f.files
}

// beginning is a text as far as it is put into many places.
func beginning(text string) string { return text[:min(len(text), 1000)] }

// add adds an event, with the text in it.
func (f *forger) add(t testing.TB, e ledger.Event) {
	t.Helper()
	var doc any
	check(t, json.Unmarshal(e.Payload, &doc))
	var err error
	e.Payload, err = canon.Marshal(f.plant("", doc))
	check(t, err)
	p, err := e.Decode()
	check(t, err)
	at, err := time.Parse(ledger.TimeFormat, e.Timestamp)
	check(t, err)
	check(t, f.log.Append(at, p))
}

// plant puts the text into a document.
func (f *forger) plant(key string, doc any) any {
	switch doc := doc.(type) {
	case string:
		if f.all && (key == "message" || key == "declared") { // whose lines show
			return map[string]string{"message": "x ", "declared": "Note: x "}[key] + ledger.OneLine(f.text, 900)
		}
		if slices.Contains([]string{"greet the world", "because", "Ada", "bot", "X"}, doc) || f.all && !slices.Contains(kept, key) {
			return f.text
		}
		if strings.Contains(doc, "dir/file0.txt") {
			return "x" + f.text
		}
	case []any:
		for i := range doc {
			doc[i] = f.plant(key, doc[i])
		}
	case map[string]any:
		for k, v := range doc {
			if delete(doc, k); strings.Contains(k, "dir/file0.txt") {
				doc["x"+f.text] = v
			} else {
				doc[k] = f.plant(k, v)
			}
		}
	}
	return doc
}

// artifact keeps a document with the text in it, and returns its path.
func (f *forger) artifact(t testing.TB, kind string, doc any) string {
	t.Helper()
	raw, err := json.Marshal(doc)
	check(t, err)
	raw = f.document(t, raw)
	sum := canon.Sum(raw)
	id := strings.TrimPrefix(sum, "sha256:")
	f.files[ledger.ArtifactFile(id)] = &fstest.MapFile{Data: raw}
	f.append(t, &ledger.ArtifactStored{TransactionID: f.id, ArtifactID: id, Kind: kind, Path: ledger.ArtifactFile(id), ContentType: "application/json", StoredSHA256: sum})
	return ledger.ArtifactFile(id)
}

// document is a document with the text in it.
func (f *forger) document(t testing.TB, raw []byte) []byte {
	t.Helper()
	var doc any
	check(t, json.Unmarshal(raw, &doc))
	raw, err := canon.Line(f.plant("", doc))
	check(t, err)
	return raw
}

func (f *forger) append(t testing.TB, p ledger.Payload) {
	t.Helper()
	at, err := time.Parse(ledger.TimeFormat, f.log.Transaction().UpdatedAt)
	check(t, err)
	check(t, f.log.Append(at, p))
}

// decision gives a decision evidence, an address and a signature.
func (f *forger) decision(t testing.TB, payload []byte) []byte {
	t.Helper()
	var d ledger.ApprovalDecision
	check(t, json.Unmarshal(payload, &d))
	d.Source.URL, d.Source.Permission, d.Source.Commit, d.Source.Kind = "https://github.com/acme/app/pull/1#"+f.text, f.text, f.text, f.text
	d.Source.Evidence = f.artifact(t, approval.KindStatement, approval.StatementDoc{Text: "X", Statement: approval.Statement{Earlier: []string{"X"}}})
	d.Source.Signature = &ledger.Signature{Statement: f.text, Signature: f.text, Key: f.text, Principal: f.text, KeyFingerprint: f.text}
	out, err := canon.Marshal(&d)
	check(t, err)
	return out
}

// others are events that the life has not, with what they name.
func (f *forger) others(t testing.TB) {
	t.Helper()
	ran := f.artifact(t, "command", map[string]any{"execution": map[string]any{"stdout": "X", "stderr": "X", "error": "X"}})
	f.artifact(t, "validation", map[string]any{"checks": []any{map[string]any{"id": "X", "type": "X", "target": "X", "message": "X"}}})
	f.artifact(t, forge.KindPosted, map[string]any{"comments": []any{map[string]any{"url": "https://github.com/acme/app/pull/1#" + f.text}}})
	f.append(t, &ledger.CommandItem{TransactionID: f.id, TurnID: f.turn, Item: ledger.Command{
		ID: writing.NextItem(f.log), Type: ledger.CommandExecution, Status: ledger.ItemCompleted, Command: f.text, CWD: f.text, AggregatedOutput: f.text,
		Metadata: ledger.CommandMetadata{Tree: f.text, When: f.text, Artifact: ledger.ArtifactRef{Path: ran, ArtifactID: strings.TrimSuffix(strings.TrimPrefix(ran, "artifacts/"), ".json")}},
	}})
}

// allowed are the elements of a page, with their attributes.
var allowed = map[string]string{
	"html": "lang", "head": "", "meta": "charset http-equiv content name", "title": "", "style": "", "link": "rel href", "body": "", "a": "class href rel aria-current", "header": "",
	"nav": "aria-label", "ul": "class", "ol": "", "li": "class", "b": "class", "main": "id tabindex", "footer": "", "p": "class", "strong": "", "h1": "", "h2": "id", "h3": "", "section": "class aria-labelledby", "div": "class tabindex role aria-label",
	"table": "", "thead": "", "tbody": "", "tr": "", "th": "scope", "td": "", "br": "", "dl": "", "dt": "", "dd": "", "code": "title", "pre": "class id tabindex role aria-label", "span": "class data-o data-n role aria-label",
	"time": "datetime", "details": "open class id", "summary": "", "fieldset": "class", "legend": "", "label": "", "input": "type name id checked", "article": "class id", "blockquote": "", "mark": "",
}

// strange is what a page has that no page of ours has.
func strange(n *parser.Node) (found []string) {
	for c := range n.Descendants() {
		switch c.Type {
		case parser.ElementNode:
			attributes, known := allowed[c.Data]
			if !known || c.Namespace != "" {
				found = append(found, "element "+c.Data)
			}
			for _, a := range c.Attr {
				if a.Namespace != "" || !slices.Contains(strings.Fields(attributes), a.Key) {
					found = append(found, "attribute "+a.Key+" of "+c.Data)
				}
				if a.Key == "href" && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "../../") && !strings.HasPrefix(a.Val, "https://github.com/acme/app/") {
					found = append(found, "address "+a.Val)
				}
				if a.Key == "class" && strings.Trim(a.Val, "abcdefghijklmnopqrstuvwxyz -") != "" {
					found = append(found, "class "+a.Val)
				}
			}
			if c.DataAtom == atom.Style && (c.FirstChild == nil || c.FirstChild.Data != string(html.Style())) {
				found = append(found, "style")
			}
		case parser.CommentNode:
			found = append(found, "comment "+c.Data)
		case parser.DoctypeNode:
			if c.Data != "html" || c.Parent != n {
				found = append(found, "doctype "+c.Data)
			}
		}
	}
	return found
}

// texts are those of the elements that a test finds, and of what is in them.
func texts(n *parser.Node, is func(*parser.Node) bool) []string {
	var out []string
	for c := range n.Descendants() {
		if c.Type != parser.ElementNode || !is(c) {
			continue
		}
		var b strings.Builder
		for d := range c.Descendants() {
			if d.Type == parser.TextNode {
				b.WriteString(d.Data)
			}
		}
		out = append(out, b.String())
	}
	return out
}

// has reports whether a text has these parts, in order.
func has(text string, parts []string) bool {
	for _, part := range parts {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}

// places are where a page shows foreign text, by CSS selectors of a kind: an element, with a class or inside
// another.
var places = map[string]func(*parser.Node) bool{
	"summary":              element("h1", ""),
	"name of a file":       element("h3", "summary"),
	"line of the diff":     element("span", "span"),
	"reason of a decision": element("blockquote", ""),
	"command":              element("h3", "section"),
	"output of a command":  element("pre", "details"),
	"words of a comment":   element("pre", "dd"),
	"login":                element("td", "tr"),
	"facts":                element("dd", "div"),
}

func element(name, in string) func(*parser.Node) bool {
	return func(n *parser.Node) bool { return n.Data == name && (in == "" || n.Parent.Data == in) }
}

func someLives(t testing.TB) map[storetest.Life]map[string]fstest.MapFS {
	out := map[storetest.Life]map[string]fstest.MapFS{}
	for _, l := range []storetest.Life{storetest.Asked, storetest.Given, storetest.Whole} {
		out[l] = lives(t, l)
	}
	return out
}

// hostilePages are pages of records that have a text everywhere, and of one that is not even a record.
func hostilePages(t testing.TB, life map[storetest.Life]map[string]fstest.MapFS, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, all := range []bool{false, true} {
		life := life[map[bool]storetest.Life{false: storetest.Given, true: storetest.Whole}[all]]
		id, dir := forged(t, life, text, all)
		tx := read(t, dir, id)
		found := slices.DeleteFunc(slices.Clone(tx.Findings), func(f history.Finding) bool { return f.RuleID == "L5" }) // no path may have such a name
		if !all && len(found) > 0 {
			t.Errorf("%.60q: with the words of people alone changed it should verify: %v", text, found)
		}
		_, other := forged(t, life, "other "+text, all)
		earlier := read(t, other, id)
		o := html.Options{
			Root: "../../", Nav: []html.Link{{Address: "index.html", Text: "Overview"}}, Links: forge.Links{Web: "https://github.com/acme/app"}, LedgerRef: beginning(text), LedgerCommit: beginning(text),
			Person: func(ledger.Actor) string { return "person/index.html" }, Path: func(string) string { return "path/" + beginning(text) }, Earlier: &earlier,
		}
		o.Alone = all
		out[map[bool]string{false: "words", true: "everything"}[all]] = page(t, tx, o)
	}
	for id, dir := range life[storetest.Asked] {
		bad := fstest.MapFS{ledger.EventsFile: {Data: append([]byte(text+"\n"), dir[ledger.EventsFile].Data...)}, ledger.TransactionFile: {Data: []byte(text)}}
		out["no record"] = page(t, read(t, bad, id), html.Options{Alone: true})
	}
	return out
}

// TestT76Hostile: whatever stands in a record is text on its page: the page has the elements and attributes that it
// always has, and the text is there, letter by letter, in each place.
func TestT76Hostile(t *testing.T) {
	life := someLives(t)
	for i, text := range pagetest.HostileTexts() {
		if i%3 > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		for name, page := range hostilePages(t, life, text) {
			doc, err := parser.Parse(strings.NewReader(page))
			check(t, err)
			if found := strange(doc); len(found) > 0 {
				t.Errorf("%s, %.60q: %.300q", name, text, found)
			}
			if name == "no record" {
				continue
			}
			for place, is := range places {
				if name == "words" && slices.Contains([]string{"command", "output of a command", "words of a comment"}, place) {
					continue // it has none
				}
				if !slices.ContainsFunc(texts(doc, is), func(s string) bool { return has(s, pagetest.ShownRuns(beginning(text))) }) {
					t.Errorf("%s: %.60q is not in the %s: %.300q", name, text, place, texts(doc, is))
				}
			}
		}
	}
}
