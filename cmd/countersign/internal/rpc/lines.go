package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// lines is the library's stream of objects: it answers by itself whatever is no
// request, so that the library, which gives up at the first bad object, sees
// none.
type lines struct {
	in    *bufio.Reader
	send  func(json.RawMessage) error
	calls *calls

	writing sync.Mutex // held while a line is written, which a slow client can make long

	mu     sync.Mutex
	broken error // why nothing can be written any more
	read   error // why nothing can be read any more, but for the input's end
}

var _ jsonrpc2.ObjectStream = (*lines)(nil)

func newLines(in io.Reader, send func(json.RawMessage) error, calls *calls) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), send: send, calls: calls}
}

// ReadObject reads the next request into v, the library's message.
func (l *lines) ReadObject(v any) error {
	for {
		line, err := nextLine(l.in, MaxLine)
		if l.failed() != nil {
			l.calls.running.Wait()
			return io.EOF
		}
		var bad *Error
		if err != nil && !errors.As(err, &bad) {
			l.end(err)
			return io.EOF
		}
		if bad == nil && len(bytes.Trim(line, " \t\r")) == 0 {
			continue
		}
		var request []byte
		if bad == nil {
			request, bad = readRequest(line)
		}
		if bad == nil {
			return json.Unmarshal(request, v)
		}
		l.calls.run("", func() { l.refuse(bad) })
	}
}

// end waits for the calls that run: the library closes the connection after it.
func (l *lines) end(err error) {
	l.calls.running.Wait()
	if !errors.Is(err, io.EOF) {
		l.mu.Lock()
		l.read = err
		l.mu.Unlock()
	}
}

// nextLine reads one line without its LF, of which the last needs none. One
// that is longer than most is skipped, and is an *Error.
func nextLine(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for size := 0; ; {
		part, err := in.ReadSlice('\n')
		size += len(bytes.TrimSuffix(part, []byte("\n")))
		if size <= most {
			line = append(line, part...)
		} else {
			line = nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (size == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		case size > most:
			return nil, invalid("the line is longer than %d bytes", most)
		}
		return bytes.TrimSuffix(line, []byte("\n")), nil
	}
}

func invalid(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidRequest, Message: "Invalid Request: " + fmt.Sprintf(format, args...)}
}

// maxID is the largest whole number that every JSON reader keeps (RFC 8259,
// section 6), and maxIDText how many bytes an id that is a string may have.
const (
	maxID     = 1<<53 - 1
	maxIDText = 200
)

// readRequest reads a line, and writes it again with the members of a request
// alone and numbers in one form: the library takes a member in another letter
// case for the same, and gives up at an id such as 1.0. Data of the error is the
// request's id where it has a good one.
func readRequest(line []byte) ([]byte, *Error) {
	doc, err := canon.Parse(line)
	if err != nil {
		return nil, &Error{Code: CodeParse, Message: "Parse error: " + err.Error()}
	}
	given, ok := doc.(map[string]any)
	if _, batch := doc.([]any); batch {
		return nil, invalid("batches are not taken; send one request a line")
	}
	if !ok {
		return nil, invalid("a request is an object")
	}
	id, present := given["id"]
	if present && !isID(id) {
		return nil, invalid("id is a string of at most %d bytes or a whole number from 0 to %d", maxIDText, int64(maxID))
	}
	if bad := checkMembers(given); bad != nil {
		bad.Data = id
		return nil, bad
	}
	request := map[string]any{}
	for _, name := range []string{"id", "method", "params"} {
		if value, ok := given[name]; ok {
			request[name] = value
		}
	}
	out, err := canon.Marshal(request)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return out, nil
}

func checkMembers(request map[string]any) *Error {
	if request["jsonrpc"] != "2.0" {
		return invalid(`jsonrpc is not "2.0"`)
	}
	if _, ok := request["method"].(string); !ok {
		return invalid("method is not a string")
	}
	for _, name := range []string{"result", "error"} {
		if _, ok := request[name]; ok {
			return invalid("a request has no %s", name)
		}
	}
	return nil
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

// refuse answers a line that is no request.
func (l *lines) refuse(e *Error) {
	_ = l.write(map[string]any{
		"jsonrpc": "2.0", "id": e.Data, "error": map[string]any{"code": e.Code, "message": e.Message},
	})
}

// WriteObject sends what the library made.
func (l *lines) WriteObject(v any) error { return l.write(v) }

func (l *lines) write(v any) error {
	doc, err := json.Marshal(v)
	if err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.failed(); err != nil {
		return err
	}
	if err = l.send(doc); err != nil {
		l.mu.Lock()
		l.broken = err
		l.mu.Unlock()
	}
	return err
}

// failed is why nothing can be written.
func (l *lines) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// failure is what ended the stream, nil where the input merely did.
func (l *lines) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return fmt.Errorf("writing to the client: %w", l.broken)
	}
	if l.read != nil {
		return fmt.Errorf("reading from the client: %w", l.read)
	}
	return nil
}

// Close leaves the input alone: it is the program's, and nobody waits for it.
func (l *lines) Close() error { return nil }
