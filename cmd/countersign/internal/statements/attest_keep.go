package statements

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// writeAttestations signs statements and hands them out: to files in a directory, beside the
// ledger, to GitHub, or the one to stdout. None is signed if one of them has a secret in it.
func writeAttestations(ctx context.Context, a *session.Session, of attested, seal sealFunc, f attestFlags) error {
	inside, suffix := "envelope", ".json"
	if f.bundle || f.keyless.asked {
		inside, suffix = "bundle", ".sigstore.json"
	}
	keeps := f.keeps(a.Flags.Push)
	if f.out == "" && !keeps && len(of.made) != 1 {
		return &console.UsageError{Message: fmt.Sprintf("%d transactions explain the commit", len(of.made)), Hint: "name a directory with --out DIR"}
	}
	for _, s := range of.made {
		if err := holdsNoSecret(a.Console, s.Statement); err != nil {
			return err
		}
	}
	docs, text, files := []any{}, "", map[string][]byte{} // that are to be kept
	for _, s := range of.made {
		raw, file, err := seal(s.Statement)
		if err != nil {
			return keptAll(ctx, a, files, err)
		}
		if f.out == "" && !keeps && !f.keyless.github && !a.Flags.JSON {
			return a.GiveBack(string(raw))
		}
		doc := console.Document{"transaction_id": s.id, "commit": s.landed.Commit, "tree": s.landed.Tree, "result": string(s.landed.Change.Result), "predicate_type": s.PredicateType}
		if f.out == "" {
			doc[inside] = json.RawMessage(raw)
		} else {
			name := fmt.Sprintf("%s.%.12s.%s%s", s.id, s.landed.Commit, attest.Name(s.PredicateType), suffix)
			if file != "" {
				name = filepath.Join(fmt.Sprintf("%s.%.12s", s.id, s.landed.Commit), file)
			}
			whole := filepath.Join(f.out, name)
			if err = os.MkdirAll(a.Path(filepath.Dir(whole)), 0o777); err == nil {
				err = atomicfile.Write(a.Path(whole), raw)
			}
			if err != nil {
				return keptAll(ctx, a, files, console.FileError(whole, err))
			}
			doc["file"] = whole
			text += fmt.Sprintf("%s\n", report.Clean(whole))
		}
		if keeps && len(raw) > gitstore.MaxAttestation {
			return keptAll(ctx, a, files, fmt.Errorf("the statement of %s has %d bytes, and at most %d are kept beside the ledger", s.id, len(raw), gitstore.MaxAttestation))
		}
		if f.keyless.github { // before it is kept, as what is kept is not made again
			if doc["github_id"], err = giveToGitHub(ctx, a, raw); err != nil {
				return keptAll(ctx, a, files, err)
			}
			text += fmt.Sprintf("%s: given to GitHub\n", s.id)
		}
		if keeps {
			name := keptName(s, raw)
			files[name], doc["kept"] = raw, name
			text += fmt.Sprintf("%s: kept on %s\n", s.id, gitstore.Attestations.Ref(a.Flags.LedgerRef))
			if len(files) == keptAtOnce {
				if err := keptAll(ctx, a, files, nil); err != nil {
					return err
				}
			}
		}
		docs = append(docs, doc)
	}
	if err := keptAll(ctx, a, files, nil); err != nil {
		return err
	}
	if of.had > 0 {
		text += fmt.Sprintf("%s kept before\n", report.Counted(of.had, "statement"))
	}
	for _, s := range of.skipped {
		text += fmt.Sprintf("%s: left out: %s\n", s.ID, report.Clean(s.Why))
	}
	return a.Result(console.Document{"attestations": docs, "skipped": append([]skippedStatement{}, of.skipped...), "kept_before": of.had}, text)
}

// holdsNoSecret refuses a statement that would be redacted where it is read: the record
// holds no secrets, so that it is one that this run was told of.
func holdsNoSecret(c *console.Console, s attest.Statement) error {
	raw, err := s.Bytes()
	if err != nil {
		return err
	}
	clean, err := c.RedactJSON(json.RawMessage(raw))
	if err == nil && clean.String() != string(raw)+"\n" {
		err = errors.New("the statement has what looks like a secret in it")
	}
	return err
}

// keptName is where a signed statement is kept beside the ledger: in a directory named as its
// transaction's, under its predicate, its commit and the hash of its content.
func keptName(s madeStatement, raw []byte) string {
	return fmt.Sprintf("%s/%s.%s.%s.json", ledger.Dir(s.id), attest.Name(s.PredicateType), s.landed.Commit, canon.Hex(raw))
}

// A kept statement is of a transaction as it became a commit.
type kept struct{ id, commit string }

// keptByThisWorkflow finds of which transactions a statement is kept that says it is of this very
// workflow: its identity is that of the certificate. Whoever may push can have put one there that only
// says so, and keep another from being made; verify goes by signatures, and finds that there is none.
func keptByThisWorkflow(ctx context.Context, s *session.Session, predicate string) (map[kept]bool, error) {
	found := map[kept]bool{}
	workflow := s.Getenv("GITHUB_WORKFLOW_REF")
	if workflow == "" {
		return found, nil
	}
	identity := s.Getenv("GITHUB_SERVER_URL") + "/" + workflow
	store, err := s.Opened()
	if err != nil {
		return nil, err
	}
	var names []string
	if _, err := store.(session.BesideStore).Kept(ctx, gitstore.Attestations, func(name string) bool {
		if strings.HasPrefix(path.Base(name), attest.Name(predicate)+".") {
			names = append(names, name)
		}
		return false // there may be more than are read at once
	}); err != nil {
		return nil, err
	}
	for part := range slices.Chunk(names, 100) {
		files, err := store.(session.BesideStore).Kept(ctx, gitstore.Attestations, func(name string) bool { _, is := slices.BinarySearch(part, name); return is })
		if err != nil {
			return nil, err
		}
		for name, raw := range files.Files {
			made, err := attest.OpenBundle(raw)
			id, _, _ := ledger.Within(name)
			of := madeStatement{id, made.Statement, attest.CommitChange{Commit: made.Statement.Commit()}}
			if err == nil && made.Claims() == identity && keptName(of, raw) == name {
				found[kept{id, of.landed.Commit}] = true
			}
		}
	}
	return found, nil
}

// keptAtOnce is how many statements are signed before they are kept, so that little is made again
// after a run that was cut off.
const keptAtOnce = 20

// keptAll keeps the files that were not kept yet, and takes them out of the map. It returns what
// failed before, or that.
func keptAll(ctx context.Context, s *session.Session, files map[string][]byte, failed error) error {
	var err error
	if len(files) > 0 {
		err = keepAttestations(ctx, s, files)
		clear(files)
	}
	switch {
	case failed == nil:
		return err
	case err == nil:
		return failed
	}
	return s.Worst([]error{failed, err})
}

// maxKeeps bounds how often statements are kept again against other writers.
const maxKeeps = 10

// keepAttestations adds files to those that are kept beside the ledger.
func keepAttestations(ctx context.Context, s *session.Session, files map[string][]byte) error {
	store, err := s.Opened()
	if err != nil {
		return err
	}
	beside := store.(session.BesideStore)
	for attempt := 1; ; attempt++ {
		before, err := beside.Kept(ctx, gitstore.Attestations, func(string) bool { return false })
		if err == nil {
			err = beside.Keep(ctx, gitstore.Attestations, before, files, s.Now())
		}
		if attempt == maxKeeps || !errors.Is(err, writing.ErrMoved) {
			return err
		}
		session.Pause(ctx, attempt)
	}
}
