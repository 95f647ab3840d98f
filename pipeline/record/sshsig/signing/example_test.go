package signing_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
)

// A key that was made for this sample.
const sampleKey = `-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACCoVnmoX7nNgWO/r4pSUz/aujauV4ZsWnOVK/7fHlsfEwAAAIirVQxAq1UM
QAAAAAtzc2gtZWQyNTUxOQAAACCoVnmoX7nNgWO/r4pSUz/aujauV4ZsWnOVK/7fHlsfEw
AAAEAv8/ApfIBsVIgwYDNmuIEhRuBCPps/whBQJVgKH5n/V6hWeahfuc2BY7+vilJTP9q6
Nq5Xhmxac5Ur/t8eWx8TAAAAAAECAwQF
-----END OPENSSH PRIVATE KEY-----
`

const sampleAllowed = `# who may sign the ledger
alice@example.com namespaces="git",valid-after="20260101Z" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKhWeahfuc2BY7+vilJTP9q6Nq5Xhmxac5Ur/t8eWx8T laptop
`

const samplePayload = `tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904
author Alice <alice@example.com> 1767571200 +0000
committer Alice <alice@example.com> 1767571200 +0000

hello
`

func Example() {
	key, err := signing.ParseKey([]byte(sampleKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	signature, err := key.Sign([]byte(samplePayload))
	if err != nil {
		fmt.Println(err)
		return
	}
	commit := signing.Insert([]byte(samplePayload), signature)
	fmt.Print(string(commit))

	allowed, err := sshsig.ParseAllowedSigners([]byte(sampleAllowed))
	if err != nil {
		fmt.Println(err)
		return
	}
	payload, signature, err := signing.Split(commit)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(allowed.Verify(sshsig.ForGit, payload, signature, time.Unix(1767571200, 0)))
	// Output:
	// tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904
	// author Alice <alice@example.com> 1767571200 +0000
	// committer Alice <alice@example.com> 1767571200 +0000
	// gpgsig -----BEGIN SSH SIGNATURE-----
	//  U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgqFZ5qF+5zYFjv6+KUlM/2ro2rl
	//  eGbFpzlSv+3x5bHxMAAAADZ2l0AAAAAAAAAAZzaGE1MTIAAABTAAAAC3NzaC1lZDI1NTE5
	//  AAAAQNd6/l5zzQBTABtvf+R2AdxaIL962RdOHZCfQPLeuFwdesM7Zbz397RiS6ZUF6uAOa
	//  OJzkA0DjRjfxzEKoJL7AM=
	//  -----END SSH SIGNATURE-----
	//
	// hello
	// alice@example.com SHA256:ktUNsXoHwkay3NcZffzRZ6Y6KsytVjAVxSFS45iDQDY <nil>
}

// TestSample: the package comment shows what the Example does.
func TestSample(t *testing.T) {
	doc, err := os.ReadFile("../sshsig.go")
	if err != nil {
		t.Fatal(err)
	}
	key, err := signing.ParseKey([]byte(sampleKey))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := key.Sign([]byte(samplePayload))
	if err != nil {
		t.Fatal(err)
	}
	for name, sample := range map[string]string{
		"commit":          string(signing.Insert([]byte(samplePayload), signature)),
		"allowed signers": sampleAllowed,
	} {
		shown := "//\t" + strings.ReplaceAll(strings.TrimSuffix(sample, "\n"), "\n", "\n//\t")
		shown = strings.ReplaceAll(shown, "//\t\n", "//\n")
		if !strings.Contains(string(doc), shown) {
			t.Errorf("doc.go does not hold the sample of the %s:\n%s", name, shown)
		}
	}
}
