package approval_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

const (
	site     = "https://acme.github.io"
	siteHost = "acme.github.io"
)

func passkey() teststand.Passkey {
	return teststand.Passkey{Seed: 7, Host: siteHost, Origin: site, Flags: teststand.Touched | teststand.Verified}
}

// T94 A passkey counts for what its person was asked, on the page that the Policy names, and for nothing else. What is
// taken here, ssh-keygen takes as well; it does not know of whose page it is, nor whether the person was verified.
func TestT94Passkeys(t *testing.T) {
	good := func(p teststand.Passkey) approval.Signature { return p.Signer().Signs(statement()) }
	verify := func(s approval.Signature, listed teststand.Passkey, change func(*approval.Keys), by string) error {
		k := keys(t, "ada "+listed.Signer().Public)
		k.Passkeys = site
		if change != nil {
			change(&k)
		}
		proof, err := approval.Verify(s, subject(), k, commentOf(by), decidedAt)
		if err == nil && (!proof.Verified || proof.Origin != k.Passkeys || "https://"+proof.Host != strings.TrimSuffix(k.Passkeys, ":8443")) {
			t.Errorf("%+v", proof)
		}
		return err
	}
	var all []foreign
	for what, change := range map[string]func(*teststand.Passkey){
		"as Chromium writes it":      func(*teststand.Passkey) {},
		"without crossOrigin":        func(p *teststand.Passkey) { p.Words = words(`"}`) },
		"with members of the future": func(p *teststand.Passkey) { p.Words = words(`","crossOrigin":false,"other":"more"}`) },
		"that is copied to devices":  func(p *teststand.Passkey) { p.Flags |= 8 | 16 },
	} {
		p := passkey()
		change(&p)
		err := verify(good(p), p, nil, "ada")
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		all = append(all, foreignCase(what, p, good(p), err == nil))
		verifyWithKeygen(t, p.Signer(), good(p))
	}
	port := passkey()
	port.Origin = site + ":8443"
	if err := verify(good(port), port, func(k *approval.Keys) { k.Passkeys = port.Origin }, "ada"); err != nil {
		t.Errorf("a page at a port: %v", err)
	}

	tried := 0
	refuse := func(what string, err error) {
		t.Helper()
		if tried++; err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	forge := func(what string, change func(*teststand.Passkey)) {
		t.Helper()
		p := passkey()
		change(&p)
		err := verify(good(p), p, nil, "ada")
		refuse(what, err)
		all = append(all, foreignCase(what, p, good(p), err == nil))
	}
	for _, origin := range []string{
		"", "null", "http://acme.github.io", "https://acme.github.io/", "https://acme.github.io:8443", "https://ACME.github.io", "https://evil.acme.github.io", "https://acme.github.io.evil.org",
		"https://github.io", "https://acme.github.iO", "https://аcme.github.io", "file://", "https://acme.github.io\x00", " https://acme.github.io", `https://acme.github.io","x":"`, `https://acme.github.io\`,
	} {
		forge(fmt.Sprintf("asked on %q", origin), func(p *teststand.Passkey) { p.Origin = origin })
		forge(fmt.Sprintf("asked on %q, which the words hide", origin), func(p *teststand.Passkey) {
			p.Origin = origin
			p.Words = func(challenge, _ string) string { return webauthn(challenge, site) }
		})
		forge(fmt.Sprintf("asked on %q, which the signature hides", origin), func(p *teststand.Passkey) {
			p.Words = func(challenge, _ string) string { return webauthn(challenge, origin) }
		})
	}
	for _, host := range []string{"", "ssh:", "github.io", "evil.acme.github.io", "acme.github.io.", "ACME.github.io", "localhost", site} {
		forge("a passkey of "+host, func(p *teststand.Passkey) { p.Host = host })
		forge("a passkey that was asked by "+host, func(p *teststand.Passkey) { p.Asked = "evil" + host })
	}
	for flags := range 256 {
		if f := byte(flags); f&^(8|16) != teststand.Touched|teststand.Verified {
			forge(fmt.Sprintf("flags %08b", f), func(p *teststand.Passkey) { p.Flags = f })
		}
	}
	for what, text := range map[string]func(challenge, origin string) string{
		"no words":             func(string, string) string { return "" },
		"a registration":       func(c, o string) string { return strings.Replace(webauthn(c, o), ".get", ".create", 1) },
		"a payment":            func(c, o string) string { return strings.Replace(webauthn(c, o), "webauthn.", "payment.", 1) },
		"another challenge":    func(c, o string) string { return webauthn("AAAA"+c[4:], o) },
		"half a challenge":     func(c, o string) string { return webauthn(c[:len(c)/2], o) },
		"no challenge":         func(_, o string) string { return webauthn("", o) },
		"a challenge and more": func(c, o string) string { return webauthn(c+"AA", o) },
		"a padded challenge":   func(c, o string) string { return webauthn(c+"=", o) },
		"a hex challenge":      func(c, o string) string { return webauthn(fmt.Sprintf("%x", c), o) },
		"another order": func(c, o string) string {
			return `{"challenge":"` + c + `","type":"webauthn.get","origin":"` + o + `"}`
		},
		"blanks":                 func(c, o string) string { return strings.Replace(webauthn(c, o), ":", ": ", 1) },
		"a blank before":         func(c, o string) string { return " " + webauthn(c, o) },
		"a second object":        func(c, o string) string { return webauthn(c, o) + "{}" },
		"no end":                 func(c, o string) string { return strings.TrimSuffix(webauthn(c, o), "}") },
		"a type in another case": func(c, o string) string { return strings.Replace(webauthn(c, o), "get", "GET", 1) },
		"the origin in a member": func(c, o string) string {
			return `{"type":"webauthn.get","challenge":"` + c + `","topOrigin":"` + o + `"}`
		},
		"an origin and more":      func(c, o string) string { return webauthn(c, o+".evil.org") },
		"a frame":                 words(`","crossOrigin":true}`),
		"a frame, told later":     words(`","x":1,"crossOrigin":true}`),
		"a frame in another case": words(`","crossorigin":true}`),
		"no true and no false":    words(`","crossOrigin":null}`),
		"falsehood":               words(`","crossOrigin":falsehood}`),
		"a comment":               words(`" /* */}`),
	} {
		forge(what, func(p *teststand.Passkey) { p.Words = text })
	}
	forge("extensions", func(p *teststand.Passkey) { p.Flags, p.Extensions = p.Flags|0x80, "\xa1\x61x\xf5" })
	forge("extensions that no flag tells", func(p *teststand.Passkey) { p.Extensions = "\xa0" })
	forge("something behind it", func(p *teststand.Passkey) { p.More = "\x00" })
	forge("a field behind it", func(p *teststand.Passkey) { p.More = "\x00\x00\x00\x00" })
	for _, format := range []string{"sk-ecdsa-sha2-nistp256@openssh.com", "ecdsa-sha2-nistp256", "webauthn-sk-ssh-ed25519@openssh.com", "webauthn-sk-ecdsa-sha2-nistp256", "webauthn-sk-ecdsa-sha2-nistp384@openssh.com"} {
		forge("format "+format, func(p *teststand.Passkey) { p.Format = format })
	}
	for i := range 37 + 32 { // of the host's hash, the flags, the counter and the words' hash
		forge(fmt.Sprintf("bit %d of what is signed", i), func(p *teststand.Passkey) {
			p.Over = func(b []byte) []byte { b[i] ^= 1; return b }
		})
	}

	for _, name := range []string{"sk-ecdsa", "sk-ed25519"} {
		for _, flags := range []byte{teststand.Touched, teststand.Touched | teststand.Verified} {
			plain := teststand.SecurityKeyFor(siteHost, name, flags)
			verifyWithKeygen(t, plain, plain.Signs(statement())) // which knows of no site
			k := keys(t, "ada "+plain.Public)
			for _, k.Passkeys = range []string{"", site} {
				_, err := approval.Verify(plain.Signs(statement()), subject(), k, commentOf("ada"), decidedAt)
				refuse(name+", asked by no browser", err)
			}
			_, _, err := k.Allowed.Verify("git", []byte("a commit"), plain.Sign("git", []byte("a commit")), decidedAt)
			refuse(name+", of a commit, asked by no browser", err)
		}
	}
	mine, other := passkey(), passkey()
	other.Seed = 9
	refuse("somebody else's passkey", verify(good(other), mine, nil, "ada"))
	refuse("posted by somebody else", verify(good(mine), mine, nil, "eve"))
	refuse("a Policy that takes none", verify(good(mine), mine, func(k *approval.Keys) { k.Passkeys = "" }, "ada"))
	refuse("a Policy that takes those of another site", verify(good(mine), mine, func(k *approval.Keys) { k.Passkeys = "https://other.github.io" }, "ada"))
	refuse("no list", verify(good(mine), mine, func(k *approval.Keys) { k.Err = fmt.Errorf("none") }, "ada"))
	copied := passkey()
	copied.Flags |= 8
	refuse("a copied one for hardware", verify(good(copied), copied, func(k *approval.Keys) { k.Hardware = true }, "ada"))
	for _, namespace := range []string{"git", "file", "countersign-disposition@v1", "countersign-decision@v1", ""} {
		s := approval.Signature{Statement: statement(), Armored: mine.Signer().Sign(namespace, statement().Bytes())}
		refuse("signed for "+namespace, verify(s, mine, nil, "ada"))
		k := keys(t, "ada "+mine.Signer().Public)
		_, _, err := k.Allowed.Verify(namespace, []byte("a commit"), mine.Signer().Sign(namespace, []byte("a commit")), decidedAt)
		refuse("a commit for "+namespace, err)
	}
	s := good(mine)
	s.Statement.Reason = "another"
	refuse("another statement", verify(s, mine, nil, "ada"))
	all = append(all, foreignCase("another statement", mine, s, false), foreignCase("somebody else's passkey", mine, good(other), false))
	besideSimpleWebAuthn(t, all)
	for _, software := range []teststand.Signer{teststand.Ed25519(1), teststand.SecurityKey("sk-ecdsa", 5)} { // no passkey, and none is needed
		k := keys(t, "ada "+software.Public)
		k.Passkeys = site
		if _, err := approval.Verify(software.Signs(statement()), subject(), k, commentOf("ada"), decidedAt); err != nil {
			t.Errorf("%s beside passkeys: %v", software.Name, err)
		}
	}
	if tried < 400 {
		t.Errorf("%d forgeries", tried)
	}
	t.Logf("%d forgeries, none taken", tried)
}

// webauthn are a browser's words.
func webauthn(challenge, origin string) string {
	return `{"type":"webauthn.get","challenge":"` + challenge + `","origin":"` + origin + `","crossOrigin":false}`
}

// words end in something else behind the origin.
func words(end string) func(challenge, origin string) string {
	return func(challenge, origin string) string {
		return strings.TrimSuffix(webauthn(challenge, origin), `","crossOrigin":false}`) + end
	}
}
