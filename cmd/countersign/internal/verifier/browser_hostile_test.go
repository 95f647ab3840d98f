//go:build browser

package verifier_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/verifier"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// TestT78BrowserTamperers: on ledgers tampered with in each eighth of the ways of gitstore's tests, the page says
// what the audit of the repository says, with a tip that is known and without. TestT78Wasm has its program meet all.
func TestT78BrowserTamperers(t *testing.T) {
	x := newBench(t)
	dir := t.TempDir()
	_, err := command("../../../..", []string{"COUNTERSIGN_TAMPER=", "COUNTERSIGN_BUNDLES=" + dir}, "go", "test", "-count=1", "-run", "^TestT78SameVerdict$", "./gitstore")
	check(t, err)
	all, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if check(t, err); len(all) < 80 {
		t.Fatalf("%d verdicts were kept", len(all))
	}
	p := x.b.Open(t, pagetest.File(t, x.page), pagetest.Look{})
	for i, name := range all {
		if i%8 > 0 {
			continue
		}
		raw, err := os.ReadFile(name)
		check(t, err)
		var c struct {
			Kind, Signers, Tip string
			Want               result
		}
		check(t, json.Unmarshal(raw, &c))
		set(p, "tip", c.Tip)
		set(p, "signers", c.Signers)
		choose(p, strings.TrimSuffix(name, ".json")+".bundle")
		same(t, c.Kind, p, c.Want)
	}
	t.Logf("%d ledgers", len(all))
	x.quiet(p, pagetest.File(t, x.page))
}

// TestT78BrowserHostile: what is no bundle, or half of one, or one with bits that were flipped, ends in
// a finding or an error, and never in "Sound" or in a hang.
func TestT78BrowserHostile(t *testing.T) {
	x := newBench(t)
	whole, err := os.ReadFile(x.bundle(verifier.BundleFile, x.tip))
	check(t, err)
	pack := bytes.Index(whole, []byte("\n\nPACK")) + 2
	hostile := map[string][]byte{
		"empty": nil, "text": []byte("<!DOCTYPE html><script>alert(1)</script>"), "zeros": make([]byte, 1<<20),
		"a head alone": whole[:pack], "no end": whole[:len(whole)-20],
		"many objects":  bytes.Join([][]byte{whole[:pack+8], {0xff, 0xff, 0xff, 0xff}, whole[pack+12:]}, nil),
		"prerequisites": bytes.Replace(whole, []byte("# v2 git bundle\n"), []byte("# v2 git bundle\n-"+strings.Repeat("ab", 20)+" x\n"), 1),
		"twice":         append(bytes.Clone(whole), whole...),
		"other bytes":   append([]byte("# v3 git bundle\n@object-format=sha256\n"), whole[16:]...),
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 6 {
		data := bytes.Clone(whole)
		at := pack + random.IntN(len(data)-pack)
		data[at] ^= 1 << random.IntN(8)
		hostile[fmt.Sprintf("bit %d at %d", i, at)] = data
		cut := random.IntN(len(whole))
		hostile[fmt.Sprintf("cut at %d", cut)] = whole[:cut]
	}
	path := filepath.Join(x.dir, "hostile.bundle")
	p := x.b.Open(t, pagetest.File(t, x.page), pagetest.Look{})
	verdicts := map[string]int{}
	for name, data := range hostile {
		check(t, os.WriteFile(path, data, 0o666))
		choose(p, path)
		got := read(p)
		verdicts[got.Verdict]++
		var good int
		if p.Eval("document.querySelectorAll('.good').length", &good); good > 0 || strings.HasPrefix(got.Verdict, "Sound") || got.Look != "bad" || got.Verdict == "" {
			t.Errorf("%s: the page says %+v", name, got)
		}
	}
	t.Logf("verdicts: %v", verdicts)
	x.quiet(p, pagetest.File(t, x.page))
}
