package cheat

import (
	"bytes"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// events edits the events of a stage's transaction, in that commit and all later ones.
// Their numbers and hashes are made good, or left as they are.
func events(s stage, change func([]ledger.Event) []ledger.Event, chain bool) edit {
	return edit{s.dir() + ledger.EventsFile, func(raw []byte, _ func(string) []byte) []byte {
		var all []ledger.Event
		for line := range bytes.Lines(raw) {
			var e ledger.Event
			if canon.Unmarshal(line, &e) != nil {
				return raw
			}
			all = append(all, e)
		}
		var out []byte
		var prev *string
		for i, e := range change(all) {
			if chain {
				e.Seq, e.Prev = i+1, prev
			}
			line, err := canon.Line(e)
			if err != nil {
				return raw
			}
			sum := canon.Sum(line)
			out, prev = append(out, line...), &sum
		}
		return out
	}}
}

// state makes transaction.json what the events beside it fold to, if they do.
func state(s stage) edit {
	return edit{s.dir() + ledger.TransactionFile, func(raw []byte, beside func(string) []byte) []byte {
		log, err := ledger.ReadLog(beside(ledger.EventsFile))
		if err != nil {
			return raw
		}
		line, err := canon.Line(log.Transaction())
		if err != nil {
			return raw
		}
		return line
	}}
}
