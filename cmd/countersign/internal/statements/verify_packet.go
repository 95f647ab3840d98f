package statements

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/report"
)

// verifyPacket checks what evidence --packets wrote: the whole, or one packet alone.
func verifyPacket(ctx context.Context, c *console.Console, f verifyFlags, args []string) error {
	name := report.Clean(f.packet)
	more := len(args) > 0 || f.commit != "" || f.trust != trustFlags{signers: f.trust.signers}
	hint := "countersign verify --packet DIR --allowed-signers FILE"
	if err := console.RefuseIf(more, "--packet takes --allowed-signers, and no other flag or file", hint); err != nil {
		return err
	}
	var signers *sshsig.Allowed
	if f.trust.signers != "" {
		var err error
		if signers, err = session.AllowedSigners(c, f.trust.signers); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(c.Path(f.packet))
	if err != nil {
		return console.FileError(name, err)
	}
	defer root.Close()
	done, err := evidence.CheckPacket(root.FS(), signers, c.Now())
	if err == nil && len(done.Within) > 0 {
		err = compareWithLedger(ctx, c, root.FS(), &done)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	doc := console.Document{
		"ok": done.OK(), "complete": !slices.ContainsFunc(done.Checks, func(c explain.Check) bool { return c.Outcome != explain.Good }),
		"checks": done.Checks, "packets": len(done.Within), "population": done.Population, "seed": done.Seed,
	}
	if err := c.Result(doc, report.Checks(name, done.Checks)); err != nil || done.OK() {
		return err
	}
	i := slices.IndexFunc(done.Checks, func(c explain.Check) bool { return c.Outcome == explain.Bad })
	return doesNotHold(name, done.Checks[i].What, done.Checks[i].Message)
}

// compareWithLedger compares the records with those of the ledger here, if there is one that has the manifest's commit.
func compareWithLedger(ctx context.Context, c *console.Console, dir fs.FS, done *evidence.CheckedPacket) error {
	unknown := func(why string) error {
		done.Checks = append(done.Checks, explain.Check{What: "ledger", Outcome: explain.NotRecomputed, Message: why})
		return nil
	}
	s, err := session.OpenLocal(c)
	if errors.Is(err, gitstore.ErrNotRepository) {
		return unknown("there is no repository here to compare the records with")
	} else if err != nil {
		return err
	}
	snap, err := s.Local.Snapshot(ctx)
	if err != nil {
		return err
	}
	if snap.Tip == "" {
		return unknown("there is no ledger here to compare the records with")
	}
	if in, err := s.Repo.Descends(ctx, snap.Tip, done.LedgerCommit); err != nil {
		return err
	} else if !in {
		done.Add("ledger", []string{fmt.Sprintf("the ledger here does not have commit %+.40q: it is of another repository, or behind (countersign sync)", done.LedgerCommit)}, "")
		return nil
	}
	if snap, err = s.Local.At(ctx, done.LedgerCommit); err != nil {
		return err
	}
	var problems []string
	for _, in := range slices.Sorted(maps.Keys(done.Within)) {
		for _, id := range done.Within[in].Transactions {
			if err := sameRecord(snap.Tree, dir, in, id); err != nil {
				problems = append(problems, fmt.Sprintf("%+q: %v", id, err))
			}
		}
	}
	done.Add("ledger", problems, "the records are those of ledger commit %s", done.LedgerCommit)
	return nil
}

// sameRecord compares a transaction's files in a packet with the ledger's.
func sameRecord(tree, dir fs.FS, in, id string) error {
	if err := ledger.CheckID(id); err != nil {
		return err
	}
	want, err := lookup.Files(tree, id)
	if err != nil {
		return err
	}
	within, err := fs.Sub(dir, in)
	if err != nil {
		return err
	}
	have, err := lookup.Files(within, id)
	if err != nil {
		return err
	}
	if !maps.EqualFunc(want, have, bytes.Equal) {
		return errors.New("the ledger has other files of it: " + path.Join(in, ledger.Dir(id)))
	}
	return nil
}
