package html

import (
	"bytes"
	"cmp"
	"io"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/state"
)

// Options are what a page is given beside its transaction.
type Options struct {
	Root  string // Head.Root
	Alone bool   // Head.Alone: a file to attach to a ticket, without links into the site
	Nav   []Link
	// Redact leaves out the diff and what commands printed.
	Redact bool
	// Earlier is the proposal whose place this one took, if the page compares them.
	Earlier *Transaction
	// LedgerRef and LedgerCommit say what the page was made of.
	LedgerRef, LedgerCommit string
	// Elsewhere says that the ledger is in another repository than the one that people clone.
	Elsewhere bool
	// Links are where people see the repository on its forge, which the caller knows otherwise than
	// from the ledger. Only what lies below Links.Web becomes a link.
	Links forge.Links
	// Person and Path are the addresses from the root of a person's and a path's page, nil where
	// there are none. Has reports whether there is a page of a path, patch or commit, nil for yes.
	Person func(ledger.Actor) string
	Path   func(string) string
	Has    func(address string) bool
}

// A sheet is a page as it is written.
type sheet struct {
	Body
	t     Transaction
	o     Options
	files []changedFile
}

// Write writes the page.
func (t Transaction) Write(w io.Writer, o Options) error {
	s := &sheet{t: t, o: o, Body: Body{make([]byte, 0, 16<<10)}, files: t.changedFiles()}
	title := cmp.Or(ledger.OneLine(t.Summary.Summary, 80), t.ID)
	s.top()
	if t.Status != "" {
		s.requirements()
		s.risks()
		s.index()
		s.compare()
		s.diff()
		s.decisions()
	}
	if len(t.events) > 0 {
		s.proposal()
		s.timeline()
	}
	if t.Status != "" {
		s.commands()
		s.rules()
		s.trace()
	}
	s.verify()
	return Layout(w, Head{
		Title: title + " · " + string(t.State), Root: o.Root, Alone: o.Alone, Nav: o.Nav, Footer: s.madeOf(),
	}, &s.Body)
}

func (s *sheet) madeOf() string {
	text := "This page decides nothing. It was made of the record of " + s.t.ID
	if s.o.LedgerCommit != "" {
		text += ", as " + cmp.Or(s.o.LedgerRef, "the ledger") + " has it in commit " + s.o.LedgerCommit
	}
	return text + "."
}

// top is who wanted what, and how it stands.
func (s *sheet) top() {
	s.Put("<h1>{}</h1>\n", cmp.Or(s.t.Summary.Summary, "A change without a summary"))
	if len(s.t.events) > 0 {
		s.lead()
	}
	if !s.t.Sound() {
		s.Add(Findings("This record does not verify", "Nothing on this page counts as approved. What could be read stands below.", s.t.Findings))
	}
	b := s.t.view.Banner
	s.Put("<div class=\"verdict {}\"><p><strong>{}</strong></p>", s.t.Class(), b.Title)
	s.PutIf(b.Detail != "", "<p>{}</p>", b.Detail)
	s.Markup("</div>\n")
}

// lead is who wanted it, how large it is, and what it is for.
func (s *sheet) lead() {
	t := s.t
	s.Put("<p class=\"faint\">{} proposed it {} UTC", s.person(t.Proposer), When(t.Proposed))
	if n := len(t.view.Files); n > 0 {
		s.Put(" · <a href=\"#files\">{}</a>", ledger.Plural(n, "file", "files"))
		added, deleted := 0, 0
		for _, f := range s.files {
			added, deleted = added+f.Added, deleted+f.Deleted
		}
		s.PutIf(t.patch != nil, " {}", counts(added, deleted))
	}
	if t.proposal != nil {
		s.Put(" · for {}", s.commit(t.proposal.BaseCommit))
	}
	if t.PullRequest > 0 {
		s.Put(" · {}", s.pull())
	}
	switch n := len(t.Commits); {
	case !t.Sound():
	case n > 0:
		s.Put(" · {} commit {}", map[bool]string{true: "is", false: "became"}[t.Kind == ledger.KindPullRequest], s.commit(t.Commits[n-1]))
	case t.result != nil:
		s.Markup(" · written to the working tree")
	}
	s.Markup("</p>\n")
}

var tones = map[state.Tone]string{state.Bad: "bad", state.Good: "good", state.Open: "waits"}

// Class is the class of the style sheet that colours a transaction: good, bad, waits or over.
// Nothing that does not verify has the colour of what is approved.
func (s Summary) Class() string { return cmp.Or(tones[s.Tone], "over") }

// Findings are what was found against a record, or a whole ledger.
func Findings(title, lead string, found []history.Finding) *Body {
	b := Part("<section class=\"findings\" aria-labelledby=\"findings\">\n<h2 id=\"findings\">{}</h2>\n<p>{}</p>\n<ul>\n", title, lead)
	for _, f := range found {
		b.Put("<li>{} {}{}", Code(f.RuleID), strings.TrimPrefix(f.Path+": ", ": "), f.Message)
		b.PutIf(f.Commit != "", " (commit {})", Code(f.Commit))
		b.Markup("</li>\n")
	}
	return b.Markup("</ul>\n</section>\n")
}

// diff is the patch, and the choice of how it is laid out: two radio buttons and style rules, without
// a script.
func (s *sheet) diff() {
	s.Markup("<section class=\"change\">\n<h2 id=\"diff\">The diff</h2>\n")
	defer s.Markup("</section>\n")
	switch {
	case s.o.Redact:
		s.Markup("<p>The diff is left out of these pages.</p>\n")
		return
	case s.t.patch == nil:
		s.Markup("<p>The patch cannot be read.</p>\n")
		return
	case s.t.proposal.PatchRedactedSHA256 != "":
		s.Markup("<p>The ledger keeps this patch without what looks like a secret: these are not all of the bytes that were decided about.</p>\n")
	}
	s.Markup("<fieldset class=\"layout\">\n<legend>Show what is removed and added</legend>\n<label><input type=\"radio\" name=\"layout\" id=\"unified\" checked> below each other</label>\n<label><input type=\"radio\" name=\"layout\" id=\"split\"> side by side</label>\n</fieldset>\n")
	from := s.Len()
	s.writeDiff(s.files)
	if bytes.Contains(s.b[from:], []byte(`class="hidden"`)) {
		s.Markup("<p class=\"note\">Marked escapes, such as <span class=\"hidden\">\\u202e</span>, stand for characters that do not show and for bytes that are no text.</p>\n")
	}
}
