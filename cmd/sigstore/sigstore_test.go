package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"
)

const artifact = "diff --git a/a b/a\n"

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func statementOf(artifact string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","predicate":{},"predicateType":"https://example.org/p","subject":[{"digest":{"gitCommit":%q}},{"digest":{"sha256":%q},"name":"patch"}]}`,
		strings.Repeat("a", 40), digestOf(artifact))
}

// verifying is the command that has to say yes.
func verifying(a *authority, changed ...string) []string {
	args := []string{"verify", "--certificate-identity=" + identity, "--certificate-oidc-issuer=" + issuer, "--digest=sha256:" + digestOf(artifact), "--trusted-root=" + a.trusted}
	return append(args, changed...)
}

// TestSignAndVerify: what the program signs with a job's identity verifies as that, and the
// answer names the statement's bytes.
func TestSignAndVerify(t *testing.T) {
	a := newAuthority(t)
	statement := statementOf(artifact)
	raw := a.bundle(statement)
	for _, digest := range []string{"sha256:" + digestOf(artifact), "gitCommit:" + strings.Repeat("a", 40)} {
		code, out, said := a.program(raw, verifying(a, "--digest="+digest)...)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", digest, code, said)
		}
		var got answer
		check(t, json.Unmarshal(out, &got))
		at, err := time.Parse(time.RFC3339, got.Time)
		check(t, err)
		if got.Identity != identity || got.Issuer != issuer || got.Payload != digestOf(string(statement)) || time.Since(at) > time.Hour || bytes.Count(out, []byte("\n")) != 1 {
			t.Errorf("%s", out)
		}
	}
}

// TestT79Refused: another identity, issuer, artifact or root, and whatever a bundle lacks or was
// changed in.
func TestT79Refused(t *testing.T) {
	a := newAuthority(t)
	raw := a.bundle(statementOf(artifact))
	other := newAuthority(t)
	changed := func(change func(b, material map[string]any)) []byte {
		var b map[string]any
		check(t, json.Unmarshal(raw, &b))
		change(b, b["verificationMaterial"].(map[string]any))
		out, err := json.Marshal(b)
		check(t, err)
		return out
	}
	entry := func(m map[string]any) map[string]any { return m["tlogEntries"].([]any)[0].(map[string]any) }
	otherBundle := other.bundle(statementOf(artifact))
	for name, c := range map[string]struct {
		raw  []byte
		args []string
		code int
		want string
	}{
		"identity":          {raw, []string{"--certificate-identity=" + identity + "2"}, 1, "expected SAN value"},
		"identity's prefix": {raw, []string{"--certificate-identity=https://github.com/acme/app"}, 1, "expected SAN value"},
		"identity pattern":  {raw, []string{"--certificate-identity=.*"}, 1, "expected SAN value"},
		"issuer":            {raw, []string{"--certificate-oidc-issuer=https://accounts.example.org"}, 1, "expected issuer value"},
		"artifact":          {raw, []string{"--digest=sha256:" + digestOf("other")}, 1, "artifact"},
		"commit":            {raw, []string{"--digest=gitCommit:" + strings.Repeat("b", 40)}, 1, "artifact"},
		"root":              {raw, []string{"--trusted-root=" + other.trusted}, 1, ""},
		"another instance":  {otherBundle, nil, 1, ""},
		"no log entry":      {changed(func(_, m map[string]any) { delete(m, "tlogEntries") }), nil, 1, ""},
		"no certificate":    {changed(func(_, m map[string]any) { delete(m, "certificate") }), nil, 1, ""},
		"no proof":          {changed(func(_, m map[string]any) { delete(entry(m), "inclusionProof") }), nil, 1, ""},
		"no promise":        {changed(func(_, m map[string]any) { delete(entry(m), "inclusionPromise") }), nil, 1, ""},
		"another time":      {changed(func(_, m map[string]any) { entry(m)["integratedTime"] = "1700000000" }), nil, 1, ""},
		"another payload": {changed(func(b, _ map[string]any) {
			b["dsseEnvelope"].(map[string]any)["payload"] = statementOf(artifact + "x")
		}), []string{"--digest=sha256:" + digestOf(artifact+"x")}, 1, ""},
		"no envelope": {changed(func(b, _ map[string]any) { delete(b, "dsseEnvelope") }), nil, 1, ""},
		"no bundle":   {[]byte("{}"), nil, 1, ""},
		"nothing":     {nil, nil, 1, ""},
		"no identity": {raw, []string{"--certificate-identity="}, 2, "are needed"},
		"no issuer":   {raw, []string{"--certificate-oidc-issuer="}, 2, "are needed"},
		"no digest":   {raw, []string{"--digest="}, 2, "--digest"},
		"bad digest":  {raw, []string{"--digest=sha256:xyz"}, 2, "--digest"},
		"no root":     {raw, []string{"--trusted-root=/nowhere"}, 3, "nowhere"},
		"bad root":    {raw, []string{"--trusted-root=" + other.signing}, 3, "is no trusted root"},
		"argument":    {raw, []string{"more"}, 2, "one argument too many"},
		"flag":        {raw, []string{"--insecure"}, 2, ""},
	} {
		code, out, said := a.program(c.raw, verifying(a, c.args...)...)
		if code != c.code || len(out) > 0 || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, %q", name, code, out, said)
		}
	}
}

// TestT79Certificates: a certificate that had ended when the log took the signature, and one
// that no log of certificates has.
func TestT79Certificates(t *testing.T) {
	a := newAuthority(t)
	a.aged = 11 * time.Minute
	code, out, said := a.program(statementOf(artifact), "sign", "--signing-config", a.signing, "--trusted-root", a.trusted)
	if code != 3 || len(out) > 0 || !strings.Contains(said, "certificate") {
		t.Errorf("expired: exit code %d, %s %s", code, out, said)
	}
	token, err := idToken(t.Context(), a.job)
	check(t, err)
	options, err := services(t.Context(), instance{a.signing, a.trusted})
	check(t, err)
	options.TrustedRoot, options.CertificateProviderOptions = nil, &sign.CertificateProviderOptions{IDToken: token} // it does not look at what it made
	key, err := sign.NewEphemeralKeypair(nil)
	check(t, err)
	made, err := sign.Bundle(&sign.DSSEData{Data: statementOf(artifact), PayloadType: payloadType}, key, options)
	check(t, err)
	expired, err := protojson.Marshal(made)
	check(t, err)
	if code, out, said = a.program(expired, verifying(a)...); code != 1 || len(out) > 0 || !strings.Contains(said, "certificate") {
		t.Errorf("expired: exit code %d, %s %s", code, out, said)
	}
	a.aged, a.withoutSCT = 0, true
	raw := a.bundle(statementOf(artifact))
	if code, out, said = a.program(raw, verifying(a)...); code != 1 || len(out) > 0 || !strings.Contains(said, "SCT") {
		t.Errorf("in no log: exit code %d, %s %s", code, out, said)
	}
}

// TestSignRefused: without a token, with a server that gives none, and with half an instance.
// The secret is in no message, and goes to no other server.
func TestSignRefused(t *testing.T) {
	a := newAuthority(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) }))
	defer elsewhere.Close()
	answering := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	both := []string{"--signing-config", a.signing, "--trusted-root", a.trusted}
	for name, c := range map[string]struct {
		url, secret string
		args        []string
		code        int
		want        string
	}{
		"no address":   {"", "secret", both, 2, "there is no token"},
		"no secret":    {a.server.URL + "/token?v=1", "", both, 2, "there is no token"},
		"no https":     {"http://example.org/", "secret", both, 2, "no https address"},
		"a file":       {"file:///etc/passwd", "secret", both, 2, "no https address"},
		"wrong secret": {a.server.URL + "/token?v=1", "terces", both, 3, "answers 403"},
		"redirect":     {answering(302, ""), "secret", both, 3, "answers 302"},
		"no value":     {answering(200, "{}"), "secret", both, 3, "has no token"},
		"no JSON":      {answering(200, "token"), "secret", both, 3, "has no token"},
		"no JWT":       {answering(200, `{"value":"a.b"}`), "secret", both, 3, "signing: "},
		"down":         {"http://127.0.0.1:1/x", "secret", both, 3, "connection refused"},
		"config alone": {a.server.URL + "/token?v=1", "secret", both[:2], 2, "belong together"},
		"root alone":   {a.server.URL + "/token?v=1", "secret", both[2:], 2, "belong together"},
		"no config":    {a.server.URL + "/token?v=1", "secret", []string{"--signing-config", a.trusted, "--trusted-root", a.trusted}, 3, "is no signing config"},
	} {
		var out, said bytes.Buffer
		getenv := func(name string) string {
			return map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": c.url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": c.secret}[name]
		}
		code := run(t.Context(), append([]string{"sign"}, c.args...), bytes.NewReader(statementOf(artifact)), &out, &said, getenv)
		if code != c.code || out.Len() > 0 || !strings.Contains(said.String(), c.want) || strings.Contains(said.String(), "secret") || strings.Contains(said.String(), "terces") {
			t.Errorf("%s: exit code %d, %q, %q", name, code, out.String(), said.String())
		}
	}
	if code, _, _ := a.program([]byte("not json"), append([]string{"sign"}, both...)...); code != 2 {
		t.Errorf("no statement: exit code %d", code)
	}
	for _, args := range [][]string{nil, {"x"}, {"sign", "--digest=x"}, {"verify", "--signing-config=x"}} {
		if code, _, _ := a.program(nil, args...); code != 2 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}

// TestCosign: a real cosign (v3.1.1), which COUNTERSIGN_COSIGN names, takes what the program
// signed, for this identity and artifact and for no other.
func TestCosign(t *testing.T) {
	cosign := os.Getenv("COUNTERSIGN_COSIGN")
	if cosign == "" {
		t.Skip("COUNTERSIGN_COSIGN names no program")
	}
	a := newAuthority(t)
	bundle := a.write("bundle.json", a.bundle(statementOf(artifact)))
	right, wrong := a.write("change.diff", []byte(artifact)), a.write("other.diff", []byte("other\n"))
	for name, c := range map[string]struct {
		identity, issuer, root, file string
		want                         bool
	}{
		"as it is": {identity, issuer, a.trusted, right, true},
		"identity": {identity + "2", issuer, a.trusted, right, false},
		"issuer":   {identity, "https://accounts.example.org", a.trusted, right, false},
		"root":     {identity, issuer, newAuthority(t).trusted, right, false},
		"artifact": {identity, issuer, a.trusted, wrong, false},
	} {
		out, err := exec.CommandContext(t.Context(), cosign, "verify-blob-attestation", "--bundle", bundle, "--trusted-root", c.root,
			"--certificate-identity", c.identity, "--certificate-oidc-issuer", c.issuer, "--type", "https://example.org/p", c.file).CombinedOutput()
		if (err == nil) != c.want {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
