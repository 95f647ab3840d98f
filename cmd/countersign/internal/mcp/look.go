package mcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report/view"
)

// newestShown is how many transactions a list has.
const newestShown = 50

type statusParams struct {
	Transaction string `json:"transaction,omitempty"`
}

// status is where a transaction stands, or which ones are open.
func (c *call) status(ctx context.Context, p statusParams) (any, error) {
	if p.Transaction == "" {
		return c.list(ctx, func(t ledger.Transaction) bool { return !t.Closed })
	}
	g, err := c.transaction(ctx, p.Transaction)
	if err != nil {
		return nil, err
	}
	return c.state(ctx, g.Ledger, g.Transaction().TransactionID)
}

// list are the newest transactions of a kind, oldest first.
func (c *call) list(ctx context.Context, keep func(ledger.Transaction) bool) (any, error) {
	rows, more, err := c.Newest(ctx, newestShown, keep)
	return map[string]any{"transactions": rows, "more": more}, err
}

// transaction finds a transaction, and the verdict on it by what the ledger has.
func (c *call) transaction(ctx context.Context, name string) (pipeline.Judgement, error) {
	snap, id, err := c.find(ctx, name)
	if err != nil {
		return pipeline.Judgement{}, err
	}
	g, err := c.History(ctx, snap, id)
	if err != nil || c.shared || g.Transaction().PullRequest() == 0 || g.Transaction().Closed {
		return g, err
	}
	if err := c.share(); err != nil { // where others decide
		return g, err
	}
	if snap, err = c.Ledger(ctx, ledger.Dir(id)); err != nil {
		return g, err
	}
	return c.History(ctx, snap, id)
}

// find looks for a transaction in the ledger of the clone, then in the remote's, which alone
// has those that were proposed for pull requests.
func (c *call) find(ctx context.Context, name string) (writing.Snapshot, string, error) {
	if name == "" {
		return writing.Snapshot{}, "", &ArgumentError{"arguments.transaction is empty"}
	}
	snap, id, err := c.Find(ctx, name, true)
	unknown := errors.Is(err, lookup.ErrNotFound) || errors.Is(err, lookup.ErrNoTransactions)
	if !unknown || c.shared || c.share() != nil {
		return snap, id, err
	}
	return c.Find(ctx, name, true)
}

// state is where a transaction stands, and how a person decides.
func (c *call) state(ctx context.Context, snap writing.Snapshot, id string) (map[string]any, error) {
	g, err := c.History(ctx, snap, id)
	if err != nil {
		return nil, err
	}
	rep, err := c.Report(ctx, g)
	if err != nil {
		return nil, err
	}
	v, files := rep.View(), []string{}
	for _, f := range v.Files {
		files = append(files, f.Path)
	}
	doc := map[string]any{
		"transaction_id": id, "patch_id": rep.PatchID, "status": rep.Status, "state": v.State, "summary": rep.Summary,
		"base_commit": rep.BaseCommit, "verdict": g.Verdict.State, "reason": rep.Headline(), "files": files, "next": rep.Next,
	}
	if rep.PullRequest > 0 {
		doc["pull_request"] = rep.PullRequest
	}
	c.putPerson(doc, g)
	return doc, nil
}

// putPerson puts how a person decides into the document of an open transaction.
func (c *call) putPerson(doc map[string]any, g pipeline.Judgement) {
	if doc["closed"] = g.Transaction().Closed; doc["closed"] == true {
		return
	}
	doc["person"] = c.person(g)
	if g.Verdict.State == approval.Pending {
		doc["next"] = view.PersonDecides
	}
}

// person says how a person decides: on the pull request, or by commands of their own. An
// answer within the client would not do, as the client is the agent's.
func (c *call) person(g pipeline.Judgement) map[string]any {
	id, number := g.Transaction().TransactionID, g.Transaction().PullRequest()
	doc := map[string]any{"command": c.Again("run", id), "browse": c.Again("browse", id)}
	page := ""
	if number > 0 {
		doc["command"], page = c.Again("settle", id), c.Page(number)
	}
	if page != "" {
		doc["url"] = page
	}
	doc["say"] = view.HowToDecide(number, page, c.Again("run", id))
	return doc
}

type waitParams struct {
	Transaction string   `json:"transaction"`
	Seconds     *float64 `json:"seconds,omitempty"`
}

const (
	waitTool    = "wait"
	waitUsually = 50 * time.Second // clients give up after a minute
	waitLongest = time.Hour
)

// patience is how long a client wants to wait, or usually does.
func patience(seconds *float64) (time.Duration, error) {
	if seconds == nil {
		return waitUsually, nil
	}
	if !(*seconds >= 0 && *seconds <= waitLongest.Seconds()) {
		return 0, &ArgumentError{fmt.Sprintf("arguments.seconds is from 0 to %v", waitLongest.Seconds())}
	}
	return time.Duration(*seconds * float64(time.Second)), nil
}

// wait looks again and again until there is a verdict, the transaction has ended, or the
// time is over.
func (c *call) wait(ctx context.Context, p waitParams) (any, error) {
	longest, err := patience(p.Seconds)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for {
		g, err := c.transaction(ctx, p.Transaction)
		if err != nil {
			return nil, err
		}
		waited := time.Since(began)
		decided := g.Transaction().Closed || g.Verdict.State != approval.Pending
		if decided || waited >= longest {
			doc, err := c.state(ctx, g.Ledger, g.Transaction().TransactionID)
			if err == nil {
				doc["decided"] = decided
			}
			return doc, err
		}
		c.tell("waiting for a person to decide", math.Floor(waited.Seconds()*1000)/1000, longest.Seconds())
		pause := time.Second
		if g.Transaction().PullRequest() > 0 {
			pause = 30 * time.Second // a forge counts requests
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(pause, longest-waited)):
		}
	}
}

type explainParams struct {
	Patch  string   `json:"patch,omitempty"`
	Format string   `json:"format,omitempty"`
	Paths  []string `json:"paths,omitempty"`
}

// explainPolicy says what a patch, or any change of some paths, would meet. Nothing is recorded.
func (c *call) explainPolicy(ctx context.Context, p explainParams) (any, error) {
	switch {
	case (p.Patch == "") == (len(p.Paths) == 0):
		return nil, &ArgumentError{"arguments has either patch or paths"}
	case p.Patch == "":
		return c.explainPaths(ctx, p.Paths)
	}
	in, err := c.patch(ctx, p.Patch, p.Format, "")
	if err != nil {
		return nil, err
	}
	e, learnt, err := c.Explain(ctx, in)
	c.Learn(learnt)
	return e, err
}

func (c *call) explainPaths(ctx context.Context, paths []string) (any, error) {
	rules, err := c.Rules(ctx)
	if err != nil {
		return nil, err
	}
	if n, most := len(paths), rules.Policy.Limits.Files; n > most {
		return nil, &pipeline.LimitError{What: "files", Have: int64(n), Max: int64(most)}
	}
	for _, name := range paths {
		if err := patch.CheckPath(name); err != nil {
			return nil, err
		}
	}
	e := risk.ExplainPatch(rules.Policy, rules.Commit, "", paths, nil)
	for i := range e.Needs {
		e.Needs[i].Fingerprint = "" // there is no patch to approve yet
	}
	for _, w := range checks.WantedCommands(rules.Policy, checks.Asked{}) {
		e.Commands = append(e.Commands, w.Target)
	}
	return e, nil
}

type getParams struct {
	Transaction string `json:"transaction"`
	Diff        bool   `json:"diff,omitempty"`
}

// get is all that the ledger has of a transaction, as "show --json" prints it.
func (c *call) get(ctx context.Context, p getParams) (any, error) {
	g, err := c.transaction(ctx, p.Transaction)
	if err != nil {
		return nil, err
	}
	rep, err := c.Report(ctx, g)
	if err != nil {
		return nil, err
	}
	doc := map[string]any{"transaction_id": rep.TransactionID}
	if p.Diff {
		if doc, err = c.Diff(g); err != nil {
			return nil, err
		}
	}
	doc["next"], rep.Next = rep.Next, ""
	doc["report"] = rep
	c.putPerson(doc, g)
	return doc, nil
}

// verify checks the record of one transaction, or audits the whole ledger.
func (c *call) verify(ctx context.Context, p statusParams) (any, error) {
	if p.Transaction == "" {
		return c.audit(ctx)
	}
	snap, id, err := c.find(ctx, p.Transaction)
	if err != nil {
		return nil, err
	}
	_, found, err := observation.CheckRecord(snap.Tree, id)
	if err != nil {
		return nil, err
	}
	return map[string]any{"ok": len(found) == 0, "transaction_id": id, "tip": snap.Tip, "findings": append([]canon.Violation{}, found...)}, nil
}

func (c *call) audit(ctx context.Context) (audit.Result, error) {
	var mu sync.Mutex
	told, last := 0.0, time.Now()
	return c.Audit(ctx, func(what string, done, total int) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < 200*time.Millisecond { // it is called for each commit
			return
		}
		told, last = told+1, time.Now()
		c.tell(fmt.Sprintf("%d of %d %s", done, total, what), told, 0)
	})
}
