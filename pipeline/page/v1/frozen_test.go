package v1_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	v1 "github.com/countersign-dev/countersign/pipeline/page/v1"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

var update = flag.Bool("update", false, "write testdata anew")

// TestFrozen holds what version 1 makes of testdata/lives.txtar, the records of one life of every kind, to
// testdata/pages.md, and all that it made on the way to a hash. It never changes: ledgers that there are have these pages,
// and an audit compares. Other words, or another layout, are another version, in a package of its own.
func TestFrozen(t *testing.T) {
	const lives, pages = "testdata/lives.txtar", "testdata/pages.md"
	if *update {
		write(t, lives, recorded(t))
	}
	files := fstest.MapFS{}
	archive, err := txtar.ParseFile(lives)
	fatal(t, err)
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
	}
	made, all := map[string][]byte{ledger.ReadmeFile: v1.Root()}, bytes.NewBuffer(v1.Root())
	for _, s := range stagesOf(t, files) {
		dir, err := fs.Sub(files, ledger.Dir(s.tx.TransactionID))
		fatal(t, err)
		name := ledger.Dir(s.tx.TransactionID) + "/" + ledger.ReadmeFile
		made[name] = v1.Transaction(dir, s.payloads, s.tx)
		all.Write(made[name])
		for _, r := range v1.Rows(s.payloads, s.tx, s.first, s.denials) {
			made[r.File] = r.Add(made[r.File])
			all.Write(made[r.File])
		}
	}
	for _, p := range everyWord() {
		all.Write(p)
	}
	var got bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if _, _, ofTransaction := ledger.Within(name); ofTransaction || len(path.Base(path.Dir(name))) != 2 || strings.Count(name, "/") < 5 {
			fmt.Fprintf(&got, "<!-- %s -->\n%s\n", name, made[name])
		}
	}
	if *update {
		write(t, pages, got.Bytes())
	}
	want, err := os.ReadFile(pages)
	if err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("version 1 makes other pages than those in %s: %v", pages, err)
	}
	// No flag writes this one anew.
	const written = "41a574fac9e39b3ebf7191e636b84b66951206204cfdae2b479d587914f16646"
	if sum := canon.Hex(all.Bytes()); sum != written {
		t.Errorf("version 1 makes other pages, %s: it is frozen, and other words are another version", sum)
	}
}

// everyWord are pages with each word of version 1 that depends on the record, and with each hostile text in each way of
// escaping.
func everyWord() (pages [][]byte) {
	add := func(tx ledger.Transaction, dir fs.FS, payloads ...ledger.Payload) {
		tx.TransactionID = txID
		payloads = append([]ledger.Payload{&ledger.Meta{TransactionID: txID, Proposer: actor, Summary: tx.Notes}}, payloads...)
		pages = append(pages, v1.Transaction(dir, payloads, tx))
		for _, r := range v1.Rows(payloads, tx, false, nil) {
			pages = append(pages, r.Add(nil))
		}
	}
	nothing := fstest.MapFS{}
	proposal := func(kind string) ledger.Pointers {
		return ledger.Pointers{Proposal: &ledger.Proposal{Kind: kind, PatchID: patchID, TargetFiles: []string{"a"}}}
	}
	for _, status := range []ledger.Status{ledger.Created, ledger.InProgress, ledger.Proposed, ledger.Awaiting, ledger.Failed, ledger.Applied, ledger.Completed, ledger.Denied, ledger.Superseded, ledger.Interrupted, "other"} {
		for _, kind := range []string{ledger.KindPatch, ledger.KindPullRequest} {
			for _, ended := range []string{"", "SUCCESS", "PARTIAL", "REFUSED"} {
				payloads := []ledger.Payload{&ledger.StatusChange{From: ledger.Awaiting, To: ledger.Proposed}, &ledger.StatusChange{To: status, Reason: "the base changed: a"}}
				if ended != "" {
					payloads = append(payloads, start(1), &ledger.ApplyComplete{Success: ended == "SUCCESS", Outcome: ended}, &ledger.ValidateComplete{Success: false})
				}
				add(ledger.Transaction{Status: status, Closed: ended != "", Pointers: proposal(kind)}, nothing, payloads...)
			}
		}
	}
	for _, kind := range []string{"fileChange", "secrets_override", "protected_path", "break_glass", "other"} {
		for _, source := range []string{"local", "rpc", "review", "review_comment", "issue_comment", "other"} {
			for _, id := range []string{"github:1", "gitea:1", actor.ID} {
				for _, signature := range []*ledger.Signature{nil, {KeyFingerprint: "SHA256:abc"}} {
					d := decision("req_1", ledger.Approve)
					d.Source = ledger.Source{Kind: source, Author: ledger.Actor{Kind: "user", ID: id, Login: "Eve"}, Signature: signature}
					q := request("req_1")
					q.Kind = kind
					add(ledger.Transaction{Status: ledger.Awaiting, Pointers: proposal(ledger.KindPatch)}, nothing, q, d)
				}
			}
		}
	}
	for _, kind := range strings.Fields("unlisted executable trusted build secret protected binary delete rename mode whitespace long hidden lookalike generated other") {
		dir := fstest.MapFS{"risks": {Data: []byte(`{"more":{"a":2},"patch_id":"","risks":[{"detail":"why","kind":"` + kind + `","path":"a"}],"schema":""}`)}}
		add(ledger.Transaction{}, dir, &ledger.ArtifactStored{Kind: ledger.KindRisks, Path: "risks"})
	}
	for _, text := range hostileTexts {
		dir := fstest.MapFS{ledger.PatchFile(patchID): {Data: []byte(text)}}
		tx := ledger.Transaction{Notes: text, Closed: true, Status: ledger.Denied, Pointers: proposal(ledger.KindPatch)}
		d := decision("req_1", ledger.Deny)
		d.Reason, d.Source.Author.Login = text, text
		add(tx, dir, request("req_1"), d)
	}
	return pages
}

func write(t *testing.T, name string, data []byte) {
	fatal(t, os.WriteFile(name, data, 0o666))
}

// recorded are the records of lives, with all that they end with.
func recorded(t *testing.T) []byte {
	entries, err := storetest.Lives(storetest.Mixed(9)...)
	fatal(t, err)
	files := map[string][]byte{}
	for _, e := range entries {
		maps.Copy(files, e.Files)
	}
	var out txtar.Archive
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(name, "transactions/") || strings.HasPrefix(name, "denied/") {
			out.Files = append(out.Files, txtar.File{Name: name, Data: files[name]})
		}
	}
	return txtar.Format(&out)
}

// A stage is what one commit records.
type stage struct {
	tx       ledger.Transaction
	payloads []ledger.Payload
	first    bool
	denials  map[string][]byte
}

// stagesOf are the stages that made some records: the events of a stage have one time.
func stagesOf(t *testing.T, files fstest.MapFS) (all []stage) {
	for name := range files {
		id, _, ok := ledger.Within(name)
		if !ok || path.Base(name) != ledger.EventsFile {
			continue
		}
		log, err := ledger.ReadLog(files[name].Data)
		fatal(t, err)
		var ends []int64
		var counts []int
		at := int64(0)
		for i, e := range log.Events() {
			at += int64(bytes.IndexByte(log.Bytes()[at:], '\n')) + 1
			if i+1 == len(log.Events()) || log.Events()[i+1].Timestamp != e.Timestamp {
				ends, counts = append(ends, at), append(counts, i+1)
			}
		}
		err = log.Versions(ends, func(i int, tx ledger.Transaction) error {
			s := stage{tx, log.Payloads()[:counts[i]], i == 0, map[string][]byte{}}
			from := 0
			if i > 0 {
				from = counts[i-1]
			}
			for _, p := range s.payloads[from:] {
				d, ok := p.(*ledger.ApprovalDecision)
				if !ok || d.Decision != ledger.Deny {
					continue
				}
				file := ledger.DeniedDir(ledger.FingerprintPatch(d.Fingerprint)) + "/" + log.Request(d.ApprovalRequestID).Kind + ".json"
				if raw := files[file]; raw != nil && bytes.Contains(raw.Data, []byte(id)) {
					s.denials[file] = raw.Data
				}
			}
			all = append(all, s)
			return nil
		})
		fatal(t, err)
	}
	slices.SortFunc(all, func(a, b stage) int {
		return cmp.Or(strings.Compare(a.tx.UpdatedAt, b.tx.UpdatedAt), strings.Compare(a.tx.TransactionID, b.tx.TransactionID))
	})
	return all
}
