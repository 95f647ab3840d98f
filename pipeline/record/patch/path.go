package patch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// CheckPath reports whether a path may be touched at all: relative, slash
// separated, and harmless on every file system that a clone may land on. The
// error is an *Error that names the path. What is refused, and why:
//
//	not UTF-8; over 4096 bytes        APFS stores UTF-8 only; PATH_MAX of Linux
//	over 256 components               core.maxTreeDepth, stacks of tools that recurse
//	a component over 255 bytes        NAME_MAX of ext4, XFS, APFS
//	absolute, "x:", "..", ".", "//"   git's verify_path (read-cache.c)
//	backslash                         a separator on Windows: is_ntfs_dotgit (path.c)
//	colon                             NTFS: file:stream:type (MS-FSCC 2.1.5); HFS: the separator
//	.git, any case                    NTFS, HFS+, APFS, FAT, ext4 with casefold
//	.git, then dots and spaces        Win32 drops them: "Naming Files, Paths, and Namespaces"; CVE-2014-9390
//	git~1, any xxxxxx~N.yyy           8.3 short names of NTFS and FAT (MS-FSCC 2.1.5.2.1); GITHUB~1 is .github
//	.git in other letter forms        full-width and the like, which Windows code pages map to ASCII
//	U+200C and other class Cf         HFS+ ignores them when it compares: TN1150, next_hfs_char (utf8.c)
//	default ignorable, variation      ext4 and F2FS with casefold ignore them (NFDICF)
//	private use (class Co)            Cygwin stores what Win32 forbids, as ":", as U+F000 and its code
//	control characters, U+2028, 2029  forbidden by Win32; they forge lines of a terminal or log
//	final dot or space                Win32 drops them, so two names are one file
//	CON, NUL, COM1, COM¹, CONIN$ …    Win32 devices in every directory, with any extension
//
// Paths that only together do harm (by case or Unicode form) are refused when a
// Patchset is made, as that takes the tree. Not refused: " * < > ? |, which
// Windows cannot check out and git says so; a leading dash or *, as no path is
// ever put on a command line; names like .gitattributes and .gitmodules, which
// are ordinary text here (no submodule can be added) and for the Policy to
// protect.
func CheckPath(path string) error {
	if why := badPath(path); why != "" {
		return &Error{Path: path, Message: why, Try: "rename it: on some systems this name is not allowed, or means another file"}
	}
	return nil
}

// maxDepth bounds directories in directories; git's own core.maxTreeDepth is
// 512 on Windows, else 2048.
const maxDepth = 256

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
	case strings.Count(path, "/") >= maxDepth:
		return "path has more than 256 components"
	}
	for name := range strings.SplitSeq(path, "/") {
		if why := badName(name); why != "" {
			return why
		}
	}
	return ""
}

func badName(name string) string {
	ascii := lookalike(name)
	switch {
	case name == "":
		return "empty path component"
	case ascii == "." || ascii == "..":
		return "path traversal"
	case len(name) > 255:
		return "path component is longer than 255 bytes"
	case readsAsDotGit(ascii):
		return "path component reads as .git"
	case strings.ContainsRune(name, ':'):
		return "colon in path" // an NTFS stream, a macOS separator
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "path component ends in a dot or space"
	case isDevice(name):
		return "path component is a device name"
	case isShortName(name):
		return "path component is in the form of a short name (8.3)"
	}
	return ""
}

// unsafeRune covers what a reader cannot see or is misled by: C0, C1, DEL, the
// Unicode Cf and Zl/Zp classes (zero width, bidi, HFS+ ignorable), variation
// selectors and other default-ignorable code points, every space but the plain
// one, what is drawn as nothing, and private use.
func unsafeRune(r rune) bool {
	if r < unicode.MaxASCII {
		return r < ' '
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Z, unicode.Co,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || strings.ContainsRune(blank, r)
}

// blank are the characters whose class is that of a symbol, letter or mark
// although fonts draw nothing for them: a braille pattern without dots, the
// musical null notehead, the Khitan filler, and the hieroglyphic blanks. The
// fillers of Hangul and the inherent vowels of Khmer are default-ignorable.
const blank = "\u2800\U0001d159\U00016fe4\U00013441\U00013442"

// lookalike is the name in compatibility form: full-width letters and the like
// become ASCII, as Windows does when a program uses a code page.
func lookalike(name string) string { return norm.NFKC.String(name) }

// readsAsDotGit: case does not count on HFS+, APFS and NTFS; NTFS drops
// trailing dots, spaces and a stream name, and has the short name GIT~1.
func readsAsDotGit(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = FoldName(strings.TrimRight(name, ". "))
	return name == ".git" || name == "git~1"
}

// isShortName: up to eight characters that end in ~ and a number, and up to
// three after a dot. Windows makes such names for long ones, in hexadecimal
// after the first four: GIT~1, GI7EB~1, GITHUB~1.
func isShortName(name string) bool {
	stem, ext, _ := strings.Cut(name, ".")
	head, number, ok := strings.Cut(stem, "~")
	return ok && head != "" && number != "" && strings.Trim(number, "0123456789") == "" &&
		utf8.RuneCountInString(stem) <= 8 && utf8.RuneCountInString(ext) <= 3 && !strings.Contains(ext, ".")
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
