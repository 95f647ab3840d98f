package statements

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// The verifiers have exit codes of their own (PROPOSAL_INTERNAL_SPEC 7.3), and
// canon one.
const (
	verifyIO      = 1
	verifyParse   = 2
	verifyInvalid = 3
	canonParse    = 2
)

// maxDocument is the longest document we read: MaxPack of content with every
// byte escaped, and as much again for the rest.
const maxDocument = 2 * 6 * document.MaxPack

// documents are what each of them uses.
type documents struct{ *console.Console }

// oneDocument demands the name of one document.
var oneDocument = console.ExactlyOne("no document given", "name a file, or - for stdin")

func (p documents) packCommand() *cobra.Command {
	var pack, target string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "apply --pack DIR --target DIR",
		Short: "Write a pack's files into a directory, and print the ApplyResult",
		Long: `apply carries out the operations of a pack's patch.json in a directory. It needs no
repository, asks for no approval and records nothing; "countersign review" does. It prints
the ApplyResult as canonical JSON, also where it refuses.

Exit codes: 0 SUCCESS, 1 PARTIAL or FAILED, 2 REFUSED, 3 the pack or the target cannot be read.`,
		Example: `  countersign pack apply --pack ./pack --target ./site --dry-run
  countersign pack apply --pack ./pack --target ./site`,
		Args: console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if pack == "" || target == "" {
				return &console.UsageError{Message: "no pack or no target given", Hint: "name them with --pack DIR and --target DIR"}
			}
			r, err := Apply(p.Path(pack), p.Path(target), dryRun)
			if err != nil {
				return &console.ExitError{Code: console.ExitIO, Err: fmt.Errorf("pack apply: %w", err)}
			}
			line, err := effect.ResultLine(r)
			if err != nil {
				return err
			}
			if err := p.Print(string(line)); err != nil || r.Outcome == ledger.OutcomeSuccess {
				return err
			}
			return &console.ExitError{Code: effect.ExitCode(r.Outcome), Err: fmt.Errorf("pack apply: %s", r.Error)}
		},
	}
	cmd.Flags().StringVar(&pack, "pack", "", "`DIR` that holds patch.json")
	cmd.Flags().StringVar(&target, "target", "", "`DIR` to write to; no link may lead to it or be in it")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done; write nothing")
	return console.Group("pack", "Apply a pack (patch.json) to a plain directory", "  countersign pack apply --pack ./pack --target ./site --dry-run", cmd)
}

func (p documents) patchCommand() *cobra.Command {
	limit := int64(document.MaxPack)
	verify := p.verifyCommand("patch", "patch.json", func(doc any) ([]canon.Violation, error) {
		return document.VerifyPack(doc, limit), nil
	})
	verify.Flags().Int64Var(&limit, "max-bytes", limit, "limit on total_bytes, `N` inclusive")
	return console.Group("patch", "Check a pack's patch.json", verify.Example, verify)
}

func (p documents) resultCommand() *cobra.Command {
	var patch string
	verify := p.verifyCommand("result", "result.json", func(doc any) ([]canon.Violation, error) {
		of, err := p.other(patch)
		return document.VerifyResult(doc, of), err
	})
	verify.Flags().StringVar(&patch, "patch", "", "compare with the patch.json that it is the result of, `FILE`")
	return console.Group("result", "Check an ApplyResult", verify.Example, verify)
}

func (p documents) proposalCommand() *cobra.Command {
	var bundle string
	var strict bool
	verify := p.verifyCommand("proposal", "proposal.json", func(doc any) ([]canon.Violation, error) {
		source, err := p.other(bundle)
		found := document.VerifyProposal(doc)
		if !strict && bundle == "" {
			return found, err
		}
		all := document.VerifyStrict(doc, document.Strict{Bundle: source, HasBundle: bundle != ""})
		if strict {
			return all, err
		}
		// For a bundle alone, of our own rules the one that is about it.
		return slices.DeleteFunc(all, func(v canon.Violation) bool {
			return v.RuleID != "ID4" && !slices.Contains(found, v)
		}), err
	})
	verify.Flags().StringVar(&bundle, "bundle", "", "check source_bundle_hash against the source bundle, `FILE`")
	verify.Flags().BoolVar(&strict, "strict", false, "also require every field, derive the ids again and check every hash (ID1 to ID6)")
	return console.Group("proposal", "Check a Proposal", verify.Example, verify)
}

// verifyCommand makes "noun verify FILE".
func (p documents) verifyCommand(noun, file string, check func(doc any) ([]canon.Violation, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE|-",
		Short: "Print which rules a document breaks, as canonical JSON",
		Long: `verify prints {"ok":true}, or {"ok":false,"violations":[…]} with rule_id, path and message
of each. Exit codes: 0 valid, 1 a file cannot be read, 2 it is not JSON, 3 violations.`,
		Example: "  countersign " + noun + " verify " + file,
		Args:    oneDocument,
		RunE: func(_ *cobra.Command, args []string) error {
			doc, err := p.document(args[0], verifyIO, verifyParse)
			if err != nil {
				return err
			}
			found, err := check(doc)
			if err != nil {
				return err
			}
			r := canon.NewReport(found)
			line, err := reportLine(r)
			if err != nil {
				return err
			}
			if err := p.Print(string(line)); err != nil {
				return &console.ExitError{Code: verifyIO, Err: err}
			}
			if r.OK {
				return nil
			}
			return &console.ExitError{Code: verifyInvalid, Err: fmt.Errorf("%s: %d violations", console.InputName(args[0]), len(r.Violations))}
		},
	}
}

// reportLine stands in for canon.Line(r), in which encoding/json would replace
// the lone surrogates that a foreign document may hold.
func reportLine(r canon.Report) ([]byte, error) {
	if r.OK {
		return canon.Line(console.Document{"ok": true})
	}
	list := []any{}
	for _, v := range r.Violations {
		item := console.Document{"rule_id": v.RuleID, "message": v.Message}
		if v.Path != "" {
			item["path"] = v.Path
		}
		list = append(list, item)
	}
	return canon.Line(console.Document{"ok": false, "violations": list})
}

// other reads a second document; without a name there is none, which is nil.
func (p documents) other(name string) (any, error) {
	if name == "" {
		return nil, nil
	}
	doc, err := p.document(name, verifyIO, verifyParse)
	if doc == nil && err == nil {
		doc = []any{} // null is a document, though one that says nothing
	}
	return doc, err
}

func (p documents) canonCommand() *cobra.Command {
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
		Args: oneDocument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if hash && prefix != "" {
				return &console.UsageError{Message: "both --hash and --id were given", Hint: "give one of them"}
			}
			return p.canon(args[0], prefix, hash)
		},
	}
	cmd.Flags().BoolVar(&hash, "hash", false, "print the SHA-256 of the canonical JSON and an LF, in hex")
	cmd.Flags().StringVar(&prefix, "id", "", "print the id that begins with `PREFIX`")
	return cmd
}

func (p documents) canon(name, prefix string, hash bool) error {
	doc, err := p.document(name, console.ExitIO, canonParse)
	if err != nil {
		return err
	}
	text := ""
	switch {
	case hash:
		text, err = document.Hash(doc)
		text += "\n"
	case prefix != "":
		text, err = document.DeriveID(prefix, doc)
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
	return p.GiveBack(text)
}

// document reads a JSON document from a file, or stdin for "-". The codes are
// those to end with where it cannot be read, or is not JSON.
func (p documents) document(name string, unread, unparsed int) (any, error) {
	raw, err := p.ReadInput(name, maxDocument)
	if err == nil && len(raw) > maxDocument {
		err = fmt.Errorf("%s: longer than %d bytes", console.InputName(name), maxDocument)
	}
	if err != nil {
		return nil, &console.ExitError{Code: unread, Err: err}
	}
	doc, err := canon.Parse(raw)
	if err != nil {
		return nil, &console.ExitError{Code: unparsed, Err: fmt.Errorf("%s: %w", console.InputName(name), err)}
	}
	return doc, nil
}
