package audit

import (
	"bytes"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// stage checks one version by the events that it brought, [from, to) of the log:
// the commit says what they are, and adds exactly the files that they account
// for. tx is what all events so far fold to.
func (l *life) stage(v *version, from, to int, tx ledger.Transaction) {
	l.words(v, from, to, tx)
	// A stage has one time, which is its events' and its commit's.
	at, err := time.Parse(ledger.TimeFormat, tx.UpdatedAt)
	if err != nil || max(at.Unix(), 0) != v.when {
		l.add("L15", v.commit, "", "its time is not that of its events, %s", tx.UpdatedAt)
	}
	if slices.ContainsFunc(l.log.Events()[from:to], func(e ledger.Event) bool { return e.Timestamp != tx.UpdatedAt }) {
		l.fail("L8", v, ledger.EventsFile, "the commit brings events of more than one time, and so of more than one stage")
	}
	need := l.accounted(from, to)
	if l.view != nil && !l.undecidable {
		denials := map[string][]byte{}
		for _, ch := range v.index {
			if ledger.IsDenial(ch.Path) {
				denials[ch.Path] = l.content[ch.New.ID]
			}
		}
		l.view.Version(Version{l.id, v.commit, v.age, directory{l.files, l.content}, l.log.Payloads()[:to], tx, from == 0, denials, v.pages})
	}
	for _, ch := range v.changes {
		if ch.Old != (history.Entry{}) || ch.Path == ledger.EventsFile || ch.Path == ledger.TransactionFile {
			continue
		}
		if _, ok := need[ch.Path]; !ok {
			l.fail("L10", v, ch.Path, "is not accounted for by the events of its commit")
		}
		delete(need, ch.Path)
		l.named[ch.Path] = true
	}
	l.index(v, need)
	l.denies(v, from, to, tx.PatchID())
	for name := range need {
		if !l.named[name] {
			l.fail("L10", v, name, "is missing from the commit that records it")
		}
	}
	if !v.schema.IsZero() {
		raw := l.Read(v.commit, ledger.SchemaFile, history.Entry{Mode: history.ModeFile, ID: v.schema})
		createdAt, _, err := ledger.SchemaOf(raw)
		if raw != nil && !errors.As(err, new(*canon.NewerError)) && (err != nil || createdAt != tx.UpdatedAt || !canon.IsLine(raw)) {
			l.add("L16", v.commit, ledger.SchemaFile, "is not what countersign writes there in a first commit of this time")
		}
	}
}

// index checks what the commit adds to denied/ and proposed/.
func (l *life) index(v *version, need map[string][]byte) {
	for _, ch := range v.index {
		want, ok := need[ch.Path]
		raw, read := l.content[ch.New.ID]
		switch {
		case !ok:
			l.add(indexRule(ch.Path), v.commit, ch.Path, "no event of its commit accounts for it")
		case read && !bytes.Equal(raw, want):
			l.add(indexRule(ch.Path), v.commit, ch.Path, "is not what the events of its commit say")
		}
		delete(need, ch.Path)
	}
	for name := range need {
		switch {
		case strings.HasPrefix(name, "proposed/"):
			l.add("L12", v.commit, name, "is missing: the commit records the proposal")
		case ledger.IsDenial(name) && !l.deniedBefore(path.Dir(name), v.age):
			l.add("L11", v.commit, name, "is missing: the commit records the denial")
		case !ledger.IsDenial(name):
			continue
		}
		delete(need, name)
	}
}

// denies is L11: what a commit says is denied, it or an older one has a denial of, in this or another transaction.
func (l *life) denies(v *version, from, to int, patchID string) {
	for _, p := range l.log.Payloads()[from:to] {
		if s, ok := p.(*ledger.StatusChange); ok && s.To == ledger.Denied && !(canon.IsHex64(patchID) && l.deniedBefore(ledger.DeniedDir(patchID), v.age-1)) {
			l.fail("L11", v, ledger.EventsFile, "says that it is denied, and no denial of its patch is in denied/")
		}
	}
}

// deniedBefore reports whether an older commit has a denial of the same patch,
// which is then the one that the index keeps.
func (l *life) deniedBefore(dir string, age int) bool {
	if l.denied[dir] > age+1 {
		return true
	}
	former, err := l.Former(dir)
	return err == nil && len(former) > 0
}

// accounted are the files that events name and that were not there before; of
// those in an index, with their content.
func (l *life) accounted(from, to int) map[string][]byte {
	need := map[string][]byte{}
	for _, p := range l.log.Payloads()[from:to] {
		switch p := p.(type) {
		case *ledger.ArtifactStored:
			need[p.Path] = nil
		case *ledger.TurnItem:
			m := p.Item.Metadata
			if m == nil || !canon.IsHex64(m.PatchID) || l.named[ledger.PatchFile(m.PatchID)] {
				continue
			}
			need[ledger.PatchFile(m.PatchID)] = nil
			if m.PatchSealedSHA256 != "" {
				need[ledger.SealedFile(m.PatchID)] = nil
			}
			line, _ := canon.Line(ledger.Listed{BaseCommit: l.log.Meta().BaseCommit, TransactionID: l.id})
			need[path.Join(ledger.ProposedDir(m.PatchID), l.id+".json")] = line
			if m.PullRequest > 0 {
				need[path.Join(ledger.PullDir(m.PullRequest), l.id+".json")] = line
			}
		case *ledger.ApplyComplete:
			if p.Success {
				need[ledger.ResultFile] = nil
			}
		case *ledger.ApprovalDecision:
			patchID := ledger.FingerprintPatch(p.Fingerprint)
			if p.Decision != ledger.Deny || !canon.IsHex64(patchID) {
				continue
			}
			kind := l.log.Request(p.ApprovalRequestID).Kind
			line, _ := canon.Line(ledger.Denial{
				Fingerprint: p.Fingerprint, Kind: kind, TransactionID: l.id,
				Author: p.Source.Author, Reason: p.Reason, DeniedAt: p.Source.CreatedAt,
			})
			need[path.Join(ledger.DeniedDir(patchID), kind+".json")] = line
		}
	}
	return need
}

// words: the commit says what its events are.
func (l *life) words(v *version, from, to int, tx ledger.Transaction) {
	if !v.fit {
		return
	}
	if v.words.id != l.id {
		l.add("L15", v.commit, "", "its trailer names %s, but it adds to %s", ledger.OneLine(v.words.id, 60), l.id)
	}
	if v.words.patch != tx.PatchID() {
		l.add("L15", v.commit, "", "its trailer names the patch %s, but its events name %s", ledger.OneLine(v.words.patch, 80), tx.PatchID())
	}
	stages, outcomes := l.happened(from, to, tx)
	if len(stages) != 1 || v.words.stage != stages[0] {
		l.add("L15", v.commit, "", "its trailer names the stage %s, but its events are those of %s", ledger.OneLine(v.words.stage, 40), strings.Join(stages, " and "))
	} else if !strings.Contains(" "+outcomes+" ", " "+v.words.outcome+" ") || v.words.outcome == "" {
		l.add("L15", v.commit, "", "its trailer names the outcome %s, but its events have %s", ledger.OneLine(v.words.outcome, 40), outcomes)
	}
}

// happened tells which stages events are of, and what the outcomes of the first may
// be. A commit has the events of one.
func (l *life) happened(from, to int, tx ledger.Transaction) (stages []string, outcomes string) {
	made := map[string]string{} // stage and what of it → its outcomes
	for _, p := range l.log.Payloads()[from:to] {
		switch p := p.(type) {
		case *ledger.Meta:
			made["review"] = string(tx.Status)
		case *ledger.ArtifactStored:
			if p.Kind == ledger.KindAgain {
				made["review"] = ledger.OutcomeAgain
			}
		case *ledger.ApplyStart:
			made["apply begins"] = "started"
		case *ledger.ApplyComplete:
			made["apply"] = p.Outcome
		case *ledger.ValidateComplete:
			made["validate"] = string(tx.Status)
		case *ledger.ApprovalDecision:
			if p.Source.Evidence == "" { // those of a pull request are recorded by the gate
				made[string(p.Decision)] = verdicts(tx.Status)
			}
		case *ledger.StatusChange:
			switch p.To {
			case ledger.Superseded:
				made["apply"] = string(p.To)
			case ledger.Interrupted:
				made["close"] = string(p.To)
			case ledger.Failed:
				if made["apply"] == "" { // refused by its checks, before it began
					made["apply"] = string(p.To)
				}
			}
		}
	}
	if len(made) == 0 {
		return []string{"gate"}, verdicts(tx.Status)
	}
	stages = slices.Sorted(maps.Keys(made))
	outcomes = made[stages[0]]
	if len(stages) == 1 {
		stages[0], _, _ = strings.Cut(stages[0], " ")
	}
	return stages, outcomes
}

// verdicts are those that leave a transaction in a status.
func verdicts(s ledger.Status) string {
	switch s {
	case ledger.Awaiting:
		return "pending"
	case ledger.Denied:
		return "denied"
	case ledger.Proposed:
		return "approved denied" // denied while an apply was under way
	}
	return "approved pending denied"
}
