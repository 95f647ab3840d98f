package sshsig

import (
	"encoding/base64"
	"errors"
	"fmt"
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
	e, err := dearmor(load(f, "ed25519").section(f, "signature"), ForGit)
	fatal(f, err)
	f.Add(string(ssh.Marshal(e)))
	f.Add(Begin + End)
	f.Add(Begin + "U1NIU0lHAAAAAQ==\n" + End)
	allowed := allow(f, list)
	check := func(t *testing.T, text string) {
		e, err := dearmor(text, ForGit)
		if err == nil && e.Armor() != text {
			t.Errorf("another text: %q", text)
		}
		_, _, err = allowed.Verify(ForGit, []byte(message), text, at)
		if (err == nil) != known[text] {
			t.Errorf("Verify: %v\n%s", err, text)
		}
		if err != nil && !known[text] && kinds(err) != 1 {
			t.Errorf("%v is of %d kinds", err, kinds(err))
		}
	}
	f.Fuzz(func(t *testing.T, input string) {
		check(t, input)
		check(t, Armor(base64.StdEncoding.EncodeToString([]byte(input))))
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
		if !reflect.DeepEqual(a.plain(), again.plain()) {
			t.Errorf("another list\n%s", text)
		}
	})
}

// plain are the lines without what the file has around them.
func (a Allowed) plain() []Line {
	lines := slices.Clone(a.lines)
	for i := range lines {
		lines[i].Number, lines[i].Text = 0, ""
	}
	return lines
}

func (a Allowed) text() string {
	var b strings.Builder
	for _, line := range a.lines {
		var options []string
		if line.Namespaces != nil {
			options = append(options, fmt.Sprintf(`namespaces="%s"`, strings.Join(line.Namespaces, ",")))
		}
		for name, at := range map[string]time.Time{"valid-after": line.After, "valid-before": line.Before} {
			if !at.IsZero() {
				options = append(options, fmt.Sprintf(`%s="%s"`, name, at.Format("20060102150405Z")))
			}
		}
		slices.Sort(options)
		fmt.Fprintf(&b, `"%s" %s `, strings.Join(line.Principals, ","), strings.Join(options, ","))
		for _, field := range strings.Fields(line.Text) { // the key is the only field that is one
			if key, err := base64.StdEncoding.Strict().DecodeString(field); err == nil && formats[KeyType(key)] != nil {
				b.WriteString(KeyType(key) + " " + field + "\n")
				break
			}
		}
	}
	return b.String()
}
