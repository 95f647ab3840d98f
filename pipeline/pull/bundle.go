package pull

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Bundle is what a job that may write nothing hands to one that may, in a file
// of its own: countersign/bundle/1. It is untrusted from end to end. It names no
// pull request, repository or proposer: these are the event's to say (T68). What
// it holds is proposed anew, and hashed anew (T22).
//
//	{"data":"<base64>","kind":"patch","schema":"countersign/bundle/1","summary":"…"}
type Bundle struct {
	Schema  string `json:"schema"`
	Kind    string `json:"kind"` // "patch", "pack" or "proposal"
	Summary string `json:"summary"`
	Data    string `json:"data"`            // base64 of the Git diff, patch.json or Proposal
	Trace   string `json:"trace,omitempty"` // base64 of JSON Lines
	// Format is what the diff was made from, as input.IsFormat has it, and
	// TraceFormat what the trace was, one of input.TraceFormats.
	Format      string `json:"format,omitempty"`
	TraceFormat string `json:"trace_format,omitempty"`
	// Message and Author are what the mails or commits say that the diff came in.
	Message string         `json:"message,omitempty"`
	Author  *ledger.Author `json:"author,omitempty"`
	// RequestedBy are the names of those who asked for the change, as who made the bundle says.
	RequestedBy []string `json:"requested_by,omitempty"`
}

const bundleSchema = "countersign/bundle/1"

// BundleName is the artifact that a propose job uploads.
const BundleName = "countersign-bundle"

// NewBundle packs an input: as it was given where it is a document, as its
// canonical diff where it was made here.
func NewBundle(in input.Change, diff, trace []byte) Bundle {
	kind, data := in.Kind, in.Raw
	if kind != input.KindPack && kind != input.KindProposal {
		kind, data = input.KindPatch, diff
	}
	b := Bundle{Schema: bundleSchema, Kind: kind, Summary: in.Summary, Format: in.Format, Data: base64.StdEncoding.EncodeToString(data)}
	if kind == input.KindPatch {
		text, declared := in.Claims(func(s string) string { return s })
		b.Author, b.Message = in.Author, strings.TrimSpace(text+"\n\n"+strings.Join(declared, "\n"))
	}
	for _, r := range in.RequestedBy {
		b.RequestedBy = append(b.RequestedBy, r.Actor.Login)
	}
	if len(trace) > 0 {
		b.Trace, b.TraceFormat = base64.StdEncoding.EncodeToString(trace), in.TraceFormat
	}
	return b
}

// maxBundle is how many bytes of a bundle are read under a Policy: two of its
// inputs, as base64.
func maxBundle(p policy.Policy) int64 { return 64<<10 + 4*p.Limits.Bytes }

// readBundle reads a bundle as strictly as if nobody knew who wrote it.
func readBundle(raw []byte, p policy.Policy) (input.Change, error) {
	var b Bundle
	if int64(len(raw)) > maxBundle(p) {
		return input.Change{}, &pipeline.LimitError{What: "bytes", Have: int64(len(raw)), Max: maxBundle(p)}
	}
	if err := canon.UnmarshalDocument("it", raw, &b); err != nil {
		return input.Change{}, fmt.Errorf("the bundle: %w", err)
	}
	if b.Schema != bundleSchema {
		return input.Change{}, fmt.Errorf("the bundle has the schema %+q, not %s", ledger.OneLine(b.Schema, 60), bundleSchema)
	}
	if b.Format != "" && (b.Kind != input.KindPatch || !input.IsFormat(b.Format)) {
		return input.Change{}, fmt.Errorf("the bundle's format is %+q", ledger.OneLine(b.Format, 40))
	}
	if b.TraceFormat != "" && (b.Trace == "" || !slices.Contains(input.TraceFormats, b.TraceFormat)) {
		return input.Change{}, fmt.Errorf("the bundle's trace_format is %+q", ledger.OneLine(b.TraceFormat, 40))
	}
	if (b.Author != nil || b.Message != "") && b.Kind != input.KindPatch || b.Author != nil && !b.Author.Valid() {
		return input.Change{}, errors.New("the bundle's author or message is not one of a patch")
	}
	data, err := base64.StdEncoding.DecodeString(b.Data)
	if err != nil {
		return input.Change{}, errors.New("the bundle's data is not base64")
	}
	if have := int64(len(data)); have > p.Limits.Bytes {
		return input.Change{}, &pipeline.LimitError{What: "bytes", Have: have, Max: p.Limits.Bytes}
	}
	var in input.Change
	switch b.Kind {
	case input.KindPatch:
		in, err = input.Diff(data, b.Summary)
		in.Format, in.Author = b.Format, b.Author
		if b.Message != "" {
			in.Messages = []string{b.Message}
		}
	case input.KindPack:
		in, err = input.Pack(data, b.Summary)
	case input.KindProposal:
		in, err = input.Proposal(data, nil, p, b.Summary)
	default:
		err = fmt.Errorf("the bundle holds a %+q, not a patch, pack or proposal", ledger.OneLine(b.Kind, 40))
	}
	if err == nil {
		in.RequestedBy, err = input.NamedAll(b.RequestedBy, ledger.AskedByFlag)
	}
	if err != nil || b.Trace == "" {
		return in, err
	}
	trace, err := base64.StdEncoding.DecodeString(b.Trace)
	if err != nil || int64(len(trace)) > p.Limits.Bytes {
		return in, errors.New("the bundle's trace is not base64, or too long")
	}
	in.Trace, err = input.ReadSteps(trace)
	in.TraceFormat = b.TraceFormat
	return in, err
}
