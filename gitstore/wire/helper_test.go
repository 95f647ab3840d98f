package wire_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func padded(i int) string { return fmt.Sprintf("b%06d", i) }

// random is text that zlib does not make smaller, the same each time.
func random(t testing.TB, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.NewChaCha8([32]byte{}).Read(b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pkt is s as a pkt-line.
func pkt(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

// uniqueRefs are about n bytes of lines of a list of refs.
func uniqueRefs(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(pkt(fmt.Sprintf("1234567890123456789012345678901234567890 refs/heads/%0900d\n", i)))
	}
	return b.String()
}
