package page

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestObservations: what says what became of an exception, and does not hold, is a finding like any other, and a note where only
// a newer program can judge the ledger.
func TestObservations(t *testing.T) {
	const id = "tx_01KE5Q86Z943M4K0W7WAJYDRW8"
	ada := ledger.Actor{Kind: "user", ID: "local:ada@example.org", Login: "Ada"}
	record := func(as observation.Outcome) *approval.Record {
		raw, err := canon.Line(observation.Disposition{
			Head: observation.Head{Schema: "countersign/disposition/1", TransactionID: id, Author: ada}, About: strings.Repeat("a", 40), As: as, Reason: "it is right",
		})
		if err != nil {
			t.Fatal(err)
		}
		name := ledger.ArtifactFile(canon.Hex(raw))
		log := &ledger.Log{}
		for _, e := range []ledger.Payload{&ledger.Meta{TransactionID: id, Proposer: ada}, &ledger.ArtifactStored{TransactionID: id, Kind: observation.KindDisposition, Path: name}} {
			if err := log.Append(time.Unix(1767571200, 0), e); err != nil {
				t.Fatal(err)
			}
		}
		return new(approval.Policies).Record(fstest.MapFS{name: &fstest.MapFile{Data: raw}}, log)
	}
	for as, bad := range map[observation.Outcome]int{observation.Accepted: 0, "ignored": 1} {
		var d observations
		told := -1
		d.each(func(_ string, _ history.ID, _ *approval.Record, found []canon.Violation) { told = len(found) })(id, history.ID{}, record(as), nil)
		r := audit.Result{OK: true, Findings: []history.Finding{}}
		d.addTo(&r)
		if told != bad || r.OK != (bad == 0) || r.Count != bad || len(r.Findings) != bad || bad > 0 && r.Findings[0].RuleID != "L26" {
			t.Errorf("%s: %d told, %+v", as, told, r)
		}
		newer := audit.Result{Newer: "9.9"}
		d.addTo(&newer)
		if newer.Count != 0 || len(newer.Notes) != bad {
			t.Errorf("%s: %+v", as, newer)
		}
	}
	var d observations
	d.each(nil)(id, history.ID{}, nil, nil)
	d.each(nil)(id, history.ID{}, &approval.Record{}, nil)
	if len(d.found) > 0 {
		t.Errorf("%+v", d.found)
	}
}
