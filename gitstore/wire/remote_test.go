package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/wire"
)

func TestParseRemote(t *testing.T) {
	rows := []struct{ raw, redacted string }{
		{"https://github.com/o/r.git", "https://github.com/o/r.git"},
		{"https://github.com/o/r/", "https://github.com/o/r"},
		{"HTTPS://u:p@github.com:8443/o/r", "https://github.com:8443/o/r"},
		{"https://token@github.com/o/r", "https://github.com/o/r"},
		{"https://h/a%20b", "https://h/a%20b"},
		{"http://[::1]:80/r", "http://[::1]:80/r"},
		{"ssh://git@github.com/o/r.git", "ssh://github.com/o/r.git"},
		{"ssh://git:pw@h:2222/~me/r", "ssh://h:2222/~me/r"},
		{"git@github.com:o/r.git", "ssh://github.com/o/r.git"},
		{"github.com:/o/r.git", "ssh://github.com/o/r.git"},
		{"me@[::1]:r", "ssh://[::1]/r"},
		{"file:///srv/r.git", "/srv/r.git"},
		{"file://localhost/srv/a%20b", "/srv/a b"},
		{"/srv/./r", "/srv/r"},
		{"../r", "/srv/r"},
		{"./a:b", "/srv/base/a:b"},
		{"r", "/srv/base/r"},
	}
	for _, row := range rows {
		r, err := wire.ParseRemote(row.raw, "/srv/base")
		if err != nil {
			t.Errorf("%s: %v", row.raw, err)
			continue
		}
		if got := r.Redacted(); got != row.redacted {
			t.Errorf("%s is %s, want %s", row.raw, got, row.redacted)
		}
		if got := fmt.Sprintf("%v|%s|%+v|%#v", r, r, r, r); got != strings.Repeat("|"+row.redacted, 4)[1:] {
			t.Errorf("%s prints as %s", row.raw, got)
		}
	}
}

func TestParseRemoteRefuses(t *testing.T) {
	for _, raw := range []string{"ext::sh -c id", "::x", "http::https://h/r", "git://h/r", "ftp://h/r", "git+ssh://h/r", "javascript://h/r", "fd::3"} {
		if _, err := wire.ParseRemote(raw, "/dir"); !errors.Is(err, wire.ErrScheme) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{
		"", "-x", "--upload-pack=x", "https://", "https://h", "https://h/", "https:///r", "https://h/r?token=x", "https://h/r#x", "https://h:0/r", "https://h:65536/r",
		"https://h:x/r", "https://a b/r", "https://h/%zz", "https://h/a\nb", "ssh://-oProxyCommand=x/r", "ssh://h", "ssh://h/%0a", "-oProxyCommand=x:r", "h:-x", "h:",
		"https:/u:p@h/r", "https:/h/r", "ssh:h/r", "https:u:p@h/r", "u:p@h:r", "u@v@h:r", "file://h/r", "file://u:p@localhost/r", "file://", "h:/r\x00", "https://h%00/r",
	} {
		if r, err := wire.ParseRemote(raw, "/dir"); err == nil {
			t.Errorf("%q is %s", raw, r)
		}
	}
	if r, err := wire.ParseRemote("r", ""); err == nil {
		t.Errorf("a path relative to nothing is %s", r)
	}
}

// Another repository on the same server has the same scheme, user and path to it.
func TestSibling(t *testing.T) {
	for _, c := range []struct{ address, want string }{
		{"https://example.org/acme/site", "https://example.org/a/b"},
		{"https://example.org/acme/site.git", "https://example.org/a/b.git"},
		{"https://example.org:8443/sub/acme/site.git/", "https://example.org:8443/sub/a/b.git"},
		{"https://u:p@example.org/acme/site", "https://u:p@example.org/a/b"},
		{"http://[::1]:80/acme/site", "http://[::1]:80/a/b"},
		{"ssh://git@example.org:22/acme/site.git", "ssh://git@example.org:22/a/b.git"},
		{"git@example.org:acme/site.git", "git@example.org:a/b.git"},
		{"git@[::1]:acme/site", "git@[::1]:a/b"},
		{"example.org:/srv/acme/site", "example.org:/srv/a/b"},
		{"https://example.org/site", ""},
		{"https://example.org//site", ""},
		{"https://example.org/acme//", ""},
		{"https://example.org/acme/.git", ""},
		{"git@example.org:site", ""},
		{"git@example.org:/site", ""},
		{"/srv/git/acme/site.git", ""},
		{"acme/site", ""},
		{"file:///srv/acme/site", ""},
		{"ext::sh acme/site", ""},
		{"https://example.org/acme/site?x=/y/z", ""},
		{"", ""},
	} {
		got, err := wire.Sibling(c.address, "a/b")
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", c.address, got, err)
		}
	}
}
