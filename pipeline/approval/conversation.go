package approval

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/policy"
)

// A Conversation is what one reading of a pull request brought, and the patch
// that it is searched for. Posted are the comments of ours, which say nothing.
//
// GateOnly tells that the patch is the pull request's own diff: then a green
// review counts as well, of a commit in Heads, the commits whose diff is the
// patch.
//
// Since is the first second that is surely after the transaction began: an
// approval from before is of an earlier one with the same bytes, and its effect
// may have been undone since. In gate-only it bounds green reviews alone, which
// name no bytes. The zero time sets no bound; denials have none.
type Conversation struct {
	Statements []Statement
	Posted     []Posted
	PatchID    string
	GateOnly   bool
	Heads      map[string]bool
	Since      time.Time
}

// A Said is one thing that a statement says about the patch. Command has the
// fingerprint of the patch where the statement names it by its place alone; it
// has no Verb where the text only looks like a command. Text is that of the
// texts of the statement which says it. Native is a green review without words.
//
// Void is why it cannot count, whoever said it, "" if it may. A denial counts in
// whatever text it ever stood, and is void only if it is of another patch or
// stands where it names none.
type Said struct {
	Statement
	Command Command
	Text    string
	Native  bool
	Void    string
}

// Said returns what was said about the patch, in the order of time and, at one
// time, of the forge's numbers. A statement can say two things: it was a denial
// before it was edited into an approval.
func (c Conversation) Said() []Said {
	var out []Said
	c.Statements = ordered(c.Statements)
	for _, s := range c.Statements {
		if s.State == reviewPending || c.ours(s) {
			continue
		}
		out = append(out, c.denials(s)...)
		if said, ok := c.other(s); ok {
			out = append(out, said)
		}
	}
	return out
}

const reviewPending = "PENDING" // not submitted yet: only its author sees it

// ordered is by time, a time that cannot be read being later than all.
func ordered(list []Statement) []Statement {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b Statement) int {
		at, aErr := time.Parse(time.RFC3339, a.CreatedAt)
		bt, bErr := time.Parse(time.RFC3339, b.CreatedAt)
		if aErr != nil || bErr != nil {
			return cmp.Or(cmp.Compare(failed(aErr), failed(bErr)), compareIDs(a, b))
		}
		return cmp.Or(at.Compare(bt), compareIDs(a, b))
	})
	return out
}

func failed(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

// compareIDs compares decimal numbers of any size; those of different kinds of
// statement are of different series.
func compareIDs(a, b Statement) int {
	return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID), strings.Compare(a.Kind, b.Kind))
}

// ours reports whether a statement is a comment that this program posted.
func (c Conversation) ours(s Statement) bool {
	return slices.ContainsFunc(c.Posted, func(p Posted) bool { return p.Kind == s.Kind && p.ID == s.ID })
}

// denials are those in any text that a statement ever had, each fingerprint once.
func (c Conversation) denials(s Statement) []Said {
	var out []Said
	for _, text := range slices.Concat(s.Earlier, []string{s.Body}) {
		command, ok := ParseCommand(text)
		if !ok || command.Verb != VerbDeny {
			continue
		}
		if command.Fingerprint == "" && c.inThread(s) {
			command.Fingerprint = policy.Fingerprint(policy.KindFileChange, c.PatchID)
		}
		known := slices.ContainsFunc(out, func(o Said) bool { return o.Command.Fingerprint == command.Fingerprint })
		if c.names(command) && !known {
			out = append(out, Said{Statement: s, Command: command, Text: text})
		}
	}
	return out
}

// names reports whether a command is about this patch, by any of its fingerprints.
func (c Conversation) names(command Command) bool {
	return slices.Contains(policy.Fingerprints(c.PatchID), command.Fingerprint)
}

// other is what a statement says now, beside the denials of the patch.
func (c Conversation) other(s Statement) (Said, bool) {
	said := Said{Statement: s, Text: s.Body}
	command, ok := ParseCommand(s.Body)
	switch {
	case c.GateOnly && wordless(s):
		return c.native(said), true
	case ok && command.Verb == VerbDeny && (c.names(command) || command.Fingerprint == "" && c.inThread(s)):
		return Said{}, false // one of denials
	case ok:
		said.Command = command
		said.Void = c.void(&said)
	case LooksLike(s.Body):
		said.Void = "is not an exact command"
	case s.Author.Kind == "user" && c.buried(s.Body):
		said.Void = "its command is not the first line"
	case s.Kind == KindReview && s.State == ReviewApproved && !c.GateOnly:
		said.Void = "a green review does not name the patch; paste the line"
	default:
		return Said{}, false
	}
	return said, true
}
