package main

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

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/sshkey"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/terminal"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/artifact"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/signed"
	"github.com/countersign-dev/countersign/pipeline/reviewed"
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
type signFunc func(pipeline.Gated, pipeline.Ruling) (*signed.Signature, error)

func (f signFunc) of(g pipeline.Gated, ruling pipeline.Ruling) (*signed.Signature, error) {
	if f == nil {
		return nil, nil
	}
	return f(g, ruling)
}

func (f *signFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.key, "key", "", "the SSH key to sign with: a `FILE`, a public one's meaning the agent's (default: the agent's, or user.signingKey)")
	givePatch(cmd, &f.patch)
}

// signCommand signs a decision for a pull request.
func (a *App) signCommand() *cobra.Command {
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
		Args: cli.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if number < 0 || number == 0 && (len(args) == 0 || post || repository != "") {
				return &cli.UsageError{Message: "--pr must name the pull request", Hint: a.again("approve", "--sign")}
			}
			if repository != "" {
				remove, err := a.cloneFor(cmd.Context(), repository)
				if err != nil {
					return err
				}
				defer remove()
			}
			ruling := pipeline.Ruling{Decision: ledger.Approve, Fingerprints: fingerprints, All: all, Reason: reason}
			if deny {
				ruling.Decision = ledger.Deny
			}
			return a.signFor(cmd.Context(), number, args, ruling, f, post)
		},
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
func (a *App) signFor(ctx context.Context, number int, args []string, ruling pipeline.Ruling, f signFlags, post bool) error {
	if number > 0 {
		a.shareLedger()
	}
	r, err := a.open()
	if err != nil {
		return err
	}
	if post && a.client == nil {
		return &cli.UsageError{Message: "there is no token to post with", Hint: "set COUNTERSIGN_TOKEN to a token of your own account, or leave out --post"}
	}
	find := func() (string, error) { return a.findOnPull(ctx, r, number, args) }
	id, err := find()
	if err != nil {
		return err
	}
	if r, err = a.give(ctx, r, []string{id}, f.patch); err != nil {
		return err
	}
	g, err := a.standing(ctx, r, id)
	if err == nil && number > 0 {
		err = a.checkRepository(ctx, r, g)
	}
	if err != nil {
		return err
	}
	answer, err := a.answerOnPull(ctx, r, g, args, ruling)
	if err != nil {
		return err
	}
	signature, err := a.sign(ctx, r, g, *answer, f.key)
	if err != nil {
		return err
	}
	comment, err := a.comment(*signature, f.block)
	if err != nil {
		return err
	}
	if now, err := find(); err != nil || now != id {
		return cmp.Or(err, error(&pipeline.ChangedError{ID: id}))
	}
	url := ""
	if post {
		posted, err := a.client.UpsertComment(ctx, number, "", comment)
		if err != nil {
			return fmt.Errorf("posting the signed decision: %w", err)
		}
		url = posted.URL
	}
	a.copyToClipboard(comment)
	patchID := g.Transaction().PatchID()
	if a.flags.json {
		return a.printJSON(document{"comment": comment, "line": approval.SignedLine(*signature), "patch_id": patchID, "short": report.ShortHash(patchID), "transaction_id": id, "url": url})
	}
	a.say("this is patch %s: compare the hash with what others see", report.ShortHash(patchID))
	if post {
		return a.print("posted: " + url + "\n")
	}
	return a.print(comment + "\n")
}

// answerOnPull asks the person at the terminal; where nobody is there the ruling is taken
// as it is, if it names what it is about.
func (a *App) answerOnPull(ctx context.Context, r *pipeline.Runner, g pipeline.Gated, args []string, ruling pipeline.Ruling) (*pipeline.Ruling, error) {
	id, number := g.Transaction().TransactionID, g.Transaction().PullRequest()
	person := a.person()
	if person == nil {
		if len(args) == 0 && namedPatch(ruling) == "" || len(args) > 0 && !precise(args[0], id) {
			hint := a.again("sign", id)
			if number > 0 { // perhaps without a clone
				hint = fmt.Sprintf("countersign sign --pr %d %s", number, id)
			}
			return nil, &cli.UsageError{Message: "sign must name the exact change: nobody was shown it here", Hint: hint}
		}
		return &ruling, nil
	}
	defer person.Close()
	about, err := r.Named(g, pipeline.Ruling{Decision: ruling.Decision, Fingerprints: ruling.Fingerprints, All: len(ruling.Fingerprints) == 0})
	if err != nil {
		return nil, err
	}
	answer, err := a.ask(ctx, r, g, asking{about: about, signs: true}, ruling, person)
	if answer == nil && err == nil {
		a.say("nothing was signed")
		err = &cli.ExitError{Code: cli.ExitPending}
	}
	return answer, err
}

// checkRepository refuses a transaction of another repository than the one that is
// meant: whoever can write that one's ledger says what is shown.
func (a *App) checkRepository(ctx context.Context, r *pipeline.Runner, g pipeline.Gated) error {
	p := g.Transaction().Pointers.Proposal
	meant := github.RepositoryOf(a.repo.Config.RemoteURL(a.flags.remote))
	if p.Repository == nil || meant == "" || !strings.EqualFold(p.Repository.Name, meant) {
		return &cli.UsageError{Message: fmt.Sprintf("%s is of another repository than %s", g.Transaction().TransactionID, meant), Hint: "--repo OWNER/NAME names the repository of the pull request"}
	}
	if r.Forge == nil {
		return nil
	}
	now, err := r.Forge.PullRequest(ctx, p.PullRequest)
	if err == nil && now.Repository.ID != p.Repository.ID {
		err = &cli.UsageError{Message: fmt.Sprintf("%s is of another repository than %s, which had its name before", g.Transaction().TransactionID, meant), Hint: ""}
	}
	return err
}

// standing is a transaction as the ledger has it, asking nobody.
func (a *App) standing(ctx context.Context, r *pipeline.Runner, id string) (pipeline.Gated, error) {
	snap, err := r.Ledger(ctx, ledger.Dir(id))
	if err != nil {
		return pipeline.Gated{}, err
	}
	g, err := r.History(ctx, snap, id)
	if err == nil && g.Transaction().Closed {
		err = pipeline.ClosedError(id, g.Transaction().Status)
	}
	return g, err
}

// findOnPull finds the transaction on a pull request that is meant: the one that is
// open, or the one that was named.
func (a *App) findOnPull(ctx context.Context, r *pipeline.Runner, number int, args []string) (string, error) {
	if len(args) > 0 {
		snap, id, err := a.find(ctx, r, args, false)
		if err != nil {
			return "", err
		}
		tx, err := ledger.State(snap.Tree, id)
		if err == nil && tx.PullRequest() != number {
			err = &cli.UsageError{Message: fmt.Sprintf("%s is not on pull request %d", id, number), Hint: ""}
			if number == 0 {
				err = &cli.UsageError{Message: fmt.Sprintf("%s is on pull request %d", id, tx.PullRequest()), Hint: a.again("sign", "--pr", fmt.Sprint(tx.PullRequest()), id)}
			}
		}
		return id, err
	}
	open, _, err := r.Open(ctx)
	if err != nil {
		return "", err
	}
	open = slices.DeleteFunc(open, func(tx ledger.Transaction) bool { return tx.PullRequest() != number })
	switch len(open) {
	case 0:
		return "", &cli.UsageError{Message: fmt.Sprintf("nothing is open on pull request %d", number), Hint: "countersign list --push"}
	case 1:
		a.transaction = open[0].TransactionID
		return a.transaction, nil
	}
	var lines []string
	for _, tx := range open {
		lines = append(lines, "countersign sign --pr "+fmt.Sprint(number)+" "+tx.TransactionID)
	}
	return "", &cli.UsageError{Message: fmt.Sprintf("%d transactions are open on pull request %d", len(open), number), Hint: lines[0]}
}

// sign signs a ruling on a transaction with the person's own key.
func (a *App) sign(ctx context.Context, r *pipeline.Runner, g pipeline.Gated, ruling pipeline.Ruling, key string) (*signed.Signature, error) {
	about, err := r.Named(g, ruling)
	if err != nil {
		return nil, err
	}
	if err := g.CheckBytes(ctx); as[*reviewed.RedactedError](err) {
		return nil, &cli.UsageError{Message: err.Error() + ", and what is signed must be all of it", Hint: "--patch FILE gives the patch"}
	} else if err != nil {
		return nil, err
	}
	var fingerprints []string
	for _, one := range about {
		fingerprints = append(fingerprints, one.Fingerprint)
	}
	statement, err := g.Statement(ruling.Decision, fingerprints, ruling.Reason, a.Now())
	if err != nil {
		return nil, &cli.UsageError{Message: "this cannot be signed: " + err.Error(), Hint: ""}
	}
	s := signed.Signature{Statement: statement}
	with, err := a.signingKey(ctx, g, key)
	if err != nil {
		return nil, err
	}
	defer a.line.Hold()()
	if s.Armored, err = with.Sign(ctx, signed.Namespace, s.Statement.Bytes(), teller{a}); err != nil {
		if errors.Is(err, sshkey.ErrNoProgram) {
			return nil, &cli.UsageError{Message: err.Error(), Hint: "install OpenSSH's client programs"}
		}
		return nil, &cli.UsageError{Message: err.Error(), Hint: "--key names another key"}
	}
	return &s, nil
}

// comment is a signature as people post it. What would be redacted where it is read is no signature then; the
// ledger knows signatures for what they are, and takes any.
func (a *App) comment(s signed.Signature, block bool) (string, error) {
	text := approval.SignedLine(s)
	if block {
		text = artifact.SignedBlock(s)
	}
	if a.redact(text).String() != text {
		return "", errors.New("the signature has what looks like a secret in it, by chance: sign again")
	}
	return text, nil
}

// teller says what a program says that works for this one.
type teller struct{ a *App }

func (t teller) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		t.a.say("%s", strings.TrimSpace(line))
	}
	return len(p), nil
}

// signingKey is the key that is named, else the one that Git's configuration has for
// signatures by SSH, else the agent's: the first that the Policy's list has, or its only
// one.
func (a *App) signingKey(ctx context.Context, g pipeline.Gated, named string) (sshkey.Key, error) {
	home := a.Getenv("HOME")
	if named != "" {
		key := sshkey.Named(named, home)
		if key.File != "" {
			key.File = a.path(key.File)
		}
		return key, nil
	}
	if name := a.repo.Config.SigningKey(); name != "" {
		return sshkey.Named(name, home), nil
	}
	held, err := sshkey.InAgent(ctx)
	if errors.Is(err, sshkey.ErrNoProgram) {
		held = nil
	} else if err != nil {
		return sshkey.Key{}, err
	}
	listed := slices.IndexFunc(held, func(k sshkey.Key) bool { return g.Keys().Allowed.Lists(k.Public) })
	switch {
	case listed >= 0:
		return held[listed], nil
	case len(held) == 1:
		return held[0], nil
	case len(held) > 1:
		return sshkey.Key{}, &cli.UsageError{Message: fmt.Sprintf("the agent has %d keys, and the Policy lists none of them", len(held)), Hint: "name one with --key FILE"}
	}
	return sshkey.Key{}, &cli.UsageError{Message: "there is no key to sign with", Hint: "--key FILE names one"}
}

// copyToClipboard offers a text to the terminal's clipboard.
func (a *App) copyToClipboard(text string) {
	if person := a.person(); person != nil {
		defer person.Close()
		_ = emit(person, a.redact(text).Show(terminal.Copying))
	}
}

var ownerName = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$`)

// cloneFor makes a clone of a repository's newest commit, without its files, to work in
// where there is none. Files that are named are not below it, and what it has seen of the
// ledger is remembered for the next one.
func (a *App) cloneFor(ctx context.Context, repository string) (remove func(), err error) {
	address := repository
	if ownerName.MatchString(repository) {
		address = cmp.Or(a.Getenv("GITHUB_SERVER_URL"), "https://github.com") + "/" + repository + ".git"
	}
	dir, remove, err := terminal.TempDir("countersign-sign-")
	if err != nil {
		return nil, err
	}
	a.cloned, a.beside = address, a.flags.dir
	if a.flags.tipFile == "" && a.flags.knownTip == "" {
		if a.flags.tipFile, err = a.tipFileFor(address); err != nil {
			a.say("the ledger's tip is not remembered (--tip-file FILE would): %v", err)
		}
	}
	authorization := ""
	none := gitstore.Settings{} // there is no clone yet
	if token, host := a.forgeToken(none, address), github.HostOf(address); token != "" && host != "" && host == a.tokenHost(none) {
		authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+token))
	}
	if err := wire.Clone(ctx, address, dir, authorization, os.Environ()); err != nil {
		remove()
		return nil, &cli.ExitError{Code: cli.ExitIO, Err: err}
	}
	a.flags.dir = dir
	return remove, nil
}
