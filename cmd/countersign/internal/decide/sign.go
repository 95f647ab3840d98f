package decide

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// signFlags say with which key a decision is signed.
type signFlags struct {
	sign  bool
	key   string
	patch string
	block bool // what is posted is a block, not a line
}

// A signFunc signs a ruling on a transaction; nil leaves it unsigned.
type signFunc func(pipeline.Judgement, pipeline.Ruling) (*approval.Signature, error)

func (f signFunc) of(g pipeline.Judgement, ruling pipeline.Ruling) (*approval.Signature, error) {
	if f == nil {
		return nil, nil
	}
	return f(g, ruling)
}

func (f *signFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.key, "key", "", "the SSH key to sign with: a `FILE`, a public one's meaning the agent's (default: the agent's, or user.signingKey)")
	session.GivePatch(cmd, &f.patch)
}

// signCommand signs a decision for a pull request.
func signCommand(c *console.Console) *cobra.Command {
	var f signFlags
	var number int
	var deny, post, all bool
	var fingerprints []string
	var reason, repository string
	cmd := &cobra.Command{
		Use:   "sign --pr N [TX] | sign TX",
		Short: "Sign a decision with your own SSH key, for a pull request or a JSON-RPC client",
		Long: `sign shows the patch that is proposed for a pull request, as the ledger has it and this program
hashes it, asks, and signs your decision with your own SSH key. It prints a line and copies it to
the clipboard, if the terminal allows that. Post it as a comment on the pull request, all of it and
nothing else. With --block it is a block in which people can read what was signed. --post posts it
with the token in COUNTERSIGN_TOKEN or GH_TOKEN. The Policy must list the key for the account that
posts it.

Without --pr, the decision is about a transaction without a pull request, and the line is for
JSON-RPC's approval/respond; approve TX --sign records such a decision here.

A security key asks for a touch. Outside a clone, --repo says which repository is meant.
Without a terminal nobody is asked, and the transaction must be named as for approve.`,
		Example: `  countersign sign --pr 12
  countersign sign --pr 12 --post
  countersign sign --pr 12 --repo OWNER/NAME --key ~/.ssh/id_ed25519_sk
  countersign sign tx_01K5Z8M2QV --json`,
		Args: console.UpToOne,
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			if number < 0 || number == 0 && (len(args) == 0 || post || repository != "") {
				return console.Outcome{}, &console.UsageError{Message: "--pr must name the pull request", Hint: c.Again("approve", "--sign")}
			}
			if repository != "" {
				remove, err := cloneFor(cmd.Context(), c, repository)
				if err != nil {
					return console.Outcome{}, err
				}
				defer remove()
			}
			ruling := pipeline.Ruling{Decision: ledger.Approve, Fingerprints: fingerprints, All: all, Reason: reason}
			if deny {
				ruling.Decision = ledger.Deny
			}
			return signFor(cmd.Context(), c, number, args, ruling, f, post)
		}),
	}
	cmd.Flags().IntVar(&number, "pr", 0, "the pull request's `NUMBER`")
	cmd.Flags().BoolVar(&deny, "deny", false, "sign a denial")
	cmd.Flags().BoolVar(&post, "post", false, "post it on the pull request")
	cmd.Flags().BoolVar(&f.block, "block", false, "a fenced block in which the signed statement can be read, not one line")
	cmd.Flags().BoolVar(&all, "all", false, "answer everything that the transaction asks about at once")
	cmd.Flags().StringSliceVar(&fingerprints, "fingerprint", nil, "what is meant: secret, protected, or patchset:… in full: `WHAT`")
	cmd.Flags().StringVar(&reason, "reason", "", "why, signed with the decision")
	cmd.Flags().StringVar(&repository, "repo", "", "work without a clone, on the repository `OWNER/NAME` or one with this address")
	f.add(cmd)
	return cmd
}

// signFor signs a decision on what a pull request's transaction proposes.
func signFor(ctx context.Context, c *console.Console, number int, args []string, ruling pipeline.Ruling, f signFlags, post bool) (done console.Outcome, err error) {
	s, err := session.Open(c)
	if err == nil && number > 0 {
		err = s.WorkShared()
	}
	if err != nil {
		return done, err
	}
	if post && s.Client == nil {
		return done, &console.UsageError{Message: "there is no token to post with", Hint: "set COUNTERSIGN_TOKEN to a token of your own account, or leave out --post"}
	}
	find := func() (string, error) { return findOnPull(ctx, s, number, args) }
	id, err := find()
	if done.Transaction = id; err != nil {
		return done, err
	}
	if s, err = s.Give(ctx, []string{id}, f.patch); err != nil {
		return done, err
	}
	g, err := standing(ctx, s, id)
	if err == nil && number > 0 {
		err = checkRepository(ctx, s, g)
	}
	if err != nil {
		return done, err
	}
	answer, err := answerOnPull(ctx, s, g, args, ruling)
	if err != nil {
		return done, err
	}
	sign := func() (*approval.Signature, error) { return signRuling(ctx, s, g, *answer, f.key) }
	signature, comment, err := comment(sign, f.block, func(text string) string { return c.Redact(text).String() })
	if err != nil {
		return done, err
	}
	if now, err := find(); err != nil || now != id {
		return done, cmp.Or(err, pipeline.Changed(id))
	}
	url := ""
	if post {
		posted, err := s.Client.UpsertComment(ctx, number, "", comment)
		if err != nil {
			return done, fmt.Errorf("posting the signed decision: %w", err)
		}
		url = posted.URL
	}
	copyToClipboard(c, comment)
	patchID := g.Transaction().PatchID()
	if c.Flags.JSON {
		return done, c.PrintJSON(console.Document{"comment": comment, "line": approval.SignedLine(*signature), "patch_id": patchID, "short": report.ShortHash(patchID), "transaction_id": id, "url": url})
	}
	c.Say("this is patch %s: compare the hash with what others see", report.ShortHash(patchID))
	if post {
		return done, c.Print("posted: " + url + "\n")
	}
	return done, c.Print(comment + "\n")
}

// answerOnPull asks the person at the terminal; where nobody is there the ruling is taken
// as it is, if it names what it is about.
func answerOnPull(ctx context.Context, s *session.Session, g pipeline.Judgement, args []string, ruling pipeline.Ruling) (*pipeline.Ruling, error) {
	id, number := g.Transaction().TransactionID, g.Transaction().PullRequest()
	person := s.Person()
	if person == nil {
		if len(args) == 0 && namedPatch(ruling) == "" || len(args) > 0 && !precise(args[0], id) {
			hint := s.Again("sign", id)
			if number > 0 { // perhaps without a clone
				hint = fmt.Sprintf("countersign sign --pr %d %s", number, id)
			}
			return nil, &console.UsageError{Message: "sign must name the exact change: nobody was shown it here", Hint: hint}
		}
		return &ruling, nil
	}
	defer person.Close()
	about, err := s.Runner.Named(g, pipeline.Ruling{Decision: ruling.Decision, Fingerprints: ruling.Fingerprints, All: len(ruling.Fingerprints) == 0})
	if err != nil {
		return nil, err
	}
	answer, _, err := ask(ctx, s, g, asking{about: about, signs: true, whole: true}, ruling, person)
	if answer == nil && err == nil {
		s.Say("nothing was signed")
		err = &console.ExitError{Code: console.ExitPending}
	}
	return answer, err
}

// checkRepository refuses a transaction of another repository than the one that is
// meant: whoever can write that one's ledger says what is shown.
func checkRepository(ctx context.Context, s *session.Session, g pipeline.Judgement) error {
	p := g.Transaction().Pointers.Proposal
	meant := github.RepositoryOf(s.Repo.Config.RemoteURL(s.Flags.Remote))
	if p.Repository == nil || meant == "" || !strings.EqualFold(p.Repository.Name, meant) {
		return &console.UsageError{Message: fmt.Sprintf("%s is of another repository than %s", g.Transaction().TransactionID, meant), Hint: "--repo OWNER/NAME names the repository of the pull request"}
	}
	if s.Runner.Forge == nil {
		return nil
	}
	now, err := s.Runner.Forge.PullRequest(ctx, p.PullRequest)
	if err == nil && now.Repository.ID != p.Repository.ID {
		err = &console.UsageError{Message: fmt.Sprintf("%s is of another repository than %s, which had its name before", g.Transaction().TransactionID, meant), Hint: ""}
	}
	return err
}

// standing is a transaction as the ledger has it, asking nobody.
func standing(ctx context.Context, s *session.Session, id string) (pipeline.Judgement, error) {
	snap, err := s.Runner.Ledger(ctx, ledger.Dir(id))
	if err != nil {
		return pipeline.Judgement{}, err
	}
	g, err := s.Runner.History(ctx, snap, id)
	if err == nil && g.Transaction().Closed {
		err = pipeline.ClosedError(id, g.Transaction().Status)
	}
	return g, err
}

// findOnPull finds the transaction on a pull request that is meant: the one that is
// open, or the one that was named.
func findOnPull(ctx context.Context, s *session.Session, number int, args []string) (string, error) {
	if len(args) > 0 {
		snap, id, err := s.Find(ctx, args, false)
		if err != nil {
			return "", err
		}
		tx, err := lookup.State(snap.Tree, id)
		if err == nil && tx.PullRequest() != number {
			err = &console.UsageError{Message: fmt.Sprintf("%s is not on pull request %d", id, number), Hint: ""}
			if number == 0 {
				err = &console.UsageError{Message: fmt.Sprintf("%s is on pull request %d", id, tx.PullRequest()), Hint: s.Again("sign", "--pr", fmt.Sprint(tx.PullRequest()), id)}
			}
		}
		return id, err
	}
	open, _, err := s.Runner.Open(ctx)
	if err != nil {
		return "", err
	}
	open = slices.DeleteFunc(open, func(tx ledger.Transaction) bool { return tx.PullRequest() != number })
	switch len(open) {
	case 0:
		return "", &console.UsageError{Message: fmt.Sprintf("nothing is open on pull request %d", number), Hint: "countersign list --push"}
	case 1:
		return open[0].TransactionID, nil
	}
	var lines []string
	for _, tx := range open {
		lines = append(lines, "countersign sign --pr "+fmt.Sprint(number)+" "+tx.TransactionID)
	}
	return "", &console.UsageError{Message: fmt.Sprintf("%d transactions are open on pull request %d", len(open), number), Hint: lines[0]}
}

// signRuling signs a ruling on a transaction with the person's own key.
func signRuling(ctx context.Context, a *session.Session, g pipeline.Judgement, ruling pipeline.Ruling, key string) (*approval.Signature, error) {
	about, err := a.Runner.Named(g, ruling)
	if err != nil {
		return nil, err
	}
	if err := g.CheckBytes(ctx); console.As[*pipeline.RedactedError](err) {
		return nil, &console.UsageError{Message: err.Error() + ", and what is signed must be all of it", Hint: "--patch FILE gives the patch"}
	} else if err != nil {
		return nil, err
	}
	var fingerprints []string
	for _, one := range about {
		fingerprints = append(fingerprints, one.Fingerprint)
	}
	statement, err := g.Statement(ruling.Decision, fingerprints, ruling.Reason, a.Now())
	if err != nil {
		return nil, &console.UsageError{Message: "this cannot be signed: " + err.Error(), Hint: ""}
	}
	s := approval.Signature{Statement: statement}
	with, err := signingKey(ctx, a, g.Keys(), key)
	if err != nil {
		return nil, err
	}
	if s.Armored, err = a.SignWith(ctx, with, approval.Namespace, s.Statement.Bytes()); err != nil {
		return nil, err
	}
	return &s, nil
}

// comment is a signature, and it as people post it. What would be redacted where it is read is no signature then: one of
// some thousands has by chance what looks like a secret, and another is made, of a later time. The ledger knows
// signatures for what they are, and takes any.
func comment(sign func() (*approval.Signature, error), block bool, redact func(string) string) (*approval.Signature, string, error) {
	for range 3 {
		s, err := sign()
		if err != nil {
			return nil, "", err
		}
		text := approval.SignedLine(*s)
		if block {
			text = forge.SignedBlock(*s)
		}
		if redact(text) == text {
			return s, text, nil
		}
	}
	return nil, "", errors.New("the signature has what looks like a secret in it: sign again, with other words where there is a reason")
}

// signingKey is the key that is named, else the one that Git's configuration has for
// signatures by SSH, else the agent's: the first that the Policy's list has, or its only
// one.
func signingKey(ctx context.Context, s *session.Session, keys approval.Keys, named string) (console.SigningKey, error) {
	if named != "" {
		return s.OwnKey(named), nil
	}
	if name := s.Repo.Config.SigningKey(); name != "" {
		return console.NamedKey(name, s.Getenv("HOME")), nil
	}
	held, err := console.AgentKeys(ctx)
	if errors.Is(err, console.ErrNoOpenSSH) {
		held = nil
	} else if err != nil {
		return console.SigningKey{}, err
	}
	listed := slices.IndexFunc(held, func(k console.SigningKey) bool { return keys.Allowed.Lists(k.Public) })
	switch {
	case listed >= 0:
		return held[listed], nil
	case len(held) == 1:
		return held[0], nil
	case len(held) > 1:
		return console.SigningKey{}, &console.UsageError{Message: fmt.Sprintf("the agent has %d keys, and the Policy lists none of them", len(held)), Hint: "name one with --key FILE"}
	}
	return console.SigningKey{}, &console.UsageError{Message: "there is no key to sign with", Hint: "--key FILE names one"}
}

// copyToClipboard offers a text to the terminal's clipboard.
func copyToClipboard(c *console.Console, text string) {
	if person := c.Person(); person != nil {
		defer person.Close()
		_ = console.Emit(person, c.Redact(text).Show(console.Copying))
	}
}

var ownerName = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$`)

// cloneFor makes a clone of a repository's newest commit, without its files, to work in
// where there is none. Files that are named are not below it, and what it has seen of the
// ledger is remembered for the next one.
func cloneFor(ctx context.Context, c *console.Console, repository string) (remove func(), err error) {
	address := repository
	if ownerName.MatchString(repository) {
		address = cmp.Or(c.Getenv("GITHUB_SERVER_URL"), "https://github.com") + "/" + repository + ".git"
	}
	dir, remove, err := console.TempDir("countersign-sign-")
	if err != nil {
		return nil, err
	}
	c.Cloned, c.Beside = address, c.Flags.Dir
	if c.Flags.TipFile == "" && c.Flags.KnownTip == "" {
		if c.Flags.TipFile, err = session.TipFileFor(c, address); err != nil {
			c.Say("the ledger's tip is not remembered (--tip-file FILE would): %v", err)
		}
	}
	authorization := ""
	none := gitstore.Settings{} // there is no clone yet
	if token, host := session.ForgeToken(c, none, address), github.HostOf(address); token != "" && host != "" && host == session.TokenHost(c, none) {
		authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+token))
	}
	if err := wire.Clone(ctx, address, dir, authorization, os.Environ()); err != nil {
		remove()
		return nil, &console.ExitError{Code: console.ExitIO, Err: err}
	}
	c.Flags.Dir = dir
	return remove, nil
}
