package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// maxLine is how many bytes a line may have without its LF.
const maxLine = 8 << 20

// maxCalls is how many calls run, or wait for their turn, at the same time.
const maxCalls = 32

// The error codes of JSON-RPC 2.0, section 5.1.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
)

// An rpcError is what a call is answered with where it has no result. Data may be
// nil. As in all that is sent, the members have the order of canonical JSON.
type rpcError struct {
	Code    int64  `json:"code"`
	Data    any    `json:"data,omitempty"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// notifier sends a notification to the client.
type notifier func(method string, params any) error

// An rpcServer answers the requests of one client over two streams: JSON-RPC 2.0, one JSON document a
// line (NDJSON). It knows methods and their parameters, and nothing of what they do.
//
//	→ {"id":1,"jsonrpc":"2.0","method":"thread/list"}
//	← {"id":1,"jsonrpc":"2.0","result":{"threads":[]}}
//
// What it promises:
//
//   - Every request gets exactly one answer, and a line that is no request gets
//     an error with the id null; neither stops the server.
//   - A line has at most maxLine bytes. A longer one is skipped, not kept.
//   - Calls of one key run one after the other, as they came; others run at the
//     same time, at most maxCalls of them. While that many run, nothing is read.
//   - Requests without an id (notifications) are not carried out: nobody would
//     hear what became of them.
//   - When the input ends, the calls that run are finished and answered first.
type rpcServer struct {
	methods map[string]rpcMethod
	// write sends one document, as JSON without LF, as one line. It is not called
	// twice at the same time.
	write func(doc json.RawMessage) error

	calls   *calls
	writing sync.Mutex            // held while a line is written, which a slow client can make long
	broken  atomic.Pointer[error] // why nothing can be written any more
}

func newRPCServer(methods map[string]rpcMethod, write func(doc json.RawMessage) error) *rpcServer {
	return &rpcServer{methods: methods, write: write, calls: &calls{slots: make(chan struct{}, maxCalls), last: map[string]chan struct{}{}}}
}

// serve answers what it reads until the input ends or nothing can be written
// any more; then it waits for the calls that still run. It returns nil where the
// input merely ended. ctx is for the methods: it does not end the reading.
func (s *rpcServer) serve(ctx context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	line, err := nextLine(r, maxLine)
	for err == nil && s.broken.Load() == nil {
		s.take(ctx, line)
		line, err = nextLine(r, maxLine)
	}
	s.calls.running.Wait()
	if broken := s.broken.Load(); broken != nil {
		return fmt.Errorf("writing to the client: %w", *broken)
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading from the client: %w", err)
	}
	return nil
}

// take begins to answer a line.
func (c *rpcServer) take(ctx context.Context, line []byte) {
	// methodOf a line that is too long only the beginning is here: it is not blank.
	if len(line) <= maxLine && len(bytes.Trim(line, " \t\r")) == 0 {
		return
	}
	req, bad := readRequest(line)
	if bad == nil && req.ID == nil { // a notification
		return
	}
	method, known := c.methods[req.Method]
	if bad == nil && !known {
		bad = &rpcError{Code: codeMethodNotFound, Message: "Method not found: " + clip(req.Method)}
	}
	var do func(context.Context, notifier) (any, error)
	key := ""
	if bad == nil {
		var err error
		if do, key, err = method(req.Params); err != nil {
			bad = &rpcError{Code: codeInvalidParams, Message: err.Error()}
		}
	}
	if bad != nil {
		do = func(context.Context, notifier) (any, error) { return nil, bad }
	}
	c.calls.run(key, func() {
		result, err := do(ctx, c.notify)
		c.reply(req.ID, result, err)
	})
}

// clip keeps a foreign name short enough for a message.
func clip(name string) string {
	const most = 100
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// reply answers a request with its result, or with err where that is not nil.
// serve tells that the answer could not be sent.
func (c *rpcServer) reply(id, result any, err error) {
	answer := struct {
		Error   *rpcError       `json:"error,omitempty"`
		ID      any             `json:"id"`
		JSONRPC string          `json:"jsonrpc"`
		Result  json.RawMessage `json:"result,omitempty"`
	}{ID: id, JSONRPC: "2.0"}
	if err == nil {
		answer.Result, err = json.Marshal(result)
	}
	if err != nil {
		answer.Error = &rpcError{Code: codeInternal, Message: err.Error()}
		errors.As(err, &answer.Error)
	}
	doc, err := json.Marshal(answer)
	if err != nil {
		panic("rpc: the data of an error: " + err.Error())
	}
	_ = c.send(doc)
}

func (c *rpcServer) notify(method string, params any) error {
	message := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		message["params"] = params
	}
	doc, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return c.send(doc)
}

// send writes a line, unless an earlier one could not be written.
func (c *rpcServer) send(doc json.RawMessage) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if broken := c.broken.Load(); broken != nil {
		return *broken
	}
	err := c.write(doc)
	if err != nil {
		c.broken.Store(&err)
	}
	return err
}

// calls keeps those that run in order, and their number within bounds.
type calls struct {
	running sync.WaitGroup
	slots   chan struct{}

	mu   sync.Mutex
	last map[string]chan struct{} // by key: closed when the last call that came is done
}

// run does something in a call's slot, once those of the same key that came before are done, and does not wait for
// it: a client may write its next request before it reads. Of the key "" any number run at once.
func (c *calls) run(key string, do func()) {
	c.slots <- struct{}{}
	c.mu.Lock()
	before, mine := c.last[key], make(chan struct{})
	c.last[key] = mine
	c.mu.Unlock()
	c.running.Go(func() {
		if before != nil && key != "" {
			<-before
		}
		do()
		c.mu.Lock()
		if c.last[key] == mine {
			delete(c.last, key)
		}
		c.mu.Unlock()
		close(mine)
		<-c.slots
	})
}
