package verifier_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/verifier"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/report/html"
)

// wasm is the smallest program in WebAssembly: it does nothing.
var wasm = []byte("\x00asm\x01\x00\x00\x00")

func pack(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	check(t, err)
	check(t, w.Close())
	return b.Bytes()
}

var check = teststand.Fatal

func write(t testing.TB, p verifier.Program) string {
	t.Helper()
	page, err := p.Page(html.Head{Root: "../", Nav: []html.Link{{Address: "index.html", Text: "Overview"}}, Footer: "A footer."})
	check(t, err)
	return string(page)
}

// TestT76Page: the page has its program, names the program's hash and how to build it, and its
// policy allows the script that is in it and no other.
func TestT76Page(t *testing.T) {
	script, err := os.ReadFile("verify.js")
	check(t, err)
	exec := []byte(`globalThis.Go = 1; "</script><script>alert(1)</script>"`)
	p := verifier.Program{Wasm: pack(t, wasm), Exec: exec, Go: "go1.26.8", Version: "1.2.3<b>"}
	page := write(t, p)
	sum := sha256.Sum256(wasm)
	for _, want := range []string{
		">" + hex.EncodeToString(sum[:]) + "<", "GOTOOLCHAIN=go1.26.8", " go run ./cmd/countersign/internal/verifier/build ", "1.2.3&lt;b&gt;", base64.StdEncoding.EncodeToString(exec), base64.StdEncoding.EncodeToString(p.Wasm),
		"<script>" + string(script) + "</script>", "default-src &#39;none&#39;; script-src &#39;" + html.HashSource(script) + "&#39; &#39;wasm-unsafe-eval&#39;; style-src &#39;sha256-",
		`href="../index.html"`, "A footer.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %.80q", want)
		}
	}
	if n := strings.Count(page, "<script"); n != 3 {
		t.Errorf("the page has %d elements of scripts, want the one that runs and two of data", n)
	}
	p.Wasm = p.Wasm[:len(p.Wasm)-5]
	if _, err := p.Page(html.Head{}); err == nil {
		t.Error("a page is made of half a program")
	}
}

// TestT76Script: the script is short, does not end its own element, and knows no way from text to
// markup or code.
func TestT76Script(t *testing.T) {
	script, err := os.ReadFile("verify.js")
	check(t, err)
	if lines := bytes.Count(script, []byte("\n")); lines > 330 {
		t.Errorf("the script has %d lines, more than 330", lines)
	}
	for _, never := range []string{"</", "<!--", "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function", "setAttribute(\"on", "DOMParser", "createContextualFragment", ".srcdoc", ".href", "import("} {
		if bytes.Contains(script, []byte(never)) {
			t.Errorf("the script has %q", never)
		}
	}
}
