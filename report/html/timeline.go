package html

import (
	"cmp"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/state"
	"github.com/countersign-dev/countersign/report/view"
)

// timeline is a table of what happened, by the events.
func (s *sheet) timeline() {
	s.Markup("<section>\n<h2 id=\"timeline\">What happened</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"What happened\">\n<table>\n<thead><tr><th scope=\"col\">Recorded (UTC)</th><th scope=\"col\">What</th><th scope=\"col\">Event</th></tr></thead>\n<tbody>\n")
	decisions, traced := 0, false
	for i, e := range s.t.events {
		row := &sheet{t: s.t, o: s.o}
		if d, ok := e.payload.(*ledger.ApprovalDecision); ok {
			decisions++
			row.decided(d, decisions)
		} else if r, ok := e.payload.(*ledger.ApprovalRequest); ok {
			row.asked(r, s.t.events[:i], s.t.events[i+1:])
		} else if _, ok := e.payload.(*ledger.TraceItem); ok {
			if !traced {
				row.Text("The proposer told what it had done before (").Link("#trace", "its word").Text(")")
			}
			traced = true
		} else {
			row.happened(e)
		}
		if row.Len() == 0 {
			continue
		}
		s.Markup("<tr><td>")
		s.when(e.Timestamp)
		s.Markup("</td><td>").Add(&row.Body).Markup("</td><td>").Textf("%d", e.Seq).Markup("</td></tr>\n")
	}
	s.Markup("</tbody>\n</table>\n</div>\n</section>\n")
}

// happened says in words what an event is, nothing for one that people need not know of.
func (s *sheet) happened(e event) {
	switch p := e.payload.(type) {
	case nil:
		s.Text("An event that cannot be read: ").Code(string(e.Type))
	case *ledger.Meta:
		s.person(p.Proposer)
		s.Text(" proposed the change, on ")
		s.commit(p.BaseCommit)
	case *ledger.StatusChange:
		switch p.To { // the others say nothing that the rows beside them do not
		case ledger.Denied, ledger.Interrupted, ledger.Superseded:
			s.Text(view.Upper(string(state.Of(p.To, "", false, false))) + ": " + p.Reason)
		case ledger.Failed:
			s.Text("Not applied: ")
			s.quoting(p.Reason)
		}
	case *ledger.CommandItem:
		s.Code(p.Item.Command).Text(" was run "+when(p.Item.Metadata.When)+": ").Link("#commands", exit(p.Item))
	case *ledger.ArtifactStored:
		s.stored(p)
	case *ledger.ApplyStart:
		s.Text("Applying " + to(p.Target) + " began, on ")
		s.commit(p.BaseCommit)
	case *ledger.ApplyComplete:
		switch {
		case !p.Success:
			s.Text(view.Upper(string(state.ApplyFailed)))
		case p.CommitAfter != "":
			s.Text("Applied as commit ")
			s.commit(p.CommitAfter)
		default:
			s.Text("Applied " + to(p.Target))
		}
	case *ledger.ValidateComplete:
		if p.Success {
			s.Text("Read back, and found to be these bytes")
			return
		}
		s.Text("The check failed")
		doc, _ := aside[ledger.Findings](s.t, p.Findings)
		for i, v := range doc.Violations[:min(len(doc.Violations), 3)] {
			s.Text(map[bool]string{true: ": ", false: "; "}[i == 0] + strings.TrimPrefix(v.Path+" ", " ") + v.Message)
		}
		if more := len(doc.Violations) - 3 + doc.More; more > 0 {
			s.Textf(" and %d more", more)
		}
	case *ledger.Close:
		s.Text("Closed")
	}
}

// asked tells of requests for approvals of one kind, at the first of them.
func (s *sheet) asked(r *ledger.ApprovalRequest, before, after []event) {
	alike := func(e event) bool {
		other, ok := e.payload.(*ledger.ApprovalRequest)
		return ok && other.Kind == r.Kind
	}
	if len(before) > 0 && alike(before[len(before)-1]) {
		return
	}
	n := 1
	for n <= len(after) && alike(after[n-1]) {
		n++
	}
	s.Text(ledger.Plural(n, "approval of "+policy.InWords(r.Kind)+" was", "approvals of "+policy.InWords(r.Kind)+" were") + " asked for")
}

// stored tells of evidence that was recorded.
func (s *sheet) stored(p *ledger.ArtifactStored) {
	switch p.Kind {
	case "posted":
		doc, _ := aside[struct {
			Comments []struct {
				URL string `json:"url"`
			} `json:"comments"`
		}](s.t, p.Path)
		s.Text("People were asked on the pull request")
		for _, c := range doc.Comments {
			s.Text(": ")
			s.web(c.URL)
		}
	case approval.KindMerge:
		doc, _ := aside[approval.Merge](s.t, p.Path)
		s.Text("The forge merged the pull request at " + doc.MergedAt + " as ").Code(doc.MergeCommit)
	case "standing":
		s.Text("The forge was asked whether the approvals stand")
	case "validation":
		s.Link("#commands", "Checks of the result").Text(" were recorded")
	}
}

func (s *sheet) decided(d *ledger.ApprovalDecision, n int) {
	s.said(d)
	s.Text(" (")
	s.Link("#decision-"+itoa(n), "decision "+itoa(n)).Text(")")
}

// said is who decided what. What does not verify is told as the record's word.
func (s *sheet) said(d *ledger.ApprovalDecision) {
	verb := map[bool]string{true: "approved ", false: "denied "}[d.Decision == ledger.Approve]
	if !s.t.Sound() {
		verb = "is recorded to have " + verb
	}
	s.person(d.Source.Author)
	s.Text(" " + verb + policy.InWords(s.kindOf(d)))
}

// kindOf is what a decision answers.
func (s *sheet) kindOf(d *ledger.ApprovalDecision) string {
	for _, r := range all[*ledger.ApprovalRequest](s.t) {
		if r.ApprovalRequestID == d.ApprovalRequestID {
			return r.Kind
		}
	}
	return ""
}

// when writes a moment, in UTC to the minute.
func (s *sheet) when(at string) {
	parsed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		s.Text(at)
		return
	}
	s.Markup("<time").Attribute("datetime", parsed.UTC().Format(time.RFC3339)).Markup(">").Text(parsed.UTC().Format("2006-01-02 15:04")).Markup("</time>")
}

// person is somebody by login, and what kind of account that is where it is no person's.
func (s *sheet) person(a ledger.Actor) {
	address := ""
	if s.o.Person != nil && a != (ledger.Actor{}) {
		address = s.o.Person(a)
	}
	s.here(address, cmp.Or(a.Login, a.ID, "somebody"))
	if a.Kind != "user" && a.Kind != "" {
		s.Text(" (" + a.Kind + ")")
	}
}

// here is text that leads to another page of the site, if there is one.
func (s *sheet) here(address, text string) {
	if address == "" || s.o.Alone {
		s.Text(text)
		return
	}
	s.Link(s.o.Root+address, text)
}

// has reports whether the site has a page.
func (s *sheet) has(address string) bool { return s.o.Has == nil || s.o.Has(address) }

// commit is a commit, and leads to the forge or the site's page where there is one.
func (s *sheet) commit(id string) {
	address := ""
	switch hex := len(id) == 40 && only(id, ""); {
	case hex && s.o.Links.Web != "":
		address = s.o.Links.Web + "/commit/" + id
	case hex && !s.o.Alone && s.o.Root != "":
		for _, c := range s.t.Commits {
			if c == id && s.has("commit/"+id+"/index.html") {
				address = s.o.Root + "commit/" + id + "/index.html"
			}
		}
	}
	if !isLongHex(id) {
		s.Markup("<code>").Link(address, cmp.Or(id, "none")).Markup("</code>")
		return
	}
	s.Markup("<code").Attribute("title", id).Markup(">").Link(address, id[:shownDigits]).Markup("</code>")
}

// web is an address that the record has: a link only if it is of the repository.
func (s *sheet) web(address string) {
	below, ok := strings.CutPrefix(address, s.o.Links.Web+"/")
	if s.o.Links.Web == "" || !ok || strings.Contains(strings.ReplaceAll(strings.ToLower(below), "%2e", "."), "..") { // a browser follows that out of the repository
		s.Code(address)
		return
	}
	s.Link(address, address)
}

func when(word string) string {
	if word == "before" || word == "after" {
		return word + " the apply"
	}
	return ""
}

func to(target string) string {
	if target == "" || target == "worktree" {
		return "to the working tree"
	}
	return "to " + target
}
