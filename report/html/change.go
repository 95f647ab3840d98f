package html

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/view"
)

// wide begins a table that scrolls in a box of its own where the screen is narrow. The columns have
// these heads.
func (s *sheet) wide(label string, heads ...string) {
	s.Markup("<div class=\"wide\" tabindex=\"0\" role=\"region\"").Attribute("aria-label", label).Markup(">\n<table>\n<thead><tr>")
	for _, h := range heads {
		s.Markup("<th scope=\"col\">").Text(h).Markup("</th>")
	}
	s.Markup("</tr></thead>\n<tbody>\n")
}

func (s *sheet) endWide() { s.Markup("</tbody>\n</table>\n</div>\n") }

// row is a row of a table; each cell writes itself.
func (s *sheet) row(cells ...func()) {
	s.Markup("<tr>")
	for _, cell := range cells {
		s.Markup("<td>")
		cell()
		s.Markup("</td>")
	}
	s.Markup("</tr>\n")
}

// proposal is who wants what, and which bytes.
func (s *sheet) proposal() {
	t := s.t
	s.Markup("<section>\n<h2 id=\"proposal\">The proposal</h2>\n<dl>\n")
	s.fact("Proposed by", func() { s.person(t.Proposer); s.Text(", id ").Code(t.Proposer.ID) })
	s.fact("Proposed", func() { s.when(t.Proposed) })
	s.fact("Transaction", func() { s.Code(t.ID) })
	if p := t.proposal; p != nil {
		if p.Author != nil {
			s.fact("Author in the patch", func() { s.Text(p.Author.Name + " <" + p.Author.Email + ">, not verified") })
		}
		for _, one := range t.again {
			s.fact("Proposed too", func() {
				s.Text("by ")
				s.person(one.Proposer)
				s.Text(", id ").Code(one.Proposer.ID)
				s.Text(", as " + one.Input.Form())
			})
		}
		s.fact("SHA-256 of the diff", func() {
			s.sum(t.PatchID)
			if address := "patch/" + t.PatchID + "/index.html"; isLongHex(t.PatchID) && !s.o.Alone && s.o.Has != nil && s.o.Has(address) {
				s.Text(" ")
				s.here(address, "others proposed these bytes too")
			}
		})
		s.fact("Made for commit", func() { s.commit(p.BaseCommit) })
		if t.PullRequest > 0 {
			s.fact("Pull request", s.pull)
		}
		if p.Confidence != nil {
			s.fact("Confidence", func() { s.Text(itoa(*p.Confidence) + " of 100, by the proposer's own word") })
		}
		if len(t.Supersedes) > 0 {
			s.fact("Takes the place of", func() { s.transactions(t.Supersedes) })
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
	text := strings.TrimSpace(p.Message + "\n\n" + strings.Join(p.Declared, "\n"))
	s.Markup("<p>A commit of this change says, in the proposer's words, which nobody has verified:</p>\n<pre tabindex=\"0\" role=\"region\" aria-label=\"The proposer's message\"><code>")
	s.Lines(text)
	s.Markup("</code></pre>\n")
}

func (s *sheet) transactions(ids []string) {
	for i, id := range ids {
		if i > 0 {
			s.Text(", ")
		}
		address := ""
		if ledger.CheckID(id) == nil {
			address = "tx/" + id + ".html"
		}
		s.Markup("<code>")
		s.here(address, id)
		s.Markup("</code>")
	}
}

func (s *sheet) pull() {
	text := "#" + itoa(s.t.PullRequest)
	if r := s.t.Repository; r != nil {
		text = r.Name + text
	}
	s.Link(s.pullPage(), text)
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
		to.GitHub = strings.HasPrefix(at, "pull/"+itoa(s.t.PullRequest)+"#")
		to.Gitea = strings.HasPrefix(at, "pulls/"+itoa(s.t.PullRequest)+"#")
	}
	return to.Pull(s.t.PullRequest)
}

// risks are what a reader of the diff may overlook.
func (s *sheet) risks() {
	s.Markup("<section>\n<h2 id=\"risks\">Look at this first</h2>\n")
	list := s.t.risks
	if list != nil && s.t.noPolicy == "" {
		more := list.Under(s.t.policy, s.t.Paths)
		list = &more
	}
	switch {
	case list == nil:
		s.Markup("<p>The record lists no risks: it is of an earlier version, or cannot be read.</p>\n")
	case len(list.Risks)+len(list.More) == 0:
		s.Markup("<p>Nothing stood out.</p>\n")
	default:
		s.Markup("<ul class=\"risks\">\n")
		for _, r := range list.Risks {
			s.Markup("<li><strong>").Text(view.Upper(riskTitle(r.Kind))).Markup("</strong>: ")
			s.riskPath(r)
			if lines := numbers(r.Lines, r.More); lines != "" {
				s.Text(", " + map[bool]string{true: "line ", false: "lines "}[len(r.Lines) == 1 && r.More == 0] + lines)
			}
			s.riskDetail(r)
			s.Markup("</li>\n")
		}
		s.Markup("</ul>\n")
		for _, kind := range slices.Sorted(maps.Keys(list.More)) {
			s.Markup("<p>").Textf("And %d more of this kind: %s.", list.More[kind], riskTitle(kind)).Markup("</p>\n")
		}
	}
	s.Markup("</section>\n")
}

// riskDetail is more about a risk. That of some risks of lines has words of them.
func (s *sheet) riskDetail(r risk.Risk) {
	if s.o.Redact && len(r.Lines) > 0 && (r.Kind == risk.Lookalike || r.Kind == risk.Hidden) {
		s.Text(" (left out of these pages)")
	} else if r.Detail != "" {
		s.Text(" (" + r.Detail + ")")
	}
}

func (s *sheet) riskPath(r risk.Risk) {
	if r.From != "" {
		s.Code(r.From).Text(" → ")
	}
	if i := slices.IndexFunc(s.t.changes, func(c ledger.ItemChange) bool { return c.Path == r.Path }); i >= 0 && !s.o.Redact {
		s.Markup("<code>").Link("#file-"+itoa(i+1), r.Path).Markup("</code>")
		return
	}
	s.Code(cmp.Or(r.Path, "every file"))
}

// riskTitle is a kind of risk in words, or as the record has it where this program does not know it.
func riskTitle(k risk.Kind) string {
	if !ledger.KnownRisk(string(k)) {
		return string(k)
	}
	return ledger.RiskTitle(string(k))
}

func numbers(lines []int, more int) string {
	var out []string
	for _, n := range lines {
		out = append(out, strconv.Itoa(n))
	}
	text := strings.Join(out, ", ")
	if more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

// index is the list of files, each a link to its diff.
func (s *sheet) index() {
	if s.t.proposal == nil {
		return
	}
	s.Markup("<section>\n<h2 id=\"files\">").Text(ledger.Plural(len(s.t.changes), "file", "files")).Markup("</h2>\n<ul class=\"files\">\n")
	for _, f := range s.files {
		if f.Number <= len(s.t.changes) {
			s.indexed(f, s.t.changes[f.Number-1])
		}
	}
	if s.files == nil {
		for i, c := range s.t.changes {
			s.indexed(changedFile{Number: i + 1, Name: c.Path, Binary: true}, c)
		}
	}
	s.Markup("</ul>\n</section>\n")
}

// indexed is one file of the index.
func (s *sheet) indexed(f changedFile, c ledger.ItemChange) {
	s.Markup("<li><code>")
	if s.o.Redact {
		s.Text(f.Name)
	} else {
		s.Link("#file-"+itoa(f.Number), f.Name)
	}
	s.Markup("</code>").Text(" " + cmp.Or(f.Note, c.Kind) + " ")
	if !f.Binary {
		s.counts(f.Added, f.Deleted)
	}
	if s.o.Path != nil && !s.o.Alone && s.has(s.o.Path(c.Path)) {
		s.Text(" ")
		s.here(s.o.Path(c.Path), "history")
	}
	s.operation(c.Path)
	s.Markup("</li>\n")
}

// hashes are those of the files, before and after.
func (s *sheet) hashes() {
	p := s.t.proposal
	s.Markup("<details><summary>SHA-256 of each file, before and after</summary>\n")
	s.wide("Files", "File", "Before", "After")
	for _, c := range s.t.changes {
		s.row(func() { s.Code(c.Path) }, func() { s.hash(p.BaseSHA256[cmp.Or(c.From, c.Path)]) }, func() { s.hash(p.AfterSHA256[c.Path]) })
	}
	s.endWide()
	s.Markup("</details>\n")
}

func (s *sheet) hash(sum *string) {
	if sum == nil {
		s.Text("no file")
		return
	}
	s.Code(strings.TrimPrefix(*sum, "sha256:"))
}

// operation is what the ApplyResult says of a path that was not written.
func (s *sheet) operation(path string) {
	if s.t.result == nil {
		return
	}
	for _, op := range s.t.result.Operations {
		if op.Path == path && op.Status != result.StatusSuccess {
			s.Text(", " + string(op.Status))
			if op.Error != "" {
				s.Text(": " + op.Error)
			}
		}
	}
}

// rules are the Policy as it was, with what applied marked.
func (s *sheet) rules() {
	s.Markup("<section>\n<h2 id=\"policy\">The Policy as it was</h2>\n")
	if s.t.rules.Policy == "" {
		s.Markup("<p>It is not recorded, or cannot be read.</p>\n</section>\n")
		return
	}
	s.Markup("<p>")
	if s.t.rules.Found {
		s.Code(policy.Path).Text(" of commit ")
		s.commit(s.t.rules.Commit)
	} else {
		s.Text("The defaults: commit ")
		s.commit(s.t.rules.Commit)
		s.Text(" has no " + policy.Path)
	}
	s.Text(". SHA-256 of its canonical form: ")
	s.sum(strings.TrimPrefix(s.t.rules.SHA256, "sha256:"))
	s.Text(". What applied to this change is marked.").Markup("</p>\n")
	applied := s.applied()
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
		if applied[key] || key == "protected" && applied["protected["+itoa(rule)+"]"] {
			s.Markup("<mark>").Lines(line).Markup("</mark>")
		} else {
			s.Lines(line)
		}
	}
	s.Markup("</code></pre>\n")
	s.met()
	s.Markup("</section>\n")
}

// applied are the parts of the Policy that had a say.
func (s *sheet) applied() map[string]bool {
	out := map[string]bool{"approvals": true}
	if p := s.t.proposal; p != nil {
		out["secrets"] = p.ContainsSecrets
		for _, e := range s.t.policy.Explain(p.TargetFiles) {
			for _, met := range e.Rules {
				out[met.Rule] = true
			}
		}
	}
	out["commands"] = len(all[*ledger.CommandItem](s.t)) > 0
	out["apply"] = s.t.result != nil
	return out
}

// met says which paths met which rules.
func (s *sheet) met() {
	if s.t.proposal == nil {
		return
	}
	for _, e := range s.t.policy.Explain(s.t.proposal.TargetFiles) {
		for _, met := range e.Rules {
			s.Markup("<p>").Code(e.Path).Text(" is protected by ").Code(met.Rule).Text(" (").Code(met.Glob).Text("): " + ledger.Plural(met.Required, "approval", "approvals"))
			if who := (policy.Need{Users: met.Users, Teams: met.Teams, Owners: met.Owners}).People(); who != "" {
				s.Text(" by " + who)
			}
			s.Text(".").Markup("</p>\n")
		}
	}
}

func hexadecimal(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}
