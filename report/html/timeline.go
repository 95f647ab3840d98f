package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/view"
)

// A happening is an event as people are told of it.
type happening struct {
	At   string
	What *Body
	Seq  int
}

// timeline is what happened, by the events. One whose payload's type, or whose artifact's kind, has no template is
// one that people need not know of.
func (s *sheet) timeline() (out []happening) {
	decisions, traced := 0, false
	for i, e := range s.T.events {
		name, of := strings.TrimPrefix(fmt.Sprintf("%T", e.payload), "*ledger."), any(e.payload)
		var what *Body
		switch p := e.payload.(type) {
		case nil:
			name, of = "unreadable", e
		case *ledger.ArtifactStored:
			name = "artifact " + p.Kind
		case *ledger.ApprovalDecision:
			what = s.decided(p, decisions)
			decisions++
		case *ledger.ApprovalRequest:
			if i > 0 && sameKind(s.T.events[i-1], p) { // told at the first of them
				name = ""
			}
			of = s.T.events[i:]
		case *ledger.TraceItem:
			if traced {
				name = ""
			}
			traced = true
		}
		if what == nil && templates().Has(name) {
			what = s.fill(name, of)
		}
		if what != nil && what.Len() > 0 {
			out = append(out, happening{e.Timestamp, what, e.Seq})
		}
	}
	return out
}

func sameKind(e event, r *ledger.ApprovalRequest) bool {
	other, ok := e.payload.(*ledger.ApprovalRequest)
	return ok && other.Kind == r.Kind
}

// requests are the requests of one kind that events begin with, in words.
func requests(events []event) string {
	first, n := events[0].payload.(*ledger.ApprovalRequest), 1
	for n < len(events) && sameKind(events[n], first) {
		n++
	}
	return ledger.Plural(n, "approval of "+plain.InWords(first.Kind)+" was", "approvals of "+plain.InWords(first.Kind)+" were")
}

// endedAs is a status in words, where the rows beside it do not say the same.
func endedAs(to ledger.Status) string {
	switch to {
	case ledger.Denied, ledger.Interrupted, ledger.Superseded:
		return view.Upper(string(plain.StateOf(to, "", false, false)))
	}
	return ""
}

// When is a moment in UTC, to the minute.
func When(at string) *Body {
	parsed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return Part("{}", at)
	}
	return Part(`<time datetime="{}">{}</time>`, parsed.UTC().Format(time.RFC3339), parsed.UTC().Format("2006-01-02 15:04"))
}

// person is somebody by login, and what kind of account that is where it is no person's.
func (s *sheet) person(a ledger.Actor) *Body {
	address := ""
	if s.O.Person != nil && a != (ledger.Actor{}) {
		address = s.O.Person(a)
	}
	return Named(s.here(address, cmp.Or(a.Login, a.ID, "somebody")), a.Kind)
}

// Named is somebody, and what kind of account that is where it is no person's.
func Named(who *Body, kind string) *Body {
	if kind == "user" || kind == "" {
		return who
	}
	return who.Put(" ({})", kind)
}

// here is text that leads to another page of the site, if there is one.
func (s *sheet) here(address, text string) *Body {
	if address == "" || s.O.Alone {
		return Part("{}", text)
	}
	return To(s.O.Root+address, text)
}

// has reports whether the site has a page.
func (s *sheet) has(address string) bool { return s.O.Has == nil || s.O.Has(address) }

// commit is a commit, and leads to the forge or the site's page where there is one.
func (s *sheet) commit(id string) *Body {
	address := ""
	switch hex := canon.IsGitID(id); {
	case hex && s.O.Links.Web != "":
		address = s.O.Links.Web + "/commit/" + id
	case hex && !s.O.Alone && s.O.Root != "" && slices.Contains(s.T.Commits, id) && s.has("commit/"+id+"/index.html"):
		address = s.O.Root + "commit/" + id + "/index.html"
	}
	if !isLongHex(id) {
		return Part("<code>{}</code>", To(address, cmp.Or(id, "none")))
	}
	return Part(`<code title="{}">{}</code>`, id, To(address, id[:shownDigits]))
}

// web is an address that the record has: a link only if it is of the repository.
func (s *sheet) web(address string) *Body {
	below, ok := strings.CutPrefix(address, s.O.Links.Web+"/")
	if s.O.Links.Web == "" || !ok || strings.Contains(strings.ReplaceAll(strings.ToLower(below), "%2e", "."), "..") { // a browser follows that out of the repository
		return Code(address)
	}
	return To(address, address)
}
