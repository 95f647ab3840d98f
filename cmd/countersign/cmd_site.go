package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/pages"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
)

// pagesCommands are the commands that show a whole ledger.
func (a *App) pagesCommands() []*cobra.Command {
	return pages.Program{
		Version: version(), Now: a.Now, SetGCPercent: a.SetGCPercent, Path: a.path, Say: a.say, Result: a.result, OpenBrowser: a.openBrowser,
		Progress: func(what string, done, total int) { a.line.Show(what, done, total) },
		Open: func() (pages.Source, error) {
			repo, settings, err := a.openRepo()
			if err != nil {
				return pages.Source{}, err
			}
			a.repo, repo.Config = repo, settings // Main closes it
			local, err := a.localLedger(repo)
			if err != nil {
				return pages.Source{}, err
			}
			elsewhere := a.elsewhere || local.KeptElsewhere(settings.RemoteURL(a.flags.remote))
			return pages.Source{Repo: repo, Ledger: local, Ref: a.flags.ledgerRef, Elsewhere: elsewhere, Links: a.links()}, nil
		},
		Audit: func(ctx context.Context, repo *gitstore.Repo, h *gitstore.History, o verdict.Options) (audit.Result, error) {
			return a.runAudit(ctx, repo, h, o, a.line.Show)
		},
		Masks: func() func([]byte) bool {
			finder := a.finder()
			return func(diff []byte) bool { return finder.RedactDiff(diff).String() != string(diff) }
		},
	}.Commands()
}
