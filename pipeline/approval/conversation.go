package approval

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// The kinds of statement, which are those of a decision's source.
const (
	KindReview        = "review"
	KindReviewComment = "review_comment"
	KindIssueComment  = "issue_comment"
)

// The states of a review that matter here (GitHub's REST API, "Reviews").
const (
	ReviewApproved         = "APPROVED"
	ReviewChangesRequested = "CHANGES_REQUESTED"
	ReviewDismissed        = "DISMISSED"
)

// A Statement is one review or comment of a pull request, as the forge told it.
type Statement struct {
	Kind      string       `json:"kind"`
	ID        string       `json:"id"` // the forge's number
	URL       string       `json:"url"`
	Author    ledger.Actor `json:"author"` // Kind "user" for a human account, else "bot"; ID is the account's number
	Body      string       `json:"body"`
	Earlier   []string     `json:"earlier,omitempty"` // the texts that it had before, oldest first
	Edited    bool         `json:"edited"`
	Gone      bool         `json:"gone,omitempty"`     // an event told it, and the forge has it no more
	Untold    bool         `json:"untold,omitempty"`   // the forge does not tell what it said when it was posted
	App       string       `json:"app,omitempty"`      // the app that posted it for its author
	Email     bool         `json:"email,omitempty"`    // it came by e-mail
	Hidden    bool         `json:"hidden,omitempty"`   // somebody hid ("minimized") it
	State     string       `json:"state,omitempty"`    // of a review
	Commit    string       `json:"commit,omitempty"`   // that a review, or a comment of one, was made on
	ReplyTo   string       `json:"reply_to,omitempty"` // the id of the first comment of a review comment's thread
	CreatedAt string       `json:"created_at"`         // RFC 3339
}

// Posted is a comment that this program made. BodySHA256 is of the body as the
// forge returned it; a thread whose first comment has another body, or was
// edited, binds nobody.
type Posted struct {
	Kind       string `json:"kind"` // KindReviewComment, or KindIssueComment for the one that is updated
	ID         string `json:"id"`
	URL        string `json:"url"`
	BodySHA256 string `json:"body_sha256"`
}

// Access is what an account may do in a repository. Permission is one of
// policy.Permission's words, custom roles reduced to the one they are based on,
// "none" for an account that is no collaborator; Role is the forge's own word.
type Access struct {
	Permission string `json:"permission"`
	Role       string `json:"role"`
}

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

const reviewPending = "PENDING" // not submitted yet: only its author sees it

// Said returns what was said about the patch, in the order of time and, at one
// time, of the forge's numbers. A statement can say two things: it was a denial
// before it was edited into an approval.
func (c Conversation) Said() []Said {
	c.Statements = slices.SortedStableFunc(slices.Values(c.Statements), func(a, b Statement) int {
		return cmp.Or(a.at().Compare(b.at()), compareIDs(a, b))
	})
	var out []Said
	for _, s := range c.Statements {
		if s.State == reviewPending || c.ours(s) {
			continue
		}
		out = append(out, c.denials(s)...)
		out = append(out, c.others(s)...)
	}
	return out
}

// Until is the conversation without what was said after a moment. What has no time stays.
func (c Conversation) Until(moment time.Time) Conversation {
	c.Statements = slices.DeleteFunc(slices.Clone(c.Statements), func(s Statement) bool {
		at, err := time.Parse(time.RFC3339, s.CreatedAt)
		return err == nil && at.After(moment)
	})
	return c
}

// at is when a statement was made; a time that cannot be read is later than all.
func (s Statement) at() time.Time {
	at, err := time.Parse(time.RFC3339, s.CreatedAt)
	if err != nil {
		return time.Unix(1<<40, 0)
	}
	return at
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

// others is what a statement says now, beside the denials of the patch: one thing,
// but for a signed approval of several kinds.
func (c Conversation) others(s Statement) []Said {
	_, commands, err := ParseSigned(s.Body)
	if err != nil || commands[0].Verb == VerbDeny {
		if said, ok := c.other(s); ok {
			return []Said{said}
		}
		return nil
	}
	var out []Said
	for _, command := range commands {
		said := Said{Statement: s, Text: s.Body, Command: command}
		said.Void = c.void(&said)
		out = append(out, said)
	}
	return out
}

// other is what a statement says now that decides on one thing.
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
		if _, _, err := ParseSigned(s.Body); err != nil && hasSignature(s.Body) {
			said.Void = "is not an exact signed command: " + err.Error()
		}
	case s.Author.Kind == "user" && c.buried(s.Body):
		said.Void = "its command is not the first line"
	case s.Kind == KindReview && s.State == ReviewApproved && !c.GateOnly:
		said.Void = "a green review does not name the patch; paste the line"
	default:
		return Said{}, false
	}
	return said, true
}

// Since is the first second, as the forge tells time, that is surely of a
// transaction. In the very second in which it began something else may have been
// approved: the same bytes in the transaction before, and approvals do not carry
// over; or, by a green review, which names no bytes, the diff to another base.
func Since(tree fs.FS, log *ledger.Log) (time.Time, error) {
	at, err := log.Time(0)
	if err != nil {
		return at, err
	}
	at = at.Truncate(time.Second)
	tx := log.Transaction()
	if tx.GateOnly() {
		return at.Add(time.Second), nil
	}
	for _, id := range tx.Pointers.Proposal.Supersedes {
		old, err := ledger.ListedState(tree, id)
		if err != nil {
			return at, err
		}
		if old.PatchID() == tx.PatchID() {
			return at.Add(time.Second), nil
		}
	}
	return at, nil
}
