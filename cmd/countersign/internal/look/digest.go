package look

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/report"
)

type digestFlags struct{ markdown, slack, teams, mail, issue, post bool }

func digestCommand(c *console.Console) *cobra.Command {
	var f digestFlags
	cmd := &cobra.Command{
		Use: "digest", Short: "Tell a team what waits, and what is overdue", Args: console.NoArgs,
		Long: `digest prints what waits for people, in the order of status, as a message: as Markdown, or in the form of
Slack, of Microsoft Teams, of a mail, or of an issue on GitHub.

With --post it is sent: to the webhook in COUNTERSIGN_WEBHOOK, whose address is https, or as one issue on GitHub,
which is brought up to date, and closed once nothing waits. --mail is for a program such as sendmail.`,
		Example: "  countersign digest\n  countersign digest --slack --post\n  countersign digest --mail | sendmail team@example.org",
		RunE:    func(cmd *cobra.Command, _ []string) error { return digest(cmd.Context(), c, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.markdown, "markdown", false, "as Markdown (the default)")
	flags.BoolVar(&f.slack, "slack", false, "as Slack's webhooks take it")
	flags.BoolVar(&f.teams, "teams", false, "as webhooks of Microsoft Teams take it")
	flags.BoolVar(&f.mail, "mail", false, "as a mail without an address")
	flags.BoolVar(&f.issue, "github-issue", false, "as the body of an issue on GitHub")
	flags.BoolVar(&f.post, "post", false, "send it: to the webhook in COUNTERSIGN_WEBHOOK, or as one issue that is kept up to date")
	cmd.MarkFlagsMutuallyExclusive("markdown", "slack", "teams", "mail", "github-issue")
	return cmd
}

func digest(ctx context.Context, c *console.Console, f digestFlags) error {
	if f.post && !f.slack && !f.teams && !f.issue {
		return &console.UsageError{Message: "--post does not say where to", Hint: "add --slack, --teams or --github-issue"}
	}
	s, err := session.Open(c)
	if err != nil {
		return err
	}
	snap, rows, err := s.Queue(ctx)
	if err != nil {
		return err
	}
	links := s.Links()
	d := report.NewDigest(rows, c.Now())
	d.Repository = strings.Trim(pathOf(links.Web), "/")
	d.Page = func(l report.Listed) string { return links.Page(l.PullRequest(), forge.Posted{}, "") }
	due, _, untold := toReview(ctx, s, snap.Tip)
	if d.Review = strings.TrimSpace(report.Due(due, report.Style{})); untold != nil {
		d.Review = "what is to be reviewed cannot be told"
	}
	text, err := digestText(c, d, f)
	switch {
	case err != nil:
		return err
	case c.Flags.JSON:
		return c.PrintJSON(listing(d.Rows, d.Unread > 0, due, untold))
	case f.post && f.issue:
		return postIssue(ctx, s, d, text.String())
	case f.post:
		return postWebhook(ctx, c, text.String())
	}
	return s.Long(text)
}

// digestText is the digest in its form, without secrets.
func digestText(c *console.Console, d report.Digest, f digestFlags) (secret.Redacted, error) {
	switch {
	case f.slack:
		return c.RedactJSON(d.Slack())
	case f.teams:
		return c.RedactJSON(d.Teams())
	case f.mail:
		return c.Redact(d.Mail()), nil
	case f.issue:
		return c.Redact(report.DigestMarker + "\n" + d.Markdown()), nil
	}
	return c.Redact(d.Markdown()), nil
}

func pathOf(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return at.Path
}

// postIssue keeps one issue up to date, as the watch does: it is opened once something waits, and closed once nothing does.
func postIssue(ctx context.Context, s *session.Session, d report.Digest, body string) error {
	on, err := session.Issues(s.Console, s.Client)
	if err != nil {
		return err
	}
	ours := func(body string) bool { return strings.HasPrefix(body, report.DigestMarker) }
	tells := d.Tells()
	done, err := explain.Keep(ctx, on, ours, tells, func(was *forge.Issue) (*forge.Issue, string) {
		if was == nil && !tells {
			return nil, ""
		}
		was = cmp.Or(was, &forge.Issue{})
		return &forge.Issue{Number: was.Number, Title: "countersign: " + report.Digest{Rows: d.Rows, Unread: d.Unread, Now: d.Now}.Title(), Body: body, Open: tells}, ""
	})
	if err == nil {
		s.Say("%s", cmp.Or(done, "nothing waits, and there is no issue"))
	}
	return err
}

// postWebhook sends a message to the webhook in the environment, whose address is a secret and never told.
func postWebhook(ctx context.Context, c *console.Console, body string) error {
	to, err := rest.Address(c.Getenv("COUNTERSIGN_WEBHOOK"))
	if err != nil || to.Scheme != "https" && !isLoopback(to.Hostname()) {
		return &console.UsageError{Message: "COUNTERSIGN_WEBHOOK has no address of a webhook, which begins with https://", Hint: "make an incoming webhook, and put its address there"}
	}
	req, err := http.NewRequestWithContext(rest.WithCall(ctx, rest.Call{Raw: true, Limit: 64 << 10}), http.MethodPost, to.String(), strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("the webhook in COUNTERSIGN_WEBHOOK cannot be asked")
	}
	req.Header.Set("Content-Type", "application/json")
	client, _ := rest.Transport{Agent: "countersign/" + console.Version()}.Clients()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return rest.Failed("the webhook", "posting the digest", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return &rest.Error{Forge: "the webhook", Op: "posting the digest", Kind: rest.KindRefused, Status: resp.StatusCode, Message: "it leads elsewhere, where nothing is sent"}
	}
	c.Say("the digest was posted")
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
