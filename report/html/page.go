package html

import (
	"cmp"
	"crypto/sha256"
	"embed"
	_ "embed"
	"encoding/base64"
	"math"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

//go:embed templates
var files embed.FS

var templates = Templates(files, template.Funcs{
	"style": func() *Body { return &Body{style} }, "script": func(ours []byte) *Body { return &Body{ours} }, // a test holds that the styles have no <
	"cut": cut, "hidden": hidden, "digest": func(data []byte) *Body { return Code(canon.Hex(data)) },
	"sum": sum, "hex": func(sum any) string { return strings.TrimPrefix(sum.(string), "sha256:") }, "why": func(d *approval.Judged) string { return plain.Why(*d) },
	"met": view.Requirement.Met, "several": func(r view.Requirement) bool { return !r.Met() || r.Required > 1 },
	"oneLine": func(text string) string { return ledger.OneLine(text, 200) }, "commandLine": func(args []string) string { return "countersign " + strings.Join(args, " ") },
	"riskLines": func(r risk.Risk) string { return view.Lines(r.Lines, r.More, math.MaxInt) },
	"where":     view.Where, "didWhat": didWhat, "whom": func(m risk.Met) string {
		return policy.Need{Users: m.Users, Teams: m.Teams, Owners: m.Owners}.People()
	}, "unfinished": view.Unfinished, "stepSaid": view.StepSaid, "exit": exit, "form": lookup.Form, "requests": requests,
	"edited":     func(doc *approval.StatementDoc) bool { return doc.Statement.Edited || len(doc.Statement.Earlier) > 0 },
	"policyPath": func() string { return policy.Path }, "claimsHead": func() string { return view.ClaimsHead }, "everyFile": view.Whole,
	"failed": func(to ledger.Status) bool { return to == ledger.Failed }, "endedAs": endedAs, "approves": func(d ledger.Decision) bool { return d == ledger.Approve },
	"unnamed": func(doc *ledger.Findings) int { return max(0, len(doc.Violations)-3+doc.More) },
})

// Options are what a page is given beside its transaction.
type Options struct {
	Root  string // Head.Root
	Alone bool   // Head.Alone: a file to attach to a ticket, without links into the site
	Nav   []Link
	// Redact leaves out the diff and what commands printed.
	Redact bool
	// Decide is the address, from the root, of the page on which a passkey approves it, "" for none.
	Decide string
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
	T     Transaction
	O     Options
	Files []changedFile
}

// Page is the page.
func (t Transaction) Page(o Options) []byte {
	s := &sheet{T: t, O: o, Files: t.changedFiles()}
	title := cmp.Or(ledger.OneLine(t.Summary.Summary, 80), t.ID)
	return Layout(Head{
		Title: title + " · " + string(t.State), Root: o.Root, Alone: o.Alone, Nav: o.Nav, Footer: s.madeOf(),
	}, s.fill("page", s))
}

func (s *sheet) madeOf() string {
	text := "This page decides nothing. It was made of the record of " + s.T.ID
	if s.O.LedgerCommit != "" {
		text += ", as " + cmp.Or(s.O.LedgerRef, "the ledger") + " has it in commit " + s.O.LedgerCommit
	}
	return text + "."
}

// fill is a template of this page.
func (s *sheet) fill(name string, data any) *Body {
	return Fill(templates, name, data, template.Funcs{
		"findings": Findings, "sound": s.T.Sound, "class": s.T.Class,
		"events": func() bool { return len(s.T.events) > 0 }, "waits": func() bool { return s.T.State == plain.Waits },
		"gateOnly": func() bool { return s.T.Kind == ledger.KindPullRequest },
		"redacted": func() bool { return s.T.Proposal != nil && s.T.Proposal.PatchRedactedSHA256 != "" },
		"person":   s.person, "commit": s.commit, "pull": s.pull, "transaction": s.transaction, "web": s.web, "quoting": s.quoting,
		"total": s.total, "section": s.section, "riskDetail": s.riskDetail, "history": s.history, "samePatch": s.samePatch, "unwritten": s.unwritten,
		"decisions": func() []*ledger.ApprovalDecision { return all[*ledger.ApprovalDecision](s.T) },
		"decide":    func() string { return s.O.Decide }, "said": s.said, "decided": s.decided, "judged": s.judged, "redact": func() bool { return s.O.Redact },
		"step":       func() []view.Step { return s.T.View.Next[:min(len(s.T.View.Next), 1)] },
		"comparison": s.compare, "diff": s.diff, "timeline": s.timeline, "claims": s.claims,
		"statement":  func(path string) *approval.StatementDoc { return aside[approval.StatementDoc](s.T, path) },
		"findingsOf": func(path string) *ledger.Findings { return aside[ledger.Findings](s.T, path) },
		"merge":      func(path string) *approval.Merge { return cmp.Or(aside[approval.Merge](s.T, path), &approval.Merge{}) },
		"posted":     func(path string) *forge.PostedDoc { return aside[forge.PostedDoc](s.T, path) },
		"commands":   s.commands, "printed": s.printed, "validations": s.validations,
		"policyParts": s.policyParts, "protected": s.protected, "trace": func() []*ledger.TraceItem { return all[*ledger.TraceItem](s.T) }, "checks": s.checks,
	})
}

var tones = map[plain.Tone]string{plain.ToneBad: "bad", plain.ToneGood: "good", plain.ToneOpen: "waits"}

// Class is the class of the style sheet that colours a transaction: good, bad, waits or over.
// Nothing that does not verify has the colour of what is approved.
func (s Summary) Class() string { return cmp.Or(tones[s.Tone], "over") }

//go:embed style.css
var style []byte

// StyleFile is the name of the one style sheet, at the root of a site.
const StyleFile = "style.css"

// Style is the style sheet.
func Style() []byte { return style }

//go:embed favicon.svg
var icon []byte

// IconFile is the name of the picture that browsers show beside a title, at the root of a site.
const IconFile = "favicon.svg"

// Icon is that picture.
func Icon() []byte { return icon }

// A Link is an address, relative to the site's root, and its words.
type Link struct{ Address, Text string }

// A Head is what a page has around its body.
type Head struct {
	Title string
	// Root is the way from the page to the site's root, such as "../../", "" at the root.
	Root string
	// Alone is a page that is one file: its styles are in it, and nothing else.
	Alone bool
	// Here is the address, from the root, of the link of Nav that the page is.
	Here string
	Nav  []Link
	// Scripts are the addresses, from the root, of the scripts that the page runs. Without
	// any, the page's policy allows none.
	Scripts []string
	// Script is a script that stands in the page itself, at its end. It must be one of ours, and
	// have no "</" in it.
	Script []byte
	// Policy takes the place of the Content-Security-Policy, for a page that needs another.
	Policy string
	// Footer is a line at the end: what the page was made of.
	Footer string
}

// Layout is a whole page. Its policy allows the site's own style sheet and icon, or the hash of the
// styles in the page, the site's own scripts where there are any, and nothing else from anywhere.
func Layout(h Head, body *Body) []byte {
	return Fill(templates, "layout", struct {
		Head
		Allows string
		Main   *Body
	}{h, h.ContentSecurityPolicy(), body}, nil).b
}

// Findings are what was found against a record, or a whole ledger.
func Findings(title, lead string, found []history.Finding) *Body {
	return Fill(templates, "findings", struct {
		Title, Lead string
		Found       []history.Finding
	}{title, lead, found}, nil)
}

// ContentSecurityPolicy is the policy of a page, for those who serve it to send as a header as
// well.
func (h Head) ContentSecurityPolicy() string {
	if h.Policy != "" {
		return h.Policy
	}
	parts := []string{"default-src 'none'", "style-src 'self'; img-src 'self'"}
	if h.Alone {
		parts[1] = "style-src '" + HashSource(style) + "'"
	}
	switch {
	case len(h.Script) > 0:
		parts = append(parts, "script-src '"+HashSource(h.Script)+"'")
	case len(h.Scripts) > 0:
		parts = append(parts, "script-src 'self'")
	}
	return strings.Join(append(parts, "base-uri 'none'", "form-action 'none'"), "; ")
}

// HashSource is how a policy names a script or styles that stand in the page.
func HashSource(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
