package github

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/report"
)

// forge is the small part of GitHub's checks API that PublishCheck uses.
type forge struct {
	t      *testing.T
	runs   []map[string]any
	writes []string
	status int // answered to every request when not 0
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.status != 0 {
		w.WriteHeader(f.status)
		return
	}
	if got := r.Header.Get("Authorization"); got != "Bearer secret" {
		f.t.Errorf("Authorization is %q", got)
	}
	if r.Method == http.MethodGet {
		if r.URL.Path != "/api/repos/o/n/commits/abc/check-runs" {
			f.t.Errorf("GET %s", r.URL)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"total_count": len(f.runs), "check_runs": f.runs})
		return
	}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		f.t.Error(err)
	}
	f.writes = append(f.writes, r.Method+" "+r.URL.Path)
	if body["status"] != "completed" || body["conclusion"] != "success" {
		f.t.Errorf("body %v", body)
	}
	body["id"], body["html_url"] = 7, "https://forge.test/runs/7"
	if r.Method == http.MethodPost {
		f.runs = append(f.runs, body)
		w.WriteHeader(http.StatusCreated)
	}
	_ = json.NewEncoder(w).Encode(body)
}

func TestPublishCheckUpdatesInPlace(t *testing.T) {
	f := &forge{t: t}
	server := httptest.NewServer(f)
	defer server.Close()
	c, err := New(server.URL+"/api", "o/n", "secret")
	if err != nil {
		t.Fatal(err)
	}
	run := report.CheckRun{Name: "countersign/0123456789ab", Title: "t", Summary: "s", Conclusion: "success"}
	for range 2 {
		url, err := c.PublishCheck(context.Background(), "abc", run)
		if err != nil || url != "https://forge.test/runs/7" {
			t.Fatalf("PublishCheck = %q, %v", url, err)
		}
	}
	want := "POST /api/repos/o/n/check-runs PATCH /api/repos/o/n/check-runs/7"
	if got := strings.Join(f.writes, " "); got != want {
		t.Errorf("writes %s, want %s", got, want)
	}
}

func TestPublishCheckErrors(t *testing.T) {
	for _, status := range []int{401, 403, 404, 422, 500, 502} {
		server := httptest.NewServer(&forge{t: t, status: status})
		c, err := New(server.URL, "o/n", "secret")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.PublishCheck(context.Background(), "abc", report.CheckRun{Name: "n"}); err == nil {
			t.Errorf("status %d is no error", status)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("status %d: the token is in the error: %v", status, err)
		}
		server.Close()
	}
}

func TestNewRefusesWhatIsNoRepository(t *testing.T) {
	for _, c := range [][2]string{{"https://api.test", "o"}, {"https://api.test", "o/n/m"}, {"https://api.test", ""}, {"", "o/n"}, {"api.test", "o/n"}} {
		if _, err := New(c[0], c[1], "t"); err == nil {
			t.Errorf("New(%q, %q) is no error", c[0], c[1])
		}
	}
}
