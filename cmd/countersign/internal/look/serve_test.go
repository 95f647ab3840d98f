package look

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/report/site"
)

// TestT77BrowseWaits: until the ledger was audited nothing of it is served; then the pages of transactions are, and once
// all of it was read, the lists.
func TestT77BrowseWaits(t *testing.T) {
	w := newWorld(t)
	entries, err := storetest.Lives(storetest.Whole, storetest.Asked)
	check(t, err)
	w.add(entries...)
	b, err := w.open(options{})
	check(t, err)
	s := newServer(b, 1234)
	get := func(address string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, s.prefix+address, nil)
		r.Host = "127.0.0.1:1234"
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		return answer
	}
	statuses := func(what, tx string, wantTX, wantList int) {
		t.Helper()
		for address, want := range map[string]int{site.Transaction(tx): wantTX, "": wantList, "person/": wantList, "style.css": 200} {
			answer := get(address)
			if answer.Code != want || (answer.Header().Get("Refresh") == "1") != (want == 503) {
				t.Errorf("%s: %q is %d, want %d: %v", what, address, answer.Code, want, answer.Header())
			}
			if want == 503 && !strings.Contains(answer.Body.String(), "is being audited") {
				t.Errorf("%s: %q does not say what it waits for", what, address)
			}
		}
	}
	statuses("at first", "tx_0", 503, 503)
	check(t, s.prepare(t.Context()))
	statuses("read", b.ids[0], 200, 200)
	statuses("read", "tx_0", 404, 200)
}
