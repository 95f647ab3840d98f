package forge_test

import (
	"cmp"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/forge"
)

// who writes the owners of a path in a line, "-" for nobody.
func who(t *testing.T, file, path string) string {
	t.Helper()
	rules, err := forge.ParseOwners([]byte(file))
	if err != nil {
		t.Fatalf("%q: %v", file, err)
	}
	return cmp.Or(strings.Join(rules.Of(path), " "), "-")
}

// TestCodeOwnersDocumented: what GitHub's "About code owners" says, in words of ours.
func TestCodeOwnersDocumented(t *testing.T) {
	for _, c := range []struct{ rule, file, paths, none string }{
		{"a star is everything", "* @a", "x a/b .github/x", ""},
		{"an ending, anywhere", "*.js @a # with a comment", "x.js a/b.js", "x.jsx js"},
		{"a directory at the root and all in it", "/build/logs/ @a", "build/logs/x build/logs/a/b", "x/build/logs/y build/logs"},
		{"a star below a directory is not deep", "docs/* @a", "docs/x.md", "docs/a/x.md a/docs/x.md"},
		{"a directory anywhere", "apps/ @a", "apps/x a/apps/b/c", "apps"},
		{"a directory at the root", "/docs/ @a", "docs/x", "a/docs/x"},
		{"two stars before a directory", "**/logs @a", "logs/x build/logs/x deeply/nested/logs/a/b", "logsx/y"},
		{"letter case", "/Docs/ @a\nREADME @a", "Docs/x README", "docs/x readme"},
		{"a space behind a backslash", `/my\ file @a`, "my file", "my"},
		{"a question mark", "/a?c @a", "abc a{c", "ac a/c"},
		{"two stars inside", "/a/**/b @a", "a/b a/x/b a/x/y/b/c", "ab"},
		{"a path of names at the root", "/a/b @a", "a/b a/b/c", "a/bc x/a/b"},
		{"a name with other characters", "/a{b}/ü,=~ @a", "a{b}/ü,=~", "a{b}/x axby/ü,=~"},
		{"with a star and a letter of theirs", "/{a}*b?c @a", "{a}xxbyc {a}b{c {a}}b}c", "aab {a}bc"},
		{"with a carriage return", "/x @a\r\n/y @b\r", "x", "z"},
	} {
		for want, paths := range map[string]string{"@a": c.paths, "-": c.none} {
			for _, path := range splitPaths(paths, c.rule) {
				if got := who(t, c.file, path); got != want {
					t.Errorf("%s: %q: %s is owned by %s, want %s", c.rule, c.file, path, got, want)
				}
			}
		}
	}
}

// TestCodeOwnersExample: the patterns of the example on GitHub's page, and the
// owners that its comments say follow.
func TestCodeOwnersExample(t *testing.T) {
	const file = `* @global-owner1 @global-owner2
*.js    @js-owner #here
*.go docs@example.com
*.txt @octo-org/octocats
/build/logs/ @doctocat
docs/* docs@example.com
apps/ @octocat
/docs/ @doctocat
/scripts/ @doctocat @octocat
**/logs @octocat
/apps/ @octocat
/apps/github`
	for path, want := range map[string]string{
		"README": "@global-owner1 @global-owner2", "lib/x.rb": "@global-owner1 @global-owner2",
		"x.js": "@js-owner", "lib/x.js": "@js-owner", "x.JS": "@global-owner1 @global-owner2",
		"lib/x.go": "docs@example.com", "a/b/x.txt": "@octo-org/octocats",
		"build/x":                     "@global-owner1 @global-owner2",
		"lib/docs/getting-started.md": "@global-owner1 @global-owner2", "lib/docs/build-app/troubleshooting.md": "@global-owner1 @global-owner2",
		"lib/apps/x": "@octocat", "docs/getting-started.md": "@doctocat", "docs/build-app/troubleshooting.md": "@doctocat",
		"scripts/x": "@doctocat @octocat", "lib/scripts/x": "@global-owner1 @global-owner2",
		"build/logs/x": "@octocat", "scripts/logs/x": "@octocat", "deeply/nested/logs/x": "@octocat",
		"apps/x.js": "@octocat", "apps/github": "-", "apps/github/x": "-", "apps/githubx": "@octocat",
	} {
		if got := who(t, file, path); got != want {
			t.Errorf("%s is owned by %s, want %s", path, got, want)
		}
	}
	for line, row := range map[string]struct{ path, want string }{
		"/apps/github @doctocat":        {"apps/github/x", "@doctocat"},
		"docs/* docs@example.com":       {"docs/getting-started.md", "docs@example.com"},
		"docs/*  docs@example.com":      {"docs/build-app/troubleshooting.md", "@doctocat"},
		"/build/logs/ @octo-org/keeper": {"build/logs/a/b", "@octo-org/keeper"},
	} {
		if got := who(t, file+"\n"+line, row.path); got != row.want {
			t.Errorf("%s: %s is owned by %s, want %s", line, row.path, got, row.want)
		}
	}
}

func splitPaths(paths, rule string) []string {
	if strings.HasPrefix(rule, "a space") {
		return []string{paths}
	}
	return strings.Fields(paths)
}

func TestCodeOwners(t *testing.T) {
	for _, c := range []struct{ rule, file, path, want string }{
		{"nothing", "", "x", "-"},
		{"comments and blanks", "# * @a\n\n  # * @a\n", "x", "-"},
		{"the last line wins", "* @a\n*.go @b\n/x.go @c", "x.go", "@c"},
		{"not one that does not match", "* @a\n*.go @b\n/y.go @c", "x.go", "@b"},
		{"the last line, not the closest", "/x.go @c\n* @a", "x.go", "@a"},
		{"several on a line", "* @a @acme/sec\tada@example.org", "x", "@a @acme/sec ada@example.org"},
		{"several lines are not added up", "* @a\n* @b", "x", "@b"},
		{"nobody on purpose", "* @a\n/apps/github", "apps/github/x", "-"},
		{"nobody but for a comment", "* @a\n/apps # @b", "apps/x", "-"},
		{"a long address", "* @a\n*.go ada@example.photography", "x.go", "ada@example.photography"},
		{"a byte order mark", "\ufeff*.go @a", "x.go", "@a"},

		{"skipped: a negation", "* @a\n!*.go @b", "x.go", "@a"},
		{"skipped: a negation, of a path with a !", "* @a\n!*.go @b", "!x.go", "@a"},
		{"skipped: a class", "* @a\n*.[ch] @b", "x.c", "@a"},
		{"skipped: a heading of GitLab", "* @a\n[Documentation] @b", "D", "@a"},
		{"skipped: an escaped #", "* @a\n\\#x @b", "#x", "@a"},
		{"skipped: three asterisks", "* @a\n***/x @b", "y/x", "@a"},
		{"skipped: an owner that is none", "* @a\n*.go @b, @c", "x.go", "@a"},
		{"skipped: an address that is none", "* @a\n*.go docs@", "x.go", "@a"},
		{"skipped: no @", "* @a\n*.go b", "x.go", "@a"},
		{"skipped: a team below a team", "* @a\n*.go @acme/sec/x", "x.go", "@a"},

		{"doubtful: a # inside", "* @a\n/x#y @b", "x#y", "-"},
		{"doubtful: a # inside, read as a comment", "* @a\n/x#y @b", "x", "-"},
		{"doubtful: a # inside, of another path", "* @a\n/x#y @b", "xy", "@a"},
		{"doubtful: an escaped bracket", "* @a\n/app/\\[id\\]/ @b", "app/[id]/page", "-"},
		{"doubtful, and then certain", "/app/\\[id\\]/ @b\n* @a", "app/[id]/page", "@a"},
	} {
		if got := who(t, c.file, c.path); got != c.want {
			t.Errorf("%s: %q: %s is owned by %s, want %s", c.rule, c.file, c.path, got, c.want)
		}
	}
}

func TestCodeOwnersErrors(t *testing.T) {
	long := strings.Repeat("x", 61_000)
	for name, file := range map[string]string{
		"not UTF-8": "* @a\n\xff @b", "more than 3000000": strings.Repeat("#\n", 1_500_001),
		"line 2: 61003 bytes": "* @a\n" + long + " @b",
	} {
		if _, err := forge.ParseOwners([]byte(file)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := who(t, "*.go @a\n#"+long[:50_000]+"\n*.go @b", "x.go"); got != "@b" {
		t.Errorf("after a long line: %s", got)
	}
}

func TestReadCodeOwners(t *testing.T) {
	file := func(owner string) *fstest.MapFile { return &fstest.MapFile{Data: []byte("* @" + owner)} }
	const github, root, docs = ".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"
	for _, c := range []struct {
		name string
		tree fstest.MapFS
		want string
	}{
		{"none", fstest.MapFS{"x": file("a")}, "nobody"},
		{"the first", fstest.MapFS{github: file("a"), root: file("b"), docs: file("c")}, "a"},
		{"the second", fstest.MapFS{root: file("b"), docs: file("c"), ".github/x": file("a")}, "b"},
		{"the third", fstest.MapFS{docs: file("c")}, "c"},
		{"another letter case", fstest.MapFS{".github/codeowners": file("a")}, "nobody"},
		{"GitLab's place", fstest.MapFS{".gitlab/CODEOWNERS": file("a")}, "nobody"},
		{"a file of the directory's name", fstest.MapFS{".github": file("a"), root: file("b")}, "b"},
		{"a link", fstest.MapFS{github: {Mode: fs.ModeSymlink, Data: []byte("../x")}, "x": file("a"), root: file("b")}, "error"},
		{"a directory", fstest.MapFS{github + "/x": file("a"), root: file("b")}, "error"},
		{"too long", fstest.MapFS{github: {Data: make([]byte, 3_000_001)}, root: file("b")}, "error"},
	} {
		rules, err := forge.ReadOwners(c.tree)
		got := "nobody"
		if list := rules.Of("x"); len(list) > 0 {
			got = strings.TrimPrefix(list[0], "@")
		}
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.name, got, err, c.want)
		}
	}
}

func TestCodeOwnersOwns(t *testing.T) {
	rules, err := forge.ParseOwners([]byte("/user @Ada ada@example.org\n/team @bob @acme/down @acme/sec @acme/other\n/down @acme/down\n/mail eve@example.org\n"))
	if err != nil {
		t.Fatal(err)
	}
	down := errors.New("status 500")
	var asked []string
	member := func(team string) (bool, error) {
		asked = append(asked, team)
		if team == "acme/down" {
			return true, down
		}
		return team == "acme/sec", nil
	}
	for _, c := range []struct {
		path, login, asked string
		want               bool
		err                error
	}{
		{"user", "ada", "", true, nil},
		{"user", "eve", "", false, nil},
		{"team", "bob", "", true, nil},
		{"team", "eve", "acme/down acme/sec", true, nil},
		{"down", "eve", "acme/down", false, down},
		{"mail", "eve", "", false, nil},
		{"mail", "eve@example.org", "", false, nil},
		{"other", "ada", "", false, nil},
		{"user", "", "", false, nil},
		{"down", "acme/down", "acme/down", false, down},
	} {
		asked = nil
		got, err := rules.Owns(c.path, c.login, member)
		if got != c.want || err != c.err || strings.Join(asked, " ") != c.asked {
			t.Errorf("%s, %s: %v, %v, asked %v; want %+v", c.path, c.login, got, err, asked, c)
		}
	}
	if owns, err := (*forge.Owners)(nil).Owns("user", "ada", member); owns || err != nil {
		t.Error("no rules, and an owner")
	}
}
