package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// load is a directory in memory.
func load(dir string) fstest.MapFS {
	out, tree := fstest.MapFS{}, os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(tree, name)
		out[name] = &fstest.MapFile{Data: raw, Mode: 0o644}
		return err
	})
	if err != nil {
		panic(err)
	}
	return out
}

// changed is a directory in which each file of a name has another text in place of one.
func changed(dir, name, from, to string) fs.FS {
	out, hit := load(dir), false
	for at, f := range out {
		if path.Base(at) == name && bytes.Contains(f.Data, []byte(from)) {
			f.Data, hit = bytes.Replace(f.Data, []byte(from), []byte(to), 1), true
		}
	}
	if !hit {
		panic(name + " has no " + from)
	}
	return out
}

func open(t *testing.T) *record.Record {
	t.Helper()
	r, err := record.Open(os.DirFS("testdata/ledger"), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestT12Exactly: whatever else a commit does, or does not do, is told.
func TestT12Exactly(t *testing.T) {
	r := open(t)
	for name, edit := range map[string]func(before, after fstest.MapFS){
		"the patched file is otherwise":  func(_, after fstest.MapFS) { after["greet.txt"].Data = []byte("hello, moon\n") },
		"it has another line end":        func(_, after fstest.MapFS) { after["greet.txt"].Data = []byte("hello, world\r\n") },
		"it became executable":           func(_, after fstest.MapFS) { after["greet.txt"].Mode = 0o755 },
		"it is a link":                   func(_, after fstest.MapFS) { after["greet.txt"].Mode = fs.ModeSymlink | 0o777 },
		"it is gone":                     func(_, after fstest.MapFS) { delete(after, "greet.txt") },
		"the patch is not applied":       func(before, after fstest.MapFS) { after["greet.txt"] = before["greet.txt"] },
		"another file changed":           func(_, after fstest.MapFS) { after["README.md"].Data = []byte("x") },
		"another file became executable": func(_, after fstest.MapFS) { after["README.md"].Mode = 0o755 },
		"another file is gone":           func(_, after fstest.MapFS) { delete(after, "README.md") },
		"there is another file":          func(_, after fstest.MapFS) { after["x/y"] = &fstest.MapFile{Mode: 0o644} },
		"there is a link more": func(_, after fstest.MapFS) {
			after["l"] = &fstest.MapFile{Data: []byte("README.md"), Mode: fs.ModeSymlink | 0o777}
		},
		"the tree before is another":      func(before, _ fstest.MapFS) { before["greet.txt"].Data = []byte("hi\n") },
		"the tree before has a file less": func(before, _ fstest.MapFS) { delete(before, "README.md") },
		"there is a submodule that is not checked out": func(_, after fstest.MapFS) {
			after["sub"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		},
		"both have a submodule that is not checked out": func(before, after fstest.MapFS) {
			before["sub"], after["sub"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}, &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		},
		"both have a submodule that is checked out": func(before, after fstest.MapFS) {
			before["sub/.git"], after["sub/.git"] = &fstest.MapFile{Data: []byte("gitdir: x\n")}, &fstest.MapFile{Data: []byte("gitdir: x\n")}
			before["sub/f"], after["sub/f"] = &fstest.MapFile{}, &fstest.MapFile{}
		},
		"a file became two that differ in case": func(before, after fstest.MapFS) { after["readme.md"] = after["README.md"] },
		"the patched file was executable":       func(before, _ fstest.MapFS) { before["greet.txt"].Mode = 0o755 },
		"both have what is no file": func(before, after fstest.MapFS) {
			before["s"], after["s"] = &fstest.MapFile{Mode: fs.ModeDevice}, &fstest.MapFile{Mode: fs.ModeDevice}
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := load("testdata/before"), load("testdata/after")
			if err := r.Exactly(before, after); err != nil {
				t.Fatal(err)
			}
			if edit(before, after); r.Exactly(before, after) == nil {
				t.Error("it is taken for what was approved")
			}
		})
	}
	before, after := load("testdata/before"), load("testdata/after")
	for _, tree := range []fstest.MapFS{before, after} {
		tree["same"] = &fstest.MapFile{Data: []byte("README.md"), Mode: fs.ModeSymlink | 0o777}
		tree[".git/HEAD"] = &fstest.MapFile{Data: []byte("x")}
	}
	after[".git/index"] = &fstest.MapFile{Data: []byte("y")}
	if err := r.Exactly(before, after); err != nil {
		t.Errorf("links that are the same, and a .git: %v", err)
	}
	after["same"].Data = []byte("greet.txt")
	if r.Exactly(before, after) == nil {
		t.Error("a link may lead elsewhere")
	}
}

// TestT12ExactlyRedacted: a patch whose secrets are in the commit alone is compared as any other, and so are
// renames, modes and binary files.
func TestT12ExactlyRedacted(t *testing.T) {
	r, err := record.Open(os.DirFS("testdata/redacted"), "tx_01M8CQHJFS8FCN03CWFP0MB9A0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Patch(); !errors.Is(err, record.ErrRedacted) {
		t.Error(err)
	}
	trees := func() (before, after fstest.MapFS) {
		file := func(text string, mode fs.FileMode) *fstest.MapFile {
			return &fstest.MapFile{Data: []byte(text), Mode: mode}
		}
		before, after = fstest.MapFS{}, fstest.MapFS{}
		for _, tree := range []fstest.MapFS{before, after} {
			tree["link"], tree["other"] = file("a.txt", fs.ModeSymlink|0o777), file("x", 0o644)
		}
		before["a.txt"], after["a.txt"] = file("a\nb\n", 0o644), file("a\n"+teststand.Samples()[0].Value+"\n", 0o644)
		before["b.bin"], after["b.bin"] = file("\x00bin", 0o644), file("\x00new", 0o644)
		before["run"], after["run"] = file("#!/bin/sh\n", 0o644), file("#!/bin/sh\n", 0o755)
		before["d/old"], after["d/new"] = file("moved\n", 0o644), file("moved\n", 0o644)
		return before, after
	}
	if err := r.Exactly(trees()); err != nil {
		t.Error(err)
	}
	for want, edits := range map[string][]func(before, after fstest.MapFS){
		"a.txt is not as it was approved": {
			func(_, after fstest.MapFS) {
				after["a.txt"].Data = []byte("a\n" + teststand.Samples()[1].Value + "\n")
			},
			func(_, after fstest.MapFS) { after["a.txt"].Data = []byte("a\n<REDACTED:aws-access-token>\n") },
		},
		"b.bin is not as it was approved":            {func(_, after fstest.MapFS) { after["b.bin"].Data = []byte("\x00neu") }},
		"b.bin was not before what the patch is for": {func(before, _ fstest.MapFS) { before["b.bin"].Data = []byte("\x00ban") }},
		"d/new was not before what the patch is for": {func(before, after fstest.MapFS) { before["d/new"] = after["d/new"] }},
		"d/old is not as it was approved":            {func(before, after fstest.MapFS) { after["d/old"] = before["d/old"] }},
		"d/old changed, and nobody approved that":    {func(_, after fstest.MapFS) { after["d/old"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755} }},
		"other changed, and nobody approved that":    {func(_, after fstest.MapFS) { after["other"].Mode = 0o755 }},
		"new changed, and nobody approved that":      {func(_, after fstest.MapFS) { after["new"] = after["other"] }},
		"the patched files, or their modes, did not change as it was approved": {
			func(_, after fstest.MapFS) { after["run"].Mode = 0o644 },
			func(_, after fstest.MapFS) { after["a.txt"].Mode = 0o755 },
		},
	} {
		for _, edit := range edits {
			before, after := trees()
			if edit(before, after); fmt.Sprint(r.Exactly(before, after)) != want {
				t.Errorf("%v, want %s", r.Exactly(before, after), want)
			}
		}
	}
}

// TestNewer: what a newer program wrote is neither opened nor called unsound.
func TestNewer(t *testing.T) {
	events := load("testdata/ledger")
	for name, f := range events {
		if path.Base(name) == "events.jsonl" {
			lines := bytes.SplitAfter(f.Data, []byte("\n"))
			at := len(lines) - 2 // the last one, which no other names
			lines[at] = bytes.Replace(lines[at], []byte(`{"payload"`), []byte(`{"needs_version":"1.1","payload"`), 1)
			f.Data = bytes.Join(lines, nil)
		}
	}
	for name, tree := range map[string]fs.FS{
		"the ledger": changed("testdata/ledger", "ledger.json", `"1.0"`, `"2.0"`),
		"an event":   events,
	} {
		var unsound *record.UnsoundError
		if _, err := record.Open(tree, id); !errors.Is(err, record.ErrNewer) || errors.As(err, &unsound) || !strings.Contains(err.Error(), "written by a newer countersign, needs at least ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := record.Needs(fstest.MapFS{".github/countersign.yml": {Data: []byte("version: 2\n")}}, nil, false); !errors.Is(err, record.ErrNewer) {
		t.Errorf("the Policy: %v", err)
	}
}

// TestNeeds: an owner is somebody, and no path is passed over.
func TestNeeds(t *testing.T) {
	tree := fstest.MapFS{".github/countersign.yml": {Data: []byte("protected: [{paths: [a], owners: true}]\n")}}
	needs, err := record.Needs(tree, []string{"a"}, false)
	if err != nil || len(needs) != 2 || !needs[1].Owners {
		t.Errorf("%+v, %v", needs, err)
	}
	for _, name := range []string{"", "/a", "./a", "x/../a", "a/", `x\a`} {
		if needs, err := record.Needs(tree, []string{"b", name}, false); err == nil {
			t.Errorf("%q: %+v", name, needs)
		}
	}
}

// TestT12Unsound: of a record that was tampered with, or lacks anything, nothing is told.
func TestT12Unsound(t *testing.T) {
	whole := load("testdata/ledger")
	open := 0
	for name := range whole {
		if !strings.Contains(name, id) || path.Base(name) == "README.md" || strings.HasSuffix(name, "/"+id) {
			continue
		}
		open++
		for what, edit := range map[string]func(fstest.MapFS){
			"gone":    func(tree fstest.MapFS) { delete(tree, name) },
			"changed": func(tree fstest.MapFS) { tree[name].Data = append(bytes.Clone(tree[name].Data), ' ') },
			"empty":   func(tree fstest.MapFS) { tree[name].Data = nil },
			"a link":  func(tree fstest.MapFS) { tree[name].Mode = fs.ModeSymlink | 0o777 },
		} {
			tree := load("testdata/ledger")
			if edit(tree); len(whole[name].Data) == 0 {
				continue
			}
			if _, err := record.Open(tree, id); err == nil {
				t.Errorf("%s is %s, and the record is opened", name, what)
			}
		}
	}
	if open < 8 {
		t.Errorf("%d files were tried", open)
	}
	for _, id := range []string{"", "x", "../" + id, id[:len(id)-1] + "0"} {
		if _, err := record.Open(whole, id); err == nil {
			t.Errorf("%q is opened", id)
		}
	}
}

// TestPatch: the bytes are those that hash to the number, which people approved.
func TestPatch(t *testing.T) {
	r := open(t)
	raw, err := r.Patch()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := record.PatchID(raw); err != nil || got != r.PatchID() {
		t.Errorf("%s, %v, want %s", got, err, r.PatchID())
	}
	if len(r.Base()) != 40 {
		t.Errorf("the base is %q", r.Base())
	}
}

// TestKnown: what the auditor knows holds the bundle to it.
func TestKnown(t *testing.T) {
	raw, err := os.ReadFile("testdata/ledger.gitbundle")
	if err != nil {
		t.Fatal(err)
	}
	audit := func(raw []byte, k record.Known) (record.Report, error) {
		return record.Audit(bytes.NewReader(raw), int64(len(raw)), k)
	}
	report, err := audit(raw, record.Known{})
	if err != nil || !report.Sound || report.Commits < 4 {
		t.Fatalf("%+v, %v", report, err)
	}
	if again, err := audit(raw, record.Known{Tip: report.Tip, Ref: "refs/agent/ledger"}); err != nil || !again.Sound {
		t.Errorf("%+v, %v", again, err)
	}
	if other, err := audit(raw, record.Known{Tip: strings.Repeat("1", 40)}); err != nil || other.Sound {
		t.Errorf("a tip that is not in it: %+v, %v", other, err)
	}
	if unsigned, err := audit(raw, record.Known{Signers: "a@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJl3dIeudNqd0DPMRD6OIh65tjkxFNOtwGcWB2gCgPhk\n"}); err != nil || unsigned.Sound {
		t.Errorf("nobody signed: %+v, %v", unsigned, err)
	}
	if blank, err := audit(raw, record.Known{Signers: " "}); err != nil || blank.Sound || blank.Findings[0].Commit == "" {
		t.Errorf("no signer: %+v, %v", blank, err)
	}
	for _, k := range []record.Known{{Ref: "refs/agent/other"}, {Tip: "main"}, {Signers: "x"}, {Ref: " "}, {Tip: " "}, {Tip: strings.Repeat("0", 40)}} {
		if r, err := audit(raw, k); err == nil {
			t.Errorf("%+v: %+v", k, r)
		}
	}
	if _, err := audit(raw[:len(raw)/2], record.Known{}); err == nil {
		t.Error("half a bundle is read")
	}
	if _, err := record.Open(os.DirFS("testdata/ledger"), id[:len(id)-1]+"J"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := record.Open(fstest.MapFS{}, id); err == nil {
		t.Error("nothing is a ledger")
	}
}
