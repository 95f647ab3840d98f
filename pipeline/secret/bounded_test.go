package secret_test

import (
	"encoding/base64"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/secret"
)

// hostile are texts of about n bytes that are made to cost much.
func hostile(n int) map[string]string {
	all := map[string]string{}
	for name, s := range map[string]string{
		"one letter": "A", "assignments": "password=", "keys": "key ", "key=": "key=", "jwt": "ey", "jwt twice": "eyaaaaaaaaaaaaaaaaaaaaa.ey",
		"percent": "%", "escaped": "%41", "backslashes": "\\", "newlines escaped": "\\n", "spaces": " ", "newlines": "\n", "continuation bytes": "\x80",
		"key blocks": "-----BEGIN PRIVATE KEY-----\n", "one line": "-----BEGIN PRIVATE KEY-----", "ends": "-----END PRIVATE KEY-----\n",
		"small blocks": "-----BEGIN PRIVATE KEY-----\nabcd\n-----END PRIVATE KEY-----\n", "begin": "-----begin",
		"one-character lines": "a\n", "spelled": "k\ne\ny\n=\n", "curl": "curl ", "curl -H": "curl -H \"", "facebook": "facebook 1234567890123456|",
		"kind": "kind: secret\n", "data": "data: a b ", "jar": "api_key=apiXapi-api", "https": "https://a", "slack": "xapp-1-A", "words": "secret.key-token_api ",
		"mix": "token: api: auth: key=> ", "UTF-16": "k\x00e\x00y\x00=\x00a\x00", "markers": "<REDACTED:unscanned>", "near markers": "<REDACTED:x",
		"marked keys": "<REDACTED:generic-api-key>key=\"a8d7f6a8d7f6g5h4\" ", "vault": "s.aaaaaaaaaaaaaaaaaaaaaaa", "atlas": "aaaaaaaaaaaaaa.atlasv1.a",
		"azure": "aaa8Q~bbbbbbbbbbb", "prefix": "a.b-c_d.key", "heroku": "heroku=12345678-1234-1234-1234-12345678901 ", "quotes": "\"\n\"", "plus": "%41+",
	} {
		all[name] = strings.Repeat(s, n/len(s))
	}
	r := rand.New(rand.NewPCG(9, 9))
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	digits, raw := make([]byte, n), make([]byte, n)
	for i := range digits {
		digits[i], raw[i] = alphabet[r.IntN(64)], byte(r.Uint32())
	}
	all["base64"], all["bytes"] = string(digits), string(raw)
	all["secrets"], all["lines of secrets"] = "", ""
	var one, lines strings.Builder
	for i := 0; i+40 < n; i += 40 {
		one.WriteString("ghp_" + strings.NewReplacer("+", "p", "/", "s").Replace(string(digits[i:i+36])))
		lines.WriteString("key=\"" + string(digits[i:i+30]) + "\"\n")
	}
	all["secrets"], all["lines of secrets"] = one.String(), lines.String()
	nested := []byte(strings.Repeat("password=abc ", n/31))
	for range 3 {
		nested = []byte(base64.StdEncoding.EncodeToString(nested))
	}
	all["nested"] = string(nested)
	return all
}

// T42: whatever the text, the work is in proportion to its length, and what is
// not scanned is redacted.
func TestT42Bounded(t *testing.T) {
	if testing.Short() {
		t.Skip("much work, on one goroutine")
	}
	n := 1 << 13
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		n = 1 << 15
	}
	f := secret.Default()
	double := hostile(2 * n)
	for name, text := range hostile(n) {
		one, two := f.Measure(text), f.Measure(double[name])
		for _, w := range []secret.Work{one, two} {
			free := 1 << 20
			if w.Decoded > free+32*w.Size || w.Steps > free+64*w.Size || w.Exprs > free+4*w.Size || w.Views > 12*w.Size+free {
				t.Errorf("%s: %+v", name, w)
			}
		}
		if two.Steps > 3*one.Steps+n || two.Exprs > 3*one.Exprs+n || two.Decoded > 3*one.Decoded+n || two.Views > 3*one.Views+n {
			t.Errorf("%s: more than in proportion: %+v, twice as long %+v", name, one, two)
		}
	}
	for name, text := range hostile(n / 2) {
		t.Run(name, func(t *testing.T) {
			redacted(t, f, text)
			redactDiff(t, f, []byte("@@ -0,0 +1,99999999 @@\n+"+strings.ReplaceAll(text, "\n", "\n+")))
		})
	}
}

// T42: beyond the budget everything is redacted, also in a diff, and stays so.
func TestT42Unscanned(t *testing.T) {
	secretText := "password = \"8fJq2" + "LmZx7RwT0vK\""
	text := strings.Repeat("eyey", 1<<17) + "\n" + secretText
	f := secret.Default()
	out := redacted(t, f, text)
	if strings.Contains(out, "LmZx") || !strings.Contains(out, "<REDACTED:unscanned>") || len(out) > 10000 {
		t.Errorf("%.300q", out)
	}
	if found := f.Find(text); len(found) == 0 || found[len(found)-1].End != len(text) {
		t.Errorf("%v", found)
	}
	set := change(t, nil, map[string]string{"a": text})
	diff := redactDiff(t, f, set.Bytes())
	if strings.Contains(diff, "LmZx") || !strings.Contains(diff, "\n+<REDACTED:unscanned>\n") {
		t.Errorf("%.300q", diff)
	}
	found := f.Patch(set)
	if len(found) == 0 || found[0].Kind != secret.KindUnscanned {
		t.Errorf("%v", found)
	}
}

// T42: a binary section of the smallest diff that unpacks to the largest file
// is not unpacked.
func TestT42Bomb(t *testing.T) {
	diff := "diff --git a/a b/a\nGIT binary patch\nliteral 999999999\nHcmV?d00001\n\n"
	if out := redactDiff(t, secret.Default(), []byte(diff)); !strings.Contains(out, "\n<REDACTED:unscanned>\n\n") {
		t.Errorf("%q", out)
	}
}
