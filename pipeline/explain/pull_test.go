package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

var (
	noon     = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	theHead  = strings.Repeat("a", 40)
	thePatch = canon.Hex([]byte("the patch"))
	voters   = map[string]ledger.Actor{
		"ada": {Kind: "user", ID: "1", Login: "ada"}, "bob": {Kind: "user", ID: "2", Login: "bob"}, "eve": {Kind: "user", ID: "3", Login: "eve"},
		"bot": {Kind: "bot", ID: "4", Login: "bot"}, "ghost": {Kind: "bot", Login: "ghost"},
	}
)

// pulled is a pull request of eve's with reviews, each "WHO STATE" with on=, at=, text= behind it.
func pulled(t *testing.T, reviews string) explain.Pull {
	t.Helper()
	repository := ledger.Repository{ID: "9", Name: "acme/site"}
	p := explain.Pull{MergedAt: noon, ReadAt: noon.AddDate(0, 1, 0), Access: map[string]approval.Access{"1": {Permission: "write"}}, PullRequest: forge.PullRequest{
		Repository: repository, Number: 7, State: forge.PullRequestMerged, Title: "Work", Author: voters["eve"], Committers: []ledger.Actor{voters["eve"]},
		Head: forge.Side{Commit: theHead}, Base: forge.Side{Commit: strings.Repeat("b", 40)},
	}}
	n := 0
	for line := range strings.SplitSeq(reviews, ";") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		n++
		s := approval.Statement{
			Kind: approval.KindReview, ID: fmt.Sprint(n), Author: voters[words[0]], State: words[1], Commit: theHead, CreatedAt: noon.Add(-time.Hour + time.Duration(n)*time.Second).Format(time.RFC3339),
		}
		for _, word := range words[2:] {
			switch key, value, _ := strings.Cut(word, "="); key {
			case "on":
				s.Commit = strings.Repeat(value, 40)
			case "at":
				ago, err := time.ParseDuration(value)
				fatal(t, err)
				s.CreatedAt = noon.Add(-ago).Format(time.RFC3339)
			case "comment":
				s.Kind, s.State, s.Commit, s.Body = approval.KindIssueComment, "", "", value+" patchset:"+thePatch
			case "edited":
				s.Edited = true
			}
		}
		p.Statements = append(p.Statements, s)
	}
	return p
}

func TestPullRequest(t *testing.T) {
	two := func(p *policy.Policy) { p.Approvals.Required = 2 }
	none := func(*policy.Policy) {}
	for _, c := range []struct {
		name    string
		reviews string
		edit    func(*policy.Policy)
		diff    func(*explain.PullDiff)
		want    string // now, at best, and the difference
		why     string
	}{
		{"no review", "", none, nil, "pending - asks_more", "0 of 1 approvals"},
		{"one", "ada APPROVED", none, nil, "unknown approved unknown", "not known: whether ada had write permission then (write permission on 2026-02-05)"},
		{"one by somebody who was not asked about", "bob APPROVED", none, nil, "unknown approved unknown", "bob had write permission then (not asked about since)"},
		{"one of two", "ada APPROVED", two, nil, "pending - asks_more", "1 of 2 approvals"},
		{"two", "ada APPROVED; bob APPROVED", two, nil, "unknown approved unknown", "bob"},
		{"one person twice", "ada APPROVED; ada APPROVED", two, nil, "pending - asks_more", "of 2 approvals"},
		{"the author", "eve APPROVED", none, nil, "pending - asks_more", "0 of 1"},
		{"the author, where that is allowed", "eve APPROVED", func(p *policy.Policy) { p.Approvals.AllowAuthor = true }, nil, "unknown approved unknown", "eve"},
		{"a bot", "bot APPROVED", none, nil, "pending - asks_more", "its author is not a human account"},
		{"an account that is gone", "ghost APPROVED", none, nil, "pending - asks_more", "has no author"},
		{"dismissed", "ada DISMISSED", none, nil, "unknown approved unknown", "whether the review of ada approved, and was dismissed before the merge"},
		{"changes asked for later", "ada APPROVED; ada CHANGES_REQUESTED", none, nil, "pending - asks_more", "0 of 1"},
		{"a comment of a review", "ada COMMENTED", none, nil, "pending - asks_more", "0 of 1"},
		{"not sent yet", "ada PENDING", none, nil, "pending - asks_more", "0 of 1"},
		{"another commit", "ada APPROVED on=c", none, nil, "pending - asks_more", "0 of 1"},
		{"another commit of the same diff", "ada APPROVED on=c", none, func(d *explain.PullDiff) { d.Same = map[string]bool{strings.Repeat("c", 40): true} }, "unknown approved unknown", "ada"},
		{"a commit that is not here", "ada APPROVED on=c", none, func(d *explain.PullDiff) { d.Unread = map[string]bool{strings.Repeat("c", 40): true} }, "unknown approved unknown", "whether cccccccccccc, which was reviewed and is not here, changed the same"},
		{"after the merge", "ada APPROVED at=-1m", none, nil, "pending - asks_more", "0 of 1"},
		{"too old", "ada APPROVED at=50h", func(p *policy.Policy) { p.Approvals.MaxAge = policy.Duration(time.Hour) }, nil, "pending - asks_more", "0 of 1"},
		{"a comment with the hash", "ada - comment=/approve", none, nil, "unknown approved unknown", "ada"},
		{"such a comment, edited", "ada - comment=/approve edited", none, nil, "pending - asks_more", "0 of 1"},
		{"a comment names no commit", "ada - comment=/approve", func(p *policy.Policy) { p.Approvals.SameHead = true }, nil, "unknown approved unknown", "ada"},
		{"a denial", "ada APPROVED; bob - comment=/deny", none, nil, "unknown approved unknown", "whether the denial of bob was heard"},
		{"the author's denial", "ada APPROVED; eve - comment=/deny", none, nil, "unknown approved unknown", "whether the denial of eve was heard"},
		{"a denial after the merge", "ada APPROVED; bob - comment=/deny at=-1m", none, nil, "unknown approved unknown", "whether ada had write"},
		{"changes asked for after the merge", "ada APPROVED; ada CHANGES_REQUESTED at=-1m", none, nil, "unknown approved unknown", "ada"},
		{"a commit that is not told", "ada APPROVED on=", none, func(d *explain.PullDiff) { d.Unread = map[string]bool{"": true} }, "unknown approved unknown", "whether a commit, which was reviewed"},
		{"a protected path", "ada APPROVED", func(p *policy.Policy) { p.Protected = []policy.Rule{{Paths: []string{"/src/"}, Required: 1}} }, nil, "pending - asks_more", "asks for 1 approval of the protected paths (src/a.go, by protected[0])"},
		{"signatures", "ada APPROVED", func(p *policy.Policy) { p.Approvals.Keys, p.Approvals.Signed = "keys", policy.SignedOnly }, nil, "pending - asks_more", "is not signed"},
		{"secrets", "ada APPROVED", func(p *policy.Policy) { p.Secrets.Mode = policy.Refuse }, func(d *explain.PullDiff) { d.Secrets = true }, "refused - blocked", "refuses what looks like a secret"},
		{"a secret", "ada APPROVED", none, func(d *explain.PullDiff) { d.Secrets = true }, "pending - asks_more", "asks for 1 approval of what looks like a secret"},
		{"too many files", "ada APPROVED", func(p *policy.Policy) { p.Limits.Files = 1 }, func(d *explain.PullDiff) { d.Files = 2 }, "refused - blocked", "takes 1 files at most"},
		{"too many bytes", "ada APPROVED", func(p *policy.Policy) { p.Limits.Bytes = 99 }, nil, "refused - blocked", "takes 99 bytes"},
		{"drift", "ada APPROVED", func(p *policy.Policy) { p.Approvals.Drift = &policy.Drift{Commits: new(int)} }, nil, "unknown approved unknown", "ada"},
		{"commands run on no merge", "ada APPROVED", func(p *policy.Policy) {
			p.Commands.Run = []policy.Check{{Command: policy.Command{Argv: []string{"false"}}, Required: true}}
		}, nil, "unknown approved unknown", "ada"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := policy.Default()
			c.edit(&p)
			diff := explain.PullDiff{PatchID: thePatch, Paths: []string{"src/a.go"}, Files: 1, Bytes: 100}
			if c.diff != nil {
				c.diff(&diff)
			}
			got := explain.SimulatePull(pulled(t, c.reviews), diff, p)
			atBest := got.AtBest
			if atBest == "" {
				atBest = "-"
			}
			if have := fmt.Sprintf("%s %s %s", got.Now, atBest, got.Difference); have != c.want || got.Then != explain.Merged {
				t.Errorf("%s, want %s: %q", have, c.want, got.Why)
			}
			if why := strings.Join(got.Why, "; "); !strings.Contains(why, c.why) {
				t.Errorf("%q, want %q", why, c.why)
			}
		})
	}
}

// TestPullNeverApproved: whatever people said, and whatever a Policy of this kind asks, what was
// allowed at that time is not known, and no pull request is let through.
func TestPullNeverApproved(t *testing.T) {
	lax := policy.Default()
	lax.Approvals = policy.Approvals{Required: 1, Permission: policy.CanRead, AllowAuthor: true, BreakGlass: []string{"ada"}}
	for _, said := range []string{"ada APPROVED; bob APPROVED; eve APPROVED", "ada - comment=/approve", "ada APPROVED; ada - comment=/break-glass"} {
		if c := explain.SimulatePull(pulled(t, said), explain.PullDiff{PatchID: thePatch, Paths: []string{"a"}, Files: 1, Bytes: 1}, lax); c.Now == approval.Approved || c.Difference == explain.NoDifference {
			t.Errorf("%s: %+v", said, c)
		}
	}
	if got := pulled(t, "ada APPROVED; bob APPROVED on=c; ada APPROVED on=c; eve DISMISSED on=d; bob APPROVED on=; ada CHANGES_REQUESTED on=e").Reviewed(); len(got) != 3 || got[0][0] != 'c' || got[2] != "" {
		t.Errorf("reviewed were %q", got)
	}
	stranger := pulled(t, "ada APPROVED")
	stranger.Strangers = true
	c := explain.SimulatePull(stranger, explain.PullDiff{PatchID: thePatch, Paths: []string{"a"}, Files: 1, Bytes: 1}, lax)
	if !strings.Contains(strings.Join(c.Why, "; "), "whether ada wrote a commit of it") {
		t.Errorf("%q", c.Why)
	}
}

// TestHostileWords: nothing of a title, a login or a path leaves in a shape that a terminal obeys.
func TestHostileWords(t *testing.T) {
	pull := pulled(t, "ada APPROVED; bob APPROVED")
	pull.Title = "x\x1b[2J\r\n\u202efake"
	pull.Statements[0].Author.Login = "a\x1b]0;x\x07da\n- fine"
	p := policy.Default()
	p.Protected = []policy.Rule{{Paths: []string{"*"}, Required: 1, Owners: true}}
	c := explain.SimulatePull(pull, explain.PullDiff{PatchID: thePatch, Paths: []string{"a\u202eb\n.go"}, Files: 1, Bytes: 1}, p)
	for _, text := range append([]string{c.Summary}, c.Why...) {
		if strings.ContainsAny(text, "\x1b\x07\r\n\u202e") {
			t.Errorf("%q", text)
		}
	}
}
