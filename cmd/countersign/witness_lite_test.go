package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// A litewitness is torchwood's witness, a real one of another author (filippo.io/torchwood), with its own
// process, database and agent.
type litewitness struct {
	noteParty
	address string
	process *exec.Cmd
}

// startLitewitness starts one that knows a log. COUNTERSIGN_LITEWITNESS names the program, which .ci/run builds.
func startLitewitness(t *testing.T, program, name string, log noteParty) *litewitness {
	t.Helper()
	w := &litewitness{noteParty: newNoteParty(t, name, true)}
	dir, err := os.MkdirTemp("", "lw") // the name of a socket is short
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	keys := agent.NewKeyring()
	check(t, keys.Add(agent.AddedKey{PrivateKey: &w.private}))
	socket, err := net.Listen("unix", filepath.Join(dir, "agent"))
	check(t, err)
	t.Cleanup(func() { socket.Close() })
	go func() {
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keys, conn) }()
		}
	}()
	db := exec.Command("sqlite3", filepath.Join(dir, "db"))
	db.Stdin = strings.NewReader(fmt.Sprintf(`CREATE TABLE log (origin TEXT PRIMARY KEY, tree_size INTEGER NOT NULL, tree_hash TEXT NOT NULL);
		CREATE TABLE key (origin TEXT NOT NULL, key TEXT NOT NULL, FOREIGN KEY(origin) REFERENCES log(origin));
		INSERT INTO log VALUES ('%s', 0, '%s'); INSERT INTO key VALUES ('%s', '%s');`,
		log.Name(), base64.StdEncoding.EncodeToString(sha256.New().Sum(nil)), log.Name(), log.Key))
	if out, err := db.CombinedOutput(); err != nil {
		t.Fatalf("sqlite3: %v: %s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	w.address = free.Addr().String()
	check(t, free.Close())
	public, err := ssh.NewPublicKey(w.private.Public())
	check(t, err)
	w.process = exec.Command(program, "-name", name, "-db", filepath.Join(dir, "db"), "-ssh-agent", filepath.Join(dir, "agent"), "-listen", w.address, "-key", ssh.FingerprintSHA256(public))
	said, err := w.process.StderrPipe()
	check(t, err)
	check(t, w.process.Start())
	t.Cleanup(w.stop)
	lines := bufio.NewScanner(said)
	vkey := false
	for lines.Scan() {
		vkey = vkey || strings.Contains(lines.Text(), w.Key.String()) // it names its key as we do
		if strings.Contains(lines.Text(), "msg=listening") {
			break
		}
	}
	if !vkey {
		t.Errorf("%s does not name the key %s", name, w.Key)
	}
	go func() {
		for lines.Scan() { // it writes on
		}
	}()
	for range 500 { // it says so just before it does
		conn, err := net.Dial("tcp", w.address)
		if err == nil {
			conn.Close()
			return w
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not listen", name)
	return nil
}

func (w *litewitness) stop() {
	_ = w.process.Process.Kill()
	_ = w.process.Wait()
}

func (w *litewitness) line() string {
	return fmt.Sprintf("witness %s %s http://%s/\n", w.Name(), w.Key, w.address)
}

// TestT79Litewitness: two real witnesses of another author and one of ours; one is down, one lies, and one has seen another history.
func TestT79Litewitness(t *testing.T) {
	t.Parallel()
	program := os.Getenv("COUNTERSIGN_LITEWITNESS")
	if program == "" {
		t.Skip("NOT RUN: COUNTERSIGN_LITEWITNESS names no real witness (.ci/run builds one)")
	}
	log := newNoteParty(t, "github.com/acme/app", false)
	one, two := startLitewitness(t, program, "one.example", log), startLitewitness(t, program, "two.example", log)
	ours := newNoteParty(t, "ours.example", true)
	b := &bench{t: t, dir: t.TempDir()}
	b.key = b.write("key", log.pem)
	run, dir := b.run, b.dir
	logLine, oursLine := fmt.Sprintf("log %s\n", log.Key), ours.serve(t, log)
	names := b.write("witnesses.txt", logLine+one.line()+two.line()+oursLine)
	saying := func(text, what string) {
		t.Helper()
		if !strings.Contains(text, what) {
			t.Errorf("it does not say %q:\n%s", what, text)
		}
	}
	r := b.repository("r")
	b.propose(r, "a")
	saying(run(r, 0, "witness", "--witnesses", names, "--quorum", "3"), "checkpoint of 1 commit, signed by 3 of 3 witnesses")
	for i := range 5 {
		b.propose(r, fmt.Sprint("b", i))
	}
	saying(run(r, 0, "witness", "--witnesses", names, "--quorum", "3"), "checkpoint of 6 commits, signed by 3 of 3 witnesses")
	saying(run(r, 0, "audit", "--witnesses", names, "--quorum", "3", "--ask"), "6 commits, all there are")
	verifyByHand(t, r, one.noteParty)

	// A ledger made anew by who has its key: the real witnesses refuse, longer or shorter.
	forged := b.repository("forged")
	b.propose(forged, "c")
	saying(run(forged, 0, "witness", "--witnesses", names), "it has seen 6 commits, more than this checkpoint has")
	for i := range 7 {
		b.propose(forged, fmt.Sprint("d", i))
	}
	text := run(forged, 1, "witness", "--witnesses", names, "--quorum", "1")
	for _, w := range []string{"one", "two", "ours"} {
		saying(text, "witness "+w+".example did not sign: it has seen another history of this ledger (422)")
	}
	saying(run(forged, console.ExitFailed, "audit", "--witnesses", names, "--quorum", "1"), "WITNESS")
	gitIn(t, forged, "fetch", "-q", r, "+refs/agent/ledger-checkpoints:refs/agent/ledger-checkpoints")
	saying(run(forged, console.ExitFailed, "audit", "--witnesses", names, "--quorum", "1"), "the ledger was made anew")

	// Set back with its checkpoints: who asks the real witnesses is told.
	b.propose(r, "e")
	gitIn(t, dir, "clone", "-q", r, "reader")
	reader := filepath.Join(dir, "reader")
	gitIn(t, reader, "fetch", "-q", "origin", "refs/agent/ledger:refs/agent/ledger", "refs/agent/ledger-checkpoints:refs/agent/ledger-checkpoints")
	run(r, 0, "witness", "--witnesses", names, "--quorum", "3")
	run(reader, 0, "audit", "--witnesses", names, "--quorum", "2")
	saying(run(reader, console.ExitFailed, "audit", "--witnesses", names, "--quorum", "2", "--ask"), "witness one.example has seen 7 commits, and the newest checkpoint here has 6")

	// One is down, one lies: it answers with what it signed before. The third is ours.
	b.propose(r, "f")
	old := []byte(nil)
	target, err := url.Parse("http://" + two.address)
	check(t, err)
	liar := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) },
		ModifyResponse: func(answer *http.Response) error {
			var body bytes.Buffer
			if _, err := body.ReadFrom(answer.Body); err != nil {
				return err
			}
			said := body.Bytes()
			if answer.StatusCode == http.StatusOK {
				if old == nil {
					old = said
				}
				said = old
			}
			answer.Body = io.NopCloser(bytes.NewReader(said))
			answer.ContentLength = int64(len(said))
			answer.Header.Set("Content-Length", strconv.Itoa(len(said)))
			return nil
		},
	})
	defer liar.Close()
	lying := b.write("lying.txt", logLine+one.line()+fmt.Sprintf("witness two.example %s %s/\n", two.Key, liar.URL)+oursLine)
	saying(run(r, 0, "witness", "--witnesses", lying), "signed by 3 of 3") // the first answer is true
	b.propose(r, "g")
	one.stop()
	text = run(r, 1, "witness", "--witnesses", lying, "--quorum", "2")
	saying(text, "signed by 1 of 3")
	saying(text, "witness one.example did not sign: it cannot be reached")
	saying(text, "witness two.example did not sign: what it answered is no signature of this checkpoint with its key")
	saying(run(r, 0, "audit", "--witnesses", lying, "--quorum", "2"), "8 commits, up to ")
	saying(run(r, 0, "witness", "--witnesses", names, "--quorum", "2"), "signed by 2 of 3") // without the liar between
	saying(run(r, 0, "audit", "--witnesses", names, "--quorum", "2"), "9 commits, all there are")
}

// A bench is a directory with repositories, whose ledgers are signed with one key.
type bench struct {
	t        *testing.T
	dir, key string
	ahead    time.Duration // of the program's clock
}

func (b *bench) write(name, text string) string {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	check(b.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func (b *bench) repository(name string) string {
	b.t.Helper()
	r := filepath.Join(b.dir, name)
	gitIn(b.t, b.dir, "init", "-q", "-b", "main", r)
	gitIn(b.t, r, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "--allow-empty", "-m", "base")
	return r
}

// run runs a command line in a repository, wants an exit code, and returns what was printed.
func (b *bench) run(in string, want int, args ...string) string {
	b.t.Helper()
	var out bytes.Buffer
	app := console.Process{
		Args: append([]string{"-C", in, "--sign-key", b.key}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		Getenv: func(name string) string {
			return map[string]string{"HOME": b.dir, "GIT_CONFIG_NOSYSTEM": "1", "USER": "me"}[name]
		}, Now: func() time.Time { return time.Now().Add(b.ahead) }, Entropy: rand.Reader,
	}
	if code := Main(app); code != want {
		b.t.Fatalf("%v: exit code %d\n%s", args, code, out.String())
	}
	return out.String()
}

// propose adds a transaction to a ledger.
func (b *bench) propose(in, text string) {
	b.t.Helper()
	b.run(in, 0, "review", "--patch", b.write("p.patch", addition(text+".txt", text+"\n")))
}

// TestT57WitnessByHand: somebody with a witness's key alone, and without this program, checks that it has seen every commit,
// by the SHA-256 of what the commits hold.
func TestT57WitnessByHand(t *testing.T) {
	t.Parallel()
	log, w := newNoteParty(t, "github.com/acme/app", false), newNoteParty(t, "w.example", true)
	b := &bench{t: t, dir: t.TempDir()}
	b.key = b.write("key", log.pem)
	names := b.write("witnesses.txt", fmt.Sprintf("log %s\n", log.Key)+w.serve(t, log))
	r := b.repository("r")
	for i := range 3 {
		b.propose(r, fmt.Sprint("a", i))
		b.run(r, 0, "witness", "--witnesses", names, "--quorum", "1")
		verifyByHand(t, r, w)
	}
	// A signature of another time says nothing of now, as one that is replayed.
	b.run(r, 0, "audit", "--witnesses", names, "--quorum", "1", "--ask")
	b.ahead = time.Hour
	if text := b.run(r, console.ExitFailed, "audit", "--witnesses", names, "--quorum", "1", "--ask"); !strings.Contains(text, "which is not now") {
		t.Error(text)
	}
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// verifyByHand checks that a witness has seen every commit of a ledger, with Git, SHA-256, Ed25519 and the key of the
// witness, and nothing of this program's: as somebody would who has only these.
func verifyByHand(t *testing.T, repository string, w noteParty) {
	t.Helper()
	var level [][32]byte
	for _, id := range strings.Fields(gitIn(t, repository, "rev-list", "--reverse", "refs/agent/ledger")) {
		level = append(level, sha256.Sum256([]byte("\x00"+gitIn(t, repository, "cat-file", "commit", id))))
	}
	commits := len(level)
	for len(level) > 1 { // what has no pair goes up as it is: the tree of RFC 6962
		var next [][32]byte
		for i := 0; i+1 < len(level); i += 2 {
			next = append(next, sha256.Sum256([]byte("\x01"+string(level[i][:])+string(level[i+1][:]))))
		}
		if len(level)%2 == 1 {
			next = append(next, level[len(level)-1])
		}
		level = next
	}
	body := fmt.Sprintf("github.com/acme/app\n%d\n%s\n", commits, base64.StdEncoding.EncodeToString(level[0][:]))
	files := strings.Fields(gitIn(t, repository, "ls-tree", "--name-only", "refs/agent/ledger-checkpoints"))
	note := gitIn(t, repository, "show", "refs/agent/ledger-checkpoints:"+files[len(files)-1])
	public := w.private.Public().(ed25519.PublicKey)
	for line := range strings.Lines(note) {
		words := strings.Fields(line)
		if len(words) != 3 || words[1] != w.Name() {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(words[2])
		check(t, err)
		signed := fmt.Sprintf("cosignature/v1\ntime %d\n%s", binary.BigEndian.Uint64(raw[4:12]), body)
		if !ed25519.Verify(public, []byte(signed), raw[12:]) {
			t.Errorf("%s did not sign the ledger's %d commits", w.Name(), commits)
		}
		return
	}
	t.Errorf("%s did not sign:\n%s", w.Name(), note)
}
