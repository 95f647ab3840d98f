package sshsig

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Allowed is a list of who may sign, with which keys. The zero Allowed allows
// nobody. It is safe for use by several goroutines.
type Allowed struct {
	keys map[string][]signerLine // by the public key's bytes, in the file's order
}

// A LineError is what is wrong with one line of a file of allowed signers.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong, without the line.
func (e *LineError) Unwrap() error { return e.Err }

// ParseAllowedSigners reads a file of allowed signers (ssh-keygen(1), ALLOWED
// SIGNERS). It is stricter than ssh-keygen, which passes over lines that it
// cannot read: every such line is a [LineError], and all of them are joined.
// See the package comment for the form of a line.
func ParseAllowedSigners(data []byte) (Allowed, error) {
	a := Allowed{keys: map[string][]signerLine{}}
	var errs []error
	number := 0
	for text := range bytes.SplitSeq(data, []byte("\n")) {
		number++
		trimmed := strings.TrimLeft(strings.TrimSuffix(string(text), "\r"), blank)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		line, err := parseSignerLine(trimmed)
		if err != nil {
			errs = append(errs, &LineError{number, err})
			continue
		}
		line.number = number
		blob := string(line.key.Marshal())
		a.keys[blob] = append(a.keys[blob], line)
	}
	if len(errs) > 0 {
		return Allowed{}, errors.Join(errs...)
	}
	return a, nil
}
