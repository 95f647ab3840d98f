package secret_test

import (
	"encoding/base64"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// Redacting twice is redacting once, in texts and diffs that are made of what
// this package looks for.
func TestIdempotent(t *testing.T) {
	if testing.Short() {
		t.Skip("much work, on one goroutine")
	}
	r := rand.New(rand.NewPCG(31, 32))
	f := secret.Default().Knowing("hunter2!", "correct horse battery")
	seeds := uint64(8)
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		seeds = 40
	}
	for seed := range seeds {
		parts := ingredients(teststand.SamplesFrom(seed))
		for range 25 {
			var b strings.Builder
			for range 3 + r.IntN(25) {
				b.WriteString(parts[r.IntN(len(parts))])
			}
			redacted(t, f, b.String())
			redactDiff(t, f, []byte(b.String()))
			redactDiff(t, f, []byte("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n+"+strings.ReplaceAll(b.String(), "\n", "\n"+string(" +-"[r.IntN(3)]))))
		}
	}
}

func ingredients(samples []teststand.Sample) []string {
	parts := []string{
		"key=", "token: ", "password = \"", "\"", "'", "\n", "\n", "\n\t\"", "\" +\n", "\\\n", "\\n", " ", " ", "=", ">", "<", "%41", "%", "\\u0041", "+", ".", "/",
		"<REDACTED:jwt>", "<REDACTED:generic-api-key>", "<REDACTED:nonsense>", "<REDACTED:", "hunter2!", "hunter", "correct horse", "-----BEGIN ", "-----END PRIVATE KEY-----",
		"diff --git a/k b/k\n", "index ", "@@ -1,2 +1,2 @@", "GIT binary patch\nliteral 5\n", "é", "\xff", "\x00", "k\x00e\x00y\x00", "abcdefgh1234567890", "curl -H \"Authorization: ",
	}
	for _, s := range samples {
		parts = append(parts, s.Text(), s.Value[:len(s.Value)/2], s.Value[len(s.Value)/2:], base64.StdEncoding.EncodeToString([]byte(s.Text())))
	}
	return parts
}
