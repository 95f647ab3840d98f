package patch_test

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// The sample of the package comment.
func ExampleDiffLines() {
	a := patch.Lines([]byte("a\nb\nc\na\nb\nb\na\n"))
	b := patch.Lines([]byte("c\nb\na\nb\na\nc\n"))
	for _, e := range patch.DiffLines(a, b) {
		fmt.Printf("old [%d,%d) → new [%d,%d)\n", e.OldStart, e.OldEnd, e.NewStart, e.NewEnd)
	}
	// Output:
	// old [0,1) → new [0,1)
	// old [2,3) → new [2,2)
	// old [5,6) → new [4,4)
	// old [7,7) → new [5,6)
}

func ExampleLineHunks() {
	a := patch.Lines([]byte("one\ntwo\nthree\nfour\n"))
	b := patch.Lines([]byte("one\ntwo\n3\nfour\n"))
	for _, h := range patch.LineHunks(patch.DiffLines(a, b), len(a), len(b), 1) {
		fmt.Println(h.OldStart, h.OldLines, h.NewStart, h.NewLines)
	}
	// Output:
	// 1 3 1 3
}
