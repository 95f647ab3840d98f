package coverage

import (
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// An Explanation is audit.Explanation of a change that may be of several approved patches.
// Tree is the one that shipped. Result is "" for a change that no patch can be. Unknown
// are transactions that could not be compared, and why.
type Explanation struct {
	audit.Explanation
	Tree      string   `json:"tree"`
	Result    Result   `json:"result"`
	Uncovered []Lines  `json:"uncovered"`
	More      int      `json:"uncovered_more"` // that Uncovered leaves out
	Unknown   []string `json:"unknown"`
}

// maxLines is how many Lines are told.
const maxLines = 200

// Look fills in what the ledger's tree says of a change, or of one that is unfit to be a
// patch.
func (e *Explanation) Look(tree fs.FS, change patch.Patchset, unfit *patch.Error, code func(commit string) (fs.FS, error)) error {
	e.Uncovered, e.Unknown = []Lines{}, []string{}
	if unfit != nil {
		return e.Explanation.Look(tree, "", unfit)
	}
	if err := e.Explanation.Look(tree, change.ID(), nil); err != nil {
		return err
	}
	if e.Explained {
		e.Result = Exact
		return nil
	}
	approved, err := Find(tree, change, code)
	if err != nil {
		return err
	}
	report := Of(change, approved.Patches)
	e.Result, e.Unknown = report.Result, append(e.Unknown, approved.Unknown...)
	for _, id := range report.Transactions {
		claim := approved.Claims[id]
		claim.Why += ", and its patch is in this change"
		claim.Explains = report.Result == Replay
		e.Transactions = append(e.Transactions, claim)
	}
	if report.Result == Replay {
		e.Explained, e.Reason = true, ""
		return nil
	}
	e.Uncover(report)
	switch n := len(report.Transactions); {
	case n == 1:
		e.Reason = "one approved patch is in it, and more than that"
	case n > 1:
		e.Reason = fmt.Sprintf("%d approved patches are in it, and more than these", n)
	}
	return nil
}

// Uncover fills in a report of what no patch accounts for.
func (e *Explanation) Uncover(r Report) {
	e.Result, e.Uncovered, e.More = r.Result, r.Lines, max(0, len(r.Lines)-maxLines)
	e.Uncovered = e.Uncovered[:len(e.Uncovered)-e.More]
}
