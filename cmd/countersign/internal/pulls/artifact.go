package pulls

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
)

// artifactFile is what the one file of an artifact is called, by which a forge finds it (rest.Unzip).
const artifactFile = "bundle.json"

// artifactCommand hands results from job to job of one run, where there is no action for that.
func artifactCommand(c *console.Console) *cobra.Command {
	root := &cobra.Command{Use: "artifact", Hidden: true, Short: "Hand a file from job to job of a workflow's run", Args: console.NoCommand}
	root.AddCommand(
		&cobra.Command{
			Use: "put NAME FILE", Hidden: true, Short: "Leave a file with the run that this is a job of", Args: console.Exactly(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				raw, err := c.ReadInput(args[1], session.MaxResults)
				if err != nil {
					return err
				}
				return console.NewAction(c.Getenv, io.Discard).Upload(cmd.Context(), args[0], artifactFile, raw)
			},
		},
		&cobra.Command{
			Use: "get NAME FILE", Hidden: true, Short: "Take a file that an earlier job of this run left", Args: console.Exactly(2),
			RunE: func(cmd *cobra.Command, args []string) error { return getArtifact(cmd.Context(), c, args[0], args[1]) },
		})
	return root
}

func getArtifact(ctx context.Context, c *console.Console, name, file string) error {
	run, err := strconv.ParseInt(c.Getenv("GITHUB_RUN_ID"), 10, 64)
	client, clientErr := session.ForgeOfWorkflow(c)
	switch {
	case err != nil:
		return &console.UsageError{Message: "this is no job of a workflow's run", Hint: ""}
	case clientErr != nil:
		return clientErr
	case client == nil:
		return c.NoClient("there is no token to read the run with")
	}
	raw, err := client.Artifact(ctx, run, name, session.MaxResults)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(c.Path(file), raw); err != nil {
		return console.FileError(file, err)
	}
	return nil
}
