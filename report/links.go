package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// Links are the addresses that a comment can lead to. Without one a name stands
// as it is.
type Links struct {
	Web    string // of the repository on the forge, such as https://github.com/acme/app
	Thread string // of the request in which people answer
	Policy PolicyFile
}

// A PolicyFile is where people can read the Policy: the commit that has it, "" for
// none, and the lines at which its parts begin (policy.Lines).
type PolicyFile struct {
	Commit string
	Lines  map[string]int
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

// policy is the Policy's file.
func (l Links) policy() string {
	if l.Web == "" || !commitID().MatchString(l.Policy.Commit) {
		return "the Policy"
	}
	return link("the Policy", l.Web+"/blob/"+l.Policy.Commit+"/"+policy.Path)
}

// rule is a part of the Policy by its name, such as protected[0].
func (l Links) rule(part string) string {
	line := l.Policy.Lines[part]
	if l.Web == "" || line == 0 || !commitID().MatchString(l.Policy.Commit) {
		return prose(part)
	}
	return link(prose(part), fmt.Sprintf("%s/blob/%s/%s#L%d", l.Web, l.Policy.Commit, policy.Path, line))
}

// compare leads to what differs between two commits; without an address it is the
// command that shows it.
func (l Links) compare(from, to string) string {
	if l.Web == "" || !commitID().MatchString(from) || !commitID().MatchString(to) {
		return name("git diff " + from + " " + to)
	}
	return link("compare", l.Web+"/compare/"+from+".."+to)
}
