package record

import (
	"io"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/verdict"
)

// Known is what an auditor knows of a ledger beside the bundle. The zero Known knows
// nothing: a bundle then only agrees with itself. Blanks are no zero: they are refused, or
// nobody signed.
type Known struct {
	// Ref is the ledger's, "" where the bundle has one.
	Ref string
	// Tip is a commit of the ledger, all its digits: the bundle's must descend from it.
	Tip string
	// Signers is the text of an allowed signers file (ssh-keygen(1)): each commit must
	// be signed by one of them. "" asks for no signatures.
	Signers string
}

// A Report is what an audit found. Sound says that the record breaks no rule, and
// PagesAgree that the pages for people say what it does; nothing is decided by pages.
// Findings are of the record alone, at most 1,000, by rule; Count is how many there are.
// Newer is the version of Countersign that it takes to judge all of it, "" for this one; then
// it is not Sound, and if all findings are of the rule NEWER, not damaged either.
type Report struct {
	Sound, PagesAgree     bool
	Tip                   string
	Commits, Transactions int
	Count                 int
	Findings              []Finding
	Newer                 string
}

// Audit verifies the whole history of a ledger out of a Git bundle of size bytes, as "git
// bundle create FILE refs/agent/ledger" writes it. What is wrong with the ledger is in the
// Report; an error is of a bundle that cannot be read or holds no ledger, and of a Known that
// cannot be asked about. It keeps up to 1 GiB in memory, and stops at 8 GiB of objects.
func Audit(from io.Reader, size int64, k Known) (Report, error) {
	b, err := packfile.ReadBundle(from, size, packfile.Limits{Held: 1 << 30, Made: 8 << 30})
	if err != nil {
		return Report{}, err
	}
	r, err := verdict.OfBundle(b, verdict.Question{Ledger: k.Ref, Tip: k.Tip, Signers: k.Signers})
	if err != nil {
		return Report{}, err
	}
	out := Report{
		Sound: r.OK, PagesAgree: r.Pages.OK, Tip: r.Tip, Commits: r.Commits, Transactions: r.Transactions, Count: r.Count, Newer: r.Newer,
	}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, Finding{f.RuleID, f.Commit, f.Path, f.Message})
	}
	return out, nil
}
