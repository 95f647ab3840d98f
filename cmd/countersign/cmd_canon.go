package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// exitNotJSON is canon's code for a document that is not JSON.
const exitNotJSON = 2

func (a *App) canonCommand() *cobra.Command {
	var hash bool
	var prefix string
	cmd := &cobra.Command{
		Use:   "canon FILE|-",
		Short: "Print a document's canonical JSON, its hash, or an id derived from it",
		Long: `canon prints a document as RFC 8785 (JCS) says: keys sorted, no white space. Its hash is
the SHA-256 of that and one LF; a derived id is the prefix, "_" and the first 16 hex digits.

Exit codes: 0, 2 the document is not JSON, 3 it cannot be read.`,
		Example: `  countersign canon patch.json
  countersign canon --hash patch.json
  countersign canon --id prop proposal.json`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			id := cmd.Flags().Changed("id")
			if hash && id {
				return &usageError{"both --hash and --id were given", "give one of them"}
			}
			if id && prefix == "" {
				return &usageError{"the prefix is empty", "give one, as in --id prop"}
			}
			return a.canon(args[0], prefix, hash)
		},
	}
	cmd.Flags().BoolVar(&hash, "hash", false, "print the SHA-256 of the canonical JSON and an LF, in hex")
	cmd.Flags().StringVar(&prefix, "id", "", "print the id that begins with `PREFIX`")
	return cmd
}

func (a *App) canon(name, prefix string, hash bool) error {
	doc, err := a.document(name, exitIO, exitNotJSON)
	if err != nil {
		return err
	}
	text := ""
	switch {
	case hash:
		text, err = canon.Hash(doc)
		text += "\n"
	case prefix != "":
		text, err = canon.DeriveID(prefix, doc)
		text += "\n"
	default:
		var line []byte
		line, err = canon.Line(doc)
		text = string(line)
	}
	if err != nil {
		return err
	}
	// Not print: what was given comes back, and must hash to what it is.
	_, err = io.WriteString(a.Stdout, text)
	return err
}

// document reads a JSON document from a file, or stdin for "-". The codes are
// those to end with where it cannot be read, or is not JSON.
func (a *App) document(name string, unread, unparsed int) (any, error) {
	raw, err := a.readInput(name, maxDocument)
	if err == nil && len(raw) > maxDocument {
		err = fmt.Errorf("%s: longer than %d bytes", inputName(name), maxDocument)
	}
	if err != nil {
		return nil, &exitError{unread, err}
	}
	doc, err := canon.Parse(raw)
	if err != nil {
		return nil, &exitError{unparsed, fmt.Errorf("%s: %w", inputName(name), err)}
	}
	return doc, nil
}

// oneFile demands one argument. cobra's own ExactArgs would exit with 3.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return &usageError{"no document given", "name a file, or - for stdin"}
	}
	return noArgs(cmd, args[1:])
}
