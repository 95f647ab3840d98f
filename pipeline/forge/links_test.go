package forge

import "testing"

func TestLinksFolder(t *testing.T) {
	t.Parallel()
	for web, want := range map[string]string{
		"":                                       "",
		"https://github.com/acme/app":            "https://github.com/acme/app/tree/abc/transactions/x",
		"https://git.example.org:8443/acme/app/": "https://git.example.org:8443/acme/app/tree/abc/transactions/x",
		"https://codeberg.org/acme/app":          "https://codeberg.org/acme/app/src/commit/abc/transactions/x",
		"https://gitlab.com/acme/app":            "https://gitlab.com/acme/app/-/tree/abc/transactions/x",
		"http://[":                               "",
	} {
		if got := (Links{web}).Folder("abc", "transactions/x"); got != want {
			t.Errorf("%q: %q, want %q", web, got, want)
		}
	}
}
