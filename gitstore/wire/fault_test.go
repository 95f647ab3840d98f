package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// faults are one of each kind, and all with COUNTERSIGN_LONG.
func faults() []teststand.Fault {
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		return teststand.All()
	}
	return teststand.Some()
}

// Whatever happens to a push, nil means done, and the same push sent again
// brings what the first should have.
func TestT61PushFaults(t *testing.T) {
	srv, side := httpSide(t, teststand.Options{})
	for _, f := range faults() {
		t.Run(f.String(), func(t *testing.T) {
			old := side.repo.Ref(ledger)
			next, pack := side.repo.Pack(old, map[string]string{"a": f.String()})
			s := side.open(t)
			srv.FailPush(f)
			err := s.Push(t.Context(), ledger, old, next, pack)
			if err == nil {
				t.Fatal("success")
			}
			if strings.Contains(err.Error(), "<") {
				t.Errorf("the error has the page: %v", err)
			}
			applied := strings.HasSuffix(string(f.Kind), "after") || f.Kind == teststand.CutAnswer || f.Kind == teststand.Truncate
			tip, err := s.Tip(t.Context(), ledger)
			fatal(t, err)
			if applied && tip != next || !applied && tip != old {
				t.Errorf("applied should be %v; at %s, old %s, next %s", applied, tip, old, next)
			}
			err = s.Push(t.Context(), ledger, old, next, pack)
			if applied == (err == nil) {
				t.Errorf("sent again: %v", err)
			}
			if got := side.repo.Ref(ledger); got != next {
				t.Errorf("at %s, want %s", got, next)
			}
		})
	}
}

// No fault makes a ref look absent, and no fault makes half a pack a pack.
func TestT61ReadFaults(t *testing.T) {
	srv, side := httpSide(t, teststand.Options{})
	tip := side.repo.Commit(ledger, map[string]string{"a": random(t, 200<<10)})
	req := wire.FetchRequest{Wants: []packfile.ID{tip}}
	for _, f := range faults() {
		t.Run(f.String(), func(t *testing.T) {
			s := side.open(t)
			srv.SetFault(fault(f))
			if got, err := s.Tip(t.Context(), ledger); err == nil {
				t.Errorf("Tip returns %s", got)
			}
			if _, err := s.Fetch(t.Context(), req); err == nil {
				t.Error("Fetch returns something, without a list of refs")
			}
			srv.SetFault(nil)
			mustTip(t, s, ledger, tip)
			srv.SetFault(fault(f))
			if pack, err := s.Fetch(t.Context(), req); err == nil {
				t.Errorf("Fetch returns %d bytes", len(pack))
			}
			srv.SetFault(nil)
			if _, err := s.Fetch(t.Context(), req); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a server fails to answer once is read again, in a call as a whole, and what it refuses is not.
// What is pushed is sent once, and so is a read without anything to wait with.
func TestT61ReadAgain(t *testing.T) {
	srv, side := httpSide(t, teststand.Options{})
	tip := side.repo.Commit(ledger, map[string]string{"a": random(t, 200<<10)})
	req := wire.FetchRequest{Wants: []packfile.ID{tip}}
	var waits []time.Duration
	side.o.Wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	fails := func(f teststand.Fault, n int64) {
		waits = nil
		var times atomic.Int64
		times.Store(n)
		srv.SetFault(func(int, *http.Request) teststand.Fault {
			if times.Add(-1) < 0 {
				return teststand.Fault{}
			}
			return f
		})
	}
	stays := func(f teststand.Fault) bool {
		return f.Status == 400 || f.Status == 401 || f.Status == 403 || f.Status == 404 || f.Body != "" || f.Kind == teststand.HTMLBefore || f.Kind == teststand.HTMLAfter
	}
	for i, f := range append(faults(), teststand.Fault{Kind: teststand.StatusBefore, Status: 400}) {
		pause := time.Second
		if f.Status == 429 {
			pause = time.Minute
		}
		var pack bytes.Buffer
		for what, read := range map[string]func(s *wire.Server) error{
			"Tip":      func(s *wire.Server) error { _, err := s.Tip(t.Context(), ledger); return err },
			"Branches": func(s *wire.Server) error { _, err := s.Branches(t.Context()); return err },
			"Tags":     func(s *wire.Server) error { _, err := s.Tags(t.Context()); return err },
			"Fetch":    func(s *wire.Server) error { _, err := s.Fetch(t.Context(), req); return err },
			"FetchTo":  func(s *wire.Server) error { return s.FetchTo(t.Context(), req, &pack) },
		} {
			if i%3 > 0 && what != "FetchTo" && os.Getenv("COUNTERSIGN_LONG") == "" {
				continue
			}
			s := side.open(t)
			fails(f, 1)
			if err := read(s); stays(f) != (err != nil) || stays(f) != (len(waits) == 0) || err == nil && waits[0] != pause {
				t.Errorf("%s, %s: %v after %v", what, f, err, waits)
			}
		}
		next, pushed := side.repo.Pack(tip, map[string]string{"a": f.String()})
		s := side.open(t)
		fails(f, 1)
		if err := s.Push(t.Context(), ledger, tip, next, pushed); err == nil || len(waits) > 0 {
			t.Errorf("push, %s: %v after %v", f, err, waits)
		}
		tip = side.repo.Ref(ledger)
		req.Wants[0] = tip
	}

	bad := teststand.Fault{Kind: teststand.StatusBefore, Status: 502}
	fails(bad, 9)
	if _, err := side.open(t).Tip(t.Context(), ledger); err == nil || fmt.Sprint(waits) != "[1s 2s 4s 8s]" {
		t.Errorf("502 for ever: %v after %v", err, waits)
	}
	ctx, stop := context.WithCancel(t.Context())
	side.o.Wait = func(ctx context.Context, _ time.Duration) error { stop(); return ctx.Err() }
	fails(bad, 9)
	if _, err := side.open(t).Tip(ctx, ledger); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	side.o.Wait = nil
	fails(bad, 1)
	if _, err := side.open(t).Tip(t.Context(), ledger); err == nil {
		t.Error("it was asked again, with nothing to wait with")
	}
	srv.SetFault(nil)
}

// A pack that is cut off is asked for again, but for one that was handed on already.
func TestT61CutPackAgain(t *testing.T) {
	srv, side := httpSide(t, teststand.Options{})
	tip := side.repo.Commit(ledger, map[string]string{"a": random(t, 200<<10)})
	req := wire.FetchRequest{Wants: []packfile.ID{tip}}
	waits := 0
	side.o.Wait = func(context.Context, time.Duration) error { waits++; return nil }
	for _, kind := range []teststand.Kind{teststand.CutAnswer, teststand.Truncate} {
		waits = 0
		s := side.open(t)
		mustTip(t, s, ledger, tip)
		once := func() {
			cut := false
			srv.SetFault(func(int, *http.Request) (f teststand.Fault) {
				if !cut {
					f.Kind, cut = kind, true
				}
				return f
			})
		}
		once()
		if pack, err := s.Fetch(t.Context(), req); err != nil || waits != 1 || !bytes.HasPrefix(pack, []byte("PACK")) || len(pack) > 300<<10 {
			t.Errorf("%s: %d bytes, %v after %d waits", kind, len(pack), err, waits)
		}
		once()
		if err := s.FetchTo(t.Context(), req, new(bytes.Buffer)); err == nil || waits != 1 {
			t.Errorf("%s, in FetchTo: %v after %d waits", kind, err, waits)
		}
	}
}

// The types that callers may tell apart.
func TestT61ErrorTypes(t *testing.T) {
	srv, side := httpSide(t, teststand.Options{})
	s := side.open(t)
	tip := func(status int) error {
		srv.SetFault(fault(teststand.Fault{Kind: teststand.StatusBefore, Status: status, Body: "words\x1b[31m of the server\r\n"}))
		_, err := s.Tip(t.Context(), ledger)
		var e *wire.Error
		if !errors.As(err, &e) || e.URL != side.url || !strings.HasPrefix(err.Error(), side.url+`: asking for "refs/agent/ledger": `) {
			t.Errorf("%d: %v", status, err)
		} else if e.Message != "words[31m of the server" {
			t.Errorf("%d: message %q", status, e.Message)
		}
		return err
	}
	var auth *wire.AuthError
	for _, status := range []int{401, 403} {
		if err := tip(status); !errors.As(err, &auth) || auth.Status != status {
			t.Errorf("%d: %v", status, err)
		}
	}
	if err := tip(404); !errors.Is(err, wire.ErrNotFound) || errors.As(err, &auth) {
		t.Errorf("404: %v", err)
	}
	var status *wire.StatusError
	for _, n := range []int{204, 206, 304, 400, 410, 418, 429, 500, 503} {
		if err := tip2(t, srv, s, n); !errors.As(err, &status) || status.Status != n {
			t.Errorf("%d: %v", n, err)
		}
	}
	var network *wire.NetworkError
	srv.SetFault(fault(teststand.Fault{Kind: teststand.CutBefore}))
	if _, err := s.Tip(t.Context(), ledger); !errors.As(err, &network) || network.Timeout() {
		t.Errorf("cut: %v", err)
	}
	srv.SetFault(nil)
	commit := side.repo.Commit(ledger, map[string]string{"a": random(t, 200<<10)})
	mustTip(t, s, ledger, commit)
	srv.SetFault(fault(teststand.Fault{Kind: teststand.CutAnswer}))
	if _, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{commit}}); !errors.As(err, &network) {
		t.Errorf("cut in a pack: %v", err)
	}
	if _, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{commit}, Depth: 1}); !errors.As(err, &network) {
		t.Errorf("cut before a pack: %v", err)
	}
	srv.Server.Close()
	if _, err := s.Tip(t.Context(), ledger); !errors.As(err, &network) || network.Timeout() {
		t.Errorf("refused: %v", err)
	}
}

func tip2(t *testing.T, srv *teststand.Server, s *wire.Server, status int) error {
	t.Helper()
	srv.SetFault(fault(teststand.Fault{Kind: teststand.StatusBefore, Status: status}))
	_, err := s.Tip(t.Context(), ledger)
	return err
}

// Reports that are not about our ref, or say no in any way.
func TestT61Reports(t *testing.T) {
	okay := "unpack ok\n"
	reports := map[string]string{
		"no line":         pkt(okay) + "0000",
		"other ref":       pkt(okay) + pkt("ok refs/agent/ledger2\n") + "0000",
		"two":             pkt(okay) + pkt("ok refs/agent/ledger\n") + pkt("ok refs/heads/main\n") + "0000",
		"ours twice":      pkt(okay) + pkt("ok refs/agent/ledger\n") + pkt("ok refs/agent/ledger\n") + "0000",
		"no":              pkt(okay) + pkt("ng refs/agent/ledger non-fast-forward\n") + "0000",
		"no, ok":          pkt(okay) + pkt("ng refs/agent/ledger ok\n") + "0000",
		"ok and no":       pkt(okay) + pkt("ok refs/agent/ledger\n") + pkt("ng refs/agent/ledger failed\n") + "0000",
		"ok, with words":  pkt(okay) + pkt("ok refs/agent/ledger but\n") + "0000",
		"not unpacked":    pkt("unpack abnormal exit\n") + pkt("ok refs/agent/ledger\n") + "0000",
		"no unpack":       pkt("ok refs/agent/ledger\n") + "0000",
		"ok, not unpack":  pkt("ok\n") + pkt("ok refs/agent/ledger\n") + "0000",
		"no flush":        pkt(okay) + pkt("ok refs/agent/ledger\n"),
		"empty":           "",
		"flush":           "0000",
		"words":           "unpack ok",
		"after the flush": pkt(okay) + pkt("ok refs/agent/ledger\n") + "0000" + pkt("ng refs/agent/ledger failed\n") + "0000",
		"an error":        pkt("ERR no\n"),
		"an empty line":   pkt(okay) + pkt("\n") + pkt("ok refs/agent/ledger\n") + "0000",
		"upper case":      pkt(okay) + pkt("OK refs/agent/ledger\n") + "0000",
	}
	good := pkt(okay) + pkt("ok refs/agent/ledger\n") + "0000"
	band := func(s string) string { return pkt("\x01"+s) + "0000" }
	bodies := map[string]string{
		"no band":          good,
		"no outer flush":   pkt("\x01" + good),
		"an unknown band":  pkt("\x01"+good) + pkt("\x04x") + "0000",
		"band 3 after it":  pkt("\x01"+good) + pkt("\x03late") + "0000",
		"more after flush": band(good) + "0000",
		"cut":              band(good)[:20],
	}
	for name, r := range reports {
		bodies[name] = band(r)
	}
	srv, side := httpSide(t, teststand.Options{})
	sshd, overSSH := sshSide(t)
	next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
	adv := pkt(packfile.None.String()+" capabilities^{}\x00report-status side-band-64k agent=x\n") + "0000"
	try := func(body string) (http, ssh error) {
		srv.SetFault(fault(teststand.Fault{Kind: teststand.BodyBefore, Body: body}))
		sshd.SetAnswer(adv + body)
		return side.open(t).Push(t.Context(), ledger, packfile.None, next, pack), overSSH.open(t).Push(t.Context(), ledger, packfile.None, next, pack)
	}
	for name, body := range bodies {
		if http, ssh := try(body); http == nil || ssh == nil {
			t.Errorf("%s: http %v, ssh %v", name, http, ssh)
		}
	}
	if http, ssh := try(band(good)); http != nil || ssh != nil { // else the above shows nothing
		t.Errorf("a good one: http %v, ssh %v", http, ssh)
	}
	for _, kind := range []string{"text/html", "application/x-git-upload-pack-result", "application/x-git-receive-pack-result-2"} {
		srv.SetFault(fault(teststand.Fault{Kind: teststand.BodyBefore, Body: band(good), Type: kind}))
		if err := side.open(t).Push(t.Context(), ledger, packfile.None, next, pack); err == nil {
			t.Errorf("a report of type %s was believed", kind)
		}
	}
	sshd.SetAnswer(pkt(packfile.None.String()+" capabilities^{}\x00agent=x\n") + "0000" + good)
	if err := overSSH.open(t).Push(t.Context(), ledger, packfile.None, next, pack); err == nil {
		t.Error("a server without reports was believed")
	}
}

func TestStaleLease(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		s := side.open(t)
		first := side.repo.Commit(ledger, map[string]string{"a": "1"})
		second := side.repo.Commit(ledger, map[string]string{"a": "2"})
		third, pack := side.repo.Pack(first, map[string]string{"a": "3"})
		none := packfile.ParseID(strings.Repeat("12", first.Size()))
		for _, old := range []packfile.ID{first, packfile.None, none, third} {
			err := s.Push(t.Context(), ledger, old, third, pack)
			var rejected *wire.RejectedError
			if !errors.As(err, &rejected) {
				t.Errorf("old %s: %v", old, err)
			}
			mustTip(t, s, ledger, second)
		}
		next, pack := side.repo.Pack(second, map[string]string{"a": "4"})
		mustPush(t, s, second, next, pack)
		if err := s.Push(t.Context(), ledger, second, next, pack); err == nil {
			t.Error("the same push was accepted twice")
		}
		if err := s.Push(t.Context(), "refs/agent/other", second, next, pack); err == nil {
			t.Error("a ref that does not exist was moved")
		}
		mustTip(t, s, ledger, next)
	})
}

func TestDamagedPack(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		s := side.open(t)
		next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
		pack[len(pack)/2] ^= 1
		if err := s.Push(t.Context(), ledger, packfile.None, next, pack); err == nil {
			t.Error("a damaged pack was accepted")
		}
		mustTip(t, s, ledger, packfile.None)
	})
}

func TestHookRefuses(t *testing.T) {
	everySide(t, func(t *testing.T, side side) {
		side.repo.Refuse("only on Tuesdays\x1b]0;title\a, said " + strings.Repeat("the hook ", 2000))
		s := side.open(t)
		next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
		err := s.Push(t.Context(), ledger, packfile.None, next, pack)
		var rejected *wire.RejectedError
		var e *wire.Error
		if !errors.As(err, &rejected) || !errors.As(err, &e) {
			t.Fatal(err)
		}
		if !strings.HasPrefix(e.Message, "only on Tuesdays]0;title, said the hook") || len(e.Message) > 8<<10 {
			t.Errorf("message of %d bytes: %.100q", len(e.Message), e.Message)
		}
		if strings.Contains(err.Error(), "Tuesdays") || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q", err)
		}
		mustTip(t, s, ledger, packfile.None)
	})
}

// Lists of refs that leave a doubt.
func TestT61Advertisements(t *testing.T) {
	const h = "1234567890123456789012345678901234567890"
	first := pkt(h + " refs/heads/a\x00agent=x\n")
	lists := map[string]string{
		"no flush":             first,
		"a flush alone, cut":   "000",
		"no hash":              first + pkt("zz34567890123456789012345678901234567890 refs/agent/ledger\n") + "0000",
		"a short hash":         first + pkt(h[1:]+" refs/agent/ledger\n") + "0000",
		"a long hash":          first + pkt(h+h[:24]+" refs/agent/ledger\n") + "0000",
		"the zero hash":        first + pkt(packfile.None.String()+" refs/agent/ledger\n") + "0000",
		"twice":                first + pkt(h+" refs/agent/ledger\n") + pkt(h+" refs/agent/ledger\n") + "0000",
		"an empty line":        first + pkt("\n") + pkt(h+" refs/agent/ledger\n") + "0000",
		"no name":              first + pkt(h+" \n") + "0000",
		"no capabilities":      pkt(h+" refs/heads/a\n") + "0000",
		"an error":             first + pkt("ERR no\n"),
		"peeled first":         pkt(h+" refs/tags/v1^{}\x00agent=x\n") + pkt(h+" refs/agent/ledger\n") + "0000",
		"none, and some":       pkt(packfile.None.String()+" capabilities^{}\x00agent=x\n") + pkt(h+" refs/agent/ledger\n") + "0000",
		"none, with a hash":    pkt(h+" capabilities^{}\x00agent=x\n") + "0000",
		"version 2":            pkt("version 2\n") + pkt("ls-refs\n") + "0000",
		"SHA-256":              pkt(h+" refs/heads/a\x00object-format=sha256\n") + "0000",
		"words":                "repository is being moved",
		"a line too long":      first + "fffe" + strings.Repeat("x", 70000),
		"a damaged length":     first + "00zz",
		"a length of three":    first + "0003" + "0000",
		"another's shallow":    first + pkt("shallow zz\n") + "0000",
		"a name with a tab":    first + pkt(h+" refs/agent/ledger\tx\n") + "0000",
		"capabilities damaged": pkt(h+" refs/heads/a\x00agent= agent=\n") + "0000",
	}
	srv, side := httpSide(t, teststand.Options{})
	sshd, overSSH := sshSide(t)
	service := pkt("# service=git-upload-pack\n") + "0000"
	try := func(header, list string) (http, ssh error) {
		srv.SetFault(fault(teststand.Fault{Kind: teststand.BodyBefore, Body: header + list}))
		sshd.SetAnswer(list)
		_, http = side.open(t).Tip(t.Context(), ledger)
		_, ssh = overSSH.open(t).Tip(t.Context(), ledger)
		return http, ssh
	}
	for name, list := range lists {
		if http, ssh := try(service, list); http == nil || ssh == nil {
			t.Errorf("%s: http %v, ssh %v", name, http, ssh)
		}
	}
	good := first + pkt(h+" refs/tags/v1^{}\n") + pkt("shallow "+h+"\n") + "0000"
	for _, list := range []string{good, "0000", pkt(packfile.None.String()+" capabilities^{}\x00agent=x\n") + "0000"} {
		if http, ssh := try(service, list); http != nil || ssh != nil {
			t.Errorf("%q: http %v, ssh %v", list, http, ssh)
		}
	}
	for _, header := range []string{"", service[:len(service)-4], service[:len(service)-4] + pkt("x\n"), pkt("# service=git-receive-pack\n") + "0000"} {
		if http, _ := try(header, good); http == nil {
			t.Errorf("a list after %q is read", header)
		}
	}
	if http, _ := try(service, good+good); http == nil {
		t.Error("two lists are read")
	}
}

// What a server says before the pack is bounded, too.
func TestT61EndlessHead(t *testing.T) {
	const h = "1234567890123456789012345678901234567890"
	srv, side := httpSide(t, teststand.Options{})
	sshd, overSSH := sshSide(t)
	tip := side.repo.Commit(ledger, map[string]string{"a": "1"})
	req := wire.FetchRequest{Wants: []packfile.ID{tip}, Depth: 1}
	for _, line := range []string{pkt("shallow " + h), pkt("ACK " + h + "\n"), pkt("\x02so what?")} {
		endless := strings.Repeat(line, (8<<20)/len(line))
		if line[4] != 's' {
			endless = "0000" + endless // after the shallow commits
		}
		s := side.open(t)
		srv.SetFault(nil)
		mustTip(t, s, ledger, tip)
		srv.SetFault(fault(teststand.Fault{Kind: teststand.BodyBefore, Body: endless}))
		sshd.SetAnswer(pkt(h+" HEAD\x00shallow side-band-64k\n") + "0000" + endless)
		_, http := s.Fetch(t.Context(), req)
		_, ssh := overSSH.open(t).Fetch(t.Context(), req)
		if http == nil || ssh == nil || line[4] != 2 && (!errors.Is(http, wire.ErrTooLarge) || !errors.Is(ssh, wire.ErrTooLarge)) {
			t.Errorf("%q: http %v, ssh %v", line, http, ssh)
		}
	}
}

// release lets a script that waits in dir go on, and sees it end: else it
// works in a directory that is being removed. It may not have begun.
func release(dir string) {
	_ = os.WriteFile(filepath.Join(dir, "release"), nil, 0o600)
	if _, err := os.Stat(filepath.Join(dir, "begun")); err != nil {
		return
	}
	for range 6000 { // a minute
		if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	fatal(t, os.WriteFile(file, []byte(text), 0o600))
}

// A server that does not answer ends in an error at the timeout.
func TestT61Timeouts(t *testing.T) {
	tiny := func(s side) side { s.o.Timeout = 30 * time.Millisecond; return s }
	late := func(t *testing.T, what string, err error) {
		t.Helper()
		var network *wire.NetworkError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &network) || !network.Timeout() {
			t.Errorf("%s: %v", what, err)
		}
	}
	all := func(t *testing.T, side side) {
		next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
		_, err := tiny(side).open(t).Tip(t.Context(), ledger)
		late(t, "Tip", err)
		_, err = tiny(side).open(t).Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{next}})
		late(t, "Fetch", err)
		late(t, "Push", tiny(side).open(t).Push(t.Context(), ledger, packfile.None, next, pack))
	}
	t.Run("http", func(t *testing.T) {
		srv, side := httpSide(t, teststand.Options{})
		for _, kind := range []teststand.Kind{teststand.Slow, teststand.Trickle} {
			srv.SetFault(fault(teststand.Fault{Kind: kind, Delay: time.Minute}))
			all(t, side)
		}
	})
	t.Run("http, in the pack", func(t *testing.T) {
		srv, side := httpSide(t, teststand.Options{})
		tip := side.repo.Commit(ledger, map[string]string{"a": random(t, 1<<20)})
		var asked atomic.Bool // for the pack
		srv.SetFault(func(_ int, r *http.Request) teststand.Fault {
			if !strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
				return teststand.Fault{}
			}
			asked.Store(true)
			return teststand.Fault{Kind: teststand.Trickle, Delay: time.Minute}
		})
		for side.o.Timeout = 200 * time.Millisecond; !asked.Load(); side.o.Timeout *= 2 {
			_, err := side.open(t).Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{tip}})
			late(t, "Fetch", err)
		}
	})
	t.Run("ssh", func(t *testing.T) {
		sshd, side := sshSide(t)
		sshd.Stall()
		all(t, side)
	})
	t.Run("ssh, after it has the pack", func(t *testing.T) {
		sshd, side := sshSide(t)
		next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
		sshd.CutReport(side.repo, "exec sleep 1000")
		side.o.Timeout = 300 * time.Millisecond
		late(t, "Push", side.open(t).Push(t.Context(), ledger, packfile.None, next, pack))
	})
	t.Run("file, in a hook", func(t *testing.T) {
		side := fileSide(t)
		dir := t.TempDir()
		side.repo.Hook("pre-receive", ">"+dir+"/begun || exit 1; until [ -e "+dir+"/release -o ! -d "+dir+" ]; do sleep 0.05; done; >"+dir+"/done; exit 1")
		t.Cleanup(func() { release(dir) })
		next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
		side.o.Timeout = 300 * time.Millisecond
		late(t, "Push", side.open(t).Push(t.Context(), ledger, packfile.None, next, pack))
	})
	t.Run("file, in what inherits stderr", func(t *testing.T) {
		side := fileSide(t)
		other := teststand.Bare(t, filepath.Join(t.TempDir(), "other"))
		dir := t.TempDir()
		side.repo.Git("config", "core.alternateRefsCommand", ">"+dir+"/begun || exit 1; until [ -e "+dir+"/release -o ! -d "+dir+" ]; do sleep 0.05; done; >"+dir+"/done #")
		write(t, filepath.Join(side.repo.Dir, "objects", "info", "alternates"), filepath.Join(other.Dir, "objects")+"\n")
		t.Cleanup(func() { release(dir) })
		side.o.Timeout = 200 * time.Millisecond
		begun := time.Now()
		late(t, "Push", side.open(t).Push(t.Context(), ledger, packfile.None, packfile.ParseID("1234567890123456789012345678901234567890"), []byte("PACK")))
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it took %v", took)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		srv, side := httpSide(t, teststand.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		srv.SetFault(func(int, *http.Request) teststand.Fault {
			cancel()
			return teststand.Fault{Kind: teststand.Slow, Delay: time.Minute}
		})
		if _, err := side.open(t).Tip(ctx, ledger); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// The connection ends after git has done its work.
func TestT61SSHAnswerLost(t *testing.T) {
	sshd, side := sshSide(t)
	next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
	s := side.open(t)
	sshd.CutReport(side.repo, "exit 255")
	err := s.Push(t.Context(), ledger, packfile.None, next, pack)
	if err == nil {
		t.Fatal("success")
	}
	sshd.Serve()
	mustTip(t, s, ledger, next)
}
