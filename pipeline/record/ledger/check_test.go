package ledger_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestVectors are the answers of a reference program.
func TestVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/invariants.json")
	fatal(t, err)
	var cases []struct {
		Name   string
		State  string `json:"transaction_json"`
		Events []string
		Files  []string
		OK     bool
		Rules  []string
	}
	fatal(t, json.Unmarshal(raw, &cases))
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			dir := fstest.MapFS{
				ledger.TransactionFile: {Data: []byte(c.State)},
				ledger.EventsFile:      {Data: []byte(strings.Join(c.Events, "\n") + "\n")},
			}
			for _, name := range c.Files {
				dir[name] = &fstest.MapFile{}
			}
			found := checked(t, dir)
			if got := rules(found); got != strings.Join(c.Rules, " ") || (len(found) == 0) != c.OK {
				t.Errorf("%v, want %v", found, c.Rules)
			}
		})
	}
}

func TestCheckValid(t *testing.T) {
	d := newDirectory(t)
	if found := checked(t, d.files); len(found) > 0 {
		t.Errorf("our own: %v", found)
	}
	if found := checkOwn(d.files, txID); len(found) > 0 {
		t.Errorf("our own, strictly: %v", found)
	}
	if _, found := ledger.ReadOwn(d.files, ""); rules(found) != "I2" { // whose it is has to be said
		t.Errorf("without an id: %v", found)
	}
	if got := rules(checkOwn(d.files, otherID)); got != "I2" {
		t.Errorf("in another's place: %s", got)
	}
	d.foreign(nil)
	if found := checked(t, d.files); len(found) > 0 {
		t.Errorf("foreign: %v", found)
	}
	if got := rules(checkOwn(d.files, txID)); got != "I2 L1 L2 L9" {
		t.Errorf("ours with the chain dropped: %s", got)
	}
}

// TestT54Invariants: each row breaks one rule of a foreign directory, so that
// no rule of ours can stand in for it.
func TestT54Invariants(t *testing.T) {
	type events = []map[string]any
	ev := func(typ ledger.Type, payload string) map[string]any {
		var p map[string]any
		fatal(t, json.Unmarshal([]byte(payload), &p))
		return map[string]any{"timestamp": "2026-01-05T00:00:00Z", "type": string(typ), "payload": p}
	}
	first := func(e events, typ ledger.Type) int {
		return slices.IndexFunc(e, func(m map[string]any) bool { return m["type"] == string(typ) })
	}
	without := func(typ ledger.Type) func(events) events {
		return func(e events) events { i := first(e, typ); return slices.Delete(e, i, i+1) }
	}
	before := func(typ ledger.Type, typNew ledger.Type, payload string) func(events) events {
		return func(e events) events { return slices.Insert(e, first(e, typ), ev(typNew, payload)) }
	}
	set := func(typ ledger.Type, key string, value any) func(events) events {
		return func(e events) events { e[first(e, typ)]["payload"].(map[string]any)[key] = value; return e }
	}
	for _, c := range []struct {
		name, want string
		edit       func(events) events
	}{
		{"no tx/meta", "I1", without(ledger.TypeMeta)},
		{"tx/meta of another transaction", "I2", set(ledger.TypeMeta, "transaction_id", otherID)},
		{"tx/meta without an id", "I2", set(ledger.TypeMeta, "transaction_id", nil)},
		{"first status is not from created", "I3", set(ledger.TypeStatus, "from", "proposed")},
		{"status without from", "I3", set(ledger.TypeStatus, "from", 1)},
		{"turn without an id", "I4", before(ledger.TypeArtifact, ledger.TypeTurnStart, `{}`)},
		{"turn twice", "I4", before(ledger.TypeArtifact, ledger.TypeTurnStart, `{"turn_id":"turn_1"}`)},
		{"item of no turn", "I5", set(ledger.TypeTurnItem, "turn_id", "turn_9")},
		{"item before its turn", "I5", before(ledger.TypeTurnStart, ledger.TypeTurnItem, `{"turn_id":"turn_1","item":{"id":"i","type":"plan"}}`)},
		{"item without type", "I5", set(ledger.TypeTurnItem, "item", map[string]any{"id": "i"})},
		{"item without id", "I5", set(ledger.TypeTurnItem, "item", map[string]any{"type": "plan"})},
		{"item that is no object", "I5", set(ledger.TypeTurnItem, "item", "plan")},
		{"request without an id", "I6", before(ledger.TypeDecision, ledger.TypeRequest, `{}`)},
		{"request twice", "I6", before(ledger.TypeDecision, ledger.TypeRequest, `{"approval_request_id":"req_1"}`)},
		{"decision on an unknown request", "I6", before(ledger.TypeDecision, ledger.TypeDecision, `{"approval_request_id":"req_9"}`)},
		{"decision twice", "I6", before(ledger.TypeApplyStart, ledger.TypeDecision, `{"approval_request_id":"req_1"}`)},
		{"decision without its request", "I6", without(ledger.TypeRequest)},
		{"apply without an id", "I7 I8", set(ledger.TypeApplyStart, "apply_id", "")},
		{"apply inside an apply", "I7", before(ledger.TypeApplyComplete, ledger.TypeApplyStart, `{"apply_id":"apply_1"}`)},
		{"apply without its end", "I8", without(ledger.TypeApplyComplete)},
		{"end without its apply", "I8", without(ledger.TypeApplyStart)},
		{"end of another apply", "I8", set(ledger.TypeApplyComplete, "apply_id", "apply_9")},
		{"event after tx/close", "I9", func(e events) events { return append(e, ev(ledger.TypeTurnStart, `{"turn_id":"late"}`)) }},
		{"artifact that is not there", "I10", set(ledger.TypeArtifact, "path", "artifacts/none.json")},
		{"artifact outside", "I10", set(ledger.TypeArtifact, "path", "../transaction.json")},
		{"artifact by a backslash", "I10", set(ledger.TypeArtifact, "path", `artifacts\a.json`)},
		{"artifact that is a directory", "I10", set(ledger.TypeArtifact, "path", "artifacts")},
		{"artifact without a path", "I10", set(ledger.TypeArtifact, "path", nil)},
		{"patch that is not there", "I11", set(ledger.TypeTurnItem, "item", map[string]any{
			"id": "i", "type": "fileChange", "metadata": map[string]any{"patch_id": "none"}})},
		{"patch id that is no text", "I11", set(ledger.TypeTurnItem, "item", map[string]any{
			"id": "i", "type": "fileChange", "metadata": map[string]any{"patch_id": map[string]any{"\x1b[2J": 1}}})},
		{"finished command without evidence", "I12", set(ledger.TypeTurnItem, "item", map[string]any{
			"id": "i", "type": "commandExecution", "status": "completed", "metadata": map[string]any{"artifact": map[string]any{"artifact_id": "none"}}})},
		{"running command", "", set(ledger.TypeTurnItem, "item", map[string]any{
			"id": "i", "type": "commandExecution", "status": "in_progress", "metadata": map[string]any{"artifact": map[string]any{"artifact_id": "none"}}})},
		{"unknown type", "", before(ledger.TypeDecision, "x/y", `{}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDirectory(t)
			d.foreign(c.edit)
			found := checked(t, d.files)
			if got := rules(found); got != c.want {
				t.Errorf("%v, want %s", found, c.want)
			}
			if s := fmt.Sprint(found); strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
				t.Errorf("control characters in %q", s)
			}
		})
	}
}

// TestT55Files: what is not JSON, not there, or not in the form we write.
func TestT55Files(t *testing.T) {
	for _, c := range []struct {
		name, want string
		edit       func(directory)
	}{
		{"no events file", "EMPTY", func(d directory) { delete(d.files, ledger.EventsFile) }},
		{"empty events file", "EMPTY", func(d directory) { d.put(ledger.EventsFile, "") }},
		{"blank lines alone", "EMPTY", func(d directory) { d.put(ledger.EventsFile, "\n \n") }},
		{"blank lines between", "", func(d directory) {
			d.put(ledger.EventsFile, "\n"+strings.ReplaceAll(d.text(ledger.EventsFile), "\n", "\n\n"))
		}},
		{"line that is no JSON", "PARSE", func(d directory) { d.put(ledger.EventsFile, d.text(ledger.EventsFile)+"{\n") }},
		{"line that is no object", "PARSE", func(d directory) { d.put(ledger.EventsFile, d.text(ledger.EventsFile)+"[]\n") }},
		{"line with a key twice", "PARSE", func(d directory) {
			d.put(ledger.EventsFile, d.text(ledger.EventsFile)+`{"type":"a","type":"b"}`+"\n")
		}},
		{"events file is a directory", "EMPTY", func(d directory) {
			d.put(ledger.EventsFile+"/x", d.text(ledger.EventsFile))
			delete(d.files, ledger.EventsFile)
		}},
		{"no transaction.json", "I2 PARSE", func(d directory) { delete(d.files, ledger.TransactionFile) }},
		{"transaction.json is no JSON", "I2 PARSE", func(d directory) { d.put(ledger.TransactionFile, "{") }},
		{"transaction.json is no object", "I2 PARSE", func(d directory) { d.put(ledger.TransactionFile, "[]") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDirectory(t)
			d.foreign(nil)
			c.edit(d)
			if found := checked(t, d.files); rules(found) != c.want {
				t.Errorf("%v, want %s", found, c.want)
			}
		})
	}
}

// at returns the index of the nth event of a type.
func at(events []ledger.Event, typ ledger.Type, nth int) int {
	for i, e := range events {
		if e.Type == typ {
			if nth--; nth == 0 {
				return i
			}
		}
	}
	panic("no such event")
}

func with[T any](v *T, edit func(*T)) *T {
	edit(v)
	return v
}

// proposes changes the proposal that the events record.
func (d directory) proposes(t *testing.T, edit func(*ledger.Proposal)) {
	it := change()
	edit(it.Metadata)
	d.events(func(e []ledger.Event) []ledger.Event {
		e[at(e, ledger.TypeTurnItem, 1)] = event(t, item(it))
		return e
	})
}

// TestT54OwnRules: each row breaks a rule that only our own directories promise.
func TestT54OwnRules(t *testing.T) {
	type events = []ledger.Event
	insert := func(t *testing.T, before ledger.Type, all ...ledger.Payload) func(events) events {
		return func(e events) events {
			var more events
			for _, p := range all {
				more = append(more, event(t, p))
			}
			return slices.Insert(e, at(e, before, 1), more...)
		}
	}
	drop := func(typ ledger.Type) func(events) events {
		return func(e events) events { i := at(e, typ, 1); return slices.Delete(e, i, i+1) }
	}
	substitute := func(t *testing.T, p ledger.Payload) func(events) events {
		return func(e events) events { e[at(e, p.Type(), 1)] = event(t, p); return e }
	}
	for _, c := range []struct {
		name, want string
		edit       func(*testing.T, directory)
	}{
		{"number skipped", "L1 L9", func(_ *testing.T, d directory) {
			d.links(func(e events) events { e[3].Seq = 9; return e }, true)
		}},
		{"chain broken", "L2 L9", func(_ *testing.T, d directory) {
			sum := canon.Sum(nil)
			d.links(func(e events) events { e[len(e)-1].Prev = &sum; return e }, false)
		}},
		{"chain starts with a hash", "L2 L9", func(_ *testing.T, d directory) {
			sum := canon.Sum(nil)
			d.links(func(e events) events { e[0].Prev = &sum; return e[:1] }, false)
		}},
		{"two events exchanged", "L1 L2 L9", func(_ *testing.T, d directory) {
			d.links(func(e events) events {
				i := at(e, ledger.TypeValidateStart, 1)
				e[i], e[i+1] = e[i+1], e[i]
				return e
			}, false)
		}},
		{"last event dropped", "L9", func(_ *testing.T, d directory) {
			d.links(func(e events) events { return e[:len(e)-1] }, false)
		}},
		{"event twice", "L1 L2 L9", func(_ *testing.T, d directory) {
			d.links(func(e events) events { return append(e, e[len(e)-1]) }, false)
		}},

		{"a validate that failed, without what it found", "L9", func(t *testing.T, d directory) {
			d.numbered(insert(t, ledger.TypeValidateStart, &ledger.ValidateStart{TransactionID: txID, ValidateID: "validate_0"}, &ledger.ValidateComplete{TransactionID: txID, ValidateID: "validate_0"}))
		}},
		{"a validate that failed, with what no event stored", "L6", func(t *testing.T, d directory) {
			d.events(insert(t, ledger.TypeValidateStart, failed()...))
		}},
		{"a validate that failed, with what is no list of findings", "L6", func(t *testing.T, d directory) {
			d.put(ledger.ArtifactFile(canon.Hex([]byte("{}\n"))), "{}\n")
			stored := &ledger.ArtifactStored{
				TransactionID: txID, ArtifactID: canon.Hex([]byte("{}\n")), Kind: ledger.KindFindings, Path: ledger.ArtifactFile(canon.Hex([]byte("{}\n"))),
				ContentType: "application/json", StoredSHA256: canon.Sum([]byte("{}\n")),
			}
			d.events(insert(t, ledger.TypeValidateStart, append([]ledger.Payload{stored}, failed()...)...))
		}},
		{"completed, although the last validate failed", "L9", func(t *testing.T, d directory) {
			d.numbered(func(e events) events {
				i := at(e, ledger.TypeValidateComplete, 1)
				return slices.Insert(e, i+1, event(t, failed()[0]), event(t, failed()[1]))
			})
		}},
		{"a validate ends that did not begin", "L9", func(t *testing.T, d directory) { d.numbered(drop(ledger.TypeValidateStart)) }},
		{"a validate fails before the apply", "L9", func(t *testing.T, d directory) { d.numbered(insert(t, ledger.TypeApplyStart, failed()...)) }},
		{"applied, and applied again", "L9", func(t *testing.T, d directory) {
			d.numbered(insert(t, ledger.TypeValidateStart, start(1)))
		}},

		{"applied another patch", "L3", func(t *testing.T, d directory) {
			d.events(substitute(t, with(start(1), func(s *ledger.ApplyStart) { s.PatchIDs = []string{canon.Hex(nil)} })))
		}},
		{"applied no patch", "L3", func(t *testing.T, d directory) {
			d.events(substitute(t, with(start(1), func(s *ledger.ApplyStart) { s.PatchIDs = nil })))
		}},

		{"artifact changed", "L4", func(t *testing.T, d directory) { d.replace(proposalArtifact(t), `{"n":1}`, `{"n":2}`) }},
		{"artifact under another name", "L4", func(t *testing.T, d directory) {
			d.put("artifacts/other.json", "{\"n\":1}\n")
			delete(d.files, proposalArtifact(t))
			d.events(substitute(t, &ledger.ArtifactStored{
				TransactionID: txID,
				ArtifactID:    canon.Hex([]byte("{\"n\":1}\n")), StoredSHA256: canon.Sum([]byte("{\"n\":1}\n")), Path: "artifacts/other.json",
			}))
		}},
		{"artifact missing", "I10", func(t *testing.T, d directory) { delete(d.files, proposalArtifact(t)) }},
		{"patch changed", "L5", func(_ *testing.T, d directory) { d.put(ledger.PatchFile(patchID), "other\n") }},
		{"patch stored without its secrets", "", func(t *testing.T, d directory) {
			d.proposes(t, func(p *ledger.Proposal) { p.PatchRedactedSHA256 = canon.Sum([]byte("less\n")) })
			d.put(ledger.PatchFile(patchID), "less\n")
		}},
		{"patch stored otherwise than recorded", "L5", func(t *testing.T, d directory) {
			d.proposes(t, func(p *ledger.Proposal) { p.PatchRedactedSHA256 = canon.Sum([]byte("less\n")) })
		}},
		{"sealed patch", "", func(t *testing.T, d directory) {
			d.proposes(t, func(p *ledger.Proposal) { p.PatchSealedSHA256 = canon.Sum([]byte("sealed")) })
			d.put(ledger.SealedFile(patchID), "sealed")
		}},
		{"sealed patch is another", "L5", func(t *testing.T, d directory) {
			d.proposes(t, func(p *ledger.Proposal) { p.PatchSealedSHA256 = canon.Sum([]byte("sealed")) })
			d.put(ledger.SealedFile(patchID), "other")
		}},
		{"sealed patch missing", "L5", func(t *testing.T, d directory) {
			d.proposes(t, func(p *ledger.Proposal) { p.PatchSealedSHA256 = canon.Sum([]byte("sealed")) })
		}},
		{"sealed patch that nothing records", "L10", func(_ *testing.T, d directory) { d.put(ledger.SealedFile(patchID), "sealed") }},
		{"patch missing", "I11", func(_ *testing.T, d directory) { delete(d.files, ledger.PatchFile(patchID)) }},

		{"result missing", "L6", func(_ *testing.T, d directory) { delete(d.files, ledger.ResultFile) }},
		{"result is another", "L6", func(_ *testing.T, d directory) {
			d.replace(ledger.ResultFile, `"bytes_written":1`, `"bytes_written":2`)
		}},
		{"result says otherwise than the event", "L6", func(t *testing.T, d directory) {
			d.events(func(e events) events {
				i := at(e, ledger.TypeApplyComplete, 1)
				e[i].Payload = []byte(strings.Replace(string(e[i].Payload), `"SUCCESS"`, `"PARTIAL"`, 1))
				return e
			})
		}},
		{"result fails its verifier", "L6", func(t *testing.T, d directory) { d.invalidResult(t) }},
		{"result without an apply", "L6", func(_ *testing.T, d directory) {
			d.events(func(e events) events { return e[:at(e, ledger.TypeApplyStart, 1)] })
			for name := range d.files {
				if strings.HasPrefix(name, "artifacts/") && strings.Contains(d.text(name), "apply_result") {
					delete(d.files, name)
				}
			}
		}},
		{"artifact of the result is gone", "I10 L6", func(_ *testing.T, d directory) {
			for name := range d.files {
				if strings.HasPrefix(name, "artifacts/") && strings.Contains(d.text(name), "apply_result") {
					delete(d.files, name)
				}
			}
		}},

		{"event with white space", "L2 L7 L9", func(_ *testing.T, d directory) { d.replace(ledger.EventsFile, `"seq":2,`, `"seq": 2,`) }},
		{"last event with white space", "L7 L9", func(_ *testing.T, d directory) {
			d.replace(ledger.EventsFile, `"type":"tx/close"}`, `"type":"tx/close" }`)
		}},
		{"last line without its LF", "L7 L9", func(_ *testing.T, d directory) {
			d.put(ledger.EventsFile, strings.TrimSuffix(d.text(ledger.EventsFile), "\n"))
		}},
		{"blank line", "L7 L9", func(_ *testing.T, d directory) { d.put(ledger.EventsFile, d.text(ledger.EventsFile)+"\n") }},
		{"result with white space", "L7", func(_ *testing.T, d directory) { d.replace(ledger.ResultFile, `"dry_run":`, `"dry_run": `) }},
		{"result that is no JSON", "L7", func(_ *testing.T, d directory) { d.put(ledger.ResultFile, "{") }},
		{"artifact with white space", "L7", func(t *testing.T, d directory) {
			data := "{ \"n\":1}\n"
			delete(d.files, proposalArtifact(t))
			d.put(ledger.ArtifactFile(canon.Hex([]byte(data))), data)
			d.events(substitute(t, &ledger.ArtifactStored{
				TransactionID: txID,
				ArtifactID:    canon.Hex([]byte(data)), StoredSHA256: canon.Sum([]byte(data)),
				Path: ledger.ArtifactFile(canon.Hex([]byte(data))), ContentType: "application/json",
			}))
		}},

		{"state is another", "L9", func(_ *testing.T, d directory) { d.replace(ledger.TransactionFile, `"completed"`, `"applied"`) }},
		{"state with white space", "L9", func(_ *testing.T, d directory) { d.replace(ledger.TransactionFile, `"closed":`, `"closed": `) }},
		{"state with a key more", "L9", func(_ *testing.T, d directory) {
			d.replace(ledger.TransactionFile, `{"approval_policy"`, `{"a":1,"approval_policy"`)
		}},
		{"forbidden transition", "L9", func(_ *testing.T, d directory) {
			d.links(func(e events) events {
				i, j := at(e, ledger.TypeStatus, 3), at(e, ledger.TypeStatus, 4)
				for _, k := range []int{i, j} {
					e[k].Payload = []byte(strings.Replace(string(e[k].Payload), "awaiting_approval", "interrupted", 1))
				}
				return e
			}, true)
		}},

		{"file too many", "L10", func(_ *testing.T, d directory) { d.put("notes.txt", "") }},
		{"artifact too many", "L10", func(_ *testing.T, d directory) { d.put("artifacts/x.json", "{}\n") }},
		{"patch too many", "L10", func(_ *testing.T, d directory) { d.put("patches/x.diff", "") }},
		{"directory too many", "L10", func(_ *testing.T, d directory) { d.files["more"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755} }},
		{"file below a directory of ours", "L10", func(_ *testing.T, d directory) { d.put("patches/more/x.diff", "") }},
		{"result is a link", "L10 L6", func(_ *testing.T, d directory) {
			d.put("patches/x.diff", d.text(ledger.ResultFile))
			d.files[ledger.ResultFile] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("patches/x.diff")}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDirectory(t)
			c.edit(t, d)
			if found := checked(t, d.files); rules(found) != c.want {
				t.Errorf("%v, want %q", found, c.want)
			}
		})
	}
}

func proposalArtifact(t *testing.T) string {
	return ledger.ArtifactFile(canon.Hex([]byte(line(t, map[string]any{"n": 1}))))
}

// invalidResult makes event, artifact and apply_result.json agree on a result
// that counts wrong.
func (d directory) invalidResult(t *testing.T) {
	bad := applied()
	bad.Summary = ledger.ApplySummary{}
	data, err := canon.Line(bad)
	fatal(t, err)
	d.put(ledger.ResultFile, string(data))
	artifact := line(t, map[string]any{"apply_result": bad})
	name := ledger.ArtifactFile(canon.Hex([]byte(artifact)))
	d.put(name, artifact)
	d.events(func(e []ledger.Event) []ledger.Event {
		i := at(e, ledger.TypeArtifact, 2)
		old := ledger.ArtifactFile(canon.Hex([]byte(line(t, map[string]any{"apply_result": applied()}))))
		delete(d.files, old)
		e[i] = event(t, &ledger.ArtifactStored{TransactionID: txID, ArtifactID: canon.Hex([]byte(artifact)), StoredSHA256: canon.Sum([]byte(artifact)), Path: name})
		e[i+1].Payload = []byte(strings.Replace(string(e[i+1].Payload), old, name, 1))
		return e
	})
}

// TestT41OpenApply: in an open transaction of ours an apply without its end is
// going on, or to be resumed; I8 is strict elsewhere.
func TestT41OpenApply(t *testing.T) {
	log := &ledger.Log{}
	for _, p := range []ledger.Payload{
		meta(), status(ledger.Created, ledger.InProgress),
		&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1"}, item(change()), request("req_1"),
		decision("req_1", ledger.Approve), start(1),
	} {
		fatal(t, log.Append(moment, p))
	}
	d := directory{t, fstest.MapFS{}}
	d.put(ledger.EventsFile, string(log.Bytes()))
	d.put(ledger.TransactionFile, line(t, log.Transaction()))
	d.put(ledger.PatchFile(patchID), string(diff))
	if found := checked(t, d.files); len(found) > 0 {
		t.Errorf("open: %v", found)
	}
	d.foreign(nil)
	if got := rules(checked(t, d.files)); got != "I8" {
		t.Errorf("foreign: %s, want I8", got)
	}
}

// TestT61UnreadableDirectory: what cannot be listed may hold anything.
func TestT61UnreadableDirectory(t *testing.T) {
	d := newDirectory(t)
	if got := rules(checkOwn(failing{d.files, "patches"}, "")); got != "I11 L10" {
		t.Errorf("%s, want L10", got)
	}
}

// FuzzCheck: whatever a directory holds is a finding, not a crash.
func FuzzCheck(f *testing.F) {
	log, err := ledger.ReadLog(wholeLog(f))
	fatal(f, err)
	f.Add(log.Bytes(), []byte(`{"transaction_id":"`+txID+`"}`), []byte("{}\n"))
	f.Add([]byte(`{"type":"turn/item","payload":{"turn_id":1,"item":{"type":"fileChange","metadata":{"patch_id":[]}}},"seq":"1"}`), []byte("[]"), []byte(""))
	f.Fuzz(func(t *testing.T, events, state, extra []byte) {
		dir := fstest.MapFS{
			ledger.EventsFile: {Data: events}, ledger.TransactionFile: {Data: state},
			ledger.ResultFile: {Data: extra}, ledger.PatchFile(patchID): {Data: extra},
		}
		checked(t, dir)
	})
}

// TestRisks: a list of risks is of the patch and its files, and there is one.
func TestRisks(t *testing.T) {
	list := func(patchID, risks string) string {
		return `{"more":{},"patch_id":"` + patchID + `","risks":[` + risks + `],"schema":"countersign/risks/1"}` + "\n"
	}
	good := list(patchID, `{"kind":"executable","path":"a"}`)
	for name, c := range map[string]struct {
		want string
		docs []string
	}{
		"one":               {"", []string{good}},
		"nothing in it":     {"", []string{list(patchID, "")}},
		"two":               {"L20", []string{good, list(patchID, "")}},
		"another patch":     {"L20", []string{list(strings.Repeat("0", 64), "")}},
		"another file":      {"L20", []string{list(patchID, `{"kind":"executable","path":"b"}`)}},
		"from another file": {"L20", []string{list(patchID, `{"from":"b","kind":"rename","path":"a"}`)}},
		"more than we know": {"L20", []string{list(patchID, `{"also":1,"kind":"executable","path":"a"}`)}},
		"a later schema":    {"NEWER", []string{strings.Replace(good, "risks/1", "risks/2", 1)}},
		"another schema":    {"L20", []string{strings.Replace(good, "risks/1", "risks/0", 1)}},
		"not canonical":     {"L20 L7", []string{strings.Replace(good, `"schema"`, ` "schema"`, 1)}},
		"no list":           {"L20", []string{"[]\n"}},
	} {
		d := newDirectory(t)
		d.events(func(e []ledger.Event) []ledger.Event {
			for _, doc := range c.docs {
				sum := canon.Hex([]byte(doc))
				d.put(ledger.ArtifactFile(sum), doc)
				e = slices.Insert(e, at(e, ledger.TypeArtifact, 1), event(t, &ledger.ArtifactStored{
					TransactionID: txID, ArtifactID: sum, Kind: ledger.KindRisks, Path: ledger.ArtifactFile(sum),
					ContentType: "application/json", StoredSHA256: "sha256:" + sum,
				}))
			}
			return e
		})
		if got := rules(checked(t, d.files)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestModes: a file that Git has as executable is none of a record; on a disk, whose modes are its own, nobody asks.
func TestModes(t *testing.T) {
	d := newDirectory(t)
	d.files[ledger.EventsFile].Mode = 0o755
	if got := rules(checkOwn(d.files, txID)); got != "L10" {
		t.Errorf("%q", got)
	}
	if got := rules(checkOwn(d.files, "")); got != "" {
		t.Errorf("%q", got)
	}
}

// checkOwn is what ReadOwn finds, or without an id ReadExported.
func checkOwn(dir fs.FS, id string) []canon.Violation {
	_, found := ledger.ReadOwn(dir, id)
	if id == "" {
		_, found = ledger.ReadExported(dir)
	}
	return found
}
