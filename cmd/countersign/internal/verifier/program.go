package verifier

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

// Wasm, Exec and Go are the files of the directory program.
const (
	Wasm = "verify.wasm.gz"
	Exec = "wasm_exec.js"
	Go   = "go-version"
)

//go:embed all:program
var program embed.FS

// ErrNone says that this program was built without the verifier.
var ErrNone = errors.New("this countersign was built without the verifier: releases have it")

var embedded = sync.OnceValues(func() (Program, error) { return read(program) })

// Embedded is the verifier of this version of the program, ErrNone if it was built without.
func Embedded(version string) (Program, error) {
	p, err := embedded()
	p.Version = version
	return p, err
}

func read(files fs.FS) (Program, error) {
	var parts [3][]byte
	for i, name := range []string{Wasm, Exec, Go} {
		data, err := fs.ReadFile(files, "program/"+name)
		if errors.Is(err, fs.ErrNotExist) {
			return Program{}, ErrNone
		}
		if err != nil {
			return Program{}, fmt.Errorf("reading the verifier: %w", err)
		}
		parts[i] = data
	}
	return Program{Wasm: parts[0], Exec: parts[1], Go: strings.TrimSpace(string(parts[2]))}, nil
}
