package main

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// visit looks at a page that browse serves: visit STATUS FILE PATH [METHOD [HOST]]. FILE gets the
// address from browse or the browser, and may not be there yet; PATH is from the address. What was served
// is in the files page and headers.
func visit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: visit STATUS FILE PATH [METHOD [HOST]]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	method, host := http.MethodGet, ""
	if len(args) > 3 {
		method = args[3]
	}
	if len(args) > 4 {
		host = args[4]
	}
	for range 600 { // a minute: until the address is there, and the ledger was read
		raw, _ := os.ReadFile(ts.MkAbs(args[1]))
		base, err := url.Parse(strings.TrimSpace(string(raw)))
		if err == nil && base.Host != "" && strings.HasSuffix(string(raw), "\n") {
			if status := get(ts, base, method, args[2], host); status == want {
				return
			} else if status != http.StatusServiceUnavailable {
				ts.Fatalf("%s %s: status %d, want %d", method, args[2], status, want)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	ts.Fatalf("nothing is served")
}

func get(ts *testscript.TestScript, base *url.URL, method, path, host string) int {
	to, err := base.Parse(path)
	ts.Check(err)
	r, err := http.NewRequest(method, to.String(), nil)
	ts.Check(err)
	r.Host = host
	client := http.Client{Timeout: 30 * time.Second}
	answer, err := client.Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	var headers strings.Builder
	ts.Check(answer.Header.Write(&headers))
	ts.Check(os.WriteFile(ts.MkAbs("page"), body, 0o666))
	ts.Check(os.WriteFile(ts.MkAbs("headers"), []byte(headers.String()), 0o666))
	return answer.StatusCode
}
