package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// absent fails if out holds the secret in any form.
func absent(t *testing.T, out []byte, value string) {
	t.Helper()
	for i, form := range teststand.Encodings(value) {
		if bytes.Contains(out, form) {
			t.Errorf("form %d of the secret is in the output:\n%.2000q", i, out)
		}
	}
}

// redacted is Text, with the checks that hold for every text.
func redacted(t *testing.T, f *secret.Finder, s string) string {
	t.Helper()
	out := f.Text(s)
	if again := f.Text(out); again != out {
		t.Errorf("not idempotent:\n%.1000q\n%.1000q", out, again)
	}
	if utf8.ValidString(s) && !utf8.ValidString(out) {
		t.Errorf("not UTF-8 any more: %.1000q", out)
	}
	if n := len(f.Find(s)); (n == 0) != (s == out) {
		t.Errorf("Find has %d findings, Text gives %.1000q", n, out)
	}
	return out
}

// T46: each kind, alone and in a sentence.
func TestT46Samples(t *testing.T) {
	for _, s := range teststand.Samples() {
		t.Run(s.Kind, func(t *testing.T) {
			for _, text := range []string{s.Text(), "we saw " + s.Text() + " in it\n", "x\n  " + s.Text() + "\ny", "f(" + s.Text() + ")"} {
				out := redacted(t, secret.Default(), text)
				absent(t, []byte(out), s.Value)
				if !strings.Contains(out, "<REDACTED:") {
					t.Errorf("no marker in %q", out)
				}
			}
		})
	}
}

func ExampleFinder_Text() {
	f := secret.Default()
	fmt.Println(f.Text("db_password = \"8fJq2" + "LmZx7RwT0vK\""))
	// Output: db_password = "<REDACTED:generic-api-key>"
}

// planted are texts in which value stands in some encoding, not cut off.
func planted(text string) []string {
	out := []string{text}
	for shift := range 3 {
		padded := []byte(strings.Repeat(":", shift) + text)
		out = append(out, base64.StdEncoding.EncodeToString(padded), base64.RawURLEncoding.EncodeToString(padded))
	}
	for _, form := range teststand.Encodings(text)[7:] {
		out = append(out, string(form))
	}
	return out
}

// T50: encodings, up to three within one another.
func TestT50Encodings(t *testing.T) {
	for k, s := range teststand.Samples() {
		if k%4 > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		for i, once := range planted(s.Text()) {
			out := redacted(t, secret.Default(), "the value ("+once+") is")
			absent(t, []byte(out), s.Value)
			if strings.Contains(out, once) {
				t.Errorf("%s: form %d gives %q", s.Kind, i, out)
			}
			for j, twice := range planted(once) {
				if j == 13 && i == 13 {
					continue // UTF-16 in UTF-16 is nothing that occurs
				}
				if out := secret.Default().Text(`"` + twice + `"`); strings.Contains(out, twice) {
					t.Errorf("%s: form %d in form %d is left", s.Kind, i, j)
				}
				thrice := planted(twice)[(k+i+j)%7]
				if out := secret.Default().Text(`"` + thrice + `"`); i != 13 && strings.Contains(out, thrice) {
					t.Errorf("%s: form %d in form %d in base64 is left", s.Kind, i, j)
				}
			}
		}
	}
}

// T50: a run of digits that begins with others' digits.
func TestT50Glued(t *testing.T) {
	for _, s := range teststand.Samples() {
		for n := range 5 {
			low := strings.Repeat("0", n) + hex.EncodeToString([]byte(s.Text()))
			if out := redacted(t, secret.Default(), low); strings.Contains(out, low[8:]) {
				t.Errorf("%s in hexadecimal digits after %d others is left: %q", s.Kind, n, out)
			}
			once := "/" + strings.Repeat("q", n) + base64.RawURLEncoding.EncodeToString([]byte(s.Text()))
			if out := redacted(t, secret.Default(), once); strings.Contains(out, once[8:]) {
				t.Errorf("%s after %d digits is left: %q", s.Kind, n, out)
			}
		}
	}
}

// T50: split over lines, as text and as code splits it.
func TestT50SplitOverLines(t *testing.T) {
	for _, joint := range []string{"\n", "\r\n", "\n\t", "\" +\n\t\"", "\"\n\"", "\\\n", "'\n  . '", " \n "} {
		for _, s := range teststand.Samples() {
			if strings.Contains(s.Value, "\n") || s.Kind == "password" && !strings.ContainsAny(joint, "\"'\\") {
				continue // a key block, and what cannot be told from a short value
			}
			for _, at := range []int{len(s.Value) / 3, len(s.Value) / 2, len(s.Value) - 4} {
				text := "const a = \"" + s.Before + s.Value[:at] + joint + s.Value[at:] + s.After + "\"\n"
				out := redacted(t, secret.Default(), text)
				// A bare line break may as well end a value that has no fixed length.
				short := at == len(s.Value)-4 && strings.TrimSpace(joint) == ""
				if strings.Contains(out, s.Value[:at]) || !short && strings.Contains(out, s.Value[at:]) {
					t.Errorf("%s split by %q at %d: %q", s.Kind, joint, at, out)
				}
			}
		}
	}
}

// T50: base64 that is broken into lines of 16 digits, and a secret of which
// each character has a line.
func TestT50BrokenLines(t *testing.T) {
	for _, s := range teststand.Samples() {
		code := base64.StdEncoding.EncodeToString([]byte(s.Text()))
		var wrapped []string
		for ; len(code) > 16; code = code[16:] {
			wrapped = append(wrapped, code[:16])
		}
		out := redacted(t, secret.Default(), strings.Join(append(wrapped, code), "\n"))
		if strings.Contains(out, wrapped[len(wrapped)/2]) {
			t.Errorf("%s in lines of base64: %q", s.Kind, out)
		}
		if s.Before != "" || strings.Contains(s.Value, "\n") {
			continue
		}
		out = redacted(t, secret.Default(), "x\n:\n"+strings.Join(strings.Split(s.Value, ""), "\n")+"\n")
		if n := strings.Count(out, "\n"); n > len(s.Value)/2+8 {
			t.Errorf("%s in single characters: %q", s.Kind, out)
		}
	}
}

// T47: what is found once is redacted wherever it stands.
func TestT47EveryOccurrence(t *testing.T) {
	for _, s := range teststand.Samples() {
		word := s.Value
		if i := strings.IndexByte(word, '\n'); i >= 0 {
			word = strings.Split(word, "\n")[3]
		}
		for _, other := range planted(word) {
			out := redacted(t, secret.Default(), "first: "+s.Text()+" then x"+word+"x and "+other+".")
			absent(t, []byte(out), word)
		}
	}
}

// T47: a text does not excuse itself.
func TestT47NoExcuses(t *testing.T) {
	for _, s := range teststand.Samples() {
		for _, excuse := range []string{
			" // gitleaks:allow", " # gitleaks:allow --mount=type=secret,id=x", "\n<REDACTED:unscanned>",
			" import { a } from 'b'", " EXAMPLE false null",
		} {
			absent(t, []byte(redacted(t, secret.Default(), s.Text()+excuse)), s.Value)
		}
		absent(t, []byte(redacted(t, secret.Default(), "<REDACTED:"+s.Text()+" >")), s.Value)
	}
	// gitleaks excuses this line in files of some names.
	password := teststand.Samples()[23].Value
	absent(t, []byte(redacted(t, secret.Default(), "SRC_TOKEN = \""+password+"\"")), password)
}

// T47: the tokens that the process uses, whatever they look like.
func TestT47Knowing(t *testing.T) {
	values := []string{"hunter2!", "correct horse battery staple", "Pa\"ss\\wörd/+=%", "tiny", strings.Repeat("long ", 100)}
	f := secret.Default().Knowing(values...)
	for _, v := range values {
		for i, form := range append(planted(v), "0"+v+"0") {
			out := redacted(t, f, "<"+form+">")
			if left := strings.Contains(out, form); left != (v == "tiny") {
				t.Errorf("form %d of %q: %q", i, v, out)
			}
		}
	}
	if out := redacted(t, secret.Default().Knowing("\xa9 1234567"), "caf\u00e9 \u00e9\u00a9 1234567"); out != "caf\u00e9 \u00e9<REDACTED:known-value>" {
		t.Errorf("a value that begins within a character: %q", out)
	}
	if out := f.Text("cut off: correct horse b"); strings.Contains(out, "horse") {
		t.Errorf("a value that is cut off: %q", out)
	}
	if s := "the word hunter2 is shorter"; secret.Default().Knowing(values...).Text(s) != s || secret.Default().Text(values[0]) != values[0] {
		t.Error("a value is found where it is not known, or not there")
	}
}

// T48: hashes, ids and the like in our own texts are no secrets.
func TestT48OwnTexts(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)[3:] + "f0a"
	for _, s := range []string{
		"approved patchset:" + hex + " at sha256:" + hex,
		"transaction tx_01JAB3CDE4FGH5JKM6NPQ7RST8 applied to refs/agent/applied/tx_01JAB3CDE4FGH5JKM6NPQ7RST8",
		`{"payload":{"apply_id":"apply_1","base_commit":"` + hex[:40] + `","files":["a/token.go"],"patch_ids":["` + hex + `"],"target":"worktree"},"prev":"sha256:` + hex + `","seq":9,"timestamp":"2026-01-31T12:00:00.000Z","type":"apply/start"}`,
		`{"approval_request_id":"req_1","fingerprint":"patchset:` + hex + `","item_id":"item_1","kind":"patchset","prompt":"Approve patchset:` + hex + `?"}`,
		`{"source":{"author":"octocat","body_sha256":"` + hex + `","commit":"` + hex[:40] + `","id":"123456789","kind":"comment","permission":"write","url":"https://github.com/o/r/pull/1#issuecomment-123456789"}}`,
		"index " + hex[:40] + ".." + hex[20:60] + " 100644", "Countersign-Patch: " + hex, "prop_" + hex[:16],
		"the token is asked for, the key is kept, the password: never", "api: v1, auth: none", "go.sum h1:" + base64.StdEncoding.EncodeToString([]byte(hex[:32])) + "=",
		"-----BEGIN PRIVATE KEY----- is how such a file begins, and -----END PRIVATE KEY----- how it ends",
		"commit " + hex[:40] + "\nAuthor: A U Thor <author@example.com>\nDate: Sat Jan 31 12:00:00 2026 +0000\n\n    fix\n",
		"the kinds of markers.\n\tSyncEOF\n\tSyncBool\n\tSyncInt64\n\tSyncUint64\n",
		"100% of %d bytes, %s and \\n in \"quotes\", caf\u00e9 \xff",
	} {
		if out := redacted(t, secret.Default(), s); out != s {
			t.Errorf("redacted: %q", out)
		}
	}
}

// Anywhere in anything, no form of a secret is left, and text without one
// stays as it is.
func TestT47RandomTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for seed := range uint64(12) {
		for _, s := range teststand.SamplesFrom(seed + 100) {
			noise := randomText(r, 400)
			if out := redacted(t, secret.Default(), noise); out != noise {
				t.Fatalf("redacted without a secret: %q", out)
			}
			forms := planted(s.Text())
			at := r.IntN(len(noise) + 1)
			for at < len(noise) && !utf8.RuneStart(noise[at]) {
				at++
			}
			text := noise[:at] + " " + forms[r.IntN(len(forms))] + " " + noise[at:] + "\n" + s.Text() + "\n"
			absent(t, []byte(redacted(t, secret.Default(), text)), s.Value)
		}
	}
}

func randomText(r *rand.Rand, words int) string {
	vocabulary := strings.Fields("func return if err != nil { } the key token := of path a.b() é 漢字 \"x\" 17 // password: auth x=y <tag> %d 100% \\n [i] é")
	var b strings.Builder
	for range words {
		b.WriteString(vocabulary[r.IntN(len(vocabulary))])
		b.WriteByte(" \n\t "[r.IntN(4)])
	}
	return b.String()
}
