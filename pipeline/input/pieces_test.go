package input

import (
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

const (
	id    = "ce013625030ba8dba906f756967f9e9ca394464a"
	one   = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
	two   = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-two\n+2\n"
	fence = "```diff\n" + one + "```\n"
	show  = "commit " + id + " (HEAD -> main)\nAuthor: A <a@localhost>\nDate:   Thu Jan 1 00:00:00 2026 +0000\n\n    a subject\n    \n    diff --git a/x b/x\n\n" + one
	log   = show + "\ncommit " + id + "\nAuthor:     A <a@localhost>\nAuthorDate: x\nCommit:     A <a@localhost>\nCommitDate: x\n\n    again\n\nNotes:\n    n\n\n" + two
	mail  = "From " + id + " Mon Sep 17 00:00:00 2001\nFrom: A <a@localhost>\nSubject: [PATCH 1/2] =?UTF-8?q?a=20l=C3=B6ng?=\n subject\n\nText\n---\n a | 2 +-\n\n" + one + "-- \n2.39.5\n\n"
)

// TestPieces: what is found in what people have at hand, and what is refused.
func TestPieces(t *testing.T) {
	second := strings.Replace(strings.Replace(mail, one, two, 1), "1/2", "2/2", 1)
	for _, c := range []struct {
		name, given string
		n           int
		subject     string
		err         string
	}{
		{"a diff", one, 1, "", ""},
		{"a blank line first", "\n" + one, 1, "", ""},
		{"git show", show, 1, "a subject", ""},
		{"git log", log, 2, "a subject", ""},
		{"a mail", mail, 1, "a löng subject", ""},
		{"two mails", mail + second, 2, "a löng subject", ""},
		{"a fence", "Words\n\n" + fence + "bye\n", 1, "", ""},
		{"two fences", fence + "then\n" + strings.Replace(fence, one, two, 1), 2, "", ""},
		{"a fence with CRLF after it", "x\n" + strings.TrimSuffix(fence, "\n") + "\r\n", 1, "", ""},
		{"words in the fence", "```diff\nwords\n" + one + "```\n", 1, "", ""},
		{"words in the head", strings.Replace(show, "Author: A", "Other: A", 1), 1, "a subject", ""},
		{"words between", strings.Replace(show, "\n\ndiff", "\n\nwords\ndiff", 1), 1, "a subject", ""},
		{"words after a commit", show + "words\n", 1, "a subject", ""},
		{"words after a mail", mail + "words\n", 1, "a löng subject", ""},
		{"a diff with a fence in it", strings.Replace(one, "\n+1\n", "\n+```diff\n", 1), 1, "", ""},

		{"UTF-16", "\xff\xfed\x00i\x00", 0, "", "line 1: the text is UTF-16 and not UTF-8"},
		{"a fence that does not end", "```diff\n" + one, 0, "", "line 1: the ```diff block does not end"},
		{"a diff beside the fence", "x\n" + one + fence, 0, "", "line 2: a diff without ```diff above it, beside one that has it"},
		{"an indented fence", "  " + fence, 0, "", "line 2: a diff without ```diff above it, beside one that has it"},
		{"a fence in the middle of a line", "see ```diff\n", 0, "", "not a Git diff: no line is ```diff alone"},
		{"a commit without changes", strings.TrimSuffix(show, one), 0, "", "the patch is empty"},
		{"a merge", strings.Replace(show, "diff --git a/a b/a", "diff --cc a", 1), 0, "", "line 1: a merge's combined diff cannot be applied"},
		{"a diff in a mail's message", strings.Replace(mail, "Text", one, 1), 0, "", "line 17: a: path appears twice in the patch"},
		{"a mail that is cut off", mail + "From " + id + " x\nSubject: y\n\n", 0, "", "patch 2 of 2: the patch is empty"},
	} {
		pieces, err := Pieces([]byte(c.given))
		var in Change
		if err == nil {
			in, err = One([]byte(c.given), true, "")
		}
		var set patch.Patchset
		if err == nil {
			set, err = in.Resolve(fstest.MapFS{"a": {Data: []byte("one\ntwo\n")}})
		}
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v; want %s", c.name, err, c.err)
			}
		case err != nil || len(pieces) != c.n || in.Summary != c.subject || string(in.Raw) != c.given:
			t.Errorf("%s: %d pieces, %q, %v", c.name, len(pieces), in.Summary, err)
		case c.n == 2 && string(set.Files()[0].After.Data) != "1\n2\n":
			t.Errorf("%s: %q", c.name, set.Files()[0].After.Data)
		}
	}
}

// TestAuthor: whom a mail or a commit names is taken whole or not at all.
func TestAuthor(t *testing.T) {
	const head, date = "From " + id + " Mon Sep 17 00:00:00 2001\n", "Date: Thu, 1 Jan 2026 10:00:00 +0200\n"
	from := func(lines string) string { return head + lines + "Subject: x\n\n---\n\n" + one }
	for _, c := range []struct{ name, given, want string }{
		{"a mail", from("From: Ada L <ada@example.org>\n" + date), "Ada L <ada@example.org> 2026-01-01T10:00:00+02:00"},
		{"in UTC", from("From: A <a@localhost>\nDate: Thu, 1 Jan 2026 10:00:00 +0000\n"), "A <a@localhost> 2026-01-01T10:00:00Z"},
		{"an encoded name, folded", from("From: =?UTF-8?q?Ad=C3=A1?=\n =?UTF-8?q?_L?= <ada@example.org>\n" + date), "Adá L <ada@example.org> 2026-01-01T10:00:00+02:00"},
		{"a bot", from("From: \"helper[bot]\" <7+helper[bot]@users.noreply.github.com>\n" + date), "helper[bot] <7+helper[bot]@users.noreply.github.com> 2026-01-01T10:00:00+02:00"},
		{"sent by another", from("From: Sender <s@example.org>\n" + date)[:len(from("From: Sender <s@example.org>\n"+date))-len("---\n\n"+one)] + "From: Ada <ada@example.org>\n\n---\n\n" + one, "Ada <ada@example.org> 2026-01-01T10:00:00+02:00"},
		{"git show", show, "A <a@localhost> 2026-01-01T00:00:00Z"},
		{"git show, in full", strings.ReplaceAll(log, "Date: x", "Date: 2026-01-01 00:00:00 -0130")[len(show)+1:], "A <a@localhost> 2026-01-01T00:00:00-01:30"},
		{"two mails of one", from("From: A <a@localhost>\n"+date) + from("From: A <a@localhost>\n"+strings.Replace(date, "10:", "11:", 1)), "A <a@localhost> 2026-01-01T10:00:00+02:00"},

		{"two mails of two", from("From: A <a@localhost>\n"+date) + from("From: B <a@localhost>\n"+date), ""},
		{"two mails, one without", from("From: A <a@localhost>\n"+date) + from(date), ""},
		{"a diff", one, ""},
		{"no date", from("From: A <a@localhost>\n"), ""},
		{"a date that is none", from("From: A <a@localhost>\nDate: today\n"), ""},
		{"a date in a zone that is none", from("From: A <a@localhost>\nDate: Thu, 1 Jan 2026 10:00:00 +2300\n"), ""},
		{"a date before all others", from("From: A <a@localhost>\nDate: Wed, 31 Dec 1969 23:59:59 +0000\n"), ""},
		{"a date after all others", from("From: A <a@localhost>\nDate: Fri, 1 Jan 2100 00:00:00 +0000\n"), ""},
		{"two dates", from("From: A <a@localhost>\n" + date + date), ""},
		{"two authors", from("From: A <a@localhost>\nFrom: B <b@localhost>\n" + date), ""},
		{"no name", from("From: <a@localhost>\n" + date), ""},
		{"no address", from("From: Ada\n" + date), ""},
		{"an address that is none", from("From: A <localhost>\n" + date), ""},
		{"two addresses", from("From: A <a@localhost> <b@localhost>\n" + date), ""},
		{"words after the address", from("From: A <a@localhost> (x)\n" + date), ""},
		{"a space in the address", from("From: A <a b@localhost>\n" + date), ""},
		{"an address that is not ASCII", from("From: A <\u0430@localhost>\n" + date), ""},
		{"brackets in the name", from("From: =?UTF-8?q?A_=3Cb=40c=3E?= <a@localhost>\n" + date), ""},
		{"a line in the name", from("From: =?UTF-8?q?A=0Acommitter_B?= <a@localhost>\n" + date), ""},
		{"a control in the name", from("From: A\x1b[2J <a@localhost>\n" + date), ""},
		{"text that turns round", from("From: A \u202egro <a@localhost>\n" + date), ""},
		{"a charset that nobody knows", from("From: =?x-odd?q?A?= <a@localhost>\n" + date), ""},
		{"a long name", from("From: " + strings.Repeat("a", 101) + " <a@localhost>\n" + date), ""},
	} {
		in, err := One([]byte(c.given), true, "")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := ""
		if a := in.Author; a != nil {
			got = a.Name + " <" + a.Email + "> " + a.Date
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestFoldedHead: a head of many lines is unfolded once, and not line by line.
func TestFoldedHead(t *testing.T) {
	raw := []byte("From " + id + " Mon Sep 17 00:00:00 2001\nSubject: a\n" + strings.Repeat(" b\n", 20000) + "\n---\n\n" + one)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	pieces, err := Pieces(raw)
	runtime.ReadMemStats(&after)
	if err != nil || len(pieces) != 1 || !strings.HasPrefix(pieces[0].Subject, "a b b") {
		t.Fatalf("%d pieces, %v", len(pieces), err)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 16<<20 {
		t.Errorf("%d bytes made %d", len(raw), made)
	}
}
