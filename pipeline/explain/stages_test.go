package explain_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A stages is a repo whose ledger the stages of the pipeline write. Each takes about a
// second of its clock. policyAt is the commit that the Policy is read from, head the one
// that a change is reviewed on.
type stages struct {
	*repo
	now      time.Time
	random   *rand.ChaCha8
	refs     map[string]string
	head     string
	policyAt string
	tip      int
	rules    map[string]pipeline.Rules
	pulls    map[int]*pullRequest
	broken   bool // no ref can be moved
}

// A pullRequest is one of the forge's, with what was said there.
type pullRequest struct {
	forge.PullRequest
	said []approval.Statement
}

var finder = secret.Default()

func newStages(t testing.TB, seed uint64) *stages {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	r := emptyRepo(t)
	return &stages{
		repo: r, now: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), random: rand.NewChaCha8(key),
		refs: map[string]string{}, rules: map[string]pipeline.Rules{}, pulls: map[int]*pullRequest{},
	}
}

var ada, bea, cyd, eve = person("ada", "8"), person("bea", "7"), person("cyd", "9"), person("eve", "6")

func person(login, number string) ledger.Actor {
	return ledger.Actor{Kind: "user", ID: number, Login: login}
}

// local is a person as a shell knows them.
func local(who ledger.Actor) ledger.Actor {
	return ledger.Actor{Kind: who.Kind, ID: "local:" + who.Login + "@example.org", Login: who.Login}
}

var keys = map[string]teststand.Signer{
	"ada": teststand.Ed25519(1), "bea": teststand.Ed25519(2), "eve": teststand.Ed25519(3), "bot": teststand.Ed25519(4), "cyd": teststand.SecurityKey("sk-ed25519", teststand.Touched),
}

func (w *stages) Past(context.Context, string, []string) ([]code.Run, error) { return nil, nil }

// runner is for one person, a second later.
func (w *stages) runner(who ledger.Actor) *pipeline.Runner {
	w.now = w.now.Add(1001 * time.Millisecond)
	return &pipeline.Runner{
		Store: w, Repo: w, Refs: w, Secrets: finder, Diffs: gitpatch.Reader{}, Actor: who, Decider: who, Forge: forgeOf{w}, Code: codeOf{w: w},
		Rules: func(ctx context.Context, base string) (pipeline.Rules, error) {
			base = w.refs["refs/heads/"+base]
			if base == w.refs["refs/heads/main"] || w.policyAt != w.refs["refs/heads/main"] {
				base = ""
			}
			if known, is := w.rules[w.policyAt+base]; is {
				return known, nil
			}
			read, err := pipeline.ReadRules(ctx, w, w.policyAt, base)
			w.rules[w.policyAt+base] = read
			return read, err
		},
		Tool: "countersign test", Now: func() time.Time { return w.now }, Entropy: w.random,
	}
}

// proposes records a change of the files of a commit, for a pull request or for none.
func (w *stages) proposes(who ledger.Actor, base string, after files, pull *pullRequest) (string, error) {
	w.head = base
	set, err := w.trees[base].diff(after)
	if err != nil {
		return "", err
	}
	in, err := input.Diff(set.Bytes(), "a change")
	if err != nil {
		return "", err
	}
	if pull != nil {
		in.Kind, in.Base, in.For, in.Proposer = input.KindPullRequest, base, &pull.PullRequest, &pull.Author
	}
	out, err := review.Run(context.Background(), w.runner(who), in, false)
	if err == nil && out.Known {
		err = fmt.Errorf("%s is known", out.ID)
	}
	return out.ID, err
}

// needs are the fingerprints that approvals are asked of.
func needs(g pipeline.Judgement) (out []string) {
	for _, n := range g.Verdict.Needs {
		if !slices.Contains(out, n.Fingerprint) {
			out = append(out, n.Fingerprint)
		}
	}
	return out
}

// says is a decision in a shell.
func (w *stages) says(who ledger.Actor, d ledger.Decision, id string) error {
	_, err := w.runner(local(who)).Decide(context.Background(), id, pipeline.Ruling{Decision: d, All: d == ledger.Approve, Reason: "because", Kind: "local"})
	return err
}

// signs is an approval that a person signed.
func (w *stages) signs(who ledger.Actor, id string) error {
	r := w.runner(local(who))
	g, err := r.Judge(context.Background(), id)
	if err != nil {
		return err
	}
	s, err := g.Statement(ledger.Approve, needs(g), "because", w.now)
	if err != nil {
		return err
	}
	signature := keys[who.Login].Signs(s)
	_, err = r.Decide(context.Background(), id, pipeline.Ruling{Kind: "local", Signature: &signature})
	return err
}

// comments is a decision in a comment on a pull request.
func (w *stages) comments(who ledger.Actor, verb, id string, pull *pullRequest) error {
	r := w.runner(bea)
	g, err := r.Judge(context.Background(), id)
	if err != nil {
		return err
	}
	about := needs(g)
	if verb == "/deny" {
		about = about[:1]
	}
	for _, f := range about {
		n := fmt.Sprint(100 + len(pull.said))
		pull.said = append(pull.said, approval.Statement{
			Kind: approval.KindIssueComment, ID: n, URL: "https://forge.example/acme/app/pull/1#" + n, Author: who,
			Body: verb + " " + f, CreatedAt: w.now.Add(2 * time.Second).Format(time.RFC3339),
		})
	}
	w.now = w.now.Add(3 * time.Second)
	_, err = w.runner(bea).Gate(context.Background(), id)
	return err
}

// opens is a pull request of somebody.
func (w *stages) opens(author ledger.Actor, base, head string, into string) *pullRequest {
	repository := ledger.Repository{ID: "1", Name: "acme/app"}
	side := func(branch, commit string) forge.Side {
		return forge.Side{Repository: &repository, Owner: "Organization", Branch: branch, Commit: commit}
	}
	n := len(w.pulls) + 1
	p := &pullRequest{PullRequest: forge.PullRequest{
		Repository: repository, Number: n, State: forge.PullRequestOpen, Title: "a change", Author: author,
		Head: side(fmt.Sprintf("pull-%d", n), head), Base: side(into, base), Committers: []ledger.Actor{author},
	}}
	w.pulls[n] = p
	return p
}

// merges records that the forge merged a pull request as a commit, at a time by its clock,
// or that it does not tell.
func (w *stages) merged(id string, pull *pullRequest, commit string, at time.Time) error {
	w.runner(bea)
	m, err := forge.MergedAs(pull.Repository, pull.Number, pull.Base.Branch, pull.Head.Commit, commit, at.UTC().Format(time.RFC3339))
	if err != nil {
		return err
	}
	log, err := lookup.Read(w.ledger, id)
	if err != nil {
		return err
	}
	s := writing.NewStage(log, w.now, finder)
	s.Artifact(approval.KindMerge, m)
	e, err := s.Entry(writing.Title{Stage: "validate", Outcome: "merged", Subject: "merged"}, false)
	if err == nil {
		_, err = w.Append(context.Background(), w.at(), *e)
	}
	return err
}

// ends ends a transaction of a pull request that was merged as a commit: as completed unless
// there is a why not.
func (w *stages) ends(id string, pull *pullRequest, commit string, whyNot string) error {
	pull.State, pull.MergeCommit, pull.MergedAt = forge.PullRequestMerged, commit, w.now.UTC().Format(time.RFC3339)
	_, err := w.runner(bea).EndOwnDiff(context.Background(), id, func(context.Context, pipeline.Judgement) (string, error) { return whyNot, nil })
	return err
}

// applies applies a transaction to a branch.
func (w *stages) applies(id, branch string) (string, error) {
	r := w.runner(bea)
	snap, err := r.Ledger(context.Background())
	if err != nil {
		return "", err
	}
	g, err := r.History(context.Background(), snap, id)
	if err != nil {
		return "", err
	}
	out, err := w.runner(bea).Apply(context.Background(), g, pipeline.ApplyOptions{To: policy.ToBranch, Branch: branch})
	return out.Commit, err
}

func (w *stages) validates(id string) error {
	_, err := w.runner(bea).Validate(context.Background(), id)
	return err
}

func (w *stages) interrupts(id string) error {
	_, err := w.runner(bea).Interrupt(context.Background(), id, "nobody needs it")
	return err
}

// What the stages need of a store and a repository.

func (w *stages) at() string { return fmt.Sprintf("%040x", w.tip) }

func (w *stages) Snapshot(context.Context, ...string) (writing.Snapshot, error) {
	if w.tip == 0 {
		return writing.Snapshot{Tree: w.ledger}, nil
	}
	return writing.Snapshot{Tip: w.at(), Tree: w.ledger}, nil
}

func (w *stages) At(ctx context.Context, _ string) (writing.Snapshot, error) { return w.Snapshot(ctx) }

func (w *stages) Append(_ context.Context, _ string, entries ...writing.Entry) (string, error) {
	for _, e := range entries {
		pages := page.Versions(nil).Of(w.ledger, e)
		w.tip++
		for _, written := range []map[string][]byte{pages, e.Files} {
			for name, data := range written {
				w.ledger[name] = &fstest.MapFile{Data: bytes.Clone(data), Mode: 0o644}
			}
		}
	}
	return w.at(), nil
}

func (w *stages) Head(context.Context) (string, error)                    { return w.head, nil }
func (w *stages) TreeID(_ context.Context, commit string) (string, error) { return commit, nil }
func (w *stages) Changed(context.Context) ([]string, error)               { return nil, nil }
func (w *stages) CheckRef(context.Context, string) error                  { return nil }
func (w *stages) Ref(_ context.Context, name string) (string, error)      { return w.refs[name], nil }
func (w *stages) Index(context.Context, []patch.Change) (code.IndexState, error) {
	return code.IndexState{}, nil
}
func (w *stages) Drift(context.Context, string, string) (int, []string, error) { return 0, nil, nil }

func (w *stages) BuildCommit(_ context.Context, parent string, changes []patch.Change, c code.Commit) (string, error) {
	tree := maps.Clone(w.trees[parent])
	for _, f := range changes {
		delete(tree, f.Path)
		if f.After != nil {
			tree[f.Path] = textOf(f.After)
		}
	}
	id := fmt.Sprintf("%x", sha1.Sum(fmt.Append(nil, parent, c.Message, c.When.UnixNano(), len(w.log))))
	w.put(id, c.Message, tree, parent)
	return id, nil
}

func (w *stages) MoveRef(_ context.Context, name, old, next string) error {
	switch {
	case w.broken:
		return errors.New("no space")
	case w.refs[name] != old:
		return writing.ErrMoved
	}
	w.refs[name] = next
	return nil
}

func textOf(f *patch.File) string {
	if f.Mode == patch.Executable {
		return "x:" + string(f.Data)
	}
	return string(f.Data)
}

type forgeOf struct{ w *stages }

func (f forgeOf) PullRequest(_ context.Context, n int) (forge.PullRequest, error) {
	return f.w.pulls[n].PullRequest, nil
}
func (f forgeOf) Statements(_ context.Context, n int) ([]approval.Statement, error) {
	return f.w.pulls[n].said, nil
}
func (f forgeOf) Access(context.Context, ledger.Actor) (approval.Access, error) {
	return approval.Access{Permission: "write", Role: "write"}, nil
}
func (f forgeOf) Member(context.Context, string, ledger.Actor) (bool, error) { return false, nil }
func (f forgeOf) SigningKeys(context.Context, ledger.Actor) ([]approval.Registered, error) {
	return nil, nil
}

// codeOf has all commits here.
type codeOf struct {
	pipeline.Code
	w *stages
}

func (c codeOf) Refs(context.Context, forge.Side) (code.Refs, error) { return c.w, nil }
func (c codeOf) Diff(ctx context.Context, from, to string) (patch.Patchset, error) {
	return c.w.Diff(ctx, cmp.Or(from, append(c.w.parents[to], "")[0]), to)
}
func (c codeOf) MergeBase(ctx context.Context, branch, commit string) (string, error) {
	all, err := c.w.MergeBases(ctx, c.w.refs["refs/heads/"+branch], commit)
	return append(all, "")[0], err
}
