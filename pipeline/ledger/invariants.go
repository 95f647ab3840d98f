package ledger

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
//	I7, I8        admit; a close while an apply is open is looked for here
//	I9            fold takes nothing once Closed
//
// A payload's fields are the values that the walk would read: canon.Unmarshal
// refuses keys in another case, keys twice, and lone surrogates.
func (c *checker) logInvariants() {
	if id := c.log.Meta().TransactionID; id != c.txID {
		c.Add("I2", atLine(1), "tx/meta names %s, transaction.json %s", show(id), show(c.txID))
	}
	applyLine := 0
	for i, p := range c.log.Payloads() {
		switch p := p.(type) {
		case *TurnItem:
			// patch_id is in all metadata, as it has no omitempty
			if m := p.Item.Metadata; p.Item.Type == "fileChange" && m != nil && !c.exists(PatchFile(m.PatchID)) {
				c.Add("I11", atLine(i+1), "patch %s is not in patches/", show(m.PatchID))
			}
		case *CommandItem:
			if id := p.Item.Metadata.Artifact.ArtifactID; !c.exists(ArtifactFile(id)) {
				c.Add("I12", atLine(i+1), "artifact %s of a finished command does not exist", show(id))
			}
		case *TraceItem:
			if id := p.Item.Metadata.Artifact.ArtifactID; p.Item.Type == CommandExecution && p.Item.Status != "" && !c.exists(ArtifactFile(id)) {
				c.Add("I12", atLine(i+1), "artifact %s of a finished command does not exist", show(id))
			}
		case *ArtifactStored:
			if !c.exists(p.Path) {
				c.Add("I10", atLine(i+1), "artifact %s does not exist", show(p.Path))
			}
		case *ApplyStart:
			applyLine = i + 1
		}
	}
	if open, ok := c.log.OpenApply(); ok && c.log.Transaction().Closed {
		c.Add("I8", atLine(applyLine), "apply/start %s without its apply/complete", show(open.ApplyID))
	}
}

// looseInvariants checks I1–I12 in one walk over the events.
func (c *checker) looseInvariants() {
	w := walk{
		checker: c, status: string(Created), turns: map[string]bool{},
		requests: map[string]bool{}, decided: map[string]bool{},
	}
	for i, e := range c.events {
		w.first(i, e)
		if w.closed {
			c.Add("I9", at(e), "event after tx/close")
		}
		w.event(e)
	}
	w.end()
}

// walk is what the invariants remember from event to event.
type walk struct {
	*checker
	status    string
	turns     map[string]bool
	requests  map[string]bool
	decided   map[string]bool
	applyID   string
	applyLine looseEvent
	applying  bool
	closed    bool
}

func (w *walk) first(i int, e looseEvent) {
	if i > 0 {
		return
	}
	if e.typ != string(TypeMeta) {
		w.Add("I1", at(e), "first event is %s, not tx/meta", show(e.typ))
		return
	}
	if id := text(e.payload, "transaction_id"); id != w.txID {
		w.Add("I2", at(e), "tx/meta names %s, transaction.json %s", show(id), show(w.txID))
	}
}

func (w *walk) event(e looseEvent) {
	switch Type(e.typ) {
	case TypeStatus:
		w.statusChange(e)
	case TypeTurnStart:
		w.turnStart(e)
	case TypeTurnItem:
		w.turnItem(e)
	case TypeArtifact:
		if path := text(e.payload, "path"); !w.exists(path) {
			w.Add("I10", at(e), "artifact %s does not exist", show(path))
		}
	case TypeRequest:
		w.request(e)
	case TypeDecision:
		w.decision(e)
	case TypeApplyStart:
		w.applyStart(e)
	case TypeApplyComplete:
		w.applyComplete(e)
	case TypeClose:
		w.closed = true
	}
}

func (w *walk) statusChange(e looseEvent) {
	if from := text(e.payload, "from"); from != w.status {
		w.Add("I3", at(e), "status goes from %s, the last status is %s", show(from), show(w.status))
	}
	w.status = text(e.payload, "to")
}

func (w *walk) turnStart(e looseEvent) {
	id := text(e.payload, "turn_id")
	switch {
	case id == "":
		w.Add("I4", at(e), "turn/start without turn_id")
	case w.turns[id]:
		w.Add("I4", at(e), "turn %s starts twice", show(id))
	}
	w.turns[id] = true
}

func (w *walk) turnItem(e looseEvent) {
	if turn := text(e.payload, "turn_id"); turn == "" || !w.turns[turn] {
		w.Add("I5", at(e), "item of turn %s, which has not started", show(turn))
	}
	item := object(e.payload, "item")
	if text(item, "id") == "" || text(item, "type") == "" {
		w.Add("I5", at(e), "item without id or type")
	}
	metadata := object(item, "metadata")
	switch text(item, "type") {
	case "fileChange":
		id := text(metadata, "patch_id")
		if _, ok := metadata["patch_id"]; ok && !w.exists(PatchFile(id)) {
			w.Add("I11", at(e), "patch %s is not in patches/", show(id))
		}
	case "commandExecution":
		w.execution(e, text(item, "status"), metadata)
	}
}

// execution: a finished command's evidence must be there.
func (w *walk) execution(e looseEvent, status string, metadata map[string]any) {
	if status == "" || status == "in_progress" || status == "inProgress" || status == "pending" {
		return
	}
	artifact, ok := metadata["artifact"]
	if !ok {
		return
	}
	ref, _ := artifact.(map[string]any)
	if id := text(ref, "artifact_id"); !w.exists(ArtifactFile(id)) {
		w.Add("I12", at(e), "artifact %s of a finished command does not exist", show(id))
	}
}

func (w *walk) request(e looseEvent) {
	id := text(e.payload, "approval_request_id")
	switch {
	case id == "":
		w.Add("I6", at(e), "approval/request without approval_request_id")
	case w.requests[id]:
		w.Add("I6", at(e), "approval request %s is made twice", show(id))
	}
	w.requests[id] = true
}

func (w *walk) decision(e looseEvent) {
	id := text(e.payload, "approval_request_id")
	switch {
	case id == "" || !w.requests[id]:
		w.Add("I6", at(e), "decision on unknown request %s", show(id))
	case w.decided[id]:
		w.Add("I6", at(e), "request %s is decided twice", show(id))
	}
	w.decided[id] = true
}

func (w *walk) applyStart(e looseEvent) {
	id := text(e.payload, "apply_id")
	if id == "" {
		w.Add("I7", at(e), "apply/start without apply_id")
	}
	if w.applying {
		w.Add("I7", at(e), "apply/start inside apply %s", show(w.applyID))
	}
	w.applying, w.applyID, w.applyLine = true, id, e
}

func (w *walk) applyComplete(e looseEvent) {
	if id := text(e.payload, "apply_id"); !w.applying || id != w.applyID {
		w.Add("I8", at(e), "apply/complete %s without its apply/start", show(id))
	}
	w.applying = false
}

// end: an apply that never ended. In an open transaction of ours it is in
// progress or to be resumed, which is not a fault of the record.
func (w *walk) end() {
	if w.applying && (w.closed || !w.own()) {
		w.Add("I8", at(w.applyLine), "apply/start %s without its apply/complete", show(w.applyID))
	}
}
