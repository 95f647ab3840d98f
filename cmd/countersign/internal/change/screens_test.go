package change

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

var update = flag.Bool("update", false, "write testdata/screens anew")

// TestScreens: what a person reads of these errors is a golden file. They are not folded, whatever
// the screen is: a hint is pasted. Package report has the other screens.
func TestScreens(t *testing.T) {
	moved := &patch.Error{Path: "mux.go", Base: true, Cause: &gitpatch.Mismatch{Line: 28, Wants: []byte("type Router struct {\n"), Has: []byte("type Router struct { // human\n")}}
	unfit := func(why review.UnfitError) error {
		why.Patch = moved
		return &unfitError{reviewFlags{patch: "fix.patch"}, console.InFile("fix.patch", &why), &why}
	}
	for name, err := range map[string]error{
		"stale":  unfit(review.UnfitError{Fits: "db9d1d0" + strings.Repeat("a", 33), Back: 1}),
		"done":   unfit(review.UnfitError{Done: true, Since: "1a2b3c4" + strings.Repeat("a", 33)}),
		"in-way": &effect.DirtyError{Files: []string{"extra.txt", "doc.go"}, New: []string{"extra.txt"}},
	} {
		var out bytes.Buffer
		a := console.New(console.Process{Stderr: &out, Getenv: func(string) string { return "" }})
		a.Flags.Dir, a.Flags.LedgerRef, a.Flags.Remote = ".", gitstore.LedgerRef, console.DefaultRemote
		if code := ends(a, err); code != 2 {
			t.Errorf("%s: exit code %d", name, code)
		}
		file := filepath.Join("testdata", "screens", name+".txt")
		if *update {
			check(t, os.WriteFile(file, out.Bytes(), 0o644))
		}
		if want, err := os.ReadFile(file); err != nil || out.String() != string(want) {
			t.Errorf("%s differs; run go test -update and read the difference: %v\n%s", name, err, &out)
		}
	}
}

// ends ends a command about a transaction with an error, as the program does.
func ends(a *console.Console, err error) int {
	cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: a.Does(func(*cobra.Command, []string) (console.Outcome, error) { return console.About("JZEX4MA"), err })}
	a.Args = []string{} // else it takes the test's
	code, _ := a.Run(cmd)
	return code
}

var check = teststand.Fatal
