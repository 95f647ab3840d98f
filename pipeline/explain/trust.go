package explain

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// rules are what the files of one commit say of who may approve.
type rules struct {
	commit string
	policy policy.Policy
	found  bool
	err    error // the Policy cannot be read
	keys   approval.Keys
	bots   []botKeys
	owners *forge.Owners // nil if it cannot be read
	gates  bool          // pull requests are gated by a workflow of init's
	watch  []string
	text   string // of all but the owners
}

// is reports whether two rules say the same.
func (r *rules) is(o *rules) bool {
	return r.text == o.text && reflect.DeepEqual(r.owners, o.owners)
}

// botKeys are the keys of one of the Policy's rules for bots, or why they cannot be read.
type botKeys struct {
	Allowed sshsig.Allowed
	Err     error
}

func (j *judge) readRules(ctx context.Context, commit string) (*rules, error) {
	tree, err := j.Code.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	r := &rules{commit: commit, watch: []string{"CODEOWNERS", "docs/CODEOWNERS"}}
	if r.owners, err = forge.ReadOwners(tree); err != nil {
		r.owners = nil
	}
	if r.policy, r.found, r.err = policy.Read(tree); r.err != nil {
		r.text = r.err.Error()
		return r, nil
	}
	r.keys = approval.ReadKeys(tree, r.policy)
	gates, err := GatesPullRequests(tree)
	r.gates = gates || err != nil
	keys, _ := r.policy.ReadKeys(tree)
	r.text = fmt.Sprintf("%v %v %s %q %v", r.found, r.gates, r.policy.JSON(), keys, r.keys.Err)
	r.watch = append(r.watch, r.policy.Approvals.Keys)
	for i, bot := range r.policy.Explained.Bots {
		var one botKeys
		raw, err := policy.ReadNamed(tree, fmt.Sprintf("explained.bots[%d].keys", i), bot.Keys)
		if err == nil {
			one.Allowed, err = sshsig.ParseAllowedSigners(raw)
		}
		one.Err = err
		r.bots, r.watch, r.text = append(r.bots, one), append(r.watch, bot.Keys), r.text+fmt.Sprintf(" %q %v", raw, err)
	}
	return r, nil
}

// reads reports whether a change may make other rules of these: it touches a file that they
// are read from, or that stands in the place of a directory of one.
func (r *rules) reads(ch change) bool {
	return slices.ContainsFunc(ch.entries, func(e PathChange) bool {
		first, _, _ := strings.Cut(e.Path, "/")
		return slices.Contains([]string{".github", ".gitea", ".forgejo"}, strings.ToLower(first)) || slices.ContainsFunc(r.watch, func(name string) bool {
			name = strings.TrimPrefix(name, "/")
			return name == e.Path || strings.HasPrefix(name, e.Path+"/") || strings.HasPrefix(e.Path, name+"/")
		})
	})
}

// trust is what is believed of the Policy at a commit that comes next on a branch. actual are
// the rules of the commit before, vouched the last that commits which are accounted for made
// of those that were there when the branch began. onDefault says that the commit that is judged is one of the default branch, or may become its next;
// else newest is the place of the last of these that it descends from, and over their rules.
type trust struct {
	actual, vouched *rules
	doubt           string // the commit that made actual other than vouched, and is not accounted for
	onDefault       bool
	newest          int
	places          map[string]int // of the default branch's commits
	named           []int          // per transaction, the newest place whose Policy it went by, or one that was recorded before; -1 for none
	read            map[string]*rules
}

// begin notes what was believed before the first commit of a branch.
func (j *judge) begin(ctx context.Context, first code.BranchCommit) (err error) {
	j.trust = trust{places: map[string]int{}, read: map[string]*rules{}, newest: -1}
	for i, id := range j.Default {
		j.places[id] = i
	}
	newest := -1
	for _, e := range j.Index.entries {
		for _, commit := range e.policies {
			if at, is := j.places[commit]; is {
				newest = max(newest, at)
			}
		}
		j.named = append(j.named, newest)
	}
	if len(first.Parents) == 0 {
		j.actual = &rules{policy: policy.Default()}
	} else if j.actual, err = j.readRules(ctx, first.Parents[0]); err != nil {
		return err
	}
	j.vouched = j.actual
	j.descend(append(first.Parents, "")[0])
	if j.newest < 0 && len(j.Default) > 0 { // the ledger has named that one
		j.newest = 0
	}
	return nil
}

// descend notes commits that the branch has.
func (j *judge) descend(commits ...string) {
	for _, commit := range commits {
		if at, is := j.places[commit]; is {
			j.newest = max(j.newest, at)
		}
	}
}

// passed takes in the commit of the branch that was judged last.
func (j *judge) passed(ctx context.Context, c code.BranchCommit) error {
	j.descend(c.Parents[min(1, len(c.Parents)):]...)
	j.descend(c.ID)
	parent := append(c.Parents, "")[0]
	var ch change
	var err error
	if parent != "" {
		if ch, err = j.change(ctx, parent, c.ID); err != nil {
			return err
		}
	}
	// A row that ends here accounts for what its commits did to the rules as well.
	if w := j.of[c.ID]; w != nil && j.doubt != "" && slices.Contains(w.cover, j.doubt) {
		j.vouched, j.doubt = j.actual, ""
	}
	if parent != "" && !j.actual.reads(ch) && !j.vouched.reads(ch) {
		return nil
	}
	now, err := j.readRules(ctx, c.ID)
	if err != nil || now.is(j.actual) {
		return err
	}
	_, explained := j.Explained[c.ID]
	switch {
	case explained && j.doubt == "": // else what is doubted would be vouched for with it
		j.actual, j.vouched = now, now
	case now.is(j.vouched):
		j.actual, j.doubt = j.vouched, ""
	default:
		j.actual, j.doubt = now, cmp.Or(j.doubt, c.ID)
	}
	return nil
}

// A terms is what a transaction's decisions are held to at one place of a branch: the Policy
// that it had. unknown says why that is not known, "" where it is; key tells apart what is not the same.
type terms struct {
	key     string
	policy  policy.Policy
	unknown string
	lists   []*rules // each has to list a key, and to have the same CODEOWNERS
	gates   bool
}

func (t terms) listed(line string, began time.Time) bool {
	return len(t.lists) > 0 && !slices.ContainsFunc(t.lists, func(r *rules) bool {
		return r.keys.Err != nil || !r.keys.Allowed.HasLine(line) && !r.keys.IsRegistered(line, began)
	})
}

// bots are the keys of a rule for a bot: of all these files a key has to be valid.
func (t terms) bots(i int) (all []botKeys) {
	bot := t.policy.Explained.Bots[i]
	for _, r := range t.lists {
		n := slices.IndexFunc(r.policy.Explained.Bots, func(b policy.VersionBot) bool { return b.Keys == bot.Keys })
		if n < 0 {
			return []botKeys{{Err: fmt.Errorf("commit %.12s, which nothing accounts for, took the rule out", r.commit)}}
		}
		all = append(all, r.bots[n])
	}
	return all
}

// trusted is the Policy that the branch has now, whatever the transaction.
func (j *judge) trusted() terms { return j.termsAt(j.trust, nil) }

// termsAt is the Policy that the branch had at some place, for a transaction; nil is for none.
func (j *judge) termsAt(t trust, e *entry) terms {
	own := []*rules{t.vouched}
	if t.vouched != t.actual {
		own = append(own, t.actual)
	}
	if t.onDefault {
		return joined(own, false)
	}
	n := t.newest
	if e != nil {
		n = max(n, j.named[j.Index.at[e.id]])
	}
	if n < 0 {
		return terms{key: "none", unknown: "no commit of the default branch tells which Policy it was under"}
	}
	main, err := j.rulesOf(j.Default[n])
	if err != nil {
		return terms{key: "none", unknown: fmt.Sprintf("the Policy of commit %.12s of the default branch cannot be read: %v", j.Default[n], err)}
	}
	return joined(append([]*rules{main}, own...), true)
}

// joined is the first of some rules, tightened by the others. Of a branch that is not the
// default one, the lists of the first alone say whose key counts.
func joined(all []*rules, ofFirst bool) (t terms) {
	for i, r := range all {
		t.key += r.commit + " "
		if r.err != nil {
			t.unknown = fmt.Sprintf("the Policy of commit %.12s cannot be read: %v", r.commit, r.err)
			return t
		}
		if t.gates = t.gates || r.gates; i == 0 {
			t.policy = r.policy
		} else {
			if r.found {
				t.policy = policy.Tighten(t.policy, r.policy)
			}
			if r.policy.Explained.Merges != policy.MergesCovered {
				t.policy.Explained.Merges = ""
			}
		}
		if !ofFirst || i == 0 {
			t.lists = append(t.lists, r)
		}
	}
	return t
}

// rulesOf reads the rules of a commit of the default branch, once.
func (j *judge) rulesOf(commit string) (*rules, error) {
	if r, known := j.read[commit]; known {
		return r, r.err
	}
	r, err := j.readRules(context.Background(), commit)
	if err != nil {
		return nil, err
	}
	j.read[commit] = r
	return r, r.err
}
