package sshsig

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
)

// A signerLine is one line of the file.
type signerLine struct {
	number        int
	principals    []string // patterns
	namespaces    []string // patterns; nil: any
	after, before time.Time
	key           ssh.PublicKey
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

// admits tells why the line's key may not sign commits at a time, in seconds
// as ssh-keygen compares them.
func (l signerLine) admits(at time.Time) error {
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
