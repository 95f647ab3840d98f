// Build compiles cmd/verify to WebAssembly and puts it where package verifier embeds it, with the
// script of the same Go that runs it. It is run at the top of a checkout, before the program itself
// is built:
//
//	go run ./cmd/countersign/internal/verifier/build
//
// The same source and Go give the same bytes on any machine. With the name of a folder it puts them
// there.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	embedded "github.com/countersign-dev/countersign/cmd/countersign/internal/verifier"
)

// Functions are inlined (no -l) only where most of the time goes: the tables that tell which lines of which functions
// are where would be a tenth of the program. A function that is inlined elsewhere counts by the package that has it. Without
// GOENV=off, an empty variable has the value that "go env -w" gave it.
var (
	buildFlags = append([]string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-gcflags=all=-l"}, inlined(`
		runtime internal/runtime/maps internal/runtime/atomic internal/runtime/sys internal/runtime/math internal/runtime/gc
		internal/abi internal/goarch internal/bytealg internal/byteorder internal/stringslite internal/race internal/sync sync sync/atomic
		bytes strings slices cmp path math/bits unicode/utf8 encoding/binary hash/adler32 compress/flate github.com/pjbgf/... reflect
		crypto/sha256 crypto/internal/fips140/sha256 encoding/hex
		./pipeline/record/canon ./gitstore/packfile ./gitstore/lineage`)...)
	buildEnvironment = []string{"GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=", "GOWASM=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off", "GOENV=off"}
)

func inlined(packages string) (flags []string) {
	for p := range strings.FieldsSeq(packages) {
		flags = append(flags, "-gcflags="+p+"=")
	}
	return flags
}

const folder = "cmd/countersign/internal/verifier/program"

func main() {
	to := folder
	if len(os.Args) > 1 {
		to = os.Args[1]
	}
	size, err := build(to)
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifier:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d bytes\n", filepath.Join(to, embedded.Wasm), size)
}

// build returns the size of the compressed program.
func build(to string) (int, error) {
	env, err := run("go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return 0, err
	}
	root, version, ok := strings.Cut(strings.TrimSpace(string(env)), "\n")
	if !ok {
		return 0, fmt.Errorf("go env says %q", env)
	}
	script, err := os.ReadFile(filepath.Join(root, "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return 0, err
	}
	wasm, err := compile()
	if err != nil {
		return 0, err
	}
	packed, err := pack(wasm)
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return 0, err
	}
	for name, data := range map[string][]byte{embedded.Wasm: packed, embedded.Exec: script, embedded.Go: []byte(version + "\n")} {
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			return 0, err
		}
	}
	return len(packed), nil
}

// compile returns the program, of which Go's linker tells the memory in many pieces.
func compile() (wasm []byte, err error) {
	dir, err := os.MkdirTemp("", "countersign-verifier-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out := filepath.Join(dir, "verify.wasm")
	if _, err := run("go", append(append([]string{"build"}, buildFlags...), "-o", out, "./cmd/verify")...); err != nil {
		return nil, err
	}
	if wasm, err = os.ReadFile(out); err != nil {
		return nil, err
	}
	return mergeSegments(wasm)
}

func run(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), buildEnvironment...)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}

func pack(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
