package main

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/mcp"
	"github.com/countersign-dev/countersign/gitstore"
)

// newFile proposes one file, of a name of its own.
func newFile(name string) obj {
	return obj{"edits": []obj{{"path": name, "content": name + "\n"}}}
}

// TestMCPWaits: who waits is told of a decision that somebody else makes meanwhile.
func TestMCPWaits(t *testing.T) {
	t.Parallel()
	s := newServed(t, todoFiles)
	c := s.mcp()
	id := c.answers("propose_patch", obj{"patch": seePatch})["transaction_id"].(string)
	var all sync.WaitGroup
	all.Go(func() {
		r, err := c.CallTool(t.Context(), waiting(id))
		if doc, _ := r.StructuredContent.(obj); err != nil || doc["verdict"] != "denied" || doc["decided"] != true || !strings.Contains(fmt.Sprint(doc["reason"]), "not so") {
			t.Errorf("%v %v", r, err)
		}
	})
	if p := <-c.progress; p.ProgressToken != "mine" || p.Total != 3600 || !strings.Contains(p.Message, "waiting for a person") {
		t.Errorf("it is told %+v", p)
	}
	s.run(0, "deny", id, "--reason", "not so")
	all.Wait()
}

// TestMCPCancelled: what a client cancels, or goes away from, makes room for others: so many waits
// as there is room for are cancelled, and the next one is answered. They are not.
func TestMCPCancelled(t *testing.T) {
	long(t)
	t.Parallel()
	waits := func(t *testing.T, c *mcpClient, id string, wait func(ctx context.Context)) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range mcp.MaxWaits {
			all.Go(func() { wait(ctx) })
		}
		for range mcp.MaxWaits {
			<-c.progress // it waits
		}
		cancel()
		all.Wait()
		c.answers("wait", obj{"transaction": id, "seconds": 0})
	}
	for way, dial := range mcpWays {
		t.Run(way, func(t *testing.T) {
			s := newServed(t, todoFiles)
			c := dial(s)
			id := c.answers("propose_patch", obj{"patch": seePatch})["transaction_id"].(string)
			waits(t, c, id, func(ctx context.Context) {
				if r, err := c.CallTool(ctx, waiting(id)); err == nil {
					t.Errorf("it was answered: %v", r)
				}
			})
			for line := range strings.Lines(s.said.String()) {
				if strings.HasPrefix(line, "read: ") && strings.Contains(line, `"isError":true`) {
					t.Errorf("the server answers to what is cancelled: %s", line)
					break
				}
			}
		})
	}
	t.Run("an older client over http", func(t *testing.T) { // which only hangs up
		s := newServed(t, todoFiles)
		h := s.mcpHTTP()
		c := s.connect(h.transport(), nil)
		id := c.answers("propose_patch", obj{"patch": seePatch})["transaction_id"].(string)
		waits(t, c, id, func(ctx context.Context) {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{"transaction":"%s","seconds":3600},"_meta":{"progressToken":"mine"}}}`, id)
			r, err := http.NewRequestWithContext(ctx, "POST", h.URL, strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + h.Token}, "Mcp-Protocol-Version": {"2025-06-18"}}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			buf := make([]byte, 4096)
			n, _ := answer.Body.Read(buf)
			if !bytes.Contains(buf[:n], []byte("notifications/progress")) {
				t.Errorf("%s", buf[:n])
			}
			c.progress <- nil
			_, _ = io.Copy(io.Discard, answer.Body) // until it is cancelled
		})
	})
}

// TestMCPAtOnce: many calls of one client, and of two over HTTP: nothing is lost, nothing is doubled.
func TestMCPAtOnce(t *testing.T) {
	long(t)
	t.Parallel()
	const many = 3
	for way, clients := range map[string]func(s *served) []*mcpClient{
		"stdio":                    func(s *served) []*mcpClient { return []*mcpClient{s.mcp()} },
		"two processes over stdio": func(s *served) []*mcpClient { return []*mcpClient{s.mcp(), s.mcp()} },
		"two clients over http": func(s *served) []*mcpClient {
			h := s.mcpHTTP()
			return []*mcpClient{s.connect(h.transport(), nil), s.connect(h.transport(), nil)}
		},
	} {
		t.Run(way, func(t *testing.T) {
			s := newServed(t, todoFiles)
			var mu sync.Mutex
			ids := map[string]string{}
			var all sync.WaitGroup
			at := clients(s)
			for n, c := range at {
				for i := range many {
					all.Go(func() {
						own, _ := c.call("propose_edits", newFile(fmt.Sprintf("of%d.%d", n, i)))
						same, _ := c.call("propose_patch", obj{"patch": seePatch})
						mu.Lock()
						defer mu.Unlock()
						for _, doc := range []obj{own, same} {
							ids[fmt.Sprint(doc["patch_id"])] = fmt.Sprint(doc["transaction_id"])
						}
					})
				}
			}
			all.Wait()
			if want := len(at)*many + 1; len(ids) != want || s.validLedger() != want {
				t.Errorf("%d transactions, want %d: %v", s.validLedger(), want, ids)
			}
			if got := at[0].answers("verify", obj{}); got["ok"] != true {
				t.Errorf("the ledger: %v", got)
			}
		})
	}
}

// TestMCPGone: a client that goes away while it waits for an hour ends the server, and leaves a whole ledger.
func TestMCPGone(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServed(t, todoFiles)
	cmd := s.command("mcp")
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	cmd.Stderr = t.Output()
	check(t, cmd.Start())
	c := s.connect(&sdk.IOTransport{Reader: out, Writer: in}, nil)
	id := c.answers("propose_patch", obj{"patch": seePatch})["transaction_id"].(string)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _, _ = c.CallTool(ctx, waiting(id)) })
	<-c.progress
	check(t, in.Close())
	if err := cmd.Wait(); err != nil { // by itself
		t.Errorf("the server ended with %v", err)
	}
	cancel()
	all.Wait()
	s.run(0, "audit")
}

// TestT41MCPKilled: the server is killed at a random moment of a proposal. What it recorded is
// whole, and the same proposal is one transaction. COUNTERSIGN_REMOTE_KILLS sets how often.
func TestT41MCPKilled(t *testing.T) {
	long(t, "COUNTERSIGN_REMOTE_KILLS")
	s := newServed(t, todoFiles)
	c := s.mcp()
	began := time.Now()
	c.answers("propose_edits", newFile("first"))
	whole := time.Since(began)
	check(t, c.Close())
	recorded := 0
	kills := remoteKills(3)
	for n := range kills {
		c := s.mcp()
		var asked sync.WaitGroup
		asked.Go(func() {
			_, _ = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "propose_edits", Arguments: newFile(fmt.Sprint("file", n))})
		})
		time.Sleep(rand.N(whole)) // the moment is the point
		check(t, c.server.Process.Kill())
		_ = c.Close()
		asked.Wait()
		s.run(0, "audit")
		had := s.validLedger()
		recorded += had - (n + 1)
		c = s.mcp()
		doc := c.answers("propose_edits", newFile(fmt.Sprint("file", n)))
		if doc["known"] != (had == n+2) || s.validLedger() != n+2 {
			t.Fatalf("kill %d: %d transactions before, %d after: %v", n, had, s.validLedger(), doc)
		}
		check(t, c.Close())
	}
	t.Logf("a proposal takes %v; of %d that were killed %d were recorded", whole, kills, recorded)
}

// TestMCPInspector: the inspector's command line reads what there is and calls a tool over both
// ways, and finds no fault with the schemas. COUNTERSIGN_INSPECTOR is the directory that npm
// installed it into.
func TestMCPInspector(t *testing.T) {
	dir := os.Getenv("COUNTERSIGN_INSPECTOR")
	if dir == "" {
		t.Skip("COUNTERSIGN_INSPECTOR is not set")
	}
	s := newServed(t, todoFiles)
	h := s.mcpHTTP()
	for way, target := range map[string][]string{
		"stdio": {s.bin, "-C", s.repo, "mcp"},
		"http":  {h.URL, "--transport", "http", "--header", "Authorization: Bearer " + h.Token},
	} {
		t.Run(way, func(t *testing.T) {
			inspect := func(want string, args ...string) {
				t.Helper()
				cmd := exec.Command(filepath.Join(dir, "node_modules/.bin/mcp-inspector"), append(append([]string{"--cli"}, target...), args...)...)
				cmd.Env = append(s.env(), "HOME="+t.TempDir())
				code, out, errs := runCode(cmd)
				if code != 0 || !strings.Contains(out, want) {
					t.Errorf("%v: exit code %d, without %s: %s%s", args, code, want, out, errs)
				}
			}
			inspect(`"propose_patch"`, "--strict", "--method", "tools/list")
			inspect(`"known"`, "--method", "tools/call", "--tool-name", "propose_patch", "--tool-arg", "patch="+seePatch, "--tool-arg", "summary=see")
			if way == "http" {
				return
			}
			inspect(`"see"`, "--method", "tools/call", "--tool-name", "status")
			inspect(`"countersign://policy"`, "--method", "resources/list")
			inspect(`ledger_commit`, "--method", "resources/read", "--uri", "countersign://ledger/tip")
			inspect(`"countersign://transactions/{id}"`, "--method", "resources/templates/list")
			inspect(`propose_worktree`, "--method", "prompts/get", "--prompt-name", "propose_what_you_changed", "--prompt-args", "summary=see")
		})
	}
	if n := s.validLedger(); n != 1 {
		t.Errorf("%d transactions", n)
	}
}

// BenchmarkMCPPropose is the round trip of propose_patch over stdio in a small repository; the
// limit is 60 ms.
func BenchmarkMCPPropose(b *testing.B) {
	dir := b.TempDir()
	_, err := gitstore.Init(dir)
	check(b, err)
	check(b, os.WriteFile(filepath.Join(dir, "a.txt"), []byte(strings.Repeat("a\n", 100)), 0o644))
	add := exec.Command("git", "add", "a.txt")
	add.Dir = dir
	check(b, add.Run())
	commitOne(b, dir)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	app := console.Process{Args: []string{"-C", dir, "mcp"}, Stdin: in, Stdout: out, Stderr: io.Discard, Getenv: func(string) string { return "" }, Now: time.Now, Entropy: cryptorand.Reader}
	go Main(app)
	client, err := sdk.NewClient(&sdk.Implementation{Name: "bench"}, nil).Connect(b.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	check(b, err)
	defer client.Close()
	n := 0
	for b.Loop() {
		n++
		patch := fmt.Sprintf("--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n-a\n+%d\n a\n", n)
		r, err := client.CallTool(b.Context(), &sdk.CallToolParams{Name: "propose_patch", Arguments: obj{"patch": patch, "summary": "bench"}})
		check(b, err)
		if r.IsError {
			b.Fatal(r.Content[0].(*sdk.TextContent).Text)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/call")
}
