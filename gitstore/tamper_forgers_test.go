package gitstore

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// forgers make every hash good, every commit and every state: what they leave is
// a ledger that agrees with itself. Only who remembers, or has keys, can tell.
var forgers = []kind{
	{"a further proposal by somebody else, hash, chain and state made good", 20, again(`"id":"local:agent@example.org"`, `"id":"local:ada@example.org"`)},
	{"a whole transaction left out", 40, func(t *tamper) bool {
		i := t.at()
		id := t.idOf(i)
		for _, n := range slices.Backward(t.of[id]) {
			if n == 0 {
				return false // it brings README.md
			}
			t.changed(n)
			t.steps = slices.Delete(t.steps, n, n+1)
		}
		t.what = id
		return true
	}},
	{"another approver, everywhere", 40, func(t *tamper) bool {
		i := t.at()
		id := t.idOf(i)
		if !strings.Contains(string(t.steps[i].message), "approved by Ada") {
			return false
		}
		return t.relog(i, true, func(events []ledger.Event) []ledger.Event {
			for n, e := range events {
				events[n].Payload = bytes.ReplaceAll(bytes.ReplaceAll(e.Payload, []byte("Ada"), []byte("Eve")), []byte("ada@"), []byte("eve@"))
			}
			return events
		}) && t.subject(t.later(id, i), "Ada", "Eve")
	}},
	{"another reason for an approval", 20, decided("approve: ", "because", "I was made to")},
	{"the last commit of a transaction left out", 40, func(t *tamper) bool {
		i := t.at()
		later := t.of[t.idOf(i)]
		last := later[len(later)-1]
		if _, denies := t.name(last, denials); denies || last == 0 {
			return false
		}
		t.changed(last)
		t.steps = slices.Delete(t.steps, last, last+1)
		return true
	}},
	{"two commits of different transactions exchanged", 40, func(t *tamper) bool {
		i := t.at()
		if i+1 == len(t.steps) || t.idOf(i) == t.idOf(i+1) {
			return false
		}
		t.changed(i)
		t.steps[i], t.steps[i+1] = t.steps[i+1], t.steps[i]
		return true
	}},
	{"the words of a commit's title", 20, func(t *tamper) bool {
		i := t.at()
		subject, rest, _ := strings.Cut(t.steps[i].message, "\n")
		t.changed(i).message = subject + " (checked)\n" + rest
		return len([]rune(subject)) < 100
	}},
	{"the time of a stage, everywhere", 30, func(t *tamper) bool {
		i := t.at()
		old := ledger.FormatTime(t.steps[i].when)
		when := t.steps[i].when.Add(-time.Minute)
		st := t.changed(i)
		st.when = when
		if strings.HasPrefix(st.message, "deny: ") || strings.HasPrefix(st.message, "review: ") {
			return false // those are in other files as well
		}
		return t.relog(i, true, func(events []ledger.Event) []ledger.Event {
			for n, e := range events {
				if e.Timestamp == old {
					events[n].Timestamp = ledger.FormatTime(when)
				}
			}
			return events
		})
	}},
	{"an event that nothing else names left out, chain made good", 20, func(t *tamper) bool {
		i := t.at()
		if !strings.HasPrefix(t.steps[i].message, "review: ") {
			return false
		}
		return t.relog(i, true, func(events []ledger.Event) []ledger.Event {
			return slices.DeleteFunc(events, func(e ledger.Event) bool { return bytes.Contains(e.Payload, []byte(`"type":"turnDiff"`)) })
		})
	}},
	{"the tip set back to an earlier commit", 30, func(t *tamper) bool {
		t.cutAt = t.r.IntN(len(t.steps) - 1)
		t.what = fmt.Sprint(t.cutAt)
		return t.cutAt > 0
	}},
	{"the whole ledger made anew", 3, func(t *tamper) bool {
		entries, err := storetest.LivesOf(byte(8+t.r.IntN(200)), storetest.Mixed(8+t.r.IntN(40))...)
		if err != nil {
			panic(err)
		}
		t.from, t.steps = 0, nil
		for _, e := range entries {
			t.steps = append(t.steps, stepOf(e))
		}
		return true
	}},
	{"an approval added at the tip, as a stage of its own", 20, func(t *tamper) bool {
		id := t.ids[t.r.IntN(len(t.ids))]
		dir := ledger.Dir(id) + "/"
		log, err := ledger.ReadLog(t.before(len(t.steps), dir+ledger.EventsFile))
		if err != nil {
			panic(err)
		}
		open := writing.OpenRequests(log)
		if len(open) == 0 || log.Transaction().Status != ledger.Awaiting {
			return false
		}
		s := writing.NewStage(log, t.steps[len(t.steps)-1].when.Add(time.Minute), storetest.Plain{})
		s.Event(&ledger.ApprovalDecision{
			TransactionID: id, ApprovalRequestID: open[0].ApprovalRequestID, Decision: ledger.Approve, Fingerprint: open[0].Fingerprint,
			Source: ledger.Source{Kind: "local", Author: ledger.Actor{Kind: "user", ID: "local:grace", Login: "Grace"}, BodySHA256: canon.Sum(nil)},
		})
		s.Status(ledger.Proposed, "approved")
		e, err := s.Entry(writing.Title{Stage: "approve", Outcome: "approved", Subject: "approved by Grace"}, false)
		if err != nil {
			panic(err)
		}
		t.from, t.what = len(t.steps), id
		t.steps = append(t.steps, stepOf(*e))
		return true
	}},
}

// subject edits the titles of commits.
func (t *tamper) subject(steps []int, old, new string) bool {
	for _, n := range steps {
		st := t.changed(n)
		st.message = strings.Replace(st.message, old, new, 1)
	}
	return true
}

// stepOf is an entry as a tamperer sees it, without pages.
func stepOf(e writing.Entry) step {
	st := step{files: map[string]file{}, message: e.Message, when: e.When}
	for name, data := range e.Files {
		st.files[name] = file{data: data}
	}
	return st
}
