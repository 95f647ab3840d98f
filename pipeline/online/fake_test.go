package online

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

var (
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	site  = ledger.Repository{ID: "7", Name: "acme/site"}
	ada   = ledger.Actor{Kind: "user", ID: "12", Login: "ada"}
	bot   = ledger.Actor{Kind: "bot", ID: "41898282", Login: "github-actions"}
	head  = fmt.Sprintf("%040x", 1)
	patch = canon.Hex([]byte("patch"))
)

const line = "/approve patchset:0123"

// aForge is a forge that has what is recorded, and counts what it is asked.
type aForge struct {
	side     forge.Side
	said     map[int][]approval.Statement
	accounts map[string]ledger.Actor
	access   approval.Access
	end      forge.End
	checks   map[string][]forge.CheckRun // by name
	required forge.Required
	viewer   ledger.Actor
	errs     map[string]error // by method
	most     int              // requests, -1 for no bound
	asked    []string
}

// does counts a request, and is its error.
func (f *aForge) does(method string, about any) error {
	if f.most == 0 {
		return fmt.Errorf("a request: %w", forge.ErrSpent)
	}
	f.most--
	f.asked = append(f.asked, fmt.Sprint(method, " ", about))
	return f.errs[method]
}

func (f *aForge) DefaultBranch(context.Context) (forge.Side, error) {
	return f.side, f.does("DefaultBranch", "")
}
func (f *aForge) Ends(_ context.Context, numbers []int) (map[int]forge.End, error) {
	return map[int]forge.End{numbers[0]: f.end}, f.does("Ends", numbers[0])
}
func (f *aForge) Statements(_ context.Context, n int) ([]approval.Statement, error) {
	return f.said[n], f.does("Statements", n)
}
func (f *aForge) Access(_ context.Context, who ledger.Actor) (approval.Access, error) {
	return f.access, f.does("Access", who.Login)
}
func (f *aForge) CheckRuns(_ context.Context, _, name string) ([]forge.CheckRun, error) {
	return f.checks[name], f.does("CheckRuns", name)
}
func (f *aForge) Open(context.Context) ([]forge.Open, error)   { return nil, f.does("Open", "") }
func (f *aForge) Viewer(context.Context) (ledger.Actor, error) { return f.viewer, f.does("Viewer", "") }
func (f *aForge) Required(_ context.Context, _ string) (forge.Required, error) {
	return f.required, f.does("Required", "")
}
func (f *aForge) Account(_ context.Context, id string) (ledger.Actor, error) {
	if err := f.does("Account", id); err != nil && id != f.viewer.ID {
		return ledger.Actor{}, err
	}
	return f.accounts[id], f.errs["Account of the viewer"]
}

// honest has what aRecord says.
func honest() *aForge {
	return &aForge{
		side: forge.Side{Repository: &site, Branch: "main", CloneURL: "https://forge.example/acme/site.git"},
		said: map[int][]approval.Statement{3: {stated(), request}}, access: approval.Access{Permission: "write"},
		accounts: map[string]ledger.Actor{ada.ID: ada, bot.ID: bot}, viewer: bot, most: -1, errs: map[string]error{},
		end: forge.End{Repository: site.ID, State: forge.PullRequestMerged, Head: head},
		checks: map[string][]forge.CheckRun{
			"check/" + patch: {{Name: "check/" + patch, Conclusion: success, ExternalID: "tx_1", App: bot.Login, AppID: 15}},
			"gate":           {{Name: "gate", Conclusion: success, App: bot.Login, AppID: 15}},
		},
		required: forge.Required{Checks: []forge.RequiredCheck{{Name: "gate", AppID: 15}}},
	}
}

// request is the comment that asked for it.
var request = approval.Statement{Kind: approval.KindReviewComment, ID: "98", Author: bot, Body: "approve?", CreatedAt: "2026-01-02T03:00:00Z"}

// stated is a comment of ada's.
func stated() approval.Statement {
	return approval.Statement{Kind: approval.KindReviewComment, ID: "99", Author: ada, Body: line, ReplyTo: "98", CreatedAt: "2026-01-02T03:04:05Z"}
}

// aRecord is an approval of ada's on pull request 3, of a change that was applied there,
// and pull request 4, which was merged.
func aRecord() *recorded {
	in := place{"tx_1", site.ID, site.Name, 3}
	m := merged{place{"tx_2", site.ID, site.Name, 4}, head}
	s := stated()
	source := ledger.Source{Kind: s.Kind, ID: s.ID, Author: ada, Permission: "write", BodySHA256: canon.Sum([]byte(line)), CreatedAt: s.CreatedAt, Evidence: "e"}
	doc := approval.StatementDoc{Statement: s}
	doc.Statement.Body = ""
	return &recorded{
		threads: []thread{{in, forge.Posted{Kind: request.Kind, ID: request.ID, BodySHA256: canon.Sum([]byte(request.Body))}}},
		said:    []statement{{in, ledger.Approve, source, doc, source.BodySHA256}},
		checks:  []checked{{in, patch, head, bot}}, merged: []merged{m}, gate: m, program: bot, guarded: "tx_2",
	}
}

func options(f *aForge) Options {
	return Options{
		Ledger: fstest.MapFS{}, Tip: head, Forge: f, Now: now, MaxAge: 24 * time.Hour, Gate: "gate",
		CheckName: func(id string) string { return "check/" + id },
	}
}

// asks runs, and returns the findings by what they are about.
func asks(t *testing.T, r *recorded, o Options) (Result, map[string]Finding, []byte) {
	t.Helper()
	result, kept, err := r.run(t.Context(), o)
	fatal(t, err)
	out := map[string]Finding{}
	for _, f := range result.Findings {
		out[f.What] = f
	}
	return result, out, kept
}
