package main

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/applyresult"
	"github.com/countersign-dev/countersign/pipeline/record/format"
)

// release is the version of the next or present release.
const release = "0.1.0"

// version is the release and the commit it was built from, where Go knows it.
func version() string {
	if c := commit(); c != "" {
		return release + "+" + c[:min(12, len(c))]
	}
	return release
}

func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func (a *App) versionCommand() *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  countersign version --json\n  countersign version --check", Args: cli.NoArgs,
		Long: `Print the version.

With --check it reads which commit of the program the workflows here name, and asks that
commit's server for the tags of releases: the only time that it asks anybody. The exit code
is 1 where the workflows name another than the newest release.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return a.checkVersion(cmd.Context())
			}
			return a.result(document{
				"version": release, "commit": commit(), "go": runtime.Version(),
				"schemas": document{"ledger": format.Version(), "transaction": "0", "apply_result": applyresult.SchemaVersion},
			}, "countersign "+version()+" ("+runtime.Version()+")\n")
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "say whether the workflows here use the newest release")
	return cmd
}

func (a *App) checkVersion(ctx context.Context) error {
	repo, settings, err := a.openRepo()
	if err != nil {
		return err
	}
	root, err := repo.Worktree()
	if err == nil && root == "" {
		err = &cli.UsageError{Message: "the repository has no working tree with workflows", Hint: "run it in a clone of it"}
	}
	if err != nil {
		return err
	}
	findings, err := scaffold.Newest(root, func(repository string) (map[string]string, error) {
		return a.tagsOf(ctx, repo, settings, repository)
	})
	if err == nil && len(findings) == 0 {
		err = &cli.UsageError{Message: "no workflow here uses countersign from another repository", Hint: "countersign init --uses OWNER/countersign@COMMIT"}
	}
	if err != nil {
		return err
	}
	return a.showFindings(findings, document{}, "is not the newest release")
}

// tagsOf asks the server for the tags of a repository of the program, tag → commit.
func (a *App) tagsOf(ctx context.Context, repo *gitstore.Repo, settings gitstore.Settings, repository string) (map[string]string, error) {
	server, err := a.server(repo, settings, cmp.Or(a.Getenv("GITHUB_SERVER_URL"), "https://github.com")+"/"+repository, "")
	if err != nil {
		return nil, err
	}
	defer server.Close()
	tags, err := server.Tags(ctx)
	if err != nil {
		err = &scaffold.TagsError{Err: err}
	}
	return tags, err
}
