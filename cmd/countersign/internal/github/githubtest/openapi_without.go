//go:build !openapi

// For as long as go.sum lacks what kin-openapi needs.

package githubtest

import (
	"net/http"
	"net/http/httptest"
)

type description struct{}

type checked struct{ violations []string }

func loadDescription() (*description, error) { return nil, nil }

func (*description) request(operation, *http.Request, []byte) *checked { return &checked{} }

func (*checked) response(*httptest.ResponseRecorder) error { return nil }
