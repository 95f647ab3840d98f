package ledger_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// TestNewerDirectory: a directory with what a made-up 1.1 wrote is as good as before, or only a newer program can judge it,
// and what no version changes is looked at all the same. An artifact of an unknown kind is passed over unless its event
// says that it is critical.
func TestNewerDirectory(t *testing.T) {
	extra := json.RawMessage(`{"weather":{"it":"rains"}}`)
	stored := func(kind, doc, needs string) func(directory) {
		return func(d directory) {
			doc += "\n"
			id := canon.Hex([]byte(doc))
			d.put(ledger.ArtifactFile(id), doc)
			d.events(func(all []ledger.Event) []ledger.Event {
				stored := event(t, &ledger.ArtifactStored{
					TransactionID: txID, ArtifactID: id, Kind: kind, Path: ledger.ArtifactFile(id), ContentType: "application/json", StoredSHA256: "sha256:" + id,
				})
				return slices.Insert(all, 1, stored)
			})
			if needs != "" {
				d.links(func(all []ledger.Event) []ledger.Event { all[1].Needs = needs; return all }, true)
			}
		}
	}
	kind := func(needs string) func(directory) {
		return stored("weather", `{"schema":"countersign/weather/1"}`, needs)
	}
	for name, c := range map[string]struct {
		bend func(directory)
		want string // rules
	}{
		"nothing": {func(directory) {}, ""},
		"extra": {func(d directory) {
			d.events(func(all []ledger.Event) []ledger.Event { all[2].Extra = extra; return all })
		}, ""},
		"a kind":                  {kind(""), ""},
		"a critical kind":         {kind("1.1"), "NEWER"},
		"a kind critical for 1.0": {kind("1.0"), "L9"},
		"a trace with what an agent wrote": {
			stored("trace", `{"calls":[{"input":{"needs_version":"9.0","schema":"countersign/risks/9"},"tool":"write"}],"schema":"countersign/trace/1"}`, ""), "",
		},
		"needs": {func(d directory) {
			d.links(func(all []ledger.Event) []ledger.Event { all[3].Needs = "2.7"; return all }, true)
		}, "NEWER"},
		"needs, and a broken chain": {func(d directory) {
			d.links(func(all []ledger.Event) []ledger.Event { all[3].Needs = "2.7"; return all }, false)
		}, "L2 NEWER"},
		"an unknown type": {func(d directory) {
			d.links(func(all []ledger.Event) []ledger.Event { all[3].Type = "weather/changed"; return all }, true)
		}, "L9"},
		"one that needs": {func(d directory) {
			d.links(func(all []ledger.Event) []ledger.Event {
				all[3].Type, all[3].Needs = "weather/changed", "1.1"
				return all
			}, true)
		}, "NEWER"},
		"a member of the envelope": {func(d directory) {
			text := d.text(ledger.EventsFile)
			d.put(ledger.EventsFile, strings.Replace(strings.Replace(text, `{"payload"`, `{"needs_version":"1.1","payload"`, 1), `"prev":null,"seq":1`, `"prev":null,"rain":true,"seq":1`, 1))
		}, "L2 NEWER"},
		"and none that needs": {func(d directory) {
			text := d.text(ledger.EventsFile)
			d.put(ledger.EventsFile, strings.Replace(text, `"prev":null,"seq":1`, `"prev":null,"rain":true,"seq":1`, 1))
		}, "L2 L9"},
	} {
		d := newDirectory(t)
		c.bend(d)
		var rules []string
		for _, v := range checkOwn(d.files, txID) {
			if v.RuleID != "L23" && !slices.Contains(rules, v.RuleID) { // a page is made of events
				rules = append(rules, v.RuleID)
			}
		}
		log, err := ledger.ReadLog(d.files[ledger.EventsFile].Data)
		newer := errors.As(err, new(*canon.NewerError))
		if got := strings.Join(rules, " "); got != c.want || newer != strings.HasSuffix(c.want, "NEWER") || (log == nil) != (err != nil) {
			t.Errorf("%s: %s, not %q: %v", name, got, c.want, err)
		}
	}
}

// TestJoinKeepsExtra: what a later version says in an event stays with it where two logs are joined.
func TestJoinKeepsExtra(t *testing.T) {
	grown := func(log *ledger.Log, extra string) *ledger.Log {
		d := newDirectory(t)
		d.put(ledger.EventsFile, string(log.Bytes()))
		d.links(func(all []ledger.Event) []ledger.Event { all[len(all)-1].Extra = json.RawMessage(extra); return all }, true)
		again, err := ledger.ReadLog(d.files[ledger.EventsFile].Data)
		fatal(t, err)
		return again
	}
	start := proposed(t)
	begin := func(kind string) *ledger.Log {
		log, err := ledger.ReadLog(start.Bytes())
		fatal(t, err)
		s := writing.NewStage(log, moment, storetest.Plain{})
		s.Artifact(kind, map[string]string{"x": kind})
		if _, err := s.Entry(writing.Title{}, false); err != nil {
			t.Fatal(err)
		}
		return s.Log
	}
	const extra = `{"weather":["rain",1]}`
	ours, theirs := grown(begin("ours"), extra), begin("theirs")
	common := len(start.Events())
	j := writing.NewJoin(theirs, common)
	if added, err := j.Add(ours, common, len(ours.Events())); err != nil || !added {
		t.Fatal(added, err)
	}
	if log, err := ledger.ReadLog(j.Log().Bytes()); err != nil || !bytes.Contains(log.Bytes(), []byte(`"extra":`+extra)) {
		t.Errorf("%v\n%s", err, j.Log().Bytes())
	}
}
