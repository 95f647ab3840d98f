package ledger_test

import (
	"bytes"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

const secretWord = "hunter2"

// scrubbed is an event's payload as a Stage stores it.
func scrubbed(scrub writing.Scrubber, p ledger.Payload) (ledger.Payload, error) {
	_, clean, err := writing.Scrub(scrub, p)
	if err != nil {
		return nil, err
	}
	return ledger.Event{Type: p.Type(), Payload: clean}.Decode()
}

// A wordScrubber knows one secret.
type wordScrubber struct{}

func (wordScrubber) Text(s string) string {
	return strings.ReplaceAll(s, secretWord, "<REDACTED:word>")
}

func (w wordScrubber) Diff(diff []byte) []byte { return []byte(w.Text(string(diff))) }

func (w wordScrubber) JSON(doc []byte, typed func(key, value string) bool) ([]byte, error) {
	return scrubJSON(doc, w.Text, typed)
}

func scrubJSON(doc []byte, text func(string) string, typed func(key, value string) bool) ([]byte, error) {
	v, err := canon.Parse(doc)
	if err != nil {
		return nil, err
	}
	return canon.Marshal(scrubValue("", v, text, typed))
}

func scrubValue(key string, v any, text func(string) string, typed func(key, value string) bool) any {
	switch v := v.(type) {
	case string:
		if !typed(key, v) {
			return text(v)
		}
	case []any:
		for i := range v {
			v[i] = scrubValue(key, v[i], text, typed)
		}
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[text(k)] = scrubValue(k, e, text, typed)
		}
		return out
	}
	return v
}

// fill puts a text into every string, slice and map below v.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(elem, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(text), elem)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	}
}

// TestT47Events: no string of any event gets into the ledger unscrubbed,
// whatever field it stands in.
func TestT47Events(t *testing.T) {
	for _, p := range []ledger.Payload{
		&ledger.Meta{}, &ledger.StatusChange{}, &ledger.TurnStart{}, &ledger.TurnItem{}, &ledger.CommandItem{}, &ledger.ArtifactStored{},
		&ledger.ApprovalRequest{}, &ledger.ApprovalDecision{}, &ledger.ApplyStart{}, &ledger.ApplyComplete{},
		&ledger.ValidateStart{}, &ledger.ValidateComplete{}, &ledger.Close{},
	} {
		fill(reflect.ValueOf(p).Elem(), "a "+secretWord+" b")
		if c, ok := p.(*ledger.CommandItem); ok {
			c.Item.Type = ledger.CommandExecution
		}
		clean, err := scrubbed(wordScrubber{}, p)
		if err != nil {
			t.Errorf("%s: %v", p.Type(), err)
			continue
		}
		raw, err := canon.Marshal(clean)
		if err != nil || bytes.Contains(raw, []byte(secretWord)) || !bytes.Contains(raw, []byte("<REDACTED:word>")) {
			t.Errorf("%s: %s %v", p.Type(), raw, err)
		}
	}
}

// TestT47Stage: all that a stage writes is scrubbed: events, artifacts, patch,
// result, index and message.
func TestT47Stage(t *testing.T) {
	const planted = "the word is " + secretWord
	s := writing.NewStage(&ledger.Log{}, moment, wordScrubber{})
	m := meta()
	m.Summary, m.Proposer.Login = planted, planted
	s.Event(m)
	s.Status(ledger.InProgress, planted)
	if got := s.Patch(patchID, []byte(planted)); bytes.Contains(got, []byte(secretWord)) {
		t.Errorf("%s", got)
	}
	s.Artifact("proposal", map[string]any{planted: []string{planted}})
	s.Denied(ledger.Denial{Fingerprint: "secret:patchset:" + patchID, Kind: "secrets_override", Reason: planted})
	res := applied()
	res.Operations[0].Error = planted
	s.Result(res)
	e, err := s.Entry(writing.Title{Stage: "review", Outcome: "proposed", Subject: planted}, true)
	fatal(t, err)
	if len(e.Files) != 7 || e.Files[ledger.DeniedDir(patchID)+"/secrets_override.json"] == nil {
		t.Errorf("%d files", len(e.Files))
	}
	for name, data := range e.Files {
		if strings.Contains(name, secretWord) || bytes.Contains(data, []byte(secretWord)) {
			t.Errorf("%s: %s", name, data)
		}
	}
	if strings.Contains(e.Message, secretWord) || !strings.Contains(e.Message, "<REDACTED:word>") {
		t.Error(e.Message)
	}
	stored := ledger.Of[*ledger.ArtifactStored](s.Log)
	if len(stored) != 1 || !stored[0].Redacted {
		t.Errorf("artifact/stored does not say that it is redacted: %v", stored)
	}
}

var longHex = regexp.MustCompile("[0-9a-f]{40,}")

// A hexScrubber takes every long hexadecimal word for a secret.
type hexScrubber struct{ wordScrubber }

func (h hexScrubber) Text(s string) string {
	return longHex.ReplaceAllString(s, "<REDACTED:hex>")
}

func (h hexScrubber) JSON(doc []byte, typed func(key, value string) bool) ([]byte, error) {
	return scrubJSON(doc, h.Text, typed)
}

// TestT48TypedFields: ids and hashes stay what they are even under a scrubber
// that takes them for secrets; the same digits in a text do not.
func TestT48TypedFields(t *testing.T) {
	commit := strings.Repeat("ab", 20)
	log := &ledger.Log{}
	s := writing.NewStage(log, moment, hexScrubber{})
	m := meta()
	m.BaseCommit, m.PolicyCommit, m.Summary = commit, commit, "see "+patchID
	s.Event(m)
	s.Event(&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1"})
	s.Event(item(ledger.Item{ID: "item_1", Type: ledger.FileChange, PatchID: patchID, Metadata: &ledger.Proposal{
		PatchID: patchID, PatchFingerprint: "patchset:" + patchID, BaseCommit: commit, PolicySHA256: canon.Sum(nil),
	}}))
	s.Event(request("req_1"))
	s.Event(decision("req_1", ledger.Approve))
	s.Event(with(start(1), func(a *ledger.ApplyStart) { a.Policy = ledger.PolicyRef{Commit: commit, SHA256: canon.Sum(nil)} }))
	s.Artifact("apply", map[string]any{"apply_result": applied()})
	if _, err := s.Entry(writing.Title{Stage: "review"}, false); err != nil {
		t.Fatal(err)
	}
	text := string(log.Bytes())
	if n := strings.Count(text, "<REDACTED:hex>"); n != 1 || !strings.Contains(text, "see <REDACTED:hex>") {
		t.Errorf("%d redactions in %s", n, text)
	}
}

// TestScrubbedStable: what a log holds is what the next reader decodes.
func TestScrubbedStable(t *testing.T) {
	s := writing.NewStage(&ledger.Log{}, moment, wordScrubber{})
	m := meta()
	m.Summary = secretWord
	s.Event(m)
	if _, err := ledger.ReadLog(s.Log.Bytes()); err != nil {
		t.Error(err)
	}
	if got := s.Log.Transaction().Notes; got != "<REDACTED:word>" {
		t.Error(got)
	}
}

// TestT47WordOfARecord: an event that says nothing without the secret is an error, and nothing of the stage is recorded.
func TestT47WordOfARecord(t *testing.T) {
	s := writing.NewStage(&ledger.Log{}, moment, wordScrubber{})
	s.Event(meta())
	s.Status(secretWord, "x")
	s.Patch(patchID, []byte("x"))
	_, err := s.Entry(writing.Title{Stage: "review"}, true)
	if !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), string(ledger.TypeStatus)) || strings.Contains(err.Error(), secretWord) {
		t.Errorf("%v", err)
	}
	s = writing.NewStage(&ledger.Log{}, moment, wordScrubber{}) // and one that was wrong before is no such one
	s.Event(meta())
	s.Status("x", "y")
	if _, err := s.Entry(writing.Title{Stage: "review"}, true); err == nil || errors.Is(err, fault.Refused) {
		t.Errorf("%v", err)
	}
}
