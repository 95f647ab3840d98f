package ledger

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// A checker goes by the log if ReadLog takes the events, as it does in any
// directory that we wrote and nobody touched: that alone proves most rules. If
// not, it walks the events leniently, a line being a JSON object with any
// fields, so that every broken rule is told.
type checker struct {
	dir fs.FS
	rule.Finder
	txID   string
	raw    []byte
	log    *Log         // nil where ReadLog refuses raw
	refuse error        // why it does
	proven bool         // raw is the whole file, and ReadLog takes it
	folds  bool         // transaction.json is what log folds to
	events []looseEvent // what the lenient walk goes over; none where raw is proven
	files  map[string]*file
	modes  bool // dir is of Git, where a file that may be executed is another; elsewhere a disk makes its own modes
}

// A file of the directory, looked up and read once.
type file struct {
	regular, read bool
	data          []byte
	err           error
}

// looseEvent is an event whose fields may be missing or of the wrong type.
type looseEvent struct {
	line    int
	typ     string
	fields  map[string]any
	payload map[string]any
}

func newChecker(dir fs.FS) *checker {
	c := &checker{dir: dir, files: map[string]*file{}}
	var err error
	if c.raw, err = c.read(EventsFile); err != nil {
		c.Add("EMPTY", EventsFile, "cannot be read")
	}
	c.log, c.refuse = ReadLog(c.raw)
	c.proven = err == nil && c.log != nil
	c.readState()
	if err == nil && !c.proven {
		c.readEvents()
	}
	return c
}

// atLine is the path of a finding about one event: the file and its line.
func atLine(n int) string { return fmt.Sprintf("%s:%d", EventsFile, n) }

func (c *checker) readState() {
	raw, err := c.read(TransactionFile)
	if err != nil {
		c.Add("PARSE", TransactionFile, "cannot be read")
		return
	}
	if c.log != nil {
		tx := c.log.Transaction()
		if c.folds = tx.IsWrittenAs(raw); c.folds {
			c.txID = tx.TransactionID
			return
		}
	}
	doc, err := canon.Parse(raw)
	state, ok := doc.(map[string]any)
	if err != nil || !ok {
		c.Add("PARSE", TransactionFile, "is not a JSON object")
		return
	}
	c.txID = text(state, "transaction_id")
}

func (c *checker) readEvents() {
	n := 0
	for line := range bytes.Lines(c.raw) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		doc, err := canon.Parse(line)
		fields, ok := doc.(map[string]any)
		if err != nil || !ok {
			c.Add("PARSE", atLine(n), "is not a JSON object")
			continue
		}
		c.events = append(c.events, looseEvent{n, text(fields, "type"), fields, object(fields, "payload")})
	}
	if n == 0 || len(c.events) == 0 {
		c.Add("EMPTY", EventsFile, "no events")
	}
}

// own: an id of our form, or one event with a chain field, makes the directory
// ours; dropping the chain from a record does not make it a foreign one.
func (c *checker) own() bool {
	if c.proven || CheckID(c.txID) == nil {
		return true
	}
	for _, e := range c.events {
		_, seq := e.fields["seq"]
		_, prev := e.fields["prev"]
		if seq || prev {
			return true
		}
	}
	return false
}

// text returns a string field, "" where it is missing or something else.
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func object(m map[string]any, key string) map[string]any {
	o, _ := m[key].(map[string]any)
	return o
}

// show makes a foreign value safe to print.
func show(s string) string {
	if s == "" {
		return "missing"
	}
	if len(s) > 80 {
		s = s[:80]
	}
	return fmt.Sprintf("%+q", s)
}

// read returns a regular file of the directory. Links are not followed, pipes
// not opened. The bytes are not to be changed.
func (c *checker) read(name string) ([]byte, error) {
	f := c.file(name)
	if !f.regular {
		return nil, fs.ErrNotExist
	}
	if !f.read {
		f.data, f.err = fs.ReadFile(c.dir, name)
		f.read = true
	}
	return f.data, f.err
}

// exists reports whether a path inside the directory is a regular file.
func (c *checker) exists(path string) bool { return c.file(path).regular }

func (c *checker) file(path string) *file {
	if f, known := c.files[path]; known {
		return f
	}
	f := &file{}
	c.files[path] = f
	if fs.ValidPath(path) && !strings.Contains(path, `\`) {
		info, err := fs.Lstat(c.dir, path)
		f.regular = err == nil && info.Mode().IsRegular()
	}
	return f
}
