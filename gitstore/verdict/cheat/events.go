package cheat

import (
	"bytes"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// events edits the events of a stage's transaction, in that commit and all later ones.
func events(s stage, change func([]ledger.Event) []ledger.Event) edit {
	return edit{s.dir() + ledger.EventsFile, func(raw []byte) []byte {
		var all []ledger.Event
		for line := range bytes.Lines(raw) {
			var e ledger.Event
			if canon.Unmarshal(line, &e) != nil {
				return raw
			}
			all = append(all, e)
		}
		var out []byte
		for _, e := range change(all) {
			line, err := canon.Line(e)
			if err != nil {
				return raw
			}
			out = append(out, line...)
		}
		return out
	}}
}
