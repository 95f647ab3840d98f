package document

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// PackVersion is the patch_schema_version of the documents that we write.
const PackVersion = "1.0.0"

// MaxPack is the usual limit on total_bytes, inclusive: 50 MiB (PS7).
const MaxPack = 52428800

// ErrHash is wrapped by CheckHash where the content is not the expected one.
var ErrHash = errors.New("content does not match expected_hash")

// A Pack is patch.json, the document in which a proposal hands over whole files (rules PS1 to PS9).
//
// A document is one JSON object; ours are canonical JSON and an LF:
//
//	{"operations":[{"content":"x","op":"create","order":0,"path":"a","size_bytes":1},{"op":"delete","order":1,"path":"b"}],"patch_schema_version":"1.0.0","source_proposal_hash":"sha256:…","source_proposal_id":"prop_…","total_bytes":1}
//
// op is create, modify or delete; content is the whole file, and a delete has
// none. total_bytes is the sum of the contents' UTF-8 lengths. Operations are
// sorted by (order, path), order being 0 where it is left out. expected_hash is
// optional: see CheckHash. Unknown keys are allowed.
type Pack struct {
	PatchSchemaVersion string
	SourceProposalID   string // a foreign value that is no string, as ECMAScript prints it
	SourceProposalHash string // likewise
	Operations         []Operation
}

// An Operation is one file to create, modify or delete.
type Operation struct {
	Op           string  // create, modify or delete
	Path         string  // relative, with slashes
	Content      *string // the whole file; nil for a delete
	ExpectedHash *string // nil where there is none
}

// PackOf is the document that makes a change to whole files, as a proposal of that id
// and hash hands it over. What the format cannot express (content that is not
// UTF-8, an executable bit) is a *patch.Error.
func PackOf(set patch.Patchset, proposalID, proposalHash string) (Pack, error) {
	p := Pack{PatchSchemaVersion: PackVersion, SourceProposalID: proposalID, SourceProposalHash: proposalHash}
	for _, f := range set.Files() {
		o, err := whole(f)
		if err != nil {
			return Pack{}, err
		}
		p.Operations = append(p.Operations, o)
	}
	return p, nil
}

// whole writes a change as an operation on a whole file.
func whole(f patch.Change) (Operation, error) {
	o, mode := Operation{Op: "modify", Path: f.Path}, patch.Regular
	switch {
	case f.After == nil:
		o.Op = "delete"
		return o, nil
	case f.Before == nil:
		o.Op = "create"
	default:
		mode = f.Before.Mode
	}
	switch {
	case f.After.Mode != mode:
		return o, &patch.Error{Path: f.Path, Message: "whole-file operations cannot set the executable bit", Try: "propose a Git diff: it says what is executable"}
	case !utf8.Valid(f.After.Data) || bytes.IndexByte(f.After.Data, 0) >= 0:
		return o, &patch.Error{Path: f.Path, Message: "patch.json can only hold UTF-8 text"}
	}
	content, hash := string(f.After.Data), canon.Sum(f.After.Data)
	o.Content, o.ExpectedHash = &content, &hash
	return o, nil
}

// ReadPack reads a parsed document, its operations in the document's order, unless VerifyPack finds
// something in it.
func ReadPack(doc any) (p Pack, found []canon.Violation) {
	if found = VerifyPack(doc, MaxPack); len(found) > 0 {
		return p, found
	}
	of := fieldsOf(doc)
	p = Pack{
		PatchSchemaVersion: of.text("patch_schema_version"), SourceProposalID: of.text("source_proposal_id"),
		SourceProposalHash: of.text("source_proposal_hash"),
	}
	entries, _ := (&checker{}).shape(of)
	for _, e := range entries {
		o := Operation{Op: e.op, Path: e.path, ExpectedHash: e.expectedHash}
		if e.hasContent {
			o.Content = &e.content
		}
		p.Operations = append(p.Operations, o)
	}
	return p, nil
}

// Line is the document as we write it: canonical JSON and one LF, operations
// sorted by path (UTF-16 code units), order counted from 0 in that sequence,
// size_bytes and total_bytes counted from the contents. The error is for a string that is not UTF-8.
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
		if got, err = Hash(*o.Content); err != nil {
			return fmt.Errorf("%s: hashing content: %w", o.Path, err)
		}
	}
	if got != want {
		return fmt.Errorf("%s: %w: want %s, got %s", o.Path, ErrHash, want, got)
	}
	return nil
}

// VerifyPack reports every rule (PS1 to PS9, SCHEMA) that a patch.json document
// breaks, sorted; none means valid. doc is a document from canon.Parse, of any
// shape; maxBytes is the limit on total_bytes, inclusive. Paths are JSON paths.
// Where the shape is bad, only PS1 and SCHEMA are looked at.
func VerifyPack(doc any, maxBytes int64) []canon.Violation {
	c := &checker{}
	m, ok := c.Document(doc, "patch", "PS1", "patch_schema_version")
	if !ok {
		return c.Sorted()
	}
	ops, ok := c.shape(m)
	if !ok {
		return c.Sorted()
	}
	for _, o := range ops {
		c.kind(o)
		c.path(o)
		c.content(o)
	}
	c.duplicates(ops)
	c.order(ops)
	c.total(m["total_bytes"], ops, maxBytes)
	return c.Sorted()
}

// A checker gathers violations.
type checker struct{ Checker }

// An entry is one operation of the right shape, found at a JSON path.
type entry struct {
	at            string
	op            string // empty where it is not a string
	printedOp     string // as ECMAScript prints it, whatever it is
	path, content string
	hasContent    bool
	expectedHash  *string
	order         float64
}

var required = []string{"patch_schema_version", "source_proposal_id", "source_proposal_hash",
	"operations", "total_bytes"}

// shape reads m, and reports whether its shape is good.
func (c *checker) shape(m map[string]any) ([]entry, bool) {
	before := len(c.Found)
	for _, f := range required {
		if _, ok := m[f]; !ok {
			c.Schema("$."+f, "required field %s is missing", f)
		}
	}
	v, present := m["operations"]
	list, ok := v.([]any)
	if present && !ok {
		c.Schema("$.operations", "operations must be an array")
	}
	ops := make([]entry, len(list))
	for i, v := range list {
		ops[i] = c.entry(fmt.Sprintf("$.operations[%d]", i), v)
	}
	return ops, len(c.Found) == before
}

func (c *checker) entry(at string, v any) entry {
	m, ok := v.(map[string]any)
	if !ok {
		c.Schema(at, "operation must be an object")
		return entry{}
	}
	e := entry{at: at}
	op, present := m["op"]
	e.op, _ = op.(string)
	e.printedOp = String(op, present)
	if e.path, ok = m["path"].(string); !ok {
		c.Schema(at+".path", "path must be a string")
	}
	content, present := m["content"]
	e.hasContent = present
	if e.content, ok = content.(string); present && !ok {
		c.Schema(at+".content", "content must be a string")
	}
	if hash := m["expected_hash"]; hash != nil {
		printed := String(hash, true)
		e.expectedHash = &printed
	}
	order, present := m["order"]
	if e.order, ok = order.(float64); present && !ok {
		c.Schema(at+".order", "order must be a number")
	}
	return e
}

// kind is PS2 and PS9.
func (c *checker) kind(e entry) {
	switch e.op {
	case "create", "modify", "delete":
	default:
		c.Add("PS2", e.at+".op", "invalid operation type: %s", e.printedOp)
	}
	if e.op == "symlink" {
		c.Add("PS9", e.at+".op", "symlink operations are not allowed")
	}
}

// path is PS3 and PS4. A path may break several of their conditions.
func (c *checker) path(e entry) {
	at := e.at + ".path"
	if canon.IsAbsolute(e.path) {
		c.Add("PS3", at, "absolute path not allowed: %s", e.path)
	}
	if strings.Contains(e.path, "..") || strings.Contains(e.path, `\`) {
		c.Add("PS4", at, "path traversal or backslash not allowed: %s", e.path)
	}
	if strings.ContainsFunc(e.path, isForbidden) || Trim(e.path) != e.path {
		c.Add("PS4", at, "forbidden characters in path: %s", e.path)
	}
	if !isNormalized(e.path) {
		c.Add("PS4", at, "path not normalized: %s", e.path)
	}
}

// isForbidden holds for control characters; tab and LF are let through.
func isForbidden(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' }

// isNormalized lets "a/./b" through, as the reference does.
func isNormalized(p string) bool {
	return p != "" && p != "." && !strings.HasPrefix(p, "./") &&
		!strings.HasSuffix(p, "/") && !strings.Contains(p, "//")
}

// content is PS6. An operation of no known kind may have content or not. A
// lone surrogate is what makes a JSON string invalid UTF-8.
func (c *checker) content(e entry) {
	at := e.at + ".content"
	if !utf8.ValidString(e.content) || strings.Contains(e.content, "\x00") {
		c.Add("PS6", at, "content is not valid UTF-8 or contains null bytes")
	}
	switch {
	case e.op == "delete" && e.hasContent:
		c.Add("PS6", at, "delete operation must not have content")
	case (e.op == "create" || e.op == "modify") && !e.hasContent:
		c.Add("PS6", at, "%s operation must have content", e.op)
	}
}

// duplicates is PS5.
func (c *checker) duplicates(ops []entry) {
	first := map[string]int{}
	for i, e := range ops {
		if at, twice := first[e.path]; twice {
			c.Add("PS5", e.at+".path", "duplicate target path: %s (also at index %d)", e.path, at)
			continue
		}
		first[e.path] = i
	}
}

// order is PS8, on neighbours.
func (c *checker) order(ops []entry) {
	for i := 1; i < len(ops); i++ {
		a, b := ops[i-1], ops[i]
		switch {
		case a.order > b.order:
			c.Add("PS8", b.at, "operations not sorted by order: %s > %s",
				String(a.order, true), String(b.order, true))
		case a.order == b.order && canon.Compare(a.path, b.path) > 0:
			c.Add("PS8", b.at, "operations not sorted by path: %s > %s", a.path, b.path)
		}
	}
}

// total is PS7. A lone surrogate counts three bytes in WTF-8, as it does where
// an encoder replaces it by U+FFFD.
func (c *checker) total(v any, ops []entry, limit int64) {
	const at = "$.total_bytes"
	said, ok := v.(float64)
	if !ok {
		c.Add("PS7", at, "total_bytes is missing or not a number")
		return
	}
	if said > float64(limit) {
		c.Add("PS7", at, "total_bytes (%s) exceeds limit (%d)", String(said, true), limit)
	}
	var actual int64
	for _, e := range ops {
		actual += int64(len(e.content))
	}
	if said != float64(actual) {
		c.Add("PS7", at, "total_bytes (%s) does not match actual content size (%d)", String(said, true), actual)
	}
}
