package report_test

import (
	"encoding/json"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/pagetest"
)

var digestTime = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func digestOf(by, summary string) report.Digest {
	l := report.Listed{Transaction: ledger.Transaction{
		TransactionID: "tx_01M82YFRMRC61F83E0W3CJ76HE", Notes: summary, Proposer: ledger.Actor{Login: by}, CreatedAt: ledger.FormatTime(digestTime.Add(-72 * time.Hour)),
	}, State: plain.Waits}
	l.Turn = lookup.NewTurn(l.CreatedAt, 48*time.Hour, 3, by)
	d := report.NewDigest([]report.Listed{l, {State: plain.Approved}}, digestTime)
	d.Repository = by
	return d
}

// T14 T71 T76: whatever somebody wrote in a change is text in each form of a digest: no mention, tag, link, markup or header.
func TestT76Digest(t *testing.T) {
	hostile := append([]string{"@here @channel <!channel> <!here|x> <@U1> <at>all</at>", "x\r\nBcc: eve@example.org\r\n\r\nbody", "x\n.\nFrom eve", "[a](http://evil.example) <http://evil.example|a> *b* _c_ ~d~ `e` #1"}, pagetest.HostileTexts()...)
	for _, text := range hostile {
		for _, d := range []report.Digest{digestOf(text, "fix"), digestOf("bot", text)} {
			slack, err := json.Marshal(d.Slack())
			check(t, err)
			teams, err := json.Marshal(d.Teams())
			check(t, err)
			for form, got := range map[string]string{"slack": string(slack), "teams": string(teams), "mail": d.Mail(), "markdown": d.Markdown()} {
				for _, bad := range []string{"@here", "@channel", "@U1", "<!", "\\u003c!", "<@", "\\u003c@", "<at>", "\\u003cat\\u003e", "](http://evil", "\r", "\x1b", "<script", "<img"} {
					if strings.Contains(got, bad) && (form == "markdown" || bad != "](http://evil") {
						t.Errorf("%s of %q has %q:\n%s", form, text, bad, got)
					}
				}
			}
			m, err := mail.ReadMessage(strings.NewReader(d.Mail()))
			if err != nil || len(m.Header) != 6 {
				t.Errorf("mail of %q: %v, %v", text, err, m)
			}
			if n := strings.Count(d.Mail(), "\n"); n != 9 {
				t.Errorf("mail of %q has %d lines\n%s", text, n, d.Mail())
			}
			types := map[string]bool{}
			typesIn(types, d.Slack())
			typesIn(types, d.Teams())
			for name := range types { // what has markup, mentions or links is none of them
				if !strings.Contains(" section plain_text rich_text rich_text_list rich_text_section text message AdaptiveCard RichTextBlock TextRun ", " "+name+" ") {
					t.Errorf("a part of the type %s", name)
				}
			}
		}
	}
}

// typesIn notes the types of all objects in a document.
func typesIn(types map[string]bool, v any) {
	switch v := v.(type) {
	case map[string]any:
		if name, is := v["type"].(string); is {
			types[name] = true
		}
		for _, one := range v {
			typesIn(types, one)
		}
	case []any:
		for _, one := range v {
			typesIn(types, one)
		}
	}
}

// TestDigest: it tells of what waits, and of nothing else; a page is linked to.
func TestDigest(t *testing.T) {
	d := digestOf("acme/app", "Bump x")
	d.Page = func(report.Listed) string { return "https://github.com/acme/app/pull/7" }
	if got, want := d.Markdown(), "acme/app:\u200b 1 change waits for approval, 1 overdue.\n\n- [`3CJ76HE`](https://github.com/acme/app/pull/7) **overdue since 2026-11-22**, 3 days, by acme/app: Bump x\n"; strings.ReplaceAll(got, "\u200b", "") != strings.ReplaceAll(want, "\u200b", "") {
		t.Errorf("%q", got)
	}
	if got := d.Mail(); !strings.HasPrefix(got, "Subject: acme/app: 1 change waits for approval, 1 overdue\nDate: Mon, 23 Nov 2026 12:00:00 +0000\n") ||
		!strings.HasSuffix(got, "\n\n* 3CJ76HE  overdue since 2026-11-22, 3 days, by acme/app: Bump x\n  https://github.com/acme/app/pull/7\n\n") {
		t.Errorf("%q", got)
	}
	slack, err := json.Marshal(d.Slack())
	check(t, err)
	if !strings.Contains(string(slack), `{"text":"3CJ76HE","type":"link","url":"https://github.com/acme/app/pull/7"},{"text":" overdue since 2026-11-22, 3 days, by acme/app: Bump x","type":"text"}`) {
		t.Errorf("%s", slack)
	}
	teams, err := json.Marshal(d.Teams())
	check(t, err)
	if !strings.Contains(string(teams), `{"selectAction":{"type":"Action.OpenUrl","url":"https://github.com/acme/app/pull/7"},"text":"3CJ76HE","type":"TextRun"}`) {
		t.Errorf("%s", teams)
	}
	d.Review = "2 exceptions to review, 1 overdue"
	for form, got := range map[string]any{"slack": d.Slack(), "teams": d.Teams(), "mail": d.Mail(), "markdown": d.Markdown()} {
		if raw, err := json.Marshal(got); err != nil || !strings.Contains(string(raw), d.Review) {
			t.Errorf("%s does not tell of exceptions: %s", form, raw)
		}
	}
	d.Review = ""
	for range 41 {
		d.Rows = append(d.Rows, d.Rows[0])
	}
	if got := d.Markdown(); strings.Count(got, "\n- ") != 41 || !strings.HasSuffix(got, "\n- and 2 more: countersign status\n") {
		t.Errorf("%s", got)
	}
	if got := report.NewDigest(nil, digestTime).Markdown(); got != "nothing waits for approval.\n" {
		t.Errorf("%q", got)
	}
}

// TestDigestUnread: a change that cannot be judged is no change that does not wait.
func TestDigestUnread(t *testing.T) {
	for _, state := range []plain.State{plain.Unknown, plain.Damaged} {
		d := report.NewDigest([]report.Listed{{State: state}}, time.Time{})
		if want := "1 change cannot be judged"; !d.Tells() || !strings.HasPrefix(d.Title(), want) || !strings.Contains(d.Markdown(), "- "+want) {
			t.Errorf("%s: %q", state, d.Markdown())
		}
	}
	if d := report.NewDigest([]report.Listed{{State: plain.Merged}}, time.Time{}); d.Tells() {
		t.Errorf("%q", d.Markdown())
	}
}
