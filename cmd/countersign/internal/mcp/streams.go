package mcp

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// streams are one client's, of which the second stays open. A call that the client
// cancelled gets no answer (MCP, Cancellation), where the SDK would send an error.
type streams struct {
	in  io.Reader
	out io.Writer
}

// Connect is the SDK's connection, without those answers.
func (s streams) Connect(ctx context.Context) (sdk.Connection, error) {
	out := &output{Writer: s.out}
	to := sdk.IOTransport{Reader: io.NopCloser(s.in), Writer: out, MaxLineLength: MaxMessage}
	conn, err := to.Connect(ctx)
	return &connection{Connection: conn, out: out, cancelled: map[jsonrpc.ID]bool{}}, err
}

type connection struct {
	sdk.Connection
	writes sync.Mutex
	out    *output

	mu        sync.Mutex
	cancelled map[jsonrpc.ID]bool // whether it is, of each call without an answer
}

func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, is := m.(*jsonrpc.Request); is && err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		var params sdk.CancelledParams
		switch {
		case r.IsCall():
			c.cancelled[r.ID] = false
		case r.Method == "notifications/cancelled" && json.Unmarshal(r.Params, &params) == nil:
			id, err := jsonrpc.MakeID(params.RequestID)
			if _, called := c.cancelled[id]; called && err == nil {
				c.cancelled[id] = true
			}
		}
	}
	return m, err
}

func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	c.out.drop = false
	if r, is := m.(*jsonrpc.Response); is {
		c.mu.Lock()
		c.out.drop = c.cancelled[r.ID]
		delete(c.cancelled, r.ID)
		c.mu.Unlock()
	}
	return c.Connection.Write(ctx, m)
}

// output drops a message, but no batch of them, which has the answers to other calls too.
type output struct {
	io.Writer
	drop bool
}

func (o *output) Write(line []byte) (int, error) {
	if o.drop && line[0] == '{' {
		return len(line), nil
	}
	return o.Writer.Write(line)
}

func (*output) Close() error { return nil }
