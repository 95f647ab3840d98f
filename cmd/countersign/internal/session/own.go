package session

import (
	"context"
	"errors"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
)

// OwnKey is the person's own key that a flag names.
func (s *Session) OwnKey(named string) console.SigningKey {
	key := console.NamedKey(named, s.Getenv("HOME"))
	if key.File != "" {
		key.File = s.Path(key.File)
	}
	return key
}

// StatementSigner signs statements with the person's own key that is named, or, where none is, with the program's:
// console.ErrNoSignKey if there is none either.
func (s *Session) StatementSigner(ctx context.Context, named string) (func(namespace string, message []byte) (string, error), error) {
	if named != "" {
		key := s.OwnKey(named)
		return func(namespace string, message []byte) (string, error) {
			return s.SignWith(ctx, key, namespace, message)
		}, nil
	}
	key, err := s.LedgerKey()
	return key.SignFor, err
}

// SignWith signs with a person's own key. What their key asks for is asked on their terminal.
func (s *Session) SignWith(ctx context.Context, key console.SigningKey, namespace string, message []byte) (string, error) {
	defer s.Line.Hold()()
	armored, err := key.Sign(ctx, namespace, message, s.Teller())
	switch {
	case errors.Is(err, console.ErrNoOpenSSH):
		return "", &console.UsageError{Message: err.Error(), Hint: "install OpenSSH's client programs"}
	case err != nil:
		return "", &console.UsageError{Message: err.Error(), Hint: "--key names another key"}
	}
	return armored, nil
}
