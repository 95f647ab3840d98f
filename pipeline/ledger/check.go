package ledger

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/format"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// Check verifies one transaction directory. A directory of this program's
// making (its id has our form, or its events carry seq and prev) is held to I1–I12 and to L1–L7, L9, L10,
// L20 and L24; a foreign one to I1–I12 alone. The rules are in docs/formats.md.
//
// Check never fails on what the directory holds: whatever cannot be read is a
// violation.
func Check(dir fs.FS) []rule.Violation {
	return newChecker(dir).check()
}

// RuleNewer is the rule of what only a newer program can judge (package format): where no other rule was found to be
// broken, a record is undecidable, and neither sound nor damaged.
const RuleNewer = "NEWER"

// newer tells of events that are of a newer version, and holds those to what no version changes. It reports whether
// there are any.
func (c *checker) newer() bool {
	if c.refuse == nil || !errors.As(c.refuse, new(*format.NewerError)) {
		return false
	}
	c.Add(RuleNewer, EventsFile, "%v", c.refuse)
	c.chain()
	return true
}

func (c *checker) check() []rule.Violation {
	if c.newer() {
		return c.Sorted()
	}
	c.invariants()
	if c.own() {
		c.ownRules()
	}
	return c.Sorted()
}

// ReadOwn is Check for a directory that must be of our making, so that a
// tamperer gains nothing by dropping the chain. id is the transaction's. It also
// returns the log that was checked, nil where the events cannot be read or
// ReadLog refuses them; something was found then.
func ReadOwn(dir fs.FS, id string) (*Log, []rule.Violation) {
	c := newChecker(dir)
	c.modes = true
	found := c.checkOwn(id)
	if !c.proven {
		return nil, found
	}
	return c.log, found
}

func (c *checker) checkOwn(id string) []rule.Violation {
	if !c.newer() {
		c.invariants()
		c.ownRules()
	}
	if c.txID != id {
		c.Add("I2", TransactionFile, "transaction_id is %s, the directory is %s's", show(c.txID), id)
	}
	return c.Sorted()
}

// Foreign reports whether Check judges a directory as another program's, by
// I1–I12 alone.
func Foreign(dir fs.FS) bool { return !newChecker(dir).own() }

// invariants checks I1–I12 (seed: checkpoint 10, section 3).
func (c *checker) invariants() {
	if c.proven {
		c.logInvariants()
	} else {
		c.looseInvariants()
	}
}

// logInvariants is what is left of I1–I12 once ReadLog took the events. The
// others it would have refused, so that the walk below could not find them:
//
//	PARSE, EMPTY  canon.Unmarshal takes an object alone, and no events are refused
//	I1            fold takes tx/meta first, and only first
//	I3            fold.move: From is the status, which is Created at first
//	I4, I5        admit, of turns; items have id and type
//	I6            admit, of requests, which have ids, and of decisions: on an open one
//	I7, I8        admit, which takes no close while an apply is open
//	I9            fold takes nothing once Closed
//
// A payload's fields are the values that the walk would read: canon.Unmarshal
// refuses keys in another case, keys twice, and lone surrogates.
func (c *checker) logInvariants() {
	if id := c.log.Meta().TransactionID; id != c.txID {
		c.Add("I2", atLine(1), "tx/meta names %s, transaction.json %s", show(id), show(c.txID))
	}
	evidence := func(i int, id string) {
		if !c.exists(ArtifactFile(id)) {
			c.Add("I12", atLine(i+1), "artifact %s of a finished command does not exist", show(id))
		}
	}
	for i, p := range c.log.Payloads() {
		switch p := p.(type) {
		case *TurnItem:
			// patch_id is in all metadata, as it has no omitempty
			if m := p.Item.Metadata; p.Item.Type == FileChange && m != nil && !c.exists(PatchFile(m.PatchID)) {
				c.Add("I11", atLine(i+1), "patch %s is not in patches/", show(m.PatchID))
			}
		case *CommandItem:
			evidence(i, p.Item.Metadata.Artifact.ArtifactID)
		case *TraceItem:
			if p.Item.Type == CommandExecution && p.Item.Status != "" {
				evidence(i, p.Item.Metadata.Artifact.ArtifactID)
			}
		case *ArtifactStored:
			if !c.exists(p.Path) {
				c.Add("I10", atLine(i+1), "artifact %s does not exist", show(p.Path))
			}
		}
	}
}

// walk is what the invariants remember from event to event.
type walk struct {
	*checker
	status    string
	turns     map[string]bool
	requests  map[string]bool
	decided   map[string]bool
	applyID   string
	applyLine int
	applying  bool
	closed    bool
}

// looseInvariants checks I1–I12 in one walk over the events.
func (c *checker) looseInvariants() {
	w := walk{
		checker: c, status: string(Created), turns: map[string]bool{},
		requests: map[string]bool{}, decided: map[string]bool{},
	}
	for i, e := range c.events {
		switch id := text(e.payload, "transaction_id"); {
		case i > 0:
		case e.typ != string(TypeMeta):
			c.Add("I1", atLine(e.line), "first event is %s, not tx/meta", show(e.typ))
		case id != c.txID:
			c.Add("I2", atLine(e.line), "tx/meta names %s, transaction.json %s", show(id), show(c.txID))
		}
		if w.closed {
			c.Add("I9", atLine(e.line), "event after tx/close")
		}
		w.event(e)
	}
	// In an open transaction of ours, an apply that never ended is in progress or
	// to be resumed, which is not a fault of the record.
	if w.applying && (w.closed || !c.own()) {
		c.Add("I8", atLine(w.applyLine), "apply/start %s without its apply/complete", show(w.applyID))
	}
}

func (w *walk) event(e looseEvent) {
	at := atLine(e.line)
	switch Type(e.typ) {
	case TypeStatus:
		if from := text(e.payload, "from"); from != w.status {
			w.Add("I3", at, "status goes from %s, the last status is %s", show(from), show(w.status))
		}
		w.status = text(e.payload, "to")
	case TypeTurnStart:
		id := text(e.payload, "turn_id")
		if id == "" {
			w.Add("I4", at, "turn/start without turn_id")
		} else if w.turns[id] {
			w.Add("I4", at, "turn %s starts twice", show(id))
		}
		w.turns[id] = true
	case TypeTurnItem:
		w.item(at, e.payload)
	case TypeArtifact:
		if path := text(e.payload, "path"); !w.exists(path) {
			w.Add("I10", at, "artifact %s does not exist", show(path))
		}
	case TypeRequest:
		id := text(e.payload, "approval_request_id")
		if id == "" {
			w.Add("I6", at, "approval/request without approval_request_id")
		} else if w.requests[id] {
			w.Add("I6", at, "approval request %s is made twice", show(id))
		}
		w.requests[id] = true
	case TypeDecision:
		id := text(e.payload, "approval_request_id")
		if id == "" || !w.requests[id] {
			w.Add("I6", at, "decision on unknown request %s", show(id))
		} else if w.decided[id] {
			w.Add("I6", at, "request %s is decided twice", show(id))
		}
		w.decided[id] = true
	case TypeApplyStart:
		id := text(e.payload, "apply_id")
		if id == "" {
			w.Add("I7", at, "apply/start without apply_id")
		}
		if w.applying {
			w.Add("I7", at, "apply/start inside apply %s", show(w.applyID))
		}
		w.applying, w.applyID, w.applyLine = true, id, e.line
	case TypeApplyComplete:
		if id := text(e.payload, "apply_id"); !w.applying || id != w.applyID {
			w.Add("I8", at, "apply/complete %s without its apply/start", show(id))
		}
		w.applying = false
	case TypeClose:
		w.closed = true
	}
}

// item: it is of a turn, and the patch or, of a command that ended, the evidence
// that it names is there.
func (w *walk) item(at string, payload map[string]any) {
	if turn := text(payload, "turn_id"); turn == "" || !w.turns[turn] {
		w.Add("I5", at, "item of turn %s, which has not started", show(turn))
	}
	item := object(payload, "item")
	if text(item, "id") == "" || text(item, "type") == "" {
		w.Add("I5", at, "item without id or type")
	}
	metadata := object(item, "metadata")
	switch text(item, "type") {
	case FileChange:
		id := text(metadata, "patch_id")
		if _, ok := metadata["patch_id"]; ok && !w.exists(PatchFile(id)) {
			w.Add("I11", at, "patch %s is not in patches/", show(id))
		}
	case CommandExecution:
		ended := !slices.Contains([]string{"", "in_progress", "inProgress", "pending"}, text(item, "status"))
		id := text(object(metadata, "artifact"), "artifact_id")
		if _, ok := metadata["artifact"]; ok && ended && !w.exists(ArtifactFile(id)) {
			w.Add("I12", at, "artifact %s of a finished command does not exist", show(id))
		}
	}
}
