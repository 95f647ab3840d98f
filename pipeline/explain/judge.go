package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
)

// A judge goes through a branch in the order of its history.
type judge struct {
	Options
	Result
	commits  map[string]code.BranchCommit
	taken    map[string]bool // commits that belong to a line already
	trust                    // what is believed of the Policy where it is now
	policies approval.Policies
	claims   map[claimKey]*Claim
	record   func(id string) (checked, error)
	patches  patches
	changes  map[string]change      // by "from..to"
	subjects map[string]*subject    // by commit: what it changes in its first parent
	rows     map[string][]*way      // by commit: those that end there
	noRow    map[string]Unexplained // by commit: why one that it is in does not account for it
	lines    map[string]line        // by commit: where it is in a line
	madeFor  map[string]string      // by transaction: the commit of this branch that is its making
	place    map[string]int         // of the commits that the branch was at
	before   string                 // the commit before the first of these
	reached  map[string]reach       // by commit that something was reviewed on
	used     map[string]*way        // by transaction
	of       map[string]*way        // by commit
}

// A line is commits one after the other, oldest first, and a place in it.
type line struct {
	chain []code.BranchCommit
	at    int
}

func newJudge(ctx context.Context, o Options, commits []code.BranchCommit) (*judge, error) {
	j := &judge{
		Options: o, Result: Result{Explained: map[string]Explained{}, Unexplained: map[string]Unexplained{}, brought: map[string]string{}},
		commits: map[string]code.BranchCommit{}, taken: map[string]bool{}, claims: map[claimKey]*Claim{}, changes: map[string]change{},
		subjects: map[string]*subject{}, rows: map[string][]*way{}, noRow: map[string]Unexplained{}, lines: map[string]line{}, madeFor: map[string]string{}, place: map[string]int{}, reached: map[string]reach{}, used: map[string]*way{}, of: map[string]*way{},
	}
	j.record = j.records()
	for _, c := range commits {
		j.commits[c.ID] = c
		j.order = append(j.order, c.ID)
	}
	for i := range o.Index.entries {
		if err := j.findMade(ctx, &o.Index.entries[i]); err != nil {
			return j, err
		}
	}
	return j, nil
}

// findMade notes the commit of the branch that a transaction's record names as its making. That
// of an apply has to be exactly the change that was proposed: a record that names a commit proves
// nothing of what is in it.
func (j *judge) findMade(ctx context.Context, e *entry) error {
	for _, id := range e.made {
		c, here := j.commits[id]
		if !here || len(c.Parents) == 0 {
			continue
		}
		if e.ownDiff {
			j.madeFor[e.id] = id
			continue
		}
		ch, err := j.change(ctx, c.Parents[0], id)
		if err != nil {
			return at(id, err)
		}
		if ch.unfit != "" || len(ch.paths) != e.files {
			continue
		}
		exact, err := j.is(ctx, e, ch)
		if err != nil {
			return at(id, err)
		}
		if exact {
			j.madeFor[e.id] = id
		}
	}
	return nil
}

// line judges the commits by first parents up to a tip, with what their merges bring. own says
// that the branch itself was at them.
func (j *judge) line(ctx context.Context, tip string, own bool) error {
	chain := j.chain(tip)
	if own && len(chain) > 0 {
		if err := j.begin(ctx, chain[0]); err != nil {
			return err
		}
	}
	for i, c := range chain {
		j.lines[c.ID] = line{chain, i}
		if own {
			_, j.onDefault = j.places[c.ID]
			j.onDefault = j.onDefault || len(j.Default) > 0 && slices.Contains(c.Parents[:min(1, len(c.Parents))], j.Default[len(j.Default)-1])
		}
		var err error
		if len(c.Parents) < 2 {
			err = j.single(ctx, c)
		} else {
			err = j.merged(ctx, c)
		}
		if err == nil && own {
			err = j.passed(ctx, c)
		}
		if err != nil {
			return at(c.ID, err)
		}
	}
	return nil
}

// single judges a commit that has at most one parent.
func (j *judge) single(ctx context.Context, c code.BranchCommit) error {
	if len(c.Parents) == 0 {
		j.refuse(c, Unexplained{Code: NothingKnown, Reason: "has no parent: no patch is all that a repository began with"})
		return nil
	}
	s, err := j.subject(ctx, c.Parents[0], c.ID, []string{c.ID}, "")
	if err != nil {
		return err
	}
	j.subjects[c.ID] = s
	if done, err := j.endRow(ctx, c); done || err != nil {
		return err
	}
	no, err := j.give(ctx, s)
	if err != nil || no == nil {
		return err
	}
	if s.free != nil {
		j.choose(s.free)
		return nil
	}
	if row := j.noRow[c.ID]; row.Code != "" {
		no.graver(row.Code, row.Reason, row.Transactions...)
	}
	no.Reason = j.pretends(c) + no.Reason
	j.refuse(c, *no)
	j.let(c.ID, s)
	return nil
}

// free is the way in which a rule accounts for a commit without any transaction, nil for
// none, and then why no bot's rule does, if one might have. None is about what a commit changes in
// another than its one parent.
func (j *judge) free(ctx context.Context, c code.BranchCommit, ch change) (*way, string, error) {
	t, empty := j.trusted(), len(ch.entries) == 0
	if t.unknown != "" || empty && bool(t.policy.Explained.RefuseEmpty) || !empty && len(t.policy.Explained.Bots) == 0 {
		return nil, "", nil
	}
	raw, err := j.Code.RawCommit(ctx, c.ID)
	switch {
	case err != nil || !slices.Equal(parentsOf(raw), c.Parents):
		return nil, "", err
	case empty:
		return &way{by: ByEmpty, cover: []string{c.ID}}, "", nil
	}
	return j.bot(t, c.ID, raw, ch)
}

// bot tries the Policy's rules for bots on a commit as Git stores it.
func (j *judge) bot(t terms, commit string, raw []byte, ch change) (*way, string, error) {
	payload, signature, err := signing.Split(raw)
	if errors.Is(err, sshsig.ErrNoSignature) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "no bot of the Policy signed it: " + ledger.OneLine(err.Error(), 200), nil
	}
	why := ""
	for i, bot := range t.policy.Explained.Bots {
		who := ""
		for _, keys := range t.bots(i) {
			if err = keys.Err; err == nil {
				who, _, err = keys.Allowed.Verify(sshsig.ForGit, payload, signature, j.Now)
			}
			if err != nil {
				break
			}
		}
		if err != nil {
			why = fmt.Sprintf("explained.bots[%d] does not have who signed it: %v", i, err)
			continue
		}
		if file, beyond := beyondBot(t.policy, bot, ch); file != "" {
			why = fmt.Sprintf("%s signed it, but %s %s", who, file, beyond)
			continue
		}
		return &way{by: ByBot, cover: []string{commit}, signer: who}, "", nil
	}
	return nil, ledger.OneLine(why, 300), nil
}

// beyondBot is the first file of a change that a rule for a bot does not cover, "" for none.
func beyondBot(p policy.Policy, bot policy.VersionBot, ch change) (file, why string) {
	for _, e := range ch.entries {
		switch {
		case e.Old != 0 && !isRegular(e.Old), e.New != 0 && !isRegular(e.New):
			return e.Path, "is no regular file"
		case bot.Modes:
		case e.Old != 0 && e.New != 0 && e.Old != e.New:
			return e.Path, "has another mode"
		case e.Old == 0 && e.New != uint32(patch.Regular):
			return e.Path, "is executable"
		}
	}
	return Beyond(p, bot, ch.paths)
}

// accept notes what accounts for the commits of a way.
func (j *judge) accept(w *way) {
	for _, id := range w.cover {
		c := j.commits[id]
		e := Explained{Commit: id, Subject: subjectOf(c), By: w.by, With: []string{}, Signer: w.signer, Strength: w.strength, Exact: w.exact}
		if len(w.ids) > 0 {
			e.Transaction, e.With = w.ids[0], append(e.With, w.ids[1:]...)
		}
		if id != w.whole {
			e.PartOf = w.partOf
		}
		for _, own := range w.ids { // what the program made for a transaction is that one's, whatever brought it
			if len(w.cover) > 1 && w.whole != "" && id != w.whole && j.madeFor[own] == id {
				e.Transaction, e.With, e.PartOf, e.Exact = own, []string{}, "", true
			}
		}
		delete(j.Unexplained, id)
		j.Explained[id] = e
	}
}

// refuse notes why nothing accounts for a commit, which names the first of its paths and lines.
func (j *judge) refuse(c code.BranchCommit, no Unexplained) {
	delete(j.Explained, c.ID)
	no.Commit, no.Subject, no.Transactions = c.ID, subjectOf(c), append([]string{}, no.Transactions...)
	no.Lines = append([]Lines{}, no.Lines[:min(len(no.Lines), maxPaths)]...)
	no.MorePaths = max(0, len(no.Paths)-maxPaths)
	no.Paths = append([]string{}, no.Paths[:len(no.Paths)-no.MorePaths]...)
	j.Unexplained[c.ID] = no
}

// graver takes over another reason if that is graver than the one so far.
func (u *Unexplained) graver(code Reason, why string, ids ...string) {
	if u.Code == "" || slices.Index(Reasons, code) < slices.Index(Reasons, u.Code) {
		u.Code, u.Reason, u.Transactions = code, why, ids
	}
}

func subjectOf(c code.BranchCommit) string {
	first, _, _ := strings.Cut(c.Message, "\n")
	return ledger.OneLine(first, 120)
}

// pretends says which transaction a commit's message names that did not make it.
func (j *judge) pretends(c code.BranchCommit) string {
	id := ""
	for line := range strings.Lines(c.Message) {
		if value, ok := strings.CutPrefix(line, "Countersign-Transaction: "); ok {
			id = strings.TrimSpace(value)
		}
	}
	switch {
	case id == "" || j.madeFor[id] == c.ID:
		return ""
	case ledger.CheckID(id) != nil:
		return fmt.Sprintf("names %s, which is not a transaction id; ", ledger.OneLine(id, 60))
	case j.Index.entry(id) == nil:
		return fmt.Sprintf("names %s, which the ledger does not have; ", id)
	}
	return fmt.Sprintf("names %s, which did not make it; ", id)
}

// isRegular reports whether a mode is that of a regular file, as Git reads it.
func isRegular(mode uint32) bool {
	return mode == uint32(patch.Regular) || mode == uint32(patch.Executable) || mode == 0o100664
}
