package conformance

import (
	"bytes"
	"crypto/elliptic"
	"encoding/binary"
	"math/big"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// keyDetails are keys that nobody has, each with one field at a bound or beyond it.
func keyDetails(g *generator) {
	g.in("line")
	line := func(kind string, blob []byte) m { return m{"line": "ada " + kind + " " + base64Of(blob)} }
	number := func(bits int, last byte) []byte { // of so many bits
		b := bytes.Repeat([]byte{0x5a}, (bits+7)/8)
		b[0] = byte(1<<((bits-1)%8)) | 1<<((bits-1)%8)>>1
		b[len(b)-1] = last
		return mpint(new(big.Int).SetBytes(b))
	}
	rsa := func(e, n []byte) m { return line("ssh-rsa", text("ssh-rsa", e, n)) }
	f4, n := []byte{1, 0, 1}, number(2048, 1)
	const twin = "a key of RSA, 2,048 bits"
	good := func(requires, note string, in m) {
		g.t.Helper()
		g.good("line", requires, note, in, nil)
	}
	good("S-22 S-41", twin, rsa(f4, n))
	good("S-22", "a key of RSA with the exponent 3", rsa([]byte{3}, n))
	good("S-22", "a key of RSA with an exponent of 24 bits", rsa([]byte{0, 0xff, 0xff, 0xff}, n))
	good("S-22", "a key of RSA, 16,384 bits", rsa(f4, number(16384, 1)))
	bad := func(requires, note, like string, in m) {
		g.t.Helper()
		g.bad("line", requires, "line: "+note, like, in)
	}
	bad("S-22", "RSA of 2,047 bits", twin, rsa(f4, number(2047, 1)))
	bad("S-22", "RSA of 1,024 bits", twin, rsa(f4, number(1024, 1)))
	bad("S-22", "RSA of 16,385 bits", "a key of RSA, 16,384 bits", rsa(f4, number(16385, 1)))
	bad("S-22", "RSA with the exponent 1", twin, rsa([]byte{1}, n))
	bad("S-22", "RSA with an even exponent", twin, rsa([]byte{4}, n))
	bad("S-22", "RSA with an exponent of 25 bits", twin, rsa([]byte{1, 0, 0, 1}, n))
	bad("S-22 S-24", "RSA with the exponent 0", twin, rsa(nil, n))
	bad("S-24", "RSA with a zero before the exponent", twin, rsa([]byte{0, 1, 0, 1}, n))
	bad("S-24", "RSA with a negative modulus", twin, rsa(f4, n[1:]))
	bad("S-24", "RSA with two zeros before the modulus", twin, rsa(f4, append([]byte{0}, n...)))
	bad("S-24", "RSA with a field more", twin, line("ssh-rsa", text("ssh-rsa", f4, n, "")))
	bad("S-24", "RSA with a byte behind it", twin, line("ssh-rsa", append(text("ssh-rsa", f4, n), 0)))
	bad("S-22", "RSA without a modulus", twin, line("ssh-rsa", text("ssh-rsa", f4)))
	for _, c := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		p := c.Params()
		name := "nistp" + strings.TrimPrefix(p.Name, "P-")
		kind, size := "ecdsa-sha2-"+name, (p.BitSize+7)/8
		x, y := p.Gx.FillBytes(make([]byte, size)), p.Gy.FillBytes(make([]byte, size))
		point := append(append([]byte{4}, x...), y...)
		ec := func(kind, curve string, point []byte) m { return line(kind, text(kind, curve, point)) }
		twin := "a key of " + kind
		good("S-22", twin, ec(kind, name, point))
		bad("S-22", kind+" with a point that is compressed", twin, ec(kind, name, append([]byte{2 + y[size-1]&1}, x...)))
		bad("S-22", kind+" with a point that is hybrid", twin, ec(kind, name, append([]byte{6 + y[size-1]&1}, point[1:]...)))
		bad("S-22", kind+" with no point", twin, ec(kind, name, []byte{0}))
		bad("S-22", kind+" with a byte behind the point", twin, ec(kind, name, append(bytes.Clone(point), 0)))
		off := bytes.Clone(point)
		off[len(off)-1] ^= 1
		bad("S-22", kind+" with a point that is not on the curve", twin, ec(kind, name, off))
		bad("S-22", kind+" that names another curve", twin, ec(kind, map[bool]string{true: "nistp384", false: "nistp256"}[name == "nistp256"], point))
	}
	ed := publicOf(madeUp)
	edTwin := "a key of ssh-ed25519"
	good("S-22", edTwin, line("ssh-ed25519", ed))
	bad("S-22", "Ed25519 of 31 bytes", edTwin, line("ssh-ed25519", text("ssh-ed25519", ed[19:50])))
	bad("S-22", "Ed25519 of 33 bytes", edTwin, line("ssh-ed25519", text("ssh-ed25519", append(bytes.Clone(ed[19:]), 0))))
	long := bytes.Clone(ed)
	binary.BigEndian.PutUint32(long[15:], 33)
	bad("S-21", "Ed25519 with a field that is longer than what is there", edTwin, line("ssh-ed25519", long))
	bad("S-41 S-22", "Ed25519 called something else", edTwin, line("ecdsa-sha2-nistp256", ed))
	bad("S-22", "DSA", edTwin, line("ssh-dss", text("ssh-dss", n, n, n, n)))
	const sk = "sk-ssh-ed25519@openssh.com"
	good("S-22", "a key of "+sk, line(sk, text(sk, ed[19:], "ssh:")))
	bad("S-22 S-24", "a security key without an application", "a key of "+sk, line(sk, text(sk, ed[19:])))
	bad("S-24", "a security key with a field more", "a key of "+sk, line(sk, text(sk, ed[19:], "ssh:", "")))

	key := teststand.Ed25519(1).Public
	for _, c := range [][2]string{
		{"valid-after", "19700101000001Z"}, {"valid-after", "197001010001Z"}, {"valid-before", "20260105"}, {"valid-before", "202601051200"}, {"valid-after", "20240229Z"}, {"valid-after", "99991231Z"},
	} {
		good("S-44", "a time: "+c[0]+" "+c[1], m{"line": "ada " + c[0] + `="` + c[1] + `" ` + key})
	}
	for _, c := range [][2]string{
		{"valid-after", "19700101000000Z"}, {"valid-before", "19700101"}, {"valid-after", "20260229Z"}, {"valid-after", "20260105240000Z"}, {"valid-after", "20260105126000Z"}, {"valid-after", "20260105120060Z"}, {"valid-after", "202601051Z"}, {"valid-after", "20260105ZZ"}, {"valid-after", "+2026010Z"}, {"valid-after", "２0260105Z"},
	} {
		bad("S-44", "a time: "+c[0]+" "+c[1], "a time: valid-after 20240229Z", m{"line": "ada " + c[0] + `="` + c[1] + `" ` + key})
	}
}

// keyFileDetails are files of keys, in a question that is like one of a signed ledger.
func keyFileDetails(g *generator, twin, key string) {
	ask := func(requires, note string, file any, rules ...string) {
		g.t.Helper()
		v := Vector{Op: "audit", Requires: strings.Fields(requires), Note: "keys: " + note, Input: m{"allowed_signers": file}, Expect: Expectation{Verdict: Accept}}
		if len(rules) > 0 {
			v.Expect, v.Twin = Expectation{Verdict: Refuse, Rules: rules}, g.noted(twin)
		}
		g.like(twin, v)
	}
	line := strings.TrimSuffix(key, "\n")
	old := strings.Replace(line, " ", ` valid-before="20260101Z" `, 1)
	authority := strings.Replace(line, " ", ` cert-authority `, 1)
	ask("S-40", "a comment, a blank line, and CR LF", "# keys\r\n\r\n \t"+line+"\r\n")
	ask("S-40", "without its last LF", line)
	ask("S-40", "a comment alone", "# "+line+"\n", "L13")
	ask("S-40", "nothing", "", "L13")
	ask("S-40", "a certificate authority", authority+"\n", "L13")
	ask("S-40 S-47", "a certificate authority, beside the key", authority+"\n"+key)
	ask("S-47", "an unreadable line, beside the key", "x\n"+key)
	ask("S-47", "an unreadable line alone", "x "+line+"\n", "L13")
	ask("S-47", "a line that is too old, and one that is not", old+"\n"+key)
	ask("S-47", "lines that are too old", old+"\n"+old+"\n", "L13")
	ask("S-40", "a line that is not UTF-8, beside the key", Bytes("\xff\n"+key))
	ask("S-40 S-41", "the key behind what is not visible", "\u200b"+key, "L13")
	fill := 1<<20 - len(key) - len("# \n")
	ask("S-47", "a file of 1 MiB", m{"join": []any{key + "# ", m{"repeat": "x", "times": fill}, "\n"}})
	ask("S-47", "a file of 1 MiB and a byte", m{"join": []any{key + "# ", m{"repeat": "x", "times": fill + 1}, "\n"}}, "L13")
}
