package wire

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A pretender answers every request with 401 and remembers what it got.
type pretender struct{ got []*http.Request }

func (p *pretender) RoundTrip(r *http.Request) (*http.Response, error) {
	p.got = append(p.got, r)
	return &http.Response{StatusCode: 401, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func TestCredentialsNeedTLS(t *testing.T) {
	for to, sent := range map[string]bool{
		"https://example.com/r": true, "http://localhost/r": true, "http://LOCALHOST:8080/r": true, "http://127.0.0.1:8080/r": true, "http://[::1]/r": true,
		"http://example.com/r": false, "http://localhost.example.com/r": false, "http://10.0.0.1/r": false, "http://127.0.0.1.example.com/r": false,
	} {
		s, err := Open(to, Options{Authorization: "Basic x"})
		if err != nil {
			t.Fatal(err)
		}
		p := new(pretender)
		s.client.(*httpClient).guard.base = p
		_, err = s.Tip(t.Context(), "refs/heads/main")
		if err == nil || len(p.got) != 1 {
			t.Fatalf("%s: %d requests, %v", to, len(p.got), err)
		}
		if got := p.got[0].Header.Get("Authorization") != ""; got != sent {
			t.Errorf("%s: sent %v", to, got)
		}
		if !sent && !strings.Contains(err.Error(), "without TLS") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestMayVisit(t *testing.T) {
	rows := []struct {
		from, to string
		may      bool
	}{
		{"https://h/r", "https://h/x", true},
		{"https://h/r", "https://H:443/x", true},
		{"https://h:444/r", "https://h:444/x", true},
		{"http://h/r", "https://h/r", true},
		{"http://h:80/r", "https://h:443/r", true},
		{"http://h:8080/r", "https://h/r", false},
		{"http://h/r", "https://h:8443/r", false},
		{"https://h/r", "http://h/r", false},
		{"https://h/r", "https://h:444/r", false},
		{"https://h/r", "https://h.example.com/r", false},
		{"https://h/r", "https://sub.h/r", false},
		{"https://h/r", "ssh://h/r", false},
		{"https://h/r", "https://h:x/r", false},
		{"https://[::1]/r", "https://[::1]/r", true},
	}
	for _, row := range rows {
		r, err := ParseRemote(row.from, "")
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(row.to)
		if err != nil {
			continue // nor can net/http go there
		}
		if got := r.mayVisit(u) == nil; got != row.may {
			t.Errorf("%s to %s: %v", row.from, row.to, got)
		}
	}
}
