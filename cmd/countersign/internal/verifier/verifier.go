// Package verifier holds cmd/verify, compiled to WebAssembly, for the page that verifies a ledger
// in a browser. A plain checkout has no such program: the release build puts it into the directory
// program before it builds countersign itself.
package verifier

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/report/verifier"
)

// Wasm, Exec and Go are the files of the directory program.
const (
	Wasm = "verify.wasm.gz"
	Exec = "wasm_exec.js"
	Go   = "go-version"
)

//go:embed all:program
var files embed.FS

// ErrNone says that this program was built without the verifier.
var ErrNone = errors.New("this countersign was built without the verifier: releases have it")

var embedded = sync.OnceValues(func() (verifier.Program, error) { return read(files) })

// Program is the verifier of this version of the program, ErrNone if it was built without.
func Program(version string) (verifier.Program, error) {
	p, err := embedded()
	p.Version = version
	return p, err
}

func read(files fs.FS) (verifier.Program, error) {
	var parts [3][]byte
	for i, name := range []string{Wasm, Exec, Go} {
		data, err := fs.ReadFile(files, "program/"+name)
		if errors.Is(err, fs.ErrNotExist) {
			return verifier.Program{}, ErrNone
		}
		if err != nil {
			return verifier.Program{}, fmt.Errorf("reading the verifier: %w", err)
		}
		parts[i] = data
	}
	return verifier.Program{Wasm: parts[0], Exec: parts[1], Go: strings.TrimSpace(string(parts[2]))}, nil
}
