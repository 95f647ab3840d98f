package report

import (
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// Links are the addresses that a comment can lead to. Without one a name stands
// as it is.
type Links struct {
	Web    string // of the repository on the forge, such as https://github.com/acme/app
	Thread string // of the request in which people answer
}

// WebOf is Links.Web of a repository that is cloned from an address.
func WebOf(cloneURL string) string { return strings.TrimSuffix(cloneURL, ".git") }

// commit is a commit by its first letters.
func (l Links) commit(id string) string {
	if l.Web == "" || !commitID().MatchString(id) {
		return name(id)
	}
	return link(code(id[:12]), l.Web+"/commit/"+id)
}

// transaction is a transaction's directory as a commit of the ledger has it.
func (l Links) transaction(id, ledgerCommit string) string {
	if l.Web == "" || ledger.CheckID(id) != nil || !commitID().MatchString(ledgerCommit) {
		return name(id)
	}
	return link(code(id), l.Web+"/tree/"+ledgerCommit+"/"+ledger.Dir(id))
}

// policy is the Policy's file of a commit, at a line of it unless that is 0.
func (l Links) policy(commit string) string {
	if l.Web == "" || !commitID().MatchString(commit) {
		return "the Policy"
	}
	return link("the Policy", l.Web+"/blob/"+commit+"/"+policy.Path)
}

// compare leads to what differs between two commits; without an address it is the
// command that shows it.
func (l Links) compare(from, to string) string {
	if l.Web == "" || !commitID().MatchString(from) || !commitID().MatchString(to) {
		return name("git diff " + from + " " + to)
	}
	return link("compare", l.Web+"/compare/"+from+".."+to)
}
