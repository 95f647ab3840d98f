package redact

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/countersign-dev/countersign/pipeline/fault"
)

const (
	golden = "the patch of a release, with a password in it\n"
	chunk  = 64 << 10 // of the format
)

func TestSealOpen(t *testing.T) {
	to := []string{recipient(t, "one"), recipient(t, "two")}
	for _, size := range []int{0, 1, 1000, chunk - 1, chunk, chunk + 1, 3 * chunk} {
		data := bytes.Repeat([]byte("secret! "), size/8+1)[:size]
		sealed := mustSeal(t, data, to)
		if size > 7 && bytes.Contains(sealed, data[:8]) {
			t.Fatal("the data can be read")
		}
		for _, name := range []string{"one", "two"} {
			got, err := Unseal(sealed, secret(name), int64(size))
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes: %s opens %d bytes: %v", size, name, len(got), err)
			}
		}
		_, err := Unseal(sealed, secret("three"), int64(size))
		checkError(t, err, "not sealed to any")
	}
	if bytes.Equal(mustSeal(t, nil, to), mustSeal(t, nil, to)) {
		t.Error("sealing twice gives the same bytes")
	}
}

func TestSealToNobody(t *testing.T) {
	_, err := Seal([]byte("x"), nil)
	checkError(t, err, "no recipient")
	_, err = Seal([]byte("x"), []string{recipient(t, "one"), secret("one")})
	checkError(t, err, "recipient 2 is a secret key")
}

// TestGolden opens what the age command, version 1.3.2, has sealed to two keys.
func TestGolden(t *testing.T) {
	sealed, err := os.ReadFile("testdata/golden.age")
	fatal(t, err)
	for _, name := range []string{"one", "two"} {
		got, err := Unseal(sealed, secret(name), 1000)
		if err != nil || string(got) != golden {
			t.Errorf("%s opens %q: %v", name, got, err)
		}
	}
}

func TestOpenLimit(t *testing.T) {
	data := make([]byte, 2*chunk)
	sealed := mustSeal(t, data, []string{recipient(t, "one")})
	for _, limit := range []int64{int64(len(data)), int64(len(data)) + 1, math.MaxInt64 - 1, math.MaxInt64} {
		if got, err := Unseal(sealed, secret("one"), limit); err != nil || len(got) != len(data) {
			t.Errorf("limit %d: %d bytes, %v", limit, len(got), err)
		}
	}
	for _, limit := range []int64{int64(len(data)) - 1, chunk, 1, 0, -1, math.MinInt64} {
		got, err := Unseal(sealed, secret("one"), limit)
		checkError(t, err, fmt.Sprintf("more than %d bytes", limit))
		if got != nil {
			t.Errorf("limit %d: %d bytes beside the error", limit, len(got))
		}
	}
}

func TestOpenIdentities(t *testing.T) {
	sealed := mustSeal(t, []byte(golden), []string{recipient(t, "one")})
	one, two := secret("one"), secret("two")
	for _, c := range []struct {
		name, text string
		want       string
	}{
		{"a key alone", one, ""},
		{"as age-keygen writes it", "# created: today\n# public key: age1…\n" + one + "\n", ""},
		{"lines of Windows", "# x\r\n" + one + "\r\n", ""},
		{"indented, empty lines", "\n\n  " + one + "  \n\n", ""},
		{"the second of two", two + "\n" + one + "\n", ""},
		{"another", two, "not sealed to any"},
		{"empty", "", "there is none"},
		{"comments only", "# " + one + "\n", "there is none"},
		{"cut short", one[:len(one)-1], "line 1 "},
		{"a letter changed", "# x\n" + strings.Replace(one, one[30:31], "!", 1), "line 2 "},
		{"two on a line", one + " " + one, "line 1 "},
		{"a good one, then a bad one", one + "\n\nhunter2\n", "line 3 "},
		{"a recipient", recipient(t, "one"), "line 1 "},
		{"a plugin's", "AGE-PLUGIN-YUBIKEY-1QQQQ", "line 1 "},
		{"an SSH key", "-----BEGIN OPENSSH PRIVATE KEY-----\n", "line 1 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Unseal(sealed, c.text, 1000)
			checkError(t, err, c.want)
			if err == nil && string(got) != golden {
				t.Errorf("opens %q", got)
			}
			discreet(t, err, c.text)
		})
	}
}

// discreet wants no four letters of a secret in an error beyond the fixed words.
func discreet(t *testing.T, err error, secrets string) {
	t.Helper()
	if err == nil {
		return
	}
	text := strings.ReplaceAll(err.Error(), "AGE-SECRET-KEY-1", "")
	for line := range strings.Lines(secrets) {
		for i := 0; i+8 <= len(line); i++ {
			if line[i:i+8] != "age iden" && strings.Contains(text, line[i:i+8]) {
				t.Fatalf("the error holds %q of the identities: %v", line[i:i+8], err)
			}
		}
	}
}

func mustSeal(t testing.TB, data []byte, to []string) []byte {
	t.Helper()
	sealed, err := Seal(data, to)
	fatal(t, err)
	return sealed
}

// TestTampered changes every part of what was sealed: each byte of the header,
// the nonce and the ends of every chunk, and what is there, missing or added.
func TestTampered(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), chunk/16+5) // two chunks
	sealed := mustSeal(t, data, []string{recipient(t, "one"), recipient(t, "two")})
	body := bytes.Index(sealed, []byte("\n---")) + 49 // after the line of the header's MAC
	first := body + 16 + chunk + 16                   // after the nonce and the first chunk
	refused := func(what string, changed []byte) {
		t.Helper()
		got, err := Unseal(changed, secret("one"), 1<<20)
		var e *fault.Error
		if got != nil || !errors.As(err, &e) {
			t.Fatalf("%s: %d bytes, error %v", what, len(got), err)
		}
		if strings.Contains(err.Error(), "0123") {
			t.Fatalf("%s: the error holds data: %v", what, err)
		}
	}
	for at := range sealed {
		if at > body+32 && (at < first-20 || at > first+20) && at < len(sealed)-40 && at%997 != 0 {
			continue
		}
		changed := slices.Clone(sealed)
		changed[at] ^= 1
		refused(fmt.Sprintf("bit of byte %d", at), changed)
		refused(fmt.Sprintf("cut at %d", at), sealed[:at])
	}
	refused("the last chunk is missing", sealed[:first])
	refused("the first chunk is missing", slices.Concat(sealed[:body+16], sealed[first:]))
	refused("the chunks are exchanged", slices.Concat(sealed[:body+16], sealed[first:], sealed[body+16:first]))
	refused("the first chunk comes twice", slices.Concat(sealed[:first], sealed[body+16:]))
	for _, more := range []string{"\x00", "\n", "garbage", string(sealed[first:]), string(sealed)} {
		refused(fmt.Sprintf("%d bytes added", len(more)), slices.Concat(sealed, []byte(more)))
	}
	for _, other := range []string{"", "\n", "diff --git a/x b/x\n", "-----BEGIN AGE ENCRYPTED FILE-----\n", "age-encryption.org/v1\n", secret("one")} {
		refused("not sealed", []byte(other))
	}
}

// TestExactChunk: where a chunk is full, what follows is another thing to cut.
func TestExactChunk(t *testing.T) {
	sealed := mustSeal(t, make([]byte, chunk), []string{recipient(t, "one")})
	for _, changed := range [][]byte{append(slices.Clone(sealed), 0), sealed[:len(sealed)-1], append(slices.Clone(sealed), make([]byte, 16)...)} {
		_, err := Unseal(changed, secret("one"), chunk)
		checkError(t, err, "damaged")
	}
}

// TestPassphrase: a file for a passphrase would cost whoever tries it dearly.
func TestPassphrase(t *testing.T) {
	r, err := age.NewScryptRecipient("hunter2")
	fatal(t, err)
	r.SetWorkFactor(2)
	var b bytes.Buffer
	w, err := age.Encrypt(&b, r)
	if err == nil {
		err = w.Close()
	}
	fatal(t, err)
	_, err = Unseal(b.Bytes(), secret("one"), 10)
	checkError(t, err, "not sealed to any")
}

func FuzzOpen(f *testing.F) {
	sealed, err := os.ReadFile("testdata/golden.age") // the same in every worker
	fatal(f, err)
	identities := secret("one")
	f.Add(sealed)
	f.Add(sealed[:len(sealed)-1])
	f.Add([]byte("age-encryption.org/v1\n-> X25519 \n\n--- \n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Unseal(raw, identities, 1000)
		var e *fault.Error
		switch {
		case err != nil && (got != nil || !errors.As(err, &e)):
			t.Fatalf("%d bytes, error %v", len(got), err)
		case err == nil && !bytes.Equal(raw, sealed):
			t.Fatal("what was not sealed is opened")
		}
	})
}
