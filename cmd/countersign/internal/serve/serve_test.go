package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rpc"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// failing is a program whose repository cannot be opened.
type failing struct {
	Program
	err     error
	refused bool
	closed  *int
}

func (f failing) Fresh() Program { return f }

func (f failing) Open() (*pipeline.Runner, error) { return nil, f.err }

func (f failing) Close() error { *f.closed++; return nil }

func (f failing) Explain(err error) (int, bool, secret.Redacted) {
	return 2, f.refused, secret.Default().Redact(strings.ReplaceAll(err.Error(), "hunter2", "***"))
}

// TestServeSaysWhatIsWrongFirst: nobody is served by a program that cannot open its
// repository, and nothing is read from them.
func TestServeSaysWhatIsWrongFirst(t *testing.T) {
	none := errors.New("no repository here")
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"system/capabilities"}` + "\n")
	closed := 0
	err := Serve(t.Context(), failing{err: none, closed: &closed}, "1", in, func(json.RawMessage) error { t.Error("answered"); return nil })
	if !errors.Is(err, none) || in.Len() == 0 || closed != 1 {
		t.Errorf("%v, %d bytes left, closed %d times", err, in.Len(), closed)
	}
}

// TestFailed: an error is what the Program says of it: the client's fault where it was
// refused, but for an apply that failed, and with the exit code of the command.
func TestFailed(t *testing.T) {
	wrong := errors.New("it is hunter2")
	for name, c := range map[string]struct {
		err     error
		refused bool
		code    int64
	}{
		"refused":                {wrong, true, rpc.CodeInvalidParams},
		"broken":                 {wrong, false, rpc.CodeInternal},
		"an apply that failed":   {&applyError{wrong}, true, rpc.CodeInternal},
		"an apply that is wrong": {fmt.Errorf("later: %w", &applyError{wrong}), true, rpc.CodeInternal},
	} {
		var got *rpc.Error
		err := (&call{Program: failing{refused: c.refused}}).failed(c.err)
		if !errors.As(err, &got) || got.Code != c.code || strings.Contains(got.Message, "hunter2") || fmt.Sprint(got.Data) != "map[exit:2]" {
			t.Errorf("%s: %+v", name, err)
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
	from := Shared(strings.NewReader("abcdef"))
	a, b := make([]byte, 3), make([]byte, 4)
	if n, err := from.Read(a); n != 3 || err != nil || string(a) != "abc" {
		t.Errorf("%q %d %v", a, n, err)
	}
	if n, err := from.Read(b); n != 3 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half of what was asked for is no error: %d %v", n, err)
	}
}
