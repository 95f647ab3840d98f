package html

import (
	"cmp"
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// said is who decided what. What does not verify is told as the record's word.
func (s *sheet) said(d *ledger.ApprovalDecision) *Body {
	verb, kind := map[bool]string{true: "approved ", false: "denied "}[d.Decision == ledger.Approve], ""
	if !s.T.Sound() {
		verb = "is recorded to have " + verb
	}
	for _, r := range all[*ledger.ApprovalRequest](s.T) {
		if r.ApprovalRequestID == d.ApprovalRequestID {
			kind = r.Kind
			break
		}
	}
	return Part("{} {}{}", s.person(d.Source.Author), verb, plain.InWords(kind))
}

// decided leads to a decision, by its number from 0.
func (s *sheet) decided(d *ledger.ApprovalDecision, i int) *Body {
	return s.fill("ApprovalDecision", struct {
		Decision *ledger.ApprovalDecision
		Number   int
	}{d, i + 1})
}

// A counted decision is one that counted, or why it did not.
type counted struct{ Class, Says string }

// counted is nil where the record does not tell.
func (s *sheet) counted(i int) *counted {
	if !s.T.Told {
		return nil
	}
	switch d := s.T.verdict.Decisions[i]; {
	case !d.Counted:
		return &counted{"over", "Not counted: " + plain.Why(d)}
	case d.Decision == ledger.Approve:
		return &counted{"good", "Counted"}
	}
	return &counted{"bad", "Counted"}
}

// statement is what was read of a decision, nil for none.
func (s *sheet) statement(path string) *approval.StatementDoc {
	doc, ok := aside[approval.StatementDoc](s.T, path)
	if !ok {
		return nil
	}
	return &doc
}

// maxShown bounds a foreign text on the page, in bytes.
const maxShown = 64 << 10

func cut(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return text[:maxShown] + fmt.Sprintf("\n… %d more bytes: see the record", len(text)-maxShown)
}

// sum is a hash, of which the beginning is shown.
func sum(hex string) *Body {
	if !isLongHex(hex) {
		return Code(cmp.Or(hex, "none"))
	}
	return Part(`<code title="{}">{}…</code>`, hex, hex[:shownDigits])
}

// isLongHex reports whether a text is a hash, of which the beginning is shown; what is none stands as it is.
func isLongHex(text string) bool { return len(text) > shownDigits && canon.IsHex(text, len(text)) }

const shownDigits = 12
