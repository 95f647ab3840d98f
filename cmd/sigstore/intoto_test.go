package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	intoto "github.com/in-toto/in-toto-golang/in_toto"
)

// keyFiles writes a key, as countersign signs with and as in-toto loads it.
func keyFiles(t *testing.T, kind string) (private string, public intoto.Key) {
	t.Helper()
	dir := t.TempDir()
	var key, pub any
	if kind == "ed25519" {
		var err error
		pub, key, err = ed25519.GenerateKey(rand.Reader)
		check(t, err)
	} else {
		made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(t, err)
		key, pub = made, made.Public()
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	private = filepath.Join(dir, "key")
	check(t, os.WriteFile(private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	der, err = x509.MarshalPKIXPublicKey(pub)
	check(t, err)
	file := filepath.Join(dir, "key.pem")
	check(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	check(t, public.LoadKeyDefaults(file))
	return private, public
}

// layout demands the link of a key, that it is about this parent alone, and that the patch at
// hand is the one that was approved.
func layout(t *testing.T, of intoto.Key) (intoto.Metadata, map[string]intoto.Key) {
	t.Helper()
	var owner, ownerPublic intoto.Key
	private, ownerPublic := keyFiles(t, "ed25519")
	check(t, owner.LoadKeyDefaults(private))
	env := &intoto.Envelope{}
	check(t, env.SetPayload(intoto.Layout{
		Type: "layout", Expires: time.Now().Add(time.Hour).UTC().Format(intoto.ISO8601DateSchema), Keys: map[string]intoto.Key{of.KeyID: of},
		RootCas: map[string]intoto.Key{}, IntermediateCas: map[string]intoto.Key{},
		Steps: []intoto.Step{{
			Type: "step", PubKeys: []string{of.KeyID}, Threshold: 1, ExpectedCommand: []string{},
			SupplyChainItem: intoto.SupplyChainItem{
				Name:              "countersign",
				ExpectedMaterials: [][]string{{"ALLOW", "parent"}, {"DISALLOW", "*"}},
				ExpectedProducts:  [][]string{{"CREATE", "commit"}, {"CREATE", "change.diff"}, {"DISALLOW", "*"}},
			},
		}},
		Inspect: []intoto.Inspection{{
			Type: "inspection", Run: []string{"true"},
			SupplyChainItem: intoto.SupplyChainItem{
				Name:              "patch",
				ExpectedMaterials: [][]string{{"MATCH", "change.diff", "WITH", "PRODUCTS", "FROM", "countersign"}, {"DISALLOW", "*"}},
				ExpectedProducts:  [][]string{},
			},
		}},
	}))
	check(t, env.Sign(owner))
	return env, map[string]intoto.Key{ownerPublic.KeyID: ownerPublic}
}

// checkLayouts: in-toto's own library takes a link for the step of a layout, and none that was
// changed, of another key, or about another patch.
func checkLayouts(t *testing.T, attest func(key, out string), patch string) {
	for _, kind := range []string{"ed25519", "ecdsa"} {
		key, public := keyFiles(t, kind)
		_, other := keyFiles(t, kind)
		out := t.TempDir()
		attest(key, out)
		links, err := filepath.Glob(filepath.Join(out, "tx_*", "countersign.????????.link"))
		check(t, err)
		if len(links) != 1 {
			t.Fatalf("%s: links %q", kind, links)
		}
		raw, err := os.ReadFile(links[0])
		check(t, err)
		verify := func(of intoto.Key, link, patch string) error {
			t.Helper()
			dir, run := t.TempDir(), t.TempDir()
			check(t, os.WriteFile(filepath.Join(dir, filepath.Base(links[0])), []byte(link), 0o666))
			check(t, os.WriteFile(filepath.Join(run, "change.diff"), []byte(patch), 0o666))
			demanded, owners := layout(t, of)
			t.Chdir(run) // what is there, inspections find, and leave what they found
			_, err := intoto.InTotoVerify(demanded, owners, dir, "", nil, nil, false)
			return err
		}
		if err := verify(public, string(raw), patch); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		var e struct{ Payload []byte }
		check(t, json.Unmarshal(raw, &e))
		forged := strings.Replace(string(e.Payload), digestOf(patch), digestOf(patch+"\n"), 1)
		if forged == string(e.Payload) {
			t.Fatalf("the link does not name the patch: %s", forged)
		}
		encode := base64.StdEncoding.EncodeToString
		for name, err := range map[string]error{
			"another patch": verify(public, string(raw), patch+"\n"),
			"another key":   verify(other, string(raw), patch),
			"tampered":      verify(public, strings.Replace(string(raw), encode(e.Payload), encode([]byte(forged)), 1), patch+"\n"),
			"no link":       verify(public, "{}", patch),
		} {
			if err == nil {
				t.Errorf("%s, %s: in-toto takes it", kind, name)
			} else {
				t.Logf("%s, %s: %v", kind, name, err)
			}
		}
	}
}
