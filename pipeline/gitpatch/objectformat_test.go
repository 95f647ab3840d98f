package gitpatch_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// TestObjectFormats: the patch_id of a change is the same whether its diff comes from a repository with SHA-1 or with SHA-256
// objects, with whole ids, with abbreviated ones or with none; a whole id that is not the content's is refused in both
// formats.
func TestObjectFormats(t *testing.T) {
	files, err := filepath.Glob("testdata/canonical/*.txtar")
	fatal(t, err)
	index := regexp.MustCompile(`(?m)^index ([0-9a-f]{40})\.\.([0-9a-f]{40})(.*)\n`)
	none := strings.Repeat("0", 64)
	tried := map[string]int{}
	for _, file := range files {
		a := readArchive(t, file)
		base := a.base(t)
		p := a.change(t, base)
		long := map[string]string{none[:40]: none} // by SHA-1
		for _, c := range p.Changes {
			for _, f := range []*patch.File{c.Before, c.After} {
				if f != nil {
					long[f.BlobID()] = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "blob %d\x00%s", len(f.Data), f.Data)))
				}
			}
		}
		diff := string(p.Bytes())
		with := func(digits int, bend func(string) string) string {
			return index.ReplaceAllStringFunc(diff, func(line string) string {
				m := index.FindStringSubmatch(line)
				return "index " + bend(long[m[1]])[:digits] + ".." + bend(long[m[2]])[:digits] + m[3] + "\n"
			})
		}
		same := func(id string) string { return id }
		wrong := func(id string) string {
			if id == none {
				return id
			}
			return id[:63] + string("0123456789abcdef0"[strings.IndexByte("0123456789abcdef", id[63])+1])
		}
		text := strings.Contains(diff, "\n@@ ") && strings.Count(diff, "diff --git ") == strings.Count(diff, "\n--- ") // each has hunks
		for name, c := range map[string]struct {
			diff    string
			able    bool
			refused bool
		}{
			"SHA-256":                {with(64, same), true, false},
			"SHA-256, abbreviated":   {with(12, same), text, false},
			"no ids":                 {index.ReplaceAllString(diff, ""), text, false},
			"another SHA-256":        {with(64, wrong), true, true},
			"another, abbreviated":   {with(12, func(id string) string { return strings.Map(func(r rune) rune { return r ^ 1 }, id) }), false, false},
			"SHA-256 of 63 digits":   {with(63, same), false, false},
			"SHA-1 beside SHA-256":   {strings.Replace(with(64, same), "index "+long[first(p)], "index "+first(p), 1), false, false},
			"SHA-256 with a capital": {with(64, strings.ToUpper), false, true},
		} {
			d, err := gitpatch.Parse([]byte(c.diff))
			var got patch.Patchset
			if err == nil {
				got, err = d.Resolve(base)
			}
			switch {
			case err == nil && got.ID() != p.ID():
				t.Errorf("%s, %s: another patch_id\n%s", filepath.Base(file), name, got.Bytes())
			case c.refused && err == nil && c.diff != diff && c.diff != with(64, same):
				t.Errorf("%s, %s: taken\n%s", filepath.Base(file), name, c.diff)
			case c.able && !c.refused && err != nil:
				t.Errorf("%s, %s: %v\n%s", filepath.Base(file), name, err, c.diff)
			case c.able:
				tried[name]++
			}
		}
	}
	if tried["SHA-256"] < 12 || tried["no ids"] < 5 || tried["SHA-256, abbreviated"] < 5 || tried["another SHA-256"] < 12 {
		t.Errorf("%v", tried)
	}
}

// first is the SHA-1 of the first file that is there before.
func first(p patch.Patchset) string {
	for _, c := range p.Changes {
		if c.Before != nil {
			return c.Before.BlobID()
		}
	}
	return strings.Repeat("0", 40)
}
