package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// rpcKilled is a proposal that was made and approved over RPC, what an apply of
// it that is left alone comes to, and how long that takes.
type rpcKilled struct {
	*served
	tx    string
	types []string
	files map[string]string
	whole time.Duration
}

// T41 The server is killed at a random moment of apply/execute. The client asks
// another one for what it missed and applies again: it ends as if nothing had
// happened, and every event was told once. COUNTERSIGN_REMOTE_KILLS sets how
// often.
func TestT41ServeKilled(t *testing.T) {
	long(t, "COUNTERSIGN_REMOTE_KILLS")
	k := newRPCKilled(t)
	kills, landed := remoteKills(2), map[string]int{}
	for n := range kills {
		landed[k.kill(n)]++
		if t.Failed() {
			t.Fatalf("kill %d", n)
		}
	}
	t.Logf("an apply takes %v; the kills landed: %v", k.whole, landed)
	if landed["after tx/close"] > 2+kills/2 {
		t.Error("most came too late")
	}
}

func newRPCKilled(t *testing.T) *rpcKilled {
	k := &rpcKilled{served: newServed(t, todoFiles)}
	k.tx = k.turn(obj{"threadId": k.thread(), "input": "remove the markers", "needle": "TODO(bot)"})
	k.respond(k.tx, askedFor(t, k.apply(k.tx)), "approve")
	k.stop()
	s := k.elsewhere("measure")
	began := time.Now()
	s.finish(k, s.recorded(k.tx))
	k.whole = time.Since(began)
	k.types, k.files = s.eventTypes(k.tx), s.texts()
	check(t, os.RemoveAll(s.repo))
	if n := strings.Count(strings.Join(k.types, " "), "apply/complete"); n != 1 {
		t.Fatalf("left alone, %d applies end", n)
	}
	return k
}

// elsewhere is the same repository at another place.
func (k *rpcKilled) elsewhere(name string) *served {
	k.t.Helper()
	s := &served{playground: k.playground}
	s.repo = filepath.Join(k.dir, name)
	check(k.t, os.CopyFS(s.repo, os.DirFS(k.repo)))
	return s
}

func (s *served) texts() map[string]string {
	s.t.Helper()
	texts := map[string]string{}
	for _, name := range strings.Fields(s.git("ls-files", "--cached", "--others")) {
		texts[name] = s.read(name)
	}
	return texts
}

// requestLine is a call of a client.
func requestLine(id int, method string, params obj) string {
	line, err := json.Marshal(obj{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		panic(err)
	}
	return string(line) + "\n"
}

// heard are the events and the answers in what a server wrote; a line that was
// cut off is left out.
func (s *served) heard(out string) (events []string, answers map[string]answer) {
	s.t.Helper()
	answers = map[string]answer{}
	for line := range strings.Lines(out) {
		var doc struct {
			answer
			Params struct{ Event json.RawMessage }
		}
		if !strings.HasSuffix(line, "\n") {
			continue
		}
		check(s.t, json.Unmarshal([]byte(line), &doc))
		if doc.Params.Event != nil {
			events = append(events, string(doc.Params.Event)+"\n")
			continue
		}
		answers[fmt.Sprint(doc.ID)] = doc.answer
	}
	return events, answers
}

// kill kills a server while it applies and goes on with another. It returns the
// last event that was recorded before.
func (k *rpcKilled) kill(n int) (last string) {
	k.t.Helper()
	s := k.elsewhere(fmt.Sprint("kill", n))
	seen := slices.Concat(s.recorded(k.tx), s.cutOff(k, n%2 == 1))
	types := s.eventTypes(k.tx)
	last = "after " + types[len(types)-1]
	s.finish(k, seen)
	if got := s.eventTypes(k.tx); !slices.Equal(got, k.types) {
		k.t.Errorf("%s: the events are %v, want %v", last, got, k.types)
	}
	if got := s.texts(); !maps.Equal(got, k.files) {
		k.t.Errorf("%s: the files are %q, want %q", last, got, k.files)
	}
	if left := append(s.journals(), s.claims()...); len(left) > 0 {
		k.t.Errorf("%s: %v is left", last, left)
	}
	if out := s.git("fsck", "--strict", "--no-dangling"); out != "" {
		k.t.Errorf("%s: git fsck: %s", last, out)
	}
	s.run(0, "audit")
	check(k.t, os.RemoveAll(s.repo))
	return last
}

// claims are what working trees note of applies that were begun there.
func (s *served) claims() []string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.repo, ".git/countersign/applying-*"))
	check(s.t, err)
	return found
}

// cutOff begins an apply with a server and kills that: at any time, or soon after
// the ledger was moved. It returns the events that the client got.
func (s *served) cutOff(k *rpcKilled, moved bool) []string {
	s.t.Helper()
	cmd := s.command("serve", "--stdio")
	in, err := cmd.StdinPipe()
	check(s.t, err)
	var out bytes.Buffer
	cmd.Stdout = &out
	p := process{cmd, make(chan error, 1)}
	check(s.t, p.Start())
	go func() { p.end <- p.Wait() }()
	began := time.Now()
	_, err = io.WriteString(in, requestLine(1, "apply/execute", obj{"transactionId": k.tx}))
	check(s.t, err)
	wait := rand.N(k.whole)
	if moved {
		ref := filepath.Join(s.repo, ".git/refs/agent/ledger")
		before, _ := os.ReadFile(ref)
		await(p.end, func() bool {
			now, err := os.ReadFile(ref)
			return err == nil && !bytes.Equal(now, before)
		})
		wait = rand.N(k.whole / 8)
	}
	select {
	case <-time.After(wait):
		check(s.t, p.Process.Kill())
		<-p.end
	case err := <-p.end:
		s.t.Errorf("the server ended by itself: %v", err)
	}
	events, answers := s.heard(out.String())
	if answers["1"].Result != nil { // it came too late: sooner next time
		k.whole = min(k.whole, time.Since(began))
	}
	return events
}

// finish resumes with another server and applies; seen are the events that the
// client has.
func (s *served) finish(k *rpcKilled, seen []string) {
	s.t.Helper()
	cmd := s.command("serve", "--stdio")
	cmd.Stdin = strings.NewReader(requestLine(1, "transaction/resume", obj{"transactionId": k.tx, "afterSeq": len(seen)}) +
		requestLine(2, "apply/execute", obj{"transactionId": k.tx}))
	out, errs := s.runCmd(0, cmd)
	events, answers := s.heard(out)
	if answers["1"].Err != nil || answers["2"].Result["ok"] != true || errs != "" {
		s.t.Errorf("%s%s", out, errs)
	}
	if told, want := append(seen, events...), s.recorded(k.tx); !slices.Equal(told, want) {
		s.t.Errorf("told were\n%s\nrecorded\n%s", strings.Join(told, ""), strings.Join(want, ""))
	}
}
