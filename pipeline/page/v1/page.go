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

// What a page shows of long lists and patches. All of it is in the files beside the page.
const (
	maxPageDiff  = 8 << 10 // bytes
	maxPageFiles = 100
	maxPageRows  = 50
	maxPageNames = 10
)

// Transaction is README.md of a transaction's directory as it stood after its first events, payloads, which
// fold to tx. It is a function of these and of the files that they name, which
// dir has. All words of others are text in it: no link, mention, image or HTML.
func Transaction(dir fs.FS, payloads []ledger.Payload, tx ledger.Transaction) []byte {
	p := &page{dir: dir, tx: tx, payloads: payloads, meta: *payloads[0].(*ledger.Meta)}
	if tx.Pointers.Proposal != nil {
		p.proposal = *tx.Pointers.Proposal
	}
	for _, d := range each[*ledger.ApprovalDecision](p) {
		if p.web == "" {
			p.web = webOf(d.Source.URL, p.proposal.Repository)
		}
	}
	p.proposers = p.allProposers()
	p.head()
	p.requirements()
	p.risks()
	p.applied()
	p.claims()
	p.diff()
	p.facts()
	p.verify()
	return p.b.Bytes()
}

// A page is a transaction's page on its way.
type page struct {
	b        bytes.Buffer
	dir      fs.FS
	tx       ledger.Transaction
	proposal ledger.Proposal
	meta     ledger.Meta
	payloads []ledger.Payload
	web      string // of the repository on its forge, as far as a decision's address tells

	proposers []ledger.Actor // of these bytes
}

// each are the payloads of one type so far.
func each[P ledger.Payload](p *page) (out []P) {
	for _, one := range p.payloads {
		if one, ok := one.(P); ok {
			out = append(out, one)
		}
	}
	return out
}

func (p *page) writef(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// stands is where the transaction stands: that of an open one was approved, or denied, is what the gate, an apply
// or a person recorded last.
func (p *page) stands() string {
	verdict, all := "", each[*ledger.StatusChange](p)
	if n := len(all); n > 0 && all[n-1].From == ledger.Awaiting && all[n-1].To == ledger.Proposed || len(each[*ledger.ApplyStart](p)) > 0 {
		verdict = approvedBy
	}
	if slices.ContainsFunc(each[*ledger.ApprovalDecision](p), func(d *ledger.ApprovalDecision) bool { return d.Decision != ledger.Approve }) {
		verdict = denied
	}
	return stateOf(p.tx.Status, verdict, p.tx.GateOnly(), lastFailed(p.payloads, p.tx.Status))
}

// state says how the transaction stands, in words. A closed one says what was applied before, as far as the record
// tells: of a pull request's own diff it does not.
func (p *page) state() string {
	text := p.stands()
	switch applied, tried := p.tries(); {
	case p.tx.Status != ledger.Interrupted:
	case p.tx.GateOnly():
		text += " without being completed"
	case applied:
		text += " after it was applied"
	case tried:
		text += " after an apply that did not succeed"
	default:
		text += " without being applied"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// tries tell whether the change was ever applied, and whether anybody ever began to.
func (p *page) tries() (applied, tried bool) {
	for _, c := range each[*ledger.ApplyComplete](p) {
		applied = applied || c.Success
	}
	return applied, len(each[*ledger.ApplyStart](p)) > 0
}

// head is what it is, how it stands, and who said what.
func (p *page) head() {
	title, said := "Proposal without a summary", "" // what the proposer says is not said by the page
	if p.meta.Summary != "" {
		short := shortenTo(p.meta.Summary, 120)
		title = "Proposal: " + prose(short)
		if short != p.meta.Summary {
			said = ", and said: \"" + words(strings.ReplaceAll(p.meta.Summary, `"`, "'")) + "\""
		}
	}
	why := ""
	denied := slices.ContainsFunc(each[*ledger.ApprovalDecision](p), func(d *ledger.ApprovalDecision) bool { return d.Decision != ledger.Approve })
	if all := each[*ledger.StatusChange](p); slices.Contains([]ledger.Status{ledger.Superseded, ledger.Interrupted, ledger.Failed}, p.tx.Status) || p.tx.Status == ledger.Denied && !denied {
		why = strings.TrimSuffix(" "+words(ended(all[len(all)-1].Reason))+".", " .")
	}
	p.writef("# %s\n\n**%s.**%s %s proposed to change %s%s.%s\n\n", title, p.state(), why, name(p.meta.Proposer.Login), plural(len(p.proposal.TargetFiles), "file", "files"), said, p.answers())
}

// facts are where it came from.
func (p *page) facts() {
	p.writef("## Where it came from\n\n| | |\n|---|---|\n")
	p.row("transaction", name(p.tx.TransactionID))
	p.row("proposed", clock(p.tx.CreatedAt)+" by "+account(p.meta.Proposer)+", a "+words(p.meta.Proposer.Kind))
	if p.tx.UpdatedAt != p.tx.CreatedAt {
		p.row("last change", clock(p.tx.UpdatedAt))
	}
	if a := p.proposal.Author; a != nil {
		p.row("author, says the patch", words(a.Name+" <"+a.Email+">"))
	}
	for _, again := range each[*ledger.ArtifactStored](p) {
		if again.Kind == ledger.KindElsewhere {
			p.elsewhere(again)
		}
		if again.Kind != ledger.KindAgain {
			continue
		}
		if from, err := read[ledger.Provenance](p.dir, again.Path); err == nil {
			p.row("proposed too", "by "+account(from.Proposer)+" as "+words(form(from.Input)))
		} else {
			p.row("proposed too", "as an artifact that cannot be read says")
		}
	}
	if text := p.pullText(); text != "" {
		p.row("for", text)
	}
	p.row("base commit", p.commit(p.meta.BaseCommit))
	if p.meta.PolicyCommit != p.meta.BaseCommit {
		p.row("Policy of commit", p.commit(p.meta.PolicyCommit))
	}
	for _, id := range p.proposal.Supersedes[:min(len(p.proposal.Supersedes), 10)] {
		p.row("takes the place of", p.transaction(id))
	}
	if all := each[*ledger.StatusChange](p); p.tx.Status == ledger.Superseded {
		if by := successor(all[len(all)-1].Reason); by != "" {
			p.row("in its place", p.transaction(by))
		}
	}
	p.writef("\n")
}

// pullText is the pull request that the change is for, in a link where its page is known; "" for none.
func (p *page) pullText() string {
	r := p.proposal.Repository
	if r == nil || p.proposal.PullRequest <= 0 {
		return ""
	}
	text := fmt.Sprintf("pull request %d of %s", p.proposal.PullRequest, name(r.Name))
	if web, address := p.pull(); web != "" {
		text = linkOn(text, web, address)
	}
	return text
}

// elsewhere are the rows of an Elsewhere.
func (p *page) elsewhere(a *ledger.ArtifactStored) {
	doc, err := read[ledger.Elsewhere](p.dir, a.Path)
	if err != nil {
		p.row("proposed elsewhere", "as an artifact that cannot be read says")
	}
	for _, one := range doc.Proposals[:min(len(doc.Proposals), 10)] {
		p.row("proposed elsewhere", "by "+account(one.Proposer)+" in "+p.transaction(one.TransactionID))
	}
}

// claims are what a commit of the change says in its proposer's words.
func (p *page) claims() {
	text := strings.TrimSpace(p.proposal.Message + "\n\n" + strings.Join(p.proposal.Declared, "\n"))
	if text != "" {
		p.writef("A commit of this change says, in the proposer's words, which nobody has verified:\n\n%s\n", fenced("text", cleanLines(text)))
	}
}

// successor is the transaction that the reason of an end names: "superseded by tx_...: why"; "" for none.
func successor(reason string) string {
	rest, ok := strings.CutPrefix(reason, "superseded by ")
	if by, _, _ := strings.Cut(rest, ":"); ok && ledger.CheckID(by) == nil {
		return by
	}
	return ""
}

// answers are who said what, in a sentence for each kind.
func (p *page) answers() (text string) {
	var order []string
	who := map[string][]ledger.Actor{} // by what they did
	seen := map[string]bool{}
	namesakes := map[string]int{}
	asked := p.asked()
	for _, d := range each[*ledger.ApprovalDecision](p) {
		verb, a := cmp.Or(approvedWords[asked[d.ApprovalRequestID]], "approved a part of it"), d.Source.Author
		if d.Decision != ledger.Approve {
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
			name := name(a.Login)
			if namesakes[verb+"\n"+a.Login] > 1 {
				name = account(a)
			}
			names = append(names, name)
		}
		text += " " + strings.Join(names, ", ")
		if more := len(who[verb]) - len(names); more > 0 {
			text += " and " + plural(more, "other", "others")
		}
		text += " " + verb + "."
	}
	return text
}

// asked are the kinds of the requests, by id.
func (p *page) asked() map[string]string {
	kinds := map[string]string{}
	for _, r := range each[*ledger.ApprovalRequest](p) {
		kinds[r.ApprovalRequestID] = r.Kind
	}
	return kinds
}

func (p *page) row(what, text string) { p.writef("| %s | %s |\n", what, text) }

// transaction is another one, in a link to its directory.
func (p *page) transaction(id string) string {
	if ledger.CheckID(id) != nil {
		return name(id)
	}
	return "[`" + id + "`](" + strings.Repeat("../", strings.Count(ledger.Dir(id), "/")+1) + ledger.Dir(id) + "/README.md)"
}

// pull is the address of the pull request's page, and of the repository's: what a decision's address has before the "#". Forges
// call these pages pull or pulls, and nothing else of a record tells which.
func (p *page) pull() (web, address string) {
	for _, d := range each[*ledger.ApprovalDecision](p) {
		web = webOf(d.Source.URL, p.proposal.Repository)
		for _, pages := range []string{"pull", "pulls"} {
			address = fmt.Sprintf("%s/%s/%d", web, pages, p.proposal.PullRequest)
			if web != "" && strings.HasPrefix(d.Source.URL, address+"#") {
				return web, address
			}
		}
	}
	return "", ""
}

// commit is a commit of the code, of which twelve digits are enough to find it.
func (p *page) commit(id string) string {
	if p.web == "" || !isGitID(id) {
		return short(id)
	}
	return linkOn(short(id), p.web, p.web+"/commit/"+id)
}

// short is an id or a hash as people compare it; anything else as it is.
func short(id string) string {
	if isGitID(id) || canon.IsHex64(id) {
		id = id[:12]
	}
	return name(id)
}

// linkOn is a link that names its host: the ledger cannot tell whether that is the repository's forge.
func linkOn(text, web, url string) string {
	return link(text+" on "+strings.Split(web, "/")[2], url)
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
		return words(at)
	}
	return strings.Replace(at[:19], "T", " ", 1) + " UTC"
}

var webAddress = canon.Regexp(`^(https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?/)([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)/[A-Za-z0-9./_#-]*$`)

// webOf is the page of a repository, as the address of something on it has it: "" where
// that is not on it.
func webOf(address string, r *ledger.Repository) string {
	if r == nil || len(address) > 300 {
		return ""
	}
	m := webAddress().FindStringSubmatch(address)
	if m == nil || !strings.EqualFold(m[2], r.Name) || strings.Contains(address, "/..") {
		return ""
	}
	return m[1] + m[2]
}
