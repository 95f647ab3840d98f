package statements

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/report"
)

type verifyFlags struct {
	commit, packet string
	trust          trustFlags
}

func verifyCommand(c *console.Console) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify [FILE] --commit C --allowed-signers FILE | --packet DIR --allowed-signers FILE",
		Short: "Verify a statement that attest wrote, or packets of evidence",
		Long: `verify checks a statement in FILE ("-" is stdin): that one of the allowed signers has signed it,
that it is about this commit and the tree that the commit has here, that the commit changes what it
says, and that the ledger's record makes the same statement. It makes again all that it can; what it
cannot, as there is no ledger here or none with that commit, it calls unknown and never good.

Without FILE it takes the statements of the commit that are kept beside the ledger. Those that
nobody signed whom you believe count for nothing, and are named; at least one has to count.

--allowed-signers is for statements that an SSH key signed. For Sigstore bundles it is --key, a
public key in PEM, or --certificate-identity and --certificate-oidc-issuer for one that was signed
without a key; that runs countersign-sigstore, a program of its own beside this one.

--packet checks what "evidence --packets" wrote, the whole or one packet alone: that an allowed signer
signed the manifest, that each file is as it lists it and no other is there, that the seed draws these
changes, that each record holds to the ledger's rules, and, with the ledger here, that it is the ledger's.
Without --allowed-signers nobody vouches for it, which is an error.

The key must be allowed now: a statement holds no time that anybody vouches for.

Exit code 0 means that nothing is wrong, and that signature, subject and change are good; 1, that
the statement or the packet does not verify; 2, that the command is incomplete; 3, that something cannot be read.`,
		Example: `  countersign verify attestation.json --commit main --allowed-signers .github/attestation-signers
  countersign verify --commit main --allowed-signers signers
  countersign verify --packet packets --allowed-signers signers
  countersign attest --commit main --sign-key key | countersign verify - --commit main --allowed-signers signers
  countersign verify bundle.json --commit main --certificate-oidc-issuer https://token.actions.githubusercontent.com \
    --certificate-identity https://github.com/OWNER/NAME/.github/workflows/attest.yml@refs/heads/main`,
		Args: console.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.packet != "" {
				return verifyPacket(cmd.Context(), c, f, args)
			}
			return verifyStatement(cmd.Context(), c, f, args)
		},
	}
	cmd.Flags().StringVar(&f.commit, "commit", "", "the `COMMIT` that the statement must be about: a whole id, HEAD, a branch or a tag")
	cmd.Flags().StringVar(&f.packet, "packet", "", "verify the packets, or the one packet, in `DIR`")
	f.trust.add(cmd)
	return cmd
}

// doesNotHold is the error of a statement.
func doesNotHold(file, what, why string) error {
	return fault.Fail(fmt.Sprintf("%s does not verify: %s: %s", file, what, why), "do not rely on it: have it made anew where the ledger is")
}

func verifyStatement(ctx context.Context, c *console.Console, f verifyFlags, args []string) error {
	if f.commit == "" {
		return &console.UsageError{Message: "no commit given", Hint: "name the commit that you have: --commit C"}
	}
	trust, err := trustOf(c, f.trust)
	if err != nil {
		return err
	}
	var raw []byte
	if len(args) == 1 {
		if raw, err = c.ReadInput(args[0], attest.MaxBytes); err != nil {
			return err
		}
	}
	s, err := session.OpenRepo(c)
	if err != nil {
		return err
	}
	commit, err := session.CodeCommit(ctx, s.Repo, f.commit)
	if err != nil {
		return err
	}
	v := verifier{s: s, repo: s.Repo, commit: commit}
	if len(args) == 0 {
		return v.kept(ctx, trust)
	}
	signed, err := trust.open(ctx, raw)
	if err != nil {
		return unverified(report.Clean(args[0]), err)
	}
	done, err := v.verify(ctx, report.Clean(args[0]), signed)
	if err != nil {
		return err
	}
	return errors.Join(c.Result(done.document(), done.text()), done.err())
}

// unverified says of a file that its signature does not hold, but where only the command has
// to be completed, or the program that had to look did not say so.
func unverified(file string, err error) error {
	code, is := errors.AsType[helperCode](err)
	if console.As[*console.UsageError](err) || is && code != helperRefused {
		return err
	}
	what := "its signature"
	if console.As[*unreadableError](err) {
		what = "the file"
	}
	return doesNotHold(file, what, err.Error())
}

// unasked reports whether nobody could be asked about a signature, which then is neither good
// nor bad.
func unasked(err error) bool {
	return errors.Is(err, helperMissing) || errors.Is(err, helperUnreachable)
}

// A verified is what came of the checks of one statement whose signature is good.
type verified struct {
	file   string
	signed signedStatement
	commit string
	checks []explain.Check
}

// bad is the first check that failed.
func (v verified) bad() (explain.Check, bool) {
	i := slices.IndexFunc(v.checks, func(c explain.Check) bool { return c.Outcome == explain.Bad })
	if i < 0 {
		return explain.Check{}, false
	}
	return v.checks[i], true
}

func (v verified) err() error {
	if c, bad := v.bad(); bad {
		return doesNotHold(v.file, c.What, c.Message)
	}
	return nil
}

func (v verified) text() string {
	return report.Checks(fmt.Sprintf("%s of commit %.12s", attest.Name(v.signed.PredicateType), v.commit), v.checks)
}

func (v verified) document() console.Document {
	_, bad := v.bad()
	return console.Document{
		"ok": !bad, "complete": !slices.ContainsFunc(v.checks, func(c explain.Check) bool { return c.Outcome != explain.Good }),
		"checks": v.checks, "commit": v.commit, "predicate_type": v.signed.PredicateType, "signer": v.signed.signer, "key_fingerprint": v.signed.key,
	}
}

// verify makes all checks of a statement whose signature is good.
func (v verifier) verify(ctx context.Context, file string, signed signedStatement) (verified, error) {
	v.stated = signed.Statement
	out := verified{file: file, signed: signed, commit: v.commit}
	out.checks = []explain.Check{{What: "signature", Outcome: explain.Good, Message: signed.message}}
	for _, check := range []func(context.Context) (explain.Check, error){v.subject, v.change, v.record} {
		c, err := check(ctx)
		if err != nil {
			return out, err
		}
		out.checks = append(out.checks, c)
	}
	if p, is := signed.Predicate.(*attest.Approval); is {
		c, _ := good("once", "the approval accounts for this making of the change, the first on its branch")
		if p.Change.Once != explain.First { // as far as whoever made the statement could tell
			c, _ = unknown("once", "whether the approval accounts for another commit as well was not known where the statement was made")
		}
		out.checks = append(out.checks, c)
	}
	return out, nil
}

// A verifier holds a statement whose signature is good to the repository.
type verifier struct {
	s      *session.Session
	repo   *gitstore.Repo
	stated attest.Statement
	commit string
}

func good(what, format string, args ...any) (explain.Check, error) {
	return explain.Check{What: what, Outcome: explain.Good, Message: fmt.Sprintf(format, args...)}, nil
}

func bad(what, format string, args ...any) (explain.Check, error) {
	return explain.Check{What: what, Outcome: explain.Bad, Message: fmt.Sprintf(format, args...)}, nil
}

func unknown(what, format string, args ...any) (explain.Check, error) {
	return explain.Check{What: what, Outcome: explain.NotRecomputed, Message: fmt.Sprintf(format, args...)}, nil
}

// subject: the statement is about the commit, and the tree that it has here.
func (v verifier) subject(ctx context.Context) (explain.Check, error) {
	tree, err := v.repo.TreeID(ctx, v.commit)
	if err != nil {
		return explain.Check{}, err
	}
	s := v.stated
	switch {
	case s.Commit() != "" && s.Commit() != v.commit:
		return bad("subject", "it is about commit %.40q, not %s", s.Commit(), v.commit)
	case s.Tree() != tree:
		return bad("subject", "it is about tree %.40q, and the commit has %s", s.Tree(), tree)
	case s.Commit() == "":
		return good("subject", "it is about tree %s, which commit %s has", tree, v.commit)
	}
	return good("subject", "it is about commit %s with tree %s", v.commit, tree)
}

// change: what the commit changes is what an approval says that it does.
func (v verifier) change(ctx context.Context) (explain.Check, error) {
	parent, err := v.repo.FirstParent(ctx, v.commit)
	if err != nil {
		return explain.Check{}, err
	}
	from := parent
	switch p := v.stated.Predicate.(type) {
	case *attest.Approval:
		return v.approved(ctx, p, parent)
	case *attest.Summary:
		return good("change", "it says nothing of the change but by the record")
	case *attest.Coverage:
		from = p.MergeTransform.BaseAtMerge.Digest.GitCommit
	case *attest.Authorization:
		from = p.FromID
	case *attest.PullRequestApproval:
		from = p.FromRevisionID
	}
	if from != parent {
		return bad("change", "it begins at commit %.40q, and the commit's first parent is %s", from, parent)
	}
	return good("change", "it begins at the commit's first parent, %s", parent)
}

func (v verifier) approved(ctx context.Context, p *attest.Approval, parent string) (explain.Check, error) {
	from := v.begins(ctx, p, parent)
	set, err := v.repo.Diff(ctx, from, v.commit)
	var unfit *patch.Error
	if err != nil && !errors.As(err, &unfit) {
		return explain.Check{}, err
	}
	subjects := v.stated.Subject
	switch {
	case unfit != nil:
		return bad("change", "no patch makes the commit: %v", unfit)
	case p.Change.Commit != v.commit || p.Change.Parent != from:
		return bad("change", "it is from commit %.40q to %.40q, and not from %s to %s", p.Change.Parent, p.Change.Commit, parent, v.commit)
	case p.Change.Shipped != set.ID():
		return bad("change", "it says that patch %.64q shipped, and the commit makes %s", p.Change.Shipped, set.ID())
	case len(subjects) != 2 || subjects[1].Digest.SHA256 != p.Change.Approved:
		return bad("change", "its subject is not the patch that it says was approved")
	case p.Change.Result == explain.Exact && p.Change.Approved == set.ID():
		return good("change", "patch %s is exactly what the commit changes", set.ID())
	case p.Change.Result == explain.Replay && p.Change.Approved != set.ID():
		return good("change", "the commit makes patch %s; that approved patches come to it, the record tells", set.ID())
	}
	return bad("change", "it says %.20q of approved patch %.64q, and the commit makes %s", string(p.Change.Result), p.Change.Approved, set.ID())
}

// begins is the commit from which an approval says that the change is, if that is the commit's
// first parent or one before a row of commits that ends there; else the first parent.
func (v verifier) begins(ctx context.Context, p *attest.Approval, parent string) string {
	for from, n := parent, 0; n < explain.MaxRow; n++ {
		if from == p.Change.Parent {
			return from
		}
		parents, err := v.repo.Parents(ctx, from)
		if err != nil || len(parents) != 1 {
			break // what is not here is in no row that can be looked at
		}
		from = parents[0]
	}
	return parent
}

// record: the ledger makes the same statement of the same commit.
func (v verifier) record(ctx context.Context) (explain.Check, error) {
	local, err := v.s.OpenLedger()
	if err != nil {
		return explain.Check{}, err
	}
	snap, err := local.Snapshot(ctx)
	switch {
	case err != nil:
		return explain.Check{}, err
	case snap.Tip == "":
		return unknown("record", "there is no ledger here to compare it with")
	}
	w, err := newAttester(ctx, v.s, snap, "")
	if err != nil {
		return explain.Check{}, err
	}
	candidates, elsewhere := []string{}, ""
	switch p := v.stated.Predicate.(type) {
	case *attest.Approval:
		if elsewhere, err = v.elsewhere(ctx, w, p.Ledger); err != nil {
			return explain.Check{}, err
		}
		tx, err := lookup.State(snap.Tree, p.Transaction)
		if elsewhere != "" && (err != nil || !tx.Closed) {
			return unknown("record", "%s", elsewhere)
		}
		if elsewhere == "" { // as it was when the statement was made
			if snap, err = local.At(ctx, p.Ledger.Commit); err == nil {
				w, err = newAttester(ctx, v.s, snap, "")
			}
			if err != nil {
				return explain.Check{}, err
			}
		}
		w.snap.Tip, w.ledger = p.Ledger.Commit, p.Ledger.Ref // a closed transaction stays as it is
		candidates = []string{p.Transaction}
	case *attest.Summary:
		at, id := p.Record()
		switch elsewhere, err := v.elsewhere(ctx, w, attest.Ledger{Ref: w.ledger, Commit: at}); {
		case at == "":
			return bad("record", "it names no record of a ledger")
		case err != nil:
			return explain.Check{}, err
		case elsewhere != "":
			return unknown("record", "%s", elsewhere)
		case w.links.Web == "":
			return unknown("record", "it is about %+.200q, and which repository this is, is not known here", p.ResourceURI)
		}
		if snap, err = local.At(ctx, at); err == nil {
			w, err = newAttester(ctx, v.s, snap, v.sourceRef())
		}
		if err != nil {
			return explain.Check{}, err
		}
		w.snap.Tip, candidates = at, []string{id}
	case *attest.Coverage:
		w.ref = v.stated.Subject[0].Name
	case *attest.Authorization:
		w.ref = p.TargetRef
	case *attest.PullRequestApproval:
		w.ref = p.TargetRef
	}
	landed, err := w.landed(ctx, v.commit)
	if err != nil {
		return explain.Check{}, err
	}
	if len(candidates) == 0 {
		for _, c := range landed.Change.Transactions {
			candidates = append(candidates, c.TransactionID)
		}
	}
	return v.compare(ctx, w, landed, candidates, elsewhere)
}

// sourceRef is the ref that a VSA names, "" for none.
func (v verifier) sourceRef() string {
	if a := v.stated.Subject[0].Annotations; a != nil && len(a.SourceRefs) == 1 {
		return a.SourceRefs[0]
	}
	return ""
}

// compare makes the statement again of each transaction that it may be of. elsewhere says of which
// other ledger it is, "" for none.
func (v verifier) compare(ctx context.Context, w attester, landed attest.CommitChange, candidates []string, elsewhere string) (explain.Check, error) {
	why := "no transaction explains the commit"
	for _, id := range candidates {
		err := ledger.CheckID(id) // which only the statement may name
		var again attest.Statement
		if err == nil {
			again, err = w.statement(v.stated.PredicateType, id, landed)
		}
		if err != nil {
			why = err.Error()
			continue
		}
		agree, unlisted, err := attest.Agree(v.stated, again)
		switch {
		case err != nil:
			return explain.Check{}, err
		case agree && elsewhere != "":
			return unknown("record", "the record of %s says the same, but %s", id, elsewhere)
		case agree && unlisted:
			return unknown("record", "the record of %s says the same, but the commit that vouches for a key is not here", id)
		case agree && w.ref != "" && !v.isOn(ctx, w.ref):
			return unknown("record", "the record of %s says the same, but of no ref, and here %+.200q does not have the commit", id, w.ref)
		case agree:
			return good("record", "the record of %s says the same", id)
		}
		why = "the record of " + id + " says something else"
	}
	return bad("record", "%s", why)
}

// elsewhere says of which other ledger, or newer one, a statement is than the one here, "" if it
// is of this one.
func (v verifier) elsewhere(ctx context.Context, w attester, p attest.Ledger) (string, error) {
	in, err := v.repo.Descends(ctx, w.snap.Tip, p.Commit)
	switch {
	case err != nil:
		return "", err
	case !in:
		return fmt.Sprintf("the ledger here does not have commit %.40q, which it names", p.Commit), nil
	case p.Ref != w.ledger:
		return fmt.Sprintf("it is of the ledger %+.200q, and the one here is %s", p.Ref, w.ledger), nil
	}
	return "", nil
}

// isOn reports whether a ref has the commit, here or as the remote's was last seen.
func (v verifier) isOn(ctx context.Context, ref string) bool {
	names := []string{ref}
	if branch, is := strings.CutPrefix(ref, "refs/heads/"); is {
		names = append(names, "refs/remotes/"+console.DefaultRemote+"/"+branch)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		tip, err := v.repo.Ref(ctx, name)
		if err != nil || tip == "" {
			return false
		}
		has, err := v.repo.Descends(ctx, tip, v.commit)
		return err == nil && has
	})
}
