package approval_test

import (
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestIsRegistered: a line of a key that an account has at the forge is one only where
// such keys are taken, and the list says nothing of this key.
func TestIsRegistered(t *testing.T) {
	key, other := teststand.Ed25519(1).Public, teststand.Ed25519(2).Public
	line := `github:ada namespaces="countersign-decision@v2",valid-after="20260101000000Z" ` + key
	taken, not := keys(t, "bob "+other+"\n"), keys(t, "bob "+other+"\n")
	listed := keys(t, "bob "+key+"\n")
	taken.Forge, listed.Forge = true, true
	for text, want := range map[string]bool{
		line: true, "ada " + key: false, line + " ada": false, "github:ada " + key: false,
		`github:ada,eve namespaces="countersign-decision@v2",valid-after="20260101000000Z" ` + key:                        false,
		`github:ada namespaces="countersign-decision@v2",valid-after="20261301000000Z" ` + key:                            false,
		`github:ada namespaces="*",valid-after="20260101000000Z" ` + key:                                                  false,
		`github:ada namespaces="countersign-decision@v2",valid-after="20260101000000Z",valid-before="20270101Z" ` + key:   false,
		`github:* namespaces="countersign-decision@v2",valid-after="20260101000000Z" ` + key:                              false,
		`github:ada namespaces="countersign-decision@v2",valid-after="20260101000000Z" ssh-ed25519 AAAA`:                  false,
		`cert-authority,github:ada namespaces="countersign-decision@v2",valid-after="20260101000000Z" ssh-ed25519 ` + key: false,
	} {
		if taken.IsRegistered(text, decidedAt) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
	for at, want := range map[string]bool{"2026-01-01T00:00:00Z": true, "2025-12-31T23:59:59Z": false, "0001-01-01T00:00:00Z": false} {
		began, err := time.Parse(time.RFC3339, at)
		if err != nil || taken.IsRegistered(line, began) != want {
			t.Errorf("a change that was proposed at %s: %v", at, err)
		}
	}
	for name, k := range map[string]approval.Keys{"not taken": not, "listed": listed} {
		if k.IsRegistered(line, decidedAt) {
			t.Errorf("%s: a registered key", name)
		}
	}
}
