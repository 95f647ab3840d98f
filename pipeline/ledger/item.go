package ledger

import "slices"

// The status of an item, and of a step of a plan (turn item schema 0.1). What
// became of a proposal stands in its transaction: the item is in progress until
// it is applied, and stays so where it never is.
const (
	ItemInProgress = "inProgress"
	ItemCompleted  = "completed"
	ItemFailed     = "failed"
	ItemCancelled  = "cancelled"
	StepPending    = "pending"
	StepSkipped    = "skipped"
)

// isItemStatus reports whether an item may have the status; it need not have one.
func isItemStatus(s string) bool {
	return s == "" || slices.Contains([]string{ItemInProgress, ItemCompleted, ItemFailed, ItemCancelled}, s)
}

// areSteps reports whether each step has an id and a status of its own.
func areSteps(steps []Step) bool {
	return !slices.ContainsFunc(steps, func(s Step) bool {
		return s.ID == "" || !slices.Contains([]string{StepPending, ItemInProgress, ItemCompleted, StepSkipped, ItemFailed}, s.Status)
	})
}

// follows reports whether the item is one of turn item schema 0.1, as far as the
// words that it may use go.
func (i Item) follows() bool {
	return i.ID != "" && i.Type != "" && isItemStatus(i.Status) && areSteps(i.Steps)
}
