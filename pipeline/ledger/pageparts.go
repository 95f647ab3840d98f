package ledger

import (
	"bytes"
	"cmp"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/markdown"
	"github.com/countersign-dev/countersign/pipeline/result"
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

func (p *page) risks() {
	doc := p.found
	if doc.none() {
		return
	}
	p.writef("## Risks\n\n")
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
	p.writef("\n")
}

// kindWords say what an approval is about.
var kindWords = map[string]string{"fileChange": "the change", "secrets_override": "secrets", "protected_path": "protected paths", breakGlass: "**breaking the glass**"}

func (p *page) decisions() {
	all := each[*ApprovalDecision](p)
	if len(all) == 0 {
		return
	}
	p.writef("## Decisions\n\n")
	asked := p.asked()
	p.writef("| who | decided | when | where | reason |\n|---|---|---|---|---|\n")
	for _, d := range all[:min(len(all), maxPageRows)] {
		about := asked[d.ApprovalRequestID]
		p.writef("| %s | **%s** %s | %s | %s | %s |\n", account(d.Source.Author), markdown.Words(string(d.Decision)),
			cmp.Or(kindWords[about], markdown.Name(about)), clock(d.Source.CreatedAt), p.source(d.Source), markdown.Words(d.Reason))
	}
	if more := len(all) - maxPageRows; more > 0 {
		p.writef("\nand %d more in [%s](%[2]s).\n", more, EventsFile)
	}
	if !p.tx.Closed && p.tx.Status != Applied {
		p.writef("\nWhether these still count, and are enough, is asked again when the change is applied or merged.\n")
	}
	p.writef("\n")
}

// account is somebody by name, and by the account, as two people may have one name.
func account(a Actor) string {
	name, id := markdown.Name(a.Login), markdown.Name(a.ID)
	if id == "" || id == name {
		return name
	}
	return name + " (" + id + ")"
}

// sourceWords say where somebody decided.
var sourceWords = map[string]string{
	"local": "in a clone", "rpc": "in a client", "review": "a review", "review_comment": "a comment in a review", "issue_comment": "a comment",
}

// source says where somebody decided.
func (p *page) source(s Source) string {
	text := cmp.Or(sourceWords[s.Kind], markdown.Name(s.Kind))
	if web := webOf(s.URL, p.proposal.Repository); web != "" {
		text = linkOn(text, web, s.URL)
	}
	if s.Signature != nil {
		text += ", signed with " + markdown.Name(s.Signature.KeyFingerprint)
	}
	return text
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
		return markdown.Name(strings.TrimPrefix(*sum, "sha256:"))
	}
	p.writef("| file | SHA-256 before | SHA-256 after |\n|---|---|---|\n")
	for _, o := range res.Operations[:min(len(res.Operations), maxPageFiles)] {
		p.writef("| %s | %s | %s |\n", markdown.Name(o.Path), hash(o.BeforeHash), hash(o.AfterHash))
	}
	if more := len(res.Operations) - maxPageFiles; more > 0 {
		p.writef("\nand %d more in [%s](%[2]s).\n", more, ResultFile)
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
		if masked := hexSum(p.proposal.PatchRedactedSHA256); masked != "" {
			p.writef(" As it is stored, without secrets, the diff hashes to `%s`.", masked)
		}
		p.writef(" `refs/agent/ledger` stands for the ref or the branch that has this page.\n\n```sh\ngit show refs/agent/ledger:%s/%s | sha256sum\n```", Dir(p.tx.TransactionID), PatchFile(p.proposal.PatchID))
	}
	p.writef("\n")
}
