// Package verifier makes the page that verifies a ledger in the reader's browser: cmd/verify,
// compiled to WebAssembly, in a worker that can be stopped. The page is one file with everything
// in it, so that it works from a server, from a folder, and when somebody saved it.
//
// Its Content-Security-Policy allows the one script in it by its hash, that script's worker, the
// compiling of WebAssembly, and to read ledger.bundle from beside the page: nothing else from
// anywhere. Everything that is shown goes in as text.
package verifier

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/countersign-dev/countersign/report/html"
)

// BundleFile is the name of the ledger's bundle, in the directory of the page.
const BundleFile = "ledger.bundle"

// maxProgram bounds the unpacked program, in bytes.
const maxProgram = 64 << 20

//go:embed verify.js
var script []byte

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
	n, err := io.Copy(hash, io.LimitReader(r, maxProgram+1))
	if err != nil {
		return "", fmt.Errorf("unpacking the verifier: %w", err)
	}
	if n > maxProgram {
		return "", fmt.Errorf("unpacking the verifier: it has more than %d bytes", maxProgram)
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

// Write writes the page. Head gives what is around it: Root, Nav, Here and Footer.
func (p Program) Write(w io.Writer, head html.Head) error {
	sum, err := p.SHA256()
	if err != nil {
		return err
	}
	head.Title, head.Alone, head.Policy, head.Script = "Verify the ledger", true, Policy(), script
	var b html.Body
	form(&b)
	about(&b, p, sum)
	data(&b, p)
	return html.Layout(w, head, &b)
}

func form(b *html.Body) {
	b.Markup(`<h1>Verify the ledger</h1>
<p class="lead">This page checks a whole ledger in your browser, with the code of “countersign audit”. Nothing that you choose here leaves this computer.</p>
<noscript><p class="bad">The check needs JavaScript and WebAssembly. Without them, use “countersign audit”.</p></noscript>
<div id="form" class="verify" hidden>
<p id="said" role="status"></p>
<div id="work" hidden>
<p><progress id="bar" max="100" aria-label="Progress of the check"></progress></p>
<p><button id="stop" type="button">Stop</button> <span id="step" aria-hidden="true"></span></p>
</div>
<div id="verdict" role="status"></div>
<div id="details"></div>
<h2>The ledger</h2>
<div class="drop">
<p><label for="file">A Git bundle of the ledger: drop it here, or choose it</label>
<input id="file" type="file"></p>
<p><button id="beside" type="button">Check the ledger beside this page</button></p>
<details><summary>How to make a bundle</summary>
<pre tabindex="0">countersign sync
git bundle create ledger.bundle refs/agent/ledger</pre>
<p>Without that program, the first line is “git fetch origin refs/agent/ledger:refs/agent/ledger” where the ledger is in the repository itself. In another one it has that one’s address
for “origin”, and “refs/agent/ledger-” with the repository’s number before the colon. A ledger on a branch has that branch’s name.</p>
</details>
</div>
<div id="known">
<p><label for="tip">A commit that this ledger must hold, all 40 digits: such as the tip that you saw last, or the one that a check run names</label>
<input id="tip" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="60"></p>
<details><summary>Keys that each commit must be signed with</summary>
<p><label for="signers">As ssh-keygen’s ALLOWED SIGNERS has them</label>
<textarea id="signers" rows="3" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="ci@example.org namespaces=&quot;git&quot; ssh-ed25519 AAAA…"></textarea></p>
</details>
<p><button id="again" type="button" disabled>Check again</button></p>
</div>
<details id="cheat" hidden><summary>Try to cheat</summary>
<p>Change your copy of this ledger in memory, as somebody who can write to it would, and see which rule notices. Commits that must be made again get new ids, so that Git itself finds nothing wrong. The check knows the tip that you saw just now.</p>
<p id="cheats"></p>
<div id="cheated" role="status"></div>
</details>
</div>
`)
}

func about(b *html.Body, p Program, sum string) {
	b.Markup("<h2>What does the checking</h2>\n<p>cmd/verify in the source of Countersign ").Text(p.Version)
	b.Markup(", compiled to WebAssembly by ").Text(p.Go).Markup(". Its SHA-256 is</p>\n<pre id=\"sum\" tabindex=\"0\" aria-label=\"SHA-256\">").Text(sum)
	b.Markup("</pre>\n<p id=\"computed\" class=\"faint\"></p>\n<p>In a checkout of that source, this builds the same bytes:</p>\n<pre tabindex=\"0\" aria-label=\"Commands\">").Lines(p.Command())
	b.Markup("</pre>\n<p>A page can lie about what it runs. If you do not trust where this one came from, make it with your own program (“countersign site”), or run “countersign audit” in a clone.</p>\n")
}

// data is the program, in elements whose type no browser runs.
func data(b *html.Body, p Program) {
	b.Markup("<script type=\"text/plain\" id=\"exec\">").Text(base64.StdEncoding.EncodeToString(p.Exec))
	b.Markup("</script>\n<script type=\"text/plain\" id=\"wasm\">").Text(base64.StdEncoding.EncodeToString(p.Wasm)).Markup("</script>\n")
}
