package wire

import (
	"encoding/base64"
	"errors"
	"strings"
)

// Basic is the value of an Authorization header for a user and a password or
// token.
func Basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// ExtraHeader returns the value of the Authorization header in a line of Git's
// http.extraheader, which is where actions/checkout leaves its token. Other
// headers are an error, and so is a line break.
func ExtraHeader(line string) (string, error) {
	name, value, ok := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	if !ok || !strings.EqualFold(strings.TrimSpace(name), "Authorization") || value == "" {
		return "", errors.New("http.extraheader is not an Authorization header")
	}
	return value, checkHeader(value)
}

func checkHeader(value string) error {
	if strings.ContainsFunc(value, isControl) {
		return errors.New("the Authorization header has control characters")
	}
	return nil
}
