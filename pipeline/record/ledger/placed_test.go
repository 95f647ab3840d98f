package ledger_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestT53OneProposal: people decide on what is proposed first, of a kind that there is, and nothing later says otherwise.
func TestT53OneProposal(t *testing.T) {
	later := func(edit func(*ledger.Item)) func(directory) {
		return func(d directory) {
			it := change()
			it.Metadata.Applied = true
			edit(&it)
			d.events(func(e []ledger.Event) []ledger.Event {
				return slices.Insert(e, at(e, ledger.TypeValidateStart, 1), event(d.t, item(it)))
			})
		}
	}
	first := func(edit func(*ledger.Proposal)) func(directory) { return func(d directory) { d.proposes(d.t, edit) } }
	asks := func(edit func(*ledger.ApprovalRequest)) func(directory) {
		return func(d directory) {
			ask := request("req_2")
			edit(ask)
			d.events(func(e []ledger.Event) []ledger.Event {
				return slices.Insert(e, at(e, ledger.TypeApplyStart, 1), event(d.t, ask))
			})
		}
	}
	edits := func(p ledger.Payload, old, new string) func(directory) {
		return func(d directory) {
			d.events(func(e []ledger.Event) []ledger.Event {
				one := &e[at(e, p.Type(), 1)]
				one.Payload = bytes.Replace(one.Payload, []byte(old), []byte(new), 1)
				return e
			})
		}
	}
	for name, c := range map[string]struct {
		edit func(directory)
		want string
	}{
		"applied":                     {later(func(*ledger.Item) {}), ""},
		"other files later":           {later(func(it *ledger.Item) { it.Metadata.TargetFiles = []string{} }), "L6 L9"},
		"another kind later":          {later(func(it *ledger.Item) { it.Metadata.Kind = ledger.KindPatch }), "L9"},
		"another pull request":        {later(func(it *ledger.Item) { it.Metadata.PullRequest = 7 }), "L9"},
		"an item of another type":     {later(func(it *ledger.Item) { it.Type = "plan" }), "L9"},
		"another patch beside it":     {later(func(it *ledger.Item) { it.PatchID = canon.Hex(nil) }), "L9"},
		"no proposal beside it":       {later(func(it *ledger.Item) { it.Metadata = nil }), "L9"},
		"other names of its files":    {later(func(it *ledger.Item) { it.Changes[0].Path = "b" }), "L5"},
		"another change of a file":    {later(func(it *ledger.Item) { it.Changes[0].Kind = "update" }), "L5"},
		"no changes":                  {later(func(it *ledger.Item) { it.Changes = nil }), ""},
		"other names, no proposal":    {later(func(it *ledger.Item) { it.Type, it.Metadata, it.Changes[0].Path = "plan", nil, "b" }), "L5"},
		"another base":                {first(func(p *ledger.Proposal) { p.BaseCommit = "b" }), "L9"},
		"another fingerprint":         {first(func(p *ledger.Proposal) { p.PatchFingerprint = "patchset:x" }), "L9"},
		"asked twice":                 {asks(func(*ledger.ApprovalRequest) {}), ""},
		"asked by no kind":            {asks(func(r *ledger.ApprovalRequest) { r.Kind = "../x" }), "L9"},
		"asked by another kind":       {asks(func(r *ledger.ApprovalRequest) { r.Kind = "protected_path" }), "L9"},
		"asked of another patch":      {asks(func(r *ledger.ApprovalRequest) { r.Fingerprint = "patchset:" + canon.Hex(nil) }), "L9"},
		"asked before it proposes":    {func(d directory) { d.events(requestFirst) }, "L9"},
		"applies to other files":      {edits(start(1), `"files":["a"]`, `"files":["b"]`), "L3"},
		"applies to another target":   {edits(&ledger.ApplyComplete{}, `"target":""`, `"target":"x"`), "L6"},
		"a success that is a failure": {edits(&ledger.ApplyComplete{}, `"SUCCESS"`, `"FAILED"`), "L6"},
		"neither yes nor no": {func(d directory) {
			d.events(func(e []ledger.Event) []ledger.Event {
				said := decision("req_2", "maybe")
				return slices.Insert(e, at(e, ledger.TypeValidateStart, 1), event(d.t, request("req_2")), event(d.t, said))
			})
		}, "L9"},
	} {
		d := newDirectory(t)
		c.edit(d)
		if got := rules(checkOwn(d.files, txID)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// requestFirst moves the request before what it asks about.
func requestFirst(e []ledger.Event) []ledger.Event {
	i := at(e, ledger.TypeRequest, 1)
	ask := e[i]
	return slices.Insert(slices.Delete(e, i, i+1), at(e, ledger.TypeTurnItem, 1), ask)
}
