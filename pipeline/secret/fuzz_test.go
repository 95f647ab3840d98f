package secret_test

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func FuzzText(f *testing.F) {
	for _, s := range teststand.Samples() {
		f.Add(s.Text())
		f.Add("a\n" + s.Text()[:len(s.Text())/2] + "\n\"" + s.Text()[len(s.Text())/2:] + "<REDACTED:jwt>")
		f.Add(planted(s.Text())[3] + planted(s.Text())[9])
	}
	f.Fuzz(func(t *testing.T, s string) {
		redacted(t, secret.Default(), s)
	})
}

func FuzzDiff(f *testing.F) {
	for _, s := range teststand.Samples()[14:] {
		for _, position := range positions {
			f.Add(change(f, first(position(s.Text())), second(position(s.Text()))).Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, diff []byte) {
		out := redactDiff(t, secret.Default(), diff)
		if utf8.Valid(diff) && !utf8.ValidString(out) {
			t.Error("not UTF-8 any more")
		}
		if bytes.HasSuffix(diff, []byte("\n")) != bytes.HasSuffix([]byte(out), []byte("\n")) {
			t.Error("the last newline changed")
		}
	})
}

func first(a, _ map[string]string) map[string]string  { return a }
func second(_, b map[string]string) map[string]string { return b }
