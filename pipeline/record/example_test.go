package record_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record"
)

// The files of a ledger: "git archive refs/agent/ledger | tar x -C testdata/ledger".
const id = "tx_01M8CJ6W6D5JKSZ5P1J7E1GYRH"

func ExampleOpen() {
	r, err := record.Open(os.DirFS("testdata/ledger"), id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.State(), r.Files(), r.PatchID()[:12], "on", r.Base()[:12])
	// Output: completed [greet.txt] 061c35e7a2a1 on 4156d82ef354
}

func ExampleOpen_tampered() {
	_, err := record.Open(changed("testdata/ledger", "apply_result.json", "success", "failure"), id)
	var unsound *record.UnsoundError
	if !errors.As(err, &unsound) {
		log.Fatal(err)
	}
	byFile := slices.ContainsFunc(unsound.Findings, func(f record.Finding) bool { return f.Path == "apply_result.json" })
	fmt.Println(byFile, unsound.Findings[0].String())
	// Output: true L6 apply_result.json: invalid status: "failure"
}

// What a newer program wrote is neither sound nor damaged: update, and ask again.
func ExampleOpen_newer() {
	_, err := record.Open(changed("testdata/ledger", "ledger.json", `"1.0"`, `"2.0"`), id)
	fmt.Println(errors.Is(err, record.ErrNewer))
	// Output: true
}

func ExampleRecord_Verdict() {
	r, err := record.Open(os.DirFS("testdata/ledger"), id)
	if err != nil {
		log.Fatal(err)
	}
	v, err := r.Verdict()
	if errors.Is(err, record.ErrOpen) {
		log.Fatal("what counts is decided when it is applied")
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v.Approved)
	counted := slices.DeleteFunc(v.Decisions, func(d record.Decision) bool { return !d.Counted })
	for _, d := range counted {
		fmt.Println(d.Login, d.Decision, d.Counted)
	}
	// Output:
	// true
	// Ada approve true
}

// Whether the commit that a bot pushed is what somebody approved, and no byte more.
func ExampleRecord_Exactly() {
	r, err := record.Open(os.DirFS("testdata/ledger"), id)
	if err != nil {
		log.Fatal(err)
	}
	before := os.DirFS("testdata/before")
	fmt.Println(r.Exactly(before, os.DirFS("testdata/after")))
	fmt.Println(r.Exactly(before, changed("testdata/after", "README.md", "Greeting", "Welcome")))
	// Output:
	// <nil>
	// README.md changed, and nobody approved that
}

func ExampleAudit() {
	f, err := os.Open("testdata/ledger.gitbundle")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		log.Fatal(err)
	}
	report, err := record.Audit(f, info.Size(), record.Known{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Sound, report.PagesAgree, report.Transactions, report.Findings)
	// Output: true true 1 []
}

func ExampleNeeds() {
	needs, err := record.Needs(os.DirFS("testdata/before"), []string{"greet.txt", ".github/workflows/ci.yml"}, false)
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range needs {
		fmt.Println(n.Kind, n.Required, n.Paths)
	}
	// Output:
	// fileChange 1 []
	// protected_path 1 [.github/workflows/ci.yml]
}

// The bytes that people approved. A ledger without the secrets in them does not have these bytes.
func ExampleRecord_Patch() {
	r, err := record.Open(os.DirFS("testdata/ledger"), id)
	if err != nil {
		log.Fatal(err)
	}
	patch, err := r.Patch()
	if errors.Is(err, record.ErrRedacted) {
		log.Fatal("ask whoever has the patch")
	}
	if err != nil {
		log.Fatal(err)
	}
	id, err := record.PatchID(patch)
	fmt.Println(id == r.PatchID(), err)
	// Output: true <nil>
}

func ExamplePatchID() {
	_, err := record.PatchID([]byte("--- a/greet.txt\n+++ b/greet.txt\n@@ -1 +1 @@\n-hello\n+bye\n"))
	fmt.Println(err != nil) // no canonical bytes: they have Git's header and index line
	// Output: true
}
