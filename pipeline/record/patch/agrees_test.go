package patch

import (
	"maps"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// TestT53Agrees: canonical bytes agree with their own files and hashes, and with no others that they show.
func TestT53Agrees(t *testing.T) {
	file := func(s string) *File { return &File{Mode: 0o100644, Data: []byte(s)} }
	base := fstest.MapFS{}
	for name, data := range map[string]string{"gone": "a\nb", "emptied": "", "old": "same\n", "text": "a\nb\n", "mode": "m\n", "bin": "\x00a", "bingone": "\x00b"} {
		base[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
	}
	after := map[string]*File{
		"gone": nil, "emptied": nil, "old": nil, "new": file("same\n"), "text": file("a\nc\n"), "mode": {Mode: 0o100755, Data: []byte("m\n")},
		"bin": file("\x00c"), "bingone": nil, "binnew": file("\x00d"), "made": file("x\ny"), "madeempty": file(""),
	}
	set, err := NewTree(base).Between(after)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Parse(set.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	files := set.Paths()
	before, then := set.Hashes()
	if err := d.Agrees(files, before, then, true); err != nil {
		t.Fatal(err)
	}
	other := canon.Sum([]byte("other"))
	unseen := map[string]bool{"before text": true, "after text": true, "before bin": true, "before bingone": true}
	for _, name := range files {
		for when, m := range map[string]map[string]*string{"before ": before, "after ": then} {
			for what, h := range map[string]*string{"another": &other, "none": nil} {
				if m[name] == nil {
					h = &other
				}
				was := m[name]
				m[name] = h
				shown := was == nil || h == nil || !unseen[when+name]
				if got := d.Agrees(files, before, then, true); (got != nil) != shown {
					t.Errorf("%s%s, %s: %v", when, name, what, got)
				}
				m[name] = was
			}
		}
		fewer := maps.Clone(before)
		delete(fewer, name)
		if d.Agrees(files, fewer, then, true) == nil {
			t.Errorf("%s has no hash before, which goes", name)
		}
	}
	if d.Agrees(files[1:], before, then, true) == nil || d.Agrees(append(files, "z"), before, then, true) == nil {
		t.Error("other files are taken")
	}
	before["made"], then["made"] = nil, &other
	if err := d.Agrees(files, before, then, false); err != nil {
		t.Errorf("without its secrets: %v", err)
	}
}
