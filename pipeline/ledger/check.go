package ledger

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// Check verifies one transaction directory. A directory of this program's
// making (its id has our form, or its events carry seq and prev) is held to I1–I12 and to L1–L7, L9 and
// L10; a foreign one to I1–I12 alone. The rules are in docs/formats.md.
//
// Check never fails on what the directory holds: whatever cannot be read is a
// violation.
func Check(dir fs.FS) []rule.Violation {
	c := newChecker(dir)
	c.invariants()
	if c.own() {
		c.ownRules()
	}
	return c.Sorted()
}

// CheckOwn is Check for a directory that must be of our making, so that a
// tamperer gains nothing by dropping the chain. id is the transaction's.
func CheckOwn(dir fs.FS, id string) []rule.Violation {
	c := newChecker(dir)
	c.invariants()
	c.ownRules()
	if c.txID != id {
		c.Add("I2", TransactionFile, "transaction_id is %s, the directory is %s's", show(c.txID), id)
	}
	return c.Sorted()
}

// checker walks the events leniently: a line is a JSON object with any fields.
type checker struct {
	dir fs.FS
	rule.Finder
	txID   string
	raw    []byte
	events []looseEvent
}

// looseEvent is an event whose fields may be missing or of the wrong type.
type looseEvent struct {
	line    int
	typ     string
	fields  map[string]any
	payload map[string]any
}

func newChecker(dir fs.FS) *checker {
	c := &checker{dir: dir}
	c.readState()
	c.readEvents()
	return c
}

// at is the path of a finding about one event: the file and its line.
func at(e looseEvent) string { return fmt.Sprintf("%s:%d", EventsFile, e.line) }

func (c *checker) readState() {
	raw, err := c.read(TransactionFile)
	if err != nil {
		c.Add("PARSE", TransactionFile, "cannot be read")
		return
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
	var err error
	if c.raw, err = c.read(EventsFile); err != nil {
		c.Add("EMPTY", EventsFile, "cannot be read")
		return
	}
	n := 0
	for line := range bytes.Lines(c.raw) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		doc, err := canon.Parse(line)
		fields, ok := doc.(map[string]any)
		if err != nil || !ok {
			c.Add("PARSE", fmt.Sprintf("%s:%d", EventsFile, n), "is not a JSON object")
			continue
		}
		payload, _ := fields["payload"].(map[string]any)
		c.events = append(c.events, looseEvent{n, text(fields, "type"), fields, payload})
	}
	if n == 0 || len(c.events) == 0 {
		c.Add("EMPTY", EventsFile, "no events")
	}
}

// own: an id of our form, or one event with a chain field, makes the directory
// ours; dropping the chain from a record does not make it a foreign one.
func (c *checker) own() bool {
	if CheckID(c.txID) == nil {
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
// not opened.
func (c *checker) read(name string) ([]byte, error) {
	if !c.exists(name) {
		return nil, fs.ErrNotExist
	}
	return fs.ReadFile(c.dir, name)
}

// Foreign tells whether Check judges a directory as another program's, by
// I1–I12 alone.
func Foreign(dir fs.FS) bool { return !newChecker(dir).own() }

// exists tells whether a path inside the directory is a regular file.
func (c *checker) exists(path string) bool {
	if !fs.ValidPath(path) || strings.Contains(path, `\`) {
		return false
	}
	info, err := fs.Lstat(c.dir, path)
	return err == nil && info.Mode().IsRegular()
}
