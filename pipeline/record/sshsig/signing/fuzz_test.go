package signing

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// FuzzSplit: a commit that is taken apart is put together to the same bytes.
func FuzzSplit(f *testing.F) {
	for _, x := range fixtures(f) {
		commit := x.section(f, "commit")
		f.Add([]byte(commit))
		f.Add([]byte(strings.Replace(commit, "\n\n", "\nencoding x\n\n", 1)))
	}
	f.Add([]byte("tree x\ngpgsig " + strings.ReplaceAll(sshsig.Begin+"\nx\n"+sshsig.End, "\n", "\n ") + "\n\n"))
	f.Fuzz(func(t *testing.T, commit []byte) {
		payload, signature, err := Split(commit)
		if err != nil {
			if payload != nil || signature != "" || !isKnown(err) {
				t.Errorf("%q, %q, %v", payload, signature, err)
			}
			return
		}
		if got := Insert(payload, signature); !bytes.Equal(got, commit) {
			t.Errorf("%q\nbecomes\n%q", commit, got)
		}
		if _, _, err := Split(payload); !errors.Is(err, sshsig.ErrNoSignature) {
			t.Errorf("the payload: %v", err)
		}
	})
}

// FuzzInsert: what is put together is taken apart to the same, or refused;
// and never refused if it is an unsigned commit and an armor.
func FuzzInsert(f *testing.F) {
	for _, x := range fixtures(f) {
		payload, signature, err := Split([]byte(x.section(f, "commit")))
		fatal(f, err)
		f.Add(payload, strings.TrimSuffix(strings.TrimPrefix(signature, sshsig.Begin), sshsig.End))
	}
	f.Add([]byte("tree x\ngpgsigs\n\n"), "")
	f.Add([]byte("tree x\n \n\n\n"), " \n\n gpgsig x\n\n")
	f.Add([]byte("tree x"), "x")
	f.Fuzz(func(t *testing.T, payload []byte, text string) {
		signature := sshsig.Begin + text + "\n" + sshsig.End
		gotPayload, gotSignature, err := Split(Insert(payload, signature))
		if err == nil && (!bytes.Equal(gotPayload, payload) || gotSignature != signature) {
			t.Errorf("%q, %q", gotPayload, gotSignature)
		}
		_, _, unsigned := Split(payload)
		if errors.Is(unsigned, sshsig.ErrNoSignature) && !strings.Contains(text, "\x00") && err != nil {
			t.Errorf("%q, %q: %v", payload, signature, err)
		}
	})
}

// FuzzKey: an error is one of the three, and none quotes what it read.
func FuzzKey(f *testing.F) {
	for _, name := range []string{"ed25519", "ecdsa-256"} {
		f.Add(load(f, name).section(f, "key"))
	}
	f.Add("-----BEGIN PRIVATE KEY-----\nMAAA\n-----END PRIVATE KEY-----\n")
	f.Add("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMAAA\n-----END RSA PRIVATE KEY-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseKey([]byte(text))
		if err == nil {
			signature := sign(t, s, message)
			if _, _, err := allow(t, "a@b "+s.PublicKey()).Verify(sshsig.ForGit, []byte(message), signature, at); err != nil {
				t.Errorf("%s: %v", s, err)
			}
			return
		}
		if !errors.Is(err, ErrKey) && !errors.Is(err, ErrEncrypted) {
			t.Errorf("error %v", err)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) > 20 && strings.Contains(err.Error(), line) {
				t.Errorf("%v quotes %q", err, line)
			}
		}
	})
}

func isKnown(err error) bool {
	return errors.Is(err, sshsig.ErrNoSignature) || errors.Is(err, sshsig.ErrMalformed) || errors.Is(err, sshsig.ErrUnsupported)
}
