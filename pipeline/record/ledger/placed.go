package ledger

import (
	"errors"
	"reflect"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// fingerprints are what a request of each kind asks about, before the patch_id. A kind becomes the name of a file in denied/.
var fingerprints = map[string]string{
	"fileChange": "patchset:", "secrets_override": "secret:patchset:", "protected_path": "protected:patchset:", "break_glass": "patchset:",
}

// oneProposal is L9: a transaction has one proposal, on the base that tx/meta names, which every later item repeats but for
// that it is applied; and its requests ask for approvals of that. An apply is of it and of its files (L3; that it was approved is
// L17, in package approval), and says one thing of its end (L6). People decide on the first, and rules go by the last.
func (c *checker) oneProposal() {
	var first *Proposal
	var begun ApplyStart
	for i, p := range c.log.Payloads() {
		switch p := p.(type) {
		case *TurnItem:
			if p.Item.Metadata == nil {
				if p.Item.Type == FileChange { // which lists would show instead
					c.Add("L9", atLine(i+1), "proposes nothing")
				}
				continue
			}
			m := *p.Item.Metadata
			if first == nil {
				first = p.Item.Metadata
			}
			m.Applied = first.Applied
			if p.Item.Type != FileChange || p.Item.PatchID != m.PatchID || !reflect.DeepEqual(m, *first) {
				c.Add("L9", atLine(i+1), "proposes what the first item does not")
			} else if !canon.IsHex64(m.PatchID) || m.PatchFingerprint != "patchset:"+m.PatchID || m.BaseCommit != c.log.Meta().BaseCommit {
				c.Add("L9", atLine(i+1), "proposes no patch on the base of its transaction")
			}
		case *ApprovalRequest:
			if prefix, known := fingerprints[p.Kind]; !known || first == nil || p.Fingerprint != prefix+first.PatchID {
				c.Add("L9", atLine(i+1), "asks for no approval of the patch: %s of %s", show(p.Kind), show(p.Fingerprint))
			}
		case *ApplyStart:
			if begun = *p; first == nil || !slices.Equal(p.Files, first.TargetFiles) || !slices.Equal(p.PatchIDs, []string{first.PatchID}) {
				c.Add("L3", atLine(i+1), "begins to apply another patch, or to other files, than were approved")
			}
		case *ApplyComplete:
			if p.Success != (p.Outcome == "SUCCESS") || p.Target != begun.Target {
				c.Add("L6", atLine(i+1), "does not say how the apply that began has ended")
			}
		case *ApprovalDecision:
			if p.Decision != Approve && p.Decision != Deny {
				c.Add("L9", atLine(i+1), "neither approves nor denies: %s", show(string(p.Decision)))
			}
		}
	}
}

// describes is L5: the files and hashes of a proposal are those of its patch, as far as that shows them. What people
// have to approve, and what an apply has to write, go by these. A patch without its secrets shows files alone, and nothing if
// one of them is binary.
func (c *checker) describes(raw []byte, p *Proposal) {
	redacted := p.PatchRedactedSHA256 != ""
	diff, err := patch.Parse(raw)
	if err == nil {
		if err = diff.Agrees(p.TargetFiles, p.BaseSHA256, p.AfterSHA256, !redacted); err == nil && !c.lists(diff) {
			err = errors.New("the changes that it lists are not those of its patch")
		}
	} else if redacted {
		return
	}
	if err != nil {
		c.Add("L5", PatchFile(p.PatchID), "is not what the proposal says: %v", err)
	}
}

// lists reports whether the items that list changes list those of the patch, in its order: a diff is shown under their names.
func (c *checker) lists(diff patch.Diff) bool {
	return !slices.ContainsFunc(Of[*TurnItem](c.log), func(it *TurnItem) bool {
		return it.Item.Changes != nil && !slices.EqualFunc(it.Item.Changes, diff.Parts, func(change ItemChange, p patch.Part) bool {
			return change.Path == p.Path && change.From == p.From && change.Kind == string(p.Kind)
		})
	})
}
