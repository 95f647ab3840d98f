package document_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// The package comment's sample, but for the source.
func ExamplePack() {
	content := "x"
	line, _ := document.Pack{
		PatchSchemaVersion: document.PackVersion,
		Operations:         []document.Operation{{Op: "delete", Path: "b"}, {Op: "create", Path: "a", Content: &content}},
	}.Line()
	fmt.Print(string(line))
	// Output: {"operations":[{"content":"x","op":"create","order":0,"path":"a","size_bytes":1},{"op":"delete","order":1,"path":"b"}],"patch_schema_version":"1.0.0","source_proposal_hash":"","source_proposal_id":"","total_bytes":1}
}

func TestReadPack(t *testing.T) {
	p, found := document.ReadPack(parse(t, `{"patch_schema_version":"9","source_proposal_id":5,"source_proposal_hash":null,"x":1,
		"operations":[{"op":"modify","path":"b","content":"é","size_bytes":99,"order":-1.5,"expected_hash":"h","y":2},
		{"op":"create","path":"c","content":"","expected_hash":null},{"op":"delete","path":"a","order":7}],"total_bytes":2}`))
	if len(found) > 0 || p.PatchSchemaVersion != "9" || p.SourceProposalID != "5" || p.SourceProposalHash != "null" || len(p.Operations) != 3 {
		t.Fatalf("%+v, %v", p, found)
	}
	b, c, a := p.Operations[0], p.Operations[1], p.Operations[2]
	if b.Op != "modify" || b.Path != "b" || *b.Content != "é" || *b.ExpectedHash != "h" {
		t.Errorf("%+v", b)
	}
	if *c.Content != "" || c.ExpectedHash != nil {
		t.Errorf("%+v", c)
	}
	if a.Content != nil {
		t.Errorf("%+v", a)
	}
}

func TestLineIsNormal(t *testing.T) {
	x, long, hash := "x", "long", "h"
	p := document.Pack{
		PatchSchemaVersion: "2", SourceProposalID: "prop_1", SourceProposalHash: "sha256:0",
		Operations: []document.Operation{
			{Op: "create", Path: "\ue000", Content: &long, ExpectedHash: &hash},
			{Op: "modify", Path: "😀", Content: &x},
			{Op: "delete", Path: "a\xed\xa0\x80"},
		},
	}
	line, err := p.Line()
	want := `{"operations":[{"op":"delete","order":0,"path":"a\ud800"},` +
		`{"content":"x","op":"modify","order":1,"path":"😀","size_bytes":1},` +
		`{"content":"long","expected_hash":"h","op":"create","order":2,"path":"` + "\ue000" + `","size_bytes":4}],` +
		`"patch_schema_version":"2","source_proposal_hash":"sha256:0","source_proposal_id":"prop_1","total_bytes":5}` + "\n"
	if err != nil || string(line) != want {
		t.Errorf("got %s, %v\nwant %s", line, err, want)
	}
	if p.Operations[0].Op != "create" {
		t.Error("Line sorted the caller's slice")
	}
	if vs := document.VerifyPack(parse(t, string(line)), document.MaxPack); len(vs) > 0 {
		t.Error(vs)
	}
	if _, err := (document.Pack{SourceProposalID: "\xff"}).Line(); err == nil {
		t.Error("Line took a string that is not UTF-8")
	}
}

func TestUnsoundPackIsNotRead(t *testing.T) {
	for _, in := range []string{`null`, `[]`, `{}`, packDocument(`[{"op":"create","path":5,"content":"x"}]`, 1), packDocument(`[{"op":"create","path":"a","content":"x"}]`, 2)} {
		if p, found := document.ReadPack(parse(t, in)); len(found) == 0 || len(p.Operations) > 0 {
			t.Errorf("%s is read as %+v", in, p)
		}
	}
}

func TestCheckHash(t *testing.T) {
	content := "é\n"
	bare, err := document.Hash(content)
	fatal(t, err)
	sum := canon.Sum([]byte(content))
	for _, c := range []struct {
		name, hash string
		content    *string
		want       string
	}{
		{"empty", "", &content, `a: expected_hash "" is not a SHA-256`},
		{"no content", sum, nil, "a: content does not match expected_hash: want " + sum + ", and there is no content"},
		{"bytes", sum, &content, ""},
		{"string", bare, &content, ""},
		{"bytes, bare", sum[7:], &content, "a: content does not match expected_hash: want " + sum[7:] + ", got " + bare},
		{"string, prefixed", "sha256:" + bare, &content,
			"a: content does not match expected_hash: want sha256:" + bare + ", got " + sum},
		{"upper case", strings.ToUpper(bare), &content, "is not a SHA-256 in lower-case hex"},
		{"short", "sha256:ab", &content, `a: expected_hash "sha256:ab" is not a SHA-256 in lower-case hex`},
		{"twice prefixed", "sha256:" + sum, &content, "is not a SHA-256"},
	} {
		err := document.Operation{Path: "a", Content: c.content, ExpectedHash: &c.hash}.CheckHash()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if errors.Is(err, document.ErrHash) != strings.Contains(c.want, document.ErrHash.Error()) {
			t.Errorf("%s: wraps ErrHash wrongly: %v", c.name, err)
		}
	}
	if err := (document.Operation{Content: &content}).CheckHash(); err != nil {
		t.Errorf("no expected hash: %v", err)
	}
	bad := "\xff"
	if err := (document.Operation{Content: &bad, ExpectedHash: &bare}).CheckHash(); err == nil {
		t.Error("content that is not UTF-8: no error")
	}
}
