package approval_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

const (
	opened = "Please look at this change.\n\n    /approve patchset:…"
	hour   = "2026-01-05T11:00:00Z"
)

type edits []func(*approval.Statement)

// comment is one of the conversation by ada, written before it is edited.
func comment(body string, more ...func(*approval.Statement)) approval.Statement {
	s := approval.Statement{Kind: "issue_comment", ID: "20", URL: "https://forge.example/20", Author: people["ada"], Body: body, CreatedAt: hour}
	for _, edit := range more {
		edit(&s)
	}
	return s
}

func by(who string) func(*approval.Statement) {
	return func(s *approval.Statement) { s.Author = people[who] }
}

func id(id, at string) func(*approval.Statement) {
	return func(s *approval.Statement) { s.ID, s.CreatedAt = id, at }
}

func edited(earlier ...string) func(*approval.Statement) {
	return func(s *approval.Statement) { s.Edited, s.Earlier = true, earlier }
}

func reply(to string) func(*approval.Statement) {
	return func(s *approval.Statement) { s.Kind, s.ReplyTo, s.Commit = "review_comment", to, "head" }
}

func review(state, commit string) func(*approval.Statement) {
	return func(s *approval.Statement) { s.Kind, s.State, s.Commit = "review", state, commit }
}

func gone(s *approval.Statement)    { s.Gone = true }
func hidden(s *approval.Statement)  { s.Hidden = true }
func untold(s *approval.Statement)  { s.Untold = true }
func byApp(s *approval.Statement)   { s.App = "helper\u202e" }
func byEmail(s *approval.Statement) { s.Email = true }

// first is the comment that opened the thread, of ours.
func first(more ...func(*approval.Statement)) approval.Statement {
	all := append(edits{func(s *approval.Statement) { s.Kind, s.ID, s.Author = "review_comment", "7", agent }, id("7", "2026-01-05T10:00:00Z")}, more...)
	return comment(opened, all...)
}

// talk is a conversation on a proposal, with our two comments.
func talk(said ...approval.Statement) forge.Transcript {
	return forge.Transcript{
		PatchID: thePatch, Statements: said,
		Posted: []forge.Posted{
			{Kind: "review_comment", ID: "7", BodySHA256: canon.Sum([]byte(opened))}, {Kind: "issue_comment", ID: "8", BodySHA256: canon.Sum([]byte("…"))},
		},
	}
}

// gateOnly is one on the pull request's own diff, which the commits head and
// same have.
func gateOnly(said ...approval.Statement) forge.Transcript {
	c := talk(said...)
	c.GateOnly, c.Heads = true, map[string]bool{"head": true, "same": true}
	return c
}

// told writes what was said: the line, "native" for a green review, and why it
// is void, if it is.
func told(c forge.Transcript) string {
	var out []string
	for _, s := range c.Said() {
		words := strings.ReplaceAll(written(s.Command), thePatch, "P")
		if s.Native {
			words = "native " + words
		}
		if s.Command.Verb == "" {
			words = "?"
		}
		if s.Void != "" {
			words += " (" + s.Void + ")"
		}
		out = append(out, words)
	}
	return strings.Join(out, "; ")
}

type hearing struct {
	name string
	talk forge.Transcript
	want string
}

func hear(t *testing.T, rows []hearing) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			if got := told(c.talk); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

const inThread, changedThread = "/approve patchset:P", "the request it answers was changed after it was posted"

func TestConversation(t *testing.T) {
	hear(t, []hearing{
		{"nothing", talk(), ""},
		{"chatter", talk(comment("Nice!"), comment("")), ""},
		{"an approval", talk(comment("/approve " + own)), "/approve patchset:P"},
		{"in a review", talk(comment("/approve "+own, review("COMMENTED", "head"))), "/approve patchset:P"},
		{"in a review's comment", talk(comment("/approve secret:"+own, reply("99"))), "/approve secret:patchset:P"},
		{"in an emergency", talk(comment("/approve --break-glass " + own + " down")), "/approve --break-glass patchset:P down"},
		{"in an emergency, of a part", talk(comment("/approve --break-glass protected:" + own + " down")),
			"/approve --break-glass protected:patchset:P down (breaks no glass: it names only a part of what is asked for)"},
		{"a denial", talk(comment("/deny " + own + " too risky")), "/deny patchset:P too risky"},
		{"our own comments", talk(first(), comment("/approve "+own, id("8", hour))), ""},
		{"of our number, but of another kind", talk(comment("/approve "+own, id("7", hour))), "/approve patchset:P"},
		{"a draft", talk(comment("/deny "+own, review("PENDING", "head"))), ""},
		{"a green review", talk(comment("Nice!", review("APPROVED", "head"))), "? (a green review does not name the patch; paste the line)"},
		{"no time", talk(comment("/approve "+own, id("9", "yesterday"))), "/approve patchset:P (its time cannot be read)"},
		{"looks like one", talk(comment("/approve it"), comment("> /approve "+own)), "? (is not an exact command); ? (is not an exact command)"},
		{"not the first line", talk(comment("Fine.\n\n/approve " + own + "\n")), "? (its command is not the first line)"},
		{"not the first line, by a bot", talk(comment("Fine.\n\n/approve "+own+"\n", by("app"))), ""},
		{"not the first line, of another patch", talk(comment("Fine.\n\n/approve patchset:" + canon.Hex(nil))), ""},
	})
}

// TestConversationOrder: time, then the number, whatever the forge's order.
func TestConversationOrder(t *testing.T) {
	list := []approval.Statement{
		comment("/deny "+own+" 1", id("99", "2026-01-05T10:59:59Z")), comment("/deny "+own+" 2", id("9", hour)),
		comment("/deny "+own+" 3", id("10", "2026-01-05T12:00:00+01:00")), comment("/deny "+own+" 4", id("1", "2026-01-05T11:00:00.5Z")),
		comment("/deny "+own+" 5", id("2", "soon")),
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		r.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
		var got string
		for _, s := range talk(list...).Said() {
			got += s.Command.Reason
		}
		if got != "12345" {
			t.Fatal(got)
		}
	}
}

func TestT01EditedByAnother(t *testing.T) {
	hear(t, []hearing{
		{"into an approval", talk(comment("/approve "+own, edited("Nice!"))), "/approve patchset:P (edited after posting)"},
		{"and the history is hidden", talk(comment("/approve "+own, edited())), "/approve patchset:P (edited after posting)"},
		{"and what it was is not told", talk(comment("/approve "+own, untold)), "/approve patchset:P (is not told as it was posted: the same line in a review counts, or signed)"},
		{"and only an event told", talk(comment("/approve "+own, func(s *approval.Statement) { s.Earlier = []string{"Nice!"} })), "/approve patchset:P (edited after posting)"},
		{"an event told the same", talk(comment("/approve "+own, func(s *approval.Statement) { s.Earlier = []string{s.Body} })), "/approve patchset:P"},
		{"a denial into an approval", talk(comment("/approve "+own, edited("/deny "+own+" no"))), "/deny patchset:P no; /approve patchset:P (edited after posting)"},
		{"a denial into nothing", talk(comment("Nice!", edited("Hm", "/deny "+own, "Hm"))), "/deny patchset:P"},
		{"into a denial", talk(comment("/deny "+own, edited("Nice!"))), "/deny patchset:P"},
		{"a denial into another", talk(comment("/deny "+own+" b", edited("/deny "+own+" a", "/deny secret:"+own))), "/deny patchset:P a; /deny secret:patchset:P"},
		{"away from an approval", talk(comment("Nice!", edited("/approve "+own))), ""},
	})
}

func TestT02EditedByItsAuthor(t *testing.T) {
	hear(t, []hearing{
		{"another patch", talk(comment("/approve "+own, edited("/approve patchset:"+canon.Hex(nil)))), "/approve patchset:P (edited after posting)"},
		{"and back", talk(comment("/approve "+own, edited("/approve "+own, "no"))), "/approve patchset:P (edited after posting)"},
	})
}

func TestT03DenialsStick(t *testing.T) {
	hear(t, []hearing{
		{"deleted", talk(comment("/deny "+own, gone)), "/deny patchset:P"},
		{"deleted after it was edited", talk(comment("Nice!", gone, edited("/deny "+own))), "/deny patchset:P"},
		{"through an app", talk(comment("/deny "+own, byApp)), "/deny patchset:P"},
		{"by e-mail", talk(comment("/deny "+own, byEmail)), "/deny patchset:P"},
		{"by a bot", talk(comment("/deny "+own, by("app"))), "/deny patchset:P"},
		{"dismissed", talk(comment("/deny "+own, review("DISMISSED", "old"))), "/deny patchset:P"},
		{"in a green review", gateOnly(comment("/deny "+own, review("APPROVED", "head"))), "/deny patchset:P"},
		{"in the thread", talk(first(), comment("/deny too risky", reply("7"))), "/deny patchset:P too risky"},
		{"in the thread, with a slip", talk(first(), comment("/deny patchset:abc", reply("7"))), "/deny patchset:P patchset:abc"},
		{"in the thread, edited", talk(first(), comment("Nice", reply("7"), edited("/deny"))), "/deny patchset:P"},
		{"in a thread that was changed", talk(first(edited("x")), comment("/deny", reply("7"))), "/deny patchset:P"},
		{"in a thread that is gone", talk(comment("/deny", reply("7"))), "/deny patchset:P"},
		{"an approval that is gone", talk(comment("/approve "+own, gone)), "/approve patchset:P (is gone)"},
		{"hidden", talk(comment("/deny "+own, hidden)), "/deny patchset:P"},
		{"not told as it was posted", talk(comment("/deny "+own, untold)), "/deny patchset:P"},
		{"an approval that is hidden", talk(comment("/approve "+own, hidden)), "/approve patchset:P (is hidden)"},
		{"an approval that was dismissed", talk(comment("/approve "+own, review("DISMISSED", "head"))), "/approve patchset:P (was dismissed)"},
		{"without a time", talk(comment("/deny "+own, id("1", ""))), "/deny patchset:P"},
		{"with a slip", talk(comment("/deny patchset:abc")), "/deny patchset:abc (is not an exact command)"},
		{"alone, in no thread", talk(comment("/deny it")), "/deny it (is not in the thread of the request)"},
	})
}

func TestT15AnotherPlace(t *testing.T) {
	other := "patchset:" + canon.Hex([]byte("another patch"))
	said := func(line string) string { return strings.Replace(line, "O", canon.Hex([]byte("another patch")), 1) }
	hear(t, []hearing{
		{"another patch", talk(comment("/approve " + other)), said("/approve patchset:O (names another patch)")},
		{"another patch's denial", talk(comment("/deny " + other)), said("/deny patchset:O (names another patch)")},
		{"in our thread", talk(first(), comment("/approve "+other, reply("7"))), said("/approve patchset:O (names another patch)")},
		{"another thread", talk(first(), comment("/approve", reply("70"))), "/approve (is not in the thread of the request)"},
		{"the thread of another request", talk(first(), comment("/approve", reply("8"))), "/approve (is not in the thread of the request)"},
		{"no thread", talk(first(), comment("/approve")), "/approve (is not in the thread of the request)"},
		{"a review", talk(first(), comment("/approve", review("APPROVED", "head"))), "/approve (is not in the thread of the request)"},
		{"a comment that says it is a reply", talk(first(), comment("/approve", reply("7"), func(s *approval.Statement) { s.Kind = "issue_comment" })),
			"/approve (is not in the thread of the request)"},
	})
}

func TestT17TheRequestWasEdited(t *testing.T) {
	void := "/approve (" + changedThread + ")"
	bare := comment("/approve", reply("7"))
	hear(t, []hearing{
		{"as it was", talk(first(), bare), inThread},
		{"in any order", talk(bare, first()), inThread},
		{"with lines after it", talk(first(), comment("/approve\r\nGo!", reply("7"))), inThread},
		{"another body", talk(first(func(s *approval.Statement) { s.Body += " " }), bare), void},
		{"edited and put back", talk(first(edited("x", opened)), bare), void},
		{"edited, and the history is hidden", talk(first(edited()), bare), void},
		{"edited, an event told", talk(first(func(s *approval.Statement) { s.Earlier = []string{"x"} }), bare), void},
		{"deleted", talk(bare), void},
		{"deleted, an event told", talk(first(gone), bare), void},
		{"a comment of that number of another kind", talk(first(func(s *approval.Statement) { s.Kind = "issue_comment" }), bare), void},
		{"a comment of that number of another kind, which is ours", func() forge.Transcript {
			c := talk(first(edited("x")), first(func(s *approval.Statement) { s.Kind = "issue_comment" }), bare)
			c.Posted = append(c.Posted, forge.Posted{Kind: "issue_comment", ID: "7", BodySHA256: c.Posted[0].BodySHA256})
			return c
		}(), void},
		{"names the patch itself", talk(first(edited("x")), comment("/approve "+own, reply("7"))), "/approve patchset:P"},
		{"the reply was edited", talk(first(), comment("/approve", reply("7"), edited("Hm"))), "/approve patchset:P (edited after posting)"},
	})
}

// TestT97ShortAnswers: in the thread of its own request an answer names the approval alone, and
// nowhere else; one comment gives one approval.
func TestT97ShortAnswers(t *testing.T) {
	short := comment("/approve protected", reply("7"))
	const counts, elsewhere = "/approve protected:patchset:P", "/approve protected (is not in the thread of the request)"
	another := talk(first(), short) // of the transaction that took this one's place
	another.Posted = []forge.Posted{{Kind: "review_comment", ID: "70", BodySHA256: canon.Sum([]byte(opened))}}
	hear(t, []hearing{
		{"as it was", talk(first(), short), counts},
		{"of a secret", talk(first(), comment("/approve secret", reply("7"))), "/approve secret:patchset:P"},
		{"with lines after it", talk(first(), comment("/approve protected\r\nGo!\n/approve", reply("7"))), counts},
		{"below that of the change", talk(first(), comment("/approve\n/approve protected", reply("7"))), inThread},
		{"each an act of its own", talk(first(), comment("/approve", reply("7")), comment("/approve protected", reply("7"), id("21", hour)), comment("/approve secret", reply("7"), id("22", hour))),
			"/approve patchset:P; " + counts + "; /approve secret:patchset:P"},
		{"another thread", talk(first(), comment("/approve protected", reply("70"))), elsewhere},
		{"of somebody's comment, with the request's words", talk(first(), comment(opened, id("9", hour), func(s *approval.Statement) { s.Kind = "review_comment" }), comment("/approve protected", reply("9"))), elsewhere},
		{"of a comment of ours that asks nothing", talk(first(), comment("/approve protected", reply("8"))), elsewhere},
		{"of the request of a superseded transaction", another, elsewhere},
		{"no thread", talk(first(), comment("/approve protected")), elsewhere},
		{"a green review", talk(first(), comment("/approve protected", review("APPROVED", "head"))), elsewhere},
		{"a green review, of the pull request's own diff", gateOnly(comment("/approve protected", review("APPROVED", "head"))), elsewhere},
		{"the request was edited", talk(first(edited("x", opened)), short), "/approve protected (" + changedThread + ")"},
		{"the request has another body", talk(first(func(s *approval.Statement) { s.Body += " " }), short), "/approve protected (" + changedThread + ")"},
		{"the request is gone", talk(short), "/approve protected (" + changedThread + ")"},
		{"the answer was edited", talk(first(), comment("/approve protected", reply("7"), edited("/approve"))), counts + " (edited after posting)"},
		{"quoted", talk(first(), comment("> /approve protected", reply("7"))), "? (is not an exact command)"},
		{"with a word more", talk(first(), comment("/approve protected please", reply("7"))), "? (is not an exact command)"},
		{"in upper case", talk(first(), comment("/approve PROTECTED", reply("7"))), "? (is not an exact command)"},
		{"through an app", talk(first(), comment("/approve protected", reply("7"), byApp)), counts + " (posted through the app helper)"},
		{"from before it was proposed", func() forge.Transcript {
			c := talk(first(), short)
			c.Since = time.Date(2026, 1, 5, 11, 0, 1, 0, time.UTC)
			return c
		}(), counts + " (is from before this was proposed)"},
		{"a denial with that word", talk(first(), comment("/deny protected", reply("7"))), "/deny patchset:P protected"},
	})
	if said := talk(first(), short).Said()[0]; said.Command.RequestKind() != "protected_path" {
		t.Error(said.Command.RequestKind())
	}
	d := decided(talk(first(), short))[0]
	for want, now := range map[string]forge.Transcript{
		"": talk(first(), short), changedThread: talk(first(edited("x")), short), "its comment is gone": talk(first()),
		"its comment says something else now": talk(first(), comment("/approve", reply("7"), edited("/approve protected"))),
	} {
		if got := now.Stands(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestT97NotNeeded: an approval that nobody asked for counts for nothing, not for the change either.
func TestT97NotNeeded(t *testing.T) {
	c := talk(first(), comment("/approve protected", reply("7")), comment("/approve secret", reply("7"), id("21", hour)))
	judgeAll(t, []situation{{"it", "", "a", "", pending, "0 of 1 approvals", "-is not asked for; -is not asked for", func(k *approval.Case) {
		k.Log, k.Stands = record(t, agent, decided(c)), c.Stands
	}}})
}

func TestT65NotByHand(t *testing.T) {
	hear(t, []hearing{
		{"an app", talk(comment("/approve "+own, byApp)), "/approve patchset:P (posted through the app helper)"},
		{"e-mail", talk(comment("/approve "+own, byEmail)), "/approve patchset:P (sent by e-mail)"},
		{"an app, in the thread", talk(first(), comment("/approve", reply("7"), byApp)), "/approve patchset:P (posted through the app helper)"},
		{"a green review by an app", gateOnly(comment("", review("APPROVED", "head"), byApp)), "native /approve patchset:P (posted through the app helper)"},
		{"in an emergency", talk(comment("/approve --break-glass "+own+" down", byEmail)), "/approve --break-glass patchset:P down (sent by e-mail)"},
	})
}

// TestNativeReviews: the green button, where the pull request's diff is the patch.
func TestNativeReviews(t *testing.T) {
	const native = "native /approve patchset:P"
	later := "2026-01-05T11:30:00Z"
	green := comment("Nice!", review("APPROVED", "head"))
	hear(t, []hearing{
		{"green", gateOnly(green), native},
		{"of another commit with that diff", gateOnly(comment("", review("APPROVED", "same"))), native},
		{"of another commit", gateOnly(comment("", review("APPROVED", "old"))), native + " (is of another commit)"},
		{"of no commit", gateOnly(comment("", review("APPROVED", ""))), native + " (is of another commit)"},
		{"its text was edited", gateOnly(comment("Nice!", review("APPROVED", "head"), edited("Nice"))), native},
		{"a bare command", gateOnly(comment("/approve", review("APPROVED", "head"))), native},
		{"a bare command in another review", gateOnly(comment("/approve", review("COMMENTED", "head"))), "/approve (is not in the thread of the request)"},
		{"the command", gateOnly(comment("/approve "+own, review("APPROVED", "old"))), "/approve patchset:P"},
		{"of another patch", gateOnly(comment("/approve patchset:"+strings.Repeat("0", 64), review("APPROVED", "head"))),
			"/approve patchset:" + strings.Repeat("0", 64) + " (names another patch)"},
		{"with a slip", gateOnly(comment("/aprove "+own, review("APPROVED", "head"))), "? (is not an exact command)"},
		{"and no", gateOnly(comment("/deny it", review("APPROVED", "head"))), "/deny it (is not in the thread of the request)"},
		{"hidden", gateOnly(comment("", review("APPROVED", "head"), hidden)), native + " (is hidden)"},
		{"dismissed", gateOnly(comment("", review("DISMISSED", "head"))), native + " (was dismissed)"},
		{"at no time that can be read", gateOnly(comment("", review("APPROVED", "head"), id("2", "today"))), native + " (its time cannot be read)"},
		{"at no time", gateOnly(comment("", review("APPROVED", "head"), id("2", ""))), native + " (its time cannot be read)"},
		{"gone", gateOnly(comment("", review("APPROVED", "head"), gone)), native + " (is gone)"},
		{"not green", gateOnly(comment("", review("COMMENTED", "head")), comment("", review("CHANGES_REQUESTED", "head"))), ""},
		{"a comment with a state", gateOnly(comment("", review("APPROVED", "head"), func(s *approval.Statement) { s.Kind = "issue_comment" })), ""},
		{"taken back", gateOnly(green, comment("Hm", review("CHANGES_REQUESTED", "head"), id("30", later))), native + " (taken back by a later review)"},
		{"taken back within the second", gateOnly(comment("Hm", review("CHANGES_REQUESTED", "head"), id("21", hour)), green), native + " (taken back by a later review)"},
		{"given after all", gateOnly(green, comment("Hm", review("CHANGES_REQUESTED", "head"), id("3", hour))), native},
		{"taken back by a dismissed one", gateOnly(green, comment("Hm", review("DISMISSED", "head"), id("30", later))),
			native + " (taken back by a later review); " + native + " (was dismissed)"},
		{"commented later", gateOnly(green, comment("Hm", review("COMMENTED", "head"), id("30", later))), native},
		{"another's doubts", gateOnly(green, comment("Hm", review("CHANGES_REQUESTED", "head"), id("30", later), by("bob"))), native},
		{"a command taken back", gateOnly(comment("/approve "+own), comment("Hm", review("CHANGES_REQUESTED", "head"), id("30", later))),
			"/approve patchset:P (taken back by a later review)"},
		{"a command that asks for changes", gateOnly(comment("/approve "+own, review("CHANGES_REQUESTED", "head"))), "/approve patchset:P (its review asks for changes)"},
		{"a command for a proposal that asks for changes", talk(comment("/approve "+own, review("CHANGES_REQUESTED", "head"))), "/approve patchset:P (its review asks for changes)"},
		{"a proposal's is not", talk(comment("/approve "+own), comment("Hm", review("CHANGES_REQUESTED", "head"), id("30", later))), "/approve patchset:P"},
		{"of a proposal", talk(green), "? (a green review does not name the patch; paste the line)"},
		{"of a proposal, dismissed", talk(comment("", review("DISMISSED", "head"))), ""},
	})
}

// decided makes decisions of what was said, as a stage records them.
func decided(c forge.Transcript) []ledger.ApprovalDecision {
	var out []ledger.ApprovalDecision
	for _, s := range c.Said() {
		if decision, ok := s.Command.Decision(); ok && s.Void == "" {
			out = append(out, ledger.ApprovalDecision{
				Decision: decision, Fingerprint: s.Command.Fingerprint, Reason: s.Command.Reason,
				Source: s.Source(approval.Access{Permission: "write"}, "head", ""),
			})
		}
	}
	return out
}

func TestT10T12WhoSaidIt(t *testing.T) {
	line := "/approve " + own
	for _, c := range []struct {
		name, policy string
		said         []approval.Statement
		state        approval.State
		judged       string
	}{
		{"T12 twice by one", "approvals: {required: 2}", []approval.Statement{comment(line), comment(line, id("21", hour))}, pending, "+approved; -counted already"},
		{"T12 in words and in green", "approvals: {required: 2}", []approval.Statement{comment(line), comment("", review("APPROVED", "head"))}, pending,
			"+approved; -counted already"},
		{"T12 by two", "approvals: {required: 2}", []approval.Statement{comment(line), comment("", review("APPROVED", "head"), by("bob"))}, approved, "+approved; +approved"},
		{"T10 a bot", "", []approval.Statement{comment(line, by("app"))}, pending, "-not a human"},
		{"T10 the author", "", []approval.Statement{comment(line, by("eve"))}, pending, "-is the proposer"},
		{"T10 the author in green", "", []approval.Statement{comment("", review("APPROVED", "head"), by("eve"))}, pending, "-is the proposer"},
		{"T10 a committer in green", "", []approval.Statement{comment("", review("APPROVED", "head"), by("bob"))}, pending, "-is the proposer"},
		{"T10 the author, solo", "approvals: {allow_author: true}", []approval.Statement{comment(line, by("eve"))}, approved, "+approved"},
		{"T10 the author denies", "", []approval.Statement{comment("/deny "+own, by("eve"))}, denied, "+denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			talk := gateOnly(c.said...)
			decisions := decided(talk)
			judgeAll(t, []situation{{"it", c.policy, "a", "", c.state, reasonOf(c.state, c.policy, c.judged), c.judged, func(k *approval.Case) {
				k.Log, k.Stands = record(t, people["eve"], decisions), talk.Stands
				if strings.Contains(c.name, "committer") {
					k.Authors = []ledger.Actor{people["bob"]}
				}
			}}})
		})
	}
}

// reasonOf is what a verdict on the change alone says.
func reasonOf(state approval.State, file, judged string) string {
	if state == denied {
		return "denied by eve"
	}
	required := 1
	if strings.Contains(file, "required: 2") {
		required = 2
	}
	return fmt.Sprintf("%d of %d approvals", strings.Count(judged, "+"), required)
}

func TestRequestKinds(t *testing.T) {
	for line, want := range map[string]string{
		"/approve " + own: "fileChange", "/deny secret:" + own: "secrets_override", "/approve protected:" + own: "protected_path",
		"/approve --break-glass " + own + " down": "break_glass", "/deny protected:" + own: "protected_path",
	} {
		if said := talk(comment(line)).Said(); len(said) != 1 || said[0].Command.RequestKind() != want {
			t.Errorf("%s: %+v", line, said)
		}
	}
}

// TestRecorded: what is in the log already is known again.
func TestRecorded(t *testing.T) {
	c := talk(comment("/approve "+own), comment("/deny "+own, id("21", hour)), comment("/approve it", id("22", hour)))
	log := record(t, agent, decided(talk(comment("/approve "+own), comment("/approve "+own, id("21", hour)))))
	var got []bool
	for _, s := range c.Said() {
		got = append(got, s.Recorded(log))
	}
	if !slices.Equal(got, []bool{true, false, false}) {
		t.Error(got)
	}
	if said := talk(comment("/approve secret:" + own)).Said()[0]; said.Recorded(log) {
		t.Error("an approval of the secret is taken for that of the change")
	}
}

// TestT09StandsInConversation: what became of an approval that was recorded.
func TestT09StandsInConversation(t *testing.T) {
	line := "/approve " + own
	green := comment("", review("APPROVED", "head"))
	for _, c := range []struct {
		name        string
		before, now forge.Transcript
		want        string
	}{
		{"as it was", talk(comment(line)), talk(comment(line)), ""},
		{"gone", talk(comment(line)), talk(), "its comment is gone"},
		{"gone, an event told", talk(comment(line)), talk(comment(line, gone)), "its comment is gone"},
		{"edited", talk(comment(line)), talk(comment(line+" ", edited(line))), "its comment was edited"},
		{"edited and put back", talk(comment(line)), talk(comment(line, edited(line, "x"))), "its comment was edited"},
		{"edited, and nobody says so", talk(comment(line)), talk(comment(line + "\nbut")), "its comment was edited"},
		{"edited into chatter", talk(comment(line)), talk(comment("Nice!")), "its comment was edited"},
		{"edited into a denial", talk(comment(line)), talk(comment("/deny "+own, edited(line))), "its comment was edited"},
		{"of another kind", talk(comment(line)), talk(comment("/approve secret:" + own)), "its comment says something else now"},
		{"of another author", talk(comment(line)), talk(comment(line, by("bob"))), "its comment has another author now"},
		{"of another series", talk(comment(line)), talk(comment(line, review("COMMENTED", "head"))), "its comment is gone"},
		{"renamed", talk(comment(line)), talk(comment(line, by("renamed"))), ""},
		{"dismissed", talk(comment(line, review("COMMENTED", "head"))), talk(comment(line, review("DISMISSED", "head"))), "was dismissed"},
		{"the request was edited", talk(first(), comment("/approve", reply("7"))), talk(first(edited("x")), comment("/approve", reply("7"))), changedThread},
		{"in the thread", talk(first(), comment("/approve", reply("7"))), talk(first(), comment("/approve", reply("7"))), ""},
		{"green", gateOnly(green), gateOnly(green), ""},
		{"green, with other words", gateOnly(green), gateOnly(comment("Nice!", review("APPROVED", "head"), edited(""))), ""},
		{"hidden", talk(comment(line)), talk(comment(line, hidden)), "is hidden"},
		{"green, hidden", gateOnly(green), gateOnly(comment("", review("APPROVED", "head"), hidden)), "is hidden"},
		{"green no more", gateOnly(green), gateOnly(comment("", review("DISMISSED", "head"))), "was dismissed"},
		{"green of another diff", gateOnly(green), func() forge.Transcript { c := gateOnly(green); c.Heads = nil; return c }(), "is of another commit"},
		{"taken back", gateOnly(green), gateOnly(green, comment("", review("CHANGES_REQUESTED", "head"), id("30", hour))), "taken back by a later review"},
	} {
		d := decided(c.before)
		if len(d) != 1 {
			t.Fatalf("%s: %d decisions", c.name, len(d))
		}
		if got := c.now.Stands(d[0]); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
