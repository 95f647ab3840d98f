package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// TestManPages writes the manual pages of every command, into the folder that
// COUNTERSIGN_MAN names where a release is made.
func TestManPages(t *testing.T) {
	dir := os.Getenv("COUNTERSIGN_MAN")
	if dir == "" {
		dir = t.TempDir()
	}
	root := rootCommand(console.New(console.Process{Getenv: os.Getenv}))
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd()
	root.InitDefaultVersionFlag()
	check(t, doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "countersign " + console.Release, Manual: "Countersign"}, dir))
	pages := 0
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		if !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			return
		}
		pages++
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		check(t, err)
		for _, want := range []string{".SH NAME", c.Name(), ".SH SYNOPSIS"} {
			if !strings.Contains(string(page), want) {
				t.Errorf("the page of %q has no %q", c.CommandPath(), want)
			}
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(root)
	found, err := filepath.Glob(filepath.Join(dir, "*.1"))
	check(t, err)
	if len(found) != pages || pages < 40 {
		t.Errorf("%d pages for %d commands", len(found), pages)
	}
}
