package report

import (
	"fmt"
	"mime"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Digest tells a team what waits for people. Whatever others wrote in it is text in each of its forms: no markup, link, mention or header.
type Digest struct {
	Repository string // "" where it is not known
	Rows       []Listed
	Unread     int    // how many changes cannot be judged: they may wait too
	Review     string // how many exceptions are to be reviewed, in words of ours; "" for none
	Now        time.Time
	Page       func(Listed) string // the address of a change's page, "" for none
}

// DigestMarker is the first line of the issue that a digest keeps.
const DigestMarker = "<!-- countersign-digest v1 -->"

// mostTold is how many changes a digest tells of, and tellsOf how many characters of the words of another.
const (
	mostTold = 40
	tellsOf  = 120
)

// NewDigest is of what waits in a queue.
func NewDigest(queue []Listed, now time.Time) Digest {
	d := Digest{Now: now, Page: func(Listed) string { return "" }}
	for _, l := range queue {
		switch l.State {
		case plain.Waits:
			d.Rows = append(d.Rows, l)
		case plain.Unknown, plain.Damaged:
			d.Unread++
		}
	}
	return d
}

// Title says in a line how much waits.
func (d Digest) Title() string {
	late := 0
	for _, l := range d.Rows {
		if l.overdue(d.Now) {
			late++
		}
	}
	about := ""
	if d.Repository != "" {
		about = spoken(d.Repository) + ": "
	}
	switch {
	case len(d.Rows) == 0 && d.Unread > 0:
		return about + d.unread()
	case len(d.Rows) == 0:
		return about + "nothing waits for approval"
	case late == 0:
		return about + ledger.Plural(len(d.Rows), "change waits", "changes wait") + " for approval"
	}
	return fmt.Sprintf("%s%s for approval, %d overdue", about, ledger.Plural(len(d.Rows), "change waits", "changes wait"), late)
}

// unread says how many changes cannot be judged.
func (d Digest) unread() string {
	return ledger.Plural(d.Unread, "change", "changes") + " cannot be judged: countersign audit"
}

// Tells reports whether there is anything to tell.
func (d Digest) Tells() bool { return len(d.Rows) > 0 || d.Unread > 0 || d.Review != "" }

// spoken are somebody's words as a message has them: short, in one line, and such that no program takes them for a mention or a tag.
func spoken(text string) string {
	return strings.NewReplacer("@", "@\u200b", "<", "<\u200b").Replace(Clean(escape.ShortenTo(text, tellsOf)))
}

// A digestLine is what is told of one change: what it is called, its page, when it is overdue, and the rest, each plain text.
type digestLine struct{ ID, Page, Late, Age, By, About string }

// lines are what is told of each change, and what there is beside them.
func (d Digest) lines() (lines []digestLine, more []string) {
	for _, l := range d.Rows[:min(len(d.Rows), mostTold)] {
		one := digestLine{ID: Clean(lookup.ShortID(l.TransactionID)), Page: d.Page(l), Age: Age(d.Now.Sub(l.Turn.Since)), By: l.Proposer.Login, About: l.Notes}
		if l.overdue(d.Now) {
			one.Late = "overdue since " + l.Turn.Due.UTC().Format(time.DateOnly) + ", "
		}
		if l.Notes == "" {
			one.About = l.About()
		}
		lines = append(lines, one)
	}
	if n := len(d.Rows) - len(lines); n > 0 {
		more = append(more, fmt.Sprintf("and %d more: countersign status", n))
	}
	if d.Unread > 0 {
		more = append(more, d.unread())
	}
	if d.Review != "" {
		more = append(more, d.Review)
	}
	return lines, more
}

// text is a line without its id.
func (l digestLine) text() string {
	return l.Late + l.Age + ", by " + spoken(l.By) + ": " + spoken(l.About)
}

// Markdown is the digest for an issue or a page.
func (d Digest) Markdown() string {
	var b strings.Builder
	b.WriteString(escape.Prose(d.Title()) + ".\n")
	lines, more := d.lines()
	if len(lines)+len(more) > 0 {
		b.WriteByte('\n')
	}
	for _, l := range lines {
		late := l.Late
		if late != "" {
			late = "**" + strings.TrimSuffix(late, ", ") + "**, "
		}
		fmt.Fprintf(&b, "- %s %s%s, by %s: %s\n", escape.Link("`"+l.ID+"`", l.Page), late, l.Age, escape.Prose(escape.ShortenTo(l.By, tellsOf)), escape.Prose(escape.ShortenTo(l.About, tellsOf)))
	}
	for _, text := range more {
		b.WriteString("- " + text + "\n")
	}
	return b.String()
}

// Mail is the digest as a message without an address, for a program such as sendmail.
func (d Digest) Mail() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Subject: %s\nDate: %s\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n",
		mime.QEncoding.Encode("utf-8", d.Title()), d.Now.UTC().Format(time.RFC1123Z))
	lines, more := d.lines()
	for _, l := range lines {
		b.WriteString("* " + l.ID + "  " + l.text() + "\n")
		if l.Page != "" {
			b.WriteString("  " + Clean(l.Page) + "\n")
		}
	}
	b.WriteString("\n")
	for _, text := range more {
		b.WriteString(text + "\n")
	}
	return b.String()
}

// An object is one of JSON.
type object = map[string]any

// Slack is the digest as Slack's incoming webhooks take it: rich text, whose words are read as nothing else.
func (d Digest) Slack() any {
	lines, more := d.lines()
	items := []any{}
	item := func(parts ...any) { items = append(items, object{"type": "rich_text_section", "elements": parts}) }
	for _, l := range lines {
		name := object{"type": "text", "text": l.ID, "style": object{"code": true}}
		if l.Page != "" {
			name = object{"type": "link", "url": l.Page, "text": l.ID}
		}
		item(name, object{"type": "text", "text": " " + l.text()})
	}
	for _, text := range more {
		item(object{"type": "text", "text": text})
	}
	blocks := []any{object{"type": "section", "text": object{"type": "plain_text", "text": d.Title(), "emoji": false}}}
	if len(items) > 0 {
		list := object{"type": "rich_text_list", "style": "bullet", "elements": items}
		blocks = append(blocks, object{"type": "rich_text", "elements": []any{list}})
	}
	return object{"text": Digest{Rows: d.Rows, Unread: d.Unread, Now: d.Now}.Title(), "blocks": blocks} // that is read as Slack's markup
}

// Teams is the digest as the webhooks of Microsoft Teams take it: an Adaptive Card of text runs, which have no markup.
func (d Digest) Teams() any {
	lines, more := d.lines()
	run := func(text string) object { return object{"type": "TextRun", "text": text} }
	body := []any{object{"type": "RichTextBlock", "inlines": []any{object{"type": "TextRun", "text": d.Title(), "weight": "Bolder"}}}}
	for _, l := range lines {
		name := run(l.ID)
		if l.Page != "" {
			name["selectAction"] = object{"type": "Action.OpenUrl", "url": l.Page}
		}
		body = append(body, object{"type": "RichTextBlock", "inlines": []any{name, run("  " + l.text())}})
	}
	for _, text := range more {
		body = append(body, object{"type": "RichTextBlock", "inlines": []any{run(text)}})
	}
	card := object{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body}
	return object{"type": "message", "attachments": []any{object{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}
}
