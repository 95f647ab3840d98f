package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
)

// nowhere is a console in a directory that is no repository, with a token and what there is on stdin.
func nowhere(t *testing.T, in io.Reader) *console.Console {
	c := console.New(console.Process{
		Dir: t.TempDir(), Stdin: in, Stdout: t.Output(), Stderr: t.Output(), Entropy: strings.NewReader(""),
		Getenv: func(name string) string { return map[string]string{"COUNTERSIGN_TOKEN": "hunter2hunter2"}[name] },
	})
	c.Flags.Dir = "."
	return c
}

// TestServeSaysWhatIsWrongFirst: nobody is served where there is no repository, and nothing is read from them.
func TestServeSaysWhatIsWrongFirst(t *testing.T) {
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"system/capabilities"}` + "\n")
	if err := serveStdio(t.Context(), nowhere(t, in)); !errors.Is(err, gitstore.ErrNotRepository) || in.Len() == 0 {
		t.Errorf("%v, %d bytes left", err, in.Len())
	}
}

// TestFailed: an error is the client's fault where it was refused or waits, but for an apply that failed, and it has the
// exit code of the command, and no secret.
func TestFailed(t *testing.T) {
	wrong := refused("it is %s", "hunter2hunter2")
	for name, c := range map[string]struct {
		err  error
		exit int
		code int64
	}{
		"refused":                {wrong, 2, codeInvalidParams},
		"waits":                  {&console.ExitError{Code: 4, Err: errors.New("it waits")}, 4, codeInvalidParams},
		"denied":                 {&console.ExitError{Code: 5, Err: errors.New("it is denied")}, 5, codeInvalidParams},
		"broken":                 {errors.New("it is hunter2hunter2"), 3, codeInternal},
		"an apply that failed":   {notApplied(wrong), 2, codeInternal},
		"an apply that is wrong": {fmt.Errorf("later: %w", notApplied(wrong)), 2, codeInternal},
	} {
		got, is := errors.AsType[*rpcError]((&call{run: fresh(nowhere(t, nil))}).failed(c.err))
		if !is || got.Code != c.code || strings.Contains(got.Message, "hunter2") || fmt.Sprint(got.Data) != fmt.Sprintf("map[exit:%d]", c.exit) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestToldEvents: a client is told every event once, in order, from where it said that it
// knows them; what it could not be told of is told no second time.
func TestToldEvents(t *testing.T) {
	told := &toldEvents{counts: map[string]int{}}
	var got []string
	tell := func(event json.RawMessage) error { got = append(got, string(event)); return nil }
	step := func(id, events string, first int, want string) {
		t.Helper()
		got = nil
		if err := told.upTo(id, []byte(events), first, tell); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	step("a", "1\n2\n3\n", 2, "3")
	step("a", "1\n2\n3\n", 0, "")
	step("a", "1\n2\n3\n4\n5\n", 0, "4 5")
	step("a", "1\n2\n", 0, "") // an older ledger
	step("a", "1\n2\n3\n4\n5\n6\n", 0, "6")
	step("b", "1\n", 9, "")
	step("b", "1\n2\n", 9, "2")
	if err := told.upTo("b", []byte("1\n2\n3\n4\n"), 0, func(json.RawMessage) error { return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	step("b", "1\n2\n3\n4\n", 0, "4")
}

// TestShared: several calls read whole parts of one source.
func TestShared(t *testing.T) {
	from := &shared{from: strings.NewReader("abcdef")}
	a, b := make([]byte, 3), make([]byte, 4)
	if n, err := from.Read(a); n != 3 || err != nil || string(a) != "abc" {
		t.Errorf("%q %d %v", a, n, err)
	}
	if n, err := from.Read(b); n != 3 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half of what was asked for is no error: %d %v", n, err)
	}
}
