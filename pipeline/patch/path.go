package patch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// CheckPath tells whether a path may be touched at all: relative, slash
// separated, and harmless on every file system that a clone may land on. The
// error is an *Error that names the path.
func CheckPath(path string) error {
	if why := badPath(path); why != "" {
		return &Error{Path: path, Message: why}
	}
	return nil
}

func badPath(path string) string {
	switch {
	case path == "":
		return "empty path"
	case !utf8.ValidString(path):
		return "path is not valid UTF-8"
	case strings.ContainsRune(path, '\\'):
		return "backslash in path"
	case path[0] == '/':
		return "absolute path"
	case len(path) > 1 && path[1] == ':':
		return "drive path"
	case strings.IndexFunc(path, unsafeRune) >= 0:
		return "control, invisible or direction character in path"
	case len(path) > 4096:
		return "path is longer than 4096 bytes"
	}
	for name := range strings.SplitSeq(path, "/") {
		if why := badName(name); why != "" {
			return why
		}
	}
	return ""
}

func badName(name string) string {
	switch {
	case name == "":
		return "empty path component"
	case name == "." || name == "..":
		return "path traversal"
	case len(name) > 255:
		return "path component is longer than 255 bytes"
	case readsAsDotGit(name):
		return "path component reads as .git"
	case strings.ContainsRune(name, ':'):
		return "colon in path" // an NTFS stream, a macOS separator
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "path component ends in a dot or space"
	case isDevice(name):
		return "path component is a device name"
	}
	return ""
}

// unsafeRune covers what a reader cannot see or is misled by: C0, C1, DEL, the
// Unicode Cf and Zl/Zp classes (zero width, bidi, HFS+ ignorable), variation
// selectors and other default-ignorable code points.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// readsAsDotGit: case does not count on HFS+, APFS and NTFS; NTFS drops
// trailing dots, spaces and a stream name, and has the short name GIT~1.
func readsAsDotGit(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = fold(strings.TrimRight(name, ". "))
	return name == ".git" || name == "git~1"
}

// isDevice follows Microsoft's "Naming Files, Paths, and Namespaces": the
// reserved names, with any extension.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	if !strings.HasPrefix(stem, "COM") && !strings.HasPrefix(stem, "LPT") {
		return false
	}
	digit := stem[3:]
	return len(digit) == 1 && digit >= "0" && digit <= "9" || digit == "¹" || digit == "²" || digit == "³"
}

// fold maps a name to what file systems that ignore case and Unicode
// normalisation (APFS, HFS+, NTFS) would compare.
func fold(name string) string {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return norm.NFD.String(cases.Fold().String(norm.NFD.String(name)))
		}
	}
	return strings.ToLower(name)
}
