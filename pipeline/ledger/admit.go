package ledger

import "fmt"

// admit refuses an event that refers to what is not there: an item of a turn
// that has not started, or with a status that no item has, a decision on no open request or on another
// fingerprint, an apply inside an apply. A record that breaks I4 to I8 is thus
// never written, and never acted upon.
func (l *Log) admit(p Payload) error {
	switch p := p.(type) {
	case *TurnStart:
		if p.TurnID == "" || l.hasTurn(p.TurnID) {
			return fmt.Errorf("turn %q cannot start", p.TurnID)
		}
	case *TurnItem:
		if !l.hasTurn(p.TurnID) || !p.Item.follows() {
			return fmt.Errorf("item %q of turn %q has no place", p.Item.ID, p.TurnID)
		}
	case *CommandItem:
		if !l.hasTurn(p.TurnID) || !p.Item.follows() {
			return fmt.Errorf("item %q of turn %q has no place", p.Item.ID, p.TurnID)
		}
	case *TraceItem:
		if !l.hasTurn(p.TurnID) || !p.Item.follows() {
			return fmt.Errorf("item %q of turn %q has no place", p.Item.ID, p.TurnID)
		}
	case *ApprovalRequest:
		return l.admitRequest(p)
	case *ApprovalDecision:
		return l.admitDecision(p)
	case *ApplyStart:
		if open, ok := l.OpenApply(); ok || p.ApplyID == "" {
			return fmt.Errorf("apply %q cannot start while %q is open", p.ApplyID, open.ApplyID)
		}
	case *ApplyComplete:
		if open, ok := l.OpenApply(); !ok || p.ApplyID != open.ApplyID {
			return fmt.Errorf("apply %q is not open", p.ApplyID)
		}
	}
	return nil
}

func (l *Log) hasTurn(id string) bool {
	for _, t := range Of[*TurnStart](l) {
		if t.TurnID == id {
			return true
		}
	}
	return false
}

func (l *Log) admitRequest(p *ApprovalRequest) error {
	for _, q := range Of[*ApprovalRequest](l) {
		if q.ApprovalRequestID == p.ApprovalRequestID {
			return fmt.Errorf("request %q is made twice", p.ApprovalRequestID)
		}
	}
	if p.ApprovalRequestID == "" {
		return fmt.Errorf("request without an id")
	}
	return nil
}

func (l *Log) admitDecision(p *ApprovalDecision) error {
	for _, q := range l.OpenRequests() {
		if q.ApprovalRequestID == p.ApprovalRequestID && q.Fingerprint == p.Fingerprint {
			return nil
		}
	}
	return fmt.Errorf("decision on %q, which asks for no decision on %q", p.ApprovalRequestID, OneLine(p.Fingerprint, 100))
}
