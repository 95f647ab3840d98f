package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/pages"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/audit"
)

// pagesCommands are the commands that show a whole ledger.
func (a *App) pagesCommands() []*cobra.Command {
	return pages.Program{
		Version: version(), Now: a.Now, SetGCPercent: a.SetGCPercent, Path: a.path, Say: a.say, Result: a.result, OpenBrowser: a.openBrowser,
		Progress: func(what string, done, total int) { a.line.Show(what, done, total) },
		Open: func() (*gitstore.Repo, *gitstore.Ledger, string, string, error) {
			repo, _, err := a.openRepo()
			if err != nil {
				return nil, nil, "", "", err
			}
			a.repo = repo // Main closes it
			local, err := a.localLedger(repo)
			return repo, local, a.flags.ledgerRef, a.webAddress(), err
		},
		Audit: func(ctx context.Context, repo *gitstore.Repo, h *gitstore.History, over *pages.Noted) (audit.Result, error) {
			return a.runAudit(ctx, repo, h, over, false)
		},
		Masks: func() func([]byte) bool {
			finder := a.finder()
			return func(diff []byte) bool { return finder.RedactDiff(diff).String() != string(diff) }
		},
	}.Commands()
}
