package forgetest

import (
	"context"
	"crypto/rand"
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
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// A scene is a Place with a ledger in memory, a pull request of eve's, who may read, from
// the branch topic, whose commits are bob's. Ada, bob and mallory may write.
type scene struct {
	*testing.T
	Place
	ada, bob, eve, mallory ledger.Actor
	pr                     int
	head                   string

	store  storetest.Memory
	policy policy.Policy
	trees  map[string]fstest.MapFS // by commit
	parent map[string]string       // of a commit
	tx     string                  // the newest transaction
	line   string                  // that approves it
	now    func() time.Time
	// witnessed is what an event told.
	witnessed []approval.Statement
}

// proposer is the account that the program runs as.
var proposer = ledger.Actor{Kind: "bot", ID: "41898282", Login: "github-actions"}

func newScene(t *testing.T, p Place) *scene {
	t.Helper()
	s := &scene{
		T: t, Place: p, policy: policy.Default(), trees: map[string]fstest.MapFS{}, parent: map[string]string{}, now: time.Now,
		ada: p.Person("ada", "write"), bob: p.Person("bob", "write"), eve: p.Person("eve", "read"), mallory: p.Person("mallory", "write"),
	}
	s.trees[p.Ref("main")] = tree(mainFiles())
	s.made("topic", p.Ref("main"), p.Ref("topic"), topicFiles())
	s.pr = p.Open(s.eve, Pull{Branch: "topic", Title: "Work"})
	return s
}

func tree(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return out
}

func (s *scene) lacks(what Lack) bool { return slices.Contains(s.Lacks(), what) }

// commit is Place.Commit, and the head of the pull request where the branch is topic.
func (s *scene) commit(by ledger.Actor, branch string, files map[string]string, with ...ledger.Actor) string {
	s.Helper()
	parent := s.Ref(branch)
	if parent == "" {
		parent = s.Ref("main")
	}
	return s.made(branch, parent, s.Commit(by, branch, files, with...), files)
}

func (s *scene) force(by ledger.Actor, branch string, files map[string]string) string {
	s.Helper()
	return s.made(branch, s.Ref("main"), s.Force(by, branch, files), files)
}

func (s *scene) made(branch, parent, commit string, files map[string]string) string {
	next := maps.Clone(s.trees[parent])
	maps.Copy(next, tree(files))
	s.trees[commit], s.parent[commit] = next, parent
	if branch == "topic" {
		s.head = commit
	}
	return commit
}

// runner is the program as it runs in the repository.
func (s *scene) runner() *pipeline.Runner {
	at := &files{s: s}
	return &pipeline.Runner{
		Store: &s.store, Repo: at, Secrets: secret.Default(), Diffs: gitpatch.Reader{}, Actor: proposer, Decider: proposer, Tool: "test",
		Now: s.now, Entropy: rand.Reader, Forge: s.Forge(), Code: fetched{s: s}, Witnessed: s.witnessed, WitnessedOn: s.pr,
		Rules: func(context.Context, string) (pipeline.Rules, error) {
			return pipeline.Rules{Policy: s.policy, Commit: s.Ref("main"), Found: true, Keys: approval.ReadKeys(fstest.MapFS{}, s.policy)}, nil
		},
	}
}

// hourAgo is when everything was begun: what is said now is surely said later.
func hourAgo() time.Time { return time.Now().Add(-time.Hour) }

// proposes opens a transaction for the pull request, of a change to greet.txt, by the
// program or by somebody.
func (s *scene) proposes(by ...ledger.Actor) {
	s.Helper()
	const diff = "diff --git a/greet.txt b/greet.txt\n--- a/greet.txt\n+++ b/greet.txt\n@@ -1,3 +1,3 @@\n one\n-hello\n+hello, world\n three\n"
	in, err := input.Diff([]byte(diff), "greet the world")
	if err == nil {
		s.now = hourAgo
		in, err = pull.ChangeFor(s.Context(), s.runner(), in, s.pr)
	}
	if len(by) > 0 {
		in.Proposer = &by[0]
	}
	s.opens(in, err)
}

// guards opens a transaction of the pull request's own diff.
func (s *scene) guards() {
	s.Helper()
	s.now = hourAgo
	in, err := pull.OwnDiff(s.Context(), s.runner(), s.pr, "")
	s.opens(in, err)
}

func (s *scene) opens(in input.Change, err error) {
	s.Helper()
	if err == nil {
		var done review.Reviewed
		done, err = review.Run(s.Context(), s.runner(), in, false)
		s.tx, s.line = done.ID, "/approve patchset:"+done.PatchID
	}
	if err != nil {
		s.Fatal(err)
	}
	s.now = time.Now
}

// denial is the line that denies what s.line approves.
func (s *scene) denial() string { return strings.Replace(s.line, "/approve", "/deny", 1) }

// wants fails the test unless the gate says so, and some decision, if there is a reason,
// has that.
func (s *scene) wants(state approval.State, reason string) {
	s.Helper()
	g, err := s.runner().Gate(s.Context(), s.tx)
	if err != nil {
		s.Fatal(err)
	}
	told := slices.ContainsFunc(g.Verdict.Decisions, func(j approval.Judged) bool { return strings.Contains(j.Reason, reason) })
	if g.Verdict.State != state || reason != "" && !told {
		s.Errorf("verdict %s (%s), decisions %+v; want %s, %q", g.Verdict.State, g.Verdict.Reason, g.Verdict.Decisions, state, reason)
	}
}

// statements are those of the pull request.
func (s *scene) statements() []approval.Statement {
	s.Helper()
	return must(s.Forge().Statements(s.Context(), s.pr))(s)
}

// statement is the one of a kind with a text, the zero one if there is none or more.
func (s *scene) statement(kind, body string) approval.Statement {
	s.Helper()
	var found []approval.Statement
	for _, one := range s.statements() {
		if one.Kind == kind && one.Body == body {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		s.Errorf("%d statements %s %.60q", len(found), kind, body)
		return approval.Statement{}
	}
	return found[0]
}

func (s *scene) pull() forge.PullRequest {
	s.Helper()
	return must(s.Forge().PullRequest(s.Context(), s.pr))(s)
}

// must is the value of a call, which may not fail.
func must[T any](value T, err error) func(*scene) T {
	return func(s *scene) T {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
		return value
	}
}

// is fails the test unless an error is another.
func (s *scene) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("error %v, want %v", err, want)
	}
}

// files are the commits that the scene made, as the stages read them.
type files struct {
	code.Repository
	s *scene
}

func (f *files) Tree(_ context.Context, commit string) (fs.FS, error) {
	if tree, ok := f.s.trees[commit]; ok {
		return tree, nil
	}
	return nil, fmt.Errorf("no commit %s", commit)
}

// TreeID: no two commits are taken for alike.
func (f *files) TreeID(_ context.Context, commit string) (string, error) { return commit, nil }

func (f *files) Descends(_ context.Context, commit, ancestor string) (bool, error) {
	for commit != ancestor && commit != "" {
		commit = f.s.parent[commit]
	}
	return commit != "", nil
}

func (f *files) Drift(context.Context, string, string) (int, []string, error) {
	return 0, nil, errors.New("nobody counted")
}

func (f *files) Past(context.Context, string, []string) ([]code.Run, error) { return nil, nil }

// fetched is files as pull requests are fetched from: the pull request's head is what was
// pushed last.
type fetched struct {
	pipeline.Code
	s *scene
}

func (f fetched) Head(context.Context, int) (string, error) { return f.s.head, nil }

func (f fetched) Drift(context.Context, int, string, string) (int, []string, error) {
	return 0, nil, errors.New("nobody counted")
}

func (f fetched) Fetch(_ context.Context, _ string, commits ...string) error {
	for _, commit := range commits {
		if f.s.trees[commit] == nil {
			return fmt.Errorf("no commit %s", commit)
		}
	}
	return nil
}

func (f fetched) Parents(_ context.Context, commit string) ([]string, error) {
	return []string{f.s.parent[commit]}, nil
}

// MergeBase: every branch begins at main's first commit, and goes on alone.
func (f fetched) MergeBase(_ context.Context, _, commit string) (string, error) {
	if f.s.trees[commit] == nil {
		return "", fmt.Errorf("no commit %s", commit)
	}
	for f.s.parent[commit] != "" {
		commit = f.s.parent[commit]
	}
	return commit, nil
}

func (f fetched) Diff(ctx context.Context, from, to string) (patch.Patchset, error) {
	at := &files{s: f.s}
	before, err1 := at.Tree(ctx, from)
	after, err2 := at.Tree(ctx, to)
	if err := errors.Join(err1, err2); err != nil {
		return patch.Patchset{}, err
	}
	changed := map[string]*patch.File{}
	for _, side := range []fs.FS{before, after} {
		for name := range side.(fstest.MapFS) {
			file, err := patch.Lookup(after, name)
			if err != nil {
				return patch.Patchset{}, err
			}
			changed[name] = file
		}
	}
	return patch.NewTree(before).Between(changed)
}
