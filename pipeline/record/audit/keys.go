package audit

import (
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// SignedDecisions are those that people signed with keys of their own. Each holds by the
// line of the key that is recorded with it (L21), which whoever wrote the ledger wrote.
// Of those that are Listed the code's own history has this line as well: in the file of
// keys of the commit that the recorded Policy names (L22). Whether that commit ever was
// trusted the ledger does not tell. Those of Registered keys are of a Policy that takes
// the keys which the forge has for an account; what it had is the record's word. Of the
// Unknown nobody can tell here: the commit, or the repository of the code, is not at hand.
type SignedDecisions struct {
	Count      int `json:"count"`
	Listed     int `json:"listed"`
	Registered int `json:"registered"`
	Unknown    int `json:"unknown"`
}

// keyLists are the lists of keys of commits of the code, each read once.
type keyLists struct {
	read  KeyReader
	known sync.Map // by commit and file: func() keyList

	mu   sync.Mutex
	seen SignedDecisions
}

// A keyList is the list of keys of a commit, where that is here.
type keyList struct {
	approval.Keys
	here bool
}

// decided is L22 of what a version brought: the recorded line of a signed decision's key is one of the list that
// the recorded Policy names, where its commit is here.
func (l *life) decided(v *version, brought []ledger.Payload) {
	began, _ := l.log.Time(0) // without which nothing was registered in time
	for _, p := range brought {
		d, ok := p.(*ledger.ApprovalDecision)
		if !ok || d.Source.Signature == nil {
			continue
		}
		dir := directory{l.files, l.content}
		_, line, err := approval.ReadSignature(dir, l.log, *d)
		if err != nil {
			continue // L21 says so
		}
		list, err := l.keys.of(&l.policies, dir, l.log, d.Policy)
		if err != nil {
			continue // and so it does of the Policy
		}
		if why := l.keys.hold(list, line, began); why != "" {
			l.fail("L22", v, ledger.EventsFile, "the recorded key of %s is not as commit %.12s lists it%s", d.ApprovalRequestID, d.Policy.Commit, why)
		}
	}
}

// hold counts a decision by what vouches for its key. Where nothing does that should, it
// says what.
func (k *keyLists) hold(list keyList, line string, began time.Time) (why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen.Count++
	switch {
	case !list.here:
		k.seen.Unknown++
	case list.Err != nil:
		return ": " + list.Err.Error()
	case list.Allowed.HasLine(line):
		k.seen.Listed++
	case list.IsRegistered(line, began):
		k.seen.Registered++
	default:
		return "; its list has another line for it, or none"
	}
	return ""
}

// of is the list of keys that a recorded Policy names.
func (k *keyLists) of(policies *approval.Policies, dir fs.FS, log *ledger.Log, ref ledger.PolicyRef) (keyList, error) {
	p, _, err := policies.Recorded(dir, log, ref)
	if err != nil || k.read == nil {
		return keyList{}, err
	}
	list, _ := k.known.LoadOrStore(fmt.Sprint(ref.Commit, p.Approvals.ForgeKeys, p.Approvals.Keys, " ", p.Approvals.Passkeys), sync.OnceValue(func() keyList {
		keys, here := k.read(ref.Commit, p)
		return keyList{keys, here}
	}))
	return list.(func() keyList)(), nil
}

// A KeyReader returns the list of keys that a Policy names, as a commit of the code has
// it, and whether the commit is here.
type KeyReader func(commit string, p policy.Policy) (keys approval.Keys, here bool)
