package conformance

import (
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// passkeyDecisions are decisions by passkeys: as they are, and with each part of one wrong.
func passkeyDecisions(g *generator) {
	g.in("decision")
	const site, noon, twin = "https://acme.github.io", "2026-01-05T12:00:01Z", "decision: a passkey"
	s := statement()
	key := func(change func(*teststand.Passkey)) teststand.Signer {
		p := teststand.Passkey{Seed: 7, Host: "acme.github.io", Origin: site, Flags: teststand.Touched | teststand.Verified}
		if change != nil {
			change(&p)
		}
		return p.Signer()
	}
	ask := func(by teststand.Signer, more m) m {
		return merge(m{"statement": Bytes(s.Bytes()), "signature": Bytes(by.Signs(s).Armored), "line": "ada " + by.Public, "principal": "ada", "recorded_at": noon, "passkeys": site}, more).(m)
	}
	words := func(begin, end string) func(*teststand.Passkey) {
		return func(p *teststand.Passkey) {
			p.Words = func(challenge, origin string) string {
				return `{"type":"` + begin + `","challenge":"` + challenge + `","origin":"` + origin + `"` + end
			}
		}
	}
	flags := func(f byte) func(*teststand.Passkey) { return func(p *teststand.Passkey) { p.Flags = f } }
	g.good("decision", "S-33 S-34", twin, ask(key(nil), nil), m{"key_fingerprint": key(nil).Fingerprint()})
	g.good("decision", "S-33", twin+" without crossOrigin", ask(key(words("webauthn.get", "}")), nil), nil)
	g.good("decision", "S-33", twin+" with more words", ask(key(words("webauthn.get", `,"crossOrigin":false,"x":[1]}`)), nil), nil)
	g.good("decision", "S-33", twin+" that is copied", ask(key(flags(1|4|8|16)), nil), nil)
	g.good("decision", "S-29", twin+" where a PIN is asked", ask(key(flags(1|4|8)), m{"pin": true}), nil)
	g.good("decision", "S-29", twin+" where hardware is asked", ask(key(nil), m{"hardware": true}), nil)
	g.good("decision", "S-34", twin+" of a page at a port", ask(key(func(p *teststand.Passkey) { p.Origin += ":8443" }), m{"passkeys": site + ":8443"}), nil)
	bad := func(requires, note string, in m) {
		g.t.Helper()
		g.bad("decision", requires, twin+", "+note, twin, in)
	}
	bad("S-29", "copied where hardware is asked", ask(key(flags(1|4|8)), m{"hardware": true}))
	plain := teststand.SecurityKey("sk-ecdsa", 1|4|8)
	g.good("decision", "S-29", "decision: a security key that can be copied, where a PIN is asked", ask(plain, m{"pin": true}), nil)
	bad("S-34", "where none is taken", ask(key(nil), m{"passkeys": ""}))
	bad("S-34", "asked by another page", ask(key(func(p *teststand.Passkey) { p.Origin = "https://evil.example.org" }), nil))
	bad("S-34", "asked at another port", ask(key(func(p *teststand.Passkey) { p.Origin += ":8443" }), nil))
	bad("S-34", "of another host", ask(key(func(p *teststand.Passkey) { p.Host = "github.io" }), nil))
	bad("S-34", "of a host and its port", ask(key(func(p *teststand.Passkey) { p.Host, p.Origin = p.Host+":8443", p.Origin+":8443" }), m{"passkeys": site + ":8443"}))
	bad("S-33", "asked by no page", ask(key(func(p *teststand.Passkey) { p.Origin = "" }), m{"passkeys": ""}))
	bad("S-33", "asked by a page with a backslash", ask(key(func(p *teststand.Passkey) { p.Origin += `\` }), nil))
	for _, f := range []byte{0, 1, 4, 1 | 4 | 2, 1 | 4 | 32, 1 | 4 | 64, 1 | 4 | 128} {
		bad("S-33", "flags "+string("0123456789abcdef"[f>>4])+string("0123456789abcdef"[f&15]), ask(key(flags(f)), nil))
	}
	bad("S-33", "with extensions", ask(key(func(p *teststand.Passkey) { p.Flags, p.Extensions = p.Flags|128, "\xa0" }), nil))
	bad("S-33", "with extensions that no flag tells", ask(key(func(p *teststand.Passkey) { p.Extensions = "\xa0" }), nil))
	bad("S-33 S-24", "with something behind it", ask(key(func(p *teststand.Passkey) { p.More = "\x00" }), nil))
	bad("S-33", "made anew", ask(key(words("webauthn.create", "}")), nil))
	bad("S-33", "in a frame", ask(key(words("webauthn.get", `,"crossOrigin":true}`)), nil))
	bad("S-33", "with no end", ask(key(words("webauthn.get", `,"crossOrigin":false`)), nil))
	bad("S-33", "with a second object", ask(key(words("webauthn.get", `,"crossOrigin":false}{}`)), nil))
	bad("S-33", "with something between", ask(key(words("webauthn.get", `,"x":1,"crossOrigin":false}`)), nil))
	bad("S-33", "of another challenge", ask(key(func(p *teststand.Passkey) {
		p.Words = func(challenge, origin string) string {
			return `{"type":"webauthn.get","challenge":"AAAA` + challenge[4:] + `","origin":"` + origin + `"}`
		}
	}), nil))
	bad("S-33", "by another host than it says", ask(key(func(p *teststand.Passkey) { p.Asked = "github.io" }), nil))
	bad("S-33", "asked by a program that is no browser", ask(teststand.SecurityKeyFor("acme.github.io", "sk-ecdsa", 5), nil))
	bad("S-33", "of Ed25519, asked by a program that is no browser", ask(teststand.SecurityKeyFor("acme.github.io", "sk-ed25519", 5), nil))
	bad("S-22", "of the key's own type", ask(key(func(p *teststand.Passkey) { p.Format = "sk-ecdsa-sha2-nistp256@openssh.com" }), nil))
	bad("S-33", "for a commit", merge(ask(key(nil), nil), m{"signature": Bytes(key(nil).Sign("git", s.Bytes()))}).(m))
	g.in("sshsig")
	g.bad("sshsig", "S-33", "sshsig: a passkey for git", "the namespace of decisions", m{"message": Bytes("a message\n"), "signature": Bytes(key(nil).Sign("git", []byte("a message\n"))), "namespace": "git"})
}
