package gitstore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// regrown are entries in which a made-up 1.1 wrote some events otherwise: change is given each event of each transaction, by
// the entry that brings it.
func regrown(t *testing.T, entries []writing.Entry, change func(entry int, e *ledger.Event)) []writing.Entry {
	t.Helper()
	came, out := map[string]int{}, slices.Clone(entries) // entry by file and number of the event
	for n := range out {
		out[n].Files = maps.Clone(out[n].Files)
		for name, raw := range out[n].Files {
			if path.Base(name) != ledger.EventsFile {
				continue
			}
			var grown []byte
			var prev *string
			for line := range bytes.Lines(raw) {
				var e ledger.Event
				fatal(t, canon.Unmarshal(line, &e))
				at := fmt.Sprint(name, e.Seq)
				if _, known := came[at]; !known {
					came[at] = n
				}
				e.Prev = prev
				change(came[at], &e)
				again, err := canon.Line(e)
				fatal(t, err)
				sum := canon.Sum(again)
				grown, prev = append(grown, again...), &sum
			}
			out[n].Files[name] = grown
		}
	}
	return out
}

// ownEvent is a commit with one more of the ledger's own events, of a type and in words that need not be of this version.
func ownEvent(t *testing.T, before []byte, at time.Time, typ ledger.Type, payload string, needs, message string) writing.Entry {
	t.Helper()
	e := ledger.Event{Seq: bytes.Count(before, []byte("\n")) + 1, Timestamp: ledger.FormatTime(at), Type: typ, Payload: json.RawMessage(payload), Needs: needs}
	if len(before) > 0 {
		sum := canon.Sum(before[bytes.LastIndexByte(before[:len(before)-1], '\n')+1:])
		e.Prev = &sum
	}
	line, err := canon.Line(e)
	fatal(t, err)
	return writing.Entry{Message: message, When: at, Files: map[string][]byte{ledger.LedgerEventsFile: slices.Concat(before, line)}}
}

// raise is that commit as the event of a raise has it.
func raise(t *testing.T, at time.Time, from, to string) writing.Entry {
	payload := fmt.Sprintf(`{"author":{"id":"local:ada","kind":"user","login":"Ada"},"from":%q,"reason":"a feature","version":%q}`, from, to)
	return ownEvent(t, nil, at, ledger.TypeVersion, payload, "", fmt.Sprintf("version: Ada raised it from %s to %s: a feature\n\nCountersign-Stage: version\n", from, to))
}

// TestNewer: a made-up 1.1 plays against this program. What it wrote is sound as long as nothing of it matters; else it is
// undecidable, and nobody makes a record undecidable, or a broken one less so, by claiming it.
func TestNewer(t *testing.T) {
	const sound, undecidable, unsound = "sound", "undecidable", "unsound"
	entries := lives(t, storetest.Mixed(9)...)
	last := len(entries) - 1
	after := entries[last].When.Add(time.Second)
	needs := func(n int) func(int, *ledger.Event) {
		return func(entry int, e *ledger.Event) {
			if entry >= n {
				e.Needs = "1.1"
			}
		}
	}
	unknown := func(entry int, e *ledger.Event) {
		if entry == last {
			e.Type = "weather/changed"
		}
	}
	schema := func(text string) []writing.Entry {
		out := slices.Clone(entries)
		out[0].Files = maps.Clone(out[0].Files)
		out[0].Files[ledger.SchemaFile] = []byte(strings.Replace(string(out[0].Files[ledger.SchemaFile]), `"schema_version":"1.0"`, text, 1))
		return out
	}
	bent := func(in []writing.Entry, n int) []writing.Entry { // a transaction.json that its events do not fold to
		out := slices.Clone(in)
		out[n].Files = maps.Clone(out[n].Files)
		for name, raw := range out[n].Files {
			if path.Base(name) == ledger.TransactionFile {
				out[n].Files[name] = bytes.Replace(raw, []byte(`"status":"`), []byte(`"status":"x`), 1)
			}
		}
		return out
	}
	rewritten := func(in []writing.Entry) []writing.Entry { // the last version of a transaction has other words in an event that was there
		out := slices.Clone(in)
		n := len(out) - 1
		out[n].Files = maps.Clone(out[n].Files)
		for name, raw := range out[n].Files {
			if path.Base(name) == ledger.EventsFile {
				out[n].Files[name] = bytes.Replace(raw, []byte("review started"), []byte("review begun"), 1)
			}
		}
		return out
	}
	with := func(in []writing.Entry, n int, e writing.Entry) []writing.Entry {
		return slices.Insert(slices.Clone(in), n, e)
	}
	unapproved := func(in []writing.Entry, change func(int, *ledger.Event)) []writing.Entry { // an apply that lacks an approval, then the raise, then more of the same
		n := slices.IndexFunc(in, func(e writing.Entry) bool { return strings.HasPrefix(e.Message, "apply: ") })
		forged := regrown(t, in, func(entry int, e *ledger.Event) {
			e.Payload = bytes.Replace(e.Payload, []byte(`"required":1}],"base_commit"`), []byte(`"required":2}],"base_commit"`), 1)
			change(entry-n, e)
		})
		return with(forged, n+1, raise(t, in[n].When, "1.0", "1.1"))
	}
	whole := lives(t, storetest.Whole)
	cases := map[string]struct {
		entries []writing.Entry
		want    string
	}{
		"broken: unapproved, and more": {unapproved(whole, func(int, *ledger.Event) {}), unsound},
		"broken: unapproved, and more of 1.1": {unapproved(whole, func(since int, e *ledger.Event) {
			if since > 0 {
				e.Needs = "1.1"
			}
		}), unsound},
		"extra in every event":            {regrown(t, entries, func(_ int, e *ledger.Event) { e.Extra = json.RawMessage(`{"weather":["rain"]}`) }), sound},
		"extra in ledger.json":            {schema(`"extra":{"weather":"rain"},"schema_version":"1.0"`), sound}, // as canonical JSON sorts it
		"extra that is none":              {regrown(t, entries, func(_ int, e *ledger.Event) { e.Extra = json.RawMessage(`{}`) }), unsound},
		"raised":                          {append(slices.Clone(entries), raise(t, after, "1.0", "1.1")), undecidable},
		"raised, and more":                {with(regrown(t, entries, needs(last)), last, raise(t, entries[last].When, "1.0", "1.1")), undecidable},
		"broken: rewritten, and raised":   {with(regrown(t, rewritten(entries), needs(last)), last, raise(t, entries[last].When, "1.0", "1.1")), unsound},
		"raised to 2.0":                   {append(slices.Clone(entries), raise(t, after, "1.0", "2.0")), undecidable},
		"begun by 1.1":                    {schema(`"schema_version":"1.1"`), undecidable},
		"begun by 2.0":                    {schema(`"schema_version":"2.0"`), undecidable},
		"a lie: needs 1.1, not raised":    {regrown(t, entries, needs(last)), unsound},
		"a lie: needs 1.1 before":         {append(regrown(t, entries, needs(last)), raise(t, after, "1.0", "1.1")), unsound},
		"a lie: an unknown event":         {regrown(t, entries, unknown), unsound},
		"an unknown event after a raise":  {with(regrown(t, entries, unknown), last, raise(t, entries[last].When, "1.0", "1.1")), undecidable},
		"broken before the raise":         {append(bent(entries, last), raise(t, after, "1.0", "1.1")), unsound},
		"unknown after the raise":         {with(bent(entries, last), last, raise(t, entries[last].When, "1.0", "1.1")), undecidable},
		"another's events after a raise":  {with(bent(entries, 2), last, raise(t, entries[last].When, "1.0", "1.1")), unsound},
		"raised from another":             {append(slices.Clone(entries), raise(t, after, "1.1", "1.2")), unsound},
		"lowered":                         {append(slices.Clone(entries), raise(t, after, "1.0", "0.9")), unsound},
		"raised to itself":                {append(slices.Clone(entries), raise(t, after, "1.0", "1.0")), unsound},
		"raised to no version":            {append(slices.Clone(entries), raise(t, after, "1.0", "1.1.1")), unsound},
		"no version in ledger.json":       {schema(`"schema_version":"2"`), unsound},
		"an absent version":               {schema(`"schema_version":""`), unsound},
		"an unknown event of the ledger":  {append(slices.Clone(entries), ownEvent(t, nil, after, "ledger/weather", `{"x":1}`, "", "x\n")), unsound},
		"one of the ledger's needs 1.1":   {append(slices.Clone(entries), ownEvent(t, nil, after, "ledger/weather", `{"x":1}`, "1.1", "x\n")), undecidable},
		"an event needs what it is in":    {regrown(t, entries, func(_ int, e *ledger.Event) { e.Needs = "1.0" }), unsound},
		"an event needs no version":       {regrown(t, entries, func(_ int, e *ledger.Event) { e.Needs = "soon" }), unsound},
		"a member of an event is unknown": {regrown(t, entries, func(_ int, e *ledger.Event) { e.Payload = bytes.Replace(e.Payload, []byte("{"), []byte(`{"_":1,`), 1) }), unsound},
	}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		if i%4 > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		c := cases[name]
		t.Run(name, func(t *testing.T) {
			w := newWork(t, nil)
			tip := appendAll(t, w.dir, c.entries, 7, nil)
			r, err := auditOf(t, w.dir, "", nil)
			got := sound
			switch {
			case err != nil:
				t.Fatal(err)
			case r.Undecidable() != nil:
				got = undecidable
			case !r.OK:
				got = unsound
			}
			if got != c.want || r.OK != (c.want == sound) || (r.Newer != "") != (got == undecidable) && got != unsound {
				t.Errorf("%s: newer %q, %+v\n%+v", got, r.Newer, r.Findings, r.Notes)
			}
			if notes := fmt.Sprint(r.Notes); strings.Contains(notes, "has what is not known to this version: weather") != (name == "extra in every event") {
				t.Errorf("%s", notes)
			}
			snap, err := ledgerAt(t, w.dir).Snapshot(t.Context())
			fatal(t, err)
			raised := c.want == undecidable || strings.HasPrefix(name, "broken") || strings.HasPrefix(name, "another's") || strings.HasSuffix(name, "1.1 before")
			if err := writing.CheckSchema(snap.Tree); errors.As(err, new(*canon.NewerError)) != raised {
				t.Errorf("its schema: %v", err)
			}
			if c.want == undecidable { // also where the audit begins later
				if r, err := auditOf(t, w.dir, tip, nil); err != nil || r.OK || r.Undecidable() == nil {
					t.Errorf("from the tip: %v %+v", err, r)
				}
			}
		})
	}
}

// TestNewerForged: a raise that is not written as this program would is a finding, and this program raises to nothing that it does not know.
func TestNewerForged(t *testing.T) {
	entries := lives(t, storetest.Whole)
	at := entries[len(entries)-1].When.Add(time.Second)
	for name, bend := range map[string]func(*writing.Entry){
		"the event twice": func(e *writing.Entry) {
			e.Files[ledger.LedgerEventsFile] = bytes.Repeat(e.Files[ledger.LedgerEventsFile], 2)
		},
		"beside a file": func(e *writing.Entry) { e.Files["x"] = []byte("x") },
		"no line feed": func(e *writing.Entry) {
			e.Files[ledger.LedgerEventsFile] = bytes.TrimSpace(e.Files[ledger.LedgerEventsFile])
		},
		"in ledger.json too": func(e *writing.Entry) { e.Files[ledger.SchemaFile] = writing.Schema("2026-01-05T00:00:00.000Z", "1.1") },
	} {
		w := newWork(t, nil)
		e := raise(t, at, "1.0", "1.1")
		bend(&e)
		appendAll(t, w.dir, append(slices.Clone(entries), e), 7, nil)
		if r, err := auditOf(t, w.dir, "", nil); err != nil || r.OK {
			t.Errorf("%s: %v %+v", name, err, r)
		}
	}
	if _, err := writing.OwnEntry(fstest.MapFS{ledger.SchemaFile: {Data: writing.Schema("x", "1.0")}}, at, &ledger.Raise{From: "1.0", Version: "1.1"}); !errors.As(err, new(*canon.NewerError)) {
		t.Errorf("raised to what this program does not know: %v", err)
	}
}
