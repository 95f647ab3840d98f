package html

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/state"
	"github.com/countersign-dev/countersign/report/view"
)

// timeline is a table of what happened, by the events.
func (s *sheet) timeline() {
	s.Markup("<section>\n<h2 id=\"timeline\">What happened</h2>\n")
	s.wide("What happened", "Recorded (UTC)", "What", "Event")
	decisions, traced := 0, false
	for i, e := range s.t.events {
		var what *Body
		switch p := e.payload.(type) {
		case *ledger.ApprovalDecision:
			decisions++
			what = s.decided(p, decisions)
		case *ledger.ApprovalRequest:
			what = s.asked(p, s.t.events[:i], s.t.events[i+1:])
		case *ledger.TraceItem:
			if !traced {
				what = Part("The proposer told what it had done before (<a href=\"#trace\">its word</a>)")
			}
			traced = true
		default:
			what = s.happened(e)
		}
		if what != nil && what.Len() > 0 {
			s.row(When(e.Timestamp), what, e.Seq)
		}
	}
	s.endWide()
	s.Markup("</section>\n")
}

// happened says in words what an event is, nothing for one that people need not know of.
func (s *sheet) happened(e event) *Body {
	switch p := e.payload.(type) {
	case nil:
		return Part("An event that cannot be read: {}", Code(string(e.Type)))
	case *ledger.Meta:
		return Part("{} proposed the change, on {}", s.person(p.Proposer), s.commit(p.BaseCommit))
	case *ledger.StatusChange:
		switch p.To { // the others say nothing that the rows beside them do not
		case ledger.Denied, ledger.Interrupted, ledger.Superseded:
			return Part("{}: {}", view.Upper(string(state.Of(p.To, "", false, false))), p.Reason)
		case ledger.Failed:
			return Part("Not applied: {}", s.quoting(p.Reason))
		}
	case *ledger.CommandItem:
		return Part("{} was run {}: <a href=\"#commands\">{}</a>", Code(p.Item.Command), beside(p.Item.Metadata.When), exit(p.Item))
	case *ledger.ArtifactStored:
		return s.stored(p)
	case *ledger.ApplyStart:
		return Part("Applying {} began, on {}", to(p.Target), s.commit(p.BaseCommit))
	case *ledger.ApplyComplete:
		switch {
		case !p.Success:
			return Part("{}", view.Upper(string(state.ApplyFailed)))
		case p.CommitAfter != "":
			return Part("Applied as commit {}", s.commit(p.CommitAfter))
		}
		return Part("Applied {}", to(p.Target))
	case *ledger.ValidateComplete:
		if p.Success {
			return Part("Read back, and found to be these bytes")
		}
		return s.checkFailed(p)
	case *ledger.Close:
		return Part("Closed")
	}
	return nil
}

func (s *sheet) checkFailed(p *ledger.ValidateComplete) *Body {
	b := Part("The check failed")
	doc, _ := aside[ledger.Findings](s.t, p.Findings)
	for i, v := range doc.Violations[:min(len(doc.Violations), 3)] {
		b.Put("{}{}{}", map[bool]string{true: ": ", false: "; "}[i == 0], strings.TrimPrefix(v.Path+" ", " "), v.Message)
	}
	if more := len(doc.Violations) - 3 + doc.More; more > 0 {
		b.Put(" and {} more", more)
	}
	return b
}

// asked tells of requests for approvals of one kind, at the first of them.
func (s *sheet) asked(r *ledger.ApprovalRequest, before, after []event) *Body {
	alike := func(e event) bool {
		other, ok := e.payload.(*ledger.ApprovalRequest)
		return ok && other.Kind == r.Kind
	}
	if len(before) > 0 && alike(before[len(before)-1]) {
		return nil
	}
	n := 1
	for n <= len(after) && alike(after[n-1]) {
		n++
	}
	return Part("{} asked for", ledger.Plural(n, "approval of "+plain.InWords(r.Kind)+" was", "approvals of "+plain.InWords(r.Kind)+" were"))
}

// stored tells of evidence that was recorded.
func (s *sheet) stored(p *ledger.ArtifactStored) *Body {
	switch p.Kind {
	case "posted":
		doc, _ := aside[struct {
			Comments []struct {
				URL string `json:"url"`
			} `json:"comments"`
		}](s.t, p.Path)
		b := Part("People were asked on the pull request")
		for _, c := range doc.Comments {
			b.Put(": {}", s.web(c.URL))
		}
		return b
	case approval.KindMerge:
		doc, _ := aside[approval.Merge](s.t, p.Path)
		return Part("The forge merged the pull request at {} as {}", doc.MergedAt, Code(doc.MergeCommit))
	case "standing":
		return Part("The forge was asked whether the approvals stand")
	case "validation":
		return Part("<a href=\"#commands\">Checks of the result</a> were recorded")
	}
	return nil
}

func (s *sheet) decided(d *ledger.ApprovalDecision, n int) *Body {
	return Part("{} (<a href=\"#decision-{}\">decision {}</a>)", s.said(d), n, n)
}

// said is who decided what. What does not verify is told as the record's word.
func (s *sheet) said(d *ledger.ApprovalDecision) *Body {
	verb, kind := map[bool]string{true: "approved ", false: "denied "}[d.Decision == ledger.Approve], ""
	if !s.t.Sound() {
		verb = "is recorded to have " + verb
	}
	for _, r := range all[*ledger.ApprovalRequest](s.t) {
		if r.ApprovalRequestID == d.ApprovalRequestID {
			kind = r.Kind
			break
		}
	}
	return Part("{} {}{}", s.person(d.Source.Author), verb, plain.InWords(kind))
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
	if s.o.Person != nil && a != (ledger.Actor{}) {
		address = s.o.Person(a)
	}
	b := s.here(address, cmp.Or(a.Login, a.ID, "somebody"))
	b.PutIf(a.Kind != "user" && a.Kind != "", " ({})", a.Kind)
	return b
}

// here is text that leads to another page of the site, if there is one.
func (s *sheet) here(address, text string) *Body {
	if address == "" || s.o.Alone {
		return Part("{}", text)
	}
	return To(s.o.Root+address, text)
}

// has reports whether the site has a page.
func (s *sheet) has(address string) bool { return s.o.Has == nil || s.o.Has(address) }

// commit is a commit, and leads to the forge or the site's page where there is one.
func (s *sheet) commit(id string) *Body {
	address := ""
	switch hex := canon.IsGitID(id); {
	case hex && s.o.Links.Web != "":
		address = s.o.Links.Web + "/commit/" + id
	case hex && !s.o.Alone && s.o.Root != "" && slices.Contains(s.t.Commits, id) && s.has("commit/"+id+"/index.html"):
		address = s.o.Root + "commit/" + id + "/index.html"
	}
	if !isLongHex(id) {
		return Part("<code>{}</code>", To(address, cmp.Or(id, "none")))
	}
	return Part(`<code title="{}">{}</code>`, id, To(address, id[:shownDigits]))
}

// web is an address that the record has: a link only if it is of the repository.
func (s *sheet) web(address string) *Body {
	below, ok := strings.CutPrefix(address, s.o.Links.Web+"/")
	if s.o.Links.Web == "" || !ok || strings.Contains(strings.ReplaceAll(strings.ToLower(below), "%2e", "."), "..") { // a browser follows that out of the repository
		return Code(address)
	}
	return To(address, address)
}

// beside says when a command ran.
func beside(word string) string {
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
