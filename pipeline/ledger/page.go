package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/markdown"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// What a page shows of long lists and patches. All of it is in the files beside the page.
const (
	maxPageDiff  = 8 << 10 // bytes
	maxPageFiles = 100
	maxPageRows  = 50
	maxPageNames = 10
)

// Page is README.md of a transaction's directory as it stood after the first n events of
// its log, which fold to tx. It is a function of these and of the files that they name, which
// dir has. All words of others are text in it: no link, mention, image or HTML. What it makes of a record never
// changes, as the audit makes it again (L23): another layout needs another SchemaVersion.
func (l *Log) Page(dir fs.FS, n int, tx Transaction) []byte { return pageOf(dir, l.payloads[:n], tx) }

func pageOf(dir fs.FS, payloads []Payload, tx Transaction) []byte {
	p := &page{dir: dir, tx: tx, payloads: payloads, meta: metaOf(payloads)}
	if tx.Pointers.Proposal != nil {
		p.proposal = *tx.Pointers.Proposal
	}
	for _, d := range each[*ApprovalDecision](p) {
		if p.web == "" {
			p.web = webOf(d.Source.URL, p.proposal.Repository)
		}
	}
	p.head()
	p.risks()
	p.decisions()
	p.applied()
	p.diff()
	p.verify()
	return p.b.Bytes()
}

// A page is a transaction's page on its way.
type page struct {
	b        bytes.Buffer
	dir      fs.FS
	tx       Transaction
	proposal Proposal
	meta     Meta
	payloads []Payload
	web      string // of the repository on its forge, as far as a decision's address tells
}

// each are the payloads of one type so far.
func each[P Payload](p *page) (out []P) {
	for _, one := range p.payloads {
		if one, ok := one.(P); ok {
			out = append(out, one)
		}
	}
	return out
}

func (p *page) writef(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// stateWords say how a transaction stands.
var stateWords = map[Status]string{
	Created: "begun", InProgress: "being recorded", Proposed: "proposed", Awaiting: "waits for approval", Applied: "applied",
	Completed: "completed", Failed: "failed", Interrupted: "closed", Denied: "denied", Superseded: "superseded",
}

// state says how the transaction stands, in words. A closed one says what was applied before, as far as the record
// tells: of a pull request's own diff it does not.
func (p *page) state() string {
	text := stateWords[p.tx.Status]
	switch applied, tried := p.tries(); {
	case p.tx.Status != Interrupted:
	case p.tx.GateOnly():
		text += " without being completed"
	case applied:
		text += " after it was applied"
	case tried:
		text += " after an apply that did not succeed"
	default:
		text += " without being applied"
	}
	return upper(text)
}

// tries tell whether the change was ever applied, and whether anybody ever began to.
func (p *page) tries() (applied, tried bool) {
	for _, c := range each[*ApplyComplete](p) {
		applied = applied || c.Success
	}
	return applied, len(each[*ApplyStart](p)) > 0
}

func (p *page) head() {
	title := "Proposal without a summary" // what the proposer says is not said by the page
	if p.meta.Summary != "" {
		title = "Proposal: " + markdown.Prose(markdown.ShortenTo(p.meta.Summary, 120))
	}
	p.writef("# %s\n\n**%s.** %s proposed to change %s", title, p.state(), markdown.Name(p.meta.Proposer.Login), Plural(len(p.proposal.TargetFiles), "file", "files"))
	if p.meta.Summary != "" {
		p.writef(", and said: \"%s\"", markdown.Words(strings.ReplaceAll(p.meta.Summary, `"`, "'")))
	}
	p.writef(".%s\n\n| | |\n|---|---|\n", p.answers())
	p.row("transaction", markdown.Name(p.tx.TransactionID))
	p.row("SHA-256 of the diff", markdown.Name(p.proposal.PatchID))
	p.row("proposed", clock(p.tx.CreatedAt)+" by "+markdown.Name(p.meta.Proposer.Login)+" ("+markdown.Words(p.meta.Proposer.Kind)+", "+markdown.Name(p.meta.Proposer.ID)+")")
	if p.tx.UpdatedAt != p.tx.CreatedAt {
		p.row("last change", clock(p.tx.UpdatedAt))
	}
	if a := p.proposal.Author; a != nil {
		p.row("author, says the patch", markdown.Words(a.Name+" <"+a.Email+">"))
	}
	if r := p.proposal.Repository; r != nil && p.proposal.PullRequest > 0 {
		text := fmt.Sprintf("pull request %d of %s", p.proposal.PullRequest, markdown.Name(r.Name))
		if p.web != "" {
			text = linkOn(text, p.web, fmt.Sprintf("%s/pull/%d", p.web, p.proposal.PullRequest))
		}
		p.row("for", text)
	}
	p.row("base commit", p.commit(p.meta.BaseCommit))
	if p.meta.PolicyCommit != p.meta.BaseCommit {
		p.row("Policy of commit", p.commit(p.meta.PolicyCommit))
	}
	for _, id := range p.proposal.Supersedes[:min(len(p.proposal.Supersedes), 10)] {
		p.row("takes the place of", p.transaction(id))
	}
	if all := each[*StatusChange](p); slices.Contains([]Status{Superseded, Interrupted, Denied, Failed}, p.tx.Status) {
		p.row("why", markdown.Words(all[len(all)-1].Reason))
	}
	doc, err := p.readRisks()
	switch {
	case err != nil:
		p.row("risks", "none are recorded")
	case len(doc.Risks) == 0:
		p.row("risks", "none found")
	}
	if len(each[*ApprovalDecision](p)) == 0 {
		p.row("decisions", "none")
	}
	p.writef("\n")
}

// approvedWords say what somebody approved, by the kind of the request.
var approvedWords = map[string]string{
	"fileChange": "approved it", "secrets_override": "approved its secrets", "protected_path": "approved its protected paths", breakGlass: "broke the glass for it",
}

// answers are who said what, in a sentence for each kind.
func (p *page) answers() (text string) {
	var order []string
	who := map[string][]Actor{} // by what they did
	seen := map[string]bool{}
	namesakes := map[string]int{}
	asked := p.asked()
	for _, d := range each[*ApprovalDecision](p) {
		verb, a := cmp.Or(approvedWords[asked[d.ApprovalRequestID]], "approved a part of it"), d.Source.Author
		if d.Decision != Approve {
			verb = "denied it"
		}
		if key := verb + "\n" + a.ID + "\n" + a.Login; !seen[key] {
			seen[key] = true
			who[verb] = append(who[verb], a)
			namesakes[verb+"\n"+a.Login]++
		}
		if !slices.Contains(order, verb) {
			order = append(order, verb)
		}
	}
	for _, verb := range order {
		var names []string
		for _, a := range who[verb][:min(len(who[verb]), maxPageNames)] {
			name := markdown.Name(a.Login)
			if namesakes[verb+"\n"+a.Login] > 1 {
				name = account(a)
			}
			names = append(names, name)
		}
		text += " " + strings.Join(names, ", ")
		if more := len(who[verb]) - len(names); more > 0 {
			text += " and " + Plural(more, "other", "others")
		}
		text += " " + verb + "."
	}
	return text
}

// asked are the kinds of the requests, by id.
func (p *page) asked() map[string]string {
	kinds := map[string]string{}
	for _, r := range each[*ApprovalRequest](p) {
		kinds[r.ApprovalRequestID] = r.Kind
	}
	return kinds
}

func (p *page) row(what, text string) { p.writef("| %s | %s |\n", what, text) }

// transaction is another one, in a link to its directory.
func (p *page) transaction(id string) string {
	if CheckID(id) != nil {
		return markdown.Name(id)
	}
	return "[`" + id + "`](" + strings.Repeat("../", strings.Count(Dir(id), "/")+1) + Dir(id) + "/README.md)"
}

// commit is a commit of the code.
func (p *page) commit(id string) string {
	if p.web == "" || !isGitID(id) {
		return markdown.Name(id)
	}
	return linkOn(markdown.Code(id[:12]), p.web, p.web+"/commit/"+id)
}

// linkOn is a link that names its host: the ledger cannot tell whether that is the repository's forge.
func linkOn(text, web, url string) string {
	return markdown.Link(text+" on "+strings.Split(web, "/")[2], url)
}

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
	doc, err := p.readRisks()
	if err != nil || len(doc.Risks) == 0 {
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
	more := max(len(doc.Risks)-maxPageRows, 0)
	for _, n := range doc.More {
		more += max(n, 0)
	}
	if more > 0 {
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
		p.writef("\n\n```sh\ngit show refs/agent/ledger:%s/%s | sha256sum\n```", Dir(p.tx.TransactionID), PatchFile(p.proposal.PatchID))
	}
	p.writef("\n")
}

// hexSum is a hash, "" where a text is none.
func hexSum(s string) string {
	if canon.IsSum(s) {
		return strings.TrimPrefix(s, "sha256:")
	}
	return ""
}

// clock is a time as the ledger has it, to the second.
func clock(at string) string {
	if !isTime(at) {
		return markdown.Words(at)
	}
	return strings.Replace(at[:19], "T", " ", 1) + " UTC"
}

func upper(text string) string {
	if text == "" {
		return "Of unknown status"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

var webAddress = lazyregexp.New(`^(https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?/)([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)/[A-Za-z0-9./_#-]*$`)

// webOf is the page of a repository, as the address of something on it has it: "" where
// that is not on it.
func webOf(address string, r *Repository) string {
	if r == nil || len(address) > 300 {
		return ""
	}
	m := webAddress().FindStringSubmatch(address)
	if m == nil || !strings.EqualFold(m[2], r.Name) || strings.Contains(address, "/../") {
		return ""
	}
	return m[1] + m[2]
}

// Pages are the pages that belong to an entry, given the tree before it: that of its
// transaction, and the tables that have a new row. A ledger of schema 1 has none.
func Pages(tree fs.FS, e Entry) (map[string][]byte, error) {
	if has, err := hasPages(tree, e); !has || err != nil {
		return nil, err
	}
	var events string
	for name := range e.Files {
		if _, ok := TransactionOf(name); ok && path.Base(name) == EventsFile && strings.Count(name, "/") == 6 {
			events = name
		}
	}
	if events == "" {
		return nil, nil // the ledger's own events
	}
	if e.payloads == nil {
		log, err := ReadLog(e.Files[events])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", events, err)
		}
		e.payloads, e.tx = log.payloads, log.tx
	}
	dir := path.Dir(events)
	out := map[string][]byte{path.Join(dir, ReadmeFile): pageOf(laidOver{e.Files, tree, dir}, e.payloads, e.tx)}
	_, err := fs.Stat(tree, events)
	first := errors.Is(err, fs.ErrNotExist)
	if err != nil && !first {
		return nil, err
	}
	for _, row := range rowsOf(e, first) {
		before, again := out[row.File]
		if !again {
			if before, err = tableIn(tree, row.File); errors.Is(err, errInTheWay) {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		out[row.File] = row.Add(before)
	}
	return out, nil
}

var errInTheWay = errors.New("a directory is in the way")

// tableIn reads a table, nil where there is none. What somebody put in its place keeps nobody from recording: what is
// no file is replaced, and beside a directory, which would lose files, there is no table (errInTheWay).
func tableIn(tree fs.FS, name string) ([]byte, error) {
	raw, err := fs.ReadFile(tree, name)
	if err == nil {
		return raw, nil
	}
	info, err2 := fs.Lstat(tree, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err2 == nil && info.IsDir():
		return nil, errInTheWay
	case err2 == nil && !info.Mode().IsRegular():
		return nil, nil
	}
	return nil, err
}

// Tables are the tables that an entry adds rows to, as far as it tells by itself: a proposal is
// told by its place in proposed/.
func Tables(e Entry) (files []string) {
	for name := range e.Files {
		id := strings.TrimSuffix(path.Base(name), ".json")
		switch {
		case strings.HasPrefix(name, proposedRoot+"/") && CheckID(id) == nil:
			shard := path.Dir(Dir(id))
			files = append(files, path.Join(path.Dir(path.Dir(shard)), ReadmeFile), path.Join(path.Dir(shard), ReadmeFile), path.Join(shard, ReadmeFile))
		case IsDenial(name):
			files = append(files, path.Join(deniedRoot, ReadmeFile), path.Join(path.Dir(path.Dir(name)), ReadmeFile))
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// rowsOf are the rows that an entry adds to tables.
func rowsOf(e Entry, first bool) (rows []TableRow) {
	if first {
		rows = ProposalRows(metaOf(e.payloads))
	}
	var denials []string
	for name := range e.Files {
		if IsDenial(name) {
			denials = append(denials, name)
		}
	}
	slices.Sort(denials)
	for _, name := range denials {
		rows = append(rows, DenialRows(name, e.Files[name])...)
	}
	return rows
}

// laidOver is a transaction's directory as an entry leaves it.
type laidOver struct {
	files map[string][]byte
	tree  fs.FS
	dir   string
}

// ReadFile reads one of the entry's files, else one that is there.
func (o laidOver) ReadFile(name string) ([]byte, error) {
	if data, ok := o.files[path.Join(o.dir, name)]; ok {
		return data, nil
	}
	return fs.ReadFile(o.tree, path.Join(o.dir, name))
}

// Open is never called.
func (o laidOver) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
}
