package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// served is a repository and a client of a server in this process. The clock
// stands still and the entropy is one stream, whoever reads from it.
type served struct {
	playground
	entropy io.Reader
	vars    map[string]string
	flags   []string

	in      io.WriteCloser
	out     *bufio.Reader
	ended   chan int
	errs    *lockedBuffer
	n       int
	events  []string     // notifications, as canonical JSON
	restart bool         // before each call
	said    lockedBuffer // over MCP and stdio
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newServed makes a repository of these files. Its commit is the same each time.
func newServed(t *testing.T, files map[string]string) *served {
	t.Helper()
	s := &served{playground: newSandbox(t, files)}
	s.own = []string{"GIT_AUTHOR_DATE=2026-01-05T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-05T00:00:00Z", "TEST_SEED=serve"}
	s.entropy = scriptEntropy(s.getenv)
	s.vars = map[string]string{"HOME": s.dir, "GIT_CONFIG_NOSYSTEM": "1", "USER": "ada", "PATH": os.Getenv("PATH")}
	s.git("init", "-q", "-b", "main")
	s.git("config", "user.name", "Ada")
	s.git("config", "user.email", "ada@localhost")
	s.commit()
	t.Cleanup(s.stop)
	return s
}

var serveTime = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func (s *served) start() {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	s.in, s.out, s.ended, s.errs = toServer, bufio.NewReaderSize(fromServer, 1<<20), make(chan int, 1), &lockedBuffer{}
	app := console.Process{
		Args: append([]string{"-C", s.repo, "serve", "--stdio"}, s.flags...), Stdin: in, Stdout: out, Stderr: s.errs,
		Getenv: func(name string) string { return s.vars[name] }, Now: func() time.Time { return serveTime }, Entropy: s.entropy,
	}
	ended := s.ended
	go func() {
		code := Main(app)
		out.Close()
		in.Close()
		ended <- code
	}()
}

// stop ends the server's input; it must end without a complaint.
func (s *served) stop() {
	if s.in == nil {
		return
	}
	s.in.Close()
	go func(rest io.Reader) { _, _ = io.Copy(io.Discard, rest) }(s.out)
	if code := <-s.ended; code != 0 || s.errs.String() != "" {
		s.t.Errorf("the server ended with %d: %s", code, s.errs)
	}
	s.in = nil
}

// answer is a response; err is nil where there is a result.
type answer struct {
	ID     any
	Result map[string]any
	Err    *struct {
		Code    int
		Message string
		Data    struct{ Exit int }
	} `json:"error"`
}

// ask makes one call, and keeps the events that come before its answer.
func (s *served) ask(method string, params any) answer {
	s.t.Helper()
	if s.restart {
		s.stop()
	}
	s.send(method, params)
	for {
		if a, ok := s.receive(); ok {
			return a
		}
	}
}

func (s *served) send(method string, params any) {
	s.t.Helper()
	if s.in == nil {
		s.start()
	}
	s.n++
	line, err := canon.Line(map[string]any{"jsonrpc": "2.0", "id": s.n, "method": method, "params": params})
	check(s.t, err)
	_, err = s.in.Write(line)
	check(s.t, err)
}

// receive reads one line; of a notification ok is false.
func (s *served) receive() (a answer, ok bool) {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	check(s.t, err)
	var doc struct {
		Method string
		Params struct{ Event json.RawMessage }
	}
	check(s.t, canonicalLine(line))
	check(s.t, json.Unmarshal([]byte(line), &doc))
	if doc.Method == "event" {
		s.events = append(s.events, string(doc.Params.Event)+"\n")
		return a, false
	}
	check(s.t, json.Unmarshal([]byte(line), &a))
	return a, true
}

// must is ask for a call that succeeds.
func (s *served) must(method string, params any) map[string]any {
	s.t.Helper()
	a := s.ask(method, params)
	if a.Err != nil {
		s.t.Fatalf("%s %v: %+v", method, params, *a.Err)
	}
	return a.Result
}

// refused is ask for a call that fails so.
func (s *served) refused(code int, message, method string, params any) {
	s.t.Helper()
	a := s.ask(method, params)
	if a.Err == nil {
		s.t.Fatalf("%s %v: %v", method, params, a.Result)
	}
	if a.Err.Code != code || !strings.Contains(a.Err.Message, message) {
		s.t.Errorf("%s %v: %d %q, want %d %q", method, params, a.Err.Code, a.Err.Message, code, message)
	}
}

type obj = map[string]any

// thread opens the repository's own thread.
func (s *served) thread() string {
	s.t.Helper()
	return s.must("thread/start", obj{"workspaceRoots": []string{s.repo}})["threadId"].(string)
}

// turn proposes to remove the lines with a needle, and returns the transaction.
func (s *served) turn(params obj) string {
	s.t.Helper()
	return s.must("turn/start", params)["transactionId"].(string)
}

func (s *served) apply(id string) map[string]any {
	s.t.Helper()
	return s.must("apply/execute", obj{"transactionId": id})
}

// askedFor is the id of the one request that an apply asks for.
func askedFor(t *testing.T, applied map[string]any) string {
	t.Helper()
	pending, _ := applied["pendingApprovals"].([]any)
	if applied["ok"] != false || len(pending) != 1 {
		t.Fatalf("%v is not one request", applied)
	}
	return pending[0].(map[string]any)["approval_request_id"].(string)
}

func (s *served) respond(id, request, decision string) map[string]any {
	s.t.Helper()
	return s.must("approval/respond", obj{"transactionId": id, "approvalRequestId": request, "decision": decision})
}

func (s *served) tip() string {
	return strings.TrimSpace(s.git("rev-parse", "refs/agent/ledger"))
}

// recorded are the events of a transaction in the ledger.
func (s *served) recorded(id string) []string {
	return slices.Collect(strings.Lines(s.git("cat-file", "blob", "refs/agent/ledger:"+ledger.Dir(id)+"/events.jsonl")))
}

var todoFiles = map[string]string{"a.go": "package a\n// TODO(bot): x\n", "sub/b.go": "// TODO(bot): y\npackage b\n", "c.txt": "c\n"}

// top is the repository's directory as the program names it.
func (s *served) top() string {
	top, err := filepath.EvalSymlinks(s.repo)
	check(s.t, err)
	return top
}
