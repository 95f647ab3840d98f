package sshsig

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// FuzzArmor: a text that is read is the only one of its envelope, and only
// what the key's holder made is verified. The input is taken as a text, and as
// what is in one.
func FuzzArmor(f *testing.F) {
	known := map[string]bool{}
	list := ""
	for _, x := range fixtures(f) {
		known[x.section(f, "signature")] = true
		list += "a@example.org " + x.section(f, "key.pub")
	}
	for signature := range known {
		f.Add(signature)
		f.Add(strings.Replace(signature, "AAAA", "AAAB", 1))
	}
	e, err := dearmor(load(f, "ed25519").section(f, "signature"), forGit)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(ssh.Marshal(e)))
	f.Add(begin + end)
	f.Add(begin + "U1NIU0lHAAAAAQ==\n" + end)
	allowed := allow(f, list)
	check := func(t *testing.T, text string) {
		e, err := dearmor(text, forGit)
		if err == nil && armor(ssh.Marshal(e)) != text {
			t.Errorf("another text: %q", text)
		}
		_, _, err = allowed.Verify([]byte(message), text, at)
		if (err == nil) != known[text] {
			t.Errorf("Verify: %v\n%s", err, text)
		}
		if err != nil && !known[text] && kinds(err) != 1 {
			t.Errorf("%v is of %d kinds", err, kinds(err))
		}
	}
	f.Fuzz(func(t *testing.T, input string) {
		check(t, input)
		check(t, armor([]byte(input)))
	})
}

func kinds(err error) int {
	n := 0
	for _, kind := range []error{ErrNoSignature, ErrMalformed, ErrUnsupported, ErrNamespace, ErrUnknownKey, ErrBadSignature, ErrExpired} {
		if errors.Is(err, kind) {
			n++
		}
	}
	return n
}

// FuzzAllowedSigners: a list that is read, written in its plainest form and
// read again is the same list, and written the same.
func FuzzAllowedSigners(f *testing.F) {
	for _, list := range []string{
		"a@b KEY", "# x\n\na@b,!c@d,\"x KEY", "\"a b,c\" namespaces=\"git,file\",valid-after=\"20260101Z\" KEY comment\r\n",
		"* valid-before=\"202601010101Z\" RSA\na@b KEY\n", "a@b cert-authority KEY", "a@b valid-after=\"20260101\" KEY",
	} {
		f.Add([]byte(expand(f, list)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ParseAllowedSigners(data)
		if err != nil {
			return
		}
		text := a.text()
		again, err := ParseAllowedSigners([]byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if again.text() != text {
			t.Errorf("%s\nis another than\n%s", again.text(), text)
		}
		if !reflect.DeepEqual(a.lines(), again.lines()) {
			t.Errorf("another list\n%s", text)
		}
	})
}

// lines are in the file's order, without their numbers.
func (a Allowed) lines() []signerLine {
	lines := slices.Concat(slices.Collect(maps.Values(a.keys))...)
	slices.SortFunc(lines, func(x, y signerLine) int { return x.number - y.number })
	for i := range lines {
		lines[i].number, lines[i].text = 0, ""
	}
	return lines
}

func (a Allowed) text() string {
	var b strings.Builder
	for _, line := range a.lines() {
		var options []string
		if line.namespaces != nil {
			options = append(options, fmt.Sprintf(`namespaces="%s"`, strings.Join(line.namespaces, ",")))
		}
		for name, at := range map[string]time.Time{"valid-after": line.after, "valid-before": line.before} {
			if !at.IsZero() {
				options = append(options, fmt.Sprintf(`%s="%s"`, name, at.Format("20060102150405Z")))
			}
		}
		slices.Sort(options)
		fmt.Fprintf(&b, `"%s" %s `, strings.Join(line.principals, ","), strings.Join(options, ","))
		b.WriteString(line.key.kind + " " + base64.StdEncoding.EncodeToString(line.key.blob) + "\n")
	}
	return b.String()
}

// FuzzSplit: a commit that is taken apart is put together to the same bytes.
func FuzzSplit(f *testing.F) {
	for _, x := range fixtures(f) {
		commit := x.section(f, "commit")
		f.Add([]byte(commit))
		f.Add([]byte(strings.Replace(commit, "\n\n", "\nencoding x\n\n", 1)))
	}
	f.Add([]byte("tree x\ngpgsig " + strings.ReplaceAll(begin+"\nx\n"+end, "\n", "\n ") + "\n\n"))
	f.Fuzz(func(t *testing.T, commit []byte) {
		payload, signature, err := Split(commit)
		if err != nil {
			if payload != nil || signature != "" || kinds(err) != 1 {
				t.Errorf("%q, %q, %v", payload, signature, err)
			}
			return
		}
		if got := Insert(payload, signature); !bytes.Equal(got, commit) {
			t.Errorf("%q\nbecomes\n%q", commit, got)
		}
		if _, _, err := Split(payload); !errors.Is(err, ErrNoSignature) {
			t.Errorf("the payload: %v", err)
		}
	})
}

// FuzzInsert: what is put together is taken apart to the same, or refused;
// and never refused if it is an unsigned commit and an armor.
func FuzzInsert(f *testing.F) {
	for _, x := range fixtures(f) {
		payload, signature, err := Split([]byte(x.section(f, "commit")))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload, strings.TrimSuffix(strings.TrimPrefix(signature, begin), end))
	}
	f.Add([]byte("tree x\ngpgsigs\n\n"), "")
	f.Add([]byte("tree x\n \n\n\n"), " \n\n gpgsig x\n\n")
	f.Add([]byte("tree x"), "x")
	f.Fuzz(func(t *testing.T, payload []byte, text string) {
		signature := begin + text + "\n" + end
		gotPayload, gotSignature, err := Split(Insert(payload, signature))
		if err == nil && (!bytes.Equal(gotPayload, payload) || gotSignature != signature) {
			t.Errorf("%q, %q", gotPayload, gotSignature)
		}
		_, _, unsigned := Split(payload)
		if errors.Is(unsigned, ErrNoSignature) && !strings.Contains(text, "\x00") && err != nil {
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
			if _, _, err := allow(t, "a@b "+s.PublicKey()).Verify([]byte(message), signature, at); err != nil {
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
