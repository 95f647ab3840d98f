package site

import (
	_ "embed"
	"strings"

	"github.com/countersign-dev/countersign/report/html"
)

// DecideAddress is the page on which a passkey approves, DecideScript what it runs. Beside them stand keys.json and, for each
// transaction that waits, a file by its id (docs/passkeys.md).
const (
	DecideAddress = "decide/index.html"
	DecideScript  = "decide/decide.js"
)

//go:embed decide.js
var decideScript []byte

// Decide are the page's files by address. It may ask for nothing but what is beside it, and shows transactions' own pages.
func Decide(name string, nav []html.Link) map[string][]byte {
	policy := strings.Join([]string{
		"default-src 'none'", "style-src 'self'; img-src 'self'", "script-src 'self'", "connect-src 'self'", "frame-src 'self'", "base-uri 'none'", "form-action 'none'",
		"require-trusted-types-for 'script'",
	}, "; ")
	page := html.Layout(html.Head{
		Title: "Approve with a passkey · " + name, Root: "../", Here: DecideAddress, Nav: nav, Scripts: []string{DecideScript}, Policy: policy,
		Footer: "This page decides nothing: what it hands over is checked by the gate, and by whoever audits.",
	}, html.Fill(templates, "decide", nil, nil))
	return map[string][]byte{DecideAddress: page, DecideScript: decideScript}
}
