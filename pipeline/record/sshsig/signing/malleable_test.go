package signing

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// TestEveryBit: no bit of git's signed commit can be another, no byte can be
// left out and none added. COUNTERSIGN_LONG=1 is for all bits of a byte, and not one of them, and for each byte with each
// kind of key.
func TestEveryBit(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			allowed, commit := f.allowed(t), f.section(t, "commit")
			if _, _, err := verifyCommit(allowed, commit); err != nil {
				t.Fatal(err)
			}
			if payload, signature, err := Split([]byte(commit)); err != nil || check(payload, signature) != nil {
				t.Fatal(err, check(payload, signature))
			}
			fast := os.Getenv("COUNTERSIGN_LONG") != "" && (f.name == "ed25519" || f.name == "rsa-2048")
			few := os.Getenv("COUNTERSIGN_LONG") == "" && f.name != "ed25519"
			for i := range len(commit) {
				if few && i%5 > 0 {
					continue
				}
				for bit := range 8 {
					if fast || bit == i%8 {
						changed := []byte(commit)
						changed[i] ^= 1 << bit
						refuse(t, allowed, "bit "+strconv.Itoa(bit), i, string(changed))
					}
				}
				refuse(t, allowed, "without the byte", i, commit[:i]+commit[i+1:])
				refuse(t, allowed, "without what follows", i, commit[:i])
				if fast {
					for _, more := range []string{" ", "\n", "\r", "\t", "\x00", "=", "A"} {
						refuse(t, allowed, strconv.Quote(more)+" before", i, commit[:i]+more+commit[i:])
					}
				}
			}
		})
	}
}

func check(payload []byte, signature string) error {
	_, err := sshsig.MadeWith(sshsig.ForGit, payload, signature)
	return err
}

func refuse(t *testing.T, a sshsig.Allowed, what string, i int, commit string) {
	t.Helper()
	if _, _, err := verifyCommit(a, commit); err == nil {
		t.Errorf("%s %d: verified\n%s", what, i, commit)
	}
	if what != "bit 0" { // one in eight is enough for what needs no list
		return
	}
	if payload, signature, err := Split([]byte(commit)); err == nil && check(payload, signature) == nil {
		t.Errorf("%s %d: it is said to be its key's\n%s", what, i, commit)
	}
}

// TestSplitRefused: commits that are not signed as git signs.
func TestSplitRefused(t *testing.T) {
	good := load(t, "ed25519").section(t, "commit")
	payload, signature, err := Split([]byte(good))
	fatal(t, err)
	head, body, _ := strings.Cut(string(payload), "\n\n")
	whole := func(headers string) string { return head + "\n" + headers + "\n" + body }
	if whole(header(signature)) != good {
		t.Fatal("the test's own commit is another")
	}
	pgp := "gpgsig -----BEGIN PGP SIGNATURE-----\n \n xx\n -----END PGP SIGNATURE-----\n \n"
	for _, c := range []struct {
		name, commit, text string
		want               error
	}{
		{"nothing", "", "not on a commit", sshsig.ErrMalformed},
		{"a tag", "object 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nx", "not on a commit", sshsig.ErrMalformed},
		{"no blank line", "tree x\n", "no end", sshsig.ErrMalformed},
		{"NUL in the header", strings.Replace(good, "author A", "author\x00A", 1), "NUL", sshsig.ErrMalformed},
		{"unsigned", string(payload), "no signature", sshsig.ErrNoSignature},
		{"signed in the message", string(payload) + "\n" + header(signature), "no signature", sshsig.ErrNoSignature},
		{"PGP", whole(pgp), "PGP", sshsig.ErrUnsupported},
		{"X.509", whole("gpgsig -----BEGIN SIGNED MESSAGE-----\n xx\n"), "X.509", sshsig.ErrUnsupported},
		{"gpgsig-sha256", whole("gpgsig-sha256" + strings.TrimPrefix(header(signature), "gpgsig")), "gpgsig-sha256", sshsig.ErrUnsupported},
		{"both", whole(header(signature) + "gpgsig-sha256" + strings.TrimPrefix(header(signature), "gpgsig")), "gpgsig-sha256", sshsig.ErrUnsupported},
		{"two", whole(header(signature) + header(signature)), "2 gpgsig", sshsig.ErrMalformed},
		{"two, one PGP", whole(pgp + header(signature)), "2 gpgsig", sshsig.ErrMalformed},
		{"two, apart", whole(header(signature) + "x y\n" + header(signature)), "2 gpgsig", sshsig.ErrMalformed},
		{"another beginning with gpgsig", whole("gpgsigs x\n" + header(signature)), "only begins", sshsig.ErrMalformed},
		{"gpgsig without a space", whole("gpgsig\n" + header(signature)), "only begins", sshsig.ErrMalformed},
		{"a header after it", whole(header(signature) + "encoding UTF-8\n"), "last header", sshsig.ErrMalformed},
		{"a header of two lines after it", whole(header(signature) + "x y\n z\n"), "last header", sshsig.ErrMalformed},
		{"before the author", strings.Replace(string(payload), "author", header(signature)+"author", 1), "last header", sshsig.ErrMalformed},
		{"empty", whole("gpgsig \n"), "from its first line", sshsig.ErrMalformed},
		{"another text", whole("gpgsig hello\n"), "from its first line", sshsig.ErrMalformed},
		{"no end", whole(strings.TrimSuffix(header(signature), " "+sshsig.End)), "from its first line", sshsig.ErrMalformed},
		{"a blank line after", whole(header(signature) + " \n"), "from its first line", sshsig.ErrMalformed},
	} {
		_, _, err := Split([]byte(c.commit))
		wantErr(t, c.name, err, c.want)
		if err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %q does not say %q", c.name, err, c.text)
		}
	}
}

func TestInsert(t *testing.T) {
	for _, c := range []struct{ payload, signature, want string }{
		{"tree x\n\nm", "a\nb\n", "tree x\ngpgsig a\n b\n\nm"},
		{"tree x\n\nm", "a\nb", "tree x\ngpgsig a\n b\n\nm"},
		{"tree x\nencoding y\n\nm\n\n", "a\n", "tree x\nencoding y\ngpgsig a\n\nm\n\n"},
		{"tree x\n\n", "a\n\n", "tree x\ngpgsig a\n \n\n"},
		{"tree x\n", "a\n", "tree x\ngpgsig a\n"},
		{"tree x\n\n", "", "tree x\n\n"},
	} {
		if got := Insert([]byte(c.payload), c.signature); string(got) != c.want {
			t.Errorf("Insert(%q, %q) = %q", c.payload, c.signature, got)
		}
	}
}
