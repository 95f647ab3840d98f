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
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/sourcegraph/jsonrpc2"
)

// MaxLine is how many bytes a line may have without its LF.
const MaxLine = 8 << 20

// MaxCalls is how many calls run, or wait for their turn, at the same time.
const MaxCalls = 32

// The error codes of JSON-RPC 2.0, section 5.1.
const (
	CodeParse          = jsonrpc2.CodeParseError
	CodeInvalidRequest = jsonrpc2.CodeInvalidRequest
	CodeMethodNotFound = jsonrpc2.CodeMethodNotFound
	CodeInvalidParams  = jsonrpc2.CodeInvalidParams
	CodeInternal       = jsonrpc2.CodeInternalError
)

// An Error is what a call is answered with where it has no result. Data may be
// nil.
type Error struct {
	Code    int64
	Message string
	Data    any
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
// input merely ended.
func (s *Server) Serve(ctx context.Context, in io.Reader) error {
	calls := newCalls()
	l := newLines(in, s.Write, calls)
	conn := jsonrpc2.NewConn(ctx, l, &handler{s.Methods, calls}, jsonrpc2.SetLogger(silent{}))
	<-conn.DisconnectNotify()
	calls.running.Wait()
	return l.failure()
}

// silent drops what the library would print: whatever concerns the client is
// an answer, and nothing else may reach stderr past the program's own door.
type silent struct{}

func (silent) Printf(string, ...any) {}

// handler hands requests to methods. The library calls Handle for one after the
// other.
type handler struct {
	methods map[string]Method
	calls   *calls
}

func (h *handler) Handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	if req.Notif {
		return
	}
	refuse := func(code int64, message string) {
		h.calls.run("", func() { reply(ctx, conn, req.ID, nil, &Error{Code: code, Message: message}) })
	}
	method, known := h.methods[req.Method]
	if !known {
		refuse(CodeMethodNotFound, "Method not found: "+clip(req.Method))
		return
	}
	params, key, err := method.read(req.Params)
	if err != nil {
		refuse(CodeInvalidParams, err.Error())
		return
	}
	h.calls.run(key, func() {
		result, err := method.do(ctx, params, func(method string, params any) error { return conn.Notify(ctx, method, params) })
		reply(ctx, conn, req.ID, result, err)
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

// reply answers a request. That it cannot be sent is told by the stream.
func reply(ctx context.Context, conn *jsonrpc2.Conn, id jsonrpc2.ID, result any, err error) {
	response := &jsonrpc2.Response{ID: id}
	if err == nil {
		err = response.SetResult(result)
	}
	if err != nil {
		response.Error = errorOf(err)
	}
	_ = conn.SendResponse(ctx, response)
}

func errorOf(err error) *jsonrpc2.Error {
	e := &Error{Code: CodeInternal, Message: err.Error()}
	errors.As(err, &e)
	out := &jsonrpc2.Error{Code: e.Code, Message: e.Message}
	if e.Data != nil {
		out.SetError(e.Data)
	}
	return out
}
