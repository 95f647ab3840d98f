package approval

import (
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/policy"
)

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
