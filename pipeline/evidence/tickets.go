package evidence

import (
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/lookup"
)

// A Ticket is one that a text of a change names, as the Policy says that tickets are written (tickets). From is where that
// stands: "proposal", the proposal's title or message; "commit", a commit's message; "merge", that of the merge that
// brought it, in which forges name the branch.
type Ticket struct {
	ID   string `json:"id"`
	From string `json:"from"`
}

// The bounds of what is looked at and shown, as texts are anybody's.
const (
	maxTicketText = 16 << 10
	maxTickets    = 20
	maxTicket     = 100
)

// tickets are what a change's texts name, each once, where it stands first.
func (t *table) tickets(row *Row) error {
	if len(t.patterns) == 0 {
		return nil
	}
	look := func(text, from string) {
		text = text[:min(len(text), maxTicketText)]
		for _, pattern := range t.patterns {
			for _, at := range pattern.FindAllStringIndex(text, -1) {
				id := text[at[0]:at[1]]
				known := slices.ContainsFunc(row.Tickets, func(o Ticket) bool { return o.ID == id })
				if !known && id != "" && len(id) <= maxTicket && len(row.Tickets) < maxTickets && standsAlone(text, at) {
					row.Tickets = append(row.Tickets, Ticket{id, from})
				}
			}
		}
	}
	for _, rec := range row.Records {
		log, err := lookup.Read(t.Ledger, rec.TransactionID)
		if err != nil {
			return err
		}
		tx := log.Transaction()
		look(tx.Notes, "proposal")
		if p := tx.Pointers.Proposal; p != nil {
			look(p.Message, "proposal")
			for _, trailer := range p.Declared {
				look(trailer, "proposal")
			}
		}
	}
	for _, id := range row.Commits {
		look(t.commits[id].Message, "commit")
	}
	look(t.commits[row.BroughtBy].Message, "merge")
	return nil
}

// standsAlone reports whether no letter or digit of a longer word is beside a place in a text.
func standsAlone(text string, at []int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at[0]])
	after, _ := utf8.DecodeRuneInString(text[at[1]:])
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return !inWord(before) && !inWord(after)
}

// readPatterns are the Policy's, which are of RE2: a text takes time as it is long.
func (t *table) readPatterns() error {
	for _, pattern := range t.Policy.Tickets {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return err
		}
		t.patterns = append(t.patterns, re)
	}
	return nil
}
