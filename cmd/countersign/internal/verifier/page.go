// Package verifier makes the page that verifies a ledger in the reader's browser: cmd/verify,
// compiled to WebAssembly, in a worker that can be stopped. The page is one file with everything
// in it, so that it works from a server, from a folder, and when somebody saved it.
//
// Its Content-Security-Policy allows the one script in it by its hash, that script's worker, the
// compiling of WebAssembly, and to read ledger.bundle from beside the page: nothing else from
// anywhere. Everything that is shown goes in as text.
//
// A plain checkout has no such program: the release build puts it into the directory program before it builds
// countersign itself.
package verifier

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/countersign-dev/countersign/report/html"
)

// BundleFile is the name of the ledger's bundle, in the directory of the page.
const BundleFile = "ledger.bundle"

//go:embed verify.js
var script []byte

//go:embed page.html
var files embed.FS

var templates = html.Templates(files, nil)

// A Program is what checks the ledger.
type Program struct {
	// Wasm is cmd/verify, compiled to WebAssembly and compressed by gzip.
	Wasm []byte
	// Exec is Go's own lib/wasm/wasm_exec.js, of the same release of Go.
	Exec []byte
	// Go is that release, such as go1.26.8, and Version that of this program.
	Go, Version string
}

// SHA256 is the hash of the unpacked program, in hex digits.
func (p Program) SHA256() (string, error) {
	r, err := gzip.NewReader(bytes.NewReader(p.Wasm))
	if err != nil {
		return "", fmt.Errorf("unpacking the verifier: %w", err)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, r); err != nil {
		return "", fmt.Errorf("unpacking the verifier: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Command is how anybody builds the same bytes, in the source of that version, and sees their hash.
func (p Program) Command() string {
	return "GOTOOLCHAIN=" + p.Go + " go run ./cmd/countersign/internal/verifier/build ../verifier\ngunzip -c ../verifier/verify.wasm.gz | sha256sum"
}

// Policy is the page's Content-Security-Policy. A worker made of a blob is held to that of the
// page that made it. Trusted types refuse to make markup or code of text.
func Policy() string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src '" + html.HashSource(script) + "' 'wasm-unsafe-eval'",
		"style-src '" + html.HashSource(html.Style()) + "'",
		"worker-src blob:",
		"connect-src 'self'", // BundleFile
		"base-uri 'none'",
		"form-action 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types verifier",
	}, "; ")
}

// Page is the page. Head gives what is around it: Root, Nav, Here and Footer.
func (p Program) Page(head html.Head) ([]byte, error) {
	sum, err := p.SHA256()
	if err != nil {
		return nil, err
	}
	head.Title, head.Alone, head.Policy, head.Script = "Verify the ledger", true, Policy(), script
	text := base64.StdEncoding.EncodeToString // in elements whose type no browser runs
	data := struct{ Version, Go, Sum, Command, Exec, Wasm string }{p.Version, p.Go, sum, p.Command(), text(p.Exec), text(p.Wasm)}
	return html.Layout(head, html.Fill(templates, "verifier", data, nil)), nil
}
