package v1

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// readRisks reads what a reader of the patch may overlook.
func (p *page) readRisks() (doc risks, err error) {
	err = fs.ErrNotExist
	for _, a := range each[*ledger.ArtifactStored](p) {
		if a.Kind == ledger.KindRisks {
			doc, err = read[risks](p.dir, a.Path)
		}
	}
	return doc, err
}

// risks are those that the review recorded, and what people were asked for besides: the Policy may protect more by then.
func (p *page) risks() {
	doc, unread := p.readRisks()
	p.writef("## Risks\n\n")
	said := false
	for _, kind := range []string{"protected_path", "secrets_override"} {
		of := map[string]string{"protected_path": "protected", "secrets_override": "secret"}[kind]
		listed := doc.has(of)
		if !listed && slices.ContainsFunc(each[*ledger.ApprovalRequest](p), func(q *ledger.ApprovalRequest) bool { return q.Kind == kind }) {
			p.writef("- **%s**: an approval of its %s was asked for\n", riskTitle(of), whats[kind])
			said = true
		}
	}
	for _, r := range doc.Risks[:min(len(doc.Risks), maxPageRows)] {
		p.writef("- **%s**: %s", riskTitle(r.Kind), name(cmp.Or(r.Path, "every file")))
		if r.Detail != "" {
			p.writef(" (%s)", words(r.Detail))
		}
		p.writef("\n")
	}
	if more := max(len(doc.Risks)-maxPageRows, 0) + doc.more(); more > 0 {
		p.writef("- and %d more\n", more)
	}
	switch {
	case unread != nil:
		p.writef("%sNone are recorded.\n", map[bool]string{true: "\n"}[said])
	case len(doc.Risks)+doc.more() == 0 && !said:
		p.writef("None found.\n")
	}
	p.writef("\n")
}

// requirements are what was asked for, who answered, and how strong that is. Whether an answer counts, the Policy
// tells, which is not read here.
func (p *page) requirements() {
	asked, answers := each[*ledger.ApprovalRequest](p), map[string]*ledger.ApprovalDecision{}
	for _, d := range each[*ledger.ApprovalDecision](p) {
		answers[d.ApprovalRequestID] = d
	}
	open := !p.tx.Closed && p.tx.Status != ledger.Applied
	if len(asked) > 0 {
		p.writef("| asked for | answered by | how strong |\n|---|---|---|\n")
	}
	for _, q := range asked[:min(len(asked), maxPageRows)] {
		what := cmp.Or(whats[q.Kind], name(q.Kind))
		switch d := answers[q.ApprovalRequestID]; {
		case d == nil && open:
			p.writef("| ○ %s | nobody yet | |\n", what)
		case d == nil:
			p.writef("| ○ %s | nobody | |\n", what)
		default:
			p.writef("| %s %s | %s | %s |\n", map[bool]string{true: "✓", false: "✗"}[d.Decision == ledger.Approve], what, p.answer(d), p.proof(d.Source))
		}
	}
	if more := len(asked) - maxPageRows; more > 0 {
		p.writef("\nand %d more in [%s](%[2]s).\n", more, ledger.EventsFile)
	}
	var rests []string
	if all := each[*ledger.ApplyStart](p); len(all) > 0 {
		for _, a := range all[len(all)-1].Approvals {
			rests = append(rests, fmt.Sprintf("%s (%s)", cmp.Or(whats[a.Kind], name(a.Kind)), plural(a.Required, "approval", "approvals")))
		}
	}
	switch {
	case len(rests) > 0:
		p.writef("\nBy the Policy of that time, the apply rests on %s.\n", strings.Join(rests, ", "))
	case open && len(answers) > 0:
		p.writef("\nWhether these still count, and are enough, is asked again when the change is applied or merged.\n")
	}
	if p.stands() == waits {
		p.writef("\nTo answer, in a clone: `countersign approve %s`, or `deny`", p.tx.TransactionID[len(p.tx.TransactionID)-7:])
		if text := p.pullText(); text != "" {
			p.writef("; or on %s", text)
		}
		p.writef(".\n")
	}
	p.writef("\n")
}

// answer is who decided, when, where and why.
func (p *page) answer(d *ledger.ApprovalDecision) string {
	text := account(d.Source.Author) + ", " + clock(d.Source.CreatedAt)
	if web := webOf(d.Source.URL, p.proposal.Repository); web != "" {
		text += ", " + linkOn(cmp.Or(wheres[d.Source.Kind], name(d.Source.Kind)), web, d.Source.URL)
	}
	if d.Reason != "" {
		text += ": " + words(d.Reason)
	}
	return text
}

// proof is how much a decision proves.
func (p *page) proof(s ledger.Source) string {
	text := proves(s)
	if slices.ContainsFunc(p.proposers, func(a ledger.Actor) bool { return a.Kind == s.Author.Kind && a.ID == s.Author.ID }) {
		text = "the proposer themself, " + text
	}
	if s.Signature != nil {
		text += ", " + name(shortenTo(s.Signature.KeyFingerprint, 19))
	}
	return text
}

// allProposers are those of these bytes, as far as their artifacts can be read.
func (p *page) allProposers() []ledger.Actor {
	out := []ledger.Actor{p.meta.Proposer}
	for _, a := range each[*ledger.ArtifactStored](p) {
		switch a.Kind {
		case ledger.KindAgain:
			if from, err := read[ledger.Provenance](p.dir, a.Path); err == nil {
				out = append(out, from.Proposer)
			}
		case ledger.KindElsewhere:
			if doc, err := read[ledger.Elsewhere](p.dir, a.Path); err == nil {
				out = append(out, doc.Proposers()...)
			}
		}
	}
	return out
}

// account is somebody by name, and by the account, as two people may have one name.
func account(a ledger.Actor) string {
	name, id := name(a.Login), name(a.ID)
	if id == "" || id == name {
		return name
	}
	return name + " (" + id + ")"
}

func (p *page) applied() {
	var done *ledger.ApplyComplete
	left := false // a try may have left files that it wrote
	all := each[*ledger.ApplyComplete](p)
	for _, c := range all {
		done, left = c, left || !c.Success && c.Outcome != string(ledger.OutcomeRefused)
	}
	validated := false
	for _, v := range each[*ledger.ValidateComplete](p) {
		validated = validated || v.Success
	}
	const title = "## What was applied\n\n"
	switch {
	case len(each[*ledger.ApplyStart](p)) > len(all):
		p.writef(title + "An apply has begun, and how it ended is not recorded yet.\n\n")
		return
	case done == nil && p.tx.GateOnly() && p.tx.Status == ledger.Completed:
		p.writef(title + "The pull request was merged on its forge, and what was merged is what was approved.\n\n")
		return
	case done == nil:
		return
	case !done.Success && left:
		p.writef(title+"Not the change that was approved: the last try ended as %s, and files that were written may still be there.", name(done.Outcome))
		if isArtifact(done.ApplyArtifact) {
			p.writef(" [The result](%s) says what became of each.", done.ApplyArtifact)
		}
		p.writef("\n\n")
		return
	case !done.Success:
		p.writef(title+"Nothing: the last try ended as %s.\n\n", name(done.Outcome))
		return
	}
	where := "the working tree"
	if done.Target != "worktree" {
		where = name(done.Target)
	}
	p.writef(title+"These files, in %s", where)
	if done.CommitAfter != "" {
		p.writef(", as commit %s", p.commit(done.CommitAfter))
	}
	p.writef("%s:\n\n", map[bool]string{true: ", read back and found as approved"}[validated])
	p.operations()
	p.findings()
}

// findings are what the last validate found.
func (p *page) findings() {
	all := each[*ledger.ValidateComplete](p)
	if len(all) == 0 || all[len(all)-1].Success {
		return
	}
	doc, err := ledger.ReadFindings(p.dir, all[len(all)-1].Findings)
	if err != nil {
		p.writef("The check failed; what it found cannot be read.\n\n")
		return
	}
	p.writef("The check failed:\n\n")
	for _, v := range doc.Violations[:min(len(doc.Violations), maxPageNames)] {
		p.writef("- %s %s\n", name(cmp.Or(v.Path, v.RuleID)), words(v.Message))
	}
	if more := len(doc.Violations) - maxPageNames; max(more, 0)+doc.More > 0 {
		p.writef("- and %d more\n", max(more, 0)+doc.More)
	}
	p.writef("\n")
}

// operations are the files that were written, with their hashes.
func (p *page) operations() {
	raw, err := fs.ReadFile(p.dir, ledger.ResultFile)
	res, err2 := ledger.ParseResult(raw)
	if err != nil || err2 != nil {
		p.writef("`%s` cannot be read.\n\n", ledger.ResultFile)
		return
	}
	hash := func(sum *string) string {
		if sum == nil {
			return "none"
		}
		return short(strings.TrimPrefix(*sum, "sha256:"))
	}
	p.writef("| file | SHA-256 before | after |\n|---|---|---|\n")
	for _, o := range res.Operations[:min(len(res.Operations), maxPageFiles)] {
		p.writef("| %s | %s | %s |\n", name(o.Path), hash(o.BeforeHash), hash(o.AfterHash))
	}
	if more := len(res.Operations) - maxPageFiles; more > 0 {
		p.writef("\nand %d more in [%s](%[2]s).\n", more, ledger.ResultFile)
	} else {
		p.writef("\nThe whole hashes are in [%s](%[1]s).\n", ledger.ResultFile)
	}
	p.writef("\n")
}

func (p *page) diff() {
	if !canon.IsHex64(p.proposal.PatchID) {
		return
	}
	name := ledger.PatchFile(p.proposal.PatchID)
	p.writef("## The diff\n\n")
	raw, err := fs.ReadFile(p.dir, name)
	if err != nil {
		p.writef("It cannot be read.\n\n")
		return
	}
	if p.proposal.PatchRedactedSHA256 != "" {
		p.writef("What looks like a secret is masked here, so these are not all of the bytes that are decided about.\n\n")
	}
	shown, cut := raw, len(raw) > maxPageDiff
	if cut {
		shown = raw[:maxPageDiff]
		shown = shown[:bytes.LastIndexByte(shown, '\n')+1]
	}
	if cut {
		p.writef("**Only the first %d of %d bytes are shown here.** All of them are in [the file](%s).\n\n", len(shown), len(raw), name)
	}
	p.writef("%s\n", fenced("diff", cleanLines(string(shown))))
}

// cleanLines shows what does not print, line by line.
func cleanLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		for i, part := range strings.Split(line, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(clean(part))
		}
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (p *page) verify() {
	p.writef("## Check it\n\n`countersign audit` holds this page to [its events](%s).", ledger.EventsFile)
	if canon.IsHex64(p.proposal.PatchID) {
		p.writef(" The SHA-256 of the diff, which people decide about, is `%s`.", p.proposal.PatchID)
		if masked := hexSum(p.proposal.PatchRedactedSHA256); masked != "" {
			p.writef(" As it is stored, without secrets, it hashes to `%s`.", masked)
		}
		p.writef(" `refs/agent/ledger` stands for the ref or the branch that has this page.\n\n```sh\ngit show refs/agent/ledger:%s/%s | sha256sum\n```", ledger.Dir(p.tx.TransactionID), ledger.PatchFile(p.proposal.PatchID))
	}
	p.writef("\n")
}
