package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/result"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/view"
)

// wide begins a table that scrolls in a box of its own where the screen is narrow. The columns have
// these heads.
func (b *Body) wide(label string, heads ...string) {
	b.Put("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n<table>\n", label).Heads(heads...)
}

// Heads are the first row of a table, whose body they begin.
func (b *Body) Heads(heads ...string) {
	b.Markup("<thead><tr>")
	for _, h := range heads {
		b.Put("<th scope=\"col\">{}</th>", h)
	}
	b.Markup("</tr></thead>\n<tbody>\n")
}

func (b *Body) endWide() { b.Markup("</tbody>\n</table>\n</div>\n") }

// row is a row of a table.
func (b *Body) row(cells ...any) {
	b.Markup("<tr>")
	for _, cell := range cells {
		b.Put("<td>{}</td>", cell)
	}
	b.Markup("</tr>\n")
}

// proposal is who wants what, and which bytes.
func (s *sheet) proposal() {
	t := s.t
	s.Markup("<section>\n<h2 id=\"proposal\">The proposal</h2>\n<dl>\n")
	s.Fact("Proposed by", Part("{}, id {}", s.person(t.Proposer), Code(t.Proposer.ID)))
	s.Fact("Proposed", When(t.Proposed))
	s.Fact("Transaction", Code(t.ID))
	if p := t.proposal; p != nil {
		if p.Author != nil {
			s.Fact("Author in the patch", p.Author.Name+" <"+p.Author.Email+">, not verified")
		}
		for _, one := range t.again {
			s.Fact("Proposed too", Part("by {}, id {}, as {}", s.person(one.Proposer), Code(one.Proposer.ID), lookup.Form(one.Input)))
		}
		these := sum(t.PatchID)
		if address := "patch/" + t.PatchID + "/index.html"; isLongHex(t.PatchID) && !s.o.Alone && s.o.Has != nil && s.o.Has(address) {
			these.Put(" {}", s.here(address, "others proposed these bytes too"))
		}
		s.Fact("SHA-256 of the diff", these)
		s.Fact("Made for commit", s.commit(p.BaseCommit))
		if t.PullRequest > 0 {
			s.Fact("Pull request", s.pull())
		}
		if p.Confidence != nil {
			s.Fact("Confidence", Part("{} of 100, by the proposer's own word", *p.Confidence))
		}
		if len(t.Supersedes) > 0 {
			s.Fact("Takes the place of", s.transactions(t.Supersedes))
		}
	}
	s.Markup("</dl>\n")
	s.claims()
	s.Markup("</section>\n")
}

// claims are what a commit of the change says in its proposer's words.
func (s *sheet) claims() {
	p := s.t.proposal
	if p == nil || p.Message == "" && len(p.Declared) == 0 {
		return
	}
	s.Put("<p>{}</p>\n<pre tabindex=\"0\" role=\"region\" aria-label=\"The proposer's message\"><code>", view.ClaimsHead)
	s.Lines(strings.Join(view.Claims(p.Message, p.Declared), "\n")).Markup("</code></pre>\n")
}

func (s *sheet) transactions(ids []string) *Body {
	b := new(Body)
	for i, id := range ids {
		b.PutIf(i > 0, ", ")
		address := ""
		if ledger.CheckID(id) == nil {
			address = "tx/" + id + ".html"
		}
		b.Put("<code>{}</code>", s.here(address, id))
	}
	return b
}

func (s *sheet) pull() *Body {
	text := "#" + strconv.Itoa(s.t.PullRequest)
	if r := s.t.Repository; r != nil {
		text = r.Name + text
	}
	return To(s.pullPage(), text)
}

// pullPage is the address of the pull request's page, "" for none. Where it is not known what kind of forge
// that is, the address of a decision there tells it.
func (s *sheet) pullPage() string {
	to := s.o.Links
	for _, d := range all[*ledger.ApprovalDecision](s.t) {
		at, on := strings.CutPrefix(d.Source.URL, to.Web+"/")
		if to.Pull(s.t.PullRequest) != "" || !on {
			continue
		}
		to.GitHub = strings.HasPrefix(at, fmt.Sprintf("pull/%d#", s.t.PullRequest))
		to.Gitea = strings.HasPrefix(at, fmt.Sprintf("pulls/%d#", s.t.PullRequest))
	}
	return to.Pull(s.t.PullRequest)
}

// risks are what a reader of the diff may overlook.
func (s *sheet) risks() {
	s.Markup("<section>\n<h2 id=\"risks\">Look at this first</h2>\n")
	switch groups := s.t.view.Risks; {
	case s.t.risks == nil:
		s.Markup("<p>The record has no list of risks, or one that cannot be read.</p>\n")
	case len(groups) == 0:
		s.Markup("<p>Nothing stood out.</p>\n")
	default:
		s.Markup("<ul class=\"risks\">\n")
		for _, g := range groups {
			for _, r := range g.Risks {
				lines := strings.TrimSuffix(", "+view.Lines(r.Lines, r.More, math.MaxInt), ", ")
				s.Put("<li><strong>{}</strong>: {}{}{}</li>\n", view.Upper(g.Title), s.riskPath(r), lines, s.riskDetail(r))
			}
		}
		s.Markup("</ul>\n")
		for _, g := range groups {
			s.PutIf(g.More > 0, "<p>And {} more of this kind: {}.</p>\n", g.More, g.Title)
		}
	}
	s.Markup("</section>\n")
}

// riskDetail is more about a risk. That of some risks of lines has words of them.
func (s *sheet) riskDetail(r risk.Risk) string {
	if s.o.Redact && len(r.Lines) > 0 && (r.Kind == risk.Lookalike || r.Kind == risk.Hidden) {
		r.Detail = "left out of these pages"
	}
	if r.Detail == "" {
		return ""
	}
	return " (" + r.Detail + ")"
}

func (s *sheet) riskPath(r risk.Risk) *Body {
	b := new(Body)
	b.PutIf(r.From != "", "{} → ", Code(r.From))
	if i := slices.IndexFunc(s.t.view.Files, func(f view.File) bool { return f.Path == r.Path }); i >= 0 && !s.o.Redact {
		return b.Put("<code><a href=\"#file-{}\">{}</a></code>", i+1, r.Path)
	}
	return b.Put("{}", Code(cmp.Or(r.Path, view.EveryFile)))
}

// index is the list of files, each a link to its diff.
func (s *sheet) index() {
	if s.t.proposal == nil {
		return
	}
	s.Put("<section>\n<h2 id=\"files\">{}</h2>\n<ul class=\"files\">\n", ledger.Plural(len(s.t.view.Files), "file", "files"))
	for _, f := range s.files {
		if f.Path != "" {
			s.indexed(f)
		}
	}
	s.Markup("</ul>\n</section>\n")
}

// indexed is one file of the index.
func (s *sheet) indexed(f changedFile) {
	if s.o.Redact {
		s.Put("<li>{}", Code(f.Name))
	} else {
		s.Put("<li><code><a href=\"#file-{}\">{}</a></code>", f.Number, f.Name)
	}
	s.Put(" {} ", cmp.Or(f.Note, f.Kind))
	if !f.Binary {
		s.Add(counts(f.Added, f.Deleted))
	}
	if s.o.Path != nil && !s.o.Alone && s.has(s.o.Path(f.Path)) {
		s.Put(" {}", s.here(s.o.Path(f.Path), "history"))
	}
	if s.t.result != nil {
		for _, op := range s.t.result.Operations { // why it was not written
			if op.Path == f.Path && op.Status != result.StatusSuccess {
				s.Text(strings.TrimSuffix(", "+string(op.Status)+": "+op.Error, ": "))
			}
		}
	}
	s.Markup("</li>\n")
}

func hash(sum *string) *Body {
	if sum == nil {
		return Part("no file")
	}
	return Code(strings.TrimPrefix(*sum, "sha256:"))
}

// rules are the Policy as it was, with what applied marked.
func (s *sheet) rules() {
	s.Markup("<section>\n<h2 id=\"policy\">The Policy as it was</h2>\n")
	if s.t.rules.Policy == "" {
		s.Markup("<p>It is not recorded, or cannot be read.</p>\n</section>\n")
		return
	}
	read := Part("{} of commit {}", Code(policy.Path), s.commit(s.t.rules.Commit))
	if !s.t.rules.Found {
		read = Part("The defaults: commit {} has no {}", s.commit(s.t.rules.Commit), policy.Path)
	}
	s.Put("<p>{}. SHA-256 of its canonical form: {}. What applied to this change is marked.</p>\n", read, sum(strings.TrimPrefix(s.t.rules.SHA256, "sha256:")))
	applied := map[string]bool{"approvals": true, "commands": len(all[*ledger.CommandItem](s.t)) > 0, "apply": s.t.result != nil}
	met := new(Body) // which paths met which rules
	if p := s.t.proposal; p != nil {
		applied["secrets"] = p.ContainsSecrets
		for _, e := range plain.Explain(s.t.policy, p.TargetFiles) {
			for _, m := range e.Rules {
				applied[m.Rule] = true
				met.Put("<p>{} is protected by {} ({}): {}", Code(e.Path), Code(m.Rule), Code(m.Glob), ledger.Plural(m.Required, "approval", "approvals"))
				who := (policy.Need{Users: m.Users, Teams: m.Teams, Owners: m.Owners}).People()
				met.PutIf(who != "", " by {}", who).Markup(".</p>\n")
			}
		}
	}
	s.Markup("<pre class=\"policy\" tabindex=\"0\" role=\"region\" aria-label=\"The Policy\"><code>")
	key, rule := "", -1
	for line := range strings.Lines(s.t.written) {
		switch {
		case strings.HasPrefix(line, "- "):
			rule++
		case !strings.HasPrefix(line, " "):
			key, _, _ = strings.Cut(line, ":")
			rule = -1
		}
		if applied[key] || key == "protected" && applied[fmt.Sprintf("protected[%d]", rule)] {
			s.Markup("<mark>").Lines(line).Markup("</mark>")
		} else {
			s.Lines(line)
		}
	}
	s.Put("</code></pre>\n{}</section>\n", met)
}
