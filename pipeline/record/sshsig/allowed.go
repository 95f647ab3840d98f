package sshsig

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// Allowed is a list of who may sign, with which keys. The zero Allowed allows
// nobody. It is safe for use by several goroutines.
type Allowed struct {
	lines  []Line   // in the file's order
	unread []error  // one for each line that was passed over
	doubts []string // what may be a name on one of these
}

// A Line is a usable line of a list: who may sign with which key, for what and when.
type Line struct {
	Number        int       // from 1
	Text          string    // as [Proof] has it
	Principals    []string  // patterns
	Namespaces    []string  // patterns; nil: any
	After, Before time.Time // a zero time bounds nothing
	Type, Key     string    // of the key, and its bytes in base64
	Fingerprint   string    // of the key
}

// ParseAllowedSigners reads a file of allowed signers (ssh-keygen(1), ALLOWED
// SIGNERS). Like ssh-keygen it passes over lines that it cannot read, which
// [Allowed.Unread] tells; where it can read no other, that is
// the error. See the package comment for the form of a line.
func ParseAllowedSigners(data []byte) (Allowed, error) {
	var a Allowed
	number := 0
	for text := range bytes.SplitSeq(data, []byte("\n")) {
		number++
		trimmed := strings.TrimLeft(strings.TrimSuffix(string(text), "\r"), blank)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		line := Line{Number: number, Text: trimmed}
		switch err := line.parse(); {
		case err == nil:
			a.lines = append(a.lines, line)
		case err != errAuthority: // such a line lists no signer's own key, and no certificate is taken
			a.unread = append(a.unread, fmt.Errorf("line %d: %w", number, err))
			for _, word := range strings.FieldsFunc(trimmed, func(r rune) bool { return strings.ContainsRune(blank+`,"`, r) || !canon.Visible(r) }) {
				a.doubts = append(a.doubts, named(word))
			}
		}
	}
	if len(a.lines) == 0 {
		return a, a.Unread()
	}
	return a, nil
}

// Unread says which lines were passed over and why, nil for none.
func (a Allowed) Unread() error { return errors.Join(a.unread...) }

// Lines are the usable lines of a list.
func (a Allowed) Lines() []Line { return slices.Clone(a.lines) }

// With is the list with the lines of another behind its own.
func (a Allowed) With(more Allowed) Allowed {
	return Allowed{slices.Concat(a.lines, more.lines), slices.Concat(a.unread, more.unread), slices.Concat(a.doubts, more.doubts)}
}

// HasLine reports whether the list has a line, as [Proof] has it.
func (a Allowed) HasLine(text string) bool {
	return slices.ContainsFunc(a.lines, func(l Line) bool { return l.Text == text })
}

// Lists reports whether the list has a public key, written as in a .pub file: its type,
// its bytes in base64, and any comment.
func (a Allowed) Lists(publicKey string) bool {
	fields := append(strings.Fields(publicKey), "", "")
	key, err := parsePublicKey(fields[0], fields[1])
	return err == nil && slices.ContainsFunc(a.lines, func(l Line) bool { return l.Fingerprint == ssh.FingerprintSHA256(key) })
}

const blank = " \t"

// parse reads the text of a line.
func (l *Line) parse() error {
	if !utf8.ValidString(l.Text) || strings.ContainsFunc(l.Text, func(r rune) bool { return r != '\t' && !canon.Visible(r) }) {
		return errors.New("it holds characters that cannot be seen")
	}
	names, rest := cutField(l.Text)
	if strings.Contains(names, `"`) {
		inside, ends := strings.CutSuffix(names[1:], `"`)
		if names[0] != '"' || !ends || strings.Contains(inside, `"`) {
			return fmt.Errorf("principals %s: quotes must be around all of them, and a blank behind", names)
		}
		names = inside
	}
	var err error
	if l.Principals, err = parsePatterns(names); err != nil {
		return fmt.Errorf("principals %q: %w", names, err)
	}
	if l.principal() == "" {
		return fmt.Errorf("principals %q: they match nobody", names)
	}
	kind, rest := cutField(rest)
	if formats[kind] == nil {
		if err := l.parseOptions(kind); err != nil {
			return err
		}
		kind, rest = cutField(rest)
	}
	encoded, _ := cutField(rest)
	key, err := parsePublicKey(kind, encoded)
	if err == nil {
		l.Type, l.Key, l.Fingerprint = kind, encoded, ssh.FingerprintSHA256(key)
	}
	return err
}

// parsePublicKey reads a key as its type and its bytes in base64.
func parsePublicKey(kind, encoded string) (ssh.PublicKey, error) {
	blob, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case kind == "":
		return nil, errors.New("there is no key")
	case formats[kind] == nil:
		return nil, fmt.Errorf("unknown type of key %q", kind)
	case err != nil || encoded == "":
		return nil, fmt.Errorf("the %s key is not base64", kind)
	case KeyType(blob) != kind:
		return nil, fmt.Errorf("the %s key is damaged", kind)
	}
	return parseKey(blob)
}

// cutField cuts a field, in which blanks stand between quotes alone, and the blanks behind it.
func cutField(text string) (field, rest string) {
	quoted := false
	i := strings.IndexFunc(text, func(r rune) bool {
		quoted = quoted != (r == '"')
		return !quoted && strings.ContainsRune(blank, r)
	})
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimLeft(text[i:], blank)
}

// principal is the name that git gives this line's signatures: its first
// pattern that, taken as a name, the line matches. (Git may also print one
// that is negated, "!a@b" before "*", which is nobody's name.)
func (l Line) principal() string {
	for _, name := range l.Principals {
		if name[0] != '!' && matchList(l.Principals, name) {
			return name
		}
	}
	return ""
}

// admits tells why the line's key may not sign for a namespace at some times, in
// seconds as ssh-keygen compares them.
func (l Line) admits(namespace string, times ...time.Time) error {
	if l.Namespaces != nil && !matchList(l.Namespaces, namespace) {
		return fmt.Errorf("%w: line %d of the allowed signers allows the key only for %s", ErrNamespace, l.Number, strings.Join(l.Namespaces, ","))
	}
	for _, at := range times {
		word, bound := "before", l.After
		if bound.IsZero() || at.Unix() >= bound.Unix() {
			word, bound = "after", l.Before
		}
		if word == "after" && (bound.IsZero() || at.Unix() <= bound.Unix()) {
			continue
		}
		const layout = "2006-01-02 15:04:05Z"
		return fmt.Errorf("%w: %s is %s %s (line %d of the allowed signers)", ErrExpired, at.UTC().Format(layout), word, bound.Format(layout), l.Number)
	}
	return nil
}

var errAuthority = errors.New("cert-authority: certificates are not supported; list the signers' own keys")

// option is one option, with the comma behind it.
var option = canon.Regexp(`^([^=,"]*)(="[^"\\]*")?(,|$)`)

// parseOptions reads name="value" between commas.
func (l *Line) parseOptions(text string) error {
	switch {
	case text == "":
		return errors.New("there is no key")
	case strings.Count(text, `"`)%2 != 0:
		return errors.New("a quote in the options is not closed")
	}
	seen := map[string]bool{}
	for more := true; more; {
		part := option().FindStringSubmatch(text)
		if part == nil {
			return fmt.Errorf("options %q: they must be name=\"value\" with commas between them, the value without quotes and backslashes", text)
		}
		name, value := strings.ToLower(part[1]), strings.Trim(strings.TrimPrefix(part[2], "="), `"`)
		var err error
		switch name {
		case "cert-authority":
			return errAuthority
		case "namespaces":
			l.Namespaces, err = parsePatterns(value)
		case "valid-after":
			l.After, err = parseTime(value, latest)
		case "valid-before":
			l.Before, err = parseTime(value, earliest)
		default:
			return fmt.Errorf("unknown option, or type of key, %q", part[1])
		}
		if seen[name] {
			return fmt.Errorf("option %q twice", name)
		}
		if err != nil {
			return fmt.Errorf("%s=%q: %w", name, value, err)
		}
		seen[name] = true
		text, more = text[len(part[0]):], part[3] == ","
	}
	if !l.After.IsZero() && !l.Before.IsZero() && !l.Before.After(l.After) {
		return errors.New("valid-before is not after valid-after")
	}
	return nil
}

// A time without a zone is in that of the machine that reads it, for ssh-keygen. Here it is the same on
// all of them: a key is valid from when it is everywhere, and to when it no longer is somewhere.
const (
	latest   = 12 * time.Hour // behind UTC
	earliest = -14 * time.Hour
)

// parseTime reads YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with a Z for UTC, or in an unknown zone.
func parseTime(text string, unknown time.Duration) (time.Time, error) {
	digits, utc := strings.CutSuffix(text, "Z")
	layouts := map[int]string{8: "20060102", 12: "200601021504", 14: "20060102150405"}
	at, err := time.Parse(layouts[len(digits)], digits)
	if !utc {
		at = at.Add(unknown)
	}
	if err != nil || layouts[len(digits)] == "" || at.Unix() <= 0 { // ssh-keygen reads none of these, and the zero time would bound nothing
		return time.Time{}, errors.New("not a time such as 20060102Z or 20060102150405Z")
	}
	return at, nil
}

// parsePatterns reads a pattern-list (ssh_config(5), PATTERNS).
func parsePatterns(text string) ([]string, error) {
	list := strings.Split(text, ",")
	for _, pattern := range list {
		if name := strings.TrimPrefix(pattern, "!"); name == "" || strings.Trim(name, blank) != name {
			return nil, errors.New("a name is empty, or a blank is around it")
		}
	}
	return list, nil
}

// matchList reports whether a name matches a list: one of its patterns, and
// none that is negated.
func matchList(list []string, name string) bool {
	matched := false
	for _, pattern := range list {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if !match(pattern, name) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

// excludes reports whether a negated pattern of a list matches a name in whatever case:
// a forge has one account for Ada and ada.
func excludes(list []string, name string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		pattern, negated := strings.CutPrefix(pattern, "!")
		return negated && match(strings.ToLower(pattern), strings.ToLower(name))
	})
}

// match reports whether a whole name matches a pattern, in which * stands for
// any bytes and ? for one. It takes time in the product of both lengths.
func match(pattern, name string) bool {
	star, from := -1, 0 // the last *, and where in name what follows it is tried
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p, n = p+1, n+1
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// Name is a principal as people are told apart by it: an account has one name in
// whatever case, with "github:" before it or without.
func Name(principal string) string {
	return strings.TrimPrefix(strings.ToLower(principal), "github:")
}

// Person returns the names and the fingerprints of keys that some lists have for one
// person, of whom some of them are given: a line is one person's, with all of its names,
// and so are other lines with the same key or one of these names. A pattern names
// nobody. What is given is among them, as [Name] has it. Whose name may be on a line that
// cannot be read is told apart from nobody on these lists.
func Person(known []string, lists ...Allowed) []string {
	var all Allowed
	for _, list := range lists {
		all = all.With(list)
	}
	person := map[string]bool{}
	add := func(names []string) {
		for _, name := range names {
			person[name] = true
		}
	}
	has := func(name string) bool { return person[name] }
	for _, name := range known {
		add([]string{named(name)})
	}
	for before := -1; before < len(person); {
		before = len(person)
		for _, line := range all.lines {
			if names := line.names(); slices.ContainsFunc(names, has) {
				add(names)
			}
		}
	}
	if slices.ContainsFunc(all.doubts, has) {
		add(all.doubts)
		for _, line := range all.lines {
			add(line.names())
		}
	}
	return slices.Sorted(maps.Keys(person))
}

// names are the fingerprint of a line's key, and the names that are no patterns.
func (l Line) names() []string {
	names := []string{l.Fingerprint}
	for _, name := range l.Principals {
		if !strings.ContainsAny(name, "!*?") {
			names = append(names, named(name))
		}
	}
	return names
}

// named is Name, but for fingerprints.
func named(name string) string {
	if strings.HasPrefix(name, "SHA256:") {
		return name
	}
	return Name(name)
}
