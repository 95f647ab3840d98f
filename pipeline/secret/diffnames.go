package secret

import "strings"

// name takes a header line with a name, and notes the path after the patch.
func (r *diffReader) name(prefix string, from, end int) {
	name := string(r.text[from:end])
	if prefix == "diff --git " {
		r.files, r.binary = append(r.files, diffFile{path: gitName(name)}), false
	}
	last := &r.files[len(r.files)-1]
	switch {
	case prefix == "+++ " && name != "/dev/null", prefix == "--- " && last.path == "":
		last.path = side(strings.TrimSuffix(name, "\t"))
	case prefix == "rename to ", prefix == "copy to ":
		last.path, last.fresh = unquoted(name), true
	}
	r.add(from, end, heading)
}

// gitName is the path in "a/path b/path", "" where the two differ.
func gitName(names string) string {
	half := len(names) / 2
	if len(names)%2 == 0 || names[half] != ' ' || side(names[:half]) != side(names[half+1:]) {
		return ""
	}
	return side(names[half+1:])
}

func side(name string) string {
	name = unquoted(name)
	return strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/")
}

func unquoted(name string) string {
	if !strings.HasPrefix(name, `"`) {
		return name
	}
	return strings.ReplaceAll(strings.Trim(name, `"`), `\"`, `"`)
}
