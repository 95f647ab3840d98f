package forge

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Transcript is what one reading of a pull request brought, and the patch
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
type Transcript struct {
	Statements []approval.Statement
	Posted     []Posted
	PatchID    string
	GateOnly   bool
	Heads      map[string]bool
	Since      time.Time
}

// A Remark is one thing that a statement says about the patch. Command has the
// fingerprint of the patch where the statement names it by its place alone; it
// has no Verb where the text only looks like a command. Text is that of the
// texts of the statement which says it. Native is a green review without words.
//
// Void is why it cannot count, whoever said it, "" if it may. A denial counts in
// whatever text it ever stood, and is void only if it is of another patch or
// stands where it names none.
type Remark struct {
	approval.Statement
	Command approval.Command
	Text    string
	Native  bool
	Void    string
}

const reviewPending = "PENDING" // not submitted yet: only its author sees it

// Said returns what was said about the patch, in the order of time and, at one
// time, of the forge's numbers. A statement can say two things: it was a denial
// before it was edited into an approval.
func (c Transcript) Said() []Remark {
	c.Statements = slices.SortedStableFunc(slices.Values(c.Statements), func(a, b approval.Statement) int {
		return cmp.Or(at(a).Compare(at(b)), compareIDs(a, b))
	})
	var out []Remark
	for _, s := range c.Statements {
		if s.State == reviewPending || c.ours(s) {
			continue
		}
		out = append(out, c.denials(s)...)
		out = append(out, c.others(s)...)
	}
	return out
}

// Until is the transcript without what was said after a moment. What has no time stays.
func (c Transcript) Until(moment time.Time) Transcript {
	c.Statements = slices.DeleteFunc(slices.Clone(c.Statements), func(s approval.Statement) bool {
		at, err := time.Parse(time.RFC3339, s.CreatedAt)
		return err == nil && at.After(moment)
	})
	return c
}

// at is when a statement was made; a time that cannot be read is later than all.
func at(s approval.Statement) time.Time {
	at, err := time.Parse(time.RFC3339, s.CreatedAt)
	if err != nil {
		return time.Unix(1<<40, 0)
	}
	return at
}

// compareIDs compares decimal numbers of any size; those of different kinds of
// statement are of different series.
func compareIDs(a, b approval.Statement) int {
	return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID), strings.Compare(a.Kind, b.Kind))
}

// ours reports whether a statement is a comment that this program posted.
func (c Transcript) ours(s approval.Statement) bool {
	return slices.ContainsFunc(c.Posted, func(p Posted) bool { return p.Kind == s.Kind && p.ID == s.ID })
}

// denials are those in any text that a statement ever had, each fingerprint once.
func (c Transcript) denials(s approval.Statement) []Remark {
	var out []Remark
	for _, text := range slices.Concat(s.Earlier, []string{s.Body}) {
		command, ok := approval.ParseCommand(text)
		if !ok || command.Verb != approval.VerbDeny {
			continue
		}
		if command.Fingerprint == "" && c.inThread(s) {
			command.Fingerprint = policy.Fingerprint(policy.KindFileChange, c.PatchID)
		}
		known := slices.ContainsFunc(out, func(o Remark) bool { return o.Command.Fingerprint == command.Fingerprint })
		if c.names(command) && !known {
			out = append(out, Remark{Statement: s, Command: command, Text: text})
		}
	}
	return out
}

// names reports whether a command is about this patch, by any of its fingerprints.
func (c Transcript) names(command approval.Command) bool {
	return slices.Contains(policy.Fingerprints(c.PatchID), command.Fingerprint)
}

// others is what a statement says now, beside the denials of the patch: one thing,
// but for a signed approval of several kinds.
func (c Transcript) others(s approval.Statement) []Remark {
	_, commands, err := approval.ParseSigned(s.Body)
	if err != nil || commands[0].Verb == approval.VerbDeny {
		if said, ok := c.other(s); ok {
			return []Remark{said}
		}
		return nil
	}
	var out []Remark
	for _, command := range commands {
		said := Remark{Statement: s, Text: s.Body, Command: command}
		said.Void = c.void(&said)
		out = append(out, said)
	}
	return out
}

// other is what a statement says now that decides on one thing.
func (c Transcript) other(s approval.Statement) (Remark, bool) {
	said := Remark{Statement: s, Text: s.Body}
	command, ok := approval.ParseCommand(s.Body)
	switch {
	case c.GateOnly && s.Wordless():
		return c.native(said), true
	case ok && command.Verb == approval.VerbDeny && (c.names(command) || command.Fingerprint == "" && c.inThread(s)):
		return Remark{}, false // one of denials
	case ok:
		said.Command = command
		said.Void = c.void(&said)
	case approval.LooksLike(s.Body):
		said.Void = "is not an exact command"
		if _, _, err := approval.ParseSigned(s.Body); err != nil && hasSignature(s.Body) {
			said.Void = "is not an exact signed command: " + err.Error()
		}
	case s.Author.Kind == "user" && c.buried(s.Body):
		said.Void = "its command is not the first line"
	case s.Kind == approval.KindReview && s.State == approval.ReviewApproved && !c.GateOnly:
		said.Void = "a green review does not name the patch; paste the line"
	default:
		return Remark{}, false
	}
	return said, true
}

// since is the first second, as the forge tells time, that is surely of a
// transaction. In the very second in which it began something else may have been
// approved: the same bytes in the transaction before, and approvals do not carry
// over; or, by a green review, which names no bytes, the diff to another base.
func since(tree fs.FS, log *ledger.Log) (time.Time, error) {
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
		old, err := lookup.ListedState(tree, id)
		if err != nil {
			return at, err
		}
		if old.PatchID() == tx.PatchID() {
			return at.Add(time.Second), nil
		}
	}
	return at, nil
}

// hasSignature reports whether a comment seems to be meant as a signed command, right or
// wrong.
func hasSignature(body string) bool {
	line, _, _ := strings.Cut(body, "\n")
	return strings.Contains(line, " sig:") || approval.HasBlock(body)
}
