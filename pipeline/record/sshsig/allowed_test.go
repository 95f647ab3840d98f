package sshsig

import (
	"crypto/rsa"
	"encoding/base64"
	"math/big"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// In the lists of these tests KEY stands for the key of the ed25519 fixture,
// type and all, and RSA for that of rsa-2048.
func expand(t testing.TB, list string) string {
	key := strings.TrimSpace(load(t, "ed25519").section(t, "key.pub"))
	rsa := strings.TrimSpace(load(t, "rsa-2048").section(t, "key.pub"))
	return strings.NewReplacer("KEY", key, "RSA", rsa, "BASE64", strings.Fields(key)[1]).Replace(list)
}

func TestAllowedSigners(t *testing.T) {
	signature := load(t, "ed25519").section(t, "signature")
	for _, c := range []struct{ list, principal string }{
		{"a@b KEY", "a@b"},
		{"a@b KEY\n", "a@b"},
		{"a@b KEY comment, any \"comment\n", "a@b"},
		{"\n# KEY\n \t# x\n\t a@b \t KEY\t\n\n", "a@b"},
		{"a@b KEY\r\n", "a@b"},
		{"c@d RSA\na@b KEY\n", "a@b"},
		{"a@b,c@d KEY", "a@b"},
		{`"a b,c d" KEY`, "a b"},
		{"*@b KEY", "*@b"},
		{"!c@b,*@b KEY", "*@b"},
		{`a@b namespaces="git" KEY`, "a@b"},
		{`a@b NameSpaces="file,g?t" KEY`, "a@b"},
		{`a@b namespaces="a b,git" KEY`, "a@b"},
		{`a@b valid-after="20260105Z",valid-before="20260106Z" KEY`, "a@b"},
		{`a@b valid-before="20260105000000Z" KEY`, "a@b"},
		{"a@b valid-before=\"20250101Z\" KEY\na@b namespaces=\"file\" KEY\nc@d KEY", "c@d"},
		{"müller@b KEY", "müller@b"},
		{"*@x cert-authority RSA\na@b KEY", "a@b"},
		{"*@x CERT-authority,namespaces=\"git\" KEY\na@b KEY", "a@b"},
		{`a@b valid-after="20260104",valid-before="20260106" KEY`, "a@b"},
		{"c@d\na@b KEY\na@b namespaces RSA\n", "a@b"},
		{`a@b valid-after="202601041200",valid-before="20260105140001" KEY`, "a@b"},
	} {
		principal, _, err := allow(t, expand(t, c.list)).Verify(ForGit, []byte(message), signature, at)
		if err != nil || principal != c.principal {
			t.Errorf("%s: %q, %v", c.list, principal, err)
		}
	}
}

func TestAllowedSignersRefused(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"a@b", "line 1: there is no key"},
		{"a@b ", "line 1: there is no key"},
		{"\n\nKEY", "line 3: unknown option, or type of key"},
		{"a@b ssh-ed25519-cert-v01@openssh.com BASE64", "line 1: unknown option, or type of key"},
		{"a@b ssh-dss BASE64", `unknown option, or type of key, "ssh-dss"`},
		{"a@b ssh-foo BASE64", `unknown option, or type of key, "ssh-foo"`},
		{"a@b ssh-ed25519", "is not base64"},
		{"a@b ssh-ed25519 AAAA", "is damaged"},
		{"a@b ssh-ed25519 BASE64=", "is not base64"},
		{"a@b ecdsa-sha2-nistp256 BASE64", "is damaged"},
		{"a@b ssh-rsa " + rsa1024, "RSA key of 1024 bits"},
		{`a@b namespaces="git" ssh-x BASE64`, `unknown type of key "ssh-x"`},
		{`a@b namespaces="git"`, "there is no key"},
		{`a@b namespaces=git KEY`, "they must be name="},
		{`a@b namespaces KEY`, "a name is empty"},
		{`a@b namespaces="" KEY`, "a name is empty"},
		{`a@b namespaces="git,, file" KEY`, "a name is empty"},
		{`a@b namespaces="git KEY`, "is not closed"},
		{`a@b namespaces="g\"it" KEY`, "is not closed"},
		{`a@b namespaces="g\it" KEY`, "backslash"},
		{`a@b namespaces="git", KEY`, `type of key, ""`},
		{`a@b namespaces="git"x KEY`, "commas between them"},
		{`a@b namespaces="git",namespaces="git" KEY`, `option "namespaces" twice`},
		{`a@b namespaces="git" namespaces="git" KEY`, "unknown type of key"},
		{`a@b restrict KEY`, `unknown option, or type of key, "restrict"`},
		{`a@b ,namespaces="git" KEY`, `unknown option, or type of key, ""`},
		{`a@b valid-after="2026010101" KEY`, "not a time"},
		{`a@b valid-after="20260230Z" KEY`, "not a time"},
		{`a@b valid-after="2026-01-01" KEY`, "not a time"},
		{`a@b valid-after="0x7fffffff" KEY`, "not a time"},
		{`a@b valid-after="+0260101Z" KEY`, "not a time"},
		{`a@b valid-after="20260101Z",valid-before="20260101Z" KEY`, "not after valid-after"},
		{`a@b valid-before="00010101Z" KEY`, "not a time"}, // the zero time, which bounds nothing
		{`a@b valid-before="19700101Z" KEY`, "not a time"}, // as for ssh-keygen
		{`a@b valid-before="19700101" KEY`, "not a time"},
		{`"a@b KEY`, "quotes must be around all"},
		{`"a@b"KEY`, "quotes must be around all"},
		{`a"@b" KEY`, "quotes must be around all"},
		{`"" KEY`, "a name is empty"},
		{"a@b, KEY", "a name is empty"},
		{"a@b,! KEY", "a name is empty"},
		{`"a@b, c@d" KEY`, "a blank is around it"},
		{"!a@b KEY", "they match nobody"},
		{"a@b,!*@b KEY", "they match nobody"},
		{"a@b\x00 KEY", "cannot be seen"},
		{"a@b\u202e KEY", "cannot be seen"},
		{"a@b\u3164 KEY", "cannot be seen"},
		{"\ufeffa@b KEY", "cannot be seen"},
		{"a@b\xff KEY", "cannot be seen"},
		{"a@b KEY\rc@d KEY", "cannot be seen"},
	} {
		a, err := ParseAllowedSigners([]byte(expand(t, c.list)))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: error %v, want %q", c.list, err, c.want)
		}
		if len(a.lines) > 0 {
			t.Errorf("%q: keys beside an error", c.list)
		}
	}
	a, err := ParseAllowedSigners([]byte(expand(t, "x\na@b KEY\ny\n")))
	const want = "line 1: there is no key\nline 3: there is no key"
	if unread := a.Unread(); err != nil || unread == nil || unread.Error() != want {
		t.Errorf("two lines: %v, %v", err, unread)
	}
	if unread := (Allowed{}).With(a).Unread(); unread == nil || unread.Error() != want {
		t.Errorf("joined to another list: %v", unread)
	}
}

// TestAllowedSignersNumbers: a key with a zero before its exponent is the same
// key with other bytes, which no signature would name.
func TestAllowedSignersNumbers(t *testing.T) {
	key := load(t, "rsa-2048").signer(t).PublicKey().(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey)
	for exponent, want := range map[string]bool{"\x01\x00\x01": true, "\x00\x01\x00\x01": false} {
		blob := ssh.Marshal(struct {
			Type, Exponent string
			N              *big.Int
		}{ssh.KeyAlgoRSA, exponent, key.N})
		_, err := ParseAllowedSigners([]byte("a@b ssh-rsa " + base64.StdEncoding.EncodeToString(blob)))
		if (err == nil) != want {
			t.Errorf("exponent %q: %v", exponent, err)
		}
	}
}

const rsa1024 = "AAAAB3NzaC1yc2EAAAADAQABAAAAgQDRubQHAnbI6s+fvcDeGd+ShyOdQ+1B4FuEEZxpb+pNCkWcTkM25qVSP2kbDI2hcztgGczemrPRXuP/aOcEi2lCNiPvDFWWJocizD1C7LXWwM69Z819ImedsXI9NWyreR57RNYibCngVUKASZp1fRcBQLeiZhMsMrgGtIHDBVw4kw=="

// TestReasons: why a key that is listed is not taken.
func TestReasons(t *testing.T) {
	signature := load(t, "ed25519").section(t, "signature")
	for _, c := range []struct {
		list string
		at   time.Time
		want []error
		text string
	}{
		{"", at, []error{ErrUnknownKey}, "SHA256:"},
		{"a@b RSA", at, []error{ErrUnknownKey}, "SHA256:"},
		{`a@b valid-before="20260104Z" KEY`, at, []error{ErrExpired}, "2026-01-05 00:00:00Z is after 2026-01-04 00:00:00Z (line 1"},
		{`a@b valid-after="20260106Z" KEY`, at, []error{ErrExpired}, "2026-01-05 00:00:00Z is before 2026-01-06 00:00:00Z (line 1"},
		{`a@b valid-before="20260105Z" KEY`, at.Add(time.Second), []error{ErrExpired}, "line 1"},
		{`a@b valid-before="20260105Z" KEY`, time.Time{}, nil, ""},
		{`a@b valid-after="20260104120001" KEY`, at, []error{ErrExpired}, "2026-01-05 00:00:00Z is "},
		{`a@b valid-before="20260105135959" KEY`, at, []error{ErrExpired}, "2026-01-05 00:00:00Z is "},
		{"a@b cert-authority KEY", at, []error{ErrUnknownKey}, "SHA256:"},
		{"a@b RSA\na@b namespaces KEY", at, []error{ErrUnknownKey}, "line 2 cannot be read"},
		{"\na@b namespaces=\"file,x\" KEY", at, []error{ErrNamespace}, "line 2 of the allowed signers allows the key only for file,x"},
		{"a@b namespaces=\"file\" KEY\na@b valid-before=\"20200101Z\" KEY", at, []error{ErrNamespace, ErrExpired}, "line 2"},
	} {
		principal, fingerprint, err := allow(t, expand(t, c.list)).Verify(ForGit, []byte(message), signature, c.at)
		if (err == nil) != (c.want == nil) || err != nil && (principal != "" || fingerprint != "" || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: %q, %q, %v", c.list, principal, fingerprint, err)
		}
		for _, want := range c.want {
			wantErr(t, c.list, err, want)
		}
	}
	// A bad signature is that, whatever else is wrong.
	_, _, err := allow(t, expand(t, `a@b valid-before="20260104Z" KEY`)).Verify(ForGit, []byte("other"), signature, at)
	wantErr(t, "bad and expired", err, ErrBadSignature)
	_, _, err = Allowed{}.Verify(ForGit, []byte(message), signature, at)
	wantErr(t, "zero list", err, ErrUnknownKey)
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"git", "git", true}, {"git", "Git", false}, {"git", "gi", false}, {"git", "gitt", false},
		{"g?t", "git", true}, {"g?t", "gt", false}, {"?", "", false}, {"*", "", true}, {"**", "x", true},
		{"*@b", "a@b", true}, {"*@b", "a@bc", false}, {"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbYbZ", false},
		{"*a", "aaaa", true}, {"a*a", "a", false}, {"[a-z]", "a", false}, {`\*`, "*", false},
		{strings.Repeat("*a", 200), strings.Repeat("a", 5000) + "b", false},
	} {
		if match(c.pattern, c.name) != c.want {
			t.Errorf("match(%q, %q) is not %v", c.pattern, c.name, c.want)
		}
	}
}
