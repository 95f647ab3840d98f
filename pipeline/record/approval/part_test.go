package approval_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// TestT10Independent: whom the Policy names under approvals.independent is never the only one to approve, of no need,
// in whatever order people speak, however they are known, and in a shell as well. Nothing that is left out loosens it.
func TestT10Independent(t *testing.T) {
	const (
		both      = "approvals: {independent: [proposer, requester], allow_author: true, local: true}"
		requester = "approvals: {independent: [requester], local: true}"
	)
	two := strings.NewReplacer("{", "{required: 2, ").Replace
	byID := func(who ...string) (out []ledger.Requester) {
		for _, w := range who {
			out = append(out, ledger.Requester{Actor: people[w], Source: ledger.AskedBySender})
		}
		return out
	}
	named := func(who string) []ledger.Requester { return []ledger.Requester{input.Named(who, ledger.AskedByFlag)} }
	const asked, proposed = "asked for by the approver, and somebody else", "proposed by the approver, and somebody else"
	for name, c := range map[string]struct {
		policy   string
		proposer ledger.Actor
		asked    []ledger.Requester
		said     string
		want     approval.State
		reason   string // of the last that does not count
	}{
		"nobody is named":                {"version: 1", agent, byID("ada"), "ada", approval.Approved, ""},
		"nobody is known":                {requester, agent, nil, "ada", approval.Approved, ""},
		"who asked":                      {requester, agent, byID("ada"), "ada", approval.Pending, asked},
		"who asked, in a shell":          {requester, agent, []ledger.Requester{{Actor: people["home"], Source: ledger.AskedByRPC}}, "home local", approval.Pending, asked},
		"who asked, over RPC":            {requester, agent, []ledger.Requester{{Actor: people["home"], Source: ledger.AskedByRPC}}, "home rpc", approval.Pending, asked},
		"who asked, by address":          {requester, agent, named("ada@home.example"), "home local", approval.Pending, asked},
		"who asked, by login":            {requester, agent, named("@ADA"), "ada", approval.Pending, asked},
		"who asked, renamed":             {requester, agent, byID("ada"), "renamed", approval.Pending, asked},
		"with the name of who asked":     {requester, agent, byID("ada"), "reused", approval.Approved, ""},
		"one of two who asked":           {requester, agent, byID("ada", "bob"), "bob", approval.Pending, asked},
		"both who asked":                 {requester, agent, byID("ada", "bob"), "bob; ada", approval.Pending, asked},
		"somebody else":                  {requester, agent, byID("ada"), "bob", approval.Approved, ""},
		"who asked, and somebody else":   {requester, agent, byID("ada"), "ada; bob", approval.Approved, asked},
		"two, by who asked alone":        {two(requester), agent, byID("ada"), "ada", approval.Pending, ""},
		"two, by both who asked":         {two(requester), agent, byID("ada", "bob"), "ada; bob", approval.Pending, asked},
		"two, one of them who asked":     {two(requester), agent, byID("ada"), "ada; bob", approval.Approved, ""},
		"two, who asked last":            {two(requester), agent, byID("ada"), "bob; ada", approval.Approved, ""},
		"two who asked, and a third":     {two(requester), agent, byID("ada", "bob"), "ada; bob; eve", approval.Approved, asked},
		"who proposed":                   {both, people["ada"], nil, "ada", approval.Pending, proposed},
		"who proposed, in a shell":       {both, people["home"], nil, "home local", approval.Pending, proposed},
		"who proposed and asked":         {both, people["ada"], byID("ada"), "ada", approval.Pending, proposed},
		"who proposed, and who asked":    {two(both), people["ada"], byID("bob"), "ada; bob", approval.Pending, asked},
		"who proposed, which is allowed": {"approvals: {independent: [requester], allow_author: true}", people["ada"], byID("bob"), "ada", approval.Approved, ""},
		"a denial by who asked":          {requester, agent, byID("ada"), "ada deny=no", approval.Denied, ""},
		"a broken glass by who asked":    {"approvals: {independent: [requester], break_glass: [ada]}", agent, byID("ada"), "ada glass=down", approval.Approved, ""},
		"who asked was taken out":        {requester, agent, []ledger.Requester{{Actor: ledger.Actor{Kind: "user", Login: "<REDACTED:x>"}, Source: ledger.AskedByFlag}}, "bob", approval.Pending, "who asked for the change cannot be told"},
		"a secret, by who asked":         {requester, agent, byID("ada"), "bob; ada secret", approval.Pending, asked},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := policy.Parse("policy.yml", []byte(c.policy))
			fatal(t, err)
			decide := approval.Case{
				Policy: p, Needs: p.Needs(nil, strings.Contains(c.said, "secret")), Log: askedRecord(t, c.proposer, c.asked, spoken(t, c.said)), Now: noon, Head: "head", PullRequest: true,
				Stands: func(ledger.ApprovalDecision) string { return "" },
			}
			v := decide.Decide()
			reason := ""
			for _, j := range v.Decisions {
				if !j.Counted {
					reason = j.Reason
				}
				if is := len(c.asked) > 0 && c.asked[0].Actor.ID == j.Author.ID; is && j.Author.ID != "" && !j.Asked {
					t.Errorf("does not say who asked: %+v", j)
				}
			}
			if v.State != c.want || !strings.HasPrefix(reason, c.reason) || c.reason == "" && reason != "" {
				t.Errorf("%s (%s), %q; want %s, %q", v.State, v.Reason, reason, c.want, c.reason)
			}
			for _, n := range v.Needs {
				if (v.State == approval.Approved) != (n.Approved >= n.Required) && v.State != approval.Denied && len(v.Needs) == 1 {
					t.Errorf("%+v", n)
				}
			}
		})
	}
}

// askedRecord is a record of a change that these asked for.
func askedRecord(t *testing.T, proposer ledger.Actor, asked []ledger.Requester, decisions []ledger.ApprovalDecision) *ledger.Log {
	t.Helper()
	was, log := record(t, proposer, decisions), &ledger.Log{}
	for i, p := range was.Payloads() {
		at, err := was.Time(i)
		if item, is := p.(*ledger.TurnItem); is && err == nil {
			meta := *item.Item.Metadata
			meta.RequestedBy = asked
			item.Item.Metadata = &meta
		}
		if err == nil {
			err = log.Append(at, p)
		}
		fatal(t, err)
	}
	return log
}

// TestT10RequesterUnread: whoever asked for a further proposal that cannot be read could be anybody.
func TestT10RequesterUnread(t *testing.T) {
	p, err := policy.Parse("policy.yml", []byte("approvals: {independent: [requester]}"))
	fatal(t, err)
	log := record(t, agent, nil)
	name := ledger.ArtifactFile(thePatch)
	for _, e := range []ledger.Payload{
		&ledger.ArtifactStored{TransactionID: log.Transaction().TransactionID, ArtifactID: thePatch, Kind: ledger.KindAgain, Path: name, StoredSHA256: "sha256:" + thePatch},
		&ledger.ApprovalRequest{TransactionID: log.Transaction().TransactionID, ApprovalRequestID: "r", Fingerprint: "patchset:" + thePatch},
	} {
		fatal(t, log.Append(noon, e))
	}
	d := spoken(t, "bob")[0]
	d.TransactionID, d.ApprovalRequestID = log.Transaction().TransactionID, "r"
	fatal(t, log.Append(noon, &d))
	c := approval.Case{Policy: p, Log: log, Now: noon, Head: "head", PullRequest: true, Stands: func(ledger.ApprovalDecision) string { return "" }}
	c.Proposers = map[string][]ledger.Actor{name: {agent}}
	if v := c.Decide(); v.State != approval.Pending || v.Decisions[0].Reason != "who asked for the change cannot be told" {
		t.Errorf("%+v", v)
	}
	c.Requesters = map[string][]ledger.Requester{name: nil}
	if v := c.Decide(); v.State != approval.Approved {
		t.Errorf("%+v", v)
	}
	c.Requesters = map[string][]ledger.Requester{name: {input.Named("bob", ledger.AskedByMCP)}}
	if v := c.Decide(); v.State != approval.Pending {
		t.Errorf("%+v", v)
	}
}
