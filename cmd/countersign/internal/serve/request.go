package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/mcp"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// nextLine reads one line without its LF, of which the last needs none. methodOf one
// that is longer than most it keeps most+1 bytes and skips the rest.
func nextLine(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		part = bytes.TrimSuffix(part, []byte("\n"))
		line = append(line, part[:min(len(part), most+1-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) && len(line) > 0 {
			err = nil
		}
		return line, err
	}
}

func invalid(format string, args ...any) *rpcError {
	return &rpcError{Code: codeInvalidRequest, Message: "Invalid Request: " + fmt.Sprintf(format, args...)}
}

// maxID is the largest whole number that every JSON reader keeps (RFC 8259,
// section 6), and maxIDText how many bytes an id that is a string may have.
const (
	maxID     = 1<<53 - 1
	maxIDText = 200
)

// A request is a line that asks for something. ID is nil where it is a
// notification, or bad; Params is {} where there are none.
type request struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// readRequest reads a line. Where it is none, the request has the id alone. The
// members of a request are written again before they are decoded: encoding/json
// takes a member in another letter case for the same, and 1.0 for no whole
// number.
func readRequest(line []byte) (request, *rpcError) {
	if len(line) > maxLine {
		return request{}, invalid("the line is longer than %d bytes", maxLine)
	}
	doc, err := canon.Parse(line)
	if err != nil {
		return request{}, &rpcError{Code: codeParse, Message: "Parse error: " + err.Error()}
	}
	given, ok := doc.(map[string]any)
	if _, batch := doc.([]any); batch {
		return request{}, invalid("batches are not taken; send one request a line")
	}
	if !ok {
		return request{}, invalid("a request is an object")
	}
	id, present := given["id"]
	if present && !isID(id) {
		return request{}, invalid("id is a string of at most %d bytes or a whole number from 0 to %d", maxIDText, int64(maxID))
	}
	if given["jsonrpc"] != "2.0" {
		return request{ID: id}, invalid(`jsonrpc is not "2.0"`)
	}
	if _, ok := given["method"].(string); !ok {
		return request{ID: id}, invalid("method is not a string")
	}
	for _, name := range []string{"result", "error"} {
		if _, ok := given[name]; ok {
			return request{ID: id}, invalid("a request has no %s", name)
		}
	}
	members := map[string]any{}
	for _, name := range []string{"id", "method", "params"} {
		if value, ok := given[name]; ok {
			members[name] = value
		}
	}
	clean, err := canon.Marshal(members)
	req := request{Params: json.RawMessage("{}")}
	if err == nil {
		err = json.Unmarshal(clean, &req)
	}
	if err != nil {
		return request{}, invalid("%v", err)
	}
	return req, nil
}

func isID(id any) bool {
	switch id := id.(type) {
	case string:
		return len(id) <= maxIDText
	case float64:
		return id >= 0 && id <= maxID && id == float64(int64(id))
	}
	return false
}

// A rpcMethod reads its parameters, a JSON object, and returns what does the work
// and the key of the call.
type rpcMethod func(params json.RawMessage) (do func(context.Context, notifier) (any, error), key string, err error)

// methodOf makes a method of a function whose parameters are the fields of P, by
// their JSON names. A field is required unless its tag says omitempty; null
// stands for one that is not there. Where P has a method Key() string, calls of
// one key run one after the other.
func methodOf[P any](do func(ctx context.Context, params P, notify notifier) (any, error)) rpcMethod {
	return func(raw json.RawMessage) (func(context.Context, notifier) (any, error), string, error) {
		var p P
		if err := mcp.Decode("params", raw, &p); err != nil {
			return nil, "", err
		}
		key := ""
		if keyed, ok := any(p).(interface{ Key() string }); ok {
			key = keyed.Key()
		}
		return func(ctx context.Context, notify notifier) (any, error) { return do(ctx, p, notify) }, key, nil
	}
}
