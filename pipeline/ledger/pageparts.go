package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/markdown"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/state"
)

// readRisks reads what a reader of the patch may overlook.
func (p *page) readRisks() (doc risksDoc, err error) {
	err = fs.ErrNotExist
	for _, a := range each[*ArtifactStored](p) {
		if a.Kind == KindRisks {
			doc, err = readRisks(p.dir, a.Path)
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
		listed := slices.ContainsFunc(doc.Risks, func(r riskEntry) bool { return r.Kind == of })
		if !listed && slices.ContainsFunc(each[*ApprovalRequest](p), func(q *ApprovalRequest) bool { return q.Kind == kind }) {
			p.writef("- **%s**: an approval of its %s was asked for\n", RiskTitle(of), What(kind))
			said = true
		}
	}
	for _, r := range doc.Risks[:min(len(doc.Risks), maxPageRows)] {
		p.writef("- **%s**: %s", RiskTitle(r.Kind), markdown.Name(cmp.Or(r.Path, "every file")))
		if r.Detail != "" {
			p.writef(" (%s)", markdown.Words(r.Detail))
		}
		p.writef("\n")
	}
	if more := max(len(doc.Risks)-maxPageRows, 0) + doc.more(); more > 0 {
		p.writef("- and %d more\n", more)
	}
	switch {
	case unread != nil:
		p.writef("%sNone are recorded.\n", map[bool]string{true: "\n"}[said])
	case doc.none() && !said:
		p.writef("None found.\n")
	}
	p.writef("\n")
}

// requirements are what was asked for, who answered, and how strong that is. Whether an answer counts, the Policy
// tells, which is not read here.
func (p *page) requirements() {
	asked, answers := each[*ApprovalRequest](p), map[string]*ApprovalDecision{}
	for _, d := range each[*ApprovalDecision](p) {
		answers[d.ApprovalRequestID] = d
	}
	open := !p.tx.Closed && p.tx.Status != Applied
	if len(asked) > 0 {
		p.writef("| asked for | answered by | how strong |\n|---|---|---|\n")
	}
	for _, q := range asked[:min(len(asked), maxPageRows)] {
		what := cmp.Or(whats[q.Kind], markdown.Name(q.Kind))
		switch d := answers[q.ApprovalRequestID]; {
		case d == nil && open:
			p.writef("| ○ %s | nobody yet | |\n", what)
		case d == nil:
			p.writef("| ○ %s | nobody | |\n", what)
		default:
			p.writef("| %s %s | %s | %s |\n", map[bool]string{true: "✓", false: "✗"}[d.Decision == Approve], what, p.answer(d), p.proof(d.Source))
		}
	}
	if more := len(asked) - maxPageRows; more > 0 {
		p.writef("\nand %d more in [%s](%[2]s).\n", more, EventsFile)
	}
	var rests []string
	if all := each[*ApplyStart](p); len(all) > 0 {
		for _, a := range all[len(all)-1].Approvals {
			rests = append(rests, fmt.Sprintf("%s (%s)", cmp.Or(whats[a.Kind], markdown.Name(a.Kind)), Plural(a.Required, "approval", "approvals")))
		}
	}
	switch {
	case len(rests) > 0:
		p.writef("\nBy the Policy of that time, the apply rests on %s.\n", strings.Join(rests, ", "))
	case open && len(answers) > 0:
		p.writef("\nWhether these still count, and are enough, is asked again when the change is applied or merged.\n")
	}
	if p.stands() == state.Waits {
		p.writef("\nTo answer, in a clone: `countersign approve %s`, or `deny`", p.tx.TransactionID[len(p.tx.TransactionID)-7:])
		if text := p.pullText(); text != "" {
			p.writef("; or on %s", text)
		}
		p.writef(".\n")
	}
	p.writef("\n")
}

// answer is who decided, when, where and why.
func (p *page) answer(d *ApprovalDecision) string {
	text := account(d.Source.Author) + ", " + clock(d.Source.CreatedAt)
	if web := webOf(d.Source.URL, p.proposal.Repository); web != "" {
		text += ", " + linkOn(cmp.Or(wheres[d.Source.Kind], markdown.Name(d.Source.Kind)), web, d.Source.URL)
	}
	if d.Reason != "" {
		text += ": " + markdown.Words(d.Reason)
	}
	return text
}

// proof is how much a decision proves.
func (p *page) proof(s Source) string {
	text, _ := Proof(s.Kind, s.Signature != nil, s.Author)
	if slices.ContainsFunc(p.proposers, func(a Actor) bool { return a.Kind == s.Author.Kind && a.ID == s.Author.ID }) {
		text = OwnProof(text)
	}
	if s.Signature != nil {
		text += ", " + markdown.Name(markdown.ShortenTo(s.Signature.KeyFingerprint, 19))
	}
	return text
}

// allProposers are those of these bytes, as far as their artifacts can be read.
func (p *page) allProposers() []Actor {
	out := []Actor{p.meta.Proposer}
	for _, a := range each[*ArtifactStored](p) {
		switch a.Kind {
		case KindAgain:
			if from, err := readProvenance(p.dir, a); err == nil {
				out = append(out, from.Proposer)
			}
		case KindElsewhere:
			if doc, err := readElsewhere(p.dir, a); err == nil {
				out = append(out, doc.Proposers()...)
			}
		}
	}
	return out
}

// account is somebody by name, and by the account, as two people may have one name.
func account(a Actor) string {
	name, id := markdown.Name(a.Login), markdown.Name(a.ID)
	if id == "" || id == name {
		return name
	}
	return name + " (" + id + ")"
}

func (p *page) applied() {
	var done *ApplyComplete
	left := false // a try may have left files that it wrote
	all := each[*ApplyComplete](p)
	for _, c := range all {
		done, left = c, left || !c.Success && c.Outcome != string(result.Refused)
	}
	validated := false
	for _, v := range each[*ValidateComplete](p) {
		validated = validated || v.Success
	}
	const title = "## What was applied\n\n"
	switch {
	case len(each[*ApplyStart](p)) > len(all):
		p.writef(title + "An apply has begun, and how it ended is not recorded yet.\n\n")
		return
	case done == nil && p.tx.GateOnly() && p.tx.Status == Completed:
		p.writef(title + "The pull request was merged on its forge, and what was merged is what was approved.\n\n")
		return
	case done == nil:
		return
	case !done.Success && left:
		p.writef(title+"Not the change that was approved: the last try ended as %s, and files that were written may still be there.", markdown.Name(done.Outcome))
		if isArtifact(done.ApplyArtifact) {
			p.writef(" [The result](%s) says what became of each.", done.ApplyArtifact)
		}
		p.writef("\n\n")
		return
	case !done.Success:
		p.writef(title+"Nothing: the last try ended as %s.\n\n", markdown.Name(done.Outcome))
		return
	}
	where := "the working tree"
	if done.Target != "worktree" {
		where = markdown.Name(done.Target)
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
	all := each[*ValidateComplete](p)
	if len(all) == 0 || all[len(all)-1].Success {
		return
	}
	doc, err := ReadFindings(p.dir, all[len(all)-1].Findings)
	if err != nil {
		p.writef("The check failed; what it found cannot be read.\n\n")
		return
	}
	p.writef("The check failed:\n\n")
	for _, v := range doc.Violations[:min(len(doc.Violations), maxPageNames)] {
		p.writef("- %s %s\n", markdown.Name(cmp.Or(v.Path, v.RuleID)), markdown.Words(v.Message))
	}
	if more := len(doc.Violations) - maxPageNames; max(more, 0)+doc.More > 0 {
		p.writef("- and %d more\n", max(more, 0)+doc.More)
	}
	p.writef("\n")
}

// operations are the files that were written, with their hashes.
func (p *page) operations() {
	raw, err := fs.ReadFile(p.dir, ResultFile)
	res, err2 := result.Parse(raw)
	if err != nil || err2 != nil {
		p.writef("`%s` cannot be read.\n\n", ResultFile)
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
		p.writef("| %s | %s | %s |\n", markdown.Name(o.Path), hash(o.BeforeHash), hash(o.AfterHash))
	}
	if more := len(res.Operations) - maxPageFiles; more > 0 {
		p.writef("\nand %d more in [%s](%[2]s).\n", more, ResultFile)
	} else {
		p.writef("\nThe whole hashes are in [%s](%[1]s).\n", ResultFile)
	}
	p.writef("\n")
}

func (p *page) diff() {
	if !canon.IsHex64(p.proposal.PatchID) {
		return
	}
	name := PatchFile(p.proposal.PatchID)
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
	p.writef("%s\n", markdown.Fenced("diff", cleanLines(string(shown))))
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
			b.WriteString(markdown.Clean(part))
		}
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (p *page) verify() {
	p.writef("## Check it\n\n`countersign audit` holds this page to [its events](%s).", EventsFile)
	if canon.IsHex64(p.proposal.PatchID) {
		p.writef(" The SHA-256 of the diff, which people decide about, is `%s`.", p.proposal.PatchID)
		if masked := hexSum(p.proposal.PatchRedactedSHA256); masked != "" {
			p.writef(" As it is stored, without secrets, it hashes to `%s`.", masked)
		}
		p.writef(" `refs/agent/ledger` stands for the ref or the branch that has this page.\n\n```sh\ngit show refs/agent/ledger:%s/%s | sha256sum\n```", Dir(p.tx.TransactionID), PatchFile(p.proposal.PatchID))
	}
	p.writef("\n")
}
