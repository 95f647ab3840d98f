package witness_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

const origin = "github.com/acme/app"

// A party is a log or a witness with its private key.
type party struct {
	witness.Key
	private ed25519.PrivateKey
}

func newParty(name string, cosigns bool, seed byte) party {
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+seed)), ed25519.SeedSize)))
	k, err := witness.NewKey(name, private.Public().(ed25519.PublicKey), cosigns)
	if err != nil {
		panic(err)
	}
	return party{k, private}
}

func (p party) sign(message []byte) ([]byte, error) { return ed25519.Sign(p.private, message), nil }

var (
	log   = newParty(origin, false, 0)
	north = newParty("w.north.example", true, 1)
	south = newParty("w.south.example", true, 2)
	own   = newParty("own.example", true, 3)
)

// threeText is a file with three witnesses.
func threeText() string {
	return fmt.Sprintf("# acme\nlog %s\n\nwitness north %s https://north.example/app\nwitness south %s\nwitness own %s http://127.0.0.1:7380/\n", log, north, south, own)
}

func three(t testing.TB, more string) witness.File {
	t.Helper()
	f, err := witness.ParseFile([]byte(threeText() + more))
	fatal(t, err)
	return f
}

// history is a tree over n commits of a kind.
func history(kind string, n int) *witness.Tree {
	var leaves []witness.Hash
	for i := range n {
		leaves = append(leaves, witness.Leaf(fmt.Appendf(nil, "tree %s %d", kind, i)))
	}
	t, err := witness.NewTree(leaves)
	if err != nil {
		panic(err)
	}
	return t
}

func at(tree *witness.Tree, n int64) witness.Checkpoint {
	root, err := tree.Root(n)
	if err != nil {
		panic(err)
	}
	return witness.Checkpoint{Origin: origin, Size: n, Root: root}
}

// signedBy is a note signed by the log and by witnesses, at a time.
func signedBy(c witness.Checkpoint, when int64, by ...party) []byte {
	k := log.Key
	if c.Origin != origin {
		k = newParty(c.Origin, false, 0).Key
	}
	raw, err := c.SignLog(k, log.sign)
	if err != nil {
		panic(err)
	}
	for _, w := range by {
		line, err := c.Cosign(w.Key, w.sign, when)
		if err != nil {
			panic(err)
		}
		raw = append(raw, line...)
	}
	return raw
}

// TestTreeOfRFC6962: the roots of Certificate Transparency's own test vectors.
func TestTreeOfRFC6962(t *testing.T) {
	t.Parallel()
	var leaves []witness.Hash
	roots := strings.Fields(`6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125
		aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77 d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7
		4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4 76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef
		ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c 5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328`)
	for _, leaf := range []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"} {
		raw, err := hex.DecodeString(leaf)
		fatal(t, err)
		leaves = append(leaves, witness.Leaf(raw))
	}
	tree, err := witness.NewTree(leaves)
	fatal(t, err)
	for i, want := range roots {
		if got, err := tree.Root(int64(i + 1)); err != nil || hex.EncodeToString(got[:]) != want {
			t.Errorf("%d leaves: %x, %v", i+1, got, err)
		}
	}
	for _, n := range []int64{-1, 9} {
		if _, err := tree.Root(n); err == nil {
			t.Errorf("there is a root of %d leaves", n)
		}
	}
}

// TestProofs: each is taken by a checker of RFC 9162 that shares nothing with what made it.
func TestProofs(t *testing.T) {
	t.Parallel()
	const most = 40
	tree := history("a", most)
	for n := int64(1); n <= most; n++ {
		for old := int64(1); old <= n; old++ {
			proof, err := tree.Consistency(old, n)
			if err != nil || !consistent(proof, old, n, at(tree, old).Root, at(tree, n).Root) {
				t.Fatalf("from %d to %d: %v", old, n, err)
			}
			other := at(history("b", most), old).Root
			if consistent(proof, old, n, other, at(tree, n).Root) {
				t.Fatalf("from %d to %d: of another history", old, n)
			}
		}
	}
	for _, c := range [][2]int64{{-1, 3}, {4, 3}, {1, 41}} {
		if _, err := tree.Consistency(c[0], c[1]); err == nil {
			t.Errorf("there is a proof from %d to %d", c[0], c[1])
		}
	}
	if proof, err := tree.Consistency(0, 3); err != nil || len(proof) != 0 {
		t.Errorf("from nothing: %v %v", proof, err)
	}
}

func node(left, right witness.Hash) witness.Hash {
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

// consistent is RFC 9162, section 2.1.4.2.
func consistent(proof []witness.Hash, first, second int64, firstRoot, secondRoot witness.Hash) bool {
	if first == second {
		return len(proof) == 0 && firstRoot == secondRoot
	}
	if first&(first-1) == 0 {
		proof = append([]witness.Hash{firstRoot}, proof...)
	}
	if len(proof) == 0 {
		return false
	}
	fn, sn := first-1, second-1
	for fn&1 == 1 {
		fn, sn = fn>>1, sn>>1
	}
	fr, sr := proof[0], proof[0]
	for _, c := range proof[1:] {
		if sn == 0 {
			return false
		}
		if fn&1 == 1 || fn == sn {
			fr, sr = node(c, fr), node(c, sr)
			for fn&1 == 0 && fn != 0 {
				fn, sn = fn>>1, sn>>1
			}
		} else {
			sr = node(sr, c)
		}
		fn, sn = fn>>1, sn>>1
	}
	return fr == firstRoot && sr == secondRoot && sn == 0
}

func TestCheckpointText(t *testing.T) {
	t.Parallel()
	good := at(history("a", 3), 3)
	if got, err := witness.ParseCheckpoint(good.Text()); err != nil || got != good {
		t.Errorf("%v %v", got, err)
	}
	root := base64.StdEncoding.EncodeToString(good.Root[:])
	for _, bad := range []string{
		"", "\n", origin + "\n3\n" + root, origin + "\n3\n" + root + "\n\n", origin + "\n3\n" + root + "\nmore\n", "\n3\n" + root + "\n",
		origin + "\n03\n" + root + "\n", origin + "\n+3\n" + root + "\n", origin + "\n-3\n" + root + "\n", origin + "\n9223372036854775808\n" + root + "\n",
		origin + "\n3\n" + root[:40] + "\n", origin + "\n3\n" + strings.TrimRight(root, "=") + "\n", origin + "\n3\n" + root + " \n", origin + "\r\n3\n" + root + "\n",
		"a b\n3\n" + root + "\n", "a+b\n3\n" + root + "\n", "a\u202eb\n3\n" + root + "\n", strings.Repeat("x", 201) + "\n3\n" + root + "\n",
		origin + "\n3\n" + root[:42] + "t=\n", // bits that are not zero
	} {
		if got, err := witness.ParseCheckpoint(bad); err == nil || errors.As(err, new(*canon.NewerError)) {
			t.Errorf("%q is %v, %v", bad, got, err)
		}
	}
	for line, newer := range map[string]bool{"needs_version 1.1": true, "needs_version 2.0": true, "needs_version 1.0": false, "needs_version soon": false, "needs_version ": false, "extra {}": false, "needs_version 1.1\n": false} {
		if got, err := witness.ParseCheckpoint(good.Text() + line + "\n"); err == nil || errors.As(err, new(*canon.NewerError)) != newer {
			t.Errorf("%q is %v, %v", line, got, err)
		}
	}
}

// TestKeyOfSpecification: the verifier key of c2sp.org/signed-note, and its note, which is no checkpoint.
func TestKeyOfSpecification(t *testing.T) {
	t.Parallel()
	const vkey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
	k, err := witness.ParseKey(vkey)
	if err != nil || k.String() != vkey || k.Name() != "example.com/foo" || k.Cosigns() {
		t.Fatalf("%v %v", k, err)
	}
	signature, err := base64.StdEncoding.DecodeString("Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=")
	if err != nil || binary.BigEndian.Uint32(signature) != k.KeyHash() {
		t.Fatalf("%v %x", err, k.KeyHash())
	}
	if k.Verify([]byte("This is an example message.\n"), signature[4:]) {
		t.Error("a key vouches for what is no checkpoint")
	}
	for _, bad := range []string{
		"", "a", "a+530d903a", "example.com/foo+530d903b+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "example.com/fox+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/foo+530D903A+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv", "+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"x+00000000+BgAA", "x+00000000+AgAA", "x+00000000+",
	} {
		if _, err := witness.ParseKey(bad); err == nil {
			t.Errorf("%q is a key", bad)
		}
	}
}

// TestCosignatureByHand: what is signed is what the specification says, read without this package's reader.
func TestCosignatureByHand(t *testing.T) {
	t.Parallel()
	c := at(history("a", 7), 7)
	line, err := c.Cosign(north.Key, north.sign, 1_679_315_147)
	fatal(t, err)
	words := strings.Fields(string(line))
	raw, err := base64.StdEncoding.DecodeString(words[2])
	if err != nil || words[0] != "—" || words[1] != "w.north.example" || len(raw) != 4+8+64 {
		t.Fatalf("%q", line)
	}
	public := north.private.Public().(ed25519.PublicKey)
	id := sha256.Sum256(append([]byte("w.north.example\n\x04"), public...))
	if string(raw[:4]) != string(id[:4]) || binary.BigEndian.Uint64(raw[4:]) != 1_679_315_147 {
		t.Errorf("%x", raw[:12])
	}
	if !ed25519.Verify(public, []byte("cosignature/v1\ntime 1679315147\n"+c.Text()), raw[12:]) {
		t.Error("the signature is of something else")
	}
	if _, err := c.Cosign(north.Key, south.sign, 1); err == nil {
		t.Error("another's private key signs")
	}
	for _, when := range []uint64{0, 1 << 63, 1<<63 - 1, 253402300800} { // no time, and none that there is
		signature := binary.BigEndian.AppendUint64(nil, when)
		signature = append(signature, ed25519.Sign(north.private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", when&^(1<<63), c.Text()))...)
		if north.Verify([]byte(c.Text()), signature) {
			t.Errorf("a signature of the time %d is good", when)
		}
	}
	for _, when := range []int64{0, -1} {
		if _, err := c.Cosign(north.Key, north.sign, when); err == nil {
			t.Errorf("signed at %d", when)
		}
	}
	if _, err := c.SignLog(north.Key, north.sign); err == nil {
		t.Error("a witness signs as the log")
	}
}
