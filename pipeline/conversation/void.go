package conversation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// buried reports whether a line below the first is a command that names the patch.
func (c Transcript) buried(body string) bool {
	if strings.Contains(body, "<!-- countersign:") {
		return false // a report of ours, with the lines to copy
	}
	for line := range strings.Lines(body) {
		if command, ok := approval.ParseCommand(line); ok && c.names(command) {
			return true
		}
	}
	return false
}

// void says why a command cannot count, and fills in what its place names.
func (c Transcript) void(said *Remark) string {
	command := &said.Command
	if command.Fingerprint == "" {
		if why := c.unbound(said.Statement); why != "" {
			return why
		}
		command.Fingerprint, command.Kind = policy.Fingerprint(cmp.Or(command.Kind, policy.KindFileChange), c.PatchID), ""
	}
	switch {
	case !c.names(*command):
		return "names another patch"
	case command.BreakGlass && command.Fingerprint != policy.Fingerprint(policy.KindBreakGlass, c.PatchID):
		return "breaks no glass: it names only a part of what is asked for"
	case said.State == approval.ReviewChangesRequested: // two answers that contradict each other
		return "its review asks for changes"
	case c.GateOnly && c.takenBack(said.Statement):
		return "taken back by a later review"
	case !c.GateOnly && c.before(said.Statement): // gate-only has no effect that could have been undone
		return "is from before this was proposed"
	}
	return said.Statement.Void(false)
}

func (c Transcript) before(s approval.Statement) bool { return at(s).Before(c.Since) }

// inThread reports whether a statement replies to a comment that we posted, be
// that as it was or not.
func (c Transcript) inThread(s approval.Statement) bool {
	return s.Kind == approval.KindReviewComment && s.ReplyTo != "" && c.ours(approval.Statement{Kind: approval.KindReviewComment, ID: s.ReplyTo})
}

// unbound says why a statement names no patch by its place, "" if it does (T17).
func (c Transcript) unbound(s approval.Statement) string {
	if !c.inThread(s) {
		if line, _, _ := strings.Cut(s.Body, "\n"); strings.Contains(line, "patchset:") {
			return "is not an exact command"
		}
		return "is not in the thread of the request"
	}
	for _, first := range c.Statements {
		if first.Kind == approval.KindReviewComment && first.ID == s.ReplyTo && c.asPosted(first) {
			return ""
		}
	}
	return "the request it answers was changed after it was posted"
}

func (c Transcript) asPosted(s approval.Statement) bool {
	sum := canon.Sum([]byte(s.Body))
	return !s.Changed() && !s.Gone && slices.ContainsFunc(c.Posted, func(p forge.Posted) bool {
		return p.Kind == s.Kind && p.ID == s.ID && p.BodySHA256 == sum
	})
}

// native judges a wordless review, where the pull request's own diff is the
// patch. That its text was edited changes nothing: the state cannot be.
func (c Transcript) native(said Remark) Remark {
	s := said.Statement
	said.Native = true
	said.Command = approval.Command{Verb: approval.VerbApprove, Fingerprint: policy.Fingerprint(policy.KindFileChange, c.PatchID)}
	switch why := s.Void(true); {
	case why != "":
		said.Void = why
	case !c.Heads[s.Commit]:
		said.Void = "is of another commit"
	case c.takenBack(s):
		said.Void = "taken back by a later review"
	case c.before(s): // of another base the same commit has another diff
		said.Void = "is from before this was proposed"
	}
	return said
}

// takenBack reports whether the author of a statement later asked for changes, or
// had a later review dismissed. The statements are in order.
func (c Transcript) takenBack(s approval.Statement) bool {
	at := slices.IndexFunc(c.Statements, func(o approval.Statement) bool { return o.Kind == s.Kind && o.ID == s.ID })
	return slices.ContainsFunc(c.Statements[at+1:], func(o approval.Statement) bool {
		return o.Kind == approval.KindReview && approval.Same(o.Author, s.Author) && (o.State == approval.ReviewChangesRequested || o.State == approval.ReviewDismissed)
	})
}
