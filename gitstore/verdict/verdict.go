// Package verdict is the whole audit of a ledger: the rules of its history, and what
// its reader knows from elsewhere. "countersign audit" asks it about a repository, the
// verifier in the browser about a Git bundle, so that the two cannot differ.
package verdict

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// Options are what is known beside a history.
type Options struct {
	// Over reads the history for the rules, and more on the way; nil is the history.
	Over history.Reader
	// Found is what is wrong with the files that hold the objects.
	Found []history.Finding
	// Rollback is set where the tip does not descend from one that is known.
	Rollback *lineage.RollbackError
	// Signatures demands a good signature of every commit.
	Signatures bool
	// Keys, Each and Progress are those of audit.Options.
	Keys     audit.KeyReader
	Each     audit.Each
	Progress func(what string, done, total int)
}

// Of audits a history. The error is only that of reading it.
func Of(h *lineage.History, o Options) (audit.Result, error) {
	if o.Rollback != nil {
		o.Found = append(o.Found, history.Finding{RuleID: "L14", Commit: h.Tip(), Message: o.Rollback.Error()})
	}
	var over history.Reader = h
	if o.Over != nil {
		over = o.Over
	}
	r, err := page.Audit(over, audit.Options{Tip: h.Tip(), Signatures: o.Signatures, Found: o.Found, Keys: o.Keys, Each: o.Each, Progress: o.Progress}, nil)
	r.From = h.From()
	return r, err
}

// A Question is what the reader of a bundle brings to it.
type Question struct {
	// Ledger is the ref of the ledger; "" where the bundle has one ref.
	Ledger string
	// Signers is the text of an allowed signers file, "" to demand no signatures.
	Signers string
	// Tip is a commit of the ledger, all its digits, that the reader knows of: the
	// bundle's must be it or descend from it. "" is none.
	Tip string
	// Progress, which may be nil, is told how far the audit is.
	Progress func(what string, done, total int)
}

// MostSigners is how many bytes a file of allowed signers may have (S-47 of docs/spec/signatures.md).
const MostSigners = 1 << 20

// signers reads what stands in a field that may be empty.
func (q Question) signers() (*sshsig.Allowed, error) {
	if q.Signers == "" {
		return nil, nil
	}
	allowed, err := sshsig.ParseAllowedSigners([]byte(q.Signers))
	if len(q.Signers) > MostSigners {
		err = fmt.Errorf("%d bytes are more than %d", len(q.Signers), MostSigners)
	}
	if err != nil {
		return nil, fmt.Errorf("the allowed signers: %w", err)
	}
	return &allowed, nil
}

// OfObjects audits the ledger that ends with a tip, out of any objects. The tip is that
// of the ref that is named.
func OfObjects(objects lineage.Objects, ref packfile.Ref, q Question) (audit.Result, error) {
	if q.Tip != "" && (!packfile.IsID(q.Tip) || packfile.ParseID(q.Tip).IsZero()) { // zeros are no commit, and nothing would be held to them
		return audit.Result{}, fmt.Errorf("%+q is not a commit: give all digits of its id", q.Tip)
	}
	signers, err := q.signers()
	if err != nil {
		return audit.Result{}, err
	}
	o := Options{Signatures: signers != nil, Progress: q.Progress}
	// Any other error is of the history, which is read yet.
	_ = errors.As(lineage.Held(ref.Name, ref.ID, packfile.ParseID(q.Tip), func(known packfile.ID) (bool, error) {
		return lineage.Descends(objects, ref.ID, known)
	}), &o.Rollback)
	return Of(lineage.New(objects, lineage.Options{Tip: ref.ID, Signers: signers}), o)
}

// OfBundle audits the ledger in a bundle.
func OfBundle(b *packfile.Bundle, q Question) (audit.Result, error) {
	ref, err := LedgerOf(b, q.Ledger)
	if err != nil {
		return audit.Result{}, err
	}
	return OfObjects(b, ref, q)
}

// LedgerOf returns the ref of this name; with "", the only one there is, or of several the one under refs/agent/. A bundle
// of something else, such as a branch of code, is a *packfile.BundleError: no rule is about that. What is under refs/agent/
// is a ledger whatever it holds, and so is what cannot be read: the audit tells what is wrong with it.
func LedgerOf(b *packfile.Bundle, name string) (packfile.Ref, error) {
	ref, err := b.Ref(name)
	var others []string
	for _, r := range b.Refs {
		if name != "" || strings.HasPrefix(r.Name, "refs/agent/") || lineage.MayBeLedger(b, r.ID) {
			return ref, err
		}
		quoted := strconv.QuoteToASCII(r.Name)
		others = append(others, quoted[1:len(quoted)-1])
	}
	if n := len(others); n > maxNamed {
		others = append(others[:maxNamed], fmt.Sprintf("%d more", n-maxNamed))
	}
	return packfile.Ref{}, &packfile.BundleError{Message: fmt.Sprintf("this bundle holds %s and no ledger; nothing was checked", strings.Join(others, ", "))}
}

// maxNamed is how many refs are named of a bundle that has no ledger.
const maxNamed = 3
