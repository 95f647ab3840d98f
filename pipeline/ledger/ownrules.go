package ledger

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// ownRules checks L1–L7, L9 and L10, which only our own directories promise.
func (c *checker) ownRules() {
	c.chain()
	c.canonicalLines()
	log, err := ReadLog(c.raw)
	if err != nil {
		c.Add("L9", EventsFile, "events do not fold to a state: %v", err)
	} else {
		c.folded(log)
		c.approvedBeforeApply(log)
		c.artifacts(log)
		c.patches(log)
		c.result(log)
	}
	c.shape(log)
}

func (c *checker) chain() {
	var prev any
	n := 0
	for line := range bytes.Lines(c.raw) {
		n++
		e, ok := c.eventAt(n)
		if !ok {
			continue
		}
		if seq, _ := e.fields["seq"].(float64); seq != float64(n) {
			c.Add("L1", at(e), "seq is %v, not %d", e.fields["seq"], n)
		}
		if got, has := e.fields["prev"]; !has || got != prev {
			c.Add("L2", at(e), "prev is not the hash of the line before")
		}
		prev = canon.Sum(line)
	}
}

func (c *checker) eventAt(line int) (looseEvent, bool) {
	for i := min(line, len(c.events)) - 1; i >= 0; i-- {
		if c.events[i].line <= line {
			return c.events[i], c.events[i].line == line
		}
	}
	return looseEvent{}, false
}

func (c *checker) canonicalLines() {
	n := 0
	for line := range bytes.Lines(c.raw) {
		n++
		if !isCanonicalLine(line) {
			c.Add("L7", fmt.Sprintf("%s:%d", EventsFile, n), "not canonical JSON and one LF")
		}
	}
}

func isCanonicalLine(line []byte) bool {
	doc, err := canon.Parse(line)
	if err != nil {
		return false
	}
	again, err := canon.Line(doc)
	return err == nil && bytes.Equal(again, line)
}

func (c *checker) folded(log *Log) {
	state, err := c.read(TransactionFile)
	want, encErr := canon.Line(log.Transaction())
	if err != nil || encErr != nil || !bytes.Equal(state, want) {
		c.Add("L9", TransactionFile, "is not what the events fold to")
	}
}

// approvedBeforeApply: when apply/start was recorded, every request had been
// answered with an approval, nobody had denied, and as many people as the
// recorded policy asks for had approved the patch itself.
func (c *checker) approvedBeforeApply(log *Log) {
	asked, denied := map[string]string{}, false
	approvers := map[string]map[string]bool{} // fingerprint → ids
	for i, p := range log.Payloads() {
		switch p := p.(type) {
		case *ApprovalRequest:
			asked[p.ApprovalRequestID] = p.Fingerprint
		case *ApprovalDecision:
			denied = denied || p.Decision != Approve
			if asked[p.ApprovalRequestID] == p.Fingerprint {
				if approvers[p.Fingerprint] == nil {
					approvers[p.Fingerprint] = map[string]bool{}
				}
				approvers[p.Fingerprint][p.Source.Author.ID] = true
				delete(asked, p.ApprovalRequestID)
			}
		case *ApplyStart:
			if denied || len(asked) > 0 || !enough(p.PatchIDs, approvers, log.Meta().ApprovalPolicy.Required) {
				c.Add("L3", fmt.Sprintf("%s:%d", EventsFile, i+1), "apply/start without every approval")
			}
		}
	}
}

func enough(patchIDs []string, approvers map[string]map[string]bool, required int) bool {
	for _, id := range patchIDs {
		if len(approvers["patchset:"+id]) < max(1, required) {
			return false
		}
	}
	return len(patchIDs) > 0
}

func (c *checker) artifacts(log *Log) {
	for _, a := range Of[*ArtifactStored](log) {
		raw, err := c.read(a.Path)
		if err != nil {
			continue // I10 says so
		}
		if canon.Sum(raw) != a.StoredSHA256 || canon.Hex(raw) != a.ArtifactID || a.Path != ArtifactFile(a.ArtifactID) {
			c.Add("L4", a.Path, "content does not hash to its artifact_id")
		}
		if a.ContentType == "application/json" && !isCanonicalLine(raw) {
			c.Add("L7", a.Path, "not canonical JSON and one LF")
		}
	}
}

func (c *checker) patches(log *Log) {
	for _, id := range patchIDs(log) {
		raw, err := c.read(PatchFile(id))
		if err == nil && canon.Hex(raw) != id {
			c.Add("L5", PatchFile(id), "content does not hash to its patch_id")
		}
	}
}

func patchIDs(log *Log) []string {
	var out []string
	for _, it := range Of[*TurnItem](log) {
		if it.Item.Metadata != nil && it.Item.Metadata.PatchID != "" {
			out = append(out, it.Item.Metadata.PatchID)
		}
	}
	return out
}

// result: apply_result.json is a valid ApplyResult, and it is the one that the
// successful apply's artifact holds.
func (c *checker) result(log *Log) {
	var done *ApplyComplete
	for _, p := range Of[*ApplyComplete](log) {
		if p.Success {
			done = p
		}
	}
	raw, err := c.read(ResultFile)
	if done == nil {
		if err == nil {
			c.Add("L6", ResultFile, "no successful apply is recorded")
		}
		return
	}
	if err != nil {
		c.Add("L6", ResultFile, "is missing")
		return
	}
	doc, err := canon.Parse(raw)
	if err != nil || !isCanonicalLine(raw) {
		c.Add("L7", ResultFile, "not canonical JSON and one LF")
		return
	}
	for _, v := range result.Verify(doc, nil) {
		c.Add("L6", ResultFile, "%s %s: %s", v.RuleID, v.Path, v.Message)
	}
	if tx := log.Transaction(); tx.Pointers.Proposal != nil && !fits(raw, *tx.Pointers.Proposal) {
		c.Add("L6", ResultFile, "does not report the files and hashes that were approved")
	}
	if !c.sameResult(doc, done) {
		c.Add("L6", ResultFile, "is not the result that apply/complete recorded")
	}
}

// fits tells whether a successful result is about exactly the proposal's files,
// with the hashes that were approved.
func fits(raw []byte, p Proposal) bool {
	res, err := result.Parse(raw)
	if err != nil || res.Source != p.Source() || len(res.Operations) != len(p.TargetFiles) {
		return false
	}
	for _, op := range res.Operations {
		before, known := p.BaseSHA256[op.Path]
		if !known || !sameHash(op.BeforeHash, before) || !sameHash(op.AfterHash, p.AfterSHA256[op.Path]) {
			return false
		}
	}
	return true
}

func sameHash(a, b *string) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

func (c *checker) sameResult(doc any, done *ApplyComplete) bool {
	raw, err := c.read(done.ApplyArtifact)
	if err != nil {
		return false
	}
	artifact, err := canon.Parse(raw)
	if err != nil {
		return false
	}
	fields, _ := artifact.(map[string]any)
	a, errA := canon.Marshal(fields["apply_result"])
	b, errB := canon.Marshal(doc)
	outcome, _ := doc.(map[string]any)
	return errA == nil && errB == nil && bytes.Equal(a, b) && text(outcome, "outcome") == done.Outcome
}

// shape: nothing but the files that the events account for.
func (c *checker) shape(log *Log) {
	known := map[string]bool{TransactionFile: true, EventsFile: true, ResultFile: true}
	if log != nil {
		for _, id := range patchIDs(log) {
			known[PatchFile(id)] = true
		}
		for _, a := range Of[*ArtifactStored](log) {
			known[a.Path] = true
		}
	}
	err := fs.WalkDir(c.dir, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		isDir := p == "." || p == "patches" || p == "artifacts"
		if d.IsDir() != isDir || !isDir && (!d.Type().IsRegular() || log != nil && !known[p]) {
			c.Add("L10", path.Clean(p), "is not accounted for by the events")
		}
		return nil
	})
	if err != nil {
		c.Add("L10", ".", "cannot be read whole")
	}
}
