// Package statements has the commands for what other programs read and write. attest makes statements, verify holds them to a
// commit. Others work on one document and need no repository: the verifiers of packs, ApplyResults and Proposals, pack apply, and
// canon.
package statements

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Commands make and verify statements.
func Commands(c *console.Console) []*cobra.Command {
	of := documents{c}
	return []*cobra.Command{attestCommand(c), verifyCommand(c), of.packCommand(), of.patchCommand(), of.resultCommand(), of.proposalCommand(), of.canonCommand()}
}

type attestFlags struct {
	commit, out, key, ref, predicate string
	all, bundle, link, keep          bool
	keyless                          keylessFlags
}

// keeps reports whether the statements are kept beside the ledger.
func (f attestFlags) keeps(push bool) bool { return f.keep || push }

func attestCommand(c *console.Console) *cobra.Command {
	var f attestFlags
	cmd := &cobra.Command{
		Use:   "attest TX | --commit C | --all",
		Short: "Write a signed statement of a settled transaction, for other programs",
		Long: `attest writes what the ledger proves of a settled transaction as an in-toto statement in a DSSE
envelope that an SSH key has signed: who approved which bytes under which Policy, how that was
verified, and the commit that they became. It verifies the record and makes the change again before
it signs; what it could not find out is "unknown" in the statement. docs/attestations.md has the
formats.

A transaction is attested with the commit that apply made. With --commit it is the one that explains
that commit, which may be a merged, squashed or rebased one. With --all every transaction is attested
whose commit is in this repository.

--predicate makes other statements: review-coverage, as it is proposed to in-toto, and
gittuf-authorization and gittuf-pull-request-approval, which gittuf verifies, and vsa, SLSA's
verification summary of a source revision, at level 1 (docs/slsa.md).

The key is that of --sign-key or COUNTERSIGN_SIGN_KEY, or, with --key, one of your own that
ssh-keygen signs with. With --bundle the file is a Sigstore bundle, which cosign verifies with the
public key. With --keyless, in a workflow on GitHub, there is no key: the bundle is signed with the
identity of the job, and a public log says so for ever, so that it is refused for a repository that
not everybody may read. --github also gives it to GitHub, where "gh attestation verify" finds it.

With --keep the statements are kept beside the ledger, on refs/agent/ledger-attestations, and with
--push the remote has them as well. Without --out and --keep, one statement goes to stdout. With --all,
--keyless and --keep, transactions are left out of which this workflow has kept one, so that it can run
as often as it likes: "countersign init --attest" writes that workflow.

Exit code 1 means that a record does not verify, or that no transaction explains the commit; 2, that
there is nothing to attest, or no key.`,
		Example: `  countersign attest tx_01K5Z8M2QV --sign-key key --out attestations
  countersign attest --commit main --sign-key key --out attestations
  countersign attest --all --sign-key key --out attestations
  countersign attest --commit main --sign-key key --push
  countersign attest --commit main --keyless --github --push
  countersign attest --commit main --ref refs/heads/main --predicate gittuf-authorization --key ~/.ssh/id_ed25519`,
		Args: console.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error { return makeStatements(cmd.Context(), c, f, args) },
	}
	cmd.Flags().StringVar(&f.commit, "commit", "", "attest the transaction of `COMMIT`: a whole id, HEAD, a branch or a tag")
	cmd.Flags().BoolVar(&f.all, "all", false, "attest every transaction that made a commit")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write each statement to a file of its own in `DIR`, which is made if it is not there")
	cmd.Flags().StringVar(&f.key, "key", "", "sign with your own SSH key: a `FILE`, a public one's meaning the agent's")
	cmd.Flags().BoolVar(&f.bundle, "bundle", false, "write a Sigstore bundle for cosign, signed with the key of --sign-key (Ed25519, or ECDSA on P-256)")
	cmd.Flags().BoolVar(&f.link, "link", false, "write the signed link of a step \"countersign\" for in-toto's layouts, in a directory of its own below --out")
	cmd.Flags().BoolVar(&f.keep, "keep", false, "keep the statements beside the ledger; --push does, too")
	f.keyless.add(cmd)
	cmd.Flags().StringVar(&f.predicate, "predicate", attest.Names[0], "the statement: `NAME` "+strings.Join(attest.Names[:4], ", ")+" or "+attest.Names[4])
	_ = cmd.RegisterFlagCompletionFunc("predicate", cobra.FixedCompletions(attest.Names, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&f.ref, "ref", "", "the `REF` that the commit is on, by its full name, for statements that name one")
	return cmd
}

func makeStatements(ctx context.Context, c *console.Console, f attestFlags, args []string) error {
	asked := len(args)
	for _, is := range []bool{f.commit != "", f.all} {
		if is {
			asked++
		}
	}
	predicate := attest.TypeOf(f.predicate)
	if err := cmp.Or(
		console.RefuseIf(asked != 1, "name a transaction, a commit or all", "countersign attest --all"),
		console.RefuseIf(predicate == "", fmt.Sprintf("--predicate %+q is not known", f.predicate), "--predicate is one of: "+strings.Join(attest.Names, ", ")),
		console.RefuseIf(f.ref != "" && !strings.HasPrefix(f.ref, "refs/"), fmt.Sprintf("--ref %+q is no full name", f.ref), "--ref takes a full name, such as refs/heads/main"),
		console.RefuseIf(f.link && (f.bundle || f.keyless.asked || f.keeps(c.Flags.Push) || f.key != "" || f.predicate != attest.Names[0]), "--link takes a key of --sign-key, a directory of --out, and no other form", "--link --sign-key FILE --out DIR"),
		console.RefuseIf(f.link && f.out == "", "no directory given", "name one with --out DIR"),
		console.RefuseIf(f.bundle && f.key != "", "--bundle cannot be combined with --key: ssh-keygen makes SSH signatures alone", "--sign-key FILE names the key of a bundle"),
		console.RefuseIf(f.keyless.asked && f.key != "", "--keyless cannot be combined with --key", "leave out one of the two"),
		console.RefuseIf(!f.keyless.asked && f.keyless != keylessFlags{}, "--github, --signing-config and --trusted-root are for --keyless", "--keyless signs with the identity of a workflow's job"),
		console.RefuseIf((f.bundle || f.keyless.asked) && strings.HasPrefix(f.predicate, "gittuf-"), "gittuf reads no Sigstore bundles", "leave out --bundle"),
		console.RefuseIf(f.all && f.out == "" && !f.keeps(c.Flags.Push), "no directory given", "name one with --out DIR"),
	); err != nil {
		return err
	}
	s, w, err := openAttester(ctx, c, f)
	if err != nil {
		return err
	}
	seal, err := sealer(ctx, s, f)
	if err != nil {
		return err
	}
	var made attested
	switch {
	case f.all:
		if f.keyless.asked && f.keeps(c.Flags.Push) {
			w.had, err = keptByThisWorkflow(ctx, s, predicate)
		}
		if err == nil {
			made, err = w.all(ctx, predicate)
		}
	case f.commit != "":
		made, err = w.ofCommit(ctx, predicate, f.commit)
	default:
		made, err = w.ofTransaction(ctx, predicate, args[0])
	}
	if err != nil {
		return err
	}
	return writeAttestations(ctx, s, made, seal, f)
}

// A sealFunc puts a statement into a signed file. The name is one that the file has to have, "" for
// any.
type sealFunc func(attest.Statement) (raw []byte, name string, err error)

// sealer signs with the person's own key, or the program's.
func sealer(ctx context.Context, a *session.Session, f attestFlags) (sealFunc, error) {
	if f.keyless.asked {
		return keylessSealer(ctx, a, f.keyless)
	}
	sign, err := a.StatementSigner(ctx, f.key)
	if errors.Is(err, console.ErrNoSignKey) {
		return nil, &console.UsageError{Message: "there is no key to sign with", Hint: "--sign-key FILE, or --key FILE for a key of your own"}
	}
	if err != nil {
		return nil, err
	}
	if !f.bundle && !f.link {
		return signedEnvelope(sign), nil
	}
	key, err := a.LedgerKey()
	if err != nil {
		return nil, err
	}
	return func(s attest.Statement) (raw []byte, file string, err error) {
		if f.link {
			file, raw, err = attest.Link(s, key.SignPlain)
		} else {
			raw, err = attest.Bundle(s, key.SignPlain)
		}
		if errors.Is(err, signing.ErrKey) {
			err = &console.UsageError{Message: fmt.Sprintf("%s: %v", cmp.Or(a.Flags.SignKey, console.SignKeyName), err), Hint: "ssh-keygen -t ed25519"}
		}
		return raw, file, err
	}, nil
}

// signedEnvelope puts statements into envelopes that an SSH key signs.
func signedEnvelope(sign attest.SignFunc) sealFunc {
	return func(s attest.Statement) ([]byte, string, error) {
		raw, err := attest.Sign(s, sign)
		return raw, "", err
	}
}

// An attester makes statements out of the ledger and the repository of the code.
type attester struct {
	session.BranchJudge
	snap   writing.Snapshot
	ledger string        // its ref
	ref    string        // that the commits are on
	links  forge.Links   // of the repository
	had    map[kept]bool // statements that are not made again
}

func openAttester(ctx context.Context, c *console.Console, f attestFlags) (*session.Session, attester, error) {
	s, err := session.OpenLocal(c)
	if err != nil {
		return nil, attester{}, err
	}
	snap, err := s.Local.Snapshot(ctx)
	switch {
	case err != nil:
		return nil, attester{}, err
	case snap.Tip == "":
		return nil, attester{}, s.Repo.NoLedger()
	}
	s.Seen = s.Local.Seen
	w, err := newAttester(ctx, s, snap, f.ref)
	return s, w, err
}

// newAttester reads a ledger that is here.
func newAttester(ctx context.Context, s *session.Session, snap writing.Snapshot, ref string) (w attester, err error) {
	if err := writing.CheckSchema(snap.Tree); err != nil {
		return w, err
	}
	clock, err := session.WholeClock(ctx, s.Local)
	if err != nil {
		return w, err
	}
	j, err := session.OpenJudge(ctx, s, snap.Tree, clock, "")
	return attester{BranchJudge: j, snap: snap, ledger: s.Flags.LedgerRef, ref: ref, links: s.Links()}, err
}

// attested are statements that were made, and the transactions of which none was.
type attested struct {
	made    []madeStatement
	skipped []skippedStatement
	had     int // how many were made before, and are kept
}

type madeStatement struct {
	id string // of the transaction
	attest.Statement
	landed attest.CommitChange
}

type skippedStatement struct {
	ID  string `json:"transaction_id"`
	Why string `json:"reason"`
}

func (w attester) ofTransaction(ctx context.Context, predicate, name string) (attested, error) {
	id, err := lookup.Find(w.snap.Tree, name)
	if err != nil {
		return attested{}, err
	}
	commit, err := w.applied(ctx, id)
	if err != nil {
		return attested{}, err
	}
	landed, err := w.landed(ctx, commit)
	if err != nil {
		return attested{}, err
	}
	s, err := w.statement(predicate, id, landed)
	return attested{made: []madeStatement{{id, s, landed}}}, err
}

// ofCommit attests each settled transaction that explains a commit.
func (w attester) ofCommit(ctx context.Context, predicate, name string) (out attested, err error) {
	id, err := session.CodeCommit(ctx, w.Repo, name)
	if err != nil {
		return out, err
	}
	landed, err := w.landed(ctx, id)
	if err != nil {
		return out, err
	}
	if !landed.Change.Explained {
		return out, w.Unaccounted(landed.Change)
	}
	var unsettled *attest.UnsettledError
	for _, claim := range landed.Change.Transactions {
		if !claim.Explains {
			continue
		}
		s, err := w.statement(predicate, claim.TransactionID, landed)
		if errors.As(err, &unsettled) {
			out.skipped = append(out.skipped, skippedStatement{claim.TransactionID, unsettled.Why})
			continue
		}
		if err != nil {
			return out, err
		}
		out.made = append(out.made, madeStatement{claim.TransactionID, s, landed})
	}
	if len(out.made) == 0 {
		return out, unsettled
	}
	return out, nil
}

func (w attester) all(ctx context.Context, predicate string) (out attested, err error) {
	ids, err := lookup.IDs(w.snap.Tree)
	if err != nil {
		return out, err
	}
	for _, id := range ids {
		tx, err := lookup.State(w.snap.Tree, id)
		if err != nil {
			return out, err
		}
		if tx.Status != ledger.Completed {
			continue
		}
		commit, err := w.applied(ctx, id)
		if err == nil && w.had[kept{id, commit}] {
			out.had++
			continue
		}
		var one attested
		if err == nil {
			one, err = w.ofTransaction(ctx, predicate, id)
		}
		if unsettled, is := errors.AsType[*attest.UnsettledError](err); is {
			out.skipped = append(out.skipped, skippedStatement{id, unsettled.Why})
			continue
		}
		if err != nil {
			return out, err
		}
		out.made = append(out.made, one.made...)
	}
	return out, nil
}

// applied is the commit that apply made of a transaction.
func (w attester) applied(ctx context.Context, id string) (string, error) {
	log, err := lookup.Read(w.snap.Tree, id)
	if err != nil {
		return "", err
	}
	for _, done := range ledger.Of[*ledger.ApplyComplete](log) {
		if !done.Success {
			continue
		}
		if done.CommitAfter == "" {
			return "", &attest.UnsettledError{ID: id, Why: "it was applied to files, and which commit they are in is not recorded; attest that commit"}
		}
		if _, err := w.Repo.Commit(ctx, done.CommitAfter); err != nil {
			return "", &attest.UnsettledError{ID: id, Why: "its commit " + done.CommitAfter + " is not in this repository"}
		}
		return done.CommitAfter, nil
	}
	if tx := log.Transaction(); tx.GateOnly() && tx.Status == ledger.Completed {
		dir, err := fs.Sub(w.snap.Tree, ledger.Dir(id))
		if err != nil {
			return "", err
		}
		merge, err := approval.ReadMerge(dir, log)
		if err != nil {
			return "", &ledger.CorruptError{ID: id, Err: err}
		}
		why := "it was merged by the forge, and as which commit is not recorded; attest that commit"
		if merge != nil {
			why = fmt.Sprintf("it was merged by the forge as commit %s; attest that commit", merge.MergeCommit)
		}
		return "", &attest.UnsettledError{ID: id, Why: why}
	}
	return "", &attest.UnsettledError{ID: id, Why: "it was not applied"}
}

// landed computes what a commit changes, and what explains that.
func (w attester) landed(ctx context.Context, commit string) (attest.CommitChange, error) {
	of := attest.CommitChange{
		Commit: commit, Ref: w.ref, Resource: w.links.Web, Page: w.links.Page(0, forge.Posted{}, commit), At: ledger.FormatTime(w.Now),
	}
	parent, err := w.Repo.FirstParent(ctx, commit)
	if err != nil {
		return of, err
	}
	if of.Parents, err = w.Repo.Parents(ctx, commit); err != nil {
		return of, err
	}
	if of.Change, err = w.Commit(ctx, parent, commit, w.ref); err != nil {
		return of, err
	}
	of.Tree, of.From, of.Shipped = of.Change.Tree, parent, of.Change.PatchID
	if from, to, _ := strings.Cut(of.Change.PartOf, ".."); to == commit { // the last of a row
		set, err := w.Repo.Diff(ctx, from, commit)
		if err != nil {
			return of, err
		}
		of.From, of.Shipped = from, set.ID()
	}
	return of, nil
}

func (w attester) statement(predicate, id string, of attest.CommitChange) (attest.Statement, error) {
	log, err := lookup.Read(w.snap.Tree, id)
	if err != nil {
		return attest.Statement{}, err
	}
	if at := reviewedCommit(log); at != "" {
		if of.Reviewed.Tree = approvedTree(w.Repo, log.Meta().BaseCommit, at, log.Transaction().PatchID()); of.Reviewed.Tree != "" {
			of.Reviewed.Commit = at
		}
	}
	return attest.New(predicate, attest.Record{
		Tree: w.snap.Tree, ID: id, Ref: w.ledger, Commit: w.snap.Tip,
		Keys: page.CodeKeys(func(commit string) (fs.FS, error) { return w.Repo.Tree(context.Background(), commit) }),
	}, of)
}

// approvedTree is the tree of a commit that a record names, if that is what the patch makes of
// the commit that it was reviewed on: nobody approved another one. It is "" where the two are not here.
func approvedTree(repo *gitstore.Repo, base, commit, patchID string) string {
	set, err := repo.Diff(context.Background(), base, commit)
	if err != nil || set.ID() != patchID {
		return ""
	}
	tree, err := repo.TreeID(context.Background(), commit)
	if err != nil {
		return ""
	}
	return tree
}

// reviewedCommit is the commit whose files are those that were approved: the head of a
// pull request, or what was applied onto the very commit that was reviewed.
func reviewedCommit(log *ledger.Log) string {
	if tx := log.Transaction(); tx.GateOnly() {
		return tx.Pointers.Proposal.HeadCommit
	}
	for _, done := range ledger.Of[*ledger.ApplyComplete](log) {
		if done.Success && done.CommitBefore == log.Meta().BaseCommit {
			return done.CommitAfter
		}
	}
	return ""
}
