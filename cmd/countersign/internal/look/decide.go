package look

import (
	"encoding/json"
	"io/fs"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/site"
)

// Passkeys are the list of keys that the Policy names, and the origin of the pages that may ask passkeys of it, "" for none.
type Passkeys struct {
	Origin string
	List   sshsig.Allowed
}

// ofPasskeys is the type of their keys.
const ofPasskeys = "sk-ecdsa-sha2-nistp256@openssh.com"

// decides reports whether somebody may approve a transaction with a passkey on its page: it waits, the page shows all of it, and
// it is of the repository whose Policy and pull requests these are, as a ledger may be that of several.
func (b *build) decides(s html.Summary) bool {
	if b.Passkeys.Origin == "" || !s.Waits || !s.Sound() || s.PullRequest == 0 || s.Repository == nil || b.redact {
		return false
	}
	isOurs := strings.HasSuffix("/"+strings.ToLower(b.name()), "/"+strings.ToLower(s.Repository.Name))
	return isOurs && b.Links.Pull(s.PullRequest) != ""
}

// writeDecide writes the page on which passkeys approve, and what it needs to know.
func (b *build) writeDecide(dir *dir) error {
	if b.Passkeys.Origin == "" {
		return nil
	}
	files := site.Decide(b.name(), b.nav())
	keys := []string{}
	for _, line := range b.Passkeys.List.Lines() {
		if line.Type == ofPasskeys {
			keys = append(keys, line.Key)
		}
	}
	add := func(name string, doc any) error {
		text, err := json.Marshal(doc)
		files["decide/"+name+".json"] = text
		return err
	}
	err := add("keys", console.Document{"origin": b.Passkeys.Origin, "site": b.name(), "keys": keys})
	for id, s := range b.summaries {
		if err != nil || !b.decides(s) {
			continue
		}
		var doc console.Document
		if doc, err = b.asks(id); doc != nil {
			err = add(id, doc)
		}
	}
	for address, text := range files {
		if err == nil {
			err = dir.write(address, text)
		}
	}
	return err
}

// asks is what the page needs to know of a transaction: the statement that is to be signed, but for its time and what is chosen
// of what is asked. It is nil where nobody can sign, as the record says too little, or shows too little.
func (b *build) asks(id string) (console.Document, error) {
	tree, err := b.files()
	if err != nil {
		return nil, err
	}
	t, err := b.read(id)
	if err != nil || len(t.Patch) == 0 || t.Proposal.PatchRedactedSHA256 != "" {
		return nil, err
	}
	if _, masked := html.Compared(t, b.masks, b.read); masked {
		return nil, nil
	}
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return nil, err
	}
	var asked []string
	for _, q := range t.Missing() {
		asked = append(asked, q.Fingerprint)
	}
	log, _ := ledger.ReadOwn(dir, id)
	if log == nil || len(asked) == 0 {
		return nil, nil
	}
	request := ledger.Last[*ledger.ApprovalRequest](log)
	if request == nil { // it was reviewed, and nobody is asked yet
		return nil, nil
	}
	about, err := approval.SubjectOf(log, approval.ReadParty(dir, log), ledger.ApprovalDecision{Policy: request.Policy})
	if err != nil {
		return nil, nil
	}
	statement, err := pipeline.ToSign(tree, log, about, ledger.Approve, asked, "", time.Unix(0, 0))
	if err != nil {
		return nil, nil
	}
	return console.Document{"statement": statement, "patch": t.PatchID, "pull": b.Links.Pull(t.PullRequest) + "#issuecomment-new"}, nil
}
