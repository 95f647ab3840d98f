// Package pack is patch.json, the document in which a proposal hands over
// whole files: it verifies (PS1 to PS9), reads and writes it.
//
// A document is one JSON object; ours are canonical JSON and an LF:
//
//	{"operations":[{"content":"x","op":"create","order":0,"path":"a","size_bytes":1},{"op":"delete","order":1,"path":"b"}],"patch_schema_version":"1.0.0","source_proposal_hash":"sha256:…","source_proposal_id":"prop_…","total_bytes":1}
//
// op is create, modify or delete; content is the whole file, and a delete has
// none. total_bytes is the sum of the contents' UTF-8 lengths. Operations are
// sorted by (order, path), order being 0 where it is left out. expected_hash is
// optional: see CheckHash. Unknown keys are allowed.
package pack

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// SchemaVersion is the patch_schema_version of the documents that we write.
const SchemaVersion = "1.0.0"

// MaxBytes is the usual limit on total_bytes, inclusive: 50 MiB (PS7).
const MaxBytes = 52428800

// ErrHash is wrapped by CheckHash where the content is not the expected one.
var ErrHash = errors.New("content does not match expected_hash")

// A Pack is a patch.json document.
type Pack struct {
	PatchSchemaVersion string
	SourceProposalID   string // a foreign value that is no string, as ECMAScript prints it
	SourceProposalHash string // likewise
	Operations         []Operation
	TotalBytes         int64 // sum of the contents' lengths
}

// An Operation is one file to create, modify or delete.
type Operation struct {
	Op           string  // create, modify or delete
	Path         string  // relative, with slashes
	Content      *string // the whole file; nil for a delete
	ExpectedHash *string // nil where there is none
	SizeBytes    int64   // length of Content; what a foreign document says is ignored
	Order        float64 // 0 where there is none
}

// Of is the document that makes a change to whole files, as a proposal of that id
// and hash hands it over. What the format cannot express (content that is not
// UTF-8, an executable bit) is a *patch.Error.
func Of(set patch.Patchset, proposalID, proposalHash string) (Pack, error) {
	ops, err := set.Operations()
	if err != nil {
		return Pack{}, err
	}
	p := Pack{PatchSchemaVersion: SchemaVersion, SourceProposalID: proposalID, SourceProposalHash: proposalHash}
	for _, op := range ops {
		o := Operation{Op: op.Op, Path: op.Path}
		if op.Op != "delete" {
			if !utf8.Valid(op.Content) || bytes.IndexByte(op.Content, 0) >= 0 {
				return Pack{}, &patch.Error{Path: op.Path, Message: "patch.json can only hold UTF-8 text"}
			}
			content, hash := string(op.Content), canon.Sum(op.Content)
			o.Content, o.ExpectedHash = &content, &hash
		}
		p.Operations = append(p.Operations, o)
	}
	return p, nil
}

// Decode reads a parsed document that Verify accepts, its operations in the
// document's order. On others it fails if the shape is bad (SCHEMA), and tells
// nothing about the other rules.
func Decode(doc any) (Pack, error) {
	m, ok := doc.(map[string]any)
	if !ok {
		return Pack{}, errors.New("patch.json: not an object")
	}
	c := &checker{}
	entries, ok := c.shape(m)
	if !ok {
		v := c.Found[0]
		return Pack{}, fmt.Errorf("patch.json: %s: %s", v.Path, v.Message)
	}
	p := Pack{
		PatchSchemaVersion: canon.String(m["patch_schema_version"], true),
		SourceProposalID:   canon.String(m["source_proposal_id"], true),
		SourceProposalHash: canon.String(m["source_proposal_hash"], true),
	}
	for _, e := range entries {
		o := Operation{Op: e.op, Path: e.path, ExpectedHash: e.expectedHash, Order: e.order}
		if e.hasContent {
			o.Content, o.SizeBytes = &e.content, int64(len(e.content))
		}
		p.Operations = append(p.Operations, o)
		p.TotalBytes += o.SizeBytes
	}
	return p, nil
}

// Line is the document as we write it: canonical JSON and one LF, operations
// sorted by path (UTF-16 code units), order counted from 0 in that sequence,
// size_bytes and total_bytes counted from the contents. The order and sizes in
// p are not looked at. The error is for a string that is not UTF-8.
func (p Pack) Line() ([]byte, error) {
	ops := slices.Clone(p.Operations)
	slices.SortStableFunc(ops, func(a, b Operation) int { return canon.Compare(a.Path, b.Path) })
	list, total := make([]any, len(ops)), 0
	for i, o := range ops {
		m := map[string]any{"op": o.Op, "path": o.Path, "order": float64(i)}
		if o.Content != nil {
			m["content"], m["size_bytes"] = *o.Content, float64(len(*o.Content))
			total += len(*o.Content)
		}
		if o.ExpectedHash != nil {
			m["expected_hash"] = *o.ExpectedHash
		}
		list[i] = m
	}
	b, err := canon.Line(map[string]any{
		"patch_schema_version": p.PatchSchemaVersion,
		"source_proposal_id":   p.SourceProposalID,
		"source_proposal_hash": p.SourceProposalHash,
		"operations":           list,
		"total_bytes":          float64(total),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding patch.json: %w", err)
	}
	return b, nil
}

// CheckHash compares the content with the expected hash, where there is one:
// "sha256:" and 64 hex digits is the hash of its bytes, 64 hex digits alone is
// canonicalHash of the content as a JSON string, what the reference exporter
// writes. Without content nothing matches it. The error wraps ErrHash unless the
// expected hash has neither form.
func (o Operation) CheckHash() error {
	if o.ExpectedHash == nil {
		return nil
	}
	want := *o.ExpectedHash
	digits, prefixed := strings.CutPrefix(want, "sha256:")
	if !canon.IsHex64(digits) {
		return fmt.Errorf("%s: expected_hash %q is not a SHA-256 in lower-case hex", o.Path, want)
	}
	if o.Content == nil {
		return fmt.Errorf("%s: %w: want %s, and there is no content", o.Path, ErrHash, want)
	}
	got := canon.Sum([]byte(*o.Content))
	if !prefixed {
		var err error
		if got, err = canon.Hash(*o.Content); err != nil {
			return fmt.Errorf("%s: hashing content: %w", o.Path, err)
		}
	}
	if got != want {
		return fmt.Errorf("%s: %w: want %s, got %s", o.Path, ErrHash, want, got)
	}
	return nil
}
