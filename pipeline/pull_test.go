package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/review"
)

var (
	adaThere = ledger.Actor{Kind: "user", ID: "1", Login: "ada"}
	bobThere = ledger.Actor{Kind: "user", ID: "2", Login: "bob"}
	eveThere = ledger.Actor{Kind: "user", ID: "3", Login: "eve"}
	botThere = ledger.Actor{Kind: "bot", ID: "41898282", Login: "github-actions"}
)

// hub is a forge with one pull request, 7, whose commits are those of a world.
type hub struct {
	w      *world
	refs   *refs
	pull   forge.PullRequest
	said   []approval.Statement
	access map[string]string                // by login
	teams  map[string][]string              // account ids
	broken error                            // what every call fails with
	unread string                           // the read of the code that fails
	before func(method string)              // runs before each call
	keys   map[string][]approval.Registered // by login
	asked  map[string]int                   // calls
	bases  map[string]string                // merge bases by commit
	tx     string
}

func newHub(w *world) *hub {
	h := &hub{
		w: w, refs: newRefs(w.repo), access: map[string]string{"ada": "write", "bob": "write", "eve": "read"},
		teams: map[string][]string{}, asked: map[string]int{}, bases: map[string]string{},
	}
	side := forge.Side{Repository: &ledger.Repository{ID: "100", Name: "acme/site"}, Owner: "Organization", Branch: "topic", Commit: id(1)}
	h.pull = forge.PullRequest{
		Repository: *side.Repository, Number: 7, State: forge.PullRequestOpen, Title: "Greet", Author: bobThere, Head: side, Base: side,
		Committers: []ledger.Actor{bobThere}, Paths: []string{"greet.txt"},
	}
	h.pull.Base.Branch = "main"
	h.refs.tips["refs/heads/topic"] = id(1)
	return h
}

func (h *hub) call(method string) error {
	h.asked[method]++
	if h.before != nil {
		h.before(method)
	}
	return h.broken
}

func (h *hub) PullRequest(context.Context, int) (forge.PullRequest, error) {
	err := h.call("PullRequest")
	h.pull.Head.Commit = h.refs.tips["refs/heads/topic"]
	return h.pull, err
}

func (h *hub) Statements(context.Context, int) ([]approval.Statement, error) {
	err := h.call("Statements")
	return slices.Clone(h.said), err
}

func (h *hub) Access(_ context.Context, who ledger.Actor) (approval.Access, error) {
	err := h.call("Access")
	return approval.Access{Permission: h.access[who.Login], Role: h.access[who.Login]}, err
}

func (h *hub) Member(_ context.Context, team string, who ledger.Actor) (bool, error) {
	err := h.call("Member")
	return slices.Contains(h.teams[team], who.ID), err
}

func (h *hub) SigningKeys(_ context.Context, who ledger.Actor) ([]approval.Registered, error) {
	err := h.call("SigningKeys")
	return h.keys[who.Login], err
}

func (h *hub) Head(context.Context, int) (string, error) { return h.refs.tips["refs/heads/topic"], nil }

func (h *hub) MergeBase(_ context.Context, _, commit string) (string, error) {
	if base, ok := h.bases[commit]; ok {
		return base, nil
	}
	return "", errors.New("no merge base")
}

// read fails if that is what cannot be read.
func (h *hub) read(what string) error {
	if h.unread == what {
		return errors.New("no connection")
	}
	return nil
}

func (h *hub) Fetch(context.Context, string, ...string) error { return h.read("Fetch") }

// Parents: the first commit is that of all others.
func (h *hub) Parents(context.Context, string) ([]string, error) {
	return []string{id(1)}, h.read("Parents")
}

// merged has the pull request merged as a commit.
func (h *hub) merged(commit string) {
	h.pull.State, h.pull.MergeCommit, h.pull.MergedAt = forge.PullRequestMerged, commit, h.w.time().Format(time.RFC3339)
}

// greens has somebody press Approve.
func (h *hub) greens(who ledger.Actor) *approval.Statement {
	review := h.says(who, "")
	review.Kind, review.State, review.Commit = approval.KindReview, approval.ReviewApproved, h.pull.Head.Commit
	return review
}

func (h *hub) Diff(ctx context.Context, from, to string) (patch.Patchset, error) {
	old, err := h.w.repo.Tree(ctx, from)
	if err = errors.Join(err, h.read("Diff")); err != nil {
		return patch.Patchset{}, err
	}
	next, err := h.w.repo.Tree(ctx, to)
	if err != nil {
		return patch.Patchset{}, err
	}
	after := map[string]*patch.File{}
	for _, tree := range []fs.FS{old, next} {
		for name := range tree.(fstest.MapFS) {
			if after[name], err = patch.Lookup(next, name); err != nil {
				return patch.Patchset{}, err
			}
		}
	}
	return patch.NewTree(old).Between(after)
}

func (h *hub) Drift(ctx context.Context, _ int, a, head string) (int, []string, error) {
	return h.w.repo.Drift(ctx, a, head)
}

func (h *hub) Refs(context.Context, forge.Side) (code.Refs, error) { return h.refs, nil }

// says adds a comment.
func (h *hub) says(who ledger.Actor, body string) *approval.Statement {
	n := len(h.said) + 1
	h.said = append(h.said, approval.Statement{
		Kind: approval.KindIssueComment, ID: fmt.Sprint(n), URL: "https://forge.example/c/" + fmt.Sprint(n), Author: who, Body: body,
		CreatedAt: time.Date(2026, 1, 5, 0, 0, h.w.clock, 0, time.UTC).Format(time.RFC3339),
	})
	return &h.said[n-1]
}

// runner is the program with a token for the forge.
func (h *hub) runner() *pipeline.Runner {
	r := h.w.as(botThere)
	r.Forge, r.Code, r.Worktree, r.Refs = h, h, nil, h.refs
	return r
}

// propose opens a transaction for the pull request.
func (h *hub) propose() (tx, fingerprint string) {
	h.w.Helper()
	return h.proposeFor(func(*input.Change) {})
}

// apply puts what is approved on the pull request's branch.
func (h *hub) apply(g pipeline.Judgement) {
	h.w.Helper()
	if _, err := h.runner().Apply(h.w.Context(), g, pipeline.ApplyOptions{}); err != nil {
		h.w.Fatal(err)
	}
}

func (h *hub) gate(tx string) pipeline.Judgement {
	h.w.Helper()
	g, err := h.runner().Gate(h.w.Context(), tx)
	fatal(h.w, err)
	return g
}

// want fails the test unless the verdict is state, and some decision has a
// reason with these words.
func (h *hub) want(tx string, state approval.State, reason string) pipeline.Judgement {
	h.w.Helper()
	g := h.gate(tx)
	told := slices.ContainsFunc(g.Verdict.Decisions, func(j approval.Judged) bool { return strings.Contains(j.Reason, reason) })
	if g.Verdict.State != state || reason != "" && !told {
		h.w.Errorf("verdict %s, decisions %+v; want %s, %q", g.Verdict.State, g.Verdict.Decisions, state, reason)
	}
	return g
}

func TestPullLife(t *testing.T) {
	w := newWorld(t)
	h := newHub(w)
	tx, fingerprint := h.propose()
	h.want(tx, approval.Pending, "")
	h.says(adaThere, "/approve "+fingerprint)
	g := h.want(tx, approval.Approved, "")
	out, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{})
	if err != nil || out.Result.Outcome != ledger.OutcomeSuccess || h.refs.tips["refs/heads/topic"] != out.Commit {
		t.Fatalf("%+v %v", out, err)
	}
	if got := w.readTree(out.Commit); !maps.Equal(got, fixed) {
		t.Errorf("the branch holds %v", got)
	}
	v, err := h.runner().Validate(t.Context(), tx)
	if err != nil || !v.Report.OK || v.Status != ledger.Completed {
		t.Errorf("%+v %v", v, err)
	}
	w.sound(tx, ledger.Completed)
	// What happens on the pull request afterwards rewrites nothing.
	h.said, h.access = nil, nil
	if g := h.gate(tx); g.Verdict.State != approval.Approved || g.Recorded {
		t.Errorf("later: %+v", g.Verdict)
	}
}

// TestT01T02Edited: an approval counts as long as nobody touched its comment, and an old comment that was made into one does not.
func TestT01T02Edited(t *testing.T) {
	h := newHub(newWorld(t))
	tx, fingerprint := h.propose()
	h.says(adaThere, "/approve "+fingerprint)
	g := h.want(tx, approval.Approved, "")
	h.said[0].Edited = true
	out, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{})
	var pending *pipeline.PendingError
	if !errors.As(err, &pending) || out.Result.Outcome != ledger.OutcomeRefused || len(h.refs.trees) != 1 {
		t.Errorf("%+v %v", out, err)
	}
	h.want(tx, approval.Pending, "edited")
	h.said = nil
	s := h.says(adaThere, "/approve "+fingerprint)
	s.Edited, s.Earlier = true, []string{"looks interesting"}
	h.want(tx, approval.Pending, "edited")
}

// TestT03DenialGone: a denial holds whatever becomes of its comment, also if
// only an event has seen it.
func TestT03DenialGone(t *testing.T) {
	for _, how := range []string{"read", "edited", "witnessed", "witnessed edit"} {
		t.Run(how, func(t *testing.T) {
			h := newHub(newWorld(t))
			tx, fingerprint := h.propose()
			h.says(adaThere, "/approve "+fingerprint)
			denial := h.says(bobThere, "/deny "+fingerprint+" no")
			r := h.runner()
			switch how {
			case "read":
				h.want(tx, approval.Denied, "")
				h.said = h.said[:1]
			case "edited":
				denial.Earlier, denial.Body, denial.Edited = []string{denial.Body}, "never mind", true
			case "witnessed":
				r.WitnessedOn, r.Witnessed = 7, []approval.Statement{*denial}
				h.said = h.said[:1]
			case "witnessed edit":
				old := *denial
				old.Earlier, old.Body = []string{denial.Body}, "never mind"
				r.WitnessedOn, r.Witnessed = 7, []approval.Statement{old}
				denial.Body, denial.Edited = "never mind", true
			}
			g, err := r.Gate(t.Context(), tx)
			if err != nil || g.Verdict.State != approval.Denied {
				t.Fatalf("%+v %v", g.Verdict, err)
			}
			h.said = nil
			in, err := pull.ChangeFor(t.Context(), h.runner(), h.w.input(fix), 7)
			fatal(t, err)
			var denied *pipeline.DeniedError
			if _, err := review.Run(t.Context(), h.runner(), in, false); !errors.As(err, &denied) {
				t.Errorf("proposed again: %v", err)
			}
		})
	}
}

// TestT04Push: a push that leaves the files alone voids nothing, one that
// touches them does; with same_head every push does.
func TestT04Push(t *testing.T) {
	push := func(h *hub, name string) {
		files := maps.Clone(base)
		files[name] = "pushed\n"
		h.w.repo.commit(files)
		h.refs.tips["refs/heads/topic"] = id(len(h.w.repo.trees))
	}
	t.Run("elsewhere", func(t *testing.T) {
		h := newHub(newWorld(t))
		tx, fingerprint := h.propose()
		h.says(adaThere, "/approve "+fingerprint)
		push(h, "other.txt")
		if again := h.offers(h.runner(), fix, nil); again.ID != tx || !again.Known {
			t.Errorf("proposed again: %+v", again)
		}
		out, err := h.runner().Apply(t.Context(), h.want(tx, approval.Approved, ""), pipeline.ApplyOptions{})
		if err != nil || h.w.readTree(out.Commit)["other.txt"] != "pushed\n" {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("same file", func(t *testing.T) {
		h := newHub(newWorld(t))
		tx, fingerprint := h.propose()
		h.says(adaThere, "/approve "+fingerprint)
		g := h.want(tx, approval.Approved, "")
		push(h, "greet.txt")
		tip := h.refs.tips["refs/heads/topic"]
		var superseded *pipeline.SupersededError
		if _, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &superseded) || h.refs.tips["refs/heads/topic"] != tip {
			t.Errorf("%v", err)
		}
		h.w.sound(tx, ledger.Superseded)
	})
	t.Run("same head", func(t *testing.T) {
		h := newHub(newWorld(t))
		h.w.policy.Approvals.SameHead = true
		tx, fingerprint := h.propose()
		h.says(adaThere, "/approve "+fingerprint)
		h.want(tx, approval.Approved, "")
		push(h, "other.txt")
		h.want(tx, approval.Pending, "another commit")
	})
}

// TestT05PushMeanwhile: a push between reading the pull request and moving its
// branch loses the race, and is looked at.
func TestT05PushMeanwhile(t *testing.T) {
	h := newHub(newWorld(t))
	tx, fingerprint := h.propose()
	h.says(adaThere, "/approve "+fingerprint)
	g := h.want(tx, approval.Approved, "")
	h.refs.before = func() {
		files := maps.Clone(base)
		files["greet.txt"] = "pushed\n"
		h.w.repo.commit(files)
		h.refs.tips["refs/heads/topic"] = id(len(h.w.repo.trees))
	}
	var superseded *pipeline.SupersededError
	if _, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &superseded) {
		t.Errorf("%v", err)
	}
	if got := h.w.readTree(h.refs.tips["refs/heads/topic"])["greet.txt"]; got != "pushed\n" {
		t.Errorf("the branch holds %q", got)
	}
}

// TestT05HeadMoved: what is fetched must be what was read.
func TestT05HeadMoved(t *testing.T) {
	h := newHub(newWorld(t))
	moving := &movingHub{h}
	r := h.runner()
	r.Forge, r.Code = moving, moving
	var reading *forge.ReadingError
	if _, err := pull.ChangeFor(t.Context(), r, h.w.input(fix), 7); !errors.As(err, &reading) {
		t.Errorf("%v", err)
	}
}

// movingHub fetches another head than the one that is read.
type movingHub struct{ *hub }

func (h *movingHub) Head(context.Context, int) (string, error) { return id(2), nil }

// TestT08Permission, T09: at least write, when it is read and when it is applied.
func TestT08Permission(t *testing.T) {
	h := newHub(newWorld(t))
	tx, fingerprint := h.propose()
	h.says(eveThere, "/approve "+fingerprint)
	h.want(tx, approval.Pending, "write needed")
}

func TestT09AccessLost(t *testing.T) {
	h := newHub(newWorld(t))
	tx, fingerprint := h.propose()
	h.says(adaThere, "/approve "+fingerprint)
	g := h.want(tx, approval.Approved, "")
	h.access["ada"] = "read"
	var pending *pipeline.PendingError
	if _, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &pending) {
		t.Errorf("%v", err)
	}
	h.access["ada"] = "admin"
	h.apply(h.want(tx, approval.Approved, ""))
	dir := h.w.directory(tx)
	log := h.w.log(tx)
	var kept []string // both answers are in the record
	for _, a := range ledger.Of[*ledger.ArtifactStored](log) {
		raw, err := fs.ReadFile(dir, a.Path)
		fatal(t, err)
		if a.Kind == approval.KindStatement && strings.Contains(string(raw), `"permission":"write"`) ||
			a.Kind == approval.KindStanding && strings.Contains(string(raw), `"permission":"admin"`) {
			kept = append(kept, a.Kind)
		}
	}
	if !slices.Equal(kept, []string{approval.KindStatement, approval.KindStanding}) {
		t.Errorf("recorded: %v", kept)
	}
}

// TestT10Proposer: neither the bot that proposes nor, of a fork's proposal, its
// author approves.
func TestT10Proposer(t *testing.T) {
	h := newHub(newWorld(t))
	h.access["github-actions"] = "admin"
	tx, fingerprint := h.propose()
	h.says(botThere, "/approve "+fingerprint)
	h.want(tx, approval.Pending, "human")
	h.says(bobThere, "/approve "+fingerprint) // the pull request's author may, of a bot's proposal
	h.want(tx, approval.Approved, "")

	h = newHub(newWorld(t))
	r := h.runner()
	in, err := pull.ChangeFor(t.Context(), r, h.w.input(fix), 7)
	fatal(t, err)
	in.Proposer = &h.pull.Author
	done, err := review.Run(t.Context(), r, in, false)
	fatal(t, err)
	h.says(bobThere, "/approve patchset:"+done.PatchID)
	h.want(done.ID, approval.Pending, "proposer")
}

// TestT15Elsewhere: a transaction of one repository is not approved on the pull
// request of that number in another.
func TestT15Elsewhere(t *testing.T) {
	h := newHub(newWorld(t))
	tx, fingerprint := h.propose()
	h.says(adaThere, "/approve "+fingerprint)
	h.pull.Repository.ID = "200"
	var reading *forge.ReadingError
	if g, err := h.runner().Gate(t.Context(), tx); !errors.As(err, &reading) {
		t.Errorf("%+v %v", g.Verdict, err)
	}
}

// TestT61Unread: what could not be read in full is no approval, and recorded is
// nothing.
func TestT61Unread(t *testing.T) {
	for _, method := range []string{"PullRequest", "Statements", "Access"} {
		t.Run(method, func(t *testing.T) {
			h := newHub(newWorld(t))
			tx, fingerprint := h.propose()
			h.says(adaThere, "/approve "+fingerprint)
			before := h.w.tip()
			h.before = func(now string) {
				h.broken = nil
				if now == method {
					h.broken = errors.New("status 502")
				}
			}
			if g, err := h.runner().Gate(t.Context(), tx); err == nil || g.Verdict.State == approval.Approved || h.w.tip() != before {
				t.Errorf("%+v %v", g.Verdict, err)
			}
			h.before, h.broken = nil, nil
			g := h.want(tx, approval.Approved, "")
			h.broken = errors.New("status 502")
			if out, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); err == nil || out.Result.Outcome != ledger.OutcomeRefused || len(h.refs.trees) != 1 {
				t.Errorf("%+v %v", out, err)
			}
			h.broken = nil
		})
	}
	t.Run("no token", func(t *testing.T) {
		h := newHub(newWorld(t))
		tx, _ := h.propose()
		r := h.runner()
		r.Forge = nil
		if _, err := r.Gate(t.Context(), tx); !errors.Is(err, fault.Away) {
			t.Errorf("%v", err)
		}
	})
}

// TestPullOwners: code owners by the file of the Policy's commit, teams by the
// forge, and the auditor finds the same.
func TestPullOwners(t *testing.T) {
	w := newWorld(t)
	owned := maps.Clone(base)
	owned[".github/CODEOWNERS"] = "greet.txt @bob\nold.txt @acme/old\n"
	w.repo.trees = nil
	w.repo.commit(owned)
	w.policy.Protected = []policy.Rule{{Paths: []string{"*.txt"}, Required: 1, Owners: true}}
	h := newHub(w)
	h.pull.Author = eveThere
	tx, fingerprint := h.propose()
	h.says(adaThere, "/approve "+fingerprint)
	h.says(bobThere, "/approve protected:"+fingerprint)
	h.want(tx, approval.Pending, "") // new/file.txt has no owner, old.txt another one
	w.policy.Protected[0].Paths = []string{"/greet.txt", "/old.txt"}
	h.teams["acme/old"] = []string{"1"}
	h.says(adaThere, "/approve protected:"+fingerprint)
	g := h.want(tx, approval.Approved, "")
	h.apply(g)
	v, err := h.runner().Validate(t.Context(), tx)
	if err != nil || !v.Report.OK {
		t.Errorf("%+v %v", v, err)
	}
}

// ownDiff opens a gate-only transaction on a head that has the fix.
func (h *hub) ownDiff() review.Reviewed { return h.ownDiffOf(fixed) }

func (h *hub) ownDiffOf(files map[string]string) review.Reviewed {
	h.w.Helper()
	h.w.repo.commit(files)
	head := id(len(h.w.repo.trees))
	h.refs.tips["refs/heads/topic"], h.bases[head] = head, id(1)
	r := h.runner()
	in, err := pull.OwnDiff(h.w.Context(), r, 7, "")
	fatal(h.w, err)
	done, err := review.Run(h.w.Context(), r, in, false)
	fatal(h.w, err)
	return done
}

func TestGateOnly(t *testing.T) {
	h := newHub(newWorld(t))
	done := h.ownDiff()
	h.want(done.ID, approval.Pending, "")
	h.says(bobThere, "/approve patchset:"+done.PatchID)
	h.want(done.ID, approval.Pending, "proposer") // the author, T10
	h.greens(adaThere)
	g := h.want(done.ID, approval.Approved, "")
	if _, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.Is(err, pipeline.ErrGateOnly) {
		t.Errorf("%v", err)
	}
	for until, want := range map[pipeline.Stage]bool{pipeline.StageGate: true, pipeline.StageApply: false, pipeline.StageValidate: false} {
		if out, err := h.runner().Advance(t.Context(), done.ID, pipeline.Ahead{Until: until}); (err == nil) != want || !want && !errors.Is(err, pipeline.ErrGateOnly) || out.Applied != nil {
			t.Errorf("until %d: %v", until, err)
		}
	}
	// A rebase that leaves the diff alone is the same transaction, still approved.
	if again := h.ownDiff(); again.ID != done.ID || !again.Known {
		t.Errorf("after a rebase: %+v", again)
	}
	h.want(done.ID, approval.Approved, "")
	// Merged as what was approved.
	h.merged(h.pull.Head.Commit)
	if g, err := pull.End(t.Context(), h.runner(), done.ID); err != nil || g.Transaction().Status != ledger.Completed {
		t.Errorf("%v %v", g.Transaction().Status, err)
	}
	h.w.sound(done.ID, ledger.Completed)
}

// A planting is a record of the own diff that somebody with write access to the ledger
// made before.
type planting struct {
	edit   func(ledger.Payload)
	stored []byte
	files  map[string]string
	why    string // "" is taken up
}

func plantings() map[string]planting {
	file := "greet.txt"
	meta := func(edit func(*ledger.Proposal)) func(ledger.Payload) {
		return func(p ledger.Payload) {
			if p, ok := p.(*ledger.TurnItem); ok && p.Item.Metadata != nil {
				edit(p.Item.Metadata)
			}
		}
	}
	proposer := func(who ledger.Actor) func(ledger.Payload) {
		return func(p ledger.Payload) {
			if p, ok := p.(*ledger.Meta); ok {
				p.Proposer = who
			}
		}
	}
	_, token := leak()
	leaking := map[string]string{"greet.txt": "one\nhello\n" + token + "\nthree\n"}
	other, harmless := canon.Sum([]byte("other")), []byte("all is well\n")
	return map[string]planting{
		"as it is":                 {edit: meta(func(*ledger.Proposal) {})},
		"a renamed author":         {edit: proposer(ledger.Actor{Kind: "user", ID: bobThere.ID, Login: "robert"})},
		"an author more":           {edit: meta(func(p *ledger.Proposal) { p.Authors = append(p.Authors, eveThere) })},
		"of another head":          {edit: meta(func(p *ledger.Proposal) { p.HeadCommit, p.Authors = id(1), nil })},
		"another proposer":         {edit: proposer(eveThere), why: "its proposer is not"},
		"a proposer of a sort":     {edit: proposer(ledger.Actor{Kind: "bot", ID: bobThere.ID, Login: "bob"}), why: "its proposer is not"},
		"another author":           {edit: meta(func(p *ledger.Proposal) { p.Authors = []ledger.Actor{eveThere} }), why: "its authors are not"},
		"no author":                {edit: meta(func(p *ledger.Proposal) { p.Authors = nil }), why: "its authors are not"},
		"another file":             {edit: meta(func(p *ledger.Proposal) { p.TargetFiles = []string{"more.txt"} }), why: "the files that it names"},
		"another file before":      {edit: meta(func(p *ledger.Proposal) { p.BaseSHA256[file] = &other }), why: "the files that it names"},
		"another file after":       {edit: meta(func(p *ledger.Proposal) { p.AfterSHA256[file] = &other }), why: "the files that it names"},
		"a secret that is not one": {edit: meta(func(p *ledger.Proposal) { p.PatchRedactedSHA256 = canon.Sum(harmless) }), stored: harmless, why: "what is stored of its patch"},
		"a secret that is not told": {
			edit:  meta(func(p *ledger.Proposal) { p.ContainsSecrets, p.PatchRedactedSHA256 = false, "" }),
			files: leaking, why: "what looks like a secret",
		},
	}
}

// plant records a planting in the ledger, and puts its files on the head.
func (h *hub) plant(planted planting) (tx string) {
	h.w.Helper()
	honest := newHub(newWorld(h.w.T))
	files := planted.files
	if files == nil {
		files = fixed
	}
	done := honest.ownDiffOf(files)
	log := honest.w.log(done.ID)
	stored := planted.stored
	if stored == nil {
		stored = done.Patchset.Bytes()
	}
	h.w.recordAgain(done.Ledger, log, stored, planted.edit, ledger.KindRisks, nil)
	h.w.repo.commit(files)
	head := id(len(h.w.repo.trees))
	h.refs.tips["refs/heads/topic"], h.bases[head] = head, id(1)
	return done.ID
}

// refuses fails the test unless an error says why a planting is not taken up.
func (p planting) refuses(t *testing.T, err error) {
	t.Helper()
	var (
		corrupt *ledger.CorruptError
		untold  *redact.FoundError
	)
	if !errors.As(err, &corrupt) && !errors.As(err, &untold) || !strings.Contains(err.Error(), p.why) {
		t.Errorf("it was taken up: %v, want %q", err, p.why)
	}
}

// TestGateOnlyPlanted: a record of the own diff that somebody with write access to the
// ledger made before is not taken up, unless it tells what the pull request is.
func TestGateOnlyPlanted(t *testing.T) {
	for name, planted := range plantings() {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t))
			tx := h.plant(planted)
			r := h.runner()
			in, err := pull.OwnDiff(t.Context(), r, 7, "")
			fatal(t, err)
			before := h.w.ledger()
			got, err := review.Run(t.Context(), r, in, false)
			if planted.why == "" {
				if err != nil || got.ID != tx || !got.Known {
					t.Errorf("it was not taken up: %+v %v", got, err)
				}
				return
			}
			planted.refuses(t, err)
			if after, err := h.w.store.Snapshot(t.Context()); err != nil || after.Tip != before.Tip || got.ID != "" {
				t.Errorf("something was recorded: %q %v", got.ID, err)
			}
		})
	}
}

// TestT73QueuePlanted: no record that tells otherwise passes what the merge queue makes
// of the pull request, whoever approved.
func TestT73QueuePlanted(t *testing.T) {
	for name, planted := range plantings() {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t))
			tx := h.plant(planted)
			log := h.w.log(tx)
			h.says(adaThere, "/approve patchset:"+log.Transaction().PatchID())
			g, err := h.queue()
			if planted.why == "" {
				if err != nil || g.Err() != nil {
					t.Errorf("%v %+v", err, g.Verdict)
				}
				return
			}
			planted.refuses(t, err)
		})
	}
}

// queue judges what the merge queue made of the head.
func (h *hub) queue() (pipeline.Judgement, error) {
	h.w.Helper()
	r := h.runner()
	open, _, err := r.Open(h.w.Context())
	fatal(h.w, err)
	now, err := h.PullRequest(h.w.Context(), 7)
	fatal(h.w, err)
	return pull.JudgeQueue(h.w.Context(), r, now, open, id(1), now.Head.Commit)
}

// TestJudgeQueue: what the queue would merge is judged by what people decided on that
// very patch, and on no other.
func TestJudgeQueue(t *testing.T) {
	h := newHub(newWorld(t))
	done := h.ownDiff()
	g, err := h.queue()
	if err != nil || g.Verdict.State != approval.Pending {
		t.Errorf("not approved: %+v %v", g.Verdict, err)
	}
	h.says(adaThere, "/approve patchset:"+done.PatchID)
	if g, err = h.queue(); err != nil || g.Err() != nil || g.Transaction().TransactionID != done.ID {
		t.Errorf("approved: %+v %v", g.Verdict, err)
	}
	h.w.repo.commit(map[string]string{"greet.txt": "backdoor\n"})
	h.refs.tips["refs/heads/topic"] = id(len(h.w.repo.trees))
	if g, err := h.queue(); !errors.Is(err, pipeline.ErrUnasked) || !strings.Contains(err.Error(), "pull request 7 is the patch") || strings.Contains(err.Error(), done.PatchID[:12]) || g.Log() != nil {
		t.Errorf("another patch: %+v %v", g.Verdict, err)
	}
	h.refs.tips["refs/heads/topic"] = id(2)
	h.says(bobThere, "/deny patchset:"+done.PatchID)
	if g, err := h.queue(); err != nil || g.Verdict.State != approval.Denied {
		t.Errorf("denied: %+v %v", g.Verdict, err)
	}
}

// TestT73PlantedHead: a record that names a head of which nobody can tell who committed
// hides nobody who did.
func TestT73PlantedHead(t *testing.T) {
	h := newHub(newWorld(t))
	h.access["eve"] = "write"
	h.pull.Committers = append(h.pull.Committers, eveThere)
	tx := h.plant(plantings()["of another head"])
	h.says(eveThere, "/approve patchset:"+h.w.history(tx).Transaction().PatchID())
	h.want(tx, approval.Pending, "its author is the proposer")
	if g, err := h.queue(); err != nil || g.Err() == nil {
		t.Errorf("in the queue: %+v %v", g.Verdict, err)
	}
	h.says(adaThere, "/approve patchset:"+h.w.history(tx).Transaction().PatchID())
	h.want(tx, approval.Approved, "its author is the proposer")
	if g, err := h.queue(); err != nil || g.Err() != nil {
		t.Errorf("in the queue: %+v %v", g.Verdict, err)
	}
}

// TestGateOnlyPush: any other push takes it back.
func TestGateOnlyPush(t *testing.T) {
	h := newHub(newWorld(t))
	done := h.ownDiff()
	h.says(adaThere, "/approve patchset:"+done.PatchID)
	h.want(done.ID, approval.Approved, "")
	files := maps.Clone(fixed)
	files["more.txt"] = "more\n"
	h.w.repo.commit(files)
	head := id(len(h.w.repo.trees))
	h.refs.tips["refs/heads/topic"], h.bases[head] = head, id(1)
	r := h.runner()
	in, err := pull.OwnDiff(t.Context(), r, 7, "")
	fatal(t, err)
	next, err := review.Run(t.Context(), r, in, false)
	if err != nil || next.ID == done.ID {
		t.Fatalf("%+v %v", next, err)
	}
	fatal(t, pull.Replace(t.Context(), r, *in.For, next.ID))
	h.w.sound(done.ID, ledger.Superseded)
	h.want(next.ID, approval.Pending, "another patch")
}

// TestBreakGlass: its own kind, by those whom the Policy lists.
func TestBreakGlass(t *testing.T) {
	h := newHub(newWorld(t))
	h.w.policy.Approvals.Required, h.w.policy.Approvals.BreakGlass = 2, []string{"ada"}
	tx, fingerprint := h.propose()
	h.says(bobThere, "/approve --break-glass "+fingerprint+" the site is down")
	h.want(tx, approval.Pending, "")
	h.says(adaThere, "/approve --break-glass "+fingerprint+" the site is down")
	g := h.want(tx, approval.Approved, "")
	if !g.Verdict.BreakGlass || !strings.Contains(g.Verdict.Reason, "the site is down") {
		t.Errorf("%+v", g.Verdict)
	}
	h.apply(g)
	if v, err := h.runner().Validate(t.Context(), tx); err != nil || !v.Report.OK {
		t.Errorf("%+v %v", v, err)
	}
}

// TestRenamedApprover: an account is asked about under the login that it has now.
func TestRenamedApprover(t *testing.T) {
	h := newHub(newWorld(t))
	tx, fingerprint := h.propose()
	said := h.says(adaThere, "/approve "+fingerprint)
	h.want(tx, approval.Approved, "")
	said.Author.Login = "countess"
	h.access = map[string]string{"countess": "write"}
	h.want(tx, approval.Approved, "")
}
