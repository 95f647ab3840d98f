package sshsig

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

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

func (l *signerLine) setOption(lower, name string, value *string) (err error) {
	switch {
	case lower == "cert-authority":
		return errors.New("cert-authority: certificates are not supported; list the signers' own keys")
	case lower != "namespaces" && lower != "valid-after" && lower != "valid-before":
		return fmt.Errorf("unknown option, or type of key, %q", name)
	case value == nil:
		return fmt.Errorf("option %q has no value", name)
	case lower == "namespaces":
		l.namespaces, err = parsePatterns(*value)
	case lower == "valid-after":
		l.after, err = parseTime(*value)
	default:
		l.before, err = parseTime(*value)
	}
	if err != nil {
		return fmt.Errorf("%s=%q: %w", lower, *value, err)
	}
	return nil
}

// parseTime reads YYYYMMDDZ, YYYYMMDDHHMMZ or YYYYMMDDHHMMSSZ. Without the Z
// ssh-keygen reads the machine's own time zone, and two machines would audit
// one history differently.
func parseTime(text string) (time.Time, error) {
	layouts := map[int]string{9: "20060102Z", 13: "200601021504Z", 15: "20060102150405Z"}
	if layout, ok := layouts[len(text)]; ok {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	} else if layout, ok := layouts[len(text)+1]; ok {
		if _, err := time.Parse(layout, text+"Z"); err == nil {
			return time.Time{}, fmt.Errorf("it has no time zone; write %q, so that it is one time on every machine", text+"Z")
		}
	}
	return time.Time{}, errors.New("not a time such as 20060102Z or 20060102150405Z")
}
