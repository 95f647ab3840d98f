package page_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// T94, L22: a recorded Policy that takes keys, or passkeys of a page, which the commit that it names does not, is told.
func TestT94CodeKeys(t *testing.T) {
	const at = "https://acme.github.io"
	tree := fstest.MapFS{
		".github/countersign.yml": {Data: []byte("version: 1\napprovals: {keys: keys, passkeys: \"" + at + "\"}\n")}, "keys": {Data: []byte("ada " + teststand.Ed25519(1).Public + "\n")},
		"others": {Data: []byte("eve " + teststand.Ed25519(2).Public + "\n")},
	}
	read := page.CodeKeys(func(commit string) (fs.FS, error) {
		if commit != "here" {
			return nil, errors.New("not here")
		}
		return tree, nil
	})
	for what, change := range map[string]func(*policy.Approvals){
		"":                      func(*policy.Approvals) {},
		"another file":          func(a *policy.Approvals) { a.Keys = "others" },
		"keys of the forge":     func(a *policy.Approvals) { a.ForgeKeys = true },
		"another page":          func(a *policy.Approvals) { a.Passkeys = "https://eve.github.io" },
		"no page":               func(a *policy.Approvals) { a.Passkeys = "" },
		"a file that is not in": func(a *policy.Approvals) { a.Keys = "none" },
	} {
		p := policy.Default()
		p.Approvals.Keys, p.Approvals.Passkeys = "keys", at
		change(&p.Approvals)
		keys, here := read("here", p)
		if !here || (keys.Err == nil) != (what == "") || what == "" && keys.Passkeys != at {
			t.Errorf("%s: %v, %+v", what, here, keys)
		}
	}
	if _, here := read("gone", policy.Default()); here {
		t.Error("a commit that is not here is read")
	}
}
