package approval

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// Reasons that are told in other words of an approval that was recorded.
const (
	voidGone   = "is gone"
	voidEdited = "edited after posting"
	voidHidden = "is hidden"
	voidUntold = "is not told as it was posted: the same line in a review counts, or signed"
)

// buried reports whether a line below the first is a command that names the patch.
func (c Conversation) buried(body string) bool {
	if strings.Contains(body, "<!-- countersign:") {
		return false // a report of ours, with the lines to copy
	}
	for line := range strings.Lines(body) {
		if command, ok := ParseCommand(line); ok && c.names(command) {
			return true
		}
	}
	return false
}

// void says why a command cannot count, and fills in what its place names.
func (c Conversation) void(said *Said) string {
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
	case said.State == ReviewChangesRequested: // two answers that contradict each other
		return "its review asks for changes"
	case c.GateOnly && c.takenBack(said.Statement):
		return "taken back by a later review"
	case !c.GateOnly && c.before(said.Statement): // gate-only has no effect that could have been undone
		return "is from before this was proposed"
	}
	return said.Statement.void()
}

func (c Conversation) before(s Statement) bool { return s.at().Before(c.Since) }

// void says why an approval in a statement's present text cannot count,
// whatever it says, "" if it may.
func (s Statement) void() string {
	switch _, err := time.Parse(time.RFC3339, s.CreatedAt); {
	case s.Gone:
		return voidGone
	case s.changed():
		return voidEdited
	case s.State == ReviewDismissed:
		return "was dismissed"
	case s.Hidden:
		return voidHidden
	case s.Untold:
		return voidUntold
	case err != nil:
		return "its time cannot be read"
	}
	return s.foreign()
}

// changed reports whether a statement ever had another text than it has.
func (s Statement) changed() bool {
	return s.Edited || slices.ContainsFunc(s.Earlier, func(text string) bool { return text != s.Body })
}

// foreign says that a statement did not come from its author's own hand.
func (s Statement) foreign() string {
	switch {
	case s.App != "":
		return "posted through the app " + ledger.OneLine(s.App, 60)
	case s.Email:
		return "sent by e-mail"
	}
	return ""
}

// inThread reports whether a statement replies to a comment that we posted, be
// that as it was or not.
func (c Conversation) inThread(s Statement) bool {
	return s.Kind == KindReviewComment && s.ReplyTo != "" && c.ours(Statement{Kind: KindReviewComment, ID: s.ReplyTo})
}

// unbound says why a statement names no patch by its place, "" if it does (T17).
func (c Conversation) unbound(s Statement) string {
	if !c.inThread(s) {
		if strings.Contains(firstLine(s.Body), "patchset:") {
			return "is not an exact command"
		}
		return "is not in the thread of the request"
	}
	for _, first := range c.Statements {
		if first.Kind == KindReviewComment && first.ID == s.ReplyTo && c.asPosted(first) {
			return ""
		}
	}
	return "the request it answers was changed after it was posted"
}

func (c Conversation) asPosted(s Statement) bool {
	sum := canon.Sum([]byte(s.Body))
	return !s.changed() && !s.Gone && slices.ContainsFunc(c.Posted, func(p Posted) bool {
		return p.Kind == s.Kind && p.ID == s.ID && p.BodySHA256 == sum
	})
}

// wordless reports whether a statement is a green review, or one that was, whose
// state speaks for it: its text is no command that names a patch, nor anything
// that looks like one. A bare /approve means there what the state means.
func wordless(s Statement) bool {
	if s.Kind != KindReview || s.State != ReviewApproved && s.State != ReviewDismissed {
		return false
	}
	command, ok := ParseCommand(s.Body)
	return !LooksLike(s.Body) || ok && command == (Command{Verb: VerbApprove})
}

// native judges a wordless review, where the pull request's own diff is the
// patch. That its text was edited changes nothing: the state cannot be.
func (c Conversation) native(said Said) Said {
	s := said.Statement
	said.Native = true
	said.Command = Command{Verb: VerbApprove, Fingerprint: policy.Fingerprint(policy.KindFileChange, c.PatchID)}
	switch why := s.voidState(); {
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

// voidState says why a review's state cannot count, whatever it is of.
func (s Statement) voidState() string {
	switch _, err := time.Parse(time.RFC3339, s.CreatedAt); {
	case s.State == ReviewDismissed:
		return "was dismissed"
	case s.Gone:
		return voidGone
	case s.Hidden:
		return voidHidden
	case err != nil:
		return "its time cannot be read"
	}
	return s.foreign()
}

// takenBack reports whether the author of a statement later asked for changes, or
// had a later review dismissed. The statements are in order.
func (c Conversation) takenBack(s Statement) bool {
	at := slices.IndexFunc(c.Statements, func(o Statement) bool { return o.Kind == s.Kind && o.ID == s.ID })
	return slices.ContainsFunc(c.Statements[at+1:], func(o Statement) bool {
		return o.Kind == KindReview && same(o.Author, s.Author) && (o.State == ReviewChangesRequested || o.State == ReviewDismissed)
	})
}
