package main

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/action"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
)

// artifactFile is what the one file of an artifact is called, by which a forge finds it (rest.Unzip).
const artifactFile = "bundle.json"

// artifactCommand hands results from job to job of one run, where there is no action for that.
func (a *App) artifactCommand() *cobra.Command {
	root := &cobra.Command{Use: "artifact", Hidden: true, Short: "Hand a file from job to job of a workflow's run", Args: cli.NoCommand}
	root.AddCommand(
		&cobra.Command{
			Use: "put NAME FILE", Hidden: true, Short: "Leave a file with the run that this is a job of", Args: cli.Exactly(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				raw, err := a.readInput(args[1], maxResults)
				if err != nil {
					return err
				}
				return action.New(a.Getenv, io.Discard).Upload(cmd.Context(), args[0], artifactFile, raw)
			},
		},
		&cobra.Command{
			Use: "get NAME FILE", Hidden: true, Short: "Take a file that an earlier job of this run left", Args: cli.Exactly(2),
			RunE: func(cmd *cobra.Command, args []string) error { return a.getArtifact(cmd.Context(), args[0], args[1]) },
		})
	return root
}

func (a *App) getArtifact(ctx context.Context, name, file string) error {
	run, err := strconv.ParseInt(a.Getenv("GITHUB_RUN_ID"), 10, 64)
	client, clientErr := a.forgeOfWorkflow()
	switch {
	case err != nil:
		return &cli.UsageError{Message: "this is no job of a workflow's run", Hint: ""}
	case clientErr != nil:
		return clientErr
	case client == nil:
		return a.noClient("there is no token to read the run with")
	}
	raw, err := client.Artifact(ctx, run, name, maxResults)
	if err != nil {
		return err
	}
	if err := writeFile(a.path(file), raw); err != nil {
		return fileError(file, err)
	}
	return nil
}
