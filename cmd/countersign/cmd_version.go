package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline/result"
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
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  countersign version --json", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.result(document{
				"version": release, "commit": commit(), "go": runtime.Version(),
				"schemas": document{"ledger": "1", "transaction": "0", "apply_result": result.SchemaVersion},
			}, "countersign "+version()+" ("+runtime.Version()+")\n")
		},
	}
}
