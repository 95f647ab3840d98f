package sshsig

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Allowed is a list of who may sign, with which keys. The zero Allowed allows
// nobody. It is safe for use by several goroutines.
type Allowed struct {
	keys   map[string][]signerLine // by the public key's bytes, in the file's order
	unread []*LineError            // the lines that were passed over
	doubts []string                // what may be a name on one of these
}

// A LineError is what is wrong with one line of a file of allowed signers.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong, without the line.
func (e *LineError) Unwrap() error { return e.Err }

// ParseAllowedSigners reads a file of allowed signers (ssh-keygen(1), ALLOWED
// SIGNERS). Like ssh-keygen it passes over lines that it cannot read, for which
// [Allowed.Unread] has a [LineError] each; where it can read no other, that is
// the error. See the package comment for the form of a line.
func ParseAllowedSigners(data []byte) (Allowed, error) {
	a := Allowed{keys: map[string][]signerLine{}}
	number := 0
	for text := range bytes.SplitSeq(data, []byte("\n")) {
		number++
		trimmed := strings.TrimLeft(strings.TrimSuffix(string(text), "\r"), blank)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		line, err := parseSignerLine(trimmed)
		if errors.Is(err, errAuthority) {
			continue // it lists no signer's own key, and no certificate is taken
		}
		if err != nil {
			a.unread = append(a.unread, &LineError{number, err})
			for _, word := range strings.FieldsFunc(trimmed, func(r rune) bool { return strings.ContainsRune(blank+`,"`, r) || !unicode.IsPrint(r) }) {
				a.doubts = append(a.doubts, named(word))
			}
			continue
		}
		line.number, line.text = number, trimmed
		blob := string(line.key.blob)
		a.keys[blob] = append(a.keys[blob], line)
	}
	if len(a.keys) == 0 {
		return a, a.Unread()
	}
	return a, nil
}

// Unread says which lines were passed over and why, nil for none.
func (a Allowed) Unread() error {
	var errs []error
	for _, line := range a.unread {
		errs = append(errs, line)
	}
	return errors.Join(errs...)
}

// unlisted is the error of a signature of a key that is on no line.
func (a Allowed) unlisted(key []byte) error {
	err := fmt.Errorf("%w: %s, which the allowed signers do not list", ErrUnknownKey, blobFingerprint(key))
	if len(a.unread) > 0 {
		err = fmt.Errorf("%w, of which line %d cannot be read: %w", err, a.unread[0].Line, a.unread[0].Err)
	}
	return err
}

// A Line is a usable line of a list: its patterns of names, whose key it is, and when that
// is valid, where a zero time bounds nothing.
type Line struct {
	Principals    []string
	Fingerprint   string
	After, Before time.Time
}

// Lines are the usable lines of a list, in no order.
func (a Allowed) Lines() []Line {
	var out []Line
	for _, lines := range a.keys {
		for _, l := range lines {
			out = append(out, Line{l.principals, l.key.fingerprint(), l.after, l.before})
		}
	}
	return out
}

// A signerLine is one line of the file.
type signerLine struct {
	number        int
	text          string
	principals    []string // patterns
	namespaces    []string // patterns; nil: any
	after, before time.Time
	key           *publicKey
}

const blank = " \t"

func parseSignerLine(text string) (signerLine, error) {
	var line signerLine
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) {
		return line, errors.New("it holds characters that cannot be seen")
	}
	principals, rest, err := cutPrincipals(text)
	if err != nil {
		return line, err
	}
	if line.principals, err = parsePatterns(principals); err != nil {
		return line, fmt.Errorf("principals %q: %w", principals, err)
	}
	if line.principal() == "" {
		return line, fmt.Errorf("principals %q: they match nobody", principals)
	}
	if word, _ := cutField(rest); keyTypes[word] == 0 {
		var options string
		if options, rest, err = cutOptions(rest); err == nil {
			err = line.parseOptions(options)
		}
		if err != nil {
			return line, err
		}
	}
	kind, rest := cutField(rest)
	line.key, err = parsePublicKey(kind, rest)
	return line, err
}

// cutField cuts a field and the blanks behind it.
func cutField(text string) (field, rest string) {
	i := strings.IndexAny(text, blank)
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimLeft(text[i:], blank)
}

func cutPrincipals(text string) (principals, rest string, err error) {
	quoted, ok := strings.CutPrefix(text, `"`)
	if !ok {
		principals, rest = cutField(text)
		if strings.Contains(principals, `"`) {
			return "", "", fmt.Errorf("principals %q: quotes must be around all of them", principals)
		}
		return principals, rest, nil
	}
	principals, rest, ok = strings.Cut(quoted, `"`)
	if !ok {
		return "", "", errors.New("the quote around the principals is not closed")
	}
	if rest != "" && !strings.ContainsAny(rest[:1], blank) {
		return "", "", errors.New("a blank must follow the quoted principals")
	}
	return principals, strings.TrimLeft(rest, blank), nil
}

// principal is the name that git gives this line's signatures: its first
// pattern that, taken as a name, the line matches. (Git may also print one
// that is negated, "!a@b" before "*", which is nobody's name.)
func (l signerLine) principal() string {
	for _, name := range l.principals {
		if name[0] != '!' && matchList(l.principals, name) {
			return name
		}
	}
	return ""
}

// admits tells why the line's key may not sign for a namespace at a time, in
// seconds as ssh-keygen compares them.
func (l signerLine) admits(namespace string, at time.Time) error {
	const layout = "2006-01-02 15:04:05Z"
	if l.namespaces != nil && !matchList(l.namespaces, namespace) {
		return fmt.Errorf("%w: line %d of the allowed signers allows the key only for %s", ErrNamespace, l.number, strings.Join(l.namespaces, ","))
	}
	when := at.Unix()
	if !l.after.IsZero() && when < l.after.Unix() {
		return fmt.Errorf("%w: %s is before %s (line %d of the allowed signers)", ErrExpired, at.UTC().Format(layout), l.after.Format(layout), l.number)
	}
	if !l.before.IsZero() && when > l.before.Unix() {
		return fmt.Errorf("%w: %s is after %s (line %d of the allowed signers)", ErrExpired, at.UTC().Format(layout), l.before.Format(layout), l.number)
	}
	return nil
}

// cutOptions cuts the options, which end at a blank that is not quoted.
func cutOptions(text string) (options, rest string, err error) {
	quoted := false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t'):
			return text[:i], strings.TrimLeft(text[i:], blank), nil
		}
	}
	if quoted {
		return "", "", errors.New("a quote in the options is not closed")
	}
	return text, "", nil
}

// parseOptions reads name="value" between commas.
func (l *signerLine) parseOptions(text string) error {
	if text == "" {
		return errors.New("there is no key")
	}
	seen := map[string]bool{}
	for {
		name, value, rest, err := cutOption(text)
		if err != nil {
			return err
		}
		lower := strings.ToLower(name)
		if seen[lower] {
			return fmt.Errorf("option %q twice", name)
		}
		seen[lower] = true
		if err := l.setOption(lower, name, value); err != nil {
			return err
		}
		if rest == "" {
			break
		}
		if text = rest[1:]; text == "" {
			return errors.New("a comma ends the options")
		}
	}
	if !l.after.IsZero() && !l.before.IsZero() && !l.before.After(l.after) {
		return errors.New("valid-before is not after valid-after")
	}
	return nil
}

// cutOption cuts one option. The rest is empty or begins with a comma. The
// value is nil where there is none.
func cutOption(text string) (name string, value *string, rest string, err error) {
	i := strings.IndexAny(text, `=,"`)
	if i < 0 {
		return text, nil, "", nil
	}
	name, rest = text[:i], text[i:]
	if rest[0] == ',' {
		return name, nil, rest, nil
	}
	quoted, ok := strings.CutPrefix(rest, `="`)
	if !ok {
		return "", nil, "", fmt.Errorf("option %q: its value must stand in quotes", name)
	}
	inside, rest, ok := strings.Cut(quoted, `"`)
	if !ok || strings.Contains(inside, `\`) {
		return "", nil, "", fmt.Errorf("option %q: its value holds a quote or backslash", name)
	}
	if rest != "" && rest[0] != ',' {
		return "", nil, "", fmt.Errorf("option %q: a comma or blank must follow its value", name)
	}
	return name, &inside, rest, nil
}

var errAuthority = errors.New("cert-authority: certificates are not supported; list the signers' own keys")

func (l *signerLine) setOption(lower, name string, value *string) (err error) {
	switch {
	case lower == "cert-authority":
		return errAuthority
	case lower != "namespaces" && lower != "valid-after" && lower != "valid-before":
		return fmt.Errorf("unknown option, or type of key, %q", name)
	case value == nil:
		return fmt.Errorf("option %q has no value", name)
	case lower == "namespaces":
		l.namespaces, err = parsePatterns(*value)
	case lower == "valid-after":
		l.after, err = parseTime(*value, latest)
	default:
		l.before, err = parseTime(*value, earliest)
	}
	if err != nil {
		return fmt.Errorf("%s=%q: %w", lower, *value, err)
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
	if err != nil || layouts[len(digits)] == "" {
		return time.Time{}, errors.New("not a time such as 20060102Z or 20060102150405Z")
	}
	if !utc {
		at = at.Add(unknown)
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

// With is the list with the lines of another behind its own.
func (a Allowed) With(more Allowed) Allowed {
	all := Allowed{maps.Clone(a.keys), slices.Concat(a.unread, more.unread), slices.Concat(a.doubts, more.doubts)}
	if all.keys == nil {
		all.keys = map[string][]signerLine{}
	}
	for blob, lines := range more.keys {
		all.keys[blob] = slices.Concat(all.keys[blob], lines)
	}
	return all
}

// HasLine reports whether the list has a line, as [Proof] has it.
func (a Allowed) HasLine(text string) bool {
	for _, lines := range a.keys {
		if slices.ContainsFunc(lines, func(l signerLine) bool { return l.text == text }) {
			return true
		}
	}
	return false
}

// Lists reports whether the list has a public key, written as in a .pub file: its type,
// its bytes in base64, and any comment.
func (a Allowed) Lists(publicKey string) bool {
	fields := strings.Fields(publicKey)
	if len(fields) < 2 {
		return false
	}
	key, err := parsePublicKey(fields[0], fields[1])
	return err == nil && len(a.keys[string(key.blob)]) > 0
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
	person := map[string]bool{}
	for _, name := range known {
		person[named(name)] = true
	}
	for grown := true; grown; {
		grown = false
		for _, list := range lists {
			for _, lines := range list.keys {
				grown = joins(person, lines) || grown
			}
		}
	}
	inDoubt := func(a Allowed) bool {
		return slices.ContainsFunc(a.doubts, func(name string) bool { return person[name] })
	}
	if slices.ContainsFunc(lists, inDoubt) {
		for _, list := range lists {
			for _, name := range list.doubts {
				person[name] = true
			}
			for _, lines := range list.keys {
				for _, name := range everyName(lines) {
					person[name] = true
				}
			}
		}
	}
	out := make([]string, 0, len(person))
	for name := range person {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// joins adds what the lines of one key have, if any of it is the person's, and reports
// whether that is more than was known.
func joins(person map[string]bool, lines []signerLine) bool {
	all := everyName(lines)
	before := len(person)
	if slices.ContainsFunc(all, func(name string) bool { return person[name] }) {
		for _, name := range all {
			person[name] = true
		}
	}
	return len(person) > before
}

// everyName are the fingerprint of one key and the names that its lines have.
func everyName(lines []signerLine) []string {
	all := []string{lines[0].key.fingerprint()}
	for _, line := range lines {
		for _, name := range line.principals {
			if !strings.ContainsAny(name, "!*?") {
				all = append(all, named(name))
			}
		}
	}
	return all
}

// named is Name, but for fingerprints.
func named(name string) string {
	if strings.HasPrefix(name, "SHA256:") {
		return name
	}
	return Name(name)
}
