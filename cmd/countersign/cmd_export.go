package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/report"
)

func (a *App) exportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:     "export [TX] --out DIR",
		Short:   "Write a transaction as a plain directory, to send or to check elsewhere",
		Example: "  countersign export tx_01J --out evidence && countersign validate --dir evidence",
		Args:    upToOne,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.export(cmd.Context(), args, out) },
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "`DIR` to make; it must not exist or be empty")
	return cmd
}

func (a *App) export(ctx context.Context, args []string, out string) error {
	if out == "" {
		return &usageError{"no directory given", "name a new one with --out DIR"}
	}
	r, err := a.open()
	if err != nil {
		return err
	}
	id, err := a.find(ctx, r, args, true)
	if err != nil {
		return err
	}
	dir, err := r.Directory(ctx, id)
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		return &usageError{report.Clean(out) + " is not empty", "name a new directory with --out DIR"}
	}
	if err := copyTree(out, dir); err != nil {
		return &exitError{exitIO, fmt.Errorf("%s: %w", report.Clean(out), plain(err))}
	}
	if a.flags.json {
		return a.printJSON(map[string]any{"transaction_id": id, "out": out})
	}
	return a.print(report.Clean(out) + "\n")
}

// copyTree writes a transaction's files below a directory. Names come from the
// ledger, so they are written through an os.Root.
func copyTree(out string, dir fs.FS) error {
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	root, err := os.OpenRoot(out)
	if err != nil {
		return err
	}
	err = fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case d.IsDir():
			return root.MkdirAll(name, 0o777)
		}
		data, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		return root.WriteFile(name, data, 0o666)
	})
	return errors.Join(err, root.Close())
}
