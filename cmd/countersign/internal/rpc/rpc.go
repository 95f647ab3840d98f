// Package rpc is a JSON-RPC 2.0 server over two streams, one JSON document a
// line (NDJSON). It knows methods and their parameters, and nothing of what
// they do.
//
//	→ {"id":1,"jsonrpc":"2.0","method":"thread/list"}
//	← {"id":1,"jsonrpc":"2.0","result":{"threads":[]}}
//
// What it promises:
//
//   - Every request gets exactly one answer, and a line that is no request gets
//     an error with the id null; neither stops the server.
//   - A line has at most MaxLine bytes. A longer one is skipped, not kept.
//   - Calls of one key run one after the other, as they came; others run at the
//     same time, at most MaxCalls of them. While that many run, nothing is read.
//   - Requests without an id (notifications) are not carried out: nobody would
//     hear what became of them.
//   - When the input ends, the calls that run are finished and answered first.
package rpc

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

// MaxLine is how many bytes a line may have without its LF.
const MaxLine = 8 << 20

// MaxCalls is how many calls run, or wait for their turn, at the same time.
const MaxCalls = 32

// The error codes of JSON-RPC 2.0, section 5.1.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An Error is what a call is answered with where it has no result. Data may be
// nil. As in all that is sent, the members have the order of canonical JSON.
type Error struct {
	Code    int64  `json:"code"`
	Data    any    `json:"data,omitempty"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Notify sends a notification to the client.
type Notify func(method string, params any) error

// A Server answers the requests of one client.
type Server struct {
	Methods map[string]Method
	// Write sends one document, as JSON without LF, as one line. It is not called
	// twice at the same time.
	Write func(doc json.RawMessage) error
}

// Serve answers what it reads until the input ends or nothing can be written
// any more; then it waits for the calls that still run. It returns nil where the
// input merely ended. ctx is for the methods: it does not end the reading.
func (s *Server) Serve(ctx context.Context, in io.Reader) error {
	c := &conn{methods: s.Methods, write: s.Write, calls: newCalls()}
	r := bufio.NewReaderSize(in, 64<<10)
	line, err := nextLine(r, MaxLine)
	for err == nil && c.broken.Load() == nil {
		c.take(ctx, line)
		line, err = nextLine(r, MaxLine)
	}
	c.calls.running.Wait()
	if broken := c.broken.Load(); broken != nil {
		return fmt.Errorf("writing to the client: %w", *broken)
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading from the client: %w", err)
	}
	return nil
}

// conn is the connection to the client while it is served.
type conn struct {
	methods map[string]Method
	calls   *calls
	writing sync.Mutex // held while a line is written, which a slow client can make long
	write   func(doc json.RawMessage) error
	broken  atomic.Pointer[error] // why nothing can be written any more
}

// take begins to answer a line.
func (c *conn) take(ctx context.Context, line []byte) {
	// Of a line that is too long only the beginning is here: it is not blank.
	if len(line) <= MaxLine && len(bytes.Trim(line, " \t\r")) == 0 {
		return
	}
	req, bad := readRequest(line)
	refuse := func(e *Error) { c.calls.run("", func() { c.reply(req.ID, nil, e) }) }
	if bad != nil {
		refuse(bad)
		return
	}
	if req.ID == nil { // a notification
		return
	}
	method, known := c.methods[req.Method]
	if !known {
		refuse(&Error{Code: CodeMethodNotFound, Message: "Method not found: " + clip(req.Method)})
		return
	}
	do, key, err := method(req.Params)
	if err != nil {
		refuse(&Error{Code: CodeInvalidParams, Message: err.Error()})
		return
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
// Serve tells that the answer could not be sent.
func (c *conn) reply(id, result any, err error) {
	answer := struct {
		Error   *Error          `json:"error,omitempty"`
		ID      any             `json:"id"`
		JSONRPC string          `json:"jsonrpc"`
		Result  json.RawMessage `json:"result,omitempty"`
	}{ID: id, JSONRPC: "2.0"}
	if err == nil {
		answer.Result, err = json.Marshal(result)
	}
	if err != nil {
		answer.Error = &Error{Code: CodeInternal, Message: err.Error()}
		errors.As(err, &answer.Error)
	}
	doc, err := json.Marshal(answer)
	if err != nil {
		panic("rpc: the data of an error: " + err.Error())
	}
	_ = c.send(doc)
}

func (c *conn) notify(method string, params any) error {
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
func (c *conn) send(doc json.RawMessage) error {
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

func newCalls() *calls {
	return &calls{slots: make(chan struct{}, MaxCalls), last: map[string]chan struct{}{}}
}

// enter admits a call, once there is a slot for it. It may run when turn is
// closed, and then calls done. Of the key "" any number run at once.
func (c *calls) enter(key string) (turn <-chan struct{}, done func()) {
	c.slots <- struct{}{}
	c.running.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	before, mine := c.last[key], make(chan struct{})
	if before == nil || key == "" {
		before = make(chan struct{})
		close(before)
	}
	c.last[key] = mine
	return before, func() {
		c.mu.Lock()
		if c.last[key] == mine {
			delete(c.last, key)
		}
		c.mu.Unlock()
		close(mine)
		<-c.slots
		c.running.Done()
	}
}

// run does something in a call's slot and in a call's turn, and does not wait for
// it: a client may write its next request before it reads.
func (c *calls) run(key string, do func()) {
	turn, done := c.enter(key)
	go func() {
		defer done()
		<-turn
		do()
	}()
}
