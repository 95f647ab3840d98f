package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Many calls at once, about many transactions: each is answered once, and the
// ledger holds what each of them did.
func TestServeAtOnce(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServed(t, todoFiles)
	s.must("system/capabilities", obj{})
	const many = 6
	for i := range many {
		s.send("turn/start", obj{"threadId": "thread?cwd=.&root=.", "input": "add", "patch": addition(fmt.Sprintf("new%d.txt", i), "x\n")})
	}
	var ids []string
	for len(ids) < many {
		if a, ok := s.receive(); ok {
			ids = append(ids, a.Result["transactionId"].(string))
		}
	}
	for _, id := range ids { // in order for each: ask, answer, apply, and once more
		s.send("apply/execute", obj{"transactionId": id})
		s.send("approval/respond", obj{"transactionId": id, "approvalRequestId": "req_1", "decision": "approve"})
		s.send("apply/execute", obj{"transactionId": id})
		s.send("apply/execute", obj{"transactionId": id})
	}
	ok := 0
	for n := 0; n < 4*many; {
		a, answered := s.receive()
		if !answered {
			continue
		}
		n++
		if a.Err != nil {
			t.Fatalf("%+v", *a.Err)
		}
		if a.Result["ok"] == true {
			ok++
		}
	}
	if ok != 3*many {
		t.Errorf("%d calls were ok, want %d", ok, 3*many)
	}
	if left := gitsIn(s.dir); left != 0 {
		t.Errorf("%d processes of git are left of calls that were answered", left)
	}
	s.stop()
	told := map[string]string{}
	for _, event := range s.events {
		doc, err := canon.Parse([]byte(event))
		check(t, err)
		id := doc.(map[string]any)["payload"].(map[string]any)["transaction_id"].(string)
		told[id] += event
	}
	for _, id := range ids {
		if want := strings.Join(s.recorded(id), ""); told[id] != want {
			t.Errorf("of %s was told\n%s\nrecorded\n%s", id, told[id], want)
		}
	}
	if n := s.validLedger(); n != many {
		t.Errorf("%d transactions", n)
	}
}

// What a client asks for before it closes its side is done and answered.
func TestServePipe(t *testing.T) {
	s := newServed(t, todoFiles)
	cmd := s.command("serve", "--stdio")
	cmd.Stdin = strings.NewReader("\n" + `{"jsonrpc":"2.0","id":"a","method":"transaction/list"}` + "\n{\n" + `{"jsonrpc":"2.0","id":"b","method":"thread/list","params":{}}`)
	out, errs := s.runCmd(0, cmd)
	if errs != "" || strings.Count(out, "\n") != 3 || !strings.Contains(out, `{"id":"a","jsonrpc":"2.0","result":{"data":[],"more":false,"transactions":[]}}`) || !strings.Contains(out, `"code":-32700`) || !strings.Contains(out, `{"id":"b"`) {
		t.Errorf("%s%s", out, errs)
	}
	s.run(2, "serve")
	cmd = s.command("serve", "--stdio")
	cmd.Dir = s.dir
	s.runCmd(2, cmd)
}

// BenchmarkServeGet is the round trip of transaction/get in a ledger of 10,000
// transactions; the limit is 5 ms.
func BenchmarkServeGet(b *testing.B) {
	dir := b.TempDir()
	repo, err := gitstore.Init(dir)
	check(b, err)
	commitOne(b, dir)
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	check(b, err)
	lived, err := storetest.LivesOf(1, storetest.Whole, storetest.Asked)
	check(b, err)
	for i := range 10_000 - 2 {
		lived = append(lived, filler(i))
	}
	tip, err := l.Append(b.Context(), "", lived...)
	check(b, err)
	snap, err := l.At(b.Context(), tip)
	check(b, err)
	ids, err := lookup.IDs(snap.Tree)
	check(b, err)

	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	app := console.Process{Args: []string{"-C", dir, "serve", "--stdio"}, Stdin: in, Stdout: out, Stderr: io.Discard, Getenv: func(string) string { return "" }, Now: time.Now, Entropy: rand.Reader}
	go func() { Main(app); out.Close() }()
	defer toServer.Close()
	answers := bufio.NewReader(fromServer)
	for b.Loop() {
		for _, id := range ids[:2] { // the filler's are younger
			_, err := fmt.Fprintf(toServer, `{"jsonrpc":"2.0","id":1,"method":"transaction/get","params":{"transactionId":"%s"}}`+"\n", id)
			check(b, err)
			line, err := answers.ReadBytes('\n')
			check(b, err)
			if !bytes.Contains(line, []byte(`"pendingApprovals"`)) {
				b.Fatal(string(line))
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(2*b.N), "ms/call")
	b.ReportMetric(float64(len(ids)), "transactions")
}

func commitOne(b *testing.B, dir string) {
	b.Helper()
	cmd := exec.Command("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "--allow-empty", "-m", "x")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}

// filler is a transaction's files, for their number alone.
func filler(i int) writing.Entry {
	when := serveTime.Add(time.Duration(i) * time.Millisecond)
	sum := canon.Hex(fmt.Appendf(nil, "filler %d", i))
	id, err := writing.NewID(when, strings.NewReader(sum))
	if err != nil {
		panic(err)
	}
	dir := ledger.Dir(id) + "/"
	return writing.Entry{Message: "review: filler\n", When: when, Files: map[string][]byte{
		dir + ledger.TransactionFile: []byte(sum), dir + ledger.EventsFile: []byte(strings.Repeat(sum+"\n", 12)), dir + ledger.PatchFile(sum): []byte(sum),
		ledger.ProposedDir(sum) + "/" + id + ".json": []byte(sum),
	}}
}

// gitsIn is how many processes of git work in a directory, where the system says so.
func gitsIn(dir string) (n int) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		cwd, _ := os.Readlink(p + "/cwd")
		name, _ := os.ReadFile(p + "/comm")
		if strings.HasPrefix(string(name), "git") && strings.HasPrefix(cwd, dir) {
			n++
		}
	}
	return n
}
