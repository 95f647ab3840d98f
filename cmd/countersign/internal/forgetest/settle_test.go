package forgetest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// mostRequests is more than a settlement makes.
const mostRequests = 60

// settleCases are of whole settlements of a pull request's own diff, of which some do
// not come to their end.
var settleCases = []testCase{
	{"a settlement that is killed after any request", func(s *scene) {
		s.now = hourAgo
		s.killed(false)
		s.now = time.Now
		s.Review(s.ada, s.pr, "APPROVED", "")
		s.killed(true)
		if texts := s.texts(); len(texts) != 1 {
			s.Errorf("%d comments: %.300q", len(texts), texts)
		}
		s.Comment(s.bob, s.pr, s.denial())
		s.settled()
		s.shows(false)
	}},
	{"a merged pull request whose approver has no rights any more, killed after any request", func(s *scene) {
		s.begun()
		dan := s.Person("dan", "write")
		s.Review(dan, s.pr, "APPROVED", "")
		s.settled()
		main := s.Ref("main")
		commit := s.made("main", main, must(s.Forge().Merge(s.Context(), s.pr, s.head))(s), topicFiles())
		s.Role(dan, "read")
		for n := range mostRequests {
			heal := s.Break(n)
			_, err := s.settle()
			if heal(); err == nil {
				break
			}
		}
		snap := must(s.store.Snapshot(s.Context()))(s)
		all := must(lookup.StatesOnPull(snap.Tree, s.pull().Repository, s.pr))(s)
		if len(all) != 1 || all[0].Status != ledger.Completed {
			s.Fatalf("%+v", all)
		}
		dir := must(fs.Sub(snap.Tree, ledger.Dir(all[0].TransactionID)))(s)
		merge := must(approval.ReadMerge(dir, must(lookup.Read(snap.Tree, all[0].TransactionID))(s)))(s)
		if merge == nil || merge.MergeCommit != commit || merge.MergedAt != s.pull().MergedAt || merge.HeadCommit != s.head || merge.Base != "main" {
			s.Errorf("%+v", merge)
		}
	}},
	{"a settlement whose comment has no answer", func(s *scene) {
		s.Lose(Commented)
		if _, err := s.settle(); err == nil {
			s.Error("nothing was lost")
		}
		s.settled()
		if texts := s.texts(); len(texts) != 1 {
			s.Errorf("%d comments", len(texts))
		}
		s.shows(false)
	}},
	{"a push after a settlement", func(s *scene) { // T04
		s.begun()
		s.Review(s.ada, s.pr, "APPROVED", "")
		s.settled()
		s.shows(true)
		s.commit(s.bob, "topic", map[string]string{"more.txt": "more\n"})
		s.shows(false)
		s.settled()
		s.shows(false)
	}},
	{"settled twice at once", func(s *scene) { // T52
		s.begun()
		s.Review(s.ada, s.pr, "APPROVED", "")
		var settling sync.WaitGroup
		for range 2 {
			settling.Go(func() { _, _ = s.settle() })
		}
		settling.Wait()
		s.settled()
		s.shows(true)
		s.Comment(s.bob, s.pr, s.denial())
		for range 2 {
			settling.Go(func() { _, _ = s.settle() })
		}
		settling.Wait()
		s.settled()
		s.shows(false)
	}},
}

// killed settles again and again, each time for one request longer, until nothing is
// missing. No check shows a success before that is due.
func (s *scene) killed(approved bool) {
	s.Helper()
	for n := range mostRequests {
		heal := s.Break(n)
		line, err := s.settle()
		heal()
		if !approved {
			s.shows(false)
		}
		if err == nil {
			s.line = line
			s.shows(approved)
			return
		}
	}
	s.Errorf("it is not settled after %d requests", mostRequests)
}

// settle settles the pull request once, as the account of the token, and returns the
// line that approves its diff. That it waits for people is no error.
func (s *scene) settle() (line string, err error) {
	r, f := s.runner(), s.Forge()
	who, err := f.Viewer(s.Context())
	if err != nil {
		return "", err
	}
	r.Actor, r.Decider, r.Forge = who, who, f
	r.Rules = func(context.Context, string) (pipeline.Rules, error) {
		p := s.policy
		p.Gate.Bases = []string{"main"}
		return pipeline.Rules{Policy: p, Commit: s.Ref("main"), Found: true}, nil
	}
	done := pull.Settler{Runner: r, Forge: f, Host: host{}, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}.Settle(s.Context(), s.pr)
	for _, rep := range done.Transactions {
		line = "/approve patchset:" + rep.PatchID
	}
	return line, errors.Join(slices.DeleteFunc(done.Errs, func(err error) bool {
		return errors.As(err, new(*pipeline.PendingError)) || errors.As(err, new(*pipeline.DeniedError))
	})...)
}

// begun settles it for the first time.
func (s *scene) begun() {
	s.Helper()
	s.now = hourAgo
	s.settled()
	s.now = time.Now
}

// settled is settle that must come to its end.
func (s *scene) settled() {
	s.Helper()
	line, err := s.settle()
	if err != nil {
		s.Fatal(err)
	}
	s.line = line
}

// shows fails the test unless the head has our check with a success, or without.
func (s *scene) shows(success bool) {
	s.Helper()
	has := false
	for _, run := range s.checks(s.Forge()) {
		has = has || run.Conclusion == report.CheckSuccess
	}
	if has != success {
		s.Errorf("the check shows a success: %v", has)
	}
}

// texts are the program's own comments.
func (s *scene) texts() []string {
	s.Helper()
	who := must(s.Forge().Viewer(s.Context()))(s)
	return must(s.Forge().CommentsBy(s.Context(), s.pr, who))(s)
}

// host is a program without secrets.
type host struct{}

func (host) Learn(pipeline.Known)          {}
func (host) Redact(text string) string     { return text }
func (host) Unanswered(error) bool         { return false }
func (host) RedactDiff(diff []byte) string { return string(diff) }

func (host) Report(_ context.Context, o pipeline.Outcome) (report.Report, error) {
	diff, err := o.Judgement.Diff()
	rep := report.New(o.Judgement.Log(), diff, &o.Judgement.Verdict)
	rep.LedgerCommit = o.Judgement.Ledger.Tip
	return rep, err
}

func (host) Clean(rep report.Report) (report.Report, error) { return rep, nil }
func (host) Resumed(string, pipeline.ApplyOutcome)          {}
func (host) HandOver() error                                { return nil }
