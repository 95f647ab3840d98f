package report

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

//go:embed markdown
var markdownFiles embed.FS

// Markdown is the report for a job summary or a check run, of at most
// MaxCheckText bytes: verdict and failures first.
func (r Report) Markdown() string {
	p := newPage(MaxCheckText)
	r.write(p, Links{})
	return p.String()
}

// write puts the report on a page as a person reads it: how it stands, what went
// wrong, who wants what and why, what may be overlooked, what there is to answer;
// of a change that is over, what became of it. Ids and hashes are folded below.
func (r Report) write(p *page, to Links) {
	if r.verdict().BreakGlass {
		p.write(caution("**" + glassWarning + ".** " + words(reasonOf(r.Verdict))))
	}
	p.write("### " + r.headline(to) + "\n\n")
	if r.isStory() {
		text := r.wants(true)
		if to.Thread != "" {
			text += "It was decided in " + link("the request", to.Thread) + ". "
		}
		p.write(strings.TrimSpace(text+r.record()) + "\n\n")
		p.folded("Risks, ids, decisions and files", func(p *page) {
			p.write(r.risks(p.left, to))
			p.write(r.drift(to) + r.facts(to))
			r.writeDecisions(p)
			p.list(r.files(500))
		})
		return
	}
	asked := to.Thread != "" && r.waits() // where all that there is to read stands
	first := r.wants(false) + r.drift(to)
	about := r.risks(p.left-len(first), to) + r.claimsBlock()
	if !asked {
		first += about
	}
	failures := newPage(p.left - len(first))
	r.writeFailures(failures)
	p.write(failures.String() + first)
	diff := r.hunks(r.Diff, min(p.left-len(r.asks(to, false)), maxDiff))
	shown := len(r.Diff) > 0 && !diff.cut()
	if shown {
		p.write(diff.text)
	}
	p.write(r.asks(to, shown))
	r.writeDecisions(p)
	if r.waits() {
		p.write(r.effect())
	} else if record := r.record(); record != "" {
		p.write(record + "\n\n")
	}
	if !asked && !shown {
		p.list(r.files(500))
	}
	p.folded("Ids, hashes and the ledger", func(p *page) {
		if asked {
			p.write("These lines count anywhere on the pull request:\n\n" + r.lines(r.missing()))
			p.write(about)
			p.list(r.files(500))
		}
		p.write(r.facts(to))
	})
}

// wants says who wants what, and why in their own words. A person's account of a forge that hands in
// more than a pull request's own diff does so for an agent, of which the record has no name but the
// one that a patch may say.
func (r Report) wants(over bool) string {
	verb := map[bool]string{true: "wanted to ", false: "wants to "}[over]
	switch {
	case r.GateOnly:
		verb += "merge"
	case r.Proposer.Kind == "user" && !strings.HasPrefix(r.Proposer.ID, "local:"):
		verb = map[bool]string{true: "handed in a change to", false: "hands in a change to"}[over]
	default:
		verb += "change"
	}
	return r.paragraph("wants", Links{}, template.Funcs{"verb": template.Raw(func() string { return verb })})
}

// record leads to the transaction's page in the ledger, where a server has it.
func (r Report) record() string {
	const words = "Full record and how to check it"
	to := link(words, r.Record)
	if to == words {
		return ""
	}
	if r.LedgerWeb != "" {
		to += " (in another repository, for those who may read that)"
	}
	return to
}

// linked is the transaction's id, which leads to its record where a server has that.
func (r Report) linked() string {
	if ledger.CheckID(r.TransactionID) != nil {
		return name(r.TransactionID)
	}
	return link(code(r.TransactionID), r.Record)
}

// isStory reports whether a change is over, and nothing went wrong.
func (r Report) isStory() bool {
	failed := r.ApplyResult != nil && r.ApplyResult.Outcome != ledger.OutcomeSuccess || r.Validation != nil && !r.Validation.OK
	return over(r) && r.Status != ledger.Failed && !failed
}

// glassWarning is what each report of a broken glass begins with.
const glassWarning = "BREAK-GLASS: this change does not have the approvals that the Policy asks for"

// caution and warning are boxes that stand out (GitHub's alerts).
func caution(text string) string { return "> [!CAUTION]\n> " + text + "\n\n" }
func warning(text string) string { return "> [!WARNING]\n> " + text + "\n\n" }

// headline is where it stands, in Markdown. A proposal and the pull request's own diff may be in one
// comment.
func (r Report) headline(to Links) string {
	text := r.says(words, to.short(r.AppliedCommit))
	if len(to.before) > 0 && r.needed() != "" && r.View().Lapsed == nil {
		text = words(view.List(to.before)) + noMore + "this patch took the place of that one"
	}
	switch {
	case r.GateOnly:
		return "Countersign (the pull request itself): " + text
	case r.isStory() && r.View().Banner.Tone == plain.ToneGood:
		return text
	}
	return "Countersign: " + text
}

const noMore = " did approve, which counts no more: "

// Headline is how it stands, in a line of plain text that is safe to show.
func (r Report) Headline() string {
	return r.says(Clean, r.AppliedCommit[:min(12, len(r.AppliedCommit))])
}

// says says how it stands: what is missing, or why an approval counts no more, else the view's title. show makes
// foreign text safe.
func (r Report) says(show func(string) string, commit string) string {
	v, needed := r.View(), r.needed()
	switch {
	case needed == "" && commit != "" && r.State.Tone() == plain.ToneGood:
		if by := view.List(v.Approvers(false)); by != "" && v.Banner.Tone == plain.ToneGood {
			return view.Upper(string(r.State)) + ": " + commit + ", approved by " + show(by+v.Asked())
		}
		return show(v.Banner.Title) + ": " + commit
	case needed == "":
		return show(v.Banner.Title)
	case v.Lapsed != nil:
		return show(v.Lapsed.By.Login) + noMore + show(v.Lapsed.Why)
	}
	return string(plain.Waits) + ": " + needed
}

// needed is what approvals are missing, "" where none are waited for.
func (r Report) needed() string {
	if r.State != plain.Waits {
		return ""
	}
	return r.View().Needs()
}

// facts are which bytes these are, and where they stand.
func (r Report) facts(to Links) string { return r.paragraph("facts", to, nil) }

// paragraphs are the templates of Markdown. Foreign text is prose in them, if it is not code.
var paragraphs = sync.OnceValue(func() *template.Set {
	return template.Parse(markdownFiles, func(out []byte, value any) []byte {
		if text, is := value.(string); is {
			value = template.Safe(words(text))
		}
		return append(out, shown(value)...)
	}, template.Funcs{
		"name": template.Raw(name), "code": template.Raw(code), "copied": template.Raw(lineBlock), "codes": template.Raw(codes), "link": template.Raw(link),
		"unquoted": unquoted, "from": from, "plus": func(a, b string) string { return a + b }, "counted": Counted, "atLeast": func(n int) int { return max(1, n) },
		"one": template.Raw(view.One), "several": func(needs []view.Requirement) bool { return len(unsigned(needs)) > 1 }, "signs": signs, "unsigned": unsigned,
		"approveKind": func(kind string) string { return strings.TrimSpace("/approve " + policy.Word(kind)) },
		"severally":   func(n policy.Need) bool { return n.Required > 1 },
		"age":         func(d policy.Duration) string { return age(time.Duration(d)) }, "drift": template.Raw(driftRow),
	})
})

// paragraph is a template of Markdown about the report.
func (r Report) paragraph(of string, to Links, more template.Funcs) string {
	funcs := template.Funcs{
		"linked": template.Raw(r.linked), "commit": template.Raw(to.commit), "record": template.Raw(r.record), "whole": template.Raw(r.whole), "sign": template.Raw(r.sign),
		"ledgerCommit": template.Raw(func() string { return Links{Web: cmp.Or(r.LedgerWeb, to.Web)}.commit(r.LedgerCommit) }),
		"patchID":      func() string { return strings.TrimPrefix(r.Fingerprint, "patchset:") }, "author": r.author, "further": r.further,
		"filesLine": template.Raw(r.filesLine), "missing": r.missing, "thread": func() string { return to.Thread },
	}
	maps.Copy(funcs, more)
	return string(paragraphs().Fill(nil, of, r, funcs))
}

// writeFailures lists what is wrong: broken rules, then operations that failed.
func (r Report) writeFailures(p *page) {
	if wrong := r.applied().Error; wrong != "" {
		p.write("**Error:** " + words(wrong) + "\n\n")
	}
	p.list(list{"| rule | where | what |\n|---|---|---|\n", each(r.violations(), func(v canon.Violation) string {
		return fmt.Sprintf("| %s | %s | %s |\n", name(v.RuleID), name(v.Path), words(v.Message))
	}), 100, "violation", r.seeAll()})
	if len(r.failed()) > 0 {
		p.list(list{"| | file | result |\n|---|---|---|\n", each(r.Operations(), func(o ledger.Operation) string {
			return fmt.Sprintf("| %s | %s | %s |\n", words(o.Op), name(o.Path), strings.TrimSuffix(string(o.Status)+": "+words(o.Error), ": "))
		}), 100, "operation", r.seeAll()})
	}
}

func (r Report) seeAll() string {
	return ", " + r.whole("show --json") + " has all"
}

// files are the changed files.
func (r Report) files(most int) list {
	return list{"", each(r.View().Files, func(f File) string { return "- " + name(f.Path) + " " + fileText(f, name) + "\n" }), most, "file", r.seeAll()}
}

// failed are the operations that did.
func (r Report) failed() []ledger.Operation {
	return slices.DeleteFunc(r.Operations(), func(o ledger.Operation) bool { return o.Status != ledger.StatusError })
}

// writeDecisions lists who said what, and whether it counted.
func (r Report) writeDecisions(p *page) {
	decisions := slices.Clone(r.verdict().Decisions)
	if lapsed := r.View().Lapsed; lapsed != nil && r.needed() != "" { // the headline says it
		decisions = slices.Delete(decisions, lapsed.Number, lapsed.Number+1)
	}
	p.list(list{"| decision | by | counted |\n|---|---|---|\n", each(decisions, func(d approval.Judged) string {
		counted := "yes"
		if !d.Counted {
			counted = "no: " + words(plain.Why(d))
		}
		return fmt.Sprintf("| %s | %s | %s |\n", said(d), name(d.Author.Login), counted)
	}), 200, "decision", r.seeAll()})
	// Those who pressed the green button are told what counts instead.
	native := func(d approval.Judged) bool {
		return !d.Counted && d.Source == approval.KindReview && d.Decision != ledger.Deny
	}
	if r.waits() && !r.GateOnly && slices.ContainsFunc(r.verdict().Decisions, native) {
		p.write("A review is about the pull request as it stands, not about this change. To decide about this change, answer as is said above.\n\n")
	}
}

// said names a decision; what only looks like one has no name.
func said(d approval.Judged) string {
	switch {
	case d.Decision == "" && d.Source == approval.KindReview:
		return "review"
	case d.Decision == "":
		return "unclear"
	}
	prefix, _, _ := strings.Cut(d.Fingerprint, "patchset:")
	return words(string(d.Decision)) + map[string]string{"secret:": " (secret)", "protected:": " (protected paths)"}[prefix]
}

// waits reports whether people on a pull request are asked now.
func (r Report) waits() bool {
	return r.Ended == "" && r.PullRequest > 0 && r.verdict().State == approval.Pending
}

// missing lists the fingerprints that still lack an approval, each once.
func (r Report) missing() []view.Requirement {
	return view.Missing(r.View().Requirements)
}

// maxDiff bounds the diff that is shown where there is no request.
const maxDiff = 16 << 10

// asks says how to answer while approvals are missing: in the thread of the
// request, which binds a short answer to these bytes, or with the lines to copy.
// shown tells that the diff stands above.
func (r Report) asks(to Links, shown bool) string {
	if !r.waits() {
		return ""
	}
	return r.paragraph("asks", to, template.Funcs{"shown": func() bool { return shown }})
}

// effect says what comes of approvals, and where the record is.
func (r Report) effect() string { return r.paragraph("effect", Links{}, nil) }

// short is a table of what to type in the request's own thread.
func (r Report) short(needs []view.Requirement) string {
	return r.paragraph("short", Links{}, template.Funcs{"missing": func() []view.Requirement { return needs }})
}

func unsigned(needs []view.Requirement) []view.Requirement {
	return slices.DeleteFunc(slices.Clone(needs), func(n view.Requirement) bool { return n.Signed })
}

// lines are the answers that name the bytes, which count anywhere on the pull request.
func (r Report) lines(needs []view.Requirement) string {
	var text string
	for _, n := range unsigned(needs) {
		text += "/approve " + Clean(n.Fingerprint) + "\n"
	}
	return fenced("text", text+"/deny "+Clean(r.Fingerprint)) + "\n"
}

// signs reports whether a signed approval is among them, and sign is the command that makes one.
func signs(needs []view.Requirement) bool {
	return slices.ContainsFunc(needs, func(n view.Requirement) bool { return n.Signed })
}

func (r Report) sign() string {
	return code(fmt.Sprintf("countersign sign --pr %d --post", r.PullRequest))
}

// Links are the addresses that a comment can lead to. Without one a name stands
// as it is.
type Links struct {
	Web    string // of the repository on the forge, such as https://github.com/acme/app
	Thread string // of the request in which people answer
	Policy PolicyFile
	before []string // who approved the patch whose place this one took
}

// A PolicyFile is where people can read the Policy: the commit that has it, "" for
// none, and the lines at which its parts begin (plain.Lines).
type PolicyFile struct {
	Commit string
	Lines  map[string]int
}

// WebOf is Links.Web of a repository that is cloned from an address.
func WebOf(cloneURL string) string { return strings.TrimSuffix(cloneURL, ".git") }

// page is the address of a page of the repository, "" where that is not known, or one of these is no commit.
func (l Links) page(path string, commits ...string) string {
	if l.Web == "" || slices.ContainsFunc(commits, func(id string) bool { return !canon.IsGitID(id) }) {
		return ""
	}
	return l.Web + "/" + path
}

// commit is a commit: by its first letters if it leads somewhere.
func (l Links) commit(id string) string {
	if l.page("", id) == "" {
		return name(id)
	}
	return l.short(id)
}

// short is a commit by its first letters, "" for none.
func (l Links) short(id string) string {
	if !canon.IsGitID(id) {
		return name(id)
	}
	return link(code(id[:12]), l.page("commit/"+id))
}

// policy is the Policy's file.
func (l Links) policy() string {
	return link("the Policy", l.page("blob/"+l.Policy.Commit+"/"+policy.Path, l.Policy.Commit))
}

// rule is a part of the Policy by its name, such as protected[0].
func (l Links) rule(part string) string {
	line := l.Policy.Lines[part]
	if line == 0 {
		return prose(part)
	}
	return link(prose(part), l.page(fmt.Sprintf("blob/%s/%s#L%d", l.Policy.Commit, policy.Path, line), l.Policy.Commit))
}

// compare leads to what differs between two commits; without an address it is the
// command that shows it.
func (l Links) compare(from, to string) string {
	if at := l.page("compare/"+from+".."+to, from, to); at != "" {
		return link("compare", at)
	}
	return name("git diff " + from + " " + to)
}

// claimsBlock are the claims in Markdown.
func (r Report) claimsBlock() string {
	all := view.Claims(r.Message, r.Declared)
	if len(all) == 0 {
		return ""
	}
	shown := all[:min(len(all), maxClaims)]
	text := view.Joined(shown, "\n", func(line string) string { return Clean(shorten(line)) })
	return view.ClaimsHead + "\n\n" + fenced("text", text) + list{noun: "line", all: r.seeAll()}.missing(len(all)-len(shown))
}
