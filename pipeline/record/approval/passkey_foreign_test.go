package approval_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// foreign is a signature as another program takes it apart, and what we say of it.
type foreign struct {
	what  string
	taken bool

	Armored string `json:"armored"`
	Listed  string `json:"listed"`
	Message string `json:"message"`
	Origin  string `json:"origin"`
	Host    string `json:"host"`
}

func foreignCase(what string, listed teststand.Passkey, s approval.Signature, taken bool) foreign {
	_, key, _ := strings.Cut(listed.Signer().Public, " ")
	return foreign{what, taken, s.Armored, key, string(s.Statement.Bytes()), site, siteHost}
}

// stricter begins what we refuse though WebAuthn takes it: what else SSH's form has, words that are not in the order and the form of all
// browsers, what is not asked for, frames, an origin that is two members.
var stricter = []string{
	"format ", "something behind it", "a field behind it", "extensions", "another order", "blanks", "a blank before", "no true and no false", "a frame", `asked on "https://acme.github.io\",`, "flags 00000111", "flags 00001111",
	"flags 00010111", "flags 00011111", "flags 00100101", "flags 00100111", "flags 00101101", "flags 00101111", "flags 00110101", "flags 00110111", "flags 00111101", "flags 00111111",
}

// besideSimpleWebAuthn has npm's @simplewebauthn/server, which COUNTERSIGN_WEBAUTHN is the directory of, say the same of each.
func besideSimpleWebAuthn(t *testing.T, all []foreign) {
	t.Helper()
	dir := os.Getenv("COUNTERSIGN_WEBAUTHN")
	if dir == "" {
		t.Log("NOT RUN: the same with @simplewebauthn/server: COUNTERSIGN_WEBAUTHN is not set")
		return
	}
	var in, failed bytes.Buffer
	for _, c := range all {
		line, err := json.Marshal(c)
		fatal(t, err)
		in.Write(append(line, '\n'))
	}
	cmd := exec.Command("node", "testdata/webauthn.cjs", dir)
	cmd.Stdin, cmd.Stderr = &in, &failed
	out, err := cmd.Output()
	said := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if err != nil || len(said) != len(all) {
		t.Fatalf("%v: %d answers to %d: %s", err, len(said), len(all), &failed)
	}
	both := 0
	for i, c := range all {
		begins := func(what string) bool {
			return strings.HasPrefix(c.what, what) || strings.HasSuffix(c.what, "which the words hide")
		}
		switch taken := said[i] == "taken"; {
		case taken == c.taken:
			both++
		case c.taken || !slices.ContainsFunc(stricter, begins):
			t.Errorf("%s: we take it: %v; @simplewebauthn/server says %s", c.what, c.taken, said[i])
		}
	}
	if both < 300 {
		t.Errorf("%d verdicts are the same", both)
	}
	t.Logf("@simplewebauthn/server says the same of %d of %d", both, len(all))
}
