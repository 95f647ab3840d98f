package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/pack"
	"github.com/countersign-dev/countersign/pipeline/proposal"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// The verifiers have exit codes of their own (PROPOSAL_INTERNAL_SPEC 7.3).
const (
	verifyIO      = 1
	verifyParse   = 2
	verifyInvalid = 3
)

// maxDocument is the longest document we read: MaxBytes of content with every
// byte escaped, and as much again for the rest.
const maxDocument = 2 * 6 * pack.MaxBytes

func (a *App) patchCommand() *cobra.Command {
	limit := int64(pack.MaxBytes)
	verify := a.verifyCommand("patch", "patch.json", func(doc any) ([]rule.Violation, error) {
		return pack.Verify(doc, limit), nil
	})
	verify.Flags().Int64Var(&limit, "max-bytes", limit, "limit on total_bytes, `N` inclusive")
	return group("patch", "Check a pack's patch.json", verify)
}

func (a *App) resultCommand() *cobra.Command {
	var patch string
	verify := a.verifyCommand("result", "result.json", func(doc any) ([]rule.Violation, error) {
		of, err := a.other(patch)
		return result.Verify(doc, of), err
	})
	verify.Flags().StringVar(&patch, "patch", "", "compare with the patch.json that it is the result of, `FILE`")
	return group("result", "Check an ApplyResult", verify)
}

func (a *App) proposalCommand() *cobra.Command {
	var bundle string
	var strict bool
	verify := a.verifyCommand("proposal", "proposal.json", func(doc any) ([]rule.Violation, error) {
		source, err := a.other(bundle)
		return verifyProposal(doc, proposal.Strict{Bundle: source, HasBundle: bundle != ""}, strict), err
	})
	verify.Flags().StringVar(&bundle, "bundle", "", "check source_bundle_hash against the source bundle, `FILE`")
	verify.Flags().BoolVar(&strict, "strict", false, "also want every field, derive the ids again and check every hash (ID1 to ID6)")
	return group("proposal", "Check a Proposal", verify)
}

// verifyProposal adds our own rules when they are asked for: all of them, or for
// a bundle alone the one that is about it.
func verifyProposal(doc any, s proposal.Strict, strict bool) []rule.Violation {
	if !strict && !s.HasBundle {
		return proposal.Verify(doc)
	}
	found := proposal.VerifyStrict(doc, s)
	if strict {
		return found
	}
	plain := proposal.Verify(doc)
	return slices.DeleteFunc(found, func(v rule.Violation) bool {
		return v.RuleID != "ID4" && !slices.Contains(plain, v)
	})
}

// group is a command that is there for the one below it.
func group(noun, short string, verify *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: noun, Short: short, Example: verify.Example, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(verify)
	return cmd
}

// verifyCommand makes "noun verify FILE".
func (a *App) verifyCommand(noun, file string, check func(doc any) ([]rule.Violation, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE|-",
		Short: "Print which rules a document breaks, as canonical JSON",
		Long: `verify prints {"ok":true}, or {"ok":false,"violations":[…]} with rule_id, path and message
of each. Exit codes: 0 valid, 1 a file cannot be read, 2 it is not JSON, 3 violations.`,
		Example: "  countersign " + noun + " verify " + file,
		Args:    oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			doc, err := a.document(args[0], verifyIO, verifyParse)
			if err != nil {
				return err
			}
			found, err := check(doc)
			if err != nil {
				return err
			}
			return a.verified(args[0], rule.NewReport(found))
		},
	}
}

func (a *App) verified(name string, r rule.Report) error {
	line, err := reportLine(r)
	if err != nil {
		return err
	}
	if err := a.print(string(line)); err != nil {
		return &exitError{verifyIO, err}
	}
	if r.OK {
		return nil
	}
	return &exitError{verifyInvalid, fmt.Errorf("%s: %d violations", inputName(name), len(r.Violations))}
}

// reportLine stands in for canon.Line(r), in which encoding/json would replace
// the lone surrogates that a foreign document may hold.
func reportLine(r rule.Report) ([]byte, error) {
	doc := map[string]any{"ok": r.OK}
	list := []any{}
	for _, v := range r.Violations {
		item := map[string]any{"rule_id": v.RuleID, "message": v.Message}
		if v.Path != "" {
			item["path"] = v.Path
		}
		list = append(list, item)
	}
	if !r.OK {
		doc["violations"] = list
	}
	return canon.Line(doc)
}

// other reads a second document; without a name there is none, which is nil.
func (a *App) other(name string) (any, error) {
	if name == "" {
		return nil, nil
	}
	doc, err := a.document(name, verifyIO, verifyParse)
	if doc == nil && err == nil {
		doc = []any{} // null is a document, though one that says nothing
	}
	return doc, err
}
