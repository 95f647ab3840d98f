package conformance

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

var limits = packfile.Limits{Held: 256 << 20, Made: 1 << 30}

// errBundle refuses a bundle.
var errBundle = &broken{[]string{"BUNDLE"}}

func readBundle(raw []byte) (*packfile.Bundle, error) {
	b, err := packfile.ReadBundle(bytes.NewReader(raw), int64(len(raw)), limits)
	if err != nil {
		return nil, errBundle
	}
	return b, nil
}

func historyBundle(in struct {
	Bundle Bytes `json:"bundle"`
}) (values, error) {
	b, err := readBundle(in.Bundle)
	if err != nil {
		return nil, err
	}
	refs := values{}
	for _, r := range b.Refs {
		if _, err := b.View(r.ID); err != nil {
			return nil, errBundle
		}
		refs[r.Name] = r.ID.String()
	}
	return values{"refs": refs}, nil
}

func historyAudit(in struct {
	Bundle         Bytes  `json:"bundle"`
	Ref            string `json:"ref"`
	Tip            string `json:"tip"`
	AllowedSigners *Bytes `json:"allowed_signers"`
	Witnesses      *Bytes `json:"witnesses"`
	Quorum         int    `json:"quorum"`
}) (values, error) {
	b, err := readBundle(in.Bundle)
	if err != nil {
		return nil, err
	}
	q := verdict.Question{Ledger: in.Ref, Tip: in.Tip}
	if in.AllowedSigners != nil {
		q.Signers = cmp.Or(string(*in.AllowedSigners), "\n") // an empty file demands signatures, too
		if _, err := sshsig.ParseAllowedSigners(*in.AllowedSigners); err != nil || len(*in.AllowedSigners) > verdict.MostSigners {
			return nil, &broken{[]string{"L13"}} // S-47: nobody's signature counts
		}
	}
	ref, err := verdict.LedgerOf(b, in.Ref)
	if err != nil {
		return nil, errBundle
	}
	r, err := verdict.OfObjects(b, ref, q)
	if err != nil {
		return nil, &questionError{err}
	}
	var found []canon.Violation
	for _, f := range r.Findings {
		found = append(found, canon.Violation{RuleID: f.RuleID})
	}
	if in.Witnesses != nil {
		ok, err := witnessed(b, ref, *in.Witnesses, in.Quorum)
		if err != nil {
			return nil, &questionError{err}
		}
		if !ok {
			found = append(found, canon.Violation{RuleID: "WITNESS"})
		}
	}
	if err := rulesOf(found); err != nil {
		return nil, err
	}
	states, err := statesOf(b, ref)
	return values{"tip": r.Tip, "commits": r.Commits, "transactions": r.Transactions, "states": states}, err
}

// commitsOf are the commits of a history, the oldest first.
func commitsOf(b *packfile.Bundle, ref packfile.Ref) (*lineage.History, []history.Commit, error) {
	h := lineage.New(b, lineage.Options{Tip: ref.ID})
	var all []history.Commit
	found := make(chan history.Commit)
	done := make(chan error, 1)
	go func() { // it calls on several goroutines
		done <- h.Commits(func(c history.Commit) { found <- c })
		close(found)
	}()
	for c := range found {
		all = append(all, c)
	}
	slices.SortFunc(all, func(x, y history.Commit) int { return cmp.Compare(y.Age, x.Age) })
	return h, all, <-done
}

// filesAt are the files of the last commit that a name begins.
func filesAt(commits []history.Commit, fits func(name string) bool) map[string]history.Entry {
	files := map[string]history.Entry{}
	for _, c := range commits {
		for _, ch := range c.Changes {
			if fits(ch.Path) {
				files[ch.Path] = ch.New
			}
		}
	}
	maps.DeleteFunc(files, func(_ string, e history.Entry) bool { return e == history.Entry{} })
	return files
}

// statesOf are the status of each transaction.
func statesOf(b *packfile.Bundle, ref packfile.Ref) (values, error) {
	h, commits, err := commitsOf(b, ref)
	if err != nil {
		return nil, err
	}
	states := values{}
	for name, e := range filesAt(commits, func(name string) bool { return strings.HasSuffix(name, "/"+ledger.TransactionFile) }) {
		raw, err := h.Blob(e.ID)
		var tx ledger.Transaction
		if err == nil {
			err = canon.Unmarshal(raw, &tx)
		}
		if id, _, ok := ledger.Within(name); err == nil && ok {
			states[id] = tx.Status
		} else {
			return nil, errors.Join(err, errors.New(name))
		}
	}
	return states, nil
}

// witnessed reports whether the witnesses of a file vouch for the ledger.
func witnessed(b *packfile.Bundle, ref packfile.Ref, file []byte, quorum int) (bool, error) {
	f, err := witness.ParseFile(file)
	if err != nil {
		return false, nil
	}
	_, commits, err := commitsOf(b, ref)
	if err != nil {
		return false, err
	}
	var leaves []witness.Hash
	for _, c := range commits {
		commit, err := b.View(c.ID)
		if err != nil {
			return false, nil
		}
		leaves = append(leaves, witness.Leaf(commit.Data))
	}
	tree, err := witness.NewTree(leaves)
	if err != nil {
		return false, err
	}
	var notes [][]byte
	if kept, err := b.Ref(gitstore.Checkpoints.Ref(ref.Name)); err == nil {
		h, commits, err := commitsOf(b, kept)
		if err != nil {
			return false, err
		}
		files := filesAt(commits, gitstore.Checkpoints.Holds)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			raw, err := h.Blob(files[name].ID)
			if err != nil {
				return false, nil
			}
			if len(raw) <= witness.MostNote {
				notes = append(notes, raw)
			}
		}
	}
	r, err := f.Check(notes, tree, quorum)
	return err == nil && len(r.Found) == 0, nil
}
