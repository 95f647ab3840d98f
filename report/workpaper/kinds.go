package workpaper

import "github.com/countersign-dev/countersign/pipeline/evidence"

// A kind says what an exception is called, and what it means.
type kind struct{ title, means string }

// kinds are those of docs/evidence.md.
var kinds = map[evidence.Code]kind{
	evidence.Unreadable:          {"Repository not read", "It could not be fetched or read: nothing is known of its changes."},
	evidence.Unsound:             {"Ledger does not verify", "An audit found something in it, so nothing that it says is relied on."},
	evidence.NoLedger:            {"No ledger", "Nothing is on record of what came to the branch."},
	evidence.BeforeLedger:        {"Before the ledger", "The period begins before anything was on record."},
	evidence.RecordInvalid:       {"Record does not verify", "What is on record of these changes breaks a rule."},
	evidence.Unexplained:         {"Nothing accounts for it", "Nobody is on record as having approved these commits, and no rule lets them in."},
	evidence.Denied:              {"Denied, and there", "Somebody denied exactly this patch, and it is on the branch all the same."},
	evidence.UnknownPolicy:       {"Policy not known", "Which Policy these changes were under is not known, so nor is what they needed."},
	evidence.WeakDecision:        {"Approved too weakly", "The decisions about these changes prove less than was asked for."},
	evidence.NotApproved:         {"Without the approvals it needed", "The transactions of these changes did not get what their Policy asks for."},
	evidence.NotApplied:          {"Came otherwise than by its transaction", "These changes were approved, and that the approved bytes were put here is not on record."},
	evidence.UsedUp:              {"Approval used already", "The approval of these changes accounts for another commit: one approval is for one."},
	evidence.PartlyApproved:      {"More than was approved", "Approved patches are in these changes, and more that nobody approved."},
	evidence.CannotTell:          {"Cannot be told", "Whether something accounts for these changes cannot be told here."},
	evidence.BreakGlass:          {"Approved alone in an emergency", "Somebody broke the glass: they approved alone what others should have."},
	evidence.NoApproval:          {"Let in without an approval", "A rule of the Policy for bots let these changes in."},
	evidence.DependentApproval:   {"Approved by its own proposer", "An approval that these changes needed was given by who had proposed them, or had written their commits."},
	evidence.UnknownIndependence: {"Approver perhaps the proposer", "The record does not tell whether those who approved these changes are others than who proposed them."},
	evidence.ApprovedLate:        {"Approved too late", "These changes were merged, or named in the ledger, before they were approved."},
	evidence.ChecksFailed:        {"A check failed", "A required check failed the last time that it ran."},
	evidence.ChecksAbsent:        {"A check is missing", "A command of the Policy is not on record."},
	evidence.NotValidated:        {"Not proved afterwards", "These changes were not checked after they were applied, or that they were merged as approved is not on record."},
}
