package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestManPages writes the manual pages of every command, into the folder that
// COUNTERSIGN_MAN names where a release is made.
func TestManPages(t *testing.T) {
	dir := os.Getenv("COUNTERSIGN_MAN")
	if dir == "" {
		dir = t.TempDir()
	}
	root := rootCommand(console.New(console.Process{Getenv: os.Getenv}))
	root.InitDefaultCompletionCmd()
	root.InitDefaultVersionFlag()
	pages := 0
	var write func(*cobra.Command)
	write = func(c *cobra.Command) {
		if !inManual(c) {
			return
		}
		pages++
		page := manPage(c)
		c.InitDefaultHelpFlag()
		for line := range strings.Lines(c.UsageString()) { // as its help has them
			if _, flag, is := strings.Cut(line, " --"); is && strings.TrimLeft(line, " ")[0] == '-' && !strings.Contains(page, `\fB\-\-`+roff(strings.Fields(flag)[0])+`\fP`) {
				t.Errorf("the page of %q lacks %q", c.CommandPath(), line)
			}
		}
		for line := range strings.Lines(page) {
			macro, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if macro != "" && strings.ContainsAny(macro[:1], ".'") && !slices.Contains([]string{".TH", ".SH", ".PP", ".TP", ".nf", ".fi", ".BR", ".B"}, macro) {
				t.Errorf("the page of %q has a line that is a request of a text's: %q", c.CommandPath(), line)
			}
		}
		check(t, os.WriteFile(filepath.Join(dir, manName(c)+".1"), []byte(page), 0o644))
		for _, below := range c.Commands() {
			write(below)
		}
	}
	write(root)
	if pages < 40 {
		t.Errorf("%d pages", pages)
	}
	if groff, err := exec.LookPath("groff"); err == nil {
		files, err := filepath.Glob(filepath.Join(dir, "*.1"))
		check(t, err)
		said, err := exec.CommandContext(t.Context(), groff, append(strings.Fields("-man -Kutf8 -Tutf8 -ww -z"), files...)...).CombinedOutput()
		if err != nil || len(said) > 0 {
			t.Errorf("groff: %v\n%s", err, said)
		}
	}
	if got := roff(".so /etc/passwd\n'x\na\\fB-b"); got != `\&.so /etc/passwd`+"\n"+`\&'x`+"\n"+`a\efB\-b` {
		t.Errorf("%q", got)
	}
}

func inManual(c *cobra.Command) bool {
	return c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() || !c.HasParent()
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the page of a command, in the macros of man(7).
func manPage(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var b strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	put(`.TH "%s" "1" "" "countersign %s" "Countersign"`, strings.ToUpper(manName(c)), console.Release)
	put(".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n.SH DESCRIPTION", roff(manName(c)), roff(c.Short), roff(c.UseLine()))
	for part := range strings.SplitSeq(cmp.Or(c.Long, c.Short+"."), "\n\n") {
		if text := roff(part); strings.Contains("\n"+part, "\n ") { // set as it is
			put(".PP\n.nf\n%s\n.fi", text)
		} else {
			put(".PP\n%s", text)
		}
	}
	manOptions(put, "OPTIONS", c.NonInheritedFlags())
	manOptions(put, "GLOBAL OPTIONS", c.InheritedFlags())
	if c.Example != "" {
		put(".SH EXAMPLES\n.nf\n%s\n.fi", roff(c.Example))
	}
	put(".SH SEE ALSO")
	if c.HasParent() {
		put(".BR %s (1)", roff(manName(c.Parent())))
	}
	for _, below := range c.Commands() {
		if inManual(below) {
			put(".BR %s (1)", roff(manName(below)))
		}
	}
	return b.String()
}

func manOptions(put func(string, ...any), title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	put(".SH %s", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := `\fB\-\-` + roff(f.Name) + `\fP`
		if f.Shorthand != "" {
			name = `\fB\-` + f.Shorthand + `\fP, ` + name
		}
		if value != "" {
			name += ` \fI` + roff(value) + `\fP`
		}
		if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		put(".TP\n%s\n%s", name, roff(usage))
	})
}

// roff is a text in which nothing is a request or an escape of roff.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
