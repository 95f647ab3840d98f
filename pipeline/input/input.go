// Package input reads the forms in which a change is proposed: a Git diff, a
// patch.json, a Proposal, a recipe, what a working tree holds, and a pull request's
// own diff; and the trace of what an agent did before. It makes the items that
// record them.
//
// # Edits
//
// Some changes are told as texts to look for and texts to put in their place: search and replace blocks,
// calls of agents' edit tools as JSON, and the patches of Codex's tool. Each text must be in its file exactly once; every place that it is at else stands in the
// error. Nothing is guessed: white space counts, and no line is left out. Only where all
// lines of a file end in one way, with a carriage return or without, texts all of whose lines
// end in the other are taken to end them so too.
//
// # Blocks
//
// A block is as aider's models write it (aider.chat/docs/more/edit-formats.html, "diff"):
//
//	greet.go
//	<<<<<<< SEARCH
//		greet(name)
//	=======
//		greet(name, 1)
//	>>>>>>> REPLACE
//
// The path is the last line above that is neither empty nor a fence, without the marks of
// Markdown around it; a block that has none is about the file of the block before. Its
// texts are whole lines. A block that looks for nothing makes a new file.
//
// # Calls
//
// A call is one object, several are an array or a line each:
//
//	{"file_path": "greet.go", "old_string": "greet(name)", "new_string": "greet(name, 1)", "replace_all": true}
//	{"file_path": "new.txt", "content": "hello\n"}
//	{"file_path": "greet.go", "edits": [{"old_string": "a", "new_string": "b"}]}
//
// The names are those of Claude Code's tools Edit, Write and MultiEdit; old_text, oldText
// and old_str, new_text, newText and new_str, path, and file_text, of other tools, mean
// the same. A call may be within {"name": …, "input": …}, or "arguments". Unknown members
// are an error.
package input

import (
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// The kinds of proposal (docs/formats.md).
const (
	KindPatch    = ledger.KindPatch
	KindPack     = "pack"
	KindProposal = ledger.KindProposal
	KindWorktree = ledger.KindWorktree
	KindRecipe   = code.RemoveTodo

	KindPullRequest = ledger.KindPullRequest // a pull request's own diff
)

// What a change came through, other than the command line.
const (
	ViaRPC = "json-rpc"
	ViaMCP = "mcp"
)

// A Change is a proposed change in any form that a review takes. Resolve puts it
// on the tree of the base commit; Raw is what was given, for provenance.
type Change struct {
	Kind     string
	Format   string // of what was given, one of Formats; "" where Kind says it
	Summary  string // the proposer's words, untrusted
	Raw      []byte
	Resolve  func(base fs.FS) (patch.Patchset, error)
	Expands  func(base fs.FS) int64 // how many bytes it makes that are not in Raw as they are, before it is resolved; nil: none
	Needle   string                 // of a recipe
	Source   *ledger.PatchSource    // the document that the change comes from, if it has an id
	Proposal *document.Proposal     // what else it asks for
	Author   *ledger.Author         // whom a mail or a commit names, unverified; nil: nobody
	diffs    []reader               // what Resolve puts on a tree, of a diff
	Messages []string               // of its mails or commits, in their order; untrusted
	Via      string                 // what it came through, ViaRPC or ViaMCP; "" for the command line
	Trace    []any                  // what the proposer did before, as ReadTrace gives it; untrusted

	TraceFormat string // what the trace was read as, one of TraceFormats; "" for steps

	// For: the pull request that the change is for, nil for none. Its head is
	// the base; of KindPullRequest the base is given.
	For      *forge.PullRequest
	Base     string
	Proposer *ledger.Actor // nil: whoever runs this

	RequestedBy []ledger.Requester // who told the proposer to, as far as that is known

	// Replaces is the transaction of no pull request whose place it takes, "" for none, and Because says why.
	Replaces, Because string

	// Target is where it is to be applied, "" for what the Policy says. The working
	// tree is looked at for changes to it alone. It is not recorded.
	Target policy.Target
}

// Computed reports whether the change was not given as a document, but made here.
func (in Change) Computed() bool { return in.Kind == KindWorktree || in.Kind == KindRecipe }

// To is the branch that the pull request of a change is to, "" for none.
func (in Change) To() string {
	if in.For == nil {
		return ""
	}
	return in.For.Base.Branch
}

// Number is that of the pull request that a change is for, 0 for none.
func (in Change) Number() int {
	if in.For == nil {
		return 0
	}
	return in.For.Number
}

// Diff reads a Git diff.
func Diff(raw []byte, summary string) (Change, error) {
	diff, err := gitpatch.Parse(raw)
	if err != nil {
		return Change{}, err
	}
	return Change{Kind: KindPatch, Summary: summary, Raw: raw, Resolve: diff.Resolve, Expands: func(base fs.FS) int64 { return gitpatch.Expands(base, diff) }}, nil
}

// invalid says that a document, "patch.json" or "the proposal", breaks rules of its format.
func invalid(what, try string, broken []canon.Violation) error {
	v, text := broken[0], what+" is not valid: "
	if n := len(broken); n > 1 {
		text = fmt.Sprintf("%s has %d violations, the first is ", what, n)
	}
	if text += v.RuleID; v.Path != "" {
		text += " at " + v.Path
	}
	return &patch.Error{Message: text + ": " + v.Message, Try: try}
}

// Pack reads a patch.json. Unlike pack apply it checks expected_hash.
func Pack(raw []byte, summary string) (Change, error) {
	doc, err := canon.Parse(raw)
	if err != nil {
		return Change{}, &patch.Error{Message: err.Error()}
	}
	p, found := document.ReadPack(doc)
	if len(found) > 0 {
		return Change{}, invalid("patch.json", "countersign patch verify FILE", found)
	}
	ops := make([]fileOp, 0, len(p.Operations))
	for _, o := range p.Operations {
		if err := o.CheckHash(); err != nil {
			return Change{}, &patch.Error{Message: err.Error()}
		}
		ops = append(ops, operation(o.Op, o.Path, o.Content))
	}
	return Change{
		Kind: KindPack, Summary: summary, Raw: raw, Resolve: operations(ops),
		Source: &ledger.PatchSource{ProposalID: p.SourceProposalID, ProposalHash: p.SourceProposalHash},
	}, nil
}

// Proposal reads a Proposal; bundle is the parsed document it must come
// from, nil where none was given, and p says which commands it may name. Its commands, checks and acceptance tests
// travel with the transaction; whatever requires_approval says, the gate stays.
func Proposal(raw []byte, bundle any, p policy.Policy, summary string) (Change, error) {
	doc, err := canon.Parse(raw)
	if err != nil {
		return Change{}, &patch.Error{Message: err.Error()}
	}
	asked, found := document.ReadProposal(doc, document.Strict{Bundle: bundle, HasBundle: bundle != nil, Commands: commandNames(p)})
	if len(found) > 0 {
		return Change{}, invalid("the proposal", "countersign proposal verify FILE", found)
	}
	hash, err := document.HashProposal(doc)
	if err != nil {
		return Change{}, err
	}
	var ops []fileOp
	for _, a := range asked.Files() {
		ops = append(ops, operation(fileOps[a.Type], a.Target, a.Content))
	}
	if summary == "" {
		summary = asked.Summary
	}
	return Change{
		Kind: KindProposal, Summary: summary, Raw: raw, Resolve: operations(ops), Proposal: &asked,
		Source: &ledger.PatchSource{ProposalID: asked.ID, ProposalHash: hash},
	}, nil
}

// commandNames are the commands that the Policy runs or allows, as a Proposal
// writes them.
func commandNames(p policy.Policy) []string {
	var out []string
	for _, c := range p.Commands.Run {
		out = append(out, c.Text())
	}
	for _, c := range p.Commands.Allow {
		out = append(out, c.Text())
	}
	return out
}

var fileOps = map[string]string{
	document.CreateFile: "create", document.ModifyFile: "modify", document.DeleteFile: "delete",
}

// A fileOp writes or deletes a whole file, as patch.json and Proposals do.
type fileOp struct {
	op      string // create, modify or delete
	path    string
	content []byte // nil for a delete
}

func operation(op, path string, content *string) fileOp {
	o := fileOp{op: op, path: path}
	if content != nil {
		o.content = []byte(*content)
	}
	return o
}

// operations makes the Patchset that the operations mean on a base. A new file is a regular one; a
// modified one keeps its mode. An operation that does not fit the base, or a path that is named twice, is
// a *patch.Error.
func operations(ops []fileOp) func(fs.FS) (patch.Patchset, error) {
	return func(base fs.FS) (patch.Patchset, error) {
		t, after := patch.NewTree(base), map[string]*patch.File{}
		for _, o := range ops {
			if _, twice := after[o.path]; twice {
				return patch.Patchset{}, &patch.Error{Path: o.path, Message: "path appears twice in the patch", Try: gitpatch.TryCommit}
			}
			f, err := o.resolve(t)
			if err != nil {
				return patch.Patchset{}, err
			}
			after[o.path] = f
		}
		return t.Between(after)
	}
}

func (o fileOp) resolve(t *patch.Tree) (*patch.File, error) {
	if err := patch.CheckPath(o.path); err != nil {
		return nil, err
	}
	before, err := t.File(o.path)
	switch {
	case err != nil:
		return nil, err
	case o.op == "create" && before != nil:
		return nil, &patch.Error{Path: o.path, Message: "already exists in the base commit", Try: patch.OnHead}
	case o.op == "create":
		return &patch.File{Mode: patch.Regular, Data: o.content}, nil
	case before == nil:
		return nil, &patch.Error{Path: o.path, Message: "does not exist in the base commit", Try: patch.OnHead}
	case o.op == "modify":
		return &patch.File{Mode: before.Mode, Data: o.content}, nil
	case o.op == "delete":
		return nil, nil
	}
	return nil, &patch.Error{Path: o.path, Message: "unknown operation " + patch.Quote(o.op)}
}

// Recipe is the seeds' remove_todo_multi: every line that contains the
// needle is deleted, in the named files, or with none named in all text files
// of the tree. Apply computes it again and refuses if the outcome differs.
func Recipe(needle string, files []string, summary string) (Change, error) {
	if err := code.CheckNeedle(needle); err != nil {
		return Change{}, err
	}
	if summary == "" {
		summary = "remove the lines that contain " + needle
	}
	return Change{
		Kind: KindRecipe, Summary: summary, Raw: []byte(needle), Needle: needle,
		Resolve: func(base fs.FS) (patch.Patchset, error) { return code.RemoveLines(base, needle, files) },
	}, nil
}

// Worktree proposes what a working tree holds beyond HEAD: the files that changed,
// as read returns them: most is how many bytes larger than base the file may be, and what
// it may be is what all of them may be together. Apply then finds the files in place, and reads them back
// against what was approved.
func Worktree(changed []string, read func(name string, base *patch.File, most int64) (*patch.File, error), most int64, summary string) Change {
	return Change{Kind: KindWorktree, Summary: summary, Resolve: func(base fs.FS) (patch.Patchset, error) {
		after := map[string]*patch.File{}
		room := most
		for _, name := range changed {
			if err := patch.CheckPath(name); err != nil {
				return patch.Patchset{}, err
			}
			before, err := patch.Lookup(base, name)
			if err != nil {
				return patch.Patchset{}, err
			}
			f, err := read(name, before, room)
			if err != nil {
				return patch.Patchset{}, err
			}
			after[name] = f
			set := patch.Patchset{Changes: []patch.Change{{Path: name, Before: before, After: f}}}
			if room -= gitpatch.Growth(set); room < 0 {
				return patch.Patchset{}, &gitpatch.TooLargeError{Path: name}
			}
		}
		return patch.NewTree(base).Between(after)
	}}
}
