package secret_test

import (
	"encoding/base64"
	"fmt"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func hostile5() map[string]string {
	n := 5 << 20
	rep := func(s string) string { return strings.Repeat(s, n/len(s)) }
	r := rand.New(rand.NewSource(1))
	b := make([]byte, n*27/64)
	const al = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range b {
		b[i] = byte(r.Intn(256))
	}
	a := make([]byte, n)
	for i := range a {
		a[i] = al[r.Intn(64)]
	}
	w := make([]byte, n)
	for i := range w {
		w[i] = al[r.Intn(62)]
	}
	txt := rep("the quick brown fox password jumps over ")[:n*27/64]
	e := base64.StdEncoding.EncodeToString
	var all strings.Builder
	return map[string]string{
		"A": rep("A"), "password=": rep("password="), "key ": rep("key "), "key=": rep("key="), "eyeyey": rep("ey"), "percent": rep("%"), "pct41": rep("%41"), "backslash": rep("\\"), "esc n": rep("\\n"),
		"pem": rep("-----BEGIN PRIVATE KEY-----\n"), "pem1": rep("-----BEGIN PRIVATE KEY-----"), "pemend": rep("-----END PRIVATE KEY-----\n"), "pemboth": rep("-----BEGIN PRIVATE KEY-----\nabcd\n-----END PRIVATE KEY-----\n"),
		"b64^3 text": e([]byte(e([]byte(e([]byte(txt)))))), "b64^3 rnd": e([]byte(e([]byte(e(b))))), "rnd64": string(a), "rnd62": string(w), "rnd bytes": string(b),
		"onechar": rep("a\n"), "onechar2": rep("k\ne\ny\n=\n"), "nl": rep("\n"), "key=rnd": func() string {
			for i := 0; i < n-40; i += 40 {
				all.WriteString("key=\"")
				all.Write(w[i : i+30])
				all.WriteString("\"\n")
			}
			return all.String()
		}(),
		"ghp": func() string {
			var x strings.Builder
			for i := 0; i < n-40; i += 40 {
				x.WriteString("ghp_")
				x.Write(w[i : i+36])
			}
			return x.String()
		}(),
		"ghpAAAA": func() string {
			var x strings.Builder
			for i := 0; i < n-40; i += 40 {
				x.WriteString("ghp_AAAAAAAAAAAAAAAAAAAA")
				x.Write(w[i : i+16])
				x.WriteString(" ")
			}
			return x.String()
		}(),
		"jwtish": rep("eyaaaaaaaaaaaaaaaaaaaaa.ey"), "curl": rep("curl "), "curl -H": rep("curl -H \""), "facebook": rep("facebook 1234567890123456|"), "kind": rep("kind: secret\n"), "data": rep("data: a b "), "apikey:jar": rep("api_key=apiXapi-api"),
		"https": rep("https://a"), "xoxe": rep("xapp-1-A"), "key=mixed": func() string {
			var x strings.Builder
			for i := 0; i < n-160; i += 150 {
				x.WriteString("key=")
				x.Write(w[i : i+140])
				x.WriteString("!")
			}
			return x.String()
		}(),
		"secret.key": rep("secret.key-token_api "), "mix": rep("token: api: auth: key=> "), "utf16": rep("k\x00e\x00y\x00=\x00a\x00"), "cont": rep("\x80"), "marker": rep("<REDACTED:unscanned>"), "markerk": rep("<REDACTED:generic-api-key>key=\"a8d7f6a8d7f6g5h4\" "),
		"dots": rep("s.aaaaaaaaaaaaaaaaaaaaaaa"), "atlas": rep("aaaaaaaaaaaaaa.atlasv1.a"), "Q~": rep("aaa8Q~bbbbbbbbbbb"), "words50": rep("a.b-c_d.key"), "1line spaces": rep(" "), "uuid": rep("heroku=12345678-1234-1234-1234-12345678901 "),
		"allkw": func() string {
			var x strings.Builder
			for x.Len() < n {
				for _, k := range strings.Fields("adafruit adobe airtable algolia alibaba asana atlassian bitbucket bittrex meraki cloudflare codecov cohere coinbase confluent contentful curl datadog discord dropbox etsy facebook fastly finicity flickr freshbooks gitter heroku hubspot intercom jfrog kraken kucoin launchdarkly linear lob looker mailchimp mailgun mapbox mattermost netlify newrelic nytimes okta plaid sendbird sentry snyk sonar sourcegraph squarespace sumo telegr travis twitch twitter typeform yandex zendesk _mmk q~ atlasv1 jira") {
					x.WriteString(k + "=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
				}
			}
			return x.String()[:n]
		}(),
	}
}
func TestHostileScratch(t *testing.T) {
	f := secret.Default()
	f.Text("x key=1")
	for k, s := range hostile5() {
		if len(os.Getenv("ONLY")) > 0 && k != os.Getenv("ONLY") {
			continue
		}
		var m0, m1 runtime.MemStats
		runtime.ReadMemStats(&m0)
		b := time.Now()
		out := f.Text(s)
		d := time.Since(b)
		runtime.ReadMemStats(&m1)
		b = time.Now()
		ok := f.Text(out) == out
		fmt.Printf("%8.0fms  out %8d  idem %v  uns %v alloc %dMB %s\n", d.Seconds()*1000, len(out), ok, strings.Count(out, "unscanned"), (m1.TotalAlloc-m0.TotalAlloc)>>20, k)
	}
}
func ordinary5() string {
	var x strings.Builder
	fs, _ := filepath.Glob(runtime.GOROOT() + "/src/*/*.go")
	f2, _ := filepath.Glob(runtime.GOROOT() + "/src/*/*/*.go")
	for _, p := range append(fs, f2...) {
		if strings.HasPrefix(filepath.Base(filepath.Dir(p)), "x509") {
			continue
		}
		b, _ := os.ReadFile(p)
		x.Write(b)
		if x.Len() > 5<<20 {
			break
		}
	}
	return x.String()
}
func TestOrdinaryScratch(t *testing.T) {
	f := secret.Default()
	f.Text("x key=1")
	s := ordinary5()
	for range 3 {
		b := time.Now()
		fs := f.Find(s)
		fmt.Println(len(s), time.Since(b), len(fs))
		if len(fs) < 30 {
			for _, x := range fs {
				fmt.Printf("%s %.80q %q\n", x.Kind, s[x.Start:x.End], s[max(0, x.Start-30):x.Start])
			}
		}
	}
	short := "The patch changes two files and adds a line to the readme of this module, which is then built again."
	b := time.Now()
	for range 1000 {
		f.Text(short)
	}
	fmt.Println("short", time.Since(b)/1000)
}
func TestHostileDiffScratch(t *testing.T) {
	f := secret.Default()
	f.Text("x key=1")
	for k, s := range hostile5() {
		if len(os.Getenv("ONLY")) > 0 && k != os.Getenv("ONLY") {
			continue
		}
		set := change(t, map[string]string{"a": "x\n"}, map[string]string{"a": s})
		d := set.Bytes()
		b := time.Now()
		out := f.Diff(d)
		t1 := time.Since(b)
		b = time.Now()
		n := len(f.Patch(set))
		t2 := time.Since(b)
		fmt.Printf("%8.0fms diff %8.0fms patch out %8d findings %d %s\n", t1.Seconds()*1000, t2.Seconds()*1000, len(out), n, k)
	}
}
